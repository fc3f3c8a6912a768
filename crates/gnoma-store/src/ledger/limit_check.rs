//! Checks a call against its caps and rate limits. Pure.

use gnoma_core::ledger::{Amount, Level};

/// Reports whether `level` has room for `amount`. A call that takes nothing of what is counted always fits, even
/// where the limit is passed already.
pub(super) fn has_room(level: &Level, amount: &Amount) -> bool {
    let need = amount.in_unit(level.limit.unit);
    need == 0 || used_and_held(level).saturating_add(need) <= level.limit.most
}

/// Returns the sum of what is used and held.
pub(super) fn used_and_held(level: &Level) -> u64 {
    level.used.saturating_add(level.held)
}

/// The levels that have no room for `amount`; none: it is admitted.
pub(super) fn levels_without_room<'l>(
    levels: &'l [Level],
    amount: &'l Amount,
) -> impl Iterator<Item = &'l Level> {
    levels.iter().filter(move |level| !has_room(level, amount))
}

#[cfg(test)]
mod tests {
    use gnoma_core::ledger::{Limit, Unit, Window};
    use proptest::prelude::*;

    use super::*;

    fn level(used: u64, held: u64, most: u64) -> Level {
        Level {
            pool: "p".into(),
            limit: Limit { unit: Unit::MicroUsd, window: Window::Ever, most },
            used,
            held,
            resets_at_ms: None,
        }
    }

    proptest! {
        #[test]
        fn ledger_admits_only_amounts_within_the_limit(used: u64, held: u64, most: u64, need: u64) {
            let amount = Amount { micro_usd: need, ..Amount::default() };
            let level = level(used, held, most);
            if has_room(&level, &amount) && need > 0 {
                let all = u128::from(used) + u128::from(held) + u128::from(need);
                prop_assert!(all <= u128::from(most) || most == u64::MAX);
            }
            prop_assert!(has_room(&level, &Amount::default()));
        }

        #[test]
        fn ledger_admits_smaller_amounts_if_it_admits_a_larger_one(used: u64, held: u64, most: u64, need: u64, less: u64) {
            let amount = |micro_usd| Amount { micro_usd, ..Amount::default() };
            let level = level(used, held, most);
            if has_room(&level, &amount(need)) {
                prop_assert!(has_room(&level, &amount(less.min(need))));
            }
        }
    }
}
