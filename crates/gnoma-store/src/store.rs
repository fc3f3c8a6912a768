//! The store itself: one writing thread, two reading ones, and the port on top of them. Sessions of one process
//! share the threads; each store has its own redaction and holds. [`crate::database`] opens and repairs.

use std::{
    path::Path,
    sync::{Arc, Weak, atomic::Ordering},
};

use gnoma_core::store::{
    Durability, EntryId, Hit, HoldReport, NewEntry, NewSession, Page, PageRequest, SessionFacts,
    SessionId, SessionStore, StoreErrorKind, StoreFuture,
};
use rusqlite::Connection;

use crate::{
    add_import::{self, ImportOutcome},
    child,
    database::Database,
    db,
    entry::PreparedRecord,
    error::Result,
    files,
    import::ImportedTranscript,
    lock::{self, Identity},
    options::Options,
    path, recover, redact,
    rescue_report::RescueReport,
    retention::{self, PrunedSessions, Retention},
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
    pub fn open_store(&self, options: Options) -> Option<Store> {
        let database = self.0.upgrade()?;
        (database.is_as_opened(&options.path())).then(|| Store::from_database(database, options))
    }
}

/// An open store, and what had to be done for it.
pub struct OpenedStore {
    /// The store that was opened.
    pub store: Store,
    /// A damaged database was set aside, which should be reported.
    pub rescued: Option<RescueReport>,
}

impl Store {
    /// Opens the project's database, or makes it. Blocks for some milliseconds.
    ///
    /// # Errors
    /// When the place cannot be written to, is full or locked for too long, or when the file is
    /// foreign or a newer gnoma's; such a file is left as it is.
    pub fn open(options: Options) -> Result<OpenedStore> {
        let (database, rescued) = Database::open(&options)?;
        Ok(OpenedStore { store: Self::from_database(Arc::new(database), options), rescued })
    }

    /// Opens what exists for reading, if nothing can be written: in a home that is read-only or full. Every change
    /// fails with [`StoreErrorKind::ReadOnly`].
    ///
    /// # Errors
    /// There is no database, or it cannot be read as it is.
    pub fn open_to_read(options: Options) -> Result<Self> {
        Database::open_to_read(&options)
            .map(|database| Self::from_database(Arc::new(database), options))
    }

    fn from_database(database: Arc<Database>, options: Options) -> Self {
        let identity = Identity::of_this_process(database.next_token());
        Self { database, identity: Arc::new(identity), options: Arc::new(options) }
    }

    /// The database, for [other stores](OpenDatabase::open_store) on it.
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
    pub async fn prune(&self, retention: Retention, now_ms: i64) -> Result<PrunedSessions> {
        let me = Arc::clone(&self.identity);
        self.run_write(move |connection| {
            retention::prune_sessions(connection, &me, retention, now_ms)
        })
        .await
    }

    /// Adds what was imported as a new session, all of it or nothing, through the same redaction
    /// as everything else. What came from the same place before is not added again; times after
    /// `at_ms` become that time.
    ///
    /// # Errors
    /// As the database's.
    pub async fn import(&self, imported: ImportedTranscript, at_ms: i64) -> Result<ImportOutcome> {
        let (options, me) = (Arc::clone(&self.options), Arc::clone(&self.identity));
        let project = redact::redact_words(&*options.redact, &options.project);
        let prepare = move || add_import::prepare_import(&*options.redact, imported);
        let work = move |connection: &Connection, ready: add_import::PreparedImport| {
            add_import::insert_import(connection, &me, &project, ready, at_ms)
        };
        // Too much to have twice: damage that is met here is healed by whoever meets it next.
        let open = self.database.lock_current().await;
        let answer = open.writer()?.ask_prepared(Durability::Disk, prepare, work).await;
        self.remember_damage(answer)
    }

    /// Reads the whole database and says whether it is sound. When it is not, the next
    /// [`open`](Self::open) recovers it.
    ///
    /// # Errors
    /// When it is damaged.
    pub async fn check_integrity(&self) -> Result<()> {
        self.remember_damage(self.database.lock_current().await.run_read(db::check_integrity).await)
    }

    /// Looks at the database; where it is damaged, at what was recovered of it.
    pub(crate) async fn run_read<T: Send + 'static>(
        &self,
        work: impl Fn(&Connection) -> Result<T> + Send + Sync + 'static,
    ) -> Result<T> {
        let work = Arc::new(work);
        self.with_recovery(|| {
            let work = Arc::clone(&work);
            async move { self.database.lock_current().await.run_read(move |open| work(open)).await }
        })
        .await
    }

    /// Brings the index up to date. Where that cannot be done, what is indexed is searched.
    async fn update_index(&self) -> Result<()> {
        for _ in 0..MOST_PIECES {
            if !self.run_read(text_index::is_behind).await?
                || self.run_write(text_index::index_batch).await.is_err()
            {
                break;
            }
        }
        Ok(())
    }

    async fn run_write<T: Send + 'static>(
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
        self.with_recovery(|| {
            let (prepare, work) = (Arc::clone(&prepare), Arc::clone(&work));
            async move {
                let open = self.database.lock_current().await;
                let work = move |connection: &Connection, prepared| work(connection, prepared);
                open.writer()?.ask_prepared(durability, move || prepare(), work).await
            }
        })
        .await
    }

    /// Does something with the database; when it meets damage, again with what was recovered.
    async fn with_recovery<T, A: Future<Output = Result<T>>>(
        &self,
        attempt: impl Fn() -> A,
    ) -> Result<T> {
        let seen = self.database.generation();
        let answer = attempt().await;
        if !is_damage(&answer) {
            return answer;
        }
        match Database::recover_file(&self.database, &self.options, seen).await {
            Ok(rescued) => {
                if let Some(rescued) = rescued {
                    (self.options.recovered)(rescued);
                }
                self.remember_damage(attempt().await)
            }
            // The damage is what is to be told, unless somebody else is in the way of healing it.
            Err(error) if error.kind == StoreErrorKind::Busy => Err(error),
            Err(_) => self.remember_damage(answer),
        }
    }

    /// Remembers damage for the next start.
    fn remember_damage<T>(&self, answer: Result<T>) -> Result<T> {
        if is_damage(&answer) {
            files::mark_damaged(self.database.path());
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
        self.database.queue_write(move |connection| lock::release_all(connection, &me));
    }
}

