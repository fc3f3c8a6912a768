//! Errors of OAuth logins and token renewals.

use std::{io, time::Duration};

use gnoma_core::duration::format_duration;
use oauth2::{
    RequestTokenError,
    basic::{BasicErrorResponse, BasicRequestTokenError},
    url::ParseError,
};

use super::oauth_http::OauthHttpError;

/// The reason why there is no login.
#[derive(thiserror::Error)]
pub(crate) enum OauthError {
    /// The authorization server, or the server itself, cannot be asked.
    #[error(transparent)]
    Http(#[from] OauthHttpError),
    /// Tokens cannot be read or saved, or this machine lacks something else.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The address of the server is none.
    #[error("`{address}` is no address: {source}")]
    Address {
        /// The address as it is configured.
        address: String,
        /// The error in it.
        source: ParseError,
    },
    /// None of the authorization servers that the server names describes itself.
    #[error("no authorization server answers: {}", .0.join(", "))]
    NoServer(Vec<String>),
    /// The description at the server is about another one.
    #[error("its description is about another server, `{0}`, so no token is asked for")]
    OtherResource(String),
    /// A description is about another authorization server.
    #[error("the authorization server `{name}` says that it is `{issuer}`, so it is not used")]
    OtherServer {
        /// The name by which the authorization server was looked up.
        name: String,
        /// The name in its description.
        issuer: String,
    },
    /// The authorization server cannot protect the exchange of the code.
    #[error("its authorization server does not support PKCE with S256")]
    NoPkce,
    /// The authorization server has another flow than gnoma.
    #[error("its authorization server gives no authorization codes")]
    NoCodes,
    /// The authorization server registers no clients.
    #[error("its authorization server takes no clients that it does not know")]
    NoRegistration,
    /// The authorization server refused to register gnoma.
    #[error("gnoma could not register (HTTP {status}): {said}")]
    NotRegistered {
        /// The status of the answer.
        status: u16,
        /// The begin of the answer.
        said: String,
    },
    /// An address that the flow needs is none.
    #[error("the {purpose} address of its authorization server is not valid: {source}")]
    Endpoint {
        /// The purpose of the address, such as `token`.
        purpose: &'static str,
        /// The error in it.
        source: ParseError,
    },
    /// No browser came back in time.
    #[error("no browser returned within {}", format_duration(*.0))]
    NoBrowser(Duration),
    /// The address that the browser came back to is none.
    #[error(transparent)]
    Callback(#[from] ParseError),
    /// The answer that the browser brought is of another authorization server.
    #[error("the answer is of `{issuer}`, not of `{expected}`")]
    OtherIssuer {
        /// The name in the answer.
        issuer: String,
        /// The name of the server that was asked.
        expected: String,
    },
    /// The answer lacks the name of its server, although the server announced it.
    #[error("the answer does not say which server it is of")]
    NoIssuer,
    /// The answer has the name of a server, but the server that was asked has none.
    #[error("the answer says which server it is of, but that cannot be checked")]
    UncheckedIssuer,
    /// The answer is one to another login.
    #[error("the answer does not belong to this login")]
    OtherLogin,
    /// The person or the server refused.
    #[error("it was refused ({error}){}", about_clause(.about.as_deref()))]
    Refused {
        /// The error in the answer.
        error: String,
        /// The description of the error, if there is one.
        about: Option<String>,
    },
    /// The answer has no code to exchange for tokens.
    #[error("the answer has no code")]
    NoCode,
    /// The authorization server refused to give tokens.
    #[error("the authorization server refused: {0}")]
    TokenRefused(Box<BasicErrorResponse>),
    /// The answer to a request for tokens has none.
    #[error("the authorization server's answer has no token")]
    NoToken,
    /// A request for tokens failed in another way, which `oauth2` describes.
    #[error("{0}")]
    TokenRequest(String),
}

gnoma_core::debug_as_display!(OauthError);

/// Returns the description of an error, as what follows a sentence.
fn about_clause(about: Option<&str>) -> String {
    about.map(|about| format!(": {about}")).unwrap_or_default()
}

impl From<BasicRequestTokenError<OauthHttpError>> for OauthError {
    fn from(error: BasicRequestTokenError<OauthHttpError>) -> Self {
        match error {
            RequestTokenError::ServerResponse(response) => Self::TokenRefused(Box::new(response)),
            RequestTokenError::Request(error) => Self::Http(error),
            RequestTokenError::Parse(..) => Self::NoToken,
            RequestTokenError::Other(why) => Self::TokenRequest(why),
        }
    }
}
