//! The store itself: one writing thread, two reading ones, and the port on top of them. Sessions of one process
//! share the threads; each store has its own redaction and holds. [`crate::database`] opens and repairs.

use std::{
    path::Path,
    sync::{Arc, Weak, atomic::Ordering},
};

use gnoma_core::store::{
    Durability, EntryId, Hit, HoldReport, NewEntry, NewSession, Page, PageRequest, SessionFacts,
    SessionId, SessionStore, StoreErrorKind, Stored,
};
use rusqlite::Connection;

use crate::{
    add_import::{self, ImportOutcome},
    child,
    database::Database,
    db,
    entry::Prepared,
    error::Result,
    files,
    import::Imported,
    lock::{self, Identity},
    options::Options,
    path, recover, redact,
    rescued::Rescued,
    retention::{self, Pruned, Retention},
    search, session, session_row, text_index,
};

/// Pieces of the index a search waits for; a store that is behind by more is searched as it is.
const MOST_PIECES: usize = 10_000;

/// Sessions of one project in one SQLite file. Dropping it releases its holds.
pub struct Store {
    pub(crate) database: Arc<Database>,
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
    /// Reports whether some store uses the database.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.0.strong_count() > 0
    }

    /// Another store on the database, with its own redaction and holds: it shares the writing thread and the
    /// reading ones. `None` if the database is closed, or about to be reopened. `options` must name the same file.
    #[must_use]
    pub fn store(&self, options: Options) -> Option<Store> {
        let database = self.0.upgrade()?;
        (database.is_as_opened(&options.path())).then(|| Store::on(database, options))
    }
}

/// An open store, and what had to be done for it.
pub struct Opened {
    /// The store that was opened.
    pub store: Store,
    /// A damaged database was set aside, which should be reported.
    pub rescued: Option<Rescued>,
}

impl Store {
    /// Opens the project's database, or makes it. Blocks for some milliseconds.
    ///
    /// # Errors
    /// When the place cannot be written to, is full or locked for too long, or when the file is
    /// foreign or a newer gnoma's; such a file is left as it is.
    pub fn open(options: Options) -> Result<Opened> {
        let (database, rescued) = Database::open(&options)?;
        Ok(Opened { store: Self::on(Arc::new(database), options), rescued })
    }

    /// Opens what exists for reading, if nothing can be written: in a home that is read-only or full. Every change
    /// fails with [`StoreErrorKind::ReadOnly`].
    ///
    /// # Errors
    /// There is no database, or it cannot be read as it is.
    pub fn open_to_read(options: Options) -> Result<Self> {
        Database::open_to_read(&options).map(|database| Self::on(Arc::new(database), options))
    }

    fn on(database: Arc<Database>, options: Options) -> Self {
        let identity = Identity::of_this_process(database.next_token());
        Self { database, identity: Arc::new(identity), options: Arc::new(options) }
    }

    /// The database, for [other stores](OpenDatabase::store) on it.
    #[must_use]
    pub fn database(&self) -> OpenDatabase {
        OpenDatabase(Arc::downgrade(&self.database))
    }

