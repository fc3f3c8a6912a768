//! `gnoma providers`: what is configured, what answers, which models there are.

use anyhow::Result;
use gnoma_host::providers::{self, Answer, ProviderState};

use super::common::{print, project};
use crate::{args::TurnArgs, environment::ProcessEnvironment, report::Exit};

/// Models named in a line.
const MAX_NAMED: usize = 4;

pub(crate) async fn run(args: &TurnArgs, around: &ProcessEnvironment) -> Result<Exit> {
    let providers = providers::providers(&project(args, around)?).await;
    print(&providers.iter().map(line).collect::<String>())
}

pub(crate) fn remove(name: &str, args: &TurnArgs, around: &ProcessEnvironment) -> Result<Exit> {
    print(&format!("{}\n", providers::remove(&project(args, around)?, name)?))
}

/// So many models, in words.
pub(super) fn counted(models: usize) -> String {
    if models == 1 { "1 model".to_owned() } else { format!("{models} models") }
}

fn line(ProviderState { name, is_default, state }: &ProviderState) -> String {
    let mark = if *is_default { '*' } else { ' ' };
    let state = match state {
        Answer::Unusable(why) => why.clone(),
        Answer::Models { url, models } => {
            let named = models.get(..MAX_NAMED).unwrap_or(models).join(", ");
            let more = if models.len() > MAX_NAMED { ", …" } else { "" };
            format!("ready at {url}, {}: {named}{more}", counted(models.len()))
        }
    };
    format!("{mark} {name:<12} {state}\n")
}
