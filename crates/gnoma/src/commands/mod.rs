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

use crate::{
    args::{
        AgentsSub, Args, GnomaSubcommand, OutputFormat, ProvidersSub, TurnArgs,
        mistaken_prompt_advice,
    },
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
        Some(GnomaSubcommand::Demo) => Box::pin(demo::run(around)),
        Some(GnomaSubcommand::Providers { what: None | Some(ProvidersSub::List) }) => {
            Box::pin(providers::run(turn, around))
        }
        Some(GnomaSubcommand::Providers { what: Some(ProvidersSub::Add(new)) }) => {
            Box::pin(add_provider::run(new, turn, around))
        }
        Some(GnomaSubcommand::Providers { what: Some(ProvidersSub::Remove { name }) }) => {
            return providers::remove(name, turn, around);
        }
        Some(GnomaSubcommand::Models { name, json }) => {
            // Other groups of commands have `list`.
            let name = name.as_deref().filter(|name| !matches!(*name, "list" | "ls"));
            Box::pin(router::list_models(name, *json, turn, around))
        }
        Some(GnomaSubcommand::Config { what }) => return config::run(what, turn, around),
        Some(GnomaSubcommand::Features { what, json }) => {
            return features::run(what.as_ref(), *json, turn, around);
        }
        Some(GnomaSubcommand::Analytics { what }) => return analytics::run(what, turn, around),
        Some(GnomaSubcommand::Trust { folder, yes, revoke, list }) => {
            let wanted = if *list {
                trust::TrustRequest::List
            } else if *revoke {
                trust::TrustRequest::Revoke
            } else {
                trust::TrustRequest::Trust { is_confirmed: *yes }
            };
            return trust::run(folder.clone(), wanted, turn, around);
        }
        Some(GnomaSubcommand::Skills { what }) => return extend::run_skills(what, turn, around),
        Some(GnomaSubcommand::Agents { what: AgentsSub::List }) => {
            return extend::list_agents(turn, around);
        }
        Some(GnomaSubcommand::Extensions) => return extend::list_extensions(turn, around),
        Some(GnomaSubcommand::Task { what }) => Box::pin(task::run(what, turn, around)),
        Some(GnomaSubcommand::Import { from, write }) => {
            return import::run(*from, *write, turn, around);
        }
        Some(GnomaSubcommand::Plugin { what }) => return plugin::run(what, turn, around),
        Some(GnomaSubcommand::Mcp { what }) => Box::pin(mcp::run(what, turn, around)),
        Some(GnomaSubcommand::Guard { what }) => Box::pin(guard::run(what, turn, around)),
        Some(GnomaSubcommand::Sessions { what }) => Box::pin(sessions::run(what, turn, around)),
        Some(GnomaSubcommand::Rewind(how)) => Box::pin(rewind::run(how, turn, around)),
        Some(GnomaSubcommand::Redo(which)) => Box::pin(rewind::redo_rewind(which, turn, around)),
        Some(GnomaSubcommand::Changes(what)) => Box::pin(changes::run(what, turn, around)),
        Some(GnomaSubcommand::Route(what)) => Box::pin(route::run(what, turn, around)),
        Some(GnomaSubcommand::Router { what }) => Box::pin(router::run(what, turn, around)),
        Some(GnomaSubcommand::Usage(wanted)) => Box::pin(usage::run(wanted, turn, around)),
        Some(GnomaSubcommand::Serve { idle_exit, replace, http, metrics }) => {
            let (idle_exit, replace) = (*idle_exit, *replace);
            let options = serve::ServeOptions { idle_exit, replace, is_private: false };
            Box::pin(serve::run(options, *http, *metrics, turn, around))
        }
        Some(GnomaSubcommand::Web { devices: true, .. }) => return web::list_devices(around),
        Some(GnomaSubcommand::Web { revoke: Some(name), .. }) => {
            return web::revoke_device(name, around);
        }
        Some(GnomaSubcommand::Web { port, lan, new_links, tunnel, qr, device, .. }) => {
            let page = web::PageOptions {
                port: *port,
                lan: *lan,
                new_links: *new_links,
                tunnel: tunnel.clone(),
                has_qr: *qr,
                device: device.clone(),
            };
            Box::pin(web::run(page, turn, around))
        }
        Some(GnomaSubcommand::Acp { setup }) => Box::pin(acp::run(*setup, turn, around)),
        Some(GnomaSubcommand::Ci { what }) => Box::pin(ci::run(what, turn, around)),
        Some(GnomaSubcommand::Attach { session }) => {
            Box::pin(attach::run(session.as_deref(), turn, around))
        }
        Some(GnomaSubcommand::Ps { json }) => Box::pin(ps::run(*json, around)),
        Some(GnomaSubcommand::Protocol { schema, openapi }) => {
            return protocol::run(*schema, *openapi);
        }
        // On its own it never comes here: its options are not gnoma's.
        Some(GnomaSubcommand::Claude { .. }) => {
            return Err(HostError::usage(first_word_advice("claude")).into());
        }
        Some(GnomaSubcommand::Codex { .. }) => {
            return Err(HostError::usage(first_word_advice("codex")).into());
        }
        Some(GnomaSubcommand::Doctor { bundle }) => {
            Box::pin(doctor::run(bundle.as_deref(), turn, around))
        }
        Some(GnomaSubcommand::Update) => return update::run(around),
        Some(GnomaSubcommand::Man { command, dir }) => {
            return man::run(command, dir.as_deref(), around);
        }
        Some(GnomaSubcommand::Completions { shell }) => return completions::run(*shell),
    };
    command.await
}

/// Returns the error text for a command of another program that is not the first word.
fn first_word_advice(name: &str) -> String {
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
    Err(HostError::usage(
        mistaken_prompt_advice(&args.turn, &around.line, &around.cwd).unwrap_or_else(|| {
            format!("`{word}` and a command do not go together; quote a prompt as a whole")
        }),
    ))
}

/// The name of a command that shows or changes something without a session.
fn report_name(command: &GnomaSubcommand) -> Option<&'static str> {
    Some(match command {
        GnomaSubcommand::Providers { .. } => "providers",
        GnomaSubcommand::Models { .. } => "models",
        GnomaSubcommand::Config { .. } => "config",
        GnomaSubcommand::Features { .. } => "features",
        GnomaSubcommand::Analytics { .. } => "analytics",
        GnomaSubcommand::Trust { .. } => "trust",
        GnomaSubcommand::Skills { .. } => "skills",
        GnomaSubcommand::Agents { .. } => "agents",
        GnomaSubcommand::Extensions => "extensions",
        GnomaSubcommand::Import { .. } => "import",
        GnomaSubcommand::Plugin { .. } => "plugin",
        GnomaSubcommand::Sessions { .. } => "sessions",
        GnomaSubcommand::Router { .. } => "router",
        GnomaSubcommand::Usage(_) => "usage",
        GnomaSubcommand::Ps { .. } => "ps",
        GnomaSubcommand::Doctor { .. } => "doctor",
        GnomaSubcommand::Update => "update",
        _ => return None,
    })
}

/// An option that was given and is only for prompts. The model and its provider are settings that most commands look at.
fn option_of_prompt(turn: &TurnArgs, command: &GnomaSubcommand) -> Option<&'static str> {
    let is_usage = matches!(command, GnomaSubcommand::Usage(_));
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
