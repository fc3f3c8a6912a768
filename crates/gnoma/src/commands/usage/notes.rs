//! The sentences under a report's numbers: unknown prices, missing details, damage, caps. Pure.

use gnoma_core::ledger::Window;
use gnoma_host::{
    clock,
    usage::{CapForecast, RepricedUsage, SavedRange, Savings},
};
use gnoma_router::pool::Pool;

use super::view::{Currency, UsageView, count_calls};

/// The sentence about a ledger of which a part is lost.
pub(super) const INCOMPLETE: &str = "the ledger was damaged, and not all spending could be recovered: more may have \
     been spent than is shown; `gnoma router pools --accept-loss` accepts what is left";

/// Writes the sentences under a report.
pub(super) fn note_sentences(view: &UsageView<'_>) -> Vec<String> {
    let report = view.report;
    let total = &report.total;
    let mut notes = describe_missing_numbers(view);
    let details = total.details().unwrap_or_default();
    for (count, what) in [
        (details.estimated_calls, "broke off as gnoma was killed; what was reserved is counted"),
        (details.failovers, "failed, and another model took over"),
    ] {
        if count > 0 {
            notes.push(format!("{} {what}", count_calls(count)));
        }
    }
    let amount = |micro_usd| view.format_money(micro_usd, true);
    let repriced = report.repriced.iter();
    notes.extend(repriced.map(|repriced| describe_repriced(repriced, total.cost(), &amount)));
    notes.extend(describe_savings(&report.savings, &amount));
    let time = |at_ms| clock::time_near(at_ms, view.now_ms);
    let is_partial = total.unpriced_calls() > 0;
    notes.extend(report.caps.iter().map(|cap| describe_cap(cap, is_partial, &time, &amount)));
    notes.extend(view.currency.as_ref().map(|Currency { code, dollars }| {
        format!("1 {code} = ${dollars}, by your `router.exchange.{code}`")
    }));
    notes
}

/// Writes a sentence for each number that the report lacks or that the ledger has wrong.
fn describe_missing_numbers(view: &UsageView<'_>) -> Vec<String> {
    let report = view.report;
    let total = &report.total;
    let mut notes = Vec::new();
    if report.lacks_money {
        notes.push(INCOMPLETE.to_owned());
    }
    if total.unpriced_calls() > 0 {
        let calls = count_calls(total.unpriced_calls());
        notes.push(match total.cost() {
            Some(_) => format!("{calls} without a known price: the cost does not include them"),
            None => format!("{calls} without a known price: the cost is unknown"),
        });
    }
    if total.unrecorded_calls > 0 {
        let calls = count_calls(total.unrecorded_calls);
        notes.push(format!(
            "{calls} of which the ledger has only the UTC day and the model: older than its details, forgotten, or lost with a damaged ledger"
        ));
    }
    if report.damaged.count > 0 {
        notes.push(describe_damage(view));
    }
    if report.exceeded_sums > 0 {
        let count = report.exceeded_sums;
        notes.push(format!(
            "{count} daily sums of the ledger are smaller than the calls recorded for them; the calls are shown"
        ));
    }
    if report.future_calls > 0 {
        notes.push(describe_future_calls(report.future_calls, report.begin_ms.is_some()));
    }
    notes
}

/// `as p/m: $1.20 to $3.40, depending on its cache, instead of $2.10; …`. `cost`: what the calls cost.
fn describe_repriced(
    repriced: &RepricedUsage,
    cost: Option<u64>,
    usd: &dyn Fn(u64) -> String,
) -> String {
    let RepricedUsage { arm, least, most, left_out_calls, is_same_model } = repriced;
    let range = if least == most {
        usd(*least)
    } else {
        format!("{} to {}, depending on its cache,", usd(*least), usd(*most))
    };
    let cost = cost.map_or_else(|| "an unknown cost".to_owned(), usd);
    let tokenizer = if *is_same_model {
        ""
    } else {
        "; tokens are those that were counted, and its tokenizer may count a third more or fewer"
    };
    let left_out = if *left_out_calls == 0 {
        String::new()
    } else {
        format!("; {} without a known price left out", count_calls(*left_out_calls))
    };
    format!("as {arm}: {range} instead of {cost}, at today's price{left_out}{tokenizer}")
}

