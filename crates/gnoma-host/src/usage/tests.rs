//! The law of reports: whatever a ledger holds and however it is grouped, the sums are the ledger's.

use gnoma_core::{
    ErrorKind,
    ledger::{Amount, CallOrigin, ReservationOutcome, ReservationRequest, SettledCall, Total},
};
use gnoma_store::{SqliteLedger, calendar::DAY_MS};
use jiff::tz::{self, TimeZone};
use proptest::prelude::*;

use super::*;

/// Noon of 2026-11-28 in UTC.
const NOON_MS: i64 = 1_795_867_200_000;

/// Noon of days around which clocks change: 2026-03-29, 2026-04-05, 2026-10-25 and 2026-11-01, in UTC.
const CLOCK_CHANGES_MS: [i64; 4] =
    [1_774_785_600_000, 1_775_390_400_000, 1_792_929_600_000, 1_793_534_400_000];

/// Zones whose clocks change by an hour, by half an hour, and at midnight.
const CHANGING_ZONES: [&str; 5] = [
    "CET-1CEST,M3.5.0,M10.5.0/3",
    "EST5EDT,M3.2.0,M11.1.0",
    "AEST-10AEDT,M10.1.0,M4.1.0/3",
    "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0",
    "<-03>3<-02>,M3.5.0/0,M10.5.0/0",
];

#[derive(Clone, Debug)]
struct AnyCall {
    at_ms: i64,
    arm: usize,
    origin: [usize; 5],
    call: SettledCall,
}

fn any_call() -> impl Strategy<Value = AnyCall> {
    let amount = (0..100_000_u64, 0..50_000_u64, 0..5_000_u64, 0..9_000_000_u64);
    let call = (amount, any::<[bool; 2]>(), prop::option::of(0..9_000_u64)).prop_map(
        |((input, cached, output, micro_usd), [is_priced, has_failed], first_part_ms)| {
            let micro_usd = if is_priced { micro_usd } else { 0 };
            let cached = cached.min(input);
            let amount =
                Amount { requests: 1, input, cached, output, micro_usd, cache_write: cached / 3 };
            let failure = has_failed.then_some(ErrorKind::Overloaded);
            SettledCall {
                amount,
                thinking: output / 2,
                is_priced,
                failure,
                first_part_ms,
                took_ms: None,
                stop: None,
            }
        },
    );
    // Around midnights of zones and of UTC, and where clocks change.
    let noon = prop_oneof![4 => Just(NOON_MS), 1 => prop::sample::select(&CLOCK_CHANGES_MS[..])];
    let at_ms = (noon, -3..3_i64, -2 * 3_600_000..26 * 3_600_000_i64)
        .prop_map(|(noon_ms, day, ms)| noon_ms + day * DAY_MS + ms - 12 * 3_600_000);
    let origin = [0..3_usize, 0..3, 0..4, 0..3, 0..3];
    (at_ms, 0..4_usize, origin, call).prop_map(|(at_ms, arm, origin, call)| AnyCall {
        at_ms,
        arm,
        origin,
        call,
    })
}

fn origin([project, branch, session, elf, task]: [usize; 5]) -> CallOrigin {
    let name = |kind: &str, number: usize| match number {
        0 => String::new(),
        number => format!("{kind}{number}"),
    };
    CallOrigin {
        project: name("/home/me/p", project),
        branch: name("b", branch),
        session: name("s", session),
        elf: name("e", elf),
        turn: name("t", session + branch),
        task: name("k", task),
        account: name("KEY_", session),
        agent: name("a", elf),
        skill: name("sk", task),
        mcp: name("m", branch),
        part: String::new(),
    }
}

async fn settle(ledger: &SqliteLedger, call: &AnyCall) {
    let arm = ModelRef { provider: format!("p{}", call.arm / 2), model: format!("m{}", call.arm) };
    let draws = vec![PoolDraw { pool: "all".into(), limits: Vec::new() }];
    let amount = call.call.amount;
    let (at_ms, is_priced, origin) = (call.at_ms, call.call.is_priced, origin(call.origin));
    let ask = ReservationRequest { at_ms, arm, amount, is_priced, draws, origin };
    let Ok(ReservationOutcome::Held(hold)) = ledger.reserve(ask).await else { panic!("no room") };
    ledger.commit(hold, call.at_ms, call.call).await.unwrap();
}

