//! `gnoma router pools`: limits, how much of them is used, and which models rest.

use std::time::Duration;

use anyhow::Result;
use gnoma_core::{
    duration,
    json_value::json,
    ledger::{Level, Unit, Window},
};
use gnoma_engine::Routes;
use gnoma_router::{health::RestingTarget, pool::Pool};
use serde_json::Value;

use super::money::format_money;
use gnoma_host::{Project, clock, preview, project_history::refuse_in_incognito, routing};

use crate::{
    commands::common::{print_json, print_stored_text},
    report::{self, Exit},
    table,
};

const NONE: &str =
    "no limits are set or known; set some with `[router.caps]` and `[rate_limits.NAME]`\n";
const MONEY_MISSING: &str = "\nnot all spending could be recovered from a damaged ledger, so \
     model calls under a spending cap are denied; to accept the totals above: gnoma router pools \
     --accept-loss\n";
const SECOND_MS: u64 = 1_000;

pub(super) async fn run(
    project: &Project,
    redates: bool,
    accepts_loss: bool,
    json: bool,
) -> Result<Exit> {
    if accepts_loss {
        accept_loss(project).await?;
    }
    if redates {
        redate_ledger(project).await?;
    }
    let ready = preview::prepare_preview(project, None).await?;
    let levels = preview::limit_levels(project, &ready.routes).await;
    let now_ms = clock::now_ms();
    let rests =
        ready.routes.with_state(|state| state.tracker.vitals.health.resting_targets(now_ms));
    let money_missing = routing::ledger_to_look_at(project).lacks_money().await.unwrap_or(false);
    if json {
        let rests: Vec<_> = rests.iter().map(|rest| resting_to_json(rest, now_ms)).collect();
        return print_json(&json!({
            "limits": levels,
            "told": provider_limits_json(&ready.routes),
            "resting": rests,
            "money_missing": money_missing,
        }));
    }
    let mut text = if levels.is_empty() {
        NONE.to_owned()
    } else {
        let rows = levels.iter().map(|level| level_row(level, now_ms));
        table::render_table(["pool", "limit", "used", "in flight", "resets", "source"], rows)
    };
    if !rests.is_empty() {
        let rows = rests.iter().map(|rest| resting_row(rest, now_ms));
        text.push('\n');
        text.push_str(&table::render_table(["resting", "time left", "because it failed"], rows));
    }
    if money_missing {
        text.push_str(MONEY_MISSING);
    }
    print_stored_text(&text)
}

/// Counts as taken now what a clock that was wrongly ahead dated in the future: it would keep limits
/// full until then. Asked for by hand, since only a person knows which clock was right.
async fn redate_ledger(project: &Project) -> Result<()> {
    refuse_in_incognito(project, "router pools --redate")?;
    let moved = routing::ledger_to_look_at(project).redate(clock::now_ms()).await?;
    let (calls, count) = if moved == 1 { ("call was", "counts") } else { ("calls were", "count") };
    report::print_line(format_args!("{moved} {calls} dated in the future and {count} as made now"));
    Ok(())
}

/// Continues with what was left of a damaged ledger. A person must ask for it, since the missing part was their money.
async fn accept_loss(project: &Project) -> Result<()> {
    refuse_in_incognito(project, "router pools --accept-loss")?;
    report::print_line(match routing::profile_ledger(project).accept_loss().await? {
        true => "limits count what is listed below from now on",
        false => "nothing is missing: no ledger was damaged, or you accepted the loss before",
    });
    Ok(())
}

