//! Task files: where they are, and what is wrong with those that cannot be used.

use std::{
    collections::HashMap,
    fmt, fs,
    path::{Path, PathBuf},
};

use super::{
    definition::{TaskDefinition, parse_task},
    fault::TaskFault,
    is_task_name,
};
use crate::places::{ExtendPlaces, ExtensionSource, read_text};

/// Most task files of one folder.
const MAX_TASKS: usize = 500;
/// The folder within the person's settings and within a project's `.gnoma`.
const FOLDER: &str = "tasks";

/// A task and its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskFile {
    /// The person's or the project's.
    pub by: ExtensionSource,
    /// The path of the file.
    pub path: PathBuf,
    /// The task that the file defines.
    pub task: TaskDefinition,
}

/// A task file that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskProblem {
    /// The name of the task.
    pub name: String,
    /// The file for people.
    pub file: String,
    /// The reason why it cannot be used.
    pub why: TaskProblemKind,
}

/// The reason why a task file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskProblemKind {
    /// The text is wrong.
    Fault(Box<TaskFault>),
    /// The file cannot be read.
    Unreadable(String),
    /// The name cannot be a task's.
    Name,
    /// A link leads out of the project, or to secrets.
    Outside,
    /// It has another ending, or is in a folder of the folder.
    Misplaced,
}

impl fmt::Display for TaskProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = &self.file;
        match &self.why {
            TaskProblemKind::Fault(fault) => write!(f, "{file}:{fault}"),
            TaskProblemKind::Unreadable(why) => write!(f, "{file}: {why}"),
            TaskProblemKind::Name => {
                write!(
                    f,
                    "{file}: `{}` cannot name a task; rename the file",
                    self.name.escape_debug()
                )
            }
            TaskProblemKind::Misplaced => {
                write!(f, "{file} is no task: tasks are files NAME.md in the folder itself")
            }
            TaskProblemKind::Outside => write!(f, "{file} leads outside the project or to secrets"),
        }
    }
}

/// Returns the file of a task in the project (`in_project`) or among the person's own settings.
#[must_use]
pub fn task_file_path(places: &ExtendPlaces, name: &str, in_project: bool) -> PathBuf {
    let base = if in_project { places.project.join(".gnoma") } else { places.config_dir.clone() };
    base.join(FOLDER).join(format!("{name}.md"))
}

/// Finds all tasks, sorted by name. Of two with one name, the project's counts if it is trusted. Also returns the files
/// that cannot be used.
#[must_use]
pub fn find_tasks(places: &ExtendPlaces) -> (Vec<TaskFile>, Vec<TaskProblem>) {
    let mut found: HashMap<String, TaskFile> = HashMap::new();
    let mut problems = Vec::new();
    let is_home = places.home.as_deref().is_some_and(|home| home == places.project);
    let folders = [
        Some((ExtensionSource::User, places.config_dir.join(FOLDER))),
        // If the home is the project, its files are the person's.
        (!is_home).then(|| (ExtensionSource::Project, places.project.join(".gnoma").join(FOLDER))),
    ];
    for (by, folder) in folders.into_iter().flatten() {
        for path in list_files(&folder, is_misplaced) {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let (file, why) = (places.display_path(&path), TaskProblemKind::Misplaced);
            problems.push(TaskProblem { name, file, why });
        }
        for path in list_files(&folder, is_markdown) {
            match read_task_file(places, by, &path) {
                Ok(file) if places.waits_for_trust(by) => {
                    found.entry(file.task.name.clone()).or_insert(file);
                }
                Ok(file) => {
                    found.insert(file.task.name.clone(), file);
                }
                Err(problem) => {
                    // A broken file of a trusted project does not let the person's own run in its place.
                    if !places.waits_for_trust(by) {
                        found.remove(&problem.name);
                    }
                    problems.push(problem);
                }
            }
        }
    }
    let mut all: Vec<TaskFile> = found.into_values().collect();
    gnoma_core::sort::sort_by(&mut all, |one: &TaskFile, other| {
        one.task.name.cmp(&other.task.name)
    });
    (all, problems)
}

