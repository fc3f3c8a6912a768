//! The state kept between runs, so that a new process need not read every file again.
//!
//! Losing it costs one reading of all files and nothing else, so it is written without waiting for
//! the disk and thrown away at the first doubt. Sealed as objects are: names of files say much, too.

use std::{fs::File, io::Read, path::Path};

use super::{
    codec::{ByteReader, put_bytes, put_number},
    error::Error,
    folder::MAX_DEPTH,
    hash::{HASH_BYTES, Hash},
    places::{Places, replace_file},
    seal::Seal,
    skipped::SkipCause,
    stamp::Stamp,
    state::{Entry, FileNode, Folder, Node},
    tree::is_plain_name,
};

const MAGIC: &[u8; 8] = b"gnomast3";

/// Largest state that is read.
const MAX_STATE_BYTES: u64 = 1 << 30;

/// Writes the state to a file.
pub(super) fn write_state(
    places: &Places,
    seal: &Seal,
    path: &Path,
    root: &Folder,
) -> Result<(), Error> {
    let mut body = Vec::new();
    put_folder(&mut body, root);
    let digest = Hash::of_bytes(&body);
    seal.apply(&digest, &mut body);
    let out = [MAGIC.as_slice(), &digest.0, &body].concat();
    replace_file(places, path, &out, false)
}

/// Reads the state; `None` when there is none that can be believed.
pub(super) fn read_state(seal: &Seal, path: &Path) -> Option<Folder> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(MAX_STATE_BYTES).read_to_end(&mut bytes).ok()?;
    let (head, body) = bytes.split_at_mut_checked(MAGIC.len() + HASH_BYTES)?;
    let digest = Hash(head.strip_prefix(MAGIC)?.try_into().ok()?);
    seal.apply(&digest, body);
    if Hash::of_bytes(body) != digest {
        return None;
    }
    let mut reader = ByteReader(body);
    let root = read_folder(&mut reader, 0)?;
    reader.is_done().then_some(root)
}

fn put_folder(out: &mut Vec<u8>, folder: &Folder) {
    put_stamp(out, &folder.stamp);
    out.push(u8::from(folder.is_racy));
    out.push(u8::from(folder.tree.is_some()));
    if let Some(tree) = &folder.tree {
        out.extend_from_slice(&tree.0);
    }
    put_number(out, folder.entries.len() as u64);
    for entry in &folder.entries {
        put_bytes(out, &entry.name);
        match &entry.node {
            Node::File(file) => {
                out.push(b'f');
                put_stamp(out, &file.stamp);
                out.extend_from_slice(&file.hash.0);
                put_number(out, file.size);
                out.push(u8::from(file.is_racy) | u8::from(file.is_unsteady) << 1);
            }
            Node::Link { target } => {
                out.push(b'l');
                put_bytes(out, target);
            }
            Node::Folder(below) => {
                out.push(b'd');
                put_folder(out, below);
            }
            Node::Unsaved(why) => out.extend_from_slice(&[b'u', why.code()]),
        }
    }
}

fn read_folder(reader: &mut ByteReader<'_>, depth: u32) -> Option<Folder> {
    if depth > MAX_DEPTH + 1 {
        return None;
    }
    let stamp = read_stamp(reader)?;
    let is_racy = reader.read_byte()? != 0;
    let tree = if reader.read_byte()? == 0 { None } else { Some(reader.read_hash()?) };
    let count = reader.read_number()?;
    let mut entries: Vec<Entry> = Vec::new();
    for _ in 0..count {
        let name: Box<[u8]> = reader.read_bytes()?.into();
        let in_order = entries.last().is_none_or(|last| last.name < name);
        if !in_order || !is_plain_name(&name) {
            return None;
        }
        entries.push(Entry { name, node: read_node(reader, depth)? });
    }
    let mut folder = Folder { stamp, is_racy, entries, tree, ..Folder::default() };
    folder.recount_entries();
    Some(folder)
}

fn read_node(reader: &mut ByteReader<'_>, depth: u32) -> Option<Node> {
    Some(match reader.read_byte()? {
        b'f' => {
            let (stamp, hash, size) =
                (read_stamp(reader)?, reader.read_hash()?, reader.read_number()?);
            let flags = reader.read_byte()?;
            let (is_racy, is_unsteady) = (flags & 1 != 0, flags & 2 != 0);
            Node::File(FileNode { stamp, hash, size, is_racy, is_unsteady })
        }
        b'l' => Node::Link { target: reader.read_bytes()?.into() },
        b'd' => Node::Folder(Box::new(read_folder(reader, depth + 1)?)),
        b'u' => Node::Unsaved(SkipCause::from_code(reader.read_byte()?)?),
        _ => return None,
    })
}

fn put_stamp(out: &mut Vec<u8>, stamp: &Stamp) {
    put_number(out, stamp.device);
    put_number(out, stamp.inode);
    put_number(out, stamp.size);
    put_number(out, stamp.mode.into());
    put_number(out, stamp.links.into());
    out.extend_from_slice(&stamp.modified_ns.to_le_bytes());
    out.extend_from_slice(&stamp.changed_ns.to_le_bytes());
}

fn read_stamp(reader: &mut ByteReader<'_>) -> Option<Stamp> {
    Some(Stamp {
        device: reader.read_number()?,
        inode: reader.read_number()?,
        size: reader.read_number()?,
        mode: reader.read_u32()?,
        links: reader.read_u32()?,
        modified_ns: i128::from_le_bytes(reader.take_bytes(16)?.try_into().ok()?),
        changed_ns: i128::from_le_bytes(reader.take_bytes(16)?.try_into().ok()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoint_state_file_encrypts_names_and_round_trips() {
        let folder = tempfile::tempdir().unwrap();
        let places = Places::create(folder.path()).unwrap();
        let seal = Seal::open(&places, false).unwrap();
        let path = folder.path().join("state");
        let name: Box<[u8]> = b"report-for-t0ken-4711".as_slice().into();
        let entries = vec![Entry { name: name.clone(), node: Node::Link { target: name.clone() } }];
        write_state(&places, &seal, &path, &Folder { entries, ..Folder::default() }).unwrap();
        let mut written = std::fs::read(&path).unwrap();
        assert!(!written.windows(5).any(|window| window == b"t0ken"));
        assert_eq!(read_state(&seal, &path).unwrap().entries[0].name, name);
        let last = written.len() - 1;
        written[last] ^= 1;
        std::fs::write(&path, written).unwrap();
        assert!(read_state(&seal, &path).is_none());
    }
}
