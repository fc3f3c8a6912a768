//! The arms that the router can choose from at a moment: their capabilities, what a warm cache saves, and what
//! rules them out.
//!
//! A temporary obstacle (a rest after an error, a limit on requests) excludes an arm only while another can do the
//! work. If none can, the arm that is free soonest is used, and the turn waits for it.

use std::{collections::HashMap, sync::Arc, time::Duration};

use gnoma_core::{
    ModelRef, Price, Usage,
    ledger::{Amount, Level, PoolDraw, Unit},
};
use jiff::tz::TimeZone;

use super::{routing_state::RoutingState, turn_task::Task};
use crate::{
    arm::{Arm, Offer},
    classify,
    clock::{self, Zone},
    pool::{self, Expectation, Scope},
    rules::{self, AppliedRules, Day, LocalTime, Role, Rule, RuleEffect},
};

const MICRO: f64 = 1e6;
/// Tokens of a typical answer.
pub const TYPICAL_ANSWER: u64 = 1_000;
/// Tokens of the system prompt and the tools.
pub const OVERHEAD_TOKENS: u64 = 1_500;
/// Calls beside the last one that the easiest work with tools takes, roughly: to look and to change.
const EASIEST_CALLS: u64 = 3;
/// Calls that the hardest work takes beside those.
const HARDEST_CALLS: u64 = 40;
/// Tokens by which the results of one such call make the next prompt longer.
const STEP_TOKENS: u64 = 1_500;
/// So long a call waits for a limit of gnoma's own before another arm is asked in its place.
pub const LIMIT_PATIENCE: Duration = Duration::from_secs(5);

/// A prompt that an arm's provider may still hold.
#[derive(Clone, Copy, Debug)]
pub struct WarmPrompt {
    /// The tokens of the prompt.
    pub tokens: u64,
    /// The time when the prompt was sent, in milliseconds since 1970.
    pub at_ms: i64,
}

/// The time for which providers certainly cache a prompt.
const WARM_MS: i64 = 5 * 60 * 1_000;

/// The session at the moment of a choice.
#[derive(Clone, Copy, Debug)]
pub struct ChoiceContext<'a> {
    /// Prompts that may be warm, by arm.
    pub warm: &'a HashMap<ModelRef, WarmPrompt>,
    /// The levels that say how much of the limits of the arms' pools is used.
    pub levels: &'a [Level],
    /// Only this arm is asked.
    pub pin: Option<&'a ModelRef>,
    /// True if, when no arm is free, the one that is free soonest may be asked.
    pub may_wait: bool,
    /// Whose money is spent.
    pub scope: &'a Scope,
    /// Arms that failed at the task before the turn: a stronger one is chosen.
    pub failed: &'a [ModelRef],
    /// The time, in milliseconds since 1970.
    pub now_ms: i64,
}

/// An obstacle that rules an arm out.
enum ArmExclusion {
    /// An obstacle that stays, with its reason.
    Lasting(Arc<str>),
    /// A temporary obstacle, and when it ends.
    Passing(Arc<str>, i64),
}

/// The levels of the limits that calls with these draws have.
fn own_levels<'a>(levels: &'a [Level], draws: &'a [PoolDraw]) -> impl Iterator<Item = &'a Level> {
    let is_own = |level: &&Level| {
        let of = |draw: &PoolDraw| draw.pool == level.pool && draw.limits.contains(&level.limit);
        draws.iter().any(of)
    };
    levels.iter().filter(is_own)
}

