//! What a front end without a screen waits for.

use std::{io, time::Duration};

use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::{
    ask::Asker,
    attached_session::{AttachedMessage, AttachedSession},
    output::OutputClosed,
    signals::Signals,
};

/// The interval at which a waiting line is redrawn.
const TICK: Duration = Duration::from_millis(200);

/// What a front end waits for besides the session and its own output.
pub(super) struct WakeupSources {
    pub(super) signals: Signals,
    pub(super) ticks: Interval,
    pub(super) asker: Option<Asker>,
    /// True if replies of the session wake the front end as well.
    pub(super) wants_replies: bool,
}

impl WakeupSources {
    pub(super) fn new(ignores_hangup: bool, asker: Option<Asker>) -> io::Result<Self> {
        let signals = Signals::new(ignores_hangup)?;
        let mut ticks = interval(TICK);
        // After a suspension one tick is enough.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        Ok(Self { signals, ticks, asker, wants_replies: false })
    }
}

/// The reason why a front end stops waiting.
pub(super) enum Wakeup {
    /// A signal asks the program to stop.
    Signal(i32),
    /// The session sent a message; `None` if it sends no more.
    Message(Option<AttachedMessage>),
    /// Something else happened, and the front end has dealt with it.
    Other(Result<(), OutputClosed>),
}

/// Waits for the next event of a session, or reply where they are wanted. Safe to drop.
pub(super) async fn next_message(
    session: &mut AttachedSession,
    wants_replies: bool,
) -> Option<AttachedMessage> {
    if wants_replies {
        return session.next_event_or_reply().await;
    }
    session.next().await.map(|event| AttachedMessage::Event(Box::new(event)))
}
