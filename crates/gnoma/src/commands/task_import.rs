//! `gnoma task import`: shows which commands of other programs would become tasks, and makes them tasks.

use anyhow::Result;
use gnoma_host::{
    Project,
    tasks::{CommandOrigin, find_commands, write_import},
};

use super::common::print_safe_text;
use crate::{args::TaskImportFrom, report::Exit};

pub(super) fn run(
    names: &[String],
    from: Option<TaskImportFrom>,
    writes: bool,
    project: &Project,
) -> Result<Exit> {
    let from = from.map(|from| match from {
        TaskImportFrom::Claude => CommandOrigin::Claude,
        TaskImportFrom::Codex => CommandOrigin::Codex,
        TaskImportFrom::Opencode => CommandOrigin::Opencode,
    });
    let found = find_commands(project, from, names)?;
    let (mut text, mut count) = (String::new(), 0);
    for command in &found {
        let (name, file) = (&command.name, &command.file);
        match &command.task {
            Err(why) => text.push_str(&format!("left out: {name} ({file}): {why}\n")),
            Ok((task, lost)) => {
                let done = if writes {
                    format!("wrote {}", write_import(project, name, task)?)
                } else {
                    format!("would import {name}")
                };
                let lost = match &**lost {
                    [] => String::new(),
                    lost => format!("; lost: {}", lost.join(", ")),
                };
                text.push_str(&format!("{done} (from {file}){lost}\n"));
                count += 1;
            }
        }
    }
    if found.is_empty() {
        text.push_str("no commands of Claude Code, Codex or opencode found\n");
    } else if count > 0 && !writes {
        text.push_str("Nothing was written. Add --write to import.\n");
    }
    print_safe_text(&project.firewall.redact_text(&text))
}
