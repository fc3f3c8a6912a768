//! `gnoma router`: what the choice of models rests on, for people and for measuring it.

mod arms;
mod learned_data;
pub(super) mod money;
mod pools;
pub(super) mod stats;

use std::io::{self, BufRead, Write};

use anyhow::{Context, Result};
use futures_util::future::LocalBoxFuture;
use gnoma_router::replay::Replay;

use super::common::open_project;
use crate::{
    args::{RouterSub, TurnArgs},
    environment::ProcessEnvironment,
    report::Exit,
};

pub(super) async fn run(
    what: &RouterSub,
    args: &TurnArgs,
    around: &ProcessEnvironment,
) -> Result<Exit> {
    if let RouterSub::Replay = what {
        return replay_stdin();
    }
    let project = &open_project(args, around)?;
    let command: LocalBoxFuture<'_, Result<Exit>> = match what {
        RouterSub::Stats { json } => Box::pin(stats::run(project, *json)),
        RouterSub::Arms { json } => Box::pin(arms::run(project, None, *json)),
        RouterSub::Pools { redate, accept_loss, json } => {
            Box::pin(pools::run(project, *redate, *accept_loss, *json))
        }
        RouterSub::Reset { yes, json } => {
            Box::pin(learned_data::reset_state(project, *yes, *json, around))
        }
        RouterSub::Export { json: _ } => return learned_data::export_state(project),
        RouterSub::Import { file, replace, json } => {
            return learned_data::import_state(project, file, *replace, *json);
        }
        RouterSub::Replay => return replay_stdin(),
    };
    command.await
}

/// Lists the models; with `name` those alone that have it in theirs.
pub(super) async fn list_models(
    name: Option<&str>,
    json: bool,
    args: &TurnArgs,
    around: &ProcessEnvironment,
) -> Result<Exit> {
    // Other groups of commands have `list`.
    let name = name.filter(|name| !matches!(*name, "list" | "ls"));
    arms::run(&open_project(args, around)?, name, json).await
}

/// Answers every line as soon as it is read: the other side waits for it.
fn replay_stdin() -> Result<Exit> {
    let mut replay = Replay::default();
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let line = line.context("cannot read standard input")?;
        if let Some(answer) = replay.answer_line(&line)? {
            writeln!(out, "{answer}")
                .and_then(|()| out.flush())
                .context("cannot write the answer")?;
        }
    }
    Ok(Exit::Done)
}
