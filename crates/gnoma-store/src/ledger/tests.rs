//! The steps of the ledger against a model of what they mean.
//!
//! A step is one transaction that excludes all others, so every interleaving of callers is a
//! sequence of steps: trying all sequences on the real tables says more than a scheduler for threads
//! could, and needs none.

use std::{cell::RefCell, collections::BTreeSet};

use gnoma_core::{
    ledger::{
        Amount, CallOrigin, ExhaustedLimit, HoldId, Limit, PoolDraw, ReservationRequest, Unit,
        Window,
    },
    message::ModelRef,
};
use proptest::prelude::*;
use rusqlite::Connection;

use super::{
    calls, ledger_maintenance,
    ledger_transactions::{self, LedgerTransaction, ReservedCall},
    notes, open, schema,
};
use crate::{
    calendar::{DAY_MS, day_of, month_start},
    lock::{Hold, Identity},
};

const UNITS: [Unit; 6] =
    [Unit::Requests, Unit::Input, Unit::Output, Unit::Tokens, Unit::MicroUsd, Unit::AllTokens];

fn connection() -> Connection {
    open::in_memory().unwrap()
}

/// A process of its own for each caller.
fn identity(caller: usize) -> Identity {
    let number = caller.to_string();
    Identity { started: number.clone(), ..Identity::of_this_process(number) }
}

fn arm(number: usize) -> ModelRef {
    ModelRef { provider: "p".into(), model: format!("m{number}") }
}

fn dollars(micro_usd: u64) -> Amount {
    Amount { requests: 1, micro_usd, ..Amount::default() }
}

/// A call in flight, as the model knows it.
#[derive(Clone)]
struct Flying {
    caller: usize,
    hold: HoldId,
    at_ms: i64,
    kept: ReservedCall,
    amount: Amount,
}

/// A settled call.
#[derive(Clone)]
struct Done {
    at_ms: i64,
    kept: ReservedCall,
    amount: Amount,
}

/// What the ledger should know.
#[derive(Clone, Default)]
struct Model {
    flying: Vec<Flying>,
    done: Vec<Done>,
    dead: BTreeSet<usize>,
}

impl Model {
    fn used(&self, pool: &str, limit: &Limit, at_ms: i64) -> u64 {
        let counts = |done: &&Done| match limit.window {
            Window::Rolling { ms } => done.at_ms > at_ms - i64::try_from(ms).unwrap(),
            Window::Day => day_of(done.at_ms) >= day_of(at_ms),
            Window::Month => day_of(done.at_ms) >= month_start(day_of(at_ms)),
            Window::Ever => true,
        };
        let draws = |done: &&Done| done.kept.pools.iter().any(|name| name == pool);
        self.done.iter().filter(draws).filter(counts).map(|d| d.amount.in_unit(limit.unit)).sum()
    }

    /// What the dead had in flight counts as it was reserved.
    fn settle_dead(&mut self) {
        for call in std::mem::take(&mut self.flying) {
            if self.dead.contains(&call.caller) {
                let Flying { at_ms, kept, amount, .. } = call;
                self.done.push(Done { at_ms, kept, amount });
            } else {
                self.flying.push(call);
            }
        }
    }

    fn held(&self, pool: &str, limit: &Limit) -> u64 {
        self.flying
            .iter()
            .filter(|call| call.kept.pools.iter().any(|name| name == pool))
            .map(|call| call.amount.in_unit(limit.unit))
            .sum()
    }

    fn has_room(&self, ask: &ReservationRequest) -> bool {
        ask.draws.iter().all(|draw| {
            draw.limits.iter().all(|limit| {
                let need = ask.amount.in_unit(limit.unit);
                let all = self.used(&draw.pool, limit, ask.at_ms) + self.held(&draw.pool, limit);
                need == 0 || all + need <= limit.most
            })
        })
    }
}

/// The ledger's steps and the model's, side by side.
struct Pair<'c> {
    connection: &'c Connection,
    model: RefCell<Model>,
}

