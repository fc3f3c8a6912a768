//! Makes a task file of a session, and writes new task files.

use std::{
    fmt, fs,
    io::Write as _,
    path::{Path, PathBuf},
};

use gnoma_core::store::SessionId;
use gnoma_extend::tasks::{draft_from_messages, is_task_name, task_file_path};

use crate::{HostError, Project, Result, extensions};

/// A task that was made of a session and is not saved yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DraftedTask {
    /// The name of the task.
    pub name: String,
    /// The text of its file.
    pub text: String,
    /// The text as a diff of a new file, and what was left out.
    pub diff: String,
}

/// Makes a task of what a person has said in a session.
pub(crate) fn draft(
    project: &Project,
    session: &SessionId,
    name: &str,
    messages: &[String],
) -> Result<DraftedTask> {
    let path = new_file(project, name)?;
    let drafted = draft_from_messages(name, session.as_str(), messages);
    let drafted = drafted.map_err(|fault| {
        HostError::usage(format!("nothing you said here can be a step: {}", fault.error))
    })?;
    let text = project.firewall.text(&drafted.text).into_owned();
    let shown = extensions::places(project).shown(&path);
    let lines = text.lines().count();
    let mut diff = format!("--- /dev/null\n+++ b/{shown}\n@@ -0,0 +1,{lines} @@\n");
    diff.extend(text.lines().map(|line| format!("+{line}\n")));
    if drafted.omitted > 0 {
        let count = drafted.omitted;
        diff.push_str(&format!(
            "{count} messages were left out, because they are too long or too many\n"
        ));
    }
    Ok(DraftedTask { name: name.to_owned(), text, diff })
}

/// Writes a drafted task as a new file of the person's. Says where.
pub(crate) fn save_draft(project: &Project, draft: &DraftedTask) -> Result<String> {
    let path = new_file(project, &draft.name)?;
    write_task(&path, &draft.text)?;
    let shown = extensions::places(project).shown(&path);
    Ok(format!("Saved {shown}. Run it with /task {}", draft.name))
}

/// The file of a new task of the person's.
fn new_file(project: &Project, name: &str) -> Result<PathBuf> {
    if !is_task_name(name) {
        let cause = format!("`{}` cannot name a task", name.escape_debug());
        let remedy = Some("use letters, digits, `-` and `_`".to_owned());
        return Err(HostError { remedy, ..HostError::usage(cause) });
    }
    if project.is_incognito() {
        return Err(HostError::usage("nothing is saved in incognito"));
    }
    let places = extensions::places(project);
    let path = task_file_path(&places, name, false);
    if path.symlink_metadata().is_ok() {
        let cause = format!("{} exists", places.shown(&path));
        let remedy = Some("choose another name, or change it with `gnoma task edit`".to_owned());
        return Err(HostError { remedy, ..HostError::usage(cause) });
    }
    Ok(path)
}

/// Writes a new task file, whole or not at all. Never replaces one.
///
/// # Errors
/// The file exists, or cannot be written.
pub fn write_task(path: &Path, text: &str) -> Result<()> {
    let failed = |error: &dyn fmt::Display| {
        HostError::failure(format!("cannot write {}: {error}", path.display()))
    };
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).map_err(|error| failed(&error))?;
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(|error| failed(&error))?;
    file.write_all(text.as_bytes()).map_err(|error| failed(&error))?;
    file.as_file().sync_all().map_err(|error| failed(&error))?;
    file.persist_noclobber(path).map_err(|error| failed(&error.error))?;
    Ok(())
}
