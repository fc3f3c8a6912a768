//! One session that lives in this process: the task that owns its engine, writes its log and answers
//! its requests.

use std::sync::{Arc, Weak};

use gnoma_core::{
    CallId, Command, ErrorKind, Event, ProviderError, Usage,
    protocol::{Detach, ProcessEvent, Reply, Request, RequestError, Topic},
    session::{NoticeLevel, Outcome, SessionState},
    task::box_future,
};
use tokio::{
    sync::{Notify, mpsc, watch},
    time::{Instant, sleep_until},
};

use super::{
    actor::{Actor, MAX_WORK, SUBSCRIBER_PATIENCE, observed_session},
    change,
    command::{self, between_turns, for_one_turn, not_asked},
    costs, elfs,
    engine::{Engine, EngineWakeup},
    handle::{Job, end_all},
    notice_queue::Notice,
    ports::{Change, OpenedSession, PreparedSession},
    replier::Replier,
    task_link::{TaskLink, TaskOrder},
};
use crate::observers::SessionObservers;

/// An event that wakes a session's task.
enum SessionWakeup {
    Job(Job),
    Close,
    Engine(EngineWakeup),
    /// A run of a task wants something; `None`: it has ended.
    Task(Option<TaskOrder>),
    Notice(Notice),
    Attendance,
    Deserted,
    Worked,
}

impl Actor {
    pub(super) async fn run_loop(
        mut self,
        mut jobs: mpsc::Receiver<Job>,
        mut heard: mpsc::Receiver<Notice>,
        close: Arc<Notify>,
        end: watch::Sender<bool>,
    ) {
        let attendance = self.log.subscriber_notify();
        loop {
            let woke = tokio::select! {
                biased;
                () = close.notified() => SessionWakeup::Close,
                Some(job) = jobs.recv() => SessionWakeup::Job(job),
                woke = self.engine.next() => SessionWakeup::Engine(woke),
                // A run needs the mode of the engine, which is not known while the engine opens.
                order = self.tasks.next(), if !self.engine.is_coming() => SessionWakeup::Task(order),
                // Notices of the opening wait for the first client, which would not find them in its snapshot.
                Some(notice) = heard.recv(), if self.log.has_reader() => SessionWakeup::Notice(notice),
                Some(_) = self.work.join_next() => SessionWakeup::Worked,
                () = attendance.notified() => SessionWakeup::Attendance,
                () = wait_until(self.deserted) => SessionWakeup::Deserted,
                () = wait_until(self.waits.until()) => SessionWakeup::Worked,
            };
            if self.handle_wakeup(woke).is_break() {
                break;
            }
            self.answer_waits();
        }
        self.end_session(end).await;
    }

    fn handle_wakeup(&mut self, woke: SessionWakeup) -> std::ops::ControlFlow<()> {
        use std::ops::ControlFlow::{Break, Continue};
        match woke {
            SessionWakeup::Job(Job { request: Request::Close, replier }) => {
                replier.reply(Ok(Reply::Done));
                return self.close();
            }
            SessionWakeup::Job(job) => return self.handle_job(job),
            SessionWakeup::Close => return self.close(),
            SessionWakeup::Deserted => return self.close_unless_used(),
            SessionWakeup::Engine(EngineWakeup::Opened(Ok(opened))) => {
                self.on_engine_opened(opened);
                // Changed as it was wanted, the engine lets go of what it holds.
                if self.is_closing {
                    return self.close();
                }
            }
            SessionWakeup::Engine(EngineWakeup::Opened(Err(error))) => {
                self.on_opening_failed(&error);
            }
            SessionWakeup::Engine(EngineWakeup::Changed(done)) => {
                self.finish_change(*done);
                match &self.engine {
                    Engine::Open(_) if self.is_closing => return self.close(),
                    Engine::Gone if self.is_closing => return Break(()),
                    _ => (),
                }
            }
            SessionWakeup::Engine(EngineWakeup::Event(Some(event))) => self.log_event(event),
            SessionWakeup::Engine(EngineWakeup::Event(None)) => {
                self.fail_unfinished_turn();
                return Break(());
            }
            SessionWakeup::Task(order) => self.follow_order(order),
            SessionWakeup::Notice(notice) => self.push(notice.into_event(&self.log)),
            SessionWakeup::Attendance => return self.count_subscribers(),
            SessionWakeup::Worked => (),
        }
        Continue(())
    }

