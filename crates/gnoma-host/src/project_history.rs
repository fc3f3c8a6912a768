//! The saved sessions of a project, opened for a command or to be continued.

use std::sync::Arc;

use anyhow::Context as _;
use gnoma_core::store::{
    Entry, EntryId, PageRequest, SessionFacts, SessionId, SessionStore, StoreError, StoreErrorKind,
};
use gnoma_engine::resume;
use gnoma_store::{OpenedStore, Store};

use crate::{HostError, Project, Result, clock::Clock, places::Places};

/// Entries and bytes read at once.
const PAGE: PageRequest = PageRequest { tip: None, max_entries: 10_000, max_bytes: 64 << 20 };
/// Entries read first where the end of a session may be all that is needed, and how many times as many
/// are read next.
const FIRST_ENTRIES: usize = 64;
const PAGE_GROWTH: usize = 4;
/// Sessions that a beginning is looked up in; retention keeps far fewer.
const MAX_SESSIONS: usize = 100_000;
/// Sessions that are named where a beginning fits several.
const MAX_NAMED: usize = 5;

/// The sessions of a project.
pub struct ProjectHistory {
    /// The store of the sessions.
    pub store: Arc<Store>,
    /// The places of the project.
    pub places: Places,
    /// The clock of the process.
    pub clock: Clock,
}

impl ProjectHistory {
    /// Opens what exists; `None` if nothing was ever saved. Creates nothing.
    pub fn open_existing(project: &Project) -> Result<Option<Self>> {
        let Project { places, notices, .. } = project;
        if !places.has_sessions() {
            return Ok(None);
        }
        if let Some(around) = &places.around {
            let (own, around) = (places.project.display(), around.display());
            notices.info(format_args!(
                "sessions here belong only to `{own}`, which is older than the project \
                 `{around}` that contains it"
            ));
        }
        Self::open_or_create(project).map(Some)
    }

    /// Opens the saved sessions of the project. An error says that nothing is saved.
    pub fn open(project: &Project) -> Result<Self> {
        Self::open_existing(project)?.ok_or_else(|| nothing_kept(&project.places))
    }

    /// Opens the store, or makes it. One in a home that is read-only or full can be read all the same.
    ///
    /// # Errors
    /// The database cannot be opened.
    pub fn open_or_create(project: &Project) -> Result<Self> {
        let Project { places, firewall, notices, shared, .. } = project;
        let options = places.store_options(firewall, notices);
        let store = match shared.open_store(options.clone()) {
            Ok(OpenedStore { store, rescued }) => {
                if let Some(rescued) = rescued {
                    notices.warning(rescued);
                }
                store
            }
            Err(error) if cannot_write(&error.kind) => {
                let Ok(store) = Store::open_to_read(options) else { return Err(error.into()) };
                if !project.knows_nothing_is_saved() {
                    notices.warning(format_args!("saved sessions are opened read-only: {error}"));
                }
                store
            }
            Err(error) => return Err(error.into()),
        };
        Ok(Self { store: Arc::new(store), places: places.clone(), clock: shared.clock().clone() })
    }

    /// All sessions, the newest first.
    pub async fn list_sessions(&self) -> Result<Vec<SessionFacts>> {
        Ok(self.store.list(MAX_SESSIONS).await?)
    }

    /// The session whose id begins so, or the one that has this title, or the newest.
    pub async fn find_session(&self, beginning: Option<&str>) -> Result<SessionFacts> {
        match beginning {
            None => self.newest_session().await,
            Some(beginning) => self.find_by_prefix(beginning).await,
        }
    }

    /// The session that was added to last.
    pub async fn newest_session(&self) -> Result<SessionFacts> {
        let newest = self.store.list(1).await?.pop();
        newest.ok_or_else(|| nothing_kept(&self.places))
    }

    async fn find_by_prefix(&self, beginning: &str) -> Result<SessionFacts> {
        match self.store.session_facts(SessionId::new(beginning)).await {
            Ok(facts) => return Ok(facts),
            Err(error) if error.kind == StoreErrorKind::NotFound => (),
            Err(error) => return Err(error.into()),
        }
        let begins = |facts: &SessionFacts| facts.id.as_str().starts_with(beginning);
        let (mut found, others): (Vec<_>, Vec<_>) =
            self.list_sessions().await?.into_iter().partition(begins);
        if found.is_empty() {
            let is_titled = |facts: &SessionFacts| {
                facts.child.is_none() && facts.title.trim() == beginning.trim()
            };
            found.extend(others.into_iter().filter(is_titled));
        }
        match found.len() {
            1 if !beginning.is_empty() => found.pop().ok_or_else(|| unknown_session(beginning)),
            0 => Err(unknown_session(beginning)),
            count => {
                let ids = found.iter().take(MAX_NAMED).map(|facts| facts.id.as_str());
                let ids = ids.collect::<Vec<_>>().join(", ");
                let more = if count > MAX_NAMED { ", …" } else { "" };
                let text = format!(
                    "`{beginning}` matches {count} sessions; name one by its id: {ids}{more}"
                );
                Err(HostError::usage(text))
            }
        }
    }

    /// The path of a session to `tip`, or to its end, oldest first.
    pub async fn load_path(&self, id: &SessionId, tip: Option<EntryId>) -> Result<Vec<Entry>> {
        let mut pages = Vec::new();
        let mut tip = tip;
        loop {
            let page = self.store.load(id.clone(), PageRequest { tip, ..PAGE }).await?;
            tip = page.earlier;
            pages.push(page.entries);
            // Ids fall from page to page, so this ends.
            if tip.is_none() {
                return Ok(pages.into_iter().rev().flatten().collect());
            }
        }
    }

