//! `gnoma task suggestions`: lists chores that were done several times, and saves one as a task.

use anyhow::Result;
use gnoma_extend::tasks::task_file_path;
use gnoma_host::{
    HostError, Project, extensions,
    tasks::{DraftedTask, Suggestions, save_draft, write_task},
};

use super::common::{print_json, print_safe_text};
use crate::{
    args::{OutputFormat, TurnArgs},
    environment::ProcessEnvironment,
    front::json::redact_value,
    report::Exit,
    screen, terminal,
};

/// Lists the suggestions, or saves the one that is named, under another name if there is one.
pub(super) async fn run(
    project: &Project,
    (suggestion, name): (Option<&str>, Option<&str>),
    is_confirmed: bool,
    args: &TurnArgs,
    around: &ProcessEnvironment,
) -> Result<Exit> {
    let found = Suggestions::find(project).await?;
    match suggestion {
        Some(suggestion) => {
            let draft = found.draft(project, suggestion, name.unwrap_or(suggestion))?;
            save_drafted(project, &draft, is_confirmed, around)
        }
        None if args.output_format == OutputFormat::Text => {
            print_safe_text(&project.firewall.redact_text(&found.describe()))
        }
        None => print_json(&redact_value(&found.to_json(), &project.firewall)),
    }
}

/// Shows the file of a task, asks, and writes it.
pub(super) fn save_drafted(
    project: &Project,
    draft: &DraftedTask,
    is_confirmed: bool,
    around: &ProcessEnvironment,
) -> Result<Exit> {
    print_safe_text(&draft.diff)?;
    if !is_confirmed {
        let Some(terminal) = terminal::open_terminal(around) else {
            let error = HostError::usage("the task was not saved: nobody can be asked here");
            let remedy = Some("`--yes` saves it without a question".to_owned());
            return Err(HostError { remedy, ..error }.into());
        };
        let question = format!("Save the task {}? [y/N] ", draft.name);
        if !terminal::is_yes(&terminal, &screen::mark_unsafe_chars(&question)) {
            print_safe_text("the task was not saved\n")?;
            return Ok(Exit::Failed);
        }
    }
    if draft.replaces.is_some() {
        return print_safe_text(&format!("{}\n", save_draft(project, draft)?));
    }
    let places = extensions::extension_places(project);
    let path = task_file_path(&places, &draft.name, false);
    write_task(&path, &draft.text)?;
    print_safe_text(&format!(
        "saved {}. `gnoma task run {}` runs it\n",
        places.display_path(&path),
        draft.name
    ))
}
