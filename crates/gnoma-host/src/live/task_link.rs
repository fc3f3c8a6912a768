//! The connection between the runner of a task and the loop of its session: orders to the loop, and what becomes of
//! them.

use gnoma_core::{
    CallId, Event, RawJson, ToolCall,
    protocol::{Reply, RequestError, RequestErrorKind, TaskReport, TaskStepState},
    session::{Inquiry, PermissionAnswer, PermissionMode, StepTurn},
};
use gnoma_extend::tasks::StepResult;
use tokio::sync::mpsc::{self, error::SendError};

use super::{replier::Replier, step_fold::StepFold};

/// Orders that may wait for the loop.
const MAX_ORDERS: usize = 8;
/// Answers to a question that stop the run, as choices.
const STOPPING: [&str; 2] = ["no", "stop"];
/// Name of the call under which a question of a task is shown.
const QUESTION: &str = "ask";

/// An order of the runner to the session's loop.
pub(super) enum TaskOrder {
    /// Hold the session to the strictest of its own mode and `modes`, unless one of the `models` is not in the session.
    /// Answered by `Ready` or `Refused`.
    Open { modes: Vec<PermissionMode>, models: Vec<String> },
    /// Let no other turn begin once the session is idle. Answered by `Ready` or `NotBegun`.
    Reserve,
    /// Run this as a turn in the session that was reserved. Answered by `Ended` or `NotBegun`.
    Turn(StepTurn),
    /// Ask the person. Answered by `Ended` or `NotBegun`.
    Ask { question: String, choices: Vec<String> },
    /// Give the session the mode again that it had before it was restricted, unless somebody has changed it.
    Unrestrict,
    /// A text to show to people.
    Tell(String),
    /// Tell people how the run ended, and then whoever asked for it.
    Report(Result<Box<TaskReport>, RequestError>, Replier),
}

/// The answer of the loop to an order.
pub(super) enum TaskSignal {
    /// The order is carried out.
    Ready,
    /// The run cannot begin.
    Refused(RequestError),
    /// The person stopped the run before the step began.
    NotBegun,
    /// The step has ended.
    Ended(StepResult),
}

/// The claim of a run to the next turn of the session.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reservation {
    /// Another turn runs or is asked for.
    Waiting,
    /// No other turn begins.
    Granted,
}

/// The loop's end of a run.
pub(super) struct TaskLink {
    orders: mpsc::Receiver<TaskOrder>,
    signals: mpsc::Sender<TaskSignal>,
    /// Of the turn that is a step.
    fold: Option<StepFold>,
    reservation: Option<Reservation>,
    /// The question that is open.
    question: Option<CallId>,
    /// The mode that the session is restricted to, and the one that it had.
    pub(super) restriction: Option<(PermissionMode, PermissionMode)>,
    /// The person has stopped the run.
    is_stopped: bool,
    /// The number of questions so far.
    questions: u32,
}

/// The runner's end of a run.
pub(super) struct TaskPort {
    orders: mpsc::Sender<TaskOrder>,
    signals: mpsc::Receiver<TaskSignal>,
}

/// Connects a runner and a loop.
pub(super) fn task_channel() -> (TaskLink, TaskPort) {
    let (send_order, orders) = mpsc::channel(MAX_ORDERS);
    let (signals, hear_signal) = mpsc::channel(1);
    let link = TaskLink {
        orders,
        signals,
        fold: None,
        reservation: None,
        question: None,
        restriction: None,
        is_stopped: false,
        questions: 0,
    };
    (link, TaskPort { orders: send_order, signals: hear_signal })
}

impl TaskPort {
    /// Sends an order to the loop.
    pub(super) async fn send_order(&self, order: TaskOrder) -> Result<(), RequestError> {
        self.orders.send(order).await.map_err(|_| session_ended_error())
    }

    /// Reports how the run ended, once what was ordered before is done; at once if the loop has ended.
    pub(super) async fn send_report(
        &self,
        report: Result<Box<TaskReport>, RequestError>,
        replier: Replier,
    ) {
        let unsent = self.orders.send(TaskOrder::Report(report, replier)).await;
        if let Err(SendError(TaskOrder::Report(report, replier))) = unsent {
            replier.reply(report.map(Reply::Task));
        }
    }

