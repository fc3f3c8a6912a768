//! Writes a stored tree over the existing files, always relative to open folders.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs::File,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
};

use rustix::{
    fs::{
        AtFlags, Mode, OFlags, RawMode, fchmod, fstat, linkat, mkdirat, openat, readlinkat, statat,
        symlinkat, unlinkat,
    },
    io::Errno,
};

use super::{
    compare::load_tree,
    error::Error,
    folder::{FOLDER_FLAGS, MAX_DEPTH, open_parent},
    hash::Hash,
    objects::Objects,
    skipped::SkipCause,
    stamp::Stamp,
    state::{Entry, FileNode, Folder, Node, push_name},
    swap::{FileSwaps, KnownFile, unfinished_name},
    tree::{Item, Tree, is_unfinished},
    unlock::OWNER_ALL,
    unrestored_paths::{UnrestoredPath, UnrestoredReason},
};

/// The changes made so far.
#[derive(Default)]
pub(super) struct AppliedChange {
    pub(super) written: BTreeSet<Vec<u8>>,
    pub(super) removed: usize,
    pub(super) left: Vec<UnrestoredPath>,
}

/// One restore of a stored tree.
pub(super) struct TreeRestore<'a> {
    objects: &'a Objects,
    /// Files to write although their contents are right.
    forced: &'a BTreeSet<Vec<u8>>,
    path: Vec<u8>,
    /// The replaced files, which wait there to be unlinked.
    swapped: FileSwaps,
    pub(super) done: AppliedChange,
}

/// An open folder with what is known of it.
#[derive(Clone, Copy)]
struct RestoreFolder<'a> {
    fd: &'a OwnedFd,
    now: &'a Folder,
    depth: u32,
}

impl<'a> TreeRestore<'a> {
    pub(super) fn new(objects: &'a Objects, forced: &'a BTreeSet<Vec<u8>>) -> Self {
        Self {
            objects,
            forced,
            path: Vec::new(),
            swapped: FileSwaps::default(),
            done: AppliedChange::default(),
        }
    }

    /// Makes the folder `root`, which is as `now`, what `tree` says.
    pub(super) fn run(&mut self, root: &OwnedFd, now: &Folder, tree: Hash) -> Result<(), Error> {
        self.apply_folder(
            RestoreFolder { fd: root, now, depth: 0 },
            &load_tree(self.objects, &tree)?,
        )
    }

    pub(super) fn is_left(&self, path: &[u8]) -> bool {
        self.done.left.iter().any(|left| left.path.as_os_str().as_bytes() == path)
    }

    fn apply_folder(&mut self, here: RestoreFolder<'_>, target: &Tree) -> Result<(), Error> {
        if here.depth > MAX_DEPTH + 1 {
            return Err(Error::Damaged("folders are nested too deeply".to_owned()));
        }
        for Entry { name, node } in &here.now.entries {
            if target.get(name).is_none() {
                self.with_child_path(name, |apply| apply.remove(here, name, node));
            }
        }
        for (name, item) in &target.0 {
            let node = here.now.get(name).map(|entry| &entry.node);
            let length = self.path.len();
            push_name(&mut self.path, name);
            let done = self.apply_item(here, name, node, item);
            self.path.truncate(length);
            done?;
        }
        Ok(())
    }

    fn with_child_path(&mut self, name: &[u8], act: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        push_name(&mut self.path, name);
        act(self);
        self.path.truncate(length);
    }

