//! `gnoma sessions search`: where words were said.

use anyhow::Result;
use gnoma_core::{json_value::json, store::Hit};
use gnoma_host::{Project, clock, sessions};

use crate::{
    commands::common::{print_json, print_stored_text},
    report::{self, Exit},
    table,
};

pub(super) async fn run(project: &Project, words: String, max: usize, json: bool) -> Result<Exit> {
    let found = sessions::search_sessions(project, &words, max).await?;
    if json {
        return print_json(&json!(found));
    }
    if found.is_empty() {
        report::print_line(format_args!("no match for `{words}` in the sessions of this project"));
        return Ok(Exit::Failed);
    }
    let now_ms = clock::now_ms();
    let row = |hit: &Hit| {
        let (id, entry) = (hit.session.to_string(), format!("#{}", hit.entry));
        [id, entry, clock::describe_age(hit.at_ms, now_ms), hit.snippet.clone()]
    };
    print_stored_text(&table::render_table(
        ["session", "entry", "said", "words"],
        found.iter().map(row),
    ))
}
