//! Points of a session to which `/rewind` can return.

use gnoma_core::store::SessionId;
use gnoma_store::checkpoint::{self, Workspace};

use crate::{
    Project, Result,
    project_history::ProjectHistory,
    timeline::{self, TimelineFiles},
};

/// Most places that are given.
const MAX_POINTS: usize = 50;

/// A place of a session that can be gone back to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RewindCandidate {
    /// The number of turns that a rewind to this point removes.
    pub turns: usize,
    /// The prompt that begins the first of them.
    pub prompt: String,
    /// The time when the prompt was written, in milliseconds since 1970.
    pub at_ms: Option<i64>,
    /// The number of files that have changed since; `None` if unknown, for example if files were changed without
    /// being saved first.
    pub files: Option<usize>,
}

/// The places of a session, the newest first.
///
/// # Errors
/// There is no such session, or it cannot be read.
pub async fn rewind_points(project: &Project, session: &SessionId) -> Result<Vec<RewindCandidate>> {
    let path = ProjectHistory::open(project)?.load_path(session, None).await?;
    let workspace = project.places.open(&project.keeping.checkpoints).ok();
    let newest_first = timeline::list_turns(&path).into_iter().rev().take(MAX_POINTS);
    // Turns that changed nothing stand before the same files as the next one.
    let mut last: Option<(TimelineFiles, Option<usize>)> = None;
    let point = |(turns, turn): (usize, timeline::Turn)| {
        let said = path.iter().find(|entry| entry.id == turn.said);
        let files = timeline::files_at(&path, turn.said);
        let changed = match &last {
            Some((known, changed)) if *known == files => *changed,
            _ => count_changed_files(&files, workspace.as_ref()),
        };
        last = Some((files, changed));
        RewindCandidate {
            turns,
            prompt: turn.words,
            at_ms: said.map(|said| said.at_ms),
            files: changed,
        }
    };
    Ok((1..).zip(newest_first).map(point).collect())
}

/// Returns the number of files that a rewind to the earlier files would change.
fn count_changed_files(then: &TimelineFiles, workspace: Option<&Workspace>) -> Option<usize> {
    match then {
        TimelineFiles::Unchanged => workspace.map(|_| 0),
        TimelineFiles::Unknown => None,
        TimelineFiles::Kept(id) => {
            let changes = workspace?.list_changes(id, checkpoint::Point::Now).ok()?;
            Some(checkpoint::without_filled_folders(changes).len())
        }
    }
}
