//! Rebuilds the conversation of a stored session when it is resumed.
//!
//! Pure, and content with anything: a session that was cut off anywhere, a page that begins in the
//! middle, entries that a damaged file has lost. What comes out can be sent.

use std::{collections::HashMap, sync::Arc};

use gnoma_core::{
    CallId, Event, Message, Role, StopReason, ToolCall, ToolResult, Usage,
    protocol::HistoryNote,
    session::Outcome,
    store::{Entry, EntryId, Record},
};

use crate::prompt;

/// The messages of a path, oldest first, as they can be sent.
///
/// The last summary replaces everything up to the entry that it names; an empty one replaces nothing. Calls without
/// a result get one that says they were interrupted. Results without a call are left out, and so is everything
/// before the first message of a person. The store handles tombstones and rewinding: a loaded path contains neither
/// hidden nor abandoned entries.
#[must_use]
pub fn rebuild_history(entries: &[Entry]) -> Vec<Arc<Message>> {
    replay_entries(entries, |_, _| ()).finish()
}

/// Returns what is stored of a path beside its messages, in their order: who answered, what it cost, what was denied, and
/// when each turn was over.
#[must_use]
pub fn rebuild_notes(entries: &[Entry]) -> Vec<HistoryNote> {
    let mut notes = StoredNotes::default();
    let history = replay_entries(entries, |messages, entry| notes.take_entry(messages, entry));
    notes.end_turn(history.messages.len());
    notes.all
}

/// The notes of a path so far, and of its last turn.
#[derive(Default)]
struct StoredNotes {
    all: Vec<HistoryNote>,
    rounds: u32,
    usage: Usage,
    micro_usd: u64,
    session_micro_usd: u64,
    /// When the last answer came, and why it ended, if it calls nothing.
    answered: Option<(i64, StopReason)>,
}

impl StoredNotes {
    /// Takes in an entry that comes after so many messages.
    fn take_entry(&mut self, messages: usize, entry: &Entry) {
        let at_ms = entry.at_ms;
        match &entry.record {
            Record::Message(message) if message.role() == Role::User => self.end_turn(messages),
            Record::Message(message) if message.role() == Role::Assistant => {
                let stop = message.stop_reason().unwrap_or(StopReason::EndTurn);
                self.answered = message.tool_calls().next().is_none().then_some((at_ms, stop));
            }
            Record::Routed { arm, why } => {
                self.rounds += 1;
                let (round, arm, why) = (self.rounds, arm.clone(), why.clone());
                self.push_note(messages, at_ms, Event::RoundStarted { round, arm, why });
            }
            Record::Used(usage) => self.usage += *usage,
            Record::Paid { arm, micro_usd } => {
                self.micro_usd = self.micro_usd.saturating_add(*micro_usd);
                self.session_micro_usd = self.session_micro_usd.saturating_add(*micro_usd);
                let cost = Event::Cost {
                    arm: arm.clone(),
                    call_micro_usd: Some(*micro_usd),
                    turn_micro_usd: self.micro_usd,
                    session_micro_usd: self.session_micro_usd,
                    estimated: false,
                };
                self.push_note(messages, at_ms, cost);
            }
            Record::Judged { call, allowed: false, reason } => {
                let (call, reason) = (call.clone(), reason.clone());
                let denied = Event::PermissionDecided { call, allowed: false, reason };
                self.push_note(messages, at_ms, denied);
            }
            _ => (),
        }
    }

    fn end_turn(&mut self, messages: usize) {
        // A message in the middle of a turn ends none.
        let Some((at_ms, stop)) = self.answered else { return };
        let Self { all, rounds, usage, session_micro_usd, .. } = std::mem::take(self);
        (self.all, self.session_micro_usd) = (all, session_micro_usd);
        let outcome = Outcome::Complete { stop };
        let (undelivered, answer) = (Vec::new(), None);
        let ended = Event::TurnEnded { outcome, rounds, usage, undelivered, answer };
        self.push_note(messages, at_ms, ended);
    }

    fn push_note(&mut self, messages: usize, at_ms: i64, event: Event) {
        if let Some(after) = messages.checked_sub(1) {
            self.all.push(HistoryNote { after: after as u64, seq: 0, at_ms, event });
        }
    }
}

/// The last entry that a summary among `entries` replaces; the [`rebuild_history`] needs none up to it.
#[must_use]
pub fn summarized_up_to(entries: &[Entry]) -> Option<EntryId> {
    last_summary(entries).map(|(_, up_to)| up_to)
}

