//! What is known of a variable.

use std::sync::Arc;

use super::Field;
use super::join::MAX_CHOICES;
use crate::facts::FilePlace;

/// The facts that are known about a variable's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// The value is exactly this text.
    Text(String),
    /// The value is some number.
    Number,
    /// The value is one of these texts.
    OneOf(Vec<String>),
    /// A name that a program lists, of something at one of these places.
    Listed(Arc<[FilePlace]>),
    /// One of the names that fit a pattern.
    Match(String),
    /// The number of the shell, or of the process that it started last.
    Process {
        /// True if the value is empty as long as nothing was started.
        may_be_empty: bool,
    },
    /// The variable was set to an unknown value.
    Unknown,
}

impl Value {
    /// True if the value is certainly a plain number.
    pub(crate) fn is_number(&self) -> bool {
        match self {
            Self::Number => true,
            Self::Text(text) => is_number(text),
            Self::OneOf(texts) => texts.iter().all(|text| is_number(text)),
            Self::Process { may_be_empty } => !may_be_empty,
            Self::Match(_) | Self::Listed(_) | Self::Unknown => false,
        }
    }

    /// Returns the value that is known if either this or `other` may be true.
    pub(crate) fn merge_with(&self, other: &Self) -> Self {
        if self == other {
            return self.clone();
        }
        if self.is_number() && other.is_number() {
            return Self::Number;
        }
        match (self.texts(), other.texts()) {
            (Some(texts), Some(more)) => Self::one_of(texts.iter().chain(more).cloned()),
            _ => Self::Unknown,
        }
    }

    /// One of `texts`, as long as these are few.
    pub(crate) fn one_of(texts: impl IntoIterator<Item = String>) -> Self {
        let mut choices: Vec<String> = Vec::new();
        for text in texts {
            if !choices.contains(&text) {
                choices.push(text);
            }
            if choices.len() > MAX_CHOICES {
                return Self::Unknown;
            }
        }
        match choices.as_slice() {
            [] => Self::Unknown,
            [text] => Self::Text(text.clone()),
            _ => Self::OneOf(choices),
        }
    }

    /// Returns the known value of a variable that gets the expansion of `field`, as one word.
    pub(crate) fn from_field(field: &Field) -> Self {
        match field {
            Field::Known(text) => Self::Text(text.clone()),
            Field::Pattern(pattern) => Self::Match(pattern.clone()),
            Field::OneOf { choices, .. } => Self::one_of(choices.iter().cloned()),
            Field::Listed { places, .. } => Self::Listed(Arc::clone(places)),
            Field::Process { may_be_empty, .. } => Self::Process { may_be_empty: *may_be_empty },
            Field::Unknown { .. } => Self::Unknown,
        }
    }

    fn texts(&self) -> Option<&[String]> {
        match self {
            Self::Text(text) => Some(std::slice::from_ref(text)),
            Self::OneOf(texts) => Some(texts),
            Self::Number
            | Self::Match(_)
            | Self::Listed(_)
            | Self::Process { .. }
            | Self::Unknown => None,
        }
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}
