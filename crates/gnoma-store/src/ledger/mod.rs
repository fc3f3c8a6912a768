//! Spending over all sessions and processes: [`gnoma_core::ledger::Ledger`] in one SQLite file.
//!
//! Every step is a transaction that excludes all others, so parallel callers exceed a limit at most by what calls
//! in flight cost beyond their estimate. Which limits exist is not known here.
//!
//! - A reservation counts until it is settled or released, or until its process is gone: dead, or from an earlier
//!   boot. If that cannot be determined (another container or machine), a process counts as gone after six silent
//!   hours. What a dead process had reserved is settled as spent ([`lost_calls`]) by the next one that opens the
//!   ledger or reserves.
//! - If a process was wrongly considered dead, the estimate of its call stays: too much rather than too little.
//! - A clock that goes back frees nothing: entries dated later than now stay in every window. A clock that was
//!   wrongly ahead would keep windows full until then; [`SqliteLedger::redate_future`] fixes that.
//! - Daily sums are kept forever, single calls for two days and no fewer than the latest 5,000; a rolling window
//!   that reaches further back counts whole days there. Pools named `turn:…` are deleted two days after their last
//!   use, `session:…` after 90.
//! - Beside the sums, each call is recorded with the work that it belongs to ([`calls`]) for 400 days, for reports.
//!   They open the ledger for reading, so they neither wait for a writer nor keep one waiting.
//! - What a process settled survives its death; a power failure may lose the last moment.
//!
//! Beside the spending, the file has *notes*: texts by name, which this crate does not interpret, each read and
//! replaced by one process at a time.

mod calls;
mod error_sentences;
mod ledger_maintenance;
mod ledger_transactions;
mod limit_check;
mod lost_calls;
mod lost_sums;
mod memory;
mod notes;
mod open;
mod salvage;
mod schema;
mod statements;
mod unknown_spend;
mod window;

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use gnoma_core::{
    ledger::{
        HoldId, Ledger, Level, PoolDraw, ReservationOutcome, ReservationRequest, SettledCall, Total,
    },
    store::{StoreErrorKind, StoreFuture},
};
use rusqlite::{Connection, Transaction, TransactionBehavior};

pub use self::{
    calls::{CallRow, DamagedCall, DamagedCalls, KEPT_DAYS, NameId, UsageRead},
    notes::MAX_NOTE_BYTES,
    open::QuarantinedLedger,
};
use self::{
    error_sentences::{LedgerResultExt, ledger_error, reword_error},
    ledger_maintenance::{File, LedgerMaintenance},
    ledger_transactions::{LedgerTransaction, ReservedCall},
    memory::{FreshReservation, ProcessReservations},
};
use crate::{
    error::Result,
    files, job,
    lock::{Hold, Identity},
    users::User,
    worker::Worker,
};

/// Most transactions of [`SqliteLedger::forget_calls`]: more calls than any ledger has.
const MAX_FORGOTTEN_PIECES: usize = 10_000;

/// A time at which no process has been silent for long: only processes that are known to be dead count as dead.
const NO_TIME_MS: i64 = i64::MIN;

/// The time to wait for other processes.
const PATIENCE: Duration = Duration::from_secs(5);

/// A ledger in a file that several processes share, or in memory.
pub struct SqliteLedger {
    worker: Worker,
    memory: Arc<ProcessReservations>,
    identity: Arc<Identity>,
    file: Option<PathBuf>,
    has_lost_calls: bool,
    /// Keeps others from replacing the file; goes after the thread.
    _user: Option<User>,
}

/// An open ledger, and what had to be done for it.
pub struct OpenedLedger {
    /// The ledger that was opened.
    pub ledger: SqliteLedger,
    /// A file that could not be used was set aside, which should be reported.
    pub set_aside: Option<QuarantinedLedger>,
}

