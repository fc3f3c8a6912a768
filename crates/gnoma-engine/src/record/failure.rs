//! Failures of the store while a session is written, and whether another try may help.

use gnoma_core::store::StoreErrorKind;

/// The reason why nothing is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordingFailure {
    /// Trying again may help.
    ForNow,
    /// Trying again would help nobody, or harm.
    ForGood,
}

impl RecordingFailure {
    pub(super) fn because_of(kind: &StoreErrorKind) -> Self {
        match kind {
            StoreErrorKind::Full
            | StoreErrorKind::ReadOnly
            | StoreErrorKind::Busy
            | StoreErrorKind::Io => Self::ForNow,
            StoreErrorKind::Held { .. }
            | StoreErrorKind::Damaged
            | StoreErrorKind::NotFound
            | StoreErrorKind::Exists
            | StoreErrorKind::InvalidId
            | StoreErrorKind::TooNew
            | StoreErrorKind::Foreign => Self::ForGood,
        }
    }

    pub(super) fn remedy(self) -> &'static str {
        match self {
            Self::ForNow => "you can keep working; what is missing is saved as soon as possible",
            Self::ForGood => "you can keep working, but nothing more of this session is saved",
        }
    }
}
