//! `--continue` and `--resume`: which session goes on, and taking it in hand.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use gnoma_core::{
    Message, Usage,
    store::{Entry, Holder, Record, SessionFacts, SessionId, SessionStore as _, StoreErrorKind},
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
    pub used: Used,
}

/// Tokens of a conversation that goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Used {
    /// Those of the last call, which fill the context window still; none after a summary.
    pub last_call: Usage,
    /// Those of all calls.
    pub all: Usage,
}

impl Used {
    fn of(path: &[Entry]) -> Self {
        let mut used = Self::default();
        for entry in path {
            match &entry.record {
                Record::Used(usage) => {
                    used.last_call = *usage;
                    used.all += *usage;
                }
                Record::Summary { .. } => used.last_call = Usage::default(),
                _ => (),
            }
        }
        used
    }
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
    let path = past.path(&id, None).await?;
    let (history, used) = (resume::history(&path), Used::of(&path));
    Ok(Continued { past, id, history, used })
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
    use gnoma_core::store::EntryId;

    use super::*;
    use crate::args::Args;

    fn wanted(line: &str) -> (Option<Wanted>, Vec<String>) {
        Wanted::of(&Args::try_parse_from(line.split('|')).unwrap().turn)
    }

    #[test]
    fn the_last_call_fills_the_window_until_the_past_is_told_in_fewer_words() {
        let tokens = |input| Usage { input, ..Usage::default() };
        let summary = Record::Summary { text: "short".to_owned(), up_to: EntryId(1) };
        let records = [Record::Used(tokens(10)), Record::Used(tokens(20)), summary];
        let entry = |(id, record)| Entry { id: EntryId(id), parent: None, at_ms: 0, record };
        let path: Vec<Entry> = (1..).zip(records).map(entry).collect();
        assert_eq!(Used::of(&path[..2]), Used { last_call: tokens(20), all: tokens(30) });
        assert_eq!(Used::of(&path), Used { last_call: tokens(0), all: tokens(30) });
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
