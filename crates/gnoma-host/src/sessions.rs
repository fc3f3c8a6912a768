//! Stored sessions: list, search, copy and rename them.

use gnoma_core::{
    protocol::SessionSpec,
    store::{EntryId, Hit, SessionFacts, SessionId, SessionStore},
};

use crate::{
    HostError, Notices, Project, Result,
    project_history::{ProjectHistory, refuse_in_incognito},
    shared::ProcessResources,
    tasks::delete_read_sessions,
    text::{fit_line, strip_unsafe_chars},
};

/// Longest title, in columns.
const MAX_TITLE_COLUMNS: usize = 200;
/// Most sessions that are listed to a client.
const MAX_LISTED: usize = 1_000;
/// Most places one search gives.
const MAX_PLACES: usize = 1000;

/// The sessions of a project, the newest first.
///
/// # Errors
/// The stored sessions cannot be read.
pub async fn list_sessions(project: &Project) -> Result<Vec<SessionFacts>> {
    match ProjectHistory::open_existing(project)? {
        Some(past) => past.list_sessions().await,
        None => Ok(Vec::new()),
    }
}

/// The sessions of the project that a spec's folder belongs to, the newest first.
///
/// # Errors
/// The settings or what is kept cannot be read.
pub(crate) async fn stored_sessions(
    shared: ProcessResources,
    spec: SessionSpec,
    max: usize,
) -> Result<Vec<SessionFacts>> {
    if !spec.folder.is_dir() {
        return Ok(Vec::new());
    }
    let project = Project::open(spec, Notices::without_sink(), shared)?;
    let mut all = list_sessions(&project).await?;
    all.truncate(max.min(MAX_LISTED));
    Ok(all)
}

/// Deletes a session of the project that a spec's folder belongs to.
///
/// # Errors
/// There is no such session, it is open elsewhere, nothing may be kept, or it cannot be written.
pub(crate) async fn delete(
    shared: ProcessResources,
    spec: SessionSpec,
    id: SessionId,
) -> Result<()> {
    let project = Project::open(spec, Notices::without_sink(), shared)?;
    refuse_in_incognito(&project, "sessions delete")?;
    let past = ProjectHistory::open(&project)?;
    // The beginning of an id stands for it elsewhere; here it must be the whole.
    if past.find_session(Some(id.as_str())).await?.id != id {
        return Err(HostError::usage(format!("there is no session `{id}`")));
    }
    past.store.delete(id).await?;
    delete_read_sessions(&project);
    Ok(())
}

/// Finds where all of these words were said, at most `max` places; 0 returns as many as one search can.
///
/// # Errors
/// The store cannot be read.
pub async fn search_sessions(project: &Project, words: &str, max: usize) -> Result<Vec<Hit>> {
    let max = if max == 0 { MAX_PLACES } else { max.min(MAX_PLACES) };
    match ProjectHistory::open_existing(project)? {
        Some(past) => Ok(past.store.search(words.to_owned(), max).await?),
        None => Ok(Vec::new()),
    }
}

/// Creates a session that shares the past of another up to an entry, or to its end; returns the ids of the new one
/// and the other.
///
/// # Errors
/// There is no such session or entry, nothing may be saved, or it cannot be written.
pub async fn fork(
    project: &Project,
    session: Option<&str>,
    at: Option<EntryId>,
) -> Result<(SessionId, SessionId)> {
    refuse_in_incognito(project, "sessions fork")?;
    let past = ProjectHistory::open(project)?;
    let source = past.find_session(session).await?.id;
    Ok((past.fork(&source, at).await?, source))
}

/// Gives a session a title; returns its id and the title as stored.
///
/// # Errors
/// The title is empty, there is no such session, nothing may be saved, or it cannot be written.
pub async fn rename(project: &Project, session: &str, title: &str) -> Result<(SessionId, String)> {
    refuse_in_incognito(project, "sessions rename")?;
    let title = own_words(title)?;
    let past = ProjectHistory::open(project)?;
    let id = past.find_session(Some(session)).await?.id;
    let title = give_title(&*past.store, &id, title, past.clock.now_ms()).await?;
    Ok((id, title))
}

/// Gives a session that is open a title; gives the title as it is stored. `store` is the part of the
/// database that holds the session: no other may write to it.
///
/// # Errors
/// The title is empty, or it cannot be written.
pub(crate) async fn rename_open(
    store: &dyn SessionStore,
    id: &SessionId,
    title: &str,
    now_ms: i64,
) -> Result<String> {
    give_title(store, id, own_words(title)?, now_ms).await
}

/// A title as a person wrote it, in one line.
fn own_words(title: &str) -> Result<String> {
    let title = fit_line(strip_unsafe_chars(title).trim(), MAX_TITLE_COLUMNS);
    if title.is_empty() {
        return Err(HostError::usage("the title is empty"));
    }
    Ok(title)
}

async fn give_title(
    store: &dyn SessionStore,
    id: &SessionId,
    title: String,
    now_ms: i64,
) -> Result<String> {
    store.rename(id.clone(), title, now_ms).await?;
    Ok(store.session_facts(id.clone()).await?.title)
}
