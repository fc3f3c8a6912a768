//! Changes to a stored tree, as a tree of their own, and the tree that they lead to.

use std::collections::BTreeMap;

use super::{
    compare::load_tree,
    error::Error,
    hash::Hash,
    objects::Objects,
    tree::{Item, Tree},
    write::Batch,
};

/// The mode of folders that nobody has named and that something is in.
const FOLDER_MODE: u32 = 0o755;

/// The change to one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum EntryChange {
    /// A file or a link.
    Put(Item),
    /// Nothing; a folder stays while something else is in it.
    Remove,
    /// A folder of this mode.
    Folder(u32),
}

/// The changes to a name and to those below it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Edit {
    pub(super) set: Option<EntryChange>,
    below: BTreeMap<Vec<u8>, Self>,
}

impl Edit {
    /// Returns the changes to a path below.
    pub(super) fn edit_at(&mut self, path: &[u8]) -> &mut Self {
        let names = path.split(|byte| *byte == b'/');
        names.fold(self, |edit, name| edit.below.entry(name.to_vec()).or_default())
    }

    /// Reports whether the path below becomes a folder.
    pub(super) fn makes_folder(&self, path: &[u8]) -> bool {
        let mut names = path.split(|byte| *byte == b'/');
        let found = names.try_fold(self, |edit, name| edit.below.get(name));
        found.is_some_and(|edit| matches!(edit.set, Some(EntryChange::Folder(_))))
    }

    /// The tree that `tree` becomes.
    pub(super) fn apply_to_tree(
        &self,
        objects: &Objects,
        batch: &Batch<'_>,
        tree: Hash,
    ) -> Result<Hash, Error> {
        batch.store_bytes(&self.apply_to_entries(objects, batch, Some(tree))?.encode())
    }

    fn apply_to_entries(
        &self,
        objects: &Objects,
        batch: &Batch<'_>,
        tree: Option<Hash>,
    ) -> Result<Tree, Error> {
        let known = tree.map(|tree| load_tree(objects, &tree)).transpose()?.unwrap_or_default();
        let mut entries: BTreeMap<Vec<u8>, Item> = gnoma_core::sort::to_map(known.0);
        for (name, edit) in &self.below {
            match edit.apply_to_item(objects, batch, entries.get(name))? {
                Some(item) => drop(entries.insert(name.clone(), item)),
                None => drop(entries.remove(name)),
            }
        }
        Ok(Tree(entries.into_iter().collect()))
    }

    fn apply_to_item(
        &self,
        objects: &Objects,
        batch: &Batch<'_>,
        old: Option<&Item>,
    ) -> Result<Option<Item>, Error> {
        let (tree, mode) = match old {
            Some(Item::Folder { hash, mode }) => (Some(*hash), Some(*mode)),
            Some(Item::File { .. } | Item::Link { .. } | Item::Unsaved) | None => (None, None),
        };
        let mode = match &self.set {
            Some(EntryChange::Put(item)) => return Ok(Some(item.clone())),
            Some(EntryChange::Remove) if mode.is_none() => return Ok(None),
            Some(EntryChange::Folder(mode)) => *mode,
            Some(EntryChange::Remove) | None => mode.unwrap_or(FOLDER_MODE),
        };
        let entries = self.apply_to_entries(objects, batch, tree)?;
        let is_wanted = match &self.set {
            Some(EntryChange::Remove) => false,
            None => old.is_some(),
            Some(EntryChange::Put(_) | EntryChange::Folder(_)) => true,
        };
        if entries.0.is_empty() && !is_wanted {
            return Ok(None);
        }
        Ok(Some(Item::Folder { hash: batch.store_bytes(&entries.encode())?, mode }))
    }
}
