//! Prompts that wait for their answers, and to which turn each belongs. A fold over the events.
//!
//! A prompt begins a turn, or joins the one that runs: then both are answered at its end. It is answered
//! when the session is idle again, so that everything that came of it was told before.

use std::collections::VecDeque;

use gnoma_core::{
    Content, Event, StopReason,
    json_value::json,
    session::{Outcome, SessionState},
};
use serde_json::Value;

use crate::{error::RpcError, wire::RpcId};

/// An answer to a prompt.
pub(crate) type PromptReply = (RpcId, Result<Value, RpcError>);

#[derive(Debug, Default)]
pub(crate) struct Turns {
    prompts: VecDeque<Prompt>,
    outcome: Option<Outcome>,
}

#[derive(Debug)]
struct Prompt {
    id: RpcId,
    /// The content of the prompt; empty if the prompt compacts the conversation.
    content: Vec<Content>,
    state: PromptState,
    /// The session has taken it.
    is_accepted: bool,
    is_cancelled: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PromptState {
    /// The prompt is on its way.
    Sent,
    /// Waits for a boundary of the turn that runs.
    Queued,
    /// The turn is about it.
    Begun,
    /// The turn ended before it was read.
    Undelivered,
}

impl Turns {
    /// A prompt is sent; empty content compacts the conversation.
    pub(crate) fn add_prompt(&mut self, id: RpcId, content: Vec<Content>) {
        let (state, is_accepted, is_cancelled) = (PromptState::Sent, false, false);
        self.prompts.push_back(Prompt { id, content, state, is_accepted, is_cancelled });
    }

    /// The session has taken a prompt.
    pub(crate) fn mark_accepted(&mut self, id: &RpcId) {
        if let Some(prompt) = self.prompts.iter_mut().find(|prompt| prompt.id == *id) {
            prompt.is_accepted = true;
        }
    }

    /// The session does not take a prompt. Whether it was cancelled meanwhile.
    pub(crate) fn remove_refused(&mut self, id: &RpcId) -> bool {
        let at = self.prompts.iter().position(|prompt| prompt.id == *id);
        at.and_then(|at| self.prompts.remove(at)).is_some_and(|prompt| prompt.is_cancelled)
    }

    /// The client cancels everything that it has asked for. Whether there is anything.
    pub(crate) fn cancel(&mut self) -> bool {
        self.prompts.iter_mut().for_each(|prompt| prompt.is_cancelled = true);
        !self.prompts.is_empty()
    }

    /// Reports whether this prompt waits for its answer.
    pub(crate) fn has_prompt(&self, id: &RpcId) -> bool {
        self.prompts.iter().any(|prompt| prompt.id == *id)
    }

    /// Reports whether the client waits for an answer.
    pub(crate) fn is_waited_for(&self) -> bool {
        !self.prompts.is_empty()
    }

    /// Events were missed: what was taken has begun.
    pub(crate) fn mark_accepted_begun(&mut self) {
        for prompt in self.prompts.iter_mut().filter(|prompt| prompt.is_accepted) {
            prompt.state = PromptState::Begun;
        }
    }

    /// Takes in what has happened; gives the answers that are due.
    pub(crate) fn on_event(&mut self, event: &Event, is_idle: bool) -> Vec<PromptReply> {
        match event {
            Event::State(SessionState::Active) => {
                self.outcome = None;
                let sent = |prompt: &&mut Prompt| prompt.state == PromptState::Sent;
                if let Some(prompt) = self.prompts.iter_mut().find(sent) {
                    prompt.state = PromptState::Begun;
                }
            }
            Event::Queued { queue } => self.update_queue(queue),
            Event::TurnEnded { outcome, undelivered, .. } => {
                self.outcome = Some(outcome.clone());
                for prompt in &mut self.prompts {
                    let is_it = undelivered.iter().any(|it| it.content() == prompt.content);
                    if is_it && prompt.state != PromptState::Begun {
                        prompt.state = PromptState::Undelivered;
                    }
                }
            }
            Event::State(SessionState::Idle) => return self.on_turn_ended(),
            Event::State(SessionState::Closed) => return self.on_session_closed(),
            // There was nothing to compact: no turn begins.
            Event::Notice { .. } if is_idle => return self.not_compacted(),
            _ => (),
        }
        Vec::new()
    }

