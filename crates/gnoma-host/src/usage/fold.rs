//! Groups calls while they are read, one at a time. Pure.
//!
//! Memory grows with the groups and with the turns in them, not with the calls.

use std::{
    collections::{BTreeMap, HashMap},
    ops::ControlFlow,
};

use gnoma_core::{
    Price,
    ledger::{Amount, Total},
    message::ModelRef,
};
use gnoma_store::{CallRow, calendar};

use super::{
    dimension::Dimension,
    period::LocalDays,
    savings::SpendingParts,
    sums::{UsageSums, subtract_amount},
};

/// Most dimensions that nest.
pub const MAX_DEPTH: usize = 4;

/// Most groups of a report.
pub const MAX_GROUPS: usize = 100_000;

/// A part of a key that is not known.
pub(super) const UNKNOWN: i64 = i64::MIN;

/// The elf of a call that the person's own session made.
pub(super) const NO_ELF: i64 = 0;

/// The group of a call: a number for each dimension, in their order. What it means depends on the dimension: a day's
/// number, a [`gnoma_store::NameId`], or an arm's number.
pub(super) type GroupKey = [i64; MAX_DEPTH];

/// The sums of a group, and its turns by their hashes, with repetitions.
#[derive(Debug, Default)]
pub(super) struct CallGroup {
    pub(super) sums: UsageSums,
    pub(super) turns: Vec<i64>,
}

/// The sums of recorded calls by UTC day and arm.
type DaySums = HashMap<(i64, i64), Amount>;

/// The calls read so far, by group.
#[derive(Debug)]
pub(super) struct UsageFold {
    by: Vec<Dimension>,
    begin_ms: Option<i64>,
    /// A call that is later is dated in the future.
    latest_ms: i64,
    days: LocalDays,
    /// Recorded calls that are dated in the future.
    pub(super) future_calls: u64,
    pub(super) groups: HashMap<GroupKey, CallGroup>,
    pub(super) parts: SpendingParts,
    explained: DaySums,
    /// There were more than [`MAX_GROUPS`].
    pub(super) is_full: bool,
    /// The last call of a turn and elf, if it failed: its arm and group.
    failed: HashMap<(i64, i64), (i64, GroupKey)>,
}

/// Most turns whose last call failed that are remembered while calls are read.
const MAX_FAILED: usize = 10_000;

impl UsageFold {
    pub(super) fn new(
        by: Vec<Dimension>,
        begin_ms: Option<i64>,
        latest_ms: i64,
        days: LocalDays,
    ) -> Self {
        Self {
            by,
            begin_ms,
            latest_ms,
            days,
            future_calls: 0,
            groups: HashMap::new(),
            parts: SpendingParts::default(),
            explained: HashMap::new(),
            is_full: false,
            failed: HashMap::new(),
        }
    }

    /// Adds a call. Calls before the beginning only explain a part of their day's sum; if there is a beginning, so do
    /// calls that are dated in the future.
    pub(super) fn add_call(&mut self, call: &CallRow) -> ControlFlow<()> {
        let day = (calendar::day_of(call.at_ms), call.arm);
        self.explained.entry(day).or_default().add(&call.amount);
        let is_future = call.at_ms > self.latest_ms;
        self.future_calls += u64::from(is_future);
        if self.begin_ms.is_some_and(|begin_ms| is_future || call.at_ms < begin_ms) {
            return ControlFlow::Continue(());
        }
        let key = self.key_of_call(call);
        if self.groups.len() >= MAX_GROUPS && !self.groups.contains_key(&key) {
            self.is_full = true;
            return ControlFlow::Break(());
        }
        self.note_failover(call, key);
        self.parts.add_call(call);
        let group = self.groups.entry(key).or_default();
        group.sums.add_call(call);
        if call.turn != 0 && group.turns.last() != Some(&call.turn) {
            group.turns.push(call.turn);
        }
        ControlFlow::Continue(())
    }

    /// Counts a failover of the call before this one of the same turn, and remembers a call that failed.
    fn note_failover(&mut self, call: &CallRow, key: GroupKey) {
        if call.turn == 0 {
            return;
        }
        let of_turn = (call.turn, call.elf.0);
        if let Some((arm, failed)) = self.failed.remove(&of_turn)
            && arm != call.arm
            && let Some(group) = self.groups.get_mut(&failed)
        {
            group.sums.details.failovers += 1;
        }
        if call.failure.0 != 0 && self.failed.len() < MAX_FAILED {
            self.failed.insert(of_turn, (call.arm, key));
        }
    }

    fn key_of_call(&mut self, call: &CallRow) -> GroupKey {
        let mut key = [UNKNOWN; MAX_DEPTH];
        for (part, dimension) in key.iter_mut().zip(&self.by) {
            let name = |id: i64| if id == 0 { UNKNOWN } else { id };
            *part = match dimension {
                Dimension::Period(period) => period.first_day(self.days.day_of(call.at_ms)),
                Dimension::Project => name(call.project.0),
                Dimension::Branch => name(call.branch.0),
                Dimension::Session => name(call.session.0),
                Dimension::Elf if call.session.0 == 0 => UNKNOWN,
                Dimension::Elf if call.elf.0 == 0 => NO_ELF,
                Dimension::Elf => call.elf.0,
                Dimension::Model | Dimension::Provider => call.arm,
                Dimension::Task => name(call.task.0),
                Dimension::Work(_) => name(call.work.0),
            };
        }
        key
    }

