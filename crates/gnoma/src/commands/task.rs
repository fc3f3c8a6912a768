//! `gnoma task`: lists, shows, makes, checks and deletes tasks, and shows their runs.

use std::{path::PathBuf, process::Command};

use anyhow::Result;
use gnoma_extend::tasks::{
    TaskDefinition, is_task_name, new_task_text, task_file_path, task_schema,
};
use gnoma_host::{
    HostError, Project,
    tasks::{
        Tasks, check_file, describe_history, describe_unused, draft_repair, refuse_shared_folder,
        task_name_error, write_task,
    },
};

use super::{
    common::{open_project, print_json, print_safe_text},
    task_import, task_run, task_schedule, task_suggest,
};
use crate::{
    args::{TaskSub, TurnArgs},
    environment::ProcessEnvironment,
    report::{self, Exit},
    table, terminal,
};

/// The editor if the person has named none.
const USUAL_EDITOR: &str = "vi";

pub(super) async fn run(
    what: &TaskSub,
    args: &TurnArgs,
    around: &ProcessEnvironment,
) -> Result<Exit> {
    match what {
        TaskSub::Run(how) => task_run::run(how, args, around).await,
        TaskSub::Resume(how) => task_run::resume(how, args, around).await,
        TaskSub::Schedule(wanted) => task_schedule::create(wanted, args, around).await,
        TaskSub::Schedules { action, id } => {
            task_schedule::manage_schedules(*action, *id, &open_project(args, around)?, args)
        }
        TaskSub::Suggestions { save, as_name, yes } => {
            let name = (save.as_deref(), as_name.as_deref());
            task_suggest::run(&open_project(args, around)?, name, *yes, args, around).await
        }
        TaskSub::Check { schema: true, .. } => print_json(&task_schema()),
        TaskSub::Check { files, .. } => check_tasks(files, &open_project(args, around)?, around),
        TaskSub::List => list_tasks(&open_project(args, around)?),
        TaskSub::Show { name } => {
            print_safe_text(&Tasks::find(&open_project(args, around)?).describe(name)?)
        }
        TaskSub::Edit { name } => edit_task(name, &open_project(args, around)?, around),
        TaskSub::New { name, project: is_project } => {
            create_task(name, *is_project, &open_project(args, around)?)
        }
        TaskSub::Import { names, from, write } => {
            task_import::run(names, *from, *write, &open_project(args, around)?)
        }
        TaskSub::Repair { name, yes } => {
            repair_task(name, *yes, &open_project(args, around)?, around).await
        }
        TaskSub::Delete { name, yes } => {
            delete_task(name, *yes, &open_project(args, around)?, around)
        }
        TaskSub::History { name } => {
            let project = open_project(args, around)?;
            print_safe_text(&describe_history(&project, name.as_deref().unwrap_or_default()))
        }
    }
}

fn list_tasks(project: &Project) -> Result<Exit> {
    let tasks = Tasks::find(project);
    for problem in &tasks.problems {
        report::print_line(format_args!("warning: left out: {problem}"));
    }
    let rows = tasks.files.iter().map(|file| {
        let use_of = if tasks.waits_for_trust(file) {
            "needs `gnoma trust`"
        } else if tasks.has_waiting_twin(file) {
            "yes; the project's needs `gnoma trust`"
        } else {
            "yes"
        };
        [file.task.usage(), file.by.to_string(), use_of.to_owned(), file.task.description.clone()]
    });
    let text = table::render_table(["task", "from", "runs", "what it does"], rows);
    if text.is_empty() {
        return print_safe_text("no tasks. `gnoma task new NAME` writes one to edit\n");
    }
    let unused = describe_unused(project, &tasks).map_or_else(String::new, |line| line + "\n");
    print_safe_text(&(text + &unused))
}

async fn repair_task(
    name: &str,
    is_confirmed: bool,
    project: &Project,
    around: &ProcessEnvironment,
) -> Result<Exit> {
    let draft = draft_repair(project, name).await?;
    task_suggest::save_drafted(project, &draft, is_confirmed, around)
}

