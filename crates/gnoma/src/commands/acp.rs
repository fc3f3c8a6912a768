//! `gnoma acp`: an agent for editors, on standard input and output.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use gnoma_acp::{Agent, AgentOptions};
use gnoma_core::{
    protocol::{Client, SessionSpec},
    tool::OpenFiles,
};
use gnoma_host::{HostError, live::Host, session_opening::Projects};

use crate::{
    args::TurnArgs,
    environment::ProcessEnvironment,
    front::Signals,
    launch_request,
    report::{self, Exit},
    server, tui,
};

pub(super) async fn run(setup: bool, args: &TurnArgs, around: &ProcessEnvironment) -> Result<Exit> {
    if setup {
        return set_up(args, around).await;
    }
    if around.stdin_is_terminal {
        report::print_line(
            "note: editors start `gnoma acp` and speak JSON-RPC to it; Ctrl+D ends it",
        );
    }
    let spec = SessionSpec { interactive: true, ..launch_request::spec_from_args(args, around) };
    let (files, wanted) = gnoma_acp::editor_files();
    let (client, host) = connect_to_host(files, around).await;
    let options = AgentOptions { spec, version: env!("CARGO_PKG_VERSION").to_owned() };
    let mut agent = Agent::new(client, options).with_files(wanted);
    let mut signals = Signals::new(around.ignores_hangup)?;
    let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
    let ended = tokio::select! {
        signal = signals.next() => Ok(Exit::Signalled(signal)),
        ended = gnoma_acp::serve_client(&mut agent, input, output) => match ended {
            Ok(()) => Ok(Exit::Done),
            Err(error) => Err(error).context("the connection to the editor broke"),
        },
    };
    agent.detach_sessions();
    match host {
        Some(host) => drop(host.shut_down().await),
        // The server is to hear that the sessions are left.
        None => agent.wait_until_detached().await,
    }
    ended
}

/// Connects to the place where sessions live. If a server runs, they live in it, so that they can be seen at a
/// terminal too; otherwise they live in this process, where tools see files as they are in the editor.
async fn connect_to_host(
    files: Arc<dyn OpenFiles>,
    around: &ProcessEnvironment,
) -> (Client, Option<Host>) {
    match server::connect_if_running(around).await {
        Ok(Some(client)) => return (client, None),
        Ok(None) => (),
        Err(error) => report::print_line(format_args!("note: running without the server: {error}")),
    }
    let host = Host::new(Projects::in_editor(files));
    (host.connect("editor"), Some(host))
}

/// Asks for a provider at a terminal, as the first start does.
async fn set_up(args: &TurnArgs, around: &ProcessEnvironment) -> Result<Exit> {
    if !tui::is_meant(args, &[], around) {
        return Err(HostError::usage("`gnoma acp --setup` needs a terminal").into());
    }
    tui::run(args, around).await
}
