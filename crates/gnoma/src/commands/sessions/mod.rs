//! `gnoma sessions`: what was kept of a project, for people and scripts. One file per command.

mod delete;
mod export;
mod fork;
mod import;
mod list;
mod rename;
mod repair;
mod search;
mod show;
mod stats;
mod tree;

use anyhow::Result;
use futures_util::future::LocalBoxFuture;
use gnoma_host::project_history::refuse_in_incognito;

use super::common::open_project;
use crate::{
    args::{SessionsSub, TurnArgs},
    environment::ProcessEnvironment,
    report::Exit,
};

pub(super) async fn run(
    what: &SessionsSub,
    args: &TurnArgs,
    around: &ProcessEnvironment,
) -> Result<Exit> {
    let project = &open_project(args, around)?;
    if let Some(command) = writing_command(what) {
        refuse_in_incognito(project, command)?;
    }
    let command: LocalBoxFuture<'_, Result<Exit>> = match what {
        SessionsSub::List { max, json } => Box::pin(list::run(project, *max, *json)),
        SessionsSub::Show { id, full, json } => {
            Box::pin(show::run(project, id.as_deref(), *full, *json))
        }
        SessionsSub::Search { words, max, json } => {
            Box::pin(search::run(project, words.join(" "), *max, *json))
        }
        SessionsSub::Fork { id, at, json } => {
            Box::pin(fork::run(project, id.as_deref(), *at, *json))
        }
        SessionsSub::Rename { id, title } => Box::pin(rename::run(project, id, title.join(" "))),
        SessionsSub::Export { id, format, output } => {
            Box::pin(export::run(project, id.as_deref(), *format, output.as_deref(), around))
        }
        SessionsSub::Import { path, from, all, json } => {
            Box::pin(import::run(project, around.cwd.join(path), *from, *all, *json))
        }
        SessionsSub::Delete { ids, yes } => Box::pin(delete::run(project, ids, *yes, around)),
        SessionsSub::Repair { json } => Box::pin(repair::run(project, *json)),
        SessionsSub::Stats { json } => Box::pin(stats::run(project, *json)),
    };
    command.await
}

/// The command, where it stores something. Forgetting does not.
fn writing_command(what: &SessionsSub) -> Option<&'static str> {
    match what {
        SessionsSub::Import { .. } => Some("sessions import"),
        SessionsSub::Repair { .. } => Some("sessions repair"),
        // The functions that copy and rename sessions refuse that themselves.
        SessionsSub::Fork { .. }
        | SessionsSub::Rename { .. }
        | SessionsSub::List { .. }
        | SessionsSub::Show { .. }
        | SessionsSub::Search { .. }
        | SessionsSub::Export { .. }
        | SessionsSub::Delete { .. }
        | SessionsSub::Stats { .. } => None,
    }
}
