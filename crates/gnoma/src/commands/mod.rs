//! What the command line asks for, one file per command.

mod ask;
mod config;
mod demo;
mod providers;
mod trust;

use std::{io::Write as _, path::PathBuf};

use anyhow::{Context as _, Result};
use clap::CommandFactory as _;

use crate::{
    args::{Args, Sub, TurnArgs},
    report::{Exit, Misuse},
    surroundings::Surroundings,
};

/// Does what `args` say.
pub(crate) async fn run(args: Args, around: &Surroundings) -> Result<Exit> {
    let turn = args.turn;
    match args.command {
        None => ask::run(&turn, around).await,
        Some(Sub::Demo) => demo::run(around).await,
        Some(Sub::Providers) => providers::run(&turn, around).await,
        Some(Sub::Config { what }) => config::run(&what, &turn, around),
        Some(Sub::Trust { folder, revoke, list }) => {
            trust::run(folder, revoke, list, &turn, around)
        }
        Some(Sub::Completions { shell }) => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Args::command(), "gnoma", &mut script);
            print(&String::from_utf8_lossy(&script))
        }
    }
}

/// The folder to work in, without symbolic links.
fn cwd(args: &TurnArgs, around: &Surroundings) -> Result<PathBuf, Misuse> {
    let wanted = args.cwd.as_ref().map_or_else(|| around.cwd.clone(), |cwd| around.cwd.join(cwd));
    let folder = wanted.canonicalize().ok().filter(|path| path.is_dir());
    folder.ok_or_else(|| Misuse(format!("`{}` is no folder to work in", wanted.display())))
}

/// Writes to standard output; a reader that has left is no error.
fn print(text: &str) -> Result<Exit> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(error).context("cannot write to standard output")
        }
        Ok(()) | Err(_) => Ok(Exit::Done),
    }
}
