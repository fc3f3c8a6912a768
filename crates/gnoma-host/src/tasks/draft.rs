//! Makes a task file of a session, and writes new task files.

use std::{
    collections::HashSet,
    fmt, fs,
    io::Write as _,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use gnoma_core::{private_file::FileReplacement, quantity::describe_count, store::SessionId};
use gnoma_extend::tasks::{
    RunRecord, TaskError, digest_message, draft_from_messages, is_reserved_name, is_task_name,
    task_file_path,
};
use gnoma_guard::firewall::Firewall;

use super::history::run_store;
use crate::{HostError, Project, Result, extensions};

/// The bit of a folder's mode with which everybody may write into it.
const WRITABLE_BY_ALL: u32 = 0o002;

/// A task that was made of a session and is not saved yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DraftedTask {
    /// The name of the task.
    pub name: String,
    /// The text of its file.
    pub text: String,
    /// The text as a diff of a new file, and what was left out.
    pub diff: String,
    /// The file that it replaces, and the text that this has; `None` for a new file.
    pub replaces: Option<(PathBuf, String)>,
}

/// Makes a task of what a person has said in a session. Messages of the steps of tasks are left out.
pub(crate) fn draft_task(
    project: &Project,
    session: &SessionId,
    name: &str,
    messages: &[String],
) -> Result<DraftedTask> {
    let path = new_file(project, name)?;
    let runs = run_store(project).map(|store| store.runs(None)).unwrap_or_default();
    let (own, of_steps) = without_messages_of_steps(&runs, session, messages, &project.firewall);
    let drafted = draft_from_messages(name, session.as_str(), &own);
    let drafted = drafted.map_err(|fault| {
        let nothing = "nothing you said here can be a step";
        HostError::usage(match fault.error {
            TaskError::NoSteps => nothing.to_owned(),
            error => format!("{nothing}: {error}"),
        })
    })?;
    let text = project.firewall.redact_text(&drafted.text).into_owned();
    let mut diff = describe_new_file(project, &path, &text);
    if drafted.omitted > 0 {
        let count = describe_count(drafted.omitted, "step");
        diff.push_str(&format!("{count} left out as too long or too many\n"));
    }
    if of_steps > 0 {
        let count = describe_count(of_steps, "message");
        diff.push_str(&format!("{count} of the steps of tasks left out\n"));
    }
    Ok(DraftedTask { name: name.to_owned(), text, diff, replaces: None })
}

/// Describes a new file as a diff.
pub(super) fn describe_new_file(project: &Project, path: &Path, text: &str) -> String {
    let shown = extensions::extension_places(project).display_path(path);
    let lines = text.lines().count();
    let mut diff = format!("--- /dev/null\n+++ b/{shown}\n@@ -0,0 +1,{lines} @@\n");
    diff.extend(text.lines().map(|line| format!("+{line}\n")));
    diff
}

/// Returns the messages that no step of these runs has put into the session, and the number of the others.
fn without_messages_of_steps(
    runs: &[RunRecord],
    session: &SessionId,
    messages: &[String],
    firewall: &Firewall,
) -> (Vec<String>, usize) {
    let of_steps = runs.iter().flat_map(|run| &run.messages);
    let of_steps: HashSet<&str> = of_steps
        .filter(|(place, _)| place == session.as_str())
        .map(|(_, digest)| digest.as_str())
        .collect();
    let is_own = |message: &&String| {
        // Records hold digests of texts without secrets.
        !of_steps.contains(digest_message(&firewall.redact_text(message)).as_str())
    };
    let own: Vec<String> = messages.iter().filter(is_own).cloned().collect();
    let count = messages.len() - own.len();
    (own, count)
}

/// Refuses to save a task in a folder that is no project: the home folder, and one that everybody may write, such as
/// `/tmp`.
///
/// # Errors
/// The folder is no project.
pub fn refuse_shared_folder(project: &Project) -> Result<()> {
    let places = extensions::extension_places(project);
    let folder = &places.project;
    let is_home = places.home.as_deref() == Some(folder.as_path());
    let is_shared = folder.metadata().is_ok_and(|metadata| metadata.mode() & WRITABLE_BY_ALL != 0);
    let why = match (is_home, is_shared) {
        (true, _) => "it is your home folder",
        (false, true) => "everybody may write there",
        (false, false) => return Ok(()),
    };
    let cause = format!("{} cannot have tasks of a project: {why}", folder.display());
    let remedy = Some("change to a project's folder, or leave out `--project`".to_owned());
    Err(HostError { remedy, ..HostError::usage(cause) })
}

