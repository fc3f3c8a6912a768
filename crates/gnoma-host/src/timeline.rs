//! The places to which a session can be rewound, and those that a redo returns to. Pure: entries in, places out.
//!
//! A rewind adds an entry [`Record::Rewound`] after its target; a checkpoint right after it names the files as they were
//! before. A redo adds one after the place that the rewind left. Nothing is removed, so every place can be reached again.

use std::collections::HashSet;

use gnoma_core::{
    Message, Role,
    store::{Entry, EntryId, Record},
};
use gnoma_store::checkpoint::SnapshotId;

/// A turn, from what the person said on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    /// The message that begins the turn.
    pub said: EntryId,
    /// The entry before; `None` at the start.
    pub before: Option<EntryId>,
    /// The words of the message.
    pub words: String,
    /// The files before its first change.
    pub files: TimelineFiles,
}

/// The files as they were at some place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum TimelineFiles {
    /// The files were not changed since.
    #[default]
    Unchanged,
    /// The files were saved in this checkpoint.
    Kept(SnapshotId),
    /// They were changed and not kept before.
    Unknown,
}

impl TimelineFiles {
    fn add_checkpoint(&mut self, kept: &PathCheckpoint) {
        if *self == Self::Unchanged {
            *self = if kept.is_before { Self::Kept(kept.id.clone()) } else { Self::Unknown };
        }
    }
}

/// The turns of a path, oldest first.
pub(crate) fn list_turns(path: &[Entry]) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::new();
    let mut kept = work_checkpoints(path).peekable();
    for entry in path {
        if let Record::Message(message) = &entry.record
            && is_said(message)
        {
            let (said, before, words) = (entry.id, entry.parent, message.text_content());
            turns.push(Turn { said, before, words, files: TimelineFiles::Unchanged });
        }
        while let Some(kept) = kept.next_if(|kept| kept.entry == entry.id) {
            if let Some(turn) = turns.last_mut() {
                turn.files.add_checkpoint(&kept);
            }
        }
    }
    turns
}

/// The checkpoints that turns began with, where they are not also what the turn before ended with.
pub(crate) fn turn_start_checkpoints(path: &[Entry]) -> Vec<SnapshotId> {
    let said: Vec<_> = list_turns(path).iter().map(|turn| turn.said).collect();
    let (mut known, mut starts) = (HashSet::new(), Vec::new());
    let mut last = 0;
    for PathCheckpoint { entry, id, .. } in work_checkpoints(path) {
        let turn = said.partition_point(|said| *said < entry);
        if known.insert(id.clone()) && turn > last {
            starts.push(id);
        }
        last = turn;
    }
    starts
}

/// A checkpoint on a path.
struct PathCheckpoint {
    entry: EntryId,
    id: SnapshotId,
    /// `true` if the checkpoint was taken before calls that may change something, not after the turn.
    is_before: bool,
}

/// The checkpoints of a path without those that belong to a rewind. Checkpoints from before calls stand between the calls
/// and their results. The one after a turn may be written when the next turn has begun: it belongs to the end of the one
/// before as long as the next turn has called nothing.
fn work_checkpoints(path: &[Entry]) -> impl Iterator<Item = PathCheckpoint> {
    let mut open_calls = 0_usize;
    // The end of the turn before, until this one calls something.
    let mut turn_before: Option<EntryId> = None;
    work_entries(path).filter_map(move |entry| {
        if let Record::Message(message) = &entry.record {
            open_calls = match message.role() {
                Role::Assistant => message.tool_calls().count(),
                _ => open_calls.saturating_sub(message.tool_results().count()),
            };
            if is_said(message) {
                turn_before = entry.parent;
            } else if open_calls > 0 {
                turn_before = None;
            }
        }
        let id = checkpoint_id(entry)?;
        let is_before = open_calls > 0;
        Some(PathCheckpoint { entry: turn_before.unwrap_or(entry.id), id, is_before })
    })
}

/// Reports whether a message is from the user; sometimes the engine speaks in the user's place.
fn is_said(message: &Message) -> bool {
    let note = gnoma_engine::prompt::system_note("");
    message.role() == Role::User && !message.text_content().starts_with(&note)
}

