//! The steps that bring changes into the real folders. Pure: what was listed goes in, steps come out.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use super::{
    change::{ChangeKind, LayerChange, NodeKind},
    stamp::Stamp,
};

/// The place of a folder or file: the number of a root and the path below it.
pub(super) type StepPlace = (usize, PathBuf);

/// One step. Each can be found done or not by looking, and can be taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) place: StepPlace,
    pub(super) act: StepAct,
}

/// The action of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StepAct {
    /// Moves what is there out of the way.
    Remove(Stamp),
    /// Makes a folder with these permissions.
    Folder(Access),
    /// Moves the file of the layer there.
    Put {
        /// The file as it lies ready.
        new: u64,
        /// The file that is replaced, if there is one.
        replaces: Option<Stamp>,
        /// True if the file lies ready among the files moved out of the way, not in the layer.
        copied: bool,
    },
    /// Gives a folder other permissions.
    Mode {
        /// The permissions before the step.
        from: Access,
        /// The permissions after the step.
        to: Access,
    },
}

/// The permissions and the owner of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Access {
    pub(super) mode: u32,
    pub(super) owner: (u32, u32),
}

impl Access {
    fn from_stamp(stamp: &Stamp) -> Self {
        Self { mode: stamp.mode, owner: stamp.owner }
    }
}

/// The steps for some of all changes, in an order in which each can be taken: what goes, deepest first;
/// folders; files; permissions of folders, deepest first, for they may close them.
pub(super) fn plan_steps(all: &[LayerChange], chosen: &dyn Fn(&LayerChange) -> bool) -> Vec<Step> {
    let chosen = || all.iter().filter(|change| chosen(change));
    let is_folder = |change: &&LayerChange| change.node == NodeKind::Folder;
    let made: BTreeMap<(usize, &Path), &LayerChange> = all
        .iter()
        .filter(|change| change.kind == ChangeKind::Created && change.node == NodeKind::Folder)
        .map(|change| ((change.root, change.below.as_path()), change))
        .collect();
    let deleted = || chosen().filter(|change| change.kind == ChangeKind::Deleted);
    let staying = staying_folders(all, deleted());
    let removed = deleted().filter(|change| {
        !(change.node == NodeKind::Folder
            && staying.contains(&(change.root, change.below.as_path())))
    });
    let mut steps: Vec<_> = removed.filter_map(removal_step).collect();
    gnoma_core::sort::sort_by(&mut steps, |one, other| other.place.cmp(&one.place));
    let mut folders: BTreeMap<StepPlace, Step> = BTreeMap::new();
    let mut files = Vec::new();
    let mut modes = Vec::new();
    for change in chosen().filter(|change| change.kind != ChangeKind::Deleted) {
        // A folder that was not chosen is made where something chosen lies in it.
        for above in change.below.ancestors() {
            if let Some(folder) = made.get(&(change.root, above)) {
                folders
                    .entry((change.root, above.to_owned()))
                    .or_insert_with(|| folder_step(folder));
            }
        }
        match (is_folder(&change), change.kind) {
            (true, ChangeKind::Mode) => modes.extend(mode_step(change)),
            (true, _) => {}
            (false, _) => files.extend(file_step(change)),
        }
    }
    modes.reverse();
    steps.into_iter().chain(folders.into_values()).chain(files).chain(modes).collect()
}

/// Deleted folders that must stay because something deleted in them was not chosen.
fn staying_folders<'a>(
    all: &'a [LayerChange],
    chosen: impl Iterator<Item = &'a LayerChange>,
) -> BTreeSet<(usize, &'a Path)> {
    let key = |change: &'a LayerChange| (change.root, change.below.as_path());
    let chosen = gnoma_core::sort::to_set(chosen.map(key));
    let left = all.iter().filter(|change| change.kind == ChangeKind::Deleted).map(key);
    let left = left.filter(|key| !chosen.contains(key));
    left.flat_map(|(root, below)| below.ancestors().skip(1).map(move |above| (root, above)))
        .collect()
}

fn new_step(change: &LayerChange, act: StepAct) -> Step {
    Step { place: (change.root, change.below.clone()), act }
}

fn removal_step(change: &LayerChange) -> Option<Step> {
    Some(new_step(change, StepAct::Remove(change.before?)))
}

fn folder_step(change: &LayerChange) -> Step {
    let access =
        change.after.as_ref().map_or(Access { mode: 0o755, owner: (0, 0) }, Access::from_stamp);
    new_step(change, StepAct::Folder(access))
}

fn file_step(change: &LayerChange) -> Option<Step> {
    let new = change.after?.inode;
    Some(new_step(change, StepAct::Put { new, replaces: change.before, copied: false }))
}

fn mode_step(change: &LayerChange) -> Option<Step> {
    let (from, to) = (Access::from_stamp(&change.before?), Access::from_stamp(&change.after?));
    Some(new_step(change, StepAct::Mode { from, to }))
}