    /// Adds what the days' sums have beyond the calls. `prices`: those that are known today. Returns how many of those
    /// sums are smaller than their calls.
    pub(super) fn add_unrecorded(
        &mut self,
        totals: &[Total],
        arms: &BTreeMap<i64, ModelRef>,
        prices: &HashMap<ModelRef, Price>,
    ) -> u64 {
        let numbers: HashMap<&ModelRef, i64> =
            arms.iter().map(|(number, arm)| (arm, *number)).collect();
        // A sum cannot be divided: it counts for the date that its UTC day has.
        let shown_days = self.begin_ms.map(|begin_ms| {
            let today = self.days.day_of(self.latest_ms).max(calendar::day_of(self.latest_ms));
            self.days.day_of(begin_ms)..=today
        });
        let mut exceeded = 0;
        for Total { day, arm, amount } in totals {
            let (day, number) = (i64::from(*day), numbers.get(arm).copied().unwrap_or(UNKNOWN));
            if shown_days.as_ref().is_some_and(|shown| !shown.contains(&day)) {
                continue;
            }
            let explained = self.explained.get(&(day, number)).copied().unwrap_or_default();
            let (rest, is_exceeded) = subtract_amount(amount, &explained);
            exceeded += u64::from(is_exceeded);
            if rest != Amount::default() {
                let key = self.key_of_day(day, number);
                let group = self.groups.entry(key).or_default();
                group.sums.add_unrecorded(&rest, prices.get(arm));
                self.parts.add_unrecorded(number, &rest);
            }
        }
        exceeded
    }

    /// The group of a day's sum: nothing but day and arm is known of it.
    fn key_of_day(&self, day: i64, arm: i64) -> GroupKey {
        let mut key = [UNKNOWN; MAX_DEPTH];
        for (part, dimension) in key.iter_mut().zip(&self.by) {
            *part = match dimension {
                Dimension::Period(period) => period.first_day(day),
                Dimension::Model | Dimension::Provider => arm,
                Dimension::Project
                | Dimension::Branch
                | Dimension::Session
                | Dimension::Elf
                | Dimension::Task
                | Dimension::Work(_) => UNKNOWN,
            };
        }
        key
    }
}

#[cfg(test)]
mod tests {
    use gnoma_store::NameId;
    use jiff::tz::TimeZone;

    use super::*;

    #[test]
    fn usage_counts_future_dated_calls_separately_in_a_period() {
        let fold = |begin_ms| {
            let days = LocalDays::new(TimeZone::UTC);
            let mut fold = UsageFold::new(vec![Dimension::Model], begin_ms, 100, days);
            for at_ms in [50, 100, 101, 900] {
                let amount = Amount { requests: 1, ..Amount::default() };
                let _goes_on = fold.add_call(&CallRow { at_ms, amount, ..CallRow::default() });
            }
            let shown: u64 = fold.groups.values().map(|group| group.sums.calls()).sum();
            (shown, fold.future_calls)
        };
        assert_eq!((fold(Some(0)), fold(None)), ((2, 2), (4, 2)));
    }

    #[test]
    fn failed_call_is_a_failover_if_another_model_goes_on_with_the_turn() {
        let days = LocalDays::new(TimeZone::UTC);
        let mut fold = UsageFold::new(vec![Dimension::Model], None, i64::MAX, days);
        let call = |turn: i64, arm: i64, failure: i64| CallRow {
            turn,
            arm,
            failure: NameId(failure),
            ..CallRow::default()
        };
        for (turn, arm, failure) in [
            (1, 1, 7),
            (1, 1, 7),
            (2, 2, 7),
            (1, 2, 0),
            (2, 2, 0),
            (0, 1, 7),
            (0, 2, 0),
            (3, 2, 7),
            (3, 1, 0),
        ] {
            let _goes_on = fold.add_call(&call(turn, arm, failure));
        }
        let of = |arm: i64| {
            let group = fold.groups.iter().find(|(key, _)| key[0] == arm).unwrap().1;
            group.sums.details.failovers
        };
        assert_eq!((of(1), of(2)), (1, 1));
    }

    #[test]
    fn calls_dated_in_the_future_are_in_no_period() {
        let arm = ModelRef { provider: "p".into(), model: "m".into() };
        let amount = Amount { requests: 1, ..Amount::default() };
        let total = |day| Total { day, arm: arm.clone(), amount };
        // The last sum has no call any more.
        let totals = [total(0), total(400), total(401)];
        let arms = BTreeMap::from([(1, arm.clone())]);
        for (begin_ms, counted) in [(None, 3), (Some(0), 1)] {
            let days = LocalDays::new(TimeZone::UTC);
            let mut fold = UsageFold::new(vec![Dimension::Model], begin_ms, 5_000, days);
            for at_ms in [4_000, 400 * calendar::DAY_MS] {
                let call = CallRow { at_ms, arm: 1, amount, ..CallRow::default() };
                let _goes_on = fold.add_call(&call);
            }
            assert_eq!(fold.add_unrecorded(&totals, &arms, &HashMap::new()), 0);
            let calls: u64 = fold.groups.values().map(|group| group.sums.calls()).sum();
            assert_eq!((calls, fold.future_calls), (counted, 1));
        }
    }
}
