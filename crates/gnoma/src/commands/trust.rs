//! `gnoma trust`: shows what a project would run and decide, and trusts it after a yes.

use std::path::Path;

use anyhow::Result;
use gnoma_config::{paths, pin, project_root, trust::Store};
use gnoma_core::protocol::SessionSpec;
use gnoma_host::{Folders as _, HostError, crate_options, trust_preview};

use super::common::print_safe_text;
use crate::{
    args::{TrustArgs, TurnArgs},
    environment::ProcessEnvironment,
    launch_request,
    report::{self, Exit},
    screen, terminal,
};

pub(crate) fn run(
    wanted: &TrustArgs,
    args: &TurnArgs,
    around: &ProcessEnvironment,
) -> Result<Exit> {
    let mut store = Store::open(&around.environment.state_dir())?;
    if wanted.list {
        if store.list().next().is_none() {
            report::print_line("no folder is trusted");
        }
        let folders: String = store.list().map(|path| format!("{}\n", path.display())).collect();
        return print_safe_text(&folders);
    }
    let SessionSpec { folder: cwd, environment, .. } =
        crate_options::resolve_folders(launch_request::spec_from_args(args, around))?;
    let folder = match &wanted.folder {
        Some(named) => {
            let folder = cwd.join(named);
            // A folder that is gone can still lose its trust.
            if !wanted.revoke {
                refuse_no_folder(&folder, named)?;
            }
            folder
        }
        None => project_root(&cwd, &environment.config_dir()).unwrap_or(cwd),
    };
    if wanted.revoke {
        let was = store.revoke(&folder)?;
        let text = if was { "is no longer trusted" } else { "was not trusted" };
        return print_safe_text(&format!("{} {text}\n", folder.display()));
    }
    trust_folder(&mut store, &folder, wanted.yes, around)
}

/// Refuses what is no folder, as it was named.
fn refuse_no_folder(folder: &Path, named: &Path) -> Result<(), HostError> {
    let shown = named.display();
    match folder.metadata() {
        Ok(facts) if facts.is_dir() => Ok(()),
        Ok(_) => Err(HostError::usage(format!(
            "`{shown}` is a file; name the folder of the project, as in `gnoma trust .`"
        ))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(HostError::usage(format!("there is no folder `{shown}`")))
        }
        Err(error) => Err(HostError::usage(format!("`{shown}` cannot be opened: {error}"))),
    }
}

fn trust_folder(
    store: &mut Store,
    folder: &Path,
    is_confirmed: bool,
    around: &ProcessEnvironment,
) -> Result<Exit> {
    let shown = screen::mark_unsafe_chars(&folder.display().to_string()).to_string();
    let file = paths::project_file(folder);
    let content = paths::read_config_file(&file)?;
    let settings = content.as_deref().unwrap_or_default();
    if content.is_none() && pin::list_acting_files(folder, settings)?.is_empty() {
        return print_safe_text(&format!(
            "{shown} has no settings, hooks, skills or commands that need trust\n"
        ));
    }
    let pinned = pin::compute_pin(folder, settings)?;
    let told = preview_trust(folder, content.as_deref(), around)?;
    print_safe_text(&told)?;
    if !is_confirmed {
        let Some(terminal) = terminal::open_terminal(around) else {
            let remedy =
                "read the above; `gnoma trust --yes` trusts it without a question".to_owned();
            let error =
                HostError::usage(format!("{shown} is not trusted: nobody can be asked here"));
            return Err(HostError { remedy: Some(remedy), ..error }.into());
        };
        if !terminal::is_yes(&terminal, "Trust this project? [y/N] ") {
            print_safe_text(&format!("{shown} is not trusted\n"))?;
            return Ok(Exit::Failed);
        }
    }
    // What is trusted is what was read.
    if paths::read_config_file(&file)? != content || pin::compute_pin(folder, settings)? != pinned {
        let text = format!("{shown} changed meanwhile; run `gnoma trust` again");
        return Err(HostError::failure(text).into());
    }
    store.trust(folder, settings)?;
    print_safe_text(&format!(
        "trusted {shown} until one of these changes. Undo with `gnoma trust --revoke`.\n"
    ))
}

/// Describes for people what trust in the folder would allow.
fn preview_trust(
    folder: &Path,
    content: Option<&[u8]>,
    around: &ProcessEnvironment,
) -> Result<String> {
    let shown = screen::mark_unsafe_chars(&folder.display().to_string()).to_string();
    let mut told =
        format!("If you trust {shown}, it can change these settings and run these programs:\n");
    if let Some(content) = content {
        let file = paths::project_file(folder);
        told.push_str(&format!(
            "\nSettings in {}:\n",
            screen::mark_unsafe_chars(&file.display().to_string())
        ));
        let text = String::from_utf8_lossy(content);
        told.extend(text.lines().map(|line| format!("  | {}\n", screen::mark_unsafe_chars(line))));
    }
    for section in trust_preview(folder, content.unwrap_or_default(), &around.environment)? {
        told.push_str(&format!("\n{}:\n", section.heading));
        for item in &section.lines {
            // Whole, however long it is: a person would be asked about what they were not shown.
            let mut indent = "  ";
            for line in item.lines() {
                told.push_str(&format!("{indent}{}\n", screen::mark_unsafe_chars(line)));
                indent = "    ";
            }
        }
    }
    told.push('\n');
    Ok(told)
}
