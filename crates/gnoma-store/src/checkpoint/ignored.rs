//! Whether version control ignores a path, asked of the folder itself.

use std::os::fd::OwnedFd;

use rustix::fs::{Mode, openat};

use super::{
    folder::FOLDER_FLAGS,
    rules::{Frame, OuterRules},
    state::push_name,
};

/// Reports whether version control ignores what is, or was, at `path` below `root`.
pub(super) fn is_ignored(root: &OwnedFd, outer: &OuterRules, path: &[u8], is_folder: bool) -> bool {
    is_ignored_below(&Frame::new(None, outer, root, b""), path, path, is_folder)
}

/// `rest`: the part of the path below the frame.
fn is_ignored_below(frame: &Frame<'_>, rest: &[u8], path: &[u8], is_folder: bool) -> bool {
    let Some(end) = rest.iter().position(|byte| *byte == b'/') else {
        return frame.ignores(path, is_folder);
    };
    let (name, rest) = rest.split_at(end);
    let mut here = frame.path.to_vec();
    push_name(&mut here, name);
    if frame.ignores(&here, true) {
        return true;
    }
    match openat(frame.folder, name, FOLDER_FLAGS, Mode::empty()) {
        Ok(fd) => {
            let frame = Frame::new(Some(frame), frame.outer, &fd, &here);
            is_ignored_below(&frame, rest.get(1..).unwrap_or_default(), path, is_folder)
        }
        // The folder is gone, and with it what it said of what was in it.
        Err(_) => frame.ignores(path, is_folder),
    }
}
