//! The files of a small file system in user space: each looks like a real one and cannot be opened. Folders above the
//! workspace are in it as well: what lies in them is found by its name, and they cannot be listed.
//!
//! Answers the requests that the kernel writes to `/dev/fuse` (include/uapi/linux/fuse.h, version 7.31), as far as
//! such files need it. What a hostile command can cause is one request at a time, in a buffer of fixed size; whatever
//! is not understood is refused.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs,
    os::{
        fd::OwnedFd,
        unix::{
            ffi::{OsStrExt, OsStringExt},
            fs::MetadataExt,
        },
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::statvfs,
    io::{Errno, read, write},
};

use super::paths::OutsideNames;

/// The version of the protocol that is spoken.
const MAJOR: u32 = 7;
const MINOR: u32 = 31;
/// The kernel takes no smaller buffer.
const BUFFER_BYTES: usize = 64 * 1024;
/// Bytes before the arguments of a request.
const HEADER_BYTES: usize = 40;
/// The folder that holds the files.
const ROOT: u64 = 1;
/// The number of the first file.
const FIRST_FILE: u64 = 2;
/// Seconds for which the kernel may remember what a file looks like, or that there is none.
const REMEMBERED_SECONDS: u64 = 1;
/// Seconds for which the kernel may remember a name on which something is mounted. If it had to ask again while the
/// name is gone outside, it would take the mount away.
const MOUNTED_SECONDS: u64 = 365 * 86_400;
/// The bits of an access check that ask for more than existence.
const ANY_ACCESS: u32 = 0o7;

/// Requests, by their numbers in the protocol.
mod opcode {
    pub(super) const LOOKUP: u32 = 1;
    pub(super) const FORGET: u32 = 2;
    pub(super) const GETATTR: u32 = 3;
    pub(super) const SETATTR: u32 = 4;
    pub(super) const READLINK: u32 = 5;
    pub(super) const OPEN: u32 = 14;
    pub(super) const STATFS: u32 = 17;
    pub(super) const INIT: u32 = 26;
    pub(super) const OPENDIR: u32 = 27;
    pub(super) const ACCESS: u32 = 34;
    pub(super) const INTERRUPT: u32 = 36;
    pub(super) const DESTROY: u32 = 38;
    pub(super) const BATCH_FORGET: u32 = 42;
}

/// Serves files that cannot be opened, and tells which were tried.
pub(super) struct SealedFiles<'a> {
    /// Each with the number under which it is reported.
    pub(super) files: &'a [(u16, PathBuf)],
    /// Names that are served behind the files, in this order: those that cannot be opened, folders, passages.
    pub(super) outside: &'a OutsideNames,
    /// The descriptor to which the number of a file is written, once, when a program tries to open it.
    pub(super) teller: Option<&'a OwnedFd>,
}

/// A request of the kernel.
struct FuseRequest<'a> {
    opcode: u32,
    unique: u64,
    node: u64,
    arguments: &'a [u8],
}

impl<'a> FuseRequest<'a> {
    fn parse(bytes: &'a [u8]) -> Option<Self> {
        let header = bytes.get(..HEADER_BYTES)?;
        Some(Self {
            opcode: u32_at(header, 4)?,
            unique: u64_at(header, 8)?,
            node: u64_at(header, 16)?,
            arguments: bytes.get(HEADER_BYTES..)?,
        })
    }
}

/// The answer to a request of the kernel.
enum FuseReply {
    Data(Vec<u8>),
    Refused(Errno),
    Nothing,
}

