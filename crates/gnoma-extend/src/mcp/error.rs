//! Errors of MCP servers, in words for people and models.

use std::{error::Error, fmt};

use gnoma_core::duration;
use gnoma_net::NetError;

use super::wire::rpc::RpcError;

/// Most words of a server that an error repeats, in bytes.
const MAX_SAID_BYTES: usize = 500;

/// The reason why a request has no result.
#[derive(Clone, Debug)]
pub(super) enum CallError {
    /// The server refused it.
    Refused(RpcError),
    /// The server has ended.
    Ended,
    /// The server answered something that cannot be read.
    Unreadable(String),
    /// The server wants to know who asks. What it said about that is here.
    Unauthorized(String),
    /// The login that is saved does not work any more, and why.
    Login(String),
    /// The server refused the request by a status of HTTP; its words are here.
    Status(u16, String),
    /// The server is busy for so long, in milliseconds, if it said so.
    Busy(u16, Option<u64>),
    /// The server has another address.
    Moved(String),
    /// No connection came about.
    Unreachable(NetError),
    /// The connection broke before the answer: what was asked may have been done.
    Broken(String),
    /// The session that the request belonged to has ended.
    SessionLost(String),
    /// The server did not answer in time.
    Late,
}

impl CallError {
    /// Returns whether the same request will fail in the same way.
    pub(super) fn is_final(&self) -> bool {
        match self {
            Self::Refused(_)
            | Self::Ended
            | Self::Unauthorized(_)
            | Self::Login(_)
            | Self::Status(..)
            | Self::Moved(_) => true,
            Self::Unreadable(_)
            | Self::Busy(..)
            | Self::Unreachable(_)
            | Self::Broken(_)
            | Self::SessionLost(_)
            | Self::Late => false,
        }
    }
}

/// The status of a server that wants fewer requests.
pub(super) const TOO_MANY_REQUESTS: u16 = 429;

impl Error for CallError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        // The text of this error is that of its cause.
        match self {
            Self::Unreachable(error) => error.source(),
            _ => None,
        }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = |text: &str| match gnoma_core::text_truncation::word_prefix(
            text.trim(),
            MAX_SAID_BYTES,
        ) {
            "" => String::new(),
            text => format!(": {text}"),
        };
        match self {
            Self::Refused(error) => write!(f, "the server refused{}", said(&error.to_line())),
            Self::Ended => f.write_str("the server has ended"),
            Self::Unreadable(why) => write!(f, "the server's answer cannot be read: {why}"),
            Self::Unauthorized(_) => f.write_str("the server requires a login"),
            Self::Login(why) => write!(f, "the login at the server does not work: {why}"),
            Self::Status(status, text) => {
                write!(f, "the server answered with HTTP {status}{}", said(text))
            }
            Self::Busy(status, Some(wait_ms)) => {
                let wait = duration::format_duration(std::time::Duration::from_millis(*wait_ms));
                write!(f, "the server is busy (HTTP {status}): it asks to wait {wait}; try later")
            }
            Self::Busy(status, None) => {
                write!(f, "the server is busy (HTTP {status}); try later")
            }
            Self::Moved(address) => write!(
                f,
                "the server redirects to another place, `{address}`; if you trust it, make that \
                 the server's `url`"
            ),
            Self::Unreachable(error) => error.fmt(f),
            Self::Broken(why) => write!(
                f,
                "the connection ended before the answer, so whether the call had an effect is \
                 unknown{}",
                said(why)
            ),
            Self::SessionLost(text) => write!(f, "the server has lost the session{}", said(text)),
            Self::Late => f.write_str("the server did not answer in time"),
        }
    }
}
