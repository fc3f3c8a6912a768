//! Sums of calls. Pure.

use gnoma_core::{Price, Usage, ledger::Amount};
use gnoma_store::{CallRow, NameId};

/// The sums of some calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsageSums {
    /// Calls, tokens and the known cost, as the ledger sums them up.
    pub amount: Amount,
    /// The part of `amount` that calls took whose price is not known. It has no money.
    pub unpriced: Amount,
    /// Calls of which the ledger has only a day's sum for each model.
    pub unrecorded_calls: u64,
    /// Milliseconds until the first part of the answer, summed over [`timed_calls`](Self::timed_calls).
    pub first_part_ms: u64,
    /// Calls whose time until the first part of the answer was measured.
    pub timed_calls: u64,
    /// The sums of what only recorded calls have.
    pub details: CallDetails,
}

/// Sums that only exist of calls that the ledger recorded one by one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallDetails {
    /// Turns of people that the calls belong to.
    pub turns: u64,
    /// Calls that ended with an error.
    pub failed_calls: u64,
    /// Output tokens that were thought.
    pub thinking: u64,
    /// Failed calls after which the turn's next call went to another model.
    pub failovers: u64,
    /// Calls whose gnoma was killed while they ran. What they took is estimated.
    pub estimated_calls: u64,
}

impl UsageSums {
    /// Returns the number of model calls.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.amount.requests
    }

    /// Returns the known cost in micro-dollars; `None` if no cost is known and the price of at least one call is not.
    #[must_use]
    pub fn cost(&self) -> Option<u64> {
        let micro_usd = self.amount.micro_usd;
        (self.unpriced_calls() == 0 || micro_usd > 0).then_some(micro_usd)
    }

    /// Returns the number of calls that took tokens and whose price is not known.
    #[must_use]
    pub fn unpriced_calls(&self) -> u64 {
        self.unpriced.requests
    }

    /// Returns the details; `None` if there are calls and none was recorded one by one.
    #[must_use]
    pub fn details(&self) -> Option<CallDetails> {
        let calls = self.calls();
        (calls == 0 || self.unrecorded_calls < calls).then_some(self.details)
    }

    /// Returns the mean time until the first part of an answer, in milliseconds.
    #[must_use]
    pub fn mean_first_part_ms(&self) -> Option<u64> {
        self.first_part_ms.checked_div(self.timed_calls)
    }

    /// Returns the number of prompt and output tokens.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.amount.input.saturating_add(self.amount.output)
    }

    /// Adds a recorded call, but for its turn.
    pub(super) fn add_call(&mut self, call: &CallRow) {
        let CallRow { amount, thinking, is_priced, failure, first_part_ms, .. } = call;
        let calls = |is_counted: bool| if is_counted { amount.requests } else { 0 };
        self.add_sums(&Self {
            amount: *amount,
            unpriced: if *is_priced { Amount::default() } else { *amount },
            unrecorded_calls: 0,
            first_part_ms: first_part_ms.unwrap_or(0),
            timed_calls: first_part_ms.is_some().into(),
            details: CallDetails {
                turns: 0,
                failed_calls: calls(failure.0 != 0),
                thinking: *thinking,
                failovers: 0,
                estimated_calls: calls(*failure == NameId::PROCESS_DIED),
            },
        });
    }

    /// Adds what a day's sum has beyond the recorded calls. `price`: the price of the model, if it is known today.
    pub(super) fn add_unrecorded(&mut self, rest: &Amount, price: Option<&Price>) {
        let is_priced = rest.micro_usd > 0 || is_free(rest, price);
        let unpriced = if is_priced { Amount::default() } else { *rest };
        let unrecorded_calls = rest.requests;
        self.add_sums(&Self { amount: *rest, unpriced, unrecorded_calls, ..Self::default() });
    }

    /// Adds the sums of other calls, but for their turns: two groups can share one.
    pub(super) fn add_sums(&mut self, other: &Self) {
        let Self {
            amount,
            unpriced,
            unrecorded_calls,
            first_part_ms,
            timed_calls,
            details: CallDetails { turns: _, failed_calls, thinking, failovers, estimated_calls },
        } = other;
        self.amount.add(amount);
        self.unpriced.add(unpriced);
        for (sum, value) in [
            (&mut self.unrecorded_calls, unrecorded_calls),
            (&mut self.first_part_ms, first_part_ms),
            (&mut self.timed_calls, timed_calls),
            (&mut self.details.failed_calls, failed_calls),
            (&mut self.details.thinking, thinking),
            (&mut self.details.failovers, failovers),
            (&mut self.details.estimated_calls, estimated_calls),
        ] {
            *sum = sum.saturating_add(*value);
        }
    }
}

