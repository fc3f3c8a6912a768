//! The lines of a client, as they come.

use std::{collections::VecDeque, io};

use gnoma_core::lines::{Line, LineReader};
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _};

/// Longest line, in bytes.
pub(super) const MAX_LINE_BYTES: usize = 16 << 20;

/// The lines of `input`.
pub(super) struct ClientLines<I> {
    input: I,
    reader: LineReader,
    read: VecDeque<Line>,
    has_ended: bool,
}

impl<I: AsyncBufRead + Unpin> ClientLines<I> {
    pub(super) fn new(input: I) -> Self {
        let reader = LineReader::new(MAX_LINE_BYTES);
        Self { input, reader, read: VecDeque::new(), has_ended: false }
    }

    /// Waits for the next line that is not blank; `None` at the end. Cancel-safe.
    ///
    /// # Errors
    /// The input cannot be read.
    pub(super) async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            match self.read.pop_front() {
                Some(Line::Whole(line)) if line.trim_ascii().is_empty() => continue,
                Some(line) => return Ok(Some(line)),
                None if self.has_ended => return Ok(None),
                None => (),
            }
            let piece = self.input.fill_buf().await?;
            let count = piece.len();
            self.has_ended = count == 0;
            // The last line needs no end.
            self.read.extend(self.reader.push(if count == 0 { b"\n" } else { piece }));
            self.input.consume(count);
        }
    }
}
