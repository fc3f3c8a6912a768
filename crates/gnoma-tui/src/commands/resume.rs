//! `/resume`: goes on with a stored conversation.

use super::slash::Slash;
use crate::{
    app::{Choice, State},
    desk::SessionRow,
    picker::Row,
    wish::Again,
};

pub(super) const COMMAND: Slash = Slash {
    name: "resume",
    aliases: &["sessions"],
    arguments: "[id or `last`]",
    about: "go on with an earlier conversation",
    run,
};

fn run(state: &mut State, argument: &str) {
    if argument == "last" {
        return state.again(Again::Resume(None));
    }
    let sessions = state.desk.sessions();
    if sessions.iter().any(|session| session.id == argument) {
        return state.again(Again::Resume(Some(argument.to_owned())));
    }
    if sessions.is_empty() {
        return state.hint("there is no stored conversation");
    }
    let row = |session: SessionRow| {
        let SessionRow { id, title, when } = session;
        (Row::new(title, format!("{when}  {id}")), Choice::Again(Again::Resume(Some(id))))
    };
    let rows = sessions.into_iter().map(row).collect();
    state.pick("Go on with", rows, argument);
}
