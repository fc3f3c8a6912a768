//! Standard output, written in batches and never waited for.
//!
//! A reader that does not read must not keep signals from being seen, so only as much is written as
//! the system takes at once.

use std::{io, mem, os::fd::AsFd, time::Duration};

use gnoma_guard::unicode::{Cleaner, RetainedControls};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::FileType,
    stdio,
};

/// Bytes after which no more events are taken until some are written.
const MAX_BATCH_BYTES: usize = 64 << 10;

/// A pipe that can be written to takes this much without blocking (POSIX `PIPE_BUF`).
const PIPE_BUF_BYTES: usize = 4 << 10;

/// The interval at which the program checks that the reader is still there while nothing is written.
const LOOK: Duration = Duration::from_millis(250);

/// Wait before a reader that does not read is tried again.
const RETRY: Duration = Duration::from_millis(20);

/// Standard output takes no more: its reader has left, or the disk is full.
#[derive(Debug)]
pub struct OutputClosed(
    /// The failure of the write.
    pub io::Error,
);

/// The buffer before standard output: it collects what is ready and writes it in few calls.
pub struct Output {
    batch: Vec<u8>,
    /// Between a model and whoever reads text.
    cleaner: Option<Cleaner>,
    at_line_start: bool,
}

impl Output {
    /// Creates an empty buffer. `is_text`: what is written is not for programs, or goes to a terminal. A pipe or a file
    /// ends on one, too, so that text is cleaned wherever it goes.
    pub fn new(is_text: bool) -> Self {
        let cleaner = is_text.then(|| Cleaner::new(RetainedControls::Text));
        Self { batch: Vec::new(), cleaner, at_line_start: true }
    }

    /// Adds text from a model, and writes a full batch. Invisible and control characters are removed if text is cleaned.
    ///
    /// # Errors
    /// Standard output takes no more.
    pub fn push_text(&mut self, text: &str) -> Result<(), OutputClosed> {
        match &mut self.cleaner {
            Some(cleaner) => self.batch.extend_from_slice(cleaner.push(text).as_bytes()),
            None => self.batch.extend_from_slice(text.as_bytes()),
        }
        if let Some(last) = self.batch.last() {
            self.at_line_start = *last == b'\n';
        }
        if self.is_full() { self.flush() } else { Ok(()) }
    }

    /// Ends the line, if one has begun.
    pub(crate) fn end_line(&mut self) -> Result<(), OutputClosed> {
        if let Some(cleaner) = &mut self.cleaner {
            let held = mem::replace(cleaner, Cleaner::new(RetainedControls::Text)).finish().text;
            if let Some(last) = held.as_bytes().last() {
                self.at_line_start = *last == b'\n';
            }
            self.batch.extend_from_slice(held.as_bytes());
        }
        if self.at_line_start { Ok(()) } else { self.push_text("\n") }
    }

    /// True if more output should wait until some has been written.
    pub fn is_full(&self) -> bool {
        self.batch.len() > MAX_BATCH_BYTES
    }

    /// True if all output has been written.
    pub fn is_empty(&self) -> bool {
        self.batch.is_empty()
    }

    /// Writes what can be written without waiting.
    ///
    /// # Errors
    /// Standard output takes no more.
    pub fn flush(&mut self) -> Result<(), OutputClosed> {
        let mut done = 0;
        while done < self.batch.len() && is_writable() {
            let end = (done + PIPE_BUF_BYTES).min(self.batch.len());
            match rustix::io::write(stdio::stdout(), &self.batch[done..end]) {
                Ok(bytes) => done += bytes,
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => break,
                Err(error) => return Err(OutputClosed(error.into())),
            }
        }
        self.batch.drain(..done);
        Ok(())
    }

    /// Waits until all has been written. Safe to drop and call again.
    ///
    /// # Errors
    /// Standard output takes no more.
    pub async fn wait_until_written(&mut self) -> Result<(), OutputClosed> {
        self.flush()?;
        while !self.is_empty() {
            tokio::time::sleep(RETRY).await;
            self.flush()?;
        }
        Ok(())
    }
}

/// Waits until the reader of a pipe or a socket has left, while nothing is written to it. Never ends for a file or a
/// terminal. Safe to drop and call again.
pub(crate) async fn reader_left() -> OutputClosed {
    while !has_left(stdio::stdout()) {
        tokio::time::sleep(LOOK).await;
    }
    OutputClosed(io::ErrorKind::BrokenPipe.into())
}

fn has_left(output: impl AsFd) -> bool {
    let is_pipe = rustix::fs::fstat(&output).is_ok_and(|facts| {
        matches!(FileType::from_raw_mode(facts.st_mode), FileType::Fifo | FileType::Socket)
    });
    let mut wanted = [PollFd::new(&output, PollFlags::empty())];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    // The end of a pipe that nobody reads is in error; that of a socket is hung up.
    let is_over = PollFlags::ERR | PollFlags::HUP;
    is_pipe
        && poll(&mut wanted, Some(&at_once)).is_ok_and(|ready| ready > 0)
        && wanted.iter().any(|it| it.revents().intersects(is_over))
}

/// True if a write would go through at once, or fail at once.
fn is_writable() -> bool {
    let stdout = stdio::stdout();
    let mut wanted = [PollFd::new(&stdout, PollFlags::OUT)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut wanted, Some(&at_once)).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reader_of_a_pipe_that_leaves_is_noticed_before_anything_is_written() {
        let (reader, writer) = io::pipe().unwrap();
        assert!(!has_left(&writer));
        drop(reader);
        assert!(has_left(&writer));
        let (one, other) = std::os::unix::net::UnixStream::pair().unwrap();
        assert!(!has_left(&one));
        drop(other);
        assert!(has_left(&one));
        assert!(!has_left(tempfile::tempfile().unwrap()), "a file has no reader");
    }
}
