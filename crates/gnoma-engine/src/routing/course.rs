//! The way a turn takes: which arms, in which order, and why. Pure decisions over what the
//! [`Routes`] know.

use std::{collections::HashMap, sync::Arc};

use gnoma_core::{
    ModelRef, Usage,
    ledger::{Amount, Level},
    session::Routing,
};
use gnoma_router::{
    Attempt, Candidate, Choice, Decision, Kind, Offer, Outcome, Situation, Tried,
    pool::{self, Expectation},
    rules::{self, Action, Applied, Day, LocalTime, Rule, Stage, WorkFacts},
};

use super::{
    desk::{Routes, Strategy, Verify},
    signals::Signals,
    task::Task,
};
use crate::arm::Arm;

const MICRO: f64 = 1e6;
/// Tokens of a typical answer.
const TYPICAL_ANSWER: u64 = 1_000;
/// Tokens of the system prompt and the tools.
const OVERHEAD_TOKENS: u64 = 1_500;

/// A prompt that an arm's provider may still hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Warm {
    /// Its tokens.
    pub(crate) tokens: u64,
    /// When it was sent, in milliseconds since 1970.
    pub(crate) at_ms: i64,
}

/// How long providers keep a prompt for sure.
const WARM_MS: i64 = 5 * 60 * 1_000;

/// The session at the moment of a choice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment<'a> {
    /// Prompts that may be warm, by arm.
    pub(crate) warm: &'a HashMap<ModelRef, Warm>,
    /// Where the limits of the arms' pools stand.
    pub(crate) levels: &'a [Level],
    /// Only this arm is asked.
    pub(crate) pin: Option<&'a ModelRef>,
}

/// A turn under way.
#[derive(Debug)]
pub(crate) struct Course {
    pub(crate) task: Task,
    pub(crate) seed: u64,
    /// How the arms are used; never [`Strategy::Auto`].
    pub(crate) strategy: Strategy,
    /// Who is asked.
    pub(crate) arm: Arm,
    /// Who else answers at once.
    pub(crate) beside: Vec<Arm>,
    /// Why it is this one.
    pub(crate) why: String,
    /// Attempts that are over.
    pub(crate) attempts: Vec<Attempt>,
    /// Micro-dollars of the attempt under way.
    pub(crate) attempt_micro_usd: u64,
    /// Micro-dollars of the turn.
    pub(crate) turn_micro_usd: u64,
    /// Arms that failed in this turn, and how.
    pub(crate) given_up: Vec<(ModelRef, Arc<str>)>,
    pub(crate) signals: Signals,
}

/// Why no arm can be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NoArm {
    /// A line for each arm that there is.
    pub(crate) reasons: Vec<String>,
}

impl Course {
    /// What turned out, for learning. `right`: what a person or a check that cannot err said.
    pub(crate) fn outcome(&self, right: Option<bool>) -> Outcome {
        let mut tried: Vec<Tried> = self
            .attempts
            .iter()
            .map(|attempt| Tried { attempt: attempt.clone(), right: None })
            .collect();
        if let Some(last) = tried.last_mut() {
            last.right = right;
        }
        Outcome { kind: self.task.need.kind.clone(), tried }
    }

    /// The attempt under way is over.
    pub(crate) fn close_attempt(&mut self, verdict: Option<bool>) {
        let cost_micro_usd = std::mem::take(&mut self.attempt_micro_usd);
        self.attempts.push(Attempt { arm: self.arm.name(), verdict, cost_micro_usd });
    }

    /// Whether its work is checked before the turn ends.
    pub(crate) fn is_checked(&self) -> bool {
        self.strategy == Strategy::Cascade
    }
}