/// The entries without the checkpoints that belong to a going back.
fn work_entries(path: &[Entry]) -> impl Iterator<Item = &Entry> {
    let mut follows_rewind = false;
    path.iter().filter(move |entry| {
        let is_checkpoint = matches!(entry.record, Record::Checkpoint { .. });
        let belongs = is_checkpoint && follows_rewind;
        follows_rewind = matches!(entry.record, Record::Rewound { .. });
        !belongs
    })
}

/// The files as they were at `entry`, by the first checkpoint after it.
pub(crate) fn files_at(path: &[Entry], entry: EntryId) -> TimelineFiles {
    let mut files = TimelineFiles::Unchanged;
    work_checkpoints(path)
        .filter(|kept| kept.entry > entry)
        .for_each(|kept| files.add_checkpoint(&kept));
    files
}

fn checkpoint_id(entry: &Entry) -> Option<SnapshotId> {
    match &entry.record {
        Record::Checkpoint { id } => id.parse().ok(),
        _ => None,
    }
}

/// All checkpoints of a path, oldest first, each once.
pub(crate) fn all_checkpoints(path: &[Entry]) -> Vec<(&Entry, SnapshotId)> {
    let mut found: Vec<(&Entry, SnapshotId)> = Vec::new();
    for entry in path {
        if let Some(id) = checkpoint_id(entry)
            && !found.iter().any(|(_, known)| *known == id)
        {
            found.push((entry, id));
        }
    }
    found
}

/// The entry that the conversation goes back to with the files of a checkpoint: the one before the
/// answer whose calls it was kept for, or before the question where that was the first answer.
pub(crate) fn before_checkpoint(path: &[Entry], at: EntryId) -> Option<EntryId> {
    let mut earlier = path.iter().rev().filter(|entry| entry.id < at);
    let answer = earlier.find(|entry| is_of(entry, Role::Assistant))?;
    let before = path
        .iter()
        .rev()
        .find(|entry| entry.id < answer.id && matches!(entry.record, Record::Message(_)))?;
    if is_of(before, Role::User) { before.parent } else { answer.parent }
}

fn is_of(entry: &Entry, role: Role) -> bool {
    matches!(&entry.record, Record::Message(message) if message.role() == role)
}

/// A going back that nothing was said after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LatestRewind {
    /// The entry at which the conversation was before.
    pub from: EntryId,
    /// The conversation was taken back, not only the files.
    pub spoken: bool,
    /// The files as they were before; `None` where only the conversation was taken back.
    pub files: Option<SnapshotId>,
}

/// Goings back at the end of `path` that may be taken back, the latest first: each with the entry it
/// follows. Going forth looks like going back, but for [`is_back`].
pub(crate) fn redo_candidates(path: &[Entry]) -> Vec<(LatestRewind, Option<EntryId>)> {
    let mut found = Vec::new();
    let mut after: Option<&Entry> = None;
    for entry in path.iter().rev() {
        match &entry.record {
            Record::Message(_) | Record::Summary { .. } => break,
            Record::Rewound { from } => {
                let files = after.and_then(checkpoint_id);
                let spoken = Some(*from) != entry.parent;
                found.push((LatestRewind { from: *from, spoken, files }, entry.parent));
            }
            _ => (),
        }
        after = Some(entry);
    }
    found
}

