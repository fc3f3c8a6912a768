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
use gnoma_host::past::refuse_in_incognito;

use super::common::project;
use crate::{
    args::{SessionsSub, TurnArgs},
    environment::ProcessEnvironment,
    report::Exit,
};

pub(super) async fn run(
    what: SessionsSub,
    args: &TurnArgs,
    around: &ProcessEnvironment,
) -> Result<Exit> {
    let project = project(args, around)?;
    if let Some(command) = writing(&what) {
        refuse_in_incognito(&project, command)?;
    }
    match what {
        SessionsSub::List { max, json } => list::run(&project, max, json).await,
        SessionsSub::Show { id, full, json } => {
            show::run(&project, id.as_deref(), full, json).await
        }
        SessionsSub::Search { words, max, json } => {
            search::run(&project, &words.join(" "), max, json).await
        }
        SessionsSub::Fork { id, at, json } => fork::run(&project, id.as_deref(), at, json).await,
        SessionsSub::Rename { id, title } => rename::run(&project, &id, &title.join(" ")).await,
        SessionsSub::Export { id, format, output } => {
            export::run(&project, id.as_deref(), format, output.as_deref(), around).await
        }
        SessionsSub::Import { path, from, all, json } => {
            import::run(&project, &around.cwd.join(path), from, all, json).await
        }
        SessionsSub::Delete { ids, yes } => delete::run(&project, &ids, yes, around).await,
        SessionsSub::Repair { json } => repair::run(&project, json).await,
        SessionsSub::Stats { json } => stats::run(&project, json).await,
    }
}

/// The command, where it stores something. Forgetting does not.
fn writing(what: &SessionsSub) -> Option<&'static str> {
    match what {
        SessionsSub::Import { .. } => Some("sessions import"),
        SessionsSub::Repair { .. } => Some("sessions repair"),
        // Copies and titles are refused by whoever makes them.
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
