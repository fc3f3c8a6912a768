//! The response body as a stream of chunks.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::{Bytes, BytesMut};
use futures_core::Stream;

use crate::{
    error::{NetError, NetErrorKind, to_net_error},
    gzip::{DamagedGzip, Gunzip},
};

/// Pieces that have arrived are handed out together, up to about so many bytes.
const MAX_TOGETHER_BYTES: usize = 16 << 10;

/// The body of an answer, piece by piece as it arrives.
///
/// The HTTP library hands over one chunk at a time, and only to a task that has come back for it, however
/// many one network read has brought. Whoever works on each would have everybody behind it woken for each:
/// the stream waits until the others have had their turn, and gives what has come by then as one piece.
pub struct ByteStream {
    chunks: Pin<Box<dyn Stream<Item = reqwest::Result<Bytes>> + Send>>,
    /// Unpacks the chunks, where they come compressed.
    gunzip: Option<Gunzip>,
    gathered: GatheredBytes,
    /// The others had their turn since the last chunk came.
    has_yielded: bool,
    /// The end or error of the stream that came after the gathered chunks.
    end: Option<Option<Result<Bytes, NetError>>>,
}

#[derive(Default)]
enum GatheredBytes {
    #[default]
    Nothing,
    One(Bytes),
    Several(BytesMut),
}

impl GatheredBytes {
    fn add_chunk(&mut self, chunk: Bytes) {
        *self = match std::mem::take(self) {
            Self::Nothing => Self::One(chunk),
            Self::One(first) => {
                let mut all =
                    BytesMut::with_capacity(MAX_TOGETHER_BYTES.max(first.len() + chunk.len()));
                all.extend_from_slice(&first);
                all.extend_from_slice(&chunk);
                Self::Several(all)
            }
            Self::Several(mut all) => {
                all.extend_from_slice(&chunk);
                Self::Several(all)
            }
        };
    }

    fn len(&self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::One(chunk) => chunk.len(),
            Self::Several(all) => all.len(),
        }
    }

    fn take_chunks(&mut self) -> Option<Bytes> {
        match std::mem::take(self) {
            Self::Nothing => None,
            Self::One(chunk) => Some(chunk),
            Self::Several(all) => Some(all.freeze()),
        }
    }
}

impl ByteStream {
    pub(crate) fn new(chunks: impl Stream<Item = reqwest::Result<Bytes>> + Send + 'static) -> Self {
        Self {
            chunks: Box::pin(chunks),
            gunzip: None,
            gathered: GatheredBytes::Nothing,
            has_yielded: false,
            end: None,
        }
    }

    /// The same, of chunks that are compressed.
    pub(crate) fn with_gunzip(self) -> Self {
        Self { gunzip: Some(Gunzip::default()), ..self }
    }

    /// Polls for the next piece; where the stream is compressed, first unpacks what has already arrived.
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, NetError>>> {
        loop {
            match self.gunzip.as_mut().map(Gunzip::unpack) {
                None | Some(Ok(None)) => {}
                Some(Ok(Some(piece))) => return Poll::Ready(Some(Ok(piece))),
                Some(Err(DamagedGzip)) => {
                    return Poll::Ready(Some(Err(broken_error(
                        "the compressed answer is damaged",
                    ))));
                }
            }
            let Poll::Ready(next) = self.chunks.as_mut().poll_next(cx) else {
                return Poll::Pending;
            };
            match (next, &mut self.gunzip) {
                (Some(Ok(chunk)), Some(gunzip)) => gunzip.feed_bytes(chunk),
                (None, Some(gunzip)) if !gunzip.may_end() => {
                    return Poll::Ready(Some(Err(broken_error(
                        "the compressed answer is incomplete",
                    ))));
                }
                (next, _) => {
                    return Poll::Ready(
                        next.map(|next| next.map_err(|error| to_net_error(&error, None))),
                    );
                }
            }
        }
    }

    fn hand_out(&mut self) -> Poll<Option<Result<Bytes, NetError>>> {
        self.has_yielded = false;
        Poll::Ready(self.gathered.take_chunks().map(Ok))
    }
}