impl RoutingState {
    /// The arms as the router is offered them, and what the user's rules make of them.
    pub(super) fn build_offers(
        &self,
        task: &Task,
        given_up: &[(ModelRef, Arc<str>)],
        context: ChoiceContext<'_>,
        role: Option<(Role, &ModelRef)>,
    ) -> (Vec<Offer>, AppliedRules) {
        let now_ms = context.now_ms;
        let mut offers = Vec::with_capacity(self.arms().len());
        let mut passing = Vec::with_capacity(self.arms().len());
        for arm in &**self.arms() {
            let warm = context.warm.get(&arm.id);
            let call = expected_amount(arm, task.need.context_tokens, warm, now_ms);
            let draws = self.draws_for(arm, context.scope, &call, now_ms);
            let failed = given_up.iter().find(|(failed, _)| *failed == arm.id).map(|(_, why)| why);
            let need = shorten_answer(arm, call);
            let (lasting, passes) = match self.find_exclusion(arm, failed, context, &need, &draws) {
                Some(ArmExclusion::Lasting(why)) => (Some(why), None),
                Some(ArmExclusion::Passing(why, until_ms)) => (None, Some((why, until_ms))),
                None => (None, None),
            };
            passing.push(passes);
            offers.push(Offer {
                pools: pool::budget_pools(&draws).collect(),
                most_micro_usd: arm
                    .price
                    .map(|price| price.cost_micro_usd(&estimate_work(task, &price))),
                saved_micro_usd: warm_savings(arm, warm, now_ms),
                crowding: pool::crowding_factor(own_levels(context.levels, &draws)),
                seconds: self
                    .tracker
                    .vitals
                    .speeds
                    .for_arm(&arm.id)
                    .map(|speed| speed.seconds_to_answer()),
                barred: lasting,
                arm: Arc::clone(arm),
            });
        }
        let applied = self.apply_rules(task, &offers, context, role);
        let mut offers = applied.apply_to_offers(&offers);
        bar_for_now(&mut offers, passing, task, context.may_wait);
        (offers, applied)
    }

    /// Returns the obstacle that rules out a call of the arm. `failed` is the reason why it was abandoned in this
    /// turn.
    fn find_exclusion(
        &self,
        arm: &Arm,
        failed: Option<&Arc<str>>,
        context: ChoiceContext<'_>,
        call: &Amount,
        draws: &[PoolDraw],
    ) -> Option<ArmExclusion> {
        match (context.pin, failed) {
            (Some(pin), _) if *pin != arm.id => {
                Some(ArmExclusion::Lasting(format!("is not {pin}, which you chose").into()))
            }
            (_, Some(why)) => Some(ArmExclusion::Lasting(Arc::clone(why))),
            // Who is asked for by name is asked, whatever it did before.
            (Some(_), None) => None,
            (None, None) if arm.only_chosen => {
                Some(ArmExclusion::Lasting("is used only where you choose it".into()))
            }
            (None, None) if self.settings.is_classifier_only(&arm.id) => {
                Some(ArmExclusion::Lasting("only sorts requests (`slm`)".into()))
            }
            (None, None) => {
                let resting = self.unavailability(arm, context.now_ms);
                resting.map(|(why, until_ms)| ArmExclusion::Passing(why.into(), until_ms)).or_else(
                    || {
                        let own = own_levels(context.levels, draws);
                        limit_exclusion(own, call, (context.now_ms, self.settings.zone))
                    },
                )
            }
        }
    }

    /// Returns the reason why the user's rules keep an arm from the subject of the conversation, if they do.
    #[must_use]
    pub fn kept_from(&self, arm: &ModelRef, task: &Task, now_ms: i64) -> Option<Arc<str>> {
        let offers: Vec<Offer> =
            self.arms().iter().map(|arm| Offer::new(Arc::clone(arm))).collect();
        // What is about files, and nothing else: the choice as a whole is made elsewhere.
        let keeps =
            |action: &&RuleEffect| matches!(action, RuleEffect::Pin(_) | RuleEffect::Forbid(_));
        let about_files = self.settings.rules.iter().filter(|rule| !rule.when.paths.is_empty());
        let rules: Vec<Rule> = about_files
            .map(|rule| Rule {
                then: rule.then.iter().filter(keeps).cloned().collect(),
                ..rule.clone()
            })
            .collect();
        let facts = task.work_facts(self.local_time(now_ms));
        let applied = rules::apply_rules(&rules, None, &facts, &offers, &|_| None);
        let place = offers.iter().position(|offer| offer.arm.id == *arm)?;
        applied.barred.get(place).cloned().flatten()
    }

