//! Adds what was imported as a new session. Its entries get ids of this store, and what they say
//! about each other follows; what points outside the import is left out.

use std::collections::HashMap;

use gnoma_core::store::{Entry, EntryId, NewSession, Parent, Record, ResultId, SessionId};
use rusqlite::{Connection, params};

use crate::{
    entry::PreparedRecord,
    error::{Result, SqliteResultExt},
    import::ImportedTranscript,
    lock::Identity,
    options::RedactHook,
    origin, redact, results, session, session_row,
};

/// The result of an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportOutcome {
    /// The session it is now.
    pub session: SessionId,
    /// True if the session was added. Otherwise it had been added before, and nothing was changed.
    pub is_new: bool,
}

/// An import ready to be written. Bodies are made when the ids are known.
pub(crate) struct PreparedImport {
    title: Option<String>,
    origin: Option<String>,
    entries: Vec<Entry>,
    results: Vec<(ResultId, results::PackedResult)>,
}

/// Redacts everything that was imported.
pub(crate) fn prepare_import(
    redact: &RedactHook,
    imported: ImportedTranscript,
) -> Result<PreparedImport> {
    let ImportedTranscript { title, origin, entries, results, project: _, skipped: _ } = imported;
    Ok(PreparedImport {
        title: title.map(|title| redact::redact_words(redact, &title)),
        origin: origin.as_deref().map(origin::hash_origin),
        entries: entries
            .into_iter()
            .map(|entry| {
                Ok(Entry { record: redact::redact_record(redact, &entry.record)?, ..entry })
            })
            .collect::<Result<_>>()?,
        results: results
            .into_iter()
            .map(|(id, text)| Ok((id, results::prepare_result(redact, &text)?)))
            .collect::<Result<_>>()?,
    })
}

/// Adds an import, unless it is there already.
pub(crate) fn insert_import(
    connection: &Connection,
    me: &Identity,
    project: &str,
    ready: PreparedImport,
    at_ms: i64,
) -> Result<ImportOutcome> {
    let PreparedImport { title, origin, entries, results } = ready;
    if let Some(hash) = &origin
        && let Some(session) = origin::find_session(connection, hash)?
    {
        return Ok(ImportOutcome { session, is_new: false });
    }
    let session = session::begin_session(
        connection,
        project,
        &NewSession { at_ms, title, ..NewSession::default() },
    )?;
    let number = session_row::find_session(connection, &session)?.number;
    if let Some(hash) = &origin {
        origin::insert_origin(connection, number, hash)?;
    }
    results::add_imported_results(connection, &session, &results)?;
    add_entries(connection, me, &session, entries, at_ms)?;
    // Begun now, but last added to when it was.
    connection
        .execute(
            "UPDATE session SET changed_ms = coalesce((SELECT max(at_ms) FROM entry \
             WHERE session = ?1), changed_ms) WHERE number = ?1",
            params![number],
        )
        .map_sqlite_error()?;
    Ok(ImportOutcome { session, is_new: true })
}

fn add_entries(
    connection: &Connection,
    me: &Identity,
    session: &SessionId,
    entries: Vec<Entry>,
    now_ms: i64,
) -> Result<()> {
    let mut ids = HashMap::<EntryId, EntryId>::new();
    let mut latest = EntryId(0);
    for entry in entries {
        let Some(record) = remap_ids(entry.record, &ids, latest) else { continue };
        let prepared = PreparedRecord::new(record)?;
        let at_ms = entry.at_ms.clamp(0, now_ms.max(0));
        latest = session::append_entry(connection, me, session, Parent::Tip, at_ms, &prepared)?;
        ids.insert(entry.id, latest);
    }
    Ok(())
}

/// The record with this store's ids. A summary without a sound end stands for all before it.
fn remap_ids(record: Record, ids: &HashMap<EntryId, EntryId>, latest: EntryId) -> Option<Record> {
    Some(match record {
        Record::Summary { text, up_to } => {
            Record::Summary { text, up_to: ids.get(&up_to).copied().unwrap_or(latest) }
        }
        Record::Rewound { from } => Record::Rewound { from: *ids.get(&from)? },
        Record::Tombstone { of } => Record::Tombstone { of: *ids.get(&of)? },
        // Kept states of the workspace stay where they were made.
        Record::Checkpoint { .. } => return None,
        Record::Message(_)
        | Record::Asked { .. }
        | Record::Routed { .. }
        | Record::Judged { .. }
        | Record::ToolEnded(_)
        | Record::Used(_)
        | Record::Paid { .. }
        | Record::Checked { .. }
        | Record::Title { .. }
        | Record::Interrupted { .. } => record,
    })
}
