//! What the session store costs, as rows of a Markdown table: appends, opening, search, memory.
//!
//! `bench/store`, or `cargo run --release -p gnoma-store --example bench_sessions [FOLDER]`

#![expect(clippy::print_stdout, reason = "printing figures is what it is for")]

use std::{
    borrow::Cow,
    error::Error,
    fs::{self, File, OpenOptions},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use gnoma_core::{
    Message,
    store::{
        Durability, NewEntry, NewSession, PageRequest, Parent, Record, SessionId, SessionStore,
    },
};
use gnoma_store::{Options, Store};

type Outcome<T> = Result<T, Box<dyn Error>>;

const APPENDS: usize = 20_000;
const TURN_ENTRIES: usize = 8;
/// About what a turn writes, and in which pieces.
const TURN_BYTES: usize = 208 * 1024;
const PIECE_BYTES: usize = 4096;
const RAW_BYTES: usize = 4 * TURN_BYTES;
const QUIET_TURNS: usize = 60;
const QUIET: Duration = Duration::from_millis(250);
const OPENINGS: usize = 100;
const LARGE_BYTES: usize = 100 * 1024 * 1024;
const LARGE_ENTRY_BYTES: usize = 8 * 1024;
const SESSIONS: usize = 1000;
const ENTRIES_PER_SESSION: usize = 60;
const SCREENFUL: PageRequest = PageRequest { tip: None, max_entries: 200, max_bytes: 1024 * 1024 };

fn main() -> Outcome<()> {
    let parent = std::env::args().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let folder = tempfile::tempdir_in(parent)?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    runtime.block_on(async {
        quiet_turns(&folder.path().join("turns")).await?;
        appends(&folder.path().join("appends")).await?;
        openings(&folder.path().join("turns"))?;
        large(&folder.path().join("large")).await?;
        searches(&folder.path().join("search")).await
    })
}

fn open(folder: &Path) -> Outcome<Store> {
    let options = Options::new(folder, "/bench", Arc::new(|_, text| Cow::Borrowed(text)));
    Ok(Store::open(options)?.store)
}

/// Words that differ from entry to entry, as real ones do.
fn words(seed: usize, bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 16);
    let mut state = u64::try_from(seed).unwrap_or(0).wrapping_add(1).wrapping_mul(0x9e37_79b9);
    while text.len() < bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        text.push_str(&format!("word{} ", state % 5000));
    }
    text
}

fn entry(session: &SessionId, seed: usize, bytes: usize, durability: Durability) -> NewEntry {
    let message = Message::user_text(words(seed, bytes));
    NewEntry {
        session: session.clone(),
        parent: Parent::Tip,
        at_ms: 0,
        record: Record::Message(Arc::new(message)),
        durability,
    }
}

async fn begin(store: &Store) -> Outcome<SessionId> {
    Ok(store.begin(NewSession::default()).await?)
}

/// A file that is only written and flushed: what the disk itself takes for a turn.
struct Raw {
    file: File,
    next: usize,
    times: Vec<Duration>,
}

impl Raw {
    fn new(path: &Path) -> Outcome<Self> {
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
        file.write_all_at(&vec![1; RAW_BYTES], 0)?;
        file.sync_all()?;
        Ok(Self { file, next: 0, times: Vec::new() })
    }

    fn turn(&mut self) -> Outcome<()> {
        let piece = [7_u8; PIECE_BYTES];
        for _ in 0..TURN_BYTES / PIECE_BYTES {
            self.file.write_all_at(&piece, u64::try_from(self.next)?)?;
            self.next = (self.next + PIECE_BYTES) % RAW_BYTES;
        }
        let start = Instant::now();
        self.file.sync_data()?;
        self.times.push(start.elapsed());
        Ok(())
    }

    fn report(&self) {
        let figure = "… of the disk alone, 208 kB overwritten and flushed in turn with them";
        row(figure, "–", &three(&self.times), None);
    }
}

/// Times of the entries inside a turn and of those at its end.
#[derive(Default)]
struct Times {
    inside: Vec<Duration>,
    ends: Vec<Duration>,
}

impl Times {
    fn all(&self) -> Vec<Duration> {
        self.inside.iter().chain(&self.ends).copied().collect()
    }
}

async fn turn(store: &Store, session: &SessionId, number: usize, times: &mut Times) -> Outcome<()> {
    for line in 1..=TURN_ENTRIES {
        let ends = line == TURN_ENTRIES;
        let durability = if ends { Durability::Disk } else { Durability::Process };
        let new = entry(session, number * TURN_ENTRIES + line, 2000, durability);
        let start = Instant::now();
        store.append(new).await?;
        if ends { &mut times.ends } else { &mut times.inside }.push(start.elapsed());
    }
    Ok(())
}

/// A new session as people have it: turns, and pauses in which the model thinks.
async fn quiet_turns(folder: &Path) -> Outcome<()> {
    let store = open(folder)?;
    let session = begin(&store).await?;
    let mut times = Times::default();
    let mut raw = Raw::new(&folder.join("raw"))?;
    for number in 0..QUIET_TURNS {
        turn(&store, &session, number, &mut times).await?;
        std::thread::sleep(QUIET);
        raw.turn()?;
        std::thread::sleep(QUIET);
    }
    under("append of 2 kB, 60 turns with pauses, p99", 1.0, at(&times.all(), 99));
    row("… median, p99 and longest of those inside turns", "–", &three(&times.inside), None);
    row("… of those at turns' ends (flushed)", "–", &three(&times.ends), None);
    raw.report();
    Ok(())
}