/// The text of the last summary, and the last entry that it replaces.
fn last_summary(entries: &[Entry]) -> Option<(&str, EntryId)> {
    entries.iter().rev().find_map(|entry| match &entry.record {
        // An empty one takes a compaction back: it stands for nothing, whatever it names.
        Record::Summary { text, .. } if text.is_empty() => Some(("", EntryId(0))),
        Record::Summary { text, up_to } => Some((text.as_str(), (*up_to).min(entry.id))),
        _ => None,
    })
}

/// The size of the beginning of a conversation, as its provider counted it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeasuredPrefix {
    /// The tokens that the call took.
    pub usage: Usage,
    /// Messages of the [`rebuild_history`] that were sent with it, plus its answer if that was stored.
    pub messages: usize,
}

/// Returns what the provider counted for the last call of a path; `None` if it has counted none since the last
/// summary.
#[must_use]
pub fn last_measured(entries: &[Entry]) -> Option<MeasuredPrefix> {
    let last = entries.iter().enumerate().rev().find_map(|(at, entry)| match &entry.record {
        Record::Used(usage) => Some(Some((at, *usage))),
        Record::Summary { .. } => Some(None),
        _ => None,
    });
    let (at, usage) = last??;
    // What a call used is stored right before its answer.
    let after = entries.get(at + 1..).unwrap_or_default().iter();
    let answer = after.enumerate().find_map(|(number, entry)| match &entry.record {
        Record::Message(message) => Some((at + 1 + number, message.role())),
        _ => None,
    });
    let end = match answer {
        Some((answer, Role::Assistant)) => answer + 1,
        Some(_) | None => at + 1,
    };
    let messages = replay_entries(entries.get(..end)?, |_, _| ()).messages.len();
    Some(MeasuredPrefix { usage, messages })
}

/// The conversation of a path; `look` is shown each entry that counts, with the number of messages before it.
fn replay_entries(entries: &[Entry], mut look: impl FnMut(usize, &Entry)) -> History {
    let mut history = History::default();
    let up_to = last_summary(entries).map(|(text, up_to)| {
        if !text.is_empty() {
            history.push_user_text(prompt::summary_note(text));
        }
        up_to
    });
    for entry in entries.iter().filter(|entry| up_to.is_none_or(|up_to| entry.id > up_to)) {
        look(history.messages.len(), entry);
        if let Record::Message(message) = &entry.record {
            history.add_message(message);
        }
    }
    history
}

/// A conversation that is legal at any time, but for the calls of its last message.
#[derive(Default)]
struct History {
    messages: Vec<Arc<Message>>,
    /// The calls of the last message.
    open: Vec<ToolCall>,
}

impl History {
    fn push_user_text(&mut self, text: String) {
        self.messages.push(Arc::new(Message::user_text(text)));
    }

    fn add_message(&mut self, message: &Arc<Message>) {
        match message.role() {
            Role::Tool => return self.add_results(message),
            Role::Assistant if self.messages.is_empty() => return,
            Role::Assistant | Role::User => (),
        }
        self.close_open_calls();
        self.open = message.tool_calls().cloned().collect();
        self.messages.push(Arc::clone(message));
    }

    /// Takes results; they stay the very same message when they answer just what was asked.
    fn add_results(&mut self, message: &Arc<Message>) {
        if self.open.is_empty() {
            return;
        }
        let asked = self.open.iter().map(|call| &call.id);
        if asked.eq(message.tool_results().map(|result| &result.call_id)) {
            self.open.clear();
            self.messages.push(Arc::clone(message));
            return;
        }
        let given = message.tool_results().map(|result| (&result.call_id, result)).collect();
        self.answer_with(&given);
    }

    fn close_open_calls(&mut self) {
        self.answer_with(&HashMap::new());
    }

    /// Answers the open calls, as far as results are given, else with their interruption.
    fn answer_with(&mut self, given: &HashMap<&CallId, &ToolResult>) {
        let result = |call: ToolCall| match given.get(&call.id) {
            Some(result) => (*result).clone(),
            None => ToolResult::from_text(&call, prompt::INTERRUPTED, true),
        };
        let results = std::mem::take(&mut self.open).into_iter().map(result).collect();
        self.messages.extend(Message::results(results).ok().map(Arc::new));
    }

    fn finish(mut self) -> Vec<Arc<Message>> {
        self.close_open_calls();
        self.messages
    }
}

