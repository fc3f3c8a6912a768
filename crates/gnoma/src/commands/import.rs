//! `gnoma import`: shows what of another assistant's settings would be taken over, and takes it over.

use anyhow::Result;
use gnoma_host::{
    Folders as _, HostError,
    import::{self, ImportStep},
};

use super::common::{print, project};
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
    let project = project(args, around)?;
    let plan = import::plan(&project, from.into())?;
    if plan.is_empty() {
        return print("nothing found in your home folder\n");
    }
    let firewall = &project.firewall;
    let mut text = String::new();
    let heads = if writes { "imported" } else { "would be imported" };
    let steps = plan.steps.iter().map(ImportStep::told).collect::<Vec<_>>();
    section(heads, &steps, &mut text);
    section("there already", &plan.known, &mut text);
    section("used in place, not copied", &plan.as_is, &mut text);
    section("not imported", &plan.left, &mut text);
    if writes {
        let applied = import::apply(&project, &plan);
        let applied = applied.map_err(|error| HostError {
            cause: firewall.text(&error.cause).into_owned(),
            ..error
        })?;
        for path in applied {
            let shown = project.environment().shortened(&path);
            text.push_str(&format!("wrote {shown}\n"));
        }
    } else if !plan.steps.is_empty() {
        text.push_str("Nothing was written. Add --write to import.\n");
    }
    // Rules and the messages of readers quote what was written there.
    print(&firewall.text(&text))
}

fn section(head: &str, lines: &[String], text: &mut String) {
    if !lines.is_empty() {
        text.push_str(&format!("{head}:\n"));
        text.extend(lines.iter().map(|line| format!("  {line}\n")));
    }
}
