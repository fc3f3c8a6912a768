//! Walks from a tip towards the start, a page at a time.

use gnoma_core::store::{Entry, EntryId, Page, PageRequest, SessionId};
use rusqlite::{Connection, OptionalExtension};

use crate::{
    entry::parse_record,
    error::{Result, SqliteResultExt, damaged_error},
    session_row,
};

/// Reads the slice `request` asks for.
pub(crate) fn load_page(
    connection: &Connection,
    id: &SessionId,
    request: PageRequest,
) -> Result<Page> {
    let known = session_row::find_session(connection, id)?;
    let tip = match request.tip {
        Some(tip) => Some(session_row::check_entry_belongs(connection, &known, id, tip)?),
        None => known.tip,
    };
    let mut page = back_from(connection, tip, request)?;
    page.entries.reverse();
    Ok(page)
}

fn back_from(connection: &Connection, tip: Option<i64>, request: PageRequest) -> Result<Page> {
    let mut page = Page::default();
    let mut bytes = 0_usize;
    let mut next = tip;
    while let Some(id) = next {
        let node = load_node(connection, id)?;
        bytes = bytes.saturating_add(node.body.len());
        let full = page.entries.len() >= request.max_entries.max(1)
            || (bytes > request.max_bytes && !page.entries.is_empty());
        if full {
            page.earlier = Some(EntryId(id));
            break;
        }
        if !node.hidden
            && let Some(record) = parse_record(&node.body)
        {
            let parent = node.parent.map(EntryId);
            page.entries.push(Entry { id: EntryId(id), parent, at_ms: node.at_ms, record });
        }
        // Parents are older. Whatever a damaged file says, the walk ends.
        if node.parent.is_some_and(|parent| parent >= id) {
            return Err(damaged_error(&format!("entry {id} follows a later one")));
        }
        next = node.parent;
    }
    Ok(page)
}

/// One row of the tree.
pub(crate) struct Node {
    /// The entry before this one.
    pub(crate) parent: Option<i64>,
    /// The time at which the entry was made, in milliseconds since 1970.
    pub(crate) at_ms: i64,
    /// The record as JSON.
    pub(crate) body: String,
    /// A tombstone hides it.
    pub(crate) hidden: bool,
}

/// Reads one row of the tree.
pub(crate) fn load_node(connection: &Connection, id: i64) -> Result<Node> {
    connection
        .prepare_cached("SELECT parent, at_ms, body, hidden FROM entry WHERE id = ?1")
        .and_then(|mut find| {
            find.query_row([id], |row| {
                Ok(Node {
                    parent: row.get(0)?,
                    at_ms: row.get(1)?,
                    body: row.get(2)?,
                    hidden: row.get(3)?,
                })
            })
            .optional()
        })
        .map_sqlite_error()?
        .ok_or_else(|| damaged_error(&format!("entry {id} is missing")))
}
