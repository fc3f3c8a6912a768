//! Keeps a rule that a person allowed from now on: in their own configuration file, or in that of the
//! project, which counts only while it is trusted. The file otherwise stays as it was written.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use gnoma_config::{
    FileTrust,
    edit::Change,
    paths,
    save::{SaveError, save_changes},
    trust::{Store, TrustError},
};
use gnoma_core::{
    protocol::{Environment, SessionSpec},
    session::Scope,
};
use gnoma_guard::permission::{Origin, Rule, RuleAction, RuleError};

use crate::{Folders as _, HostError, Project, Result};

/// Most rules that one answer adds.
const MAX_RULES: usize = 50;

/// The reason why rules or settings were not saved for a scope.
#[derive(thiserror::Error)]
pub(crate) enum RuleSaveError {
    #[error("between 1 and {MAX_RULES} rules can be saved at once")]
    Count,
    #[error(transparent)]
    Rule(#[from] RuleError),
    #[error("incognito saves nothing, so the rule can apply to this session only")]
    Incognito,
    #[error("this folder is not part of a project: no .git or .gnoma found")]
    NoProject,
    #[error("{file}: {source}")]
    Unreadable { file: String, source: io::Error },
    #[error("{file} does not exist; create it and run `gnoma trust`")]
    NoFile { file: String },
    #[error(
        "this project is not trusted, so gnoma does not add to its settings; review them and run `gnoma trust`"
    )]
    Untrusted,
    #[error(transparent)]
    Trust(#[from] TrustError),
    #[error("{file}: {source}")]
    Unsaved { file: String, source: SaveError },
    #[error("{file}: it is saved, but takes effect only after `gnoma trust`: {source}")]
    NotInForce { file: String, source: TrustRenewalError },
}

impl From<RuleSaveError> for HostError {
    fn from(error: RuleSaveError) -> Self {
        Self::usage(error.to_string())
    }
}

/// The reason why a project's changed settings are not trusted.
#[derive(thiserror::Error)]
pub(crate) enum TrustRenewalError {
    #[error(transparent)]
    Store(#[from] TrustError),
    #[error(transparent)]
    Folder(#[from] io::Error),
    #[error("other files of the project have changed meanwhile")]
    OtherChanges,
}

gnoma_core::debug_as_display!(RuleSaveError, TrustRenewalError);

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
    let place = find_rule_file(project, scope)?;
    let shown = |place: RuleFile| project.environment().shorten_home(&place.file);
    Ok(place.map_or_else(String::new, shown))
}

/// Saves a rule and says where; a rule for the session is only checked.
///
/// # Errors
/// It is not a rule, or the file cannot be written.
pub fn keep_rule(project: &Project, rule: &str, scope: Scope) -> Result<String> {
    Ok(save_rules(project, rule, scope)?)
}

/// Checks that a text is a list of rules that allow, and returns them.
///
/// # Errors
/// One of them is no rule, or there are none or too many.
pub(crate) fn check_rules(rule: &str) -> Result<Vec<&str>, RuleSaveError> {
    let rules: Vec<&str> = Rule::split_list(rule).take(MAX_RULES + 1).collect();
    if rules.is_empty() || rules.len() > MAX_RULES {
        return Err(RuleSaveError::Count);
    }
    for part in &rules {
        Rule::parse(RuleAction::Allow, part, Origin::Session)?;
    }
    Ok(rules)
}

fn save_rules(project: &Project, rule: &str, scope: Scope) -> Result<String, RuleSaveError> {
    let rules = check_rules(rule)?;
    match find_rule_file(project, scope)? {
        None => Ok(String::new()),
        Some(place) => {
            let environment = project.environment();
            let shown = environment.shorten_home(&place.file);
            let changes: Vec<_> =
                rules.iter().map(|rule| Change::Allow((*rule).to_owned())).collect();
            let kept = place.save(&changes, environment)?;
            let what = if kept { "is allowed from now on in" } else { "is allowed already in" };
            Ok(format!("`{rule}` {what} {shown}"))
        }
    }
}

/// Makes changes in the project's own settings, which stay trusted; returns the file.
///
/// # Errors
/// There is no project, it is not trusted, or the file cannot be written.
pub(crate) fn save_in_project(
    project: &Project,
    changes: &[Change],
) -> Result<String, RuleSaveError> {
    let place = project_rule_file(&project.spec)?;
    place.save(changes, project.environment())?;
    Ok(project.environment().shorten_home(&place.file))
}

fn find_rule_file(project: &Project, scope: Scope) -> Result<Option<RuleFile>, RuleSaveError> {
    let spec = &project.spec;
    if scope != Scope::Session && project.is_incognito() {
        return Err(RuleSaveError::Incognito);
    }
    match scope {
        Scope::Session => Ok(None),
        Scope::User => {
            let file = paths::user_file(&spec.environment.config_dir());
            Ok(Some(RuleFile { file, project: None }))
        }
        Scope::Project => project_rule_file(spec).map(Some),
    }
}

/// A project's own file may allow something only where a person trusts it as it is.
fn project_rule_file(
    SessionSpec { environment, folder, .. }: &SessionSpec,
) -> Result<RuleFile, RuleSaveError> {
    let root = gnoma_config::project_root(folder, &environment.config_dir());
    let root = root.ok_or(RuleSaveError::NoProject)?;
    let file = paths::project_file(&root);
    let shown = || environment.shorten_home(&file);
    let content = paths::read_config_file(&file)
        .map_err(|source| RuleSaveError::Unreadable { file: shown(), source })?;
    let Some(content) = content else {
        let folder = file.parent().unwrap_or(&root);
        // Whatever else is there would be trusted with it.
        return match folder.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Ok(RuleFile { file, project: Some(root) })
            }
            _ => Err(RuleSaveError::NoFile { file: shown() }),
        };
    };
    match Store::open(&environment.state_dir())?.file_trust(&root, &content) {
        FileTrust::Trusted => Ok(RuleFile { file, project: Some(root) }),
        FileTrust::Unknown | FileTrust::Changed => Err(RuleSaveError::Untrusted),
    }
}

impl RuleFile {
    /// Saves the changes; returns whether anything had to be written.
    fn save(&self, changes: &[Change], environment: &Environment) -> Result<bool, RuleSaveError> {
        let shown = || environment.shorten_home(&self.file);
        let saved = save_changes(&self.file, changes)
            .map_err(|source| RuleSaveError::Unsaved { file: shown(), source })?;
        let (true, Some(project)) = (saved.has_changed(), &self.project) else {
            return Ok(saved.has_changed());
        };
        self.trust(project, saved.before.as_deref(), &saved.after, environment)
            .map_err(|source| RuleSaveError::NotInForce { file: shown(), source })?;
        Ok(true)
    }

    /// Trusts the file with its rules, unless something that acts has changed beside it.
    fn trust(
        &self,
        project: &Path,
        before: Option<&str>,
        new: &str,
        environment: &Environment,
    ) -> Result<(), TrustRenewalError> {
        let mut store = Store::open(&environment.state_dir())?;
        let is_as_it_was = match before {
            Some(before) => store.is_trusted(project, before.as_bytes()),
            None => self.is_alone()?,
        };
        if !is_as_it_was {
            return Err(TrustRenewalError::OtherChanges);
        }
        Ok(store.trust(project, new.as_bytes())?)
    }

    fn is_alone(&self) -> io::Result<bool> {
        let folder = self.file.parent().unwrap_or(Path::new("."));
        Ok(fs::read_dir(folder)?.take(2).count() == 1)
    }
}
