//! The turns of all stored sessions of a project, for the detector of repeated chores. What was read of a session is
//! saved until the session changes, so that the end of a turn reads one session only.
//!
//! The file has one line for each session: its newest counts. It holds nothing that the store does not hold, and is
//! deleted when a session is.

use std::{
    collections::HashMap,
    fs,
    io::Write as _,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use gnoma_core::store::{PageRequest, SessionFacts, SessionId, SessionStore as _, StoreError};
use gnoma_extend::tasks::repetition::PastSession;
use gnoma_store::Store;
use serde::{Deserialize, Serialize};

use super::past_turns::read_turns;
use crate::{Folders as _, Project, Result, past::Past};

/// The folder within the state folder for what is known of repeated chores.
const FOLDER: &str = "suggestions";
/// Most sessions that are looked at, the newest ones.
const MAX_SESSIONS: usize = 5_000;
/// Largest file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 20 << 20;
/// The part of a session that is read.
const PAGE: PageRequest = PageRequest { tip: None, max_entries: 10_000, max_bytes: 64 << 20 };
/// Superseded lines, for each one that counts, above which the file is written anew.
const MAX_SUPERSEDED: usize = 1;

/// A line of the file.
#[derive(Serialize, Deserialize)]
struct ReadSession {
    /// The time of the session's last change when it was read.
    changed_ms: i64,
    session: PastSession,
}

/// Returns the folder for what is known of repeated chores.
pub(super) fn suggestions_folder(project: &Project) -> PathBuf {
    project.environment().state_dir().join(FOLDER)
}

fn file_of(project: &Project) -> PathBuf {
    let key = gnoma_store::project_key(&project.places.project.display().to_string());
    suggestions_folder(project).join(format!("{key}.jsonl"))
}

/// Returns the sessions of a project, those changed last at the end. Reads only those that changed since the last time.
///
/// # Errors
/// The store cannot be read.
pub(super) async fn read_history(project: &Project) -> Result<Vec<PastSession>> {
    let Some(past) = Past::find(project)? else { return Ok(Vec::new()) };
    Ok(read_store(&past.store, &file_of(project), &project.places.project).await?)
}

async fn read_store(
    store: &Store,
    file: &Path,
    project: &Path,
) -> Result<Vec<PastSession>, StoreError> {
    let all = store.list(MAX_SESSIONS).await?;
    let parents: HashMap<&SessionId, &SessionId> =
        all.iter().filter_map(|facts| Some((&facts.id, &facts.forked_from.as_ref()?.0))).collect();
    let (mut known, lines) = load(file);
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
    let is_bloated = lines > history.len() * (1 + MAX_SUPERSEDED) || !known.is_empty();
    if !changed.is_empty() || is_bloated {
        let new: Vec<&ReadSession> = if is_bloated {
            history.iter().collect()
        } else {
            changed.iter().filter_map(|at| history.get(*at)).collect()
        };
        // Without the file, the sessions are read again next time.
        let _unsaved = save(file, &new, is_bloated);
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

/// Loads the newest line of each session, and the number of lines. A file that cannot be read is empty.
fn load(path: &Path) -> (HashMap<String, ReadSession>, usize) {
    let mut known = HashMap::new();
    let mut lines = 0;
    let fits = fs::metadata(path).is_ok_and(|it| it.len() <= MAX_FILE_BYTES);
    let text = if fits { fs::read_to_string(path).unwrap_or_default() } else { String::new() };
    for line in text.lines() {
        lines += 1;
        if let Ok(read) = serde_json::from_str::<ReadSession>(line) {
            known.insert(read.session.id.clone(), read);
        }
    }
    (known, lines)
}

/// Adds sessions to the file, or replaces it by them.
fn save(path: &Path, sessions: &[&ReadSession], replaces: bool) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let mut text = Vec::new();
    for session in sessions {
        serde_json::to_writer(&mut text, session)?;
        text.push(b'\n');
    }
    let mut options = fs::OpenOptions::new();
    options.create(true).mode(0o600);
    // Another process may add a line at the same time: each line is written at once.
    let options = if replaces { options.write(true).truncate(true) } else { options.append(true) };
    options.open(path)?.write_all(&text)
}

/// Deletes what was read of a project's sessions.
pub fn delete_read_sessions(project: &Project) {
    let _missing = fs::remove_file(file_of(project));
}

#[cfg(test)]
mod tests;
