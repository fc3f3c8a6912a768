//! Which run of a schedule is due. Pure: the clock comes in as a value.

use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use super::rule::ScheduleRule;

/// Most series of runs whose numbers are retained, so that a clock that is set back does not repeat them.
const MAX_SERIES: usize = 2_000;

/// The progress of a schedule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleProgress {
    /// The number of the last time that has passed; `None`: none has.
    seen: Option<i64>,
    /// The numbers of the times that began a run, as series: the first and the last of each, in order.
    done: Vec<(i64, i64)>,
}

/// The result of comparing a schedule with the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextRun {
    /// A run is due, for the time at this moment. Earlier ones that were missed are not made up for.
    Due {
        /// In milliseconds since 1970.
        for_ms: i64,
    },
    /// The next one is due at this moment.
    At(i64),
    /// No more will come.
    Over,
}

impl ScheduleProgress {
    /// Returns the progress of a schedule that is made or resumed now: no time that has passed is due.
    #[must_use]
    pub fn with_past_seen(rule: ScheduleRule, zone: &TimeZone, made_ms: i64, now_ms: i64) -> Self {
        let seen = rule.last_occurrence(zone, made_ms, now_ms).map(|it| it.number);
        Self { seen, done: Vec::new() }
    }

    /// Leaves out what has passed.
    pub fn skip_past_runs(
        &mut self,
        rule: ScheduleRule,
        zone: &TimeZone,
        made_ms: i64,
        now_ms: i64,
    ) {
        self.seen = rule.last_occurrence(zone, made_ms, now_ms).map(|it| it.number).or(self.seen);
    }

    /// Returns what is due, without a change.
    #[must_use]
    pub fn peek_next_run(
        &self,
        rule: ScheduleRule,
        zone: &TimeZone,
        made_ms: i64,
        now_ms: i64,
    ) -> NextRun {
        let mut later = self.clone();
        later.advance_clock(rule, zone, made_ms, now_ms)
    }

    /// Takes in the time of the clock. What is [`NextRun::Due`] counts as begun from now on, and is never due again; the
    /// caller saves the progress before it begins.
    pub fn advance_clock(
        &mut self,
        rule: ScheduleRule,
        zone: &TimeZone,
        made_ms: i64,
        now_ms: i64,
    ) -> NextRun {
        let last = rule.last_occurrence(zone, made_ms, now_ms);
        let before = self.seen;
        // After a clock was set back, times that it shows again are due unless they ran.
        self.seen = last.map(|it| it.number);
        if let Some(last) = last
            && before.is_none_or(|seen| last.number > seen)
            && !self.done.iter().any(|(from, to)| (*from..=*to).contains(&last.number))
        {
            self.add_done(last.number);
            return NextRun::Due { for_ms: last.at_ms };
        }
        rule.next(zone, made_ms, now_ms).map_or(NextRun::Over, |next| NextRun::At(next.at_ms))
    }

    fn add_done(&mut self, number: i64) {
        let at = self.done.partition_point(|(from, _)| *from < number);
        self.done.insert(at, (number, number));
        self.done.dedup_by(|next, series| {
            let joins = series.1.checked_add(1) == Some(next.0);
            if joins {
                series.1 = next.1;
            }
            joins
        });
        if self.done.len() > MAX_SERIES {
            self.done.remove(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::schedule_parser::parse_every, *};

    const DAY_MS: i64 = 86_400_000;
    const HOUR_MS: i64 = 3_600_000;
    /// 2026-11-30, a Monday.
    const MONDAY_MS: i64 = 1_795_996_800_000;

    fn take(progress: &mut ScheduleProgress, now_ms: i64) -> NextRun {
        progress.advance_clock(parse_every("day 9:00").unwrap(), &TimeZone::UTC, MONDAY_MS, now_ms)
    }

    #[test]
    fn missed_runs_are_made_up_for_once_and_none_runs_twice() {
        let at = |day: i64, hour: i64| MONDAY_MS + day * DAY_MS + hour * HOUR_MS;
        let mut progress = ScheduleProgress::default();
        assert_eq!(take(&mut progress, at(0, 9)), NextRun::Due { for_ms: at(0, 9) });
        assert_eq!(take(&mut progress, at(0, 9)), NextRun::At(at(1, 9)));
        // Asleep for three days.
        assert_eq!(take(&mut progress, at(3, 12)), NextRun::Due { for_ms: at(3, 9) });
        // The clock is set back by a day, and shows what has run again.
        assert_eq!(take(&mut progress, at(2, 12)), NextRun::At(at(3, 9)));
        assert_eq!(take(&mut progress, at(3, 10)), NextRun::At(at(4, 9)));
        assert_eq!(take(&mut progress, at(4, 9)), NextRun::Due { for_ms: at(4, 9) });
        // It was years ahead, and is right again.
        assert_eq!(take(&mut progress, at(2_000, 9)), NextRun::Due { for_ms: at(2_000, 9) });
        assert_eq!(take(&mut progress, at(4, 10)), NextRun::At(at(5, 9)));
        assert_eq!(take(&mut progress, at(5, 9)), NextRun::Due { for_ms: at(5, 9) });
    }

    #[test]
    fn schedule_time_that_passed_before_its_creation_is_not_due() {
        let (rule, zone) = (parse_every("day 9:00").unwrap(), TimeZone::UTC);
        let now_ms = MONDAY_MS + 12 * HOUR_MS;
        let mut progress = ScheduleProgress::with_past_seen(rule, &zone, now_ms, now_ms);
        let tomorrow = NextRun::At(MONDAY_MS + DAY_MS + 9 * HOUR_MS);
        assert_eq!(take(&mut progress, now_ms), tomorrow);
        progress.skip_past_runs(rule, &zone, now_ms, now_ms + 5 * DAY_MS);
        assert!(matches!(take(&mut progress, now_ms + 5 * DAY_MS), NextRun::At(_)));
    }

    #[test]
    fn one_time_schedule_is_due_once() {
        let rule = ScheduleRule::Once { at_ms: 1_000, at_limits: false };
        let mut progress = ScheduleProgress::default();
        let mut take = |now_ms| progress.advance_clock(rule, &TimeZone::UTC, 0, now_ms);
        assert_eq!(take(999), NextRun::At(1_000));
        assert_eq!(take(5_000), NextRun::Due { for_ms: 1_000 });
        assert_eq!(take(6_000), NextRun::Over);
        // The clock is set back to before it.
        assert_eq!(take(500), NextRun::At(1_000));
        assert_eq!(take(1_000), NextRun::Over);
    }
}
