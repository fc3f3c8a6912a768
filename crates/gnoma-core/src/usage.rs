//! Token counts.

use std::ops::{AddAssign, SubAssign};

use serde::{Deserialize, Serialize};

/// Tokens of one model call, or a sum of such.
///
/// The parts do not overlap, whatever the provider reports: adapters subtract. The full prompt is
/// [`prompt`](Self::prompt).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Usage {
    /// Prompt tokens that were neither read from nor written to a cache.
    pub input: u64,
    /// Tokens the model wrote, reasoning included.
    pub output: u64,
    /// Prompt tokens served from the provider's cache.
    pub cache_read: u64,
    /// Prompt tokens written to the provider's cache.
    pub cache_write: u64,
    /// The share of `output` spent on reasoning, where the provider tells.
    pub reasoning: u64,
}

impl Usage {
    /// All prompt tokens of the call.
    #[must_use]
    pub fn prompt_tokens(&self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_write)
    }

    /// Prompt and answer together: what the call occupies of the context window.
    #[must_use]
    pub fn total_tokens(&self) -> u64 {
        self.prompt_tokens().saturating_add(self.output)
    }
}

/// What servers report may be absurd: a sum stays at the largest count.
impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
    }
}

/// A part that is larger than the sum, as absurd counts may be, leaves nothing.
impl SubAssign for Usage {
    fn sub_assign(&mut self, other: Self) {
        self.input = self.input.saturating_sub(other.input);
        self.output = self.output.saturating_sub(other.output);
        self.cache_read = self.cache_read.saturating_sub(other.cache_read);
        self.cache_write = self.cache_write.saturating_sub(other.cache_write);
        self.reasoning = self.reasoning.saturating_sub(other.reasoning);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_usage_sum_saturates_at_the_maximum() {
        let most = u64::MAX;
        let absurd = Usage {
            input: most,
            output: most,
            cache_read: most,
            cache_write: most,
            reasoning: most,
        };
        let mut sum = absurd;
        sum += absurd;
        assert_eq!(sum, absurd);
        assert_eq!(sum.total_tokens(), most);
    }
}
