//! `gnoma router stats`: what is believed of each arm, what was spent, and what one arm alone would
//! have cost.

use std::collections::BTreeMap;

use anyhow::Result;
use gnoma_core::{
    ModelRef, Price, Usage,
    ledger::{Amount, Total},
};
use gnoma_router::{Kind, Standing, State};
use serde_json::{Value, json};

use super::{Ground, MICRO, money};
use crate::{
    clock,
    commands::{print_json, show},
    report::{self, Exit},
    routing::{self, memory},
    table,
};

/// Days that are shown one by one; earlier ones are in the sum.
const SHOWN_DAYS: usize = 14;
const DAY_MS: i64 = 86_400_000;

pub(super) async fn run(ground: &Ground<'_>, json: bool) -> Result<Exit> {
    let book = routing::book(&ground.loaded, ground.around);
    let state = match book.read() {
        Ok(kept) => kept.state,
        Err(error) => {
            report::say(format_args!("warning: `{}`: {error}", book.path().display()));
            None
        }
    };
    let believed = believed(ground, state);
    let totals = totals(ground).await;
    let prices: Vec<(ModelRef, Price)> = routing::prices(ground, &totals);
    let shadow = shadow(&totals, &prices);
    if json {
        return print_json(&json!({
            "believed": believed.iter().map(Believed::to_json).collect::<Vec<_>>(),
            "spent": totals,
            "had_one_done_all": shadow.iter().map(|(arm, micro_usd)| {
                json!({ "arm": arm.to_string(), "micro_usd": *micro_usd as u64 })
            }).collect::<Vec<_>>(),
        }));
    }
    show(&text(&believed, &totals, &shadow))
}

/// What is believed of an arm at a type of task.
struct Believed {
    arm: ModelRef,
    kind: Kind,
    standing: Standing,
}

impl Believed {
    fn to_json(&self) -> Value {
        let Standing { quality, cost, tasks } = self.standing;
        let arm = self.arm.to_string();
        json!({ "arm": arm, "kind": self.kind, "tasks": tasks, "quality": quality, "cost": cost })
    }
}

/// Every arm at every type of task of which it has done some.
fn believed(ground: &Ground<'_>, state: Option<State>) -> Vec<Believed> {
    let Some(state) = state else { return Vec::new() };
    let arms: Vec<ModelRef> = state.arms.iter().map(|saved| saved.arm.clone()).collect();
    let pairs: Vec<(ModelRef, Kind)> = state
        .arms
        .iter()
        .flat_map(|saved| {
            let done = saved.kinds.iter().filter(|(_, pair)| pair.tasks > 0);
            done.map(|(kind, _)| (saved.arm.clone(), kind.clone()))
        })
        .collect();
    let kept = routing::state_file::Kept { state: Some(state), ..routing::state_file::Kept::NONE };
    let router = memory::router(&kept, &routing::known(ground, arms.iter()));
    let believed = pairs.into_iter().map(|(arm, kind)| {
        let standing = router.standing(&arm, &kind);
        Believed { arm, kind, standing }
    });
    believed.collect()
}

async fn totals(ground: &Ground<'_>) -> Vec<Total> {
    // Looking makes no file.
    if !routing::has_ledger(&ground.loaded, ground.around) {
        return Vec::new();
    }
    let ledger = routing::ledger(&ground.loaded, ground.around);
    ledger.totals(0).await.unwrap_or_else(|error| {
        report::say(format_args!("warning: {}", error.sentence));
        Vec::new()
    })
}