impl Pair<'_> {
    fn books<T>(&self, caller: usize, work: impl FnOnce(&LedgerTransaction<'_>) -> T) -> T {
        let dead = self.model.borrow().dead.clone();
        let is_live = |process: &Hold| {
            !dead.iter().any(|number| process.process_start() == number.to_string())
        };
        let me = identity(caller);
        work(&LedgerTransaction { connection: self.connection, me: &me, is_live: &is_live })
    }

    fn reserve(&self, caller: usize, ask: &ReservationRequest) -> Result<HoldId, ExhaustedLimit> {
        self.model.borrow_mut().settle_dead();
        let expected = self.model.borrow().has_room(ask);
        let reserved = self.books(caller, |books| books.reserve(ask)).unwrap();
        match &reserved {
            Ok(hold) => {
                assert!(expected, "{ask:?}");
                self.model.borrow_mut().flying.push(Flying {
                    caller,
                    hold: *hold,
                    at_ms: ask.at_ms,
                    kept: ReservedCall::from_ask(ask),
                    amount: ask.amount,
                });
            }
            Err(full) => {
                assert!(!expected, "{full:?}");
                self.is_told_rightly(full, ask);
            }
        }
        reserved
    }

    /// The limit that is told has no room, and by waiting alone there is room at the time told.
    fn is_told_rightly(&self, full: &ExhaustedLimit, ask: &ReservationRequest) {
        let model = self.model.borrow();
        let need = ask.amount.in_unit(full.limit.unit);
        let used = model.used(&full.pool, &full.limit, ask.at_ms);
        assert_eq!(full.used, used + model.held(&full.pool, &full.limit));
        assert!(full.used + need > full.limit.most);
        match full.free_at_ms {
            Some(free) => assert!(free > ask.at_ms && need <= full.limit.most),
            None => assert!(need > full.limit.most || full.limit.window == Window::Ever),
        }
    }

    fn commit(&self, hold: HoldId, at_ms: i64, amount: Amount) {
        let found = self.model.borrow().flying.iter().find(|call| call.hold == hold).cloned();
        let Some(call) = found else { return };
        let settle = || {
            self.books(call.caller, |b| {
                b.settle_hold(hold, Some(&call.kept), at_ms, &amount.into())
            })
        };
        settle().unwrap();
        settle().unwrap();
        let mut model = self.model.borrow_mut();
        model.flying.retain(|call| call.hold != hold);
        model.done.push(Done { at_ms, kept: call.kept, amount });
    }

    fn rollback(&self, hold: HoldId) {
        ledger_transactions::release_hold(self.connection, hold.0).unwrap();
        self.model.borrow_mut().flying.retain(|call| call.hold != hold);
    }

    /// Every level and sum is what the model says.
    fn agrees(&self, draws: &[PoolDraw], at_ms: i64) {
        let levels = self.books(usize::MAX, |books| books.levels(draws, at_ms)).unwrap();
        let model = self.model.borrow();
        for level in &levels {
            let used = model.used(&level.pool, &level.limit, at_ms);
            assert_eq!(level.used, used, "{level:?}");
            assert_eq!(level.held, model.held(&level.pool, &level.limit), "{level:?}");
            assert_eq!(level.resets_at_ms.is_none(), level.limit.window == Window::Ever);
        }
        let totals = ledger_transactions::daily_totals(self.connection, i32::MIN).unwrap();
        for unit in UNITS {
            let counted: u64 = totals.iter().map(|total| total.amount.in_unit(unit)).sum();
            let settled: u64 = model.done.iter().map(|done| done.amount.in_unit(unit)).sum();
            assert_eq!(counted, settled);
        }
    }
}

const CAP: u64 = 100;

fn capped(amount: Amount) -> ReservationRequest {
    let limit = Limit { unit: Unit::MicroUsd, window: Window::Ever, most: CAP };
    let draws = vec![PoolDraw { pool: "cap".into(), limits: vec![limit] }];
    let origin = CallOrigin::default();
    ReservationRequest { at_ms: 0, arm: arm(0), amount, is_priced: true, draws, origin }
}

#[derive(Clone, Copy, Debug)]
enum End {
    /// Takes what was expected.
    Exact,
    /// Takes more.
    More,
    /// Takes nothing.
    Rollback,
    /// Its process dies.
    Die,
    /// Others take its process for dead and settle its call; it settles too late.
    Rise,
}

const ENDS: [End; 5] = [End::Exact, End::More, End::Rollback, End::Die, End::Rise];

