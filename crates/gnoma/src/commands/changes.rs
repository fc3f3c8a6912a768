//! `gnoma changes`: what happened to the files since a checkpoint, by whomever.

use anyhow::Result;
use gnoma_core::store::Entry;
use gnoma_store::checkpoint::{Point, SnapshotId, Workspace};

use super::{
    Ground,
    rewind::{find, one_line, workspace},
    show, unkept,
};
use crate::{
    args::{ChangesArgs, TurnArgs},
    clock,
    report::{self, Exit},
    surroundings::Surroundings,
    table, timeline,
};

/// Checkpoints that are compared with the files as they are.
const MAX_LOOKED_AT: usize = 100;

pub(super) async fn run(
    what: &ChangesArgs,
    args: &TurnArgs,
    around: &Surroundings,
) -> Result<Exit> {
    let ground = Ground::of(args, around)?;
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
        None => timeline::turns(path).into_iter().rev().find_map(|turn| turn.files),
    };
    let Some(since) = since else {
        report::say("the session has changed no files");
        return Ok(Exit::Done);
    };
    report::say(format_args!("since checkpoint {since} ({}):", taken(&since)));
    show(&differences(workspace, &since, what.diff)?)
}

/// The latest kept state that is not the one of now.
fn last_other(workspace: &Workspace) -> Result<Option<SnapshotId>> {
    for id in workspace.history()?.past().iter().rev().take(MAX_LOOKED_AT) {
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
            text.push_str(&format!("{} {path}\n", change.kind.letter()));
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
        let all = workspace.history()?.past().to_vec();
        checkpoints.extend(all.into_iter().map(|id| (String::new(), id)));
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
    show(&table::lines(["checkpoint", "entry", "taken", "before"], rows))
}
