//! Which files of a workspace are one file under several names. Stored beside the tree, so that trees contain no
//! inode numbers and stay equal after a restore. Pure.

use std::collections::{BTreeMap, HashMap};

use super::{
    codec::{ByteReader, put_bytes, put_number},
    state::{Folder, Node},
};

/// Most groups and names that are read.
const MAX_NAMES: u64 = 8 << 20;

/// Groups of paths, each of at least two, everything in byte order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Links(pub(super) Vec<Vec<Vec<u8>>>);

impl Links {
    /// The groups in what is known of a workspace.
    pub(super) fn from_folder(root: &Folder) -> Self {
        let mut by_inode: HashMap<(u64, u64), Vec<Vec<u8>>> = HashMap::new();
        root.visit_noted(&mut Vec::new(), &mut |path, node| {
            if let Node::File(file) = node
                && file.stamp.links > 1
            {
                let inode = (file.stamp.device, file.stamp.inode);
                by_inode.entry(inode).or_default().push(path.to_vec());
            }
        });
        let mut groups: Vec<_> = by_inode.into_values().filter(|group| group.len() > 1).collect();
        groups.iter_mut().for_each(|group| gnoma_core::sort::sort_items(group));
        gnoma_core::sort::sort_items(&mut groups);
        Self(groups)
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_number(&mut out, self.0.len() as u64);
        for group in &self.0 {
            put_number(&mut out, group.len() as u64);
            group.iter().for_each(|path| put_bytes(&mut out, path));
        }
        out
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = ByteReader(bytes);
        let mut groups = Vec::new();
        for _ in 0..reader.read_number().filter(|count| *count <= MAX_NAMES)? {
            let mut group = Vec::new();
            for _ in 0..reader.read_number().filter(|count| *count <= MAX_NAMES)? {
                group.push(reader.read_bytes()?.to_vec());
            }
            groups.push(group);
        }
        reader.is_done().then_some(Self(groups))
    }

    /// The group of each path.
    pub(super) fn by_path(&self) -> BTreeMap<&[u8], &[Vec<u8>]> {
        gnoma_core::sort::to_map(
            self.0.iter().flat_map(|group| {
                group.iter().map(move |path| (path.as_slice(), group.as_slice()))
            }),
        )
    }
}
