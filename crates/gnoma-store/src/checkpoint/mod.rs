//! Checkpoints: the files of a workspace, saved so that they can be restored byte for byte.
//!
//! A [`Vault`] is a folder outside the repository with content-addressed objects; a [`Workspace`]
//! takes [`Snapshot`]s of one folder into it, compares them and restores them. All calls block.
//!
//! A snapshot has contents, modes, symbolic links, empty folders and hard links between the files. It
//! leaves out owners, times, extended attributes, and the state of version control (`.git` and the like
//! are neither read nor written). [`Snapshot::skipped`] names what could not or should not be saved, and
//! restoring leaves that alone.
//!
//! # In a session
//!
//! A [`Checkpointer`] is the engine's [`Checkpoints`](gnoma_core::store::Checkpoints): `keep` before
//! everything that may write, **and once at the end of each turn**. Both halves matter: what differs
//! from the session's newest snapshot counts as the person's own change. A state that was saved just
//! before keeps its name, so calling `keep` too often costs only milliseconds.
//!
//! ```ignore
//! let vault = Vault::open(&state_folder.join("checkpoints"), Options::default())?;
//! let workspace = Arc::new(vault.workspace(&root)?);
//! workspace.set_session(Some(session_id.as_str()));
//! let keeper = Arc::new(Checkpointer::start(workspace)?); // Arc<dyn Checkpoints> for the engine
//! keeper.prepare(); // reads everything once, in the background
//! ```
//!
//! Each snapshot names the session that it was taken for ([`Snapshot::session`]). Several processes may
//! work on one workspace; each moves along its own snapshots.
//!
//! # Going back
//!
//! [`Workspace::restore_turns`] restores a snapshot and needs to know which snapshots began the turns, so
//! that [`RestoreReport::theirs`] names what someone else changed between them; use [`Conflict::Refuse`] and
//! then [`Conflict::KeepTheirs`] to ask first. [`RestoreReport::before`] contains everything that was
//! overwritten, and [`RestoreReport::left`] names what differs from the snapshot. [`Workspace::rewind`] and
//! [`Workspace::redo`] count saved states, for when turns are unknown.
//!
//! # Bounds
//!
//! While a [`Checkpointer`] lives, its workspace's snapshots are in use and stay. When the vault grows past
//! [`Limits::store_bytes`], the keeper's thread deletes the oldest of other workspaces;
//! [`Checkpointer::prune_to_limits`], for the end of a run, deletes this one's, too. What stays above the limit is in
//! use, pinned, the newest of its workspace, or younger than [`Options::grace`].

mod apply;
mod branch;
mod candidate;
mod changes;
mod checkpointer;
mod codec;
mod collect;
mod compare;
mod copy_merge;
mod edit;
mod error;
mod folder;
mod hash;
mod history;
mod ignored;
mod links;
mod lock;
mod merge;
mod objects;
mod options;
mod pack;
mod places;
mod prune;
mod record;
mod renames;
mod restore;
mod revert;
mod rewind;
mod rules;
mod save;
mod seal;
mod skipped;
mod snapshot_cause;
mod snapshot_id;
mod stamp;
mod state;
mod state_file;
mod swap;
mod tree;
mod tree_copy;
mod unlock;
mod unowned_changes;
mod unrestored_paths;
mod vault;
mod walk;
mod watch;
mod workspace;
mod write;

pub use branch::ReservedRoom;
pub use candidate::Candidate;
pub use changes::{Change, ChangeKind, Contents, Point, Side, without_filled_folders};
pub use checkpointer::Checkpointer;
pub use collect::CollectionReport;
pub use copy_merge::{Merge, MergeRevert};
pub use error::Error;
pub use merge::{MergeClash, MergeConflict};
pub use options::{Limits, Options};
pub use prune::VaultPruneReport;
pub use record::Snapshot;
pub use restore::{Conflict, RestoreReport};
pub use revert::{CommittedFile, Revert, RevertBase};
pub use skipped::{SkipCause, SkippedPath};
pub use snapshot_cause::SnapshotCause;
pub use snapshot_id::SnapshotId;
pub use unrestored_paths::{UnrestoredPath, UnrestoredReason};
pub use vault::Vault;
pub use workspace::Workspace;
