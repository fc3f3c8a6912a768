//! The front end without a screen: one turn of a session, written to standard output.
//!
//! Standard output carries the answer in the chosen form and nothing else; all the rest goes to
//! standard error.

mod task;
mod wakeup;

use std::sync::Arc;

use anyhow::{Error, Result, anyhow};
use gnoma_core::{
    Content, Event, RawJson, Role, StopReason,
    protocol::{Envelope, Request},
    session::{NoticeLevel, Outcome, SessionState},
};
use gnoma_engine::gate::NOBODY_TO_ASK;
use gnoma_guard::firewall::Firewall;
use gnoma_host::live::Host;
use gnoma_schema::Schema;
use rustix::{io::Errno, process::Signal};

use self::wakeup::{Wakeup, WakeupSources, next_message};
use crate::{
    ask::{self, Asker},
    attached_session::{AttachedMessage, AttachedSession},
    children::Children,
    environment::ProcessEnvironment,
    json::{self, Json},
    output::{self, Output, OutputClosed},
    output_format::OutputFormat,
    report::{self, Exit},
    stream_json::StreamJson,
    text::Text,
    view::{SilentView, View},
};

/// Reasons that are kept to be said at the end.
const MAX_UNASKED: usize = 10;

/// One turn of a session, written to standard output as it happens.
pub struct Front {
    view: Box<dyn View>,
    out: Output,
    animated: bool,
    ignores_hangup: bool,
    /// Standard output is a terminal.
    is_terminal: bool,
    /// The outcome of the turn, once it has ended.
    outcome: Option<Outcome>,
    /// Takes secrets out of what is written for programs.
    firewall: Arc<Firewall>,
    /// The form of the answer, and what takes secrets out of it.
    redaction: Option<(Schema, Arc<Firewall>)>,
    /// The answer in its form, where it is not written.
    answer: Option<RawJson>,
    /// The model has said something, or a call of it has succeeded.
    has_result: bool,
    /// The reasons why calls were refused because there was no person to ask, each reason once.
    unasked: Vec<String>,
    /// The sessions that calls start, where the form tells of them.
    children: Option<Children>,
}

impl Front {
    /// Creates the front end for one output format. Output for programs goes through `firewall`, because it ends up
    /// in logs.
    pub fn new(
        format: OutputFormat,
        around: &ProcessEnvironment,
        firewall: Arc<Firewall>,
        schema: Option<Schema>,
    ) -> Self {
        let is_text = format == OutputFormat::Text;
        let view: Box<dyn View> = match format {
            OutputFormat::Text => Box::new(Text::new(around, schema.is_some())),
            OutputFormat::Json => Box::new(Json::new(Arc::clone(&firewall), false)),
            OutputFormat::StreamJson => Box::new(StreamJson::new(Arc::clone(&firewall))),
        };
        // JSON is for programs, whatever is written around it.
        let is_prose = is_text && schema.is_none();
        let animated = format == OutputFormat::Text && around.can_redraw_line();
        Self {
            view,
            out: Output::new(is_prose || around.stdout_is_terminal),
            firewall: Arc::clone(&firewall),
            redaction: schema.filter(|_| !is_text).map(|schema| (schema, firewall)),
            animated,
            ignores_hangup: around.ignores_hangup,
            is_terminal: around.stdout_is_terminal,
            outcome: None,
            answer: None,
            has_result: false,
            unasked: Vec::new(),
            children: None,
        }
    }

    /// Creates a front end that writes nothing. [`Self::run_for_answer`] returns the answer, which fits `schema` without
    /// its secrets.
    pub fn without_output(
        around: &ProcessEnvironment,
        firewall: Arc<Firewall>,
        schema: Schema,
    ) -> Self {
        let front = Self::new(OutputFormat::Json, around, firewall, Some(schema));
        Self { view: Box::new(SilentView), ..front }
    }

    /// Creates a front end that shows a turn by `view`, which writes for programs.
    pub fn with_view(
        view: Box<dyn View>,
        around: &ProcessEnvironment,
        firewall: Arc<Firewall>,
        schema: Option<Schema>,
    ) -> Self {
        Self { view, ..Self::new(OutputFormat::StreamJson, around, firewall, schema) }
    }

    /// Shows also the sessions that calls of `session` start.
    pub fn with_children(self, host: &Host, session: &AttachedSession) -> Self {
        let children = Children::watch_host(host, "pipe-elfs", session.id().clone());
        Self { children: Some(children), ..self }
    }

    /// Runs one turn to its end, and the session with it.
    ///
    /// # Errors
    /// The session does not take the words or broke down, or what it said cannot be written.
    pub async fn run_turn(
        mut self,
        session: AttachedSession,
        content: Vec<Content>,
        asker: Option<Asker>,
    ) -> Result<Exit> {
        self.run(session, content, asker).await
    }