    fn apply_item(
        &mut self,
        here: RestoreFolder<'_>,
        name: &[u8],
        node: Option<&Node>,
        item: &Item,
    ) -> Result<(), Error> {
        match (node, item) {
            (Some(Node::Unsaved(_)), Item::Unsaved) => Ok(()),
            (Some(Node::Unsaved(_)), _) | (_, Item::Unsaved) => {
                self.record_left_out(UnrestoredReason::NotKept);
                Ok(())
            }
            (Some(Node::Folder(now)), Item::Folder { hash, mode }) => {
                self.apply_subfolder(here, name, now, hash, *mode)
            }
            (Some(Node::File(file)), Item::File { hash, mode, .. }) => {
                self.apply_file(here, name, file, hash, *mode);
                Ok(())
            }
            (Some(Node::Link { target: now }), Item::Link { target }) if **now == **target => {
                Ok(())
            }
            (Some(Node::Folder(_)), Item::File { .. } | Item::Link { .. })
            | (Some(Node::File(_) | Node::Link { .. }), Item::Folder { .. }) => {
                let before = self.done.left.len();
                if let Some(node) = node {
                    self.remove(here, name, node);
                }
                if self.done.left.len() == before {
                    self.create_item(here, name, item)
                } else {
                    Ok(())
                }
            }
            (Some(node), Item::File { .. } | Item::Link { .. }) => {
                if self.is_unchanged(here, name, node) {
                    self.write_item(here, name, KnownFile::from_node(node), item);
                }
                Ok(())
            }
            (None, _) => self.create_item(here, name, item),
        }
    }

    /// Makes what is not there.
    fn create_item(
        &mut self,
        here: RestoreFolder<'_>,
        name: &[u8],
        item: &Item,
    ) -> Result<(), Error> {
        if statat(here.fd, name, AtFlags::SYMLINK_NOFOLLOW).err() != Some(Errno::NOENT) {
            self.record_left_out(UnrestoredReason::NotKept);
            return Ok(());
        }
        let Item::Folder { hash, mode } = item else {
            self.write_item(here, name, None, item);
            return Ok(());
        };
        if let Err(refused) = mkdirat(here.fd, name, Mode::from_raw_mode(OWNER_ALL as RawMode)) {
            self.record_left_out(refusal_reason(refused));
            return Ok(());
        }
        self.done.written.insert(self.path.clone());
        let now =
            Folder { stamp: Stamp { mode: OWNER_ALL, ..Stamp::default() }, ..Folder::default() };
        self.apply_subfolder(here, name, &now, hash, *mode)
    }

    fn apply_subfolder(
        &mut self,
        here: RestoreFolder<'_>,
        name: &[u8],
        now: &Folder,
        hash: &Hash,
        mode: u32,
    ) -> Result<(), Error> {
        let is_other = now.tree != Some(*hash) || self.is_forced_below();
        if !is_other && now.stamp.mode == mode {
            return Ok(());
        }
        let fd = match openat(here.fd, name, FOLDER_FLAGS, Mode::empty()) {
            Ok(fd) => fd,
            Err(refused) => {
                self.record_left_out(refusal_reason(refused));
                return Ok(());
            }
        };
        if is_other {
            let before = self.swapped.len();
            self.open_up(&fd, now.stamp.mode);
            let target = load_tree(self.objects, hash)?;
            self.apply_folder(RestoreFolder { fd: &fd, now, depth: here.depth + 1 }, &target)?;
            if mode & OWNER_ALL != OWNER_ALL {
                // Afterwards nobody could unlink anything there.
                self.unlink_replaced(&fd, before);
            }
        }
        if let Err(refused) = fchmod(&fd, Mode::from_raw_mode(mode as RawMode)) {
            self.record_left_out(refusal_reason(refused));
        } else if now.stamp.mode != mode {
            self.done.written.insert(self.path.clone());
        }
        Ok(())
    }

    fn is_forced_below(&self) -> bool {
        let mut prefix = self.path.clone();
        prefix.push(b'/');
        self.forced.range(prefix.clone()..).next().is_some_and(|path| path.starts_with(&prefix))
    }

    /// Lets the owner change a folder; its own mode comes at the end.
    fn open_up(&mut self, fd: &OwnedFd, mode: u32) {
        if mode & OWNER_ALL != OWNER_ALL
            && let Err(refused) = fchmod(fd, Mode::from_raw_mode((mode | OWNER_ALL) as RawMode))
        {
            self.record_left_out(refusal_reason(refused));
        }
    }

    fn apply_file(
        &mut self,
        here: RestoreFolder<'_>,
        name: &[u8],
        now: &FileNode,
        hash: &Hash,
        mode: u32,
    ) {
        let same = now.hash == *hash && !self.forced.contains(&self.path);
        if same && now.stamp.mode == mode {
            return;
        }
        if !self.is_unchanged(here, name, &Node::File(now.clone())) {
            return;
        }
        if same && now.stamp.links == 1 && change_mode(here.fd, name, mode) {
            self.done.written.insert(self.path.clone());
            return;
        }
        let known = Some(KnownFile::File(now.stamp));
        self.write_item(here, name, known, &Item::File { hash: *hash, mode, size: now.size });
    }

