//! How a reasoning item of the wire is kept as [`Thinking`] blocks, and found again.
//!
//! An item shows either summaries or, from servers with open models, the raw reasoning. Each part is
//! a block of its own; all of them carry the item's id, and the last one its encrypted content. The
//! item id of a raw block is marked, so that its text goes back to the field it came from.

use gnoma_core::Thinking;

/// In front of the id of an item whose text is raw reasoning; no server's ids start so.
const RAW_MARK: &str = "raw:";

/// The id that blocks of an item keep.
pub(super) fn kept_id(id: &str, raw: bool) -> String {
    if raw { format!("{RAW_MARK}{id}") } else { id.to_owned() }
}

/// A reasoning item put together again.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ReasoningItem<'a> {
    /// The server's id; empty where it sent none.
    pub(super) id: &'a str,
    /// The texts are raw reasoning, not summaries.
    pub(super) raw: bool,
    /// The shown texts of the item.
    pub(super) texts: Vec<&'a str>,
    /// The whole reasoning in encrypted form.
    pub(super) encrypted: Option<&'a str>,
}

impl<'a> ReasoningItem<'a> {
    /// An item that starts with `block`.
    pub(super) fn from_block(block: &'a Thinking) -> Self {
        let kept = block.item.as_deref().unwrap_or_default();
        let unmarked = kept.strip_prefix(RAW_MARK);
        let mut item = Self {
            id: unmarked.unwrap_or(kept),
            raw: unmarked.is_some(),
            texts: Vec::new(),
            encrypted: None,
        };
        item.add_block(block);
        item
    }

    /// Takes one more block of the same item.
    pub(super) fn add_block(&mut self, block: &'a Thinking) {
        self.encrypted = block.signature.as_deref().or(self.encrypted);
        if !block.text.is_empty() {
            self.texts.push(&block.text);
        }
    }

    /// Reports whether a server that stores nothing can make use of the item. A summary alone is no reasoning, and
    /// OpenAI refuses an item that it neither stored nor finds encrypted.
    pub(super) fn can_return(&self) -> bool {
        self.encrypted.is_some() || (self.raw && !self.texts.is_empty())
    }
}
