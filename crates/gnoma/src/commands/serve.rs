//! `gnoma serve`: sessions that live without a window.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::Result;
use gnoma_core::protocol::{Client, LiveSession, Request, RequestErrorKind, SessionSpec};
use gnoma_host::{
    Folders as _, HostError, Notices, ProcessResources, Project, clock,
    live::Host,
    schedules::{Scheduler, has_waiting_schedules},
    session_opening::Projects,
};
use gnoma_serve::{ConnectError, Place, PlaceError, Server, serve_clients};
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::ps::activity_word;
use crate::{
    args::TurnArgs,
    environment::ProcessEnvironment,
    front::Signals,
    launch_request,
    report::{self, Exit},
    server,
    web::{OwnSite, SessionBackend, WebListener},
};

/// The time that the replaced server may take to store everything and end.
const REPLACE_PATIENCE: Duration = Duration::from_secs(35);
/// The time that the replaced server may take to answer that it will end.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(3);
/// Between two looks whether it has.
const REPLACE_STEP: Duration = Duration::from_millis(50);

/// Between two looks whether commands in the background have ended.
const JOBS_STEP: Duration = Duration::from_secs(1);

/// The host, for whoever connects.
struct HostServer(Arc<Host>);

impl Server for HostServer {
    fn program(&self) -> String {
        server::name_and_version()
    }

    fn connect_client(&self, client: &str) -> Client {
        self.0.connect(client)
    }
}

/// The protocol over HTTP, beside the socket.
pub(super) struct Http {
    /// The address at which HTTP requests are accepted.
    pub(super) listening: WebListener,
    /// The specification with which sessions are opened over HTTP unless a request overrides it.
    pub(super) spec: SessionSpec,
    /// Whose ledger metrics are of, if they are offered.
    pub(super) metrics: Option<Arc<Project>>,
}

impl Http {
    async fn serve(&self, host: &Arc<Host>) {
        let sessions = SessionBackend::Here(Arc::clone(host));
        let metrics = self.metrics.clone();
        let site = OwnSite { sessions, spec: self.spec.clone(), metrics };
        self.listening.serve(Arc::new(site)).await;
    }
}

pub(super) async fn run(
    options: ServeOptions,
    http: Option<SocketAddr>,
    has_metrics: bool,
    args: &TurnArgs,
    around: &ProcessEnvironment,
) -> Result<Exit> {
    refuse_session_options(args)?;
    let http = match http {
        None => None,
        Some(address) => {
            let listening = WebListener::open(address, false, None, around).await?;
            let spec = launch_request::spec_from_args(args, around);
            let metrics = has_metrics.then(|| {
                Project::open(spec.clone(), Notices::without_sink(), ProcessResources::default())
                    .map(Arc::new)
            });
            Some(Http { listening, spec, metrics: metrics.transpose()? })
        }
    };
    host_sessions(options, http, around).await
}

/// The options of a server that hosts sessions.
pub(super) struct ServeOptions {
    /// The time that the server stays without a session and a client.
    pub(super) idle_exit: Option<Duration>,
    /// Takes the place of a server that runs.
    pub(super) replace: bool,
    /// Other programs do not find it, and it makes no file: it has a page and no socket.
    pub(super) is_private: bool,
}

/// Hosts sessions until somebody wants the end.
pub(super) async fn host_sessions(
    options: ServeOptions,
    http: Option<Http>,
    around: &ProcessEnvironment,
) -> Result<Exit> {
    let ServeOptions { idle_exit, replace, is_private } = options;
    let place = server::server_place(around);
    if replace {
        end_running(&place, around).await?;
    }
    let patience = if replace { REPLACE_PATIENCE } else { Duration::ZERO };
    let held = if is_private { None } else { Some(listen_when_free(&place, patience).await?) };
    let mut signals = Signals::new(around.ignores_hangup)?;
    let host = Arc::new(Host::new(Projects::default()));
    if held.is_some() {
        report::print_line(format_args!(
            "gnoma serves sessions at {}",
            place.socket_path().display()
        ));
    }
    if let Some(http) = &http {
        let address = http.listening.address();
        report::print_line(format_args!("gnoma serves its page and its API at http://{address}/"));
    }
    let over_http = async {
        match &http {
            Some(http) => http.serve(&host).await,
            None => std::future::pending().await,
        }
    };
    let serving = Arc::new(HostServer(Arc::clone(&host)));
    let over_socket = async {
        match &held {
            Some(held) => serve_clients(&held.listener, serving).await,
            None => std::future::pending().await,
        }
    };
    // Only the server that others find runs schedules.
    let schedules = async {
        match &held {
            Some(_) => {
                let environment = around.environment.clone();
                Scheduler::new(Arc::clone(&host), environment, around.umask).run().await;
            }
            None => std::future::pending().await,
        }
    };
    let exit = tokio::select! {
        signal = signals.next() => Exit::Signalled(signal),
        () = host.shutdown_wanted() => Exit::Done,
        () = wait_until_idle(&host, idle_exit, around) => {
            report::print_line("the server was idle and stopped");
            Exit::Done
        }
        () = over_socket => Exit::Done,
        () = over_http => Exit::Done,
        () = schedules => Exit::Done,
    };
    stop_sessions(&host, around).await;
    drop(held);
    Ok(exit)
}

