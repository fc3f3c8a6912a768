//! The store itself: one writing thread, two reading ones, and the port on top of them.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use gnoma_core::store::{
    Durability, EntryId, Hit, HoldReport, NewEntry, NewSession, Page, PageRequest, SessionFacts,
    SessionId, SessionStore, StoreErrorKind, Stored,
};
use rusqlite::Connection;

use crate::{
    add_import::{self, ImportOutcome},
    db,
    entry::Prepared,
    error::{Explain, Result},
    files,
    import::Imported,
    lock::{self, Identity},
    open,
    options::Options,
    path, recover, redact,
    rescue::Rescued,
    retention::{self, Pruned, Retention},
    search, session, session_row, text_index,
    upkeep::Keeper,
    users::User,
    worker::Worker,
};

/// A slow search leaves one thread for the rest.
const READERS: usize = 2;

/// Pieces of the index a search waits for; a store that is behind by more is searched as it is.
const MOST_PIECES: usize = 10_000;

/// Sessions of one project in one SQLite file.
pub struct Store {
    readers: [OnceLock<Worker>; READERS],
    next_reader: AtomicUsize,
    pub(crate) writer: Worker,
    pub(crate) identity: Arc<Identity>,
    /// Something was deleted since the log was last freed of it.
    deleted: Arc<AtomicBool>,
    pub(crate) options: Arc<Options>,
    path: PathBuf,
    /// Keeps others from replacing the database; goes after all that use it.
    _user: User,
}

/// An open store, and what had to be done for it.
pub struct Opened {
    /// The store.
    pub store: Store,
    /// A damaged database was put aside; to be told.
    pub rescued: Option<Rescued>,
}

impl Store {
    /// Opens the project's database, or makes it. Blocks for some milliseconds.
    ///
    /// # Errors
    /// When the place cannot be written to, is full or locked for too long, or when the file is
    /// foreign or a newer gnoma's; such a file is left as it is.
    pub fn open(options: Options) -> Result<Opened> {
        let (connection, rescued, user) = open::open(&options)?;
        let path = options.path();
        let token =
            connection.query_row("SELECT hex(randomblob(8))", [], |row| row.get(0)).explain()?;
        let identity = Arc::new(Identity::of_this_process(token));
        let deleted = Arc::new(AtomicBool::new(false));
        let keeper = Keeper::new(path.clone(), Arc::clone(&identity), Arc::clone(&deleted));
        let writer = Worker::writing(connection, keeper)?;
        let store = Self {
            readers: Default::default(),
            next_reader: AtomicUsize::new(0),
            writer,
            identity,
            deleted,
            options: Arc::new(options),
            path,
            _user: user,
        };
        Ok(Opened { store, rescued })
    }

    /// The database's file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Forgets the oldest sessions until `retention` is kept. Sessions in use stay.
    ///
    /// # Errors
    /// As the database's.
    pub async fn prune(&self, retention: Retention, now_ms: i64) -> Result<Pruned> {
        let me = Arc::clone(&self.identity);
        self.change(move |connection| retention::prune(connection, &me, retention, now_ms)).await
    }

    /// Adds what was imported as a new session, all of it or nothing, through the same redaction
    /// as everything else. What came from the same place before is not added again; times after
    /// `at_ms` become that time.
    ///
    /// # Errors
    /// As the database's.
    pub async fn import(&self, imported: Imported, at_ms: i64) -> Result<ImportOutcome> {
        let (options, me) = (Arc::clone(&self.options), Arc::clone(&self.identity));
        let project = redact::words(&*options.redact, &options.project);
        let prepare = move || add_import::prepare(&*options.redact, imported);
        let work = move |connection: &Connection, ready: add_import::Ready| {
            add_import::add(connection, &me, &project, ready, at_ms)
        };
        let answer = self.writer.ask_prepared(Durability::Disk, prepare, work).await;
        self.heed(answer)
    }

    /// Reads the whole database and says whether it is sound. When it is not, the next
    /// [`open`](Self::open) sets it aside.
    ///
    /// # Errors
    /// When it is damaged.
    pub async fn check(&self) -> Result<()> {
        self.look(db::check).await
    }