/// The report over a ledger, as [`read_report`] makes it.
async fn report_of(
    ledger: &SqliteLedger,
    by: &[Dimension],
    begin_ms: Option<i64>,
    zone: &TimeZone,
) -> (UsageSums, Vec<UsageRow>, Vec<Total>) {
    let days = LocalDays::new(zone.clone());
    let fold = UsageFold::new(by.to_vec(), begin_ms, i64::MAX, days);
    let from_ms = begin_ms.unwrap_or(i64::MIN);
    let read = ledger.fold_calls(from_ms, fold, |fold, call| fold.add_call(&call)).await.unwrap();
    let UsageRead { state: mut fold, totals, arms, damaged } = read;
    assert_eq!(damaged.count, 0);
    assert_eq!(fold.add_unrecorded(&totals, &arms, &HashMap::new()), 0);
    let names = ledger.call_names(name_ids(by, fold.groups.keys())).await.unwrap();
    let (total, rows) = build_tree(by, fold.groups, &KeyNames { names, arms });
    (total, rows, totals)
}

/// Turns do not add up: two groups can share one.
fn without_turns(mut sums: UsageSums) -> UsageSums {
    sums.details.turns = 0;
    sums
}

/// The sums of all innermost rows, without turns.
fn sum_of_leaves(rows: &[UsageRow]) -> UsageSums {
    let mut sums = UsageSums::default();
    for row in rows {
        let inner = sum_of_leaves(&row.rows);
        if !row.rows.is_empty() {
            assert_eq!(inner, without_turns(row.sums), "{row:?}");
        }
        sums.add_sums(&row.sums);
    }
    sums
}

fn wait<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
}

fn any_zone() -> impl Strategy<Value = TimeZone> {
    let fixed = (-12 * 4..=14 * 4_i32).prop_map(|quarter_hours| {
        TimeZone::fixed(tz::Offset::from_seconds(quarter_hours * 900).unwrap())
    });
    let changing =
        prop::sample::select(&CHANGING_ZONES[..]).prop_map(|zone| TimeZone::posix(zone).unwrap());
    prop_oneof![fixed, changing]
}

fn any_dimensions() -> impl Strategy<Value = Vec<Dimension>> {
    prop::collection::vec(prop::sample::select(&Dimension::ALL[..]), 1..=3)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn usage_report_sums_equal_the_ledger_for_every_grouping(
        calls in prop::collection::vec(any_call(), 1..40),
        by in any_dimensions(),
        zone in any_zone(),
        forgotten in prop::option::of(-3..3_i64),
    ) {
        wait(async {
            let ledger = SqliteLedger::in_memory().unwrap();
            for call in &calls {
                settle(&ledger, call).await;
            }
            if let Some(day) = forgotten {
                ledger.forget_calls(NOON_MS + day * DAY_MS).await.unwrap();
            }
            let (total, rows, totals) = report_of(&ledger, &by, None, &zone).await;
            let mut counted = Amount::default();
            totals.iter().for_each(|total| counted.add(&total.amount));
            assert_eq!(total.amount, counted);
            assert_eq!(total.calls(), calls.len() as u64);
            assert_eq!(sum_of_leaves(&rows), without_turns(total));
        });
    }

    #[test]
    fn usage_report_groups_calls_by_local_day(
        calls in prop::collection::vec(any_call(), 1..30), zone in any_zone(),
    ) {
        wait(async {
            let ledger = SqliteLedger::in_memory().unwrap();
            for call in &calls {
                settle(&ledger, call).await;
            }
            let begin_ms = UsageStart::Days(1).begin_ms(NOON_MS, &zone).unwrap();
            let (total, rows, _) =
                report_of(&ledger, &[Dimension::Period(Period::Day)], Some(begin_ms), &zone).await;
            let later = calls.iter().filter(|call| call.at_ms >= begin_ms);
            assert_eq!(total.amount.micro_usd, later.map(|call| call.call.amount.micro_usd).sum::<u64>());
            for row in rows {
                let day = row.name.unwrap();
                let date = |call: &&AnyCall| {
                    let at = jiff::Timestamp::from_millisecond(call.at_ms).unwrap();
                    call.at_ms >= begin_ms && zone.to_datetime(at).date().to_string() == day
                };
                assert_eq!(row.sums.calls(), calls.iter().filter(date).count() as u64);
            }
        });
    }
}