    /// Reports whether a file or link is still what was kept; else it is left.
    fn is_unchanged(&mut self, here: RestoreFolder<'_>, name: &[u8], node: &Node) -> bool {
        let same = match node {
            Node::File(file) => is_same_file(here.fd, name, &file.stamp),
            Node::Link { target } => readlinkat(here.fd, name, Vec::new())
                .is_ok_and(|found| found.as_bytes() == &**target),
            Node::Folder(_) | Node::Unsaved(_) => return false,
        };
        if !same {
            self.record_left_out(UnrestoredReason::Changed);
        }
        same
    }

    /// Puts a file or link in place of what is `known` to be there.
    fn write_item(
        &mut self,
        here: RestoreFolder<'_>,
        name: &[u8],
        known: Option<KnownFile>,
        item: &Item,
    ) {
        let unfinished = unfinished_name();
        let made = match item {
            Item::File { hash, mode, .. } => self.make_file(here.fd, &unfinished, hash, *mode),
            Item::Link { target } => symlinkat(OsStr::from_bytes(target), here.fd, &unfinished)
                .map(|()| KnownFile::Link(target.clone().into()))
                .map_err(refusal_reason),
            Item::Folder { .. } | Item::Unsaved => return,
        };
        let placed = made.and_then(|made| {
            let place = (self.path.as_slice(), name);
            let placed = self.swapped.place_file(here.fd, unfinished.clone(), place, (known, made));
            placed.map_err(|refused| match refused {
                Errno::EXIST => UnrestoredReason::Changed,
                other => refusal_reason(other),
            })
        });
        match placed {
            Ok(()) => drop(self.done.written.insert(self.path.clone())),
            Err(why) => {
                let _ = unlinkat(here.fd, &unfinished, AtFlags::empty());
                self.record_left_out(why);
            }
        }
    }

