//! Elfs that work in a copy of the project: the copy is made from a checkpoint in a separate folder, and its
//! changes are merged back when the elf is done.
//!
//! The checkpoints copy, compare and merge files. This module decides where copies are, who may merge when, and
//! what is reported.

mod copy_cleanup;
mod git;
mod merge_reports;

use std::{
    fs::File,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use gnoma_core::{
    protocol::{Environment, SessionSpec},
    tool::{ChildMerge, ChildTask, Tier},
};
use gnoma_store::checkpoint::{Candidate, Checkpointer, ReservedRoom, SnapshotId};

use gnoma_engine::{CheckpointReadiness, MissingFilesError, Routes};
use tokio::{
    sync::{OwnedMutexGuard, watch},
    time::timeout,
};

use self::copy_cleanup::CopyPlace;
pub(crate) use self::copy_cleanup::remove_orphans;
use crate::{
    HostError, Project, Result,
    blocking_work::off_loop,
    debug_log::LoggedStep,
    extensions,
    live::{CopyMergeError, MergePreview},
    session_stores,
    shared::WorkspaceKey,
};

/// The interval at which to check whether files are still written to a copy that is to be removed.
const STILL_FILLED: Duration = Duration::from_millis(20);
/// Longest wait for the writing to an unwanted copy to stop; files that are written later are removed at the next start.
const MAX_STOPPING: Duration = Duration::from_secs(60);
/// Longest wait for the files of a copy.
const MAX_FILLING: Duration = Duration::from_secs(3600);

/// Returns the label of a merge of an elf's changes.
pub(crate) fn merge_label(elf: &str) -> String {
    format!("elf `{elf}`")
}

/// Reports whether an elf cannot begin before all files of its copy are there: it works below its root, continues
/// with a conversation about files, or may be a small model, whose first request holds names of files.
pub(crate) fn must_be_whole(task: &ChildTask, routes: Option<&Arc<Routes>>) -> bool {
    !task.spec.folder.as_os_str().is_empty()
        || task.resume.is_some()
        || routes.is_some_and(|all| all.arms().iter().any(|arm| arm.tier() == Tier::Lean))
}

/// A copy of a project in which one elf works. Dropped, it is removed.
pub(crate) struct IsolatedCopy {
    place: Option<CopyPlace>,
    environment: Environment,
    /// The folder that replaces the project's.
    root: PathBuf,
    /// The same folder, open: a folder that is made again under its name is another.
    opened: Option<File>,
    /// The project's own folder, of which this is a copy.
    of: PathBuf,
    /// The folder from which the objects of its repository are read.
    objects: Option<PathBuf>,
    keeper: Arc<Checkpointer>,
    base: SnapshotId,
    /// The signal that tells whether all files are there.
    filled: Option<CheckpointReadiness>,
    /// `true` once the copy's files need not be written any more.
    unwanted: Arc<AtomicBool>,
    /// The lock that keeps other copies from merging until this one has been merged.
    merges: Option<OwnedMutexGuard<()>>,
    /// `true` if the copy is the result of a merge with the project: exactly that is merged, or nothing is.
    is_brought_up: bool,
    /// The session that it is merged for.
    session: Option<String>,
    label: String,
}

impl IsolatedCopy {
    /// Makes a copy of the parent's project for the elf `name`; `id` names its place. Its files are copied in the
    /// background ([`Self::files_ready`]), unless the caller `waits` for them.
    ///
    /// # Errors
    /// No files are saved here, or there is no room; in a sentence.
    pub(crate) async fn create_copy(
        parent: &Arc<Project>,
        (id, name): (&str, &str),
        session: Option<String>,
        waits: bool,
    ) -> Result<Self> {
        let of = copy_source(parent)?;
        let environment = parent.environment().clone();
        let all = copy_cleanup::copies_folder(&environment);
        let (shared, label, id) = (parent.shared.clone(), merge_label(name), id.to_owned());
        let waits = waits || parent.spec.folder != of.root;
        let parent = Arc::clone(parent);
        off_loop(move || async move {
            let keeper = shared.open_checkpointer(&of);
            let keeper = keeper.map_err(|error| copy_error(&error.sentence))?;
            let base = save_base(&keeper, session.clone(), &label).await?;
            let place = CopyPlace::create_in(&all, &id).map_err(|error| {
                copy_error(&format!("the folder `{}` cannot be written: {error}", all.display()))
            })?;
            let name = of.root.file_name().unwrap_or("project".as_ref());
            let root = place.folder.join(name);
            let mut made = Self {
                place: Some(place),
                environment,
                root,
                opened: None,
                of: of.root.clone(),
                objects: None,
                keeper,
                base,
                filled: None,
                unwanted: Arc::default(),
                merges: None,
                is_brought_up: false,
                session,
                label,
            };
            // Hooks may look at it before the first call.
            let waits = waits || !extensions::found_hooks(&parent).0.is_empty();
            made.fill_folder(waits).map_err(|error| copy_error(&error.cause))?;
            Ok(made)
        })
        .await
    }

    /// Fills the folder of the copy. Blocks; the files are copied in the background unless the caller `waits` for them.
    fn fill_folder(&mut self, waits: bool) -> Result<()> {
        std::fs::create_dir(&self.root)?;
        self.root = self.root.canonicalize()?;
        self.opened = Some(File::open(&self.root)?);
        let workspace = self.keeper.workspace();
        let room = workspace.reserve_room(&self.base, &self.root)?;
        if waits {
            workspace.copy_to(&self.base, &self.root, &room, &self.unwanted)?;
        } else {
            self.filled = Some(self.fill_beside(room)?);
        }
        self.objects = git::create_repository(&self.of, &self.root)?;
        Ok(())
    }

    /// Copies the files on a thread of its own.
    fn fill_beside(&self, room: ReservedRoom) -> Result<CheckpointReadiness> {
        let (told, filled) = watch::channel(None);
        let (keeper, base, root) = (Arc::clone(&self.keeper), self.base.clone(), self.root.clone());
        let unwanted = Arc::clone(&self.unwanted);
        let filling = std::thread::Builder::new().name("gnoma-elf-copy".to_owned());
        filling.spawn(move || {
            let done = keeper.workspace().copy_to(&base, &root, &room, &unwanted);
            drop(room);
            let failed = |cause: &str| MissingFilesError(copy_error(cause).cause);
            told.send_replace(Some(done.map_err(|error| failed(&error.to_string()))));
        })?;
        Ok(filled)
    }

    /// Returns the signal that the files are there, if they were not there when the copy was made.
    pub(crate) fn files_ready(&self) -> Option<CheckpointReadiness> {
        self.filled.clone()
    }

    /// Waits until the files are there.
    async fn wait_until_filled(&self) -> Result<(), CopyMergeError> {
        let Some(mut filled) = self.filled.clone() else { return Ok(()) };
        match timeout(MAX_FILLING, filled.wait_for(Option::is_some)).await {
            Ok(Ok(done)) => {
                let done = done.clone().unwrap_or(Ok(()));
                done.map_err(|error| CopyMergeError::Incomplete(error.0))
            }
            Ok(Err(_gone)) => Err(CopyMergeError::Deleted),
            Err(_late) => Err(CopyMergeError::TooSlow),
        }
    }

    /// Returns the options that the elf's session is opened with, given those that it would be opened with in the
    /// project itself.
    ///
    /// # Errors
    /// The elf is to work outside of the copied folders.
    pub(crate) fn session_spec(&self, spec: SessionSpec) -> Result<SessionSpec> {
        let folder = self.path_in_copy(&spec.folder).filter(|folder| folder.is_dir());
        let Some(folder) = folder else {
            let shown = spec.folder.display();
            return Err(copy_error(&format!("`{shown}` is not part of the project's checkpoint")));
        };
        Ok(SessionSpec { folder, more_folders: Vec::new(), ..spec })
    }

    fn path_in_copy(&self, folder: &Path) -> Option<PathBuf> {
        let below = folder.strip_prefix(&self.of).ok()?;
        Some(if below.as_os_str().is_empty() { self.root.clone() } else { self.root.join(below) })
    }

    /// The folder that replaces the project's.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the folder that must be readable as well: the objects of the user's repository.
    pub(crate) fn readable_objects(&self) -> Option<&Path> {
        self.objects.as_deref()
    }

    /// The text for the elf about where it works.
    pub(crate) fn elf_prompt(&self) -> String {
        let git = match self.objects {
            Some(_) => " Commits and branches that you make there are discarded.",
            None => "",
        };
        format!(
            "You work in a private copy of the project: `{}` is your copy of `{}`. Use paths \
             below it, and change nothing outside it. When you are done, your changes to files \
             are merged into the project.{git}",
            self.root.display(),
            self.of.display()
        )
    }

    /// Reports whether the folder is still the one that was made: files that another folder lacks were not removed
    /// by the elf.
    fn is_there(&self) -> bool {
        let made = self.opened.as_ref().and_then(|made| made.metadata().ok());
        let now = self.root.symlink_metadata().ok();
        made.zip(now).is_some_and(|(made, now)| (made.dev(), made.ino()) == (now.dev(), now.ino()))
    }

    /// Returns the checkpointer that says when no other copy merges, unless that was already waited for.
    pub(crate) fn waits_to_merge(&self) -> Option<Arc<Checkpointer>> {
        self.merges.is_none().then(|| Arc::clone(&self.keeper))
    }

    /// Keeps other copies from merging while `next` is held.
    pub(crate) fn merges_next(&mut self, next: OwnedMutexGuard<()>) {
        self.merges = Some(next);
    }

    /// Makes the copy what a merge would make of the project, if that has changed since.
    ///
    /// # Errors
    /// Nothing can be merged.
    pub(crate) async fn bring_up(&mut self) -> Result<MergePreview, CopyMergeError> {
        self.wait_until_filled().await?;
        if !self.is_there() {
            return Err(CopyMergeError::Deleted);
        }
        let (root, base, label) = (self.root.clone(), self.base.clone(), self.label.clone());
        let found = self.keeper.run_for_session(self.session.clone(), move |workspace| {
            workspace.build_candidate(&base, &workspace.open_sibling(&root)?, &label)
        });
        let found = found.await?;
        self.is_brought_up = matches!(found, Candidate::Same | Candidate::BroughtUp(_));
        Ok(match found {
            Candidate::Nothing | Candidate::Conflict => MergePreview::Nothing,
            Candidate::Same => MergePreview::Same,
            Candidate::BroughtUp(base) => {
                self.base = base;
                MergePreview::BroughtUp
            }
        })
    }

    /// Merges what the elf changed, unless there is a reason not to, and removes the copy.
    pub(crate) async fn merge_changes(self, why_not: Option<String>) -> ChildMerge {
        let step = LoggedStep::begin(self.session.as_deref().unwrap_or_default());
        let merged = self.merge_and_remove(why_not).await;
        if let Some(step) = step {
            step.end("merge", ("landed", &merged.landed), None);
        }
        merged
    }

    async fn merge_and_remove(mut self, why_not: Option<String>) -> ChildMerge {
        // Before the files are there, nothing can have changed them.
        if let Some(why) = why_not.as_ref().filter(|_| is_under_way(self.filled.as_ref())) {
            return merge_reports::describe_unmerged(why, "");
        }
        let filled = self.wait_until_filled().await;
        let there = if self.is_there() { Ok(()) } else { Err(CopyMergeError::Deleted) };
        if let Err(error) = filled.and(there) {
            return merge_reports::describe_unmerged(&error.to_string(), "");
        }
        let (root, base, label) = (self.root.clone(), self.base.clone(), self.label.clone());
        let is_checked = self.is_brought_up;
        let merged = self.keeper.run_for_session(self.session.clone(), move |workspace| {
            let copy = workspace.open_sibling(&root)?;
            let done = match why_not {
                None if is_checked => {
                    workspace.merge_checked(&base, &copy, &label).map(merge_reports::describe_merge)
                }
                None => workspace.merge(&base, &copy, &label).map(merge_reports::describe_merge),
                Some(why) => workspace
                    .changed_in(&base, &copy, &label)
                    .map(|diff| merge_reports::describe_unmerged(&why, &diff)),
            };
            copy.forget_folder();
            done
        });
        let merged = merged.await;
        let (place, environment) = (self.place.take(), self.environment.clone());
        let removed = off_loop(move || async move {
            place.iter().for_each(|place| place.remove(&environment));
            Ok(())
        });
        drop(removed.await);
        merged.unwrap_or_else(|error| merge_reports::describe_unmerged(&error.to_string(), ""))
    }
}

impl Drop for IsolatedCopy {
    /// Not on the thread of a session. What stays is removed by the next start.
    fn drop(&mut self) {
        let Some(place) = self.place.take() else { return };
        self.unwanted.store(true, Ordering::Relaxed);
        let (environment, root) = (self.environment.clone(), self.root.clone());
        let (keeper, filled) = (Arc::clone(&self.keeper), self.filled.take());
        let removing = std::thread::Builder::new().name("gnoma-elf-copy".to_owned());
        let removing = removing.spawn(move || {
            // What is still written would come after what is removed.
            let begun = Instant::now();
            while is_under_way(filled.as_ref()) && begun.elapsed() < MAX_STOPPING {
                std::thread::sleep(STILL_FILLED);
            }
            if let Ok(known) = keeper.workspace().open_sibling(&root) {
                known.forget_folder();
            }
            place.remove(&environment);
        });
        drop(removing);
    }
}

/// Reports whether files are still written to a copy.
fn is_under_way(filled: Option<&CheckpointReadiness>) -> bool {
    filled.is_some_and(|filled| filled.borrow().is_none() && filled.has_changed().is_ok())
}

/// Saves the files of the project as the base of a copy.
async fn save_base(
    keeper: &Checkpointer,
    session: Option<String>,
    label: &str,
) -> Result<SnapshotId> {
    let base = keeper.keep_for(session, format!("before {label}")).await;
    let base = base.map_err(|error| copy_error(&error.sentence))?;
    let unusable = || HostError::failure("a checkpoint has a name that cannot be used");
    base.parse().map_err(|_| unusable())
}

/// Returns the workplace of which a copy can be made.
fn copy_source(parent: &Project) -> Result<WorkspaceKey> {
    if parent.is_incognito() {
        return Err(copy_error("incognito saves no files to make one from"));
    }
    if !parent.keeping.checkpoints.enabled {
        return Err(copy_error("`checkpoints.enabled` is off"));
    }
    let of = session_stores::checkpoint_workplace(parent);
    let of = of.ok_or_else(|| {
        copy_error("the folder contains a home folder; work in a project's folder")
    })?;
    if copy_cleanup::copies_folder(parent.environment()).starts_with(&of.root) {
        return Err(copy_error("the folder contains the folder that copies are made in"));
    }
    Ok(of)
}

fn copy_error(why: &str) -> HostError {
    HostError::usage(format!(
        "cannot make a copy of the project for an elf: {why}. Use `isolation` `shared`"
    ))
}
