//! Rules upon offers: which arms are barred and why, which one is pinned, what preferences add up to, and which rules
//! contradict each other.
//!
//! A ban outweighs a pin, since bans are made for privacy and money. Of pins the narrower wins, of equally narrow ones
//! the later. A pin that no offer fits is named and left out: a misspelt name must not stop the work. A pin whose arms
//! are there but resting stays, since the person said "only this", and so does one about certain files: what they hold
//! must not go elsewhere because its arm is missing. Pins and bans about files hold as long as the conversation has them
//! in it. Who has a role bars nobody: it is asked while it can be, of what bans and pins leave.

use std::sync::Arc;

use super::{
    MOST_PREFERENCE_PERCENT, MOST_RULES, Rule, RuleEffect, glob::fits_arm, roles::Role,
    rule_conditions::WorkFacts,
};
use crate::arm::{ArmId, Offer};

const PERCENT: u64 = 100;
/// Reasons that are told one by one where rules leave no arm.
const MOST_REASONS: usize = 8;

/// The result of applying the rules to a task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AppliedRules {
    /// For each offer, why it may not be used.
    pub barred: Vec<Option<Arc<str>>>,
    /// For each offer, the micro-dollars by which it may be worse and is still taken.
    pub bonus_micro_usd: Vec<u64>,
    /// For each offer, the rules that prefer it.
    pub preferred_by: Vec<Vec<String>>,
    /// The arm that has the role for this work: [`AppliedRules::choose`] runs it wherever it can be asked.
    pub role: Option<ArmId>,
    /// The narrowest bounds that the rules set.
    pub bounds: Bounds,
    /// Contradictions and rules that came to nothing, a sentence each.
    pub conflicts: Vec<String>,
    /// That the rules leave nothing of what could have been used, and which they are.
    pub dead_end: Option<String>,
}

/// The bounds on what a task may take. Estimates bar arms beforehand; the caller that runs the task holds it to its
/// cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// The most micro-dollars that the task may cost.
    pub max_cost_micro_usd: Option<u64>,
    /// The most seconds that the task may take.
    pub max_seconds: Option<u32>,
}

/// Brings rules to bear on offers. `role` is the arm set for this piece of work ([`super::Roles::arm_for_stage`]);
/// `expected_micro_usd` tells what an arm is expected to cost on this task, where that is known.
#[must_use]
pub fn apply_rules(
    rules: &[Rule],
    role: Option<(Role, &ArmId)>,
    facts: &WorkFacts,
    offers: &[Offer],
    expected_micro_usd: &dyn Fn(&ArmId) -> Option<u64>,
) -> AppliedRules {
    let mut applied = AppliedRules {
        barred: offers.iter().map(|offer| offer.barred.clone()).collect(),
        bonus_micro_usd: vec![0; offers.len()],
        preferred_by: vec![Vec::new(); offers.len()],
        ..AppliedRules::default()
    };
    let names: Vec<String> = offers.iter().map(|offer| offer.arm.id.to_string()).collect();
    if let Some(first) = rules.get(MOST_RULES) {
        let label = first.label();
        applied.conflicts.push(format!(
            "{label} and those after it are left out: at most {MOST_RULES} rules are read"
        ));
    }
    let looked_at = || rules.iter().take(MOST_RULES);
    let holding: Vec<&Rule> = looked_at().filter(|rule| rule.when.applies_to(facts)).collect();
    let binding: Vec<&Rule> = looked_at().filter(|rule| rule.when.holds_still(facts)).collect();
    let forbidden = forbidding_rules(&binding, &names);
    applied.bar_forbidden(&forbidden);
    applied.add_preferences(&holding, &names, facts.value_micro_usd);
    applied.apply_bounds(&holding, offers, expected_micro_usd);
    applied.apply_pins(&binding, &names, &forbidden);
    applied.give_role(role, &names, &forbidden);
    applied.name_dead_end(offers);
    applied
}

/// For each offer, the first rule that bans it.
fn forbidding_rules<'a>(rules: &[&'a Rule], names: &[String]) -> Vec<Option<&'a Rule>> {
    names.iter().map(|name| rules.iter().copied().find(|rule| rule.forbids_arm(name))).collect()
}

/// A pin that could be followed: whose it is, how narrow, and which offers it fits.
struct Pin<'a> {
    arms: String,
    by: String,
    narrowness: (usize, usize),
    is_about_paths: bool,
    fits: Vec<bool>,
    forbidden_by: Vec<Option<&'a Rule>>,
}

