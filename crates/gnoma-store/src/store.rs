//! The store itself: one writing thread, two reading ones, and the port on top of them. Sessions of one
//! process share the threads; what may be written and what is held is each store's own.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
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

/// An open SQLite file, for all stores of a process on it.
struct Database {
    readers: [OnceLock<Worker>; READERS],
    next_reader: AtomicUsize,
    writer: Worker,
    /// Something was deleted since the log was last freed of it.
    deleted: Arc<AtomicBool>,
    path: PathBuf,
    /// Which file it is.
    opened: Option<(u64, u64)>,
    /// Tells its stores from those of others, with their numbers.
    token: String,
    next_store: AtomicU64,
    /// Keeps others from replacing the database; goes after all that use it.
    _user: User,
}

/// Sessions of one project in one SQLite file. What it holds, it lets go of when it is dropped.
pub struct Store {
    database: Arc<Database>,
    pub(crate) identity: Arc<Identity>,
    pub(crate) options: Arc<Options>,
}

/// A database that is open for as long as some [`Store`] uses it.
#[derive(Clone)]
pub struct OpenDatabase(Weak<Database>);

impl PartialEq for OpenDatabase {
    fn eq(&self, other: &Self) -> bool {
        self.0.ptr_eq(&other.0)
    }
}

impl OpenDatabase {
    /// Whether some store uses it.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.0.strong_count() > 0
    }

    /// Another store on the database, with a redaction and holds of its own: it shares the writing thread
    /// and those that read. `None` where the database is not open any more, or is to be opened anew.
    /// `options` name the same file.
    #[must_use]
    pub fn store(&self, options: Options) -> Option<Store> {
        let database = self.0.upgrade()?;
        let is_same = options.path() == database.path
            && files::identity(&database.path) == database.opened
            && !files::beside(&database.path, files::DOUBT).exists();
        is_same.then(|| Store::on(database, options))
    }
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
        let deleted = Arc::new(AtomicBool::new(false));
        let opened = files::identity(&path);
        let writer = Worker::writing(connection, Keeper::new(path.clone(), Arc::clone(&deleted)))?;
        let database = Database {
            readers: Default::default(),
            next_reader: AtomicUsize::new(0),
            writer,
            deleted,
            path,
            opened,
            token,
            next_store: AtomicU64::new(0),
            _user: user,
        };
        Ok(Opened { store: Self::on(Arc::new(database), options), rescued })
    }

    fn on(database: Arc<Database>, options: Options) -> Self {
        let number = database.next_store.fetch_add(1, Ordering::Relaxed);
        let identity = Identity::of_this_process(format!("{}-{number}", database.token));
        Self { database, identity: Arc::new(identity), options: Arc::new(options) }
    }

    /// The database, for [other stores](OpenDatabase::store) on it.
    #[must_use]
    pub fn database(&self) -> OpenDatabase {
        OpenDatabase(Arc::downgrade(&self.database))
    }

    /// The database's file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.database.path
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
        let answer = self.writer().ask_prepared(Durability::Disk, prepare, work).await;
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

    /// The thread that changes the database.
    pub(crate) fn writer(&self) -> &Worker {
        &self.database.writer
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
        let turn = self.database.next_reader.fetch_add(1, Ordering::Relaxed);
        let Some(worker) = self.database.readers.get(turn % READERS) else {
            return Ok(&self.database.writer);
        };
        if let Some(worker) = worker.get() {
            return Ok(worker);
        }
        let (path, options) = (self.database.path.clone(), Arc::clone(&self.options));
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
        let answer = self.writer().ask(work).await;
        self.heed(answer)
    }

    /// Remembers damage for the next start.
    pub(crate) fn heed<T>(&self, answer: Result<T>) -> Result<T> {
        if let Err(error) = &answer
            && error.kind == StoreErrorKind::Damaged
        {
            files::doubt(&self.database.path);
        }
        answer
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let me = Arc::clone(&self.identity);
        // A hold that stays behind is taken over when this process is gone.
        drop(self.writer().tell(move |connection| lock::release_all(connection, &me)));
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
            let answer = self.writer().ask_prepared(durability, prepare, work).await;
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
        let (me, deleted) = (Arc::clone(&self.identity), Arc::clone(&self.database.deleted));
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
