//! Reasons why an MCP server cannot be used, with a remedy.

use std::{sync::Arc, time::Duration};

use gnoma_core::duration::format_duration;

use super::{
    approval::ToolMemoryError,
    definition::{Definition, ServerOrigin, ServerReach},
    error::CallError,
    process::ProgramStartError,
};

/// An error of a call with what to do about it, as what follows the name of the server.
#[derive(thiserror::Error)]
pub(super) enum CallFailure {
    /// The server wants to know who asks.
    #[error("it requires a login; run `gnoma mcp login {server}`")]
    LoginNeeded {
        /// The name of the server.
        server: String,
    },
    /// The login that is saved does not work any more.
    #[error("its login does not work ({cause}); run `gnoma mcp login {server}`")]
    LoginBroken {
        /// The name of the server.
        server: String,
        /// The fault of the login, in words.
        cause: String,
    },
    /// The address seems to be none of a server.
    #[error("{source}; its `url` in {origin} is `{url}`: {flaw}")]
    Address {
        /// The error of the call.
        source: Box<CallError>,
        /// The place where the address is written.
        origin: ServerOrigin,
        /// The address without secrets.
        url: String,
        /// The likely flaw of the address.
        flaw: AddressFlaw,
    },
    /// Any other error.
    #[error(transparent)]
    Other(Box<CallError>),
}

/// The likely flaw of an address at which a server cannot be used, with what to do.
#[derive(Clone, Copy, thiserror::Error)]
pub(super) enum AddressFlaw {
    /// The address is one of the older transport.
    #[error(
        "an address that ends in `/sse` is mostly for the older transport (HTTP with SSE), which gnoma does not \
         speak; the server's documentation names the one for streamable HTTP, often `/mcp`"
    )]
    OldTransport,
    /// The server forbids the request.
    #[error("check what its `headers` send and whether you may use it")]
    Forbidden,
    /// Nothing that speaks the protocol is there.
    #[error("check that its `url` is the one for streamable HTTP, often with `/mcp` at its end")]
    NotThere,
}

impl CallFailure {
    /// Adds to an error of a call what to do about it.
    pub(super) fn new(error: CallError, definition: &Definition) -> Self {
        let server = definition.name.clone();
        match error {
            CallError::Unauthorized(_) => Self::LoginNeeded { server },
            CallError::Login(cause) => Self::LoginBroken { server, cause },
            error => match AddressFlaw::from_error(&error, definition) {
                Some(flaw) => Self::Address {
                    source: Box::new(error),
                    origin: definition.origin.clone(),
                    url: definition.to_line(),
                    flaw,
                },
                None => Self::Other(Box::new(error)),
            },
        }
    }
}

impl AddressFlaw {
    /// Returns the likely flaw of the address at which a call failed; `None` if the error is of another kind.
    fn from_error(error: &CallError, definition: &Definition) -> Option<Self> {
        const FORBIDDEN: u16 = 403;
        const NOT_FOUND: u16 = 404;
        const NO_SUCH_METHOD: u16 = 405;
        const GONE: u16 = 410;
        let (CallError::Status(status, _), ServerReach::Http { .. }) = (error, &definition.reach)
        else {
            return None;
        };
        let is_sse = || definition.to_line().trim_end_matches('/').ends_with("/sse");
        match *status {
            FORBIDDEN => Some(Self::Forbidden),
            NOT_FOUND | NO_SUCH_METHOD | GONE if is_sse() => Some(Self::OldTransport),
            NOT_FOUND | NO_SUCH_METHOD | GONE => Some(Self::NotThere),
            _ => None,
        }
    }
}

/// The reason why there is no connection to a server.
#[derive(thiserror::Error)]
pub(super) enum ConnectionError {
    /// The program of the server was not started.
    #[error(transparent)]
    Start(#[from] ProgramStartError),
    /// The program ended instead of answering.
    #[error("it ended before it answered")]
    EndedEarly,
    /// The program ended while it worked on a call.
    #[error("it ended during the call; the next call starts it again")]
    EndedInCall,
    /// The server did not answer in time.
    #[error("it did not answer within {}", format_duration(*.0))]
    TimedOut(Duration),
    /// The server refused, or its answer cannot be used.
    #[error(transparent)]
    Call(#[from] CallFailure),
}

/// A server without a connection, with the last lines that it wrote to its standard error.
#[derive(Clone, thiserror::Error)]
#[error("the MCP server `{server}` is not available: {source}{}", output_clause(.output))]
pub(super) struct UnavailableError {
    /// The name of the server.
    pub(super) server: String,
    /// The reason why there is no connection.
    pub(super) source: Arc<ConnectionError>,
    /// The last lines that it wrote, in one; may be empty.
    pub(super) output: String,
}

/// Returns the last lines that a server wrote, as what follows a sentence.
pub(super) fn output_clause(output: &str) -> String {
    if output.is_empty() { String::new() } else { format!("; it wrote: {output}") }
}

/// The reason why a tool of a server must not be called.
#[derive(thiserror::Error)]
pub(super) enum ToolRefusal {
    /// The server describes the tool differently than when it was approved.
    #[error(
        "`{tool}` of the MCP server `{server}` has changed since it was approved; the user must approve it again with \
         `gnoma mcp approve {server}`"
    )]
    Changed {
        /// The name of the server.
        server: String,
        /// The server's name for the tool.
        tool: String,
    },
    /// The server does not list the tool any more.
    #[error("the MCP server `{server}` no longer has a tool `{tool}`")]
    Gone {
        /// The name of the server.
        server: String,
        /// The server's name for the tool.
        tool: String,
    },
}

/// The reason why a server did not do what a person or a model asked of it.
#[derive(thiserror::Error)]
pub(super) enum ServerUseError {
    /// No server has that name.
    #[error("there is no MCP server `{0}`")]
    NoServer(String),
    /// The server has no such prompt.
    #[error("the MCP server `{0}` has no such prompt")]
    NoPrompt(String),
    /// A prompt needs an argument that was not given.
    #[error("it needs `{0}`")]
    NoArgument(String),
    /// There is no connection.
    #[error(transparent)]
    Unavailable(#[from] UnavailableError),
    /// The list of tools did not come.
    #[error(transparent)]
    Tools(#[from] CallFailure),
    /// The server did not give a prompt.
    #[error(transparent)]
    Prompt(Box<CallError>),
    /// The approval cannot be saved.
    #[error(transparent)]
    Memory(#[from] ToolMemoryError),
}

impl From<CallError> for ServerUseError {
    fn from(error: CallError) -> Self {
        Self::Prompt(Box::new(error))
    }
}

/// The reason why an MCP server did not do what was asked of it, in a sentence.
#[derive(thiserror::Error)]
#[error(transparent)]
pub struct McpError(#[from] ServerUseError);

gnoma_core::debug_as_display!(
    CallFailure,
    AddressFlaw,
    ConnectionError,
    UnavailableError,
    ToolRefusal,
    ServerUseError,
    McpError
);