    /// Waits for the answer to the last order that is answered.
    pub(super) async fn next_signal(&mut self) -> Result<TaskSignal, RequestError> {
        self.signals.recv().await.ok_or_else(session_ended_error)
    }
}

pub(super) fn session_ended_error() -> RequestError {
    let cause = "the session ended before the task did";
    RequestError::new(RequestErrorKind::Closed, cause)
        .with_remedy("`gnoma task resume` continues it.")
}

fn step_result(state: TaskStepState, why: &str) -> StepResult {
    StepResult { state, why: why.to_owned(), micro_usd: 0, answer: None, message: None }
}

impl TaskLink {
    /// The next order of the runner; `None` if the run has ended. Safe to drop.
    pub(super) async fn next(&mut self) -> Option<TaskOrder> {
        self.orders.recv().await
    }

    /// Says whether the run can begin.
    pub(super) fn open(&self, refusal: Option<RequestError>) {
        self.send_signal(refusal.map_or(TaskSignal::Ready, TaskSignal::Refused));
    }

    /// Claims the next turn of the session. A run that was stopped begins no step.
    pub(super) fn reserve(&mut self) {
        if self.is_stopped {
            return self.send_signal(TaskSignal::NotBegun);
        }
        self.reservation = Some(Reservation::Waiting);
    }

    /// Gives the run the session, if it waits for that. Call it only if the session is idle.
    pub(super) fn grant(&mut self) {
        if self.reservation == Some(Reservation::Waiting) {
            self.reservation = Some(Reservation::Granted);
            self.send_signal(TaskSignal::Ready);
        }
    }

    /// Returns whether no other turn may begin.
    pub(super) fn is_reserved(&self) -> bool {
        self.reservation == Some(Reservation::Granted)
    }

    /// Begins to listen for the turn of a step. `None` if the person has stopped the run.
    pub(super) fn begin_turn(&mut self, turn: StepTurn) -> Option<StepTurn> {
        self.reservation = None;
        if self.is_stopped {
            self.send_signal(TaskSignal::NotBegun);
            return None;
        }
        self.fold = Some(StepFold::new(turn.command.is_some(), turn.announcement.clone()));
        Some(turn)
    }

    /// Takes in what happens in the session; `is_idle`: a turn is over.
    pub(super) fn observe_event(&mut self, event: &Event, is_idle: bool) {
        if let Some(fold) = &mut self.fold {
            fold.apply_event(event);
        }
        // The end of a turn that began before the step's is not the end of the step.
        if is_idle && let Some(fold) = self.fold.take_if(|fold| fold.has_begun()) {
            self.send_signal(TaskSignal::Ended(fold.finish()));
        }
    }

    /// The turn of a step could not begin.
    pub(super) fn fail_step(&mut self, error: &RequestError) {
        self.fold = None;
        self.send_signal(TaskSignal::Ended(step_result(TaskStepState::Failed, &error.cause)));
    }

