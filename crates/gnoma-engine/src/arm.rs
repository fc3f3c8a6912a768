//! Which model answers, and with which tools.
//!
//! [`choose`] is the one place that decides. It knows one arm today; the router takes it over.

use std::{fmt, sync::Arc};

use gnoma_core::{Effort, ModelRef, Provider as _, tool::Tier};
use gnoma_guard::firewall::Guarded;

/// Windows up to this many tokens get the lean tool set: a full one would fill a tenth of them.
pub const LEAN_WINDOW_TOKENS: u32 = 16_384;

/// One answer of a model with a small window takes at most this part of it.
const ANSWER_SHARE: u32 = 8;

/// A provider and a model that can be asked.
#[derive(Clone)]
pub struct Arm {
    /// The connection. There is none that goes around the firewall.
    pub provider: Guarded,
    /// Model id as the wire wants it.
    pub model: Arc<str>,
    /// It runs on the user's machine.
    pub local: bool,
    /// It gets the lean tools whatever its window.
    pub lean: bool,
    /// Window in tokens, where it is known.
    pub context_window: Option<u32>,
    /// Most tokens per answer; `None` leaves it to the adapter.
    pub max_output_tokens: Option<u32>,
    /// Sampling temperature; `None` leaves it to the provider.
    pub temperature: Option<f32>,
    /// How hard it should think; `None` leaves it to the provider.
    pub effort: Option<Effort>,
}

impl fmt::Debug for Arm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Arm").field(&self.name().to_string()).finish()
    }
}

impl Arm {
    /// `provider/model`.
    #[must_use]
    pub fn name(&self) -> ModelRef {
        ModelRef { provider: self.provider.name().to_owned(), model: self.model.to_string() }
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

    /// The tools it is offered: models with a small window on the user's machine get fewer.
    #[must_use]
    pub fn tier(&self) -> Tier {
        let small = self.context_window.is_some_and(|window| window <= LEAN_WINDOW_TOKENS);
        if self.lean || (self.local && small) { Tier::Lean } else { Tier::Full }
    }
}

/// The arm for the next call, and why in one line.
#[must_use]
pub fn choose(arms: &[Arm]) -> Option<(&Arm, &'static str)> {
    arms.first().map(|arm| (arm, "the configured model"))
}
