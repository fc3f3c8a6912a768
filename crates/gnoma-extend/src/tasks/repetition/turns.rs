//! The turns of a history that can be occurrences of a chore, and which of them resemble each other.

use std::collections::{HashMap, HashSet};

use super::{
    history::{ExistingRecipe, PastSession},
    steps::{SAME_STEP, StepId, StepKind, Steps},
    word_tokens::WordToken,
};

/// Fewest steps of a chore: a single command is typed as fast as the name of a task.
pub(super) const MIN_STEPS: usize = 2;
/// Similarity of turns from which they can be the same chore.
pub(super) const SAME_CHORE: f32 = 0.5;
/// Turns that share a key above which the key says nothing.
const MAX_TURNS_OF_KEY: usize = 400;
/// Most turns that are compared with one turn.
const MAX_CANDIDATES: usize = 400;

/// A command is common if more turns have it than this, ...
const COMMON_TURNS: usize = 60;
/// ... and more than one in so many.
const COMMON_SHARE: usize = 40;

/// A turn, by its place in the history.
#[derive(Clone, Debug)]
pub(super) struct HistoryTurn {
    /// The index of its session.
    pub(super) session: usize,
    /// The index in the turns of that session.
    pub(super) at: usize,
    pub(super) steps: Vec<StepId>,
    pub(super) ended_well: bool,
}

/// The turns of a history that have steps.
pub(super) struct Turns {
    pub(super) all: Vec<HistoryTurn>,
    pub(super) steps: Steps,
    by_key: HashMap<(StepKind, WordToken, WordToken), Vec<u32>>,
    /// The number of turns that have a command with these first two words.
    by_head: HashMap<Vec<WordToken>, usize>,
}

impl Turns {
    /// Reads the turns of a history. What was done by a recipe needs no other one.
    pub(super) fn of_history(history: &[PastSession], existing: &[ExistingRecipe]) -> Self {
        let mut steps = Steps::default();
        let mut all = Vec::new();
        let mut by_key: HashMap<_, Vec<u32>> = HashMap::new();
        let mut by_head: HashMap<Vec<WordToken>, usize> = HashMap::new();
        for (session, past) in history.iter().enumerate() {
            for (at, turn) in past.turns.iter().enumerate() {
                let ids = steps.of_calls(&turn.calls);
                if ids.is_empty() || existing.iter().any(|it| it.was_run_by(&turn.message)) {
                    continue;
                }
                let number = u32::try_from(all.len()).unwrap_or(u32::MAX);
                let heads: HashSet<&[WordToken]> =
                    ids.iter().filter_map(|id| steps.get(*id)?.command_head()).collect();
                for head in heads {
                    match by_head.get_mut(head) {
                        Some(count) => *count += 1,
                        None => drop(by_head.insert(head.to_vec(), 1)),
                    }
                }
                for id in &ids {
                    for key in steps.similarity_keys(*id) {
                        let turns = by_key.entry(key).or_default();
                        if turns.last() != Some(&number) {
                            turns.push(number);
                        }
                    }
                }
                all.push(HistoryTurn { session, at, steps: ids, ended_well: turn.ended_well });
            }
        }
        Self { all, steps, by_key, by_head }
    }

    /// Returns whether a turn can be more than everyday work: one of its commands is not common, or it changes several
    /// files. In short histories nothing is common.
    pub(super) fn can_be_chore(&self, turn: &HistoryTurn) -> bool {
        let common = COMMON_TURNS.max(self.all.len() / COMMON_SHARE);
        let count = |head| self.by_head.get(head).copied().unwrap_or(0);
        let mut files = 0;
        for step in turn.steps.iter().filter_map(|id| self.steps.get(*id)) {
            match step.command_head() {
                Some(head) if count(head) <= common => return true,
                Some(_) => {}
                None => files += 1,
            }
        }
        files >= 2
    }

    /// Returns the turns that resemble a turn, the most similar first.
    pub(super) fn similar_to(&self, number: usize) -> Vec<(usize, f32)> {
        let Some(turn) = self.all.get(number) else { return Vec::new() };
        let mut shared: HashMap<u32, f32> = HashMap::new();
        for id in &turn.steps {
            for key in self.steps.similarity_keys(*id) {
                let Some(turns) = self.by_key.get(&key) else { continue };
                if turns.len() > MAX_TURNS_OF_KEY {
                    continue;
                }
                let weight = 1.0 / turns.len() as f32;
                for other in turns {
                    *shared.entry(*other).or_default() += weight;
                }
            }
        }
        let mut candidates: Vec<(u32, f32)> =
            shared.into_iter().filter(|(other, _)| *other as usize != number).collect();
        gnoma_core::sort::sort_by(&mut candidates, |a, b| b.1.total_cmp(&a.1).then(b.0.cmp(&a.0)));
        candidates.truncate(MAX_CANDIDATES);
        let mut similar: Vec<(usize, f32)> = candidates
            .into_iter()
            .filter_map(|(other, _)| {
                let other = other as usize;
                let similarity = self.similarity(number, other);
                (similarity >= SAME_CHORE).then_some((other, similarity))
            })
            .collect();
        // Of equals, the newest first.
        gnoma_core::sort::sort_by(&mut similar, |a, b| b.1.total_cmp(&a.1).then(b.0.cmp(&a.0)));
        similar
    }

    /// Returns how similar the steps of two turns are, from 0 to 1. Their order does not matter.
    pub(super) fn similarity(&self, one: usize, other: usize) -> f32 {
        let (Some(one), Some(other)) = (self.all.get(one), self.all.get(other)) else { return 0.0 };
        let total = one.steps.len() + other.steps.len();
        let same: f32 = self.pair_steps(&one.steps, &other.steps).iter().map(|pair| pair.2).sum();
        if total == 0 { 0.0 } else { 2.0 * same / total as f32 }
    }

    /// Pairs the steps of two turns, the most similar first: index, index, similarity.
    pub(super) fn pair_steps(&self, one: &[StepId], other: &[StepId]) -> Vec<(usize, usize, f32)> {
        let mut pairs = Vec::new();
        for (i, a) in one.iter().enumerate() {
            for (j, b) in other.iter().enumerate() {
                let similarity = self.steps.similarity(*a, *b);
                if similarity >= SAME_STEP {
                    pairs.push((i, j, similarity));
                }
            }
        }
        gnoma_core::sort::sort_by(&mut pairs, |a, b| {
            b.2.total_cmp(&a.2)
                .then((a.0.abs_diff(a.1)).cmp(&b.0.abs_diff(b.1)))
                .then(a.0.cmp(&b.0))
        });
        let (mut used_one, mut used_other) = (0_u64, 0_u64);
        pairs.retain(|(i, j, _)| {
            let (a, b) = (1_u64 << (i % 64), 1_u64 << (j % 64));
            let is_free = used_one & a == 0 && used_other & b == 0;
            if is_free {
                used_one |= a;
                used_other |= b;
            }
            is_free
        });
        pairs
    }

    /// Returns the turns that may have a step like this one.
    pub(super) fn with_steps_like(&self, id: StepId) -> Vec<u32> {
        let mut turns: Vec<u32> = self
            .steps
            .similarity_keys(id)
            .iter()
            .filter_map(|key| self.by_key.get(key))
            .flatten()
            .copied()
            .collect();
        gnoma_core::sort::sort_items(&mut turns);
        turns.dedup();
        turns
    }
}
