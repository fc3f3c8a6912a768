//! Errors between the driving program and gnoma, in sentences for both.

use std::io;

use gnoma_core::protocol::RequestError;
use gnoma_guard::permission::RuleError;
use gnoma_host::HostError;
use tokio::task::JoinError;

/// An error in what a program asks of gnoma, or in what gnoma asks of the program.
#[derive(thiserror::Error)]
pub(crate) enum DriverError {
    /// A flag without its value.
    #[error("`{flag}` needs a value")]
    MissingValue { flag: String },
    /// A value for a flag that takes none.
    #[error("`{flag}` takes no value such as `{value}`")]
    UnexpectedValue { flag: String, value: String },
    /// A sum of money that is none.
    #[error("`{flag}` needs an amount above 0, not `{value}`")]
    InvalidAmount { flag: String, value: String },
    /// A count that is none.
    #[error("`{flag}` needs a number above 0, not `{value}`")]
    InvalidNumber { flag: String, value: String },
    /// The value of a flag for a format that does not exist.
    #[error("`{value}` is not a format; use text, json or stream-json")]
    UnknownFormat { value: String },
    /// The value of a flag for a sandbox that does not exist.
    #[error("`{name}` is not a sandbox; use read-only, workspace-write or danger-full-access")]
    UnknownSandbox { name: String },
    /// `codex exec resume` without a session.
    #[error("`resume` needs the id of a session, or --last")]
    MissingSession,
    /// A file that a flag names cannot be read.
    #[error("`{flag}`: cannot read {path}: {source}")]
    UnreadableFile { flag: String, path: String, source: io::Error },
    /// The value of a flag is no JSON.
    #[error("`{flag}` is not JSON: {source}")]
    InvalidJson { flag: &'static str, source: serde_json::Error },
    /// A permission mode that does not exist.
    #[error("Cannot set permission mode: must be one of {modes}")]
    UnknownMode { modes: &'static str },
    /// A rule of `claude` that gnoma's rules cannot express.
    #[error("{0}")]
    UnsayableRule(&'static str),
    /// A rule that cannot be read.
    #[error("{}", .0.fault)]
    InvalidRule(#[source] RuleError),
    /// A tool that must not run cannot be denied.
    #[error("`--disallowedTools {written}` cannot be enforced: {source}; nothing was started")]
    UnenforcedDenial { written: String, source: Box<Self> },
    /// The tools of a hook are named by a pattern that cannot be read.
    #[error("the matcher `{matcher}` of {event} is not a regular expression")]
    InvalidMatcher { matcher: String, event: String },
    /// The program brings too many hooks.
    #[error("there are more than {max} hooks")]
    TooManyHooks { max: usize },
    /// The program initializes a session a second time.
    #[error("the session was initialized before")]
    AlreadyInitialized,
    /// The program rewinds to a message that began no turn.
    #[error("no turn of this session began with the message `{id}`")]
    UnknownMessage { id: String },
    /// A control request that gnoma does not offer.
    #[error("Unsupported control request subtype: {subtype}")]
    UnsupportedRequest { subtype: String },
    /// The session does not do what the program requests.
    #[error("{}", describe_refusal(.0))]
    Refused(#[source] RequestError),
    /// A message of the program that cannot be read.
    #[error("{0}")]
    InvalidMessage(&'static str),
    /// A message of the program with content that messages cannot have.
    #[error("a message cannot hold a block of the type `{kind}`")]
    UnknownBlock { kind: String },
    /// The program has closed its side and answers nothing any more.
    #[error("the program has exited")]
    ProgramLeft,
    /// Too many questions wait for the program.
    #[error("more than {max} questions are open")]
    TooManyQuestions { max: usize },
    /// The program answers a question with an error.
    #[error("{0}")]
    ProgramFailed(String),
    /// An MCP server in the program does not answer in time.
    #[error("it does not answer")]
    NoAnswer,
    /// An answer takes too long.
    #[error("it took too long")]
    TimedOut,
    /// An MCP server in the program answers with an error.
    #[error("{0}")]
    ServerFailed(String),
    /// An MCP server in the program answers without a result.
    #[error("it gave no answer")]
    NoResult,
    /// A call needs approval, and the program does not answer questions.
    #[error("this needs approval, and whoever runs the session has not given it: {reason}")]
    NotApproved { reason: String },
    /// The program could not be asked for approval.
    #[error("could not ask for approval: {0}")]
    NotAsked(#[source] Box<Self>),
    /// The program denies a call, in its words.
    #[error("{0}")]
    Denied(String),
    /// The program neither allows nor denies a call.
    #[error("the answer was neither `allow` nor `deny`")]
    UnclearAnswer,
    /// The program changes the input of a call to what no call can have.
    #[error("its changed input is not an object")]
    InvalidInput,
    /// The arguments of a call that starts a sub-agent cannot be read.
    #[error("arguments: {0}")]
    InvalidArguments(#[source] serde_json::Error),
    /// A sub-agent that does not exist.
    #[error("there is no agent `{name}`; choose one of: {known}")]
    UnknownAgent { name: String, known: String },
    /// A sub-agent with a permission mode that does not exist.
    #[error("the agent `{name}` has the unknown mode `{mode}`")]
    UnknownAgentMode { name: String, mode: String },
    /// The host does not open the session.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The task that opens the session crashed.
    #[error("{0}")]
    OpeningCrashed(#[source] JoinError),
    /// The session that was opened cannot be followed.
    #[error("{0:#}")]
    NotAttached(#[source] anyhow::Error),
}

gnoma_core::debug_as_display!(DriverError);

impl DriverError {
    /// Returns the error for a command line that is wrong.
    pub(crate) fn into_usage_error(self) -> HostError {
        HostError::usage(self.to_string())
    }
}

fn describe_refusal(RequestError { cause, remedy, .. }: &RequestError) -> String {
    remedy.as_ref().map_or_else(|| cause.clone(), |remedy| format!("{cause}. {remedy}"))
}
