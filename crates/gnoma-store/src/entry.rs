//! The record of an entry and the JSON it is stored as.

use gnoma_core::store::{Record, StoreError, StoreErrorKind};
use serde::de::IgnoredAny;

use crate::error::Result;

/// Largest entry; the database itself ends at a gigabyte.
const MAX_ENTRY_BYTES: usize = 256 * 1024 * 1024;

/// A record ready to be written.
pub(crate) struct Prepared {
    /// `None` for what this version does not know.
    pub(crate) record: Option<Record>,
    pub(crate) body: String,
}

impl Prepared {
    /// Does all that needs no database. `record` is redacted already.
    pub(crate) fn new(record: Record) -> Result<Self> {
        let body = serde_json::to_string(&record).map_err(|error| {
            StoreError::new(StoreErrorKind::Io, format!("an entry cannot be saved: {error}"))
        })?;
        if body.len() > MAX_ENTRY_BYTES {
            return Err(StoreError::new(
                StoreErrorKind::Io,
                format!("an entry of {} MB is too large to save", body.len() / (1024 * 1024)),
            ));
        }
        Ok(Self { record: Some(record), body })
    }

    /// A body as another database held it: `None` when it is no JSON at all.
    pub(crate) fn of_body(body: String) -> Option<Self> {
        let record = parse(&body);
        let is_sound = record.is_some() || serde_json::from_str::<IgnoredAny>(&body).is_ok();
        is_sound.then_some(Self { record, body })
    }

    /// The record as it is stored.
    pub(crate) fn into_body(self) -> String {
        self.body
    }
}

/// Reads a stored record; `None` for what a newer version wrote or what cannot be read. It stays
/// where it is and is passed over: the file is no less sound for it.
pub(crate) fn parse(body: &str) -> Option<Record> {
    serde_json::from_str(body).ok()
}

/// Whether a body that cannot be read would be a message.
pub(crate) fn may_be_message(body: &str) -> bool {
    body.starts_with("{\"message\":")
}
