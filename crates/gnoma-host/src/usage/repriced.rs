//! Computes what the calls of a report would have cost on another model. Pure.

use gnoma_core::{ModelRef, Price, Usage, ledger::Amount};

use super::sums::{UsageSums, subtract_amount};

/// The cost of calls at the price of another model, in micro-dollars. It is of the calls whose own price is known, so
/// that both costs are of the same calls; of all calls if no price is known.
///
/// Nobody knows how much that model's cache would have had: the cost is one with the cache hits that there were, and one
/// without any. Tokens are those that were counted; the other model's tokenizer would count others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepricedUsage {
    /// The other model, at its provider.
    pub arm: ModelRef,
    /// The lower cost of the two.
    pub least: u64,
    /// The higher cost of the two.
    pub most: u64,
    /// Calls that are left out, because their own price is not known.
    pub left_out_calls: u64,
    /// All tokens were counted by the same model, so that its tokenizer counts the same.
    pub is_same_model: bool,
}

impl RepricedUsage {
    pub(super) fn new<'a>(
        arm: ModelRef,
        price: &Price,
        sums: &UsageSums,
        used: impl IntoIterator<Item = &'a ModelRef>,
    ) -> Self {
        let left_out = if sums.cost().is_some() { sums.unpriced } else { Amount::default() };
        let (compared, _) = subtract_amount(&sums.amount, &left_out);
        let with_cache = cost_at(price, &compared, true);
        let without_cache = cost_at(price, &compared, false);
        Self {
            least: with_cache.min(without_cache),
            most: with_cache.max(without_cache),
            left_out_calls: left_out.requests,
            is_same_model: used.into_iter().all(|used| used.model == arm.model),
            arm,
        }
    }
}

/// Returns the cost of an amount at a price, with the cache hits and writes that there were, or without a cache.
pub(super) fn cost_at(price: &Price, amount: &Amount, has_cache: bool) -> u64 {
    let Amount { input, cached, cache_write, output, .. } = *amount;
    let (cache_read, cache_write) = if has_cache { (cached, cache_write) } else { (0, 0) };
    let input = input.saturating_sub(cache_read).saturating_sub(cache_write);
    price.cost_micro_usd(&Usage { input, output, cache_read, cache_write, ..Usage::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repriced_usage_is_a_range_if_cache_use_is_unknown() {
        let arm = |model: &str| ModelRef { provider: "p".into(), model: model.into() };
        let amount = Amount {
            requests: 2,
            input: 1_000_000,
            cached: 600_000,
            cache_write: 100_000,
            output: 10_000,
            ..Amount::default()
        };
        let price = Price {
            input: 1_000_000,
            output: 5_000_000,
            cache_read: 100_000,
            cache_write: 1_250_000,
        };
        let used = [arm("a"), arm("b")];
        let sums = UsageSums { amount, ..UsageSums::default() };
        let repriced = RepricedUsage::new(arm("a"), &price, &sums, &used);
        let with_cache = 300_000 + 60_000 + 125_000 + 50_000;
        assert_eq!((repriced.least, repriced.most), (with_cache, 1_050_000));
        assert!(!repriced.is_same_model);
        let free = RepricedUsage::new(arm("a"), &Price::default(), &sums, &used[..1]);
        assert_eq!((free.least, free.most, free.is_same_model), (0, 0, true));
    }

    #[test]
    fn repriced_and_actual_cost_cover_the_same_calls() {
        let arm = || ModelRef { provider: "p".into(), model: "m".into() };
        let price = Price { input: 2_000_000, output: 10_000_000, ..Price::default() };
        let amount = |requests, micro_usd| Amount {
            requests,
            input: 100 * requests,
            output: 10 * requests,
            micro_usd,
            ..Amount::default()
        };
        let unpriced = amount(3, 0);
        let sums = UsageSums { amount: amount(4, 300), unpriced, ..UsageSums::default() };
        let repriced = RepricedUsage::new(arm(), &price, &sums, &[]);
        assert_eq!((repriced.least, repriced.most, repriced.left_out_calls), (300, 300, 3));
        let unknown = UsageSums { amount: unpriced, unpriced, ..UsageSums::default() };
        let repriced = RepricedUsage::new(arm(), &price, &unknown, &[]);
        assert_eq!((repriced.most, repriced.left_out_calls), (900, 0));
    }
}