/// How much a call takes beyond its expectation when it takes more.
const BEYOND: u64 = 7;

#[derive(Clone, Copy)]
enum Stage {
    Waits,
    Flies(HoldId),
    Over,
}

/// Tries every sequence of what three callers may do from now on.
fn explore(pair: &Pair<'_>, stages: [Stage; 3], seen: &mut usize) {
    *seen += 1;
    check(pair);
    for (caller, stage) in stages.into_iter().enumerate() {
        match stage {
            Stage::Waits => undone(pair, || {
                let next = match pair.reserve(caller, &capped(dollars(45))) {
                    Ok(hold) => Stage::Flies(hold),
                    Err(_) => Stage::Over,
                };
                explore(pair, with(stages, caller, next), seen);
            }),
            Stage::Flies(hold) => {
                for end in ENDS {
                    undone(pair, || {
                        finish(pair, caller, hold, end);
                        explore(pair, with(stages, caller, Stage::Over), seen);
                    });
                }
            }
            Stage::Over => {}
        }
    }
}

fn finish(pair: &Pair<'_>, caller: usize, hold: HoldId, end: End) {
    match end {
        End::Exact => pair.commit(hold, 0, dollars(45)),
        End::More => pair.commit(hold, 0, dollars(45 + BEYOND)),
        End::Rollback => pair.rollback(hold),
        End::Die => {
            pair.model.borrow_mut().dead.insert(caller);
        }
        End::Rise => {
            let late = pair.model.borrow().flying.iter().find(|call| call.hold == hold).cloned();
            pair.model.borrow_mut().dead.insert(caller);
            pair.books(usize::MAX, |books| books.settle_dead_processes().unwrap());
            pair.model.borrow_mut().settle_dead();
            let kept = late.map(|call| call.kept);
            let more = dollars(45 + BEYOND);
            pair.books(caller, |b| b.settle_hold(hold, kept.as_ref(), 0, &more.into())).unwrap();
        }
    }
}

fn with(mut stages: [Stage; 3], caller: usize, next: Stage) -> [Stage; 3] {
    stages[caller] = next;
    stages
}

/// Does `work` and undoes it, in the tables and in the model.
fn undone(pair: &Pair<'_>, work: impl FnOnce()) {
    let before = pair.model.borrow().clone();
    pair.connection.execute_batch("SAVEPOINT step").unwrap();
    work();
    pair.connection.execute_batch("ROLLBACK TO step; RELEASE step").unwrap();
    *pair.model.borrow_mut() = before;
}

fn check(pair: &Pair<'_>) {
    pair.agrees(&capped(dollars(0)).draws, 0);
    let model = pair.model.borrow();
    let taken: u64 = model.done.iter().map(|done| done.amount.micro_usd).sum();
    let beyond: u64 = model.done.iter().map(|done| done.amount.micro_usd - 45).sum();
    assert!(taken <= CAP + beyond, "{taken}");
}

#[test]
fn ledger_interleavings_never_exceed_a_limit_or_leak_reservations() {
    let connection = connection();
    let pair = Pair { connection: &connection, model: RefCell::default() };
    let mut seen = 0;
    explore(&pair, [Stage::Waits; 3], &mut seen);
    assert!(seen > 3000, "{seen}");
}

#[derive(Clone, Debug)]
enum Step {
    Reserve { caller: usize, pools: Vec<usize>, amount: Amount },
    Commit { which: usize, amount: Amount },
    Rollback { which: usize },
    Die { caller: usize },
    Wait { ms: i64 },
}

fn any_amount() -> impl Strategy<Value = Amount> {
    (0..3_u64, 0..50_u64, 0..50_u64, 0..50_u64, 0..50_u64).prop_map(
        |(requests, input, output, micro_usd, cached)| Amount {
            requests,
            input,
            output,
            micro_usd,
            cached: cached.min(input),
            ..Amount::default()
        },
    )
}

