//! Reports as people see them.

use gnoma_host::usage::{Dimension, Since, UsageQuery, UsageReport, UsageRow};
use gnoma_store::DamagedCalls;

use super::*;
use crate::commands::usage::{csv, html, json};

fn sums(calls: u64, micro_usd: u64) -> UsageSums {
    UsageSums {
        turns: calls.div_ceil(2),
        calls,
        failed_calls: calls / 5,
        input: calls * 12_345,
        cached: calls * 4_000,
        cache_write: calls * 700,
        thinking: calls * 55,
        output: calls * 321,
        micro_usd,
        first_part_ms: calls * 1_234,
        timed_calls: calls,
        ..UsageSums::default()
    }
}

fn row(dimension: Dimension, name: Option<&str>, sums: UsageSums, rows: Vec<UsageRow>) -> UsageRow {
    UsageRow { dimension, name: name.map(str::to_owned), sums, rows }
}

fn nested() -> (UsageQuery, UsageReport) {
    let days = |first, second| {
        let day = |name, sums| row(Dimension::Day, Some(name), sums, Vec::new());
        vec![day("2026-11-27", first), day("2026-11-28", second)]
    };
    let unpriced = UsageSums { unpriced_calls: 3, ..sums(3, 0) };
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
            vec![row(Dimension::Day, Some("2026-11-28"), unpriced, Vec::new())],
        ),
    ];
    let report = UsageReport {
        begin_ms: Some(1),
        zone: None,
        total: UsageSums { unpriced_calls: 3, ..sums(33, 3_000_123) },
        rows,
        caps: Vec::new(),
        damaged: DamagedCalls::default(),
        exceeded_sums: 0,
    };
    (UsageQuery { since: Since::Days(7), by: vec![Dimension::Model, Dimension::Day] }, report)
}

fn shown<T>(show: impl FnOnce(&UsageView<'_>) -> T) -> T {
    let (query, report) = nested();
    show(&UsageView { query: &query, report: &report, now_ms: 1_795_867_200_000 })
}

#[test]
fn lines_fit_into_every_width_and_keep_what_matters() {
    for columns in [40, 60, 80, 100, 120, 200] {
        let text = shown(|view| render(view, Some(columns)));
        for line in text.lines().skip(2).take(9) {
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
fn piped_reports_are_whole_and_exact() {
    let text = shown(|view| render(view, None));
    assert!(text.contains("anthropic/a-model-with-quite-a-long-name"), "{text}");
    assert!(text.contains("$3.000123*") && text.contains("246900"), "{text}");
    for head in Column::ALL.map(Column::head) {
        assert!(text.contains(head), "no {head} in:\n{text}");
    }
}

#[test]
fn pages_hold_nothing_that_runs_loads_or_escapes() {
    let page = shown(html::render_page);
    assert!(page.contains("local/&lt;b&gt;&amp;\u{fffd}[31m"), "{page}");
    for part in ["<script", "http:", "https:", "url(", "<b>", " src=", " href=", " on"] {
        assert!(!page.contains(part), "{part} in:\n{page}");
    }
    assert_eq!(page.matches("<svg ").count(), 8);
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
    let json = shown(json::to_json).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["total"]["micro_usd"], 3_000_123);
    assert_eq!(json["rows"][2]["sums"]["micro_usd"], serde_json::Value::Null);
    assert_eq!(json["rows"][2]["name"], serde_json::Value::Null);
    assert_eq!(json["rows"][0]["rows"][1]["name"], "2026-11-28");
}

#[test]
fn nothing_spent_is_said() {
    let (query, report) = nested();
    let report = UsageReport { total: UsageSums::default(), rows: Vec::new(), ..report };
    let view = UsageView { query: &query, report: &report, now_ms: 0 };
    assert_eq!(render(&view, Some(80)), "no calls in the last 7 days\n");
}

#[test]
fn bars_are_as_long_as_their_part() {
    assert_eq!(draw_bar(0.0, 10), "");
    assert_eq!(draw_bar(0.001, 10), "▏");
    assert_eq!(draw_bar(0.5, 10), "█████");
    assert_eq!(draw_bar(1.0, 10), "██████████");
}
