//! `gnoma trust`: shows what a project file wants to decide, and lets it.

use std::path::PathBuf;

use anyhow::Result;
use gnoma_config::{paths, pin, project_root, trust::Store};
use gnoma_core::protocol::SessionSpec;
use gnoma_host::{Folders as _, HostError, wire};

use super::common::print;
use crate::{args::TurnArgs, environment::ProcessEnvironment, lowering, report::Exit, screen};

/// Most files that are named.
const MAX_NAMED: usize = 100;

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
        if acting.len() > MAX_NAMED {
            told.push_str(&format!("  and {} more\n", acting.len() - MAX_NAMED));
        }
    }
    told.push_str("Undo with `gnoma trust --revoke`.\n");
    print(&told)
}
