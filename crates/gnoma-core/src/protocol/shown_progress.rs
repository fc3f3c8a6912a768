//! How much of a session has been shown, and what of a later state of it has not.

use std::{collections::VecDeque, ops::Range, sync::Arc};

use super::{Envelope, Position, RunningTurn, SessionView};
use crate::{
    message::{CallId, Message, Role},
    session::{Event, SessionState},
};

/// The progress of showing a session to a front end. Pure: events and views in, events to show out.
#[derive(Debug, Default)]
pub(super) struct ShownProgress {
    position: Position,
    has_started: bool,
    has_ended: bool,
    /// Messages of the conversation.
    messages: u64,
    /// Number of the last model call.
    round: u32,
    /// A model was called and its message has not come yet.
    is_answering: bool,
    /// Bytes that were shown of the answer under way.
    text_bytes: u64,
    /// True if the text after these bytes was missed: it comes with the whole message.
    has_gap: bool,
    /// Questions that are open.
    asked: Vec<CallId>,
}

impl ShownProgress {
    /// True if the session has begun, or has ended already.
    pub(super) fn has_begun(&self) -> bool {
        self.has_started || self.has_ended
    }

    /// Takes the next event from the session, and shows it if it is new.
    pub(super) fn apply_envelope(&mut self, envelope: &Envelope, shown: &mut VecDeque<Event>) {
        let Envelope { epoch, seq, event, .. } = envelope;
        if *epoch == self.position.epoch && *seq > self.position.seq {
            self.position.seq = *seq;
            let ends_gap = begins_answer(event);
            self.show_event(event.clone(), shown);
            self.has_gap &= !ends_gap;
        }
    }

    /// Numbers of the messages that `view` has and nobody has seen.
    pub(super) fn missed_messages(&self, view: &SessionView) -> Range<u64> {
        let from = if self.has_started { self.messages } else { view.messages };
        from..view.messages.max(from)
    }

    /// Shows what has happened up to `view`, with the messages that were missed.
    pub(super) fn catch_up(
        &mut self,
        view: &SessionView,
        messages: Vec<Arc<Message>>,
        shown: &mut VecDeque<Event>,
    ) {
        self.show_start(view, shown);
        let new = view.recent.iter().filter(|recent| recent.seq > self.position.seq);
        let mut events: VecDeque<Event> = new.map(|recent| recent.event.clone()).collect();
        self.position = view.position();
        self.has_gap = true;
        for message in messages {
            self.show_before(&message, &mut events, shown);
            self.show_event(Event::Appended(message), shown);
        }
        for event in events {
            // Those messages were shown before.
            if !matches!(event, Event::Appended(_)) {
                self.show_event(event, shown);
            }
        }
        self.messages = view.messages;
        match &view.turn {
            Some(turn) => self.show_turn(turn, view, shown),
            None => self.has_gap = false,
        }
        match view.state {
            SessionState::Idle if !self.has_ended => (),
            SessionState::Idle | SessionState::Cancelling | SessionState::Closed => {
                self.show_event(Event::State(view.state), shown);
            }
            SessionState::Active => (),
        }
        self.show_questions(view, shown);
    }

    /// Shows the events of the session's very beginning.
    fn show_start(&mut self, view: &SessionView, shown: &mut VecDeque<Event>) {
        if self.has_started {
            return;
        }
        shown.push_back(Event::Info(Box::new(view.info.clone())));
        if !view.folder.is_empty() {
            let started = Event::Started {
                session: view.session.to_string(),
                cwd: view.folder.clone(),
                tools: view.tools.clone(),
                mode: view.mode,
                messages: view.messages,
            };
            self.show_event(started, shown);
        }
    }

    /// Shows those of `events` that came before a message, as far as that can be known: a large message
    /// is not among the last events.
    fn show_before(
        &mut self,
        message: &Message,
        events: &mut VecDeque<Event>,
        shown: &mut VecDeque<Event>,
    ) {
        let is_it = |event: &Event| matches!(event, Event::Appended(it) if **it == *message);
        let before = match events.iter().position(is_it) {
            Some(place) => place + 1,
            None if message.role() == Role::Assistant => self.begun_by(events),
            None => 0,
        };
        for event in events.drain(..before) {
            if !matches!(event, Event::Appended(_)) {
                self.show_event(event, shown);
            }
        }
    }

    /// Returns the number of `events` that lead to the beginning of the next answer.
    fn begun_by(&self, events: &VecDeque<Event>) -> usize {
        let is_round = |event: &Event| matches!(event, Event::RoundStarted { .. });
        let end = |from: usize| {
            let ends = |event: &Event| is_round(event) || matches!(event, Event::Appended(_));
            let after = events.iter().skip(from).position(ends);
            after.map_or(events.len(), |place| from + place)
        };
        let round = end(0);
        let from = match events.get(round) {
            Some(event) if is_round(event) && !self.is_answering => round + 1,
            _ => 0,
        };
        let mut answer = events.iter().take(end(from)).skip(from);
        answer.rposition(begins_answer).map_or(from, |place| from + place + 1)
    }