impl SealedFiles<'_> {
    /// Answers requests until the file system is taken down.
    pub(super) fn serve_requests(&self, device: &OwnedFd) {
        let mut buffer = vec![0; BUFFER_BYTES];
        let mut reported = BTreeSet::new();
        loop {
            let length = match read(device, &mut buffer) {
                Ok(0) => return,
                Ok(length) => length,
                Err(Errno::INTR | Errno::AGAIN | Errno::NOENT) => continue,
                Err(_) => return,
            };
            let Some(request) = buffer.get(..length).and_then(FuseRequest::parse) else { continue };
            let (error, data) = match self.answer_request(&request, &mut reported) {
                FuseReply::Data(data) => (0, data),
                FuseReply::Refused(error) => (-error.raw_os_error(), Vec::new()),
                FuseReply::Nothing if request.opcode == opcode::DESTROY => return,
                FuseReply::Nothing => continue,
            };
            let mut message = u32::try_from(16 + data.len()).unwrap_or(0).to_ne_bytes().to_vec();
            message.extend(error.to_ne_bytes());
            message.extend(request.unique.to_ne_bytes());
            message.extend(data);
            // Whoever asked may have been killed since.
            write(device, &message).ok();
        }
    }

    fn answer_request(&self, request: &FuseRequest<'_>, reported: &mut BTreeSet<u16>) -> FuseReply {
        match request.opcode {
            opcode::INIT => FuseReply::Data(init_reply()),
            opcode::FORGET | opcode::BATCH_FORGET | opcode::INTERRUPT | opcode::DESTROY => {
                FuseReply::Nothing
            }
            opcode::LOOKUP if request.node == ROOT => self.look_up(request.arguments),
            opcode::LOOKUP if self.find_folder(request.node).is_some() => self.look_up_in(request),
            opcode::READLINK => self.read_link(request.node),
            opcode::STATFS => FuseReply::Data(self.measure_space(request.node)),
            opcode::GETATTR => match self.node_attributes(request.node) {
                Some(attributes) => {
                    let mut reply = REMEMBERED_SECONDS.to_ne_bytes().to_vec();
                    reply.extend([0; 8]);
                    reply.extend(attributes);
                    FuseReply::Data(reply)
                }
                None => FuseReply::Refused(Errno::NOENT),
            },
            opcode::ACCESS
                if u32_at(request.arguments, 0).unwrap_or(0) & ANY_ACCESS == 0
                    || self.find_folder(request.node).is_some() =>
            {
                FuseReply::Data(Vec::new())
            }
            opcode::OPEN | opcode::OPENDIR | opcode::SETATTR | opcode::ACCESS | opcode::LOOKUP => {
                self.report_attempt(request.node, reported);
                FuseReply::Refused(Errno::ACCESS)
            }
            _ => FuseReply::Refused(Errno::NOSYS),
        }
    }

    fn look_up(&self, arguments: &[u8]) -> FuseReply {
        let name = arguments.split(|byte| *byte == 0).next().unwrap_or_default();
        let place = std::str::from_utf8(name).ok().and_then(|name| name.parse::<u64>().ok());
        let node = place.map(|place| place.saturating_add(FIRST_FILE));
        let found = node.and_then(|node| Some((node, self.node_attributes(node)?)));
        let Some((node, attributes)) = found else { return FuseReply::Refused(Errno::NOENT) };
        entry_reply(node, REMEMBERED_SECONDS, &attributes)
    }

    /// Finds a name in a folder that is served.
    fn look_up_in(&self, request: &FuseRequest<'_>) -> FuseReply {
        let name = request.arguments.split(|byte| *byte == 0).next().unwrap_or_default();
        let folder = self.find_folder(request.node);
        let path = folder.map(|folder| folder.join(OsStr::from_bytes(name)));
        let place = self.entries().position(|(_, served)| path.as_deref() == Some(served));
        let node = place.and_then(|place| u64::try_from(place).ok()).map(|it| it + FIRST_FILE);
        match node.and_then(|node| Some((node, self.node_attributes(node)?))) {
            Some((node, attributes)) => {
                let is_closed = self.is_closed(node);
                let seconds = if is_closed { REMEMBERED_SECONDS } else { MOUNTED_SECONDS };
                entry_reply(node, seconds, &attributes)
            }
            // The node without a number: the kernel remembers that nothing is there.
            None => entry_reply(0, REMEMBERED_SECONDS, &encode_attributes([0; 6], [0; 7])),
        }
    }

    /// Returns where a link among the passages leads.
    fn read_link(&self, node: u64) -> FuseReply {
        let passage = self.find_entry(node).filter(|(number, _)| number.is_none());
        match passage.and_then(|(_, path)| fs::read_link(path).ok()) {
            Some(target) => FuseReply::Data(target.into_os_string().into_vec()),
            None => FuseReply::Refused(Errno::INVAL),
        }
    }

    /// Returns `struct fuse_kstatfs`: the space where the file is that a node stands for. The file system itself has none.
    fn measure_space(&self, node: u64) -> Vec<u8> {
        let found = self.find_entry(node).and_then(|(_, path)| statvfs(path).ok());
        let part = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let (wide, narrow) = found.map_or(([0; 5], [4096, 255, 4096]), |space| {
            let wide =
                [space.f_blocks, space.f_bfree, space.f_bavail, space.f_files, space.f_ffree];
            (wide, [space.f_bsize, space.f_namemax, space.f_frsize].map(part))
        });
        let mut bytes: Vec<u8> = wide.iter().flat_map(|number| number.to_ne_bytes()).collect();
        bytes.extend(narrow.into_iter().chain([0; 7]).flat_map(u32::to_ne_bytes));
        bytes
    }

    /// Returns the attributes of a node: those of the file that it stands for, as it is now.
    fn node_attributes(&self, node: u64) -> Option<Vec<u8>> {
        if node == ROOT {
            return Some(encode_attributes([ROOT, 0, 0, 0, 0, 0], [0, 0, 0, 0o040_555, 2, 0, 0]));
        }
        let facts = fs::symlink_metadata(self.find_entry(node)?.1).ok()?;
        let seconds = |time: i64| time.cast_unsigned();
        let part = |time: i64| u32::try_from(time).unwrap_or(0);
        let wide = [
            facts.ino(),
            facts.size(),
            facts.blocks(),
            seconds(facts.atime()),
            seconds(facts.mtime()),
            seconds(facts.ctime()),
        ];
        let narrow = [
            part(facts.atime_nsec()),
            part(facts.mtime_nsec()),
            part(facts.ctime_nsec()),
            facts.mode(),
            u32::try_from(facts.nlink()).unwrap_or(1),
            facts.uid(),
            facts.gid(),
        ];
        Some(encode_attributes(wide, narrow))
    }

    /// All that is served, in the order of its nodes, each with the number under which it is reported.
    fn entries(&self) -> impl Iterator<Item = (Option<u16>, &Path)> {
        let OutsideNames { closed, folders, passages } = self.outside;
        let numbered = self.files.iter().chain(closed).chain(folders);
        let numbered = numbered.map(|(number, path)| (Some(*number), path.as_path()));
        numbered.chain(passages.iter().map(|path| (None, path.as_path())))
    }

    fn find_entry(&self, node: u64) -> Option<(Option<u16>, &Path)> {
        self.entries().nth(usize::try_from(node.checked_sub(FIRST_FILE)?).ok()?)
    }

    /// Returns the folder whose names are found, if the node is one.
    fn find_folder(&self, node: u64) -> Option<&Path> {
        let place = usize::try_from(node.checked_sub(FIRST_FILE)?).ok()?;
        let place = place.checked_sub(self.files.len() + self.outside.closed.len())?;
        self.outside.folders.get(place).map(|(_, path)| path.as_path())
    }

    /// True if nothing is mounted on a node that is served.
    fn is_closed(&self, node: u64) -> bool {
        let place = node.checked_sub(FIRST_FILE).and_then(|place| usize::try_from(place).ok());
        place.is_some_and(|place| place < self.files.len() + self.outside.closed.len())
    }

    fn report_attempt(&self, node: u64, reported: &mut BTreeSet<u16>) {
        let Some((Some(number), _)) = self.find_entry(node) else { return };
        if reported.insert(number)
            && let Some(teller) = self.teller
        {
            write(teller, &number.to_ne_bytes()).ok();
        }
    }
}

