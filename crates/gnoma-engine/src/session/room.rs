//! Waits for rate limits and caps to have room for a call. A limit that lets go of enough within seconds is waited
//! for: that is cheaper than another arm. Who is asked instead of one that has no room is decided elsewhere.

use std::time::Duration;

use gnoma_core::{
    ErrorKind, Price, ProviderError,
    ledger::{
        Amount, ExhaustedLimit, Ledger, ReservationOutcome, ReservationRequest, Unit, Window,
    },
    store::{StoreError, StoreErrorKind},
};
use gnoma_router::{choice::LIMIT_PATIENCE, pool};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::routing::{OWN, routes::Routes};

/// Longest wait for a ledger; after that a call continues without it, unless money is limited.
pub(super) const LEDGER_PATIENCE: Duration = Duration::from_secs(5);
/// The ledger is not asked again before.
const LEAST_WAIT: Duration = Duration::from_millis(50);

/// Reserves room once the calls of `unsettled` are settled. Safe to drop.
pub(super) async fn reserve_when_settled(
    routes: &Routes,
    ledger: &dyn Ledger,
    ask: ReservationRequest,
    unsettled: Vec<CancellationToken>,
) -> Result<ReservationOutcome, StoreError> {
    timeout(LEDGER_PATIENCE, wait_until_settled(unsettled))
        .await
        .map_err(|_| ledger_timeout_error())?;
    let until = Instant::now() + LIMIT_PATIENCE;
    loop {
        let at_ms = routes.now_ms();
        let reserving = ledger.reserve(ReservationRequest { at_ms, ..ask.clone() });
        let reserved =
            timeout(LEDGER_PATIENCE, reserving).await.map_err(|_| ledger_timeout_error())??;
        let wait = match &reserved {
            ReservationOutcome::Held(_) => None,
            ReservationOutcome::Full(full) => time_until_room(full, at_ms),
        };
        match wait.filter(|wait| Instant::now() + *wait <= until) {
            None => return Ok(reserved),
            Some(wait) => sleep(wait).await,
        }
    }
}

/// The room, and how many tokens the answer may have if it had to be shortened for it.
pub(super) struct RoomResult {
    pub(super) reserved: ReservationOutcome,
    /// The amount that was asked for at first.
    pub(super) need: Amount,
    pub(super) answer_tokens: Option<u64>,
}

/// Reserves room for the call with a shorter answer if the money does not suffice for the call as it is expected to
/// be.
pub(super) async fn reserve_shorter(
    routes: &Routes,
    ledger: &dyn Ledger,
    ask: ReservationRequest,
    price: Option<Price>,
    reserved: ReservationOutcome,
) -> Result<RoomResult, StoreError> {
    let need = ask.amount;
    let as_it_is = |reserved| RoomResult { reserved, need, answer_tokens: None };
    let ReservationOutcome::Full(full) = &reserved else { return Ok(as_it_is(reserved)) };
    let left = full.limit.most.saturating_sub(full.used);
    let money = price.filter(|_| full.limit.unit == Unit::MicroUsd);
    let shorter = money.and_then(|price| pool::shorten_call(&need, &price, left));
    let Some(amount) = shorter else { return Ok(as_it_is(reserved)) };
    let asking = ledger.reserve(ReservationRequest { at_ms: routes.now_ms(), amount, ..ask });
    Ok(match timeout(LEDGER_PATIENCE, asking).await.map_err(|_| ledger_timeout_error())?? {
        held @ ReservationOutcome::Held(_) => {
            RoomResult { reserved: held, need, answer_tokens: Some(amount.output) }
        }
        ReservationOutcome::Full(_) => as_it_is(reserved),
    })
}

/// Waits until these calls are settled. Safe to drop.
pub(super) async fn wait_until_settled(calls: Vec<CancellationToken>) {
    for call in calls {
        call.cancelled().await;
    }
}

/// Returns the time to wait for room; `None` if the window of the limit does not roll.
fn time_until_room(full: &ExhaustedLimit, now_ms: i64) -> Option<Duration> {
    match full.limit.window {
        Window::Rolling { .. } => {
            let ms = u64::try_from(full.free_at_ms?.saturating_sub(now_ms)).unwrap_or(0);
            Some(Duration::from_millis(ms).max(LEAST_WAIT))
        }
        Window::Day | Window::Month | Window::Ever => None,
    }
}

/// A limit without room, as a failure: one that waiting fixes, if it does.
pub(super) fn limit_error(full: &ExhaustedLimit, need: &Amount, routes: &Routes) -> ProviderError {
    let now_ms = routes.now_ms();
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
    let text = routes.settings.describe_full_limit(full, need, now_ms);
    let mut error = ProviderError::new(kind, OWN, text);
    error.retry_after = full
        .free_at_ms
        .and_then(|at_ms| u64::try_from(at_ms.saturating_sub(now_ms)).ok())
        .map(Duration::from_millis);
    error.with_hint(
        "`gnoma router pools` shows every limit; they are set in `router.caps` and `rate_limits`.",
    )
}

fn ledger_timeout_error() -> StoreError {
    StoreError::new(StoreErrorKind::Busy, "the spending ledger does not respond")
}
