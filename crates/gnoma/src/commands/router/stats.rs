//! `gnoma router stats`: what is believed of each arm, what was spent, and what one arm alone would
//! have cost.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use gnoma_core::{
    ModelRef, Price, Usage,
    json_value::json,
    ledger::{Amount, Ledger as _, Total},
    sort,
};
use gnoma_router::{ArmEstimate, RouterState, TaskKind, Verifier};
use serde_json::Value;

use super::money::{MICRO, format_money};
use gnoma_host::{
    Project, clock,
    routing::{self, memory},
};

use crate::{
    commands::common::{print_json, print_stored_text},
    report::{self, Exit},
    table,
};

/// Days that are shown one by one; earlier ones are in the sum.
const SHOWN_DAYS: usize = 14;

pub(super) async fn run(project: &Project, json: bool) -> Result<Exit> {
    let (believed, _) = read_quality(project);
    let totals = load_totals(project).await;
    let prices: Vec<(ModelRef, Price)> = routing::known_prices(project, &totals);
    let shadow = shadow_costs(&totals, &prices);
    let unpriced = unpriced_arms(&totals, &prices);
    if json {
        return print_json(&json!({
            "believed": believed.iter().map(ArmBelief::to_json).collect::<Vec<_>>(),
            "spent": totals,
            "unpriced": unpriced,
            "had_one_done_all": shadow.iter().map(|(arm, micro_usd)| {
                json!({ "arm": arm.to_string(), "micro_usd": micro_usd })
            }).collect::<Vec<_>>(),
        }));
    }
    print_stored_text(&render_stats(&believed, &totals, &shadow, &unpriced))
}

/// The arms that were called and whose price is not known, so that what they cost is not in the sums.
fn unpriced_arms(totals: &[Total], prices: &[(ModelRef, Price)]) -> BTreeSet<String> {
    let is_priced = |total: &Total| {
        total.amount.micro_usd > 0 || prices.iter().any(|(arm, _)| *arm == total.arm)
    };
    let unpriced = totals.iter().filter(|total| !is_priced(total));
    sort::to_set(unpriced.map(|total| total.arm.to_string()))
}

/// The estimate of an arm at a type of task.
pub(in crate::commands) struct ArmBelief {
    pub(in crate::commands) arm: ModelRef,
    pub(in crate::commands) kind: TaskKind,
    pub(in crate::commands) standing: ArmEstimate,
}

/// Reads what was learned of every arm at every type of task of which it has done some, and how far checks and reviewers
/// can be trusted.
pub(in crate::commands) fn read_quality(project: &Project) -> (Vec<ArmBelief>, Option<Verifier>) {
    let state = read_state(project);
    let verifier = state.as_ref().map(|state| state.verifier);
    (believed_standings(project, state), verifier)
}

fn read_state(project: &Project) -> Option<RouterState> {
    let book = routing::score_book(project);
    match book.read() {
        Ok(kept) => kept.state,
        Err(error) => {
            report::print_line(format_args!("warning: `{}`: {error}", book.path().display()));
            None
        }
    }
}

impl ArmBelief {
    pub(in crate::commands) fn to_json(&self) -> Value {
        let ArmEstimate { quality, quality_range: [least, most], cost, tasks } = self.standing;
        let arm = self.arm.to_string();
        json!({
            "arm": arm, "kind": self.kind, "tasks": tasks, "quality": quality,
            "quality_least": least, "quality_most": most, "cost": cost,
        })
    }
}

/// Every arm at every type of task of which it has done some.
fn believed_standings(project: &Project, state: Option<RouterState>) -> Vec<ArmBelief> {
    let Some(state) = state else { return Vec::new() };
    let arms: Vec<ModelRef> = state.arms.iter().map(|saved| saved.arm.clone()).collect();
    let pairs: Vec<(ModelRef, TaskKind)> = state
        .arms
        .iter()
        .flat_map(|saved| {
            let done = saved.kinds.iter().filter(|(_, pair)| pair.tasks > 0);
            done.map(|(kind, _)| (saved.arm.clone(), kind.clone()))
        })
        .collect();
    let kept = routing::state_file::SavedScores {
        state: Some(state),
        ..routing::state_file::SavedScores::NONE
    };
    let router = memory::restore_router(&kept, &routing::published_arms(project, arms.iter()));
    let believed = pairs.into_iter().map(|(arm, kind)| {
        let standing = router.estimate_arm(&arm, &kind);
        ArmBelief { arm, kind, standing }
    });
    believed.collect()
}