    pub(crate) async fn look<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let answer = self.reader()?.ask(work).await;
        self.heed(answer)
    }

    /// The reading threads take turns; each is made when it is first needed.
    fn reader(&self) -> Result<&Worker> {
        let turn = self.next_reader.fetch_add(1, Ordering::Relaxed);
        let Some(worker) = self.readers.get(turn % READERS) else { return Ok(&self.writer) };
        if let Some(worker) = worker.get() {
            return Ok(worker);
        }
        let (path, options) = (self.path.clone(), Arc::clone(&self.options));
        let made = Worker::reading(move || {
            db::connect(&path, options.patience, db::journal_for(&options))
        })?;
        Ok(worker.get_or_init(|| made))
    }

    /// Brings the index up to date. Where that cannot be done, what is indexed is searched.
    async fn index(&self) -> Result<()> {
        for _ in 0..MOST_PIECES {
            if !self.look(text_index::is_behind).await?
                || self.change(text_index::follow).await.is_err()
            {
                break;
            }
        }
        Ok(())
    }

    async fn change<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let answer = self.writer.ask(work).await;
        self.heed(answer)
    }

    /// Remembers damage for the next start.
    pub(crate) fn heed<T>(&self, answer: Result<T>) -> Result<T> {
        if let Err(error) = &answer
            && error.kind == StoreErrorKind::Damaged
        {
            files::doubt(&self.path);
        }
        answer
    }
}

impl SessionStore for Store {
    fn begin(&self, new: NewSession) -> Stored<'_, SessionId> {
        let options = Arc::clone(&self.options);
        Box::pin(self.change(move |connection| {
            let title = new.title.as_deref().map(|title| redact::words(&*options.redact, title));
            let project = redact::words(&*options.redact, &options.project);
            session::begin(connection, &project, &NewSession { title, ..new })
        }))
    }

    fn append(&self, new: NewEntry) -> Stored<'_, EntryId> {
        Box::pin(async move {
            let options = Arc::clone(&self.options);
            let me = Arc::clone(&self.identity);
            let NewEntry { session, parent, at_ms, record, durability } = new;
            let prepare = move || Prepared::new(redact::record(&*options.redact, &record)?);
            let work = move |connection: &Connection, prepared: Prepared| {
                session::append(connection, &me, &session, parent, at_ms, &prepared)
            };
            let answer = self.writer.ask_prepared(durability, prepare, work).await;
            self.heed(answer)
        })
    }

    fn load(&self, session: SessionId, page: PageRequest) -> Stored<'_, Page> {
        Box::pin(self.look(move |connection| path::load(connection, &session, page)))
    }

    fn facts(&self, session: SessionId) -> Stored<'_, SessionFacts> {
        let (me, now_ms) = (Arc::clone(&self.identity), (self.options.clock)());
        Box::pin(self.look(move |connection| session::facts(connection, &me, &session, now_ms)))
    }

    fn list(&self, max: usize) -> Stored<'_, Vec<SessionFacts>> {
        let (me, now_ms) = (Arc::clone(&self.identity), (self.options.clock)());
        Box::pin(self.look(move |connection| session::list(connection, &me, max, now_ms)))
    }

    fn search(&self, query: String, max: usize) -> Stored<'_, Vec<Hit>> {
        Box::pin(async move {
            self.index().await?;
            self.look(move |connection| search::search(connection, &query, max)).await
        })
    }

    fn fork(&self, session: SessionId, at: EntryId, at_ms: i64) -> Stored<'_, SessionId> {
        let options = Arc::clone(&self.options);
        Box::pin(self.change(move |connection| {
            let project = redact::words(&*options.redact, &options.project);
            session::fork(connection, &project, &session, at, at_ms)
        }))
    }

    fn rename(&self, session: SessionId, title: String, at_ms: i64) -> Stored<'_, ()> {
        let (options, me) = (Arc::clone(&self.options), Arc::clone(&self.identity));
        Box::pin(self.change(move |connection| {
            let title = redact::words(&*options.redact, &title);
            session::rename(connection, &me, &session, title, at_ms)
        }))
    }

    fn delete(&self, session: SessionId) -> Stored<'_, ()> {
        let (me, deleted) = (Arc::clone(&self.identity), Arc::clone(&self.deleted));
        let now_ms = (self.options.clock)();
        Box::pin(self.change(move |connection| {
            retention::forget(connection, &me, &session, now_ms)?;
            deleted.store(true, Ordering::SeqCst);
            Ok(())
        }))
    }

    fn hold(&self, session: SessionId, at_ms: i64) -> Stored<'_, HoldReport> {
        let me = Arc::clone(&self.identity);
        Box::pin(self.change(move |connection| recover::take(connection, &me, &session, at_ms)))
    }

    fn release(&self, session: SessionId) -> Stored<'_, ()> {
        let me = Arc::clone(&self.identity);
        Box::pin(self.change(move |connection| {
            let known = session_row::find(connection, &session)?;
            lock::release(connection, &me, known.number)
        }))
    }
}
