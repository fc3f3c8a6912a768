//! Room for a call in the pools it draws on. A limit that lets go of enough within seconds is waited
//! for: that is cheaper than another arm. Who is asked instead of one that has no room is decided
//! elsewhere.

use std::time::Duration;

use gnoma_core::{
    ledger::{Ask, Full, Ledger, Reserved, Window},
    store::{StoreError, StoreErrorKind},
};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::LEDGER_PATIENCE;
use crate::routing::{desk::Routes, offers::LIMIT_PATIENCE};

/// The ledger is not asked again before.
const LEAST_WAIT: Duration = Duration::from_millis(50);

/// Reserves room once the calls of `unsettled` are settled. Safe to drop.
pub(super) async fn reserved(
    routes: &Routes,
    ledger: &dyn Ledger,
    ask: Ask,
    unsettled: Vec<CancellationToken>,
) -> Result<Reserved, StoreError> {
    let settled = async {
        for call in unsettled {
            call.cancelled().await;
        }
    };
    timeout(LEDGER_PATIENCE, settled).await.map_err(|_| silent())?;
    let until = Instant::now() + LIMIT_PATIENCE;
    loop {
        let at_ms = routes.now_ms();
        let reserving = ledger.reserve(Ask { at_ms, ..ask.clone() });
        let reserved = timeout(LEDGER_PATIENCE, reserving).await.map_err(|_| silent())??;
        let wait = match &reserved {
            Reserved::Held(_) => None,
            Reserved::Full(full) => wait(full, at_ms),
        };
        match wait.filter(|wait| Instant::now() + *wait <= until) {
            None => return Ok(reserved),
            Some(wait) => sleep(wait).await,
        }
    }
}

/// How long to wait for room, where the window rolls.
fn wait(full: &Full, now_ms: i64) -> Option<Duration> {
    match full.limit.window {
        Window::Rolling { .. } => {
            let ms = u64::try_from(full.free_at_ms?.saturating_sub(now_ms)).unwrap_or(0);
            Some(Duration::from_millis(ms).max(LEAST_WAIT))
        }
        Window::Day | Window::Month | Window::Ever => None,
    }
}

fn silent() -> StoreError {
    StoreError::new(StoreErrorKind::Busy, "the ledger does not answer")
}