    /// Runs one turn to its end, and the session with it. Gives the answer in its form, where there is one.
    ///
    /// # Errors
    /// The session does not take the words or broke down.
    pub async fn run_for_answer(
        mut self,
        session: AttachedSession,
        content: Vec<Content>,
    ) -> Result<(Exit, Option<RawJson>)> {
        let exit = self.run(session, content, None).await?;
        Ok((exit, self.answer))
    }

    async fn run(
        &mut self,
        mut session: AttachedSession,
        content: Vec<Content>,
        asker: Option<Asker>,
    ) -> Result<Exit> {
        session.send_request(Request::Send { content });
        let exit = self.follow_session(&mut session, asker).await;
        self.close_session(session).await;
        exit
    }

    /// Ends the session, and says what it still has to say.
    async fn close_session(&mut self, mut session: AttachedSession) {
        // After a second signal, or where the session is gone: as much as nobody has to wait for.
        self.view.break_off(&mut self.out).and_then(|()| self.out.flush()).ok();
        // The session ends its tools before it says that it is closed, and what could not be kept.
        session.send_request(Request::Close);
        while let Some(event) = session.next().await {
            match event {
                Event::Notice { level: NoticeLevel::Warning, text } => {
                    report::print_warning(&text);
                }
                Event::State(SessionState::Closed) => break,
                _ => (),
            }
        }
    }

    async fn follow_session(
        &mut self,
        session: &mut AttachedSession,
        asker: Option<Asker>,
    ) -> Result<Exit> {
        let mut sources = WakeupSources::new(self.ignores_hangup, asker)?;
        let (mut stopped, mut over) = (None, None);
        loop {
            if let (Some(exit), true) = (over, self.out.is_empty()) {
                return Ok(exit);
            }
            let event = match self.next_wakeup(&mut sources, session, over.is_none()).await {
                Wakeup::Signal(signal) => {
                    if stopped.replace(signal).is_some() {
                        return Ok(Exit::Signalled(signal));
                    }
                    session.send_request(Request::Cancel);
                    continue;
                }
                Wakeup::Other(Ok(())) | Wakeup::Message(Some(AttachedMessage::Reply(..))) => {
                    continue;
                }
                Wakeup::Other(Err(gone)) => return self.exit_after_write_error(gone, stopped),
                Wakeup::Message(Some(AttachedMessage::Event(event))) => *event,
                Wakeup::Message(None) => {
                    return Err(session.take_refusal().unwrap_or_else(session_crashed_error));
                }
            };
            match self.show_events(event, session, &mut sources.asker) {
                Ok(Step::Going) => (),
                Ok(Step::Broken) => return Err(session_crashed_error()),
                Ok(Step::Over(outcome)) => {
                    let outcome = outcome.as_ref();
                    over = Some(exit_after_turn(outcome, self.has_result, &self.unasked, stopped));
                    self.view.last_words();
                }
                Err(gone) => return self.exit_after_write_error(gone, stopped),
            }
        }
    }

    /// Waits for what comes next, and does it, unless the caller has to: signals, and what comes from the session.
    /// `listens`: more of the session is wanted.
    async fn next_wakeup(
        &mut self,
        sources: &mut WakeupSources,
        session: &mut AttachedSession,
        listens: bool,
    ) -> Wakeup {
        Wakeup::Other(tokio::select! {
            biased;
            signal = sources.signals.next() => return Wakeup::Signal(signal),
            answer = ask::wait_for_answer(&mut sources.asker) => {
                session.send_request(answer);
                Ok(())
            }
            gone = output::reader_left() => Err(gone),
            written = self.out.wait_until_written(), if !self.out.is_empty() => written,
            envelope = next_child_event(&mut self.children), if !self.out.is_full() => {
                self.view.child_event(&envelope.session, &envelope.event, &mut self.out)
            }
            heard = next_message(session, sources.wants_replies), if listens && !self.out.is_full() => {
                return Wakeup::Message(heard);
            }
            _ = sources.ticks.tick(), if self.animated => {
                self.view.tick();
                Ok(())
            }
        })
    }

    /// Returns the exit of the program if nothing can be written any more.
    fn exit_after_write_error(
        &self,
        OutputClosed(error): OutputClosed,
        stopped: Option<i32>,
    ) -> Result<Exit> {
        let is_closed_terminal = error.raw_os_error() == Some(Errno::IO.raw_os_error());
        match stopped {
            Some(signal) => Ok(Exit::Signalled(signal)),
            // The terminal was closed, and its signal is still on the way.
            None if is_closed_terminal && self.is_terminal => {
                Ok(Exit::Signalled(Signal::HUP.as_raw()))
            }
            None => report::exit_after_write_error(error),
        }
    }

