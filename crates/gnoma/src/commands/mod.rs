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
pub(crate) mod usage;
mod web;

use anyhow::Result;
use futures_util::future::LocalBoxFuture;
use gnoma_host::HostError;

use crate::{
    args::{
        AgentsSub, Args, GnomaSubcommand as Sub, OutputFormat, ProvidersSub, TurnArgs,
        mistaken_prompt_advice,
    },
    demo,
    environment::ProcessEnvironment,
    report::Exit,
};

/// Does what `args` say.
pub(crate) async fn run(args: Args, around: &ProcessEnvironment) -> Result<Exit> {
    refuse_words(&args, around)?;
    let command: LocalBoxFuture<'_, Result<Exit>> = match &args.command {
        None => Box::pin(ask::run(&args.turn, around)),
        Some(command) => Box::pin(run_command(command, &args.turn, around)),
    };
    command.await
}

/// Runs a command.
///
/// Each command's future is boxed: as parts of this one they are compiled into one function of 90 KB.
async fn run_command(command: &Sub, turn: &TurnArgs, around: &ProcessEnvironment) -> Result<Exit> {
    let running: LocalBoxFuture<'_, Result<Exit>> = match command {
        Sub::Demo => Box::pin(demo::run(around)),
        Sub::Providers { what } => Box::pin(run_providers(what.as_ref(), turn, around)),
        Sub::Models { name, json } => {
            Box::pin(router::list_models(name.as_deref(), *json, turn, around))
        }
        Sub::Config { what } => return config::run(what, turn, around),
        Sub::Features { what, json } => return features::run(what.as_ref(), *json, turn, around),
        Sub::Analytics { what } => return analytics::run(what, turn, around),
        Sub::Trust(wanted) => return trust::run(wanted, turn, around),
        Sub::Skills { what } => return extend::run_skills(what, turn, around),
        Sub::Agents { what: AgentsSub::List } => return extend::list_agents(turn, around),
        Sub::Extensions => return extend::list_extensions(turn, around),
        Sub::Task { what } => Box::pin(task::run(what, turn, around)),
        Sub::Import { from, write } => return import::run(*from, *write, turn, around),
        Sub::Plugin { what } => return plugin::run(what, turn, around),
        Sub::Mcp { what } => Box::pin(mcp::run(what, turn, around)),
        Sub::Guard { what } => Box::pin(guard::run(what, turn, around)),
        Sub::Sessions { what } => Box::pin(sessions::run(what, turn, around)),
        Sub::Rewind(how) => Box::pin(rewind::run(how, turn, around)),
        Sub::Redo(which) => Box::pin(rewind::redo_rewind(which, turn, around)),
        Sub::Changes(what) => Box::pin(changes::run(what, turn, around)),
        Sub::Route(what) => Box::pin(route::run(what, turn, around)),
        Sub::Router { what } => Box::pin(router::run(what, turn, around)),
        Sub::Usage(wanted) => Box::pin(usage::run(wanted, turn, around)),
        Sub::Serve(wanted) => Box::pin(serve::run(wanted, turn, around)),
        Sub::Web(wanted) => Box::pin(web::run(wanted, turn, around)),
        Sub::Acp { setup } => Box::pin(acp::run(*setup, turn, around)),
        Sub::Ci { what } => Box::pin(ci::run(what, turn, around)),
        Sub::Attach { session } => Box::pin(attach::run(session.as_deref(), turn, around)),
        Sub::Ps { json } => Box::pin(ps::run(*json, around)),
        Sub::Protocol { schema, openapi } => return protocol::run(*schema, *openapi),
        // As the first word it never comes here: its options are not gnoma's.
        Sub::Claude { .. } => return Err(misplaced_program("claude").into()),
        Sub::Codex { .. } => return Err(misplaced_program("codex").into()),
        Sub::Doctor { bundle } => Box::pin(doctor::run(bundle.as_deref(), turn, around)),
        Sub::Update => return update::run(around),
        Sub::Man { command, dir } => return man::run(command, dir.as_deref(), around),
        Sub::Completions { shell, words } => return completions::run(*shell, words, turn, around),
    };
    running.await
}

async fn run_providers(
    what: Option<&ProvidersSub>,
    turn: &TurnArgs,
    around: &ProcessEnvironment,
) -> Result<Exit> {
    match what {
        None | Some(ProvidersSub::List) => providers::run(turn, around).await,
        Some(ProvidersSub::Add(new)) => add_provider::run(new, turn, around).await,
        Some(ProvidersSub::Remove { name }) => providers::remove(name, turn, around),
    }
}

/// Returns the error for a command that acts as another program and is not the first word.
fn misplaced_program(name: &str) -> HostError {
    HostError::usage(format!(
        "`{name}` must be the first word; its options follow, as in `gnoma {name} --help`"
    ))
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

/// Returns the name of a command that shows or changes something without a session.
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
        Sub::Task { what } => return what.report_name(),
        _ => return None,
    })
}

/// Returns an option that was given and is only for prompts. The model and its provider are settings that most commands
/// look at.
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
