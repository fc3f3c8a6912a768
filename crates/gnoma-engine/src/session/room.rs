//! Room for a call in the pools it draws on. A limit that lets go of enough within seconds is waited
//! for: that is cheaper than another arm. Who is asked instead of one that has no room is decided
//! elsewhere.

use std::time::Duration;

use gnoma_core::{
    ErrorKind, ProviderError,
    ledger::{Ask, Full, Ledger, Reserved, Unit, Window},
    store::{StoreError, StoreErrorKind},
};
use gnoma_router::{Zone, pool};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::routing::{OWN, desk::Routes, offers::LIMIT_PATIENCE};

/// Longest wait for a ledger; a call goes on without it, unless money is limited.
pub(super) const LEDGER_PATIENCE: Duration = Duration::from_secs(5);
/// The ledger is not asked again before.
const LEAST_WAIT: Duration = Duration::from_millis(50);

/// Reserves room once the calls of `unsettled` are settled. Safe to drop.
pub(super) async fn reserved(
    routes: &Routes,
    ledger: &dyn Ledger,
    ask: Ask,
    unsettled: Vec<CancellationToken>,
) -> Result<Reserved, StoreError> {
    timeout(LEDGER_PATIENCE, settled(unsettled)).await.map_err(|_| silent())?;
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

/// Waits until these calls are settled. Safe to drop.
pub(super) async fn settled(calls: Vec<CancellationToken>) {
    for call in calls {
        call.cancelled().await;
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

/// A limit that has no room, as a failure: one that waiting mends, where it does.
pub(super) fn refusal(full: &Full, now_ms: i64, zone: Zone) -> ProviderError {
    let kind = match full.limit.unit {
        Unit::MicroUsd => ErrorKind::Quota,
        Unit::Requests
        | Unit::Input
        | Unit::Output
        | Unit::Tokens
        | Unit::AllInput
        | Unit::AllTokens => match full.free_at_ms {
            Some(_) => ErrorKind::RateLimited,
            None => ErrorKind::Quota,
        },
    };
    let mut error = ProviderError::new(kind, OWN, pool::words(full, now_ms, zone));
    error.retry_after = full
        .free_at_ms
        .and_then(|at_ms| u64::try_from(at_ms.saturating_sub(now_ms)).ok())
        .map(Duration::from_millis);
    error.with_hint(
        "`gnoma router pools` shows every limit; they are set in `router.caps` and `rate_limits`.",
    )
}

fn silent() -> StoreError {
    StoreError::new(StoreErrorKind::Busy, "the ledger does not answer")
}
