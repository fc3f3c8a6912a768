//! `gnoma usage forget`: removes the details of calls, after a question.

use anyhow::Result;
use gnoma_core::json_value::json;
use gnoma_host::{
    HostError, Project,
    usage::{self, UsageStart},
};

use super::view::count_calls;
use crate::{
    commands::common::{print_json, print_stored_text},
    environment::ProcessEnvironment,
    report::Exit,
    terminal,
};

pub(super) async fn run(
    project: &Project,
    older_than: Option<UsageStart>,
    yes: bool,
    json: bool,
    around: &ProcessEnvironment,
) -> Result<Exit> {
    let calls = usage::count_forgettable(project, older_than).await?;
    if calls > 0 && !yes {
        let Some(terminal) = terminal::open_terminal(around) else {
            let text = "cannot ask for confirmation without a terminal; add --yes";
            return Err(HostError::usage(text).into());
        };
        let question = format!(
            "Delete the details of {}? Sums by day and model stay. [y]es, [n]o: ",
            count_calls(calls)
        );
        if !terminal::is_yes(&terminal, &question) {
            return print_stored_text("nothing was deleted\n");
        }
    }
    let forgotten = usage::forget_details(project, older_than).await?;
    if json {
        return print_json(&json!({ "calls": forgotten }));
    }
    match forgotten {
        0 => print_stored_text("nothing to delete\n"),
        calls => {
            let calls = count_calls(calls);
            print_stored_text(&format!(
                "deleted the details of {calls}; sums by day and model stay\n"
            ))
        }
    }
}
