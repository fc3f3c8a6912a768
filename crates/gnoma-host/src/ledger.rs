//! The ledger of what is spent, opened when it is first needed: most runs make their first request
//! before anything is counted. Its file also has what all processes know of the arms.

use std::{collections::BTreeMap, ops::ControlFlow, path::PathBuf};

use gnoma_core::{
    ledger::{
        HoldId, Ledger, Level, PoolDraw, ReservationOutcome, ReservationRequest, SettledCall, Total,
    },
    store::{StoreError, StoreErrorKind, StoreFuture},
};
use gnoma_engine::routing::{Exchange, VitalsStore};
use gnoma_store::{CallRow, NameId, SqliteLedger, UsageRead};
use tokio::{sync::OnceCell, task::spawn_blocking};

use crate::Notices;

/// The note of how the arms are.
const ARMS: &str = "arms";

/// The ledger of what is spent, opened when it is first needed.
pub struct LateLedger {
    place: LedgerPlace,
    opened: OnceCell<SqliteLedger>,
    notices: Notices,
}

/// The place of a ledger.
#[derive(Clone)]
enum LedgerPlace {
    /// Memory, for sessions that leave no trace.
    Memory,
    /// A file that is read and written.
    File(PathBuf),
    /// A file that is only read, unless it must first be repaired or brought to today's version, or has calls of
    /// processes that died.
    FileToRead(PathBuf),
}

impl LateLedger {
    /// Returns the ledger in a file; without one, in memory.
    pub(crate) fn new(path: Option<PathBuf>, notices: Notices) -> Self {
        Self::from_place(path.map_or(LedgerPlace::Memory, LedgerPlace::File), notices)
    }

    /// Returns the ledger in a file for reading; without one, an empty ledger in memory.
    pub(crate) fn to_read(path: Option<PathBuf>, notices: Notices) -> Self {
        Self::from_place(path.map_or(LedgerPlace::Memory, LedgerPlace::FileToRead), notices)
    }

    fn from_place(place: LedgerPlace, notices: Notices) -> Self {
        Self { place, opened: OnceCell::new(), notices }
    }

    /// Forgets how the arms were.
    pub async fn forget_arms(&self) -> Result<(), StoreError> {
        if self.is_empty() { Ok(()) } else { self.get().await?.forget_note(ARMS).await }
    }

    /// Counts what is dated later than `now_ms` as taken then; says how many calls were.
    pub async fn redate(&self, now_ms: i64) -> Result<u64, StoreError> {
        self.get().await?.redate_future(now_ms).await
    }

    /// Reports whether a damaged ledger may have lost some of the money that was spent.
    pub async fn lacks_money(&self) -> Result<bool, StoreError> {
        if self.is_empty() { Ok(false) } else { self.get().await?.lacks_money().await }
    }

    /// Counts on with what could be read of a damaged ledger; says whether anything was in doubt.
    pub async fn accept_loss(&self) -> Result<bool, StoreError> {
        if self.is_empty() { Ok(false) } else { self.get().await?.accept_loss().await }
    }

    /// Folds the recorded calls; see [`SqliteLedger::fold_calls`].
    pub(crate) async fn fold_calls<T: Send + 'static>(
        &self,
        from_ms: i64,
        state: T,
        add: impl FnMut(&mut T, CallRow) -> ControlFlow<()> + Send + 'static,
    ) -> Result<UsageRead<T>, StoreError> {
        self.get().await?.fold_calls(from_ms, state, add).await
    }

    /// Returns the texts of names of recorded calls.
    pub(crate) async fn call_names(
        &self,
        ids: Vec<NameId>,
    ) -> Result<BTreeMap<NameId, String>, StoreError> {
        self.get().await?.call_names(ids).await
    }

    /// Counts the recorded calls before a time.
    pub(crate) async fn count_calls(&self, before_ms: i64) -> Result<u64, StoreError> {
        self.get().await?.count_calls(before_ms).await
    }

    /// Removes recorded calls before a time; their sums stay.
    pub(crate) async fn forget_calls(&self, before_ms: i64) -> Result<u64, StoreError> {
        self.get().await?.forget_calls(before_ms).await
    }

    async fn get(&self) -> Result<&SqliteLedger, StoreError> {
        self.opened
            .get_or_try_init(|| async {
                let (place, notices) = (self.place.clone(), self.notices.clone());
                let opened = spawn_blocking(move || open_ledger(place, &notices)).await;
                opened.unwrap_or_else(|_| {
                    let text = "could not open the spending ledger";
                    Err(StoreError::new(StoreErrorKind::Io, text))
                })
            })
            .await
    }
}

fn open_ledger(place: LedgerPlace, notices: &Notices) -> Result<SqliteLedger, StoreError> {
    let (path, reader) = match place {
        LedgerPlace::Memory => return SqliteLedger::in_memory(),
        LedgerPlace::File(path) => (path, None),
        LedgerPlace::FileToRead(path) => match SqliteLedger::open_to_read(&path)? {
            Some(ledger) if !ledger.has_lost_calls() => return Ok(ledger),
            reader => (path, reader),
        },
    };
    let opened = match (SqliteLedger::open(&path), reader) {
        // A read-only home shows what was settled.
        (Err(_), Some(reader)) => return Ok(reader),
        (opened, _) => opened?,
    };
    if let Some(aside) = opened.set_aside {
        notices.warning(aside);
    }
    Ok(opened.ledger)
}

impl Ledger for LateLedger {
    fn reserve(&self, ask: ReservationRequest) -> StoreFuture<'_, ReservationOutcome> {
        Box::pin(async move { self.get().await?.reserve(ask).await })
    }

    fn commit(&self, hold: HoldId, at_ms: i64, call: SettledCall) -> StoreFuture<'_, ()> {
        match self.opened.get() {
            Some(ledger) => ledger.commit(hold, at_ms, call),
            None => Box::pin(async move { self.get().await?.commit(hold, at_ms, call).await }),
        }
    }

    fn rollback(&self, hold: HoldId) {
        // Nothing is held in a ledger that was never opened.
        if let Some(ledger) = self.opened.get() {
            ledger.rollback(hold);
        }
    }

    fn limit_levels(&self, draws: Vec<PoolDraw>, at_ms: i64) -> StoreFuture<'_, Vec<Level>> {
        Box::pin(async move { self.get().await?.limit_levels(draws, at_ms).await })
    }

    fn daily_totals(&self, from_day: i32) -> StoreFuture<'_, Vec<Total>> {
        Box::pin(async move { self.get().await?.daily_totals(from_day).await })
    }
}

impl VitalsStore for LateLedger {
    /// Reports whether the ledger is empty; one that is only in memory is empty before it is opened.
    fn is_empty(&self) -> bool {
        let exists = match &self.place {
            LedgerPlace::Memory => false,
            LedgerPlace::File(path) | LedgerPlace::FileToRead(path) => path.exists(),
        };
        !self.opened.initialized() && !exists
    }

    fn exchange(&self, exchange: Exchange) -> StoreFuture<'_, ()> {
        Box::pin(async move { self.get().await?.change_note(ARMS, exchange).await })
    }
}
