//! An open SQLite file, for all stores of a process on it: one writing thread and two reading ones.
//!
//! A file that proves to be damaged is repaired while it is open: all stores that use it end first, then it is
//! recovered as at a start, and the threads continue with the result. This requires that no other process uses the
//! file. A read-only database is never repaired.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    thread,
};

use gnoma_core::store::{StoreError, StoreErrorKind};
use rusqlite::Connection;
use tokio::sync::{RwLock, RwLockReadGuard, oneshot};

use crate::{
    db,
    error::{Result, SqliteResultExt},
    files,
    job::closed_error,
    open,
    options::Options,
    rescue_report::RescueReport,
    upkeep::Maintenance,
    users::User,
    worker::Worker,
};

/// A slow search leaves one thread for the rest.
const READERS: usize = 2;

/// Times that a process heals a database; one that is damaged again and again is on a broken disk.
const MAX_HEALS: u64 = 3;

/// An open SQLite file.
pub(crate) struct Database {
    /// Locked alone while it is healed.
    current: RwLock<DatabaseThreads>,
    /// The number of attempts to heal the file.
    heals: AtomicU64,
    /// The number of attempts to heal that brought another file.
    generation: AtomicU64,
    /// True if something was deleted since the log was last freed of it.
    deleted: Arc<AtomicBool>,
    path: PathBuf,
    /// Tells its stores from those of others, with their numbers.
    token: String,
    next_store: AtomicU64,
    /// Keeps others from replacing the database; goes after all that use it. None where it can only be
    /// read.
    user: Option<User>,
}

impl Database {
    /// Opens the database that `options` name for writing, making or recovering it where needed.
    pub(crate) fn open(options: &Options) -> Result<(Self, Option<RescueReport>)> {
        let (connection, rescued, user) = open::open_database(options)?;
        Ok((Self::from_connection(options, connection, Some(user))?, rescued))
    }

    /// Opens the one that is there for reading alone.
    pub(crate) fn open_to_read(options: &Options) -> Result<Self> {
        Self::from_connection(options, open::to_read(options)?, None)
    }

    fn from_connection(
        options: &Options,
        connection: Connection,
        user: Option<User>,
    ) -> Result<Self> {
        let token = connection
            .query_row("SELECT hex(randomblob(8))", [], |row| row.get(0))
            .map_sqlite_error()?;
        let (path, deleted) = (options.path(), Arc::new(AtomicBool::new(false)));
        let current =
            DatabaseThreads::from_connection(options, connection, &deleted, user.is_none())?;
        Ok(Self {
            current: RwLock::new(current),
            heals: AtomicU64::new(0),
            generation: AtomicU64::new(0),
            deleted,
            path,
            token,
            next_store: AtomicU64::new(0),
            user,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn deletion_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.deleted)
    }

    /// Returns the name of another store.
    pub(crate) fn next_token(&self) -> String {
        let number = self.next_store.fetch_add(1, Ordering::Relaxed);
        format!("{}-{number}", self.token)
    }

    /// Reports whether this is still the sound file at `path`, for all that is known.
    pub(crate) fn is_as_opened(&self, path: &Path) -> bool {
        let opened = self.current.try_read().ok().and_then(|current| current.opened);
        path == self.path
            && opened.is_some()
            && files::file_identity(&self.path) == opened
            && !files::sibling_path(&self.path, files::DOUBT).exists()
    }

    /// The threads, for as long as nobody heals the database.
    pub(crate) async fn lock_current(&self) -> RwLockReadGuard<'_, DatabaseThreads> {
        self.current.read().await
    }

    /// Has the writing thread do something for which nobody waits.
    pub(crate) fn queue_write(
        &self,
        work: impl FnOnce(&Connection) -> Result<()> + Send + 'static,
    ) {
        if let Ok(current) = self.current.try_read()
            && let Ok(writer) = current.writer()
        {
            drop(writer.queue_job(work));
        }
    }

