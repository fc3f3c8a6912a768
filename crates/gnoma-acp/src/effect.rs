//! Effects of an ACP session: messages to send and requests to make.

use gnoma_core::{CallId, protocol::Request};
use serde_json::Value;

use crate::{error::RpcError, permission::ClientQuestion, wire::RpcId};

/// An effect that a session asks for; effects are performed in this order.
#[derive(Debug)]
pub(crate) enum SessionEffect {
    /// An update that the client is told.
    Update(Value),
    /// Answer a request of the client.
    Answer(RpcId, Result<Value, RpcError>),
    /// A question for the user.
    Ask(Box<ClientQuestion>),
    /// A question was answered elsewhere.
    Withdraw(CallId),
    /// Read messages that were missed.
    Catch(Request),
    /// Read a page of the past.
    Page(Request),
    /// Look whether the session has another title now.
    Title,
}

/// Updates in their order.
pub(crate) fn push_updates(updates: Vec<Value>, fx: &mut Vec<SessionEffect>) {
    fx.extend(updates.into_iter().map(SessionEffect::Update));
}