/// Ends all sessions and says what was running.
async fn stop_sessions(host: &Host, around: &ProcessEnvironment) {
    for session in &host.shut_down().await {
        let LiveSession { status, folder, title, .. } = session;
        let folder = around.environment.shorten_home(folder);
        report::print_line(format_args!(
            "stopped while working ({}): {} in {folder}: {title}",
            activity_word(session),
            status.session,
        ));
    }
}

/// Sessions bring their own: what is said here would hold for none of them.
fn refuse_session_options(args: &TurnArgs) -> Result<(), HostError> {
    let given = [
        ("--provider", args.provider.is_some()),
        ("--model", args.model.is_some()),
        ("--cwd", args.cwd.is_some()),
        ("--profile", args.profile.is_some()),
        ("--incognito", args.incognito),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((option, _)) => Err(HostError {
            remedy: Some(format!("pass {option} to `gnoma` when you open a session")),
            ..HostError::usage(format!("`gnoma serve` does not accept {option}"))
        }),
    }
}

/// Has the server that runs store everything and end. One that does not answer, or speaks another
/// version, understands a signal.
async fn end_running(place: &Place, around: &ProcessEnvironment) -> Result<()> {
    let why = match server::try_find(around).await {
        Ok(None) => return Ok(()),
        Ok(Some(mut client)) => {
            match timeout(SHUTDOWN_PATIENCE, server::send_request(&mut client, Request::Shutdown))
                .await
            {
                Ok(Ok(_)) => return Ok(()),
                Ok(Err(error)) => error.to_string(),
                Err(_) => "it does not answer".to_owned(),
            }
        }
        // Whom it does not let in for another reason may not end it either.
        Err(ConnectError::Refused(error)) if error.kind != RequestErrorKind::Version => {
            return Err(HostError::from(error).into());
        }
        Err(error) => error.to_string(),
    };
    let Some(server) = place.server_pid().await.and_then(Pid::from_raw) else { return Ok(()) };
    let id = server.as_raw_nonzero();
    report::print_line(format_args!("asking the server (process {id}) to end by a signal: {why}"));
    let sent = kill_process(server, Signal::TERM);
    sent.map_err(|error| HostError::failure(format!("cannot end process {id}: {error}")))?;
    // One that was stopped obeys nothing else. Where it went on to its end already there is nobody.
    let _gone = kill_process(server, Signal::CONT);
    Ok(())
}

/// Takes the place, after waiting for the server that is there where it is being replaced.
async fn listen_when_free(
    place: &Place,
    patience: Duration,
) -> Result<gnoma_serve::place::SocketClaim> {
    let until = Instant::now() + patience;
    loop {
        match place.listen() {
            Ok(held) => return Ok(held),
            Err(PlaceError::Taken { .. }) if Instant::now() < until => sleep(REPLACE_STEP).await,
            Err(PlaceError::Taken { pid }) => {
                let remedy = Some(if patience.is_zero() {
                    "`gnoma serve --replace` replaces it".to_owned()
                } else {
                    format!("it does not stop; `kill -9 {pid}` ends it, and saved sessions stay")
                });
                let cause = PlaceError::Taken { pid }.to_string();
                return Err(HostError { remedy, ..HostError::usage(cause) }.into());
            }
            Err(error) => return Err(HostError::usage(error.to_string()).into()),
        }
    }
}

/// Waits until nobody has needed the host for so long, and no schedule waits for its time. Without a time: for ever.
async fn wait_until_idle(host: &Host, after: Option<Duration>, around: &ProcessEnvironment) {
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
                if host.is_idle() && !has_waiting_schedules(&around.environment, clock::now_ms()) {
                    return;
                }
                since = None;
            }
            count = host.changed_since(seen) => seen = count,
            () = sleep(JOBS_STEP), if host.has_jobs() => (),
        }
    }
}