impl Routes {
    /// Chooses the way of a turn.
    pub(crate) fn begin(
        &self,
        task: Task,
        seed: u64,
        moment: Moment<'_>,
    ) -> Result<(Course, Routing), NoArm> {
        let arms = self.arms();
        let (offers, applied) = self.offers(&arms, &task, &[], moment);
        let (strategy, choice) = self.plans(&task, &offers, &applied, seed);
        let chosen = match &choice.decision {
            Decision::Run(names) => names.clone(),
            Decision::Accept(_) | Decision::Impossible => Vec::new(),
        };
        let mut chosen =
            chosen.iter().filter_map(|name| arms.iter().find(|arm| arm.name() == *name));
        let Some(arm) = chosen.next().cloned() else {
            return Err(NoArm { reasons: self.reasons(&choice, &offers) });
        };
        let mut beside: Vec<Arm> = chosen.cloned().collect();
        let strategy = match strategy {
            Strategy::Ensemble | Strategy::Synthesis => {
                if beside.is_empty() {
                    beside.extend(second_best(&choice, &offers, &arms, &arm));
                }
                if beside.is_empty() { Strategy::Single } else { strategy }
            }
            Strategy::Auto | Strategy::Single | Strategy::Cascade => strategy,
        };
        let why = self.why(&arm, &choice, &offers, moment);
        let mut candidates = choice.explain(&offers, seed);
        candidates.extend(applied.conflicts);
        let routing = Routing {
            kind: task.need.kind.0.to_string(),
            complexity: task.classified.complexity,
            decided_by: task.classified.decided_by.name().to_owned(),
            strategy: name_of(strategy).to_owned(),
            arms: std::iter::once(&arm).chain(&beside).map(Arm::name).collect(),
            why: why.clone(),
            candidates,
            seed,
        };
        let course = Course {
            task,
            seed,
            strategy,
            arm,
            beside,
            why,
            attempts: Vec::new(),
            attempt_micro_usd: 0,
            turn_micro_usd: 0,
            given_up: Vec::new(),
            signals: Signals::default(),
        };
        Ok((course, routing))
    }

    /// After a checked attempt: the arm that goes on, or `None` when the work is delivered.
    pub(crate) fn go_on(&self, course: &Course, moment: Moment<'_>) -> Option<Arm> {
        let arms = self.arms();
        let (offers, applied) = self.offers(&arms, &course.task, &course.given_up, moment);
        let left = self.options.max_attempts.saturating_sub(course.attempts.len());
        if left == 0 || course.attempts.last()?.verdict == Some(true) {
            return None;
        }
        let situation = Situation {
            need: course.task.need.clone(),
            attempts: course.attempts.clone(),
            attempts_left: left,
            verified: true,
        };
        let choice = applied.choose(&self.router(), &situation, &offers, course.seed);
        match &choice.decision {
            Decision::Run(names) => {
                arms.iter().find(|arm| Some(&arm.name()) == names.first()).cloned()
            }
            Decision::Accept(_) | Decision::Impossible => None,
        }
    }

    /// Another arm for the attempt under way, in place of one that failed.
    pub(crate) fn instead(&self, course: &Course, moment: Moment<'_>) -> Option<Arm> {
        let arms = self.arms();
        let (offers, _) = self.offers(&arms, &course.task, &course.given_up, moment);
        let situation = Situation {
            need: course.task.need.clone(),
            attempts: Vec::new(),
            attempts_left: 1,
            verified: false,
        };
        let choice = self.router().choose(&situation, &offers, course.seed);
        let best = best(&choice.candidates)?;
        let name = &offers.get(best.offer)?.arm;
        arms.iter().find(|arm| arm.name() == *name).cloned()
    }

