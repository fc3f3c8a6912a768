//! Messages that are queued between editor and conversation.

use std::collections::VecDeque;

use gnoma_core::Content;

use super::draft_display;
use crate::composer::Draft;

/// Messages of other windows that are shown.
const MAX_OTHERS: usize = 64;

/// A message that was sent and has not come back as part of the conversation.
#[derive(Clone, Debug)]
pub(super) struct SentMessage {
    pub(super) draft: Draft,
    pub(super) content: Vec<Content>,
    pub(super) line: String,
}

impl SentMessage {
    pub(super) fn from_draft(draft: Draft) -> Self {
        let line = draft_display::first_line(&draft);
        Self { content: draft.clone().into_content(), draft, line }
    }
}

/// A draft that waits, and the line that shows it: pasted texts may be too large to look at for every frame.
#[derive(Clone, Debug)]
pub(super) struct QueuedMessage {
    pub(super) draft: Draft,
    pub(super) line: String,
}

impl From<Draft> for QueuedMessage {
    fn from(draft: Draft) -> Self {
        Self { line: draft_display::first_line(&draft), draft }
    }
}

/// Output of a shell line that goes along with the next message.
#[derive(Clone, Debug)]
pub(super) struct AttachedOutput {
    pub(super) label: String,
    pub(super) text: String,
}

/// Everything on its way from the editor to the conversation.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    /// Waits for the turn to end.
    pub(super) waiting: VecDeque<QueuedMessage>,
    /// `true` if nothing is sent by itself until the person says so.
    pub(super) is_held: bool,
    /// Was sent to begin a turn and is shown already.
    pub(super) begun: VecDeque<SentMessage>,
    /// Was sent while a turn runs and is not read yet.
    pub(super) steers: VecDeque<SentMessage>,
    pub(super) attached: VecDeque<AttachedOutput>,
    /// The messages that other windows have sent while the turn runs, in short.
    others: Vec<String>,
}

impl Queue {
    /// Creates the queue from the drafts that waited when the program ended last.
    pub(super) fn from_drafts(drafts: impl Iterator<Item = Draft>) -> Self {
        let drafts = drafts.filter(|draft| !draft.is_blank());
        let waiting: VecDeque<QueuedMessage> = drafts.map(QueuedMessage::from).collect();
        Self { is_held: !waiting.is_empty(), waiting, ..Self::default() }
    }

    pub(super) fn waiting_count(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn is_held(&self) -> bool {
        self.is_held && !self.waiting.is_empty()
    }

    /// All that could still come back.
    pub(super) fn drafts(&self) -> impl Iterator<Item = &Draft> {
        let sent = self.begun.iter().chain(&self.steers).map(|sent| &sent.draft);
        sent.chain(self.waiting.iter().map(|waiting| &waiting.draft))
    }

    /// Returns in short the messages that are not read yet, those of other windows that are not, then those that
    /// wait.
    pub(super) fn queued_lines(&self) -> [Vec<String>; 3] {
        let steers = self.steers.iter().map(|sent| sent.line.clone()).collect();
        let waiting = self.waiting.iter().map(|waiting| waiting.line.clone()).collect();
        [steers, self.others.clone(), waiting]
    }

    /// Takes over the messages that wait for the next step of the turn, of this window and of others.
    pub(super) fn is_now(&mut self, queue: &[Vec<Content>]) {
        let mut own: Vec<&[Content]> = self.steers.iter().map(|sent| &*sent.content).collect();
        let mut rest: Vec<&[Content]> = queue.iter().map(Vec::as_slice).collect();
        for is_same in [|a: &[Content], b: &[Content]| a == b, is_like] {
            rest.retain(|message| match own.iter().position(|sent| is_same(sent, message)) {
                Some(place) => {
                    own.remove(place);
                    false
                }
                None => true,
            });
        }
        self.others = rest.into_iter().take(MAX_OTHERS).map(draft_display::message_line).collect();
    }

    pub(super) fn attached_labels(&self) -> impl Iterator<Item = &str> {
        self.attached.iter().map(|attached| attached.label.as_str())
    }

    /// A turn is about to begin with what was sent.
    pub(super) fn has_begun(&self) -> bool {
        !self.begun.is_empty()
    }

    /// Removes and returns the message that was sent as this. Secrets may have been taken out of it since; then it
    /// is the oldest that can be it.
    pub(super) fn take_steer(&mut self, content: &[Content]) -> Option<SentMessage> {
        let same = self.steers.iter().position(|sent| sent.content == content);
        let like = || self.steers.iter().position(|sent| is_like(&sent.content, content));
        self.steers.remove(same.or_else(like)?)
    }

    /// Removes and returns the message that was sent as exactly this.
    pub(super) fn own_steer(&mut self, content: &[Content]) -> Option<SentMessage> {
        let place = self.steers.iter().position(|sent| sent.content == content);
        self.steers.remove(place?)
    }

    /// Reports whether this message was sent here to begin a turn, so that it is shown already.
    pub(super) fn begun_with(&mut self, content: &[Content]) -> bool {
        let steered = self.steers.iter().any(|sent| sent.content == content);
        let same = self.begun.iter().position(|sent| sent.content == content);
        let like = || self.begun.iter().position(|sent| is_like(&sent.content, content));
        let place = if steered { same } else { same.or_else(like) };
        place.and_then(|place| self.begun.remove(place)).is_some()
    }

    /// Puts messages back into the queue that were sent to a session that is gone and never became part of it.
    pub(super) fn sent_returns(&mut self) {
        self.others.clear();
        let sent: Vec<SentMessage> = self.begun.drain(..).chain(self.steers.drain(..)).collect();
        self.is_held |= !sent.is_empty();
        for sent in sent.into_iter().rev() {
            self.waiting.push_front(sent.draft.into());
        }
    }
}

/// Reports whether a message can be the one that was sent, with secrets taken out of it since: its first or its
/// last word is the same, unless it has no other. A command of people's own becomes any text.
fn is_like(sent: &[Content], message: &[Content]) -> bool {
    let text = |content: &[Content]| {
        let texts = content.iter().filter_map(|part| match part {
            Content::Text(text) => Some(text.text.clone()),
            _ => None,
        });
        texts.collect::<String>()
    };
    let (sent, message) = (text(sent), text(message));
    if sent.starts_with('/') {
        return true;
    }
    let ends = |text: &str| {
        let mut words = text.split_whitespace();
        let first = words.next().map(str::to_owned);
        (first.clone(), words.next_back().map_or(first, |last| Some(last.to_owned())))
    };
    let ((first, last), (other_first, other_last)) = (ends(&sent), ends(&message));
    sent.split_whitespace().nth(1).is_none() || first == other_first || last == other_last
}
