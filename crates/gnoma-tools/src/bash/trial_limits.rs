//! What a trial run cannot do: open secret files, or reach past the sandbox. Its layer is dropped before the command
//! runs in the workspace or outside, so nothing of it happens twice.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use gnoma_core::tool::Trial;
use gnoma_sandbox::layer::{ChangeKind, Changes, LayerChange};

use super::{process::ShellEnd, reading_commands};

/// The reason why a command that tried to reach a server may have to run outside the sandbox.
const MISSED_SERVER: &str = "It tried to reach a server, and the sandbox has no network.";
/// The note for the model about a command that tried to reach a server.
const NO_SERVERS: &str = "[it tried to reach a server; trial runs have no network and do not see the servers of this machine]";

/// The notes for the model about a command that listed processes, or the root of the machine.
const PARTIAL_LISTS: [&str; 2] = [
    "[it listed processes; trial runs see only their own, not those of this machine]",
    "[it listed `/`, of which trial runs see only a part]",
];

/// The note for the model about processes that a command left in the background.
const ENDED_WITH_TRIAL: &str = "[what it left in the background was ended with the trial; servers and watchers need `background`]";

/// The reason why a trial run differs from what the command would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TrialLimit {
    /// The command met secret files that it could not open, replace or remove.
    Secrets(Vec<PathBuf>),
    /// The command may have met secret files, and nothing here reports whether it did.
    UnseenSecrets(Vec<PathBuf>),
    /// The command tried to open what is outside of the workspace.
    Outside(Vec<PathBuf>),
    /// The sandbox seems to have stopped it; how.
    Sandbox(String),
}

impl TrialLimit {
    /// The limit that a command met, if any; `met` are the secret files that it tried to use, `is_named` is true if it
    /// names one of them itself.
    pub(super) fn find(
        trial: Trial,
        changes: &Changes,
        (ending, output): (ShellEnd, &str),
        (met, is_named): (&[PathBuf], bool),
        missed_server: bool,
    ) -> Option<Self> {
        if trial == Trial::Discard {
            return None;
        }
        let has_failed = ending != ShellEnd::Code(0);
        // What changed nothing and went well is a result, with a note; a file that is named was wanted.
        let is_result = !has_failed && changes.is_empty();
        if !met.is_empty() && (!is_result || is_named) {
            return Some(Self::Secrets(met.to_vec()));
        }
        // A program that handles the refusal itself ends well, and its answer is wrong all the same.
        let missed = missed_server.then(|| MISSED_SERVER.to_owned());
        gnoma_sandbox::describe_sandbox_denial(output, ending.exit_code())
            .or(missed)
            .map(Self::Sandbox)
    }

    /// The limit that a command met which tried to open these names outside, if any: without them whatever it says
    /// may be wrong.
    pub(super) fn at_outside_names(trial: Trial, outside: &[PathBuf]) -> Option<Self> {
        let is_met = trial != Trial::Discard && !outside.is_empty();
        is_met.then(|| Self::Outside(outside.to_vec()))
    }

    /// The question that it is, in one line.
    pub(super) fn question(&self, command: &str, roots: &[PathBuf]) -> String {
        let command = reading_commands::one_line(command);
        match self {
            Self::Secrets(files) => format!(
                "`{command}` needs {}, which trial runs cannot open: run it in the workspace, with {}?",
                reading_commands::describe_paths(files, roots),
                this_or_these(files),
            ),
            Self::UnseenSecrets(files) => format!(
                "`{command}` may need {}, which trial runs cannot open, and this machine does not show whether it does: run it in the workspace, with {}?",
                reading_commands::describe_paths(files, roots),
                this_or_these(files),
            ),
            Self::Outside(paths) => format!(
                "`{command}` uses {}, outside the workspace, which trial runs cannot open: run it in the workspace, with {}?",
                // A yes is for each of them.
                reading_commands::describe_all_paths(paths, roots),
                if paths.len() == 1 { "it" } else { "them" },
            ),
            Self::Sandbox(why) => {
                format!(
                    "run `{command}` outside the sandbox? {why} What it did on trial is discarded."
                )
            }
        }
    }
}

fn this_or_these(files: &[PathBuf]) -> &'static str {
    if files.len() == 1 { "this file" } else { "these files" }
}

/// Returns the note for the model about a command that tried to reach a server.
pub(super) fn note_of_servers(missed: bool) -> &'static str {
    if missed { NO_SERVERS } else { "" }
}

