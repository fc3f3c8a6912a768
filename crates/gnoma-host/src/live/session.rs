//! One session that lives in this process: the task that owns its engine, writes its log and answers
//! its requests.

use std::sync::{Arc, Weak};

use gnoma_core::{
    CallId, Command, ErrorKind, Event, ProviderError, Usage,
    protocol::{Detach, ProcessEvent, Reply, Request, RequestError, Topic},
    session::{NoticeLevel, Outcome, SessionState},
    task::boxed,
};
use tokio::{
    sync::{Notify, mpsc, watch},
    time::{Instant, sleep_until},
};

use super::{
    actor::{Actor, MAX_WORK, SUBSCRIBER_PATIENCE, observed},
    change,
    command::{self, between_turns, for_one_turn, not_asked},
    costs, elfs,
    engine::{Engine, EngineWakeup},
    handle::{Job, end_all},
    ports::{Change, Opened, Prepared},
    replier::Replier,
    said::Notice,
    task_link::{TaskLink, TaskOrder},
};
use crate::observers::SessionObservers;

/// What wakes a session's task.
enum Woke {
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
    pub(super) async fn live(
        mut self,
        mut jobs: mpsc::Receiver<Job>,
        mut heard: mpsc::Receiver<Notice>,
        close: Arc<Notify>,
        end: watch::Sender<bool>,
    ) {
        let attendance = self.log.attendance();
        loop {
            let woke = tokio::select! {
                biased;
                () = close.notified() => Woke::Close,
                Some(job) = jobs.recv() => Woke::Job(job),
                woke = self.engine.next() => Woke::Engine(woke),
                // While the engine is being opened, nobody knows its mode.
                order = self.tasks.next(), if !self.engine.is_coming() => Woke::Task(order),
                // Notices of the opening wait for the first client, which would not find them in its snapshot.
                Some(notice) = heard.recv(), if self.log.has_reader() => Woke::Notice(notice),
                Some(_) = self.work.join_next() => Woke::Worked,
                () = attendance.notified() => Woke::Attendance,
                () = deserted(self.deserted) => Woke::Deserted,
                () = deserted(self.waits.until()) => Woke::Worked,
            };
            if self.handle(woke).is_break() {
                break;
            }
            self.answer_waits();
        }
        self.end(end).await;
    }

    fn handle(&mut self, woke: Woke) -> std::ops::ControlFlow<()> {
        use std::ops::ControlFlow::{Break, Continue};
        match woke {
            Woke::Job(Job { request: Request::Close, replier }) => {
                replier.reply(Ok(Reply::Done));
                return self.close();
            }
            Woke::Job(job) => return self.take(job),
            Woke::Close => return self.close(),
            Woke::Deserted => return self.close_unless_used(),
            Woke::Engine(EngineWakeup::Opened(Ok(opened))) => {
                self.opened(opened);
                // Changed as it was wanted, the engine lets go of what it holds.
                if self.is_closing {
                    return self.close();
                }
            }
            Woke::Engine(EngineWakeup::Opened(Err(error))) => self.not_opened(&error),
            Woke::Engine(EngineWakeup::Changed(done)) => {
                self.changed(*done);
                match &self.engine {
                    Engine::Open(_) if self.is_closing => return self.close(),
                    Engine::Gone if self.is_closing => return Break(()),
                    _ => (),
                }
            }
            Woke::Engine(EngineWakeup::Event(Some(event))) => self.log_event(event),
            Woke::Engine(EngineWakeup::Event(None)) => {
                self.fail_unfinished_turn();
                return Break(());
            }
            Woke::Task(order) => self.follow_order(order),
            Woke::Notice(notice) => self.push(notice.event(&self.log)),
            Woke::Attendance => return self.count_subscribers(),
            Woke::Worked => (),
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
            Engine::Open(opened) if opened.engine.tell(Command::Close) => {
                std::ops::ControlFlow::Continue(())
            }
            Engine::Open(_) | Engine::Opening(_) | Engine::Gone => std::ops::ControlFlow::Break(()),
        }
    }

    async fn end(mut self, end: watch::Sender<bool>) {
        self.engine = Engine::Gone;
        self.observers = SessionObservers::default();
        let children = self.shared.upgrade().map(|shared| shared.forbid_children(&self.id));
        end_all(children.unwrap_or_default()).await;
        if self.log.with_view(|view| view.state) != SessionState::Closed {
            self.push(Event::State(SessionState::Closed));
        }
        self.work.shutdown().await;
        self.services.tidy().await;
        if let Some(shared) = self.shared.upgrade() {
            // Its own task is among what is dropped with it.
            let own = shared.state.lock().sessions.remove(&self.id);
            shared.tell(ProcessEvent::Closed { session: self.id.clone() });
            end.send_replace(true);
            drop(own);
        }
    }

    /// The engine has said something.
    fn log_event(&mut self, event: Event) {
        self.observers.observe(&self.id, &event);
        if let Some(following) = &mut self.kept.lock().following {
            following.take(&event);
        }
        let shared = self.shared.upgrade();
        let event = costs::count(&self.kept, &self.log, shared.as_deref(), event);
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
        self.tasks.hear(&event);
        self.offer_task(&event);
        self.push(event);
        if changes {
            self.tell_change();
        }
        self.grant_reservation();
    }

