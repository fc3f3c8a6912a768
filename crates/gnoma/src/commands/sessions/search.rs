//! `gnoma sessions search`: where words were said.

use anyhow::Result;
use gnoma_core::store::{Hit, SessionStore as _};
use serde_json::json;

use gnoma_host::{Project, clock};

use crate::{
    commands::{print_json, show},
    report::{self, Exit},
    table,
};

/// Most places one search can be asked for.
const MAX_PLACES: usize = 1000;

pub(super) async fn run(project: &Project, words: &str, max: usize, json: bool) -> Result<Exit> {
    let past = project.find_past()?;
    let max = if max == 0 { MAX_PLACES } else { max.min(MAX_PLACES) };
    let found = match past {
        Some(past) => past.store.search(words.to_owned(), max).await?,
        None => Vec::new(),
    };
    if json {
        return print_json(&json!(found));
    }
    if found.is_empty() {
        report::say(format_args!("`{words}` was not found in the sessions of this project"));
        return Ok(Exit::Failed);
    }
    let now_ms = clock::now_ms();
    let row = |hit: &Hit| {
        let (id, entry) = (hit.session.to_string(), format!("#{}", hit.entry));
        [id, entry, clock::ago(hit.at_ms, now_ms), hit.snippet.clone()]
    };
    show(&table::lines(["session", "entry", "said", "words"], found.iter().map(row)))
}
