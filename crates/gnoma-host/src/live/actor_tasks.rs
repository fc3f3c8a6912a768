//! Tasks in a session: requests about them, and what the run of one wants of the session.

use std::sync::{Arc, Weak};

use gnoma_core::{
    Command, Event, ModelRef,
    info::Choice,
    protocol::{Reply, Request, RequestError, TaskReport, TaskRequest},
    session::{NoticeLevel, PermissionMode, StepTurn},
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
use crate::tasks::{STRONGER, restricted_mode, unknown_model};

impl Actor {
    /// Does what the run of a task wants; `None`: it has ended.
    pub(super) fn follow_order(&mut self, order: Option<TaskOrder>) {
        let Some(order) = order else {
            self.tasks.end_run();
            return self.release_held_messages();
        };
        match order {
            TaskOrder::Tell(text) => self.push(Event::Notice { level: NoticeLevel::Info, text }),
            TaskOrder::Report(report, replier) => self.report_run(report, replier),
            TaskOrder::Open { modes, models } => self.open_run(&modes, &models),
            TaskOrder::Unrestrict => self.lift_restriction(),
            TaskOrder::Ask { question, choices } => {
                let is_attended = self.kept.lock().spec.interactive;
                self.ask_for_task(question, choices, is_attended);
            }
            TaskOrder::AskAfterFailure { question, choices } => {
                self.ask_after_failure(question, choices);
            }
            TaskOrder::Reserve => {
                if let Some(link) = self.tasks.link() {
                    link.reserve();
                }
                self.grant_reservation();
            }
            TaskOrder::Turn(turn) => self.begin_step(turn),
        }
    }

    /// Tells people how a run ended, and then whoever asked for it.
    fn report_run(&mut self, report: Result<Box<TaskReport>, RequestError>, replier: Replier) {
        if let Ok(report) = &report {
            let text = report.summary.clone();
            // A session that is gone has no hooks to tell.
            let _gone = self.send_command(Command::Notify { text: text.clone() });
            self.push(Event::Notice { level: NoticeLevel::Info, text });
        }
        replier.reply(report.map(Reply::Task));
    }

    /// The models that can be chosen now.
    fn known_models(&self) -> Vec<Choice> {
        match &self.engine {
            Engine::Open(opened) => (opened.models)(),
            Engine::Opening(_) | Engine::Changing(_) | Engine::Gone => Vec::new(),
        }
    }

    /// The engine's own mode: the log may not have told of it yet.
    fn engine_mode(&self) -> Option<PermissionMode> {
        self.kept.lock().rights.as_ref().map(Rights::mode)
    }

    /// Holds the session to the modes of a run, unless one of its models is not there.
    fn open_run(&mut self, modes: &[PermissionMode], models: &[String]) {
        let known = self.known_models();
        let arms: Vec<ModelRef> = known.into_iter().filter_map(|choice| choice.arm).collect();
        let mode = self.engine_mode();
        let Some(link) = self.tasks.link() else { return };
        if let Some(error) = unknown_model(&arms, models) {
            return link.open(Some(error));
        }
        link.open(None);
        let to = mode.map_or(PermissionMode::Deny, |own| restricted_mode(own, modes));
        link.restriction = mode.filter(|own| *own != to).map(|own| (to, own));
        if mode != Some(to) {
            // A session that is gone fails the next step.
            let _gone = self.send_command(Command::SetMode { mode: to });
        }
    }

    /// Gives the session the mode again that it had before the run, unless somebody has changed it.
    fn lift_restriction(&mut self) {
        let restriction = self.tasks.link().and_then(|link| link.restriction.take());
        if let Some((_, own)) = restriction.filter(|(to, _)| self.engine_mode() == Some(*to)) {
            let _gone = self.send_command(Command::SetMode { mode: own });
        }
    }

    /// Shows a question of a task. Returns whether it waits for an answer.
    fn ask_for_task(&mut self, question: String, choices: Vec<String>, is_attended: bool) -> bool {
        let link = self.tasks.link();
        let asked = link.and_then(|link| link.ask_question(question, choices, is_attended));
        let waits = asked.is_some();
        self.push_question(asked.into_iter().collect());
        waits
    }

    /// Asks what to do about a step that failed, unless a schedule began the run.
    fn ask_after_failure(&mut self, question: String, mut choices: Vec<String>) {
        if self.known_models().len() == 1 {
            choices.retain(|choice| choice != STRONGER);
        }
        let is_attended = {
            let kept = self.kept.lock();
            kept.spec.interactive && !kept.spec.has_own_budget()
        };
        if self.ask_for_task(question.clone(), choices, is_attended) {
            let _gone = self.send_command(Command::Notify { text: question });
        }
    }

    /// Begins the turn of a step, or of steps that run side by side.
    fn begin_step(&mut self, turn: StepTurn) {
        let children = self.kept.lock().step_children.clone();
        let turn = self.tasks.link().and_then(|link| link.begin_turn(turn, &children));
        if let Some(turn) = turn
            && let Err(error) = self.send_command(Command::RunStep(turn))
            && let Some(link) = self.tasks.link()
        {
            link.fail_step(&error);
        }
        self.release_held_messages();
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
            | TaskRequest::Complete { .. }
            | TaskRequest::Schedules
            | TaskRequest::DeclineOffer => {
                self.answer_beside(Request::Task(request), replier);
            }
        }
    }
}
