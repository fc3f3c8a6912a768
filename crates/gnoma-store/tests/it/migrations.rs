//! Databases of every older version come forward with all they hold. The tables of old versions
//! stand here as they were shipped and never change.

use std::{path::Path, sync::Arc};

use gnoma_core::store::{Record, ResultId, ResultStore, SessionId, SessionStore};
use rusqlite::{Connection, params};

use crate::support::{append, is_legal, load, open, options, says, turn, wait};

const TREE: &str = "
CREATE TABLE session (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  project TEXT NOT NULL,
  title TEXT,
  created_ms INTEGER NOT NULL,
  changed_ms INTEGER NOT NULL,
  tip INTEGER,
  fork_session TEXT,
  fork_entry INTEGER,
  deleted INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE entry (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  session INTEGER NOT NULL REFERENCES session(number),
  parent INTEGER,
  at_ms INTEGER NOT NULL,
  body TEXT NOT NULL
);
CREATE INDEX entry_of_session ON entry(session);
";

const WORDS: &str = "
ALTER TABLE session ADD COLUMN messages INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN input INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN output INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN cache_read INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN cache_write INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN reasoning INTEGER NOT NULL DEFAULT 0;
ALTER TABLE entry ADD COLUMN hidden INTEGER NOT NULL DEFAULT 0;
CREATE VIRTUAL TABLE words USING fts5(
  text, content='', contentless_delete=1, tokenize='unicode61 remove_diacritics 2'
);
";

const HOLDS: &str = "
CREATE TABLE hold (
  session INTEGER PRIMARY KEY REFERENCES session(number) ON DELETE CASCADE,
  token TEXT NOT NULL,
  pid INTEGER NOT NULL,
  host TEXT NOT NULL,
  boot TEXT NOT NULL,
  space TEXT NOT NULL,
  started TEXT NOT NULL,
  since_ms INTEGER NOT NULL,
  seen_ms INTEGER NOT NULL
);
CREATE INDEX session_by_change ON session(changed_ms);
";

const RESULTS: &str = "
CREATE TABLE result (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  session INTEGER NOT NULL REFERENCES session(number),
  number INTEGER NOT NULL,
  entry INTEGER,
  bytes INTEGER NOT NULL
);
CREATE UNIQUE INDEX result_of_session ON result(session, number);
CREATE INDEX result_of_entry ON result(entry);
CREATE TABLE piece (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  result INTEGER NOT NULL REFERENCES result(id) ON DELETE CASCADE,
  start INTEGER NOT NULL,
  body BLOB NOT NULL
);
CREATE UNIQUE INDEX piece_of_result ON piece(result, start);
CREATE TABLE indexed (
  up_to INTEGER NOT NULL
);
INSERT INTO indexed(up_to) SELECT coalesce(max(id), 0) FROM entry;
";

/// The version before today's.
const LAST_OLD: usize = 4;

/// The one session of an old database.
pub(crate) const SESSION: &str = "20260101-000000-abcdef";

/// Writes a database of `version` with one session of `turns` turns.
pub(crate) fn old_database(path: &Path, version: usize, turns: usize) {
    let mut connection = Connection::open(path).unwrap();
    connection
        .execute_batch("PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL;")
        .unwrap();
    let transaction = connection.transaction().unwrap();
    for step in [TREE, WORDS, HOLDS, RESULTS].into_iter().take(version) {
        transaction.execute_batch(step).unwrap();
    }
    transaction.pragma_update(None, "application_id", 0x676e_6f6d).unwrap();
    transaction.pragma_update(None, "user_version", i64::try_from(version).unwrap()).unwrap();
    transaction
        .execute(
            "INSERT INTO session(id, project, created_ms, changed_ms) VALUES (?1, '/p', 1, 2)",
            [SESSION],
        )
        .unwrap();
    for (record, number) in (0..turns).flat_map(turn).zip(1_i64..) {
        let body = serde_json::to_string(&record).unwrap();
        let parent = Some(number - 1).filter(|parent| *parent > 0);
        transaction
            .execute(
                "INSERT INTO entry(session, parent, at_ms, body) VALUES (1, ?1, 5, ?2)",
                params![parent, body],
            )
            .unwrap();
        if version >= 2 && matches!(record, Record::Message(_)) {
            let words = "question of an older version";
            transaction
                .execute("INSERT INTO words(rowid, text) VALUES (?1, ?2)", params![number, words])
                .unwrap();
        }
    }
    transaction.execute("UPDATE session SET tip = (SELECT max(id) FROM entry)", []).unwrap();
    if version >= 4 {
        let indexed = "UPDATE indexed SET up_to = (SELECT max(id) FROM entry)";
        transaction.execute(indexed, []).unwrap();
    }
    transaction.commit().unwrap();
}

#[test]
fn every_older_database_version_migrates_and_works() {
    for version in 1..=LAST_OLD {
        let home = tempfile::tempdir().unwrap();
        old_database(&options(home.path()).path(), version, 5);
        let store = Arc::new(open(home.path()));
        let session = SessionId::new(SESSION);
        let records: Vec<_> =
            load(&store, &session).entries.into_iter().map(|entry| entry.record).collect();
        assert_eq!(records, (0..5).flat_map(turn).collect::<Vec<_>>(), "version {version}");
        assert!(wait(store.hold_session(session.clone(), 9)).unwrap().interrupted.is_empty());
        assert_eq!(wait(store.search("question".into(), 9)).unwrap().len(), 3, "{version}");
        append(&store, &session, says("walrus"));
        assert_eq!(wait(store.search("walrus".into(), 9)).unwrap().len(), 1, "{version}");
        let results = store.result_store(session.clone());
        let id = wait(results.save_result("kept".into())).unwrap();
        assert_eq!(
            wait(results.read_slice(ResultId::new(id.as_str()), 0, 9)).unwrap().text,
            "kept"
        );
        assert!(is_legal(&load(&store, &session).entries[..35]));
        wait(store.check_integrity()).unwrap();
    }
}
