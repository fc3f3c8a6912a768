//! The loop: lines of the program in, messages of the session out.

use std::{
    collections::{HashMap, VecDeque},
    io,
    sync::Arc,
    time::Duration,
};

use anyhow::Result;
use gnoma_core::{
    CallId, Content, Event,
    protocol::{Envelope, Reply, Request, RequestError, RequestId},
    session::{PermissionAnswer, PermissionMode, SessionState},
    store::SessionId,
};
use gnoma_front::{
    AttachedMessage, ProcessEnvironment, Signals, json,
    output::{Output, OutputClosed},
    prompt,
    report::{self, Exit},
};
use serde_json::Value;
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Instant, sleep_until, timeout},
};

use super::{
    control::OutgoingMessage,
    error::DriverError,
    flags::OutputForm,
    input,
    message_translation::{self, EndedTurn, MessageTranslator},
    open::{OpenParameters, OpenSession},
    permission::RequestedChanges,
    requests,
    session_init_message::InitMessageFacts,
};

/// The longest time that a question about a call is held back until what the model said of that call has been sent.
const MAX_HELD: Duration = Duration::from_millis(500);
/// The longest time that a session may take to end.
const MAX_ENDING: Duration = Duration::from_secs(30);

/// A session that a program drives, with the loop between the two.
pub(super) struct SessionDriver {
    pub(super) openable: OpenParameters,
    pub(super) ways: WakeupSources,
    pub(super) session: Option<OpenSession>,
    pub(super) voice: MessageTranslator,
    pub(super) facts: InitMessageFacts,
    pub(super) state: DriveState,
    /// The message writer of each sub-agent.
    pub(super) voices: HashMap<SessionId, MessageTranslator>,
    /// The open requests to the session, each with the recipient of its answer.
    pub(super) asked: HashMap<RequestId, ReplyTarget>,
    /// Messages that wait until the model's call was told.
    held: Vec<(Instant, OutgoingMessage)>,
    out: Output,
}

/// The sources of events that wake the loop.
pub(super) struct WakeupSources {
    signals: Signals,
    lines: mpsc::Receiver<io::Result<String>>,
    pub(super) opening: JoinSet<Result<OpenSession, DriverError>>,
    /// Questions that are with the program: the sub-agent's session, where it is one's.
    pub(super) asking: JoinSet<(Option<SessionId>, CallId, PermissionAnswer)>,
}

/// The progress of the session and of the program's requests.
#[derive(Default)]
pub(super) struct DriveState {
    /// No more lines come.
    pub(super) has_read_all: bool,
    /// The program wants to know whether something is under way.
    pub(super) tells_states: bool,
    /// The session is there.
    pub(super) has_begun: bool,
    /// The last report to the program on whether a turn is under way.
    pub(super) told_state: &'static str,
    /// The messages that arrived before the session was open.
    pub(super) early: Vec<Value>,
    /// The `initialize` that is to be answered.
    pub(super) initialize: Option<Value>,
    /// Messages that wait, with the program's id of each.
    pub(super) queue: VecDeque<(Vec<Content>, Option<String>)>,
    pub(super) turn: Option<Turn>,
    /// The program's ids of the messages that began turns.
    pub(super) turns: Vec<Option<String>>,
    /// Models that wait for the turn to end.
    pub(super) later: Vec<Value>,
    /// True if calls that need approval are denied without asking the program.
    pub(super) denies: bool,
    /// The permission mode that was chosen since the session began.
    pub(super) mode: Option<PermissionMode>,
    /// The model that the session began with.
    pub(super) usual: Option<String>,
    pub(super) window: Option<u64>,
    /// The call that has started a sub-agent.
    pub(super) agent_call: Option<String>,
    pub(super) has_failed: bool,
    /// The exit of the program, once it is known.
    pub(super) exit: Option<Exit>,
}

/// A turn that runs.
pub(super) struct Turn {
    pub(super) started: Instant,
    pub(super) ended: Option<EndedTurn>,
    pub(super) over_budget: bool,
}

/// Whom a reply is for.
pub(super) enum ReplyTarget {
    /// The program, as the answer to its request of this id.
    Program(Value),
    /// The sender of a message that begins a turn.
    Said,
}

/// The event that woke the loop.
enum DriverWakeup {
    Signal(i32),
    Written(Result<(), OutputClosed>),
    Line(Option<io::Result<String>>),
    Opened(Box<Result<OpenSession, DriverError>>),
    Heard(Option<AttachedMessage>),
    Child(Arc<Envelope>),
    Outgoing(OutgoingMessage),
    Wished(RequestedChanges),
    Answered(Option<SessionId>, CallId, PermissionAnswer),
    HeldLongEnough,
}