impl Pin<'_> {
    fn allowed_offers(&self) -> Vec<bool> {
        let fits = self.fits.iter().zip(&self.forbidden_by);
        fits.map(|(fits, forbidden)| *fits && forbidden.is_none()).collect()
    }

    /// Returns why the pin comes to nothing, if it does.
    fn failure_reason(&self) -> Option<String> {
        if self.allowed_offers().contains(&true) {
            return None;
        }
        let Self { arms, by, is_about_paths, .. } = self;
        let ban = self
            .fits
            .iter()
            .zip(&self.forbidden_by)
            .find_map(|(fits, ban)| fits.then_some(*ban).flatten());
        Some(match ban {
            Some(ban) => {
                format!("{by} pins `{arms}`, which {} forbids; the ban wins", ban.label())
            }
            None if *is_about_paths => {
                format!(
                    "{by} pins `{arms}`, but no arm with that name is available, and no other \
                     may see it"
                )
            }
            None => {
                format!("{by} pins `{arms}`, but no configured arm has that name; it is ignored")
            }
        })
    }
}

impl AppliedRules {
    fn bar_forbidden(&mut self, forbidden: &[Option<&Rule>]) {
        for (barred, rule) in self.barred.iter_mut().zip(forbidden) {
            if let (None, Some(rule)) = (&barred, rule) {
                *barred = Some(format!("is forbidden by {}", rule.label()).into());
            }
        }
    }

    fn add_preferences(&mut self, rules: &[&Rule], names: &[String], value_micro_usd: u64) {
        let offers = self.bonus_micro_usd.iter_mut().zip(&mut self.preferred_by).zip(names);
        for ((bonus, by), name) in offers {
            let percents = rules.iter().map(|rule| (rule, rule.preference_percent(name)));
            let percents: Vec<_> = percents.filter(|(_, percent)| *percent > 0).collect();
            by.extend(percents.iter().map(|(rule, _)| rule.label()));
            let percent = percents.iter().fold(0, |sum, (_, by)| u32::saturating_add(sum, *by));
            let percent = u64::from(percent.min(MOST_PREFERENCE_PERCENT));
            // Divided first where the product would not fit.
            *bonus = value_micro_usd
                .checked_mul(percent)
                .map_or_else(|| value_micro_usd / PERCENT * percent, |product| product / PERCENT);
        }
    }

    fn apply_bounds(
        &mut self,
        rules: &[&Rule],
        offers: &[Offer],
        expected_micro_usd: &dyn Fn(&ArmId) -> Option<u64>,
    ) {
        let said = rules.iter().flat_map(|rule| rule.then.iter().map(move |action| (rule, action)));
        for (rule, action) in said {
            self.bounds.take_in(action);
            for (barred, offer) in self.barred.iter_mut().zip(offers) {
                if barred.is_none() {
                    *barred = exceeded_bound(action, offer, expected_micro_usd)
                        .map(|how| format!("{how}, the most by {}", rule.label()).into());
                }
            }
        }
    }

    fn apply_pins(&mut self, rules: &[&Rule], names: &[String], forbidden: &[Option<&Rule>]) {
        let pins = rules.iter().flat_map(|rule| {
            rule.pinned_globs().map(move |arms| Pin {
                fits: names.iter().map(|name| fits_arm(arms, name)).collect(),
                forbidden_by: forbidden.to_vec(),
                arms: arms.to_owned(),
                by: rule.label(),
                narrowness: rule.when.narrowness(),
                is_about_paths: rule.is_about_paths(),
            })
        });
        let mut followed: Option<Pin<'_>> = None;
        for pin in pins {
            if let Some(why) = pin.failure_reason() {
                self.conflicts.push(why);
                if !pin.is_about_paths {
                    continue;
                }
            }
            followed = Some(match followed.take() {
                Some(other) => self.stronger_pin(other, pin),
                None => pin,
            });
        }
        if let Some(pin) = followed {
            self.follow_pin(pin);
        }
    }

    /// The one that is followed; equally narrow ones for different arms are named.
    fn stronger_pin<'a>(&mut self, earlier: Pin<'a>, later: Pin<'a>) -> Pin<'a> {
        if earlier.narrowness > later.narrowness {
            return earlier;
        }
        if earlier.narrowness == later.narrowness
            && earlier.allowed_offers() != later.allowed_offers()
        {
            self.conflicts.push(format!(
                "{} pins `{}` and {} pins `{}` for the same task; the later one wins",
                earlier.by, earlier.arms, later.by, later.arms
            ));
        }
        later
    }

    fn follow_pin(&mut self, pin: Pin<'_>) {
        let Pin { arms, by, fits, .. } = pin;
        for (barred, fits) in self.barred.iter_mut().zip(fits) {
            if barred.is_none() && !fits {
                *barred = Some(format!("is excluded because {by} pins `{arms}`").into());
            }
        }
    }

