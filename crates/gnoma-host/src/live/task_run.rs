//! Runs a task in a session: one turn after the other, with the record of the run written before and after each.
//!
//! The runner is a task beside the session's loop. It sends orders to the loop and hears how each step ended.

use std::sync::{Arc, Mutex, PoisonError};

use gnoma_core::{
    CallId, Event, RawJson, ToolCall,
    protocol::{Reply, RequestError, RequestErrorKind, TaskRequest, TaskStepState},
    session::{Inquiry, PermissionAnswer, PermissionMode, SessionState, StepTurn},
    store::SessionId,
};
use gnoma_extend::tasks::{PlannedAction, StepResult};
use tokio::{sync::mpsc, task::spawn_blocking};

use super::{ports::Services, replier::Replier, replies::Outcome, step_fold::StepFold};
use crate::{
    HostError,
    tasks::{DraftedTask, PreparedRun, SessionTaskFiles},
};

/// Orders that may wait for the loop.
const MAX_ORDERS: usize = 8;
/// Answers to a question that stop the run, as choices.
const STOPPING: [&str; 2] = ["no", "stop"];
/// Name of the call under which a question of a task is shown.
const QUESTION: &str = "ask";

/// An order of the runner to the session's loop.
pub(super) enum TaskOrder {
    /// Run this as a turn, once the session is idle. Answered by a result.
    Turn(StepTurn),
    /// Ask the person. Answered by a result.
    Ask { question: String, choices: Vec<String> },
    /// Hold the session to the strictest of its own mode and these.
    Restrict(Vec<PermissionMode>),
    /// Give the session the mode again that it had before it was restricted, unless somebody has changed it.
    Unrestrict,
    /// Tell people.
    Tell(String),
}

/// The loop's end of a run.
pub(super) struct TaskLink {
    orders: mpsc::Receiver<TaskOrder>,
    results: mpsc::Sender<StepResult>,
    /// Of the turn that is a step.
    fold: Option<StepFold>,
    /// A turn that waits until the session is idle.
    waiting: Option<StepTurn>,
    /// The question that is open.
    question: Option<CallId>,
    /// The mode that the session is restricted to, and the one that it had.
    pub(super) restriction: Option<(PermissionMode, PermissionMode)>,
    /// The person has stopped the run.
    is_stopped: bool,
    /// Questions so far.
    questions: u32,
}

/// The runner's end of a run.
pub(super) struct TaskPort {
    orders: mpsc::Sender<TaskOrder>,
    results: mpsc::Receiver<StepResult>,
}

/// Connects a runner and a loop.
fn connect() -> (TaskLink, TaskPort) {
    let (send_order, orders) = mpsc::channel(MAX_ORDERS);
    let (results, hear_result) = mpsc::channel(1);
    let link = TaskLink {
        orders,
        results,
        fold: None,
        waiting: None,
        question: None,
        restriction: None,
        is_stopped: false,
        questions: 0,
    };
    (link, TaskPort { orders: send_order, results: hear_result })
}

fn stopped_result(why: &str) -> StepResult {
    let state = TaskStepState::Stopped;
    StepResult { state, why: why.to_owned(), micro_usd: 0, answer: None }
}

impl TaskLink {
    /// Keeps a turn until the session is idle. A run that was stopped begins no step.
    pub(super) fn wait_with(&mut self, turn: StepTurn) {
        if self.is_stopped {
            return self.end(stopped_result("you stopped the run"));
        }
        self.waiting = Some(turn);
    }

    /// Gives the turn that waits and begins to listen to it. Call it only if the session is idle.
    pub(super) fn begin_turn(&mut self) -> Option<StepTurn> {
        let turn = self.waiting.take()?;
        self.fold = Some(StepFold::new(turn.command.is_some()));
        Some(turn)
    }

    /// Takes in what happens in the session; `is_idle`: its turn is over.
    pub(super) fn hear(&mut self, event: &Event, is_idle: bool) {
        if let Some(fold) = &mut self.fold {
            fold.apply(event);
        }
        if is_idle && let Some(fold) = self.fold.take() {
            self.end(fold.finish());
        }
    }

    /// The turn of a step could not begin.
    pub(super) fn fail(&mut self, error: &RequestError) {
        self.fold = None;
        let state = TaskStepState::Failed;
        self.end(StepResult { state, why: error.cause.clone(), micro_usd: 0, answer: None });
    }

