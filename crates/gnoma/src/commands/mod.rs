//! What the command line asks for, one file per command.

mod acp;
mod add_provider;
mod analytics;
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
mod features;
mod guard;
mod guard_run;
mod import;
mod man;
mod mcp;
mod mcp_login;
mod mcp_serve;
mod plugin;
pub(crate) mod protocol;
mod providers;
mod ps;
mod rewind;
mod route;
mod router;
mod scripted;
mod serve;
mod sessions;
mod task;
mod task_detach;
mod task_import;
mod task_run;
mod task_schedule;
mod task_suggest;
mod task_words;
mod trust;
mod update;
mod usage;
mod web;

use anyhow::Result;
use futures_util::future::LocalBoxFuture;
use gnoma_host::HostError;

pub(crate) use self::common::{print, print_data};
use crate::{
    args::{AgentsSub, Args, OutputFormat, ProvidersSub, Sub, TurnArgs, advice},
    demo,
    environment::ProcessEnvironment,
    report::Exit,
};

/// Does what `args` say.
///
/// Each command's future is boxed: as parts of this one they are compiled into one function of 90 KB.
pub(crate) async fn run(args: Args, around: &ProcessEnvironment) -> Result<Exit> {
    refuse_words(&args, around)?;
    let turn = &args.turn;
    let command: LocalBoxFuture<'_, Result<Exit>> = match &args.command {
        None => Box::pin(ask::run(turn, around)),
        Some(Sub::Demo) => Box::pin(demo::run(around)),
        Some(Sub::Providers { what: None | Some(ProvidersSub::List) }) => {
            Box::pin(providers::run(turn, around))
        }
        Some(Sub::Providers { what: Some(ProvidersSub::Add(new)) }) => {
            Box::pin(add_provider::run(new, turn, around))
        }
        Some(Sub::Providers { what: Some(ProvidersSub::Remove { name }) }) => {
            return providers::remove(name, turn, around);
        }
        Some(Sub::Models { name, json }) => {
            // Other groups of commands have `list`.
            let name = name.as_deref().filter(|name| !matches!(*name, "list" | "ls"));
            Box::pin(router::models(name, *json, turn, around))
        }
        Some(Sub::Config { what }) => return config::run(what, turn, around),
        Some(Sub::Features { what, json }) => {
            return features::run(what.as_ref(), *json, turn, around);
        }
        Some(Sub::Analytics { what }) => return analytics::run(what, turn, around),
        Some(Sub::Trust { folder, yes, revoke, list }) => {
            let wanted = if *list {
                trust::TrustRequest::List
            } else if *revoke {
                trust::TrustRequest::Revoke
            } else {
                trust::TrustRequest::Trust { is_confirmed: *yes }
            };
            return trust::run(folder.clone(), wanted, turn, around);
        }
        Some(Sub::Skills { what }) => return extend::skills(what, turn, around),
        Some(Sub::Agents { what: AgentsSub::List }) => return extend::agents(turn, around),
        Some(Sub::Extensions) => return extend::all(turn, around),
        Some(Sub::Task { what }) => Box::pin(task::run(what, turn, around)),
        Some(Sub::Import { from, write }) => return import::run(*from, *write, turn, around),
        Some(Sub::Plugin { what }) => return plugin::run(what, turn, around),
        Some(Sub::Mcp { what }) => Box::pin(mcp::run(what, turn, around)),
        Some(Sub::Guard { what }) => Box::pin(guard::run(what, turn, around)),
        Some(Sub::Sessions { what }) => Box::pin(sessions::run(what, turn, around)),
        Some(Sub::Rewind(how)) => Box::pin(rewind::run(how, turn, around)),
        Some(Sub::Redo(which)) => Box::pin(rewind::redo(which, turn, around)),
        Some(Sub::Changes(what)) => Box::pin(changes::run(what, turn, around)),
        Some(Sub::Route(what)) => Box::pin(route::run(what, turn, around)),
        Some(Sub::Router { what }) => Box::pin(router::run(what, turn, around)),
        Some(Sub::Usage(wanted)) => Box::pin(usage::run(wanted, turn, around)),
        Some(Sub::Serve { idle_exit, replace, http, metrics }) => {
            let (idle_exit, replace) = (*idle_exit, *replace);
            let options = serve::ServeOptions { idle_exit, replace, is_private: false };
            Box::pin(serve::run(options, *http, *metrics, turn, around))
        }
        Some(Sub::Web { port, lan, new_links, tunnel, qr }) => {
            let page = web::PageOptions {
                port: *port,
                lan: *lan,
                new_links: *new_links,
                tunnel: tunnel.clone(),
                has_qr: *qr,
            };
            Box::pin(web::run(page, turn, around))
        }
        Some(Sub::Acp { setup }) => Box::pin(acp::run(*setup, turn, around)),
        Some(Sub::Ci { what }) => Box::pin(ci::run(what, turn, around)),
        Some(Sub::Attach { session }) => Box::pin(attach::run(session.as_deref(), turn, around)),
        Some(Sub::Ps { json }) => Box::pin(ps::run(*json, around)),
        Some(Sub::Protocol { schema, openapi }) => return protocol::run(*schema, *openapi),
        // On its own it never comes here: its options are not gnoma's.
        Some(Sub::Claude { .. }) => return Err(HostError::usage(late("claude")).into()),
        Some(Sub::Codex { .. }) => return Err(HostError::usage(late("codex")).into()),
        Some(Sub::Doctor { bundle }) => Box::pin(doctor::run(bundle.as_deref(), turn, around)),
        Some(Sub::Update) => return update::run(around),
        Some(Sub::Man { command, dir }) => {
            return man::run(command.as_deref(), dir.as_deref(), around);
        }
        Some(Sub::Completions { shell }) => return completions::run(*shell),
    };
    command.await
}