/// The answer to a request for a name: its node, and how long the kernel may remember it.
fn entry_reply(node: u64, seconds: u64, attributes: &[u8]) -> FuseReply {
    let mut reply = Vec::new();
    for number in [node, 0, seconds, REMEMBERED_SECONDS, 0] {
        reply.extend(number.to_ne_bytes());
    }
    reply.extend(attributes);
    FuseReply::Data(reply)
}

/// The answer to the first request: the version, and no feature.
fn init_reply() -> Vec<u8> {
    let mut reply = Vec::with_capacity(64);
    for number in [MAJOR, MINOR, 0, 0, 0, 4096, 1, 0] {
        reply.extend(number.to_ne_bytes());
    }
    reply.resize(64, 0);
    reply
}

/// `struct fuse_attr`: the device, the block size and the flags are always the same.
fn encode_attributes(wide: [u64; 6], narrow: [u32; 7]) -> Vec<u8> {
    let mut bytes: Vec<u8> = wide.iter().flat_map(|number| number.to_ne_bytes()).collect();
    let rest = narrow.into_iter().chain([0, 4096, 0]);
    bytes.extend(rest.flat_map(u32::to_ne_bytes));
    bytes
}

fn u32_at(bytes: &[u8], place: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(place..place + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], place: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(place..place + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn request(opcode: u32, node: u64, arguments: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[4..8].copy_from_slice(&opcode.to_ne_bytes());
        bytes[16..24].copy_from_slice(&node.to_ne_bytes());
        bytes.extend(arguments);
        bytes
    }

    #[test]
    fn sealed_file_is_seen_and_its_open_is_refused_and_reported_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        fs::write(&path, "12345").unwrap();
        let files = [(7, path)];
        let outside = OutsideNames::default();
        let sealed = SealedFiles { files: &files, outside: &outside, teller: None };
        let mut reported = BTreeSet::new();
        let mut ask = |opcode, node, arguments: &[u8]| {
            let bytes = request(opcode, node, arguments);
            sealed.answer_request(&FuseRequest::parse(&bytes).unwrap(), &mut reported)
        };
        let FuseReply::Data(found) = ask(opcode::LOOKUP, ROOT, b"0\0") else { panic!("not found") };
        assert_eq!((u64_at(&found, 0), u64_at(&found, 48)), (Some(FIRST_FILE), Some(5)));
        assert!(matches!(ask(opcode::LOOKUP, ROOT, b"1\0"), FuseReply::Refused(Errno::NOENT)));
        for _ in 0..2 {
            let opened = ask(opcode::OPEN, FIRST_FILE, &[0; 8]);
            assert!(matches!(opened, FuseReply::Refused(Errno::ACCESS)));
        }
        assert!(matches!(ask(opcode::ACCESS, FIRST_FILE, &[0; 8]), FuseReply::Data(_)));
        assert_eq!(reported.into_iter().collect::<Vec<_>>(), [7]);
    }

    #[test]
    fn fuse_folder_above_the_workspace_allows_lookup_but_no_listing() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["other", "work", "hidden"] {
            fs::create_dir(at(name)).unwrap();
        }
        std::os::unix::fs::symlink("work", at("link")).unwrap();
        let outside = OutsideNames {
            closed: vec![(0, at("other"))],
            folders: vec![(1, folder.path().to_owned())],
            passages: vec![at("work"), at("link")],
        };
        let sealed = SealedFiles { files: &[], outside: &outside, teller: None };
        let mut reported = BTreeSet::new();
        let mut ask = |opcode, node, arguments: &[u8]| {
            let bytes = request(opcode, node, arguments);
            sealed.answer_request(&FuseRequest::parse(&bytes).unwrap(), &mut reported)
        };
        let above = FIRST_FILE + 1;
        let mut find = |name: &[u8]| match ask(opcode::LOOKUP, above, name) {
            FuseReply::Data(found) => (u64_at(&found, 0), u64_at(&found, 16)),
            FuseReply::Refused(_) | FuseReply::Nothing => panic!("{name:?} was refused"),
        };
        let closed = (Some(FIRST_FILE), Some(REMEMBERED_SECONDS));
        assert_eq!(find(b"other\0"), closed);
        assert_eq!(find(b"work\0"), (Some(above + 1), Some(MOUNTED_SECONDS)));
        assert_eq!(find(b"hidden\0"), (Some(0), Some(REMEMBERED_SECONDS)));
        assert_eq!(find(b"..\0"), (Some(0), Some(REMEMBERED_SECONDS)));
        let FuseReply::Data(target) = ask(opcode::READLINK, above + 2, &[]) else { panic!() };
        assert_eq!(target, b"work");
        assert!(matches!(ask(opcode::READLINK, FIRST_FILE, &[]), FuseReply::Refused(_)));
        assert!(matches!(ask(opcode::ACCESS, above, &[1, 0, 0, 0]), FuseReply::Data(_)));
        for (node, has_space) in [(above, true), (ROOT, false)] {
            let FuseReply::Data(space) = ask(opcode::STATFS, node, &[]) else { panic!() };
            assert_eq!((space.len(), u64_at(&space, 0) > Some(0)), (80, has_space));
        }
        assert!(matches!(ask(opcode::OPENDIR, above, &[0; 8]), FuseReply::Refused(Errno::ACCESS)));
        assert_eq!(reported.into_iter().collect::<Vec<_>>(), [1]);
    }

    proptest! {
        #[test]
        fn fuse_server_answers_any_request(opcode in 0..60_u32, node: u64, arguments in vec(any::<u8>(), 0..64)) {
            let bytes = request(opcode, node, &arguments);
            let outside = OutsideNames { folders: vec![(0, "/".into())], ..OutsideNames::default() };
            let sealed = SealedFiles { files: &[], outside: &outside, teller: None };
            sealed.answer_request(&FuseRequest::parse(&bytes).unwrap(), &mut BTreeSet::new());
            prop_assert!(FuseRequest::parse(&bytes[..HEADER_BYTES - 1]).is_none());
        }
    }
}
