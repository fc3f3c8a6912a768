//! `gnoma task run --detach`: runs a task in the server, and returns once its first step has begun.

use std::time::Duration;

use anyhow::Result;
use gnoma_core::{
    Event,
    json_value::json,
    protocol::{
        Client, Detach, Reply, Request, RequestId, ServerMessage, SessionSpec, TaskRequest,
        TaskRunState,
    },
    session::SessionState,
    store::SessionId,
};
use gnoma_host::{
    HostError,
    tasks::{Tasks, quoted_line},
};
use tokio::time::{Instant, timeout_at};

use super::{
    common::{open_project, print_raw_data, print_safe_text},
    task_words::name_and_arguments,
};
use crate::{
    args::{OutputFormat, TurnArgs},
    environment::ProcessEnvironment,
    launch_request,
    report::Exit,
    server,
};

/// The longest wait for the run to begin, which connects to servers and reads files.
const BEGIN_PATIENCE: Duration = Duration::from_secs(60);
/// The longest wait until the server has heard that the session ends.
const CLOSE_PATIENCE: Duration = Duration::from_secs(5);

pub(super) async fn run(
    words: &[String],
    args: &TurnArgs,
    around: &ProcessEnvironment,
) -> Result<Exit> {
    let project = open_project(args, around)?;
    project.refuse_whole_system()?;
    let (name, arguments) = name_and_arguments(words)?;
    Tasks::find(&project).plan(name, arguments)?;
    let mut client = server::connect_or_fail(around).await?;
    let spec = SessionSpec {
        interactive: true,
        detach: Detach::Keep,
        ..launch_request::spec_from_args(args, around)
    };
    let opened = server::send_request(&mut client, Request::Open(Box::new(spec))).await;
    let Reply::Opened { session } = opened.map_err(HostError::from)? else {
        return Err(HostError::failure("the server did not open a session").into());
    };
    start_run(&mut client, &session, words).await?;
    if args.output_format != OutputFormat::Text {
        let value = json!({"type": "task_detached", "task": name, "session_id": session});
        return print_raw_data(&format!("{value}\n"));
    }
    print_safe_text(&format!(
        "{name} runs in session {session}. `gnoma attach {session}` shows it, `gnoma ps` lists what runs\n"
    ))
}

/// Has the run begin in the session. If it cannot, the session ends.
async fn start_run(client: &mut Client, session: &SessionId, words: &[String]) -> Result<()> {
    let attach = Request::Attach { from: None };
    client.send_request(Some(session), attach).map_err(HostError::from)?;
    let run = Request::Task(TaskRequest::Run { line: quoted_line(words) });
    let asked = client.send_request(Some(session), run).map_err(HostError::from)?;
    let begun = wait_for_begin(client, asked).await;
    if begun.is_err() {
        close_session(client, session).await;
    }
    begun
}

/// Closes the session in which nothing was said, and waits until that is heard.
async fn close_session(client: &mut Client, session: &SessionId) {
    let Ok(closing) = client.send_request(Some(session), Request::Close) else { return };
    let heard = async {
        while let Some(message) = client.next().await {
            if matches!(message, ServerMessage::Reply { id, .. } if id == closing) {
                break;
            }
        }
    };
    let _in_time = timeout_at(Instant::now() + CLOSE_PATIENCE, heard).await;
}

/// Waits until the first step has begun, or the run has ended already.
async fn wait_for_begin(client: &mut Client, asked: RequestId) -> Result<()> {
    let deadline = Instant::now() + BEGIN_PATIENCE;
    loop {
        match timeout_at(deadline, client.next()).await {
            Ok(Some(ServerMessage::Reply { id, result })) if id == asked => {
                return match result.map_err(HostError::from)? {
                    Reply::Task(report) if report.state == TaskRunState::Failed => {
                        Err(HostError::failure(report.summary).into())
                    }
                    _ => Ok(()),
                };
            }
            Ok(Some(ServerMessage::Event(happened))) if begins_step(&happened.event) => {
                return Ok(());
            }
            // It stands for events that were missed.
            Ok(Some(ServerMessage::Snapshot(view))) if view.turn.is_some() => return Ok(()),
            Ok(Some(_)) => (),
            Ok(None) => return Err(HostError::failure("the server ended").into()),
            Err(_) => {
                let cause = "the task has not begun after a minute, and its session was closed";
                return Err(HostError::failure(cause).into());
            }
        }
    }
}

/// Returns whether a step has begun: a turn runs, or a question of the task is open.
fn begins_step(event: &Event) -> bool {
    matches!(event, Event::State(SessionState::Active) | Event::PermissionAsked { .. })
}
