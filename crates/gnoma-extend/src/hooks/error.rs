//! Errors of hooks: unusable definitions, unreadable files, programs that do not start.

use std::{error::Error, io, time::Duration};

use crate::{claude::RuleFault, places::TextFileError};

/// The reason why a hook cannot be used, as what follows "a hook".
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum HookError {
    /// The hook is for an event that gnoma's own settings do not have.
    #[error("is for the event `{0}`, which gnoma does not have")]
    UnknownEvent(String),
    /// The hook is of a kind that gnoma does not know.
    #[error("has the type `{0}`, which gnoma does not run")]
    UnknownKind(String),
    /// The hook needs another shell.
    #[error("wants the shell `{}`, which gnoma does not use", .0.escape_debug())]
    UnknownShell(String),
    /// A field that the hook needs is missing or empty.
    #[error("has no `{0}`")]
    NoField(&'static str),
    /// One of the program's arguments is not a string.
    #[error("has `args` that are not strings")]
    ArgumentsNotText,
    /// The matcher cannot be read.
    #[error("has a matcher that is not a valid regular expression: `{0}`")]
    Matcher(String),
    /// The hook asks a model when the session has none any more.
    #[error("asks a model, but no model answers once the session has ended")]
    ModelAtEnd,
    /// The facts cannot be sent to such an address.
    #[error("has `{}`, which is not an http address", .0.escape_debug())]
    NotAnAddress(String),
    /// The address has a login, which would be shown with it.
    #[error("has a name or password in its address; use `headers`")]
    LoginInAddress,
}

/// The reason why the condition of a hook cannot be read.
#[derive(thiserror::Error)]
pub(super) enum HookConditionError {
    /// The condition is not a text.
    #[error("must be a string")]
    NoText,
    /// The condition cannot be expressed by rules of gnoma.
    #[error(transparent)]
    Rule(#[from] RuleFault),
}

/// The reason why a file with hooks cannot be read.
#[derive(thiserror::Error)]
pub(super) enum HookFileError {
    /// The file has no text that can be read.
    #[error(transparent)]
    Text(#[from] TextFileError),
    /// The text is not JSON.
    #[error("it is not valid JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The text is not TOML.
    #[error("it is not valid TOML: {}", .0.message())]
    Toml(#[from] toml::de::Error),
}

/// The reason why a hook was not started, as what follows its name.
#[derive(thiserror::Error)]
pub(super) enum HookStartError {
    /// No hook of the session is run; why.
    #[error("{0}")]
    Refused(String),
    /// The folder for the hook's files cannot be made.
    #[error("could not be started: its folder cannot be made")]
    NoFolder,
    /// The system could not start the hook.
    #[error("could not be started: {0}")]
    Io(#[from] io::Error),
}

/// The reason why a shell line did not run to its end with success, in a few words.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum HookLineError {
    /// The line ended with this exit code.
    #[error("exit code {0}")]
    ExitCode(i32),
    /// The line ran for longer than this and was ended.
    #[error("took longer than {} ms", .0.as_millis())]
    TimedOut(Duration),
    /// The line was not started or was killed; in words.
    #[error("{0}")]
    Failed(String),
}

/// The reason why a program that is called back gave no answer, in the words of the one who called it.
#[derive(thiserror::Error)]
#[error(transparent)]
pub struct HookCallError(Box<dyn Error + Send + Sync>);

gnoma_core::debug_as_display!(
    HookError,
    HookConditionError,
    HookFileError,
    HookStartError,
    HookLineError,
    HookCallError
);

impl HookCallError {
    /// Creates the error from its cause: an error, or the words of the program.
    pub fn new(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(cause.into())
    }
}
