//! `gnoma route`: which model would do a task, and why. Nobody is asked.

use anyhow::Result;
use gnoma_core::{json_value::json, session::Routing};
use gnoma_host::{
    HostError,
    preview::{self, Preview},
    routing::roster::UnusableModel,
};

use super::common::{open_project, print_json, print_stored_text};
use crate::{
    args::{RouteArgs, TurnArgs},
    environment::ProcessEnvironment,
    report::{self, Exit},
};

pub(super) async fn run(
    what: &RouteArgs,
    args: &TurnArgs,
    around: &ProcessEnvironment,
) -> Result<Exit> {
    let words = what.words.join(" ");
    if words.trim().is_empty() {
        let text = "no task given; try `gnoma route \"why does the parser crash?\"`";
        return Err(HostError::usage(text).into());
    }
    let project = open_project(args, around)?;
    let Preview { routing, left } = preview::preview_route(&project, &words, what.seed).await?;
    match (routing, what.json) {
        (Ok(routing), false) => print_stored_text(&render_routing(&routing, &left)),
        (Ok(routing), true) => {
            print_json(&json!({ "routing": routing, "left": excluded_lines(&left) }))
        }
        (Err(reasons), false) => {
            report::print_line("gnoma: no model is available for this");
            reasons.into_iter().chain(excluded_lines(&left)).for_each(report::print_line);
            Ok(Exit::Failed)
        }
        (Err(reasons), true) => {
            let left = excluded_lines(&left);
            print_json(&json!({ "error": { "reasons": reasons }, "left": left }))?;
            Ok(Exit::Failed)
        }
    }
}

fn render_routing(routing: &Routing, left: &[UnusableModel]) -> String {
    let Routing { kind, complexity, strategy, candidates, .. } = routing;
    let judge = routing.judge();
    let head = format!("{kind}, difficulty {complexity} of 100, judged by {judge} · {strategy}");
    let all = std::iter::once(head).chain(candidates.iter().cloned()).chain(excluded_lines(left));
    all.map(|line| format!("{line}\n")).collect()
}

fn excluded_lines(left: &[UnusableModel]) -> Vec<String> {
    left.iter().map(|UnusableModel { name, why }| format!("{name}: {why}")).collect()
}
