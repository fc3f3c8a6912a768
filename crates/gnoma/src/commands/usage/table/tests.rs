//! Reports as people see them.

use gnoma_core::ledger::Amount;
use gnoma_host::usage::{
    CallDetails, Dimension, Period, Savings, UsageQuery, UsageReport, UsageRow, UsageStart,
};
use gnoma_store::DamagedCalls;

use super::*;
use crate::commands::usage::{csv, html, json};

fn sums(calls: u64, micro_usd: u64) -> UsageSums {
    UsageSums {
        amount: Amount {
            requests: calls,
            input: calls * 12_345,
            cached: calls * 4_000,
            cache_write: calls * 700,
            output: calls * 321,
            micro_usd,
        },
        first_part_ms: calls * 1_234,
        timed_calls: calls,
        details: CallDetails {
            turns: calls.div_ceil(2),
            failed_calls: calls / 5,
            thinking: calls * 55,
            failovers: 0,
            estimated_calls: 0,
        },
        ..UsageSums::default()
    }
}

fn requests(requests: u64) -> Amount {
    Amount { requests, ..Amount::default() }
}

fn row(dimension: Dimension, name: Option<&str>, sums: UsageSums, rows: Vec<UsageRow>) -> UsageRow {
    UsageRow { dimension, name: name.map(str::to_owned), sums, rows }
}

fn nested() -> (UsageQuery, UsageReport) {
    let days = |first, second| {
        let day = |name, sums| row(Dimension::Period(Period::Day), Some(name), sums, Vec::new());
        vec![day("2026-11-27", first), day("2026-11-28", second)]
    };
    let unpriced = UsageSums { unpriced: requests(3), ..sums(3, 0) };
    let rows = vec![
        row(
            Dimension::Model,
            Some("anthropic/a-model-with-quite-a-long-name"),
            sums(20, 3_000_000),
            days(sums(5, 500_000), sums(15, 2_500_000)),
        ),
        row(
            Dimension::Model,
            Some("local/<b>&\u{1b}[31m"),
            sums(10, 123),
            days(sums(4, 100), sums(6, 23)),
        ),
        row(
            Dimension::Model,
            None,
            unpriced,
            vec![row(Dimension::Period(Period::Day), Some("2026-11-28"), unpriced, Vec::new())],
        ),
    ];
    let report = UsageReport {
        repriced: None,
        savings: Savings::default(),
        begin_ms: Some(1),
        zone: None,
        total: UsageSums { unpriced: requests(3), ..sums(33, 3_000_123) },
        rows,
        caps: Vec::new(),
        damaged: DamagedCalls::default(),
        exceeded_sums: 0,
        future_calls: 0,
        lacks_money: false,
    };
    (
        UsageQuery {
            repriced_as: None,
            since: UsageStart::Days(7),
            by: vec![Dimension::Model, Dimension::Period(Period::Day)],
        },
        report,
    )
}