    fn apply_rules(
        &self,
        task: &Task,
        offers: &[Offer],
        context: ChoiceContext<'_>,
        role: Option<(Role, &ModelRef)>,
    ) -> AppliedRules {
        let facts = task.work_facts(self.local_time(context.now_ms));
        let expected = |arm: &ModelRef| {
            let cost = self.router.estimate_arm(arm, &task.need.kind).cost;
            let believed = (cost.is_finite() && cost >= 0.0).then_some((cost * MICRO) as u64);
            let offer = offers.iter().find(|offer| offer.arm.id == *arm);
            let most = offer.and_then(|offer| offer.most_micro_usd);
            believed.into_iter().chain(most).min()
        };
        if context.pin.is_none() {
            return rules::apply_rules(&self.settings.rules, role, &facts, offers, &expected);
        }
        // Whoever names an arm has chosen; what is forbidden stays forbidden, and files stay where
        // a rule wants them.
        let limits = |rule: &Rule, action: &RuleEffect| match action {
            RuleEffect::Forbid(_) | RuleEffect::MaxCostMicroUsd(_) | RuleEffect::MaxSeconds(_) => {
                true
            }
            RuleEffect::Pin(_) => !rule.when.paths.is_empty(),
            RuleEffect::Prefer { .. } => false,
        };
        let bans: Vec<Rule> = self
            .settings
            .rules
            .iter()
            .map(|rule| Rule {
                then: rule.then.iter().filter(|action| limits(rule, action)).cloned().collect(),
                ..rule.clone()
            })
            .collect();
        rules::apply_rules(&bans, None, &facts, offers, &expected)
    }

    /// The zone is searched for only where a rule asks for the time.
    fn local_time(&self, now_ms: i64) -> LocalTime {
        let asks = self.settings.rules.iter().any(|rule| rule.when.hours.is_some());
        let zone = if asks { (self.settings.zone)() } else { TimeZone::UTC };
        local_time(now_ms, &zone)
    }
}

/// Returns the amount that a call of the arm is expected to take. `warm`: the prompt that its provider may still hold.
#[must_use]
pub fn expected_amount(
    arm: &Arm,
    context_tokens: u64,
    warm: Option<&WarmPrompt>,
    now_ms: i64,
) -> Amount {
    let cached_tokens = warm
        .filter(|warm| (0..WARM_MS).contains(&now_ms.saturating_sub(warm.at_ms)))
        .map_or(0, |warm| warm.tokens);
    let call = Expectation {
        prompt_tokens: context_tokens.max(cached_tokens).saturating_add(OVERHEAD_TOKENS),
        cached_tokens,
        typical_output_tokens: TYPICAL_ANSWER,
        max_output_tokens: arm.answer_limit().map(u64::from),
    };
    pool::expected_amount(&call, &arm.price.unwrap_or_default())
}

/// Returns the amount of the call with the cost of its shortest answer: where money is short, the answer may be.
fn shorten_answer(arm: &Arm, call: Amount) -> Amount {
    let price = arm.price.unwrap_or_default();
    let micro_usd = pool::shortest_call(&call, &price).micro_usd;
    Amount { micro_usd, ..call }
}

/// Bars the offers with what passes by itself, while another can do the work or nobody may wait; where
/// none can, the one that is free soonest stays.
fn bar_for_now(
    offers: &mut [Offer],
    passing: Vec<Option<(Arc<str>, i64)>>,
    task: &Task,
    may_wait: bool,
) {
    let able: Vec<bool> = offers.iter().map(|offer| task.need.unmet_by(offer).is_none()).collect();
    let some_are_free = able.iter().zip(&passing).any(|(able, bar)| *able && bar.is_none());
    let soonest = able
        .iter()
        .zip(&passing)
        .filter_map(|(able, bar)| bar.as_ref().filter(|_| *able).map(|(_, until_ms)| *until_ms))
        .min();
    for (offer, bar) in offers.iter_mut().zip(passing) {
        let Some((why, until_ms)) = bar else { continue };
        if some_are_free || !may_wait || Some(until_ms) != soonest {
            offer.barred.get_or_insert(why);
        }
    }
}

