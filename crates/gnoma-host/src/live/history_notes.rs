//! The notes that a log keeps of a conversation beside its messages, for readers of the history. Pure.

use std::collections::VecDeque;

use gnoma_core::{
    Event, RawJson, ToolCall, ToolResult,
    protocol::{Envelope, HistoryNote},
};

/// Most bytes of notes that a session keeps, roughly; the oldest go first.
const MAX_BYTES: usize = 1 << 20;
/// Most bytes of one note.
const MAX_NOTE_BYTES: usize = 128 << 10;

/// The notes of a conversation, in the order of its messages.
#[derive(Debug, Default)]
pub(super) struct HistoryNotes {
    /// Each with its size.
    kept: VecDeque<(HistoryNote, usize)>,
    bytes: usize,
}

impl HistoryNotes {
    /// Adds a note on an event that came after so many messages, if it needs one.
    pub(super) fn push_envelope(&mut self, envelope: &Envelope, messages: usize) {
        let Some(after) = messages.checked_sub(1) else { return };
        let Some(event) = noted_event(&envelope.event) else { return };
        let Envelope { seq, at_ms, .. } = *envelope;
        self.push_note(HistoryNote { after: after as u64, seq, at_ms, event });
    }

    /// Continues in another epoch that has the first `same` messages in common with this one.
    pub(super) fn begin_epoch(&mut self, same: usize) {
        self.kept.retain(|(note, _)| note.after < same as u64);
        self.bytes = self.kept.iter().map(|(_, bytes)| bytes).sum();
        self.kept.iter_mut().for_each(|(note, _)| note.seq = 0);
    }

    /// Adds what is stored of messages after the last one that is known here.
    pub(super) fn add_stored(&mut self, notes: Vec<HistoryNote>) {
        let known = self.kept.back().map(|(note, _)| note.after);
        for note in notes.into_iter().filter(|note| known.is_none_or(|known| note.after > known)) {
            self.push_note(note);
        }
    }

    /// The notes on the messages from `first` to before `end`.
    pub(super) fn between(&self, first: u64, end: u64) -> Vec<HistoryNote> {
        let range = first..end;
        let notes = self.kept.iter().map(|(note, _)| note);
        notes.filter(|note| range.contains(&note.after)).cloned().collect()
    }

    fn push_note(&mut self, note: HistoryNote) {
        let bytes = note.event_bytes();
        if bytes > MAX_NOTE_BYTES {
            return;
        }
        self.kept.push_back((note, bytes));
        self.bytes += bytes;
        while self.bytes > MAX_BYTES {
            let Some((_, oldest)) = self.kept.pop_front() else { break };
            self.bytes -= oldest;
        }
    }
}

/// Returns an event as a note has it; `None` if it needs none.
fn noted_event(event: &Event) -> Option<Event> {
    if !needs_note(event) {
        return None;
    }
    Some(match event {
        Event::ToolEnded { call, result, diff, duration_ms, command } => {
            let (call_id, name, is_error) =
                (result.call_id.clone(), result.name.clone(), result.is_error);
            Event::ToolEnded {
                call: ToolCall::new(call.id.clone(), call.name.clone(), RawJson::empty_object()),
                result: ToolResult { call_id, name, parts: Vec::new(), is_error },
                diff: diff.clone(),
                duration_ms: *duration_ms,
                command: *command,
            }
        }
        Event::TurnEnded { outcome, rounds, usage, .. } => Event::TurnEnded {
            outcome: outcome.clone(),
            rounds: *rounds,
            usage: *usage,
            undelivered: Vec::new(),
            answer: None,
        },
        whole => whole.clone(),
    })
}

/// Reports whether an event is of use later and no message says it.
const fn needs_note(event: &Event) -> bool {
    matches!(
        event,
        Event::ToolEnded { .. }
            | Event::TurnEnded { .. }
            | Event::RoundStarted { .. }
            | Event::Routed(_)
            | Event::ArmChanged { .. }
            | Event::Conferred { .. }
            | Event::Checking { .. }
            | Event::Checked { .. }
            | Event::Cost { .. }
            | Event::Compacted { .. }
            | Event::Uncompacted { .. }
            | Event::PermissionDecided { allowed: false, .. }
            | Event::Retrying { .. }
            | Event::Notice { .. }
    )
}
