//! `gnoma trust`: shows what a project file wants to decide, and lets it.

use std::path::PathBuf;

use anyhow::Result;
use gnoma_config::{paths, project_root, trust::Store};
use gnoma_core::protocol::SessionSpec;
use gnoma_host::{Folders as _, HostError, wire};

use super::common::print;
use crate::{args::TurnArgs, environment::ProcessEnvironment, lowering, report::Exit, screen};

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
    let Some(content) = paths::read(&file)? else {
        let text = format!(
            "{} does not exist: the folder has no settings that need trust",
            file.display()
        );
        return Err(HostError::usage(text).into());
    };
    store.trust(&folder, &content)?;
    let text = String::from_utf8_lossy(&content);
    let quoted: String =
        text.lines().map(|line| format!("  | {}\n", screen::clean(line))).collect();
    print(&format!(
        "trusted {shown}, as long as {} says:\n{quoted}Undo with `gnoma trust --revoke`.\n",
        file.display()
    ))
}
