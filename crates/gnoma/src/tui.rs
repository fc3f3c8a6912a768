//! The front end with a screen: one session after the other on the person's terminal.
//!
//! What there is to see and what keys mean is `gnoma-tui`'s part. Here sessions are made, the face
//! is told what it cannot know, and its wishes are performed.

mod desk;
mod files;
mod hands;
mod link;
mod plan;
mod wait;

use std::{
    sync::{Arc, Mutex},
    time::Instant,
};

use anyhow::Result;
use gnoma_core::{Message, store::SessionId};
use gnoma_host::Folders as _;
use gnoma_tui::{
    app::{Options as Face, State},
    charset::Charset,
    keymap::Keymap,
    run::{self, Ending, Stage},
    screen::{self, Layout},
    terminal::{self, tell::Notifier},
    theme::Depth,
    wish::Again,
};
use rustix::process::Signal;

use self::{
    desk::Desk,
    files::Files,
    hands::{Hands, Shells},
    link::Line,
    plan::{Plan, Session, Shared, Step, open},
};
use crate::{
    args::{OutputFormat, TurnArgs},
    report::{self, Exit},
    surroundings::Surroundings,
};

/// A person's own table of keys, in the configuration folder.
const KEYS_FILE: &str = "keys.toml";
/// Most bytes of that file.
const MAX_KEYS_BYTES: u64 = 1 << 20;

/// What was done before the first start is offered.
const LOOKED_FOR: &str = "gnoma looked for keys of known providers in the environment, and for Ollama \
                          and llama.cpp on this machine: there is none";

/// Whether a command line without words asks for this front end.
pub(crate) fn is_meant(args: &TurnArgs, words: &[String], around: &Surroundings) -> bool {
    let is_plain = args.output_format == OutputFormat::Text && !args.print;
    is_plain && words.is_empty() && around.stdin_is_terminal && around.stdout_is_terminal
}

/// Runs sessions on the terminal until the person leaves.
pub(crate) async fn run(args: &TurnArgs, around: &Surroundings) -> Result<Exit> {
    let mut plan = Plan::of(args, around);
    let (mut session, mut line) = plan.session(around).await?;
    let shared = Arc::new(Mutex::new(session.clone()));
    let files = Files::new(around, &session.folder());
    let mut state = face(&session, &line, &files, Arc::clone(&shared), around);
    let shells = Shells::default();
    let mut stage = Stage::open(options(&session, args, around))?;
    loop {
        let mut hands = Hands::new(&session, args.full_screen, around, files.clone(), &shells);
        // A line in between would tear the picture.
        report::hold();
        let ended = stage.play(&mut line, &mut state, &mut hands).await;
        plan.remember(&line, &session);
        let id = session.id();
        line.close().await;
        let again = ended.as_ref().is_ok_and(|ending| *ending == Ending::Quit);
        let Some(again) = again.then(|| state.take_again()).flatten() else {
            shells.end_lent();
            drop(stage);
            farewell(id.as_ref());
            return Ok(exit(ended?, layout(args.full_screen, around)));
        };
        if speaks_for_itself(&again) {
            stage.give_back()?;
            report::release();
        }
        let before = plan.staying(id.clone());
        let step = plan.follow(again, id, around).await;
        let step = match plan.session(around).await {
            Ok(made) => {
                (session, line) = made;
                step
            }
            Err(error) => {
                plan = before;
                (session, line) = plan.session(around).await?;
                Step::refused(&error)
            }
        };
        *open(&shared) = session.clone();
        stage.prepare(session.theme(), consolation(&session));
        welcome(&mut state, &session, &line, step);
    }
}

fn exit(ending: Ending, layout: Layout) -> Exit {
    match ending {
        Ending::Quit => Exit::Done,
        // Where the terminal reads whole lines, Ctrl+D is the end of the input.
        Ending::InputEnded if layout == Layout::Plain => Exit::Done,
        Ending::Signal(number) => Exit::Signalled(number),
        Ending::InputEnded => Exit::Signalled(Signal::HUP.as_raw()),
    }
}