    /// The turn that runs, but for what was shown of it.
    fn show_turn(&mut self, turn: &RunningTurn, view: &SessionView, shown: &mut VecDeque<Event>) {
        if let Some(arm) = view.arm.clone().filter(|_| turn.round != self.round) {
            let (round, why) = (turn.round, turn.why.clone());
            self.show_event(Event::RoundStarted { round, arm, why }, shown);
        }
        if turn.text.total_bytes() <= self.text_bytes {
            self.has_gap = false;
        } else if let Some(rest) = turn.text.text_after(self.text_bytes) {
            self.has_gap = false;
            self.show_event(Event::Text { text: rest.to_owned() }, shown);
        }
        for draft in &turn.drafts {
            let (call, name) = (draft.id.clone(), draft.name.clone());
            self.show_event(Event::ToolCallDrafted { call, name }, shown);
        }
        for running in &turn.calls {
            self.show_event(Event::ToolStarted { call: running.call.clone() }, shown);
        }
    }

    /// The questions that are open, but for those that were shown: also between turns.
    fn show_questions(&mut self, view: &SessionView, shown: &mut VecDeque<Event>) {
        for question in view.questions() {
            if !self.asked.contains(&question.call.id) {
                self.show_event(question.to_event(), shown);
            }
        }
    }

    /// Shows an event, and counts what it shows.
    fn show_event(&mut self, event: Event, shown: &mut VecDeque<Event>) {
        match &event {
            Event::Started { messages, .. } => {
                (self.has_started, self.messages) = (true, *messages);
            }
            Event::Text { .. } | Event::ToolCallDrafted { .. } if self.has_gap => return,
            Event::Text { text } => self.text_bytes += text.len() as u64,
            Event::Appended(message) => {
                self.messages += 1;
                if message.role() == Role::Assistant {
                    if let Some(text) = self.unseen_text(message) {
                        shown.push_back(Event::Text { text });
                    }
                    (self.is_answering, self.text_bytes) = (false, 0);
                }
            }
            Event::RoundStarted { round, .. } => {
                (self.round, self.is_answering, self.text_bytes) = (*round, true, 0);
            }
            Event::ArmChanged { .. } | Event::Retrying { .. } => self.text_bytes = 0,
            Event::PermissionAsked { call, .. } => self.asked.push(call.id.clone()),
            Event::PermissionDecided { call, .. } => self.asked.retain(|asked| asked != call),
            Event::TurnEnded { .. } | Event::State(SessionState::Closed) => self.has_ended = true,
            _ => (),
        }
        shown.push_back(event);
    }

    /// Returns the part of an answer that was not shown, once its message is whole.
    fn unseen_text(&self, message: &Message) -> Option<String> {
        if !self.has_gap {
            return None;
        }
        let text = message.text_content();
        let from = text.ceil_char_boundary(usize::try_from(self.text_bytes).ok()?);
        text.get(from..).filter(|rest| !rest.is_empty()).map(str::to_owned)
    }
}

