//! Choosing an arm for a turn; and what a person says about the choice.

use std::{sync::Arc, time::Duration};

use gnoma_core::{
    Content, ErrorKind, Event, Message, ModelRef, ProviderError, Role,
    ledger::Level,
    lifecycle::{Point, PointKind},
    session::{NoticeLevel, Routing},
};
use gnoma_router::{
    Arm,
    choice::{ChoiceContext, NoArm, RoutePlan, Task},
};
use tokio::time::timeout;

use super::{
    room::LEDGER_PATIENCE,
    router::Pin,
    state::{FrontEndGone, PendingWork, Session},
};
use crate::{
    Routes,
    call::{CallInput, Delivery},
    routing::{
        OWN,
        ask::{Account, ArmReply, Share},
        review, signals,
    },
};

/// Most earlier messages of a person that are read to find out what "go on" means.
const MAX_PAST_TASKS: usize = 8;
/// Longest wait for the arm that says what kind of task it is.
const CLASSIFIER_PATIENCE: Duration = Duration::from_secs(2);

impl Session {
    pub(super) async fn route_turn(&mut self) -> Result<(), FrontEndGone> {
        self.router.plan = None;
        self.tell_unsettled().await?;
        self.look_for_paths();
        let mut task = self.current_task();
        if let Some(plan) = self.router.last.take() {
            let verdict = self.router.take_verdict();
            let right = verdict.or_else(|| self.reaction_to(&plan, &task));
            self.learn_outcome(&plan, right);
            task = task.with_previous_kind(&plan.task);
        } else if let Some(before) = self.task_before() {
            task = task.with_previous_kind(&before);
        }
        self.router.begin_turn();
        let routes = Arc::clone(&self.router.routes);
        let count = routes.arms().len();
        let heard =
            routes.hear_others().filter(|_| count > 1 && self.router.pinned_model().is_none());
        let limited = || routes.with_state(|state| state.limited_draws(&self.router.scope));
        let is_limited = heard.is_some() || !limited().is_empty();
        let ledger = routes.ledger().filter(|_| is_limited).cloned();
        let classifier = routes.settings.classifier.as_ref().filter(|_| count > 1);
        let may_see = |arm: &Arc<Arm>| may_see_task(&routes, arm, &task);
        let classifier = classifier.and_then(|name| routes.find_arm(name)).filter(may_see);
        if heard.is_none() && ledger.is_none() && classifier.is_none() {
            return self.begin_route(&task, Vec::new(), Vec::new()).await;
        }
        let (at_ms, account) = (routes.now_ms(), self.account());
        self.wait_for(async move {
            if let Some(heard) = heard {
                // Whoever is not heard of is found out about by asking.
                let _unheard = timeout(LEDGER_PATIENCE, heard).await;
            }
            let limited = routes.with_state(|state| state.limited_draws(&account.scope));
            let levels = async {
                let ledger = ledger.filter(|_| !limited.is_empty())?;
                timeout(LEDGER_PATIENCE, ledger.limit_levels(limited, at_ms)).await.ok()?.ok()
            };
            let (levels, (task, shares, failure)) =
                tokio::join!(levels, classify_task(task, classifier, &account));
            PendingWork::Task(task, shares, levels.unwrap_or_default(), failure)
        });
        Ok(())
    }

    /// Returns what the begin of a task says about the work of the turn before: right, wrong, or nothing.
    fn reaction_to(&self, plan: &RoutePlan, task: &Task) -> Option<bool> {
        if task.step.is_none() {
            return signals::classify_reaction(&task.words, &plan.task.words);
        }
        // The words of a step are no reaction, but a person may want a stronger model for it.
        self.router.failed_models.contains(&plan.arm.id).then_some(false)
    }

