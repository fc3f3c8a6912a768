//! The thread that reads the terminal. It sleeps in the kernel until there is something to read, and
//! ends when its owner lets go of it, so that another program can have the terminal to itself.

use std::{
    io::{self, PipeWriter, pipe},
    os::fd::OwnedFd,
    thread::{self, JoinHandle},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};
use tokio::sync::mpsc;

use super::{
    burst,
    decode::{Decoder, TerminalInput},
};

/// Keys that wait to be looked at before the thread stops reading.
const MAX_WAITING: usize = 1_024;
/// Bytes of one read.
const READ_BYTES: usize = 16 << 10;
/// The time for which an escape may be the beginning of something.
const ESCAPE_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 25_000_000 };

/// The byte that Enter sends.
const ENTER: u8 = b'\r';
/// The time that a paste may take to go on behind the end of a line.
const BURST_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };

/// Reads as long as it lives.
#[derive(Debug)]
pub(super) struct Reader {
    heard: mpsc::Receiver<TerminalInput>,
    /// Dropping it wakes the thread up for the last time.
    stop: Option<PipeWriter>,
    thread: Option<JoinHandle<()>>,
}

impl Reader {
    /// Reads `terminal` with `decoder`.
    pub(super) fn start(terminal: OwnedFd, decoder: Decoder) -> io::Result<Self> {
        let (stopped, stop) = pipe()?;
        let (sender, heard) = mpsc::channel(MAX_WAITING);
        let source = InputSource { terminal, stopped: stopped.into(), decoder, sender };
        let thread = thread::Builder::new().name("keys".to_owned()).spawn(|| source.read())?;
        Ok(Self { heard, stop: Some(stop), thread: Some(thread) })
    }

    /// The next thing that was heard; after the end always [`Heard::End`]. Safe to drop and call again.
    pub(super) async fn next(&mut self) -> TerminalInput {
        self.heard.recv().await.unwrap_or(TerminalInput::End)
    }

    /// The next thing, if there is one.
    pub(super) fn try_next(&mut self) -> Option<TerminalInput> {
        self.heard.try_recv().ok()
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.heard.close();
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // The thread reports nothing, and a panic in it has been reported.
            thread.join().unwrap_or_default();
        }
    }
}

/// The data that the reading thread owns.
struct InputSource {
    terminal: OwnedFd,
    stopped: OwnedFd,
    decoder: Decoder,
    sender: mpsc::Sender<TerminalInput>,
}

impl InputSource {
    fn read(mut self) {
        let mut buffer = vec![0; READ_BYTES];
        let mut heard = Vec::new();
        while self.wait_for_input(&mut heard) && self.send(&mut heard) {
            match self.read_once(&mut buffer, &mut heard) {
                Ok(true) if self.send(&mut heard) => {}
                Ok(true) => return,
                Ok(false) | Err(_) => {
                    heard.push(TerminalInput::End);
                    self.send(&mut heard);
                    return;
                }
            }
        }
    }

    /// Sleeps until there is something to read or to say. False when it is time to end.
    fn wait_for_input(&mut self, heard: &mut Vec<TerminalInput>) -> bool {
        loop {
            let patience = self.decoder.is_in_doubt().then_some(ESCAPE_WAIT);
            let mut files = [
                PollFd::new(&self.terminal, PollFlags::IN),
                PollFd::new(&self.stopped, PollFlags::IN),
            ];
            match poll(&mut files, patience.as_ref()) {
                Ok(0) => {
                    self.decoder.flush_escape(heard);
                    if !self.send(heard) {
                        return false;
                    }
                }
                Ok(_) => return files.last().is_none_or(|stopped| stopped.revents().is_empty()),
                Err(Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }

    /// False at the end of the file.
    fn read_once(
        &mut self,
        buffer: &mut [u8],
        heard: &mut Vec<TerminalInput>,
    ) -> Result<bool, Errno> {
        match rustix::io::read(&self.terminal, &mut *buffer) {
            Ok(0) => Ok(false),
            Ok(count) => {
                let count = self.read_on(buffer, count);
                let before = heard.len();
                self.decoder.feed(buffer.get(..count).unwrap_or_default(), heard);
                let mut read = heard.split_off(before);
                if !self.decoder.is_by_line() {
                    burst::join_lines(&mut read);
                }
                heard.append(&mut read);
                Ok(true)
            }
            Err(Errno::INTR | Errno::AGAIN) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Reads what belongs to the `count` bytes that were read, where they may be the beginning of a paste that the
    /// terminal gives in pieces; gives how many there are then.
    fn read_on(&self, buffer: &mut [u8], mut count: usize) -> usize {
        while count > 1
            && let Some((read, room @ [_, ..])) = buffer.split_at_mut_checked(count)
            && read.last() == Some(&ENTER)
        {
            let mut terminal = [PollFd::new(&self.terminal, PollFlags::IN)];
            if !matches!(poll(&mut terminal, Some(&BURST_WAIT)), Ok(1..)) {
                break;
            }
            match rustix::io::read(&self.terminal, room) {
                Ok(more @ 1..) => count += more,
                // The next read sees it again.
                Ok(_) | Err(_) => break,
            }
        }
        count
    }

    /// False when nobody listens any more.
    fn send(&self, heard: &mut Vec<TerminalInput>) -> bool {
        heard.drain(..).all(|heard| self.sender.blocking_send(heard).is_ok())
    }
}
