//! Words after expansion, as far as they are certain.

use std::fmt;
use std::sync::Arc;

use crate::facts::FilePlace;

/// One word a program gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    /// The word is exactly this text.
    Known(String),
    /// The names that fit a pattern, or the pattern itself when none does.
    Pattern(String),
    /// The word is one of these texts.
    OneOf {
        /// As it is written.
        written: String,
        /// Each of them whole.
        choices: Vec<String>,
    },
    /// Names that a program lists.
    Listed {
        /// As it is written.
        written: String,
        /// The text with which each name certainly begins.
        start: String,
        /// The places of the files that have these names.
        places: Arc<[FilePlace]>,
        /// One word for each name, whatever characters are in it.
        exact: bool,
    },
    /// The number of the shell, or of the process that it started last.
    Process {
        /// As it is written.
        written: String,
        /// True if the value is empty as long as nothing was started.
        may_be_empty: bool,
        /// True if no word is there when the value is empty.
        may_vanish: bool,
    },
    /// Only running would show it.
    Unknown {
        /// As it is written.
        written: String,
        /// The text with which the word certainly begins.
        start: String,
        /// True if the word may become several words, or none.
        splits: bool,
        /// True if the word certainly begins with something else than `-`, such as a digit.
        plain: bool,
        /// True if the shell looks up the names that fit the word.
        is_pattern: bool,
    },
}

impl Field {
    /// The word when it is certain.
    pub(crate) fn known_text(&self) -> Option<&str> {
        match self {
            Self::Known(text) => Some(text),
            Self::Pattern(_)
            | Self::OneOf { .. }
            | Self::Listed { .. }
            | Self::Process { .. }
            | Self::Unknown { .. } => None,
        }
    }

    /// Returns the text with which the word certainly begins.
    pub(crate) fn known_start(&self) -> &str {
        match self {
            Self::Known(text) => text,
            Self::Pattern(text) => {
                text.find(['*', '?', '[', '(']).and_then(|end| text.get(..end)).unwrap_or(text)
            }
            Self::OneOf { choices, .. } => common_start(choices),
            Self::Process { .. } => "",
            Self::Listed { start, .. } | Self::Unknown { start, .. } => start,
        }
    }

    /// True if a program could take the word, or one of the words it becomes, for an option.
    pub(crate) fn may_be_option(&self) -> bool {
        let start = self.known_start();
        match self {
            Self::Pattern(text) if begins_with_letter(text) => false,
            Self::Known(_) | Self::Pattern(_) => start.is_empty() || start.starts_with('-'),
            Self::OneOf { choices, .. } => choices.iter().any(|text| text.starts_with('-')),
            Self::Listed { exact, .. } => !exact || start.is_empty() || start.starts_with('-'),
            Self::Process { may_vanish, .. } => *may_vanish,
            Self::Unknown { splits, plain, .. } => {
                *splits || start.starts_with('-') || (start.is_empty() && !plain)
            }
        }
    }

    /// True if the word may become several words, or none.
    pub(crate) fn may_be_many(&self) -> bool {
        match self {
            Self::Known(_) | Self::OneOf { .. } => false,
            Self::Pattern(_) | Self::Listed { .. } => true,
            Self::Process { may_vanish, .. } => *may_vanish,
            Self::Unknown { splits, .. } => *splits,
        }
    }

    /// True if the shell looks up the names that fit the word.
    pub(crate) fn is_pattern(&self) -> bool {
        matches!(self, Self::Pattern(_) | Self::Unknown { is_pattern: true, .. })
    }

    /// All it can be, when these are few.
    pub(crate) fn possible_texts(&self) -> Option<Vec<&str>> {
        match self {
            Self::Known(text) => Some(vec![text]),
            Self::OneOf { choices, .. } => Some(choices.iter().map(String::as_str).collect()),
            Self::Pattern(_)
            | Self::Listed { .. }
            | Self::Process { .. }
            | Self::Unknown { .. } => None,
        }
    }

    /// A word of which nothing is known.
    pub(crate) fn unknown_word(written: &str) -> Self {
        Self::Unknown {
            written: written.to_owned(),
            start: String::new(),
            splits: true,
            plain: false,
            is_pattern: false,
        }
    }

    /// One word that begins with `start`.
    pub(crate) fn from_known_start(written: &str, start: &str) -> Self {
        Self::Unknown {
            written: written.to_owned(),
            start: start.to_owned(),
            splits: false,
            plain: false,
            is_pattern: false,
        }
    }

    /// Returns the rest of the word after `prefix`, if the word certainly begins with it.
    pub(crate) fn strip_prefix(&self, prefix: &str) -> Option<Self> {
        Some(match self {
            Self::Known(text) => Self::Known(text.strip_prefix(prefix)?.to_owned()),
            Self::Pattern(text) => Self::Pattern(text.strip_prefix(prefix)?.to_owned()),
            Self::OneOf { written, choices } => {
                let rest = |text: &String| text.strip_prefix(prefix).map(str::to_owned);
                let choices: Option<Vec<String>> = choices.iter().map(rest).collect();
                Self::OneOf { written: written.clone(), choices: choices? }
            }
            Self::Listed { written, start, .. } => {
                Self::from_known_start(written, start.strip_prefix(prefix)?)
            }
            Self::Process { written, .. } => {
                Self::from_known_start(written, "".strip_prefix(prefix)?)
            }
            Self::Unknown { written, start, splits, is_pattern, .. } => Self::Unknown {
                written: written.clone(),
                start: start.strip_prefix(prefix)?.to_owned(),
                splits: *splits,
                plain: false,
                is_pattern: *is_pattern,
            },
        })
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(text) | Self::Pattern(text) => f.write_str(text),
            Self::OneOf { written, .. }
            | Self::Listed { written, .. }
            | Self::Process { written, .. }
            | Self::Unknown { written, .. } => f.write_str(written),
        }
    }
}

/// True if a pattern such as `[h]ttp` only fits names that begin with a letter or digit.
fn begins_with_letter(pattern: &str) -> bool {
    let set = pattern.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    set.is_some_and(|(set, _)| {
        !set.is_empty() && set.chars().all(|letter| letter.is_ascii_alphanumeric())
    })
}

/// Returns the common beginning of all texts.
fn common_start(texts: &[String]) -> &str {
    let Some((first, rest)) = texts.split_first() else { return "" };
    let is_common = |end: &usize| {
        first.get(..*end).is_some_and(|start| rest.iter().all(|text| text.starts_with(start)))
    };
    let end = (0..=first.len()).rev().find(is_common).unwrap_or(0);
    first.get(..end).unwrap_or_default()
}