    /// Returns the path of the database's file.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.database.path()
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
        // Too much to have twice: damage that is met here is healed by whoever meets it next.
        let open = self.database.current().await;
        let answer = open.writer()?.ask_prepared(Durability::Disk, prepare, work).await;
        self.heed(answer)
    }

    /// Reads the whole database and says whether it is sound. When it is not, the next
    /// [`open`](Self::open) recovers it.
    ///
    /// # Errors
    /// When it is damaged.
    pub async fn check(&self) -> Result<()> {
        self.heed(self.database.current().await.look(db::check).await)
    }

    /// Looks at the database; where it is damaged, at what was recovered of it.
    pub(crate) async fn look<T: Send + 'static>(
        &self,
        work: impl Fn(&Connection) -> Result<T> + Send + Sync + 'static,
    ) -> Result<T> {
        let work = Arc::new(work);
        self.healing(|| {
            let work = Arc::clone(&work);
            async move { self.database.current().await.look(move |open| work(open)).await }
        })
        .await
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
        work: impl Fn(&Connection) -> Result<T> + Send + Sync + 'static,
    ) -> Result<T> {
        let work = move |connection: &Connection, ()| work(connection);
        self.change_prepared(Durability::Process, || Ok(()), work).await
    }

    /// Changes the database in a transaction that survives what `durability` says; where it is damaged,
    /// what was recovered of it. `prepare` needs no database.
    pub(crate) async fn change_prepared<I: Send + 'static, T: Send + 'static>(
        &self,
        durability: Durability,
        prepare: impl Fn() -> Result<I> + Send + Sync + 'static,
        work: impl Fn(&Connection, I) -> Result<T> + Send + Sync + 'static,
    ) -> Result<T> {
        let (prepare, work) = (Arc::new(prepare), Arc::new(work));
        self.healing(|| {
            let (prepare, work) = (Arc::clone(&prepare), Arc::clone(&work));
            async move {
                let open = self.database.current().await;
                let work = move |connection: &Connection, prepared| work(connection, prepared);
                open.writer()?.ask_prepared(durability, move || prepare(), work).await
            }
        })
        .await
    }

    /// Does something with the database; when it meets damage, again with what was recovered.
    async fn healing<T, A: Future<Output = Result<T>>>(
        &self,
        attempt: impl Fn() -> A,
    ) -> Result<T> {
        let seen = self.database.generation();
        let answer = attempt().await;
        if !is_damage(&answer) {
            return answer;
        }
        match Database::heal(&self.database, &self.options, seen).await {
            Ok(rescued) => {
                if let Some(rescued) = rescued {
                    (self.options.recovered)(rescued);
                }
                self.heed(attempt().await)
            }
            // The damage is what is to be told, unless somebody else is in the way of healing it.
            Err(error) if error.kind == StoreErrorKind::Busy => Err(error),
            Err(_) => self.heed(answer),
        }
    }

    /// Remembers damage for the next start.
    fn heed<T>(&self, answer: Result<T>) -> Result<T> {
        if is_damage(&answer) {
            files::doubt(self.database.path());
        }
        answer
    }
}

fn is_damage<T>(answer: &Result<T>) -> bool {
    matches!(answer, Err(error) if error.kind == StoreErrorKind::Damaged)
}

impl Drop for Store {
    fn drop(&mut self) {
        let me = Arc::clone(&self.identity);
        // A hold that stays behind is taken over when this process is gone.
        self.database.tell(move |connection| lock::release_all(connection, &me));
    }
}

impl SessionStore for Store {
    fn begin(&self, new: NewSession) -> Stored<'_, SessionId> {
        let options = Arc::clone(&self.options);
        Box::pin(self.change(move |connection| {
            let title = new.title.as_deref().map(|title| redact::words(&*options.redact, title));
            let project = redact::words(&*options.redact, &options.project);
            let hidden = |name: &str| redact::words(&*options.redact, name);
            let parent = new.parent.as_ref().map(|(id, name)| (id.clone(), hidden(name)));
            session::begin(connection, &project, &NewSession { title, parent, ..new.clone() })
        }))
    }

    fn append(&self, new: NewEntry) -> Stored<'_, EntryId> {
        Box::pin(async move {
            let entries = self.append_all(vec![new]).await?;
            entries.first().copied().ok_or_else(crate::job::closed)
        })
    }

    fn append_all(&self, new: Vec<NewEntry>) -> Stored<'_, Vec<EntryId>> {
        Box::pin(async move {
            let options = Arc::clone(&self.options);
            let me = Arc::clone(&self.identity);
            let to_disk = new.iter().any(|new| new.durability == Durability::Disk);
            let durability = if to_disk { Durability::Disk } else { Durability::Process };
            let new = Arc::new(new);
            let same = Arc::clone(&new);
            let prepare = move || {
                let hidden = |new: &NewEntry| redact::record(&*options.redact, &new.record);
                new.iter().map(|new| Prepared::new(hidden(new)?)).collect::<Result<Vec<_>>>()
            };
            let work = move |connection: &Connection, prepared: Vec<Prepared>| {
                session::append_all(connection, &me, &same, &prepared)
            };
            self.change_prepared(durability, prepare, work).await
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

    fn children(&self, session: SessionId) -> Stored<'_, Vec<SessionFacts>> {
        let (me, now_ms) = (Arc::clone(&self.identity), (self.options.clock)());
        Box::pin(self.look(move |connection| session::children(connection, &me, &session, now_ms)))
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
        let (me, deleted) = (Arc::clone(&self.identity), self.database.deleted());
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
            child::ended(connection, &me, known.number)?;
            lock::release(connection, &me, known.number)
        }))
    }
}
