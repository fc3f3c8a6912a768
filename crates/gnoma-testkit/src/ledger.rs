//! A ledger in memory that fails as it is told.

use std::{
    collections::BTreeMap,
    future::ready,
    sync::{Arc, Mutex},
};

use futures_util::FutureExt as _;
use gnoma_core::{
    ModelRef,
    ledger::{
        Amount, CallOrigin, ExhaustedLimit, HoldId, Ledger, Level, Limit, PoolDraw,
        ReservationOutcome, ReservationRequest, SettledCall, Total, Unit, Window,
    },
    store::StoreFuture,
};

use crate::{
    fake_stores::{ScriptedOutcome, ScriptedOutcomes},
    lock_ignoring_poison,
};

const DAY_MS: i64 = 86_400_000;

/// A call whose reservation was settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettledRecord {
    /// The reservation of the call.
    pub hold: HoldId,
    /// The time of the settlement, in milliseconds.
    pub at_ms: i64,
    /// The model that was called.
    pub arm: ModelRef,
    /// The amount that the call took.
    pub amount: Amount,
    /// The pools it drew on.
    pub pools: Vec<String>,
    /// The work that it belongs to.
    pub origin: CallOrigin,
    /// The call as it was settled.
    pub call: SettledCall,
}

#[derive(Default)]
struct FakeLedgerState {
    admitted: usize,
    held: BTreeMap<i64, ReservationRequest>,
    settled: Vec<SettledRecord>,
}

/// A ledger in memory. Windows that roll are exact; a month has the length of the last 30 days.
#[derive(Clone, Default)]
pub struct FakeLedger {
    books: Arc<Mutex<FakeLedgerState>>,
    fates: ScriptedOutcomes,
}

impl FakeLedger {
    /// A ledger whose calls of [`Ledger::reserve`], `commit`, `levels` and `totals` meet the fate
    /// that `script` gives them by their number, counted from 0.
    pub fn with_failures(
        script: impl Fn(usize) -> ScriptedOutcome + Send + Sync + 'static,
    ) -> Self {
        Self { fates: ScriptedOutcomes::from_script(script), ..Self::default() }
    }

    /// Returns the settled calls, in the order of their settlement.
    #[must_use]
    pub fn settled_calls(&self) -> Vec<SettledRecord> {
        lock_ignoring_poison(&self.books).settled.clone()
    }

    /// Returns the reservations that are neither settled nor released.
    #[must_use]
    pub fn held_reservations(&self) -> Vec<ReservationRequest> {
        lock_ignoring_poison(&self.books).held.values().cloned().collect()
    }

    /// Returns the number of reservations that there was room for.
    #[must_use]
    pub fn admitted_count(&self) -> usize {
        lock_ignoring_poison(&self.books).admitted
    }
}

impl FakeLedgerState {
    fn reserve(&mut self, ask: ReservationRequest) -> ReservationOutcome {
        let lacking = self.levels(&ask.draws, ask.at_ms).into_iter().find(|level| {
            let need = ask.amount.in_unit(level.limit.unit);
            let all = level.used.saturating_add(level.held).saturating_add(need);
            need > 0 && all > level.limit.most
        });
        if let Some(level) = lacking {
            let need = ask.amount.in_unit(level.limit.unit);
            return ReservationOutcome::Full(ExhaustedLimit {
                used: level.used.saturating_add(level.held),
                pool: level.pool,
                limit: level.limit,
                free_at_ms: level.resets_at_ms.filter(|_| need <= level.limit.most),
            });
        }
        let hold = i64::try_from(self.admitted).unwrap_or(i64::MAX);
        self.admitted += 1;
        self.held.insert(hold, ask);
        ReservationOutcome::Held(HoldId(hold))
    }

    fn commit(&mut self, hold: HoldId, at_ms: i64, call: SettledCall) {
        let Some(ask) = self.held.remove(&hold.0) else { return };
        let ReservationRequest { arm, draws, origin, .. } = ask;
        let pools = draws.into_iter().map(|draw| draw.pool).collect();
        let amount = call.amount;
        self.settled.push(SettledRecord { hold, at_ms, arm, amount, pools, origin, call });
    }

    fn levels(&self, draws: &[PoolDraw], at_ms: i64) -> Vec<Level> {
        let level = |pool: &String, limit: &Limit| Level {
            pool: pool.clone(),
            limit: *limit,
            used: self.used_amount(pool, limit, at_ms),
            held: self.held_amount(pool, limit.unit),
            resets_at_ms: resets_at(limit.window, at_ms),
        };
        draws
            .iter()
            .flat_map(|draw| draw.limits.iter().map(|limit| level(&draw.pool, limit)))
            .collect()
    }

    fn used_amount(&self, pool: &String, limit: &Limit, at_ms: i64) -> u64 {
        let start = start_of(limit.window, at_ms);
        self.settled
            .iter()
            .filter(|settled| settled.at_ms >= start && settled.pools.contains(pool))
            .map(|settled| settled.amount.in_unit(limit.unit))
            .fold(0, u64::saturating_add)
    }

    fn held_amount(&self, pool: &String, unit: Unit) -> u64 {
        self.held
            .values()
            .filter(|ask| ask.draws.iter().any(|draw| draw.pool == *pool))
            .map(|ask| ask.amount.in_unit(unit))
            .fold(0, u64::saturating_add)
    }

