//! A report as JSON. What is not known is `null`. Pure.

use gnoma_core::ledger::Window;
use gnoma_host::usage::{CapForecast, UsageRow, UsageSums};
use gnoma_router::pool::Pool;
use serde_json::{Value, json};

use super::view::UsageView;

pub(super) fn to_json(view: &UsageView<'_>) -> Value {
    let report = view.report;
    let by: Vec<&str> = view.query.by.iter().map(|dimension| dimension.name()).collect();
    let damaged: Vec<Value> = report
        .damaged
        .first
        .iter()
        .map(|row| json!({ "call": row.number, "at_ms": row.at_ms }))
        .collect();
    json!({
        "from_ms": report.begin_ms,
        "to_ms": view.now_ms,
        "zone": report.zone,
        "by": by,
        "total": sums_to_json(view, &report.total),
        "rows": report.rows.iter().map(|row| row_to_json(view, row)).collect::<Vec<_>>(),
        "caps": report.caps.iter().map(cap_to_json).collect::<Vec<_>>(),
        "damaged_rows": { "count": report.damaged.count, "first": damaged },
        "exceeded_sums": report.exceeded_sums,
    })
}

fn row_to_json(view: &UsageView<'_>, row: &UsageRow) -> Value {
    let UsageRow { dimension, name, sums: own, rows } = row;
    let mut value =
        json!({ "by": dimension.name(), "name": name, "sums": sums_to_json(view, own) });
    if let (Value::Object(fields), false) = (&mut value, rows.is_empty()) {
        let rows = rows.iter().map(|row| row_to_json(view, row)).collect();
        fields.insert("rows".to_owned(), Value::Array(rows));
    }
    value
}

fn sums_to_json(view: &UsageView<'_>, sums: &UsageSums) -> Value {
    // Details are known of recorded calls only.
    let is_recorded = sums.calls == 0 || sums.unrecorded_calls < sums.calls;
    let recorded = |number: u64| is_recorded.then_some(number);
    json!({
        "turns": recorded(sums.turns),
        "calls": sums.calls,
        "failed_calls": recorded(sums.failed_calls),
        "unpriced_calls": sums.unpriced_calls,
        "unrecorded_calls": sums.unrecorded_calls,
        "input_tokens": sums.input,
        "cached_tokens": sums.cached,
        "cache_write_tokens": sums.cache_write,
        "thinking_tokens": recorded(sums.thinking),
        "output_tokens": sums.output,
        "mean_first_part_ms": sums.mean_first_part_ms(),
        "micro_usd": sums.cost(),
        "share": view.share(sums),
    })
}

fn cap_to_json(cap: &CapForecast) -> Value {
    let CapForecast { pool, window, most, used, ends_at_ms, expected, met_at_ms } = cap;
    let of = if matches!(pool, Pool::Project(_)) { "project" } else { "all" };
    let period = if *window == Window::Month { "month" } else { "day" };
    json!({
        "of": of,
        "period": period,
        "micro_usd": most,
        "used_micro_usd": used,
        "expected_micro_usd": expected,
        "met_at_ms": met_at_ms,
        "ends_at_ms": ends_at_ms,
    })
}