/// What prints or asks by itself needs the terminal as it was.
fn speaks_for_itself(again: &Again) -> bool {
    matches!(again, Again::Demo | Again::Resume(_))
}

/// Shows the next session in the face that is there already.
fn welcome(state: &mut State, session: &Session, line: &Line, step: Step) {
    state.renew(session.facts.clone(), session.found.as_ref(), step.is_same);
    if step.shows_past {
        show_past(state, line);
    }
    report::take_held().iter().for_each(|line| state.note(line));
    match step.told {
        Ok(text) => text.lines().for_each(|line| state.note(line)),
        Err(why) => why.lines().for_each(|line| state.warn(line)),
    }
}

/// Shows what was said in a conversation that goes on.
fn show_past(state: &mut State, line: &Line) {
    state.past(line.said().iter().map(Arc::<Message>::as_ref));
    if plan::is_broken_off(line.said()) {
        state.note("the last turn did not come to its end; the next message goes on from here");
    }
}

fn face(
    session: &Session,
    line: &Line,
    files: &Files,
    shared: Shared,
    around: &Surroundings,
) -> State {
    let (keymap, complaint) = keymap(around);
    let options = Face {
        now: Instant::now(),
        facts: session.facts.clone(),
        keymap,
        history: files.history(),
        theme: session.theme(),
        vim: session.is_set("tui.vim"),
        accessible: layout(false, around) == Layout::Plain,
        drafts: if session.keeps_words() { files.drafts() } else { Vec::new() },
        found: session.found.clone(),
    };
    let mut state = State::new(options, Box::new(Desk::new(shared)));
    show_past(&mut state, line);
    if session.found.is_some() {
        state.note(LOOKED_FOR);
    }
    if let Some(complaint) = complaint {
        state.warn(&complaint);
    }
    state
}

/// The keys, and what is wrong with the person's own table.
fn keymap(around: &Surroundings) -> (Keymap, Option<String>) {
    let file = around.environment.config_dir().join(KEYS_FILE);
    let text = match gnoma_host::files::read(&file, MAX_KEYS_BYTES) {
        Ok(None) => return (Keymap::built_in(), None),
        Ok(Some(text)) => text,
        Err(error) => return (Keymap::built_in(), Some(format!("{}: {error}", file.display()))),
    };
    match Keymap::with_own(&text) {
        Ok((keymap, _)) => (keymap, None),
        Err(error) => {
            let text = format!("{} is not used: {error}", file.display());
            (Keymap::built_in(), Some(text))
        }
    }
}

fn layout(full_screen: bool, around: &Surroundings) -> Layout {
    Layout::of(full_screen, around.var("ACCESSIBLE").is_some(), around.var("TERM"))
}

fn options(session: &Session, args: &TurnArgs, around: &Surroundings) -> run::Options {
    let term = around.var("TERM");
    let (is_xterm, in_screen) =
        (around.var("XTERM_VERSION").is_some(), around.var("STY").is_some());
    run::Options {
        layout: layout(args.full_screen, around),
        theme: session.theme(),
        shade: None,
        depth: Depth::of(around.var("NO_COLOR").is_some(), around.var("COLORTERM"), term),
        charset: charset(around),
        reflows: screen::reflows(term, is_xterm, in_screen),
        tells_size_late: around.var("TMUX").is_some() || in_screen,
        notifier: Notifier::of(around.var("TERM_PROGRAM"), term),
        consolation: consolation(session),
    }
}

fn charset(around: &Surroundings) -> Charset {
    Charset::of(around.var("LC_ALL"), around.var("LC_CTYPE"), around.var("LANG"))
}

fn consolation(session: &Session) -> String {
    if session.is_kept() {
        "gnoma broke off; `gnoma --continue` goes on with the session".to_owned()
    } else {
        "gnoma broke off; the session was not kept".to_owned()
    }
}

/// Not said to a terminal that takes nothing any more: that would hold up the end.
fn farewell(id: Option<&SessionId>) {
    if !terminal::takes_words() {
        return;
    }
    report::release();
    if let Some(id) = id {
        report::say(format_args!("gnoma --resume {id} goes on from here"));
    }
}
