//! Somebody swaps a folder for a link to elsewhere while tools work in it.
//!
//! `GNOMA_RACE_TRIES` sets how often; the default keeps the test short.

use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::json;

use crate::support::{Bench, text};

const TRIES: u32 = 6_000;
const CANARY: &str = "outside-canary";

#[expect(clippy::disallowed_methods, reason = "how long a test runs is no setting")]
fn tries() -> u32 {
    std::env::var("GNOMA_RACE_TRIES").ok().and_then(|text| text.parse().ok()).unwrap_or(TRIES)
}

/// Exchanges `a` and `b` in one step, over and over.
fn swap_until(over: &AtomicBool, a: &Path, b: &Path) -> u64 {
    let mut swaps = 0;
    while !over.load(Ordering::Relaxed) {
        renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE).unwrap();
        swaps += 1;
    }
    swaps
}

#[tokio::test]
async fn symlink_race_never_leads_file_tools_outside_the_workspace() {
    let bench = Bench::new();
    let outside = tempfile::tempdir().unwrap();
    let (place, link) = (bench.path("place"), bench.path("link"));
    fs::create_dir(&place).unwrap();
    fs::write(place.join("file"), "inside").unwrap();
    fs::write(outside.path().join("file"), CANARY).unwrap();
    fs::write(outside.path().join(CANARY), "").unwrap();
    symlink(outside.path(), &link).unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let swapper = std::thread::spawn({
        let over = Arc::clone(&over);
        move || swap_until(&over, &place, &link)
    });
    for turn in 0..tries() {
        let (tool, arguments) = match turn % 4 {
            0 => ("fs.read", json!({"path": "place/file"})),
            1 => ("fs.grep", json!({"pattern": "canary", "path": "place"})),
            2 => ("fs.ls", json!({"path": "place"})),
            _ => ("fs.write", json!({"path": "place/new", "content": "x"})),
        };
        let outcome = bench.call(tool, &arguments).await;
        assert!(!text(&outcome).contains("outside-"), "{tool} saw the outside: {outcome:?}");
    }
    over.store(true, Ordering::Relaxed);
    assert!(swapper.join().unwrap() > 0);
    let mut left: Vec<_> =
        fs::read_dir(outside.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["file", CANARY], "something was written outside");
    assert_eq!(fs::read_to_string(outside.path().join("file")).unwrap(), CANARY);
}
