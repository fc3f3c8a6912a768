//! Recovers what the pages of a damaged ledger still contain, and says whether that is all the money.
//!
//! The tables and where they begin are known, so a damaged schema or index costs nothing. Daily sums only grow: of
//! two states, the larger counts, and sums that are lost come back from what else counts the same calls
//! ([`super::lost_sums`]). If single calls are lost, whole days count in their place: rather too much than too little.
//! Calls in flight are not recovered: no process has the file open, so they are gone.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
};

use rusqlite::{Connection, params_from_iter};

use super::{
    error_sentences::LedgerResultExt,
    lost_sums::{self, SUMS},
    notes::MAX_NOTE_BYTES,
    unknown_spend,
};
use crate::{
    error::Result,
    files::suffixed_path,
    pages::{FoundRow, FoundValue, Pages, TreePage},
    text::MAX_COUNT,
};

/// Days that can be meant: until the year 2243.
const DAYS: std::ops::Range<i64> = 0..100_000;

/// No day is so large as a time in milliseconds.
const LEAST_TIME_MS: i64 = 1_000_000_000;

/// Columns of a recorded call that are never NULL, and all of them. Rows of older versions lack the last.
const CALL_NUMBERS: usize = 16;
const CALL_COLUMNS: usize = 19;

/// The table that a row belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum LedgerTable {
    Pool,
    PoolName,
    PoolDay,
    Arm,
    ArmName,
    ArmDay,
    Spent,
    Settled,
    Kept,
    Note,
    CallName,
    Call,
}

impl LedgerTable {
    const ALL: [Self; 12] = [
        Self::Pool,
        Self::PoolName,
        Self::PoolDay,
        Self::Arm,
        Self::ArmName,
        Self::ArmDay,
        Self::Spent,
        Self::Settled,
        Self::Kept,
        Self::Note,
        Self::CallName,
        Self::Call,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Pool => "pool",
            Self::PoolName => "sqlite_autoindex_pool_1",
            Self::PoolDay => "pool_day",
            Self::Arm => "arm",
            Self::ArmName => "sqlite_autoindex_arm_1",
            Self::ArmDay => "arm_day",
            Self::Spent => "spent",
            Self::Settled => "settled",
            Self::Kept => "kept",
            Self::Note => "note",
            Self::CallName => "call_name",
            Self::Call => "call",
        }
    }

    /// Of what a row must be by its form. Days of pools and of arms are told apart by where the day
    /// stands: no ledger has so many arms.
    fn from_row(row: &FoundRow) -> Option<Self> {
        use FoundValue::{Int, Null, Text};
        if row.has_mark() {
            // Money under a name that is not known would count for no cap.
            return None;
        }
        match (row.rowid, row.values.as_slice()) {
            (Some(_), [Null, Text(_)]) => Some(Self::Pool),
            (None, [Text(_), Int(_)]) => Some(Self::PoolName),
            (Some(_), [Null, Text(_), Text(_)]) => Some(Self::Arm),
            (None, [Text(_), Text(_), Int(_)]) => Some(Self::ArmName),
            (Some(_), [Null, Int(_), Int(_)]) => Some(Self::Settled),
            (Some(_), [Int(_)]) => Some(Self::Kept),
            (None, [Text(_), Text(_)]) => Some(Self::Note),
            (Some(_), [Null, Int(_), Text(_), Int(_)]) => Some(Self::CallName),
            (None, values) if is_call(values) => Some(Self::Call),
            (None, [Int(_), Int(second), sums @ ..]) if are_amounts(sums) => match sums.len() {
                5 if DAYS.contains(second) => Some(Self::PoolDay),
                5 | 6 if *second < LEAST_TIME_MS => Some(Self::ArmDay),
                6 => Some(Self::Spent),
                _ => None,
            },
            _ => None,
        }
    }

    /// Reports whether a row has the form of this table's.
    fn matches_row(self, row: &FoundRow) -> bool {
        match (self, Self::from_row(row)) {
            // The first version's days of arms look like days of pools.
            (Self::ArmDay, Some(Self::PoolDay)) => true,
            (table, form) => form == Some(table),
        }
    }
}

fn are_amounts(values: &[FoundValue]) -> bool {
    values.iter().all(|value| matches!(value, FoundValue::Int(0..=MAX_COUNT)))
}

/// Reports whether values are those of a recorded call, whose price, first part and work may be unknown.
fn is_call(values: &[FoundValue]) -> bool {
    let is_number = |value: &FoundValue| matches!(value, FoundValue::Int(_));
    let is_column = |(at, value): (usize, &FoundValue)| match at {
        // Numbers of names can be negative, and hashes of turns large.
        0..10 => is_number(value),
        10..CALL_NUMBERS => are_amounts(std::slice::from_ref(value)),
        _ => *value == FoundValue::Null || are_amounts(std::slice::from_ref(value)),
    };
    (CALL_COLUMNS - 1..=CALL_COLUMNS).contains(&values.len())
        && values.iter().enumerate().all(is_column)
}