fn level_row(level: &Level, now_ms: i64) -> [String; 6] {
    let Level { pool, limit, used, held, resets_at_ms } = level;
    let parsed = Pool::parse(pool);
    // What a provider told holds for one arm; all else is in the settings.
    let by = if matches!(parsed, Some(Pool::Arm(_))) { "its provider" } else { "you" };
    let (pool, is_each) = match parsed {
        Some(Pool::Turn(_)) => ("each turn".to_owned(), true),
        Some(Pool::Session(_)) => ("each session".to_owned(), true),
        Some(pool) => (pool.display_name(), false),
        None => (pool.clone(), false),
    };
    let amount = |amount: u64| match limit.unit {
        Unit::MicroUsd => format_money(amount as f64),
        Unit::Requests
        | Unit::Input
        | Unit::Output
        | Unit::Tokens
        | Unit::AllInput
        | Unit::AllTokens => amount.to_string(),
    };
    let most = format!("{} {}", amount(limit.most), describe_limit_unit(limit.unit, limit.window));
    let anew = match (limit.window, resets_at_ms) {
        (Window::Rolling { .. }, _) => "as time goes by".to_owned(),
        (Window::Day | Window::Month | Window::Ever, Some(at_ms)) => {
            format!("in {}", format_time_left(at_ms.saturating_sub(now_ms)))
        }
        (Window::Day | Window::Month | Window::Ever, None) if is_each => "with the next".to_owned(),
        (Window::Day | Window::Month | Window::Ever, None) => "never".to_owned(),
    };
    let most = most.trim_end().to_owned();
    [pool, most, amount(*used), amount(*held), anew, by.to_owned()]
}

fn resting_row(rest: &RestingTarget, now_ms: i64) -> [String; 3] {
    let RestingTarget { name, kind, until_ms, times } = rest;
    let times = if *times > 1 { format!(", {times} times") } else { String::new() };
    [name.clone(), format_time_left(until_ms.saturating_sub(now_ms)), format!("{kind}{times}")]
}

fn resting_to_json(rest: &RestingTarget, now_ms: i64) -> Value {
    let RestingTarget { name, kind, until_ms, times } = rest;
    json!({
        "name": name,
        "kind": kind,
        "until_ms": until_ms,
        "left_ms": until_ms.saturating_sub(now_ms),
        "times": times,
    })
}

/// Returns the limits that providers have reported, by arm, with the time of each report.
fn provider_limits_json(routes: &Routes) -> Vec<Value> {
    let arms = routes.arms();
    routes.with_state(|state| {
        let limits = &state.tracker.vitals.limits;
        let arms = arms.iter().map(|arm| (&arm.id, limits.known_limits(&arm.id)));
        arms.filter(|(_, told)| !told.is_empty())
            .map(|(arm, told)| json!({ "arm": arm.to_string(), "limits": told }))
            .collect()
    })
}

/// `9m 58s`; the past is `0s`.
fn format_time_left(ms: i64) -> String {
    duration::format_duration(Duration::from_secs(u64::try_from(ms / 1_000).unwrap_or_default()))
}

fn describe_limit_unit(unit: Unit, window: Window) -> String {
    let what = match unit {
        Unit::Requests => "requests ",
        Unit::Input | Unit::AllInput => "tokens read ",
        Unit::Output => "tokens written ",
        Unit::Tokens | Unit::AllTokens => "tokens ",
        Unit::MicroUsd => "",
    };
    let per = match window {
        Window::Rolling { ms: SECOND_MS } => "a second".to_owned(),
        Window::Rolling { ms: 60_000 } => "a minute".to_owned(),
        Window::Rolling { ms } => {
            format!("in {}", duration::format_duration(Duration::from_millis(ms)))
        }
        Window::Day => "a day".to_owned(),
        Window::Month => "a month".to_owned(),
        Window::Ever => String::new(),
    };
    format!("{what}{per}")
}

#[cfg(test)]
mod tests {
    use gnoma_core::ledger::Limit;

    use super::*;

    #[test]
    fn rate_limit_row_uses_the_unit_of_the_limit() {
        let level = |unit, window, most| Level {
            pool: "rates:mistral".to_owned(),
            limit: Limit { unit, window, most },
            used: 2,
            held: 1,
            resets_at_ms: Some(2 * 3_600_000),
        };
        let minute = Window::Rolling { ms: 60_000 };
        let row_of = |level: &Level| level_row(level, 0).join("|");
        assert_eq!(
            row_of(&level(Unit::Tokens, minute, 50_000)),
            "mistral|50000 tokens a minute|2|1|as time goes by|you"
        );
        assert_eq!(
            row_of(&level(Unit::MicroUsd, Window::Day, 5_000_000)),
            "mistral|$5.00 a day|$0.0000|$0.0000|in 2h|you"
        );
    }

    #[test]
    fn time_left_is_formatted_in_hours_minutes_and_seconds() {
        let all = [-5, 59_999, 598_000, 7_380_000].map(format_time_left);
        assert_eq!(all, ["0s", "59s", "9m 58s", "2h 3m"]);
    }
}
