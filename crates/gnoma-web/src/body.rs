//! HTTP bodies: sending, streaming and bounded reading.

use std::{
    convert::Infallible,
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_core::Stream;
use http_body::{Body, Frame, SizeHint};
use tokio::time::timeout;

use crate::limits::BODY_PATIENCE;

/// The body of a response.
pub enum ResponseBody {
    /// All of it at once; taken when it is sent.
    Whole(Option<Bytes>),
    /// Piece by piece. Dropping it ends what it tells of.
    Pieces(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
}

impl ResponseBody {
    /// These bytes at once.
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Self {
        Self::Whole(Some(bytes.into()))
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = match &mut *self {
            Self::Whole(bytes) => Poll::Ready(bytes.take()),
            Self::Pieces(pieces) => pieces.as_mut().poll_next(cx),
        };
        piece.map(|piece| piece.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Self::Pieces(_) => SizeHint::default(),
        }
    }
}

/// The reason why a body was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyReadError {
    /// The body is longer than is taken.
    TooLong,
    /// The body takes too long to come.
    TooSlow,
    /// The body broke off.
    Broken,
}

/// Reads a body of at most `max` bytes. Of a longer one nothing is kept.
pub(crate) async fn read_body<B>(body: B, max: usize) -> Result<Vec<u8>, BodyReadError>
where
    B: Body<Data = Bytes> + Unpin,
{
    timeout(BODY_PATIENCE, collect_body(body, max)).await.unwrap_or(Err(BodyReadError::TooSlow))
}

async fn collect_body<B>(mut body: B, max: usize) -> Result<Vec<u8>, BodyReadError>
where
    B: Body<Data = Bytes> + Unpin,
{
    if body.size_hint().lower() > max as u64 {
        return Err(BodyReadError::TooLong);
    }
    let mut all = Vec::new();
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let Ok(piece) = frame.map_err(|_| BodyReadError::Broken)?.into_data() else { continue };
        if all.len() + piece.len() > max {
            return Err(BodyReadError::TooLong);
        }
        all.extend_from_slice(&piece);
    }
    Ok(all)
}