/// True if the event begins an answer anew. The arrival of an answer's message counts as well.
fn begins_answer(event: &Event) -> bool {
    match event {
        Event::RoundStarted { .. } | Event::ArmChanged { .. } | Event::Retrying { .. } => true,
        Event::Appended(message) => message.role() == Role::Assistant,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        Content, ModelRef, RawJson, StopReason, ToolCall, ToolResult, Usage,
        protocol::Epoch,
        session::{Outcome, PermissionMode},
        store::SessionId,
    };
    use proptest::prelude::*;

    use super::*;

    const WALKS: u32 = 256;

    fn call(number: usize) -> ToolCall {
        ToolCall::new(CallId::new(format!("c{number}")), "bash", RawJson::empty_object())
    }

    /// A turn in which every answer has these pieces, and all but the last end in a call.
    fn turn(answers: &[Vec<String>]) -> Vec<Event> {
        let model = ModelRef { provider: "p".into(), model: "m".into() };
        let mut events = vec![
            Event::State(SessionState::Active),
            Event::Appended(Arc::new(Message::user_text("go"))),
        ];
        for (number, pieces) in answers.iter().enumerate() {
            let round = u32::try_from(number + 1).unwrap();
            events.push(Event::RoundStarted { round, arm: model.clone(), why: String::new() });
            events.extend(pieces.iter().map(|text| Event::Text { text: text.clone() }));
            let call = call(number);
            let mut content = vec![Content::from_text(pieces.concat())];
            let is_last = number + 1 == answers.len();
            let stop = if is_last { StopReason::EndTurn } else { StopReason::ToolUse };
            if !is_last {
                let id = call.id.clone();
                events.push(Event::ToolCallDrafted { call: id, name: "bash".into() });
                content.push(Content::ToolCall(call.clone()));
            }
            let answer = Message::assistant(content, Some(model.clone()), Some(stop)).unwrap();
            events.push(Event::Appended(Arc::new(answer)));
            if !is_last {
                events.push(Event::ToolStarted { call: call.clone() });
                let result = ToolResult::from_text(&call, "done", false);
                let (results, diff) = (vec![result.clone()], None);
                events.push(Event::ToolEnded { call, result, diff, duration_ms: 1, command: None });
                events.push(Event::Appended(Arc::new(Message::results(results).unwrap())));
            }
        }
        let outcome = Outcome::Complete { stop: StopReason::EndTurn };
        let (rounds, usage, undelivered) = (1, Usage::default(), Vec::new());
        events.push(Event::TurnEnded { outcome, rounds, usage, undelivered, answer: None });
        events.push(Event::State(SessionState::Idle));
        events
    }

    fn log(events: Vec<Event>) -> Vec<Envelope> {
        let (session, tools) = ("s".to_owned(), Vec::new());
        let (cwd, mode) = ("/".to_owned(), PermissionMode::Auto);
        let started = Event::Started { session, cwd, tools, mode, messages: 0 };
        let envelope = |(seq, event)| Envelope {
            session: SessionId::new("s"),
            epoch: Epoch(7),
            parent: None,
            seq,
            at_ms: 0,
            event,
        };
        (1..).zip(std::iter::once(started).chain(events)).map(envelope).collect()
    }

    /// What goes to standard output, the messages, and how often the turn has ended.
    #[derive(Debug, Default, PartialEq)]
    struct Shown {
        text: String,
        messages: Vec<Arc<Message>>,
        ends: usize,
    }

    impl Shown {
        fn of(events: impl IntoIterator<Item = Event>) -> Self {
            let mut shown = Self::default();
            for event in events {
                shown.take(event);
            }
            shown
        }

        fn take(&mut self, event: Event) {
            match event {
                Event::Text { text } => return self.text.push_str(&text),
                Event::Appended(message) => {
                    let ends_line = message.role() == Role::Assistant;
                    self.messages.push(message);
                    if !ends_line {
                        return;
                    }
                }
                Event::State(SessionState::Idle) => self.ends += 1,
                Event::RoundStarted { .. }
                | Event::ToolCallDrafted { .. }
                | Event::ToolEnded { .. }
                | Event::TurnEnded { .. } => (),
                _ => return,
            }
            if !self.text.is_empty() && !self.text.ends_with('\n') {
                self.text.push('\n');
            }
        }
    }

    /// Reads some events and misses some, again and again, and the rest.
    fn lagging(log: &[Envelope], steps: &[(usize, usize)]) -> Shown {
        let mut view = SessionView::new(SessionId::new("s"), Epoch(7), None);
        let (mut seen, mut shown) = (ShownProgress::default(), VecDeque::new());
        let all: Vec<_> = log.iter().filter_map(message).collect();
        view.apply_envelope(&log[0]);
        seen.catch_up(&view, Vec::new(), &mut shown);
        let mut rest = log[1..].iter();
        for (read, miss) in steps.iter().copied().chain([(usize::MAX, 0)]) {
            for envelope in rest.by_ref().take(read) {
                view.apply_envelope(envelope);
                seen.apply_envelope(envelope, &mut shown);
            }
            rest.by_ref().take(miss).for_each(|envelope| view.apply_envelope(envelope));
            let missed = seen.missed_messages(&view);
            let missed =
                usize::try_from(missed.start).unwrap()..usize::try_from(missed.end).unwrap();
            seen.catch_up(&view, all[missed].to_vec(), &mut shown);
        }
        Shown::of(shown)
    }

    fn message(envelope: &Envelope) -> Option<Arc<Message>> {
        match &envelope.event {
            Event::Appended(message) => Some(Arc::clone(message)),
            _ => None,
        }
    }

    fn piece() -> impl Strategy<Value = String> {
        prop_oneof![
            20 => "[a-zäö\n]{1,8}",
            2 => "[a-zä]{1,3}".prop_map(|unit| unit.repeat(30_000)),
            1 => "[a-zä]{1,3}".prop_map(|unit| unit.repeat(300_000)),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: WALKS, ..ProptestConfig::default() })]

        /// Whatever is missed, the output is the one of a reader that misses nothing.
        #[test]
        fn lagging_subscriber_shows_missed_output_exactly_once(
            answers in prop::collection::vec(prop::collection::vec(piece(), 1..6), 1..5),
            steps in prop::collection::vec((0_usize..12, 0_usize..12), 1..6),
        ) {
            let log = log(turn(&answers));
            let whole = Shown::of(log.iter().map(|envelope| envelope.event.clone()));
            let shown = lagging(&log, &steps);
            prop_assert!(shown.text == whole.text, "the text differs");
            prop_assert!(shown.messages == whole.messages, "the messages differ");
            prop_assert!(shown.ends >= 1);
        }
    }
}
