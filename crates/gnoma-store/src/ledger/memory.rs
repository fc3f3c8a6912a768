//! What a process remembers of its own reservations.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
};

use gnoma_core::{
    ledger::HoldId,
    store::{StoreError, StoreErrorKind},
    sync::Mutex,
};
use rusqlite::Connection;

use super::ledger_transactions::{self, ReservedCall};
use crate::error::Result;

/// Most reservations of one process.
const MOST_HELD: usize = 4096;

/// Reservations that are to be settled, and those to be let go.
#[derive(Default)]
pub(super) struct ProcessReservations {
    held: Mutex<HashMap<HoldId, ReservedCall>>,
    /// Let go, but perhaps still in the file.
    dropped: Mutex<BTreeSet<i64>>,
    latest_ms: AtomicI64,
    /// Calls were removed because a person asked for it, and the write-ahead log may still have them.
    has_forgotten: AtomicBool,
}

impl ProcessReservations {
    /// Notes what time it is.
    pub(super) fn set_latest_time(&self, at_ms: i64) {
        self.latest_ms.store(at_ms, Ordering::Relaxed);
    }

    /// The time that was told last.
    pub(super) fn latest_ms(&self) -> i64 {
        self.latest_ms.load(Ordering::Relaxed)
    }

    /// Notes that calls were removed because a person asked for it.
    pub(super) fn set_forgotten(&self) {
        self.has_forgotten.store(true, Ordering::Relaxed);
    }

    /// Reports whether calls were removed since this was asked last.
    pub(super) fn take_forgotten(&self) -> bool {
        self.has_forgotten.swap(false, Ordering::Relaxed)
    }

    /// Fails when so many calls are in flight that something forgets to end them.
    pub(super) fn has_room(&self) -> Result<()> {
        if self.held.lock().len() < MOST_HELD {
            return Ok(());
        }
        Err(StoreError::new(
            StoreErrorKind::Io,
            format!(
                "{MOST_HELD} model calls of this gnoma are running, the most that the spending \
                 ledger can count; wait until some have ended"
            ),
        ))
    }

    /// The reservation, to be settled; a second time there is none.
    pub(super) fn take_call(&self, hold: HoldId) -> Option<ReservedCall> {
        self.held.lock().remove(&hold)
    }

    /// Settling it failed; it may be tried again.
    pub(super) fn put_back(&self, hold: HoldId, kept: ReservedCall) {
        self.held.lock().insert(hold, kept);
    }

    /// The reservation is to be let go.
    pub(super) fn let_go(&self, hold: HoldId) {
        drop(self.take_call(hold));
        self.dropped.lock().insert(hold.0);
    }

    /// Takes what was let go out of the file; what that was.
    pub(super) fn release_dropped(&self, connection: &Connection) -> Result<Vec<i64>> {
        let gone: Vec<i64> = self.dropped.lock().iter().copied().collect();
        for hold in &gone {
            ledger_transactions::release_hold(connection, *hold)?;
        }
        Ok(gone)
    }

    /// Forgets the dropped reservations that were taken out of the file and are on their way to the disk.
    pub(super) fn forget_dropped(&self, gone: &[i64]) {
        let mut dropped = self.dropped.lock();
        for hold in gone {
            dropped.remove(hold);
        }
    }
}

/// A reservation on its way to whoever asked for it. It is let go when nobody takes it.
pub(super) struct FreshReservation {
    hold: Option<(HoldId, ReservedCall)>,
    memory: Arc<ProcessReservations>,
}

impl FreshReservation {
    pub(super) fn new(hold: HoldId, kept: ReservedCall, memory: Arc<ProcessReservations>) -> Self {
        Self { hold: Some((hold, kept)), memory }
    }

    /// Marks the reservation as arrived and returns its id.
    pub(super) fn confirm_arrival(mut self) -> Option<HoldId> {
        let (hold, kept) = self.hold.take()?;
        self.memory.put_back(hold, kept);
        Some(hold)
    }
}

impl Drop for FreshReservation {
    fn drop(&mut self) {
        if let Some((hold, _)) = self.hold.take() {
            self.memory.let_go(hold);
        }
    }
}