impl SqliteLedger {
    /// Opens the ledger at `path` or creates it, for its owner alone. Blocks for some milliseconds. A missing
    /// folder is created, and closed to others.
    ///
    /// # Errors
    /// The place cannot be written to, is full, or is locked for too long; the file is not a ledger; or it cannot
    /// be used while another process has it open. It is left as it is then.
    pub fn open(path: &Path) -> Result<OpenedLedger> {
        let (connection, set_aside, user) = open::open_ledger(path, PATIENCE)?;
        let file = File { path: path.to_owned(), opened: files::file_identity(path) };
        let ledger = Self::from_connection(connection, Some(file), Some(user))?;
        Ok(OpenedLedger { ledger, set_aside })
    }

    /// Opens the ledger at `path` for reading, also where nothing can be written or another process writes. Changes no
    /// file; every step that would change the ledger fails. `None` if the ledger must first be repaired or brought to
    /// today's version, which [`open`](Self::open) does.
    ///
    /// # Errors
    /// There is no such file, it cannot be read, it is not a ledger, or a newer gnoma wrote it.
    pub fn open_to_read(path: &Path) -> Result<Option<Self>> {
        let Some(connection) = open::open_to_read(path, PATIENCE)? else { return Ok(None) };
        let identity = Arc::new(new_identity(&connection)?);
        let has_lost_calls = with_ledger_view(&connection, &identity, NO_TIME_MS, |books| {
            Ok(!books.dead_processes()?.is_empty())
        });
        let has_lost_calls = match has_lost_calls {
            Err(error) if error.kind == StoreErrorKind::Damaged => {
                files::mark_damaged(path);
                return Ok(None);
            }
            known => known?,
        };
        let file = path.to_owned();
        let connect = move || {
            let changed = || ledger_error(StoreErrorKind::Busy, "it was replaced");
            open::open_to_read(&file, PATIENCE)?.ok_or_else(changed)
        };
        let worker =
            Worker::spawn_reader(connect).map_err(|error| reword_error(error, "thread"))?;
        let (memory, file) = (Arc::default(), Some(path.to_owned()));
        Ok(Some(Self { worker, memory, identity, file, has_lost_calls, _user: None }))
    }

    /// Reports whether a ledger that was opened for reading lacks calls of processes that died, which
    /// [`open`](Self::open) settles.
    #[must_use]
    pub fn has_lost_calls(&self) -> bool {
        self.has_lost_calls
    }

    /// A ledger that is gone when it is dropped and never touches the disk.
    ///
    /// # Errors
    /// When there is no memory or no thread for it.
    pub fn in_memory() -> Result<Self> {
        Self::from_connection(open::in_memory()?, None, None)
    }

    fn from_connection(
        connection: Connection,
        file: Option<File>,
        user: Option<User>,
    ) -> Result<Self> {
        let identity = Arc::new(new_identity(&connection)?);
        // A reservation that cannot be settled now is settled with the next one, which reports the reason.
        let _unsettled = settle_dead_processes(&connection, &identity);
        let memory = Arc::new(ProcessReservations::default());
        let path = file.as_ref().map(|file| file.path.clone());
        let tending = LedgerMaintenance {
            file,
            memory: Arc::clone(&memory),
            identity: Arc::clone(&identity),
        };
        let worker = Worker::spawn_writer(connection, tending)
            .map_err(|error| reword_error(error, "thread"))?;
        Ok(Self { worker, memory, identity, file: path, has_lost_calls: false, _user: user })
    }

    /// Moves what is dated later than `now_ms` to that time, once a clock that was wrongly ahead has
    /// been set right; says how many calls were. Their amounts count as taken now.
    ///
    /// # Errors
    /// As the file's.
    pub async fn redate_future(&self, now_ms: i64) -> Result<u64> {
        self.run_job(move |connection| ledger_transactions::redate_future(connection, now_ms)).await
    }

    /// Reports whether money may have been spent that is not counted, because a damaged ledger could not be read
    /// completely; until that is accepted, calls that cost money are refused if a spending limit applies.
    ///
    /// # Errors
    /// Those of the file.
    pub async fn lacks_money(&self) -> Result<bool> {
        self.run_job(|connection| Ok(unknown_spend::known_since(connection)?.is_some())).await
    }