    /// The single arm or the cascade, by what either is worth; or what was asked for.
    fn plans(
        &self,
        task: &Task,
        offers: &[Offer],
        applied: &Applied,
        seed: u64,
    ) -> (Strategy, Choice) {
        let situation = |verified, attempts_left| Situation {
            need: task.need.clone(),
            attempts: Vec::new(),
            attempts_left,
            verified,
        };
        let single = applied.choose(&self.router(), &situation(false, 1), offers, seed);
        let feasible = single.candidates.len();
        let most = self.options.max_attempts.min(feasible);
        match self.options.strategy {
            Strategy::Single => return (Strategy::Single, single),
            Strategy::Ensemble | Strategy::Synthesis if !task.need.tools => {
                return (self.options.strategy, single);
            }
            Strategy::Auto | Strategy::Cascade | Strategy::Ensemble | Strategy::Synthesis => (),
        }
        if most < 2 || !self.can_check(task) {
            return (Strategy::Single, single);
        }
        let cascade = applied.choose(&self.router(), &situation(true, most), offers, seed);
        if let (Decision::Run(names), false) = (&cascade.decision, task.need.tools)
            && names.len() > 1
        {
            // Several answers at once need somebody to choose; for a plan all of them are of use.
            let merges = matches!(&*task.need.kind.0, "planning" | "orchestration");
            let strategy = if merges { Strategy::Synthesis } else { Strategy::Ensemble };
            return (strategy, cascade);
        }
        let worth = |choice: &Choice| best(&choice.candidates).and_then(|best| best.value);
        let gain = worth(&cascade).unwrap_or(f64::MIN) - worth(&single).unwrap_or(f64::MIN);
        let forced = self.options.strategy == Strategy::Cascade;
        if forced || gain > self.check_cost(task) {
            (Strategy::Cascade, cascade)
        } else {
            (Strategy::Single, single)
        }
    }

    /// Whether there is anybody to look at the work.
    fn can_check(&self, task: &Task) -> bool {
        let has_checks = !self.options.checks.is_empty() || task.changes_code;
        match self.options.verify {
            Verify::Off => false,
            Verify::Checks => has_checks,
            Verify::Reviewer | Verify::Auto => task.changes_code,
        }
    }

    /// Dollars that a look at the work costs: nothing for the project's checks.
    fn check_cost(&self, task: &Task) -> f64 {
        let by_checks = !self.options.checks.is_empty() && self.options.verify != Verify::Reviewer;
        let Some(reviewer) = self.reviewer(None).filter(|_| !by_checks) else { return 0.0 };
        let glance = Usage {
            input: task.need.context_tokens.clamp(2_000, 20_000),
            output: 400,
            ..Usage::default()
        };
        reviewer.price.map_or(0.0, |price| price.of(&glance) as f64 / MICRO)
    }

    /// Who reviews the work of `author`: who is named for it, else the arm believed to be best at it
    /// that is not the author, else the author.
    pub(crate) fn reviewer(&self, author: Option<&ModelRef>) -> Option<Arm> {
        let arms = self.arms();
        if let Some(name) = &self.options.roles.reviewer
            && let Some(arm) = arms.iter().find(|arm| arm.name() == *name)
        {
            return Some(arm.clone());
        }
        let kind = Kind::new("review");
        let usable = |arm: &&Arm| {
            Some(&arm.name()) != author
                && self.rest(arm).is_none()
                && (!self.options.local_only || arm.provider.facts().local)
        };
        let quality = |arm: &Arm| self.standing(&arm.name(), &kind).quality;
        let others = arms.iter().filter(usable);
        let best = others.max_by(|left, right| quality(left).total_cmp(&quality(right)));
        best.or_else(|| arms.iter().find(|arm| Some(&arm.name()) == author)).cloned()
    }

