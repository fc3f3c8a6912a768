//! Authorization at servers that require it: OAuth, as the protocol uses it. What a server and its authorization server
//! say of themselves is found, gnoma registers, a person agrees in a browser, and tokens are saved and renewed. `oauth2`
//! writes and reads the messages of the flow itself.

mod authorizer;
mod challenge;
mod discovery;
mod error;
mod flow;
mod oauth_http;
mod registration;
mod tokens;

pub use tokens::Tokens;

pub(super) use self::{
    authorizer::Authorizer, error::OauthError, flow::begin_login, registration::ConfiguredClient,
};
