//! What a session knows of the [`Routes`]: the plan of its turn, and what matters for the next choice.
//!
//! A turn is routed once, before its first call. gnoma learns its outcome when the person's next message, or the
//! end of the session, has shown what they think of it.

use std::{collections::HashMap, sync::Arc};

use gnoma_core::{
    ErrorKind, ModelRef, ProviderError, ThinkingMode, ledger::Level, session::Outcome,
    suggest::find_model, tool::CommandReport,
};
use gnoma_router::{
    choice::{ChoiceContext, RoutePlan, WarmPrompt},
    pool::Scope,
    rules::MatchedPaths,
};

use super::thinking::Thinking;
use crate::routing::{
    OWN,
    routes::Routes,
    signals::{Signals, ToolHandling},
};

/// The arm that a person has chosen by name, if any.
pub(super) enum Pin {
    AsConfigured,
    /// The router chooses, whatever is configured.
    Nobody,
    Arm(ModelRef),
}

pub(super) struct Router {
    pub(super) routes: Arc<Routes>,
    /// The amount that models think.
    pub(super) thinking: Thinking,
    /// Of the turn under way.
    pub(super) plan: Option<RoutePlan>,
    /// What the current turn has shown about the work, or the last one until another is routed.
    pub(super) signals: Signals,
    /// Of the last turn, until it is clear what the person thinks of it.
    pub(super) last: Option<RoutePlan>,
    /// True if the person said that the work of the last turn was right, false if wrong; the last word counts.
    pub(super) rating: Option<bool>,
    /// Session and turn, as their spending is counted.
    pub(super) scope: Arc<Scope>,
    pub(super) turns: u64,
    /// The time when this process took the session up, in milliseconds since 1970. A process numbers only its own
    /// turns.
    began_ms: i64,
    pub(super) pin: Pin,
    /// The arm that the turn under way asks, where what was said wants one.
    pub(super) turn_pin: Option<ModelRef>,
    /// Models that failed at the step of a task which the turn repeats: a stronger one is asked.
    pub(super) failed_models: Vec<ModelRef>,
    /// The step of a saved task that the turn is.
    pub(super) step: Option<Arc<str>>,
    /// True if a check that a step ran after the work of the last turn was green, false if it was red.
    pub(super) checked: Option<bool>,
    /// Prompts that may be warm.
    pub(super) warm: HashMap<ModelRef, WarmPrompt>,
    /// The levels that say how much of each limit is used.
    pub(super) levels: Vec<Level>,
    /// The state of what rules about files ask for.
    pub(super) concern: MatchedPaths,
    /// Messages of the history that were looked at for it.
    pub(super) looked_at: usize,
    /// The person knows that the arm which classifies does not answer.
    pub(super) is_classifier_told: bool,
}

impl Router {
    pub(super) fn new(routes: Arc<Routes>, scope: Scope) -> Self {
        let (concern, began_ms) = (routes.settings.new_concern(), routes.now_ms());
        Self {
            routes,
            thinking: Thinking::default(),
            plan: None,
            signals: Signals::default(),
            last: None,
            rating: None,
            scope: Arc::new(scope),
            turns: 0,
            began_ms,
            pin: Pin::AsConfigured,
            turn_pin: None,
            failed_models: Vec::new(),
            step: None,
            checked: None,
            warm: HashMap::new(),
            levels: Vec::new(),
            concern,
            looked_at: 0,
            is_classifier_told: false,
        }
    }

    /// The same, with models that think so much.
    pub(super) fn with_thinking(mut self, mode: Option<ThinkingMode>) -> Self {
        self.thinking.set_mode(mode);
        self
    }

    /// The same, with a first turn that is this step of a saved task.
    pub(super) fn for_step(mut self, step: Option<Arc<str>>) -> Self {
        self.step = step;
        self
    }

    /// A turn begins; it is not routed yet.
    pub(super) fn begin_turn(&mut self) {
        self.plan = None;
        self.signals = Signals::default();
        self.turns += 1;
        let turn = format!("{}-{:x}-{}", self.scope.session(), self.began_ms, self.turns);
        self.scope = Arc::new(self.scope.in_turn(turn));
    }

