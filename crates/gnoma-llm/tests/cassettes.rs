//! Replays recorded traffic of real providers through the adapters.
//!
//! The recordings are not part of the project: `GNOMA_CASSETTES` names their folder (a relative one
//! counts from the workspace's root), and without it nothing is run, which is said. With
//! `GNOMA_CASSETTES_ONLY` only recordings whose id contains that text are run. What a recording cannot
//! show is listed with its reason in `cassettes/unsupported.toml`.

#[path = "cassettes/compare.rs"]
mod compare;
#[path = "cassettes/conversation.rs"]
mod conversation;
#[path = "mutate/mod.rs"]
mod mutate;
#[path = "cassettes/mutations.rs"]
mod mutations;
#[path = "cassettes/pieces.rs"]
mod pieces;
#[path = "cassettes/replay.rs"]
mod replay;
#[path = "cassettes/report.rs"]
mod report;

use std::{io::Write as _, path::Path, sync::Arc};

use gnoma_net::{Http, HttpOptions};
use gnoma_testkit::{Cassette, cassette::Exceptions};

const FOLDER: &str = "GNOMA_CASSETTES";
const ONLY: &str = "GNOMA_CASSETTES_ONLY";

#[tokio::test(flavor = "multi_thread")]
async fn every_cassette_decodes_as_expected() {
    let Some(cassettes) = cassettes() else { return };
    let exceptions = Exceptions::parse(include_str!("cassettes/unsupported.toml")).unwrap();
    let readings = replay::every(cassettes, &Http::new(HttpOptions::default())).await;
    let report = report::of(&readings, &exceptions);
    say(&report.text);
    assert_eq!(report.failures, 0, "recordings are read wrongly\n{}", report.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn cassette_answers_are_sent_back_unchanged() {
    let Some(cassettes) = cassettes() else { return };
    let report = conversation::every(cassettes, &Http::new(HttpOptions::default())).await;
    say(&report.text);
    assert_eq!(report.failures, 0, "answers are sent back changed\n{}", report.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_cassette_streams_decode_like_whole_ones() {
    let Some(cassettes) = cassettes() else { return };
    let report = mutations::every(cassettes, &Http::new(HttpOptions::default())).await;
    say(&format!("{} damaged answers, {} faults\n", report.tried, report.faults.len()));
    assert!(report.faults.is_empty(), "damaged answers are read wrongly\n{}", report.shown());
}

/// The recordings, or `None` after having said that there are none.
fn cassettes() -> Option<Vec<Arc<Cassette>>> {
    let Some(folder) = variable(FOLDER) else {
        gnoma_testkit::skip_test(&format!(
            "recordings are not part of the project, and {FOLDER} is not set"
        ));
        return None;
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let mut cassettes = match Cassette::load_dir(&folder) {
        Ok(cassettes) => cassettes,
        Err(error) => panic!("cannot read the recordings of `{}`: {error}", folder.display()),
    };
    if let Some(only) = variable(ONLY) {
        cassettes.retain(|cassette| cassette.id.contains(&only));
    }
    assert!(!cassettes.is_empty(), "`{}` has none", folder.display());
    Some(cassettes.into_iter().map(Arc::new).collect())
}

#[expect(
    clippy::disallowed_methods,
    reason = "what is replayed is an input of this test target and of nothing else"
)]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Writes past the test harness, which would swallow it.
fn say(text: &str) {
    let mut out = std::io::stderr().lock();
    // Nothing is left to be told if standard error is closed.
    out.write_all(text.as_bytes()).ok();
}