/// The entries of a folder of which that is so, sorted.
fn list_files(folder: &Path, is_it: fn(&Path) -> bool) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let mut paths: Vec<PathBuf> = paths.filter(|path| is_it(path)).take(MAX_TASKS).collect();
    gnoma_core::sort::sort_items(&mut paths);
    paths
}

fn is_markdown(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "md")
}

/// Returns whether a person may take an entry for a task that is none: `Foo.MD`, or a folder with Markdown files.
fn is_misplaced(path: &Path) -> bool {
    if path.is_dir() {
        return !is_markdown(path) && !list_files(path, is_markdown).is_empty();
    }
    let extension = path.extension();
    extension.is_some_and(|it| it.eq_ignore_ascii_case("md")) && !is_markdown(path)
}

/// Reads one task file.
///
/// # Errors
/// The file cannot be used.
pub fn read_task_file(
    places: &ExtendPlaces,
    by: ExtensionSource,
    path: &Path,
) -> Result<TaskFile, TaskProblem> {
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let problem = |why| TaskProblem { name: name.clone(), file: places.display_path(path), why };
    if !is_task_name(&name) {
        return Err(problem(TaskProblemKind::Name));
    }
    if !places.is_inside(by, path) {
        return Err(problem(TaskProblemKind::Outside));
    }
    let text =
        read_text(path).map_err(|error| problem(TaskProblemKind::Unreadable(error.to_string())))?;
    let task = parse_task(&name, &text)
        .map_err(|fault| problem(TaskProblemKind::Fault(Box::new(fault))))?;
    Ok(TaskFile { by, path: path.to_owned(), task })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(root: &Path) -> ExtendPlaces {
        ExtendPlaces {
            config_dir: root.join("config"),
            project: root.join("project"),
            is_trusted: true,
            ..ExtendPlaces::default()
        }
    }

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn tasks_are_found_and_invalid_ones_reported_with_file_and_line() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let places = places(&root);
        let own = |name: &str| task_file_path(&places, name, false);
        let projects = |name: &str| task_file_path(&places, name, true);
        write(&own("a"), "mine");
        write(&own("b"), "mine");
        write(&own("c"), "mine");
        write(&projects("b"), "theirs");
        write(&projects("c"), "---\nnmae: c\n---\nx");
        write(&projects("list"), "x");
        write(&projects("big"), &"x".repeat(300 << 10));
        fs::write(projects("bytes"), b"\xff\xfe\xfd").unwrap();
        write(&projects("sub/x"), "x");
        write(&projects("x").with_file_name("Foo.MD"), "x");
        std::os::unix::fs::symlink("/etc/hostname", projects("out")).unwrap();
        let (found, problems) = find_tasks(&places);
        let names: Vec<_> = found.iter().map(|file| (&*file.task.name, file.by)).collect();
        assert_eq!(names, [("a", ExtensionSource::User), ("b", ExtensionSource::Project)]);
        let untrusting = ExtendPlaces { is_trusted: false, ..places };
        let mine: Vec<_> = find_tasks(&untrusting).0.into_iter().map(|file| file.by).collect();
        assert_eq!(mine, [ExtensionSource::User; 3]);
        let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
        let told = told.join("\n");
        for part in [
            ".gnoma/tasks/c.md:2: unknown field `nmae`; did you mean `name`?",
            ".gnoma/tasks/list.md: `list` cannot name a task",
            ".gnoma/tasks/big.md: it is larger than 256 KiB",
            ".gnoma/tasks/out.md leads outside the project",
            ".gnoma/tasks/sub is no task: tasks are files NAME.md in the folder itself",
            ".gnoma/tasks/Foo.MD is no task",
        ] {
            assert!(told.contains(part), "{part}: {told}");
        }
    }
}