    /// Ends a turn that the engine did not end before it was gone: a panic took it down.
    fn fail_unfinished_turn(&mut self) {
        let state = self.log.with_view(|view| view.state);
        if self.is_closing || !matches!(state, SessionState::Active | SessionState::Cancelling) {
            return;
        }
        let text = "gnoma crashed in this turn, and its work may be half done; what was said before \
                    is saved, unless saving is off: `gnoma --continue` continues it";
        self.log_event(Event::TurnEnded {
            outcome: Outcome::Failed {
                error: ProviderError::new(ErrorKind::Agent, "gnoma", text),
                kept_partial: false,
            },
            rounds: 0,
            usage: Usage::default(),
            undelivered: Vec::new(),
            answer: None,
        });
    }

    /// Ends the engine; a session without one ends at once, but never in the middle of a change.
    fn close(&mut self) -> std::ops::ControlFlow<()> {
        self.deserted = None;
        self.is_closing = true;
        match &self.engine {
            Engine::Changing(_) => std::ops::ControlFlow::Continue(()),
            Engine::Open(opened) if opened.engine.send_command(Command::Close) => {
                std::ops::ControlFlow::Continue(())
            }
            Engine::Open(_) | Engine::Opening(_) | Engine::Gone => std::ops::ControlFlow::Break(()),
        }
    }

    async fn end_session(mut self, end: watch::Sender<bool>) {
        self.engine = Engine::Gone;
        self.observers = SessionObservers::default();
        let children = self.shared.upgrade().map(|shared| shared.forbid_children(&self.id));
        end_all(children.unwrap_or_default()).await;
        if self.log.with_view(|view| view.state) != SessionState::Closed {
            self.push(Event::State(SessionState::Closed));
        }
        self.work.shutdown().await;
        self.services.remove_old_data().await;
        if let Some(shared) = self.shared.upgrade() {
            // Its own task is among what is dropped with it.
            let own = shared.state.lock().sessions.remove(&self.id);
            shared.publish_event(ProcessEvent::Closed { session: self.id.clone() });
            end.send_replace(true);
            drop(own);
        }
    }

    /// The engine has said something.
    fn log_event(&mut self, event: Event) {
        if let Some(following) = &mut self.kept.lock().following {
            following.apply_event(&event);
        }
        let shared = self.shared.upgrade();
        let event = costs::count_cost(&self.kept, &self.log, shared.as_deref(), event);
        self.observers.observe(&self.id, &event);
        let changes = command::changes_listing(&event);
        match &event {
            Event::PermissionAsked { call, .. } => {
                self.answered.remove(&call.id);
            }
            Event::PermissionDecided { call, .. } => {
                self.answered.remove(call);
            }
            Event::TurnEnded { outcome, .. } => self.kept.lock().outcome = Some(outcome.clone()),
            Event::State(SessionState::Idle) => {
                self.answered.clear();
                self.look_for_models();
            }
            _ => (),
        }
        self.tasks.observe_event(&event);
        self.offer_task(&event);
        let follows = self.follow_limits(&event);
        self.push(event);
        self.push_question(follows);
        if changes {
            self.tell_change();
        }
        self.grant_reservation();
    }

    fn on_engine_opened(&mut self, opened: OpenedSession) {
        let mut kept = self.kept.lock();
        kept.rights = Some(opened.engine.rights());
        kept.prover = opened.engine.prover();
        kept.jobs = Some(Arc::clone(&opened.jobs));
        drop(kept);
        for command in self.waiting.drain(..) {
            opened.engine.send_command(command);
        }
        self.engine = Engine::Open(opened);
        self.opening_error = None;
        self.tell_use();
        self.look_for_models();
    }

