//! Replies: what the server says, in what pieces, and how it ends.

use std::{iter, sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::sync::watch;

/// A gate that replies wait for, if a test and not a clock decides when they come.
#[derive(Clone, Debug, Default)]
pub struct Gate(Arc<watch::Sender<bool>>);

impl Gate {
    /// Lets all of them through, from now on.
    pub fn open(&self) {
        self.0.send_replace(true);
    }

    /// Waits until it is open.
    pub(super) async fn wait_until_open(&self) {
        // The sender is here, so waiting cannot fail.
        drop(self.0.subscribe().wait_for(|is_open| *is_open).await);
    }
}

/// The body that an answer carries.
#[derive(Clone, Debug)]
pub enum ReplyBody {
    /// A body of these bytes.
    Bytes(Bytes),
    /// `head`, then `unit` again and again for ever.
    Endless {
        /// The bytes that are sent once.
        head: Bytes,
        /// Repeated; must not be empty.
        unit: Bytes,
    },
}

impl ReplyBody {
    /// The first `limit` bytes, in pieces of `size`.
    pub(super) fn split_pieces(&self, size: usize, limit: usize) -> impl Iterator<Item = Bytes> {
        let (head, unit) = match self {
            Self::Bytes(bytes) => (bytes.clone(), None),
            Self::Endless { head, unit } => (head.clone(), Some(unit.clone())),
        };
        let size = size.max(1);
        let parts = iter::once(head).chain(unit.into_iter().flat_map(iter::repeat));
        parts.flat_map(move |part| cut_pieces(part, size)).scan(limit, |left, piece| {
            let piece = piece.slice(..piece.len().min(*left));
            *left -= piece.len();
            (!piece.is_empty()).then_some(piece)
        })
    }
}

fn cut_pieces(part: Bytes, size: usize) -> impl Iterator<Item = Bytes> {
    (0..part.len())
        .step_by(size)
        .map(move |at| part.slice(at..at.saturating_add(size).min(part.len())))
}

/// The pace at which the pieces reach the socket. Each is an HTTP chunk of its own either way, so that a client
/// which reads chunk by chunk sees the same cuts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// As fast as the socket takes them, many to a write.
    Burst,
    /// Each in a write of its own, followed by this wait (which may be zero).
    Each(Duration),
}

/// The way in which an answer ends. The numbers are body bytes sent before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Whole, and properly closed.
    Whole,
    /// Properly closed, too early.
    Truncate(usize),
    /// The connection is closed without HTTP's last chunk.
    Abort(usize),
    /// The connection is reset.
    Reset(usize),
    /// The connection stays open and silent.
    Stall(usize),
    /// The connection is reset before anything is said, the status included.
    HangUp,
}

impl End {
    /// Body bytes to be sent at most.
    pub(super) fn byte_limit(self) -> usize {
        match self {
            Self::Whole => usize::MAX,
            Self::HangUp => 0,
            Self::Truncate(bytes)
            | Self::Abort(bytes)
            | Self::Reset(bytes)
            | Self::Stall(bytes) => bytes,
        }
    }
}

/// One scripted answer, sent with chunked transfer encoding.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The HTTP status of the answer.
    pub status: u16,
    /// Header names and values, without those of HTTP's framing.
    pub headers: Vec<(String, String)>,
    /// The body that the answer carries.
    pub body: ReplyBody,
    /// Bytes to a piece of the body.
    pub piece: usize,
    /// The pace at which the pieces are sent.
    pub pace: Pace,
    /// The gate that the answer waits for before the status line.
    pub gate: Option<Gate>,
    /// Wait before the status line.
    pub wait: Duration,
    /// The way in which the answer ends.
    pub end: End,
    /// `true` if the connection is closed afterwards.
    pub close: bool,
}

impl Reply {
    /// A reply in one piece.
    pub fn new(status: u16, content_type: &str, body: impl Into<Bytes>) -> Self {
        let reply = Self {
            status,
            headers: Vec::new(),
            body: ReplyBody::Bytes(body.into()),
            piece: usize::MAX,
            pace: Pace::Burst,
            gate: None,
            wait: Duration::ZERO,
            end: End::Whole,
            close: false,
        };
        if content_type.is_empty() {
            reply
        } else {
            reply.with_header("content-type", content_type)
        }
    }

    /// Status 200 with a stream of server-sent events.
    pub fn sse(body: impl Into<Bytes>) -> Self {
        Self::new(200, "text/event-stream", body)
    }

    /// Creates a reply with a JSON document.
    pub fn json(status: u16, body: impl Into<Bytes>) -> Self {
        Self::new(status, "application/json", body)
    }

    /// Creates a reply with plain text.
    pub fn text(status: u16, body: impl Into<Bytes>) -> Self {
        Self::new(status, "text/plain", body)
    }

    /// A stream that never ends: `head`, then `unit` for ever.
    pub fn endless_stream(
        content_type: &str,
        head: impl Into<Bytes>,
        unit: impl Into<Bytes>,
    ) -> Self {
        let mut reply = Self::new(200, content_type, Bytes::new());
        reply.body = ReplyBody::Endless { head: head.into(), unit: unit.into() };
        reply
    }

    /// With one more header.
    #[must_use]
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Cut into pieces of `bytes`.
    #[must_use]
    pub fn with_piece_size(mut self, bytes: usize) -> Self {
        self.piece = bytes;
        self
    }

    /// Each piece in a write of its own, followed by `wait`.
    #[must_use]
    pub fn with_piece_delay(mut self, wait: Duration) -> Self {
        self.pace = Pace::Each(wait);
        self
    }

    /// Begun only after `wait`.
    #[must_use]
    pub fn with_delay(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// Begun only once `gate` is open.
    #[must_use]
    pub fn with_gate(mut self, gate: &Gate) -> Self {
        self.gate = Some(gate.clone());
        self
    }

    /// Makes the reply end in this way.
    #[must_use]
    pub fn with_end(mut self, end: End) -> Self {
        self.end = end;
        self
    }

    /// With the connection closed afterwards.
    #[must_use]
    pub fn with_close(mut self) -> Self {
        self.close = true;
        self
    }
}
