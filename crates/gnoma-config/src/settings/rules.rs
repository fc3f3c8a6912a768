//! The user's rules about arms. When a rule holds, and for which arms, is decided by the router.

use super::section::Section;
use crate::{
    condition::{Hours, Share, Weekday},
    finding::{Origin, Place},
    layer::MergedLayers,
};

/// The list of rules.
pub(crate) const RULES: &str = "router.rules";
/// A preference that is not weighed: at a worth of $10 it outweighs a dollar, or a tenth of the chance.
const PREFER_PERCENT: u32 = 10;

/// A rule for choosing an arm: the conditions under which it holds, and what it demands then. A condition that is
/// not given always holds.
#[derive(Clone, Debug, PartialEq)]
pub struct RoutingRule {
    /// Name in messages; empty for none.
    pub name: String,
    /// Types of tasks; empty for all.
    pub task: Vec<String>,
    /// Globs of files, one of which is concerned; empty for all.
    pub path: Vec<String>,
    /// Hours of the day, local time.
    pub hours: Option<Hours>,
    /// Days of the week on which those hours begin, local time; empty for all.
    pub days: Vec<Weekday>,
    /// The range of the task's estimated difficulty, in percent.
    pub complexity: Option<Share>,
    /// Glob of the only arms.
    pub pin: Option<String>,
    /// Globs of arms, such as `openai/*`, that are not asked.
    pub forbid: Vec<String>,
    /// Globs of arms that are rather asked.
    pub prefer: Vec<String>,
    /// By how many percent of a task's worth they may be the worse choice.
    pub prefer_percent: u32,
    /// Most that the task is expected to cost.
    pub max_cost_micro_usd: Option<u64>,
    /// Most seconds that an answer is expected to take.
    pub max_seconds: Option<u32>,
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
        Some(RoutingRule::from_section(&rule, first.origin, first.place.clone()))
    };
    (0..layers.list_length(RULES)).filter_map(rule).collect()
}

impl RoutingRule {
    fn from_section(rule: &Section<'_>, origin: Origin, place: Place) -> Self {
        Self {
            name: rule.text("name").unwrap_or_default(),
            task: rule.texts("task"),
            path: rule.texts("path"),
            hours: rule.text("hours").and_then(|text| Hours::parse_range(&text)),
            days: rule.texts("days").iter().filter_map(|name| Weekday::from_name(name)).collect(),
            complexity: rule.text("complexity").and_then(|text| Share::parse_range(&text)),
            pin: rule.text("pin"),
            forbid: rule.texts("forbid"),
            prefer: rule.texts("prefer"),
            prefer_percent: rule.count("prefer_by").unwrap_or(PREFER_PERCENT),
            max_cost_micro_usd: rule.micro_usd("max_cost"),
            max_seconds: rule.count("max_seconds"),
            origin,
            place,
        }
    }
}
