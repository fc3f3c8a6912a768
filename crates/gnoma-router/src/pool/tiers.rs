//! Plans and their limits: data with its source and date, in `tiers.json`. Which plan somebody has is
//! theirs to say.

use std::sync::LazyLock;

use gnoma_core::ledger::Unit;
use serde::Deserialize;

use super::rates::Rates;

static DATA: &str = include_str!("tiers.json");

static TIERS: LazyLock<Data> =
    LazyLock::new(|| gnoma_core::json::from_str(DATA).unwrap_or_default());

#[derive(Default, Deserialize)]
struct Data {
    date: String,
    vendors: Vec<Vendor>,
    tiers: Vec<Tier>,
}

/// A vendor and its way of counting.
#[derive(Deserialize)]
struct Vendor {
    vendor: String,
    /// Prompt tokens that its cache had count towards limits of tokens.
    counts_cached: bool,
}

/// A plan of a vendor.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Tier {
    /// The vendor of the plan.
    pub vendor: String,
    /// The name of the plan.
    pub tier: String,
    /// The source of the plan's limits.
    pub source: String,
    /// The limits that all models share that have none of their own.
    pub rates: Rates,
    /// Models that are counted apart.
    pub(super) parts: Vec<PlanTier>,
}

/// Models that a plan counts apart.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct PlanTier {
    /// A part of their names.
    pub(super) word: String,
    /// The limits of these models.
    pub(super) rates: Rates,
}

impl Tier {
    /// Returns when the limits were looked up: year and month.
    #[must_use]
    pub fn lookup_date(&self) -> &'static str {
        &TIERS.date
    }

    /// The part that counts `model` apart.
    pub(super) fn part_for_model(&self, model: &str) -> Option<&PlanTier> {
        self.parts.iter().find(|part| model.contains(&part.word))
    }
}

/// The plan of that name; `tier-1`, `tier_1` and `1` are the same.
#[must_use]
pub fn find_tier(vendor: &str, name: &str) -> Option<&'static Tier> {
    let name = name.trim().to_ascii_lowercase();
    let short = name.strip_prefix("tier").unwrap_or(&name).trim_start_matches(['-', '_', ' ']);
    TIERS.tiers.iter().find(|tier| tier.vendor == vendor && tier.tier == short)
}

/// Returns what a limit of tokens counts at that vendor. Where that is not known, the tokens that its cache had are
/// left out: rather let the vendor refuse a call than refuse one that it would take.
pub(super) fn counted_unit(unit: Unit, vendor: &str) -> Unit {
    let counts_cached =
        TIERS.vendors.iter().any(|known| known.vendor == vendor && known.counts_cached);
    match unit {
        Unit::Input if counts_cached => Unit::AllInput,
        Unit::Tokens if counts_cached => Unit::AllTokens,
        Unit::Requests
        | Unit::Input
        | Unit::Output
        | Unit::Tokens
        | Unit::AllInput
        | Unit::AllTokens
        | Unit::MicroUsd => unit,
    }
}

/// Names of a vendor's known plans.
pub fn tiers_of(vendor: &str) -> impl Iterator<Item = &'static str> {
    TIERS.tiers.iter().filter(move |tier| tier.vendor == vendor).map(|tier| tier.tier.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vendor_tier_table_parses_and_names_its_sources() {
        assert_eq!(TIERS.tiers.len(), 4);
        for tier in &TIERS.tiers {
            assert!(tier.source.starts_with("https://"), "{tier:?}");
            assert!(!tier.rates.limits().is_empty() && tier.lookup_date().starts_with("20"));
        }
        let data: serde_json::Value = serde_json::from_str(DATA).unwrap();
        for vendor in data["vendors"].as_array().unwrap() {
            assert!(vendor["source"].as_str().unwrap().starts_with("https://"), "{vendor}");
        }
        assert_eq!(find_tier("anthropic", "Tier-1"), find_tier("anthropic", "1"));
        assert_eq!(find_tier("anthropic", "9"), None);
    }

    #[test]
    fn cached_input_tokens_count_against_openai_rate_limits_only() {
        let both = |vendor| (counted_unit(Unit::Input, vendor), counted_unit(Unit::Tokens, vendor));
        assert_eq!(both("anthropic"), (Unit::Input, Unit::Tokens));
        assert_eq!(both("openai"), (Unit::AllInput, Unit::AllTokens));
        assert_eq!(both("nobody"), (Unit::Input, Unit::Tokens));
        assert_eq!(counted_unit(Unit::Output, "openai"), Unit::Output);
    }
}
