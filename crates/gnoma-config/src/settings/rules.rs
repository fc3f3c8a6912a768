//! The user's rules about arms. When a rule holds, and for which arms, is decided by the router.

use gnoma_router::rules::{Day, Hours, Rule, RuleConditions, RuleEffect};

use super::section::Section;
use crate::{
    condition::Share,
    finding::{Origin, Place},
    layer::MergedLayers,
};

/// The list of rules.
pub(crate) const RULES: &str = "router.rules";
/// A preference that is not weighed: at a worth of $10 it outweighs a dollar, or a tenth of the chance.
const PREFER_PERCENT: u32 = 10;

/// A rule for choosing an arm, and where it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct RoutingRule {
    /// The conditions under which the rule holds, and what it demands then. A rule without a name is called by its
    /// number among all.
    pub rule: Rule,
    /// The configuration layer that the rule comes from.
    pub origin: Origin,
    /// The place where the rule was written: its first field.
    pub place: Place,
}

/// All rules, the user's first.
pub(super) fn read_routing_rules(layers: &MergedLayers) -> Vec<RoutingRule> {
    let list = Section::from_key(layers, RULES);
    let rule = |index| {
        let rule = list.item_section(index);
        let first = layers.first_within(rule.path())?;
        Some((rule, first))
    };
    let all = (0..layers.list_length(RULES)).filter_map(rule);
    let numbered = (1..).zip(all).map(|(number, (rule, first))| {
        let name = rule.text("name").filter(|name| !name.is_empty());
        RoutingRule {
            rule: Rule {
                name: name.unwrap_or_else(|| format!("number {number}")),
                origin: first.place.to_string(),
                when: read_conditions(&rule),
                then: read_effects(&rule),
            },
            origin: first.origin,
            place: first.place.clone(),
        }
    });
    numbered.collect()
}

fn read_conditions(rule: &Section<'_>) -> RuleConditions {
    let complexity = rule.text("complexity").and_then(|text| Share::parse_range(&text));
    RuleConditions {
        tasks: rule.texts("task"),
        paths: rule.texts("path"),
        hours: read_hours(rule),
        min_complexity: complexity.map(|Share { from, .. }| from),
        max_complexity: complexity.map(|Share { to, .. }| to),
    }
}

/// Days without hours are whole days.
fn read_hours(rule: &Section<'_>) -> Option<Hours> {
    let days: Vec<Day> =
        rule.texts("days").iter().filter_map(|name| Day::from_name(name)).collect();
    match rule.text("hours").and_then(|text| Hours::parse_range(&text)) {
        Some(hours) => Some(Hours { days, ..hours }),
        None if days.is_empty() => None,
        None => Some(Hours { from: 0, to: 0, days }),
    }
}

fn read_effects(rule: &Section<'_>) -> Vec<RuleEffect> {
    let mut then: Vec<RuleEffect> = rule.text("pin").map(RuleEffect::Pin).into_iter().collect();
    let (forbid, prefer) = (rule.texts("forbid"), rule.texts("prefer"));
    if !forbid.is_empty() {
        then.push(RuleEffect::Forbid(forbid));
    }
    if !prefer.is_empty() {
        let percent = rule.count("prefer_by").unwrap_or(PREFER_PERCENT);
        then.push(RuleEffect::Prefer { arms: prefer, percent });
    }
    then.extend(rule.micro_usd("max_cost").map(RuleEffect::MaxCostMicroUsd));
    then.extend(rule.count("max_seconds").map(RuleEffect::MaxSeconds));
    then
}
