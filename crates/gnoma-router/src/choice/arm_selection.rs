//! Chooses the arms of a turn: its plan, and which arm takes over, continues, reviews or summarizes. Pure decisions
//! over what the [`RoutingState`] knows.

use std::{collections::HashMap, sync::Arc};

use gnoma_core::{ModelRef, Usage, ledger::Level, session::Routing};

use super::{
    choice_reasons::{WeighedOffers, exclusion_reasons},
    offers::ChoiceContext,
    route_plan::{NoArm, RoutePlan},
    routing_state::RoutingState,
    settings::{Strategy, Verify},
    turn_task::Task,
};
use crate::{
    arm::{Arm, Offer},
    classify::TaskType,
    pool::Scope,
    router::{Decision, RouterChoice, WeighedArm},
    rules::{AppliedRules, Role, WorkStage},
    task::{Attempt, Situation, TaskKind},
};

/// Arms that are tried in place of others that failed, in one turn.
const MOST_MOVES: u32 = 8;
const MICRO: f64 = 1e6;

impl RoutingState {
    /// Returns how a turn with this text would be routed now. Calls no model and starts nothing; only the text is
    /// judged. `levels` says how much of each [limit](Self::all_draws) is used.
    ///
    /// # Errors
    /// No arm can do it: a line for each arm, with the reason.
    pub fn preview_routing(
        &mut self,
        words: &str,
        context_tokens: u64,
        levels: &[Level],
        now_ms: i64,
    ) -> Result<Routing, Vec<String>> {
        let settings = Arc::clone(&self.settings);
        let task = Task::from_words(words.to_owned(), false, context_tokens, true, &settings);
        let context = ChoiceContext {
            warm: &HashMap::new(),
            levels,
            pin: settings.pinned.as_ref(),
            may_wait: true,
            scope: &Scope::new(""),
            failed: &[],
            now_ms,
        };
        let begun = self.plan_route(task, settings.seed, context);
        begun
            .map(|(_, routing)| routing)
            .map_err(|NoArm { dead_end, reasons }| dead_end.into_iter().chain(reasons).collect())
    }

    /// Chooses the way of a turn, and explains it.
    ///
    /// # Errors
    /// No arm can do it.
    pub fn plan_route(
        &mut self,
        task: Task,
        seed: u64,
        context: ChoiceContext<'_>,
    ) -> Result<(RoutePlan, Routing), NoArm> {
        self.see_budgets(context.levels, context.now_ms);
        let role = self.turn_role(&task);
        let (offers, applied) = self.build_offers(&task, &[], context, role);
        let (strategy, choice) = self.choose_strategy(&task, &offers, &applied, seed, context);
        let mut chosen = chosen_arms(&choice, &offers);
        let Some(arm) = chosen.next() else {
            let reasons = exclusion_reasons(&choice, &offers);
            return Err(NoArm { dead_end: applied.dead_end, reasons });
        };
        let mut beside: Vec<Arc<Arm>> = chosen.collect();
        if strategy.is_panel() && beside.is_empty() {
            beside.extend(second_best(&choice, &offers, &arm.id));
        }
        let is_alone = strategy.is_panel() && beside.is_empty();
        let strategy = if is_alone { Strategy::Single } else { strategy };
        let weighed = WeighedOffers { offers: &offers, applied: &applied, choice: &choice };
        let (why, candidates) = self.explain_choice(&arm, role, weighed, context);
        let routing = Routing {
            kind: task.need.kind.0.to_string(),
            complexity: task.classified.complexity,
            decided_by: task.classified.decided_by.name().to_owned(),
            strategy: strategy.name().to_owned(),
            arms: std::iter::once(&arm).chain(&beside).map(|arm| arm.id.clone()).collect(),
            why: why.clone(),
            candidates,
            seed,
        };
        let is_pinned = context.pin.is_some();
        let plan = RoutePlan {
            is_looking: strategy.is_panel() && task.need.tools,
            bounds: applied.bounds,
            is_pinned,
            ..RoutePlan::new(task, seed, strategy, arm, beside, why)
        };
        Ok((plan, routing))
    }

