//! What the command line asks for, one file per command.

mod acp;
mod add_provider;
mod ask;
mod attach;
mod bundle;
mod changes;
mod ci;
mod common;
mod completions;
mod config;
mod doctor;
mod extend;
mod guard;
mod guard_run;
mod import;
mod man;
mod mcp;
mod mcp_login;
mod mcp_serve;
mod plugin;
mod protocol;
mod providers;
mod ps;
mod rewind;
mod route;
mod router;
mod scripted;
mod serve;
mod sessions;
mod task;
mod task_run;
mod task_suggest;
mod trust;
mod update;
mod usage;
mod web;

use anyhow::Result;
use gnoma_host::HostError;

pub(crate) use self::common::{print, print_data};
use crate::{
    args::{AgentsSub, Args, ProvidersSub, Sub, advice},
    demo,
    environment::ProcessEnvironment,
    report::Exit,
};

/// Does what `args` say.
pub(crate) async fn run(args: Args, around: &ProcessEnvironment) -> Result<Exit> {
    refuse_words(&args, around)?;
    let turn = args.turn;
    match args.command {
        None => ask::run(&turn, around).await,
        Some(Sub::Demo) => demo::run(around).await,
        Some(Sub::Providers { what: None | Some(ProvidersSub::List) }) => {
            providers::run(&turn, around).await
        }
        Some(Sub::Providers { what: Some(ProvidersSub::Add(new)) }) => {
            add_provider::run(&new, &turn, around).await
        }
        Some(Sub::Providers { what: Some(ProvidersSub::Remove { name }) }) => {
            providers::remove(&name, &turn, around)
        }
        Some(Sub::Models { name, json }) => {
            // Other groups of commands have `list`.
            let name = name.as_deref().filter(|name| !matches!(*name, "list" | "ls"));
            router::models(name, json, &turn, around).await
        }
        Some(Sub::Config { what }) => config::run(&what, &turn, around),
        Some(Sub::Trust { folder, yes, revoke, list }) => {
            let wanted = if list {
                trust::TrustRequest::List
            } else if revoke {
                trust::TrustRequest::Revoke
            } else {
                trust::TrustRequest::Trust { is_confirmed: yes }
            };
            trust::run(folder, wanted, &turn, around)
        }
        Some(Sub::Skills { what }) => extend::skills(&what, &turn, around),
        Some(Sub::Agents { what: AgentsSub::List }) => extend::agents(&turn, around),
        Some(Sub::Extensions) => extend::all(&turn, around),
        Some(Sub::Task { what }) => task::run(&what, &turn, around).await,
        Some(Sub::Import { from, write }) => import::run(from, write, &turn, around),
        Some(Sub::Plugin { what }) => plugin::run(&what, &turn, around),
        Some(Sub::Mcp { what }) => mcp::run(&what, &turn, around).await,
        Some(Sub::Guard { what }) => guard::run(&what, &turn, around).await,
        Some(Sub::Sessions { what }) => sessions::run(what, &turn, around).await,
        Some(Sub::Rewind(how)) => rewind::run(&how, &turn, around).await,
        Some(Sub::Redo(which)) => rewind::redo(&which, &turn, around).await,
        Some(Sub::Changes(what)) => changes::run(&what, &turn, around).await,
        Some(Sub::Route(what)) => route::run(&what, &turn, around).await,
        Some(Sub::Router { what }) => router::run(&what, &turn, around).await,
        Some(Sub::Usage(wanted)) => usage::run(&wanted, &turn, around).await,
        Some(Sub::Serve { idle_exit, replace, http }) => {
            serve::run(idle_exit, replace, http, &turn, around).await
        }
        Some(Sub::Web { port, lan, new_links }) => {
            web::run(web::PageOptions { port, lan, new_links }, &turn, around).await
        }
        Some(Sub::Acp { setup }) => acp::run(setup, &turn, around).await,
        Some(Sub::Ci { what }) => ci::run(&what, &turn, around).await,
        Some(Sub::Attach { session }) => attach::run(session.as_deref(), &turn, around).await,
        Some(Sub::Ps { json }) => ps::run(json, around).await,
        Some(Sub::Protocol { schema, openapi }) => protocol::run(schema, openapi),
        // On its own it never comes here: its options are not gnoma's.
        Some(Sub::Claude { .. }) => Err(HostError::usage(late("claude")).into()),
        Some(Sub::Codex { .. }) => Err(HostError::usage(late("codex")).into()),
        Some(Sub::Doctor { bundle }) => doctor::run(bundle.as_deref(), &turn, around).await,
        Some(Sub::Update) => update::run(around),
        Some(Sub::Man { command, dir }) => man::run(command.as_deref(), dir.as_deref(), around),
        Some(Sub::Completions { shell }) => completions::run(shell),
    }
}

/// What is said where the command of another program is not the first word.
fn late(name: &str) -> String {
    format!("`{name}` must be the first word; its options follow, as in `gnoma {name} --help`")
}

/// Refuses words in front of a command.
fn refuse_words(args: &Args, around: &ProcessEnvironment) -> Result<(), HostError> {
    let (Some(_), Some(word)) = (&args.command, args.turn.words.first()) else { return Ok(()) };
    Err(HostError::usage(advice(&args.turn, &around.line, &around.cwd).unwrap_or_else(|| {
        format!("`{word}` and a command do not go together; quote a prompt as a whole")
    })))
}
