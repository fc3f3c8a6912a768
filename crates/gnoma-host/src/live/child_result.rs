//! The result of a child session, in the words of the tool that waits for it.

use gnoma_core::{
    Role, StopReason,
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

pub(super) fn stop_reason(outcome: &Outcome) -> Option<StopReason> {
    match outcome {
        Outcome::Complete { stop } => Some(*stop),
        _ => None,
    }
}

/// Returns how a task's step ended whose elf ended so: an answer that says nothing does no step.
pub(super) fn step_end(
    end: &ChildEnd,
    stop: Option<StopReason>,
    text: &str,
    rounds: u32,
) -> ChildEnd {
    match (end, stop) {
        (ChildEnd::Completed, Some(StopReason::Refusal | StopReason::ContentFilter)) => {
            ChildEnd::Failed("the model refused".to_owned())
        }
        // After further model calls, there are results of tools.
        (ChildEnd::Completed, _) if rounds <= 1 && text.trim().is_empty() => {
            ChildEnd::Failed("the model gave an empty answer".to_owned())
        }
        _ => end.clone(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn step_fails_if_its_elf_gave_an_empty_answer() {
        use StopReason::{ContentFilter, EndTurn, Refusal};
        let failed = |why: &str| ChildEnd::Failed(why.to_owned());
        for (stop, text, rounds, expected) in [
            (EndTurn, "found", 1, ChildEnd::Completed),
            (EndTurn, "", 2, ChildEnd::Completed),
            (EndTurn, " ", 1, failed("the model gave an empty answer")),
            (Refusal, "No.", 1, failed("the model refused")),
            (ContentFilter, "No.", 3, failed("the model refused")),
        ] {
            let end = step_end(&ChildEnd::Completed, Some(stop), text, rounds);
            assert_eq!(end, expected, "{stop:?} {text}");
        }
        assert_eq!(step_end(&ChildEnd::Cancelled, None, "", 0), ChildEnd::Cancelled);
    }
}