    /// A turn has ended: gives its plan, closed by what the turn has shown.
    pub(super) fn end_turn(
        &mut self,
        outcome: &Outcome,
        handling: ToolHandling,
    ) -> Option<RoutePlan> {
        let mut plan = self.plan.take()?;
        match outcome {
            Outcome::Complete { .. } if plan.is_open => {
                let green = self.signals.last_check().map(|(_, green)| green);
                plan.close_attempt(green.or_else(|| handling.verdict()));
            }
            Outcome::Stuck { .. } | Outcome::Unfit { .. } if plan.is_open => {
                plan.close_attempt(Some(false));
            }
            // A person's stop or limit and a provider's failure say nothing of the work under way.
            Outcome::Complete { .. }
            | Outcome::Stuck { .. }
            | Outcome::Unfit { .. }
            | Outcome::RoundLimit { .. }
            | Outcome::Cancelled
            | Outcome::Failed { .. } => (),
        }
        Some(plan)
    }

    /// Keeps the plan of a turn until the person's next words.
    pub(super) fn put_away(&mut self, plan: RoutePlan) {
        if !plan.attempts.is_empty() {
            self.last = Some(plan);
            (self.rating, self.checked) = (None, None);
        }
    }

    /// A command of a step of a task has ended. If it is a check, it says whether the work of the turn before was right.
    pub(super) fn record_step_command(&mut self, report: &CommandReport) {
        if self.last.is_some() && self.step.is_some() {
            self.signals.command_ended(report);
            self.checked = self.signals.last_check().map(|(_, green)| green).or(self.checked);
        }
    }

    /// Takes what is known of whether the work of the last turn was right: a person's word, or else a step's check.
    pub(super) fn take_verdict(&mut self) -> Option<bool> {
        self.rating.take().or(self.checked.take())
    }

    /// From now on, models receive the conversation in another form.
    pub(super) fn reset_context(&mut self, tokens: u64) {
        self.warm.clear();
        if let Some(plan) = &mut self.plan {
            plan.task.need.context_tokens = tokens;
        }
    }

    /// The model of this name, if there is one: `provider/model`, the model, or a word of its name.
    pub(super) fn model_by_name(&self, wanted: &str) -> Option<ModelRef> {
        let names: Vec<ModelRef> = self.routes.arms().iter().map(|arm| arm.id.clone()).collect();
        find_model(wanted, names.iter()).cloned()
    }

    /// Returns the model that the settings give this role, such as `small`, if it can be asked.
    pub(super) fn model_by_role(&self, role: &str) -> Option<ModelRef> {
        let arm = self.routes.settings.roles.arm_of(role)?;
        self.model_by_name(&arm.to_string())
    }

    /// Lets the turn that is about to begin use the model of this name, if there is one.
    pub(super) fn pin_turn(&mut self, wanted: &str) -> bool {
        self.turn_pin = self.model_by_name(wanted);
        self.turn_pin.is_some()
    }

    pub(super) fn pinned_model(&self) -> Option<&ModelRef> {
        if !self.failed_models.is_empty() {
            return None;
        }
        if self.turn_pin.is_some() {
            return self.turn_pin.as_ref();
        }
        match &self.pin {
            Pin::AsConfigured => self.routes.settings.pinned.as_ref(),
            Pin::Nobody => None,
            Pin::Arm(name) => Some(name),
        }
    }

    pub(super) fn choice_context(&self) -> ChoiceContext<'_> {
        ChoiceContext {
            warm: &self.warm,
            levels: &self.levels,
            pin: self.pinned_model(),
            may_wait: true,
            scope: &self.scope,
            failed: &self.failed_models,
            now_ms: self.routes.now_ms(),
        }
    }

    /// As a turn sees it that began under another pin.
    pub(super) fn moment_of(&self, plan: &RoutePlan) -> ChoiceContext<'_> {
        ChoiceContext {
            pin: self.pinned_model().filter(|_| plan.is_pinned),
            ..self.choice_context()
        }
    }

    /// Reports whether the current arm only looks yet: several approaches are compared before anything is changed.
    pub(super) fn is_looking(&self) -> bool {
        self.plan.as_ref().is_some_and(|plan| plan.is_looking)
    }

    /// Returns the reason why, by the user's rules, the arm of the turn must not be sent the conversation as it is
    /// now.
    pub(super) fn kept_from(&self) -> Option<ProviderError> {
        let plan = self.plan.as_ref().filter(|_| self.concern.is_asked_for())?;
        let (arm, now_ms) = (&plan.arm.id, self.routes.now_ms());
        let why = self.routes.with_state(|state| state.kept_from(arm, &plan.task, now_ms))?;
        let hint = "Choose a model that may see it (--model or /model), or change the rule.";
        let text = format!("{arm} may not see what was opened: it {why}");
        Some(ProviderError::new(ErrorKind::BadRequest, OWN, text).with_hint(hint))
    }
}