    /// The bytes are checked against their hash before the file gets its name.
    fn make_file(
        &self,
        folder: &OwnedFd,
        name: &[u8],
        hash: &Hash,
        mode: u32,
    ) -> Result<KnownFile, UnrestoredReason> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(folder, name, flags, Mode::RUSR | Mode::WUSR).map_err(refusal_reason)?;
        let mut file = File::from(file);
        if !clone_into(self.objects, hash, &file) {
            self.objects.copy_to(hash, &mut file).map_err(|failed| match failed {
                Error::Damaged(_) => UnrestoredReason::Damaged,
                other => UnrestoredReason::Refused(other.to_string()),
            })?;
        }
        fchmod(&file, Mode::from_raw_mode(mode as RawMode)).map_err(refusal_reason)?;
        fstat(&file).map(|stat| KnownFile::File(Stamp::from_stat(&stat))).map_err(refusal_reason)
    }

    /// Removes what was kept; what was not stays, and the folders it is in.
    fn remove(&mut self, here: RestoreFolder<'_>, name: &[u8], node: &Node) {
        match node {
            // What a tool makes again, or nobody wants kept, is no news.
            Node::Unsaved(SkipCause::Ignored | SkipCause::Rebuilt) => {}
            Node::Unsaved(_) => self.record_left_out(UnrestoredReason::NotKept),
            Node::File(_) | Node::Link { .. } => {
                if self.is_unchanged(here, name, node) {
                    self.unlink(here.fd, name, AtFlags::empty());
                }
            }
            Node::Folder(now) => {
                match openat(here.fd, name, FOLDER_FLAGS, Mode::empty()) {
                    Ok(fd) => {
                        self.open_up(&fd, now.stamp.mode);
                        for entry in &now.entries {
                            let below = RestoreFolder { fd: &fd, now, depth: here.depth + 1 };
                            self.with_child_path(&entry.name, |apply| {
                                apply.remove(below, &entry.name, &entry.node);
                            });
                        }
                    }
                    Err(refused) => return self.record_left_out(refusal_reason(refused)),
                }
                self.unlink(here.fd, name, AtFlags::REMOVEDIR);
            }
        }
    }

    fn unlink(&mut self, folder: &OwnedFd, name: &[u8], flags: AtFlags) {
        match unlinkat(folder, name, flags) {
            Ok(()) => self.done.removed += 1,
            Err(Errno::NOTEMPTY | Errno::EXIST) => self.record_left_out(UnrestoredReason::NotEmpty),
            Err(refused) => self.record_left_out(refusal_reason(refused)),
        }
    }

    /// Makes `path` another name of `source`, which has the same contents. `now` is the folder of all.
    pub(super) fn create_hard_link(
        &mut self,
        root: &OwnedFd,
        now: &Folder,
        source: &[u8],
        path: &[u8],
    ) {
        self.path = path.to_vec();
        if let Err(why) = self.try_link(root, now, source, path) {
            self.record_left_out(why);
        }
        self.path.clear();
    }

    fn try_link(
        &mut self,
        root: &OwnedFd,
        now: &Folder,
        source: &[u8],
        path: &[u8],
    ) -> Result<(), UnrestoredReason> {
        let known = self.swapped.new_file_at(path).cloned();
        let known = known.or_else(|| KnownFile::from_node(now.find_node(path)?));
        let (from, from_name) = open_parent(root, source).map_err(refusal_reason)?;
        let (to, to_name) = open_parent(root, path).map_err(refusal_reason)?;
        if !known.as_ref().is_some_and(|known| known.is_at(&to, to_name)) {
            return Err(UnrestoredReason::Changed);
        }
        let unfinished = unfinished_name();
        let linked = opened_up(&to, || {
            linkat(&from, from_name, &to, &unfinished, AtFlags::empty())?;
            let made = statat(&to, &unfinished, AtFlags::SYMLINK_NOFOLLOW)?;
            let made = KnownFile::File(Stamp::from_stat(&made));
            let before = self.swapped.len();
            self.swapped.place_file(&to, unfinished.clone(), (path, to_name), (known, made))?;
            let changed = self.swapped.unlink_replaced(root, b"", before);
            // Without changing places, renaming onto another name of the same file does nothing.
            let _ = unlinkat(&to, &unfinished, AtFlags::empty());
            Ok(changed.is_empty())
        });
        if linked.map_err(refusal_reason)? { Ok(()) } else { Err(UnrestoredReason::Changed) }
    }

    /// Unlinks what was replaced in this folder and below since there were `before` of them.
    fn unlink_replaced(&mut self, fd: &OwnedFd, before: usize) {
        let at = self.path.clone();
        for path in self.swapped.unlink_replaced(fd, &at, before) {
            self.done.written.remove(&path);
            let path = OsStr::from_bytes(&path).into();
            self.done.left.push(UnrestoredPath { path, why: UnrestoredReason::Changed });
        }
    }

    /// Unlinks what was replaced. What stays is removed as after a killed restore.
    pub(super) fn finish(mut self, root: &OwnedFd) -> AppliedChange {
        self.unlink_replaced(root, 0);
        self.done
    }

    fn record_left_out(&mut self, why: UnrestoredReason) {
        self.done.left.push(UnrestoredPath { path: OsStr::from_bytes(&self.path).into(), why });
    }
}

/// Changes a folder that its owner may be kept from changing.
fn opened_up<T>(folder: &OwnedFd, act: impl FnOnce() -> Result<T, Errno>) -> Result<T, Errno> {
    let mode = Stamp::from_stat(&fstat(folder)?).mode;
    if mode & OWNER_ALL == OWNER_ALL {
        return act();
    }
    fchmod(folder, Mode::from_raw_mode((mode | OWNER_ALL) as RawMode))?;
    let done = act();
    fchmod(folder, Mode::from_raw_mode(mode as RawMode))?;
    done
}

fn is_same_file(folder: &OwnedFd, name: &[u8], known: &Stamp) -> bool {
    statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|stat| {
        let stamp = Stamp::from_stat(&stat);
        // Of a file with several names one was perhaps just replaced, which changes the others.
        let counted = known.links > 1
            && (stamp.device, stamp.inode, stamp.size, stamp.modified_ns)
                == (known.device, known.inode, known.size, known.modified_ns);
        counted || stamp == *known
    })
}

