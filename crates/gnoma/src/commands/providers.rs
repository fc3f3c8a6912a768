//! `gnoma providers`: what is configured, what answers, which models there are.

use anyhow::Result;
use gnoma_core::quantity::describe_count;
use gnoma_host::providers::{self, Answer, ProviderState};

use super::common::{open_project, print_safe_text};
use crate::{args::TurnArgs, environment::ProcessEnvironment, report::Exit};

/// Models named in a line.
const MAX_NAMED: usize = 4;

pub(crate) async fn run(args: &TurnArgs, around: &ProcessEnvironment) -> Result<Exit> {
    let providers = providers::query_providers(&open_project(args, around)?).await;
    print_safe_text(&providers.iter().map(render_provider_line).collect::<String>())
}

pub(crate) fn remove(name: &str, args: &TurnArgs, around: &ProcessEnvironment) -> Result<Exit> {
    print_safe_text(&format!(
        "{}\n",
        providers::remove_provider(&open_project(args, around)?, name)?
    ))
}

fn render_provider_line(ProviderState { name, is_default, state }: &ProviderState) -> String {
    let mark = if *is_default { '*' } else { ' ' };
    let state = match state {
        Answer::Unusable(why) => why.clone(),
        Answer::Models { url, models } => {
            let named = models.get(..MAX_NAMED).unwrap_or(models).join(", ");
            let more = if models.len() > MAX_NAMED { ", …" } else { "" };
            format!("ready at {url}, {}: {named}{more}", describe_count(models.len(), "model"))
        }
    };
    format!("{mark} {name:<12} {state}\n")
}