/// Returns whether nothing is paid for an amount. A price that was not known when the calls were made left no cost in
/// the ledger, also where it is known today.
fn is_free(amount: &Amount, price: Option<&Price>) -> bool {
    let Amount { input, cached, output, cache_write, .. } = *amount;
    let usage = Usage {
        input: input.saturating_sub(cached).saturating_sub(cache_write),
        output,
        cache_read: cached,
        cache_write,
        ..Usage::default()
    };
    usage.total_tokens() == 0 || price.is_some_and(|price| price.cost_micro_usd(&usage) == 0)
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
    fn cost_is_unknown_if_a_price_is_missing_and_nothing_else_cost_anything() {
        let sums = |requests, unpriced_calls, micro_usd| UsageSums {
            amount: Amount { requests, micro_usd, ..Amount::default() },
            unpriced: Amount { requests: unpriced_calls, ..Amount::default() },
            ..UsageSums::default()
        };
        assert_eq!(sums(3, 3, 0).cost(), None);
        // The other two failed before they took anything.
        assert_eq!(sums(3, 1, 0).cost(), None);
        assert_eq!(sums(3, 1, 5).cost(), Some(5));
        assert_eq!(sums(3, 0, 0).cost(), Some(0));
        assert_eq!(sums(0, 0, 0).cost(), Some(0));
    }

    #[test]
    fn unrecorded_calls_without_cost_are_free_only_if_their_price_is_zero() {
        let unpriced = |rest: Amount, price: Option<Price>| {
            let mut sums = UsageSums::default();
            sums.add_unrecorded(&rest, price.as_ref());
            sums.unpriced_calls()
        };
        let rest = Amount { requests: 2, input: 9, output: 1, ..Amount::default() };
        assert_eq!(unpriced(rest, None), 2);
        let price = Price { input: 1, ..Price::default() };
        assert_eq!(unpriced(rest, Some(price)), 2, "it was not known when they were made");
        assert_eq!(unpriced(rest, Some(Price::default())), 0);
        assert_eq!(unpriced(Amount { micro_usd: 4, ..rest }, None), 0);
        assert_eq!(unpriced(Amount { requests: 2, ..Amount::default() }, None), 0);
    }

    #[test]
    fn details_are_unknown_if_no_call_was_recorded() {
        let sums = |requests, unrecorded_calls| UsageSums {
            amount: Amount { requests, ..Amount::default() },
            unrecorded_calls,
            ..UsageSums::default()
        };
        assert_eq!(sums(3, 3).details(), None);
        assert_eq!(sums(3, 2).details(), Some(CallDetails::default()));
        assert_eq!(sums(0, 0).details(), Some(CallDetails::default()));
    }

    #[test]
    fn usage_calls_exceeding_their_total_are_detected() {
        let amount = |micro_usd| Amount { requests: 1, micro_usd, ..Amount::default() };
        assert_eq!(
            subtract_amount(&amount(5), &amount(3)),
            (Amount { micro_usd: 2, ..Amount::default() }, false)
        );
        assert_eq!(subtract_amount(&amount(3), &amount(5)), (Amount::default(), true));
    }
}
