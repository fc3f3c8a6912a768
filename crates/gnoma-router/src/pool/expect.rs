//! What a call is expected to take before it is made, and what it took.

use gnoma_core::{Price, Usage, ledger::Amount};

/// A call before it is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expectation {
    /// Prompt tokens, cached ones included.
    pub prompt_tokens: u64,
    /// How many of them the provider's cache has.
    pub cached_tokens: u64,
    /// What answers of this kind usually have.
    pub typical_output_tokens: u64,
    /// The most that may be written.
    pub max_output_tokens: Option<u64>,
}

/// What a call is expected to take.
#[must_use]
pub fn expected(call: &Expectation, price: &Price) -> Amount {
    let cached = call.cached_tokens.min(call.prompt_tokens);
    let most = call.max_output_tokens.unwrap_or(u64::MAX);
    let usage = Usage {
        input: call.prompt_tokens - cached,
        cache_read: cached,
        output: call.typical_output_tokens.min(most),
        ..Usage::default()
    };
    taken(&usage, price)
}

/// What a call took.
#[must_use]
pub fn taken(usage: &Usage, price: &Price) -> Amount {
    Amount {
        requests: 1,
        input: usage.prompt(),
        cached: usage.cache_read,
        output: usage.output,
        micro_usd: price.of(usage),
        cache_write: usage.cache_write,
    }
}

#[cfg(test)]
mod tests {
    use gnoma_core::ledger::Unit;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn more_of_anything_never_costs_less(
            prompt: u64, cached: u64, typical: u64, more: u64, price in any::<[u32; 3]>(),
        ) {
            let price = Price {
                input: price[0].into(),
                output: price[1].into(),
                cache_read: u64::from(price[2]).min(price[0].into()),
                cache_write: 0,
            };
            let call = Expectation {
                prompt_tokens: prompt,
                cached_tokens: cached,
                typical_output_tokens: typical,
                ..Expectation::default()
            };
            let amount = expected(&call, &price);
            prop_assert_eq!((amount.requests, amount.input), (1, prompt));
            prop_assert_eq!(amount.of(Unit::Input), prompt.saturating_sub(cached));
            let cold = expected(&Expectation { cached_tokens: 0, ..call }, &price);
            prop_assert!(cold.micro_usd >= amount.micro_usd);
            let typical_output_tokens = typical.saturating_add(more);
            let longer = expected(&Expectation { typical_output_tokens, ..call }, &price);
            prop_assert!(longer.micro_usd >= amount.micro_usd);
            let bounded = expected(&Expectation { max_output_tokens: Some(more), ..call }, &price);
            prop_assert!(bounded.output <= more && bounded.micro_usd <= amount.micro_usd);
        }
    }
}
