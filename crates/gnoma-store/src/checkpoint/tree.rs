//! One folder as an object: names in byte order, each with its kind. Pure.
//!
//! A tree refers to its subfolders by their hash, so snapshots share unchanged folders. Names are checked on
//! reading: no stored tree can lead out of the workspace.

use super::{
    codec::{ByteReader, put_bytes, put_number},
    hash::Hash,
    stamp::MODE_BITS,
};

/// First byte of every tree.
const VERSION: u8 = 1;

/// Longest target of a symbolic link, above every system's.
const MAX_TARGET_BYTES: usize = 64 << 10;

/// Names that belong to version control: neither kept nor touched, at any depth.
const FOREIGN_NAMES: [&[u8]; 6] = [b".git", b".hg", b".jj", b".svn", b".sl", b".bzr"];

/// The beginning of the names of files that a restore is still writing.
pub(super) const UNFINISHED_PREFIX: &[u8] = b".gnoma-restoring-";

/// Reports whether `name` belongs to version control.
pub(super) fn is_foreign(name: &[u8]) -> bool {
    FOREIGN_NAMES.contains(&name)
}

/// Reports whether a restore left `name` behind.
pub(super) fn is_unfinished(name: &[u8]) -> bool {
    name.starts_with(UNFINISHED_PREFIX)
}

/// The thing that a name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// A regular file.
    File { hash: Hash, mode: u32, size: u64 },
    /// A folder; the hash is its tree's.
    Folder { hash: Hash, mode: u32 },
    /// A symbolic link.
    Link { target: Vec<u8> },
    /// A thing that was there and was not kept; restoring leaves the name alone.
    Unsaved,
}

/// A folder's entries, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tree(pub(super) Vec<(Vec<u8>, Item)>);

impl Tree {
    /// Returns what `name` stands for.
    pub(super) fn get(&self, name: &[u8]) -> Option<&Item> {
        let at = self.0.binary_search_by(|(known, _)| known.as_slice().cmp(name)).ok()?;
        self.0.get(at).map(|(_, item)| item)
    }

    /// As [`Encoder`] writes it.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Encoder::new(self.0.len());
        for (name, item) in &self.0 {
            match item {
                Item::File { hash, mode, size } => out.add_file(name, hash, *mode, *size),
                Item::Folder { hash, mode } => out.add_folder(name, hash, *mode),
                Item::Link { target } => out.add_link(name, target),
                Item::Unsaved => out.add_unsaved(name),
            }
        }
        out.finish()
    }

    /// Reads what [`Encoder`] wrote.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = ByteReader(bytes);
        if reader.read_byte()? != VERSION {
            return None;
        }
        let mut entries: Vec<(Vec<u8>, Item)> = Vec::new();
        while !reader.is_done() {
            let tag = reader.read_byte()?;
            let name = reader.read_bytes()?;
            let in_order = entries.last().is_none_or(|(last, _)| last.as_slice() < name);
            if !in_order || !is_plain_name(name) {
                return None;
            }
            entries.push((name.to_vec(), decode_item(tag, &mut reader)?));
        }
        Some(Self(entries))
    }
}

fn decode_item(tag: u8, reader: &mut ByteReader<'_>) -> Option<Item> {
    let mode = |reader: &mut ByteReader<'_>| reader.read_u32().filter(|mode| *mode <= MODE_BITS);
    Some(match tag {
        b'f' => Item::File {
            hash: reader.read_hash()?,
            mode: mode(reader)?,
            size: reader.read_number()?,
        },
        b'd' => Item::Folder { hash: reader.read_hash()?, mode: mode(reader)? },
        b'l' => {
            let target = reader.read_bytes()?;
            let sound = !target.is_empty() && target.len() <= MAX_TARGET_BYTES;
            Item::Link { target: (sound && !target.contains(&0)).then(|| target.to_vec())? }
        }
        b'u' => Item::Unsaved,
        _ => return None,
    })
}

/// Reports whether a name stays in its folder and out of version control's.
pub(super) fn is_plain_name(name: &[u8]) -> bool {
    let odd = name.is_empty() || name == b"." || name == b"..";
    !odd && !name.iter().any(|byte| matches!(byte, b'/' | 0)) && !is_foreign(name)
}

/// Writes a tree entry by entry; names must come in byte order.
pub(super) struct Encoder(Vec<u8>);

impl Encoder {
    pub(super) fn new(entries: usize) -> Self {
        let mut bytes = Vec::with_capacity(1 + entries * 64);
        bytes.push(VERSION);
        Self(bytes)
    }

    pub(super) fn add_file(&mut self, name: &[u8], hash: &Hash, mode: u32, size: u64) {
        self.add_name(b'f', name);
        self.0.extend_from_slice(&hash.0);
        put_number(&mut self.0, mode.into());
        put_number(&mut self.0, size);
    }

    pub(super) fn add_folder(&mut self, name: &[u8], hash: &Hash, mode: u32) {
        self.add_name(b'd', name);
        self.0.extend_from_slice(&hash.0);
        put_number(&mut self.0, mode.into());
    }

    pub(super) fn add_link(&mut self, name: &[u8], target: &[u8]) {
        self.add_name(b'l', name);
        put_bytes(&mut self.0, target);
    }

    pub(super) fn add_unsaved(&mut self, name: &[u8]) {
        self.add_name(b'u', name);
    }

    pub(super) fn finish(self) -> Vec<u8> {
        self.0
    }

    fn add_name(&mut self, tag: u8, name: &[u8]) {
        self.0.push(tag);
        put_bytes(&mut self.0, name);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn item() -> impl Strategy<Value = Item> {
        let hash = any::<[u8; 32]>().prop_map(Hash);
        prop_oneof![
            (hash.clone(), 0..=MODE_BITS, any::<u64>()).prop_map(|(hash, mode, size)| Item::File {
                hash,
                mode,
                size
            }),
            (hash, 0..=MODE_BITS).prop_map(|(hash, mode)| Item::Folder { hash, mode }),
            proptest::collection::vec(1u8.., 1..50).prop_map(|target| Item::Link { target }),
            Just(Item::Unsaved),
        ]
    }

    proptest! {
        #[test]
        fn checkpoint_tree_round_trips_and_finds_entries(
            entries in proptest::collection::btree_map("[^/\0]{1,9}".prop_filter("dots", |name| {
                is_plain_name(name.as_bytes())
            }), item(), 0..20)
        ) {
            let tree = Tree(entries.into_iter().map(|(n, i)| (n.into_bytes(), i)).collect());
            let read = Tree::decode(&tree.encode()).unwrap();
            prop_assert_eq!(&read, &tree);
            for (name, item) in &tree.0 {
                prop_assert_eq!(read.get(name), Some(item));
            }
        }

        #[test]
        fn checkpoint_tree_decoder_never_panics(bytes: Vec<u8>) {
            let mut versioned = vec![VERSION];
            versioned.extend(bytes);
            if let Some(tree) = Tree::decode(&versioned) {
                prop_assert!(tree.0.iter().all(|(name, _)| is_plain_name(name)));
            }
        }
    }

    #[test]
    fn checkpoint_tree_rejects_names_that_escape_the_folder() {
        for name in ["", ".", "..", "a/b", "/etc", "a\0", ".git"] {
            let mut encoder = Encoder::new(1);
            encoder.add_unsaved(name.as_bytes());
            assert_eq!(Tree::decode(&encoder.finish()), None, "{name:?}");
        }
    }
}