#[cfg(test)]
mod tests {
    use gnoma_core::{Content, RawJson};
    use proptest::prelude::*;

    use super::*;

    fn call(id: u8) -> ToolCall {
        ToolCall::new(CallId::new(format!("c{id}")), "bash", RawJson::empty_object())
    }

    fn asking(ids: &[u8]) -> Record {
        let mut content = vec![Content::from_text("let me see")];
        content.extend(ids.iter().map(|id| Content::ToolCall(call(*id))));
        Record::Message(Arc::new(Message::assistant(content, None, None).unwrap()))
    }

    fn answering(ids: &[u8]) -> Record {
        let results =
            ids.iter().map(|id| ToolResult::from_text(&call(*id), "out", false)).collect();
        Record::Message(Arc::new(Message::results(results).unwrap()))
    }

    fn saying(text: &str) -> Record {
        Record::Message(Arc::new(Message::user_text(text)))
    }

    fn entries(records: Vec<Record>) -> Vec<Entry> {
        let entry = |(id, record)| Entry {
            id: EntryId(id),
            parent: (id > 1).then(|| EntryId(id - 1)),
            at_ms: 0,
            record,
        };
        (1..).zip(records).map(entry).collect()
    }

    #[test]
    fn resumed_session_restores_cost_and_outcome_of_each_turn() {
        let arm = gnoma_core::ModelRef { provider: "p".into(), model: "m".into() };
        let routed = Record::Routed { arm: arm.clone(), why: "w".into() };
        let used = Record::Used(Usage { output: 4, ..Usage::default() });
        let paid = Record::Paid { arm, micro_usd: 7 };
        let call = [routed, used, paid];
        let turn = |answers: &[&[u8]]| -> Vec<Record> {
            let rounds = answers.iter().flat_map(|ids| {
                let results = (!ids.is_empty()).then(|| answering(ids));
                call.iter().cloned().chain([asking(ids)]).chain(results)
            });
            [saying("go")].into_iter().chain(rounds).collect()
        };
        let path = entries([turn(&[&[1], &[]]), turn(&[&[]])].concat());
        let notes = rebuild_notes(&path);
        let ends: Vec<_> = notes
            .iter()
            .filter_map(|note| match note.event {
                Event::TurnEnded { rounds, usage, .. } => Some((note.after, rounds, usage.output)),
                _ => None,
            })
            .collect();
        assert_eq!(ends, [(3, 2, 8), (5, 1, 4)], "messages 0 to 3 are the first turn");
        let costs: Vec<_> = notes
            .iter()
            .filter_map(|note| match note.event {
                Event::Cost { turn_micro_usd, .. } => Some((note.after, turn_micro_usd)),
                _ => None,
            })
            .collect();
        assert_eq!(costs, [(0, 7), (2, 14), (4, 7)]);
        assert!(notes.is_sorted_by_key(|note| note.after));
    }

    fn is_legal(history: &[Arc<Message>]) -> bool {
        let answers_before = |at: usize| {
            let results = history.get(at).map(|message| message.tool_results());
            results.map(|results| results.map(|result| result.call_id.clone()).collect::<Vec<_>>())
        };
        let paired = (0..history.len()).all(|at| {
            let calls: Vec<_> = history[at].tool_calls().map(|call| call.id.clone()).collect();
            answers_before(at + 1).unwrap_or_default() == calls
        });
        paired && history.first().is_none_or(|first| first.role() == Role::User)
    }

    fn record() -> impl Strategy<Value = Record> {
        let ids = || prop::collection::btree_set(0..4_u8, 1..4);
        prop_oneof![
            3 => Just(saying("hello")),
            3 => ids().prop_map(|ids| asking(&Vec::from_iter(ids))),
            3 => ids().prop_map(|ids| answering(&Vec::from_iter(ids))),
            1 => Just(asking(&[])),
            1 => (0..20_i64).prop_map(|id| Record::Summary {
                text: "before".into(),
                up_to: EntryId(id),
            }),
            1 => Just(Record::Used(Usage { input: 9, ..Usage::default() })),
            1 => Just(Record::Checkpoint { id: "s".into() }),
            1 => Just(Record::Interrupted { calls: vec![CallId::new("c1")] }),
            1 => Just(Record::Rewound { from: EntryId(1) }),
        ]
    }

