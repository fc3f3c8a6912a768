//! `gnoma rewind` and `gnoma redo`: files and conversation as they were, and back.

use std::path::PathBuf;

use anyhow::Result;
use gnoma_host::{
    redo,
    rewind::{self, Rewind, RewindOutcome, RewindPart, RewindTarget},
};

use super::common::{open_project, print_stored_text};
use crate::{
    args::{RewindArgs, SessionSelector, TurnArgs},
    environment::ProcessEnvironment,
    report::Exit,
    screen, terminal,
};

pub(super) async fn run(
    how: &RewindArgs,
    args: &TurnArgs,
    around: &ProcessEnvironment,
) -> Result<Exit> {
    let project = open_project(args, around)?;
    if let Some(elf) = &how.elf {
        let session = how.which.session.as_deref();
        return print_outcome(gnoma_host::rewind_elf(&project, session, elf).await?);
    }
    let to = how
        .turn_count()
        .map_or_else(|| RewindTarget::Checkpoint(how.to.clone()), RewindTarget::Turns);
    let part = match (how.files, how.conversation, how.both) {
        (true, _, _) => RewindPart::Files,
        (_, true, _) => RewindPart::Conversation,
        (_, _, true) => RewindPart::Both,
        _ => RewindPart::All,
    };
    let session = how.which.session.clone();
    let overwrite = terminal::open_terminal(around).is_none();
    let mut how = Rewind { session, to, part, dry_run: how.dry_run, overwrite, in_session: false };
    let mut outcome = rewind::rewind_session(&project, &how).await?;
    if let RewindOutcome::Conflict(paths) = &outcome {
        if !may_overwrite(paths, around) {
            return print_stored_text("nothing changed\n");
        }
        how.overwrite = true;
        outcome = rewind::rewind_session(&project, &how).await?;
    }
    print_outcome(outcome)
}

/// Takes the last going back back.
pub(super) async fn redo_rewind(
    which: &SessionSelector,
    args: &TurnArgs,
    around: &ProcessEnvironment,
) -> Result<Exit> {
    let project = open_project(args, around)?;
    let session = which.session.as_deref();
    let overwrite = terminal::open_terminal(around).is_none();
    let mut outcome = redo::redo_rewind(&project, session, overwrite).await?;
    if let RewindOutcome::Conflict(paths) = &outcome {
        if !may_overwrite(paths, around) {
            return print_stored_text("nothing changed\n");
        }
        outcome = redo::redo_rewind(&project, session, true).await?;
    }
    print_outcome(outcome)
}

fn print_outcome(outcome: RewindOutcome) -> Result<Exit> {
    match outcome {
        RewindOutcome::Done(text) => print_stored_text(&text),
        RewindOutcome::Conflict(paths) => print_stored_text(&rewind::render_paths(&paths)),
    }
}

/// Asks whether files that changed outside of the session may be overwritten.
fn may_overwrite(paths: &[PathBuf], around: &ProcessEnvironment) -> bool {
    let theirs = rewind::render_paths(paths);
    let question = format!(
        "you or another program changed these files:\n{theirs}\
         Overwrite them? Their current content is saved as a checkpoint first. [y]es, [n]o: "
    );
    terminal::open_terminal(around)
        .is_some_and(|terminal| terminal::is_yes(&terminal, &screen::mark_unsafe_chars(&question)))
}
