//! `gnoma route`: which model would do a task, and why. Nobody is asked.

use anyhow::Result;
use gnoma_core::{
    ledger::{Draw, Ledger as _},
    session::Routing,
};
use gnoma_engine::{Routes, tokens};
use serde_json::json;

use super::{Ground, print_json, show};
use crate::{
    args::{RouteArgs, TurnArgs},
    clock,
    keeping::Begun,
    report::{self, Exit, Misuse},
    routing::{self, Ready, Wanted, roster::Left},
    surroundings::Surroundings,
};

pub(super) async fn run(what: &RouteArgs, args: &TurnArgs, around: &Surroundings) -> Result<Exit> {
    let words = what.words.join(" ");
    if words.trim().is_empty() {
        let text = "there is no task to route: say what you would ask, as in \
                    `gnoma route \"why does the parser crash?\"`";
        return Err(Misuse(text.to_owned()).into());
    }
    let ground = Ground::of(args, around)?;
    let mut ready = ready(&ground, args, what.seed).await?;
    ready.look().await;
    let levels = levels(&ground, &ready.routes).await;
    let routed = ready.routes.preview(&words, false, tokens::estimate(&words) as u64, &levels);
    let Ready { left, .. } = ready;
    match (routed, what.json) {
        (Ok(routing), false) => show(&text(&routing, &left)),
        (Ok(routing), true) => print_json(&json!({ "routing": routing, "left": lines(&left) })),
        (Err(reasons), false) => {
            report::say("gnoma: no model can do this");
            reasons.into_iter().chain(lines(&left)).for_each(report::say);
            Ok(Exit::Failed)
        }
        (Err(reasons), true) => {
            let left = lines(&left);
            print_json(&json!({ "error": { "reasons": reasons }, "left": left }))?;
            Ok(Exit::Failed)
        }
    }
}

/// The routes as a session in this folder would have them.
pub(super) async fn ready(
    ground: &Ground<'_>,
    args: &TurnArgs,
    seed: Option<u64>,
) -> Result<Ready> {
    let ready = routing::prepare(Wanted {
        args,
        around: ground.around,
        loaded: &ground.loaded,
        firewall: &ground.firewall,
        project: &ground.places.project,
        begun: Begun::default(),
        seed,
        grows: true,
    })
    .await?;
    if let Some(heard) = ready.routes.hear_others()
        && let Err(error) = heard.await
    {
        report::say(format_args!("warning: {error}"));
    }
    Ok(ready)
}

/// Where the limits stand; nothing is known where the ledger cannot be read, which is told.
pub(super) async fn levels(ground: &Ground<'_>, routes: &Routes) -> Vec<gnoma_core::ledger::Level> {
    let limited: Vec<Draw> =
        routes.limits().into_iter().filter(|draw| !draw.limits.is_empty()).collect();
    if limited.is_empty() {
        return Vec::new();
    }
    let ledger = routing::ledger_to_look_at(&ground.loaded, ground.around);
    ledger.levels(limited, clock::now_ms()).await.unwrap_or_else(|error| {
        report::say(format_args!("warning: {}", error.sentence));
        Vec::new()
    })
}

fn text(routing: &Routing, left: &[Left]) -> String {
    let Routing { kind, complexity, decided_by, strategy, candidates, .. } = routing;
    let head = format!("{kind}, {complexity} % ({decided_by}) · {strategy}");
    let all = std::iter::once(head).chain(candidates.iter().cloned()).chain(lines(left));
    all.map(|line| format!("{line}\n")).collect()
}

fn lines(left: &[Left]) -> Vec<String> {
    left.iter().map(|Left { name, why }| format!("{name}: {why}")).collect()
}
