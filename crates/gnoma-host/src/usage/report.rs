//! Makes a tree of named rows of the groups. Pure.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
};

use gnoma_core::message::ModelRef;
use gnoma_store::NameId;

use super::{
    dimension::Dimension,
    fold::{CallGroup, GroupKey, NO_ELF, UNKNOWN},
    sums::UsageSums,
};

/// The name of the group of calls that a person's own session made, beside its elfs.
const MAIN_SESSION: &str = "main";

/// The name of the group of calls that had no agent, skill or MCP server.
const NONE: &str = "(none)";

/// A group of calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageRow {
    /// The dimension that it is a group of.
    pub dimension: Dimension,
    /// The value that its calls have in common; `None` if the ledger does not know it of them.
    pub name: Option<String>,
    /// The sums of its calls.
    pub sums: UsageSums,
    /// The same calls by the next dimension.
    pub rows: Vec<Self>,
}

/// The names that the numbers of keys stand for.
pub(super) struct KeyNames {
    pub(super) names: BTreeMap<NameId, String>,
    pub(super) arms: BTreeMap<i64, ModelRef>,
}

impl KeyNames {
    fn key_name(&self, dimension: Dimension, part: i64) -> Option<String> {
        if part == UNKNOWN {
            return None;
        }
        match dimension {
            Dimension::Period(period) => Some(period.name_of(part)),
            Dimension::Elf if part == NO_ELF => Some(MAIN_SESSION.to_owned()),
            Dimension::Project
            | Dimension::Branch
            | Dimension::Session
            | Dimension::Elf
            | Dimension::Task => self.names.get(&NameId(part)).cloned(),
            Dimension::Work(fact) => {
                let value = fact.find_in(self.names.get(&NameId(part))?)?;
                Some(if value.is_empty() { NONE } else { value }.to_owned())
            }
            Dimension::Model => self.arms.get(&part).map(ToString::to_string),
            Dimension::Provider => self.arms.get(&part).map(|arm| arm.provider.clone()),
        }
    }
}

/// Returns the ids of names in the keys, once each.
pub(super) fn name_ids<'k>(
    by: &[Dimension],
    keys: impl Iterator<Item = &'k GroupKey>,
) -> Vec<NameId> {
    let is_name = |dimension: Dimension| match dimension {
        Dimension::Project
        | Dimension::Branch
        | Dimension::Session
        | Dimension::Elf
        | Dimension::Task
        | Dimension::Work(_) => true,
        Dimension::Period(_) | Dimension::Model | Dimension::Provider => false,
    };
    let mut ids: Vec<NameId> = keys
        .flat_map(|key| key.iter().zip(by))
        .filter(|(part, dimension)| is_name(**dimension) && **part > 0)
        .map(|(part, _)| NameId(*part))
        .collect();
    gnoma_core::sort::by_key(&mut ids, |id| id.0);
    ids.dedup();
    ids
}

/// Makes rows of the groups, and the sums of all.
pub(super) fn build_tree(
    by: &[Dimension],
    groups: HashMap<GroupKey, CallGroup>,
    names: &KeyNames,
) -> (UsageSums, Vec<UsageRow>) {
    let Branch { sums, rows, turns: _ } = build_branch(by, 0, groups.into_iter().collect(), names);
    (sums, rows)
}

/// Groups that have the first dimensions in common.
struct Branch {
    sums: UsageSums,
    rows: Vec<UsageRow>,
    /// Turns by their hashes, once each.
    turns: Vec<i64>,
}

/// Divides groups by the dimension at `depth`. Each turn counts once in every row that has a call of it.
fn build_branch(
    by: &[Dimension],
    depth: usize,
    groups: Vec<(GroupKey, CallGroup)>,
    names: &KeyNames,
) -> Branch {
    let (mut sums, mut turns, mut rows) = (UsageSums::default(), Vec::new(), Vec::new());
    match by.get(depth) {
        None => {
            for (_, mut group) in groups {
                sums.add_sums(&group.sums);
                turns.append(&mut group.turns);
            }
        }
        Some(dimension) => {
            for ((_, name), part) in divide_groups(*dimension, depth, groups, names) {
                let mut inner = build_branch(by, depth + 1, part, names);
                sums.add_sums(&inner.sums);
                turns.append(&mut inner.turns);
                let Branch { sums, rows: inner_rows, .. } = inner;
                rows.push(UsageRow { dimension: *dimension, name, sums, rows: inner_rows });
            }
            sort_rows(*dimension, &mut rows);
        }
    }
    // There can be as many as calls.
    turns.sort_unstable();
    turns.dedup();
    sums.details.turns = turns.len() as u64;
    Branch { sums, rows, turns }
}

/// The place of a group in time, for dimensions that have one, and its name.
type RowKey = (i64, Option<String>);

fn divide_groups(
    dimension: Dimension,
    depth: usize,
    groups: Vec<(GroupKey, CallGroup)>,
    names: &KeyNames,
) -> BTreeMap<RowKey, Vec<(GroupKey, CallGroup)>> {
    let mut parts: BTreeMap<RowKey, Vec<(GroupKey, CallGroup)>> = BTreeMap::new();
    for (key, group) in groups {
        let part = key.get(depth).copied().unwrap_or(UNKNOWN);
        let place = if matches!(dimension, Dimension::Period(_)) { part } else { 0 };
        // Most parts of a dimension with many names have one group; room for more would be most of a report's memory.
        let of_name = parts.entry((place, names.key_name(dimension, part)));
        of_name.or_insert_with(|| Vec::with_capacity(1)).push((key, group));
    }
    parts
}

/// Puts the dearest first, unless rows follow one another in time; what is not known comes last.
fn sort_rows(dimension: Dimension, rows: &mut [UsageRow]) {
    if !matches!(dimension, Dimension::Period(_)) {
        // Rows of equal cost stay in the order of their names.
        gnoma_core::sort::by_key(rows, |row| {
            (row.name.is_none(), Reverse(row.sums.amount.micro_usd), Reverse(row.sums.tokens()))
        });
    }
}
