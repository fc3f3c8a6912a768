//! Keeps a rule that a person allowed from now on: in their own configuration file, or in that of the
//! project, which counts only while it is trusted. The file stays as it was written; the rule comes
//! to its end, and where that would change anything else, nothing is written.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use gnoma_config::{Standing, paths, toml, trust::Store};
use gnoma_core::{
    protocol::{Environment, SessionSpec},
    session::Scope,
};
use gnoma_guard::permission::{Origin, Rule, RuleAction};
use toml::{Table, Value};

use crate::{Folders as _, HostError, Project, Result, setting};

/// Most rules that one answer adds.
const MAX_RULES: usize = 50;

/// Where rules of a scope are kept.
struct Place {
    file: PathBuf,
    /// The project whose trust holds for what the file says.
    project: Option<PathBuf>,
}

/// Where that is, for people; nothing for the session, which keeps no file.
///
/// # Errors
/// A sentence that says why nothing can be kept there.
pub fn rule_place(project: &Project, scope: Scope) -> Result<String> {
    let place = find(project, scope).map_err(HostError::usage)?;
    let shown = |place: Place| project.environment().shortened(&place.file);
    Ok(place.map_or_else(String::new, shown))
}

/// Keeps it and says where; a rule for the session is only looked at.
///
/// # Errors
/// A sentence: it is no rule, or the file cannot be written.
pub fn keep_rule(project: &Project, rule: &str, scope: Scope) -> Result<String> {
    keep(project, rule, scope).map_err(HostError::usage)
}

fn keep(project: &Project, rule: &str, scope: Scope) -> Result<String, String> {
    let rules: Vec<&str> = Rule::listed(rule).take(MAX_RULES + 1).collect();
    if rules.is_empty() || rules.len() > MAX_RULES {
        return Err(format!("between one and {MAX_RULES} rules can be kept at once"));
    }
    for part in &rules {
        Rule::parse(RuleAction::Allow, part, Origin::Session).map_err(|error| error.to_string())?;
    }
    match find(project, scope)? {
        None => Ok(String::new()),
        Some(place) => {
            let environment = project.environment();
            let shown = environment.shortened(&place.file);
            let kept = place.keep(&rules, environment).map_err(|why| format!("{shown}: {why}"))?;
            let what = if kept { "is allowed from now on in" } else { "is allowed already in" };
            Ok(format!("`{rule}` {what} {shown}"))
        }
    }
}

fn find(project: &Project, scope: Scope) -> Result<Option<Place>, String> {
    let Project { spec, loaded, .. } = project;
    if scope != Scope::Session && loaded.settings.privacy.incognito {
        return Err(
            "incognito keeps nothing, so the rule can only hold for this session".to_owned()
        );
    }
    match scope {
        Scope::Session => Ok(None),
        Scope::User => {
            let file = paths::user_file(&spec.environment.config_dir());
            Ok(Some(Place { file, project: None }))
        }
        Scope::Project => of_project(spec).map(Some),
    }
}

/// A project's own file may allow something only where a person trusts it as it is.
fn of_project(SessionSpec { environment, folder, .. }: &SessionSpec) -> Result<Place, String> {
    let Some(root) = gnoma_config::project_root(folder, &environment.config_dir()) else {
        return Err("this folder belongs to no project: there is no .git or .gnoma".to_owned());
    };
    let file = paths::project_file(&root);
    let shown = environment.shortened(&file);
    let content = paths::read(&file).map_err(|error| format!("{shown}: {error}"))?;
    let Some(content) = content else {
        let folder = file.parent().unwrap_or(&root);
        // Whatever else lies there would be trusted with it.
        return match folder.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Ok(Place { file, project: Some(root) })
            }
            _ => Err(format!("{shown} is not there; write it and run `gnoma trust`")),
        };
    };
    let store = Store::open(&environment.state_dir()).map_err(|error| error.to_string())?;
    match store.standing(&root, &content) {
        Standing::Trusted => Ok(Place { file, project: Some(root) }),
        Standing::Unknown | Standing::Changed => {
            Err("this project is not trusted, so its file cannot allow anything; read it and run \
             `gnoma trust`"
                .to_owned())
        }
    }
}