    fn update_queue(&mut self, queue: &[Vec<Content>]) {
        for prompt in &mut self.prompts {
            let waits = queue.contains(&prompt.content);
            prompt.state = match prompt.state {
                _ if waits => PromptState::Queued,
                PromptState::Queued => PromptState::Begun,
                state => state,
            };
        }
    }

    fn on_turn_ended(&mut self) -> Vec<PromptReply> {
        let outcome = self.outcome.take();
        let mut answers = Vec::new();
        self.prompts.retain(|prompt| {
            let is_cancelled = prompt.is_cancelled || outcome == Some(Outcome::Cancelled);
            let answer = match prompt.state {
                PromptState::Sent | PromptState::Queued => return true,
                PromptState::Begun | PromptState::Undelivered if is_cancelled => {
                    Ok(stop_reason_json("cancelled"))
                }
                PromptState::Begun => prompt_answer(outcome.as_ref()),
                PromptState::Undelivered => Err(RpcError::new(
                    RpcError::INTERNAL,
                    "the turn ended before this message was read; send it again",
                )),
            };
            answers.push((prompt.id.clone(), answer));
            false
        });
        answers
    }

    fn on_session_closed(&mut self) -> Vec<PromptReply> {
        let answer = |prompt: Prompt| {
            let gone = || RpcError::new(RpcError::NOT_FOUND, "the session has ended");
            let result =
                if prompt.is_cancelled { Ok(stop_reason_json("cancelled")) } else { Err(gone()) };
            (prompt.id, result)
        };
        self.prompts.drain(..).map(answer).collect()
    }

