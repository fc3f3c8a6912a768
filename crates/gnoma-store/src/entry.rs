//! The record of an entry and the JSON it is stored as.

use gnoma_core::store::{Record, StoreError, StoreErrorKind};
use serde::de::IgnoredAny;

use crate::{error::Result, json_repair};

/// Largest entry; the database itself ends at a gigabyte.
const MAX_ENTRY_BYTES: usize = 256 * 1024 * 1024;

/// Bytes that are read in trying to make sense of an entry that is sound JSON: what a newer version wrote
/// costs that each time.
const MAX_BYTES_TRIED: usize = 24 << 20;

/// A record ready to be written.
pub(crate) struct PreparedRecord {
    /// `None` for what this version does not know.
    pub(crate) record: Option<Record>,
    pub(crate) body: String,
}

impl PreparedRecord {
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
    pub(crate) fn of_body(body: &str) -> Option<Self> {
        let record = Record::from_json(body).ok();
        let is_sound = record.is_some() || is_json(body);
        is_sound.then(|| Self { record, body: body.to_owned() })
    }

    /// The record as it is stored.
    pub(crate) fn into_body(self) -> String {
        self.body
    }
}

/// Reads a stored record, also where one wrong letter is in the way; `None` for what a newer version wrote
/// or what cannot be read. It stays where it is and is passed over: the file is no less sound for it.
pub(crate) fn parse_record(body: &str) -> Option<Record> {
    Record::from_json(body).ok().or_else(|| {
        // No version writes what is no JSON: that is damage alone.
        let most = if is_json(body) { MAX_BYTES_TRIED } else { json_repair::MAX_BYTES_TRIED };
        json_repair::repair_entry(body, most)
    })
}

fn is_json(body: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(body).is_ok()
}

/// Reports whether a body is a record of this version, to the letter.
pub(crate) fn is_as_written(body: &str) -> bool {
    Record::from_json(body).is_ok()
}

/// Reports whether a body that cannot be read would be a message.
pub(crate) fn may_be_message(body: &str) -> bool {
    body.starts_with("{\"message\":")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gnoma_core::{CallId, Message, RawJson, ToolCall, ToolResult};

    use super::*;

    #[test]
    fn session_entry_with_a_corrupt_byte_is_repaired() {
        let call = ToolCall::new(CallId::new("call_0"), "bash", RawJson::empty_object());
        let results = vec![ToolResult::from_text(&call, "output of 5\n".repeat(150), false)];
        let record = Record::Message(Arc::new(Message::results(results).unwrap()));
        let body = PreparedRecord::new(record.clone()).unwrap().into_body();
        let harms =
            [("role", "r le"), ("text", "teXt"), ("name", "Jame"), ("[{\"text", "[I\"text")];
        for (was, is) in harms {
            let harmed = body.replacen(was, is, 1);
            assert!(harmed != body && parse_record(&harmed).as_ref() == Some(&record), "{is}");
        }
        let harmed = body.replacen("5\\noutput", "5\\Coutput", 1);
        let Some(Record::Message(found)) = parse_record(&harmed) else { panic!("{harmed}") };
        assert_eq!(found.tool_results().count(), 1);
    }
}
