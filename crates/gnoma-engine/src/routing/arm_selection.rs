//! Chooses the arms of a turn: its plan, and which arm takes over, continues, reviews or summarizes. Pure decisions
//! over what the [`Routes`] know.

use std::{collections::HashMap, sync::Arc};

use gnoma_core::{
    ModelRef, Usage,
    ledger::{Amount, Level, PoolDraw},
    session::Routing,
};
use gnoma_router::{
    Arm, Attempt, Decision, Offer, RouterChoice, Situation, TaskKind, WeighedArm,
    classify::TaskType,
    pool::Scope,
    rules::{AppliedRules, WorkStage},
};

use super::{
    choice_reasons::WeighedOffers,
    offers::ChoiceContext,
    plan::{NoArm, RoutePlan},
    routes::{Routes, Strategy, Verify},
    task::Task,
};

/// Arms that are tried in place of others that failed, in one turn.
const MOST_MOVES: u32 = 8;
const MICRO: f64 = 1e6;

impl Routes {
    /// Returns how a turn with this text would be routed now. Calls no model and starts nothing; only the text is
    /// judged. `levels` says how much of each [limit](Self::all_draws) is used.
    ///
    /// # Errors
    /// No arm can do it: a line for each arm, with the reason.
    pub fn preview_routing(
        &self,
        words: &str,
        has_images: bool,
        context_tokens: u64,
        levels: &[Level],
    ) -> Result<Routing, Vec<String>> {
        let task =
            Task::from_words(words.to_owned(), has_images, context_tokens, true, &self.options);
        let pin = self.options.pinned.as_ref();
        let warm = HashMap::new();
        let scope = Scope::new("");
        let (may_wait, failed, scope) = (true, &[][..], &scope);
        let context = ChoiceContext { warm: &warm, levels, pin, may_wait, scope, failed };
        let begun = self.plan_route(task, self.options.seed, context);
        begun
            .map(|(_, routing)| routing)
            .map_err(|NoArm { dead_end, reasons }| dead_end.into_iter().chain(reasons).collect())
    }

    /// Returns the pools that calls of the arms would draw on in a new turn of a new session, each pool once.
    #[must_use]
    pub fn all_draws(&self) -> Vec<PoolDraw> {
        let mut all: Vec<PoolDraw> = Vec::new();
        let scope = Scope::new("");
        for draw in self.arms().iter().flat_map(|arm| self.draws(arm, &scope)) {
            if !all.contains(&draw) {
                all.push(draw);
            }
        }
        all
    }

    /// The pools that a call of the arm would draw on.
    #[must_use]
    pub fn pools_of(&self, arm: &Arm) -> Vec<String> {
        self.draws(arm, &Scope::new("")).into_iter().map(|draw| draw.pool).collect()
    }

    /// Returns the amount that the first call of a session would take from the arm's pools.
    #[must_use]
    pub fn typical_call(&self, arm: &Arm) -> Amount {
        self.expected_amount(arm, 0, None)
    }

    /// Returns the reason why an arm rests, if it does.
    #[must_use]
    pub fn rest_reason(&self, arm: &Arm) -> Option<String> {
        self.current_rest(arm).map(|rest| rest.why)
    }