    /// Opens a question: the event that shows it. If nobody can answer, the step fails.
    pub(super) fn ask_question(
        &mut self,
        question: String,
        choices: Vec<String>,
        is_interactive: bool,
    ) -> Option<Event> {
        if self.is_stopped {
            self.send_signal(TaskSignal::NotBegun);
            return None;
        }
        if !is_interactive {
            let why = "it asks a question, and nobody is there to answer";
            self.send_signal(TaskSignal::Ended(step_result(TaskStepState::Failed, why)));
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
    pub(super) fn is_open_question(&self, call: &CallId) -> bool {
        self.question.as_ref() == Some(call)
    }

    /// Takes the answer to the open question: the event that closes it.
    pub(super) fn answer_question(&mut self, answer: PermissionAnswer) -> Option<Event> {
        let call = self.question.take()?;
        let (ended, allowed) = match answer.to_inquiry() {
            PermissionAnswer::Text { text } if STOPPING.contains(&&*text.to_lowercase()) => {
                (step_result(TaskStepState::Stopped, &format!("you answered `{text}`")), false)
            }
            PermissionAnswer::Text { text } => {
                (StepResult { answer: Some(text), ..step_result(TaskStepState::Done, "") }, true)
            }
            _ => (step_result(TaskStepState::Stopped, "the question was not answered"), false),
        };
        self.send_signal(TaskSignal::Ended(ended));
        let reason = if allowed { "answered by the user" } else { "not answered by the user" };
        Some(Event::PermissionDecided { call, allowed, reason: reason.to_owned() })
    }

    /// The person stops what runs: no further step begins. Gives the event that closes an open question.
    pub(super) fn stop_run(&mut self) -> Option<Event> {
        self.is_stopped = true;
        if self.reservation.take_if(|it| *it == Reservation::Waiting).is_some() {
            self.send_signal(TaskSignal::NotBegun);
        }
        // The engine discards a step that waits.
        if self.fold.take_if(|fold| !fold.has_begun()).is_some() {
            let stopped = step_result(TaskStepState::Stopped, "you stopped the run");
            self.send_signal(TaskSignal::Ended(stopped));
        }
        self.answer_question(PermissionAnswer::Deny { reason: String::new() })
    }

    fn send_signal(&self, signal: TaskSignal) {
        // The runner waits for exactly one signal of each order that is answered.
        let _gone = self.signals.try_send(signal);
    }
}

#[cfg(test)]
mod tests {
    use gnoma_core::{
        Usage,
        session::{NoticeLevel, Outcome, SessionState},
    };

    use super::*;

    const ANNOUNCEMENT: &str = "step 1";

    fn turn() -> StepTurn {
        let (text, announcement) = ("do it".to_owned(), ANNOUNCEMENT.to_owned());
        StepTurn { text, command: None, model: None, timeout_s: 0, announcement }
    }

    /// A turn that a person stopped.
    fn other_turn(link: &mut TaskLink) {
        let (outcome, undelivered) = (Outcome::Cancelled, Vec::new());
        let (usage, answer) = (Usage::default(), None);
        let ended = Event::TurnEnded { outcome, rounds: 1, usage, undelivered, answer };
        link.observe_event(&Event::State(SessionState::Active), false);
        link.observe_event(&ended, false);
        link.observe_event(&Event::State(SessionState::Idle), true);
    }

    fn begins(link: &mut TaskLink) {
        let text = ANNOUNCEMENT.to_owned();
        link.observe_event(&Event::Notice { level: NoticeLevel::Info, text }, false);
    }

    #[test]
    fn step_is_not_ended_by_a_turn_before_it() {
        let (mut link, mut port) = task_channel();
        assert!(link.begin_turn(turn()).is_some());
        other_turn(&mut link);
        assert!(port.signals.try_recv().is_err());
        begins(&mut link);
        other_turn(&mut link);
        assert!(matches!(port.signals.try_recv(), Ok(TaskSignal::Ended(_))));
    }

    #[test]
    fn session_is_reserved_only_once_it_is_granted() {
        let (mut link, mut port) = task_channel();
        link.grant();
        link.reserve();
        assert!(!link.is_reserved() && port.signals.try_recv().is_err());
        link.grant();
        assert!(link.is_reserved() && matches!(port.signals.try_recv(), Ok(TaskSignal::Ready)));
        assert!(link.begin_turn(turn()).is_some() && !link.is_reserved());
    }

    #[test]
    fn stopped_run_begins_no_step() {
        let (mut link, mut port) = task_channel();
        link.reserve();
        assert_eq!(link.stop_run(), None);
        assert!(matches!(port.signals.try_recv(), Ok(TaskSignal::NotBegun)));
        link.reserve();
        assert!(matches!(port.signals.try_recv(), Ok(TaskSignal::NotBegun)));
        assert!(link.begin_turn(turn()).is_none());
        assert!(matches!(port.signals.try_recv(), Ok(TaskSignal::NotBegun)));
        assert_eq!(link.ask_question("x".to_owned(), Vec::new(), true), None);
        assert!(matches!(port.signals.try_recv(), Ok(TaskSignal::NotBegun)));
    }

    #[test]
    fn step_that_waits_in_the_engine_ends_when_it_is_stopped() {
        let (mut link, mut port) = task_channel();
        link.begin_turn(turn());
        link.stop_run();
        assert!(matches!(port.signals.try_recv(), Ok(TaskSignal::Ended(_))));
        other_turn(&mut link);
        assert!(port.signals.try_recv().is_err());
    }
}
