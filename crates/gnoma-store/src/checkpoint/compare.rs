//! What differs between two trees. Subtrees that are equal are not read.

use super::{
    error::Error,
    folder::MAX_DEPTH,
    hash::Hash,
    objects::Objects,
    state::push_name,
    tree::{Item, Tree},
};

/// The callback for each difference: it gets the path, and what is there before and after.
type DifferenceVisitor<'a> = dyn FnMut(&[u8], Option<&Item>, Option<&Item>) + 'a;

/// Reads a stored tree by its hash.
pub(super) fn load_tree(objects: &Objects, hash: &Hash) -> Result<Tree, Error> {
    Tree::decode(&objects.read(hash)?)
        .ok_or_else(|| Error::Damaged(format!("object `{hash}` is not a tree")))
}

/// Calls `visit` for each path that differs, folders before what is in them.
pub(super) fn compare_trees(
    objects: &Objects,
    before: Option<Hash>,
    after: Option<Hash>,
    visit: &mut DifferenceVisitor<'_>,
) -> Result<(), Error> {
    TreeComparison { objects, path: Vec::new(), visit }.compare_folders(before, after, 0)
}

struct TreeComparison<'a, 'v> {
    objects: &'a Objects,
    path: Vec<u8>,
    visit: &'a mut DifferenceVisitor<'v>,
}

impl TreeComparison<'_, '_> {
    fn compare_folders(
        &mut self,
        before: Option<Hash>,
        after: Option<Hash>,
        depth: u32,
    ) -> Result<(), Error> {
        if before == after {
            return Ok(());
        }
        if depth > MAX_DEPTH + 1 {
            return Err(Error::Damaged("folders are nested too deeply".to_owned()));
        }
        let before = self.load(before)?;
        let after = self.load(after)?;
        for (name, before, after) in pair_items(&before, &after) {
            let length = self.path.len();
            push_name(&mut self.path, name);
            self.compare_items(before, after, depth)?;
            self.path.truncate(length);
        }
        Ok(())
    }

    fn compare_items(
        &mut self,
        before: Option<&Item>,
        after: Option<&Item>,
        depth: u32,
    ) -> Result<(), Error> {
        if before == after {
            return Ok(());
        }
        let same_kind = match (before, after) {
            (Some(Item::Folder { mode: old, .. }), Some(Item::Folder { mode: new, .. })) => {
                old == new
            }
            _ => false,
        };
        if !same_kind {
            (self.visit)(&self.path, before, after);
        }
        let tree = |item: Option<&Item>| match item {
            Some(Item::Folder { hash, .. }) => Some(*hash),
            _ => None,
        };
        self.compare_folders(tree(before), tree(after), depth + 1)
    }

    fn load(&self, hash: Option<Hash>) -> Result<Tree, Error> {
        hash.map_or_else(|| Ok(Tree::default()), |hash| load_tree(self.objects, &hash))
    }
}

/// The names of both, in order, each with what it is on either side.
fn pair_items<'t>(
    before: &'t Tree,
    after: &'t Tree,
) -> impl Iterator<Item = (&'t [u8], Option<&'t Item>, Option<&'t Item>)> {
    let mut before = before.0.iter().peekable();
    let mut after = after.0.iter().peekable();
    std::iter::from_fn(move || {
        let name = match (before.peek(), after.peek()) {
            (Some((old, _)), Some((new, _))) => old.min(new),
            (Some((name, _)), None) | (None, Some((name, _))) => name,
            (None, None) => return None,
        };
        let old = before.next_if(|(old, _)| old == name).map(|(_, item)| item);
        let new = after.next_if(|(new, _)| new == name).map(|(_, item)| item);
        Some((name.as_slice(), old, new))
    })
}

/// Returns what is at `path` in a tree.
pub(super) fn find_item(objects: &Objects, root: Hash, path: &[u8]) -> Result<Option<Item>, Error> {
    let mut item = Item::Folder { hash: root, mode: 0 };
    for name in path.split(|byte| *byte == b'/') {
        let Item::Folder { hash, .. } = item else { return Ok(None) };
        match load_tree(objects, &hash)?.get(name) {
            Some(found) => item = found.clone(),
            None => return Ok(None),
        }
    }
    Ok(Some(item))
}
