//! Finds words in all messages. The latest matches come first.

use std::collections::HashMap;

use gnoma_core::store::{EntryId, Hit, SessionId};
use rusqlite::Connection;

use crate::{
    entry::parse_record,
    error::{Result, SqliteResultExt},
    text::{self, clamp_size},
};

/// Most words of a query; more find nothing that fewer do not.
const MAX_WORDS: usize = 16;

/// Shortest beginning of a word that is searched for; shorter ones begin half of the dictionary.
const BEGINNING_CHARS: usize = 4;

/// Finds looked at before one stops.
const MAX_FINDS: usize = 5000;

/// Finds told of one session, so that one long session does not hide the others.
const PER_SESSION: usize = 3;

/// The number of characters shown around a find.
const SNIPPET_CHARS: usize = 160;

/// Shown before the find itself.
const BEFORE_CHARS: usize = 50;

/// At most `max` entries where all words of `query` occur.
pub(crate) fn search_entries(connection: &Connection, query: &str, max: usize) -> Result<Vec<Hit>> {
    let words = words_of(query);
    let Some(whole_words) = build_expression(&words) else { return Ok(Vec::new()) };
    let mut entries = query_index(connection, &whole_words, max)?;
    let may_begin = words.last().is_some_and(|word| word.chars().count() >= BEGINNING_CHARS);
    if entries.is_empty() && may_begin {
        // A beginning stands for many words and takes longer: only where nothing has it whole.
        entries = self::query_index(connection, &format!("{whole_words}*"), max)?;
    }
    Ok(entries.into_iter().map(|entry| build_hit(entry, &words)).collect())
}

fn build_hit(found: MatchingEntry, words: &[&str]) -> Hit {
    let record = parse_record(&found.body);
    let said = record.as_ref().and_then(text::searchable_text).unwrap_or_default();
    Hit {
        session: SessionId::new(found.session),
        title: found.title,
        entry: EntryId(found.entry),
        at_ms: found.at_ms,
        snippet: build_snippet(&said, words),
    }
}

struct MatchingEntry {
    entry: i64,
    at_ms: i64,
    body: String,
    session: String,
    title: String,
}

fn query_index(
    connection: &Connection,
    expression: &str,
    max: usize,
) -> Result<Vec<MatchingEntry>> {
    let mut ids = connection
        .prepare_cached("SELECT rowid FROM words WHERE words MATCH ?1 ORDER BY rowid DESC LIMIT ?2")
        .map_sqlite_error()?;
    let mut rows =
        ids.query(rusqlite::params![expression, clamp_size(MAX_FINDS)]).map_sqlite_error()?;
    let mut of_session = HashMap::<i64, usize>::new();
    let mut found = Vec::new();
    while found.len() < max
        && let Some(row) = rows.next().map_sqlite_error()?
    {
        let entry: i64 = row.get(0).map_sqlite_error()?;
        let Some(owner) = entry_owner(connection, entry)? else { continue };
        let told = of_session.entry(owner).or_default();
        if *told < PER_SESSION {
            *told += 1;
            found.extend(matching_entry(connection, entry)?);
        }
    }
    Ok(found)
}

fn entry_owner(connection: &Connection, entry: i64) -> Result<Option<i64>> {
    use rusqlite::OptionalExtension;
    connection
        .prepare_cached("SELECT session FROM entry WHERE id = ?1")
        .and_then(|mut find| find.query_row([entry], |row| row.get(0)).optional())
        .map_sqlite_error()
}

fn matching_entry(connection: &Connection, entry: i64) -> Result<Option<MatchingEntry>> {
    use rusqlite::OptionalExtension;
    connection
        .prepare_cached(
            "SELECT entry.at_ms, entry.body, session.id, coalesce(session.title, '') \
             FROM entry JOIN session ON session.number = entry.session \
             WHERE entry.id = ?1 AND session.deleted = 0",
        )
        .and_then(|mut find| {
            find.query_row([entry], |row| {
                Ok(MatchingEntry {
                    entry,
                    at_ms: row.get(0)?,
                    body: row.get(1)?,
                    session: row.get(2)?,
                    title: row.get(3)?,
                })
            })
            .optional()
        })
        .map_sqlite_error()
}

fn words_of(query: &str) -> Vec<&str> {
    query
        .split_whitespace()
        .filter(|word| word.chars().any(char::is_alphanumeric))
        .take(MAX_WORDS)
        .collect()
}

/// The query in the index's language: every word quoted, so that nothing in it is syntax.
fn build_expression(words: &[&str]) -> Option<String> {
    let quoted: Vec<_> =
        words.iter().map(|word| format!("\"{}\"", word.replace(['"', '\0'], " "))).collect();
    (!quoted.is_empty()).then(|| quoted.join(" "))
}

/// The surroundings of the first word that is found as it was typed.
fn build_snippet(said: &str, words: &[&str]) -> String {
    let lower = said.to_lowercase();
    let at = words.iter().find_map(|word| lower.find(&word.to_lowercase())).unwrap_or(0);
    // Lower case may have another length: the place is near enough for a snippet.
    let end = said.floor_char_boundary(at);
    let before = said.get(..end).unwrap_or_default();
    let from = before.char_indices().rev().nth(BEFORE_CHARS).map_or(0, |(index, _)| index);
    let cut = said.get(from..).unwrap_or_default();
    let line = text::one_line(cut, SNIPPET_CHARS);
    if from > 0 { format!("…{line}") } else { line }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn session_search_query_is_never_a_syntax_error(query in "\\PC{0,40}|[\"*^:(){} A-Z+-]{0,30}") {
            let connection = Connection::open_in_memory().unwrap();
            connection.execute_batch(crate::schema::TREE).unwrap();
            connection.execute_batch(crate::schema::WORDS).unwrap();
            connection.execute("INSERT INTO words(rowid, text) VALUES (1, 'a b c')", []).unwrap();
            search_entries(&connection, &query, 10).unwrap();
        }

        #[test]
        fn session_search_snippet_is_one_short_line(said in "\\PC{0,400}", word in "\\PC{1,5}") {
            let line = build_snippet(&said, &[&word]);
            prop_assert!(line.chars().count() <= SNIPPET_CHARS + 2);
            prop_assert!(!line.contains('\n'));
        }
    }
}