    /// After a checked attempt: the arm that continues, or `None` if the work is delivered.
    #[must_use]
    pub fn choose_successor(
        &self,
        plan: &RoutePlan,
        context: ChoiceContext<'_>,
    ) -> Option<Arc<Arm>> {
        let left = self.settings.max_attempts.saturating_sub(plan.attempts.len());
        if left == 0 || plan.attempts.last()?.verdict == Some(true) {
            return None;
        }
        let situation = Situation {
            need: plan.task.router_need(),
            attempts: plan.attempts.clone(),
            attempts_left: left,
            verified: true,
        };
        self.choose_next(plan, &situation, context)
    }

    /// Another arm for the attempt under way, in place of one that failed.
    #[must_use]
    pub fn choose_replacement(
        &self,
        plan: &RoutePlan,
        context: ChoiceContext<'_>,
    ) -> Option<Arc<Arm>> {
        if plan.moves >= MOST_MOVES {
            return None;
        }
        let situation = Situation {
            need: plan.task.router_need(),
            attempts: Vec::new(),
            attempts_left: 1,
            verified: false,
        };
        self.choose_next(plan, &situation, context)
    }

    /// Chooses the arm that goes on with a turn, among those that were not given up.
    fn choose_next(
        &self,
        plan: &RoutePlan,
        situation: &Situation,
        context: ChoiceContext<'_>,
    ) -> Option<Arc<Arm>> {
        let role = self.turn_role(&plan.task);
        let (offers, applied) = self.build_offers(&plan.task, &plan.given_up, context, role);
        let choice = applied.choose(&self.router, situation, &offers, plan.seed);
        chosen_arms(&choice, &offers).next()
    }

    /// Returns the role that a turn with this task is for, and the arm that is set for it.
    fn turn_role(&self, task: &Task) -> Option<(Role, &ModelRef)> {
        self.settings.roles.arm_for_stage(WorkStage::Turn(task.classified.kind))
    }

    /// The single arm, the cascade or several at once, by what each is worth; or what was asked for.
    fn choose_strategy(
        &self,
        task: &Task,
        offers: &[Offer],
        applied: &AppliedRules,
        seed: u64,
        context: ChoiceContext<'_>,
    ) -> (Strategy, RouterChoice) {
        if !context.failed.is_empty() {
            return (Strategy::Single, self.choose_stronger(task, offers, applied, seed, context));
        }
        let choose = |verified, attempts_left| {
            let (need, attempts) = (task.router_need(), Vec::new());
            let situation = Situation { need, attempts, attempts_left, verified };
            applied.choose(&self.router, &situation, offers, seed)
        };
        let single = choose(false, 1);
        let most = self.settings.max_attempts.min(single.candidates.len());
        match self.settings.strategy {
            Strategy::Single | Strategy::Ensemble | Strategy::Synthesis => {
                return (self.settings.strategy, single);
            }
            Strategy::Auto | Strategy::Cascade => (),
        }
        if most < 2 {
            return (Strategy::Single, single);
        }
        let checked = choose(true, most);
        if !task.need.tools || !self.can_check(task) {
            let several = matches!(&checked.decision, Decision::Run(names) if names.len() > 1);
            if several && self.settings.strategy == Strategy::Auto {
                return (panel_strategy(task), checked);
            }
            return (Strategy::Single, single);
        }
        let value = |choice| first_candidate(choice, offers).and_then(|first| first.value);
        let values = value(&checked).zip(value(&single));
        let gains = |(checked, single)| checked - single > self.check_cost(task, context);
        if self.settings.strategy == Strategy::Cascade || values.is_some_and(gains) {
            (Strategy::Cascade, checked)
        } else {
            (Strategy::Single, single)
        }
    }