    /// Returns how often another file took the place of this one; for [`recover_file`](Self::recover_file).
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::SeqCst)
    }

    /// Recovers what is readable of the file that somebody met damage in, and continues with that. `seen` is
    /// the generation then: where it was healed since, there is nothing to do. On a thread of its own,
    /// which ends with that.
    pub(crate) async fn recover_file(
        database: &Arc<Self>,
        options: &Arc<Options>,
        seen: u64,
    ) -> Result<Option<RescueReport>> {
        let (done, healed) = oneshot::channel();
        let (database, options) = (Arc::clone(database), Arc::clone(options));
        let work = move || {
            // Nobody may wait any more: it is healed all the same.
            drop(done.send(database.heal_now(&options, seen)));
        };
        let thread = thread::Builder::new().name("gnoma-store-healing".to_owned()).spawn(work);
        thread.map_err(|error| {
            let sentence = format!("cannot start recovering the session database: {error}");
            StoreError::new(StoreErrorKind::Io, sentence)
        })?;
        healed.await.map_err(|_| closed_error())?
    }

    fn heal_now(&self, options: &Options, seen: u64) -> Result<Option<RescueReport>> {
        let Some(user) = &self.user else { return Err(closed_error()) };
        let mut current = self.current.blocking_write();
        if self.generation() != seen {
            return Ok(None);
        }
        if self.heals.fetch_add(1, Ordering::SeqCst) >= MAX_HEALS {
            return Err(closed_error());
        }
        // All that have the file open end here.
        *current = DatabaseThreads::default();
        let healed = open::recover_and_open(options, user);
        let (connection, rescued) = match healed {
            Ok((connection, rescued)) => (Ok(connection), Ok(Some(rescued))),
            Err(error) => (open::as_it_is(options), Err(error)),
        };
        *current = DatabaseThreads::from_connection(options, connection?, &self.deleted, false)?;
        if rescued.is_ok() {
            self.generation.fetch_add(1, Ordering::SeqCst);
        }
        rescued
    }
}

/// The threads on a file.
#[derive(Default)]
pub(crate) struct DatabaseThreads {
    readers: [OnceLock<Worker>; READERS],
    next_reader: AtomicUsize,
    /// None where the file could not be opened again.
    writer: Option<Worker>,
    /// The identity of the file.
    opened: Option<(u64, u64)>,
    options: Option<Arc<Options>>,
    only_reads: bool,
}

impl DatabaseThreads {
    fn from_connection(
        options: &Options,
        connection: Connection,
        deleted: &Arc<AtomicBool>,
        only_reads: bool,
    ) -> Result<Self> {
        let path = options.path();
        let opened = files::file_identity(&path);
        let writer = Worker::spawn_writer(connection, Maintenance::new(path, Arc::clone(deleted)))?;
        Ok(Self {
            writer: Some(writer),
            opened,
            options: Some(Arc::new(options.clone())),
            only_reads,
            ..Self::default()
        })
    }

    /// The thread that changes the database.
    pub(crate) fn writer(&self) -> Result<&Worker> {
        self.writer.as_ref().ok_or_else(closed_error)
    }

    /// Looks at the database on a reading thread.
    pub(crate) async fn run_read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.reader()?.run_job(work).await
    }

    /// The reading threads take turns; each is made when it is first needed.
    fn reader(&self) -> Result<&Worker> {
        let turn = self.next_reader.fetch_add(1, Ordering::Relaxed);
        let (Some(worker), Some(options)) = (self.readers.get(turn % READERS), &self.options)
        else {
            return self.writer();
        };
        if let Some(worker) = worker.get() {
            return Ok(worker);
        }
        let (options, only_reads) = (Arc::clone(options), self.only_reads);
        let made = Worker::spawn_reader(move || {
            if only_reads {
                return open::to_read(&options);
            }
            db::open_connection(&options.path(), options.patience, db::journal_for(&options))
        })?;
        Ok(worker.get_or_init(|| made))
    }
}
