//! The connection between the runner of a task and the loop of its session: orders to the loop, and what becomes of
//! them.

use std::sync::atomic::{AtomicU32, Ordering};

use gnoma_core::{
    CallId, Event,
    protocol::{Reply, RequestError, RequestErrorKind, TaskReport, TaskStepState},
    session::{PermissionAnswer, PermissionMode, StepTurn},
};
use gnoma_extend::tasks::StepResult;
use tokio::sync::mpsc::{self, error::SendError};

use super::{
    own_question::OwnQuestion, replier::Replier, side_fold::SideFold, step_children::StepChildren,
    step_fold::StepFold,
};

/// Orders that may wait for the loop.
const MAX_ORDERS: usize = 8;
/// Signals that may wait for the runner: the ends of all steps that run side by side.
const MAX_SIGNALS: usize = 32;
/// Answers to a question that stop the run, as choices.
const STOPPING: [&str; 2] = ["no", "stop"];

/// The number of questions of tasks in this process: two runs of a session do not have the same.
static QUESTIONS: AtomicU32 = AtomicU32::new(1);

/// An order of the runner to the session's loop.
pub(super) enum TaskOrder {
    /// Hold the session to the strictest of its own mode and `modes`, unless one of the `models` is not in the session.
    /// Answered by `Ready` or `Refused`.
    Open { modes: Vec<PermissionMode>, models: Vec<String> },
    /// Let no other turn begin once the session is idle. Answered by `Ready` or `NotBegun`.
    Reserve,
    /// Run this as a turn in the session that was reserved. Answered by `Ended` or `NotBegun`; if steps run side by side
    /// in it, by `SideEnded` for each step that has ended, and `NotBegun` for those that are left.
    Turn(StepTurn),
    /// Ask the person. Answered by `Ended` or `NotBegun`.
    Ask { question: String, choices: Vec<String> },
    /// Ask the person what to do about a step that failed, unless a schedule began the run. Answered as `Ask`.
    AskAfterFailure { question: String, choices: Vec<String> },
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
    /// The step at this place among those that run side by side has ended.
    SideEnded(usize, StepResult),
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
    /// Of the turn in which steps run side by side.
    side_fold: Option<SideFold>,
    reservation: Option<Reservation>,
    question: OwnQuestion,
    /// The mode that the session is restricted to, and the one that it had.
    pub(super) restriction: Option<(PermissionMode, PermissionMode)>,
    /// The person has stopped the run.
    is_stopped: bool,
}

/// The runner's end of a run.
pub(super) struct TaskPort {
    orders: mpsc::Sender<TaskOrder>,
    signals: mpsc::Receiver<TaskSignal>,
}

