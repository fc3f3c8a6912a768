//! Why a text is not understood.

use std::fmt;

/// The place at which parsing stopped, and the reason. No part of the text may be taken as understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Byte of the text.
    pub at: usize,
    /// The problem at that place.
    pub kind: ParseErrorKind,
}

/// The problem with a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParseErrorKind {
    /// Other text must stand here.
    Expected {
        /// The text that would be right.
        wanted: &'static str,
        /// The character that stands there; `None` at the end of the text.
        found: Option<char>,
    },
    /// The construct that begins here never ends.
    Unterminated(&'static str),
    /// A character that commands have no use for and that hides others.
    ControlCharacter(char),
    /// The text can be read in more than one way, or depends on settings that are not known.
    Ambiguous(&'static str),
    /// Larger than what is looked at.
    Limit {
        /// The kind of part of which there are too many.
        what: &'static str,
        /// The number that is allowed.
        limit: usize,
    },
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.at;
        match &self.kind {
            ParseErrorKind::Expected { wanted, found: Some(found) } => {
                write!(f, "`{}` at byte {at} where {wanted} is expected", found.escape_debug())
            }
            ParseErrorKind::Expected { wanted, found: None } => {
                write!(f, "the text ends where {wanted} is expected")
            }
            ParseErrorKind::Unterminated(what) => write!(f, "{what} at byte {at} is not closed"),
            ParseErrorKind::ControlCharacter(found) => {
                write!(f, "control character `{}` at byte {at}", found.escape_unicode())
            }
            ParseErrorKind::Ambiguous(why) => write!(f, "{why} at byte {at}"),
            ParseErrorKind::Limit { what, limit } => {
                write!(f, "more than {limit} {what}, reached at byte {at}")
            }
        }
    }
}

impl std::error::Error for ParseError {}