    /// The end of a session's path, oldest first: at least what a conversation is made of
    /// ([`resume::history`]). Of a compacted session that is what came after the last summary, however
    /// long the rest is.
    pub async fn recent_entries(&self, id: &SessionId) -> Result<Vec<Entry>> {
        Ok(load_recent_entries(&self.store, id).await?)
    }

    /// The pages that make up a session, oldest first, each to be loaded on its own. What is added
    /// from now on is in none.
    pub async fn page_requests(&self, id: &SessionId) -> Result<Vec<PageRequest>> {
        let mut pages = Vec::new();
        let mut tip = self.last_entry(id).await?;
        while tip.is_some() {
            let page = PageRequest { tip, ..PAGE };
            tip = self.store.load(id.clone(), page).await?.earlier;
            pages.push(page);
        }
        pages.reverse();
        Ok(pages)
    }

    /// The last entry of a session.
    async fn last_entry(&self, id: &SessionId) -> Result<Option<EntryId>> {
        let request = PageRequest { max_entries: 1, ..PAGE };
        Ok(self.store.load(id.clone(), request).await?.entries.pop().map(|last| last.id))
    }

    /// Forks a session at an entry, or at its end.
    pub async fn fork(&self, source: &SessionId, at: Option<EntryId>) -> Result<SessionId> {
        let at = match at {
            Some(at) => Some(at),
            None => self.last_entry(source).await?,
        };
        let Some(at) = at else {
            let text = format!("`{source}` is empty: there is nothing to fork");
            return Err(HostError::usage(text));
        };
        let forked = self.store.fork(source.clone(), at, self.clock.now_ms()).await;
        match forked {
            Err(error) if error.kind == StoreErrorKind::NotFound => Err(HostError::usage(format!(
                "session `{source}` has no entry {at}; `gnoma sessions show {source}` numbers them"
            ))),
            forked => Ok(forked.with_context(|| format!("cannot fork `{source}`"))?),
        }
    }
}

async fn load_recent_entries(store: &Store, id: &SessionId) -> Result<Vec<Entry>, StoreError> {
    let mut pages = Vec::new();
    let mut first_needed = None;
    let mut request = PageRequest { max_entries: FIRST_ENTRIES, ..PAGE };
    loop {
        let page = store.load(id.clone(), request).await?;
        first_needed = first_needed.or_else(|| resume::summarized_up_to(&page.entries));
        let is_enough = page.entries.first().is_some_and(|first| Some(first.id) <= first_needed);
        pages.push(page.entries);
        // Ids fall from page to page, so this ends.
        if is_enough || page.earlier.is_none() {
            return Ok(pages.into_iter().rev().flatten().collect());
        }
        let max_entries = (request.max_entries * PAGE_GROWTH).min(PAGE.max_entries);
        request = PageRequest { tip: page.earlier, max_entries, ..PAGE };
    }
}

/// Reports whether sessions can still be read after this error, which concerns only writing.
pub(crate) fn cannot_write(kind: &StoreErrorKind) -> bool {
    matches!(kind, StoreErrorKind::ReadOnly | StoreErrorKind::Full)
}

fn unknown_session(beginning: &str) -> HostError {
    HostError::usage(format!(
        "no session `{beginning}` in this project; `gnoma sessions list` lists them, and --cwd DIR those of another"
    ))
}

/// Returns the error for a project that should have a session and has none.
pub fn nothing_kept(places: &Places) -> HostError {
    let project = places.project.display();
    HostError::usage(format!(
        "no saved sessions in `{project}`; start one with `gnoma \"…\"`, or name another project with --cwd DIR"
    ))
}

/// Rejects a command that writes to what is saved, even if only to compare with it, when nothing may be saved.
pub fn refuse_in_incognito(project: &Project, command: &str) -> Result<()> {
    if !project.is_incognito() {
        return Ok(());
    }
    Err(HostError::usage(format!(
        "`gnoma {command}` does not work in incognito mode, which saves nothing"
    )))
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use gnoma_core::{
        Message,
        store::{Durability, NewEntry, NewSession, Parent, Record},
    };
    use gnoma_store::Options;

    use super::*;

    #[tokio::test]
    async fn resume_does_not_load_entries_before_the_summary() {
        let folder = tempfile::tempdir().unwrap();
        let options = Options::new(folder.path(), "/p", Arc::new(|_, text| Cow::Borrowed(text)));
        let store = Store::open(options).unwrap().store;
        let new = NewSession::default();
        let id = store.begin(new).await.unwrap();
        let add = async |record| {
            let (session, parent, durability) = (id.clone(), Parent::Tip, Durability::Process);
            let entry = NewEntry { session, parent, at_ms: 0, record, durability };
            store.append(entry).await.unwrap()
        };
        let says = |text: String| Record::Message(Arc::new(Message::user_text(text)));
        let mut last = None;
        for number in 0..400 {
            last = Some(add(says(format!("{number}"))).await);
        }
        assert_eq!(load_recent_entries(&store, &id).await.unwrap().len(), 400, "all of it is told");
        add(Record::Summary { text: "counting".into(), up_to: last.unwrap() }).await;
        for (more, at_most) in [(10, 64), (100, 64 * 5)] {
            for number in 0..more {
                add(says(format!("after {number}"))).await;
            }
            let path = PageRequest { tip: None, max_entries: 9999, max_bytes: usize::MAX };
            let whole = store.load(id.clone(), path).await.unwrap().entries;
            let read = load_recent_entries(&store, &id).await.unwrap();
            assert!(read.len() <= at_most && whole.len() > 400, "{}", read.len());
            assert_eq!(resume::rebuild_history(&read), resume::rebuild_history(&whole));
            assert_eq!(resume::rebuild_history(&read).len(), whole.len() - 400, "{more}");
        }
    }
}