#[test]
fn usage_report_counts_a_turn_once_per_row() {
    let call = |session: usize, arm| AnyCall {
        at_ms: NOON_MS,
        arm,
        origin: [1, 0, session, 0, 0],
        call: Amount { requests: 1, ..Amount::default() }.into(),
    };
    wait(async {
        let ledger = SqliteLedger::in_memory().unwrap();
        for call in [call(1, 0), call(1, 1), call(1, 0), call(2, 1)] {
            settle(&ledger, &call).await;
        }
        let (total, rows, _) = report_of(&ledger, &[Dimension::Model], None, &TimeZone::UTC).await;
        let turns: Vec<_> =
            rows.iter().map(|row| (row.name.as_deref(), row.sums.details.turns)).collect();
        assert_eq!(turns, [(Some("p0/m0"), 1), (Some("p0/m1"), 2)]);
        assert_eq!(total.details.turns, 2);
    });
}

#[test]
fn usage_report_keeps_sums_of_pruned_calls_without_details() {
    wait(async {
        let ledger = SqliteLedger::in_memory().unwrap();
        let call = AnyCall {
            at_ms: NOON_MS,
            arm: 0,
            origin: [1, 1, 1, 1, 1],
            call: Amount { requests: 1, micro_usd: 7, ..Amount::default() }.into(),
        };
        settle(&ledger, &call).await;
        assert_eq!(ledger.count_calls(NOON_MS + 1).await.unwrap(), 1);
        assert_eq!(ledger.forget_calls(NOON_MS + 1).await.unwrap(), 1);
        assert_eq!(ledger.forget_calls(NOON_MS + 1).await.unwrap(), 0);
        let by = [Dimension::Session, Dimension::Period(Period::Day)];
        let (total, rows, _) = report_of(&ledger, &by, None, &TimeZone::UTC).await;
        assert_eq!((total.amount.micro_usd, total.unrecorded_calls), (7, 1));
        assert_eq!(total.details(), None);
        assert_eq!((rows.len(), rows[0].name.as_deref()), (1, None));
        assert_eq!(rows[0].rows[0].name.as_deref(), Some("2026-11-28"));
    });
}

#[test]
fn usage_report_groups_calls_by_agent_skill_and_mcp() {
    use gnoma_core::ledger::WorkFact;
    let call = |origin| AnyCall {
        at_ms: NOON_MS,
        arm: 0,
        origin,
        call: Amount { requests: 1, ..Amount::default() }.into(),
    };
    wait(async {
        let ledger = SqliteLedger::in_memory().unwrap();
        // The last call has no facts, as those of older versions.
        for origin in [[1, 1, 1, 0, 1], [1, 2, 1, 0, 1], [1, 0, 2, 1, 0], [1, 0, 0, 0, 0]] {
            settle(&ledger, &call(origin)).await;
        }
        for (fact, expected) in [
            (WorkFact::Account, vec![Some("KEY_1"), Some("KEY_2"), None]),
            (WorkFact::Agent, vec![Some("(none)"), Some("a1"), None]),
            (WorkFact::Skill, vec![Some("(none)"), Some("sk1"), None]),
            (WorkFact::Mcp, vec![Some("(none)"), Some("m1"), Some("m2"), None]),
        ] {
            let by = [Dimension::Work(fact)];
            let (total, rows, _) = report_of(&ledger, &by, None, &TimeZone::UTC).await;
            let names: Vec<_> = rows.iter().map(|row| row.name.as_deref()).collect();
            assert_eq!((names, total.calls()), (expected, 4));
        }
    });
}