fn shown<T>(show: impl FnOnce(&UsageView<'_>) -> T) -> T {
    let (query, report) = nested();
    show(&UsageView::new(&query, &report, 1_795_867_200_000))
}

fn to_json(view: &UsageView<'_>) -> serde_json::Value {
    let mut text = Vec::new();
    json::write_report(view, &mut text).unwrap();
    serde_json::from_slice(&text).unwrap()
}

#[test]
fn usage_table_fits_every_terminal_width() {
    for columns in [40, 60, 80, 100, 120, 200] {
        let text = shown(|view| render(view, Some(columns)));
        for line in text.lines().skip(2) {
            // Bars have one column each, unless a terminal is set to wide ambiguous characters.
            let width = line.chars().count();
            assert!(width <= columns.min(MAX_COLUMNS), "{columns}: {line}\n{text}");
        }
        assert!(text.contains("cost") && text.contains("$3.00*"), "{columns}: {text}");
    }
    let usual = shown(|view| render(view, Some(80)));
    for part in ["calls", "in", "out", "share", "█", "unknown", "(not recorded)", "  2026-11-27"]
    {
        assert!(usual.contains(part), "no {part} in:\n{usual}");
    }
    assert!(usual.starts_with("Usage of the last 7 days by model and day\n\n"), "{usual}");
    let note = "3 calls without a known price: the cost does not include them\n";
    assert!(usual.ends_with(note), "{usual}");
}

#[test]
fn report_of_many_rows_compares_each_with_the_largest_once() {
    let (query, mut report) = nested();
    let day = |number: u64| {
        let name = format!("session-{number}");
        row(Dimension::Session, Some(&name), sums(1, number), Vec::new())
    };
    report.rows = (0..100_000).map(day).collect();
    let view = UsageView::new(&query, &report, 1_795_867_200_000);
    assert_eq!(render(&view, None).lines().count(), 100_000 + 6);
}

#[test]
fn piped_usage_report_is_neither_truncated_nor_rounded() {
    let text = shown(|view| render(view, None));
    assert!(text.contains("anthropic/a-model-with-quite-a-long-name"), "{text}");
    assert!(text.contains("$3.000123*") && text.contains("246900"), "{text}");
    for head in Column::ALL.map(Column::heading_text) {
        assert!(text.contains(head), "no {head} in:\n{text}");
    }
}

#[test]
fn html_usage_report_has_no_scripts_links_or_unescaped_text() {
    let page = shown(html::render_page);
    assert!(page.contains("local/&lt;b&gt;&amp;\u{fffd}[31m"), "{page}");
    for part in ["<script", "http:", "https:", "url(", "<b>", " src=", " href=", " on"] {
        assert!(!page.contains(part), "{part} in:\n{page}");
    }
    assert_eq!(page.matches("<svg ").count(), 6);
    assert!(page.contains("<td>3.000123*</td>"), "{page}");
}

#[test]
fn csv_has_the_innermost_rows_and_json_the_tree() {
    let csv = shown(csv::render);
    let lines: Vec<&str> = csv.split_terminator("\r\n").collect();
    assert_eq!(lines.len(), 6, "{csv}");
    assert!(lines[0].starts_with("model,day,turns,calls,"), "{csv}");
    assert!(lines[1].ends_with(",0.500000"), "{csv}");
    assert!(lines[5].starts_with(",2026-11-28,") && lines[5].ends_with(','), "{csv}");
    let json = shown(to_json);
    assert_eq!(json["total"]["micro_usd"], 3_000_123);
    assert_eq!(json["rows"][2]["sums"]["micro_usd"], serde_json::Value::Null);
    assert_eq!(json["rows"][2]["name"], serde_json::Value::Null);
    assert_eq!(json["rows"][0]["rows"][1]["name"], "2026-11-28");
}

#[test]
fn usage_report_title_names_the_period() {
    let (query, report) = nested();
    let report = UsageReport { total: UsageSums::default(), rows: Vec::new(), ..report };
    for (since, nothing, title) in [
        ("7d", "no calls in the last 7 days", "Usage of the last 7 days"),
        ("1d", "no calls today", "Usage of today"),
        ("24h", "no calls in the last 24 hours", "Usage of the last 24 hours"),
        ("2026-11-01", "no calls since 2026-11-01", "Usage since 2026-11-01"),
        ("all", "no calls yet", "Usage of all time"),
    ] {
        let query = UsageQuery { since: since.parse().unwrap(), ..query.clone() };
        let view = UsageView::new(&query, &report, 0);
        assert_eq!(render(&view, Some(80)), format!("{nothing}\n"));
        assert_eq!(view.title(), format!("{title} by model and day"));
    }
}

/// A report of one model of which only a day's sum is known, and no price.
fn unknown() -> (UsageQuery, UsageReport) {
    let (query, report) = nested();
    let amount = Amount { requests: 2, input: 70, output: 3, ..Amount::default() };
    let total = UsageSums { amount, unpriced: amount, unrecorded_calls: 2, ..UsageSums::default() };
    let rows = vec![row(Dimension::Model, Some("p/m"), total, Vec::new())];
    (UsageQuery { by: vec![Dimension::Model], ..query }, UsageReport { total, rows, ..report })
}

#[test]
fn unknown_usage_and_cost_are_never_reported_as_zero() {
    let (query, report) = unknown();
    let view = UsageView::new(&query, &report, 1_795_867_200_000);
    for columns in [None, Some(80)] {
        let text = render(&view, columns);
        assert!(text.contains("unknown") && !text.contains('$'), "{text}");
        assert!(text.contains("2 calls without a known price: the cost is unknown\n"), "{text}");
    }
    let piped = render(&view, None);
    let cells: Vec<&str> = piped.lines().nth(3).unwrap().split_whitespace().collect();
    let expected = ["p/m", "-", "2", "-", "2", "70", "0", "0", "-", "3", "-", "unknown", "100%"];
    assert_eq!(cells, expected, "{piped}");
    let csv = csv::render(&view);
    assert!(csv.ends_with("\r\np/m,,2,,2,2,70,0,0,,3,,\r\n"), "{csv}");
    let page = html::render_page(&view);
    let unknown = "<td>unknown</td>";
    let row = format!(
        "<td>p/m</td>{unknown}<td>2</td>{unknown}<td>2</td><td>70</td><td>0</td><td>0</td>\
         {unknown}<td>3</td>{unknown}{unknown}<td>100.0 %"
    );
    assert!(page.contains(&row) && page.contains("wait (ms)"), "{page}");
    let json = to_json(&view);
    for field in ["turns", "failed_calls", "thinking_tokens", "mean_first_part_ms", "micro_usd"] {
        assert_eq!(json["total"][field], serde_json::Value::Null, "{field}: {json}");
    }
    assert_eq!(json["total"]["unpriced_calls"], 2);
}

#[test]
fn shares_of_rows_without_a_price_are_unknown_beside_others() {
    let json = shown(to_json);
    assert_eq!(json["rows"][2]["sums"]["share"], serde_json::Value::Null);
    let text = shown(|view| render(view, None));
    let row = text.lines().find(|line| line.starts_with("(not recorded)")).unwrap();
    assert!(row.ends_with("unknown      -"), "{row:?}");
}

#[test]
fn bars_are_as_long_as_their_part() {
    assert_eq!(draw_bar(0.0, 10), "");
    assert_eq!(draw_bar(0.001, 10), "▏");
    assert_eq!(draw_bar(0.5, 10), "█████");
    assert_eq!(draw_bar(1.0, 10), "██████████");
}

#[test]
fn days_of_several_weeks_are_a_calendar_at_a_terminal() {
    let (_, report) = nested();
    let query = UsageQuery {
        repriced_as: None,
        since: UsageStart::Days(30),
        by: vec![Dimension::Period(Period::Day)],
    };
    let costs = [("2026-11-12", 4), ("2026-11-15", 1), ("2026-11-16", 2), ("2026-11-24", 3)];
    let day = |(name, micro_usd)| row(query.by[0], Some(name), sums(1, micro_usd), Vec::new());
    let rows = costs.map(day).to_vec();
    let report = UsageReport { total: sums(4, 10), rows, ..report };
    let view = UsageView::new(&query, &report, 1_795_867_200_000);
    let text = render(&view, Some(80));
    let expected = "            Mo Tu We Th Fr Sa Su\n\
                    2026-11-09            #  .  .  -\n\
                    2026-11-16   =  .  .  .  .  .  .\n\
                    2026-11-23   .  +\n\
                    of the most expensive day";
    assert!(text.contains(expected), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    for columns in [None, Some(79)] {
        assert!(!render(&view, columns).contains("Mo Tu"), "{columns:?}");
    }
    let few = UsageReport { rows: report.rows[2..3].to_vec(), ..report.clone() };
    assert!(!render(&UsageView::new(&query, &few, 0), Some(80)).contains("Mo Tu"));
}

#[test]
fn quality_of_reviews_is_under_that_of_models() {
    let standing =
        gnoma_router::ArmEstimate { quality: 0.8, quality_range: [0.6, 0.9], cost: 0.1, tasks: 12 };
    let arm = gnoma_core::ModelRef { provider: "p".into(), model: "m".into() };
    let believed = [ArmBelief { arm, kind: gnoma_router::TaskKind::new("debug"), standing }];
    let verifier = Verifier { right: (9.0, 10.0), wrong: (1.0, 4.0) };
    let text = render_quality(&believed, Some(verifier));
    let sentence = "checks and reviewers passed 90% of the right work and 25% of the wrong work\n";
    assert!(text.contains("60% to 90%") && text.ends_with(sentence), "{text}");
    assert_eq!(render_quality(&[], Some(verifier)), "");
}