/// Checks files, or all tasks: those that cannot be read, and those that cannot be planned.
fn check_tasks(files: &[PathBuf], project: &Project, around: &ProcessEnvironment) -> Result<Exit> {
    let (mut text, mut is_valid) = (String::new(), true);
    let mut tell = |shown: &str, checked: Result<(), String>| {
        is_valid &= checked.is_ok();
        let line = checked.err().unwrap_or_else(|| format!("{shown}: valid"));
        text.push_str(&line);
        text.push('\n');
    };
    let tasks = Tasks::find(project);
    let links = |task: &TaskDefinition| tasks.check_links(task).map_err(|error| error.to_string());
    if files.is_empty() {
        for file in &tasks.files {
            tell(&tasks.places().display_path(&file.path), links(&file.task));
        }
        for problem in &tasks.problems {
            tell("", Err(problem.to_string()));
        }
    }
    for file in files {
        let path = around.cwd.join(file);
        // A folder of the project may be called as a task is.
        let name = file.to_str().filter(|_| !path.is_file());
        let path = match name.map(|name| tasks.file_path(name)) {
            Some(Ok(named)) => Ok(named),
            Some(Err(error)) if !path.exists() => Err(error.to_string()),
            Some(Err(_)) | None => Ok(path),
        };
        let read =
            |path: PathBuf| check_file(project, &path).map_err(|problem| problem.to_string());
        let checked = path.and_then(read);
        tell(&file.display().to_string(), checked.and_then(|file| links(&file.task)));
    }
    print_safe_text(&text)?;
    Ok(if is_valid { Exit::Done } else { Exit::Failed })
}

fn create_task(name: &str, in_project: bool, project: &Project) -> Result<Exit> {
    if !is_task_name(name) {
        return Err(task_name_error(name).into());
    }
    if in_project {
        refuse_shared_folder(project)?;
    }
    let tasks = Tasks::find(project);
    let path = task_file_path(tasks.places(), name, in_project);
    let shown = tasks.places().display_path(&path);
    if path.symlink_metadata().is_ok() {
        let remedy = Some(format!("`gnoma task edit {name}` changes it"));
        return Err(HostError { remedy, ..HostError::usage(format!("{shown} exists")) }.into());
    }
    write_task(&path, &new_task_text(name))?;
    let trust =
        if in_project { ". Trust the project again before it runs: `gnoma trust`" } else { "" };
    print_safe_text(&format!(
        "wrote {shown}. `gnoma task edit {name}` changes it, `gnoma task run {name}` runs it{trust}\n"
    ))
}

fn edit_task(name: &str, project: &Project, around: &ProcessEnvironment) -> Result<Exit> {
    let path = Tasks::find(project).file_path(name)?;
    let editor = around.var("VISUAL").or_else(|| around.var("EDITOR")).unwrap_or(USUAL_EDITOR);
    // The variable may have options behind the program.
    let line = format!("{editor} \"$@\"");
    let ended = Command::new("/bin/sh").args(["-c", &line, "sh"]).arg(&path).status();
    let failed = |why: String| HostError::failure(format!("cannot use `{editor}`: {why}"));
    let status = ended.map_err(|error| failed(error.to_string()))?;
    if !status.success() {
        return Err(failed(format!("it ended with {status}")).into());
    }
    check_tasks(&[path], project, around)
}

fn delete_task(
    name: &str,
    is_confirmed: bool,
    project: &Project,
    around: &ProcessEnvironment,
) -> Result<Exit> {
    let tasks = Tasks::find(project);
    let path = tasks.file_path(name)?;
    let shown = tasks.places().display_path(&path);
    if !is_confirmed {
        let Some(terminal) = terminal::open_terminal(around) else {
            let error =
                HostError::usage(format!("{shown} was not deleted: nobody can be asked here"));
            let remedy = Some("`--yes` deletes it without a question".to_owned());
            return Err(HostError { remedy, ..error }.into());
        };
        if !terminal::is_yes(&terminal, &format!("Delete {shown}? [y/N] ")) {
            print_safe_text(&format!("{shown} was not deleted\n"))?;
            return Ok(Exit::Failed);
        }
    }
    std::fs::remove_file(&path)
        .map_err(|error| HostError::failure(format!("cannot delete {shown}: {error}")))?;
    print_safe_text(&format!("deleted {shown}\n"))
}