fn any_step() -> impl Strategy<Value = Step> {
    let wait = prop_oneof![0..90_000_i64, -3 * DAY_MS..40 * DAY_MS];
    prop_oneof![
        5 => (0..6_usize, prop::collection::vec(0..4_usize, 0..4), any_amount())
            .prop_map(|(caller, pools, amount)| Step::Reserve { caller, pools, amount }),
        4 => (any::<usize>(), any_amount())
            .prop_map(|(which, amount)| Step::Commit { which, amount }),
        1 => any::<usize>().prop_map(|which| Step::Rollback { which }),
        1 => (0..6_usize).prop_map(|caller| Step::Die { caller }),
        2 => wait.prop_map(|ms| Step::Wait { ms }),
    ]
}

fn any_limits() -> impl Strategy<Value = Vec<Limit>> {
    let window = prop_oneof![
        (1..200_000_u64).prop_map(|ms| Window::Rolling { ms }),
        Just(Window::Rolling { ms: 7 * 86_400_000 }),
        Just(Window::Day),
        Just(Window::Month),
        Just(Window::Ever),
    ];
    let limit = (prop::sample::select(&UNITS[..]), window, 0..200_u64)
        .prop_map(|(unit, window, most)| Limit { unit, window, most });
    prop::collection::vec(limit, 0..4)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn ledger_operations_match_a_reference_model(
        limits in prop::collection::vec(any_limits(), 4),
        steps in prop::collection::vec(any_step(), 1..60),
    ) {
        let connection = connection();
        let pair = Pair { connection: &connection, model: RefCell::default() };
        let draw = |pool: usize| PoolDraw { pool: format!("pool{pool}"), limits: limits[pool].clone() };
        let all: Vec<PoolDraw> = (0..4).map(draw).collect();
        let mut now_ms = 1_800_000_000_000;
        for step in steps {
            let flying = |which: usize| {
                let model = pair.model.borrow();
                let count = model.flying.len().max(1);
                model.flying.get(which % count).map(|call| call.hold)
            };
            match step {
                Step::Reserve { caller, pools, amount } => {
                    // A process does not come back from the dead; its number may, for another.
                    if pair.model.borrow().dead.contains(&caller) {
                        continue;
                    }
                    let draws = pools.into_iter().map(draw).collect();
                    let origin = CallOrigin::default();
                    let (at_ms, arm) = (now_ms, arm(caller));
                    let ask =
                        ReservationRequest { at_ms, arm, amount, is_priced: true, draws, origin };
                    let _reserved = pair.reserve(caller, &ask);
                }
                Step::Commit { which, amount } => {
                    if let Some(hold) = flying(which) {
                        pair.commit(hold, now_ms, amount);
                    }
                }
                Step::Rollback { which } => {
                    if let Some(hold) = flying(which) {
                        pair.rollback(hold);
                    }
                }
                Step::Die { caller } => {
                    pair.model.borrow_mut().dead.insert(caller);
                }
                Step::Wait { ms } => now_ms += ms,
            }
            pair.agrees(&all, now_ms);
        }
    }
}

/// Settles a call of one micro-dollar at each of the times.
fn settle_at(connection: &Connection, times: impl Iterator<Item = i64>) {
    let pair = Pair { connection, model: RefCell::default() };
    for at_ms in times {
        let mut ask = capped(dollars(1));
        ask.at_ms = at_ms;
        ask.draws[0].limits.clear();
        let hold = pair.reserve(0, &ask).unwrap();
        pair.commit(hold, at_ms, dollars(1));
    }
}

fn level(connection: &Connection, window: Window, at_ms: i64) -> u64 {
    let pair = Pair { connection, model: RefCell::default() };
    let limit = Limit { unit: Unit::MicroUsd, window, most: 1 };
    let draws = [PoolDraw { pool: "cap".into(), limits: vec![limit] }];
    pair.books(0, |books| books.levels(&draws, at_ms)).unwrap()[0].used
}