impl SessionStore for Store {
    fn begin(&self, new: NewSession) -> StoreFuture<'_, SessionId> {
        let options = Arc::clone(&self.options);
        Box::pin(self.run_write(move |connection| {
            let title =
                new.title.as_deref().map(|title| redact::redact_words(&*options.redact, title));
            let project = redact::redact_words(&*options.redact, &options.project);
            let hidden = |name: &str| redact::redact_words(&*options.redact, name);
            let parent = new.parent.as_ref().map(|(id, name)| (id.clone(), hidden(name)));
            session::begin_session(
                connection,
                &project,
                &NewSession { title, parent, ..new.clone() },
            )
        }))
    }

    fn append(&self, new: NewEntry) -> StoreFuture<'_, EntryId> {
        Box::pin(async move {
            let entries = self.append_all(vec![new]).await?;
            entries.first().copied().ok_or_else(crate::job::closed_error)
        })
    }

    fn append_all(&self, new: Vec<NewEntry>) -> StoreFuture<'_, Vec<EntryId>> {
        Box::pin(async move {
            let options = Arc::clone(&self.options);
            let me = Arc::clone(&self.identity);
            let to_disk = new.iter().any(|new| new.durability == Durability::Disk);
            let durability = if to_disk { Durability::Disk } else { Durability::Process };
            let new = Arc::new(new);
            let same = Arc::clone(&new);
            let prepare = move || {
                let hidden = |new: &NewEntry| redact::redact_record(&*options.redact, &new.record);
                new.iter().map(|new| PreparedRecord::new(hidden(new)?)).collect::<Result<Vec<_>>>()
            };
            let work = move |connection: &Connection, prepared: Vec<PreparedRecord>| {
                session::append_all(connection, &me, &same, &prepared)
            };
            self.change_prepared(durability, prepare, work).await
        })
    }

    fn load(&self, session: SessionId, page: PageRequest) -> StoreFuture<'_, Page> {
        Box::pin(self.run_read(move |connection| path::load_page(connection, &session, page)))
    }

    fn session_facts(&self, session: SessionId) -> StoreFuture<'_, SessionFacts> {
        let (me, now_ms) = (Arc::clone(&self.identity), (self.options.clock)());
        Box::pin(
            self.run_read(move |connection| {
                session::session_facts(connection, &me, &session, now_ms)
            }),
        )
    }

    fn list(&self, max: usize) -> StoreFuture<'_, Vec<SessionFacts>> {
        let (me, now_ms) = (Arc::clone(&self.identity), (self.options.clock)());
        Box::pin(
            self.run_read(move |connection| session::list_sessions(connection, &me, max, now_ms)),
        )
    }

    fn children(&self, session: SessionId) -> StoreFuture<'_, Vec<SessionFacts>> {
        let (me, now_ms) = (Arc::clone(&self.identity), (self.options.clock)());
        Box::pin(
            self.run_read(move |connection| {
                session::child_facts(connection, &me, &session, now_ms)
            }),
        )
    }

    fn search(&self, query: String, max: usize) -> StoreFuture<'_, Vec<Hit>> {
        Box::pin(async move {
            self.update_index().await?;
            self.run_read(move |connection| search::search_entries(connection, &query, max)).await
        })
    }

    fn fork(&self, session: SessionId, at: EntryId, at_ms: i64) -> StoreFuture<'_, SessionId> {
        let options = Arc::clone(&self.options);
        Box::pin(self.run_write(move |connection| {
            let project = redact::redact_words(&*options.redact, &options.project);
            session::fork_session(connection, &project, &session, at, at_ms)
        }))
    }

    fn rename(&self, session: SessionId, title: String, at_ms: i64) -> StoreFuture<'_, ()> {
        let (options, me) = (Arc::clone(&self.options), Arc::clone(&self.identity));
        Box::pin(self.run_write(move |connection| {
            let title = redact::redact_words(&*options.redact, &title);
            session::rename_session(connection, &me, &session, title, at_ms)
        }))
    }

    fn delete(&self, session: SessionId) -> StoreFuture<'_, ()> {
        let (me, deleted) = (Arc::clone(&self.identity), self.database.deletion_flag());
        let now_ms = (self.options.clock)();
        Box::pin(self.run_write(move |connection| {
            retention::forget_session(connection, &me, &session, now_ms)?;
            deleted.store(true, Ordering::SeqCst);
            Ok(())
        }))
    }

    fn hold_session(&self, session: SessionId, at_ms: i64) -> StoreFuture<'_, HoldReport> {
        let me = Arc::clone(&self.identity);
        Box::pin(
            self.run_write(move |connection| {
                recover::hold_session(connection, &me, &session, at_ms)
            }),
        )
    }

    fn release_session(&self, session: SessionId) -> StoreFuture<'_, ()> {
        let me = Arc::clone(&self.identity);
        Box::pin(self.run_write(move |connection| {
            let known = session_row::find_session(connection, &session)?;
            child::mark_ended(connection, &me, known.number)?;
            lock::release_hold(connection, &me, known.number)
        }))
    }
}
