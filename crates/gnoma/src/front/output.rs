//! Standard output, written in batches.

use std::io::{self, Write as _};

use crate::screen;

/// Bytes after which a batch is written although more is ready.
const MAX_BATCH_BYTES: usize = 64 << 10;

/// Standard output takes no more: its reader has left, or the disk is full.
#[derive(Debug)]
pub(super) struct Gone(pub io::Error);

/// Collects what is ready and writes it with one call.
pub(super) struct Output {
    batch: Vec<u8>,
    is_terminal: bool,
    at_line_start: bool,
}

impl Output {
    pub(super) fn new(is_terminal: bool) -> Self {
        Self { batch: Vec::new(), is_terminal, at_line_start: true }
    }

    /// Adds text from a model. On a terminal only what shows itself and nothing else.
    pub(super) fn text(&mut self, text: &str) -> Result<(), Gone> {
        if self.is_terminal {
            for shown in text.split(|c| !screen::is_harmless(c)) {
                self.batch.extend_from_slice(shown.as_bytes());
            }
        } else {
            self.batch.extend_from_slice(text.as_bytes());
        }
        if let Some(last) = self.batch.last() {
            self.at_line_start = *last == b'\n';
        }
        if self.batch.len() > MAX_BATCH_BYTES { self.flush() } else { Ok(()) }
    }

    /// Ends the line, if one has begun.
    pub(super) fn end_line(&mut self) -> Result<(), Gone> {
        if self.at_line_start { Ok(()) } else { self.text("\n") }
    }

    /// Writes what has been collected.
    pub(super) fn flush(&mut self) -> Result<(), Gone> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let mut stdout = io::stdout().lock();
        let written = stdout.write_all(&self.batch).and_then(|()| stdout.flush());
        self.batch.clear();
        written.map_err(Gone)
    }
}
