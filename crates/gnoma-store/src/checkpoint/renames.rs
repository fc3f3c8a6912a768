//! Files that one side of a merge has under another name than the state that both began with.

use std::collections::HashMap;

use super::{compare::compare_trees, error::Error, hash::Hash, objects::Objects, tree::Item};

/// New files that a file which is gone is held against, where none has its very contents.
const MAX_COMPARED: usize = 200;
/// Largest file that is held against another.
const MAX_COMPARED_BYTES: u64 = 256 << 10;

/// The files that one side has renamed.
#[derive(Default)]
pub(super) struct Renames {
    /// By the old name: files with one new name and the same contents.
    to: HashMap<Vec<u8>, Vec<u8>>,
    new: Vec<(Vec<u8>, Hash, u64)>,
}

impl Renames {
    /// Finds what `side` renamed of what was in `base`. Where it is not clear which file became which, or there is
    /// nothing in them, none counts as renamed.
    pub(super) fn find_between(objects: &Objects, base: Hash, side: Hash) -> Result<Self, Error> {
        let (mut gone, mut new) = (Vec::new(), Vec::new());
        compare_trees(objects, Some(base), Some(side), &mut |path, before, after| {
            if let Some(Item::File { hash, size, .. }) = before
                && after.is_none()
                && *size > 0
            {
                gone.push((path.to_vec(), *hash));
            }
            if let Some(Item::File { hash, size, .. }) = after
                && before.is_none()
                && *size > 0
            {
                new.push((path.to_vec(), *hash, *size));
            }
        })?;
        let only = |found: Vec<Vec<u8>>| <[Vec<u8>; 1]>::try_from(found).ok().map(|[only]| only);
        let mut by_hash: HashMap<Hash, [Vec<Vec<u8>>; 2]> = HashMap::new();
        for (path, hash) in gone {
            let [old, _] = by_hash.entry(hash).or_default();
            old.push(path);
        }
        for (path, hash, _) in &new {
            if let Some([_, named]) = by_hash.get_mut(hash) {
                named.push(path.clone());
            }
        }
        let pairs = by_hash.into_values().filter_map(|[old, new]| only(old).zip(only(new)));
        Ok(Self { to: pairs.collect(), new })
    }

    /// The new name of a file whose contents are the same.
    pub(super) fn new_name(&self, path: &[u8]) -> Option<&[u8]> {
        self.to.get(path).map(Vec::as_slice)
    }

    /// The new name of a file, also where it was changed besides: of what is new, that which has most of
    /// its lines, and at least half of them.
    pub(super) fn perhaps_to(
        &self,
        objects: &Objects,
        path: &[u8],
        item: Option<&Item>,
    ) -> Result<Option<Vec<u8>>, Error> {
        if let Some(to) = self.new_name(path) {
            return Ok(Some(to.to_vec()));
        }
        let Some(Item::File { hash, size, .. }) = item else { return Ok(None) };
        if *size == 0 || *size > MAX_COMPARED_BYTES {
            return Ok(None);
        }
        let own = objects.read(hash)?;
        let (lines, mut best) = (count_lines(&own), (0, None));
        let total: usize = lines.values().sum();
        let near = self.new.iter().filter(|(.., size)| *size <= MAX_COMPARED_BYTES);
        for (path, hash, _) in near.take(MAX_COMPARED) {
            let other = objects.read(hash)?;
            let others = count_lines(&other);
            let shared = |(line, here): (&&[u8], &usize)| others.get(*line).map(|it| *it.min(here));
            let common: usize = lines.iter().filter_map(shared).sum();
            let longest = total.max(others.values().sum());
            if common * 2 >= longest && common > best.0 {
                best = (common, Some(path.clone()));
            }
        }
        Ok(best.1)
    }
}

fn count_lines(text: &[u8]) -> HashMap<&[u8], usize> {
    let mut lines = HashMap::new();
    for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        *lines.entry(line).or_insert(0) += 1;
    }
    lines
}
