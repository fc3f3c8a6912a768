//! Finds the commands of other programs, and makes tasks of them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use gnoma_core::bounded_file;
use gnoma_extend::tasks::{import_command, is_task_name, task_file_path};

use super::{catalog::Tasks, draft::write_task};
use crate::{Folders as _, HostError, Project, Result};

/// Folders of commands below the home, each with its program.
const HOME_FOLDERS: [(CommandOrigin, &str); 4] = [
    (CommandOrigin::Claude, ".claude/commands"),
    (CommandOrigin::Codex, ".codex/prompts"),
    (CommandOrigin::Opencode, ".config/opencode/command"),
    (CommandOrigin::Opencode, ".config/opencode/commands"),
];
/// Folders of commands below a project.
const PROJECT_FOLDERS: [(CommandOrigin, &str); 3] = [
    (CommandOrigin::Claude, ".claude/commands"),
    (CommandOrigin::Opencode, ".opencode/command"),
    (CommandOrigin::Opencode, ".opencode/commands"),
];
/// Most commands of a folder, the folders in it included.
const MAX_COMMANDS: usize = 200;
/// Deepest folder that is looked into.
const MAX_DEPTH: usize = 3;
/// Most bytes of a command that are read.
const MAX_BYTES: u64 = 256 << 10;

/// The program whose command it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandOrigin {
    /// A command of Claude Code.
    Claude,
    /// A command of Codex.
    Codex,
    /// A command of opencode.
    Opencode,
}

/// A command, and what becomes of it.
#[derive(Clone, Debug)]
pub struct CommandImport {
    /// The name of the command and of the task.
    pub name: String,
    /// The file of the command, for people.
    pub file: String,
    /// The task's text with what is lost, or why there is none.
    pub task: Result<(String, Vec<String>), String>,
}

/// Finds the commands of other programs. Those of a project that is not trusted are only named. `from`: only of this
/// program; `names`: only these, or all if it is empty.
///
/// # Errors
/// A command of `names` is not there.
pub fn find_commands(
    project: &Project,
    from: Option<CommandOrigin>,
    names: &[String],
) -> Result<Vec<CommandImport>> {
    let tasks = Tasks::find(project);
    let home = project.environment().home();
    let home = home.iter().flat_map(|home| HOME_FOLDERS.map(|(by, path)| (by, home.join(path))));
    let root = &project.places.project;
    let waits = !tasks.places().is_trusted;
    let of_project = PROJECT_FOLDERS.map(|(by, path)| (by, root.join(path), waits));
    let home = home.map(|(by, path)| (by, path, false));
    let mut found: Vec<CommandImport> = Vec::new();
    let all = home.chain(of_project).filter(|(by, ..)| from.is_none_or(|it| it == *by));
    for (origin, folder, waits) in all {
        let mut files = Vec::new();
        add_files(&folder, 0, &mut files);
        gnoma_core::sort::sort_items(&mut files);
        for file in files {
            let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            if !names.is_empty() && !names.contains(&name) {
                continue;
            }
            let twin = found.iter().find(|other| other.name == name && other.task.is_ok());
            let task = match twin {
                _ if waits => Err("it counts once you trust the project: `gnoma trust`".to_owned()),
                Some(twin) => Err(format!("{} has that name, too, and comes first", twin.file)),
                None => convert_command(&tasks, origin, &name, &file),
            };
            found.push(CommandImport { name, file: tasks.places().display_path(&file), task });
        }
    }
    match names.iter().find(|name| found.iter().all(|it| it.name != **name)) {
        Some(missing) => {
            let cause = format!("there is no command `{}` to import", missing.escape_debug());
            let remedy = Some("`gnoma task import` lists those that there are".to_owned());
            Err(HostError { remedy, ..HostError::usage(cause) })
        }
        None => Ok(found),
    }
}

/// Makes the text of a task of a command, unless one of that name is there.
fn convert_command(
    tasks: &Tasks,
    origin: CommandOrigin,
    name: &str,
    file: &Path,
) -> Result<(String, Vec<String>), String> {
    if !is_task_name(name) {
        return Err("its name cannot be a task's".to_owned());
    }
    if task_file_path(tasks.places(), name, false).symlink_metadata().is_ok() {
        return Err("a task of that name is there already".to_owned());
    }
    let text = bounded_file::read_text(file, MAX_BYTES).map_err(|error| error.to_string())?;
    let imported = import_command(name, &text.unwrap_or_default(), origin == CommandOrigin::Codex);
    imported.map(|task| (task.text, task.lost)).map_err(|fault| fault.error.to_string())
}

/// Writes a task that was made of a command among the person's own. Says where.
///
/// # Errors
/// A task of that name is there, or the disk refuses.
pub fn write_import(project: &Project, name: &str, text: &str) -> Result<String> {
    let tasks = Tasks::find(project);
    let path = task_file_path(tasks.places(), name, false);
    write_task(&path, &project.firewall.redact_text(text))?;
    Ok(tasks.places().display_path(&path))
}

fn add_files(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries.take(MAX_COMMANDS) {
        let path = entry.path();
        // A link could lead to a file that is no command.
        let is_folder = match entry.file_type() {
            Ok(kind) if kind.is_dir() => true,
            Ok(kind) if kind.is_file() => false,
            Ok(_) | Err(_) => continue,
        };
        if is_folder && depth < MAX_DEPTH {
            add_files(&path, depth + 1, files);
        } else if path.extension().is_some_and(|it| it == "md") && files.len() < MAX_COMMANDS {
            files.push(path);
        }
    }
}