#[test]
fn ledger_pruning_of_calls_frees_no_rolling_limit() {
    const HOUR_MS: i64 = 3_600_000;
    let connection = connection();
    let end = 1_800_000_000_000;
    settle_at(&connection, (0..30 * 24).rev().map(|hours| end - hours * HOUR_MS));
    let windows: Vec<Window> =
        [60_000, 5 * 3_600_000, 36 * 3_600_000, 7 * 86_400_000, 20 * 86_400_000]
            .into_iter()
            .map(|ms| Window::Rolling { ms })
            .chain([Window::Day, Window::Month, Window::Ever])
            .collect();
    let before: Vec<u64> = windows.iter().map(|w| level(&connection, *w, end)).collect();
    while ledger_maintenance::forget_calls(&connection, end, 10).unwrap() {}
    let left: i64 =
        connection.query_row("SELECT count(*) FROM spent", [], |row| row.get(0)).unwrap();
    assert!(left < 75, "{left}");
    for (window, before) in windows.iter().zip(before) {
        let after = level(&connection, *window, end);
        assert!((before..before + 25).contains(&after), "{window:?}: {before} → {after}");
    }
    assert_eq!(level(&connection, Window::Rolling { ms: 60_000 }, end), 1);
}

#[test]
fn ledger_windows_survive_a_clock_briefly_ahead() {
    let connection = connection();
    let now = 1_800_000_000_000;
    settle_at(&connection, (0..50).map(|second| now + second * 1000));
    assert!(!ledger_maintenance::forget_calls(&connection, now + 10_000 * DAY_MS, 50).unwrap());
    assert_eq!(level(&connection, Window::Rolling { ms: 60_000 }, now + 50_000), 50);
}

#[test]
fn ledger_limits_survive_a_clock_set_back_and_can_be_redated() {
    let connection = connection();
    let (wrong, now) = (1_900_000_000_000, 1_800_000_000_000);
    settle_at(&connection, [wrong, wrong + 1, now].into_iter());
    for window in [Window::Rolling { ms: 60_000 }, Window::Day, Window::Month, Window::Ever] {
        assert_eq!(level(&connection, window, now), 3, "{window:?}");
        assert_eq!(level(&connection, window, now - 5 * DAY_MS), 3, "{window:?}");
    }
    assert_eq!(ledger_transactions::redate_future(&connection, now).unwrap(), 2);
    for window in [Window::Rolling { ms: 60_000 }, Window::Day] {
        assert_eq!(level(&connection, window, now), 3, "{window:?}");
        assert_eq!(level(&connection, window, now + 2 * DAY_MS), 0, "{window:?}");
    }
    let totals = ledger_transactions::daily_totals(&connection, 0).unwrap();
    assert_eq!(totals.len(), 1);
    assert_eq!(totals[0].amount.micro_usd, 3);
}

