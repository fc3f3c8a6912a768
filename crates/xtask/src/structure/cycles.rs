//! Finds the files that reach themselves.

use std::collections::{BTreeMap, BTreeSet};

use super::references::Reference;

/// Groups of files, by index, each of which reaches every other of its group.
pub(super) fn find_cycles(references: &[Reference]) -> Vec<BTreeSet<usize>> {
    let mut next: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for reference in references {
        next.entry(reference.from).or_default().insert(reference.to);
    }
    let reached: BTreeMap<usize, BTreeSet<usize>> =
        next.keys().map(|file| (*file, reachable_files(*file, &next))).collect();
    let mut groups: Vec<BTreeSet<usize>> = Vec::new();
    for (file, from_it) in &reached {
        let grouped = groups.iter().any(|group| group.contains(file));
        if from_it.contains(file) && !grouped {
            let back = |other: &&usize| reached.get(other).is_some_and(|all| all.contains(file));
            groups.push(from_it.iter().filter(back).copied().collect());
        }
    }
    groups
}

/// The files that are reached from one by at least one reference.
fn reachable_files(start: usize, next: &BTreeMap<usize, BTreeSet<usize>>) -> BTreeSet<usize> {
    let mut reached = BTreeSet::new();
    let mut open = vec![start];
    while let Some(file) = open.pop() {
        open.extend(next.get(&file).into_iter().flatten().filter(|to| reached.insert(**to)));
    }
    reached
}
