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

use anyhow::Result;

use super::Ground;
use crate::{
    args::{SessionsSub, TurnArgs},
    past::refuse_in_incognito,
    report::Exit,
    surroundings::Surroundings,
};

pub(super) async fn run(what: SessionsSub, args: &TurnArgs, around: &Surroundings) -> Result<Exit> {
    let ground = Ground::of(args, around)?;
    if let Some(command) = writing(&what) {
        refuse_in_incognito(&ground.loaded.settings, command)?;
    }
    match what {
        SessionsSub::List { max, json } => list::run(&ground, max, json).await,
        SessionsSub::Show { id, full, json } => show::run(&ground, id.as_deref(), full, json).await,
        SessionsSub::Search { words, max, json } => {
            search::run(&ground, &words.join(" "), max, json).await
        }
        SessionsSub::Fork { id, at, json } => fork::run(&ground, id.as_deref(), at, json).await,
        SessionsSub::Rename { id, title } => rename::run(&ground, &id, title.join(" ")).await,
        SessionsSub::Export { id, format, output } => {
            export::run(&ground, id.as_deref(), format, output.as_deref()).await
        }
        SessionsSub::Import { path, from, all, json } => {
            import::run(&ground, &path, from, all, json).await
        }
        SessionsSub::Delete { ids, yes } => delete::run(&ground, &ids, yes).await,
        SessionsSub::Repair { json } => repair::run(&ground, json).await,
        SessionsSub::Stats { json } => stats::run(&ground, json).await,
    }
}

/// The command, where it stores something. Forgetting does not.
fn writing(what: &SessionsSub) -> Option<&'static str> {
    match what {
        SessionsSub::Fork { .. } => Some("sessions fork"),
        SessionsSub::Rename { .. } => Some("sessions rename"),
        SessionsSub::Import { .. } => Some("sessions import"),
        SessionsSub::Repair { .. } => Some("sessions repair"),
        SessionsSub::List { .. }
        | SessionsSub::Show { .. }
        | SessionsSub::Search { .. }
        | SessionsSub::Export { .. }
        | SessionsSub::Delete { .. }
        | SessionsSub::Stats { .. } => None,
    }
}