#[test]
fn ledger_prunes_turn_pools_early_and_session_pools_later() {
    let connection = connection();
    let pair = Pair { connection: &connection, model: RefCell::default() };
    let now = 1_800_000_000_000;
    for pool in ["turn:1", "session:1"] {
        let mut ask = capped(dollars(5));
        ask.at_ms = now;
        ask.draws[0].pool = pool.into();
        let hold = pair.reserve(0, &ask).unwrap();
        pair.commit(hold, now, dollars(5));
    }
    let pools = || -> Vec<String> {
        let mut find = connection.prepare("SELECT name FROM pool ORDER BY name").unwrap();
        find.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    ledger_maintenance::forget_pools(&connection, now + DAY_MS).unwrap();
    assert_eq!(pools(), ["session:1", "turn:1"]);
    ledger_maintenance::forget_pools(&connection, now + 3 * DAY_MS).unwrap();
    assert_eq!(pools(), ["session:1"]);
    ledger_maintenance::forget_pools(&connection, now + 91 * DAY_MS).unwrap();
    assert_eq!(pools(), [""; 0]);
    assert_eq!(ledger_transactions::daily_totals(&connection, 0).unwrap()[0].amount.micro_usd, 10);
}

#[test]
fn ledger_sums_of_huge_amounts_saturate() {
    let connection = connection();
    let pair = Pair { connection: &connection, model: RefCell::default() };
    let absurd = Amount {
        requests: u64::MAX,
        input: u64::MAX,
        output: u64::MAX,
        micro_usd: u64::MAX,
        cached: u64::MAX,
        cache_write: u64::MAX,
    };
    for _ in 0..100 {
        let mut ask = capped(absurd);
        ask.draws[0].limits.clear();
        let hold = pair.reserve(0, &ask).unwrap();
        pair.commit(hold, 0, absurd);
    }
    assert!(level(&connection, Window::Ever, 0) > 1_000_000_000_000);
    let refused = pair.books(0, |books| books.reserve(&capped(dollars(1)))).unwrap();
    assert_eq!(refused.unwrap_err().free_at_ms, None);
}

#[test]
fn ledger_totals_include_cached_tokens_per_day_and_model() {
    let connection = connection();
    let pair = Pair { connection: &connection, model: RefCell::default() };
    let now = 1_800_000_000_000;
    let amount = Amount { input: 30, cached: 20, cache_write: 5, ..dollars(1) };
    for at_ms in [now, now + DAY_MS, now + 2 * DAY_MS] {
        let hold = pair.reserve(0, &ReservationRequest { at_ms, ..capped(amount) }).unwrap();
        pair.commit(hold, at_ms, amount);
    }
    let days = |from| ledger_transactions::daily_totals(&connection, from).unwrap();
    assert!(days(0).iter().all(|total| total.amount == amount) && days(0).len() == 3);
    ledger_transactions::redate_future(&connection, now).unwrap();
    let [one] = days(0).try_into().unwrap();
    assert_eq!((one.amount.cached, one.amount.cache_write, one.amount.input), (60, 15, 90));
}

#[test]
fn ledger_note_has_its_last_written_value() {
    let connection = connection();
    let change = |to: Option<String>| {
        let mut was = None;
        let seen = &mut was;
        notes::change_note(&connection, "arms", |text| {
            *seen = text.map(str::to_owned);
            to
        })
        .unwrap();
        was
    };
    assert_eq!(change(Some("one".to_owned())), None);
    assert_eq!(change(None).as_deref(), Some("one"));
    assert_eq!(change(Some("two".to_owned())).as_deref(), Some("one"));
    let large = "x".repeat(notes::MAX_NOTE_BYTES + 1);
    assert!(notes::change_note(&connection, "arms", |_| Some(large)).is_err());
    assert_eq!(change(None).as_deref(), Some("two"));
    notes::remove_note(&connection, "arms").unwrap();
    assert_eq!(change(None), None);
}

#[test]
fn ledger_of_version_one_migrates_with_its_totals() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("ledger.db");
    let old = Connection::open(&path).unwrap();
    old.execute_batch(schema::STEPS[0]).unwrap();
    old.execute_batch(
        "INSERT INTO arm VALUES (1, 'p', 'm0'); INSERT INTO arm_day VALUES (7, 1, 2, 30, 4, 50, 0);",
    )
    .unwrap();
    old.pragma_update(None, "application_id", schema::APPLICATION_ID).unwrap();
    old.pragma_update(None, "user_version", 1).unwrap();
    drop(old);
    let (connection, set_aside, _user) =
        open::open_ledger(&path, std::time::Duration::ZERO).unwrap();
    assert_eq!(set_aside, None);
    let [one] = ledger_transactions::daily_totals(&connection, 0).unwrap().try_into().unwrap();
    let amount = Amount { requests: 2, input: 30, output: 4, micro_usd: 50, ..Amount::default() };
    assert_eq!((one.day, one.arm, one.amount), (7, arm(0), amount));
}

#[test]
fn damaged_ledger_call_is_skipped_and_reported_but_its_total_stays() {
    let connection = connection();
    settle_at(&connection, [1_000, 2_000, 3_000, 4_000, 5_000].into_iter());
    for damage in [
        "UPDATE call SET input = -5 WHERE at_ms = 1000",
        "UPDATE call SET micro_usd = 'much' WHERE at_ms = 2000",
        "UPDATE call SET arm = 'nobody' WHERE at_ms = 3000",
        "UPDATE call SET arm = 77 WHERE at_ms = 4000",
    ] {
        connection.execute_batch("PRAGMA foreign_keys = 0").unwrap();
        assert_eq!(connection.execute(damage, []).unwrap(), 1);
    }
    let add = |sum: &mut u64, call: calls::CallRow| {
        *sum += call.amount.micro_usd;
        std::ops::ControlFlow::Continue(())
    };
    let read = calls::fold_rows(&connection, i64::MIN, 0, add).unwrap();
    assert_eq!((read.state, read.damaged.count, read.damaged.first.len()), (1, 4, 4));
    let second = &read.damaged.first[1];
    assert!(second.number.is_some() && second.at_ms == Some(2_000), "{second:?}");
    assert_eq!(read.totals.iter().map(|total| total.amount.micro_usd).sum::<u64>(), 5);
}