    fn daily_totals(&self, from_day: i32) -> Vec<Total> {
        let mut days: BTreeMap<(i32, String, String), Amount> = BTreeMap::new();
        for SettledRecord { at_ms, arm, amount, .. } in &self.settled {
            let day = i32::try_from(at_ms.div_euclid(DAY_MS)).unwrap_or(i32::MAX);
            let sum = days.entry((day, arm.provider.clone(), arm.model.clone())).or_default();
            sum.requests += amount.requests;
            sum.input += amount.input;
            sum.cached += amount.cached;
            sum.output += amount.output;
            sum.micro_usd += amount.micro_usd;
        }
        days.into_iter()
            .filter(|((day, ..), _)| *day >= from_day)
            .map(|((day, provider, model), amount)| Total {
                day,
                arm: ModelRef { provider, model },
                amount,
            })
            .collect()
    }
}

fn start_of(window: Window, at_ms: i64) -> i64 {
    match window {
        Window::Rolling { ms } => {
            at_ms.saturating_sub(i64::try_from(ms).unwrap_or(i64::MAX)).saturating_add(1)
        }
        Window::Day => at_ms.div_euclid(DAY_MS) * DAY_MS,
        Window::Month => (at_ms.div_euclid(DAY_MS) - 29) * DAY_MS,
        Window::Ever => i64::MIN,
    }
}

fn resets_at(window: Window, at_ms: i64) -> Option<i64> {
    match window {
        Window::Rolling { ms } => Some(at_ms.saturating_add(i64::try_from(ms).unwrap_or(i64::MAX))),
        Window::Day => Some((at_ms.div_euclid(DAY_MS) + 1) * DAY_MS),
        Window::Month => Some((at_ms.div_euclid(DAY_MS) + 30) * DAY_MS),
        Window::Ever => None,
    }
}

impl Ledger for FakeLedger {
    fn reserve(&self, ask: ReservationRequest) -> StoreFuture<'_, ReservationOutcome> {
        Box::pin(self.fates.perform_next(|| Ok(lock_ignoring_poison(&self.books).reserve(ask))))
    }

    fn commit(&self, hold: HoldId, at_ms: i64, call: SettledCall) -> StoreFuture<'_, ()> {
        let mut settling = Box::pin(self.fates.perform_next(move || {
            lock_ignoring_poison(&self.books).commit(hold, at_ms, call);
            Ok(())
        }));
        match settling.as_mut().now_or_never() {
            Some(settled) => Box::pin(ready(settled)),
            None => settling,
        }
    }

    fn rollback(&self, hold: HoldId) {
        lock_ignoring_poison(&self.books).held.remove(&hold.0);
    }

    fn limit_levels(&self, draws: Vec<PoolDraw>, at_ms: i64) -> StoreFuture<'_, Vec<Level>> {
        Box::pin(
            self.fates
                .perform_next(move || Ok(lock_ignoring_poison(&self.books).levels(&draws, at_ms))),
        )
    }

    fn daily_totals(&self, from_day: i32) -> StoreFuture<'_, Vec<Total>> {
        Box::pin(
            self.fates
                .perform_next(move || Ok(lock_ignoring_poison(&self.books).daily_totals(from_day))),
        )
    }
}

#[cfg(test)]
mod tests {
    use gnoma_core::store::StoreErrorKind;

    use super::*;

    fn ask(micro_usd: u64) -> ReservationRequest {
        let limit = Limit { unit: Unit::MicroUsd, window: Window::Day, most: 100 };
        ReservationRequest {
            at_ms: 5 * DAY_MS,
            arm: ModelRef { provider: "p".into(), model: "m".into() },
            amount: Amount { requests: 1, micro_usd, ..Amount::default() },
            is_priced: true,
            draws: vec![PoolDraw { pool: "all".into(), limits: vec![limit] }],
            origin: CallOrigin::default(),
        }
    }

    #[tokio::test]
    async fn fake_ledger_reservations_and_commits_reduce_the_remaining_budget() {
        let ledger = FakeLedger::default();
        let Ok(ReservationOutcome::Held(hold)) = ledger.reserve(ask(60)).await else {
            panic!("no room")
        };
        assert!(matches!(ledger.reserve(ask(60)).await, Ok(ReservationOutcome::Full(_))));
        ledger
            .commit(hold, 5 * DAY_MS, Amount { micro_usd: 10, ..Amount::default() }.into())
            .await
            .unwrap();
        let Ok(ReservationOutcome::Held(hold)) = ledger.reserve(ask(60)).await else {
            panic!("no room")
        };
        assert_eq!(ledger.held_reservations().len(), 1);
        ledger.rollback(hold);
        assert_eq!(
            (
                ledger.held_reservations().len(),
                ledger.settled_calls().len(),
                ledger.admitted_count()
            ),
            (0, 1, 2)
        );
        assert_eq!(ledger.daily_totals(5).await.unwrap()[0].amount.micro_usd, 10);
        assert_eq!(ledger.daily_totals(6).await.unwrap(), []);
        let mut tomorrow = ask(100);
        tomorrow.at_ms += DAY_MS;
        assert!(matches!(ledger.reserve(tomorrow).await, Ok(ReservationOutcome::Held(_))));
    }

    #[tokio::test]
    async fn fake_ledger_fails_as_scripted() {
        let ledger = FakeLedger::with_failures(|call| match call {
            0 => ScriptedOutcome::Fails(StoreErrorKind::Busy),
            _ => ScriptedOutcome::Works,
        });
        assert_eq!(ledger.reserve(ask(1)).await.unwrap_err().kind, StoreErrorKind::Busy);
        assert!(ledger.reserve(ask(1)).await.is_ok());
    }
}
