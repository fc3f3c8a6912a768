//! Requests to a session and its host, each with its purpose.

use gnoma_core::{
    CallId, Content,
    protocol::{Connection, Reply, Request, RequestError, Switch},
    session::{PermissionMode, Scope},
};

use crate::remedies::in_window;

/// A request and its purpose.
#[derive(Clone, Debug, PartialEq)]
pub struct ViewRequest {
    /// The request to be sent.
    pub request: Request,
    /// Comes back with its reply.
    pub purpose: Purpose,
}

/// The purpose of a request, which decides what happens with its reply.
#[derive(Clone, Debug, PartialEq)]
pub enum Purpose {
    /// A message of the person's is on its way.
    Send(Vec<Content>),
    /// The question about this call is answered.
    Answer(CallId),
    /// The turn is to stop.
    Stop,
    /// Another mode was chosen.
    Mode(PermissionMode),
    /// An order to do something; only a failure is reported.
    Order,
    /// Do something and report the result to people, followed by these words.
    Report(&'static str),
    /// Give the session a title, and report it.
    Rename,
    /// Look up a list or a text; of several, only the last still matters.
    LookUp(u64),
    /// The list of models that is open grows.
    GrowModels,
    /// Continue the session in another way, or replace it by another one.
    Switch {
        /// The conversation on the screen continues whatever the session is called.
        keeps_conversation: bool,
        /// Said once it is done, unless the host says something.
        note: &'static str,
        /// The copy that is offered where the session is open elsewhere.
        copy: Option<Switch>,
    },
    /// The past of the conversation is shown.
    Past,
    /// The last session before a new one, which could be continued instead.
    Earlier,
    /// Look up the place where a rule for the question about this call would be saved.
    RulePlace {
        /// The call that was asked about.
        call: CallId,
        /// The scope of the rule.
        scope: Scope,
    },
    /// Check that this text is a rule.
    CheckRule {
        /// The call that was asked about.
        call: CallId,
        /// The text of the rule.
        rule: String,
        /// The scope in which the rule shall be saved.
        scope: Scope,
    },
    /// A rule is kept, with which the question about this call is answered.
    KeepRule {
        /// The call that was asked about.
        call: CallId,
        /// The text of the rule.
        rule: String,
        /// The scope in which the rule shall be saved.
        scope: Scope,
    },
    /// A connection is tried.
    TryProvider(Connection),
    /// A connection is stored.
    AddProvider(Connection),
    /// Leave the session running without this window.
    Detach,
}

/// Describes why something was not done, and what to do about it.
pub(crate) fn describe_request_error(error: &RequestError) -> String {
    let text = match &error.remedy {
        Some(remedy) if remedy.starts_with(char::is_uppercase) => {
            format!("{}. {remedy}", error.cause)
        }
        Some(remedy) => format!("{}; {remedy}", error.cause),
        None => error.cause.clone(),
    };
    in_window(&text).into_owned()
}

/// Returns the text of a reply; empty for one that has none.
pub(crate) fn text_of(result: Result<Reply, RequestError>) -> Result<String, RequestError> {
    result.map(|reply| match reply {
        Reply::Text(text) => text,
        _ => String::new(),
    })
}
