//! Computes what caches, routing, cheap elfs and checks saved or cost, at today's prices. Pure.

use std::collections::{BTreeMap, HashMap};

use gnoma_core::{
    ModelRef, Price,
    ledger::{Amount, CHECK_PART, WorkFact},
};
use gnoma_store::{CallRow, NameId};

use super::repriced::cost_at;

/// Most parts that are told apart; the work of calls in further ones is not.
const MAX_PARTS: usize = 10_000;

/// The arm, whether an elf made the call, and the text with the facts of its work.
type PartKey = (i64, bool, NameId);

/// The calls of a report, by the parts that savings depend on.
#[derive(Debug, Default)]
pub(super) struct SpendingParts(HashMap<PartKey, Amount>);

impl SpendingParts {
    pub(super) fn add_call(&mut self, call: &CallRow) {
        let key = (call.arm, call.elf.0 != 0, call.work);
        let is_beyond = self.0.len() >= MAX_PARTS && !self.0.contains_key(&key);
        let work = if is_beyond { NameId::default() } else { call.work };
        self.0.entry((key.0, key.1, work)).or_default().add(&call.amount);
    }

    /// Adds an amount of an arm of which nothing else is known.
    pub(super) fn add_unrecorded(&mut self, arm: i64, amount: &Amount) {
        self.0.entry((arm, false, NameId::default())).or_default().add(amount);
    }

    /// Returns the texts that [`Savings::new`] needs.
    pub(super) fn work_ids(&self) -> impl Iterator<Item = NameId> {
        self.0.keys().map(|(_, _, work)| *work).filter(|work| work.0 > 0)
    }
}

/// Micro-dollars that something saved, at least and at most; less than 0 if it cost more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SavedRange {
    /// The lower bound.
    pub least: i64,
    /// The upper bound.
    pub most: i64,
}

impl SavedRange {
    fn add(&mut self, other: Self) {
        self.least = self.least.saturating_add(other.least);
        self.most = self.most.saturating_add(other.most);
    }
}

/// What caches, routing and elfs saved, of calls of models whose price is known today, and what checks cost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Savings {
    /// Micro-dollars that the caches of providers saved; less than 0 if writing into them cost more.
    pub cache: i64,
    /// The dearest model that was used, if there were others: what routing saved is compared with it.
    pub dearest: Option<ModelRef>,
    /// What calls of other models saved. A range, because the dearest model's tokenizer may count a third more or fewer
    /// tokens, and nobody knows what its cache would have had.
    pub routing: SavedRange,
    /// The part of it that is due to elfs.
    pub elfs: SavedRange,
    /// Micro-dollars that reviews of work by models cost.
    pub checks: u64,
}

impl Savings {
    pub(super) fn new(
        parts: &SpendingParts,
        names: &BTreeMap<NameId, String>,
        arms: &BTreeMap<i64, ModelRef>,
        prices: &HashMap<ModelRef, Price>,
    ) -> Self {
        let priced = |arm: &i64| arms.get(arm).and_then(|name| prices.get_key_value(name));
        let mut savings = Self::default();
        let mut all = Amount::default();
        for ((arm, _, work), amount) in &parts.0 {
            let part = names.get(work).and_then(|lines| WorkFact::Part.find_in(lines));
            if part == Some(CHECK_PART) {
                savings.checks = savings.checks.saturating_add(amount.micro_usd);
            }
            if let Some((_, price)) = priced(arm) {
                let saved = difference(cost_at(price, amount, false), cost_at(price, amount, true));
                savings.cache = savings.cache.saturating_add(saved);
                all.add(amount);
            }
        }
        let used = parts.0.keys().filter_map(|(arm, ..)| priced(arm));
        let dearest =
            used.max_by_key(|(name, price)| (cost_at(price, &all, true), name.to_string()));
        let Some((dearest, dear)) = dearest else { return savings };
        for ((arm, is_elf, _), amount) in &parts.0 {
            let Some((name, price)) = priced(arm).filter(|(name, _)| *name != dearest) else {
                continue;
            };
            let saved = saved_range(amount, price, dear, name.model == dearest.model);
            savings.routing.add(saved);
            if *is_elf {
                savings.elfs.add(saved);
            }
            if saved != SavedRange::default() {
                savings.dearest = Some(dearest.clone());
            }
        }
        savings
    }
}

/// Returns what was saved by not asking a model with the price `dear`.
fn saved_range(amount: &Amount, price: &Price, dear: &Price, is_same_model: bool) -> SavedRange {
    let paid = cost_at(price, amount, true);
    let [cached, fresh] = [true, false].map(|has_cache| cost_at(dear, amount, has_cache));
    let (least, most) = (cached.min(fresh), cached.max(fresh));
    let (least, most) =
        if is_same_model { (least, most) } else { (least / 3 * 2, most.saturating_add(most / 3)) };
    SavedRange { least: difference(least, paid), most: difference(most, paid) }
}

fn difference(cost: u64, paid: u64) -> i64 {
    let signed = |amount: u64| i64::try_from(amount).unwrap_or(i64::MAX);
    signed(cost).saturating_sub(signed(paid))
}

#[cfg(test)]
mod tests {
    use gnoma_core::ledger::CallOrigin;

    use super::*;

    #[test]
    fn savings_are_ranges_where_tokenizers_differ() {
        let arm = |model: &str| ModelRef { provider: "p".into(), model: model.into() };
        let price =
            |input| Price { input, output: input, cache_read: input / 10, cache_write: input };
        let arms = BTreeMap::from([(1, arm("dear")), (2, arm("cheap")), (3, arm("unknown"))]);
        let prices =
            HashMap::from([(arm("dear"), price(10_000_000)), (arm("cheap"), price(1_000_000))]);
        let check = CallOrigin { part: CHECK_PART.to_owned(), ..CallOrigin::default() };
        let names = BTreeMap::from([(NameId(7), check.work_lines())]);
        let mut parts = SpendingParts::default();
        let amount = |input, cached, micro_usd| Amount {
            requests: 1,
            input,
            cached,
            micro_usd,
            ..Amount::default()
        };
        for (arm, elf, work, amount) in [
            (1, 0, 0, amount(1_000, 500, 5_500)),
            (2, 0, 0, amount(300, 0, 300)),
            (2, 9, 0, amount(600, 0, 600)),
            (2, 0, 7, amount(30, 0, 30)),
            (3, 0, 0, amount(90, 0, 0)),
        ] {
            let (elf, work) = (NameId(elf), NameId(work));
            parts.add_call(&CallRow { arm, elf, work, amount, ..CallRow::default() });
        }
        let savings = Savings::new(&parts, &names, &arms, &prices);
        assert_eq!((savings.cache, savings.checks), (4_500, 30));
        assert_eq!(savings.dearest, Some(arm("dear")));
        assert_eq!(savings.elfs, SavedRange { least: 4_000 - 600, most: 8_000 - 600 });
        assert_eq!(savings.routing, SavedRange { least: 6_200 - 930, most: 12_400 - 930 });
        assert_eq!(parts.work_ids().collect::<Vec<_>>(), [NameId(7)]);
        let nothing = Savings::new(&SpendingParts::default(), &names, &arms, &prices);
        assert_eq!(nothing, Savings::default());
    }
}
