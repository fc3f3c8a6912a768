//! Tasks in a session: requests about them, and what the run of one wants of the session.

use std::sync::{Arc, Weak};

use gnoma_core::{
    Command, Event,
    protocol::{Request, TaskRequest},
    session::{NoticeLevel, PermissionMode},
};
use gnoma_engine::Rights;

use super::{
    actor::{Actor, MAX_WORK},
    command::{self, between_turns, for_one_turn},
    handle::busy,
    replier::Replier,
    task_run::{self, TaskLink, TaskOrder},
};
use crate::tasks::restricted_mode;

impl Actor {
    /// Does what the run of a task wants.
    pub(super) fn follow_order(&mut self, order: Option<TaskOrder>) {
        // The engine's own mode: the log may not have told of it yet.
        let mode = self.kept().rights.as_ref().map(Rights::mode);
        let is_interactive = self.kept().spec.interactive;
        let Some(link) = self.tasks.link() else { return };
        match order {
            None => self.tasks.disconnect(),
            Some(TaskOrder::Tell(text)) => {
                self.push(Event::Notice { level: NoticeLevel::Info, text });
            }
            Some(TaskOrder::Restrict(modes)) => {
                let to = mode.map_or(PermissionMode::Deny, |own| restricted_mode(own, &modes));
                link.restriction = mode.filter(|own| *own != to).map(|own| (to, own));
                if mode != Some(to) {
                    // A session that is gone fails the next step.
                    let _gone = self.command(Command::SetMode { mode: to });
                }
            }
            Some(TaskOrder::Unrestrict) => {
                if let Some((to, own)) = link.restriction.take()
                    && mode == Some(to)
                {
                    let _gone = self.command(Command::SetMode { mode: own });
                }
            }
            Some(TaskOrder::Ask { question, choices }) => {
                let asked = link.ask(question, choices, is_interactive);
                self.push_question(asked);
            }
            Some(TaskOrder::Turn(turn)) => {
                link.wait_with(turn);
                self.begin_step();
            }
        }
    }

    /// Begins the step of a task that waits until the session is idle.
    pub(super) fn begin_step(&mut self) {
        if self.tasks.expects_turn || command::is_at_work(&self.log) {
            return;
        }
        let Some(turn) = self.tasks.link().and_then(TaskLink::begin_turn) else { return };
        let begun = self.command(Command::RunStep(turn));
        if let (Err(error), Some(link)) = (begun, self.tasks.link()) {
            link.fail(&error);
        }
    }

    /// Shows or closes a question of a task.
    pub(super) fn push_question(&mut self, event: Option<Event>) {
        if let Some(event) = event {
            self.push(event);
            self.tell_change();
        }
    }

    /// Does what a client asks about tasks.
    pub(super) fn answer_task_request(&mut self, request: TaskRequest, replier: Replier) {
        if self.work.len() >= MAX_WORK {
            return replier.reply(Err(busy()));
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
                let (services, port) = (Arc::clone(&self.services), self.tasks.connect());
                let shared = Weak::clone(&self.shared);
                let now_ms = move || shared.upgrade().map_or(0, |shared| shared.opener.now_ms());
                let run = task_run::run_task(services, (session, request), port, replier, now_ms);
                self.work.spawn(run);
            }
            TaskRequest::Draft { name } => {
                let said = command::said_by_person(&self.log);
                self.work.spawn(self.tasks.draft(&self.services, session, (name, said), replier));
            }
            TaskRequest::Save { name } => {
                self.work.spawn(self.tasks.save(&self.services, &name, replier));
            }
            TaskRequest::List | TaskRequest::Show { .. } | TaskRequest::History { .. } => {
                self.answer_beside(Request::Task(request), replier);
            }
        }
    }
}