    proptest! {
        #[test]
        fn resumed_history_is_always_a_valid_conversation(
            records in prop::collection::vec(record(), 0..16),
            cut in any::<(prop::sample::Index, prop::sample::Index)>(),
        ) {
            let entries = entries(records);
            let known = last_measured(&entries);
            prop_assert!(known.is_none_or(|known| known.messages <= rebuild_history(&entries).len()));
            let (a, b) = (cut.0.index(entries.len() + 1), cut.1.index(entries.len() + 1));
            prop_assert!(is_legal(&rebuild_history(&entries[a.min(b)..a.max(b)])));
        }

        #[test]
        fn resume_needs_no_entries_before_the_last_summary(
            records in prop::collection::vec(record(), 0..24),
            cut in any::<prop::sample::Index>(),
        ) {
            let entries = entries(records);
            let end = &entries[cut.index(entries.len() + 1)..];
            let is_enough = end.first().is_some_and(|first| Some(first.id) <= summarized_up_to(end));
            if is_enough {
                prop_assert_eq!(rebuild_history(end), rebuild_history(&entries));
                prop_assert_eq!(last_measured(end), last_measured(&entries));
            }
        }

        #[test]
        fn resume_leaves_a_valid_history_unchanged(rounds in prop::collection::vec(0..3_u8, 0..8)) {
            let mut records = vec![saying("go")];
            for ids in rounds.iter().map(|calls| Vec::from_iter(0..*calls)) {
                records.push(asking(&ids));
                if !ids.is_empty() {
                    records.extend([answering(&ids), Record::Title { text: "t".into() }]);
                }
            }
            let entries = entries(records);
            let stored = entries.iter().filter_map(|entry| match &entry.record {
                Record::Message(message) => Some(message),
                _ => None,
            });
            prop_assert!(rebuild_history(&entries).iter().eq(stored));
        }
    }

    #[test]
    fn resumed_session_size_is_the_last_provider_token_count() {
        let used = |input| Record::Used(Usage { input, output: 5, ..Usage::default() });
        let known = |records: Vec<Record>| {
            last_measured(&entries(records)).map(|it| (it.usage.total_tokens(), it.messages))
        };
        assert_eq!(known(vec![saying("go"), asking(&[])]), None);
        let turn = || vec![saying("go"), used(10), asking(&[1])];
        assert_eq!(known(turn()), Some((15, 2)), "with the answer, without its results");
        let answered = [turn(), vec![answering(&[1])]].concat();
        assert_eq!(known(answered.clone()), Some((15, 2)));
        let broken = [answered.clone(), vec![used(20), saying("again")]].concat();
        assert_eq!(
            known(broken),
            Some((25, 3)),
            "a call without an answer counts what it was asked"
        );
        let summary = Record::Summary { text: "short".into(), up_to: EntryId(4) };
        assert_eq!(known([answered.clone(), vec![summary.clone()]].concat()), None);
        let after = [answered, vec![summary, saying("and?"), used(7), asking(&[])]].concat();
        assert_eq!(known(after), Some((12, 3)), "the summary, and what was said after it");
    }

    #[test]
    fn resumed_tool_call_without_a_result_is_marked_interrupted() {
        let some = rebuild_history(&entries(vec![saying("go"), asking(&[1, 2]), answering(&[2])]));
        let texts: Vec<_> = some[2].tool_results().map(ToolResult::joined_text).collect();
        assert_eq!(texts, [prompt::INTERRUPTED, "out"]);
        let none = rebuild_history(&entries(vec![saying("go"), asking(&[1]), saying("and?")]));
        let roles: Vec<_> = none.iter().map(|message| message.role()).collect();
        assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool, Role::User]);
    }

    #[test]
    fn resume_replaces_messages_with_the_last_summary() {
        let summary =
            |text: &str, up_to| Record::Summary { text: text.into(), up_to: EntryId(up_to) };
        let records = vec![
            saying("old"),
            summary("first", 1),
            saying("older"),
            asking(&[1]),
            answering(&[1]),
            summary("second", 4),
            saying("new"),
        ];
        let texts = |records: Vec<Record>| -> Vec<_> {
            rebuild_history(&entries(records))
                .iter()
                .map(|message| message.text_content())
                .collect()
        };
        assert_eq!(texts(records.clone()), [prompt::summary_note("second"), "new".to_owned()]);
        let undone = texts([records, vec![summary("", 9)]].concat());
        assert_eq!(undone, ["old", "older", "let me see", "", "new"]);
    }
}