/// Returns the reason why the levels allow no such call: an exhausted budget of money comes before limits that
/// pass. The call waits for limits that pass within [`LIMIT_PATIENCE`].
fn limit_exclusion<'l>(
    levels: impl Iterator<Item = &'l Level>,
    call: &Amount,
    (now_ms, zone): (i64, Zone),
) -> Option<ArmExclusion> {
    let patience_ms = i64::try_from(LIMIT_PATIENCE.as_millis()).unwrap_or(i64::MAX);
    let mut passing = None;
    for level in levels {
        let Some(why) = pool::refusal_reason(std::slice::from_ref(level), call, now_ms, zone)
        else {
            continue;
        };
        let unit = level.limit.unit;
        let is_too_large = call.in_unit(unit) > level.limit.most;
        match level.resets_at_ms.filter(|_| unit != Unit::MicroUsd && !is_too_large) {
            None => return Some(ArmExclusion::Lasting(why.into())),
            Some(at_ms) if at_ms.saturating_sub(now_ms) <= patience_ms => {}
            Some(at_ms) => passing = Some(ArmExclusion::Passing(why.into(), at_ms)),
        }
    }
    passing
}

/// A rough number of tokens that the task takes at this price: a question takes about one call, work with tools
/// more calls the harder it seems. Each call reads the input of the one before again, at the price of the cache if
/// there is one.
fn estimate_work(task: &Task, price: &Price) -> Usage {
    let complexity = u64::from(task.classified.complexity);
    let most = u64::from(classify::MOST_COMPLEXITY);
    let steps = if task.need.tools { EASIEST_CALLS + complexity * HARDEST_CALLS / most } else { 0 };
    let first = task.need.context_tokens.saturating_add(OVERHEAD_TOKENS);
    let new = first.saturating_add(steps * STEP_TOKENS);
    let again = first
        .saturating_mul(steps)
        .saturating_add(STEP_TOKENS * steps * steps.saturating_sub(1) / 2);
    let output = TYPICAL_ANSWER * (steps + 1);
    if price.cache_read == 0 {
        return Usage { input: new.saturating_add(again), output, ..Usage::default() };
    }
    Usage { input: new, cache_read: again, output, ..Usage::default() }
}

/// Micro-dollars that a warm cache saves.
fn warm_savings(arm: &Arm, warm: Option<&WarmPrompt>, now_ms: i64) -> u64 {
    let (Some(price), Some(warm)) = (arm.price, warm) else { return 0 };
    let age = now_ms.saturating_sub(warm.at_ms);
    if !(0..WARM_MS).contains(&age) || price.cache_read == 0 {
        return 0;
    }
    let cold = price.cost_micro_usd(&Usage { input: warm.tokens, ..Usage::default() });
    cold.saturating_sub(
        price.cost_micro_usd(&Usage { cache_read: warm.tokens, ..Usage::default() }),
    )
}

/// Micro-dollars that the arm's cache saves on a request like the last one.
#[must_use]
pub fn cache_savings(arm: &Arm, warm: &HashMap<ModelRef, WarmPrompt>, now_ms: i64) -> u64 {
    warm_savings(arm, warm.get(&arm.id), now_ms)
}

/// The day and minute that the clocks of `zone` show.
fn local_time(at_ms: i64, zone: &TimeZone) -> LocalTime {
    let at = zone.to_datetime(clock::timestamp_from_ms(at_ms));
    let weekday = usize::try_from(at.weekday().to_monday_zero_offset()).ok();
    let minute = i16::from(at.hour()) * 60 + i16::from(at.minute());
    LocalTime {
        day: weekday.and_then(|day| Day::ALL.get(day).copied()).unwrap_or(Day::Mon),
        minute: u16::try_from(minute).unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use jiff::tz;

    use super::*;

    #[test]
    fn routing_rule_hours_use_the_local_time_zone() {
        let at = |hours| {
            let LocalTime { day, minute } =
                local_time(1_709_245_800_000, &TimeZone::fixed(tz::offset(hours)));
            (day, minute)
        };
        // Thursday, 29 February 2024, 22:30 in UTC.
        assert_eq!(at(0), (Day::Thu, 22 * 60 + 30));
        assert_eq!(at(2), (Day::Fri, 30));
        assert_eq!(at(-23), (Day::Wed, 23 * 60 + 30));
    }
}