    /// Begins the way of the turn with what is known of its task. `shares`: what finding out took.
    pub(super) async fn begin_route(
        &mut self,
        task: &Task,
        shares: Vec<Share>,
        levels: Vec<Level>,
    ) -> Result<(), FrontEndGone> {
        self.router.levels = levels;
        let mut begun = self.plan_route(task, &self.router.levels);
        if begun.is_err() && !self.router.failed_models.is_empty() {
            self.router.failed_models.clear();
            let text = "no other model can do this step, so the same one tries it again";
            self.notify(NoticeLevel::Warning, text.to_owned()).await?;
            begun = self.plan_route(task, &self.router.levels);
        }
        // A call that only limits are in the way of is refused when it is reserved: by then it is known what it takes.
        let begun = begun.or_else(|no_arm| self.plan_route(task, &[]).map_err(|_| no_arm));
        let routed = match begun {
            Ok((plan, routing)) => {
                let delivery = match (plan.is_looking, plan.is_checked()) {
                    (true, _) => Delivery::Conferred,
                    (false, true) => Delivery::Checked,
                    (false, false) => Delivery::Direct,
                };
                self.router.plan = Some(plan);
                if self.router.routes.arms().len() > 1 {
                    self.emit(Event::Routed(Box::new(routing))).await?;
                }
                Ok(delivery)
            }
            Err(no_arm) => Err(no_arm_error(&no_arm)),
        };
        self.inbox.push_back(CallInput::Chosen(routed).into());
        self.tell_costs(shares).await
    }