async fn appends(folder: &Path) -> Outcome<()> {
    let store = open(folder)?;
    let session = begin(&store).await?;
    let mut times = Times::default();
    let mut raw = Raw::new(&folder.join("raw"))?;
    let turns = APPENDS / TURN_ENTRIES;
    let mut early_kb = 0;
    for number in 0..turns {
        turn(&store, &session, number, &mut times).await?;
        if number % TURN_ENTRIES == 0 {
            raw.turn()?;
        }
        if number == turns / 4 {
            early_kb = resident_kb();
        }
    }
    let all = times.all();
    under("append of 2 kB, 20,000 without a pause, p99", 1.0, at(&all, 99));
    row("… median, p99 and longest of those inside turns", "–", &three(&times.inside), None);
    row("… of those at turns' ends (flushed)", "–", &three(&times.ends), None);
    raw.report();
    let grown = resident_kb().saturating_sub(early_kb);
    let measured = format!("{early_kb} kB, then {grown} kB more");
    row("memory after 5,000 and 20,000 appends", "flat", &measured, Some(grown < 4096));
    Ok(())
}

/// What every start of the program pays where there are sessions.
fn openings(folder: &Path) -> Outcome<()> {
    let mut times = Vec::new();
    for _ in 0..OPENINGS {
        let start = Instant::now();
        let store = open(folder)?;
        times.push(start.elapsed());
        drop(store);
    }
    row("opening a store, median and p99", "–", &both(&times), None);
    Ok(())
}

async fn large(folder: &Path) -> Outcome<()> {
    let store = open(folder)?;
    let session = begin(&store).await?;
    for number in 0..LARGE_BYTES / LARGE_ENTRY_BYTES {
        store.append(entry(&session, number, LARGE_ENTRY_BYTES, Durability::Process)).await?;
    }
    drop(store);
    let mut times = Vec::new();
    for _ in 0..OPENINGS {
        let start = Instant::now();
        let store = open(folder)?;
        let page = store.load(session.clone(), SCREENFUL).await?;
        times.push(start.elapsed());
        if page.entries.len() < 50 {
            return Err("the page is too short".into());
        }
    }
    under("opening a session of 100 MB to the first screenful, p99", 100.0, at(&times, 99));
    row("memory then", "–", &format!("{} kB", resident_kb()), None);
    Ok(())
}

async fn searches(folder: &Path) -> Outcome<()> {
    let store = open(folder)?;
    for number in 0..SESSIONS {
        let session = begin(&store).await?;
        for line in 0..ENTRIES_PER_SESSION {
            let seed = number * ENTRIES_PER_SESSION + line;
            store.append(entry(&session, seed, 1000, Durability::Process)).await?;
        }
    }
    let start = Instant::now();
    store.search("absent".to_owned(), 50).await?;
    let first = format!("{:.1} ms", millis(start.elapsed()));
    row("the first search after 60,000 appends without a pause", "–", &first, None);
    for query in [
        "word77",
        "word1 word2",
        "word4999 word17 word3",
        "word499",
        "word42 wor",
        "word49999",
        "absent",
    ] {
        let mut times = Vec::new();
        for _ in 0..20 {
            let start = Instant::now();
            store.search(query.to_owned(), 50).await?;
            times.push(start.elapsed());
        }
        under(&format!("search in 1,000 sessions for `{query}`, p99"), 50.0, at(&times, 99));
    }
    let mut times = Vec::new();
    for _ in 0..20 {
        let start = Instant::now();
        store.list(SESSIONS).await?;
        times.push(start.elapsed());
    }
    row("list of 1,000 sessions, median and p99", "–", &both(&times), None);
    Ok(())
}

fn at(times: &[Duration], percent: usize) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len().saturating_sub(1) * percent / 100).copied().unwrap_or_default()
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn both(times: &[Duration]) -> String {
    format!("{:.3} and {:.3} ms", millis(at(times, 50)), millis(at(times, 99)))
}

fn three(times: &[Duration]) -> String {
    let [middle, most, longest] = [50, 99, 100].map(|percent| millis(at(times, percent)));
    format!("{middle:.3}, {most:.3} and {longest:.1} ms")
}

/// A row whose goal is a time.
fn under(figure: &str, goal_ms: f64, measured: Duration) {
    let measured_ms = millis(measured);
    let goal = format!("< {goal_ms} ms");
    row(figure, &goal, &format!("{measured_ms:.3} ms"), Some(measured_ms < goal_ms));
}

fn row(figure: &str, goal: &str, measured: &str, is_met: Option<bool>) {
    let verdict = match is_met {
        Some(true) => "met",
        Some(false) => "**missed**",
        None => "–",
    };
    println!("| {figure} | {goal} | {measured} | {verdict} |");
}

fn resident_kb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0)
}
