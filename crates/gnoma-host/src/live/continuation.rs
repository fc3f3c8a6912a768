//! The offer to continue a turn that ended because every model is at its limit. Pure except for the channel that cancels
//! what waits.

use gnoma_core::{
    CallId, ErrorKind, Event,
    session::{Outcome, PermissionAnswer, SessionState},
};
use tokio::sync::oneshot;

use super::own_question::OwnQuestion;

/// The question, and its choices.
const QUESTION: &str = "Every model is at its limit. Continue this turn when one can be called again? It also continues after \
                        you close the window if `gnoma serve` runs.";
const CONTINUE: &str = "continue then";
const LEAVE: &str = "leave it";

/// The continuation of a session's last turn, as its loop knows it.
#[derive(Default)]
pub(super) struct TurnContinuation {
    /// The last turn ended at a limit, and the person is asked once the session rests.
    is_due: bool,
    question: OwnQuestion,
    /// The number of questions so far.
    questions: u32,
    /// Cancels the continuation that waits when it is dropped.
    pub(super) waiting: Option<oneshot::Sender<()>>,
}

impl TurnContinuation {
    /// Returns whether a call is the open question.
    pub(super) fn is_question(&self, call: &CallId) -> bool {
        self.question.has_id(call)
    }

    /// Takes in what happens in a session; `is_attended`: a person can be asked. Returns what is shown behind it.
    pub(super) fn observe_event(&mut self, event: &Event, is_attended: bool) -> Option<Event> {
        match event {
            Event::TurnEnded { outcome, .. } => {
                self.is_due = is_attended && is_at_limit(outcome);
                None
            }
            Event::State(SessionState::Idle) if std::mem::take(&mut self.is_due) => {
                self.questions += 1;
                let id = format!("gnoma-continue-{}", self.questions);
                let choices = [CONTINUE, LEAVE].map(str::to_owned).into();
                Some(self.question.open(id, QUESTION.to_owned(), choices))
            }
            Event::State(SessionState::Active) => {
                // The person goes on by themselves.
                self.waiting = None;
                self.question.close(None, "another turn has begun").pop()
            }
            _ => None,
        }
    }

    /// Takes the answer to the open question. Returns whether the turn is to continue, and the events that close it.
    pub(super) fn answer_question(&mut self, answer: &PermissionAnswer) -> (bool, Vec<Event>) {
        let continues = self.question.is_open()
            && matches!(answer, PermissionAnswer::Text { text } if text == CONTINUE);
        let events = match continues {
            true => self.question.close(Some(CONTINUE), "answered by the user"),
            false => self.question.close(None, "not continued by the user"),
        };
        (continues, events)
    }
}

/// Returns whether a turn ended because no model could be called before its limit resets.
fn is_at_limit(outcome: &Outcome) -> bool {
    let Outcome::Failed { error, .. } = outcome else { return false };
    // A limit of gnoma's own that names no time never resets for this call.
    let resets = error.retry_after.is_some() || error.provider != gnoma_engine::routing::OWN;
    resets && matches!(error.kind, ErrorKind::RateLimited | ErrorKind::Quota)
}

#[cfg(test)]
mod tests {
    use gnoma_core::{ProviderError, Usage};

    use super::*;

    fn ended(kind: ErrorKind) -> Event {
        let error = ProviderError::new(kind, "p", "slow down");
        let outcome = Outcome::Failed { error, kept_partial: false };
        let (usage, undelivered, answer) = (Usage::default(), Vec::new(), None);
        Event::TurnEnded { outcome, rounds: 1, usage, undelivered, answer }
    }

    #[test]
    fn continuing_a_turn_that_hit_a_limit_is_offered_once() {
        let mut continuation = TurnContinuation::default();
        let idle = Event::State(SessionState::Idle);
        for (kind, is_attended) in [(ErrorKind::Network, true), (ErrorKind::RateLimited, false)] {
            assert_eq!(continuation.observe_event(&ended(kind), is_attended), None);
            assert_eq!(continuation.observe_event(&idle, is_attended), None);
        }
        continuation.observe_event(&ended(ErrorKind::RateLimited), true);
        let asked = continuation.observe_event(&idle, true);
        assert!(matches!(asked, Some(Event::PermissionAsked { .. })), "{asked:?}");
        let (continues, events) =
            continuation.answer_question(&PermissionAnswer::Text { text: CONTINUE.to_owned() });
        assert!(continues && events.len() == 2);
        assert_eq!(continuation.observe_event(&idle, true), None);
    }

    #[test]
    fn next_turn_closes_the_continue_question_and_cancels_its_wait() {
        let mut continuation = TurnContinuation::default();
        continuation.observe_event(&ended(ErrorKind::Quota), true);
        continuation.observe_event(&Event::State(SessionState::Idle), true);
        let (cancel, mut cancelled) = oneshot::channel();
        continuation.waiting = Some(cancel);
        let closed = continuation.observe_event(&Event::State(SessionState::Active), true);
        assert!(matches!(closed, Some(Event::PermissionDecided { allowed: false, .. })));
        assert!(cancelled.try_recv().is_err());
        let deny = PermissionAnswer::Deny { reason: String::new() };
        assert_eq!(continuation.answer_question(&deny), (false, Vec::new()));
    }
}
