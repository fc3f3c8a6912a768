//! The result of a child session, in the words of the tool that waits for it.

use gnoma_core::{
    Role,
    protocol::{RequestError, RequestErrorKind},
    session::Outcome,
    tool::{ChildEnd, SpawnError},
};

use super::handle::SessionHandle;

/// Messages at the end of a conversation among which the last answer is.
const MAX_LOOKED_AT: usize = 8;

pub(super) fn to_child_end(outcome: Outcome) -> ChildEnd {
    match outcome {
        Outcome::Complete { .. } => ChildEnd::Completed,
        Outcome::Cancelled => ChildEnd::Cancelled,
        Outcome::RoundLimit { rounds } => {
            ChildEnd::Failed(format!("not finished after {rounds} model calls"))
        }
        Outcome::Stuck { what } => ChildEnd::Failed(format!("no progress: {what}")),
        Outcome::Unfit { why, .. } => ChildEnd::Failed(format!("its answer does not fit: {why}")),
        Outcome::Failed { error, .. } => ChildEnd::Failed(error.to_string()),
    }
}

/// Returns the text of the last answer in a session, or nothing if there is none.
pub(super) fn last_answer(live: &SessionHandle) -> String {
    let (_, messages) = live.log().messages(None, MAX_LOOKED_AT);
    let answers = messages.iter().rev().filter(|message| message.role() == Role::Assistant);
    answers.map(|message| message.text_content()).next().unwrap_or_default()
}

pub(super) fn to_spawn_error(error: RequestError) -> SpawnError {
    match error.kind {
        RequestErrorKind::Busy => SpawnError::TooMany(error.cause),
        _ => SpawnError::Failed(error.cause),
    }
}
