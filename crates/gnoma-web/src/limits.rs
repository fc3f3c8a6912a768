//! Limits per client: body sizes, connections, rates. Whoever sends may send anything, as much and as slowly as they
//! like.

use std::time::Duration;

/// Connections at once; one more is closed at once.
pub(crate) const MAX_CONNECTIONS: usize = 96;
/// Streams of events among them, so that requests always find room.
pub(crate) const MAX_STREAMS: usize = 32;
/// Those of people who may only watch, so that they take nobody else's place.
pub(crate) const MAX_WATCHED_STREAMS: usize = 16;
/// Bytes of the head of a request: its line and its headers.
pub(crate) const MAX_HEAD_BYTES: usize = 16 << 10;
/// Headers of a request.
pub(crate) const MAX_HEADERS: usize = 64;
/// Bytes of the body of a request: a message with pictures.
pub(crate) const MAX_BODY_BYTES: usize = 8 << 20;
/// Bodies that are read at once; the next waits.
pub(crate) const MAX_BODIES: usize = 8;
/// Bytes of the body of a request of somebody who may only watch: an id, a number or two.
pub(crate) const MAX_WATCHER_BODY_BYTES: usize = 4 << 10;
/// Such bodies that are read at once, beside the others.
pub(crate) const MAX_WATCHER_BODIES: usize = 4;
/// Bytes of a body of somebody who has not shown a token yet.
pub(crate) const MAX_EXCHANGE_BYTES: usize = 1 << 10;
/// Sessions that one stream may be attached to.
pub(crate) const MAX_ATTACHED: usize = 32;
/// Bytes of a name that a client gives itself.
pub(crate) const MAX_NAME_BYTES: usize = 64;
/// Bytes of events that are written at once, where so many wait.
pub(crate) const WRITE_BYTES: usize = 64 << 10;

/// The time that a client may take to send the head of a request, and to send nothing between two.
pub(crate) const HEAD_PATIENCE: Duration = Duration::from_secs(15);
/// The time that a client may take to send a body.
pub(crate) const BODY_PATIENCE: Duration = Duration::from_secs(30);
/// The time for which a client may take nothing of an answer that waits for it.
pub(crate) const WRITE_PATIENCE: Duration = Duration::from_secs(20);
/// The time that a request may take that is not an event stream. Connections are tried, models asked.
pub(crate) const ANSWER_PATIENCE: Duration = Duration::from_secs(180);
/// The time that a piece of a text waits for those that follow: about a frame of a screen.
pub(crate) const TICK: Duration = Duration::from_millis(16);
/// Between two signs of life of a stream on which nothing happens.
pub(crate) const SIGN_OF_LIFE: Duration = Duration::from_secs(20);
/// Between two looks whether the token is still the same where nobody asks for anything.
pub(crate) const TOKEN_LOOK: Duration = Duration::from_secs(2);
/// Wait after the system refused a connection, as it does when there are too many open files.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
