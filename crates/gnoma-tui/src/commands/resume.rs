//! `/resume`: continues a stored session.

use gnoma_core::{
    protocol::{Request, Switch},
    store::SessionFacts,
};

use super::slash::SlashCommandSpec;
use crate::{
    app::{LayerChoice, LookUpTarget, State},
    picker::Row,
};

/// Most sessions that are listed.
const MAX_SESSIONS: usize = 200;

pub(super) const COMMAND: SlashCommandSpec = SlashCommandSpec {
    name: "resume",
    aliases: &["sessions"],
    arguments: "[id or `last`]",
    about: "continue an earlier session",
    run,
};

fn run(state: &mut State, argument: &str) {
    if argument == "last" {
        return state.switch_session(resume_request(None));
    }
    state.look_up(LookUpTarget::Conversations, Request::Stored { max: MAX_SESSIONS }, argument);
}

fn resume_request(id: Option<String>) -> Request {
    Request::Switch(Switch::Stored(id))
}

/// Takes the conversation that was meant, or offers all.
pub(super) fn offer_sessions(state: &mut State, mut sessions: Vec<SessionFacts>, argument: &str) {
    if !state.is_closed() {
        sessions.retain(|session| state.session_id() != Some(&session.id));
    }
    if sessions.iter().any(|session| session.id.as_str() == argument) {
        return state.switch_session(resume_request(Some(argument.to_owned())));
    }
    if sessions.is_empty() {
        return state.show_hint("No other saved sessions");
    }
    let row = |session: SessionFacts| {
        let (id, when) = (session.id.to_string(), state.describe_age(session.changed_ms));
        (
            Row::new(session.title, format!("{when}  {id}")),
            LayerChoice::Switch(resume_request(Some(id))),
        )
    };
    let rows = sessions.into_iter().map(row).collect();
    state.pick_or_say("Resume", "session", rows, argument);
}
