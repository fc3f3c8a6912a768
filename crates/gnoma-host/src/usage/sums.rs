//! Sums of calls. Pure.

use gnoma_core::ledger::Amount;
use gnoma_store::CallRow;

/// The sums of some calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsageSums {
    /// Turns of people that the calls belong to; only of calls that the ledger recorded one by one.
    pub turns: u64,
    /// Model calls.
    pub calls: u64,
    /// Calls that ended with an error; only of calls that the ledger recorded one by one.
    pub failed_calls: u64,
    /// Calls that took tokens and whose price is not known. Their cost is not in [`micro_usd`](Self::micro_usd).
    pub unpriced_calls: u64,
    /// Calls of which the ledger has only a day's sum for each model.
    pub unrecorded_calls: u64,
    /// Prompt tokens, those from and into a cache included.
    pub input: u64,
    /// Prompt tokens that the provider's cache had.
    pub cached: u64,
    /// Prompt tokens that were written to the provider's cache.
    pub cache_write: u64,
    /// Output tokens that were thought; only of calls that the ledger recorded one by one.
    pub thinking: u64,
    /// Output tokens, thinking included.
    pub output: u64,
    /// The known cost, in micro-dollars.
    pub micro_usd: u64,
    /// Milliseconds until the first part of the answer, summed over [`timed_calls`](Self::timed_calls).
    pub first_part_ms: u64,
    /// Calls whose time until the first part of the answer was measured.
    pub timed_calls: u64,
}

impl UsageSums {
    /// The cost in micro-dollars; `None` if no call's price is known.
    #[must_use]
    pub fn cost(&self) -> Option<u64> {
        (self.unpriced_calls < self.calls || self.calls == 0 || self.micro_usd > 0)
            .then_some(self.micro_usd)
    }

    /// The mean time until the first part of an answer, in milliseconds.
    #[must_use]
    pub fn mean_first_part_ms(&self) -> Option<u64> {
        self.first_part_ms.checked_div(self.timed_calls)
    }

    /// Prompt and output tokens.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// Adds a recorded call, but for its turn.
    pub(super) fn add_call(&mut self, call: &CallRow) {
        let CallRow { amount, thinking, is_priced, failure, first_part_ms, .. } = call;
        self.add_ledger_amount(amount);
        let calls = amount.requests;
        self.thinking = self.thinking.saturating_add(*thinking);
        if failure.0 != 0 {
            self.failed_calls = self.failed_calls.saturating_add(calls);
        }
        if !is_priced {
            self.unpriced_calls = self.unpriced_calls.saturating_add(calls);
        }
        if let Some(ms) = first_part_ms {
            self.first_part_ms = self.first_part_ms.saturating_add(*ms);
            self.timed_calls = self.timed_calls.saturating_add(1);
        }
    }

    /// Adds what a day's sum has beyond the recorded calls.
    pub(super) fn add_unrecorded(&mut self, rest: &Amount, is_priced: bool) {
        self.add_ledger_amount(rest);
        self.unrecorded_calls = self.unrecorded_calls.saturating_add(rest.requests);
        let has_tokens = rest.input > 0 || rest.output > 0;
        if !is_priced && rest.micro_usd == 0 && has_tokens {
            self.unpriced_calls = self.unpriced_calls.saturating_add(rest.requests);
        }
    }

    fn add_ledger_amount(&mut self, amount: &Amount) {
        let Amount { requests, input, cached, output, micro_usd, cache_write } = amount;
        for (sum, value) in [
            (&mut self.calls, requests),
            (&mut self.input, input),
            (&mut self.cached, cached),
            (&mut self.cache_write, cache_write),
            (&mut self.output, output),
            (&mut self.micro_usd, micro_usd),
        ] {
            *sum = sum.saturating_add(*value);
        }
    }

    /// Adds the sums of other calls, but for their turns: two groups can share one.
    pub(super) fn add_sums(&mut self, other: &Self) {
        let Self {
            turns: _,
            calls,
            failed_calls,
            unpriced_calls,
            unrecorded_calls,
            input,
            cached,
            cache_write,
            thinking,
            output,
            micro_usd,
            first_part_ms,
            timed_calls,
        } = other;
        for (sum, value) in [
            (&mut self.calls, calls),
            (&mut self.failed_calls, failed_calls),
            (&mut self.unpriced_calls, unpriced_calls),
            (&mut self.unrecorded_calls, unrecorded_calls),
            (&mut self.input, input),
            (&mut self.cached, cached),
            (&mut self.cache_write, cache_write),
            (&mut self.thinking, thinking),
            (&mut self.output, output),
            (&mut self.micro_usd, micro_usd),
            (&mut self.first_part_ms, first_part_ms),
            (&mut self.timed_calls, timed_calls),
        ] {
            *sum = sum.saturating_add(*value);
        }
    }
}

/// Subtracts what calls explain from a day's sum. The second value says whether they explain more than there is.
pub(super) fn subtract_amount(total: &Amount, explained: &Amount) -> (Amount, bool) {
    let mut is_exceeded = false;
    let mut rest = |total: u64, explained: u64| {
        is_exceeded |= explained > total;
        total.saturating_sub(explained)
    };
    let rest = Amount {
        requests: rest(total.requests, explained.requests),
        input: rest(total.input, explained.input),
        cached: rest(total.cached, explained.cached),
        output: rest(total.output, explained.output),
        micro_usd: rest(total.micro_usd, explained.micro_usd),
        cache_write: rest(total.cache_write, explained.cache_write),
    };
    (rest, is_exceeded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cost_is_unknown_only_if_no_price_is_known() {
        let sums = |calls, unpriced_calls, micro_usd| UsageSums {
            calls,
            unpriced_calls,
            micro_usd,
            ..UsageSums::default()
        };
        assert_eq!(sums(3, 3, 0).cost(), None);
        assert_eq!(sums(3, 1, 0).cost(), Some(0));
        assert_eq!(sums(3, 3, 5).cost(), Some(5));
        assert_eq!(sums(0, 0, 0).cost(), Some(0));
    }

    #[test]
    fn calls_that_explain_more_than_a_sum_are_noticed() {
        let amount = |micro_usd| Amount { requests: 1, micro_usd, ..Amount::default() };
        assert_eq!(
            subtract_amount(&amount(5), &amount(3)),
            (Amount { micro_usd: 2, ..Amount::default() }, false)
        );
        assert_eq!(subtract_amount(&amount(3), &amount(5)), (Amount::default(), true));
    }
}