/// Reports whether a rewind entry that follows `parent` goes back along `path`, past something that was said.
/// `path` leads to the entry that it came from and ends there.
pub(crate) fn is_back(path: &[Entry], parent: Option<EntryId>) -> bool {
    let left = |entry: &&Entry| parent.is_none_or(|parent| entry.id > parent);
    let on_path = parent.is_none_or(|parent| path.iter().any(|entry| entry.id == parent));
    on_path && path.iter().filter(left).any(|entry| matches!(entry.record, Record::Message(_)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gnoma_core::{CallId, Content, RawJson, ToolCall, ToolResult};

    use super::*;

    /// A tree of entries, as a store makes it.
    #[derive(Default)]
    struct Tree(Vec<Entry>);

    impl Tree {
        fn add(&mut self, parent: Option<i64>, record: Record) -> i64 {
            let id = self.0.len() as i64 + 1;
            let entry = Entry { id: EntryId(id), parent: parent.map(EntryId), at_ms: 0, record };
            self.0.push(entry);
            id
        }

        fn path(&self, tip: i64) -> Vec<Entry> {
            let mut path = Vec::new();
            let mut next = Some(EntryId(tip));
            while let Some(id) = next {
                let entry = self.0[usize::try_from(id.0).unwrap() - 1].clone();
                next = entry.parent;
                path.push(entry);
            }
            path.reverse();
            path
        }

        /// A turn that writes once; gives its tip.
        fn turn(&mut self, parent: Option<i64>, words: &str, files: u64) -> i64 {
            let call = ToolCall::new(CallId::new("c"), "bash", RawJson::empty_object());
            let results =
                Message::results(vec![ToolResult::from_text(&call, "ok", false)]).unwrap();
            let asks = Message::assistant(vec![Content::ToolCall(call)], None, None).unwrap();
            let answer = Message::assistant(vec![Content::from_text("done")], None, None).unwrap();
            let message = |message| Record::Message(Arc::new(message));
            let said = self.add(parent, message(Message::user_text(words)));
            let asked = self.add(Some(said), message(asks));
            let kept = self.add(Some(asked), kept(files));
            let done = self.add(Some(kept), message(results));
            self.add(Some(done), message(answer))
        }

        /// Goes back from `tip` to before the turn; gives the new tip.
        fn back(&mut self, tip: i64, parent: Option<i64>, files: Option<u64>) -> i64 {
            let rewound = self.add(parent, Record::Rewound { from: EntryId(tip) });
            files.map_or(rewound, |files| self.add(Some(rewound), kept(files)))
        }

        /// What a redo would take back: where from, and which files.
        fn redo(&self, tip: i64) -> Option<(i64, Option<SnapshotId>)> {
            let found = redo_candidates(&self.path(tip)).into_iter().find(|(back, parent)| {
                back.files.is_some() || back.spoken && is_back(&self.path(back.from.0), *parent)
            });
            found.map(|(back, _)| (back.from.0, back.files))
        }
    }

    fn snapshot(number: u64) -> SnapshotId {
        format!("{number:016x}").parse().unwrap()
    }

    fn kept(number: u64) -> Record {
        Record::Checkpoint { id: snapshot(number).to_string() }
    }

    #[test]
    fn timeline_turns_have_checkpoints_and_system_notes_are_no_turns() {
        let mut tree = Tree::default();
        let first = tree.turn(None, "one", 1);
        let note = Message::user_text(gnoma_engine::prompt::system_note("go on"));
        let note = tree.add(Some(first), Record::Message(Arc::new(note)));
        let second = tree.turn(Some(note), "two", 2);
        let turns = list_turns(&tree.path(second));
        let told: Vec<_> = turns.iter().map(|turn| (&*turn.words, turn.files.clone())).collect();
        let kept = |number| TimelineFiles::Kept(snapshot(number));
        assert_eq!(told, [("one", kept(1)), ("two", kept(2))]);
        assert_eq!(files_at(&tree.path(second), turns[0].said), kept(1));
        assert_eq!(files_at(&tree.path(second), EntryId(second)), TimelineFiles::Unchanged);
    }

    #[test]
    fn timeline_turn_without_a_start_checkpoint_has_unknown_files() {
        let mut tree = Tree::default();
        let say = |words: &str| Record::Message(Arc::new(Message::user_text(words)));
        let said = tree.add(None, say("one"));
        let call = ToolCall::new(CallId::new("c"), "bash", RawJson::empty_object());
        let results = Message::results(vec![ToolResult::from_text(&call, "ok", false)]).unwrap();
        let asks = Message::assistant(vec![Content::ToolCall(call)], None, None).unwrap();
        let asked = tree.add(Some(said), Record::Message(Arc::new(asks)));
        let done = tree.add(Some(asked), Record::Message(Arc::new(results)));
        let after = tree.add(Some(done), kept(1));
        let second = tree.turn(Some(after), "two", 2);
        let path = tree.path(second);
        let files: Vec<_> = list_turns(&path).into_iter().map(|turn| turn.files).collect();
        assert_eq!(files, [TimelineFiles::Unknown, TimelineFiles::Kept(snapshot(2))]);
        assert_eq!(files_at(&path, EntryId(said)), TimelineFiles::Unknown);
        assert_eq!(turn_start_checkpoints(&path), [snapshot(1), snapshot(2)]);
    }

    #[test]
    fn timeline_late_checkpoint_belongs_to_the_previous_turn() {
        let say = |words: &str| Record::Message(Arc::new(Message::user_text(words)));
        let answer = || {
            let content = vec![Content::from_text("done")];
            Record::Message(Arc::new(Message::assistant(content, None, None).unwrap()))
        };
        let mut tree = Tree::default();
        let first = tree.turn(None, "one", 1);
        let second = tree.add(Some(first), say("two"));
        let late = tree.add(Some(second), kept(2));
        let end = tree.add(Some(late), answer());
        let third = tree.add(Some(end), say("three"));
        let path = tree.path(third);
        let files: Vec<_> = list_turns(&path).into_iter().map(|turn| turn.files).collect();
        let unchanged = TimelineFiles::Unchanged;
        assert_eq!(files, [TimelineFiles::Kept(snapshot(1)), unchanged.clone(), unchanged.clone()]);
        assert_eq!(files_at(&path, EntryId(second)), unchanged);
        assert_eq!(turn_start_checkpoints(&path), [snapshot(1)]);
    }

    #[test]
    fn turn_starting_at_the_previous_end_has_no_own_start_checkpoint() {
        let mut tree = Tree::default();
        let one = tree.turn(None, "one", 1);
        let end = tree.add(Some(one), kept(2));
        let two = tree.turn(Some(end), "two", 2);
        let end = tree.add(Some(two), kept(3));
        let three = tree.turn(Some(end), "three", 4);
        assert_eq!(turn_start_checkpoints(&tree.path(three)), [snapshot(1), snapshot(4)]);
    }

    #[test]
    fn rewinds_are_redone_step_by_step() {
        let mut tree = Tree::default();
        let one = tree.turn(None, "one", 1);
        let two = tree.turn(Some(one), "two", 2);
        assert_eq!(tree.redo(two), None);
        let back_one = tree.back(two, Some(one), Some(8));
        assert_eq!(list_turns(&tree.path(back_one)).len(), 1);
        let back_two = tree.back(back_one, None, Some(9));
        assert_eq!(list_turns(&tree.path(back_two)), []);
        assert_eq!(tree.redo(back_two), Some((back_one, Some(snapshot(9)))));
        let forth_one = tree.back(back_two, Some(back_one), None);
        assert_eq!(tree.redo(forth_one), Some((two, Some(snapshot(8)))));
        let forth_two = tree.back(forth_one, Some(two), None);
        assert_eq!(tree.redo(forth_two), None);
        assert_eq!(list_turns(&tree.path(forth_two)).len(), 2);
        let again = tree.back(forth_two, Some(one), None);
        assert_eq!(tree.redo(again), Some((forth_two, None)), "the conversation alone");
        let new = tree.turn(Some(again), "new", 3);
        assert_eq!(tree.redo(new), None, "new work ends what can be redone");
    }

    #[test]
    fn files_only_rewind_can_be_redone_once() {
        let mut tree = Tree::default();
        let one = tree.turn(None, "one", 1);
        let back = tree.back(one, Some(one), Some(7));
        assert_eq!(tree.redo(back), Some((one, Some(snapshot(7)))));
        assert_eq!(list_turns(&tree.path(back)).len(), 1);
        let forth = tree.back(back, Some(one), None);
        assert_eq!(tree.redo(forth), None);
    }

    #[test]
    fn checkpoint_rewinds_the_conversation_to_before_its_answer() {
        let mut tree = Tree::default();
        let one = tree.turn(None, "one", 1);
        let two = tree.turn(Some(one), "two", 2);
        let path = tree.path(two);
        let at = all_checkpoints(&path)[1].0.id;
        assert_eq!(before_checkpoint(&path, at), Some(EntryId(one)));
    }
}
