//! The arm: one model of one provider, what it can do, what it costs, and what was known about it beforehand. Plain
//! data; where the facts come from (configuration, catalogue, discovery) and how it is called is not told here.

use std::{collections::BTreeMap, sync::Arc};

use gnoma_core::{Effort, ModelRef, Price, tool::Tier};
use serde::{Deserialize, Serialize};

use crate::kind::TaskKind;

/// One model of one provider.
pub type ArmId = ModelRef;

/// A limit's name, such as `anthropic`.
pub type PoolId = Arc<str>;

/// Windows up to this many tokens get the lean tool set: a full one would fill a tenth of them.
pub const LEAN_WINDOW_TOKENS: u32 = 16_384;

/// One answer of a model with a small window takes at most this part of it.
const ANSWER_SHARE: u32 = 8;

/// Small models sample nonsense at the temperature that servers take by themselves (0.8 at llama.cpp and
/// Ollama); at 0 they fall into loops.
const LEAN_TEMPERATURE: f32 = 0.2;

/// The protocol by which a model is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Wire {
    /// The Messages protocol of Anthropic.
    Anthropic,
    /// Chat Completions, by whomever.
    #[default]
    Chat,
    /// OpenAI's Responses, by whomever.
    Responses,
    /// The Generate Content protocol of Google.
    Google,
    /// The Chat Completions of Mistral.
    Mistral,
    /// The chat protocol of Ollama itself.
    Ollama,
    /// The Agent Client Protocol: the agent receives only what is new, and keeps the rest itself.
    Agent,
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

/// Published facts that say something about a model nobody has tried here. All may be missing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Published {
    /// Dollars per million tokens written.
    pub output_price: Option<f64>,
    /// Day of release, in days since 1970-01-01.
    pub released: Option<i32>,
    /// `true` if the weights are open; `None` where that is not known.
    pub open_weights: Option<bool>,
    /// The prior results by kind of task.
    pub by_kind: BTreeMap<TaskKind, Prior>,
    /// Results over all kinds.
    pub overall: Option<Prior>,
}

/// A model of a provider that tasks can go to. Its abilities are hard limits: a task that needs more never goes there.
#[derive(Clone, Debug, PartialEq)]
pub struct Arm {
    /// The provider, and the model's id as the wire wants it.
    pub id: ArmId,
    /// True if the model runs on the user's machine.
    pub local: bool,
    /// Calls to it stay on this machine, so it can be used when nothing may leave.
    pub stays_here: bool,
    /// True if the arm counts as a small model, which gets the lean tools; `None` if its context window decides.
    pub lean: Option<bool>,
    /// Context window in tokens, if known.
    pub context_window: Option<u32>,
    /// Most tokens per answer; `None` leaves it to the adapter.
    pub max_output_tokens: Option<u32>,
    /// Sampling temperature; `None` leaves it to the provider.
    pub temperature: Option<f32>,
    /// The reasoning effort that the arm is asked for; `None` leaves it to the provider.
    pub effort: Option<Effort>,
    /// True if the arm calls tools. Without tools it answers only what needs none.
    pub tools: bool,
    /// True if the arm accepts pictures.
    pub vision: bool,
    /// True if the arm thinks before it answers.
    pub thinking: bool,
    /// Thinking cannot be turned off.
    pub always_thinks: bool,
    /// True if the arm can answer in a given JSON schema.
    pub structured_output: bool,
    /// The price of the arm, if known.
    pub price: Option<Price>,
    /// The weight of the price when arms are compared, from 0 to 1; the amount that is paid stays the same.
    pub cost_weight: f64,
    /// The sets of rate limits its calls draw on beside its provider's.
    pub pools: Arc<[String]>,
    /// The host it is reached at: arms of one host are ill together.
    pub host: Arc<str>,
    /// The source of the key that pays for its calls, such as the name of a variable; empty if it is not known.
    pub account: Arc<str>,
    /// The protocol by which the arm is asked, which also says how it counts tokens.
    pub wire: Wire,
    /// True if the arm is used only when a person chooses it by name.
    pub only_chosen: bool,
    /// What others published of the model.
    pub published: Arc<Published>,
}

impl Arm {
    /// An arm of which nothing is known: it is taken to be able to do everything.
    #[must_use]
    pub fn new(id: ArmId) -> Self {
        Self {
            id,
            local: false,
            stays_here: false,
            lean: None,
            context_window: None,
            max_output_tokens: None,
            temperature: None,
            effort: None,
            tools: true,
            vision: true,
            thinking: true,
            always_thinks: false,
            structured_output: true,
            price: None,
            cost_weight: 1.0,
            pools: Arc::default(),
            host: Arc::default(),
            account: Arc::default(),
            wire: Wire::default(),
            only_chosen: false,
            published: Arc::default(),
        }
    }

    /// Most tokens of an answer: a small window must not be given away to a single one.
    #[must_use]
    pub fn answer_limit(&self) -> Option<u32> {
        let share = self.context_window.map(|window| window / ANSWER_SHARE);
        match (self.tier(), self.max_output_tokens, share) {
            (Tier::Lean, Some(most), Some(share)) => Some(most.min(share)),
            (Tier::Lean, None, share) => share,
            (Tier::Lean | Tier::Full, most, _) => most,
        }
    }

    /// The sampling temperature it is asked with; `None` leaves it to the provider.
    #[must_use]
    pub fn sampling_temperature(&self) -> Option<f32> {
        self.temperature.or((self.tier() == Tier::Lean).then_some(LEAN_TEMPERATURE))
    }

    /// The tools it is offered: models with a small window on the user's machine get fewer.
    #[must_use]
    pub fn tier(&self) -> Tier {
        let small = self.context_window.is_some_and(|window| window <= LEAN_WINDOW_TOKENS);
        if self.lean.unwrap_or(self.local && small) { Tier::Lean } else { Tier::Full }
    }
}

/// An arm that could be used now, and on which terms.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    /// The arm that is offered.
    pub arm: Arc<Arm>,
    /// Limits it draws on.
    pub pools: Vec<PoolId>,
    /// Micro-dollars that this task is expected to cost here at most, by price and by what it seems to take; 0 where
    /// nothing is paid, `None` where no price is known.
    pub most_micro_usd: Option<u64>,
    /// Micro-dollars this task would save here and not elsewhere: a warm prompt cache.
    pub saved_micro_usd: u64,
    /// Expected seconds to an answer; `None` where nothing was measured.
    pub seconds: Option<f64>,
    /// The factor by which a call is dearer for the rates it draws on, where little of them is free: 1 while there
    /// is plenty. See [`crowding`](crate::pool::crowding).
    pub crowding: f64,
    /// The reason why the arm may not be used, although it is configured: out of budget, resting after an error,
    /// forbidden by a rule.
    pub barred: Option<Arc<str>>,
}

impl Offer {
    /// An offer of the arm on which nothing bears: no limits, no prices, no obstacle.
    #[must_use]
    pub fn new(arm: Arc<Arm>) -> Self {
        Self {
            arm,
            pools: Vec::new(),
            most_micro_usd: None,
            saved_micro_usd: 0,
            seconds: None,
            crowding: 1.0,
            barred: None,
        }
    }
}
