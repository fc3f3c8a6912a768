//! `gnoma "prompt"`: one turn, and out.

use std::sync::Arc;

use anyhow::Result;
use clap::CommandFactory as _;
use gnoma_core::{Content, protocol::Start};
use gnoma_host::{
    HostError, Project,
    keeping::Kept,
    resuming::Continued,
    routing::{self, Ready},
    session,
};

use crate::{
    args::{Args, OutputFormat, TurnArgs},
    continuing,
    front::{self, Front, json},
    lowering::Asked,
    prompt,
    report::{self, Exit},
    surroundings::Surroundings,
    terminal, tui,
};

pub(crate) async fn run(args: &TurnArgs, around: &Surroundings) -> Result<Exit> {
    let answered = answer(args, around).await;
    if let Err(error) = &answered
        && args.output_format != OutputFormat::Text
    {
        // Whoever reads JSON gets an object at the end, also of a turn that could not begin.
        super::common::print(&json::failure(error))?;
    }
    answered
}

async fn answer(args: &TurnArgs, around: &Surroundings) -> Result<Exit> {
    let Asked { mut spec, words, chooses } = Asked::of(args, around);
    refuse_lone_fork(args, &spec.start)?;
    if tui::is_meant(args, &words, around) {
        return tui::run(args, around).await;
    }
    let content = asked(&spec.start, &words, around)?;
    let asker = (args.output_format == OutputFormat::Text)
        .then(|| front::Asker::of_terminal(around))
        .flatten();
    spec.interactive = asker.is_some();
    let mut project = Project::open(spec, report::notices())?;
    project.refuse_whole_system()?;
    let continued = continuing::take(&mut project, chooses, around).await?;
    let content = match content {
        Some(content) => content,
        None => vec![Content::text(question(around)?)],
    };
    let store = continued.as_ref().map(|continued| Arc::clone(&continued.past.store));
    let kept = Kept::start(&project, store);
    let wanted = routing::Wanted { begun: kept.begun(), ..routing::Wanted::default() };
    let Ready { routes, model, .. } = routing::prepare(&project, &wanted).await?;
    let mut options = session::options(&project, routes)?;
    keep(&mut options, &kept, continued);
    let firewall = Arc::clone(&project.firewall);
    let front = Front::new(args.output_format, around, model, firewall, kept.begun());
    let exit = front.turn(options, content, asker).await;
    kept.tidy().await;
    exit
}

/// What was said; `None` where it is still to be asked for, once a session has been chosen.
fn asked(start: &Start, words: &[String], around: &Surroundings) -> Result<Option<Vec<Content>>> {
    let content = prompt::content(words)?;
    let can_ask = *start != Start::New && terminal::open(around).is_some();
    if content.is_none() && !can_ask {
        report::say(Args::command().render_help());
        return Err(nothing_asked().into());
    }
    Ok(content)
}

fn refuse_lone_fork(args: &TurnArgs, start: &Start) -> Result<(), HostError> {
    if !args.fork || *start != Start::New {
        return Ok(());
    }
    let text = "--fork continues in a copy: name a session with --resume, or give --continue";
    Err(HostError::usage(text))
}

/// Hands the session what it is kept in, and what was said in it before.
fn keep(options: &mut gnoma_engine::session::Options, kept: &Kept, continued: Option<Continued>) {
    options.keeping = kept.keeping(continued.as_ref().map(|continued| continued.id.clone()), None);
    options.tools.extend(kept.tool());
    if let Some(continued) = continued {
        options.id = continued.id.to_string();
        options.history = continued.history;
    }
}

fn nothing_asked() -> HostError {
    HostError::usage("nothing was asked; give a prompt, or pipe one in")
}

/// What the person says when a session was chosen without words to go on with.
fn question(around: &Surroundings) -> Result<String, HostError> {
    let said = terminal::open(around).and_then(|terminal| terminal::ask(&terminal, "> "));
    said.filter(|said| !said.is_empty()).ok_or_else(nothing_asked)
}
