//! `gnoma router arms`: the models to choose from, and what is known about each.

use std::sync::Arc;

use anyhow::Result;
use gnoma_core::{Price, json_value::json, ledger::Level};
use gnoma_engine::Routes;
use gnoma_llm::catalogue;
use gnoma_router::{
    Arm,
    choice::expected_amount,
    pool::{self, Scope},
    vitals::Speed,
};
use serde_json::Value;

use super::money::MICRO;
use gnoma_host::{
    HostError, Project, clock, preview,
    routing::{self, PreparedRoutes, roster::UnusableModel},
};

use crate::{
    commands::common::{print_json, print_stored_text},
    report::Exit,
    table,
};

/// An older catalogue has wrong prices.
const STALE_DAYS: u32 = 120;

/// An arm with the reason why it cannot be asked now; `None` if it can.
type ListedArm = (Arc<Arm>, Option<String>);

pub(super) async fn run(project: &Project, name: Option<&str>, json: bool) -> Result<Exit> {
    let mut ready = preview::prepare_preview(project, None).await?;
    ready.discover_once().await;
    for failure in &mut ready.unlisted {
        *failure = project.firewall.redact_text(failure).into_owned();
    }
    let levels = preview::limit_levels(project, &ready.routes).await;
    let all = ready.routes.arms();
    let meant = all.iter().filter(|arm| is_meant(arm, name));
    let arms: Vec<ListedArm> =
        meant.map(|arm| (arm.clone(), barred_reason(&ready.routes, arm, &levels))).collect();
    if let (Some(name), true) = (name, arms.is_empty()) {
        let text = format!("no model has `{name}` in its name; `gnoma models` lists all");
        return Err(HostError::usage(text).into());
    }
    let age_days = catalogue::age_days(routing::current_day(project));
    if json {
        return print_json(&list_to_json(&ready, &arms, age_days));
    }
    print_stored_text(&render_list(&ready, &arms, age_days))
}

fn list_to_json(ready: &PreparedRoutes, arms: &[ListedArm], age_days: u32) -> Value {
    let arms = arms.iter().map(|(arm, barred)| arm_to_json(arm, &ready.routes, barred.as_deref()));
    let left = ready.left.iter();
    let left = left.map(|UnusableModel { name, why }| json!({ "name": name, "why": why }));
    let (arms, left): (Vec<Value>, Vec<Value>) = (arms.collect(), left.collect());
    let unlisted = &ready.unlisted;
    json!({ "arms": arms, "left": left, "unlisted": unlisted, "catalogue_age_days": age_days })
}

fn render_list(ready: &PreparedRoutes, arms: &[ListedArm], age_days: u32) -> String {
    let rows = arms.iter().map(|(arm, barred)| {
        let state = if barred.is_some() { "not now" } else { "ready" };
        [
            arm.id.to_string(),
            describe_price(arm.price),
            describe_window(arm.context_window),
            state.to_owned(),
            describe_speed(speed_of(&ready.routes, arm)),
            describe_abilities(arm),
        ]
    });
    let head = ["model", "$/M in, out", "window", "state", "speed seen", "can"];
    let mut text = table::render_table(head, rows);
    for (arm, barred) in arms {
        let Some(why) = barred else { continue };
        let name = arm.id.to_string();
        // The reason why a model rests begins with its name.
        let is_named = why.starts_with(&name);
        text.push_str(&if is_named { format!("{why}\n") } else { format!("{name}: {why}\n") });
    }
    for UnusableModel { name, why } in &ready.left {
        text.push_str(&format!("{name}: {why}\n"));
    }
    for failure in &ready.unlisted {
        text.push_str(&format!("no list of models from {failure}\n"));
    }
    text.extend(stale_catalogue_warning(age_days));
    text
}

fn speed_of(routes: &Routes, arm: &Arm) -> Option<Speed> {
    routes.with_state(|state| state.tracker.vitals.speeds.for_arm(&arm.id))
}

fn is_meant(arm: &Arm, name: Option<&str>) -> bool {
    let wanted = name.unwrap_or_default().to_lowercase();
    arm.id.to_string().to_lowercase().contains(&wanted)
}

/// Returns the reason why an arm cannot be asked now; `None` if it can.
fn barred_reason(routes: &Routes, arm: &Arm, levels: &[Level]) -> Option<String> {
    let now_ms = clock::now_ms();
    let (own, rests) = routes
        .with_state(|state| (state.draws(arm, &Scope::new("")), state.unavailability(arm, now_ms)));
    let is_own = |level: &&Level| own.iter().any(|draw| draw.pool == level.pool);
    let levels: Vec<Level> = levels.iter().filter(is_own).cloned().collect();
    let call = expected_amount(arm, 0, None, now_ms);
    rests
        .map(|(why, _)| why)
        .or_else(|| pool::refusal_reason(&levels, &call, now_ms, clock::local_time_zone))
}

fn stale_catalogue_warning(age_days: u32) -> Option<String> {
    (age_days > STALE_DAYS).then(|| {
        format!(
            "the model catalogue is {age_days} days old and prices may have changed; update gnoma, or correct it with `[[arms]]` or `router.catalogue`\n"
        )
    })
}

fn describe_price(price: Option<Price>) -> String {
    let dollars = |micro: u64| micro as f64 / MICRO;
    match price {
        None => "unknown".to_owned(),
        Some(price) if price.is_free() => "free".to_owned(),
        Some(price) => format!("{:.2}, {:.2}", dollars(price.input), dollars(price.output)),
    }
}

/// `0.8 s, 54/s`: until the first token, and tokens a second from then on.
fn describe_speed(seen: Option<Speed>) -> String {
    let Some(Speed { first_seconds, tokens_per_second, .. }) = seen else {
        return "not yet".to_owned();
    };
    if tokens_per_second > 0.0 {
        format!("{first_seconds:.1} s, {tokens_per_second:.0}/s")
    } else {
        format!("{first_seconds:.1} s")
    }
}

fn describe_window(tokens: Option<u32>) -> String {
    tokens.map_or_else(|| "unknown".to_owned(), |tokens| format!("{}k", tokens / 1_000))
}

fn describe_abilities(arm: &Arm) -> String {
    let all = [
        ("tools", arm.tools),
        ("pictures", arm.vision),
        ("thinking", arm.thinking),
        ("schema", arm.structured_output),
        ("local", arm.stays_here),
    ];
    let can: Vec<_> = all.into_iter().filter(|(_, can)| *can).map(|(name, _)| name).collect();
    can.join(" ")
}

fn arm_to_json(arm: &Arm, routes: &Routes, barred: Option<&str>) -> Value {
    json!({
        "arm": arm.id.to_string(),
        "price_micro_usd_per_million": arm.price,
        "context_window": arm.context_window,
        "max_output_tokens": arm.max_output_tokens,
        "tools": arm.tools,
        "vision": arm.vision,
        "thinking": arm.thinking,
        "structured_output": arm.structured_output,
        "local": arm.stays_here,
        "pools": arm.pools,
        "cost_weight": arm.cost_weight,
        "speed_seen": speed_of(routes, arm),
        "barred": barred,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stale_model_catalogue_shows_a_warning() {
        assert_eq!(stale_catalogue_warning(STALE_DAYS), None);
        assert!(
            stale_catalogue_warning(STALE_DAYS + 1)
                .is_some_and(|note| note.contains("121 days old"))
        );
    }
}
