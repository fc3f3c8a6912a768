//! Harm to the bytes of a session database: what a page still holds is still there afterwards.
//! `GNOMA_STORE_FLIPS` says how many single bytes are tried, by default a quick number, and a fifth of
//! that for each other kind of harm; `GNOMA_STORE_SEED` chooses which.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use gnoma_core::store::{Entry, SessionStore, StoreError, StoreErrorKind};
use gnoma_store::{Options, RecoveryCallback, RescueReport, Store};

use crate::{
    harm::{Dice, PAGE, entries_by_page, place, sound},
    support::{ALL, options, try_open, wait},
};

const QUICK_FLIPS: usize = 60;

/// Six sessions of some 50 entries.
const SESSIONS: usize = 6;
const TURNS: usize = 7;
const ENTRIES: usize = 294;

/// Whatever the harm, a start takes no longer.
const LONGEST: Duration = Duration::from_secs(20);

#[expect(clippy::disallowed_methods, reason = "the long form is asked for by hand")]
fn asked(name: &str) -> Option<usize> {
    std::env::var(name).ok().and_then(|n| n.parse().ok())
}

fn flips() -> usize {
    asked("GNOMA_STORE_FLIPS").unwrap_or(QUICK_FLIPS)
}

fn dice() -> Dice {
    let seed = asked("GNOMA_STORE_SEED").unwrap_or(0x0dd_ba11);
    Dice(u64::try_from(seed).unwrap().wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
}

/// All entries on the paths of all sessions, by what they say.
fn told(store: &Store) -> BTreeMap<i64, String> {
    let read = || {
        let mut told = BTreeMap::new();
        for facts in wait(store.list(1000))? {
            let page = wait(store.load(facts.id, ALL))?;
            let said = |entry: &Entry| (entry.id.0, format!("{:?}", entry.record));
            told.extend(page.entries.iter().map(said));
        }
        Ok::<_, StoreError>(told)
    };
    // A session whose own id is damaged has another one once all is recovered, which may be in between.
    read()
        .or_else(|error| match error.kind {
            StoreErrorKind::NotFound => read(),
            _ => Err(error),
        })
        .unwrap()
}

/// What a person finds.
struct Found {
    told: BTreeMap<i64, String>,
    /// The entries that are stored, hidden ones included: what answers calls that are gone is not
    /// shown.
    stored: BTreeSet<i64>,
    rescued: Option<RescueReport>,
}

/// What a person finds who reads everything, in one run. Damage in what no reading touches is healed
/// after the first whole check, at the next start.
fn found(folder: &Path) -> Found {
    let began = Instant::now();
    let met = Arc::new(Mutex::new(None));
    let tell = Arc::clone(&met);
    let recovered: Arc<RecoveryCallback> =
        Arc::new(move |rescued| *tell.lock().unwrap() = Some(rescued));
    let options = Options { recovered, ..options(folder) };
    let opened = Store::open(options).unwrap_or_else(|error| panic!("{error}"));
    let mut told = told(&opened.store);
    let mut rescued = opened.rescued.or_else(|| met.lock().unwrap().take());
    if wait(opened.store.check_integrity()).is_err() {
        assert_eq!(rescued, None, "what was recovered is sound");
        drop(opened.store);
        let again = try_open(folder).unwrap();
        wait(again.store.check_integrity()).unwrap();
        (told, rescued) = (self::told(&again.store), again.rescued);
    }
    assert!(began.elapsed() < LONGEST, "{:?}", began.elapsed());
    Found { told, stored: stored(folder), rescued }
}

fn stored(folder: &Path) -> BTreeSet<i64> {
    let connection = rusqlite::Connection::open(options(folder).path()).unwrap();
    let mut ids = connection.prepare("SELECT id FROM entry NOT INDEXED").unwrap();
    ids.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

/// What is done to a database, and which entries it may take at the most.
struct Harm {
    words: String,
    bytes: Vec<u8>,
    /// Pages that lost something, and how many of their entries may be gone.
    may_lose: BTreeMap<usize, usize>,
}

/// How many rounds there were, and what came of them.
#[derive(Default)]
struct Tally {
    rounds: usize,
    healed: usize,
    exact: usize,
    lost: usize,
    /// Entries that say something else than before.
    changed: usize,
    most: usize,
    hidden: usize,
    /// Nothing was lost, and it was said that something may be.
    alarms: usize,
    slowest: Duration,
    wrong: Vec<String>,
}

impl Tally {
    fn add(&mut self, sound: &Sound, harm: &Harm) {
        let home = tempfile::tempdir().unwrap();
        place(home.path(), &harm.bytes);
        let began = Instant::now();
        let Found { told, stored, rescued } = found(home.path());
        self.slowest = self.slowest.max(began.elapsed());
        let lost: BTreeSet<i64> =
            sound.told.keys().filter(|id| !stored.contains(id)).copied().collect();
        let unseen = sound.told.keys().filter(|id| !told.contains_key(id)).count() - lost.len();
        self.rounds += 1;
        self.healed += usize::from(rescued.is_some());
        self.exact += usize::from(told == sound.told);
        self.hidden += usize::from(unseen > 0);
        if unseen > 0 || !lost.is_empty() {
            println!("{}: {unseen} not shown, {lost:?} lost", harm.words);
        }
        self.lost += lost.len();
        self.changed += told
            .iter()
            .filter(|(id, said)| sound.told.get(id).is_some_and(|was| was != *said))
            .count();
        self.most = self.most.max(lost.len());
        let words = &harm.words;
        let mut excused = 0;
        for (page, most) in &harm.may_lose {
            let gone = sound.by_page.get(page).map_or(0, |held| held.intersection(&lost).count());
            excused += gone.min(*most);
        }
        if excused < lost.len() {
            self.wrong.push(format!("{words}: {lost:?} lost"));
        }
        match &rescued {
            Some(rescued) => {
                assert!(fs::read(&rescued.aside).unwrap() == harm.bytes, "{words}");
                let said = usize::try_from(rescued.lost).unwrap();
                self.alarms += usize::from(lost.is_empty() && rescued.unknown);
                assert!(rescued.to_string().contains(&rescued.aside.display().to_string()));
                if said > lost.len() || (said == 0 && !rescued.unknown && !lost.is_empty()) {
                    self.wrong.push(format!("{words}: {lost:?} lost, and {rescued}"));
                }
            }
            None if lost.is_empty() => {}
            None => self.wrong.push(format!("{words}: {lost:?} lost, and nothing said")),
        }
    }

    fn show(&self, what: &str) {
        let Self { rounds, healed, exact, lost, changed, most, hidden, alarms, slowest, wrong } =
            self;
        println!(
            "{rounds} {what}: {healed} healed, {exact} with every entry as it was, {lost} entries \
             lost, at most {most} at once; {changed} shown with other words; stored and not shown after {hidden}; {alarms} false alarms; the slowest took \
             {slowest:?}; {} wrong",
            wrong.len()
        );
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

/// A sound database and what is in it.
struct Sound {
    bytes: Vec<u8>,
    told: BTreeMap<i64, String>,
    by_page: BTreeMap<usize, BTreeSet<i64>>,
}

fn sample() -> Sound {
    let bytes = sound(SESSIONS, TURNS);
    let home = tempfile::tempdir().unwrap();
    place(home.path(), &bytes);
    let told = found(home.path()).told;
    let by_page = entries_by_page(&bytes);
    let seen: BTreeSet<i64> = by_page.values().flatten().copied().collect();
    assert!(told.len() == ENTRIES && seen.iter().eq(told.keys()));
    Sound { bytes, told, by_page }
}

/// Wrong bytes at `count` places, of which each costs at most the entry it stands in.
fn flip(sound: &Sound, dice: &mut Dice, count: usize, within: usize) -> Harm {
    let mut harm =
        Harm { words: String::new(), bytes: sound.bytes.clone(), may_lose: BTreeMap::new() };
    for _ in 0..count {
        let (at, bits) = (dice.below(within), dice.below(255) + 1);
        harm.bytes[at] ^= u8::try_from(bits).unwrap();
        harm.words += &format!("byte {at} (page {}) ^ {bits:#x}, ", at / PAGE + 1);
        *harm.may_lose.entry(at / PAGE).or_default() += 1;
    }
    harm
}

#[test]
fn flipped_byte_loses_at_most_the_entry_it_is_in() {
    let (sound, mut dice, mut tally) = (sample(), dice(), Tally::default());
    for round in 0..flips() {
        // One in ten in the first page: the header and the schema.
        let within = if round % 10 == 0 { PAGE } else { sound.bytes.len() };
        tally.add(&sound, &flip(&sound, &mut dice, 1, within));
    }
    tally.show("wrong bytes");
    // A number that is gone is not made up; nothing else is left out.
    assert!(tally.hidden <= tally.rounds.div_ceil(100), "{} of {}", tally.hidden, tally.rounds);
}

/// What a page says of itself before its rows is worked out from them.
#[test]
fn flipped_byte_in_a_page_header_loses_nothing() {
    const PAGE_HEADER_BYTES: usize = 8;
    let (sound, mut dice, mut tally) = (sample(), dice(), Tally::default());
    let pages = sound.bytes.len() / PAGE;
    for _ in 0..flips().div_ceil(2) {
        let at = dice.below(pages) * PAGE + dice.below(PAGE_HEADER_BYTES);
        let mut harm = flip(&sound, &mut dice, 0, 1);
        let bits = dice.below(255) + 1;
        harm.bytes[at] ^= u8::try_from(bits).unwrap();
        harm.words = format!("byte {at} (page {}) ^ {bits:#x}", at / PAGE + 1);
        tally.add(&sound, &harm);
    }
    tally.show("wrong bytes at the beginning of a page");
    assert_eq!(tally.exact, tally.rounds);
}

#[test]
fn sixteen_flipped_bytes_lose_at_most_the_entries_they_are_in() {
    let (sound, mut dice, mut tally) = (sample(), dice(), Tally::default());
    for _ in 0..flips().div_ceil(5) {
        tally.add(&sound, &flip(&sound, &mut dice, 16, sound.bytes.len()));
    }
    tally.show("times sixteen wrong bytes");
}

#[test]
fn lost_swapped_or_truncated_pages_lose_only_their_entries() {
    let (sound, mut dice, mut tally) = (sample(), dice(), Tally::default());
    let pages = sound.bytes.len() / PAGE;
    for round in 0..flips().div_ceil(5) {
        let mut bytes = sound.bytes.clone();
        let (one, two) = (dice.below(pages), dice.below(pages));
        let (words, gone) = match round % 4 {
            0 => {
                let end = dice.below(bytes.len() - 1) + 1;
                bytes.truncate(end);
                (format!("cut at {end}"), (end / PAGE..pages).collect())
            }
            1 => {
                bytes[one * PAGE..(one + 1) * PAGE].fill(0);
                (format!("page {} zeroed", one + 1), vec![one])
            }
            2 => {
                let noise = (0..PAGE).map(|_| u8::try_from(dice.below(256)).unwrap());
                let noise: Vec<u8> = noise.collect();
                bytes[one * PAGE..(one + 1) * PAGE].copy_from_slice(&noise);
                (format!("page {} is noise", one + 1), vec![one])
            }
            _ => {
                let held = bytes[one * PAGE..(one + 1) * PAGE].to_vec();
                bytes.copy_within(two * PAGE..(two + 1) * PAGE, one * PAGE);
                bytes[two * PAGE..(two + 1) * PAGE].copy_from_slice(&held);
                (format!("pages {} and {} swapped", one + 1, two + 1), Vec::new())
            }
        };
        let may_lose = gone.into_iter().map(|page| (page, usize::MAX)).collect();
        tally.add(&sound, &Harm { words, bytes, may_lose });
    }
    tally.show("lost, swapped and cut pages");
}

#[test]
fn salvage_works_without_schema_root_pages_and_header() {
    let sound = sample();
    let root: u32 = {
        let home = tempfile::tempdir().unwrap();
        let path = place(home.path(), &sound.bytes);
        let sql = "SELECT rootpage FROM sqlite_schema WHERE name = 'entry'";
        let connection = rusqlite::Connection::open(path).unwrap();
        connection.query_row(sql, [], |row| row.get(0)).unwrap()
    };
    let root = usize::try_from(root).unwrap();
    for pages in [vec![1], vec![root], vec![1, 2, root]] {
        let mut harmed = sound.bytes.clone();
        for page in &pages {
            harmed[(page - 1) * PAGE..page * PAGE].fill(0);
        }
        let home = tempfile::tempdir().unwrap();
        place(home.path(), &harmed);
        let Found { told, rescued, .. } = found(home.path());
        assert!(rescued.is_some());
        assert!(told == sound.told, "pages {pages:?}: {} of {}", told.len(), sound.told.len());
    }
}

#[test]
fn wrong_database_version_number_loses_nothing() {
    let (sound, mut tally) = (sample(), Tally::default());
    let at = 60;
    for number in [0, 1, 2, 3, 4, 5, 7, 99, 0x3f00_0006, i32::MAX, -1, i32::MIN] {
        let mut bytes = sound.bytes.clone();
        bytes[at..at + 4].copy_from_slice(&number.to_be_bytes());
        let words = format!("version {number}");
        tally.add(&sound, &Harm { words, bytes, may_lose: BTreeMap::new() });
    }
    tally.show("wrong version numbers");
    assert_eq!(tally.exact, tally.rounds);
}
