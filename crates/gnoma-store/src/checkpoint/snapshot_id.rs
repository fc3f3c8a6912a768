//! Names of snapshots.

use std::{
    fmt,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};

use super::{error::Error, hash::Hash};

/// Digits of an id that give its time in milliseconds, and all of them.
const TIME_DIGITS: usize = 11;
const ID_DIGITS: usize = 16;

/// Names a snapshot of a workspace. Ids sort by time.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SnapshotId(String);

impl SnapshotId {
    /// An id for this moment that sorts after `last`.
    pub(super) fn next(now_ns: i128, last: Option<&Self>, salt: &str) -> Self {
        let now_ms = u64::try_from(now_ns / 1_000_000).unwrap_or(0);
        let floor = last.map_or(0, |last| last.millis() + 1);
        let digest = Hash::of_bytes(salt.as_bytes()).to_string();
        let random = digest.get(..ID_DIGITS - TIME_DIGITS).unwrap_or_default();
        Self(format!("{:011x}{random}", now_ms.max(floor)))
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn millis(&self) -> u64 {
        self.0.get(..TIME_DIGITS).and_then(|d| u64::from_str_radix(d, 16).ok()).unwrap_or(0)
    }

    /// Returns when the snapshot was taken.
    #[must_use]
    pub fn taken_at(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.millis())
    }
}

impl TryFrom<String> for SnapshotId {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        let digits = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if text.len() == ID_DIGITS && text.bytes().all(digits) {
            Ok(Self(text))
        } else {
            Err(Error::Unknown(text))
        }
    }
}

impl std::str::FromStr for SnapshotId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        text.to_owned().try_into()
    }
}

impl From<SnapshotId> for String {
    fn from(id: SnapshotId) -> Self {
        id.0
    }
}

impl fmt::Display for SnapshotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