    /// Chooses among the arms that have not failed at the task, as after attempts that a check rejected.
    fn choose_stronger(
        &self,
        task: &Task,
        offers: &[Offer],
        applied: &AppliedRules,
        seed: u64,
        context: ChoiceContext<'_>,
    ) -> RouterChoice {
        let rejected =
            |arm: &ModelRef| Attempt { arm: arm.clone(), verdict: Some(false), cost_micro_usd: 0 };
        let situation = Situation {
            need: task.router_need(),
            attempts: context.failed.iter().map(rejected).collect(),
            attempts_left: 1,
            verified: true,
        };
        let mut choice = applied.choose(&self.router, &situation, offers, seed);
        // A person asks for another attempt, whatever it is worth.
        if !matches!(choice.decision, Decision::Run(_)) {
            let quality = |it: &&WeighedArm| it.quality;
            let best = choice
                .candidates
                .iter()
                .max_by(|one, other| quality(one).total_cmp(&quality(other)));
            let best = best.and_then(|best| offers.get(best.offer));
            choice.decision =
                best.map_or(Decision::Impossible, |best| Decision::Run(vec![best.arm.id.clone()]));
        }
        choice
    }

    /// Reports whether a check or a reviewer can look at the work of the task.
    fn can_check(&self, task: &Task) -> bool {
        match self.settings.verify {
            Verify::Off => false,
            Verify::Checks => task.changes_code && !self.settings.checks.is_empty(),
            Verify::Reviewer | Verify::Auto => task.changes_code,
        }
    }

    /// Dollars that a look at the work costs: nothing for the project's checks.
    fn check_cost(&self, task: &Task, context: ChoiceContext<'_>) -> f64 {
        let by_checks =
            !self.settings.checks.is_empty() && self.settings.verify != Verify::Reviewer;
        if by_checks || self.settings.verify == Verify::Checks {
            return 0.0;
        }
        let glance = Usage {
            input: task.need.context_tokens.clamp(2_000, 20_000),
            output: 400,
            ..Usage::default()
        };
        let reviewers = self.rank_reviewers(task, context, None);
        let price = reviewers.first().and_then(|reviewer| reviewer.price);
        price.map_or(0.0, |price| price.cost_micro_usd(&glance) as f64 / MICRO)
    }

    /// Returns the arms that may see the work of `author` and can review it, in the order in which they are asked:
    /// first the arm that is named for it, then the others by how good they are believed to be at it. No arm
    /// reviews its own work, and no busy arm is waited for.
    #[must_use]
    pub fn rank_reviewers(
        &self,
        task: &Task,
        context: ChoiceContext<'_>,
        author: Option<&ModelRef>,
    ) -> Vec<Arc<Arm>> {
        let kind = TaskKind::new("review");
        let quality = |offer: &Offer| self.router.estimate_arm(&offer.arm.id, &kind).quality;
        let role = self.settings.roles.arm_for_stage(WorkStage::Verify);
        let context = ChoiceContext { may_wait: false, ..context };
        let (mut offers, applied) = self.build_offers(task, &[], context, role);
        offers.retain(|offer| offer.barred.is_none() && Some(&offer.arm.id) != author);
        // Who is named for it first, then whoever is believed to be best at it.
        let is_named = |offer: &Offer| applied.role.as_ref() == Some(&offer.arm.id);
        gnoma_core::sort::sort_by(&mut offers, |left, right| {
            let named = is_named(right).cmp(&is_named(left));
            named.then(quality(right).total_cmp(&quality(left)))
        });
        offers.into_iter().map(|offer| offer.arm).collect()
    }