impl SessionDriver {
    /// Creates a drive that is ready to run.
    ///
    /// # Errors
    /// Signals cannot be heard.
    pub(super) fn new(openable: OpenParameters, around: &ProcessEnvironment) -> Result<Self> {
        let tells_pieces = openable.flags.tells.partial;
        let denies = openable.flags.session.mode.as_deref() == Some("dontAsk");
        let tells_states = around.var("CLAUDE_CODE_SDK_READS_SESSION_STATE").is_some();
        let ways = WakeupSources {
            signals: Signals::new(around.ignores_hangup)?,
            lines: if openable.flags.streams_in {
                input::stdin_lines()
            } else {
                mpsc::channel(1).1
            },
            opening: JoinSet::new(),
            asking: JoinSet::new(),
        };
        let mut drive = Self {
            voice: MessageTranslator::new(&openable.id, None, tells_pieces),
            ways,
            session: None,
            facts: InitMessageFacts::default(),
            state: DriveState { denies, tells_states, ..DriveState::default() },
            voices: HashMap::new(),
            asked: HashMap::new(),
            held: Vec::new(),
            out: Output::new(false),
            openable,
        };
        if !drive.openable.flags.streams_in {
            drive.read_prompt()?;
        }
        Ok(drive)
    }

    /// The prompt of the command line or of standard input is all there is.
    fn read_prompt(&mut self) -> Result<()> {
        let content = prompt::read_user_content(&self.openable.flags.words)?;
        let content = content.ok_or_else(|| {
            gnoma_host::HostError::usage(
                "no prompt given; programs add `--input-format stream-json`, and people run `gnoma`",
            )
        })?;
        self.state.queue.push_back((content, None));
        self.open();
        Ok(())
    }

    /// Runs to the end of the program's input and of the work on it.
    ///
    /// # Errors
    /// What was to be written cannot be.
    pub(super) async fn run(mut self) -> Result<Exit> {
        while self.state.exit.is_none() {
            let woke = self.next_wakeup().await;
            if let Err(OutputClosed(error)) = self.on_wakeup(woke) {
                self.state.exit = Some(report::exit_after_write_error(error)?);
            }
            if self.is_done() && self.state.exit.is_none() {
                let failed = self.state.has_failed;
                self.state.exit = Some(if failed { Exit::Failed } else { Exit::Done });
            }
        }
        if let Err(OutputClosed(error)) = self.out.wait_until_written().await {
            report::exit_after_write_error(error)?;
        }
        self.close_session().await;
        Ok(self.state.exit.unwrap_or(Exit::Done))
    }

    /// True if nothing is left to do.
    fn is_done(&self) -> bool {
        let DriveState { has_read_all, queue, turn, .. } = &self.state;
        *has_read_all
            && queue.is_empty()
            && turn.is_none()
            && self.ways.opening.is_empty()
            && self.state.initialize.is_none()
            && self.asked.is_empty()
            && self.out.is_empty()
    }

    async fn next_wakeup(&mut self) -> DriverWakeup {
        let Self { openable, ways, session, state, held, out, .. } = self;
        let until = held.iter().map(|(until, _)| *until).min();
        let (writes, listens) = (!out.is_empty(), !out.is_full());
        let reads = !state.has_read_all;
        tokio::select! {
            biased;
            signal = ways.signals.next() => DriverWakeup::Signal(signal),
            line = ways.lines.recv(), if reads => DriverWakeup::Line(line),
            heard = next_session_event(session), if listens => heard,
            Some(opened) = ways.opening.join_next() => {
                let opened = opened.unwrap_or_else(|error| Err(DriverError::OpeningCrashed(error)));
                DriverWakeup::Opened(Box::new(opened))
            }
            Some(Ok((session, call, answer))) = ways.asking.join_next() => {
                DriverWakeup::Answered(session, call, answer)
            }
            wishes = openable.program.permission.next_wishes() => DriverWakeup::Wished(wishes),
            Some(outgoing) = openable.outgoing.recv(), if listens => DriverWakeup::Outgoing(outgoing),
            () = sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() => {
                DriverWakeup::HeldLongEnough
            }
            written = out.wait_until_written(), if writes => DriverWakeup::Written(written),
        }
    }

    fn on_wakeup(&mut self, woke: DriverWakeup) -> Result<(), OutputClosed> {
        match woke {
            DriverWakeup::Signal(signal) => self.state.exit = Some(Exit::Signalled(signal)),
            DriverWakeup::Written(written) => return written,
            DriverWakeup::Line(line) => return self.on_line(line),
            DriverWakeup::Opened(opened) => return self.on_session_opened(*opened),
            DriverWakeup::Heard(Some(AttachedMessage::Event(event))) => {
                return self.on_event(&event);
            }
            DriverWakeup::Heard(Some(AttachedMessage::Reply(id, result))) => {
                return self.on_reply(id, result);
            }
            DriverWakeup::Heard(None) => return self.on_session_gone(),
            DriverWakeup::Child(envelope) => {
                return self.on_child_event(&envelope.session, &envelope.event);
            }
            DriverWakeup::Outgoing(outgoing) => return self.hold_message(outgoing),
            DriverWakeup::Wished(wishes) => self.apply_wishes(wishes),
            DriverWakeup::Answered(session, call, answer) => {
                self.answer_question(session.as_ref(), call, answer);
            }
            DriverWakeup::HeldLongEnough => (),
        }
        self.release_messages()
    }

