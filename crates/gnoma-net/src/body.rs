//! A request body of shared pieces with a known length.
//!
//! A plain stream would be sent chunked, which some model servers do not read; copying the pieces
//! together would cost a copy of the whole history each round.

use std::{
    collections::VecDeque,
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

pub(crate) struct Pieces {
    left: VecDeque<Bytes>,
    bytes: u64,
}

impl Pieces {
    pub(crate) fn new(pieces: Vec<Bytes>) -> Self {
        let bytes = pieces.iter().map(|piece| piece.len() as u64).sum();
        Self { left: pieces.into(), bytes }
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = self.left.pop_front();
        self.bytes -= next.as_ref().map_or(0, |piece| piece.len() as u64);
        Poll::Ready(next.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes)
    }
}
