//! A report as JSON. What is not known is `null`. Pure.
//!
//! Rows are written as they are met: a tree of values, or the whole text, would take more memory than the report.

use std::io;

use gnoma_core::{json_value::json, ledger::Window};
use gnoma_host::usage::{CapForecast, Period, SavedRange, Savings, UsageRow, UsageSums};
use gnoma_router::{Verifier, pool::Pool};
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::view::UsageView;
use crate::commands::router::stats::ArmBelief;

/// Writes the report as one line of JSON.
///
/// # Errors
/// Those of `out`.
pub(super) fn write_report(view: &UsageView<'_>, out: &mut dyn io::Write) -> io::Result<()> {
    let report = view.report;
    let damaged = report.damaged.first.iter();
    let report = JsonReport {
        from_ms: report.begin_ms,
        to_ms: view.now_ms,
        zone: report.zone.as_deref(),
        by: view.query.by.iter().map(|dimension| dimension.name()).collect(),
        total: JsonSums::new(view, &report.total),
        rows: JsonRows(view, &report.rows),
        repriced: report.repriced.as_ref().map(|repriced| JsonRepriced {
            model: repriced.arm.to_string(),
            least_micro_usd: repriced.least,
            most_micro_usd: repriced.most,
            left_out_calls: repriced.left_out_calls,
            same_tokenizer: repriced.is_same_model,
        }),
        savings: JsonSavings::new(&report.savings),
        caps: report.caps.iter().map(JsonCap::new).collect(),
        damaged_rows: JsonDamage {
            count: report.damaged.count,
            first: damaged
                .map(|row| JsonDamagedRow { call: row.number, at_ms: row.at_ms })
                .collect(),
        },
        exceeded_sums: report.exceeded_sums,
        future_calls: report.future_calls,
        incomplete: report.lacks_money,
        quality: view
            .quality
            .as_ref()
            .map(|believed| believed.iter().map(ArmBelief::to_json).collect()),
        reviewers: view.verifier.map(|Verifier { right, wrong }| {
            json!({ "right_passed": right.0 / right.1, "wrong_passed": wrong.0 / wrong.1 })
        }),
        currency: view
            .currency
            .as_ref()
            .map(|currency| JsonCurrency { code: &currency.code, usd: currency.dollars }),
    };
    serde_json::to_writer(&mut *out, &report)?;
    out.write_all(b"\n")
}

#[derive(Serialize)]
struct JsonReport<'r> {
    from_ms: Option<i64>,
    to_ms: i64,
    zone: Option<&'r str>,
    by: Vec<&'static str>,
    total: JsonSums,
    rows: JsonRows<'r>,
    #[serde(rename = "as", skip_serializing_if = "Option::is_none")]
    repriced: Option<JsonRepriced>,
    savings: JsonSavings,
    caps: Vec<JsonCap>,
    damaged_rows: JsonDamage,
    exceeded_sums: u64,
    future_calls: u64,
    incomplete: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    quality: Option<Vec<Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reviewers: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    currency: Option<JsonCurrency<'r>>,
}

#[derive(Serialize)]
struct JsonCurrency<'r> {
    code: &'r str,
    usd: f64,
}

#[derive(Serialize)]
struct JsonRepriced {
    model: String,
    least_micro_usd: u64,
    most_micro_usd: u64,
    left_out_calls: u64,
    same_tokenizer: bool,
}

#[derive(Serialize)]
struct JsonSavings {
    cache_micro_usd: i64,
    dearest_model: Option<String>,
    routing_micro_usd: Option<[i64; 2]>,
    elfs_micro_usd: Option<[i64; 2]>,
    checks_micro_usd: u64,
}

impl JsonSavings {
    fn new(savings: &Savings) -> Self {
        let dearest_model = savings.dearest.as_ref().map(ToString::to_string);
        let range =
            |range: SavedRange| dearest_model.is_some().then_some([range.least, range.most]);
        Self {
            cache_micro_usd: savings.cache,
            routing_micro_usd: range(savings.routing),
            elfs_micro_usd: range(savings.elfs),
            checks_micro_usd: savings.checks,
            dearest_model,
        }
    }
}

#[derive(Serialize)]
struct JsonDamage {
    count: u64,
    first: Vec<JsonDamagedRow>,
}

#[derive(Serialize)]
struct JsonDamagedRow {
    call: Option<i64>,
    at_ms: Option<i64>,
}

/// Rows, of which each is made when it is written.
struct JsonRows<'r>(&'r UsageView<'r>, &'r [UsageRow]);

impl Serialize for JsonRows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(view, rows) = self;
        serializer.collect_seq(rows.iter().map(|row| JsonRow {
            by: row.dimension.name(),
            name: row.name.as_deref(),
            sums: JsonSums::new(view, &row.sums),
            rows: (!row.rows.is_empty()).then_some(JsonRows(view, &row.rows)),
        }))
    }
}

#[derive(Serialize)]
struct JsonRow<'r> {
    by: &'static str,
    name: Option<&'r str>,
    sums: JsonSums,
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<JsonRows<'r>>,
}

#[derive(Serialize)]
struct JsonSums {
    turns: Option<u64>,
    calls: u64,
    failed_calls: Option<u64>,
    failovers: Option<u64>,
    estimated_calls: Option<u64>,
    unpriced_calls: u64,
    unrecorded_calls: u64,
    input_tokens: u64,
    cached_tokens: u64,
    cache_write_tokens: u64,
    thinking_tokens: Option<u64>,
    output_tokens: u64,
    mean_first_part_ms: Option<u64>,
    micro_usd: Option<u64>,
    share: Option<f64>,
}

impl JsonSums {
    fn new(view: &UsageView<'_>, sums: &UsageSums) -> Self {
        let details = sums.details();
        Self {
            turns: details.map(|details| details.turns),
            calls: sums.calls(),
            failed_calls: details.map(|details| details.failed_calls),
            failovers: details.map(|details| details.failovers),
            estimated_calls: details.map(|details| details.estimated_calls),
            unpriced_calls: sums.unpriced_calls(),
            unrecorded_calls: sums.unrecorded_calls,
            input_tokens: sums.amount.input,
            cached_tokens: sums.amount.cached,
            cache_write_tokens: sums.amount.cache_write,
            thinking_tokens: details.map(|details| details.thinking),
            output_tokens: sums.amount.output,
            mean_first_part_ms: sums.mean_first_part_ms(),
            micro_usd: sums.cost(),
            share: view.share(sums),
        }
    }
}

#[derive(Serialize)]
struct JsonCap {
    of: String,
    period: &'static str,
    micro_usd: u64,
    used_micro_usd: u64,
    expected_micro_usd: Option<u64>,
    met_at_ms: Option<i64>,
    ends_at_ms: i64,
}

impl JsonCap {
    fn new(cap: &CapForecast) -> Self {
        let CapForecast { pool, window, most, used, ends_at_ms, expected, met_at_ms } = cap;
        let period = if *window == Window::Month { Period::Month } else { Period::Day };
        Self {
            of: match pool {
                Pool::Project(_) => "project".to_owned(),
                Pool::Rates(name) => format!("rate_limits.{name}"),
                Pool::All | Pool::Turn(_) | Pool::Session(_) | Pool::Part(..) | Pool::Arm(_) => {
                    "all".to_owned()
                }
            },
            period: period.name(),
            micro_usd: *most,
            used_micro_usd: *used,
            expected_micro_usd: *expected,
            met_at_ms: *met_at_ms,
            ends_at_ms: *ends_at_ms,
        }
    }
}
