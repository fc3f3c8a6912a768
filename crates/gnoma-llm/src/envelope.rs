//! A request without its messages, and how JSON items are put one after the other.

use serde::Serialize;

/// A request without its messages: what stands before them, and what after.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Envelope {
    pub(crate) head: Vec<u8>,
    pub(crate) has_items: bool,
}

/// The bytes that follow the list of messages, which is the last field of every body.
pub(crate) const TAIL: &[u8] = b"]}";

impl Envelope {
    /// Takes `body`, whose last field must be the list of messages. It may hold items already (a
    /// system message), which come first.
    pub(crate) fn new(body: &impl Serialize) -> Self {
        let mut head = serde_json::to_vec(body).unwrap_or_default();
        debug_assert!(head.ends_with(TAIL), "the last field must be the list of messages");
        head.truncate(head.len().saturating_sub(TAIL.len()));
        let has_items = !head.ends_with(b"[");
        Self { head, has_items }
    }
}

/// Serialises `item` onto `out`, after a comma if something is there already.
pub(crate) fn push_item(out: &mut Vec<u8>, item: &impl Serialize) {
    if !out.is_empty() {
        out.push(b',');
    }
    // The wire types are plain structs: serialising them into memory cannot fail.
    let _infallible = serde_json::to_writer(&mut *out, item);
}
