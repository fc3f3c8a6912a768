//! What a call is expected to take before it is made, and what it took.

use gnoma_core::{Price, Usage, ledger::Amount};

/// A call before it is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expectation {
    /// Prompt tokens, cached ones included.
    pub prompt_tokens: u64,
    /// The number of prompt tokens that the provider's cache has.
    pub cached_tokens: u64,
    /// The number of output tokens that answers of this kind usually have.
    pub typical_output_tokens: u64,
    /// The most that may be written.
    pub max_output_tokens: Option<u64>,
}

/// Returns what a call is expected to take.
#[must_use]
pub fn expected_amount(call: &Expectation, price: &Price) -> Amount {
    let cached = call.cached_tokens.min(call.prompt_tokens);
    let most = call.max_output_tokens.unwrap_or(u64::MAX);
    let usage = Usage {
        input: call.prompt_tokens - cached,
        cache_read: cached,
        output: call.typical_output_tokens.min(most),
        ..Usage::default()
    };
    used_amount(&usage, price)
}

/// The shortest answer worth a call, in tokens.
const LEAST_ANSWER: u64 = 256;

/// The call with the shortest answer that is worth it.
#[must_use]
pub fn shortest_call(call: &Amount, price: &Price) -> Amount {
    with_answer(call, price, call.output.min(LEAST_ANSWER))
}

/// The call with as long an answer as so much money lasts for; `None` where that is shorter than is worth it, or no
/// shorter than it was expected.
#[must_use]
pub fn shorten_call(call: &Amount, price: &Price, micro_usd: u64) -> Option<Amount> {
    let prompt = with_answer(call, price, 0).micro_usd;
    let left = u128::from(micro_usd.checked_sub(prompt)?);
    let tokens = left.saturating_mul(1_000_000).checked_div(u128::from(price.output))?;
    let tokens = u64::try_from(tokens).unwrap_or(u64::MAX);
    (LEAST_ANSWER..call.output).contains(&tokens).then(|| with_answer(call, price, tokens))
}

fn with_answer(call: &Amount, price: &Price, output: u64) -> Amount {
    let answer = |output| price.cost_micro_usd(&Usage { output, ..Usage::default() });
    let prompt = call.micro_usd.saturating_sub(answer(call.output));
    Amount { output, micro_usd: prompt.saturating_add(answer(output)), ..*call }
}

/// Returns what a call took.
#[must_use]
pub fn used_amount(usage: &Usage, price: &Price) -> Amount {
    Amount {
        requests: 1,
        input: usage.prompt_tokens(),
        cached: usage.cache_read,
        output: usage.output,
        micro_usd: price.cost_micro_usd(usage),
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
        fn shortened_answer_fits_the_remaining_budget(
            prompt in 0..200_000_u64, typical in 0..4_000_u64, money in 0..1_000_000_u64,
            price in any::<[u16; 2]>(),
        ) {
            let price = Price {
                input: u64::from(price[0]) * 1_000,
                output: u64::from(price[1]) * 1_000,
                ..Price::default()
            };
            let call = Expectation {
                prompt_tokens: prompt,
                typical_output_tokens: typical,
                ..Expectation::default()
            };
            let call = expected_amount(&call, &price);
            let least = shortest_call(&call, &price);
            prop_assert!(least.micro_usd <= call.micro_usd && least.output <= LEAST_ANSWER);
            // A begun micro-dollar counts as whole, for the prompt and for the answer.
            match shorten_call(&call, &price, money) {
                Some(shorter) => {
                    prop_assert!(shorter.micro_usd <= money + 1, "{shorter:?}");
                    prop_assert!((LEAST_ANSWER..call.output).contains(&shorter.output));
                }
                None => prop_assert!(
                    price.output == 0 || call.output <= LEAST_ANSWER
                        || least.micro_usd + 1 >= money || call.micro_usd <= money + 1
                ),
            }
        }

        #[test]
        fn expected_call_cost_never_falls_with_more_tokens(
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
            let amount = expected_amount(&call, &price);
            prop_assert_eq!((amount.requests, amount.input), (1, prompt));
            prop_assert_eq!(amount.in_unit(Unit::Input), prompt.saturating_sub(cached));
            let cold = expected_amount(&Expectation { cached_tokens: 0, ..call }, &price);
            prop_assert!(cold.micro_usd >= amount.micro_usd);
            let typical_output_tokens = typical.saturating_add(more);
            let longer = expected_amount(&Expectation { typical_output_tokens, ..call }, &price);
            prop_assert!(longer.micro_usd >= amount.micro_usd);
            let bounded = expected_amount(&Expectation { max_output_tokens: Some(more), ..call }, &price);
            prop_assert!(bounded.output <= more && bounded.micro_usd <= amount.micro_usd);
        }
    }
}