async fn load_totals(project: &Project) -> Vec<Total> {
    let ledger = routing::ledger_to_look_at(project);
    ledger.daily_totals(0).await.unwrap_or_else(|error| {
        report::print_line(format_args!("warning: {}", error.sentence));
        Vec::new()
    })
}

/// Returns the cost if each arm alone had done all the work, cheapest first, in micro-dollars: its own real cost,
/// plus the tokens of the others at its price. It assumes that what was cached for the others would have been
/// cached for it as well.
fn shadow_costs(totals: &[Total], prices: &[(ModelRef, Price)]) -> Vec<(ModelRef, u64)> {
    let alone = |(arm, price): &(ModelRef, Price)| {
        let cost = totals.iter().map(|Total { arm: by, amount, .. }| {
            if by == arm { amount.micro_usd } else { cost_at_price(price, amount) }
        });
        (arm.clone(), cost.fold(0, u64::saturating_add))
    };
    let mut all: Vec<(ModelRef, u64)> = prices.iter().map(alone).collect();
    sort::by_key(&mut all, |(_, micro_usd)| *micro_usd);
    all
}

/// Returns the cost of the tokens at another arm's price.
fn cost_at_price(price: &Price, amount: &Amount) -> u64 {
    let Amount { input, output, cached: cache_read, cache_write, .. } = *amount;
    let new = input.saturating_sub(cache_read).saturating_sub(cache_write);
    let usage = Usage { input: new, output, cache_read, cache_write, ..Usage::default() };
    // Where no price of a cache is known there is none, and all is read anew.
    let or_input = |cached: u64| if cached == 0 { price.input } else { cached };
    let (cache_read, cache_write) = (or_input(price.cache_read), or_input(price.cache_write));
    Price { cache_read, cache_write, ..*price }.cost_micro_usd(&usage)
}

fn render_stats(
    believed: &[ArmBelief],
    totals: &[Total],
    shadow: &[(ModelRef, u64)],
    unpriced: &BTreeSet<String>,
) -> String {
    let mut text = render_believed(believed, shadow);
    if totals.is_empty() {
        text.push_str("\nnothing spent yet\n");
        return text;
    }
    text.push('\n');
    text.push_str(&table::render_table(
        ["day", "calls", "read", "written", "spent"],
        day_rows(totals, unpriced),
    ));
    if !unpriced.is_empty() {
        let names: Vec<_> = unpriced.iter().map(String::as_str).collect();
        text.push_str("not counted, because the price is not known: ");
        text.push_str(&names.join(", "));
        text.push('\n');
    }
    if shadow.is_empty() {
        text.push_str("\nno price of a model is known, so nothing can be compared\n");
        return text;
    }
    text.push_str("\ncost of the same tokens with a single model:\n");
    let rows =
        shadow.iter().map(|(arm, micro_usd)| [format_money(*micro_usd as f64), arm.to_string()]);
    text.push_str(&table::render_table(["cost", "arm"], rows));
    text
}

fn render_believed(believed: &[ArmBelief], shadow: &[(ModelRef, u64)]) -> String {
    let rows = believed.iter().map(|ArmBelief { arm, kind, standing }| {
        let is_priced = shadow.iter().any(|(priced, _)| priced == arm);
        [
            standing.tasks.to_string(),
            kind.0.to_string(),
            format!("{:.0}%", standing.quality * 100.0),
            format_cost(standing.cost * MICRO, is_priced),
            arm.to_string(),
        ]
    });
    let mut text = table::render_table(["tasks", "type", "right", "expected", "arm"], rows);
    if believed.is_empty() {
        text.push_str("nothing learned yet\n");
    }
    text
}

/// A cost for people; it is unknown where no price is.
fn format_cost(micro_usd: f64, is_priced: bool) -> String {
    if is_priced { format_money(micro_usd) } else { "unknown".to_owned() }
}

