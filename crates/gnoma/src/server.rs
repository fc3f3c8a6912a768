//! The server of this user, where one runs: where it listens, and connections to it.

use std::{pin::Pin, time::Duration};

use anyhow::Result;
use gnoma_core::protocol::{
    Client, LiveSession, Reply, Request, RequestError, RequestErrorKind, ServerMessage,
};
use gnoma_host::{HostError, clock};
use gnoma_serve::{ConnectError, Place, connect_to_server};
use gnoma_tui::run::Connector;

use crate::environment::ProcessEnvironment;

/// Between two tries to reach a server that has gone.
const RETRY: Duration = Duration::from_millis(500);

/// The program and its version, for people at the other end.
pub(crate) fn name_and_version() -> String {
    format!("gnoma {}", env!("CARGO_PKG_VERSION"))
}

/// Returns the place where this user's server listens.
pub(crate) fn server_place(around: &ProcessEnvironment) -> Place {
    Place::from_dirs(around.var("XDG_RUNTIME_DIR"), around.var("TMPDIR"))
}

/// Returns a random name for a client, which no other program can guess.
pub(crate) fn client_name() -> String {
    format!("{:016x}{:016x}", clock::random_bits(), clock::random_bits())
}

/// A connection to the server; `None` where none runs.
///
/// # Errors
/// One runs, and does not take this client.
pub(crate) async fn connect_if_running(around: &ProcessEnvironment) -> Result<Option<Client>> {
    match try_find(around).await {
        Ok(client) => Ok(client),
        Err(ConnectError::Refused(error)) => Err(HostError::from(error).into()),
        Err(error) => {
            let pid = server_place(around).server_pid().await;
            let who = pid.map_or_else(String::new, |pid| format!(" (process {pid})"));
            let remedy =
                Some(format!("`gnoma serve --replace` ends the server{who} and takes its place"));
            Err(HostError { remedy, ..HostError::failure(error.to_string()) }.into())
        }
    }
}

/// Connects to the server; `None` if none runs.
///
/// # Errors
/// A server runs, but it cannot be reached or refuses the client.
pub(crate) async fn try_find(around: &ProcessEnvironment) -> Result<Option<Client>, ConnectError> {
    let place = server_place(around);
    // Another user must not be able to put a socket there: keys are sent to it.
    if place.check_ownership().is_err() {
        return Ok(None);
    }
    match connect_to_server(&place.socket_path(), &name_and_version(), &client_name()).await {
        Ok(client) => Ok(Some(client)),
        Err(ConnectError::NotRunning) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A connection to the server, which must run.
///
/// # Errors
/// None runs, or it does not take this client.
pub(crate) async fn connect_or_fail(around: &ProcessEnvironment) -> Result<Client> {
    let missing = || HostError {
        remedy: Some("`gnoma serve` starts one".to_owned()),
        ..HostError::usage("no gnoma server is running")
    };
    connect_if_running(around).await?.ok_or_else(|| missing().into())
}

/// Gives another connection once a server is there again.
pub(crate) fn build_reconnector(around: &ProcessEnvironment) -> Connector {
    let around = around.clone();
    Box::new(move || {
        let around = around.clone();
        let again: Pin<Box<dyn Future<Output = Client>>> = Box::pin(async move {
            loop {
                tokio::time::sleep(RETRY).await;
                if let Ok(Some(client)) = connect_if_running(&around).await {
                    return client;
                }
            }
        });
        again
    })
}

/// Sends a request about the whole process, and waits for the reply.
///
/// # Errors
/// The server refused the request, or ended before it answered.
pub(crate) async fn send_request(
    client: &mut Client,
    request: Request,
) -> Result<Reply, RequestError> {
    let asked = client.send_request(None, request)?;
    while let Some(message) = client.next().await {
        if let ServerMessage::Reply { id, result } = message
            && id == asked
        {
            return result;
        }
    }
    Err(RequestError::new(RequestErrorKind::Closed, "the connection to the server has ended"))
}

/// The sessions that live in the server, the one that changed last first.
///
/// # Errors
/// The server does not say.
pub(crate) async fn list_sessions(client: &mut Client) -> Result<Vec<LiveSession>> {
    match send_request(client, Request::List).await.map_err(HostError::from)? {
        Reply::Live(sessions) => Ok(sessions),
        _ => Err(HostError::failure("the server did not list its sessions").into()),
    }
}