    /// Chooses the way of a turn.
    pub(crate) fn plan_route(
        &self,
        task: Task,
        seed: u64,
        context: ChoiceContext<'_>,
    ) -> Result<(RoutePlan, Routing), NoArm> {
        let arms = self.arms();
        self.see_budgets(context.levels);
        let role = self.options.roles.arm_for_stage(WorkStage::Turn(task.classified.kind));
        let (offers, applied) = self.build_offers(&arms, &task, &[], context, role);
        let (strategy, choice) = self.choose_strategy(&task, &offers, &applied, seed, context);
        let mut chosen = chosen_arms(&choice, &arms).into_iter();
        let Some(arm) = chosen.next() else {
            let reasons = self.exclusion_reasons(&choice, &offers);
            return Err(NoArm { dead_end: applied.dead_end, reasons });
        };
        let mut beside: Vec<Arc<Arm>> = chosen.collect();
        if is_panel(strategy) && beside.is_empty() {
            beside.extend(second_best(&choice, &offers, &arms, &arm.id));
        }
        let is_alone = is_panel(strategy) && beside.is_empty();
        let strategy = if is_alone { Strategy::Single } else { strategy };
        let weighed = WeighedOffers { offers: &offers, applied: &applied, choice: &choice, seed };
        let (why, candidates) = self.explain_choice(&arm, role, weighed, context);
        let routing = Routing {
            kind: task.need.kind.0.to_string(),
            complexity: task.classified.complexity,
            decided_by: task.classified.decided_by.name().to_owned(),
            strategy: name_of(strategy).to_owned(),
            arms: std::iter::once(&arm).chain(&beside).map(|arm| arm.id.clone()).collect(),
            why: why.clone(),
            candidates,
            seed,
        };
        let is_pinned = context.pin.is_some();
        let plan = RoutePlan {
            is_looking: is_panel(strategy) && task.need.tools,
            bounds: applied.bounds,
            is_pinned,
            ..RoutePlan::new(task, seed, strategy, arm, beside, why)
        };
        Ok((plan, routing))
    }

    /// After a checked attempt: the arm that continues, or `None` if the work is delivered.
    pub(crate) fn go_on(&self, plan: &RoutePlan, context: ChoiceContext<'_>) -> Option<Arc<Arm>> {
        let arms = self.arms();
        let role = self.options.roles.arm_for_stage(WorkStage::Turn(plan.task.classified.kind));
        let (offers, applied) = self.build_offers(&arms, &plan.task, &plan.given_up, context, role);
        let left = self.options.max_attempts.saturating_sub(plan.attempts.len());
        if left == 0 || plan.attempts.last()?.verdict == Some(true) {
            return None;
        }
        let situation = Situation {
            need: plan.task.router_need(),
            attempts: plan.attempts.clone(),
            attempts_left: left,
            verified: true,
        };
        let choice = applied.choose(&self.lock_router(), &situation, &offers, plan.seed);
        match &choice.decision {
            Decision::Run(names) => arms.iter().find(|arm| Some(&arm.id) == names.first()).cloned(),
            Decision::Accept(_) | Decision::Impossible => None,
        }
    }

    /// Another arm for the attempt under way, in place of one that failed.
    pub(crate) fn choose_replacement(
        &self,
        plan: &RoutePlan,
        context: ChoiceContext<'_>,
    ) -> Option<Arc<Arm>> {
        let arms = self.arms();
        if plan.moves >= MOST_MOVES {
            return None;
        }
        let role = self.options.roles.arm_for_stage(WorkStage::Turn(plan.task.classified.kind));
        let (offers, applied) = self.build_offers(&arms, &plan.task, &plan.given_up, context, role);
        let situation = Situation {
            need: plan.task.router_need(),
            attempts: Vec::new(),
            attempts_left: 1,
            verified: false,
        };
        let choice = applied.choose(&self.lock_router(), &situation, &offers, plan.seed);
        match &choice.decision {
            Decision::Run(names) => arms.iter().find(|arm| Some(&arm.id) == names.first()).cloned(),
            Decision::Accept(_) | Decision::Impossible => None,
        }
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
            applied.choose(&self.lock_router(), &situation, offers, seed)
        };
        let single = choose(false, 1);
        let most = self.options.max_attempts.min(single.candidates.len());
        match self.options.strategy {
            Strategy::Single | Strategy::Ensemble | Strategy::Synthesis => {
                return (self.options.strategy, single);
            }
            Strategy::Auto | Strategy::Cascade => (),
        }
        if most < 2 {
            return (Strategy::Single, single);
        }
        let checked = choose(true, most);
        if !task.need.tools || !self.can_check(task) {
            let several = matches!(&checked.decision, Decision::Run(names) if names.len() > 1);
            if several && self.options.strategy == Strategy::Auto {
                return (panel_strategy(task), checked);
            }
            return (Strategy::Single, single);
        }
        let value = |choice| first_candidate(choice, offers).and_then(|first| first.value);
        let values = value(&checked).zip(value(&single));
        let gains = |(checked, single)| checked - single > self.check_cost(task, context);
        if self.options.strategy == Strategy::Cascade || values.is_some_and(gains) {
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
        let mut choice = applied.choose(&self.lock_router(), &situation, offers, seed);
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
        match self.options.verify {
            Verify::Off => false,
            Verify::Checks => task.changes_code && !self.options.checks.is_empty(),
            Verify::Reviewer | Verify::Auto => task.changes_code,
        }
    }

