//! `gnoma "prompt"`: one turn, and out.

use std::{path::Path, sync::Arc};

use anyhow::Result;
use clap::CommandFactory as _;
use gnoma_config::{Settings, settings::Sandbox};
use gnoma_core::Content;
use gnoma_engine::session;

use super::cwd;
use crate::{
    args::{Args, OutputFormat, TurnArgs},
    front::{self, Front, json},
    guarding,
    keeping::{Kept, Places},
    past::Past,
    prompt,
    report::{self, Exit, Misuse},
    resuming::{self, Continued, Wanted},
    routing::{self, Ready},
    surroundings::Surroundings,
    terminal,
    wire::{self, Start},
};

pub(crate) async fn run(args: &TurnArgs, around: &Surroundings) -> Result<Exit> {
    let answered = answer(args, around).await;
    if let Err(error) = &answered
        && args.output_format != OutputFormat::Text
    {
        // Whoever reads JSON gets an object at the end, also of a turn that could not begin.
        super::print(&json::failure(error))?;
    }
    answered
}

async fn answer(args: &TurnArgs, around: &Surroundings) -> Result<Exit> {
    let (wanted, words) = Wanted::of(args);
    if front::tui::is_meant(args, &words, around) {
        refuse_lone_fork(args, wanted.as_ref())?;
        return front::tui::run(args, around).await;
    }
    let content = asked(args, wanted.as_ref(), &words, around)?;
    let cwd = cwd(args, around)?;
    let loaded = wire::configuration(args, around, &cwd)?;
    refuse_whole_system(&cwd, &loaded.settings)?;
    let firewall = guarding::firewall(&loaded.settings, around)?;
    let places = Places::of(&loaded, around, &cwd);
    let continued = match wanted {
        Some(wanted) => {
            may_continue(&loaded.settings)?;
            let past = Past::open(places.clone(), &firewall)?;
            Some(resuming::take(past, &wanted, args.fork, around).await?)
        }
        None => None,
    };
    let content = match content {
        Some(content) => content,
        None => vec![Content::text(question(around)?)],
    };
    let store = continued.as_ref().map(|continued| Arc::clone(&continued.past.store));
    let kept = Kept::start(&loaded, &places, &firewall, store);
    let wanted = routing::Wanted {
        args,
        around,
        loaded: &loaded,
        firewall: &firewall,
        project: &places.project,
        begun: kept.begun(),
        seed: None,
        grows: false,
    };
    let Ready { routes, model, .. } = routing::prepare(wanted).await?;
    let folders = super::folders(args, around)?;
    let system = args.system.clone();
    let start = Start { cwd: &cwd, folders, routes, firewall: Arc::clone(&firewall), system };
    let mut options = wire::session(&loaded, around, start)?;
    keep(&mut options, &kept, continued);
    let asker = (args.output_format == OutputFormat::Text)
        .then(|| front::Asker::of_terminal(around))
        .flatten();
    options.interactive = asker.is_some();
    let front = Front::new(args.output_format, around, model, firewall, kept.begun());
    let exit = front.turn(options, content, asker).await;
    kept.tidy().await;
    exit
}

/// What was said; `None` where it is still to be asked for, once a session has been chosen.
fn asked(
    args: &TurnArgs,
    wanted: Option<&Wanted>,
    words: &[String],
    around: &Surroundings,
) -> Result<Option<Vec<Content>>> {
    refuse_lone_fork(args, wanted)?;
    let content = prompt::content(words)?;
    let can_ask = wanted.is_some() && terminal::open(around).is_some();
    if content.is_none() && !can_ask {
        report::say(Args::command().render_help());
        return Err(nothing_asked().into());
    }
    Ok(content)
}

fn refuse_lone_fork(args: &TurnArgs, wanted: Option<&Wanted>) -> Result<(), Misuse> {
    if !args.fork || wanted.is_some() {
        return Ok(());
    }
    let text = "--fork continues in a copy: name a session with --resume, or give --continue";
    Err(Misuse(text.to_owned()))
}

/// Refuses to work in the whole system, unless there are no walls that would be void there.
pub(crate) fn refuse_whole_system(cwd: &Path, settings: &Settings) -> Result<(), Misuse> {
    if cwd.parent().is_some() || settings.sandbox.mode == Sandbox::Off {
        return Ok(());
    }
    let text =
        "the whole system is no workspace: go to the project's folder, or name it with --cwd";
    Err(Misuse(text.to_owned()))
}

/// Hands the session what it is kept in, and what was said in it before.
fn keep(options: &mut session::Options, kept: &Kept, continued: Option<Continued>) {
    options.keeping = kept.keeping(continued.as_ref().map(|continued| continued.id.clone()));
    options.tools.extend(kept.tool());
    if let Some(continued) = continued {
        options.id = continued.id.to_string();
        options.history = continued.history;
    }
}

fn nothing_asked() -> Misuse {
    Misuse("nothing was asked; give a prompt, or pipe one in".to_owned())
}

/// What the person says when a session was chosen without words to go on with.
fn question(around: &Surroundings) -> Result<String, Misuse> {
    let said = terminal::open(around).and_then(|terminal| terminal::ask(&terminal, "> "));
    said.filter(|said| !said.is_empty()).ok_or_else(nothing_asked)
}

/// Whether the settings let a session be continued.
pub(crate) fn may_continue(settings: &Settings) -> Result<(), Misuse> {
    let why = match settings {
        Settings { privacy, .. } if privacy.incognito => "incognito continues no session",
        Settings { session, .. } if !session.keep => {
            "`session.keep` is off: what would be said could not be added to the session"
        }
        _ => return Ok(()),
    };
    Err(Misuse(why.to_owned()))
}