    fn opened(&mut self, opened: Opened) {
        let mut kept = self.kept.lock();
        kept.rights = Some(opened.engine.rights());
        kept.prover = opened.engine.prover();
        kept.jobs = Some(Arc::clone(&opened.jobs));
        drop(kept);
        for command in self.waiting.drain(..) {
            opened.engine.tell(command);
        }
        self.engine = Engine::Open(opened);
        self.tell_use();
        self.look_for_models();
    }

    /// Says why, and stays: what is written can be sent once it is fixed and the session reopened.
    fn not_opened(&mut self, error: &RequestError) {
        self.engine = Engine::Gone;
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

    /// Tells of models that were found meanwhile.
    fn look_for_models(&self) {
        let Engine::Open(opened) = &self.engine else { return };
        let models = (opened.models)();
        if self.log.with_view(|view| view.models != models) {
            self.push(Event::Models { models });
        }
    }

    /// Whoever leaves last takes the session along. One whose connection breaks does not: it may come
    /// back, and the work continues.
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

    /// Nobody has come for some time: ends the session, unless it works, waits for a person, or has a
    /// conversation that somebody may come back to.
    fn close_unless_used(&mut self) -> std::ops::ControlFlow<()> {
        let (messages, is_at_rest) =
            self.log.with_view(|view| (view.messages, view.turn.is_none()));
        if is_at_rest && (messages == 0 || !self.was_seen) {
            return self.close();
        }
        self.deserted = (!is_at_rest).then(|| Instant::now() + SUBSCRIBER_PATIENCE);
        std::ops::ControlFlow::Continue(())
    }

    fn take(&mut self, Job { request, replier }: Job) -> std::ops::ControlFlow<()> {
        if request == Request::Cancel {
            let closed = self.tasks.link().and_then(TaskLink::stop);
            self.push_question(closed);
        }
        match request {
            Request::Task(request) => self.answer_task_request(request, replier),
            Request::Answer { call, answer } if self.tasks.asks(&call) => {
                let closed = self.tasks.link().and_then(|link| link.answer(answer));
                self.push_question(closed);
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
                replier.reply(Ok(Reply::Text(elfs::told(&self.shared, &self.id))));
            }
            Request::WatchElf { .. } | Request::CancelElf { .. } if self.work.len() < MAX_WORK => {
                let shared = Weak::clone(&self.shared);
                self.work.spawn(boxed(elfs::done(shared, self.id.clone(), request, replier)));
            }
            request => match command::of(request) {
                Ok(command) => {
                    let models = || match &self.engine {
                        Engine::Open(opened) => (opened.models)(),
                        _ => Vec::new(),
                    };
                    let outcome = command::refuse(&command, &self.log, models)
                        .and_then(|()| self.command(command));
                    replier.reply(outcome);
                }
                Err(request) if change::is_change(&request) => self.change(request, replier),
                Err(request) => self.answer_beside(request, replier),
            },
        }
        std::ops::ControlFlow::Continue(())
    }

    fn is_asked(&self, call: &CallId) -> bool {
        !self.answered.contains(call)
            && self.log.with_view(|view| view.questions().any(|it| it.call.id == *call))
    }

    /// Does what needs the session, or another one, to be reopened.
    fn change(&mut self, request: Request, replier: Replier) {
        if self.log.with_view(|view| view.parent.is_some()) {
            return replier.reply(Err(for_one_turn()));
        }
        let mut spec = self.kept.lock().spec.clone();
        // What the person has chosen meanwhile stays.
        let (mode, thinking) = self.log.with_view(|view| (view.mode, view.thinking));
        spec.overrides.mode = Some(mode);
        spec.overrides.thinking = thinking.or(spec.overrides.thinking);
        let Some(shared) = self.shared.upgrade() else { return };
        let change = Change { request, spec };
        if change::is_for_another(&change.request) {
            let (services, shared) = (Arc::clone(&self.services), Arc::downgrade(&shared));
            self.work.spawn(boxed(change::open_another(shared, services, change, replier)));
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
        let reopening = change::Reopening {
            shared: Arc::downgrade(&shared),
            session: self.id.clone(),
            log: self.log.clone(),
            services: Arc::clone(&self.services),
            notices: self.notices.clone(),
            engine,
        };
        self.engine = Engine::Changing(Box::pin(reopening.change(change, replier)));
    }

    /// The session continues, changed or as it was.
    fn changed(&mut self, done: change::Done) {
        let change::Done { next, outcome, replier } = done;
        let Some(shared) = self.shared.upgrade() else { return };
        let (prepared, spec) = match next {
            change::NextEngine::Reopened(it) => (it.prepared, it.spec),
            change::NextEngine::AsItWas(opened) => {
                self.opened(opened);
                return replier.reply(outcome);
            }
        };
        match prepared {
            Ok(Prepared { info, messages, opening, services, .. }) => {
                self.log.begin_epoch(shared.next_epoch(), messages);
                self.services = Arc::clone(&services);
                self.observers = services.observers(observed(&self.log));
                let mut kept = self.kept.lock();
                (kept.spec, kept.services, kept.rights, kept.jobs) = (spec, services, None, None);
                kept.is_ending = false;
                kept.spending.begin_engine();
                drop(kept);
                self.push(Event::Info(Box::new(info)));
                self.engine = Engine::Opening(opening);
            }
            Err(error) => self.not_opened(&error),
        }
        replier.reply(outcome);
    }
}

async fn deserted(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
