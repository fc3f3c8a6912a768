//! Who is known and what is believed of them: the registry of arms and kinds, and the estimates of a pair.

use std::{collections::HashMap, mem, sync::Arc};

use crate::{
    arm::{Arm, ArmId, Published},
    drift::DriftWatch,
    effects::{Belief, Effects},
    starting_point::{self, StartingPoint},
    state::SavedArm,
    task::TaskKind,
    tuning::Tuning,
    verifier::Verifier,
};

/// Arms known at most; of those beyond, nothing is learnt.
pub const MOST_ARMS: usize = 512;
/// Kinds told apart at most; of those beyond, outcomes teach about the arm only.
pub const MOST_KINDS: usize = 64;

/// An arm the router knows.
#[derive(Clone, Debug)]
pub(crate) struct KnownArm {
    pub(crate) id: ArmId,
    /// What others published of it.
    published: Arc<Published>,
    pub(crate) watch: DriftWatch,
    /// The watch noticed that the work got worse, and nobody took that yet.
    pub(crate) got_worse: bool,
    /// Tasks seen, by kind.
    pub(crate) tasks: Vec<u32>,
    general: StartingPoint,
    starts: Vec<StartingPoint>,
}

/// The beliefs about a pair of an arm and a kind, as they are now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Estimate {
    /// Probit of the chance to get a task of middling difficulty right.
    pub(crate) ability: Belief,
    /// The part of its variance that says nothing about other arms.
    pub(crate) own_variance: f64,
    /// Mean dollars per task.
    pub(crate) cost: f64,
    /// Variance of its log that says nothing about other arms.
    pub(crate) own_cost_variance: f64,
}

/// Everything learnt, and what it started from.
#[derive(Clone, Debug)]
pub(crate) struct Beliefs {
    pub(crate) tuning: Tuning,
    pub(crate) arms: Vec<KnownArm>,
    pub(crate) kinds: Vec<TaskKind>,
    pub(crate) ability: Effects,
    pub(crate) cost: Effects,
    pub(crate) verifier: Verifier,
    /// Learnt of arms that nobody has made known yet.
    pub(crate) waiting: Vec<SavedArm>,
    arm_index: HashMap<ArmId, usize>,
    kind_index: HashMap<TaskKind, usize>,
}

impl Beliefs {
    pub(crate) fn new(tuning: Tuning) -> Self {
        Self {
            verifier: Verifier::new(&tuning),
            tuning,
            arms: Vec::new(),
            kinds: Vec::new(),
            ability: Effects::default(),
            cost: Effects::default(),
            waiting: Vec::new(),
            arm_index: HashMap::new(),
            kind_index: HashMap::new(),
        }
    }

    pub(crate) fn index_of_arm(&self, id: &ArmId) -> Option<usize> {
        self.arm_index.get(id).copied()
    }

    /// The index of an arm, with `place` looked at first: arms are mostly asked for in the order they became known.
    pub(crate) fn arm_near(&self, id: &ArmId, place: usize) -> Option<usize> {
        let is_it = self.arms.get(place).is_some_and(|known| known.id == *id);
        if is_it { Some(place) } else { self.index_of_arm(id) }
    }

    /// The index of a kind. A step of which nothing is known counts as the kind of its prompt.
    pub(crate) fn index_of_kind(&self, kind: &TaskKind) -> Option<usize> {
        self.own_index_of_kind(kind).or_else(|| self.own_index_of_kind(&kind.parent()?))
    }

    pub(crate) fn own_index_of_kind(&self, kind: &TaskKind) -> Option<usize> {
        self.kind_index.get(kind).copied()
    }

    /// The index of the kind that a step starts from.
    fn index_of_parent(&self, kind: &TaskKind) -> Option<usize> {
        self.own_index_of_kind(&kind.parent()?)
    }

    /// Makes arms known, or their facts and priors anew; what was learnt stays.
    pub(crate) fn register_arms(&mut self, arms: &[Arc<Arm>]) {
        let mut restored = Vec::new();
        for arm in arms {
            for kind in arm.published.by_kind.keys() {
                self.add_kind(kind);
            }
            if let Some(index) = self.index_of_arm(&arm.id) {
                if let Some(known) = self.arms.get_mut(index) {
                    known.published = Arc::clone(&arm.published);
                }
            } else if self.arms.len() < MOST_ARMS {
                if let Some(place) = self.waiting.iter().position(|saved| saved.arm == arm.id) {
                    restored.push((self.arms.len(), self.waiting.swap_remove(place)));
                }
                self.add_arm(arm);
            }
        }
        self.recompute_starts();
        for (index, saved) in restored {
            self.put_back(index, &saved);
        }
    }

