//! What was deleted and can be inserted again, as a ring.

use std::collections::VecDeque;

/// Texts that are kept; the oldest go first.
const MAX_KILLS: usize = 32;

/// The side of the cursor on which a deletion was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// Left of the cursor.
    Left,
    /// Right of the cursor.
    Right,
}

/// The texts, the newest first.
#[derive(Clone, Debug, Default)]
pub(super) struct KillRing {
    ring: VecDeque<String>,
}

impl KillRing {
    /// Keeps a text; with `joins` it becomes one with the newest, on the side where it stood.
    pub(super) fn add(&mut self, text: String, side: Side, joins: bool) {
        if text.is_empty() {
            return;
        }
        match self.ring.front_mut() {
            Some(newest) if joins && side == Side::Left => newest.insert_str(0, &text),
            Some(newest) if joins => newest.push_str(&text),
            _ => {
                self.ring.push_front(text);
                self.ring.truncate(MAX_KILLS);
            }
        }
    }

    /// Returns the newest text.
    pub(super) fn newest(&self) -> Option<&str> {
        self.ring.front().map(String::as_str)
    }

    /// Turns the ring, so that the one before is the newest.
    pub(super) fn rotate_ring(&mut self) {
        self.ring.rotate_left(usize::from(!self.ring.is_empty()));
    }

    /// Returns every text, the newest first.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        self.ring.iter().map(String::as_str)
    }

    /// Forgets all the texts.
    pub(super) fn clear(&mut self) {
        self.ring.clear();
    }
}
