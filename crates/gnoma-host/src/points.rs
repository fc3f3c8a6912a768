//! Places of a session that can be gone back to.

use gnoma_core::store::SessionId;
use gnoma_store::checkpoint;

use crate::{
    Project, Result,
    past::Past,
    timeline::{self, TimelineFiles},
};

/// Most places that are given.
const MAX_POINTS: usize = 50;

/// A place of a session that can be gone back to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// How many turns are taken back.
    pub turns: usize,
    /// The prompt that begins the first of them.
    pub prompt: String,
    /// When it was said, in milliseconds since 1970.
    pub at_ms: Option<i64>,
    /// How many files have changed since; `None` where that is not known, such as where the turn has
    /// no checkpoint.
    pub files: Option<usize>,
}

/// The places of a session, the newest first.
///
/// # Errors
/// There is no such session, or it cannot be read.
pub async fn points(project: &Project, session: &SessionId) -> Result<Vec<Point>> {
    let path = Past::open(project)?.path(session, None).await?;
    let workspace = project.places.open(&project.keeping.checkpoints).ok();
    let newest_first = timeline::turns(&path).into_iter().rev().take(MAX_POINTS);
    let point = |(turns, turn): (usize, timeline::Turn)| {
        let said = path.iter().find(|entry| entry.id == turn.said);
        let changes = match (&turn.files, &workspace) {
            (TimelineFiles::Kept(id), Some(files)) => {
                files.changes(id, checkpoint::Point::Now).ok()
            }
            _ => None,
        };
        Point {
            turns,
            prompt: turn.words,
            at_ms: said.map(|said| said.at_ms),
            files: changes.map(|changes| changes.len()),
        }
    };
    Ok((1..).zip(newest_first).map(point).collect())
}
