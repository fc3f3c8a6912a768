//! `gnoma ps`: the sessions that live in the server.

use anyhow::Result;
use gnoma_core::{
    json_value::json, protocol::LiveSession, session::SessionState, store::SessionId,
};
use gnoma_host::{Folders as _, clock};

use super::common::{print_json, print_stored_text};
use crate::{
    environment::ProcessEnvironment,
    report::{self, Exit},
    server, table,
};

pub(super) async fn run(json: bool, around: &ProcessEnvironment) -> Result<Exit> {
    let sessions = match server::connect_if_running(around).await? {
        Some(mut client) => {
            let sessions = server::list_sessions(&mut client).await?;
            if sessions.is_empty() && !json {
                report::print_line("no session runs");
            }
            sessions
        }
        None => {
            report::print_line("no gnoma server is running; `gnoma serve` starts one");
            Vec::new()
        }
    };
    if json {
        return print_json(&json!(sessions));
    }
    let now_ms = clock::now_ms();
    let row = |(level, session): &(usize, &LiveSession)| {
        let LiveSession { status, folder, title, subscribers, changed_ms, .. } = session;
        let when = clock::describe_age(*changed_ms, now_ms);
        let folder = around.environment.shorten_home(folder);
        let about = if title.is_empty() { folder } else { format!("{folder}: {title}") };
        [
            format!("{}{}", "  ".repeat(*level), status.session),
            activity_word(session).to_owned(),
            subscribers.to_string(),
            when,
            about,
        ]
    };
    let heads = ["session", "state", "windows", "changed", "about"];
    print_stored_text(&table::render_table(heads, session_tree(&sessions).iter().map(row)))
}

/// The sessions, each with its level and right before those that it has started.
fn session_tree(sessions: &[LiveSession]) -> Vec<(usize, &LiveSession)> {
    let is_known = |id: &SessionId| sessions.iter().any(|it| it.status.session == *id);
    let is_top = |session: &&LiveSession| !session.parent.as_ref().is_some_and(&is_known);
    let mut next: Vec<_> = sessions.iter().filter(is_top).map(|session| (0, session)).collect();
    next.reverse();
    let mut tree = Vec::new();
    while let Some((level, session)) = next.pop()
        && tree.len() < sessions.len()
    {
        tree.push((level, session));
        let id = Some(&session.status.session);
        let below = sessions.iter().rev().filter(|it| it.parent.as_ref() == id);
        next.extend(below.map(|it| (level + 1, it)));
    }
    tree
}

/// Describes the activity of a session in a word or two.
pub(super) fn activity_word(session: &LiveSession) -> &'static str {
    match session.status.state {
        _ if session.status.questions > 0 => "asks",
        SessionState::Idle if session.jobs > 0 => "job",
        SessionState::Idle => "idle",
        SessionState::Active => "working",
        SessionState::Cancelling => "stops",
        SessionState::Closed => "closed",
    }
}

#[cfg(test)]
mod tests {
    use gnoma_core::protocol::Status;

    use super::*;

    fn session(id: &str, parent: Option<&str>) -> LiveSession {
        let value = json!({"status": Status { session: SessionId::new(id), ..Status::default() },
            "parent": parent, "folder": "/", "title": "", "subscribers": 0, "changed_ms": 0});
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn sessions_stand_below_the_one_that_started_them() {
        let all = [
            session("d", Some("b")),
            session("b", Some("a")),
            session("lost", Some("gone")),
            session("a", None),
            session("c", Some("a")),
        ];
        let tree = session_tree(&all);
        let told: Vec<_> =
            tree.iter().map(|(level, it)| (*level, it.status.session.as_str())).collect();
        assert_eq!(told, [(0, "lost"), (0, "a"), (1, "b"), (2, "d"), (1, "c")]);
    }
}
