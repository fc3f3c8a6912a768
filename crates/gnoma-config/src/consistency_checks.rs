//! Checks settings that are valid alone and contradict each other.

use crate::{
    finding::{Finding, Report, Severity},
    key::KeyPath,
    layer::MergedLayers,
    money::{Money, RATES},
    schema::FEATURES,
    settings::RULES,
    value::Value,
};

/// Fields of a rule that say what happens; the others say when.
const DECIDING: [&str; 5] = ["pin", "forbid", "prefer", "max_cost", "max_seconds"];

/// The key of the spending caps.
const CAPS: &str = "router.caps";

/// Warns of what looks as if it did something and does nothing.
pub(crate) fn warn_ineffective_settings(layers: &MergedLayers, report: &mut Report) {
    idle_rules(layers, report);
    blind_cascade(layers, report);
    caps_without_rate(layers, report);
    overridden_features(layers, report);
    currency_without_rate(layers, report);
}

/// Costs that cannot be shown in the currency that the person has chosen are shown in dollars.
fn currency_without_rate(layers: &MergedLayers, report: &mut Report) {
    let path = KeyPath::from_dotted("usage.currency");
    let Some(entry) = layers.entries().get(&path) else { return };
    let Value::Text(code) = &entry.value else { return };
    if layers.exchange_rate(code).is_none() {
        let message = "has no effect without the rate of the currency";
        let finding = Finding::new(Severity::Warning, entry.place.clone(), message);
        let hint = format!("set `{RATES}.{code}` to the dollars for one {code}");
        report.add(finding.with_key(path).with_hint(hint));
    }
}

/// A switch next to the setting that it stands for, which says the opposite.
fn overridden_features(layers: &MergedLayers, report: &mut Report) {
    for feature in &FEATURES {
        let entry = |key| layers.entries().get(&KeyPath::from_dotted(key));
        let Some((switch, own)) = entry(feature.key).zip(entry(feature.setting)) else { continue };
        if own.origin == switch.origin && own.place != switch.place {
            let message = format!("has no effect: `{}` is set beside it and wins", feature.setting);
            let finding = Finding::new(Severity::Warning, switch.place.clone(), message);
            report.add(finding.with_key(feature.key).with_hint("remove one of them"));
        }
    }
}

/// A cap that cannot be counted must not look as if it held.
fn caps_without_rate(layers: &MergedLayers, report: &mut Report) {
    for name in layers.table_names(CAPS) {
        let path = KeyPath::from_dotted(CAPS).with_name(name);
        let Some(entry) = layers.entries().get(&path) else { continue };
        let Value::Text(text) = &entry.value else { continue };
        let lacks_rate = layers.to_dollars(&entry.value).is_none();
        let Some(money) = Money::parse(text).filter(|_| lacks_rate) else {
            continue;
        };
        let currency = money.currency;
        let message = format!("is in {currency}, and gnoma counts in dollars");
        let finding = Finding::new(Severity::Error, entry.place.clone(), message);
        let hint = format!("set `{RATES}.{currency}` to the dollars for one {currency}");
        report.add(finding.with_key(path).with_hint(hint));
    }
}

fn idle_rules(layers: &MergedLayers, report: &mut Report) {
    let list = KeyPath::from_dotted(RULES);
    for index in 0..layers.list_length(RULES) {
        let rule = list.with_index(index);
        let decides =
            DECIDING.iter().any(|field| layers.entries().contains_key(&rule.with_name(field)));
        if let Some(first) = layers.first_within(&rule).filter(|_| !decides) {
            let message = "has no effect: it says when, but not what";
            let finding = Finding::new(Severity::Warning, first.place.clone(), message);
            let hint = format!("give it one of {}, or remove it", DECIDING.join(", "));
            report.add(finding.with_key(rule).with_hint(hint));
        }
    }
}

fn blind_cascade(layers: &MergedLayers, report: &mut Report) {
    let strategy = KeyPath::from_dotted("router.strategy");
    let is = |key, word| layers.text_at(key).as_deref() == Some(word);
    let is_blind = is("router.strategy", "cascade") && is("router.verify", "off");
    if let Some(entry) = layers.entries().get(&strategy).filter(|_| is_blind) {
        let message = "never tries a second model: nothing checks what the first one did";
        let finding = Finding::new(Severity::Warning, entry.place.clone(), message);
        let hint = "set `router.verify` to auto, or `router.strategy` to single";
        report.add(finding.with_key(strategy).with_hint(hint));
    }
}