/// What is said where the command of another program is not the first word.
fn late(name: &str) -> String {
    format!("`{name}` must be the first word; its options follow, as in `gnoma {name} --help`")
}

/// Refuses words in front of a command, and options of a prompt that the command would ignore.
fn refuse_words(args: &Args, around: &ProcessEnvironment) -> Result<(), HostError> {
    let Some(command) = &args.command else { return Ok(()) };
    if let Some(name) = report_name(command)
        && let Some(option) = option_of_prompt(&args.turn, command)
    {
        return Err(HostError::usage(format!(
            "`gnoma {name}` takes no {option}, which is for prompts; `gnoma {name} --help` lists its options"
        )));
    }
    let Some(word) = args.turn.words.first() else { return Ok(()) };
    Err(HostError::usage(advice(&args.turn, &around.line, &around.cwd).unwrap_or_else(|| {
        format!("`{word}` and a command do not go together; quote a prompt as a whole")
    })))
}

/// The name of a command that shows or changes something without a session.
fn report_name(command: &Sub) -> Option<&'static str> {
    Some(match command {
        Sub::Providers { .. } => "providers",
        Sub::Models { .. } => "models",
        Sub::Config { .. } => "config",
        Sub::Features { .. } => "features",
        Sub::Analytics { .. } => "analytics",
        Sub::Trust { .. } => "trust",
        Sub::Skills { .. } => "skills",
        Sub::Agents { .. } => "agents",
        Sub::Extensions => "extensions",
        Sub::Import { .. } => "import",
        Sub::Plugin { .. } => "plugin",
        Sub::Sessions { .. } => "sessions",
        Sub::Router { .. } => "router",
        Sub::Usage(_) => "usage",
        Sub::Ps { .. } => "ps",
        Sub::Doctor { .. } => "doctor",
        Sub::Update => "update",
        _ => return None,
    })
}

/// An option that was given and is only for prompts. The model and its provider are settings that most commands look at.
fn option_of_prompt(turn: &TurnArgs, command: &Sub) -> Option<&'static str> {
    let is_usage = matches!(command, Sub::Usage(_));
    let given = [
        ("--model (`--by model` shows all)", is_usage && turn.model.is_some()),
        ("--provider (`--by provider` shows all)", is_usage && turn.provider.is_some()),
        ("--output-format", turn.output_format != OutputFormat::Text),
        ("--json-schema", turn.json_schema.is_some()),
        ("--max-turns", turn.max_turns.is_some()),
        ("--system", turn.system.is_some()),
        ("--agent", turn.agent.is_some()),
        ("--print", turn.print),
        ("--full-screen", turn.full_screen),
        ("--resume", turn.resume.is_some()),
        ("--continue", turn.newest),
        ("--fork", turn.fork),
    ];
    given.into_iter().find_map(|(option, is_given)| is_given.then_some(option))
}