/// The names of recorded calls in the ledger.
fn names(connection: &Connection) -> Vec<String> {
    let mut find = connection.prepare("SELECT name FROM call_name ORDER BY name").unwrap();
    find.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

/// Settles a call of one micro-dollar on a branch.
fn settle_on(connection: &Connection, branch: &str, at_ms: i64) {
    let pair = Pair { connection, model: RefCell::default() };
    let origin =
        CallOrigin { project: "/p".into(), branch: branch.into(), ..CallOrigin::default() };
    let mut ask = ReservationRequest { at_ms, origin, ..capped(dollars(1)) };
    ask.draws[0].limits.clear();
    let reserved = pair.books(0, |books| books.reserve(&ask)).unwrap().unwrap();
    let kept = ReservedCall::from_ask(&ask);
    pair.books(0, |books| books.settle_hold(reserved, Some(&kept), at_ms, &dollars(1).into()))
        .unwrap();
}

#[test]
fn ledger_calls_are_pruned_after_400_days_and_totals_never() {
    let connection = connection();
    let begin = 1_800_000_000_000;
    for day in 0..3 {
        settle_on(&connection, &format!("branch-{day}"), begin + day * DAY_MS);
    }
    let state_after = |now_ms: i64| {
        while calls::remove_old(&connection, now_ms).unwrap() {}
        (calls::count_before(&connection, i64::MAX).unwrap(), names(&connection))
    };
    let all = ["/p", "branch-0", "branch-1", "branch-2"].map(str::to_owned);
    assert_eq!(state_after(begin + 400 * DAY_MS), (3, all.to_vec()));
    assert_eq!(state_after(begin + 400 * DAY_MS + 1), (2, all.to_vec()), "names have whole days");
    assert_eq!(state_after(begin + 401 * DAY_MS), (2, [&all[..1], &all[2..]].concat()));
    assert_eq!(state_after(begin + 405 * DAY_MS), (0, Vec::new()));
    let sums = ledger_transactions::daily_totals(&connection, 0).unwrap();
    assert_eq!(sums.iter().map(|total| total.amount.micro_usd).sum::<u64>(), 3);
}

#[test]
fn ledger_prunes_many_old_calls_in_batches() {
    let connection = connection();
    let begin = 1_800_000_000_000;
    settle_at(&connection, (0..1_200).map(|number| begin + number));
    let now_ms = begin + 401 * DAY_MS;
    assert!(calls::remove_old(&connection, now_ms).unwrap());
    assert_eq!(calls::count_before(&connection, i64::MAX).unwrap(), 700);
    assert!(calls::remove_old(&connection, now_ms).unwrap());
    assert!(!calls::remove_old(&connection, now_ms).unwrap());
    assert_eq!(calls::count_before(&connection, i64::MAX).unwrap(), 0);
}

#[test]
fn ledger_names_of_version_three_are_pruned_with_their_last_call() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("ledger.db");
    let old = Connection::open(&path).unwrap();
    schema::STEPS.iter().take(3).for_each(|step| old.execute_batch(step).unwrap());
    old.execute_batch(&format!(
        "INSERT INTO arm VALUES (1, 'p', 'm0'); INSERT INTO call_name VALUES (1, 2, 'main'); \
         INSERT INTO call VALUES ({}, 1, 1, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 5, NULL)",
        9 * DAY_MS
    ))
    .unwrap();
    old.pragma_update(None, "application_id", schema::APPLICATION_ID).unwrap();
    old.pragma_update(None, "user_version", 3).unwrap();
    drop(old);
    let (connection, ..) = open::open_ledger(&path, std::time::Duration::ZERO).unwrap();
    calls::remove_old(&connection, 409 * DAY_MS).unwrap();
    assert_eq!(names(&connection), ["main"]);
    calls::remove_old(&connection, 410 * DAY_MS).unwrap();
    assert_eq!(names(&connection), [""; 0]);
}

#[test]
fn future_dated_ledger_calls_are_redated_with_their_totals() {
    let connection = connection();
    let now = 1_800_000_000_000;
    settle_at(&connection, [now + 5 * DAY_MS, now + 6 * DAY_MS].into_iter());
    ledger_transactions::redate_future(&connection, now).unwrap();
    assert_eq!(calls::count_before(&connection, now + 1).unwrap(), 2);
}

