//! Reads a stream as the client does: network reads into the framer, records into the decoder,
//! events out one by one.

use std::{collections::VecDeque, hint::black_box};

use anyhow::{Result, bail};
use gnoma_core::StreamEvent;
use gnoma_llm::{
    Protocol,
    internals::{self, Framer},
};

use crate::stream::Answer;

/// Bytes of one network read.
const READ_BYTES: usize = 16 << 10;

/// Reads the whole of `answer` and throws its events away.
///
/// # Errors
/// When it was not read as what it is; then the figures would mean nothing.
pub fn read_answer(protocol: Protocol, answer: &Answer) -> Result<()> {
    let mut framer = Framer::default();
    let mut decoder = internals::protocol_decoder(protocol);
    let mut events = VecDeque::new();
    let mut seen = StreamTally::default();
    for bytes in answer.bytes.chunks(READ_BYTES) {
        framer.feed(bytes)?;
        while let Some(record) = framer.next_record()? {
            decoder.decode_frame(record.as_frame(), &mut events)?;
        }
        seen.count_events(&mut events);
    }
    decoder.finish(&mut events)?;
    seen.count_events(&mut events);
    if seen.deltas != answer.deltas || !seen.stopped {
        bail!(
            "{} of {} deltas were read, the end was {}",
            seen.deltas,
            answer.deltas,
            if seen.stopped { "seen" } else { "not seen" }
        );
    }
    Ok(())
}

#[derive(Default)]
struct StreamTally {
    deltas: usize,
    stopped: bool,
}

impl StreamTally {
    fn count_events(&mut self, events: &mut VecDeque<StreamEvent>) {
        while let Some(event) = events.pop_front() {
            self.deltas += usize::from(matches!(event, StreamEvent::TextDelta { .. }));
            self.stopped |= matches!(event, StreamEvent::Stop(_));
            drop(black_box(event));
        }
    }
}
