//! Faults of rules that show without a task: conditions that never hold, pins of banned arms, patterns that fit
//! nothing. Applying rules with faults does no harm; this is for telling. A rule that says nothing is left to whoever
//! reads rules, who knows more of its place.

use super::{
    MOST_GLOB_CHARS, MOST_PREFERENCE_PERCENT, Rule, RuleConditions, RuleEffect, glob::fits_arm,
    hours::MINUTES_PER_DAY,
};
use crate::{arm::ArmId, classify::TaskType};

/// A sentence for each fault, with the place of the rule.
#[must_use]
pub fn check_rules(rules: &[Rule]) -> Vec<String> {
    let own = rules.iter().flat_map(|rule| {
        rule_faults(rule).into_iter().map(move |fault| format!("{} {fault}", rule.label()))
    });
    own.chain(banned_pins(rules)).chain(rival_pins(rules)).collect()
}

/// Reports whether a rule wants arms of which none is among these.
#[must_use]
pub fn misses_arms(rules: &[Rule], arms: &[ArmId]) -> bool {
    let wanted = rules.iter().flat_map(|rule| &rule.then).filter_map(|action| match action {
        RuleEffect::Pin(arms) => Some(std::slice::from_ref(arms)),
        RuleEffect::Prefer { arms, .. } => Some(arms.as_slice()),
        RuleEffect::Forbid(_) | RuleEffect::MaxCostMicroUsd(_) | RuleEffect::MaxSeconds(_) => None,
    });
    let is_there = |glob: &String| arms.iter().any(|arm| fits_arm(glob, &arm.to_string()));
    wanted.into_iter().any(|globs| !globs.iter().any(is_there))
}

fn rule_faults(rule: &Rule) -> Vec<String> {
    let mut faults = Vec::new();
    let when = &rule.when;
    if let (Some(least), Some(most)) = (when.min_complexity, when.max_complexity)
        && least > most
    {
        faults.push(format!(
            "never applies: its minimum complexity, {least}, is above its \
                             maximum, {most}"
        ));
    }
    if when.hours.as_ref().is_some_and(|hours| hours.from.max(hours.to) > MINUTES_PER_DAY) {
        faults.push("has hours beyond the end of the day".to_owned());
    }
    let unknown = when.tasks.iter().filter(|task| task.parse::<TaskType>().is_err());
    faults.extend(unknown.map(|task| {
        format!(
            "names the task type `{task}`, which gnoma does not \
                                            know"
        )
    }));
    let arms = rule.then.iter().flat_map(RuleEffect::arm_globs);
    let too_long = arms.chain(&when.paths).any(|glob| glob.chars().count() > MOST_GLOB_CHARS);
    if too_long {
        faults.push(format!(
            "has a pattern of over {MOST_GLOB_CHARS} characters, which matches nothing"
        ));
    }
    faults.extend(rule.then.iter().filter_map(odd_number));
    faults
}

fn odd_number(action: &RuleEffect) -> Option<String> {
    match action {
        RuleEffect::Prefer { percent, .. } => (*percent > MOST_PREFERENCE_PERCENT)
            .then(|| format!("prefers by {percent}%, which counts as {MOST_PREFERENCE_PERCENT}%")),
        RuleEffect::MaxCostMicroUsd(0) => {
            Some("limits the cost to nothing, which leaves only free arms".to_owned())
        }
        RuleEffect::MaxSeconds(0) => {
            Some("limits the time to nothing, which leaves only arms never measured".to_owned())
        }
        RuleEffect::Pin(_)
        | RuleEffect::Forbid(_)
        | RuleEffect::MaxCostMicroUsd(_)
        | RuleEffect::MaxSeconds(_) => None,
    }
}

/// Pins of arms that a rule bans which holds always, or under the very same conditions.
fn banned_pins(rules: &[Rule]) -> impl Iterator<Item = String> {
    let pinned =
        rules.iter().flat_map(|pinning| pinning.pinned_globs().map(move |pin| (pinning, pin)));
    pinned.filter_map(|(pinning, pin)| {
        let meets = |ban: &&Rule| ban.when == pinning.when || ban.when == RuleConditions::default();
        let ban = rules.iter().filter(meets).find(|ban| ban.forbids_arm(pin))?;
        let (by, ban) = (pinning.label(), ban.label());
        Some(format!("{by} pins `{pin}`, which {ban} forbids; the ban wins"))
    })
}

/// Pins of different arms under the very same conditions, each with the one that is followed.
fn rival_pins(rules: &[Rule]) -> impl Iterator<Item = String> {
    let pinned = |rule: &'_ Rule| rule.pinned_globs().last().map(str::to_owned);
    rules.iter().enumerate().filter_map(move |(place, rule)| {
        let pin = pinned(rule)?;
        let later = rules.get(place + 1..)?.iter();
        let mut same = later.filter(|later| later.when == rule.when);
        let (rival, other) = same.find_map(|later| Some((later, pinned(later)?)))?;
        let (by, rival) = (rule.label(), rival.label());
        (pin != other).then(|| {
            format!(
                "{by} pins `{pin}` and {rival} pins `{other}` under the same conditions; the \
                     later one wins"
            )
        })
    })
}
