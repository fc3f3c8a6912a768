//! Undo and redo in the editor, word by word.

use std::collections::VecDeque;

use super::buffer::{Buffer, BufferPosition, position_after};

/// Steps that are kept; the oldest go first.
const MAX_STEPS: usize = 1_000;
/// Bytes of text that are kept; the oldest steps go first, the last one never.
const MAX_BYTES: usize = 64 << 20;

/// The kind of a change, to know which changes belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EditKind {
    /// A character was typed.
    Typing,
    /// A character was deleted to the left.
    Deleting,
    /// Anything else: a separate step.
    Other,
}

/// One change of the text.
#[derive(Clone, Debug)]
struct Edit {
    at: BufferPosition,
    removed: String,
    inserted: String,
}

/// Changes that are taken back together.
#[derive(Clone, Debug)]
struct UndoStep {
    edits: Vec<Edit>,
    kind: EditKind,
    /// The place of the cursor before the step.
    cursor: BufferPosition,
    /// More of the same kind may join.
    open: bool,
}

/// The state of gathering changes into one step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Group {
    /// Each is what its kind says.
    #[default]
    None,
    /// The next change begins the step.
    Begun,
    /// The next change joins the last step.
    Joining,
}

/// The changes of a text.
#[derive(Clone, Debug, Default)]
pub(super) struct Undo {
    done: VecDeque<UndoStep>,
    undone: Vec<UndoStep>,
    group: Group,
    bytes: usize,
}

impl Undo {
    /// Keeps a change: `removed` stood at `at` and `inserted` stands there now.
    pub(super) fn record(
        &mut self,
        kind: EditKind,
        cursor: BufferPosition,
        at: BufferPosition,
        removed: String,
        inserted: &str,
    ) {
        self.forget_undone();
        self.bytes += removed.len() + inserted.len();
        let edit = Edit { at, removed, inserted: inserted.to_owned() };
        match self.done.back_mut() {
            Some(step) if self.group == Group::Joining => step.edits.push(edit),
            Some(step) if self.group == Group::None && step.can_join(kind, &edit) => {
                step.join_edit(edit);
            }
            _ => self.done.push_back(UndoStep { edits: vec![edit], kind, cursor, open: true }),
        }
        if self.group == Group::Begun {
            self.group = Group::Joining;
        }
        self.trim();
    }

    /// The next change is a separate step.
    pub(super) fn close_step(&mut self) {
        if let Some(step) = self.done.back_mut() {
            step.open = false;
        }
    }

    /// All changes up to [`end_group`](Self::end_group) are one step.
    pub(super) fn begin_group(&mut self) {
        if self.group == Group::None {
            self.group = Group::Begun;
        }
    }

    /// The next change is a separate step again.
    pub(super) fn end_group(&mut self) {
        self.group = Group::None;
        self.close_step();
    }

    fn forget_undone(&mut self) {
        for step in self.undone.drain(..) {
            self.bytes -= step.bytes();
        }
    }

    fn trim(&mut self) {
        while self.done.len() > 1 && (self.done.len() > MAX_STEPS || self.bytes > MAX_BYTES) {
            let oldest = self.done.pop_front();
            self.bytes -= oldest.map_or(0, |step| step.bytes());
        }
    }

    /// Takes the last step back; returns where the cursor was before it.
    pub(super) fn undo(&mut self, buffer: &mut Buffer) -> Option<BufferPosition> {
        let step = self.done.pop_back()?;
        for edit in step.edits.iter().rev() {
            buffer.replace(edit.at..position_after(edit.at, &edit.inserted), &edit.removed);
        }
        let cursor = step.cursor;
        self.undone.push(step);
        Some(cursor)
    }

    /// Repeats the step that was undone last; returns where it ends.
    pub(super) fn redo(&mut self, buffer: &mut Buffer) -> Option<BufferPosition> {
        let mut step = self.undone.pop()?;
        let mut cursor = step.cursor;
        for edit in &step.edits {
            cursor =
                buffer.replace(edit.at..position_after(edit.at, &edit.removed), &edit.inserted).1;
        }
        step.open = false;
        self.done.push_back(step);
        Some(cursor)
    }

    /// Every text that a step could bring back.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        let steps = self.done.iter().chain(&self.undone);
        steps.flat_map(|step| &step.edits).flat_map(|edit| [&*edit.removed, &*edit.inserted])
    }
}

impl UndoStep {
    fn bytes(&self) -> usize {
        self.edits.iter().map(|edit| edit.removed.len() + edit.inserted.len()).sum()
    }

    fn can_join(&self, kind: EditKind, edit: &Edit) -> bool {
        let Some(last) = self.edits.last() else { return false };
        if !self.open || self.kind != kind {
            return false;
        }
        match kind {
            EditKind::Typing => {
                let begins_word = last.inserted.ends_with(char::is_whitespace)
                    && !edit.inserted.starts_with(char::is_whitespace);
                edit.removed.is_empty()
                    && position_after(last.at, &last.inserted) == edit.at
                    && !begins_word
            }
            EditKind::Deleting => {
                edit.inserted.is_empty() && position_after(edit.at, &edit.removed) == last.at
            }
            EditKind::Other => false,
        }
    }

    fn join_edit(&mut self, edit: Edit) {
        match self.edits.last_mut() {
            Some(last) if self.kind == EditKind::Typing => last.inserted.push_str(&edit.inserted),
            _ => self.edits.push(edit),
        }
    }
}
