//! The front end without a screen: one turn of a session, written to standard output.
//!
//! Standard output carries the answer in the chosen form and nothing else; all the rest goes to
//! standard error.

mod ask;
mod json;
mod output;
mod text;

use anyhow::Result;
use gnoma_core::{
    Command, Content, Event, ModelRef,
    session::{Outcome, SessionState},
};
use gnoma_engine::{Handle, Session, session};
use tokio::signal::unix::{SignalKind, signal};

pub(crate) use self::ask::Asker;
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

/// How often a waiting line is redrawn, in milliseconds.
const TICK_MS: u64 = 200;

/// See the module.
pub(crate) struct Front {
    view: Box<dyn View>,
    out: Output,
    animated: bool,
}

impl Front {
    pub(crate) fn new(format: OutputFormat, around: &Surroundings, model: ModelRef) -> Self {
        let view: Box<dyn View> = match format {
            OutputFormat::Text => Box::new(Text::new(around)),
            OutputFormat::Json => Box::new(Json::new(model, false)),
            OutputFormat::StreamJson => Box::new(Json::new(model, true)),
        };
        let animated = format == OutputFormat::Text && around.animated();
        Self { view, out: Output::new(around.stdout_is_terminal), animated }
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
        // The session ends its tools before it says that it is closed.
        while handle.next().await.is_some() {}
        exit
    }

    async fn follow(&mut self, handle: &mut Handle, mut asker: Option<Asker>) -> Result<Exit> {
        let mut interrupts = signal(SignalKind::interrupt())?;
        let mut terminations = signal(SignalKind::terminate())?;
        let mut ticks = tokio::time::interval(std::time::Duration::from_millis(TICK_MS));
        let mut interrupted = false;
        let mut outcome = None;
        loop {
            let event = tokio::select! {
                biased;
                _ = interrupts.recv() => {
                    if std::mem::replace(&mut interrupted, true) {
                        return Ok(Exit::Interrupted);
                    }
                    handle.tell(Command::Cancel);
                    continue;
                }
                _ = terminations.recv() => {
                    interrupted = true;
                    handle.tell(Command::Cancel);
                    continue;
                }
                answer = ask::answered(&mut asker) => {
                    handle.tell(answer);
                    continue;
                }
                event = handle.next() => event,
                _ = ticks.tick(), if self.animated => {
                    self.view.tick();
                    continue;
                }
            };
            // What is ready is taken in one go and written at once.
            let mut next = event;
            while let Some(event) = next {
                if self.view.event(&event, &mut self.out).is_err() {
                    return Ok(Exit::Done);
                }
                if let (Event::PermissionAsked { call, reason, preview }, Some(asker)) =
                    (&event, &mut asker)
                {
                    asker.ask(call, reason, preview.as_deref());
                }
                if let Event::TurnEnded { outcome: how, .. } = &event {
                    outcome = Some(how.clone());
                }
                if matches!(event, Event::State(SessionState::Idle | SessionState::Closed)) {
                    let _gone = self.out.flush();
                    return Ok(exit(outcome.as_ref(), interrupted));
                }
                next = handle.ready();
            }
            if self.out.flush().is_err() {
                return Ok(Exit::Done);
            }
        }
    }
}

/// The exit code of a turn, and the last words about it.
fn exit(outcome: Option<&Outcome>, interrupted: bool) -> Exit {
    match outcome {
        _ if interrupted => Exit::Interrupted,
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
        Some(Outcome::Failed { error, kept_partial }) => {
            report::provider(error);
            if *kept_partial {
                report::say("The part of the answer that had arrived is shown above and kept.");
            }
            Exit::Failed
        }
    }
}
