//! `gnoma import`: shows what of another assistant's settings would be taken over, and takes it over.

use anyhow::Result;
use gnoma_host::{
    Folders as _, HostError,
    import::{self, ImportStep},
};

use super::common::{open_project, print_safe_text};
use crate::{
    args::{ImportFrom, TurnArgs},
    environment::ProcessEnvironment,
    report::Exit,
};

pub(super) fn run(
    from: ImportFrom,
    writes: bool,
    args: &TurnArgs,
    around: &ProcessEnvironment,
) -> Result<Exit> {
    let project = open_project(args, around)?;
    let plan = import::plan_import(&project, from.into())?;
    if plan.is_empty() {
        return print_safe_text("nothing found in your home folder\n");
    }
    let firewall = &project.firewall;
    let mut text = String::new();
    let heads = if writes { "imported" } else { "would be imported" };
    let steps = plan.steps.iter().map(ImportStep::to_line).collect::<Vec<_>>();
    push_section(heads, &steps, &mut text);
    push_section("there already", &plan.known, &mut text);
    push_section("used in place, not copied", &plan.as_is, &mut text);
    push_section("not imported", &plan.left, &mut text);
    if writes {
        let applied = import::apply_plan(&project, &plan);
        let applied = applied.map_err(|error| HostError {
            cause: firewall.redact_text(&error.cause).into_owned(),
            ..error
        })?;
        for path in applied {
            let shown = project.environment().shorten_home(&path);
            text.push_str(&format!("wrote {shown}\n"));
        }
    } else if !plan.steps.is_empty() {
        text.push_str("Nothing was written. Add --write to import.\n");
    }
    // Rules and the messages of readers quote what was written there.
    print_safe_text(&firewall.redact_text(&text))
}

fn push_section(head: &str, lines: &[String], text: &mut String) {
    if !lines.is_empty() {
        text.push_str(&format!("{head}:\n"));
        text.extend(lines.iter().map(|line| format!("  {line}\n")));
    }
}