    fn not_compacted(&mut self) -> Vec<PromptReply> {
        let waits = |prompt: &Prompt| {
            prompt.content.is_empty() && prompt.is_accepted && prompt.state == PromptState::Sent
        };
        let at = self.prompts.iter().position(waits);
        let prompt = at.and_then(|at| self.prompts.remove(at));
        prompt.map(|prompt| (prompt.id, Ok(stop_reason_json("end_turn")))).into_iter().collect()
    }
}

fn stop_reason_json(reason: &str) -> Value {
    json!({ "stopReason": reason })
}

/// Returns the way in which a turn ended, as the answer to its prompt.
fn prompt_answer(outcome: Option<&Outcome>) -> Result<Value, RpcError> {
    Ok(stop_reason_json(match outcome {
        Some(Outcome::Complete { stop: StopReason::MaxTokens }) => "max_tokens",
        Some(Outcome::Complete { stop: StopReason::Refusal | StopReason::ContentFilter }) => {
            "refusal"
        }
        // No editor asks for an answer in a certain form.
        None | Some(Outcome::Complete { .. } | Outcome::Stuck { .. } | Outcome::Unfit { .. }) => {
            "end_turn"
        }
        Some(Outcome::Cancelled) => "cancelled",
        Some(Outcome::RoundLimit { .. }) => "max_turn_requests",
        Some(Outcome::Failed { error, .. }) => return Err(RpcError::from_provider_error(error)),
    }))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gnoma_core::{ErrorKind, Message, ProviderError, Usage, session::NoticeLevel};

    use super::*;

    fn id(number: u8) -> RpcId {
        RpcId::from_json(&number.to_string()).unwrap()
    }

    fn said(text: &str) -> Vec<Content> {
        vec![Content::from_text(text)]
    }

    fn ended(outcome: Outcome, undelivered: &[&str]) -> Event {
        let message = |text: &&str| Arc::new(Message::user_text(*text));
        let undelivered = undelivered.iter().map(message).collect();
        Event::TurnEnded { outcome, rounds: 1, usage: Usage::default(), undelivered, answer: None }
    }

    fn complete() -> Outcome {
        Outcome::Complete { stop: StopReason::EndTurn }
    }

    fn reasons(answers: &[PromptReply]) -> Vec<String> {
        let reason = |(_, result): &PromptReply| match result {
            Ok(value) => value["stopReason"].as_str().unwrap().to_owned(),
            Err(error) => error.code.to_string(),
        };
        answers.iter().map(reason).collect()
    }

    fn run(turns: &mut Turns, events: &[Event]) -> Vec<String> {
        let answers: Vec<_> =
            events.iter().flat_map(|event| turns.on_event(event, false)).collect();
        reasons(&answers)
    }

    const ACTIVE: Event = Event::State(SessionState::Active);
    const IDLE: Event = Event::State(SessionState::Idle);

    #[test]
    fn a_prompt_is_answered_when_its_turn_is_over_and_never_by_the_one_before() {
        let mut turns = Turns::default();
        turns.add_prompt(id(1), said("a"));
        assert!(run(&mut turns, &[ACTIVE, ended(complete(), &[])]).is_empty());
        turns.add_prompt(id(2), said("b"));
        assert_eq!(run(&mut turns, &[IDLE]), ["end_turn"]);
        assert!(turns.is_waited_for(), "the second is on its way");
        assert_eq!(run(&mut turns, &[ACTIVE, ended(complete(), &[]), IDLE]), ["end_turn"]);
    }

    #[test]
    fn prompt_joining_a_turn_is_answered_with_it_and_an_unread_one_fails() {
        let mut turns = Turns::default();
        let queued =
            |texts: &[&str]| Event::Queued { queue: texts.iter().map(|it| said(it)).collect() };
        turns.add_prompt(id(1), said("a"));
        run(&mut turns, &[ACTIVE]);
        turns.add_prompt(id(2), said("b"));
        run(&mut turns, &[queued(&["b"]), queued(&[])]);
        turns.add_prompt(id(3), said("c"));
        let limit = Outcome::RoundLimit { rounds: 9 };
        let told = run(&mut turns, &[queued(&["c"]), ended(limit, &["c"]), IDLE]);
        assert_eq!(told, ["max_turn_requests", "max_turn_requests", "-32603"]);
    }

    #[test]
    fn cancelled_turn_is_reported_as_cancelled_however_it_ends() {
        let error = ProviderError {
            kind: ErrorKind::Auth,
            provider: "p".into(),
            message: "no".into(),
            status: None,
            code: None,
            retry_after: None,
            hint: None,
        };
        let failed = Outcome::Failed { error, kept_partial: false };
        let mut turns = Turns::default();
        assert!(!turns.cancel());
        for is_cancelled in [true, false] {
            turns.add_prompt(id(1), said("a"));
            run(&mut turns, &[ACTIVE]);
            assert!(!is_cancelled || turns.cancel());
            let told = run(&mut turns, &[ended(failed.clone(), &[]), IDLE]);
            assert_eq!(told, [if is_cancelled { "cancelled" } else { "-32000" }]);
        }
        turns.add_prompt(id(2), said("b"));
        assert_eq!(run(&mut turns, &[Event::State(SessionState::Closed)]), ["-32002"]);
    }

    #[test]
    fn compaction_with_nothing_to_compact_ends_the_turn() {
        let mut turns = Turns::default();
        turns.add_prompt(id(1), Vec::new());
        turns.mark_accepted(&id(1));
        let notice = Event::Notice { level: NoticeLevel::Info, text: "nothing to compact".into() };
        assert!(turns.on_event(&notice, false).is_empty());
        assert_eq!(reasons(&turns.on_event(&notice, true)), ["end_turn"]);
    }
}