    /// Says why, and stays: what is written can be sent once it is fixed and the session reopened.
    fn on_opening_failed(&mut self, error: &RequestError) {
        self.engine = Engine::Gone;
        self.opening_error = Some(error.clone());
        self.waiting.clear();
        self.tasks.pending_turns = 0;
        // Where no provider is set up, front ends show what to do about it.
        if self.log.with_view(|view| view.info.found.is_none()) {
            let remedy = error.remedy.iter().map(String::as_str);
            for text in error.cause.lines().chain(remedy) {
                self.push(Event::Notice { level: NoticeLevel::Warning, text: text.to_owned() });
            }
        }
        self.push(Event::State(SessionState::Closed));
    }

    /// Reports the models that were found since.
    fn look_for_models(&self) {
        let Engine::Open(opened) = &self.engine else { return };
        let models = (opened.models)();
        if self.log.with_view(|view| view.models != models) {
            self.push(Event::Models { models });
        }
    }

    /// Closes the session when its last subscriber leaves. A subscriber whose connection breaks does not close it:
    /// it may come back, and the work continues.
    fn count_subscribers(&mut self) -> std::ops::ControlFlow<()> {
        self.tell_change();
        let is_seen = self.log.subscribers() > 0;
        self.was_seen |= is_seen;
        if is_seen || self.detach == Detach::Keep {
            self.deserted = None;
        } else if self.log.is_left() {
            return self.close();
        } else {
            self.deserted.get_or_insert_with(|| Instant::now() + SUBSCRIBER_PATIENCE);
        }
        std::ops::ControlFlow::Continue(())
    }

    /// Ends a session that no client has come to for some time, unless it works, waits for a user, or has a
    /// conversation that a client may come back to.
    fn close_unless_used(&mut self) -> std::ops::ControlFlow<()> {
        let (messages, is_at_rest) =
            self.log.with_view(|view| (view.messages, view.turn.is_none()));
        if is_at_rest && (messages == 0 || !self.was_seen) {
            return self.close();
        }
        self.deserted = (!is_at_rest).then(|| Instant::now() + SUBSCRIBER_PATIENCE);
        std::ops::ControlFlow::Continue(())
    }

    fn handle_job(&mut self, Job { request, replier }: Job) -> std::ops::ControlFlow<()> {
        if request == Request::Cancel {
            let closed = self.tasks.link().map(TaskLink::stop_run).unwrap_or_default();
            self.push_question(closed);
        }
        match request {
            Request::Task(request) => self.answer_task_request(request, replier),
            Request::Answer { call, answer } if self.tasks.is_question(&call) => {
                let closed = self.tasks.link().map(|link| link.answer_question(answer));
                self.push_question(closed.unwrap_or_default());
                replier.reply(Ok(Reply::Done));
            }
            Request::Answer { call, answer } if self.continuation.is_question(&call) => {
                self.answer_continuation(answer);
                replier.reply(Ok(Reply::Done));
            }
            Request::Answer { ref call, .. } if !self.is_asked(call) => {
                replier.reply(Err(not_asked()));
            }
            Request::KeepRunning { keep } => {
                self.detach = if keep { Detach::Keep } else { Detach::Close };
                replier.reply(Ok(Reply::Done));
                return self.count_subscribers();
            }
            Request::Wait { max_seconds } => self.waits.add(max_seconds, replier),
            Request::Explain(Topic::Elfs) => {
                replier.reply(Ok(Reply::Text(elfs::render_tree(&self.shared, &self.id))));
            }
            Request::WatchElf { .. } | Request::CancelElf { .. } if self.work.len() < MAX_WORK => {
                let shared = Weak::clone(&self.shared);
                self.work.spawn(box_future(elfs::answer_request(
                    shared,
                    self.id.clone(),
                    request,
                    replier,
                )));
            }
            request => self.dispatch_request(request, replier),
        }
        std::ops::ControlFlow::Continue(())
    }