    /// Opens a question: the event that shows it. If nobody can answer, the step fails.
    pub(super) fn ask(
        &mut self,
        question: String,
        choices: Vec<String>,
        is_interactive: bool,
    ) -> Option<Event> {
        if self.is_stopped {
            self.end(stopped_result("you stopped the run"));
            return None;
        }
        if !is_interactive {
            let why = "it asks a question, and nobody is there to answer";
            let (state, why) = (TaskStepState::Failed, why.to_owned());
            self.end(StepResult { state, why, micro_usd: 0, answer: None });
            return None;
        }
        self.questions += 1;
        let id = CallId::new(format!("gnoma-task-question-{}", self.questions));
        self.question = Some(id.clone());
        Some(Event::PermissionAsked {
            call: ToolCall::new(id, QUESTION, RawJson::empty_object()),
            reason: question,
            preview: None,
            always: None,
            inquiry: Some(Inquiry { choices }),
            during: None,
            parts: Vec::new(),
            notable: Vec::new(),
        })
    }

    /// Returns whether a call is the open question.
    pub(super) fn asks(&self, call: &CallId) -> bool {
        self.question.as_ref() == Some(call)
    }

    /// Takes the answer to the open question: the event that closes it.
    pub(super) fn answer(&mut self, answer: PermissionAnswer) -> Option<Event> {
        let call = self.question.take()?;
        let (result, allowed) = match answer.to_inquiry() {
            PermissionAnswer::Text { text } if STOPPING.contains(&&*text.to_lowercase()) => {
                (stopped_result(&format!("you answered `{text}`")), false)
            }
            PermissionAnswer::Text { text } => {
                let (state, why) = (TaskStepState::Done, String::new());
                (StepResult { state, why, micro_usd: 0, answer: Some(text) }, true)
            }
            _ => (stopped_result("the question was not answered"), false),
        };
        self.end(result);
        let reason = if allowed { "answered by the user" } else { "not answered by the user" };
        Some(Event::PermissionDecided { call, allowed, reason: reason.to_owned() })
    }

    /// The person stops what runs: no further step begins. Gives the event that closes an open question.
    pub(super) fn stop(&mut self) -> Option<Event> {
        self.is_stopped = true;
        if self.waiting.take().is_some() {
            self.end(stopped_result("you stopped the run"));
        }
        self.answer(PermissionAnswer::Deny { reason: String::new() })
    }

    fn end(&self, result: StepResult) {
        // The runner waits for exactly one result of each step.
        let _gone = self.results.try_send(result);
    }
}

/// Runs a task, or continues a run, and answers the request once it has ended.
pub(super) async fn run_task(
    services: Arc<dyn Services>,
    wanted: (SessionId, TaskRequest),
    port: TaskPort,
    replier: Replier,
    now_ms: impl Fn() -> i64,
) {
    replier.reply(drive_run(services, wanted, port, now_ms).await);
}

async fn drive_run(
    services: Arc<dyn Services>,
    (session, request): (SessionId, TaskRequest),
    mut port: TaskPort,
    now_ms: impl Fn() -> i64,
) -> Outcome {
    let run = task_files(&services)?.prepare_run(session, request).await?;
    port.order(TaskOrder::Restrict(run.modes().to_vec())).await?;
    let ended = run_steps(run, &mut port, now_ms).await;
    port.order(TaskOrder::Unrestrict).await?;
    let report = ended?.report();
    port.order(TaskOrder::Tell(report.summary.clone())).await?;
    Ok(Reply::Task(Box::new(report)))
}

fn task_files(services: &Arc<dyn Services>) -> Result<SessionTaskFiles, RequestError> {
    let missing = || RequestError::new(RequestErrorKind::Invalid, "there are no tasks here");
    services.tasks().ok_or_else(missing)
}

async fn run_steps(
    mut run: PreparedRun,
    port: &mut TaskPort,
    now_ms: impl Fn() -> i64,
) -> Result<PreparedRun, RequestError> {
    run = save_record(run).await?;
    while let Some(at) = run.record.next_step() {
        let (Some(step), Some(action)) = (run.step(at), run.action(at)) else { break };
        let (title, model, count) = (step.title.clone(), step.model.clone(), run.count());
        let task = run.record.task.clone();
        run.record.begin_step(at, now_ms());
        // What is not recorded as begun does not begin.
        run = save_record(run).await?;
        port.order(TaskOrder::Tell(format!("Task {task}, step {} of {count}: {title}", at + 1)))
            .await?;
        let order = match action {
            PlannedAction::Prompt(text) => TaskOrder::Turn(StepTurn { text, command: None, model }),
            PlannedAction::Command(command) => {
                let text = format!("I ran the step “{title}” of the task {task}:");
                TaskOrder::Turn(StepTurn { text, command: Some(command), model: None })
            }
            PlannedAction::Question { text, choices } => TaskOrder::Ask { question: text, choices },
        };
        port.order(order).await?;
        let result = port.results.recv().await.ok_or_else(session_ended_error)?;
        run.end_step(at, result, now_ms());
        run = save_record(run).await?;
    }
    Ok(run)
}

