//! Folders in memory that only their owner and its commands reach: a mount without a place, which lasts as long as
//! its owner holds the descriptor.
//!
//! The owner names what lies in one by its own descriptor, `/proc/PID/fd/N/…`. A launcher may follow that only until
//! it enters other namespaces, so it opens the folder before, and uses its own descriptor from then on.

use std::{
    os::fd::{AsRawFd, OwnedFd},
    path::{Component, Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use rustix::{
    fs::{CWD, Mode, OFlags, open},
    mount::{OpenTreeFlags, open_tree},
};

use super::fault::{Fault, FaultStep};
use crate::plan::LaunchPlan;

/// The folder in which the kernel shows a process its own descriptors.
const OWN_DESCRIPTORS: &str = "/proc/self/fd";
/// Folders that were opened, by the path of their owner's descriptor.
static OPENED: Mutex<Vec<(PathBuf, OwnedFd)>> = Mutex::new(Vec::new());

/// Replaces paths into the owner's folders in memory by paths that work in this process and its children.
pub(super) fn with_own_paths(mut plan: LaunchPlan) -> Result<LaunchPlan, Fault> {
    let policy = &mut plan.policy;
    let overlays = policy.overlays.iter_mut();
    let layers = overlays
        .flat_map(|it| [&mut it.upper, &mut it.work].into_iter().chain(it.lower.iter_mut()));
    for path in policy.temporary.iter_mut().chain(layers) {
        *path = own_path(path)?;
    }
    Ok(plan)
}

fn own_path(path: &Path) -> Result<PathBuf, Fault> {
    let Some((folder, below)) = split_descriptor_path(path) else { return Ok(path.to_owned()) };
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    if !opened.iter().any(|(known, _)| *known == folder) {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let descriptor = open(&folder, flags, Mode::empty());
        let descriptor = descriptor.with_step(|| "open a folder in memory".to_owned())?;
        opened.push((folder.clone(), descriptor));
    }
    let number = opened.iter().find(|(known, _)| *known == folder).map(|(_, it)| it.as_raw_fd());
    let number = number.ok_or_else(|| Fault::new("open a folder in memory", "it is gone"))?;
    Ok(Path::new(OWN_DESCRIPTORS).join(number.to_string()).join(below))
}

/// Copies of the mounts of folders in memory, which belong to the namespaces that this process is in: only those can
/// be a part of a layer.
#[derive(Default)]
pub(super) struct MemoryCopies(Vec<(PathBuf, OwnedFd)>);

impl MemoryCopies {
    /// Returns the copy that a path leads into, and the rest of the path; `None` for a path of the machine.
    pub(super) fn copy_for_path(
        &mut self,
        path: &Path,
    ) -> Result<Option<(&OwnedFd, PathBuf)>, Fault> {
        let Ok(inside) = path.strip_prefix(OWN_DESCRIPTORS) else { return Ok(None) };
        let mut parts = inside.components();
        let Some(number) = parts.next() else { return Ok(None) };
        let folder = Path::new(OWN_DESCRIPTORS).join(number);
        if !self.0.iter().any(|(known, _)| *known == folder) {
            let flags = OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::OPEN_TREE_CLONE;
            let copy = open_tree(CWD, &folder, flags);
            self.0.push((folder.clone(), copy.with_step(|| "copy a folder in memory".to_owned())?));
        }
        let copy = self.0.iter().find(|(known, _)| *known == folder).map(|(_, copy)| copy);
        Ok(copy.map(|copy| (copy, parts.as_path().to_owned())))
    }
}

/// Splits `/proc/PID/fd/N/rest` behind the descriptor; `None` for other paths.
fn split_descriptor_path(path: &Path) -> Option<(PathBuf, PathBuf)> {
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let mut parts = path.components();
    let head: Vec<&str> = parts
        .by_ref()
        .take(5)
        .map(|part| match part {
            Component::RootDir => Some("/"),
            part => part.as_os_str().to_str(),
        })
        .collect::<Option<_>>()?;
    match head[..] {
        ["/", "proc", process, "fd", number] if is_number(process) && is_number(number) => {
            Some((head.iter().collect(), parts.as_path().to_owned()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_fd_path_is_split_into_descriptor_and_rest() {
        let parts = split_descriptor_path(Path::new("/proc/12/fd/3/a/b")).unwrap();
        assert_eq!(parts, (PathBuf::from("/proc/12/fd/3"), PathBuf::from("a/b")));
        for other in ["/proc/self/fd/3/a", "/proc/12/root/tmp", "/tmp/proc/12/fd/3", "proc/1/fd/2"]
        {
            assert_eq!(split_descriptor_path(Path::new(other)), None, "{other}");
        }
    }
}
