//! Unix signals of the terminal program: end, stop, continue, window resize.

use std::io;

use rustix::process::Signal as Number;
use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

/// A signal that the view does something about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// The terminal has another size.
    Resize,
    /// The program should stop until it is continued.
    Stop,
    /// The program continues after a stop.
    GoOn,
    /// Control+C on a terminal that makes a signal of it, or somebody else's effect that the program ends.
    Interrupt,
    /// The program shall end; the signal's number.
    End(i32),
}

/// All of them, from now until it is dropped. What a signal does of itself stays switched off even
/// then, because the runtime never gives a handler back.
#[derive(Debug)]
pub(super) struct Signals {
    resize: Stream,
    stop: Stream,
    go_on: Stream,
    interrupt: Stream,
    terminate: Stream,
    hang_up: Stream,
}

impl Signals {
    /// Listens. Needs a runtime with IO.
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self {
            resize: signal(SignalKind::window_change())?,
            stop: signal(SignalKind::from_raw(Number::TSTP.as_raw()))?,
            go_on: signal(SignalKind::from_raw(Number::CONT.as_raw()))?,
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// The next signal. Safe to drop and call again.
    pub(super) async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.terminate.recv() => Signal::End(Number::TERM.as_raw()),
            _ = self.hang_up.recv() => Signal::End(Number::HUP.as_raw()),
            _ = self.stop.recv() => Signal::Stop,
            _ = self.go_on.recv() => Signal::GoOn,
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.resize.recv() => Signal::Resize,
        }
    }
}
