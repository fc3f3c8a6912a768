//! Where a soft hyphen is one: inside a long word of letters, or one of a language that hyphenates.
//!
//! In `su\u{ad}do` or in a token nobody means it; there it only keeps the word from being recognised.

use super::table;

/// A word of plain Latin letters with fewer of them is not broken by anybody who sets text.
const MIN_WORD_LETTERS: usize = 12;
/// The same on a line that is not English: letters beyond ASCII stand in its other words.
const MIN_FOREIGN_LETTERS: usize = 6;
/// Letters on each side.
const MIN_SIDE_LETTERS: usize = 2;
/// Letters that are looked at behind it.
const MAX_AHEAD: usize = 32;
const SOFT_HYPHEN: char = '\u{AD}';

/// The word that the walk stands in.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BreakWatch {
    letters: usize,
    /// A letter beyond ASCII is among them.
    is_accented: bool,
    /// True if the word has digits or signs of names.
    is_name: bool,
    /// Words before it on the line have letters beyond ASCII.
    is_foreign: bool,
}

impl BreakWatch {
    /// Takes in ASCII text that stays.
    pub(super) fn see_ascii(&mut self, text: &str) {
        let inside = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let tail = text.bytes().rev().take_while(inside).count();
        if tail < text.len() {
            let is_foreign = !text.contains('\n') && (self.is_foreign || self.is_accented);
            *self = Self { is_foreign, ..Self::default() };
        }
        for byte in text.bytes().rev().take(tail) {
            self.letters += 1;
            self.is_name |= !byte.is_ascii_alphabetic();
        }
    }

    /// Takes in another character that stays.
    pub(super) fn observe_char(&mut self, c: char) {
        if c.is_alphabetic() {
            self.letters += 1;
            self.is_accented = true;
        } else if c != SOFT_HYPHEN {
            let is_foreign = self.is_foreign || self.is_accented;
            *self = Self { is_foreign, ..Self::default() };
        }
    }

    /// Reports whether the word may be broken here; `None` when too little follows to tell.
    pub(super) fn may_break(self, before: Option<char>, behind: &str, end: bool) -> Option<bool> {
        if self.is_name
            || self.letters < MIN_SIDE_LETTERS
            || !before.is_some_and(char::is_alphabetic)
            || behind.starts_with(SOFT_HYPHEN)
        {
            return Some(false);
        }
        let (mut letters, mut is_accented) = (0, self.is_accented);
        let mut rest = behind.chars().filter(|c| *c != SOFT_HYPHEN);
        let next = loop {
            match rest.next() {
                Some(c) if letters < MAX_AHEAD && c.is_alphabetic() && table::is_plain(c) => {
                    letters += 1;
                    is_accented |= !c.is_ascii();
                }
                None if !end && letters < MAX_AHEAD => return None,
                next => break next,
            }
        };
        // What is taken out behind the word must not make another word of it.
        let ends = letters == MAX_AHEAD
            || next.is_none_or(|c| table::is_plain(c) && !c.is_ascii_digit() && c != '_');
        let least = if self.is_foreign { MIN_FOREIGN_LETTERS } else { MIN_WORD_LETTERS };
        let is_long = self.letters + letters >= least;
        Some(ends && letters >= MIN_SIDE_LETTERS && (is_long || is_accented))
    }
}
