//! Signals that stop the program: Ctrl+C (SIGINT), SIGTERM, SIGHUP.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGINT, SIGTERM and SIGHUP. Left to themselves they would end the program at once, and what its
/// commands have started would go on without it.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// The SIGHUP listener; absent under `nohup`.
    hangup: Option<Signal>,
}

impl Signals {
    /// Begins to listen for the signals; for SIGHUP unless the program ignores it.
    ///
    /// # Errors
    /// The system takes no handler.
    pub fn new(ignores_hangup: bool) -> io::Result<Self> {
        let hangup = if ignores_hangup { None } else { Some(signal(SignalKind::hangup())?) };
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup,
        })
    }

    /// Waits for the next signal and returns its number. Safe to drop and call again.
    pub async fn next(&mut self) -> i32 {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        let kind = tokio::select! {
            _ = self.interrupt.recv() => SignalKind::interrupt(),
            _ = self.terminate.recv() => SignalKind::terminate(),
            _ = hangup => SignalKind::hangup(),
        };
        kind.as_raw_value()
    }
}
