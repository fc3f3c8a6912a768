//! Unicode hygiene: removes invisible characters, names deceptive ones, and leaves the rest byte for byte.
//!
//! For everything that reaches a model and everything that reaches a screen. Which characters are
//! judged is data ([`table`]); how, depends on their neighbours ([`walk`]), because joiners and
//! selectors that hide payloads in one script are letters' daily bread in another. Nothing that
//! stays is rewritten: no normalisation, no case folding. What only looks like something else is
//! flagged ([`lookalike`]).

mod bidi;
mod flag;
mod hyphen;
mod lookalike;
mod neighbours;
mod retained_controls;
mod scripts;
mod table;
mod terminal;
mod unassigned;
mod walk;

use std::borrow::Cow;

pub use flag::{Flag, FlagKind};
pub use retained_controls::RetainedControls;
use walk::{Walk, plain_ascii};

/// A text without what hid in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CleanedText<'a> {
    /// The text, borrowed when nothing had to go.
    pub text: Cow<'a, str>,
    /// The things that were taken out, and those of the rest that deceive.
    pub flags: Vec<Flag>,
}

/// Cleans a text. What remains is a subsequence of it, and cleaning that again changes nothing.
#[must_use]
pub fn clean_text(text: &str, keep: RetainedControls) -> CleanedText<'_> {
    if plain_ascii(text.as_bytes()) == text.len() {
        return CleanedText { text: Cow::Borrowed(text), flags: Vec::new() };
    }
    let mut walk = Walk::new(keep);
    let mut cleaned = String::new();
    let (mut at, mut copied) = (0, 0);
    while let Some(step) = walk.step(text.get(at..).unwrap_or_default(), true) {
        if !step.stays {
            cleaned.push_str(text.get(copied..at).unwrap_or_default());
            copied = at + step.bytes;
        }
        at += step.bytes;
    }
    let flags = walk.finish();
    if copied == 0 {
        return CleanedText { text: Cow::Borrowed(text), flags };
    }
    cleaned.push_str(text.get(copied..).unwrap_or_default());
    CleanedText { text: Cow::Owned(cleaned), flags }
}

/// Cleans bytes that should be UTF-8. Those that are not become U+FFFD, so that a reader sees that
/// something stood there; otherwise as [`clean_text`].
#[must_use]
pub fn clean_bytes(bytes: &[u8], keep: RetainedControls) -> CleanedText<'_> {
    match String::from_utf8_lossy(bytes) {
        Cow::Borrowed(text) => clean_text(text, keep),
        Cow::Owned(lossy) => {
            let valid = std::str::from_utf8(bytes).map_or_else(|e| e.valid_up_to(), str::len);
            let CleanedText { text, mut flags } = clean_text(&lossy, keep);
            flags.push(Flag::invalid_bytes(valid));
            CleanedText { text: Cow::Owned(text.into_owned()), flags }
        }
    }
}

/// Cleans a text that comes in pieces, with the same result wherever it is cut.
///
/// Holds back what the next piece may decide: an open control sequence or span of a direction, at
/// most some 8 KiB; usually nothing.
#[derive(Clone, Debug)]
pub struct Cleaner {
    walk: Walk,
    held: String,
}

impl Cleaner {
    /// A cleaner at the start of a text.
    #[must_use]
    pub fn new(keep: RetainedControls) -> Self {
        Self { walk: Walk::new(keep), held: String::new() }
    }

    /// Takes in the next piece; returns what can be shown now.
    #[must_use]
    pub fn push<'a>(&mut self, piece: &'a str) -> Cow<'a, str> {
        if self.held.is_empty() && plain_ascii(piece.as_bytes()) == piece.len() {
            self.walk.step(piece, false);
            return Cow::Borrowed(piece);
        }
        let mut text = std::mem::take(&mut self.held);
        text.push_str(piece);
        let mut cleaned = String::with_capacity(text.len());
        let walked = self.advance_walk(&text, false, &mut cleaned);
        text.drain(..walked);
        self.held = text;
        Cow::Owned(cleaned)
    }

    /// Ends the text; returns the rest of it and all findings.
    #[must_use]
    pub fn finish(mut self) -> CleanedText<'static> {
        let text = std::mem::take(&mut self.held);
        let mut cleaned = String::new();
        self.advance_walk(&text, true, &mut cleaned);
        CleanedText { text: Cow::Owned(cleaned), flags: self.walk.finish() }
    }

    /// Walks as far as `text` tells; returns how far that is.
    fn advance_walk(&mut self, text: &str, end: bool, cleaned: &mut String) -> usize {
        let mut at = 0;
        while let Some(step) = self.walk.step(text.get(at..).unwrap_or_default(), end) {
            let stretch = at..at + step.bytes;
            if step.stays {
                cleaned.push_str(text.get(stretch.clone()).unwrap_or_default());
            }
            at = stretch.end;
        }
        at
    }
}