    /// Counts on with what could be read of a damaged ledger; says whether anything was in doubt.
    ///
    /// # Errors
    /// As the file's.
    pub async fn accept_loss(&self) -> Result<bool> {
        self.run_job(unknown_spend::accept_unknown).await
    }

    /// Lets `change` have the note of that name and keeps what it makes of it, with nobody in between;
    /// `None` leaves it as it is.
    ///
    /// # Errors
    /// As the file's, and where the note is larger than [`MAX_NOTE_BYTES`].
    pub async fn change_note(
        &self,
        name: &'static str,
        change: impl FnOnce(Option<&str>) -> Option<String> + Send + 'static,
    ) -> Result<()> {
        self.run_job(move |connection| notes::change_note(connection, name, change)).await
    }

    /// Forgets the note of that name.
    ///
    /// # Errors
    /// As the file's.
    pub async fn forget_note(&self, name: &'static str) -> Result<()> {
        self.run_job(move |connection| notes::remove_note(connection, name)).await
    }

    /// Folds the recorded calls from the UTC day of `from_ms` on into `state` until `add` breaks, and returns it with
    /// the sums of those days, all as of one moment. Rows that cannot be read are left out and described.
    ///
    /// # Errors
    /// Those of the file.
    pub async fn fold_calls<T: Send + 'static>(
        &self,
        from_ms: i64,
        state: T,
        add: impl FnMut(&mut T, CallRow) -> ControlFlow<()> + Send + 'static,
    ) -> Result<UsageRead<T>> {
        self.run_job(move |connection| calls::fold_rows(connection, from_ms, state, add)).await
    }

    /// Returns the texts of names of recorded calls; unknown ones are left out.
    ///
    /// # Errors
    /// Those of the file.
    pub async fn call_names(&self, ids: Vec<NameId>) -> Result<BTreeMap<NameId, String>> {
        self.run_job(move |connection| calls::read_names(connection, &ids)).await
    }

    /// Counts the recorded calls before `before_ms`.
    ///
    /// # Errors
    /// Those of the file.
    pub async fn count_calls(&self, before_ms: i64) -> Result<u64> {
        self.run_job(move |connection| calls::count_before(connection, before_ms)).await
    }

    /// Removes recorded calls before `before_ms`; their sums by day and arm, and what limits count, stay. Removes some
    /// at a time, so that other processes are not kept waiting, and returns how many in all.
    ///
    /// # Errors
    /// Those of the file; calls that were removed until then stay removed.
    pub async fn forget_calls(&self, before_ms: i64) -> Result<u64> {
        let mut removed = 0_u64;
        for _piece in 0..MAX_FORGOTTEN_PIECES {
            let piece =
                self.run_job(move |connection| calls::forget_before(connection, before_ms)).await?;
            if piece == 0 {
                break;
            }
            removed = removed.saturating_add(piece);
        }
        self.memory.set_forgotten();
        Ok(removed)
    }

    async fn run_job<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let answer = self.worker.run_job(work).await;
        self.remember_damage(answer)
    }

    /// Remembers damage, so that the next start sets the file aside.
    fn remember_damage<T>(&self, answer: Result<T>) -> Result<T> {
        answer.map_err(|error| {
            if let (StoreErrorKind::Damaged, Some(path)) = (&error.kind, &self.file) {
                files::mark_damaged(path);
            }
            let cause = self.file.as_ref().map(|path| format!("`{}`", path.display()));
            reword_error(error, cause.as_deref().unwrap_or("in memory"))
        })
    }
}

/// Returns a new identity of this process.
fn new_identity(connection: &Connection) -> Result<Identity> {
    let token = connection
        .query_row("SELECT hex(randomblob(8))", [], |row| row.get(0))
        .or_ledger_error()?;
    Ok(Identity::of_this_process(token))
}

