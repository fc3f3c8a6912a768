//! `gnoma serve`: sessions that live without a window.

use std::{sync::Arc, time::Duration};

use anyhow::Result;
use gnoma_core::protocol::{Client, LiveSession, Request};
use gnoma_host::{Folders as _, HostError, live::Host, opening::Projects};
use gnoma_serve::{Place, PlaceError, Server, serve};
use tokio::time::{Instant, sleep, sleep_until};

use super::ps::doing;
use crate::{
    args::TurnArgs,
    environment::ProcessEnvironment,
    front::Signals,
    report::{self, Exit},
    server,
};

/// How long the server that is replaced may take to store everything and end.
const REPLACE_PATIENCE: Duration = Duration::from_secs(35);
/// Between two looks whether it has.
const REPLACE_STEP: Duration = Duration::from_millis(50);

/// The host, for whoever connects.
struct Serving(Host);

impl Server for Serving {
    fn program(&self) -> String {
        server::program()
    }

    fn connect(&self, client: &str) -> Client {
        self.0.connect(client)
    }
}

pub(super) async fn run(
    idle_exit: Option<Duration>,
    replace: bool,
    args: &TurnArgs,
    around: &ProcessEnvironment,
) -> Result<Exit> {
    refuse_session_options(args)?;
    let place = server::place(around);
    if replace && let Some(mut client) = server::find(around).await? {
        server::ask(&mut client, Request::Shutdown).await.map_err(HostError::from)?;
    }
    let patience = if replace { REPLACE_PATIENCE } else { Duration::ZERO };
    let held = listen(&place, patience).await?;
    let mut signals = Signals::new(around.ignores_hangup)?;
    let serving = Arc::new(Serving(Host::new(Projects::default())));
    report::say(format_args!("gnoma serves sessions at {}", place.socket().display()));
    let host = &serving.0;
    let exit = tokio::select! {
        signal = signals.next() => Exit::Signalled(signal),
        () = host.shutdown_wanted() => Exit::Done,
        () = idle(host, idle_exit) => {
            report::say("the server was idle and stopped");
            Exit::Done
        }
        () = serve(&held.listener, Arc::clone(&serving) as Arc<dyn Server>) => Exit::Done,
    };
    let running = host.shut_down().await;
    for session in &running {
        let LiveSession { status, folder, title, .. } = session;
        let folder = around.environment.shortened(folder);
        report::say(format_args!(
            "stopped while working ({}): {} in {folder}: {title}",
            doing(session),
            status.session,
        ));
    }
    drop(held);
    Ok(exit)
}

/// Sessions bring their own: what is said here would hold for none of them.
fn refuse_session_options(args: &TurnArgs) -> Result<(), HostError> {
    let given = [
        ("--provider", args.provider.is_some()),
        ("--model", args.model.is_some()),
        ("--cwd", args.cwd.is_some()),
        ("--profile", args.profile.is_some()),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((option, _)) => Err(HostError {
            remedy: Some(format!("pass {option} to `gnoma` when you open a session")),
            ..HostError::usage(format!("`gnoma serve` does not accept {option}"))
        }),
    }
}

/// Takes the place, after waiting for the server that is there where it is being replaced.
async fn listen(place: &Place, patience: Duration) -> Result<gnoma_serve::place::Held> {
    let until = Instant::now() + patience;
    loop {
        match place.listen() {
            Ok(held) => return Ok(held),
            Err(PlaceError::Taken { .. }) if Instant::now() < until => sleep(REPLACE_STEP).await,
            Err(error @ PlaceError::Taken { .. }) => {
                let remedy = Some("`gnoma serve --replace` replaces it".to_owned());
                return Err(HostError { remedy, ..HostError::usage(error.to_string()) }.into());
            }
            Err(error) => return Err(HostError::usage(error.to_string()).into()),
        }
    }
}

/// Waits until nobody has needed the host for so long. Without a time: for ever.
async fn idle(host: &Host, after: Option<Duration>) {
    let Some(after) = after else { return std::future::pending().await };
    let mut seen = 0;
    let mut since = None;
    loop {
        since = if host.is_idle() { since.or(Some(Instant::now())) } else { None };
        let end = async {
            match since {
                Some(since) => sleep_until(since + after).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = end, if since.is_some() => {
                if host.is_idle() {
                    return;
                }
                since = None;
            }
            count = host.changed_since(seen) => seen = count,
        }
    }
}