/// What each arm alone would have cost, cheapest first, in micro-dollars: all tokens at its price, with
/// the same part off for caches as was had in truth.
fn shadow(totals: &[Total], prices: &[(ModelRef, Price)]) -> Vec<(ModelRef, f64)> {
    let price_of =
        |arm: &ModelRef| prices.iter().find(|(known, _)| known == arm).map(|(_, price)| price);
    let (mut spent, mut listed) = (0.0, 0.0);
    for total in totals {
        if let Some(price) = price_of(&total.arm) {
            spent += total.amount.micro_usd as f64;
            listed += price.of(&tokens(&total.amount)) as f64;
        }
    }
    let share = if listed > 0.0 { spent / listed } else { 1.0 };
    let mut all: Vec<(ModelRef, f64)> = prices
        .iter()
        .map(|(arm, price)| {
            let listed: f64 =
                totals.iter().map(|total| price.of(&tokens(&total.amount)) as f64).sum();
            (arm.clone(), listed * share)
        })
        .collect();
    all.sort_by(|(_, left), (_, right)| left.total_cmp(right));
    all
}

fn tokens(amount: &Amount) -> Usage {
    Usage { input: amount.input, output: amount.output, ..Usage::default() }
}

fn text(believed: &[Believed], totals: &[Total], shadow: &[(ModelRef, f64)]) -> String {
    let mut text = String::new();
    let rows = believed.iter().map(|Believed { arm, kind, standing }| {
        [
            standing.tasks.to_string(),
            kind.0.to_string(),
            format!("{:.0} %", standing.quality * 100.0),
            money(standing.cost * MICRO),
            arm.to_string(),
        ]
    });
    text.push_str(&table::lines(["tasks", "type", "right", "cost", "arm"], rows));
    if believed.is_empty() {
        text.push_str("nothing was learnt yet\n");
    }
    if totals.is_empty() {
        text.push_str("\nnothing was spent yet\n");
        return text;
    }
    text.push('\n');
    text.push_str(&table::lines(["day", "calls", "read", "written", "cost"], days(totals)));
    text.push_str("\nhad one arm done it all, with the same part read from caches:\n");
    let rows = shadow.iter().map(|(arm, micro_usd)| [money(*micro_usd), arm.to_string()]);
    text.push_str(&table::lines(["cost", "arm"], rows));
    text
}

/// A row for each of the last days, and one for all.
fn days(totals: &[Total]) -> Vec<[String; 5]> {
    let mut by_day: BTreeMap<i32, Amount> = BTreeMap::new();
    let mut sum = Amount::default();
    for Total { day, amount, .. } in totals {
        for into in [by_day.entry(*day).or_default(), &mut sum] {
            into.requests = into.requests.saturating_add(amount.requests);
            into.input = into.input.saturating_add(amount.input);
            into.output = into.output.saturating_add(amount.output);
            into.micro_usd = into.micro_usd.saturating_add(amount.micro_usd);
        }
    }
    let row = |name: String, amount: &Amount| {
        let Amount { requests, input, output, micro_usd, .. } = *amount;
        [name, requests.to_string(), input.to_string(), output.to_string(), money(micro_usd as f64)]
    };
    let shown = by_day.iter().rev().take(SHOWN_DAYS);
    let shown = shown.map(|(day, amount)| row(clock::date(i64::from(*day) * DAY_MS), amount));
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
    fn all_on_one_arm_has_the_part_from_caches_that_there_was() {
        let price = |input| Price { input, ..Price::default() };
        let prices = [(arm("dear"), price(10_000_000)), (arm("cheap"), price(1_000_000))];
        // Half of what the list says was paid.
        let totals =
            [total(1, "dear", 1_000_000, 5_000_000), total(2, "cheap", 1_000_000, 500_000)];
        let shadow = shadow(&totals, &prices);
        assert_eq!(shadow[0].0, arm("cheap"));
        assert!(
            (shadow[0].1 - 1_000_000.0).abs() < 1.0 && (shadow[1].1 - 10_000_000.0).abs() < 1.0
        );
    }

    #[test]
    fn days_are_summed_over_arms_the_latest_first() {
        let rows = days(&[total(1, "a", 5, 1), total(2, "a", 5, 1), total(2, "b", 5, 1)]);
        let shown: Vec<_> = rows.iter().map(|row| (row[0].as_str(), row[1].as_str())).collect();
        assert_eq!(shown, [("1970-01-03", "2"), ("1970-01-02", "1"), ("all", "3")]);
    }
}
