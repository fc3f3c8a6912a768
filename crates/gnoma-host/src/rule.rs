//! Keeps a rule that a person allowed from now on: in their own configuration file, or in that of the
//! project, which counts only while it is trusted. The file otherwise stays as it was written.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use gnoma_config::{FileTrust, edit::Change, paths, save::save_changes, trust::Store};
use gnoma_core::{
    protocol::{Environment, SessionSpec},
    session::Scope,
};
use gnoma_guard::permission::{Origin, Rule, RuleAction};

use crate::{Folders as _, HostError, Project, Result};

/// Most rules that one answer adds.
const MAX_RULES: usize = 50;

/// The file in which rules of a scope are saved.
struct RuleFile {
    file: PathBuf,
    /// The project whose trust holds for what the file says.
    project: Option<PathBuf>,
}

/// Returns the place where rules of a scope are saved, for people; empty for the session, which has no file for
/// them.
///
/// # Errors
/// A sentence that says why nothing can be kept there.
pub fn rule_place(project: &Project, scope: Scope) -> Result<String> {
    let place = find_rule_file(project, scope).map_err(HostError::usage)?;
    let shown = |place: RuleFile| project.environment().shorten_home(&place.file);
    Ok(place.map_or_else(String::new, shown))
}

/// Saves a rule and says where; a rule for the session is only checked.
///
/// # Errors
/// A sentence: it is not a rule, or the file cannot be written.
pub fn keep_rule(project: &Project, rule: &str, scope: Scope) -> Result<String> {
    save_rules(project, rule, scope).map_err(HostError::usage)
}

/// Checks that a text is a list of rules that allow, and returns them.
///
/// # Errors
/// A sentence: what is not a rule, or there are none or too many.
pub(crate) fn check_rules(rule: &str) -> Result<Vec<&str>, String> {
    let rules: Vec<&str> = Rule::split_list(rule).take(MAX_RULES + 1).collect();
    if rules.is_empty() || rules.len() > MAX_RULES {
        return Err(format!("between 1 and {MAX_RULES} rules can be saved at once"));
    }
    for part in &rules {
        Rule::parse(RuleAction::Allow, part, Origin::Session).map_err(|error| error.to_string())?;
    }
    Ok(rules)
}

fn save_rules(project: &Project, rule: &str, scope: Scope) -> Result<String, String> {
    let rules = check_rules(rule)?;
    match find_rule_file(project, scope)? {
        None => Ok(String::new()),
        Some(place) => {
            let environment = project.environment();
            let shown = environment.shorten_home(&place.file);
            let changes: Vec<_> =
                rules.iter().map(|rule| Change::Allow((*rule).to_owned())).collect();
            let kept =
                place.save(&changes, environment).map_err(|why| format!("{shown}: {why}"))?;
            let what = if kept { "is allowed from now on in" } else { "is allowed already in" };
            Ok(format!("`{rule}` {what} {shown}"))
        }
    }
}

/// Makes changes in the project's own settings, which stay trusted; returns the file.
///
/// # Errors
/// A sentence: there is no project, it is not trusted, or the file cannot be written.
pub(crate) fn save_in_project(project: &Project, changes: &[Change]) -> Result<String, String> {
    let place = of_project(&project.spec)?;
    let shown = project.environment().shorten_home(&place.file);
    place.save(changes, project.environment()).map_err(|why| format!("{shown}: {why}"))?;
    Ok(shown)
}

fn find_rule_file(project: &Project, scope: Scope) -> Result<Option<RuleFile>, String> {
    let spec = &project.spec;
    if scope != Scope::Session && project.is_incognito() {
        return Err(
            "incognito saves nothing, so the rule can apply to this session only".to_owned()
        );
    }
    match scope {
        Scope::Session => Ok(None),
        Scope::User => {
            let file = paths::user_file(&spec.environment.config_dir());
            Ok(Some(RuleFile { file, project: None }))
        }
        Scope::Project => of_project(spec).map(Some),
    }
}

/// A project's own file may allow something only where a person trusts it as it is.
fn of_project(SessionSpec { environment, folder, .. }: &SessionSpec) -> Result<RuleFile, String> {
    let Some(root) = gnoma_config::project_root(folder, &environment.config_dir()) else {
        return Err("this folder is not part of a project: no .git or .gnoma found".to_owned());
    };
    let file = paths::project_file(&root);
    let shown = environment.shorten_home(&file);
    let content = paths::read_config_file(&file).map_err(|error| format!("{shown}: {error}"))?;
    let Some(content) = content else {
        let folder = file.parent().unwrap_or(&root);
        // Whatever else is there would be trusted with it.
        return match folder.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Ok(RuleFile { file, project: Some(root) })
            }
            _ => Err(format!("{shown} does not exist; create it and run `gnoma trust`")),
        };
    };
    let store = Store::open(&environment.state_dir()).map_err(|error| error.to_string())?;
    match store.file_trust(&root, &content) {
        FileTrust::Trusted => Ok(RuleFile { file, project: Some(root) }),
        FileTrust::Unknown | FileTrust::Changed => {
            Err("this project is not trusted, so gnoma does not add to its settings; review them and run `gnoma trust`"
                .to_owned())
        }
    }
}

impl RuleFile {
    /// Says whether anything had to be written.
    fn save(&self, changes: &[Change], environment: &Environment) -> Result<bool, String> {
        let saved = save_changes(&self.file, changes).map_err(|error| error.to_string())?;
        let (true, Some(project)) = (saved.has_changed(), &self.project) else {
            return Ok(saved.has_changed());
        };
        self.trust(project, saved.before.as_deref(), &saved.after, environment).map_err(|why| {
            format!("it is saved, but takes effect only after `gnoma trust`: {why}")
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
