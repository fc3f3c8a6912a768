//! `gnoma changes`: what happened to the files since a checkpoint, by whomever.

use anyhow::Result;
use gnoma_core::store::Entry;
use gnoma_store::checkpoint::{Point, Side, Skipped, SnapshotId, Workspace};

use super::{
    Ground,
    rewind::{find, one_line, workspace},
    show, unkept,
};
use crate::{
    args::{ChangesArgs, TurnArgs},
    clock,
    past::refuse_in_incognito,
    report::{self, Exit, Misuse},
    surroundings::Surroundings,
    table,
    timeline::{self, Files},
};

/// Checkpoints that are compared with the files as they are.
const MAX_LOOKED_AT: usize = 100;
/// Things left out that are named.
const MAX_NAMED: usize = 20;

pub(super) async fn run(
    what: &ChangesArgs,
    args: &TurnArgs,
    around: &Surroundings,
) -> Result<Exit> {
    let ground = Ground::of(args, around)?;
    refuse_in_incognito(&ground.loaded.settings, "changes")?;
    if unkept::is_meant(&ground, what.which.session.as_deref()) {
        return told(what, &[], &unkept::workspace(&ground)?);
    }
    let past = ground.past()?;
    let session = past.session(what.which.session.as_deref()).await?.id;
    let path = past.path(&session, None).await?;
    told(what, &path, &workspace(&ground, &session)?)
}

/// `path` is empty where no session is kept; then all checkpoints of the workspace count.
fn told(what: &ChangesArgs, path: &[Entry], workspace: &Workspace) -> Result<Exit> {
    if what.list {
        return list(path, workspace);
    }
    let since = match &what.id {
        Some(id) => Some(find(id, path, Some(workspace))?),
        None if path.is_empty() => last_other(workspace)?,
        None => match last_changed(path) {
            Files::Unchanged => None,
            Files::Kept(id) => Some(id),
            Files::Unknown => {
                let text = "the files as they were before the last turn that changed some could not \
                            be kept; `gnoma changes --list` shows what was";
                return Err(Misuse(text.to_owned()).into());
            }
        },
    };
    let Some(since) = since else {
        report::say("the session has changed no files");
        return Ok(Exit::Done);
    };
    report::say(format_args!("since checkpoint {since} ({}):", taken(&since)));
    show(&differences(workspace, &since, what.diff)?)
}

/// The files before the last turn that changed some.
fn last_changed(path: &[Entry]) -> Files {
    let turns = timeline::turns(path).into_iter().rev();
    turns.map(|turn| turn.files).find(|files| *files != Files::Unchanged).unwrap_or_default()
}

/// The latest kept state that is not the one of now.
fn last_other(workspace: &Workspace) -> Result<Option<SnapshotId>> {
    for id in workspace.past()?.iter().rev().take(MAX_LOOKED_AT) {
        if !workspace.changes(id, Point::Now)?.is_empty() {
            return Ok(Some(id.clone()));
        }
    }
    Ok(None)
}

fn taken(id: &SnapshotId) -> String {
    let since = id.taken().elapsed().unwrap_or_default().as_millis();
    let now_ms = clock::now_ms();
    clock::ago(now_ms.saturating_sub(i64::try_from(since).unwrap_or(i64::MAX)), now_ms)
}

fn differences(workspace: &Workspace, since: &SnapshotId, with_lines: bool) -> Result<String> {
    let changes = workspace.changes(since, Point::Now)?;
    if changes.is_empty() {
        report::say("nothing is different now");
    }
    let mut text = String::new();
    for change in changes {
        if with_lines {
            text.push_str(&workspace.diff(&change)?);
        } else {
            let path = one_line(&change.path.to_string_lossy());
            let is_lost = change.before == Some(Side::NotKept);
            let note = if is_lost { "  (it was not kept and cannot be brought back)" } else { "" };
            text.push_str(&format!("{} {path}{note}\n", change.kind.letter()));
        }
    }
    Ok(text)
}

fn list(path: &[Entry], workspace: &Workspace) -> Result<Exit> {
    let mut checkpoints: Vec<_> = timeline::checkpoints(path)
        .into_iter()
        .map(|(entry, id)| (format!("#{}", entry.id), id))
        .collect();
    if path.is_empty() {
        checkpoints.extend(workspace.past()?.into_iter().map(|id| (String::new(), id)));
    }
    if checkpoints.is_empty() {
        report::say("there are no checkpoints");
    }
    let row = |(entry, id): &(String, SnapshotId)| {
        let label = match workspace.get(id) {
            Ok(snapshot) => snapshot.label,
            Err(_) => "(no longer kept)".to_owned(),
        };
        [id.to_string(), entry.clone(), taken(id), label]
    };
    let rows = checkpoints.iter().rev().map(row);
    let mut text = table::lines(["checkpoint", "entry", "taken", "before"], rows);
    if let Some((_, newest)) = checkpoints.last() {
        text.push_str(&not_kept(workspace, newest));
    }
    show(&text)
}

/// What the newest checkpoint leaves out.
fn not_kept(workspace: &Workspace, newest: &SnapshotId) -> String {
    let Ok(snapshot) = workspace.get(newest) else { return String::new() };
    let mut text = String::new();
    if snapshot.skipped_count > 0 {
        text.push_str("\nnot kept, and so not brought back:\n");
    }
    for Skipped { path, why } in snapshot.skipped.iter().take(MAX_NAMED) {
        text.push_str(&format!("  {} {why}\n", one_line(&path.to_string_lossy())));
    }
    if snapshot.skipped_count > MAX_NAMED {
        text.push_str(&format!("  and {} more\n", snapshot.skipped_count - MAX_NAMED));
    }
    text
}
