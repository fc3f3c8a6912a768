//! `gnoma attach`: a window on a session that lives in the server.

use anyhow::Result;
use gnoma_core::protocol::{Detach, LiveSession, SessionSpec, Start};
use gnoma_host::{HostError, Notices, ProcessResources, Project};
use gnoma_tui::run::Link;

use crate::{
    args::TurnArgs, environment::ProcessEnvironment, launch_request, report::Exit, server,
    tui::SessionWindow,
};

pub(super) async fn run(
    wanted: Option<&str>,
    args: &TurnArgs,
    around: &ProcessEnvironment,
) -> Result<Exit> {
    if !(around.stdin_is_terminal && around.stdout_is_terminal) {
        return Err(HostError::usage("`gnoma attach` opens a window and needs a terminal").into());
    }
    let mut client = server::connect_or_fail(around).await?;
    let sessions = server::list_sessions(&mut client).await?;
    let spec = launch_request::spec_from_args(args, around);
    let session = choose_session(sessions, wanted, &spec)?;
    let id = session.status.session;
    let start = Start::Stored { id: id.to_string(), fork: false };
    let folder = session.folder;
    let spec = SessionSpec { folder, start, interactive: true, detach: Detach::Keep, ..spec };
    let project =
        Project::open(spec.clone(), Notices::without_sink(), ProcessResources::default())?;
    let connector = server::build_reconnector(around);
    let link = Link::new(client, id, Some(Box::new(spec)), Some(connector));
    let window =
        SessionWindow { project: &project, full_screen: args.full_screen, is_served: true };
    window.run_window(link, around, std::future::ready(())).await
}

/// The session that is meant.
fn choose_session(
    sessions: Vec<LiveSession>,
    wanted: Option<&str>,
    spec: &SessionSpec,
) -> Result<LiveSession, HostError> {
    let remedy = Some("`gnoma ps` lists the sessions of the server".to_owned());
    let Some(wanted) = wanted else {
        let folder = spec.folder.canonicalize().unwrap_or_else(|_| spec.folder.clone());
        let here = sessions.iter().position(|session| session.folder == folder);
        let nothing = || HostError {
            remedy: Some("`gnoma` opens one there".to_owned()),
            ..HostError::usage("the server has no sessions")
        };
        return sessions.into_iter().nth(here.unwrap_or(0)).ok_or_else(nothing);
    };
    let mut found: Vec<LiveSession> = sessions
        .into_iter()
        .filter(|session| session.status.session.as_str().starts_with(wanted))
        .collect();
    match (found.pop(), found.is_empty()) {
        (Some(session), true) => Ok(session),
        (None, _) => {
            let cause = format!("the server has no session `{wanted}`");
            Err(HostError { remedy, ..HostError::usage(cause) })
        }
        (Some(_), false) => {
            let cause = format!("`{wanted}` matches several sessions; use more of the id");
            Err(HostError { remedy, ..HostError::usage(cause) })
        }
    }
}