    fn add_arm(&mut self, arm: &Arm) {
        self.arm_index.insert(arm.id.clone(), self.arms.len());
        self.arms.push(KnownArm {
            id: arm.id.clone(),
            published: Arc::clone(&arm.published),
            watch: DriftWatch::default(),
            got_worse: false,
            tasks: Vec::new(),
            general: StartingPoint::default(),
            starts: Vec::new(),
        });
    }

    pub(crate) fn add_kind(&mut self, kind: &TaskKind) -> Option<usize> {
        if let Some(index) = self.own_index_of_kind(kind) {
            return Some(index);
        }
        if let Some(parent) = kind.parent() {
            self.add_kind(&parent);
        }
        if self.kinds.len() >= MOST_KINDS {
            return self.index_of_kind(kind);
        }
        self.kind_index.insert(kind.clone(), self.kinds.len());
        self.kinds.push(kind.clone());
        Some(self.kinds.len() - 1)
    }

    /// The indices of a pair an outcome is about, made known if need be.
    pub(crate) fn ensure_indices(
        &mut self,
        arm: &ArmId,
        kind: &TaskKind,
    ) -> (Option<usize>, Option<usize>) {
        let known = (self.index_of_arm(arm), self.own_index_of_kind(kind));
        if known.0.is_some() && known.1.is_some() {
            return known;
        }
        let kind = self.add_kind(kind);
        if known.0.is_none() {
            self.register_arms(&[Arc::new(Arm::new(arm.clone()))]);
        } else {
            self.recompute_starts();
        }
        (self.index_of_arm(arm), kind)
    }

    fn newest_release(&self) -> Option<i32> {
        self.arms.iter().filter_map(|known| known.published.released).max()
    }

    /// Recomputes where every pair starts, and adds beliefs for what is new.
    pub(crate) fn recompute_starts(&mut self) {
        let (newest, tuning) = (self.newest_release(), self.tuning);
        for known in &mut self.arms {
            known.general = starting_point::general_start(&known.published, newest, &tuning);
        }
        let kinds: Vec<KindStart> = self
            .kinds
            .iter()
            .map(|kind| {
                let parent = self.index_of_parent(kind);
                let measured = parent.and_then(|at| self.kinds.get(at)).unwrap_or(kind).clone();
                let arms = self.arms.iter().map(|known| (&*known.published, known.general));
                let (offset, warm) = starting_point::of_kind(&measured, arms);
                KindStart { measured, parent, offset, warm }
            })
            .collect();
        for kind in kinds.iter().skip(self.ability.kinds.len()) {
            let doubt = if kind.warm {
                (tuning.warm, tuning.cost_warm)
            } else {
                (tuning.cold, tuning.cost_cold)
            };
            for (all, doubt) in
                [(&mut self.ability.kinds, doubt.0.kind), (&mut self.cost.kinds, doubt.1.kind)]
            {
                let start = start_of_step(all, kind.parent, doubt);
                all.push(start.unwrap_or(Belief::with_zero_mean(doubt)));
            }
        }
        for index in 0..self.arms.len() {
            self.refresh_arm(index, &kinds);
        }
    }

    fn refresh_arm(&mut self, index: usize, kinds: &[KindStart]) {
        let tuning = self.tuning;
        let Some(known) = self.arms.get_mut(index) else {
            return;
        };
        if self.ability.arms.len() == index {
            let warm = known.published.overall.is_some() || !known.published.by_kind.is_empty();
            let doubt = if warm {
                (tuning.warm, tuning.cost_warm)
            } else {
                (tuning.cold, tuning.cost_cold)
            };
            self.ability.arms.push(Belief::with_zero_mean(doubt.0.arm));
            self.cost.arms.push(Belief::with_zero_mean(doubt.1.arm));
            self.ability.pairs.push(Vec::new());
            self.cost.pairs.push(Vec::new());
        }
        let (Some(abilities), Some(costs)) =
            (self.ability.pairs.get_mut(index), self.cost.pairs.get_mut(index))
        else {
            return;
        };
        known.tasks.resize(kinds.len(), 0);
        let mut starts = mem::take(&mut known.starts);
        starts.clear();
        for (position, kind) in kinds.iter().enumerate() {
            let guess = known.general.sum_with(kind.offset);
            let (start, ability, cost) = starting_point::of_pair(
                known.published.by_kind.get(&kind.measured),
                guess,
                &tuning,
            );
            starts.push(start);
            if abilities.len() == position {
                let doubt = (tuning.cold.pair, tuning.cost_cold.pair);
                abilities.push(start_of_step(abilities, kind.parent, doubt.0).unwrap_or(ability));
                costs.push(start_of_step(costs, kind.parent, doubt.1).unwrap_or(cost));
            }
        }
        known.starts = starts;
    }