    /// Shows `event` and what else is ready, and writes it in one go.
    fn show_events(
        &mut self,
        event: Event,
        session: &mut AttachedSession,
        asker: &mut Option<Asker>,
    ) -> Result<Step, OutputClosed> {
        let mut next = Some(event);
        let mut step = Step::Going;
        while let (Some(event), Step::Going) = (next, &step) {
            let event = self.redact_event(event);
            self.view.on_event(&event, &mut self.out)?;
            if let Some(asker) = &mut *asker {
                asker.on_event(&event);
            }
            if let Event::PermissionDecided { allowed: false, reason, .. } = &event
                && reason.contains(NOBODY_TO_ASK)
                && self.unasked.len() < MAX_UNASKED
                && !self.unasked.contains(reason)
            {
                self.unasked.push(reason.clone());
            }
            self.has_result |= is_result(&event);
            if let Event::State(SessionState::Idle) = event {
                step = Step::Over(self.outcome.take());
            }
            if let Event::State(SessionState::Closed) = event {
                step = Step::Broken;
            }
            if let Event::TurnEnded { outcome, answer, .. } = event {
                (self.outcome, self.answer) = (Some(outcome), answer);
            }
            next = if self.out.is_full() { None } else { session.next_ready_event() };
        }
        self.out.flush()?;
        Ok(step)
    }
}

impl Front {
    /// The event as it may be written: an answer that does not fit its form without its secrets is none.
    fn redact_event(&self, event: Event) -> Event {
        let Some((schema, firewall)) = &self.redaction else { return event };
        match event {
            Event::TurnEnded { outcome, rounds, usage, undelivered, answer: Some(answer) } => {
                let value = answer.read().map(|value| json::redact_value(&value, firewall));
                let value = value.unwrap_or_default();
                let (outcome, answer) = match schema.check(&value) {
                    Ok(()) => (outcome, RawJson::from_value(&value).ok()),
                    Err(why) => {
                        let why =
                            format!("the secrets in it are not written, and without them {why}");
                        (Outcome::Unfit { why, answers: 1 }, None)
                    }
                };
                Event::TurnEnded { outcome, rounds, usage, undelivered, answer }
            }
            event => event,
        }
    }
}

/// True if an event brings something that a turn was for: words, an answer in its form, or a call that succeeded.
fn is_result(event: &Event) -> bool {
    match event {
        Event::Appended(message) => {
            message.role() == Role::Assistant
                && !gnoma_core::names::is_blank(&message.text_content())
        }
        Event::ToolEnded { result, .. } => !result.is_error,
        // Hooks can end a turn after calls.
        Event::TurnEnded { outcome, answer, .. } => {
            answer.is_some() || matches!(outcome, Outcome::Complete { stop: StopReason::Other })
        }
        _ => false,
    }
}

/// Waits for the next event of the sessions that calls have started. Safe to drop.
async fn next_child_event(children: &mut Option<Children>) -> Arc<Envelope> {
    match children {
        Some(children) => children.next().await,
        None => std::future::pending().await,
    }
}

/// The progress of a turn after an event.
enum Step {
    Going,
    Over(Option<Outcome>),
    /// The session has ended before the turn.
    Broken,
}

fn session_crashed_error() -> Error {
    anyhow!("the session crashed; this is a bug in gnoma")
}

/// Returns the exit of the program after a turn that a signal may have stopped, and prints the last words about it.
fn exit_after_turn(
    outcome: Option<&Outcome>,
    has_result: bool,
    unasked: &[String],
    stopped_by: Option<i32>,
) -> Exit {
    if let Some(signal) = stopped_by {
        return Exit::Signalled(signal);
    }
    match outcome {
        // The session has said why there is no answer.
        Some(Outcome::Complete { stop: StopReason::Refusal | StopReason::ContentFilter }) => {
            Exit::Failed
        }
        Some(Outcome::Complete { .. }) if unasked.is_empty() && has_result => Exit::Done,
        // The session has said so; a script must not take nothing for an answer.
        Some(Outcome::Complete { .. }) if unasked.is_empty() => Exit::Failed,
        Some(Outcome::Complete { .. }) => {
            // The line about the call was short; what helps is said whole.
            for reason in unasked {
                report::print_line(format_args!("gnoma: denied: {reason}"));
            }
            Exit::NotApproved
        }
        Some(Outcome::Cancelled) | None => Exit::Interrupted,
        Some(Outcome::Failed { error, .. }) => {
            report::report_provider_error(error);
            Exit::from_provider_error(error)
        }
        Some(Outcome::RoundLimit { rounds }) => {
            let calls = if *rounds == 1 { "call" } else { "calls" };
            report::print_line(format_args!(
                "gnoma: stopped after {rounds} model {calls}; raise the limit with --max-turns"
            ));
            Exit::OverLimit
        }
        Some(Outcome::Unfit { why, answers }) => exit_after_unfit_answers(why, *answers),
        Some(Outcome::Stuck { what }) => {
            report::print_line(format_args!(
                "gnoma: stopped: {what}; try a clearer request or another model"
            ));
            Exit::Failed
        }
    }
}

fn exit_after_unfit_answers(why: &str, answers: u32) -> Exit {
    report::print_line(format_args!(
        "gnoma: no answer fits the JSON schema ({answers} tried); the last one: {why}"
    ));
    Exit::Unfit
}
