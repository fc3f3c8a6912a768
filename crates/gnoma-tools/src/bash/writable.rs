//! What a command finds and may write besides the workspace: repositories around it, temporary files, and what its
//! verdict grants.

use std::{
    fs,
    path::{Path, PathBuf},
};

use gnoma_core::ToolCx;
use gnoma_sandbox::{Policy, TEMPORARY};

use super::{start_error::CommandStartError, survey::Survey};
use crate::WorkspaceRepository;

/// Most entries of folders around the workspace that are held one by one.
const MAX_BESIDE: usize = 512;

/// The findings in the workspace and around it before a command runs.
#[derive(Default)]
pub(super) struct FoundInWorkspace {
    pub(super) survey: Survey,
    /// The repositories that the workspace belongs to.
    pub(super) repositories: Vec<WorkspaceRepository>,
}

impl FoundInWorkspace {
    /// The work trees around the workspace.
    pub(super) fn work_trees(&self) -> impl Iterator<Item = &PathBuf> {
        self.repositories.iter().filter_map(|found| found.work_tree.as_ref())
    }

    pub(super) fn is_in_bare_repository(&self) -> bool {
        self.repositories.iter().any(|found| found.is_bare)
    }

    /// Drops the `.git` files of other work trees.
    pub(super) fn forget_work_tree_marks(&mut self) {
        for found in &mut self.repositories {
            found.work_tree_marks.clear();
        }
    }
}

/// The policy with the session's temporary files in place of the machine's, of which only that is there which the
/// verdict names.
pub(super) fn with_own_temporary(policy: Policy, cx: &ToolCx, scratch: Option<&Path>) -> Policy {
    let Some(scratch) = scratch else { return policy };
    let is_place = |path: &Path| TEMPORARY.iter().any(|place| path == Path::new(place));
    let is_temporary = |path: &&PathBuf| TEMPORARY.iter().any(|place| path.starts_with(place));
    let named = cx.grant.paths.iter().filter(is_temporary).filter(|path| !is_place(path));
    let shown_temporary = named.cloned().collect();
    let mut policy = Policy { temporary: Some(scratch.to_path_buf()), shown_temporary, ..policy };
    policy.writable.retain(|path| !is_place(path));
    policy
}

/// Leaves of what can be written what is there, and adds what is granted and the workspace. `trees` are the work
/// trees around it, which may be granted as a whole.
pub(super) fn make_writable(
    policy: &mut Policy,
    cx: &ToolCx,
    too_wide: &[PathBuf],
    trees: &[PathBuf],
) {
    // What has become a link since it was found leads nowhere. Most are not there, which is told by
    // one look.
    let is_there = |path: &PathBuf| path.symlink_metadata().is_ok();
    let is_real = |path: &PathBuf| path.canonicalize().is_ok_and(|real| real == *path);
    policy.writable.retain(|path| is_there(path) && is_real(path));
    let is_too_wide = |folder: &Path| {
        let is_around = |place: &PathBuf| place.starts_with(folder);
        too_wide.iter().chain(cx.roots.iter()).any(is_around)
            && !trees.iter().any(|tree| tree == folder)
    };
    let granted = cx.grant.writable.iter().filter_map(|path| place_of(path));
    let (around, narrow): (Vec<_>, Vec<_>) = granted.partition(|folder| is_too_wide(folder));
    let granted: Vec<_> =
        narrow.into_iter().map(Path::to_path_buf).chain(cx.roots.iter().cloned()).collect();
    policy.exact.extend(granted.iter().cloned());
    policy.writable.extend(granted);
    let is_home = |folder: &Path| too_wide.iter().any(|place| place.starts_with(folder));
    let is_new = |folder: &Path| !cx.grant.writable.iter().any(|path| path == folder);
    // Something new in a folder around the workspace: all else in it stays as it is.
    for folder in around.into_iter().filter(|folder| !is_home(folder) && is_new(folder)) {
        let mut beside = Vec::new();
        if list_beside(folder, &policy.writable, &mut beside).is_some() {
            policy.protected.extend(beside);
            policy.exact.push(folder.to_path_buf());
            policy.writable.push(folder.to_path_buf());
        }
    }
}

/// Lists what is in a folder but the way to `kept`. `None` where that is too much, or cannot be told.
fn list_beside(folder: &Path, kept: &[PathBuf], beside: &mut Vec<PathBuf>) -> Option<()> {
    folder.parent()?;
    for entry in fs::read_dir(folder).ok()? {
        let path = entry.ok()?.path();
        if beside.len() >= MAX_BESIDE {
            return None;
        }
        if kept.contains(&path) {
            continue;
        }
        if kept.iter().any(|kept| kept.starts_with(&path)) {
            list_beside(&path, kept, beside)?;
        } else {
            beside.push(path);
        }
    }
    Some(())
}

/// The path, or the folder that it is made in. What has become a link is neither.
fn place_of(path: &Path) -> Option<&Path> {
    match path.symlink_metadata() {
        Ok(facts) => (!facts.is_symlink()).then_some(path),
        Err(_) => path.parent().filter(|folder| folder.is_dir()),
    }
}

/// A place outside the workspace that was granted and leads elsewhere by now: what is there is not what was judged.
fn place_led_away(cx: &ToolCx) -> Option<&Path> {
    let is_inside = |path: &Path| cx.roots.iter().any(|root| path.starts_with(root));
    let granted = cx.grant.paths.iter().chain(&cx.grant.readable_by_all).chain(&cx.grant.writable);
    let granted = granted.map(PathBuf::as_path);
    let mut outside = granted.filter(|path| !is_inside(path));
    outside.find(|path| crate::resolve_links(path).is_ok_and(|real| real != *path))
}

/// Refuses a command of which a granted place is no longer what was judged.
pub(super) fn refuse_if_led_away(cx: &ToolCx) -> Result<(), CommandStartError> {
    place_led_away(cx).map_or(Ok(()), |path| Err(CommandStartError::LedAway(path.to_owned())))
}
