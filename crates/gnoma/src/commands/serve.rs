//! `gnoma serve`: sessions that live without a window.

use std::{sync::Arc, time::Duration};

use anyhow::Result;
use futures_util::future::OptionFuture;
use gnoma_core::protocol::{Client, LiveSession, Request, RequestErrorKind, SessionSpec};
use gnoma_host::{
    Folders as _, HostError, Notices, ProcessResources, Project, clock,
    live::Host,
    schedules::{Scheduler, has_waiting_schedules},
    session_opening::Projects,
};
use gnoma_serve::{ConnectError, Place, PlaceError, Server, place::SocketClaim, serve_clients};
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::ps::activity_word;
use crate::{
    args::{ServeArgs, TurnArgs},
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
/// The time between two attempts to take the place of the replaced server.
const REPLACE_STEP: Duration = Duration::from_millis(50);

/// The time between two checks of whether commands in the background have ended.
const JOBS_STEP: Duration = Duration::from_secs(1);

/// The host, for clients that connect.
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
    /// The project whose ledger the metrics are of, if metrics are offered.
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
    wanted: &ServeArgs,
    args: &TurnArgs,
    around: &ProcessEnvironment,
) -> Result<Exit> {
    refuse_session_options(args)?;
    let ServeArgs { idle_exit, replace, http, metrics } = *wanted;
    let http = match http {
        None => None,
        Some(address) => {
            let listening = WebListener::open(address, false, None, around).await?;
            let spec = launch_request::spec_from_args(args, around);
            let metrics = metrics.then(|| {
                Project::open(spec.clone(), Notices::without_sink(), ProcessResources::default())
                    .map(Arc::new)
            });
            Some(Http { listening, spec, metrics: metrics.transpose()? })
        }
    };
    let options = ServeOptions { idle_exit, replace, is_private: false };
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

/// Hosts sessions until a signal, a client or a time without use ends the server.
pub(super) async fn host_sessions(
    options: ServeOptions,
    http: Option<Http>,
    around: &ProcessEnvironment,
) -> Result<Exit> {
    let ServeOptions { idle_exit, replace, is_private } = options;
    let held = if is_private { None } else { Some(claim_socket(replace, around).await?) };
    let mut signals = Signals::new(around.ignores_hangup)?;
    let host = Arc::new(Host::new(Projects::default()));
    print_addresses(held.is_some(), http.as_ref(), around);
    let over_http = OptionFuture::from(http.as_ref().map(|http| http.serve(&host)));
    let serving = Arc::new(HostServer(Arc::clone(&host)));
    let over_socket = held.as_ref().map(|held| serve_clients(&held.listener, serving));
    let over_socket = OptionFuture::from(over_socket);
    // Only the server that others find runs schedules.
    let schedules = OptionFuture::from(held.as_ref().map(|_| run_schedules(&host, around)));
    // A future that is `None` never ends the server: its branch is disabled.
    let exit = tokio::select! {
        signal = signals.next() => Exit::Signalled(signal),
        () = host.shutdown_wanted() => Exit::Done,
        () = wait_until_idle(&host, idle_exit, around) => {
            report::print_line("the server was idle and stopped");
            Exit::Done
        }
        Some(()) = over_socket => Exit::Done,
        Some(()) = over_http => Exit::Done,
        Some(()) = schedules => Exit::Done,
    };
    stop_sessions(&host, around).await;
    drop(held);
    Ok(exit)
}

/// Listens at the socket of this user's server. With `replace`, ends the server that is there first.
async fn claim_socket(replace: bool, around: &ProcessEnvironment) -> Result<SocketClaim> {
    let place = server::server_place(around);
    if !replace {
        return listen_when_free(&place, Duration::ZERO).await;
    }
    end_running(&place, around).await?;
    listen_when_free(&place, REPLACE_PATIENCE).await
}

/// Prints the addresses at which sessions are served.
fn print_addresses(has_socket: bool, http: Option<&Http>, around: &ProcessEnvironment) {
    if has_socket {
        let place = server::server_place(around);
        report::print_line(format_args!(
            "gnoma serves sessions at {}",
            place.socket_path().display()
        ));
    }
    if let Some(http) = http {
        let address = http.listening.address();
        report::print_line(format_args!("gnoma serves its page and its API at http://{address}/"));
    }
}

/// Runs schedules at their times, for ever.
async fn run_schedules(host: &Arc<Host>, around: &ProcessEnvironment) {
    let environment = around.environment.clone();
    Scheduler::new(Arc::clone(host), environment, around.umask).run().await;
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

/// Refuses options of sessions: sessions bring their own, so these would have no effect.
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

/// Ends the running server, which saves everything first. A server that does not answer, or speaks another version,
/// gets a signal.
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
        // A client that the server refuses for another reason may not end it either.
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
    // A stopped process acts on SIGTERM only once it continues. If it has ended, the call fails, and nothing is to do.
    let _gone = kill_process(server, Signal::CONT);
    Ok(())
}

/// Listens at the place. Waits as long as `patience` for another server there to end.
async fn listen_when_free(place: &Place, patience: Duration) -> Result<SocketClaim> {
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

/// Waits until the host was idle for as long as `after` and no schedule waits for its time. Without `after`: for ever.
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
