//! Prints what the session store costs: appends, opening a large session, search, memory.
//!
//! `cargo run --release -p gnoma-store --example bench_sessions`

#![expect(clippy::print_stdout, reason = "printing figures is what it is for")]

use std::{
    borrow::Cow,
    error::Error,
    fs,
    path::Path,
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

const APPENDS: usize = 20_000;
const TURN_ENTRIES: usize = 8;
const LARGE_BYTES: usize = 100 * 1024 * 1024;
const LARGE_ENTRY_BYTES: usize = 8 * 1024;
const SESSIONS: usize = 1000;
const ENTRIES_PER_SESSION: usize = 60;
const SCREENFUL: PageRequest = PageRequest { tip: None, max_entries: 200, max_bytes: 1024 * 1024 };

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    runtime.block_on(async {
        appends(&folder.path().join("appends")).await?;
        large(&folder.path().join("large")).await?;
        searches(&folder.path().join("search")).await
    })
}

fn open(folder: &Path) -> Result<Store, Box<dyn Error>> {
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

async fn begin(store: &Store) -> Result<SessionId, Box<dyn Error>> {
    Ok(store.begin(NewSession { at_ms: 0, title: None }).await?)
}

async fn appends(folder: &Path) -> Result<(), Box<dyn Error>> {
    let store = open(folder)?;
    let session = begin(&store).await?;
    let (mut inside, mut ends) = (Vec::new(), Vec::new());
    for number in 0..APPENDS {
        let ends_turn = number % TURN_ENTRIES == TURN_ENTRIES - 1;
        let durability = if ends_turn { Durability::Disk } else { Durability::Process };
        let new = entry(&session, number, 2000, durability);
        let start = Instant::now();
        store.append(new).await?;
        if ends_turn { &mut ends } else { &mut inside }.push(start.elapsed());
    }
    report("append 2 kB", inside);
    report("append 2 kB, flushed at a turn's end", ends);
    println!("resident after {APPENDS} appends: {} kB", resident_kb());
    Ok(())
}

async fn large(folder: &Path) -> Result<(), Box<dyn Error>> {
    let store = open(folder)?;
    let session = begin(&store).await?;
    for number in 0..LARGE_BYTES / LARGE_ENTRY_BYTES {
        store.append(entry(&session, number, LARGE_ENTRY_BYTES, Durability::Process)).await?;
    }
    drop(store);
    let mut times = Vec::new();
    for _ in 0..20 {
        let start = Instant::now();
        let store = open(folder)?;
        let page = store.load(session.clone(), SCREENFUL).await?;
        times.push(start.elapsed());
        assert!(page.entries.len() > 50);
    }
    let size: u64 =
        fs::read_dir(folder)?.flatten().filter_map(|file| Some(file.metadata().ok()?.len())).sum();
    println!("100 MB session on disk: {} MB", size / 1_000_000);
    report("open it to the first screenful", times);
    println!("resident: {} kB", resident_kb());
    Ok(())
}

async fn searches(folder: &Path) -> Result<(), Box<dyn Error>> {
    let store = open(folder)?;
    for number in 0..SESSIONS {
        let session = begin(&store).await?;
        for line in 0..ENTRIES_PER_SESSION {
            let seed = number * ENTRIES_PER_SESSION + line;
            store.append(entry(&session, seed, 1000, Durability::Process)).await?;
        }
    }
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
        let mut hits = 0;
        for _ in 0..20 {
            let start = Instant::now();
            hits = store.search(query.to_owned(), 50).await?.len();
            times.push(start.elapsed());
        }
        report(&format!("search {SESSIONS} sessions for `{query}` ({hits} hits)"), times);
    }
    let mut times = Vec::new();
    for _ in 0..20 {
        let start = Instant::now();
        store.list(SESSIONS).await?;
        times.push(start.elapsed());
    }
    report("list 1000 sessions", times);
    println!("resident: {} kB", resident_kb());
    Ok(())
}

fn report(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at =
        |percent: usize| times.get((times.len() - 1) * percent / 100).copied().unwrap_or_default();
    println!("{what}: median {:?}, p99 {:?}, most {:?}", at(50), at(99), at(100));
}

fn resident_kb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0)
}