impl Stream for ByteStream {
    type Item = Result<Bytes, NetError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if let Some(end) = this.end.take() {
            return Poll::Ready(end);
        }
        loop {
            if this.gathered.len() >= MAX_TOGETHER_BYTES {
                return this.hand_out();
            }
            match this.poll_piece(cx) {
                Poll::Ready(Some(Ok(chunk))) if chunk.is_empty() => (),
                Poll::Ready(Some(Ok(chunk))) => {
                    this.gathered.add_chunk(chunk);
                    this.has_yielded = false;
                }
                Poll::Ready(end) => {
                    if this.gathered.len() == 0 {
                        return Poll::Ready(end);
                    }
                    this.end = Some(end);
                    return this.hand_out();
                }
                Poll::Pending if this.gathered.len() == 0 => return Poll::Pending,
                Poll::Pending if this.has_yielded => return this.hand_out(),
                Poll::Pending => {
                    this.has_yielded = true;
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
            }
        }
    }
}

fn broken_error(why: &str) -> NetError {
    NetError::new(NetErrorKind::Broken, why.to_owned())
}

#[cfg(test)]
mod tests {
    use std::{
        collections::VecDeque,
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
        task::{Wake, Waker},
    };

    use super::*;

    /// Gives its chunks like a connection that hands over one a turn; `None` is a silence of a turn more.
    struct Turns(VecDeque<Option<&'static [u8]>>, bool);

    impl Stream for Turns {
        type Item = reqwest::Result<Bytes>;

        fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
            self.1 = !self.1;
            if !self.1 {
                return Poll::Pending;
            }
            match self.0.pop_front() {
                Some(Some(chunk)) => Poll::Ready(Some(Ok(Bytes::from_static(chunk)))),
                Some(None) => Poll::Pending,
                None => Poll::Ready(None),
            }
        }
    }

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn pieces(chunks: &[Option<&'static [u8]>]) -> (Vec<Bytes>, usize) {
        let stream = ByteStream::new(Turns(chunks.iter().copied().collect(), false));
        let (pieces, wakes) = drained(stream, chunks.len());
        (pieces.into_iter().map(Result::unwrap).collect(), wakes)
    }

    fn drained(mut stream: ByteStream, chunks: usize) -> (Vec<Result<Bytes, NetError>>, usize) {
        let wakes = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&wakes));
        let mut cx = Context::from_waker(&waker);
        let mut pieces = Vec::new();
        for _ in 0..10 * (chunks + 10) {
            match Pin::new(&mut stream).poll_next(&mut cx) {
                Poll::Ready(Some(piece)) if piece.is_ok() => pieces.push(piece),
                Poll::Ready(end) => {
                    pieces.extend(end);
                    return (pieces, wakes.0.load(Ordering::SeqCst));
                }
                Poll::Pending => (),
            }
        }
        panic!("it does not end");
    }

    #[test]
    fn response_chunks_that_are_ready_are_joined() {
        let (pieces, _) = pieces(&[Some(b""), Some(b"one "), Some(b"two "), Some(b"three")]);
        assert_eq!(pieces, ["one two three"]);
    }

    #[test]
    fn response_stream_yields_ready_chunks_without_waiting_for_more() {
        let (pieces, wakes) = pieces(&[Some(b"one"), None, None, Some(b"two")]);
        assert_eq!(pieces, ["one", "two"]);
        // It asks to be polled again only while chunks come.
        assert!(wakes <= 4, "{wakes}");
    }

    #[test]
    fn gzip_response_is_decoded_completely_in_bounded_chunks() {
        let text = vec![b' '; 400_000];
        let content = miniz_oxide::deflate::compress_to_vec(&text, 6);
        let head = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
        let trailer = [crc32fast::hash(&text), 400_000].map(u32::to_le_bytes).concat();
        let packed: &'static [u8] = [&head[..], &content[..], &trailer[..]].concat().leak();
        let stream = |packed| {
            let chunks = VecDeque::from([Some(packed)]);
            drained(ByteStream::new(Turns(chunks, false)).with_gunzip(), 100).0
        };
        let whole: Vec<_> = stream(packed).into_iter().map(Result::unwrap).collect();
        assert_eq!(whole.iter().map(Bytes::len).sum::<usize>(), 400_000);
        assert!(whole.iter().all(|piece| piece.len() < 2 * MAX_TOGETHER_BYTES));
        let cut = stream(&packed[..packed.len() - 20]);
        assert!(matches!(cut.last(), Some(Err(NetError { kind: NetErrorKind::Broken, .. }))));
    }

    #[test]
    fn flood_of_response_chunks_is_joined_up_to_a_size_limit() {
        let chunk: &'static [u8] = &[b'x'; 1_000];
        let (pieces, _) = pieces(&vec![Some(chunk); 100]);
        assert_eq!(pieces.iter().map(Bytes::len).sum::<usize>(), 100_000);
        assert!(pieces.iter().all(|piece| piece.len() < MAX_TOGETHER_BYTES + chunk.len()));
    }
}
