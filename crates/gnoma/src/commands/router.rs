//! `gnoma router`: the router without models, for measuring it.

use std::io::{self, BufRead, Write};

use anyhow::{Context, Result};
use gnoma_router::replay::Replay;

use crate::{args::RouterSub, report::Exit};

pub(crate) fn run(what: &RouterSub) -> Result<Exit> {
    match what {
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
