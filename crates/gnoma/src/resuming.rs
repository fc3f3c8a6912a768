//! `--continue` and `--resume`: which session goes on, and taking it in hand.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use gnoma_core::{
    Message,
    store::{Holder, SessionFacts, SessionId, SessionStore as _, StoreErrorKind},
};
use gnoma_engine::resume;

use crate::{
    args::TurnArgs,
    clock,
    past::Past,
    report::{self, Misuse},
    screen,
    surroundings::Surroundings,
    table, terminal,
};

/// Sessions offered to choose from.
const MAX_OFFERED: usize = 15;

/// What the command line wants continued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The newest session.
    Newest,
    /// One of a list.
    Chosen,
    /// The one whose id begins so.
    Named(String),
}

impl Wanted {
    /// Reads it off the command line; what was said for an id but is none stays a part of the prompt.
    pub(crate) fn of(args: &TurnArgs) -> (Option<Self>, Vec<String>) {
        let words = args.words.clone();
        match args.resume.as_deref() {
            None => (args.newest.then_some(Self::Newest), words),
            Some("") => (Some(Self::Chosen), words),
            // Nobody types an id with blanks in it: this is a quoted prompt.
            Some(prompt) if prompt.contains(char::is_whitespace) => {
                (Some(Self::Chosen), std::iter::once(prompt.to_owned()).chain(words).collect())
            }
            Some(id) => (Some(Self::Named(id.to_owned())), words),
        }
    }
}

/// A session in hand, and what was said in it.
pub(crate) struct Continued {
    pub past: Past,
    pub id: SessionId,
    pub history: Vec<Arc<Message>>,
}

/// Takes the wanted session in hand, or a copy of it.
pub(crate) async fn take(
    past: Past,
    wanted: &Wanted,
    fork: bool,
    around: &Surroundings,
) -> Result<Continued> {
    let facts = find(&past, wanted, around).await?;
    let mut id = facts.id;
    if fork {
        id = past.fork(&id, None).await?;
    }
    let taken = match past.store.hold(id.clone(), clock::now_ms()).await {
        Ok(taken) => taken,
        Err(error) => {
            let StoreErrorKind::Held { by } = &error.kind else {
                return Err(error).context(format!("cannot continue `{id}`"));
            };
            offer_fork(&id, by, around)?;
            id = past.fork(&id, None).await?;
            past.store.hold(id.clone(), clock::now_ms()).await?
        }
    };
    if !taken.interrupted.is_empty() {
        let count = taken.interrupted.len();
        report::say(format_args!(
            "note: gnoma ended while {count} of this session's calls were running; the model is told that they were interrupted"
        ));
    }
    let history = resume::history(&past.path(&id, None).await?);
    Ok(Continued { past, id, history })
}

async fn find(past: &Past, wanted: &Wanted, around: &Surroundings) -> Result<SessionFacts> {
    match wanted {
        Wanted::Newest => past.newest().await,
        Wanted::Named(beginning) => past.session(Some(beginning)).await,
        Wanted::Chosen => choose(past, around).await,
    }
}

async fn choose(past: &Past, around: &Surroundings) -> Result<SessionFacts> {
    let newest = past.newest().await?;
    let Some(terminal) = terminal::open(around) else { return Ok(newest) };
    let mut offered = past.all().await?;
    offered.truncate(MAX_OFFERED);
    let now_ms = clock::now_ms();
    let row = |(number, facts): (usize, &SessionFacts)| {
        let when = clock::ago(facts.changed_ms, now_ms);
        [number.to_string(), facts.id.to_string(), when, facts.title.clone()]
    };
    let list = table::lines(["", "session", "changed", "title"], (1..).zip(&offered).map(row));
    let question = format!("{list}Which one? A number, the beginning of an id, or nothing for 1: ");
    let Some(answer) = terminal::ask(&terminal, &screen::clean(&question)) else {
        return Err(Misuse("no session was chosen".to_owned()).into());
    };
    if answer.is_empty() {
        return Ok(newest);
    }
    let by_number = answer.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    match by_number.and_then(|at| offered.into_iter().nth(at)) {
        Some(facts) => Ok(facts),
        None => past.session(Some(&answer)).await,
    }
}

/// Asks whether a copy will do; an error where nobody can be asked or the answer is no.
fn offer_fork(id: &SessionId, by: &Holder, around: &Surroundings) -> Result<(), Misuse> {
    let since = clock::ago(by.since_ms, clock::now_ms());
    let held = format!("session `{id}` is open in {by} (since {since})");
    let agreed = terminal::open(around).is_some_and(|terminal| {
        let question = format!("{held}. Continue in a copy of it? [y]es, [n]o: ");
        terminal::is_yes(&terminal, &screen::clean(&question))
    });
    if agreed {
        return Ok(());
    }
    Err(Misuse(format!(
        "{held}; end it there, or continue in a copy: gnoma --resume {id} --fork \"…\" \
         (`gnoma sessions fork {id}` only makes one)"
    )))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::Args;

    fn wanted(line: &str) -> (Option<Wanted>, Vec<String>) {
        Wanted::of(&Args::try_parse_from(line.split('|')).unwrap().turn)
    }

    #[test]
    fn an_id_is_told_from_a_prompt() {
        let named = |id: &str| Some(Wanted::Named(id.to_owned()));
        assert_eq!(wanted("gnoma|hi"), (None, vec!["hi".to_owned()]));
        assert_eq!(wanted("gnoma|-c|hi"), (Some(Wanted::Newest), vec!["hi".to_owned()]));
        assert_eq!(wanted("gnoma|--resume"), (Some(Wanted::Chosen), vec![]));
        assert_eq!(wanted("gnoma|-r|20261122"), (named("20261122"), vec![]));
        assert_eq!(wanted("gnoma|-r|2026|go on"), (named("2026"), vec!["go on".to_owned()]));
        assert_eq!(wanted("gnoma|-r|go on"), (Some(Wanted::Chosen), vec!["go on".to_owned()]));
        assert_eq!(wanted("gnoma|go on|-r"), (Some(Wanted::Chosen), vec!["go on".to_owned()]));
    }
}
