//! A finding before its name is looked up.

use std::ops::Range;

/// The detector that made a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Label {
    /// A known value, by index.
    Known(usize),
    /// A rule, by index.
    Rule(usize),
    /// A place where secrets stand.
    Place(&'static str),
    /// A name or the look of the value.
    Generic(&'static str),
}

impl Label {
    /// The lower, the more it says about the secret.
    pub(crate) fn strength(&self) -> u8 {
        match self {
            Self::Known(_) => 0,
            Self::Rule(_) => 1,
            Self::Place(_) => 2,
            Self::Generic(_) => 3,
        }
    }
}

/// A finding before its name is looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RawFinding {
    /// The range of the finding.
    pub(crate) span: Range<usize>,
    /// The detector that made the finding.
    pub(crate) label: Label,
}