/// Writes a sentence for each of caches, routing and checks that saved or cost something.
fn describe_savings(savings: &Savings, usd: &dyn Fn(u64) -> String) -> Vec<String> {
    let Savings { cache, dearest, routing, elfs, checks } = savings;
    let mut notes = Vec::new();
    if *cache != 0 {
        let saved = describe_saved(SavedRange { least: *cache, most: *cache }, usd);
        notes.push(format!("caches of providers {saved}, at today's prices"));
    }
    if let Some(dearest) = dearest {
        let saved = describe_saved(*routing, usd);
        let elfs = match *elfs {
            SavedRange { least: 0, most: 0 } => String::new(),
            elfs => format!(" (of it, elfs {})", describe_saved(elfs, usd)),
        };
        notes.push(format!(
            "routing {saved}{elfs} compared with {dearest} for everything, depending on its cache and its tokenizer, \
             which may count a third more or fewer"
        ));
    }
    if *checks > 0 {
        notes.push(format!("reviews of work by models cost {}", usd(*checks)));
    }
    notes
}

/// `saved $1.20 to $3.40`.
fn describe_saved(SavedRange { least, most }: SavedRange, usd: &dyn Fn(u64) -> String) -> String {
    let [low, high] = [least, most].map(|amount| usd(amount.unsigned_abs()));
    match (least >= 0, most >= 0) {
        (true, _) if least == most => format!("saved {low}"),
        (true, _) => format!("saved {low} to {high}"),
        (false, true) => format!("saved up to {high} or cost up to {low} more"),
        (false, false) if least == most => format!("cost {low} more"),
        (false, false) => format!("cost {high} to {low} more"),
    }
}

/// `2 calls are dated in the future and left out; …`.
fn describe_future_calls(count: u64, are_left_out: bool) -> String {
    let (are, them) = if count == 1 { ("is", "it") } else { ("are", "them") };
    let left_out = if are_left_out { " and left out" } else { "" };
    format!(
        "{} {are} dated in the future{left_out}; `gnoma router pools --redate` counts {them} as made now",
        count_calls(count)
    )
}

fn describe_damage(view: &UsageView<'_>) -> String {
    let damaged = &view.report.damaged;
    let rows = if damaged.count == 1 { "1 row" } else { &format!("{} rows", damaged.count) };
    let named = damaged.first.iter().map(|row| {
        let number =
            row.number.map_or("unknown number".to_owned(), |number| format!("call {number}"));
        match row.at_ms {
            Some(at_ms) => format!("{number} of {}", clock::time_near(at_ms, view.now_ms)),
            None => number,
        }
    });
    let named: Vec<String> = named.collect();
    let more = if damaged.count > named.len() as u64 { " and more" } else { "" };
    format!(
        "{rows} of the ledger cannot be read ({}{more}); what they took is in the sums, without details",
        named.join(", ")
    )
}

