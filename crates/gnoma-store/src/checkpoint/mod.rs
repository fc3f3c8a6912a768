//! Checkpoints: the files of a workspace, kept so that they can be brought back byte for byte.
//!
//! A [`Vault`] is a folder outside the repository with content-addressed objects; a [`Workspace`]
//! takes [`Snapshot`]s of one folder into it, compares them and restores them. All calls block.
//!
//! Kept are contents, modes, symbolic links, empty folders and hard links among themselves. Left out
//! are owners, times and extended attributes, and the state of version control (`.git` and its like
//! are neither read nor written). What cannot or shall not be kept is named in
//! [`Snapshot::skipped`], and restoring leaves it alone.
//!
//! # In a session
//!
//! A [`Keeper`] is the engine's [`Checkpoints`](gnoma_core::store::Checkpoints): `keep` before
//! everything that may write, **and once at the end of each turn**. Both halves matter: what differs
//! from the session's newest snapshot is taken for the person's own change. A state that was kept
//! just before keeps its name, so asking too often costs milliseconds and nothing else.
//!
//! ```ignore
//! let vault = Vault::open(&state_folder.join("checkpoints"), Options::default())?;
//! let workspace = Arc::new(vault.workspace(&root)?);
//! workspace.set_session(Some(session_id.as_str()));
//! let keeper = Arc::new(Keeper::start(workspace)?); // Arc<dyn Checkpoints> for the engine
//! keeper.prepare(); // reads everything once, in the background
//! ```
//!
//! Snapshots carry the session they were taken for ([`Snapshot::session`]). Several processes may
//! work on one workspace; each rewinds along its own snapshots.
//!
//! # `gnoma rewind [N|ID]`
//!
//! `N` (one where none is given) is a number of **turns** where the session's entries are at hand,
//! and else a number of kept states; sixteen hexadecimal digits are an id. States equal to the files
//! as they are do not count, so a rewind always changes something or says
//! [`Error::NothingBefore`].
//!
//! ```ignore
//! let session = match chosen { Some(id) => Some(id), None => workspace.latest_session()? };
//! workspace.set_session(session.as_deref());
//! let starts = turn_starts(&page.entries);
//! let restored = match argument {
//!     Argument::Id(id) => workspace.restore(&id, Conflict::KeepTheirs)?,
//!     Argument::Count(count) => {
//!         let back = Back::Turns { count, starts: &starts };
//!         workspace.rewind(back, Conflict::KeepTheirs)?
//!     }
//! };
//! ```
//!
//! [`Restored::theirs`] names what the person, or another session, had changed and the rewind
//! overwrote: to be said, with `gnoma redo` as the way back, since [`Restored::before`] holds all of
//! it. To ask first, call with [`Conflict::Refuse`], show the paths of [`Error::Conflict`], and call
//! again with [`Conflict::KeepTheirs`]. [`Restored::left`] names what is not as it was, and why.
//!
//! # `gnoma redo`
//!
//! `workspace.redo(1, Conflict::KeepTheirs)?` takes the last rewind back as a whole, whatever number
//! of turns it went; a second call the one before. New work ends what can be redone, yet nothing is
//! lost by that: every state has an id and can be restored.
//!
//! # `gnoma changes [--diff]`
//!
//! What differs between the start of a turn and now:
//!
//! ```ignore
//! let Some(start) = starts.last() else { return say("nothing was changed") };
//! for change in workspace.changes(start, Point::Now)? {
//!     match with_diff {
//!         true => write!(out, "{}", workspace.diff(&change)?)?,
//!         false => writeln!(out, "{} {}", change.kind.letter(), change.path.display())?,
//!     }
//! }
//! ```
//!
//! # Bounds
//!
//! [`Vault::prune`] forgets the oldest snapshots by age, number and size ([`Limits`]) and deletes
//! what no other needs. It is to be called where nobody waits for it, once a run at most, with the
//! snapshots of sessions in use pinned; [`Error::Busy`] means that another process is at it.

mod apply;
mod changes;
mod codec;
mod collect;
mod compare;
mod error;
mod hash;
mod history;
mod keeper;
mod links;
mod lock;
mod made;
mod objects;
mod pack;
mod places;
mod prune;
mod record;
mod restore;
mod rewind;
mod rules;
mod save;
mod seal;
mod stamp;
mod state;
mod state_file;
mod tree;
mod unlock;
mod vault;
mod walk;
mod watch;
mod workspace;
mod write;

pub use changes::{Change, ChangeKind, Contents, Point, Side};
pub use collect::Collected;
pub use error::Error;
pub use history::{History, Step};
pub use keeper::Keeper;
pub use made::Made;
pub use prune::Pruned;
pub use record::{Skipped, Snapshot, SnapshotId, Why};
pub use restore::{Conflict, Left, LeftWhy, Restored};
pub use rewind::{Back, turn_starts};
pub use vault::{Limits, Options, Vault};
pub use workspace::Workspace;