    /// Passes a request on: to the engine, to a change of the session, or to its services.
    fn dispatch_request(&mut self, request: Request, replier: Replier) {
        match command::from_request(request) {
            Ok(command) => {
                let models = || match &self.engine {
                    Engine::Open(opened) => (opened.models)(),
                    _ => Vec::new(),
                };
                let outcome = command::check_command(&command, &self.log, models)
                    .and_then(|()| self.send_command(command));
                replier.reply(outcome);
            }
            Err(request) if change::is_change(&request) => self.begin_change(request, replier),
            Err(request) => self.answer_beside(request, replier),
        }
    }

    fn is_asked(&self, call: &CallId) -> bool {
        !self.answered.contains(call)
            && self.log.with_view(|view| view.questions().any(|it| it.call.id == *call))
    }

    /// Does what needs the session, or another one, to be reopened.
    fn begin_change(&mut self, request: Request, replier: Replier) {
        if self.log.with_view(|view| view.parent.is_some()) {
            return replier.reply(Err(for_one_turn()));
        }
        let mut spec = self.kept.lock().spec.clone();
        // The mode and the thinking that the person chose since stay.
        let (mode, thinking) = self.log.with_view(|view| (view.mode, view.thinking));
        spec.overrides.mode = Some(mode);
        spec.overrides.thinking = thinking.or(spec.overrides.thinking);
        let Some(shared) = self.shared.upgrade() else { return };
        let change = Change { request, spec };
        if change::is_for_another(&change.request) {
            let (services, shared) = (Arc::clone(&self.services), Arc::downgrade(&shared));
            self.work.spawn(box_future(change::open_another(shared, services, change, replier)));
            return;
        }
        if command::is_at_work(&self.log)
            || self.tasks.is_running()
            || matches!(self.engine, Engine::Opening(_) | Engine::Changing(_))
        {
            return replier.reply(Err(between_turns()));
        }
        let engine = match std::mem::replace(&mut self.engine, Engine::Gone) {
            Engine::Open(opened) => Some(opened),
            Engine::Opening(_) | Engine::Changing(_) | Engine::Gone => None,
        };
        let reopening = change::EngineChange {
            shared: Arc::downgrade(&shared),
            session: self.id.clone(),
            log: self.log.clone(),
            services: Arc::clone(&self.services),
            notices: self.notices.clone(),
            engine,
        };
        self.engine = Engine::Changing(Box::pin(reopening.apply_change(change, replier)));
    }

    /// The session continues, changed or as it was.
    fn finish_change(&mut self, done: change::ChangeOutcome) {
        let change::ChangeOutcome { next, outcome, replier } = done;
        let Some(shared) = self.shared.upgrade() else { return };
        let (prepared, spec) = match next {
            change::NextEngine::Reopened(it) => (it.prepared, it.spec),
            change::NextEngine::AsItWas(opened) => {
                self.on_engine_opened(opened);
                return replier.reply(outcome);
            }
        };
        match prepared {
            Ok(PreparedSession { info, messages, notes, opening, services, .. }) => {
                self.log.begin_epoch(shared.next_epoch(), messages);
                self.log.add_stored_notes(notes);
                self.services = Arc::clone(&services);
                self.observers = services.observers(observed_session(&self.log));
                let mut kept = self.kept.lock();
                (kept.spec, kept.services, kept.rights, kept.jobs) = (spec, services, None, None);
                kept.is_ending = false;
                kept.spending.begin_engine();
                drop(kept);
                self.push(Event::Info(Box::new(info)));
                self.engine = Engine::Opening(opening);
            }
            Err(error) => self.on_opening_failed(&error),
        }
        replier.reply(outcome);
    }
}

async fn wait_until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
