//! Checkpoints: the files of a workspace, kept so that they can be brought back byte for byte.
//!
//! A [`Vault`] is a folder outside the repository with content-addressed objects; a [`Workspace`]
//! takes [`Snapshot`]s of one folder into it, compares them and restores them. All calls block.
//!
//! Kept are contents, modes, symbolic links, empty folders and hard links among themselves. Left out
//! are owners, times and extended attributes, and the state of version control (`.git` and its like
//! are neither read nor written). What cannot or shall not be kept is named in
//! [`Snapshot::skipped`], and restoring leaves it alone.

mod apply;
mod changes;
mod codec;
mod collect;
mod compare;
mod error;
mod hash;
mod history;
mod links;
mod lock;
mod objects;
mod pack;
mod places;
mod prune;
mod record;
mod restore;
mod rules;
mod save;
mod stamp;
mod state;
mod state_file;
mod tree;
mod vault;
mod walk;
mod watch;
mod workspace;
mod write;

pub use changes::{Change, ChangeKind, Contents, Point, Side};
pub use collect::Collected;
pub use error::Error;
pub use history::{History, Step};
pub use prune::Pruned;
pub use record::{Skipped, Snapshot, SnapshotId, Why};
pub use restore::{Conflict, Left, LeftWhy, Restored};
pub use vault::{Limits, Options, Vault};
pub use workspace::Workspace;
