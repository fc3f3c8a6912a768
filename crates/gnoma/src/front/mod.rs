//! The front end without a screen: one turn of a session, written to standard output.
//!
//! Standard output carries the answer in the chosen form and nothing else; all the rest goes to
//! standard error.

mod ask;
pub(crate) mod json;
mod output;
mod signals;
mod text;

use std::{sync::Arc, time::Duration};

use anyhow::{Result, bail};
use gnoma_core::{
    Command, Content, Event, ModelRef, StopReason,
    session::{NoticeLevel, Outcome, SessionState},
};
use gnoma_engine::{Handle, Session, session};
use gnoma_guard::firewall::Firewall;
use gnoma_host::keeping::Begun;
use tokio::time::{MissedTickBehavior, interval};

pub(crate) use self::{ask::Asker, signals::Signals, text::headline};
use self::{
    json::Json,
    output::{Gone, Output},
    text::Text,
};
use crate::{
    args::OutputFormat,
    report::{self, Exit},
    surroundings::Surroundings,
};

/// Takes the events of a turn.
trait View {
    /// One event.
    fn event(&mut self, event: &Event, out: &mut Output) -> Result<(), Gone>;

    /// Some time has passed; called a few times a second while nothing else happens.
    fn tick(&mut self) {}
}

/// How often a waiting line is redrawn.
const TICK: Duration = Duration::from_millis(200);

/// See the module.
pub(crate) struct Front {
    view: Box<dyn View>,
    out: Output,
    animated: bool,
    ignores_hangup: bool,
    /// How the turn ended, once it has.
    outcome: Option<Outcome>,
}

impl Front {
    /// What is written for programs goes through `firewall`: it ends up in logs. `begun` will say
    /// which session of the store it is.
    pub(crate) fn new(
        format: OutputFormat,
        around: &Surroundings,
        model: ModelRef,
        firewall: Arc<Firewall>,
        begun: Begun,
    ) -> Self {
        let view: Box<dyn View> = match format {
            OutputFormat::Text => Box::new(Text::new(around)),
            OutputFormat::Json => Box::new(Json::new(model, firewall, begun, false)),
            OutputFormat::StreamJson => Box::new(Json::new(model, firewall, begun, true)),
        };
        let animated = format == OutputFormat::Text && around.animated();
        Self {
            view,
            out: Output::new(around.stdout_is_terminal),
            animated,
            ignores_hangup: around.ignores_hangup,
            outcome: None,
        }
    }

    /// Runs one turn to its end.
    pub(crate) async fn turn(
        mut self,
        options: session::Options,
        content: Vec<Content>,
        asker: Option<Asker>,
    ) -> Result<Exit> {
        let mut handle = Session::spawn(options);
        handle.tell(Command::Send { content });
        let exit = self.follow(&mut handle, asker).await;
        handle.tell(Command::Close);
        // The session ends its tools before it says that it is closed, and what could not be kept.
        while let Some(event) = handle.next().await {
            if let Event::Notice { level: NoticeLevel::Warning, text } = event {
                report::say(format_args!("warning: {text}"));
            }
        }
        exit
    }

    async fn follow(&mut self, handle: &mut Handle, mut asker: Option<Asker>) -> Result<Exit> {
        let mut signals = Signals::new(self.ignores_hangup)?;
        let mut ticks = interval(TICK);
        // After a suspension one tick is enough.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut stopped = None;
        let mut over = None;
        loop {
            if let (Some(exit), true) = (over, self.out.is_empty()) {
                return Ok(exit);
            }
            let event = tokio::select! {
                biased;
                signal = signals.next() => {
                    if stopped.replace(signal).is_some() {
                        return Ok(Exit::Signalled(signal));
                    }
                    handle.tell(Command::Cancel);
                    continue;
                }
                answer = ask::answered(&mut asker) => {
                    handle.tell(answer);
                    continue;
                }
                written = self.out.written(), if !self.out.is_empty() => match written {
                    Ok(()) => continue,
                    Err(Gone(error)) => return report::unwritten(error),
                },
                event = handle.next(), if over.is_none() && !self.out.is_full() => event,
                _ = ticks.tick(), if self.animated => {
                    self.view.tick();
                    continue;
                }
            };
            let Some(event) = event else {
                bail!("the session broke down inside; this is a defect of gnoma");
            };
            match self.show(event, handle, &mut asker) {
                Ok(Step::Going) => (),
                Ok(Step::Over(outcome)) => over = Some(exit(outcome.as_ref(), stopped)),
                Err(Gone(error)) => return report::unwritten(error),
            }
        }
    }

    /// Shows `event` and what else is ready, and writes it in one go.
    fn show(
        &mut self,
        event: Event,
        handle: &mut Handle,
        asker: &mut Option<Asker>,
    ) -> Result<Step, Gone> {
        let mut next = Some(event);
        let mut step = Step::Going;
        while let (Some(event), Step::Going) = (next, &step) {
            self.view.event(&event, &mut self.out)?;
            if let (Event::PermissionAsked { call, reason, preview, always }, Some(asker)) =
                (&event, &mut *asker)
            {
                asker.ask(call, reason, preview.as_deref(), always.as_deref());
            }
            if matches!(event, Event::State(SessionState::Idle | SessionState::Closed)) {
                step = Step::Over(self.outcome.take());
            }
            if let Event::TurnEnded { outcome, .. } = event {
                self.outcome = Some(outcome);
            }
            next = if self.out.is_full() { None } else { handle.ready() };
        }
        self.out.flush()?;
        Ok(step)
    }
}

/// Where a turn stands.
enum Step {
    Going,
    Over(Option<Outcome>),
}

/// How the program ends after a turn that a signal may have stopped, and the last words about it.
fn exit(outcome: Option<&Outcome>, stopped_by: Option<i32>) -> Exit {
    if let Some(signal) = stopped_by {
        return Exit::Signalled(signal);
    }
    match outcome {
        // The session has said why there is no answer.
        Some(Outcome::Complete { stop: StopReason::Refusal | StopReason::ContentFilter }) => {
            Exit::Failed
        }
        Some(Outcome::Complete { .. }) => Exit::Done,
        Some(Outcome::Cancelled) | None => Exit::Interrupted,
        Some(Outcome::RoundLimit { rounds }) => {
            report::say(format_args!(
                "gnoma: stopped after {rounds} model calls; --max-turns allows more"
            ));
            Exit::Failed
        }
        Some(Outcome::Stuck { what }) => {
            report::say(format_args!(
                "gnoma: stopped, {what}; a clearer request or another model may help"
            ));
            Exit::Failed
        }
        Some(Outcome::Failed { error, .. }) => {
            report::provider(error);
            Exit::Failed
        }
    }
}