    /// Writes a message, where it is wanted.
    pub(super) fn write_message(&mut self, message: &Value) -> Result<(), OutputClosed> {
        let kind = message.get("type").and_then(Value::as_str).unwrap_or_default();
        // What the program answers comes back as it was asked.
        let is_question = kind.starts_with("control_");
        let shown = match is_question {
            true => message.to_string(),
            false => json::redact_value(message, &self.openable.firewall).to_string(),
        };
        match (self.openable.flags.output, kind) {
            (OutputForm::Stream, _) | (OutputForm::Json, "result") => {
                self.out.push_text(&format!("{shown}\n"))?;
            }
            (OutputForm::Text, "result") => {
                let text = message.get("result").and_then(Value::as_str).unwrap_or_default();
                let text = self.openable.firewall.redact_text(text).into_owned();
                self.out.push_text(&format!("{text}\n"))?;
            }
            _ => (),
        }
        self.out.flush()
    }

    /// Asks the session something.
    pub(super) fn send_request(
        &mut self,
        request: Request,
        asked: ReplyTarget,
    ) -> Result<(), OutputClosed> {
        let Some(session) = &mut self.session else { return Ok(()) };
        match session.main.request_with_reply(request) {
            Ok(id) => {
                self.asked.insert(id, asked);
                Ok(())
            }
            Err(error) => self.came_of(asked, Err(error)),
        }
    }

    fn on_reply(
        &mut self,
        id: RequestId,
        result: Result<Reply, RequestError>,
    ) -> Result<(), OutputClosed> {
        match self.asked.remove(&id) {
            Some(asked) => self.came_of(asked, result),
            None => Ok(()),
        }
    }

    fn came_of(
        &mut self,
        asked: ReplyTarget,
        result: Result<Reply, RequestError>,
    ) -> Result<(), OutputClosed> {
        match (asked, result) {
            (ReplyTarget::Program(id), result) => {
                let answer =
                    requests::answer_from_reply(result, self.voice.model(), self.state.window);
                self.write_message(&requests::response_message(&id, answer))
            }
            (ReplyTarget::Said, Err(error)) => {
                self.state.turn = None;
                self.state.has_failed = true;
                let session = self.facts.session.clone();
                self.write_message(&message_translation::failure_result(&error.cause, &session))?;
                self.next_turn()
            }
            (ReplyTarget::Said, Ok(_)) => Ok(()),
        }
    }

    /// Keeps a message until the call that it is about was told.
    pub(super) fn hold_message(&mut self, outgoing: OutgoingMessage) -> Result<(), OutputClosed> {
        if self.is_told(&outgoing) {
            return self.write_message(&outgoing.message);
        }
        self.held.push((Instant::now() + MAX_HELD, outgoing));
        Ok(())
    }

    fn is_told(&self, outgoing: &OutgoingMessage) -> bool {
        let has = |call: &str| {
            self.voice.has_told(call) || self.voices.values().any(|voice| voice.has_told(call))
        };
        outgoing.after_call.as_deref().is_none_or(has)
    }

    /// Writes what waits no longer.
    pub(super) fn release_messages(&mut self) -> Result<(), OutputClosed> {
        let now = Instant::now();
        for (until, outgoing) in std::mem::take(&mut self.held) {
            if until <= now || self.is_told(&outgoing) {
                self.write_message(&outgoing.message)?;
            } else {
                self.held.push((until, outgoing));
            }
        }
        Ok(())
    }

    pub(super) fn release_all(&mut self) -> Result<(), OutputClosed> {
        while let Ok(outgoing) = self.openable.outgoing.try_recv() {
            self.held.push((Instant::now(), outgoing));
        }
        for (_, outgoing) in std::mem::take(&mut self.held) {
            self.write_message(&outgoing.message)?;
        }
        Ok(())
    }

    async fn close_session(&mut self) {
        if let Some(OpenSession { mut main, children: _ }) = self.session.take() {
            main.send_request(Request::Close);
            let ended = async {
                while let Some(event) = main.next().await {
                    if matches!(event, Event::State(SessionState::Closed)) {
                        break;
                    }
                }
            };
            let _late = timeout(MAX_ENDING, ended).await;
        }
        self.openable.host.shut_down().await;
    }
}

/// Waits for the next event of the session or of the sessions that it has started.
async fn next_session_event(session: &mut Option<OpenSession>) -> DriverWakeup {
    match session {
        None => std::future::pending().await,
        Some(OpenSession { main, children }) => tokio::select! {
            biased;
            heard = main.next_event_or_reply() => DriverWakeup::Heard(heard),
            envelope = children.next() => DriverWakeup::Child(envelope),
        },
    }
}
