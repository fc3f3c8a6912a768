//! What can be chosen: arms, what they can do, and what was known about them beforehand. Plain data; where the
//! facts come from (configuration, catalogue, discovery) is not told here.

use std::{collections::BTreeMap, sync::Arc};

use gnoma_core::ModelRef;
use serde::{Deserialize, Serialize};

use crate::kind::TaskKind;

/// One model of one provider.
pub type ArmId = ModelRef;

/// A limit's name, such as `anthropic`.
pub type PoolId = Arc<str>;

/// Published facts that say something about a model nobody has tried here. All may be missing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ArmFacts {
    /// Dollars per million tokens written.
    pub output_price: Option<f64>,
    /// Day of release, in days since 1970-01-01.
    pub released: Option<i32>,
    /// `true` if the weights are open; `None` where that is not known.
    pub open_weights: Option<bool>,
}

/// The results that others measured: learning starts from them but does not end there.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prior {
    /// Share of tasks solved.
    pub quality: f64,
    /// Mean dollars per task.
    pub cost: f64,
    /// Tasks behind the two.
    pub tasks: f64,
}

/// An arm as it is made known to the router.
#[derive(Clone, Debug, PartialEq)]
pub struct Arm {
    /// The name of the arm.
    pub id: ArmId,
    /// The published facts about the model.
    pub facts: ArmFacts,
    /// The prior results by kind of task.
    pub priors: BTreeMap<TaskKind, Prior>,
    /// Results over all kinds.
    pub overall: Option<Prior>,
}

/// The capabilities of an arm. They are hard limits: a task that needs more never goes there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    /// True if the arm calls tools.
    pub tools: bool,
    /// True if the arm sees pictures.
    pub vision: bool,
    /// Thinks before it answers.
    pub thinking: bool,
    /// Answers in a given JSON schema.
    pub structured_output: bool,
    /// Window in tokens; `None` where nobody tells.
    pub context_window: Option<u64>,
    /// Runs on this machine: nothing leaves it.
    pub local: bool,
}

/// An arm that could be used now, and on which terms.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    /// The arm that is offered.
    pub arm: ArmId,
    /// The capabilities of the arm.
    pub capabilities: Capabilities,
    /// Limits it draws on.
    pub pools: Vec<PoolId>,
    /// Micro-dollars that this task is expected to cost here at most, by price and by what it seems to take; 0 where
    /// nothing is paid, `None` where no price is known.
    pub most_micro_usd: Option<u64>,
    /// Micro-dollars this task would save here and not elsewhere: a warm prompt cache.
    pub saved_micro_usd: u64,
    /// The weight of a dollar spent here, from 0 (not at all) to 1, as the person has set it.
    pub cost_weight: f64,
    /// Expected seconds to an answer; `None` where nothing was measured.
    pub seconds: Option<f64>,
    /// The factor by which a call is dearer for the rates it draws on, where little of them is free: 1 while there
    /// is plenty. See [`crowding`](crate::pool::crowding).
    pub crowding: f64,
    /// The reason why the arm may not be used, although it is configured: out of budget, resting after an error,
    /// forbidden by a rule.
    pub barred: Option<Arc<str>>,
}
