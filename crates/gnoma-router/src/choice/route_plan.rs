//! The plan of a turn: its arms, their order, and what each of them used and achieved. Pure.

use std::{collections::HashMap, sync::Arc};

use gnoma_core::ModelRef;

use super::{arm_contributions::ArmContributions, settings::Strategy, turn_task::Task};
use crate::{
    arm::Arm,
    rules::Bounds,
    task::{Attempt, AttemptResult, TaskOutcome},
};

const MICRO: f64 = 1e6;

/// The way in which several arms answer together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollaborationMode {
    /// A judge picks one answer.
    Ensemble,
    /// One writes an answer out of all.
    Synthesis,
}

/// The arms behind the chosen answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PanelAuthors {
    /// The arms that answered.
    pub members: Vec<ModelRef>,
    /// The arm that judged or wrote, if any did.
    pub chair: Option<ModelRef>,
    /// The author of the chosen answer.
    pub author: ModelRef,
    /// They are made of several answers.
    pub is_merged: bool,
}

/// A turn under way.
#[derive(Debug)]
pub struct RoutePlan {
    /// The subject of the turn.
    pub task: Task,
    /// The seed for choices between equal arms.
    pub seed: u64,
    /// The strategy by which the arms are used; never [`Strategy::Auto`].
    pub strategy: Strategy,
    /// The arm that is asked.
    pub arm: Arc<Arm>,
    /// The other arms that answer at the same time.
    pub beside: Vec<Arc<Arm>>,
    /// The reason why this arm was chosen.
    pub why: String,
    /// Attempts that are over.
    pub attempts: Vec<Attempt>,
    /// Micro-dollars of the attempt under way.
    pub attempt_micro_usd: u64,
    /// Micro-dollars of the turn.
    pub turn_micro_usd: u64,
    /// Micro-dollars of the turn by arm.
    pub spent: HashMap<ModelRef, u64>,
    /// Arms that failed in this turn, and how.
    pub given_up: Vec<(ModelRef, Arc<str>)>,
    /// The share of each arm in the current attempt.
    pub parts: ArmContributions,
    /// The arm only looks yet: the ways to go are compared before anything is changed.
    pub is_looking: bool,
    /// An attempt is under way.
    pub is_open: bool,
    /// The number of times that an arm which failed was replaced.
    pub moves: u32,
    /// The arm was asked for by name.
    pub is_pinned: bool,
    /// The bounds that the user's rules set for the task.
    pub bounds: Bounds,
    /// The part of each attempt that was its arm's own.
    pub weights: Vec<f64>,
}

/// The reasons why no arm can be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoArm {
    /// That the user's rules leave none, and which they are.
    pub dead_end: Option<String>,
    /// A line for each arm that there is.
    pub reasons: Vec<String>,
}

impl RoutePlan {
    /// A plan of which nothing is done yet, without bounds and with an arm that was not asked for by name.
    pub(super) fn new(
        task: Task,
        seed: u64,
        strategy: Strategy,
        arm: Arc<Arm>,
        beside: Vec<Arc<Arm>>,
        why: String,
    ) -> Self {
        Self {
            task,
            seed,
            strategy,
            arm,
            beside,
            why,
            attempts: Vec::new(),
            attempt_micro_usd: 0,
            turn_micro_usd: 0,
            spent: HashMap::new(),
            given_up: Vec::new(),
            parts: ArmContributions::default(),
            is_looking: false,
            is_open: true,
            moves: 0,
            is_pinned: false,
            bounds: Bounds::default(),
            weights: Vec::new(),
        }
    }

    /// Returns the outcome of the task, for learning. `right` is the verdict of a person or of a check that cannot
    /// err.
    #[must_use]
    pub fn to_outcome(&self, right: Option<bool>) -> TaskOutcome {
        let last = self.attempts.len().saturating_sub(1);
        let tried = self.attempts.iter().zip(&self.weights).enumerate();
        let tried = tried.map(|(at, (attempt, weight))| AttemptResult {
            attempt: attempt.clone(),
            right: right.filter(|_| at == last),
            weight: *weight,
        });
        TaskOutcome { kind: self.task.kind(), tried: tried.collect() }
    }