    /// Returns the arms that may see a conversation and can summarize its past, in the order in which they are
    /// asked: the arm that is named for chores, then the arm that answered last, or else the first that is free.
    #[must_use]
    pub fn rank_summarizers(
        &self,
        task: &Task,
        context: ChoiceContext<'_>,
        last: Option<&ModelRef>,
    ) -> Vec<Arc<Arm>> {
        // Whoever pins an arm means the turns; a chore may be another's.
        let (offers, _) =
            self.build_offers(task, &[], ChoiceContext { pin: None, ..context }, None);
        let is_free = |offer: &&Offer| {
            offer.barred.is_none() && (!self.settings.local_only || offer.arm.stays_here)
        };
        let free =
            |name: &ModelRef| offers.iter().filter(is_free).find(|offer| offer.arm.id == *name);
        let named =
            self.settings.roles.arm_for_stage(WorkStage::Chore).and_then(|(_, name)| free(name));
        let last = context.pin.or(last);
        // Who is asked for by name replaces nobody else.
        let anybody = || offers.iter().find(is_free).filter(|_| context.pin.is_none());
        let answering = last.and_then(free).or_else(anybody);
        let mut ranked: Vec<Arc<Arm>> =
            named.into_iter().chain(answering).map(|offer| Arc::clone(&offer.arm)).collect();
        ranked.dedup_by(|one, other| one.id == other.id);
        ranked
    }

    /// The reason for a change of arms, and whose role another plays from now on.
    #[must_use]
    pub fn in_place_of(&self, plan: &RoutePlan, from: &ModelRef, why: String) -> String {
        match self.turn_role(&plan.task).filter(|(_, name)| *name == from) {
            Some((role, _)) => {
                format!("{why}; another model takes the role `{}`", role.name())
            }
            None => why,
        }
    }
}

/// Returns how several answers are combined: for a plan all of them are of use; for other tasks one has to be
/// chosen.
fn panel_strategy(task: &Task) -> Strategy {
    match task.classified.kind {
        TaskType::Planning | TaskType::Orchestration => Strategy::Synthesis,
        _ => Strategy::Ensemble,
    }
}

/// Returns the arms that are to run by a choice, the first of them first.
fn chosen_arms(choice: &RouterChoice, offers: &[Offer]) -> impl Iterator<Item = Arc<Arm>> {
    let names = match &choice.decision {
        Decision::Run(names) => names.as_slice(),
        Decision::Accept(_) | Decision::Impossible => &[],
    };
    names.iter().filter_map(|name| arm_of_offers(offers, name))
}

fn arm_of_offers(offers: &[Offer], name: &ModelRef) -> Option<Arc<Arm>> {
    let offer = offers.iter().find(|offer| offer.arm.id == *name)?;
    Some(Arc::clone(&offer.arm))
}

/// The candidate that is to begin.
fn first_candidate<'c>(choice: &'c RouterChoice, offers: &[Offer]) -> Option<&'c WeighedArm> {
    let Decision::Run(names) = &choice.decision else { return None };
    let is_first = |candidate: &&WeighedArm| {
        offers.get(candidate.offer).map(|offer| &offer.arm.id) == names.first()
    };
    choice.candidates.iter().find(is_first)
}

/// The next best arm of another provider if there is one, else of the same.
fn second_best(choice: &RouterChoice, offers: &[Offer], first: &ModelRef) -> Option<Arc<Arm>> {
    let mut ranked: Vec<&WeighedArm> = choice.candidates.iter().collect();
    gnoma_core::sort::sort_by(&mut ranked, |left, right| {
        right.value.unwrap_or(f64::MIN).total_cmp(&left.value.unwrap_or(f64::MIN))
    });
    let named =
        |candidate: &&&WeighedArm| offers.get(candidate.offer).map(|offer| offer.arm.id.clone());
    let others: Vec<ModelRef> = ranked
        .iter()
        .filter_map(|candidate| named(&candidate))
        .filter(|name| name != first)
        .collect();
    let elsewhere = others.iter().find(|name| name.provider != first.provider);
    let name = elsewhere.or(others.first())?;
    arm_of_offers(offers, name)
}