/// Connects a runner and a loop.
pub(super) fn task_channel() -> (TaskLink, TaskPort) {
    let (send_order, orders) = mpsc::channel(MAX_ORDERS);
    let (signals, hear_signal) = mpsc::channel(MAX_SIGNALS);
    let link = TaskLink {
        orders,
        signals,
        fold: None,
        side_fold: None,
        reservation: None,
        question: OwnQuestion::default(),
        restriction: None,
        is_stopped: false,
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
    let (why, models, took_ms) = (why.to_owned(), Vec::new(), None);
    StepResult { state, why, micro_usd: 0, answer: None, message: None, models, took_ms }
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

    /// Begins to listen for the turn of a step, or of steps with their elfs. `None` if the person has stopped the run.
    pub(super) fn begin_turn(
        &mut self,
        turn: StepTurn,
        children: &StepChildren,
    ) -> Option<StepTurn> {
        self.reservation = None;
        if self.is_stopped {
            self.send_signal(TaskSignal::NotBegun);
            return None;
        }
        if turn.side_steps.is_empty() {
            self.fold = Some(StepFold::new(turn.command.is_some(), turn.announcement.clone()));
        } else {
            self.side_fold = Some(SideFold::new(&turn, children));
        }
        Some(turn)
    }

    /// Takes in what happens in the session; `is_idle`: a turn is over.
    pub(super) fn observe_event(&mut self, event: &Event, is_idle: bool) {
        if let Some(fold) = &mut self.fold {
            fold.apply_event(event);
        }
        let ended = self.side_fold.as_mut().and_then(|fold| fold.apply_event(event));
        if let Some((place, result)) = ended {
            self.send_signal(TaskSignal::SideEnded(place, result));
        }
        // The end of a turn that began before the step's is not the end of the step.
        if is_idle && let Some(fold) = self.fold.take_if(|fold| fold.has_begun()) {
            self.send_signal(TaskSignal::Ended(fold.finish()));
        }
        if is_idle && self.side_fold.take_if(|fold| fold.has_begun()).is_some() {
            self.send_signal(TaskSignal::NotBegun);
        }
    }

    /// The turn of a step could not begin.
    pub(super) fn fail_step(&mut self, error: &RequestError) {
        (self.fold, self.side_fold) = (None, None);
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
        let number = QUESTIONS.fetch_add(1, Ordering::Relaxed);
        Some(self.question.open(format!("gnoma-task-question-{number}"), question, choices))
    }

    /// Returns whether a call is the open question.
    pub(super) fn is_open_question(&self, call: &CallId) -> bool {
        self.question.has_id(call)
    }

    /// Takes the answer to the open question: the events that close it.
    pub(super) fn answer_question(&mut self, answer: PermissionAnswer) -> Vec<Event> {
        if !self.question.is_open() {
            return Vec::new();
        }
        let ended = match answer.to_inquiry() {
            PermissionAnswer::Text { text } if STOPPING.contains(&&*text.to_lowercase()) => {
                step_result(TaskStepState::Stopped, &format!("you answered `{text}`"))
            }
            PermissionAnswer::Text { text } => {
                StepResult { answer: Some(text), ..step_result(TaskStepState::Done, "") }
            }
            _ => step_result(TaskStepState::Stopped, "the question was not answered"),
        };
        let answered = ended.answer.clone();
        self.send_signal(TaskSignal::Ended(ended));
        let is_answered = answered.is_some();
        let reason = if is_answered { "answered by the user" } else { "not answered by the user" };
        self.question.close(answered.as_deref(), reason)
    }

    /// The person stops what runs: no further step begins. Gives the events that close an open question.
    pub(super) fn stop_run(&mut self) -> Vec<Event> {
        self.is_stopped = true;
        if self.reservation.take_if(|it| *it == Reservation::Waiting).is_some() {
            self.send_signal(TaskSignal::NotBegun);
        }
        // The engine discards a step that waits, but may already have begun it: it does not run again unasked.
        let stopped = || step_result(TaskStepState::Stopped, "you stopped the run");
        if self.fold.take_if(|fold| !fold.has_begun()).is_some() {
            self.send_signal(TaskSignal::Ended(stopped()));
        }
        if let Some(fold) = self.side_fold.take_if(|fold| !fold.has_begun()) {
            (0..fold.step_count())
                .for_each(|place| self.send_signal(TaskSignal::SideEnded(place, stopped())));
            self.send_signal(TaskSignal::NotBegun);
        }
        self.answer_question(PermissionAnswer::Deny { reason: String::new() })
    }

    fn send_signal(&self, signal: TaskSignal) {
        // The runner hears all signals of an order before it gives the next one.
        let _gone = self.signals.try_send(signal);
    }
}

#[cfg(test)]
mod tests {
    use gnoma_core::{
        RawJson, ToolCall, ToolResult, Usage,
        session::{NoticeLevel, Outcome, SessionState, SideStep, SideWork},
    };

    use super::*;

    const ANNOUNCEMENT: &str = "step 1";

    fn turn() -> StepTurn {
        let (text, announcement) = ("do it".to_owned(), ANNOUNCEMENT.to_owned());
        StepTurn { text, announcement, ..StepTurn::default() }
    }

    fn side_turn() -> StepTurn {
        let side_step = |id: &str| SideStep {
            call: CallId::new(id),
            text: String::new(),
            title: String::new(),
            work: SideWork::Command { command: "ls".to_owned(), timeout_s: 1 },
        };
        StepTurn { side_steps: vec![side_step("a"), side_step("b")], ..turn() }
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
    fn earlier_turn_does_not_end_a_task_step() {
        let (mut link, mut port) = task_channel();
        assert!(link.begin_turn(turn(), &StepChildren::default()).is_some());
        other_turn(&mut link);
        assert!(port.signals.try_recv().is_err());
        begins(&mut link);
        other_turn(&mut link);
        assert!(matches!(port.signals.try_recv(), Ok(TaskSignal::Ended(_))));
    }

    #[test]
    fn parallel_task_steps_end_individually_before_their_turn() {
        let (mut link, mut port) = task_channel();
        assert!(link.begin_turn(side_turn(), &StepChildren::default()).is_some());
        begins(&mut link);
        let call = ToolCall::new(CallId::new("a"), "bash", RawJson::empty_object());
        let (result, diff, command) = (ToolResult::from_text(&call, "x", false), None, None);
        link.observe_event(&Event::ToolStarted { call: call.clone() }, false);
        let ended = Event::ToolEnded { call, result, diff, duration_ms: 1, command };
        link.observe_event(&ended, false);
        let told = Event::Appended(std::sync::Arc::new(gnoma_core::Message::user_text("a")));
        link.observe_event(&told, false);
        other_turn(&mut link);
        assert!(matches!(port.signals.try_recv(), Ok(TaskSignal::SideEnded(0, _))));
        assert!(matches!(port.signals.try_recv(), Ok(TaskSignal::NotBegun)));
    }

    #[test]
    fn session_is_reserved_only_once_it_is_granted() {
        let (mut link, mut port) = task_channel();
        link.grant();
        link.reserve();
        assert!(!link.is_reserved() && port.signals.try_recv().is_err());
        link.grant();
        assert!(link.is_reserved() && matches!(port.signals.try_recv(), Ok(TaskSignal::Ready)));
        assert!(link.begin_turn(turn(), &StepChildren::default()).is_some() && !link.is_reserved());
    }

    #[test]
    fn answered_task_question_emits_a_tool_result() {
        let (mut link, _port) = task_channel();
        assert!(link.ask_question("Push it?".to_owned(), Vec::new(), true).is_some());
        let events = link.answer_question(PermissionAnswer::Text { text: "yes".to_owned() });
        let [Event::PermissionDecided { allowed: true, .. }, Event::ToolEnded { result, .. }] =
            events.as_slice()
        else {
            panic!("{events:?}")
        };
        assert_eq!((result.joined_text().as_str(), result.is_error), ("yes", false));
        assert!(link.answer_question(PermissionAnswer::Text { text: "no".to_owned() }).is_empty());
    }

    #[test]
    fn stopped_run_begins_no_step() {
        let (mut link, mut port) = task_channel();
        link.reserve();
        assert!(link.stop_run().is_empty());
        assert!(matches!(port.signals.try_recv(), Ok(TaskSignal::NotBegun)));
        link.reserve();
        assert!(matches!(port.signals.try_recv(), Ok(TaskSignal::NotBegun)));
        assert!(link.begin_turn(turn(), &StepChildren::default()).is_none());
        assert!(matches!(port.signals.try_recv(), Ok(TaskSignal::NotBegun)));
        assert_eq!(link.ask_question("x".to_owned(), Vec::new(), true), None);
        assert!(matches!(port.signals.try_recv(), Ok(TaskSignal::NotBegun)));
    }

    #[test]
    fn waiting_task_step_ends_when_the_run_is_stopped() {
        let (mut link, mut port) = task_channel();
        link.begin_turn(turn(), &StepChildren::default());
        link.stop_run();
        assert!(matches!(port.signals.try_recv(), Ok(TaskSignal::Ended(_))));
        other_turn(&mut link);
        assert!(port.signals.try_recv().is_err());
    }

    #[test]
    fn waiting_parallel_task_steps_end_when_the_run_is_stopped() {
        let (mut link, mut port) = task_channel();
        link.begin_turn(side_turn(), &StepChildren::default());
        link.stop_run();
        for at in 0..2 {
            let Ok(TaskSignal::SideEnded(place, result)) = port.signals.try_recv() else {
                panic!("step {at} has no end")
            };
            assert_eq!((place, result.state), (at, TaskStepState::Stopped));
        }
        assert!(matches!(port.signals.try_recv(), Ok(TaskSignal::NotBegun)));
    }
}
