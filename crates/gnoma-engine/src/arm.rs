//! A provider and a model that can be asked.

use std::{fmt, sync::Arc};

use gnoma_core::{Effort, ModelRef, Price, tool::Tier};
use gnoma_guard::firewall::{Connection, Firewall, GuardedProvider, ProviderFacts};
use gnoma_router::Capabilities;

use crate::context::{Counter, Wire};

/// Windows up to this many tokens get the lean tool set: a full one would fill a tenth of them.
pub const LEAN_WINDOW_TOKENS: u32 = 16_384;

/// One answer of a model with a small window takes at most this part of it.
const ANSWER_SHARE: u32 = 8;

/// Small models sample nonsense at the temperature that servers take by themselves (0.8 at llama.cpp and
/// Ollama); at 0 they fall into loops.
const LEAN_TEMPERATURE: f32 = 0.2;

/// A provider and a model that can be asked. Sessions share arms: each call goes through the firewall
/// of the session that makes it ([`with_firewall`](Self::with_firewall)), and nothing gives the provider itself.
#[derive(Clone)]
pub struct Arm {
    /// The connection, which gives nobody the provider itself.
    pub connection: Connection,
    /// Model id as the wire wants it.
    pub model: Arc<str>,
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
}

impl fmt::Debug for Arm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Arm").field(&self.name().to_string()).finish()
    }
}

impl Arm {
    /// An arm of which nothing is known: it is taken to be able to do everything.
    #[must_use]
    pub fn new(connection: Connection, model: impl Into<Arc<str>>) -> Self {
        let local = connection.provider_facts().local;
        Self {
            connection,
            model: model.into(),
            local,
            stays_here: local,
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
        }
    }

    /// Whom firewalls take its provider for.
    #[must_use]
    pub fn provider_facts(&self) -> &ProviderFacts {
        self.connection.provider_facts()
    }

    /// Returns the name of the arm in the form `provider/model`.
    #[must_use]
    pub fn name(&self) -> ModelRef {
        ModelRef { provider: self.provider_facts().name.clone(), model: self.model.to_string() }
    }

    /// Returns the counter that says how this arm counts tokens.
    #[must_use]
    pub fn token_counter(&self) -> Counter {
        Counter { wire: self.wire, name: self.name() }
    }

    /// The provider behind the firewall of the session that calls.
    #[must_use]
    pub fn with_firewall(&self, firewall: &Arc<Firewall>) -> GuardedProvider {
        self.connection.with_firewall(firewall)
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

    pub(crate) fn capabilities(&self) -> Capabilities {
        Capabilities {
            tools: self.tools,
            vision: self.vision,
            thinking: self.thinking,
            structured_output: self.structured_output,
            context_window: self.context_window.map(u64::from),
            local: self.stays_here,
        }
    }
}