/// `day cap of $5.00: $2.10 used; at this rate $4.20 by 01:00`. `is_partial`: the price of some calls is not known.
/// `time` and `amount` write a time and money for people.
fn describe_cap(
    cap: &CapForecast,
    is_partial: bool,
    time: &dyn Fn(i64) -> String,
    amount: &dyn Fn(u64) -> String,
) -> String {
    let CapForecast { pool, window, most, used, ends_at_ms, expected, met_at_ms } = cap;
    let whose = match pool {
        Pool::Project(_) => "this project's ".to_owned(),
        Pool::Rates(name) => format!("{name}'s "),
        Pool::All | Pool::Turn(_) | Pool::Session(_) | Pool::Part(..) | Pool::Arm(_) => {
            String::new()
        }
    };
    let name = if *window == Window::Month { "month" } else { "day" };
    let (most_usd, used_usd) = (amount(*most), amount(*used));
    if is_partial && *used == 0 {
        return format!(
            "{whose}{name} cap of {most_usd}: how much is used is unknown; it does not count calls without a known \
             price"
        );
    }
    let end = time(*ends_at_ms);
    let begin = format!("{whose}{name} cap of {most_usd}: {used_usd} used");
    if used >= most {
        return format!("{begin}; it is reached, until {end}");
    }
    match (expected, met_at_ms) {
        (Some(expected), Some(met)) => format!(
            "{begin}; at this rate {} by {end}, so it will be reached at about {}",
            amount(*expected),
            time(*met)
        ),
        (Some(expected), None) => {
            format!("{begin}; at this rate {} by {end}", amount(*expected))
        }
        (None, _) => format!("{begin}; too early for a forecast to {end}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::router::money::format_money;

    fn usd(micro_usd: u64) -> String {
        format_money(micro_usd as f64)
    }

    #[test]
    fn repriced_usage_shows_cost_range_and_unpriced_calls() {
        let arm = gnoma_core::ModelRef { provider: "p".into(), model: "m".into() };
        let (least, most) = (1_200_000, 3_400_000);
        let repriced = RepricedUsage { arm, least, most, left_out_calls: 0, is_same_model: false };
        assert_eq!(
            describe_repriced(&repriced, Some(2_100_000), &usd),
            "as p/m: $1.20 to $3.40, depending on its cache, instead of $2.10, at today's price; tokens are those \
             that were counted, and its tokenizer may count a third more or fewer"
        );
        let same = RepricedUsage { least: 3_400_000, is_same_model: true, ..repriced };
        assert_eq!(
            describe_repriced(&same, None, &usd),
            "as p/m: $3.40 instead of an unknown cost, at today's price"
        );
        let partial = RepricedUsage { left_out_calls: 3, ..same };
        assert_eq!(
            describe_repriced(&partial, Some(300), &usd),
            "as p/m: $3.40 instead of $0.0003, at today's price; 3 calls without a known price left out"
        );
    }

    #[test]
    fn savings_say_what_they_are_compared_with() {
        let savings = Savings {
            cache: -40_000,
            dearest: Some(gnoma_core::ModelRef { provider: "p".into(), model: "m".into() }),
            routing: SavedRange { least: -1_000_000, most: 2_500_000 },
            elfs: SavedRange { least: 1_000_000, most: 2_000_000 },
            checks: 30_000,
        };
        assert_eq!(
            describe_savings(&savings, &usd),
            [
                "caches of providers cost $0.0400 more, at today's prices",
                "routing saved up to $2.50 or cost up to $1.00 more (of it, elfs saved $1.00 to $2.00) compared with p/m \
                 for everything, depending on its cache and its tokenizer, which may count a third more or fewer",
                "reviews of work by models cost $0.0300",
            ]
        );
        assert_eq!(describe_savings(&Savings::default(), &usd), [""; 0]);
    }

    #[test]
    fn future_dated_calls_are_explained_in_usage_notes() {
        let sentence = describe_future_calls(1, true);
        assert!(sentence.starts_with("1 call is dated in the future and left out; "), "{sentence}");
        assert!(describe_future_calls(2, false).starts_with("2 calls are dated in the future; "));
    }

    #[test]
    fn spending_cap_forecast_says_when_the_cap_is_reached() {
        let cap = CapForecast {
            pool: Pool::All,
            window: Window::Day,
            most: 5_000_000,
            used: 3_000_000,
            ends_at_ms: 86_400_000,
            expected: Some(6_000_000),
            met_at_ms: Some(72_000_000),
        };
        let say = |cap: &CapForecast| {
            describe_cap(cap, false, &|at_ms| format!("hour {}", at_ms / 3_600_000), &usd)
        };
        assert_eq!(
            say(&cap),
            "day cap of $5.00: $3.00 used; at this rate $6.00 by hour 24, so it will be reached at about hour 20"
        );
        let met = CapForecast { used: 5_000_000, ..cap.clone() };
        assert!(say(&met).ends_with("it is reached, until hour 24"), "{}", say(&met));
        let rates = CapForecast { pool: Pool::Rates("openai".into()), ..cap };
        assert!(say(&rates).starts_with("openai's day cap of $5.00: "), "{}", say(&rates));
        let early = CapForecast { expected: None, met_at_ms: None, ..cap };
        assert!(say(&early).contains("too early"), "{}", say(&early));
        let nothing = CapForecast { used: 0, ..early };
        let said = describe_cap(&nothing, true, &|_| String::new(), &usd);
        assert!(said.starts_with("day cap of $5.00: how much is used is unknown;"), "{said}");
    }
}