#[test]
fn ledger_without_a_call_table_migrates_and_keeps_its_totals() {
    for version in [1, 2] {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("ledger.db");
        let old = Connection::open(&path).unwrap();
        for step in schema::STEPS.iter().take(version) {
            old.execute_batch(step).unwrap();
        }
        let row = "INSERT INTO arm VALUES (1, 'p', 'm0'); \
             INSERT INTO arm_day(day, arm, requests, input, output, micro_usd, ";
        let cached = if version == 1 { "custom" } else { "cached" };
        old.execute_batch(&format!("{row}{cached}) VALUES (7, 1, 2, 30, 4, 50, 0)")).unwrap();
        old.pragma_update(None, "application_id", schema::APPLICATION_ID).unwrap();
        old.pragma_update(None, "user_version", version as i64).unwrap();
        drop(old);
        let (connection, set_aside, _user) =
            open::open_ledger(&path, std::time::Duration::ZERO).unwrap();
        assert_eq!(set_aside, None);
        settle_at(&connection, [8 * DAY_MS].into_iter());
        let count = |calls: &mut u64, _call| {
            *calls += 1;
            std::ops::ControlFlow::Continue(())
        };
        let read = calls::fold_rows(&connection, i64::MIN, 0, count).unwrap();
        assert_eq!(read.state, 1, "only the new call has details");
        let money: Vec<u64> = read.totals.iter().map(|total| total.amount.micro_usd).collect();
        assert_eq!(money, [50, 1]);
    }
}

/// The recorded calls, in their order.
fn recorded_calls(connection: &Connection) -> Vec<calls::CallRow> {
    let add = |rows: &mut Vec<calls::CallRow>, call| {
        rows.push(call);
        std::ops::ControlFlow::Continue(())
    };
    calls::fold_rows(connection, i64::MIN, Vec::new(), add).unwrap().state
}

#[test]
fn call_of_a_killed_process_counts_as_reserved_under_its_names() {
    let connection = connection();
    let pair = Pair { connection: &connection, model: RefCell::default() };
    let at_ms = 1_800_000_000_000;
    let origin = CallOrigin { project: "/p".into(), session: "s".into(), ..CallOrigin::default() };
    pair.reserve(0, &ReservationRequest { at_ms, origin, ..capped(dollars(30)) }).unwrap();
    pair.model.borrow_mut().dead.insert(0);
    assert_eq!(calls::forget_before(&connection, i64::MAX).unwrap(), 0, "its names stay");
    for _ in 0..2 {
        pair.books(1, |books| books.settle_dead_processes().unwrap());
    }
    let [call] = recorded_calls(&connection).try_into().unwrap();
    assert_eq!((call.at_ms, call.amount, call.is_priced), (at_ms, dollars(30), true));
    assert_eq!(call.failure, calls::NameId::PROCESS_DIED);
    let names = calls::read_names(&connection, &[call.project, call.session]).unwrap();
    assert_eq!(names.into_values().collect::<Vec<_>>(), ["/p", "s"]);
    assert_eq!(level(&connection, Window::Day, at_ms), 30);
    assert_eq!(level(&connection, Window::Rolling { ms: 60_000 }, at_ms), 30);
    let [sum] = ledger_transactions::daily_totals(&connection, 0).unwrap().try_into().unwrap();
    assert_eq!(sum.amount, dollars(30));
}

#[test]
fn ledger_reservation_of_an_older_version_ends_with_its_process() {
    let connection = connection();
    let pair = Pair { connection: &connection, model: RefCell::default() };
    pair.reserve(0, &capped(dollars(30))).unwrap();
    connection.execute("UPDATE hold SET call_facts = NULL", []).unwrap();
    pair.model.borrow_mut().dead.insert(0);
    pair.books(1, |books| books.settle_dead_processes().unwrap());
    assert!(recorded_calls(&connection).is_empty());
    let held: i64 =
        connection.query_row("SELECT count(*) FROM hold", [], |row| row.get(0)).unwrap();
    assert_eq!(held, 0);
}
