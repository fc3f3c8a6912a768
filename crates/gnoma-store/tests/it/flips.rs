//! Single wrong bytes in a session database: what other pages hold, and what stands elsewhere in the same
//! page, is still there. `GNOMA_STORE_FLIPS` says how many are tried; by default a quick number.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use gnoma_core::store::{SessionStore, StoreErrorKind};
use gnoma_store::Store;

use crate::support::{ALL, append, begin, fold, open, options, try_open, turn, wait};

const QUICK_FLIPS: usize = 60;

/// Six sessions of some 50 entries.
const SESSIONS: i64 = 6;
const TURNS: usize = 7;

#[expect(clippy::disallowed_methods, reason = "the long form is asked for by hand")]
fn flips() -> usize {
    std::env::var("GNOMA_STORE_FLIPS").ok().and_then(|n| n.parse().ok()).unwrap_or(QUICK_FLIPS)
}

/// A sound database of some 300 entries, and where each entry's row stands in it.
fn sound(home: &Path) -> Vec<u8> {
    let store = open(home);
    for number in 0..SESSIONS {
        let session = begin(&store, number);
        for record in (0..TURNS).flat_map(turn) {
            append(&store, &session, record);
        }
    }
    let path = store.path().to_owned();
    drop(store);
    fold(&path);
    fs::read(path).unwrap()
}

/// All entries on the paths of all sessions, by what they say; an error where the store finds damage.
fn told(store: &Store) -> Result<BTreeMap<i64, String>, StoreErrorKind> {
    let mut told = BTreeMap::new();
    for facts in wait(store.list(1000)).map_err(|error| error.kind)? {
        let page = wait(store.load(facts.id, ALL)).map_err(|error| error.kind)?;
        told.extend(page.entries.iter().map(|entry| (entry.id.0, format!("{:?}", entry.record))));
    }
    Ok(told)
}

/// What a person finds after at most one more start.
fn found(folder: &Path) -> (BTreeMap<i64, String>, bool) {
    let opened = try_open(folder).unwrap_or_else(|error| panic!("{error}"));
    let healed = opened.rescued.is_some();
    let checked = wait(opened.store.check());
    match (told(&opened.store), checked) {
        (Ok(told), Ok(())) => (told, healed),
        _ => {
            drop(opened);
            let again = try_open(folder).unwrap();
            wait(again.store.check()).unwrap();
            (told(&again.store).unwrap(), true)
        }
    }
}

/// The entries that are stored, hidden ones included: what answers calls that are gone is not shown.
fn stored(folder: &Path) -> BTreeSet<i64> {
    let connection = rusqlite::Connection::open(options(folder).path()).unwrap();
    let mut ids = connection.prepare("SELECT id FROM entry NOT INDEXED").unwrap();
    ids.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(end).unwrap()).unwrap()
    }
}

#[test]
fn a_wrong_byte_costs_at_most_the_entry_it_stands_in() {
    let home = tempfile::tempdir().unwrap();
    let bytes = sound(home.path());
    let all = found(home.path()).0;
    assert_eq!(all.len(), 294);
    let (mut dice, rounds) = (Dice(0x0dd_ba11), flips());
    let (mut healed, mut exact, mut hidden, mut most) = (0, 0, 0, 0);
    let mut short = Vec::new();
    for round in 0..rounds {
        // One in ten in the first page: the header and the schema.
        let within = if round % 10 == 0 { 4096 } else { bytes.len() };
        let (at, bit) = (dice.below(within), dice.below(8));
        let mut harmed = bytes.clone();
        harmed[at] ^= 1 << bit;
        let home = tempfile::tempdir().unwrap();
        fs::write(options(home.path()).path(), harmed).unwrap();
        let (told, was_healed) = found(home.path());
        let stored = stored(home.path());
        let lost = all.keys().filter(|id| !stored.contains(id)).count();
        let unseen = all.keys().filter(|id| !told.contains_key(id)).count() - lost;
        hidden += usize::from(unseen > 0);
        if unseen > 1 {
            println!(
                "byte {at} (page {}), bit {bit}: {unseen} are stored and not shown",
                at / 4096 + 1
            );
        }
        healed += usize::from(was_healed);
        exact += usize::from(told == all);
        most = most.max(lost);
        if lost > 1 {
            short.push(format!("byte {at} (page {}), bit {bit}: {lost} lost", at / 4096 + 1));
        }
    }
    println!(
        "{rounds} flips over {} bytes: {healed} healed, {exact} with every entry as it was, at most \
         {most} entries lost by one; more than one by {}; stored and not shown after {hidden}",
        bytes.len(),
        short.len()
    );
    assert!(short.is_empty(), "{}", short.join("\n"));
}

#[test]
fn the_schema_the_roots_and_the_header_are_not_needed() {
    let home = tempfile::tempdir().unwrap();
    let bytes = sound(home.path());
    let all = found(home.path()).0;
    let root: u32 = {
        let path = home.path().join("other.db");
        fs::write(&path, &bytes).unwrap();
        let sql = "SELECT rootpage FROM sqlite_schema WHERE name = 'entry'";
        let connection = rusqlite::Connection::open(path).unwrap();
        connection.query_row(sql, [], |row| row.get(0)).unwrap()
    };
    let root = usize::try_from(root).unwrap();
    for pages in [vec![1], vec![root], vec![1, 2, root]] {
        let mut harmed = bytes.clone();
        for page in &pages {
            harmed[(page - 1) * 4096..page * 4096].fill(0);
        }
        let home = tempfile::tempdir().unwrap();
        fs::write(options(home.path()).path(), harmed).unwrap();
        let (told, healed) = found(home.path());
        assert!(healed);
        assert!(told == all, "pages {pages:?}: {} of {}", told.len(), all.len());
    }
}
