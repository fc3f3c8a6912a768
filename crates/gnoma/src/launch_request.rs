//! Turns the command line into the request that opens a session. Below this nobody sees the command line.

use gnoma_core::protocol::{Detach, Overrides, SessionSpec, Start};

use crate::{args::TurnArgs, environment::ProcessEnvironment};

/// The request that a command line makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LaunchRequest {
    /// The specification with which the session is opened.
    pub spec: SessionSpec,
    /// The words of the prompt.
    pub words: Vec<String>,
    /// The person wants to choose a stored session; until then the newest is in `spec`.
    pub chooses: bool,
}

impl LaunchRequest {
    /// Reads it off the command line; what was said for an id but is none is a part of the prompt.
    pub(crate) fn from_args(args: &TurnArgs, around: &ProcessEnvironment) -> Self {
        let fork = args.fork;
        let mut words = args.words.clone();
        let (start, chooses) = match args.resume.as_ref().map(Option::as_deref) {
            None if args.newest => (Start::Newest { fork }, false),
            None => (Start::New, false),
            Some(None) => (Start::Newest { fork }, true),
            // An id has no blanks: this is a title, which is looked up later, or a quoted prompt.
            Some(Some(prompt)) if prompt.contains(char::is_whitespace) => {
                words.insert(0, prompt.to_owned());
                (Start::Newest { fork }, true)
            }
            Some(Some(id)) => (Start::Stored { id: id.to_owned(), fork }, false),
        };
        Self { spec: SessionSpec { start, ..spec_from_args(args, around) }, words, chooses }
    }
}

/// Returns the part of the session specification that every command needs, from the command line.
pub(crate) fn spec_from_args(args: &TurnArgs, around: &ProcessEnvironment) -> SessionSpec {
    SessionSpec {
        folder: args.cwd.as_ref().map_or_else(|| around.cwd.clone(), |cwd| around.cwd.join(cwd)),
        more_folders: args.add_dir.iter().map(|folder| around.cwd.join(folder)).collect(),
        environment: around.environment.clone(),
        umask: around.umask,
        profile: args.profile.clone(),
        overrides: Overrides {
            provider: args.provider.clone(),
            model: args.model.clone(),
            mode: args.permission,
            confirm_bypass: args.confirm_bypass,
            incognito: args.incognito.then_some(true),
            max_rounds: args.max_turns,
            budget_micro_usd: None,
            thinking: args.thinking,
        },
        system: args.system.clone(),
        answer_schema: None,
        start: Start::New,
        interactive: false,
        detach: Detach::Close,
        mcp_servers: Vec::new(),
        agent: args.agent.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use clap::Parser as _;

    use super::*;
    use crate::args::Args;

    fn asked(line: &str) -> (Start, bool, Vec<String>) {
        let around = ProcessEnvironment {
            environment: Default::default(),
            line: Vec::new(),
            cwd: PathBuf::from("/"),
            stdin_is_terminal: false,
            stdout_is_terminal: false,
            stderr_is_terminal: false,
            ignores_hangup: false,
            umask: None,
        };
        let args = Args::try_parse_from(line.split('|')).unwrap().turn;
        let LaunchRequest { spec, words, chooses } = LaunchRequest::from_args(&args, &around);
        (spec.start, chooses, words)
    }

    #[test]
    fn session_id_is_distinguished_from_prompt_text() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let stored = |id: &str| Start::Stored { id: id.to_owned(), fork: false };
        let newest = Start::Newest { fork: false };
        assert_eq!(asked("gnoma|hi"), (Start::New, false, words(&["hi"])));
        assert_eq!(asked("gnoma|-c|hi"), (newest.clone(), false, words(&["hi"])));
        assert_eq!(asked("gnoma|--resume"), (newest.clone(), true, vec![]));
        assert_eq!(asked("gnoma|-r|20261122"), (stored("20261122"), false, vec![]));
        assert_eq!(asked("gnoma|-r|2026|go on"), (stored("2026"), false, words(&["go on"])));
        assert_eq!(asked("gnoma|-r|go on"), (newest.clone(), true, words(&["go on"])));
        assert_eq!(asked("gnoma|go on|-r"), (newest, true, words(&["go on"])));
        for line in ["gnoma|-r||hi", "gnoma|-r| |hi", "gnoma|--resume=|hi"] {
            let error = Args::try_parse_from(line.split('|')).unwrap_err().to_string();
            assert!(error.contains("the id is empty"), "{line}: {error}");
        }
    }
}
