//! The ledger's tables, one version after the other. Only ever added to.

/// Says that a SQLite file is a ledger of ours: "gnol".
pub(super) const APPLICATION_ID: i32 = 0x676e_6f6c;

/// Step `n` leads from version `n` to `n + 1`.
pub(super) const STEPS: [&str; 6] = [FIRST, SECOND, THIRD, FOURTH, FIFTH, SIXTH];

/// Version 1 of the tables.
///
/// Day sums are kept at every settlement and for good; `spent` has the single calls of the last
/// days, for windows that roll. Single calls before `kept.from_day` are no longer there. Ids of
/// holds are drawn at random, so that none is ever given twice, not even when the transaction that
/// made it was undone.
const FIRST: &str = "
CREATE TABLE process (
  number INTEGER PRIMARY KEY,
  token TEXT NOT NULL UNIQUE,
  pid INTEGER NOT NULL,
  host TEXT NOT NULL,
  boot TEXT NOT NULL,
  space TEXT NOT NULL,
  started TEXT NOT NULL,
  since_ms INTEGER NOT NULL,
  seen_ms INTEGER NOT NULL
);
CREATE TABLE pool (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE arm (
  number INTEGER PRIMARY KEY,
  provider TEXT NOT NULL,
  model TEXT NOT NULL,
  UNIQUE (provider, model)
);
CREATE TABLE hold (
  id INTEGER PRIMARY KEY,
  process INTEGER NOT NULL REFERENCES process(number) ON DELETE CASCADE,
  at_ms INTEGER NOT NULL,
  requests INTEGER NOT NULL,
  input INTEGER NOT NULL,
  output INTEGER NOT NULL,
  micro_usd INTEGER NOT NULL,
  custom INTEGER NOT NULL
);
CREATE INDEX hold_of_process ON hold(process);
CREATE TABLE draw (
  pool INTEGER NOT NULL REFERENCES pool(number),
  hold INTEGER NOT NULL REFERENCES hold(id) ON DELETE CASCADE,
  PRIMARY KEY (pool, hold)
) WITHOUT ROWID;
CREATE INDEX draw_of_hold ON draw(hold);
CREATE TABLE settled (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  hold INTEGER NOT NULL UNIQUE,
  at_ms INTEGER NOT NULL
);
CREATE TABLE spent (
  pool INTEGER NOT NULL REFERENCES pool(number),
  at_ms INTEGER NOT NULL,
  settled INTEGER NOT NULL,
  requests INTEGER NOT NULL,
  input INTEGER NOT NULL,
  output INTEGER NOT NULL,
  micro_usd INTEGER NOT NULL,
  custom INTEGER NOT NULL,
  PRIMARY KEY (pool, at_ms, settled)
) WITHOUT ROWID;
CREATE INDEX spent_by_settled ON spent(settled);
CREATE TABLE pool_day (
  pool INTEGER NOT NULL REFERENCES pool(number),
  day INTEGER NOT NULL,
  requests INTEGER NOT NULL,
  input INTEGER NOT NULL,
  output INTEGER NOT NULL,
  micro_usd INTEGER NOT NULL,
  custom INTEGER NOT NULL,
  PRIMARY KEY (pool, day)
) WITHOUT ROWID;
CREATE TABLE arm_day (
  day INTEGER NOT NULL,
  arm INTEGER NOT NULL REFERENCES arm(number),
  requests INTEGER NOT NULL,
  input INTEGER NOT NULL,
  output INTEGER NOT NULL,
  micro_usd INTEGER NOT NULL,
  custom INTEGER NOT NULL,
  PRIMARY KEY (day, arm)
) WITHOUT ROWID;
CREATE TABLE kept (from_day INTEGER NOT NULL);
INSERT INTO kept VALUES (-1000000);
";

/// Version 2: what arms showed of themselves, a text each of which others make sense. A plan's own units
/// are requests, and how much of the prompt caches had is told apart, which is 0 for days before.
const SECOND: &str = "
CREATE TABLE note (name TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID;
ALTER TABLE hold RENAME COLUMN custom TO cached;
ALTER TABLE spent RENAME COLUMN custom TO cached;
ALTER TABLE pool_day RENAME COLUMN custom TO cached;
ALTER TABLE arm_day RENAME COLUMN custom TO cached;
UPDATE hold SET cached = 0;
UPDATE spent SET cached = 0;
UPDATE pool_day SET cached = 0;
UPDATE arm_day SET cached = 0;
ALTER TABLE arm_day ADD COLUMN cache_write INTEGER NOT NULL DEFAULT 0;
";

/// Version 3: single calls with the work that they belong to, and the texts that they name. `micro_usd` is NULL if the
/// price was not known; 0 stands for a name that is not known. No row has the form of an older table's, so that
/// [`super::salvage`] does not take one for the other.
const THIRD: &str = "
CREATE TABLE call_name (
  number INTEGER PRIMARY KEY,
  kind INTEGER NOT NULL,
  name TEXT NOT NULL,
  UNIQUE (kind, name)
);
CREATE TABLE call (
  at_ms INTEGER NOT NULL,
  settled INTEGER NOT NULL,
  arm INTEGER NOT NULL REFERENCES arm(number),
  project INTEGER NOT NULL,
  branch INTEGER NOT NULL,
  session INTEGER NOT NULL,
  elf INTEGER NOT NULL,
  turn INTEGER NOT NULL,
  task INTEGER NOT NULL,
  failure INTEGER NOT NULL,
  requests INTEGER NOT NULL,
  input INTEGER NOT NULL,
  cached INTEGER NOT NULL,
  cache_write INTEGER NOT NULL,
  output INTEGER NOT NULL,
  thinking INTEGER NOT NULL,
  micro_usd INTEGER,
  first_part_ms INTEGER,
  PRIMARY KEY (at_ms, settled)
) WITHOUT ROWID;
";

/// Version 4: the UTC day of the latest call that has a name, so that names are removed with their calls. For names
/// from before it is the day of the latest call of all.
const FOURTH: &str = "
ALTER TABLE call_name ADD COLUMN last_day INTEGER NOT NULL DEFAULT 0;
UPDATE call_name SET last_day = coalesce((SELECT max(at_ms) / 86400000 FROM call), 0);
CREATE INDEX call_name_by_day ON call_name(last_day);
";

/// Version 5: what [`super::lost_calls`] needs of a call in flight, as a JSON array of numbers; NULL for holds of older
/// versions. One column for all, so that the schema stays on the first page, where [`super::salvage`] reads it.
const FIFTH: &str = "
ALTER TABLE hold ADD COLUMN call_facts TEXT;
";

/// Version 6: the name whose lines are account, agent, skills, MCP servers and part of a call; NULL for calls of older
/// versions. One column for all, as in version 5.
const SIXTH: &str = "
ALTER TABLE call ADD COLUMN work INTEGER;
";

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    #[test]
    fn ledger_migration_keeps_totals_with_zero_cached_tokens() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(FIRST).unwrap();
        let before = "INSERT INTO arm VALUES (1, 'p', 'm'); \
                      INSERT INTO arm_day VALUES (9, 1, 2, 300, 40, 5, 6)";
        connection.execute_batch(before).unwrap();
        connection.execute_batch(SECOND).unwrap();
        let after = connection.query_row("SELECT input, cached FROM arm_day", [], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
        });
        assert_eq!(after.unwrap(), (300, 0));
    }

    #[test]
    fn schema_stays_on_the_first_page() {
        const LEAF: u8 = 13;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.db");
        let connection = Connection::open(&path).unwrap();
        for step in STEPS {
            connection.execute_batch(step).unwrap();
        }
        drop(connection);
        assert_eq!(std::fs::read(&path).unwrap()[100], LEAF, "salvage reads it there");
    }
}