/// Settles what processes of this machine reserved before they died.
fn settle_dead_processes(connection: &Connection, me: &Identity) -> Result<()> {
    with_ledger_view(connection, me, NO_TIME_MS, |books| {
        if books.dead_processes()?.is_empty() {
            return Ok(());
        }
        let behavior = TransactionBehavior::Immediate;
        let transaction = Transaction::new_unchecked(connection, behavior).or_ledger_error()?;
        books.settle_dead_processes()?;
        transaction.commit().or_ledger_error()
    })
}

/// Does `work` with the books as this process sees them at `at_ms`.
fn with_ledger_view<T>(
    connection: &Connection,
    me: &Identity,
    at_ms: i64,
    work: impl FnOnce(&LedgerTransaction<'_>) -> Result<T>,
) -> Result<T> {
    let is_live = |process: &Hold| process.is_live(me, at_ms);
    work(&LedgerTransaction { connection, me, is_live: &is_live })
}

impl Ledger for SqliteLedger {
    fn reserve(&self, ask: ReservationRequest) -> StoreFuture<'_, ReservationOutcome> {
        let (memory, me) = (Arc::clone(&self.memory), Arc::clone(&self.identity));
        memory.set_latest_time(ask.at_ms);
        let work = move |connection: &Connection| {
            drop(memory.release_dropped(connection)?);
            // Outside what a refusal undoes.
            if let Err(refused) = unknown_spend::refuse_if_unknown(connection, &ask) {
                return Ok(Err(refused));
            }
            let reserved =
                with_ledger_view(connection, &me, ask.at_ms, |books| books.reserve(&ask))?;
            Ok(Ok(reserved
                .map(|hold| FreshReservation::new(hold, ReservedCall::from_ask(&ask), memory))))
        };
        Box::pin(async move {
            self.memory.has_room()?;
            match self.run_job(work).await?? {
                Ok(fresh) => fresh
                    .confirm_arrival()
                    .map(ReservationOutcome::Held)
                    .ok_or_else(|| ledger_error(StoreErrorKind::Io, "a reservation was lost")),
                Err(full) => Ok(ReservationOutcome::Full(full)),
            }
        })
    }

    /// Settles even when nobody waits for the answer.
    fn commit(&self, hold: HoldId, at_ms: i64, call: SettledCall) -> StoreFuture<'_, ()> {
        self.memory.set_latest_time(at_ms);
        let kept = self.memory.take_call(hold);
        let (me, settling) = (Arc::clone(&self.identity), kept.clone());
        let told = self.worker.queue_job(move |connection| {
            with_ledger_view(connection, &me, at_ms, |books| {
                books.settle_hold(hold, settling.as_ref(), at_ms, &call)
            })
        });
        Box::pin(async move {
            let answer = match told {
                Ok(answer) => answer.await.unwrap_or_else(|_| Err(job::closed_error())),
                Err(error) => Err(error),
            };
            if let (Err(_), Some(kept)) = (&answer, kept) {
                self.memory.put_back(hold, kept);
            }
            self.remember_damage(answer)
        })
    }

    fn rollback(&self, hold: HoldId) {
        self.memory.let_go(hold);
        let memory = Arc::clone(&self.memory);
        // What fails now is let go with the next step.
        drop(self.worker.queue_job(move |connection| memory.release_dropped(connection)));
    }

    fn limit_levels(&self, draws: Vec<PoolDraw>, at_ms: i64) -> StoreFuture<'_, Vec<Level>> {
        let (memory, me) = (Arc::clone(&self.memory), Arc::clone(&self.identity));
        Box::pin(self.run_job(move |connection| {
            drop(memory.release_dropped(connection)?);
            with_ledger_view(connection, &me, at_ms, |books| {
                match books.settle_dead_processes() {
                    // In a ledger that is open for reading, what the dead reserved stays reserved.
                    Err(error) if error.kind == StoreErrorKind::ReadOnly => {}
                    settled => settled?,
                }
                books.levels(&draws, at_ms)
            })
        }))
    }

    fn daily_totals(&self, from_day: i32) -> StoreFuture<'_, Vec<Total>> {
        Box::pin(
            self.run_job(move |connection| ledger_transactions::daily_totals(connection, from_day)),
        )
    }
}
