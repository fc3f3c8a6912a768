//! Tasks in a session: requests about them, and what the run of one wants of the session.

use std::sync::{Arc, Weak};

use gnoma_core::{
    Command, Event, ModelRef,
    info::Choice,
    protocol::{Reply, Request, RequestError, RequestErrorKind, TaskRequest},
    session::{NoticeLevel, PermissionMode},
    suggest::{find_model, nearest_name},
    task::box_future,
};
use gnoma_engine::Rights;

use super::{
    actor::{Actor, MAX_WORK},
    command::{self, between_turns, for_one_turn},
    engine::Engine,
    handle::busy_error,
    replier::Replier,
    task_link::TaskOrder,
    task_run,
};
use crate::tasks::{STRONGER, restricted_mode};

impl Actor {
    /// Does what the run of a task wants.
    pub(super) fn follow_order(&mut self, order: Option<TaskOrder>) {
        // The engine's own mode: the log may not have told of it yet.
        let mode = self.kept.lock().rights.as_ref().map(Rights::mode);
        let (is_interactive, has_own_budget) = {
            let kept = self.kept.lock();
            (kept.spec.interactive, kept.spec.has_own_budget())
        };
        let known = match &self.engine {
            Engine::Open(opened) => (opened.models)(),
            Engine::Opening(_) | Engine::Changing(_) | Engine::Gone => Vec::new(),
        };
        let Some(link) = self.tasks.link() else { return };
        match order {
            None => {
                self.tasks.end_run();
                self.release_held_messages();
            }
            Some(TaskOrder::Tell(text)) => {
                self.push(Event::Notice { level: NoticeLevel::Info, text });
            }
            Some(TaskOrder::Report(report, replier)) => {
                if let Ok(report) = &report {
                    let text = report.summary.clone();
                    // A session that is gone has no hooks to tell.
                    let _gone = self.send_command(Command::Notify { text: text.clone() });
                    self.push(Event::Notice { level: NoticeLevel::Info, text });
                }
                replier.reply(report.map(Reply::Task));
            }
            Some(TaskOrder::Open { modes, models }) => {
                if let Some(error) = unknown_model(&known, &models) {
                    return link.open(Some(error));
                }
                link.open(None);
                let to = mode.map_or(PermissionMode::Deny, |own| restricted_mode(own, &modes));
                link.restriction = mode.filter(|own| *own != to).map(|own| (to, own));
                if mode != Some(to) {
                    // A session that is gone fails the next step.
                    let _gone = self.send_command(Command::SetMode { mode: to });
                }
            }
            Some(TaskOrder::Unrestrict) => {
                if let Some((to, own)) = link.restriction.take()
                    && mode == Some(to)
                {
                    let _gone = self.send_command(Command::SetMode { mode: own });
                }
            }
            Some(TaskOrder::Ask { question, choices }) => {
                let asked = link.ask_question(question, choices, is_interactive);
                self.push_question(asked.into_iter().collect());
            }
            Some(TaskOrder::AskAfterFailure { question, mut choices }) => {
                if known.len() == 1 {
                    choices.retain(|choice| choice != STRONGER);
                }
                let is_attended = is_interactive && !has_own_budget;
                let asked = link.ask_question(question.clone(), choices, is_attended);
                if asked.is_some() {
                    let _gone = self.send_command(Command::Notify { text: question });
                }
                self.push_question(asked.into_iter().collect());
            }
            Some(TaskOrder::Reserve) => {
                link.reserve();
                self.grant_reservation();
            }
            Some(TaskOrder::Turn(turn)) => {
                if let Some(turn) = link.begin_turn(turn)
                    && let Err(error) = self.send_command(Command::RunStep(turn))
                    && let Some(link) = self.tasks.link()
                {
                    link.fail_step(&error);
                }
                self.release_held_messages();
            }
        }
    }

    /// Gives the session to the step of a task that waits for it, if no turn runs or is asked for.
    pub(super) fn grant_reservation(&mut self) {
        if self.tasks.pending_turns == 0
            && !command::is_at_work(&self.log)
            && let Some(link) = self.tasks.link()
        {
            link.grant();
        }
    }

    /// Hands the messages to the engine that waited until a step had begun.
    fn release_held_messages(&mut self) {
        for message in self.tasks.take_held_messages() {
            // The reply was given when the message came.
            let _gone = self.send_command(message);
        }
    }

    /// Shows or closes a question of a task.
    pub(super) fn push_question(&mut self, events: Vec<Event>) {
        if events.is_empty() {
            return;
        }
        events.into_iter().for_each(|event| self.push(event));
        self.tell_change();
    }

    /// Drafts a task of these messages, or without messages a change of a task that fails.
    fn draft_task(&mut self, wanted: (String, Option<Vec<String>>), replier: Replier) {
        let drafting = self.tasks.draft_task(&self.services, self.id.clone(), wanted, replier);
        self.work.spawn(box_future(drafting));
    }

    /// Does what a client asks about tasks.
    pub(super) fn answer_task_request(&mut self, request: TaskRequest, replier: Replier) {
        if self.work.len() >= MAX_WORK {
            return replier.reply(Err(busy_error()));
        }
        let session = self.id.clone();
        let is_child = self.log.with_view(|view| view.parent.is_some());
        match request {
            TaskRequest::Run { .. } | TaskRequest::Resume { .. } if is_child => {
                replier.reply(Err(for_one_turn()));
            }
            TaskRequest::Run { .. } | TaskRequest::Resume { .. }
                if self.tasks.is_running() || command::is_at_work(&self.log) =>
            {
                replier.reply(Err(between_turns()));
            }
            TaskRequest::Run { .. } | TaskRequest::Resume { .. } => {
                let (services, port) = (Arc::clone(&self.services), self.tasks.begin_run());
                let shared = Weak::clone(&self.shared);
                let now_ms = move || shared.upgrade().map_or(0, |shared| shared.opener.now_ms());
                let run = task_run::run_task(services, (session, request), port, replier, now_ms);
                self.work.spawn(box_future(run));
            }
            TaskRequest::Draft { name } => {
                let said = command::said_by_person(&self.log);
                self.draft_task((name, Some(said)), replier);
            }
            TaskRequest::Repair { name } => self.draft_task((name, None), replier),
            TaskRequest::Save { name } => {
                self.work.spawn(box_future(self.tasks.save_draft(&self.services, &name, replier)));
            }
            TaskRequest::List
            | TaskRequest::Show { .. }
            | TaskRequest::History { .. }
            | TaskRequest::Schedules
            | TaskRequest::DeclineOffer => {
                self.answer_beside(Request::Task(request), replier);
            }
        }
    }
}

/// Refuses a run whose steps want a model that is not in the session. Where no model is known yet, any may be.
fn unknown_model(known: &[Choice], wanted: &[String]) -> Option<RequestError> {
    let arms: Vec<&ModelRef> = known.iter().filter_map(|choice| choice.arm.as_ref()).collect();
    let is_unknown = |name: &&String| find_model(name, arms.iter().copied()).is_none();
    let name = wanted.iter().find(is_unknown).filter(|_| !arms.is_empty())?;
    let cause =
        format!("a step wants the model `{name}`, which is not in this session; nothing was run");
    let near = nearest_name(name, arms.iter().map(|arm| arm.model.as_str()));
    let remedy = match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`gnoma models` lists the models".to_owned(),
    };
    Some(RequestError::new(RequestErrorKind::Invalid, cause).with_remedy(remedy))
}
