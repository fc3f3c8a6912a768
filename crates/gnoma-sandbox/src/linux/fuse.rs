//! The files of a small file system in user space: each looks like a real one and cannot be opened.
//!
//! Answers the requests that the kernel writes to `/dev/fuse` (include/uapi/linux/fuse.h, version 7.31), as far as
//! such files need it. What a hostile command can cause is one request at a time, in a buffer of fixed size; whatever
//! is not understood is refused.

use std::{
    collections::BTreeSet,
    fs,
    os::{fd::OwnedFd, unix::fs::MetadataExt},
    path::PathBuf,
};

use rustix::io::{Errno, read, write};

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
/// Seconds for which the kernel may remember what a file looks like.
const REMEMBERED_SECONDS: u64 = 1;
/// The bits of an access check that ask for more than existence.
const ANY_ACCESS: u32 = 0o7;

/// Requests, by their numbers in the protocol.
mod opcode {
    pub(super) const LOOKUP: u32 = 1;
    pub(super) const FORGET: u32 = 2;
    pub(super) const GETATTR: u32 = 3;
    pub(super) const SETATTR: u32 = 4;
    pub(super) const OPEN: u32 = 14;
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
            opcode::GETATTR => match self.node_attributes(request.node) {
                Some(attributes) => {
                    let mut reply = REMEMBERED_SECONDS.to_ne_bytes().to_vec();
                    reply.extend([0; 8]);
                    reply.extend(attributes);
                    FuseReply::Data(reply)
                }
                None => FuseReply::Refused(Errno::NOENT),
            },
            opcode::ACCESS if u32_at(request.arguments, 0).unwrap_or(0) & ANY_ACCESS == 0 => {
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
        let mut reply = Vec::new();
        for number in [node, 0, REMEMBERED_SECONDS, REMEMBERED_SECONDS, 0] {
            reply.extend(number.to_ne_bytes());
        }
        reply.extend(attributes);
        FuseReply::Data(reply)
    }

    /// Returns the attributes of a node: those of the file that it stands for, as it is now.
    fn node_attributes(&self, node: u64) -> Option<Vec<u8>> {
        if node == ROOT {
            return Some(encode_attributes([ROOT, 0, 0, 0, 0, 0], [0, 0, 0, 0o040_555, 2, 0, 0]));
        }
        let facts = fs::symlink_metadata(&self.find_file(node)?.1).ok()?;
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

    fn find_file(&self, node: u64) -> Option<&(u16, PathBuf)> {
        let place = node.checked_sub(FIRST_FILE)?;
        self.files.get(usize::try_from(place).ok()?)
    }

    fn report_attempt(&self, node: u64, reported: &mut BTreeSet<u16>) {
        let Some((number, _)) = self.find_file(node) else { return };
        if reported.insert(*number)
            && let Some(teller) = self.teller
        {
            write(teller, &number.to_ne_bytes()).ok();
        }
    }
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
        let sealed = SealedFiles { files: &files, teller: None };
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

    proptest! {
        #[test]
        fn any_request_is_answered(opcode in 0..60_u32, node: u64, arguments in vec(any::<u8>(), 0..64)) {
            let bytes = request(opcode, node, &arguments);
            let sealed = SealedFiles { files: &[], teller: None };
            sealed.answer_request(&FuseRequest::parse(&bytes).unwrap(), &mut BTreeSet::new());
            prop_assert!(FuseRequest::parse(&bytes[..HEADER_BYTES - 1]).is_none());
        }
    }
}
