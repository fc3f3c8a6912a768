//! Findings in a text, one for each kind.

use std::fmt;

/// The sort of thing that a [`Flag`] is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FlagKind {
    /// Tag characters, which spell words that nobody sees.
    Tag,
    /// Variation selectors that select nothing.
    Variation,
    /// Characters without a width.
    ZeroWidth,
    /// Letters and spaces without ink.
    Blank,
    /// Controls of the reading direction.
    Bidi,
    /// Control characters.
    Control,
    /// Terminal control sequences.
    Terminal,
    /// Colours that hide text.
    HiddenColour,
    /// Colours and other text attributes.
    Colour,
    /// Bytes or code points that are no characters.
    Invalid,
    /// Private-use characters.
    Private,
    /// A word of letters of several scripts that look alike.
    MixedScript,
    /// Characters that look like others, or become others when normalised.
    LookAlike,
    /// Invisible characters that belong to their emoji or script.
    Belonging,
}

impl FlagKind {
    /// Reports whether this is rare enough in honest text to report it to a person.
    #[must_use]
    pub fn is_suspicious(self) -> bool {
        match self {
            Self::Tag
            | Self::Variation
            | Self::ZeroWidth
            | Self::Blank
            | Self::Bidi
            | Self::Control
            | Self::Terminal
            | Self::HiddenColour
            | Self::Invalid
            | Self::MixedScript
            | Self::LookAlike => true,
            Self::Colour | Self::Private | Self::Belonging => false,
        }
    }
}

/// A finding in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flag {
    /// The sort of thing that was found.
    pub kind: FlagKind,
    /// Byte offset in the input of the first one.
    pub at: usize,
    /// The number of such findings in the text.
    pub count: usize,
    /// True if the finding was removed; otherwise it is still in the cleaned text.
    pub removed: bool,
    what: &'static str,
}

impl Flag {
    /// Bytes that are no UTF-8, the first of them at `at`.
    pub(super) fn invalid_bytes(at: usize) -> Self {
        Self {
            kind: FlagKind::Invalid,
            at,
            count: 1,
            removed: true,
            what: "stretches of invalid UTF-8",
        }
    }

    /// One sentence for a person.
    #[must_use]
    pub fn to_sentence(&self) -> String {
        self.to_string()
    }
}

impl fmt::Display for Flag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, count, what, .. } = self;
        let fate = if self.removed { "removed" } else { "kept" };
        write!(f, "{what}: {count} {fate}, first at byte {at}")
    }
}

/// Flags gathered while a text is walked; as many as there are sorts of things at most.
#[derive(Clone, Debug, Default)]
pub(super) struct Flags(Vec<Flag>);

impl Flags {
    pub(super) fn add_flag(
        &mut self,
        kind: FlagKind,
        what: &'static str,
        at: usize,
        removed: bool,
    ) {
        let same =
            |flag: &&mut Flag| flag.kind == kind && flag.what == what && flag.removed == removed;
        match self.0.iter_mut().find(same) {
            Some(flag) => {
                flag.count += 1;
                flag.at = flag.at.min(at);
            }
            None => self.0.push(Flag { kind, at, count: 1, removed, what }),
        }
    }

    pub(super) fn into_vec(self) -> Vec<Flag> {
        self.0
    }
}
