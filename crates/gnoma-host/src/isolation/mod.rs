//! Elfs that work in a copy of the project: the copy is made of a checkpoint, lies in a folder of its own,
//! and what was changed there is merged back when the elf is done.
//!
//! How files are copied, compared and merged is the checkpoints'. Here is where copies lie, who may merge
//! when, and what is said of it.

mod git;
mod tidy;
mod told;

use std::{
    fs::File,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use gnoma_core::{
    protocol::{Environment, SessionSpec},
    store::StoreError,
    tool::ChildMerge,
};
use gnoma_store::checkpoint::{Candidate, Checkpointer, SnapshotId};

use tokio::sync::OwnedMutexGuard;

use self::tidy::CopyPlace;
pub(crate) use self::tidy::orphans;
use crate::{HostError, Project, Result, keeping, live::Landing, off_loop::off_loop};

/// Why nothing is merged of a copy that is gone.
const DELETED: &str = "its copy of the project was deleted";

/// How a merge of an elf's changes is called.
pub(crate) fn label(elf: &str) -> String {
    format!("elf `{elf}`")
}

/// A copy of a project in which one elf works. Dropped, it is removed.
pub(crate) struct Isolated {
    place: Option<CopyPlace>,
    environment: Environment,
    /// The folder that stands for the project's.
    root: PathBuf,
    /// The same, open: one that was made anew under its name is another.
    opened: Option<File>,
    /// The project's own.
    of: PathBuf,
    /// Where the objects of its repository are read.
    objects: Option<PathBuf>,
    keeper: Arc<Checkpointer>,
    base: SnapshotId,
    /// Nobody else merges until it has landed.
    merges: Option<OwnedMutexGuard<()>>,
    /// It is what a merge would make of the project: that lands, or nothing does.
    is_brought_up: bool,
    /// The session that it is merged for.
    session: Option<String>,
    label: String,
}

impl Isolated {
    /// Makes a copy of the parent's project for the elf `name`; `id` names its place.
    ///
    /// # Errors
    /// No files are kept here, or there is no room; in a sentence.
    pub(crate) async fn make(
        parent: &Project,
        (id, name): (&str, &str),
        session: Option<String>,
    ) -> Result<Self> {
        if parent.is_incognito() {
            return Err(refusal("incognito saves no files to make one from"));
        }
        if !parent.keeping.checkpoints.enabled {
            return Err(refusal("`checkpoints.enabled` is off"));
        }
        let Some(of) = keeping::workplace(parent) else {
            return Err(refusal("the folder contains a home folder; work in a project's folder"));
        };
        let environment = parent.environment().clone();
        let all = tidy::folder(&environment);
        if all.starts_with(&of.root) {
            return Err(refusal("the folder contains the folder that copies are made in"));
        }
        let (shared, label, id) = (parent.shared.clone(), label(name), id.to_owned());
        off_loop(move || async move {
            let failed = |error: HostError| refusal(&error.cause);
            let unkept = |error: StoreError| refusal(&error.sentence);
            let keeper = shared.checkpointer(&of).map_err(unkept)?;
            let base = keeper.keep_for(session.clone(), format!("before {label}")).await;
            let base = base.map_err(unkept)?;
            let base: SnapshotId = base.parse().map_err(|_| {
                HostError::failure(
                    "a checkpoint has a name that cannot \
                     be used",
                )
            })?;
            let place = CopyPlace::make(&all, &id).map_err(|error| {
                refusal(&format!("the folder `{}` cannot be written: {error}", all.display()))
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
                merges: None,
                is_brought_up: false,
                session,
                label,
            };
            made.fill().map_err(failed)?;
            Ok(made)
        })
        .await
    }

    /// Blocks.
    fn fill(&mut self) -> Result<()> {
        std::fs::create_dir(&self.root)?;
        self.root = self.root.canonicalize()?;
        self.opened = Some(File::open(&self.root)?);
        self.keeper.workspace().copy_to(&self.base, &self.root)?;
        self.objects = git::make(&self.of, &self.root)?;
        Ok(())
    }

    /// What the elf's session is opened with, given what it would be opened with in the project itself.
    ///
    /// # Errors
    /// It is to work outside of what was copied.
    pub(crate) fn spec(&self, spec: SessionSpec) -> Result<SessionSpec> {
        let folder = self.moved(&spec.folder).filter(|folder| folder.is_dir());
        let Some(folder) = folder else {
            let shown = spec.folder.display();
            return Err(refusal(&format!("`{shown}` is not part of the project's checkpoint")));
        };
        Ok(SessionSpec { folder, more_folders: Vec::new(), ..spec })
    }

    fn moved(&self, folder: &Path) -> Option<PathBuf> {
        let below = folder.strip_prefix(&self.of).ok()?;
        Some(if below.as_os_str().is_empty() { self.root.clone() } else { self.root.join(below) })
    }

    /// The folder that stands for the project's.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// What is to be readable besides: the objects of the person's repository.
    pub(crate) fn readable(&self) -> Option<&Path> {
        self.objects.as_deref()
    }

    /// What the elf is told of where it works.
    pub(crate) fn prompt(&self) -> String {
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

    /// Whether the folder is still the one that was made: what is missing in another one was not removed by
    /// the elf.
    fn is_there(&self) -> bool {
        let made = self.opened.as_ref().and_then(|made| made.metadata().ok());
        let now = self.root.symlink_metadata().ok();
        made.zip(now).is_some_and(|(made, now)| (made.dev(), made.ino()) == (now.dev(), now.ino()))
    }

    /// Who says when nobody else merges, unless that was waited for.
    pub(crate) fn waits_to_merge(&self) -> Option<Arc<Checkpointer>> {
        self.merges.is_none().then(|| Arc::clone(&self.keeper))
    }

    /// Nobody else merges while `next` is held.
    pub(crate) fn merges_next(&mut self, next: OwnedMutexGuard<()>) {
        self.merges = Some(next);
    }

    /// Makes the copy what a merge would make of the project, where that has changed meanwhile.
    ///
    /// # Errors
    /// Why nothing can be merged.
    pub(crate) async fn bring_up(&mut self) -> std::result::Result<Landing, String> {
        if !self.is_there() {
            return Err(DELETED.to_owned());
        }
        let (root, base, label) = (self.root.clone(), self.base.clone(), self.label.clone());
        let found = self.keeper.work(self.session.clone(), move |workspace| {
            workspace.candidate(&base, &workspace.beside(&root)?, &label)
        });
        let found = found.await.map_err(|error| error.to_string())?;
        self.is_brought_up = matches!(found, Candidate::Same | Candidate::BroughtUp(_));
        Ok(match found {
            Candidate::Nothing | Candidate::Conflict => Landing::Nothing,
            Candidate::Same => Landing::Same,
            Candidate::BroughtUp(base) => {
                self.base = base;
                Landing::BroughtUp
            }
        })
    }

    /// Merges what the elf changed, unless there is a reason not to, and removes the copy.
    pub(crate) async fn land(mut self, why_not: Option<String>) -> ChildMerge {
        if !self.is_there() {
            return told::unmerged(DELETED, "");
        }
        let (root, base, label) = (self.root.clone(), self.base.clone(), self.label.clone());
        let is_checked = self.is_brought_up;
        let merged = self.keeper.work(self.session.clone(), move |workspace| {
            let copy = workspace.beside(&root)?;
            let done = match why_not {
                None if is_checked => {
                    workspace.merge_checked(&base, &copy, &label).map(told::merge)
                }
                None => workspace.merge(&base, &copy, &label).map(told::merge),
                Some(why) => workspace
                    .changed_in(&base, &copy, &label)
                    .map(|diff| told::unmerged(&why, &diff)),
            };
            copy.forget();
            done
        });
        let merged = merged.await;
        let (place, environment) = (self.place.take(), self.environment.clone());
        let removed = off_loop(move || async move {
            place.iter().for_each(|place| place.remove(&environment));
            Ok(())
        });
        drop(removed.await);
        merged.unwrap_or_else(|error| told::unmerged(&error.to_string(), ""))
    }
}

impl Drop for Isolated {
    /// Not on the thread of a session. What stays is removed by the next start.
    fn drop(&mut self) {
        let Some(place) = self.place.take() else { return };
        let (environment, root) = (self.environment.clone(), self.root.clone());
        let keeper = Arc::clone(&self.keeper);
        let removing = std::thread::Builder::new().name("gnoma-elf-copy".to_owned());
        let removing = removing.spawn(move || {
            if let Ok(known) = keeper.workspace().beside(&root) {
                known.forget();
            }
            place.remove(&environment);
        });
        drop(removing);
    }
}

fn refusal(why: &str) -> HostError {
    HostError::usage(format!(
        "cannot make a copy of the project for an elf: {why}. Use `isolation` `shared`"
    ))
}
