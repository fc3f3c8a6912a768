//! Adds imported entries to a session. They get ids of this store, and what they say about each
//! other follows; what points outside the import is left out.

use std::collections::HashMap;

use gnoma_core::store::{Entry, EntryId, Parent, Record, SessionId};
use rusqlite::Connection;

use crate::{
    error::Result,
    lock::Identity,
    options::Redact,
    redact,
    session::{self, Prepared},
};

/// Redacts all records. Bodies are made when the ids are known.
pub(crate) fn prepare(redact: &Redact, entries: Vec<Entry>) -> Result<Vec<Entry>> {
    entries
        .into_iter()
        .map(|entry| Ok(Entry { record: redact::record(redact, &entry.record)?, ..entry }))
        .collect()
}

/// Adds the entries one after the other.
pub(crate) fn add(
    connection: &Connection,
    me: &Identity,
    session: &SessionId,
    entries: Vec<Entry>,
) -> Result<()> {
    let mut ids = HashMap::<EntryId, EntryId>::new();
    let mut latest = EntryId(0);
    for entry in entries {
        let Some(record) = renamed(entry.record, &ids, latest) else { continue };
        let prepared = Prepared::new(record)?;
        latest = session::append(connection, me, session, Parent::Tip, entry.at_ms, &prepared)?;
        ids.insert(entry.id, latest);
    }
    Ok(())
}

/// The record with this store's ids. A summary without a sound end stands for all before it.
fn renamed(record: Record, ids: &HashMap<EntryId, EntryId>, latest: EntryId) -> Option<Record> {
    Some(match record {
        Record::Summary { text, up_to } => {
            Record::Summary { text, up_to: ids.get(&up_to).copied().unwrap_or(latest) }
        }
        Record::Rewound { from } => Record::Rewound { from: *ids.get(&from)? },
        Record::Tombstone { of } => Record::Tombstone { of: *ids.get(&of)? },
        // Kept states of the workspace stay where they were made.
        Record::Checkpoint { .. } => return None,
        Record::Message(_)
        | Record::Routed { .. }
        | Record::Judged { .. }
        | Record::Used(_)
        | Record::Title { .. }
        | Record::Interrupted { .. } => record,
    })
}