    /// Warns, once a session, that the arm which classifies does not answer.
    pub(super) async fn tell_classifier_failure(
        &mut self,
        failure: Option<String>,
    ) -> Result<(), FrontEndGone> {
        match failure {
            Some(text) if !self.router.is_classifier_told => {
                self.router.is_classifier_told = true;
                self.notify(NoticeLevel::Warning, text).await
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Plans the way of a turn as the limits stand.
    fn plan_route(&self, task: &Task, levels: &[Level]) -> Result<(RoutePlan, Routing), NoArm> {
        let routes = &self.router.routes;
        let seed = routes.settings.seed.wrapping_add(self.router.turns);
        let context = ChoiceContext { levels, ..self.router.choice_context() };
        let begun = routes.with_state(|state| state.plan_route(task.clone(), seed, context));
        // Where no arm is known for answers in a form, or for thinking, another one is asked.
        let is_special = task.need.structured_output || task.need.thinking;
        if begun.is_ok() || !is_special {
            return begun;
        }
        let task = task.clone().with_needs(false, false);
        routes.with_state(|state| state.plan_route(task, seed, context))
    }

    /// Returns the task that the person asks for.
    pub(super) fn current_task(&mut self) -> Task {
        let context_tokens = self.context_tokens();
        let history = self.turn.history();
        let said = history.iter().rev().find(|message| message.role() == Role::User);
        let words = said.map(|message| message.text_content()).unwrap_or_default();
        let has_images = self.turn.conversation().1.iter().any(|message| has_images(message));
        let settings = &self.router.routes.settings;
        let matters = self.router.routes.arms().len() > 1 || !settings.rules.is_empty();
        let mut task = Task::from_words(words, has_images, context_tokens, matters, settings);
        task.touched = self.router.concern.matched_paths();
        task.step.clone_from(&self.router.step);
        let thinking = self.router.thinking.is_needed(&task.words);
        task.with_needs(self.turn.has_shape(), thinking)
    }

    /// The subject of a resumed conversation before its last message.
    fn task_before(&self) -> Option<Task> {
        let routes = &self.router.routes;
        if routes.arms().len() < 2 && routes.settings.rules.is_empty() {
            return None;
        }
        let said = self
            .turn
            .history()
            .iter()
            .filter(|message| message.role() == Role::User && !message.is_system_note());
        let said: Vec<_> = said.rev().skip(1).take(MAX_PAST_TASKS).collect();
        let task = |message: &&Arc<Message>| {
            Task::from_words(message.text_content(), false, 0, true, &routes.settings)
        };
        let tasks = said.iter().rev().map(task);
        tasks.reduce(|before, task| task.with_previous_kind(&before))
    }

    /// The turn's need has grown with what came since it began.
    pub(super) fn weigh_context(&mut self) {
        let tokens = self.context_tokens();
        if let Some(plan) = &mut self.router.plan {
            let need = &mut plan.task.need.context_tokens;
            *need = tokens.max(*need);
        }
    }

    /// Whose money questions beside the conversation cost.
    pub(super) fn account(&self) -> Account {
        Account {
            routes: Arc::clone(&self.router.routes),
            firewall: Arc::clone(&self.firewall),
            scope: Arc::clone(&self.router.scope),
            task: self.router.plan.as_ref().and_then(|plan| plan.task.known_kind().cloned()),
            used: self.used_extensions(),
            part: "",
            dropped: self.spending.dropped.clone(),
        }
    }

    /// A person says whether the last turn's work was right.
    pub(super) async fn rate_turn(&mut self, good: bool) -> Result<(), FrontEndGone> {
        let last = self.router.last.as_ref().and_then(|plan| plan.attempts.last());
        let Some(arm) = last.map(|attempt| attempt.arm.clone()) else {
            return self.notify(NoticeLevel::Info, "nothing to rate yet".to_owned()).await;
        };
        // Learned with the next turn, so that a slip can be corrected until then.
        let before = self.router.rating.replace(good);
        let rating = if good { "good" } else { "bad" };
        let text = match before {
            Some(before) if before != good => {
                format!("changed the rating of the last answer, by {arm}, to {rating}")
            }
            _ => format!("rated the last answer, by {arm}, as {rating}"),
        };
        self.notify(NoticeLevel::Info, text).await
    }

    /// Only this arm is asked from the next turn on; `None`: whichever the router chooses.
    pub(super) async fn pin_arm(&mut self, arm: Option<ModelRef>) -> Result<(), FrontEndGone> {
        let (level, text) = match arm {
            None => {
                self.router.pin = Pin::Nobody;
                let to = String::new();
                self.tell_point(PointKind::ModelSwitched, || Point::ModelSwitched { to });
                (
                    NoticeLevel::Info,
                    "from the next turn on, the router chooses a model for each \
                                     turn"
                        .to_owned(),
                )
            }
            Some(name) if self.router.routes.find_arm(&name).is_some() => {
                let to = name.to_string();
                self.tell_point(PointKind::ModelSwitched, || Point::ModelSwitched { to });
                let text = format!("{name} answers from the next turn on");
                self.router.pin = Pin::Arm(name);
                (NoticeLevel::Info, text)
            }
            Some(name) => {
                (NoticeLevel::Warning, format!("{name} is not one of this session's models"))
            }
        };
        self.notify(level, text).await
    }
}

/// That no arm can be asked, as a failure.
fn no_arm_error(no_arm: &NoArm) -> ProviderError {
    let why = match (&no_arm.dead_end, no_arm.reasons.as_slice()) {
        (Some(why), _) => why.clone(),
        (None, []) => "no model is configured".to_owned(),
        (None, reasons) => format!("no model is available: {}", reasons.join("; ")),
    };
    ProviderError::new(ErrorKind::NotFound, OWN, why)
        .with_hint("`gnoma route \"TASK\"` shows every model with what excludes it.")
}

fn has_images(message: &Message) -> bool {
    message.content().iter().any(|content| match content {
        Content::Image(_) => true,
        Content::ToolResult(result) => result.images().next().is_some(),
        Content::Text(_)
        | Content::Thinking(_)
        | Content::RedactedThinking(_)
        | Content::ToolCall(_) => false,
    })
}

/// Reports whether the rules let an arm see a task.
fn may_see_task(routes: &Routes, arm: &Arm, task: &Task) -> bool {
    let now_ms = routes.now_ms();
    routes.with_state(|state| state.kept_from(&arm.id, task, now_ms)).is_none()
}

/// Lets an arm classify the task; the type that the words suggest is used if it says nothing useful. Returns a warning
/// as well if it does not answer.
async fn classify_task(
    task: Task,
    classifier: Option<Arc<Arm>>,
    account: &Account,
) -> (Task, Vec<Share>, Option<String>) {
    let Some(arm) = classifier else { return (task, Vec::new(), None) };
    let request = review::classifier_request(&arm, &task.words);
    let ArmReply { text, shares } = account.ask_arm(&arm, request, CLASSIFIER_PATIENCE).await;
    let failure = text.as_ref().err().map(|error| {
        let name = arm.id.clone();
        format!("{name}, which classifies requests (`slm`), does not answer: {error}")
    });
    (task.with_judgement(text.ok().as_deref()), shares, failure)
}