fn refusal_reason(errno: Errno) -> UnrestoredReason {
    UnrestoredReason::Refused(std::io::Error::from(errno).to_string())
}

/// Fails where the file cannot be opened; it is then rewritten.
fn change_mode(folder: &OwnedFd, name: &[u8], mode: u32) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    openat(folder, name, flags, Mode::empty())
        .and_then(|file| fchmod(file, Mode::from_raw_mode(mode as RawMode)))
        .is_ok()
}

#[cfg(target_os = "linux")]
pub(super) fn clone_into(objects: &Objects, hash: &Hash, file: &File) -> bool {
    objects.plain_file(hash).is_some_and(|stored| rustix::fs::ioctl_ficlone(file, &stored).is_ok())
}

#[cfg(not(target_os = "linux"))]
pub(super) fn clone_into(_objects: &Objects, _hash: &Hash, _file: &File) -> bool {
    false
}

/// Removes the half-written files of a killed restore, wherever they can be.
pub(super) fn remove_unfinished(fd: &OwnedFd, folder: &Folder) {
    let Ok(entries) = rustix::fs::Dir::read_from(fd) else { return };
    for entry in entries.flatten() {
        if is_unfinished(entry.file_name().to_bytes()) {
            let _ = unlinkat(fd, entry.file_name(), AtFlags::empty());
        }
    }
    for Entry { name, node } in &folder.entries {
        if let Node::Folder(below) = node
            && let Ok(fd) = openat(fd, name.as_ref(), FOLDER_FLAGS, Mode::empty())
        {
            remove_unfinished(&fd, below);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, io::Write};

    use super::*;
    use crate::checkpoint::{Options, Vault};

    /// A program that has a file open continues writing while a restore is at work.
    #[test]
    fn file_written_during_a_restore_is_preserved() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("work");
        fs::create_dir_all(root.join("closed")).unwrap();
        let options = Options { durable: false, ..Options::default() };
        let vault = Vault::open(&folder.path().join("vault"), options).unwrap();
        let workspace = vault.open_workspace(&root).unwrap();
        let names = ["a", "b", "closed/c"];
        let write = |text: &str| names.map(|name| fs::write(root.join(name), text).unwrap());
        write("old");
        let target = workspace.take_snapshot("old").unwrap();
        write("newer");
        let mut open = names.map(|name| fs::File::options().append(true).open(root.join(name)));
        workspace.take_snapshot("newer").unwrap();

        let (forced, fd) = (BTreeSet::new(), workspace.open_root().unwrap());
        let mut apply = TreeRestore::new(&vault.0.objects, &forced);
        apply.run(&fd, &workspace.state.lock().known, target.tree).unwrap();
        open[0].as_mut().unwrap().write_all(b" and newest").unwrap();
        open[2].as_mut().unwrap().write_all(b" and newest").unwrap();
        // Somebody replaces what was brought back: both are kept.
        fs::write(root.join("other"), "other").unwrap();
        fs::rename(root.join("other"), root.join("closed/c")).unwrap();
        let done = apply.finish(&fd);

        let left: Vec<_> = done.left.iter().map(|left| (left.path.to_str(), &left.why)).collect();
        let changed = |name| (Some(name), &UnrestoredReason::Changed);
        assert_eq!(left[0], changed("a"));
        assert!(left[1].0.is_some_and(|path| path.starts_with("closed/c.")), "{left:?}");
        let written = ["b", "closed/c"].map(|name| name.as_bytes().to_vec());
        assert_eq!(done.written, BTreeSet::from(written));
        let read = |name: &str| fs::read_to_string(root.join(name)).unwrap();
        let read = names.map(read);
        assert_eq!(read, ["newer and newest", "old", "other"]);
        let beside = fs::read_dir(root.join("closed")).unwrap().map(|entry| entry.unwrap().path());
        let mut beside: Vec<_> = beside.map(|path| fs::read_to_string(path).unwrap()).collect();
        beside.sort();
        assert_eq!(beside, ["newer and newest", "other"]);
    }
}
