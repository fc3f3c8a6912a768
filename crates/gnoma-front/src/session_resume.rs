//! Opens the session that is asked for; which one, and whether a copy will do, the person may be asked.

use anyhow::Result;
use gnoma_core::{
    protocol::{
        Client, Reply, Request, RequestError, RequestErrorKind, ServerMessage, SessionSpec, Start,
    },
    store::{SessionFacts, SessionId},
};
use gnoma_host::{HostError, Project, clock, project_history::ProjectHistory, session_resume};

use crate::{environment::ProcessEnvironment, screen, table, terminal};

/// Sessions offered to choose from.
const MAX_OFFERED: usize = 15;
/// Most questions until one is chosen.
const MAX_QUESTIONS: usize = 5;

/// Opens the session of `spec`, or a copy of one that is open elsewhere if the person agrees to that.
///
/// # Errors
/// The session cannot be opened.
pub async fn open_or_copy(
    client: &mut Client,
    spec: &mut SessionSpec,
    around: &ProcessEnvironment,
) -> Result<SessionId> {
    match open_session(client, spec).await {
        Err(error) if error.kind == RequestErrorKind::Held => {
            if !agrees_to_a_copy(&error.cause, around) {
                return Err(HostError::from(error).into());
            }
            spec.start = as_fork(&spec.start);
            Ok(open_session(client, spec).await.map_err(HostError::from)?)
        }
        opened => Ok(opened.map_err(HostError::from)?),
    }
}

/// Opens the session of `spec` without a question.
///
/// # Errors
/// The session cannot be opened.
pub async fn open_session(
    client: &mut Client,
    spec: &SessionSpec,
) -> Result<SessionId, RequestError> {
    let asked = client.send_request(None, Request::Open(Box::new(spec.clone())))?;
    while let Some(message) = client.next().await {
        match message {
            ServerMessage::Reply { id, result } if id == asked => {
                if let Reply::Opened { session } = result? {
                    return Ok(session);
                }
            }
            _ => (),
        }
    }
    Err(RequestError::new(RequestErrorKind::Closed, "the session host stopped"))
}

/// Asks at the terminal which stored session to continue; without a terminal it is the newest.
///
/// # Errors
/// No session is stored or chosen, or the sessions cannot be read.
pub async fn choose_stored_session(
    project: &Project,
    around: &ProcessEnvironment,
) -> Result<Start> {
    session_resume::may_continue(project)?;
    let id = ask_for_session(&ProjectHistory::open(project)?, around).await?.id.to_string();
    Ok(Start::Stored { id, fork: is_fork(&project.spec.start) })
}

fn is_fork(start: &Start) -> bool {
    match start {
        Start::New => false,
        Start::Newest { fork } | Start::Stored { fork, .. } => *fork,
    }
}

/// Returns the same start, but with a stored session continued in a copy.
fn as_fork(start: &Start) -> Start {
    match start.clone() {
        Start::New => Start::New,
        Start::Newest { .. } => Start::Newest { fork: true },
        Start::Stored { id, .. } => Start::Stored { id, fork: true },
    }
}

async fn ask_for_session(
    past: &ProjectHistory,
    around: &ProcessEnvironment,
) -> Result<SessionFacts> {
    let newest = past.newest_session().await?;
    let Some(terminal) = terminal::open_terminal(around) else { return Ok(newest) };
    let mut offered = past.list_sessions().await?;
    offered.truncate(MAX_OFFERED);
    let now_ms = clock::now_ms();
    let row = |(number, facts): (usize, &SessionFacts)| {
        let when = clock::describe_age(facts.changed_ms, now_ms);
        [number.to_string(), facts.id.to_string(), when, facts.title.clone()]
    };
    let list =
        table::render_table(["", "session", "changed", "title"], (1..).zip(&offered).map(row));
    let mut question = format!("{list}Which one? Number or id [1]: ");
    for _ in 0..MAX_QUESTIONS {
        let shown = screen::mark_unsafe_chars(&question);
        let Some(answer) = terminal::ask_line(&terminal, &shown) else { break };
        if answer.is_empty() {
            return Ok(newest);
        }
        let by_number = answer.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        if let Some(facts) = by_number.and_then(|at| offered.get(at)) {
            return Ok(facts.clone());
        }
        match past.find_session(Some(&answer)).await {
            Ok(facts) => return Ok(facts),
            Err(error) => question = format!("{error}\nNumber or id [1]: "),
        }
    }
    Err(HostError::usage("no session was chosen").into())
}

/// Asks at the terminal whether to continue in a copy of a session that is open elsewhere. Returns `false` without
/// a terminal to ask at.
fn agrees_to_a_copy(held: &str, around: &ProcessEnvironment) -> bool {
    terminal::open_terminal(around).is_some_and(|terminal| {
        let question = format!("{held}. Continue in a copy? [y]es, [n]o: ");
        terminal::is_yes(&terminal, &screen::mark_unsafe_chars(&question))
    })
}