/// Brings what `old` holds into the empty ledger `new`; says whether no sum of money can be missing.
pub(super) fn salvage_rows(old: &Path, new: &mut Connection) -> Result<bool> {
    let Ok(pages) = Pages::open(old) else { return Ok(false) };
    let mut trees = Trees::default();
    for (table, root) in table_roots(&pages, new)? {
        trees.walk_table(&pages, table, root);
    }
    trees.search_the_rest(&pages);
    // A step that was being undone when its process died is half there.
    let is_settled = !suffixed_path(old, "-journal").metadata().is_ok_and(|facts| facts.len() > 0);
    let names = trees.is_whole(LedgerTable::Pool) || trees.is_whole(LedgerTable::PoolName);
    let money = is_settled && names && trees.is_whole(LedgerTable::PoolDay);
    let calls =
        is_settled && trees.is_whole(LedgerTable::Spent) && trees.is_whole(LedgerTable::Kept);
    // Not the first time: what was missing then still is.
    let doubted = trees
        .rows
        .get(&LedgerTable::Note)
        .is_some_and(|notes| notes.iter().any(unknown_spend::is_note));
    // Names may come after what refers to them.
    new.pragma_update(None, "foreign_keys", 0).or_ledger_error()?;
    let named = write_rows(new, &pages, &trees, calls);
    new.pragma_update(None, "foreign_keys", 1).or_ledger_error()?;
    Ok(money && named? && !doubted)
}

/// Returns where the tables begin: as the damaged file says, or else as every ledger is laid out.
fn table_roots(pages: &Pages, new: &Connection) -> Result<HashMap<LedgerTable, u32>> {
    let mut known = new.prepare("SELECT name, rootpage FROM sqlite_schema").or_ledger_error()?;
    let known = known
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .and_then(Iterator::collect::<rusqlite::Result<HashMap<String, u32>>>)
        .or_ledger_error()?;
    let mut said: HashMap<String, u32> = HashMap::new();
    for row in pages.read_node(1).map(|node| node.rows).unwrap_or_default() {
        if let [FoundValue::Text(_), FoundValue::Text(name), _, FoundValue::Int(root), ..] =
            row.values.as_slice()
            && let Ok(root) = u32::try_from(*root)
        {
            said.insert(name.clone(), root);
        }
    }
    let root = |table: LedgerTable| {
        let name = table.name();
        let root = match table {
            // Later versions added them, somewhere.
            LedgerTable::Note | LedgerTable::CallName | LedgerTable::Call => said.get(name),
            _ => said.get(name).or_else(|| known.get(name)),
        };
        Some((table, *root?))
    };
    Ok(LedgerTable::ALL.into_iter().filter_map(root).collect())
}

/// The rows that the pages hold.
#[derive(Default)]
struct Trees {
    rows: HashMap<LedgerTable, Vec<FoundRow>>,
    /// Pages with recorded calls, which are too many for memory.
    call_pages: Vec<u32>,
    seen: HashSet<u32>,
    whole: HashSet<LedgerTable>,
}

impl Trees {
    fn is_whole(&self, table: LedgerTable) -> bool {
        self.whole.contains(&table)
    }

    fn walk_table(&mut self, pages: &Pages, table: LedgerTable, root: u32) {
        let mut next = vec![root];
        let mut whole = true;
        while let Some(number) = next.pop() {
            if !self.seen.insert(number) {
                whole = false;
                continue;
            }
            let found = read_rows(pages, number, table);
            whole &= found.whole;
            match table {
                LedgerTable::Call => self.call_pages.push(number),
                _ => self.rows.entry(table).or_default().extend(found.rows),
            }
            next.extend(found.children);
        }
        if whole {
            self.whole.insert(table);
        }
    }

    /// Rows of pages that no tree leads to any more.
    fn search_the_rest(&mut self, pages: &Pages) {
        let free = pages.free_pages();
        for number in 2..=pages.page_count() {
            if free.contains(&number) || !self.seen.insert(number) {
                continue;
            }
            for row in pages.read_node(number).map(|node| node.rows).unwrap_or_default() {
                match LedgerTable::from_row(&row) {
                    Some(LedgerTable::Call) => {
                        self.call_pages.push(number);
                        break;
                    }
                    Some(table) => self.rows.entry(table).or_default().push(row),
                    None => {}
                }
            }
        }
    }
}

/// Reads the rows of `table` on a page, also those that its pointers do not lead to if it is damaged.
fn read_rows(pages: &Pages, number: u32, table: LedgerTable) -> TreePage {
    let mut node = pages.read_node(number).unwrap_or_default();
    node.whole &= node.rows.iter().all(|row| table.matches_row(row));
    if !node.whole {
        node.rows.retain(|row| table.matches_row(row));
        node.rows.extend(pages.search_rows(number, &|row| table.matches_row(row)));
    }
    node
}