    /// Returns what is believed of a pair. Both may be unknown: then it is what newcomers without any facts start
    /// from.
    pub(crate) fn estimate(&self, arm: Option<usize>, kind: Option<usize>) -> Estimate {
        let tuning = &self.tuning;
        let known = arm.and_then(|arm| self.arms.get(arm));
        let start = match known {
            None => {
                starting_point::from_facts(&Published::default(), self.newest_release(), tuning)
            }
            Some(known) => {
                kind.and_then(|kind| known.starts.get(kind)).copied().unwrap_or(known.general)
            }
        };
        let index = arm.unwrap_or(usize::MAX);
        let own = self.ability.unshared_belief(index, kind, tuning.cold);
        let ability = own.sum_with(self.ability.of_kind(kind, tuning.cold));
        let own_cost = self.cost.unshared_belief(index, kind, tuning.cost_cold);
        let cost = own_cost.sum_with(self.cost.of_kind(kind, tuning.cost_cold));
        Estimate {
            ability: Belief { mean: start.ability + ability.mean, variance: ability.variance },
            own_variance: own.variance,
            cost: (start.log_cost + cost.mean).exp(),
            own_cost_variance: own_cost.variance,
        }
    }

    pub(crate) fn put_back(&mut self, index: usize, saved: &SavedArm) {
        let set = |place: Option<&mut Belief>, belief: Belief| {
            if let Some(place) = place.filter(|_| belief.is_sound()) {
                *place = belief;
            }
        };
        set(self.ability.arms.get_mut(index), saved.ability);
        set(self.cost.arms.get_mut(index), saved.cost);
        for (kind, pair) in &saved.kinds {
            let Some(kind) = self.own_index_of_kind(kind) else { continue };
            set(self.ability.pairs.get_mut(index).and_then(|row| row.get_mut(kind)), pair.ability);
            set(self.cost.pairs.get_mut(index).and_then(|row| row.get_mut(kind)), pair.cost);
            if let Some(tasks) =
                self.arms.get_mut(index).and_then(|known| known.tasks.get_mut(kind))
            {
                *tasks = pair.tasks;
            }
        }
        for (at, kind) in self.kinds.iter().enumerate() {
            let parent = self.index_of_parent(kind).filter(|_| !saved.kinds.contains_key(kind));
            for (pairs, doubt) in [
                (&mut self.ability.pairs, self.tuning.cold.pair),
                (&mut self.cost.pairs, self.tuning.cost_cold.pair),
            ] {
                let Some(row) = pairs.get_mut(index) else { continue };
                if let Some(start) = start_of_step(row, parent, doubt)
                    && let Some(place) = row.get_mut(at)
                {
                    *place = start;
                }
            }
        }
        if let Some(known) = self.arms.get_mut(index) {
            known.watch = saved.watch;
        }
    }
}

/// Where the pairs of a kind start.
struct KindStart {
    /// The kind whose published measurements count: of a step, that of its prompt.
    measured: TaskKind,
    /// The index of the kind that a step starts from.
    parent: Option<usize>,
    offset: StartingPoint,
    /// An arm has published measurements of it.
    warm: bool,
}

/// Returns what is believed of a step before anything is learnt of it: what is believed of its parent, with at least
/// this doubt. `None` for what is no step.
fn start_of_step(beliefs: &[Belief], parent: Option<usize>, doubt: f64) -> Option<Belief> {
    let known = beliefs.get(parent?)?;
    Some(Belief { mean: known.mean, variance: known.variance.max(doubt) })
}