impl Place {
    /// Says whether anything had to be written.
    fn keep(&self, rules: &[&str], environment: &Environment) -> Result<bool, String> {
        let told = |error: io::Error| error.to_string();
        let before = paths::read(&self.file).map_err(told)?.map(String::from_utf8).transpose();
        let before = before.map_err(|_| "it is no text; nothing was written".to_owned())?;
        let text = before.as_deref().unwrap_or_default();
        let Some(new) = with_rules(text, rules)? else { return Ok(false) };
        setting::check(&new)?;
        let mode = fs::metadata(&self.file).ok().map(|facts| facts.permissions());
        setting::replace(&self.file, &new).map_err(told)?;
        let Some(project) = &self.project else { return Ok(true) };
        if let Some(mode) = mode {
            fs::set_permissions(&self.file, mode).map_err(told)?;
        }
        self.trust(project, before.as_deref(), &new, environment).map_err(|why| {
            format!("the rule is there, but counts only after `gnoma trust`: {why}")
        })?;
        Ok(true)
    }

    /// Trusts the file with its rules, unless something that acts has changed beside it.
    fn trust(
        &self,
        project: &Path,
        before: Option<&str>,
        new: &str,
        environment: &Environment,
    ) -> Result<(), String> {
        let mut store = Store::open(&environment.state_dir()).map_err(|error| error.to_string())?;
        let is_as_it_was = match before {
            Some(before) => store.is_trusted(project, before.as_bytes()),
            None => self.is_alone().map_err(|error| error.to_string())?,
        };
        if !is_as_it_was {
            return Err("other files of the project have changed meanwhile".to_owned());
        }
        store.trust(project, new.as_bytes()).map_err(|error| error.to_string())
    }

    fn is_alone(&self) -> io::Result<bool> {
        let folder = self.file.parent().unwrap_or(Path::new("."));
        Ok(fs::read_dir(folder)?.take(2).count() == 1)
    }
}

/// The text with the rules that it does not have yet; `None` where it has them all.
fn with_rules(text: &str, rules: &[&str]) -> Result<Option<String>, String> {
    let by_hand = || {
        let rules = rules.join("`, `");
        format!("add `{rules}` by hand; the file is written in a way that cannot be added to")
    };
    let mut wanted: Table = toml::from_str(text).map_err(|_| by_hand())?;
    let list = wanted
        .entry("permission")
        .or_insert_with(|| Value::Table(Table::new()))
        .as_table_mut()
        .map(|section| section.entry("rules").or_insert_with(|| Value::Array(Vec::new())));
    let list = list.and_then(Value::as_array_mut).ok_or_else(by_hand)?;
    let mut new = text.to_owned();
    for rule in rules {
        let entry = Table::from_iter([
            ("rule".to_owned(), Value::String((*rule).to_owned())),
            ("action".to_owned(), Value::String("allow".to_owned())),
        ]);
        let entry = Value::Table(entry);
        if list.contains(&entry) {
            continue;
        }
        list.push(entry);
        if !new.is_empty() {
            new.push_str(if new.ends_with('\n') { "\n" } else { "\n\n" });
        }
        let rule = Value::String((*rule).to_owned());
        new.push_str(&format!("[[permission.rules]]\nrule = {rule}\naction = \"allow\"\n"));
    }
    if new == text {
        return Ok(None);
    }
    let is_meant = toml::from_str::<Table>(&new).is_ok_and(|read| read == wanted);
    if is_meant { Ok(Some(new)) } else { Err(by_hand()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_comes_to_the_end_and_leaves_the_rest() {
        let text = "# mine\n[permission] # careful\nmode = \"auto\"\n";
        let new = with_rules(text, &["bash(cargo test *)"]).unwrap().unwrap();
        let rule = "[[permission.rules]]\nrule = \"bash(cargo test *)\"\naction = \"allow\"\n";
        assert_eq!(new, format!("{text}\n{rule}"));
        assert_eq!(with_rules("", &["bash(cargo test *)"]).unwrap().unwrap(), rule);
        assert_eq!(with_rules(&new, &["bash(cargo test *)"]), Ok(None), "not twice");
        let both = with_rules(&new, &["bash(cargo test *)", "web(\"x\")"]).unwrap().unwrap();
        let read: Table = toml::from_str(&both).unwrap();
        assert_eq!(read["permission"]["rules"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn what_cannot_be_added_to_is_left_alone() {
        for text in ["not toml", "permission = 1\n", "[permission]\nrules = []\n", "[a\n"] {
            let refused = with_rules(text, &["bash(ls)"]).unwrap_err();
            assert!(refused.contains("by hand"), "{refused}");
        }
    }
}
