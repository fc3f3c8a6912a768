//! Commands about the past, run as programs of their own: what they say goes to the face, and none of
//! it to the terminal that the face draws on.

use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};
use gnoma_sandbox::launcher;

use crate::{args::TurnArgs, report::Misuse};

/// Runs `gnoma` with these words for the folder and profile of `args`; gives what it prints.
///
/// # Errors
/// When it cannot be started, or fails: with its own words.
pub(super) fn run(args: &TurnArgs, words: &[&str]) -> Result<String> {
    let mut command = Command::new(launcher::ITSELF);
    command.args(words).stdin(Stdio::null());
    if let Some(folder) = &args.cwd {
        command.arg("--cwd").arg(folder);
    }
    if let Some(profile) = &args.profile {
        command.args(["--profile", profile]);
    }
    let done = command.output().context("gnoma cannot start itself")?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (printed, said) = (text(&done.stdout), text(&done.stderr));
    if done.status.success() {
        return Ok(if printed.is_empty() { said } else { printed });
    }
    let why = said.trim().trim_start_matches("gnoma: ").to_owned();
    Err(Misuse(if why.is_empty() { "it failed and did not say why".to_owned() } else { why })
        .into())
}