    /// The arms as the router is offered them, and what the user's rules make of them.
    fn offers(
        &self,
        arms: &[Arm],
        task: &Task,
        given_up: &[(ModelRef, Arc<str>)],
        moment: Moment<'_>,
    ) -> (Vec<Offer>, Applied) {
        let now_ms = self.now_ms();
        let pin = moment.pin.or(self.options.pinned.as_ref());
        let offer = |arm: &Arm| {
            let name = arm.name();
            let warm = moment.warm.get(&name);
            let failed = given_up.iter().find(|(failed, _)| *failed == name);
            let barred: Option<Arc<str>> = match pin {
                Some(pin) if *pin != name => {
                    Some(format!("is not {pin}, which was asked for").into())
                }
                _ if failed.is_some() => failed.map(|(_, why)| Arc::clone(why)),
                // Who is asked for by name is asked, whatever it did before.
                Some(_) => None,
                None => self
                    .rest(arm)
                    .map(|rest| rest.why)
                    .or_else(|| self.refusal(&name))
                    .map(Into::into),
            };
            let full = || {
                let call = self.expected(arm, task.need.context_tokens, warm);
                let drawn = self.draws(arm, "", "");
                let of_arm = |level: &&Level| drawn.iter().any(|draw| draw.pool == level.pool);
                let levels: Vec<Level> = moment.levels.iter().filter(of_arm).cloned().collect();
                pool::refusal(&levels, &call, now_ms).map(Arc::from)
            };
            Offer {
                capabilities: arm.capabilities(),
                pools: self.draws(arm, "", "").into_iter().map(|draw| draw.pool.into()).collect(),
                saved_micro_usd: saved(arm, warm, now_ms),
                seconds: self.seconds(&name),
                barred: barred.or_else(full),
                arm: name,
            }
        };
        let offers: Vec<Offer> = arms.iter().map(offer).collect();
        let applied = self.apply_rules(task, &offers, pin.is_some());
        (applied.offers(&offers), applied)
    }

    fn apply_rules(&self, task: &Task, offers: &[Offer], is_pinned: bool) -> Applied {
        let facts = WorkFacts {
            kind: task.need.kind.clone(),
            complexity: task.classified.complexity,
            value_micro_usd: task.need.value_micro_usd,
            paths: task.paths.clone(),
            time: Some(self.local_time()),
            local_only: task.need.local_only,
        };
        let expected = |arm: &ModelRef| {
            let cost = self.standing(arm, &task.need.kind).cost;
            (cost.is_finite() && cost >= 0.0).then_some((cost * MICRO) as u64)
        };
        let role = self.options.roles.arm(Stage::Turn(task.classified.kind));
        if !is_pinned {
            return rules::apply(&self.options.rules, role, &facts, offers, &expected);
        }
        // Whoever names an arm has chosen; what is forbidden stays forbidden.
        let limits = |action: &Action| match action {
            Action::Forbid(_) | Action::MaxCostMicroUsd(_) | Action::MaxSeconds(_) => true,
            Action::Pin(_) | Action::Prefer { .. } => false,
        };
        let bans: Vec<Rule> = self
            .options
            .rules
            .iter()
            .map(|rule| Rule {
                then: rule.then.iter().filter(|action| limits(action)).cloned().collect(),
                ..rule.clone()
            })
            .collect();
        rules::apply(&bans, None, &facts, offers, &expected)
    }

    fn local_time(&self) -> LocalTime {
        const MINUTE_MS: i64 = 60_000;
        /// 1970-01-01 was a Thursday: the fourth of the week.
        const FIRST_DAY: i64 = 3;
        let minutes =
            self.now_ms().div_euclid(MINUTE_MS) + i64::from(self.options.utc_offset_minutes);
        let per_day = i64::from(rules::MINUTES_PER_DAY);
        let weekday = (minutes.div_euclid(per_day) + FIRST_DAY).rem_euclid(7);
        LocalTime {
            day: usize::try_from(weekday)
                .ok()
                .and_then(|day| Day::ALL.get(day).copied())
                .unwrap_or(Day::Mon),
            minute: u16::try_from(minutes.rem_euclid(per_day)).unwrap_or(0),
        }
    }

    /// What a call of the arm is expected to take.
    pub(crate) fn expected(&self, arm: &Arm, context_tokens: u64, warm: Option<&Warm>) -> Amount {
        let cached_tokens = warm
            .filter(|warm| (0..WARM_MS).contains(&self.now_ms().saturating_sub(warm.at_ms)))
            .map_or(0, |warm| warm.tokens);
        let call = Expectation {
            prompt_tokens: context_tokens.max(cached_tokens).saturating_add(OVERHEAD_TOKENS),
            cached_tokens,
            typical_output_tokens: TYPICAL_ANSWER,
            max_output_tokens: arm.answer_limit().map(u64::from),
            custom: self.options.limits.custom_units(&arm.name(), &arm.pools),
        };
        pool::expected(&call, &arm.price.unwrap_or_default())
    }