    /// The attempt under way is over: it is the arm's that ended it, for its part.
    pub fn close_attempt(&mut self, verdict: Option<bool>) {
        let cost_micro_usd = std::mem::take(&mut self.attempt_micro_usd);
        let arm = self.arm.id.clone();
        self.is_open = false;
        self.weights.push(std::mem::take(&mut self.parts).share_of(&arm));
        self.attempts.push(Attempt { arm, verdict, cost_micro_usd });
    }

    /// A call of the arm cost so much. What an arm that was given up took is nobody's attempt.
    pub fn add_cost(&mut self, arm: &ModelRef, micro_usd: u64) {
        self.turn_micro_usd = self.turn_micro_usd.saturating_add(micro_usd);
        let sum = self.spent.entry(arm.clone()).or_insert(0);
        *sum = sum.saturating_add(micro_usd);
        if !self.given_up.iter().any(|(given_up, _)| given_up == arm) {
            self.attempt_micro_usd = self.attempt_micro_usd.saturating_add(micro_usd);
        }
    }

    /// Another arm continues the attempt. Checks that ran earlier say nothing about its part.
    pub fn move_to(&mut self, arm: Arc<Arm>, why: String) {
        self.attempt_micro_usd = 0;
        self.moves += 1;
        self.beside.clear();
        self.is_looking = false;
        if self.panel_mode().is_some() {
            self.strategy = Strategy::Single;
        }
        self.arm = arm;
        self.why = why;
    }

    /// One of several answers was chosen.
    pub fn record_panel(&mut self, conferred: &PanelAuthors, author: Option<Arc<Arm>>) {
        for member in conferred.members.iter().chain(&conferred.chair) {
            self.parts.credit_arm(member);
        }
        if !conferred.is_merged {
            // The judge's word is no part of the answer, and the others' are thrown away.
            self.parts.keep_only(&conferred.author);
        }
        // Who merged the ways need not be who can go one.
        if let Some(author) = author.filter(|_| !(self.is_looking && conferred.is_merged)) {
            self.arm = author;
        }
        self.is_looking = false;
    }

    /// Another attempt begins, on top of what is there.
    pub fn begin_again(&mut self, arm: Arc<Arm>, why: String) {
        self.is_open = true;
        self.arm = arm;
        self.why = why;
    }

    /// Returns the reason why the task may cost no more by the user's rules; `None` if it may go on.
    #[must_use]
    pub fn is_beyond(&self) -> Option<String> {
        // Who costs nothing continues.
        let is_free = self.arm.price.is_some_and(|price| price.is_free());
        let is_passed = |most: &u64| !is_free && self.turn_micro_usd > *most;
        let most = self.bounds.max_cost_micro_usd.filter(is_passed)?;
        let (most, spent) = (most as f64 / MICRO, self.turn_micro_usd as f64 / MICRO);
        let text = format!("this turn has cost ${spent:.2}, and a rule limits it to ${most:.2}");
        Some(format!("{text}; change `max_cost` in `router.rules`"))
    }

    /// Reports whether the work is checked before the turn ends.
    #[must_use]
    pub fn is_checked(&self) -> bool {
        self.strategy == Strategy::Cascade
    }

    /// Returns how several arms work together, if several do.
    #[must_use]
    pub fn panel_mode(&self) -> Option<CollaborationMode> {
        match self.strategy {
            Strategy::Ensemble => Some(CollaborationMode::Ensemble),
            Strategy::Synthesis => Some(CollaborationMode::Synthesis),
            Strategy::Auto | Strategy::Single | Strategy::Cascade => None,
        }
    }
}
