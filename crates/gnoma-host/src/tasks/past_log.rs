//! The turns of all stored sessions of a project, for the detector of repeated chores. What was read of a session is
//! saved until the session changes, so that the end of a turn reads one session only.
//!
//! The file has lines for each session, of which the newest counts. It is deleted when a person deletes a session; what
//! retention removes from the store leaves the file at the next reading.

use std::{
    collections::HashMap,
    fs,
    io::Write as _,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use gnoma_core::{
    private_file,
    store::{PageRequest, SessionFacts, SessionId, SessionStore as _, StoreError},
};
use gnoma_extend::tasks::repetition::PastSession;
use gnoma_store::Store;
use serde::{Deserialize, Serialize};

use super::past_turns::read_turns;
use crate::{Folders as _, Project, Result, project_history::ProjectHistory};

/// The folder within the state folder for what is known of repeated chores.
const FOLDER: &str = "suggestions";
/// Most sessions that are looked at, the newest ones.
const MAX_SESSIONS: usize = 5_000;
/// Largest file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 20 << 20;
/// The part of a session that is read.
const PAGE: PageRequest = PageRequest { tip: None, max_entries: 10_000, max_bytes: 64 << 20 };

/// A line of the file.
#[derive(Serialize, Deserialize)]
struct ReadSession {
    /// The time of the session's last change when it was read.
    changed_ms: i64,
    session: PastSession,
}

/// Returns the folder for what is known of repeated chores.
fn suggestions_folder(project: &Project) -> PathBuf {
    project.environment().state_dir().join(FOLDER)
}

/// Returns the file of a project in that folder whose name ends like this.
pub(super) fn suggestion_file(project: &Project, ending: &str) -> PathBuf {
    let key = gnoma_store::project_key(&project.places.project.display().to_string());
    suggestions_folder(project).join(format!("{key}.{ending}"))
}

fn cache_path(project: &Project) -> PathBuf {
    suggestion_file(project, "jsonl")
}

/// Returns the sessions of a project, those changed last at the end. Reads only those that changed since the last time;
/// where no task is suggested, nothing of what was read stays.
///
/// # Errors
/// The store cannot be read.
pub(super) async fn read_history(project: &Project) -> Result<Vec<PastSession>> {
    let Some(past) = ProjectHistory::open_existing(project)? else { return Ok(Vec::new()) };
    let read = read_store(&past.store, &cache_path(project), &project.places.project).await;
    if !project.personal.suggests_tasks {
        delete_read_sessions(project);
    }
    Ok(read?)
}

async fn read_store(
    store: &Store,
    file: &Path,
    project: &Path,
) -> Result<Vec<PastSession>, StoreError> {
    let all = store.list(MAX_SESSIONS).await?;
    let parents: HashMap<&SessionId, &SessionId> =
        all.iter().filter_map(|facts| Some((&facts.id, &facts.forked_from.as_ref()?.0))).collect();
    let LoadedFile { mut known, bytes, is_too_large } = load_log(file);
    let mut history = Vec::with_capacity(all.len());
    let mut changed = Vec::new();
    for facts in all.iter().rev() {
        let earlier = known.remove(facts.id.as_str());
        let read = match earlier.filter(|it| it.changed_ms == facts.changed_ms) {
            Some(read) => read,
            None => {
                changed.push(history.len());
                read_session(store, facts, &parents, project).await?
            }
        };
        history.push(read);
    }
    let changed: Vec<&ReadSession> = changed.iter().filter_map(|at| history.get(*at)).collect();
    if !changed.is_empty() || !known.is_empty() || is_too_large {
        // Without the file, the sessions are read again next time.
        let _unsaved = save_log(file, &history, &changed, bytes, !known.is_empty() || is_too_large);
    }
    Ok(history.into_iter().map(|read| read.session).collect())
}

async fn read_session(
    store: &Store,
    facts: &SessionFacts,
    parents: &HashMap<&SessionId, &SessionId>,
    project: &Path,
) -> Result<ReadSession, StoreError> {
    let mut family = &facts.id;
    // No session is forked more often than there are sessions.
    for _ in 0..parents.len() {
        match parents.get(family) {
            Some(parent) => family = parent,
            None => break,
        }
    }
    // Of a very long session, the end.
    let page = store.load(facts.id.clone(), PAGE).await?;
    let forked_at = facts.forked_from.as_ref().map(|fork| fork.1);
    Ok(ReadSession {
        changed_ms: facts.changed_ms,
        session: PastSession {
            id: facts.id.to_string(),
            family: family.to_string(),
            at_ms: facts.changed_ms,
            turns: read_turns(&page.entries, forked_at, project),
        },
    })
}

/// The content of the file.
#[derive(Default)]
struct LoadedFile {
    /// The newest line of each session.
    known: HashMap<String, ReadSession>,
    /// The length of the file, in bytes.
    bytes: usize,
    /// `true` if the file is longer than is read.
    is_too_large: bool,
}

/// Loads the file. One that cannot be read is empty.
fn load_log(path: &Path) -> LoadedFile {
    let is_too_large = fs::metadata(path).is_ok_and(|it| it.len() > MAX_FILE_BYTES);
    if is_too_large {
        return LoadedFile { is_too_large, ..LoadedFile::default() };
    }
    let text = fs::read_to_string(path).unwrap_or_default();
    let lines =
        text.lines().filter_map(|line| gnoma_core::json::from_str::<ReadSession>(line).ok());
    let known = lines.map(|read| (read.session.id.clone(), read)).collect();
    LoadedFile { known, bytes: text.len(), is_too_large }
}

/// Adds the changed sessions to the file. Replaces it by all sessions, the newest as far as they fit, if it `is_stale`
/// or would hold twice as much as counts.
fn save_log(
    path: &Path,
    all: &[ReadSession],
    changed: &[&ReadSession],
    bytes: usize,
    is_stale: bool,
) -> std::io::Result<()> {
    private_file::create_folder(path.parent().unwrap_or(path))?;
    let added = to_lines(changed.iter().copied())?;
    let is_bloated = bytes + added.len() > MAX_FILE_BYTES as usize / 2 && bytes > 0;
    if is_stale || is_bloated {
        let mut text = to_lines(all)?;
        while text.len() > MAX_FILE_BYTES as usize / 2 {
            let first = text.iter().position(|byte| *byte == b'\n').map_or(text.len(), |at| at + 1);
            text.drain(..first);
        }
        return private_file::replace(path, &text);
    }
    // Another process may add a line at the same time: all lines are written at once.
    let mut options = fs::OpenOptions::new();
    options.create(true).mode(0o600).append(true).open(path)?.write_all(&added)
}

fn to_lines<'a>(sessions: impl IntoIterator<Item = &'a ReadSession>) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    for session in sessions {
        serde_json::to_writer(&mut text, session)?;
        text.push(b'\n');
    }
    Ok(text)
}

/// Deletes what was read of a project's sessions.
pub fn delete_read_sessions(project: &Project) {
    let _missing = fs::remove_file(cache_path(project));
}

#[cfg(test)]
mod tests;
