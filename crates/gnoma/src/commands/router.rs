//! `gnoma router`: what the choice of models rests on, for people and for measuring it.

mod arms;
mod keep;
mod pools;
mod stats;

use std::io::{self, BufRead, Write};

use anyhow::{Context, Result};
use gnoma_router::replay::Replay;

use super::project;
use crate::{
    args::{RouterSub, TurnArgs},
    report::Exit,
    surroundings::Surroundings,
};

const MICRO: f64 = 1e6;

pub(super) async fn run(what: &RouterSub, args: &TurnArgs, around: &Surroundings) -> Result<Exit> {
    if let RouterSub::Replay = what {
        return replay();
    }
    let project = project(args, around)?;
    match what {
        RouterSub::Stats { json } => stats::run(&project, *json).await,
        RouterSub::Arms { json } => arms::run(&project, *json).await,
        RouterSub::Pools { redate, json } => {
            if *redate {
                pools::redate(&project).await?;
            }
            pools::run(&project, *json).await
        }
        RouterSub::Reset { yes, json } => keep::reset(&project, *yes, *json, around).await,
        RouterSub::Export { json: _ } => keep::export(&project),
        RouterSub::Import { file, replace, json } => keep::import(&project, file, *replace, *json),
        RouterSub::Replay => replay(),
    }
}

/// Answers every line as soon as it is read: the other side waits for it.
fn replay() -> Result<Exit> {
    let mut replay = Replay::default();
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let line = line.context("cannot read standard input")?;
        if let Some(answer) = replay.answer(&line)? {
            writeln!(out, "{answer}")
                .and_then(|()| out.flush())
                .context("cannot write the answer")?;
        }
    }
    Ok(Exit::Done)
}

/// Micro-dollars for people: cents, and more digits where there are none.
fn money(micro_usd: f64) -> String {
    let dollars = micro_usd / MICRO;
    if dollars == 0.0 || dollars >= 1.0 {
        format!("${dollars:.2}")
    } else {
        format!("${dollars:.4}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_amounts_do_not_read_as_nothing() {
        assert_eq!(money(0.0), "$0.00");
        assert_eq!(money(1_500.0), "$0.0015");
        assert_eq!(money(12_345_678.0), "$12.35");
    }
}