/// Writes all rows and the sums that can be rebuilt; says whether every sum of a day has the name of its pool.
fn write_rows(new: &mut Connection, pages: &Pages, trees: &Trees, calls: bool) -> Result<bool> {
    let transaction = new.transaction().or_ledger_error()?;
    for table in LedgerTable::ALL {
        for row in trees.rows.get(&table).into_iter().flatten() {
            insert_row(&transaction, table, row)?;
        }
    }
    for page in &trees.call_pages {
        for row in read_rows(pages, *page, LedgerTable::Call).rows {
            insert_row(&transaction, LedgerTable::Call, &row)?;
        }
    }
    if !calls {
        let all_days = "UPDATE kept SET from_day = \
                        max(from_day, (SELECT coalesce(max(day), -1) + 1 FROM pool_day))";
        transaction.execute(all_days, []).or_ledger_error()?;
    }
    let nameless = "DELETE FROM pool_day WHERE pool NOT IN (SELECT number FROM pool)";
    let nameless = transaction.execute(nameless, []).or_ledger_error()?;
    for sql in [
        "DELETE FROM spent WHERE pool NOT IN (SELECT number FROM pool)",
        "DELETE FROM arm_day WHERE arm NOT IN (SELECT number FROM arm)",
        "DELETE FROM call WHERE arm NOT IN (SELECT number FROM arm)",
    ] {
        transaction.execute(sql, []).or_ledger_error()?;
    }
    if !trees.is_whole(LedgerTable::ArmDay) {
        lost_sums::sum_up_calls(&transaction)?;
    }
    if !trees.is_whole(LedgerTable::PoolDay) {
        lost_sums::sum_up_arms(&transaction)?;
    }
    lost_sums::add_unknown_arm(&transaction)?;
    transaction.commit().or_ledger_error()?;
    Ok(nameless == 0)
}

fn insert_row(new: &Connection, table: LedgerTable, row: &FoundRow) -> Result<()> {
    let (number, unknown) = (FoundValue::Int(row.rowid.unwrap_or_default()), FoundValue::Null);
    let values = row.values.iter();
    let behind_number = || std::iter::once(&number).chain(values.clone().skip(1)).collect();
    let (sql, values): (String, Vec<&FoundValue>) = match table {
        LedgerTable::Pool => ("INSERT OR IGNORE INTO pool(number, name)".into(), behind_number()),
        LedgerTable::PoolName => {
            ("INSERT OR IGNORE INTO pool(name, number)".into(), values.collect())
        }
        LedgerTable::Arm => {
            ("INSERT OR IGNORE INTO arm(number, provider, model)".into(), behind_number())
        }
        LedgerTable::ArmName => {
            ("INSERT OR IGNORE INTO arm(provider, model, number)".into(), values.collect())
        }
        LedgerTable::Settled => {
            ("INSERT OR IGNORE INTO settled(number, hold, at_ms)".into(), behind_number())
        }
        LedgerTable::Spent => ("INSERT OR IGNORE INTO spent".into(), values.collect()),
        LedgerTable::PoolDay => ("INSERT INTO pool_day".into(), values.collect()),
        LedgerTable::ArmDay => {
            let columns = ["", ", cache_write"].get(row.values.len() - 7).unwrap_or(&"");
            let sums = SUMS.join(", ");
            (format!("INSERT INTO arm_day(day, arm, {sums}{columns})"), values.collect())
        }
        LedgerTable::Kept => return set_kept(new, row),
        LedgerTable::Note if !row.values.iter().all(fits_in_note) => return Ok(()),
        LedgerTable::Note => ("INSERT OR IGNORE INTO note(name, text)".into(), values.collect()),
        LedgerTable::CallName => (
            "INSERT OR IGNORE INTO call_name(number, kind, name, last_day)".into(),
            behind_number(),
        ),
        LedgerTable::Call => {
            let columns = values.chain(std::iter::once(&unknown)).take(CALL_COLUMNS);
            ("INSERT OR IGNORE INTO call".into(), columns.collect())
        }
    };
    let places = vec!["?"; values.len()].join(", ");
    let sql = format!("{sql} VALUES ({places}) {}", on_conflict(table));
    let mut insert = new.prepare_cached(&sql).or_ledger_error()?;
    insert.execute(params_from_iter(values)).or_ledger_error().map(|_| ())
}

fn fits_in_note(value: &FoundValue) -> bool {
    matches!(value, FoundValue::Text(text) if text.len() <= MAX_NOTE_BYTES)
}

fn on_conflict(table: LedgerTable) -> String {
    let key = match table {
        LedgerTable::PoolDay => "pool, day",
        LedgerTable::ArmDay => "day, arm",
        _ => return String::new(),
    };
    let larger = SUMS.map(|sum| format!("{sum} = max({sum}, excluded.{sum})")).join(", ");
    format!("ON CONFLICT({key}) DO UPDATE SET {larger}")
}

fn set_kept(new: &Connection, row: &FoundRow) -> Result<()> {
    let day = row.values.first().unwrap_or(&FoundValue::Null);
    new.execute("UPDATE kept SET from_day = max(from_day, ?1)", [day]).or_ledger_error().map(|_| ())
}