    /// Dollars that a look at the work costs: nothing for the project's checks.
    fn check_cost(&self, task: &Task, context: ChoiceContext<'_>) -> f64 {
        let by_checks = !self.options.checks.is_empty() && self.options.verify != Verify::Reviewer;
        if by_checks || self.options.verify == Verify::Checks {
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
    pub(crate) fn rank_reviewers(
        &self,
        task: &Task,
        context: ChoiceContext<'_>,
        author: Option<&ModelRef>,
    ) -> Vec<Arc<Arm>> {
        let arms = self.arms();
        let kind = TaskKind::new("review");
        let quality = |offer: &Offer| self.arm_estimate(&offer.arm.id, &kind).quality;
        let role = self.options.roles.arm_for_stage(WorkStage::Verify);
        let context = ChoiceContext { may_wait: false, ..context };
        let (mut offers, applied) = self.build_offers(&arms, task, &[], context, role);
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
    pub(crate) fn rank_summarizers(
        &self,
        task: &Task,
        context: ChoiceContext<'_>,
        last: Option<&ModelRef>,
    ) -> Vec<Arc<Arm>> {
        let arms = self.arms();
        // Whoever pins an arm means the turns; a chore may be another's.
        let (offers, _) =
            self.build_offers(&arms, task, &[], ChoiceContext { pin: None, ..context }, None);
        let is_free = |offer: &&Offer| {
            offer.barred.is_none() && (!self.options.local_only || offer.arm.stays_here)
        };
        let free =
            |name: &ModelRef| offers.iter().filter(is_free).find(|offer| offer.arm.id == *name);
        let named =
            self.options.roles.arm_for_stage(WorkStage::Chore).and_then(|(_, name)| free(name));
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
    pub(crate) fn in_place_of(&self, plan: &RoutePlan, from: &ModelRef, why: String) -> String {
        let stage = WorkStage::Turn(plan.task.classified.kind);
        match self.options.roles.arm_for_stage(stage).filter(|(_, name)| *name == from) {
            Some((role, _)) => {
                format!("{why}; another model takes the role `{}`", role.name())
            }
            None => why,
        }
    }
}

/// Reports whether several arms answer in this strategy.
fn is_panel(strategy: Strategy) -> bool {
    matches!(strategy, Strategy::Ensemble | Strategy::Synthesis)
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
fn chosen_arms(choice: &RouterChoice, arms: &[Arc<Arm>]) -> Vec<Arc<Arm>> {
    let names = match &choice.decision {
        Decision::Run(names) => names.as_slice(),
        Decision::Accept(_) | Decision::Impossible => &[],
    };
    let find = |name: &ModelRef| arms.iter().find(|arm| arm.id == *name);
    names.iter().filter_map(find).cloned().collect()
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
fn second_best(
    choice: &RouterChoice,
    offers: &[Offer],
    arms: &[Arc<Arm>],
    first: &ModelRef,
) -> Option<Arc<Arm>> {
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
    arms.iter().find(|arm| arm.id == *name).cloned()
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
