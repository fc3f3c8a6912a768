//! `gnoma man`: the manual, made from what the command line takes.

use std::path::Path;

use anyhow::{Context as _, Result};
use clap::{Command, CommandFactory as _};
use clap_mangen::Man;
use gnoma_host::HostError;

use super::common::print_safe_text;
use crate::{
    args::Args,
    environment::ProcessEnvironment,
    report::{self, Exit},
};

pub(crate) fn run(
    named: &[String],
    folder: Option<&Path>,
    around: &ProcessEnvironment,
) -> Result<Exit> {
    let mut command = Args::command();
    // Names the commands in full, such as `gnoma-sessions-list`.
    command.build();
    if !named.is_empty() {
        let found = named.iter().try_fold(&command, |group, name| group.find_subcommand(name));
        let found = found.ok_or_else(|| {
            let name = named.join(" ");
            HostError::usage(format!("there is no command `{name}`; `gnoma --help` lists them"))
        })?;
        return print_safe_text(&String::from_utf8_lossy(&render_page(found.clone())?));
    }
    let Some(folder) = folder else {
        return print_safe_text(&String::from_utf8_lossy(&render_page(command)?));
    };
    let folder = around.cwd.join(folder);
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot create the folder {}", folder.display()))?;
    let count = write_pages(command, &folder)?;
    report::print_line(format_args!("{count} pages are in {}", folder.display()));
    Ok(Exit::Done)
}

fn render_page(command: Command) -> Result<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(command).render(&mut page).context("cannot write the manual page")?;
    Ok(page)
}

/// Writes the page of a command and those of its own commands; gives how many these are.
fn write_pages(command: Command, folder: &Path) -> Result<usize> {
    let below: Vec<_> =
        command.get_subcommands().filter(|sub| !sub.is_hide_set()).cloned().collect();
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let file = folder.join(format!("{name}.1"));
    std::fs::write(&file, render_page(command)?)
        .with_context(|| format!("cannot write {}", file.display()))?;
    below.into_iter().try_fold(1, |count, sub| Ok(count + write_pages(sub, folder)?))
}