/// A row for each of the last days, and one for all.
fn day_rows(totals: &[Total], unpriced: &BTreeSet<String>) -> Vec<[String; 5]> {
    // Each with whether a price of its calls is known.
    let mut by_day: BTreeMap<i32, (Amount, bool)> = BTreeMap::new();
    let mut sum = (Amount::default(), false);
    for Total { day, arm, amount } in totals {
        let is_priced = amount.micro_usd > 0 || !unpriced.contains(&arm.to_string());
        for (into, has_price) in [by_day.entry(*day).or_default(), &mut sum] {
            *has_price |= is_priced;
            into.requests = into.requests.saturating_add(amount.requests);
            into.input = into.input.saturating_add(amount.input);
            into.output = into.output.saturating_add(amount.output);
            into.micro_usd = into.micro_usd.saturating_add(amount.micro_usd);
        }
    }
    let row = |name: String, (amount, has_price): &(Amount, bool)| {
        let Amount { requests, input, output, micro_usd, .. } = *amount;
        [
            name,
            requests.to_string(),
            input.to_string(),
            output.to_string(),
            format_cost(micro_usd as f64, *has_price),
        ]
    };
    let shown = by_day.iter().rev().take(SHOWN_DAYS);
    let shown = shown.map(|(day, amount)| row(clock::utc_day(*day), amount));
    shown.chain([row("all".to_owned(), &sum)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arm(model: &str) -> ModelRef {
        ModelRef { provider: "p".into(), model: model.into() }
    }

    fn total(day: i32, model: &str, input: u64, micro_usd: u64) -> Total {
        let amount = Amount { requests: 1, input, micro_usd, ..Amount::default() };
        Total { day, arm: arm(model), amount }
    }

    #[test]
    fn single_model_baseline_reprices_tokens_of_other_models() {
        let dear = Price {
            input: 10_000_000,
            output: 50_000_000,
            cache_read: 1_000_000,
            cache_write: 12_000_000,
        };
        let cheap = Price { input: 1_000_000, output: 4_000_000, ..Price::default() };
        let prices = [(arm("dear"), dear), (arm("cheap"), cheap)];
        let cached =
            Usage { input: 100, output: 10, cache_read: 900, cache_write: 50, ..Usage::default() };
        let plain = Usage { input: 333, output: 7, ..Usage::default() };
        let took = |usage: &Usage, price: &Price| gnoma_router::pool::used_amount(usage, price);
        let total = |day, model: &str, amount| Total { day, arm: arm(model), amount };
        let totals = [
            total(1, "dear", took(&cached, &dear)),
            total(1, "cheap", took(&plain, &cheap)),
            total(2, "cheap", took(&plain, &cheap)),
        ];
        let [(cheapest, on_cheap), (_, on_dear)] =
            shadow_costs(&totals, &prices).try_into().unwrap();
        assert_eq!(cheapest, arm("cheap"));
        assert_eq!(on_dear, dear.cost_micro_usd(&cached) + 2 * dear.cost_micro_usd(&plain));
        // It has no cache: what the other had there is read anew.
        let anew = Usage { input: 1_050, output: 10, ..Usage::default() };
        assert_eq!(on_cheap, cheap.cost_micro_usd(&anew) + 2 * cheap.cost_micro_usd(&plain));
    }

    #[test]
    fn calls_of_unknown_price_are_named() {
        let price = Price { input: 1_000_000, ..Price::default() };
        let totals = [total(1, "known", 5, 5), total(1, "unknown", 5, 0), total(2, "free", 5, 0)];
        let prices = [(arm("known"), price), (arm("free"), Price::default())];
        let unpriced = unpriced_arms(&totals, &prices);
        assert_eq!(unpriced.iter().collect::<Vec<_>>(), ["p/unknown"]);
        let shown = render_stats(&[], &totals, &shadow_costs(&totals, &prices), &unpriced);
        assert!(
            shown.contains("not counted, because the price is not known: p/unknown\n"),
            "{shown}"
        );
        let totals = [total(1, "unknown", 5, 0), total(2, "free", 5, 0)];
        let spent = day_rows(&totals, &unpriced).into_iter().map(|[.., spent]| spent);
        assert_eq!(spent.collect::<Vec<_>>(), ["$0.00", "unknown", "$0.00"]);
    }

    #[test]
    fn days_are_summed_over_arms_the_latest_first() {
        let totals = [total(1, "a", 5, 1), total(2, "a", 5, 1), total(2, "b", 5, 1)];
        let rows = day_rows(&totals, &BTreeSet::new());
        let shown: Vec<_> = rows.iter().map(|row| (row[0].as_str(), row[1].as_str())).collect();
        assert_eq!(shown, [("1970-01-03", "2"), ("1970-01-02", "1"), ("all", "3")]);
    }
}
