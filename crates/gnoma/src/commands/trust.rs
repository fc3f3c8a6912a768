//! `gnoma trust`: shows what a project file wants to decide, and lets it.

use std::path::{Path, PathBuf};

use anyhow::Result;
use gnoma_config::{paths, pin, project_root, trust::Store};
use gnoma_core::{cut, protocol::SessionSpec};
use gnoma_host::{Folders as _, HostError, wire};

use super::common::print;
use crate::{args::TurnArgs, environment::ProcessEnvironment, lowering, report::Exit, screen};

/// Most files and commands that are named.
const MAX_NAMED: usize = 100;
/// Longest command that is shown, in characters.
const MAX_COMMAND_CHARS: usize = 160;

pub(crate) fn run(
    folder: Option<PathBuf>,
    revoke: bool,
    list: bool,
    args: &TurnArgs,
    around: &ProcessEnvironment,
) -> Result<Exit> {
    let mut store = Store::open(&around.environment.state_dir())?;
    if list {
        let folders: String = store.list().map(|path| format!("{}\n", path.display())).collect();
        return print(&folders);
    }
    let SessionSpec { folder: cwd, environment, .. } = wire::found(lowering::spec(args, around))?;
    let folder = match folder {
        Some(folder) => cwd.join(folder),
        None => project_root(&cwd, &environment.config_dir()).unwrap_or(cwd),
    };
    let shown = folder.display();
    if revoke {
        let text = if store.revoke(&folder)? { "is no longer trusted" } else { "was not trusted" };
        return print(&format!("{shown} {text}\n"));
    }
    let file = paths::project_file(&folder);
    let content = paths::read(&file)?;
    let acting = pin::acting(&folder, content.as_deref().unwrap_or_default())?;
    if content.is_none() && acting.is_empty() {
        let text = format!("{shown} has no settings, hooks, skills or commands that need trust");
        return Err(HostError::usage(text).into());
    }
    store.trust(&folder, content.as_deref().unwrap_or_default())?;
    let mut told = format!("trusted {shown}, as long as ");
    if let Some(content) = &content {
        let text = String::from_utf8_lossy(content);
        told.push_str(&format!("{} says:\n", file.display()));
        told.extend(text.lines().map(|line| format!("  | {}\n", screen::clean(line))));
    }
    if !acting.is_empty() {
        told.push_str(if content.is_some() { "and " } else { "" });
        told.push_str("these files do not change:\n");
        let name = |file: &PathBuf| format!("  {}\n", screen::clean(&file.display().to_string()));
        told.extend(acting.iter().take(MAX_NAMED).map(name));
        told.push_str(&more(acting.len()));
    }
    told.push_str(&unpinned(&folder, content.as_deref().unwrap_or_default())?);
    told.push_str("Undo with `gnoma trust --revoke`.\n");
    print(&told)
}

/// The commands of which it shows only when they run what else they name.
fn unpinned(folder: &Path, content: &[u8]) -> Result<String> {
    let commands = pin::unpinned(folder, content)?;
    if commands.is_empty() {
        return Ok(String::new());
    }
    let mut told = "Trust does not cover what these commands name only when they run:\n".to_owned();
    for command in commands.iter().take(MAX_NAMED) {
        let words = command.split_whitespace().collect::<Vec<_>>().join(" ");
        let kept = cut::head_chars(&words, MAX_COMMAND_CHARS);
        let rest = if kept.len() < words.len() { "…" } else { "" };
        told.push_str(&format!("  {}{rest}\n", screen::clean(kept)));
    }
    Ok(told + &more(commands.len()))
}

/// How many of so many are not named.
fn more(count: usize) -> String {
    match count.saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!("  and {more} more\n"),
    }
}