/// Writes a drafted task as a new file of the person's, or in the place of the file that it repairs. Says where.
///
/// # Errors
/// The file exists, has changed since, or cannot be written.
pub fn save_draft(project: &Project, draft: &DraftedTask) -> Result<String> {
    if let Some(replaced) = &draft.replaces {
        return replace_task(project, draft, replaced);
    }
    let path = new_file(project, &draft.name)?;
    write_task(&path, &draft.text)?;
    let shown = extensions::extension_places(project).display_path(&path);
    Ok(format!("Saved {shown}. Run it with /task {}", draft.name))
}

fn replace_task(
    project: &Project,
    draft: &DraftedTask,
    (path, before): &(PathBuf, String),
) -> Result<String> {
    let shown = extensions::extension_places(project).display_path(path);
    if fs::read_to_string(path).ok().as_ref() != Some(before) {
        let cause = format!("{shown} has changed since; nothing was written");
        let remedy = Some(format!("`/task repair {}` looks at it again", draft.name));
        return Err(HostError { remedy, ..HostError::usage(cause) });
    }
    // A link stays one, and the file has the permissions that it had.
    let written = path.canonicalize().and_then(|path| {
        let permissions = path.metadata()?.permissions();
        FileReplacement::prepare(&path, draft.text.as_bytes(), Some(permissions))?.commit()
    });
    written.map_err(|error| HostError::failure(format!("cannot write {shown}: {error}")))?;
    Ok(format!("Changed {shown}. Run it with /task {}", draft.name))
}

/// Returns the refusal of a name that cannot be a task's.
#[must_use]
pub fn task_name_error(name: &str) -> HostError {
    let cause = format!("`{}` cannot name a task", name.escape_debug());
    let remedy = if is_reserved_name(name) {
        "`gnoma task` has a command of that name; choose another one"
    } else {
        "use letters, digits, `-` and `_`, at most 64 bytes, with a letter or digit first"
    };
    HostError { remedy: Some(remedy.to_owned()), ..HostError::usage(cause) }
}

/// The file of a new task of the person's.
pub(super) fn new_file(project: &Project, name: &str) -> Result<PathBuf> {
    if !is_task_name(name) {
        return Err(task_name_error(name));
    }
    if project.is_incognito() {
        return Err(HostError::usage("nothing is saved in incognito"));
    }
    let places = extensions::extension_places(project);
    let path = task_file_path(&places, name, false);
    if path.symlink_metadata().is_ok() {
        let cause = format!("{} exists", places.display_path(&path));
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

#[cfg(test)]
mod tests {
    use gnoma_extend::tasks::{parse_task, plan_task};
    use gnoma_guard::{
        firewall::{FirewallOptions, Policy},
        secrets::Scanner,
    };

    use super::*;

    #[test]
    fn task_draft_omits_messages_of_task_steps() {
        let tasks = [("t".to_owned(), parse_task("t", "Do it.").unwrap())].into();
        let plan = plan_task("t", &[], &tasks).unwrap();
        let mut run = RunRecord::new("r".to_owned(), &plan, "s".to_owned(), 1);
        run.add_message("Do it.");
        let firewall = Firewall::new(FirewallOptions {
            scanner: Scanner::new(Default::default()).unwrap(),
            policy: Policy::default(),
            allowed: Vec::new(),
            first_placeholder: 1,
        });
        let messages = ["Look at it.", "Do it.", "Tag it."].map(str::to_owned);
        let own = |session: &str| {
            without_messages_of_steps(
                &[run.clone()],
                &SessionId::new(session),
                &messages,
                &firewall,
            )
        };
        assert_eq!(own("s"), (vec!["Look at it.".to_owned(), "Tag it.".to_owned()], 1));
        assert_eq!(own("other"), (messages.to_vec(), 0));
    }
}