    fn why(&self, arm: &Arm, choice: &Choice, offers: &[Offer], moment: Moment<'_>) -> String {
        let name = arm.name();
        if moment.pin == Some(&name) || self.options.pinned.as_ref() == Some(&name) {
            return "asked for by name".to_owned();
        }
        if offers.len() == 1 {
            return "the configured model".to_owned();
        }
        let of = |candidate: &&Candidate| {
            offers.get(candidate.offer).is_some_and(|offer| offer.arm == name)
        };
        let Some(candidate) = choice.candidates.iter().find(of) else {
            return "the only one left".to_owned();
        };
        if choice.candidates.len() == 1 {
            return "the only one that can do it now".to_owned();
        }
        format!(
            "right {:.0} % of the time for about ${:.3}, best of {}",
            candidate.quality * 100.0,
            candidate.cost,
            choice.candidates.len()
        )
    }

    fn reasons(&self, choice: &Choice, offers: &[Offer]) -> Vec<String> {
        let reason = |(index, why): &(usize, gnoma_router::Exclusion)| {
            Some(format!("{} {}", offers.get(*index)?.arm, why.words()))
        };
        choice.excluded.iter().filter_map(reason).collect()
    }
}

/// The candidate worth most, knowledge included.
fn best(candidates: &[Candidate]) -> Option<&Candidate> {
    let worth = |candidate: &Candidate| candidate.value.map(|value| value + candidate.knowledge);
    let known = candidates.iter().filter(|candidate| candidate.value.is_some());
    known.max_by(|left, right| {
        worth(left).unwrap_or(f64::MIN).total_cmp(&worth(right).unwrap_or(f64::MIN))
    })
}

/// The next best arm of another provider where there is one, else of the same.
fn second_best(choice: &Choice, offers: &[Offer], arms: &[Arm], first: &Arm) -> Option<Arm> {
    let first = first.name();
    let mut ranked: Vec<&Candidate> = choice.candidates.iter().collect();
    ranked.sort_by(|left, right| {
        right.value.unwrap_or(f64::MIN).total_cmp(&left.value.unwrap_or(f64::MIN))
    });
    let named =
        |candidate: &&&Candidate| offers.get(candidate.offer).map(|offer| offer.arm.clone());
    let others: Vec<ModelRef> = ranked
        .iter()
        .filter_map(|candidate| named(&candidate))
        .filter(|name| *name != first)
        .collect();
    let elsewhere = others.iter().find(|name| name.provider != first.provider);
    let name = elsewhere.or(others.first())?;
    arms.iter().find(|arm| arm.name() == *name).cloned()
}

/// Micro-dollars that a warm cache saves.
fn saved(arm: &Arm, warm: Option<&Warm>, now_ms: i64) -> u64 {
    let (Some(price), Some(warm)) = (arm.price, warm) else { return 0 };
    let age = now_ms.saturating_sub(warm.at_ms);
    if !(0..WARM_MS).contains(&age) || price.cache_read == 0 {
        return 0;
    }
    let cold = price.of(&Usage { input: warm.tokens, ..Usage::default() });
    cold.saturating_sub(price.of(&Usage { cache_read: warm.tokens, ..Usage::default() }))
}

/// Micro-dollars that the arm's cache saves on a request like the last one.
pub(crate) fn cached(arm: &Arm, warm: &HashMap<ModelRef, Warm>, now_ms: i64) -> u64 {
    saved(arm, warm.get(&arm.name()), now_ms)
}

/// A strategy's name for people and programs.
pub(crate) fn name_of(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::Auto => "auto",
        Strategy::Single => "single",
        Strategy::Cascade => "cascade",
        Strategy::Ensemble => "ensemble",
        Strategy::Synthesis => "synthesis",
    }
}