    fn give_role(
        &mut self,
        role: Option<(Role, &ArmId)>,
        names: &[String],
        forbidden: &[Option<&Rule>],
    ) {
        let Some((role, arm)) = role else { return };
        let name = arm.to_string();
        let (by, place) = (role.name(), names.iter().position(|offered| *offered == name));
        let ban = place.and_then(|place| forbidden.get(place).copied().flatten());
        match (place, ban) {
            (None, _) => self.conflicts.push(format!(
                "the role `{by}` belongs to `{name}`, but no configured arm has that name; it is \
                 ignored"
            )),
            (Some(_), Some(ban)) => self.conflicts.push(format!(
                "the role `{by}` belongs to `{name}`, which {} forbids; the ban wins",
                ban.label()
            )),
            (Some(_), None) => self.role = Some(arm.clone()),
        }
    }

    /// Says so where rules have left nothing of what could have been used.
    fn name_dead_end(&mut self, offers: &[Offer]) {
        let usable = offers.iter().zip(&self.barred).filter(|(offer, _)| offer.barred.is_none());
        let reasons: Option<Vec<(&Offer, &Arc<str>)>> =
            usable.map(|(offer, barred)| Some((offer, barred.as_ref()?))).collect();
        // Nothing was there before the rules, or something is left after them.
        let Some(((_, first), rest)) = reasons.as_deref().and_then(<[_]>::split_first) else {
            return;
        };
        let reasons = if rest.iter().all(|(_, reason)| reason == first) {
            format!("every arm {first}")
        } else {
            let each = reasons.iter().flatten().take(MOST_REASONS);
            let each = each.map(|(offer, reason)| format!("{} {reason}", offer.arm.id));
            each.collect::<Vec<_>>().join("; ")
        };
        let why = format!("the rules leave no arm for this task: {reasons}");
        self.dead_end = Some(why);
    }

    /// The offers as the rules leave them.
    #[must_use]
    pub fn apply_to_offers(&self, offers: &[Offer]) -> Vec<Offer> {
        let barred = self.barred.iter().cloned().chain(std::iter::repeat(None));
        let with = |(offer, barred): (&Offer, Option<Arc<str>>)| Offer {
            barred: offer.barred.clone().or(barred),
            ..offer.clone()
        };
        offers.iter().zip(barred).map(with).collect()
    }

    /// Lines for people on what the rules say, beside the reasons in [`AppliedRules::barred`]. `offers` are those they were
    /// brought to bear on.
    #[must_use]
    pub fn explain(&self, offers: &[Offer]) -> Vec<String> {
        let preferred = offers.iter().zip(self.bonus_micro_usd.iter().zip(&self.preferred_by));
        let preferred =
            preferred.filter(|(offer, (bonus, _))| **bonus > 0 && offer.barred.is_none());
        let preferred = preferred.map(|(offer, (bonus, by))| {
            let (arm, by) = (&offer.arm.id, by.join(" and "));
            format!("{arm}: may be worth {} less, as {by} prefers it", format_dollars(*bonus))
        });
        let Bounds { max_cost_micro_usd, max_seconds } = self.bounds;
        let cost =
            max_cost_micro_usd.map(|most| format!("the task may cost {}", format_dollars(most)));
        let time = max_seconds.map(|most| format!("the task may take {most} s"));
        let faults = self.conflicts.iter().chain(&self.dead_end).cloned();
        preferred.chain(cost).chain(time).chain(faults).collect()
    }
}

impl Bounds {
    fn take_in(&mut self, action: &RuleEffect) {
        match action {
            RuleEffect::MaxCostMicroUsd(most) => narrow_bound(&mut self.max_cost_micro_usd, *most),
            RuleEffect::MaxSeconds(most) => narrow_bound(&mut self.max_seconds, *most),
            RuleEffect::Pin(_) | RuleEffect::Forbid(_) | RuleEffect::Prefer { .. } => {}
        }
    }
}

/// Describes how an offer is expected to pass a bound.
fn exceeded_bound(
    action: &RuleEffect,
    offer: &Offer,
    expected_micro_usd: &dyn Fn(&ArmId) -> Option<u64>,
) -> Option<String> {
    match action {
        RuleEffect::MaxCostMicroUsd(most) => {
            let cost = expected_micro_usd(&offer.arm.id).filter(|cost| cost > most)?;
            Some(format!(
                "is expected to cost {}, over {}",
                format_dollars(cost),
                format_dollars(*most)
            ))
        }
        RuleEffect::MaxSeconds(most) => {
            let seconds = offer.seconds.filter(|seconds| *seconds > f64::from(*most))?;
            Some(format!("is expected to take {seconds:.0} s, over {most} s"))
        }
        RuleEffect::Pin(_) | RuleEffect::Forbid(_) | RuleEffect::Prefer { .. } => None,
    }
}

fn narrow_bound<T: Ord + Copy>(bound: &mut Option<T>, most: T) {
    *bound = Some(bound.map_or(most, |own| own.min(most)));
}

fn format_dollars(micro_usd: u64) -> String {
    let dollars = micro_usd as f64 / 1e6;
    match micro_usd {
        // Less than a cent would read as nothing.
        1..10_000 => format!("${dollars:.4}"),
        _ => format!("${dollars:.2}"),
    }
}