impl TaskPort {
    async fn order(&self, order: TaskOrder) -> Result<(), RequestError> {
        self.orders.send(order).await.map_err(|_| session_ended_error())
    }
}

fn session_ended_error() -> RequestError {
    let cause = "the session ended before the task did";
    RequestError::new(RequestErrorKind::Closed, cause)
        .with_remedy("`gnoma task run --resume` continues it.")
}

/// Writes the record away from the loops of sessions.
async fn save_record(run: PreparedRun) -> Result<PreparedRun, RequestError> {
    let written = spawn_blocking(move || run.save().map(|()| run)).await;
    let crashed = |_| HostError::failure("recording the run crashed; this is a bug in gnoma");
    Ok(written.map_err(crashed)??)
}

/// The tasks of a session, as its loop knows them.
#[derive(Default)]
pub(super) struct SessionTasks {
    /// The run that goes on.
    link: Option<TaskLink>,
    /// The task that was drafted last.
    draft: Arc<Mutex<Option<DraftedTask>>>,
    /// A turn was asked for since the session was idle.
    pub(super) expects_turn: bool,
}

impl SessionTasks {
    /// The next order of the run that goes on; never if none does. Safe to drop.
    pub(super) async fn next(&mut self) -> Option<TaskOrder> {
        match &mut self.link {
            Some(link) => link.orders.recv().await,
            None => std::future::pending().await,
        }
    }

    /// Returns whether a run goes on.
    pub(super) fn is_running(&self) -> bool {
        self.link.is_some()
    }

    /// The run that goes on.
    pub(super) fn link(&mut self) -> Option<&mut TaskLink> {
        self.link.as_mut()
    }

    /// Begins a run: the runner's end of it.
    pub(super) fn connect(&mut self) -> TaskPort {
        let (link, port) = connect();
        self.link = Some(link);
        port
    }

    /// The run has ended.
    pub(super) fn disconnect(&mut self) {
        self.link = None;
    }

    /// Returns whether a call is a question of the run.
    pub(super) fn asks(&self, call: &CallId) -> bool {
        self.link.as_ref().is_some_and(|link| link.asks(call))
    }

    /// Takes in what happens in the session.
    pub(super) fn hear(&mut self, event: &Event) {
        let is_idle = matches!(event, Event::State(SessionState::Idle));
        self.expects_turn &= !is_idle;
        if let Some(link) = &mut self.link {
            link.hear(event, is_idle);
        }
    }

    /// Drafts a task of the person's messages, and answers with its diff.
    pub(super) fn draft(
        &self,
        services: &Arc<dyn Services>,
        session: SessionId,
        (name, messages): (String, Vec<String>),
        replier: Replier,
    ) -> impl Future<Output = ()> + Send + use<> {
        let (place, services) = (Arc::clone(&self.draft), Arc::clone(services));
        async move {
            let drafted = async { task_files(&services)?.draft(session, name, messages).await };
            let drafted = drafted.await;
            replier.reply(drafted.map(|drafted| {
                let diff = drafted.diff.clone();
                *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(drafted);
                Reply::Text(diff)
            }));
        }
    }

    /// Writes the task that was drafted last, and answers where.
    pub(super) fn save(
        &self,
        services: &Arc<dyn Services>,
        name: &str,
        replier: Replier,
    ) -> impl Future<Output = ()> + Send + use<> {
        let drafted = self.draft.lock().unwrap_or_else(PoisonError::into_inner).take();
        let drafted = drafted.filter(|draft| draft.name == name);
        let services = Arc::clone(services);
        let missing = || {
            let cause = "no task of that name was drafted in this session";
            RequestError::new(RequestErrorKind::NotFound, cause)
                .with_remedy("`/task save NAME` drafts one.")
        };
        let drafted = drafted.ok_or_else(missing);
        async move {
            replier.reply(match drafted {
                Ok(drafted) => {
                    async { task_files(&services)?.save(drafted).await.map(Reply::Text) }.await
                }
                Err(error) => Err(error),
            });
        }
    }
}
