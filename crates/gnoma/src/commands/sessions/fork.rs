//! `gnoma sessions fork`: a session that shares the past of another.

use anyhow::Result;
use gnoma_core::{json_value::json, store::EntryId};
use gnoma_host::{Project, sessions};

use crate::{
    commands::common::{print_json, print_stored_text},
    report::Exit,
};

pub(super) async fn run(
    project: &Project,
    id: Option<&str>,
    at: Option<i64>,
    json: bool,
) -> Result<Exit> {
    let (forked, source) = sessions::fork(project, id, at.map(EntryId)).await?;
    if json {
        return print_json(&json!({"session": forked, "forked_from": source}));
    }
    print_stored_text(&format!("{forked} continues {source}: gnoma --resume {forked} \"…\"\n"))
}