/// Returns the notes for the model about a command that listed processes, or the root of the machine.
pub(super) fn notes_of_lists(listed: [bool; 2]) -> impl Iterator<Item = &'static str> {
    listed.into_iter().zip(PARTIAL_LISTS).filter_map(|(is_met, note)| is_met.then_some(note))
}

/// Returns the note for the model about processes that a command left in the background.
pub(super) fn note_of_left(left: bool) -> &'static str {
    if left { ENDED_WITH_TRIAL } else { "" }
}

/// Returns the note for the model about names outside that a trial run tried to open.
pub(super) fn note_of_outside(tried: &[PathBuf], roots: &[PathBuf]) -> String {
    if tried.is_empty() {
        return String::new();
    }
    format!(
        "[outside of what trial runs can open: {}]",
        reading_commands::describe_paths(tried, roots)
    )
}

/// Returns the note for the model about secret files that a trial run tried to use.
pub(super) fn note_of_secrets(met: &[PathBuf], roots: &[PathBuf]) -> String {
    if met.is_empty() {
        return String::new();
    }
    format!(
        "[trial runs can neither open nor remove {}]",
        reading_commands::describe_paths(met, roots)
    )
}

/// The secret files that a command tried to use: those that it tried to open, and those of `sealed` that it left in
/// folders which it emptied.
pub(super) fn secrets_met(
    mut tried: Vec<PathBuf>,
    changes: &Changes,
    sealed: &[PathBuf],
    roots: &[PathBuf],
) -> Vec<PathBuf> {
    for left in left_in_emptied_folders(changes, sealed, roots) {
        if !tried.contains(&left) {
            tried.push(left);
        }
    }
    tried
}

/// Sealed files in folders from which a command took all else: it wanted the folders gone.
fn left_in_emptied_folders(
    changes: &Changes,
    sealed: &[PathBuf],
    roots: &[PathBuf],
) -> Vec<PathBuf> {
    let deleted = changes.list.iter().filter(|change| change.kind() == ChangeKind::Deleted);
    let deleted: BTreeSet<&Path> = gnoma_core::sort::to_set(deleted.map(LayerChange::path));
    if deleted.is_empty() {
        return Vec::new();
    }
    let stays = |path: &Path| sealed.iter().any(|secret| secret.starts_with(path));
    let is_emptied = |folder: &Path| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut others = entries.map(|entry| entry.path()).filter(|path| !stays(path)).peekable();
        others.peek().is_some() && others.all(|path| deleted.contains(path.as_path()))
    };
    let is_inside =
        |folder: &&Path| roots.iter().any(|root| folder.starts_with(root) && *folder != root);
    let left = sealed
        .iter()
        .filter(|secret| secret.ancestors().skip(1).take_while(is_inside).any(is_emptied));
    left.cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trial_limit_reports_a_named_secret_even_if_the_command_succeeds() {
        let met = [PathBuf::from("/w/.env")];
        let ended = (ShellEnd::Code(0), "");
        let find = |is_named| {
            TrialLimit::find(Trial::Ask, &Changes::default(), ended, (&met, is_named), false)
        };
        assert_eq!(find(true), Some(TrialLimit::Secrets(met.to_vec())));
        assert_eq!(find(false), None);
    }

    #[test]
    fn trial_limit_question_names_every_path_outside_the_workspace() {
        let paths: Vec<_> = (0..9).map(|number| PathBuf::from(format!("/home/{number}"))).collect();
        let limit = TrialLimit::at_outside_names(Trial::Ask, &paths).unwrap();
        let question = limit.question("ls \"$x\"", &[]);
        assert!(paths.iter().all(|path| question.contains(&*path.to_string_lossy())), "{question}");
        assert_eq!(TrialLimit::at_outside_names(Trial::Discard, &paths), None);
    }

    #[test]
    fn trial_limit_reports_an_unreachable_server_even_if_the_command_succeeds() {
        let ended = (ShellEnd::Code(0), "ECONNREFUSED");
        let find = |trial, missed| {
            TrialLimit::find(trial, &Changes::default(), ended, (&[], false), missed)
        };
        assert!(matches!(find(Trial::Ask, true), Some(TrialLimit::Sandbox(_))));
        assert_eq!((find(Trial::Ask, false), find(Trial::Discard, true)), (None, None));
    }
}
