//! The tables, one version after the other. Only ever added to: old files are brought forward by
//! running the later steps. Every version changes the tables, or its number would be taken for damage.

/// Says that a SQLite file is ours: "gnom".
pub(crate) const APPLICATION_ID: i32 = 0x676e_6f6d;

/// A part of every version's schema text; tells a damaged file of ours from a foreign one.
pub(crate) const MARK: &str = "CREATE TABLE entry (";

/// Version 1: the tree.
///
/// `deleted` sessions are kept while a fork shares their entries.
pub(crate) const TREE: &str = "
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

/// Version 2: sums per session, hidden entries, and the words of all entries. The words' table
/// keeps no second copy of the text.
pub(crate) const WORDS: &str = "
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

/// Version 3: who writes a session.
pub(crate) const HOLDS: &str = "
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

/// Version 4: large tool results, cut into compressed pieces, and how far the words are indexed.
///
/// A result belongs to the entry that first speaks of it, and until there is one to its session
/// alone.
pub(crate) const RESULTS: &str = "
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

/// Version 5: where imported sessions come from, so that none is imported twice.
pub(crate) const ORIGINS: &str = "
CREATE TABLE origin (
  session INTEGER PRIMARY KEY REFERENCES session(number) ON DELETE CASCADE,
  source TEXT NOT NULL
);
CREATE INDEX session_of_origin ON origin(source);
";

/// Version 6: which session has started which, and whether that one has not ended yet.
pub(crate) const CHILDREN: &str = "
CREATE TABLE child (
  session INTEGER PRIMARY KEY REFERENCES session(number) ON DELETE CASCADE,
  parent INTEGER NOT NULL,
  name TEXT NOT NULL,
  open INTEGER NOT NULL
);
CREATE INDEX child_of_session ON child(parent);
";
