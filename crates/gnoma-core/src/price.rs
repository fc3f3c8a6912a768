//! What tokens cost, in whole micro-dollars.

use serde::{Deserialize, Serialize};

use crate::usage::Usage;

/// Tokens a price is per.
const PER_TOKENS: u128 = 1_000_000;

/// Writes a sum of micro-dollars for people, to a hundredth of a cent: `$0.0042`.
#[must_use]
pub fn format_usd(micro_usd: u64) -> String {
    format!("${}.{:04}", micro_usd / 1_000_000, micro_usd % 1_000_000 / 100)
}

/// The price of a model, in micro-dollars per million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Price {
    /// Prompt tokens that no cache knows.
    pub input: u64,
    /// Written tokens, reasoning included.
    pub output: u64,
    /// Prompt tokens read from the provider's cache.
    pub cache_read: u64,
    /// Prompt tokens written to it.
    pub cache_write: u64,
}

impl Price {
    /// Returns the cost of these tokens in micro-dollars; a begun micro-dollar counts as a whole one.
    #[must_use]
    pub fn cost_micro_usd(&self, usage: &Usage) -> u64 {
        let parts = [
            (usage.input, self.input),
            (usage.output, self.output),
            (usage.cache_read, self.cache_read),
            (usage.cache_write, self.cache_write),
        ];
        let sum: u128 = parts
            .into_iter()
            .map(|(tokens, price)| u128::from(tokens) * u128::from(price))
            .fold(0, u128::saturating_add);
        u64::try_from(sum.div_ceil(PER_TOKENS)).unwrap_or(u64::MAX)
    }

    /// True if no token costs anything.
    #[must_use]
    pub fn is_free(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_cost_follows_the_price_list_and_rounds_up() {
        let price = Price {
            input: 3_000_000,
            output: 15_000_000,
            cache_read: 300_000,
            cache_write: 3_750_000,
        };
        let usage = Usage {
            input: 1_000,
            output: 200,
            cache_read: 10_000,
            cache_write: 100,
            reasoning: 50,
        };
        assert_eq!(price.cost_micro_usd(&usage), 3_000 + 3_000 + 3_000 + 375);
        assert_eq!(
            price.cost_micro_usd(&Usage { cache_read: 1, ..Usage::default() }),
            1,
            "a begun micro-dollar"
        );
        let absurd = Usage { input: u64::MAX, output: u64::MAX, ..Usage::default() };
        assert_eq!(
            Price { input: u64::MAX, output: u64::MAX, ..price }.cost_micro_usd(&absurd),
            u64::MAX
        );
        assert!(Price::default().is_free() && Price::default().cost_micro_usd(&absurd) == 0);
    }
}
