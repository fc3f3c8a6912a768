//! Output to the terminal. A terminal may accept nothing for a while: its window is frozen, or the line is slow.
//! That must delay neither the session nor a signal, so what it does not accept waits here.

use std::{
    fs::OpenOptions,
    io,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::fs::OpenOptionsExt as _,
    },
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{OFlags, fstat},
    io::Errno,
    termios::isatty,
};
use tokio::time::sleep_until;

/// More than this does not wait: only frames matter, and there is never more than one.
const MAX_WAITING_BYTES: usize = 64 << 20;
/// The time that the program stops for a terminal that is only a little slower than it.
const PATIENCE: Duration = Duration::from_millis(15);
/// The time after which a terminal that took something is tried again.
const FIRST_RETRY: Duration = Duration::from_millis(5);
/// The interval at which a terminal that takes nothing is tried.
const LAST_RETRY: Duration = Duration::from_millis(320);

/// Writes to the terminal, and holds what it does not take yet.
#[derive(Debug)]
pub(super) struct Output {
    file: OwnedFd,
    /// Writing never blocks, because nobody shares the file.
    is_own: bool,
    waiting: Vec<u8>,
    retry_at: Instant,
    retry_after: Duration,
    /// The error that occurred outside of any call to write.
    failure: Option<io::Error>,
}

impl Output {
    pub(super) fn new(terminal: OwnedFd) -> Self {
        let own = reopen_terminal(&terminal);
        Self {
            is_own: own.is_some(),
            file: own.unwrap_or(terminal),
            waiting: Vec::new(),
            retry_at: Instant::now(),
            retry_after: FIRST_RETRY,
            failure: None,
        }
    }

    pub(super) fn file(&self) -> &OwnedFd {
        &self.file
    }

    /// Reports whether bytes wait to be written.
    pub(super) fn is_clogged(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Writes, or lets wait what is not taken at once.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let was_clogged = self.is_clogged();
        let taken = if was_clogged { 0 } else { self.push(bytes)? };
        let rest = bytes.get(taken..).unwrap_or_default();
        if self.waiting.len() + rest.len() <= MAX_WAITING_BYTES {
            self.waiting.extend_from_slice(rest);
        }
        if !was_clogged {
            self.retry_after = FIRST_RETRY;
            self.retry_at = Instant::now() + FIRST_RETRY;
        }
        Ok(())
    }

    /// Waits until nothing waits any more; the next [`Self::write`] reports what goes wrong. Safe to
    /// drop and call again.
    pub(super) async fn clear(&mut self) {
        while self.is_clogged() {
            sleep_until(self.retry_at.into()).await;
            let before = self.waiting.len();
            if let Err(error) = self.pass_on() {
                self.waiting.clear();
                self.failure = Some(error);
                return;
            }
            let has_taken = self.waiting.len() < before;
            self.retry_after =
                if has_taken { FIRST_RETRY } else { LAST_RETRY.min(self.retry_after * 2) };
            self.retry_at = Instant::now() + self.retry_after;
        }
    }

    /// Waits for that no longer than `patience`; what is not taken then is given up.
    pub(super) fn finish(&mut self, patience: Duration) {
        let end = Instant::now() + patience;
        while self.is_clogged()
            && self.pass_on().is_ok()
            && self.is_clogged()
            && wait_for_room(&self.file, Some(end)).is_ok_and(|is_ready| is_ready)
        {}
        self.waiting.clear();
    }

    fn pass_on(&mut self) -> io::Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        let taken = self.push(&waiting)?;
        self.waiting = waiting;
        self.waiting.drain(..taken);
        Ok(())
    }

    /// Writes bytes and returns the number that was taken.
    fn push(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut end = None;
        let mut taken = 0;
        while let Some(rest) = bytes.get(taken..).filter(|rest| !rest.is_empty()) {
            match rustix::io::write(&self.file, rest) {
                Ok(count) => taken += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    let end = *end.get_or_insert_with(|| Instant::now() + PATIENCE);
                    let is_ready = wait_for_room(&self.file, self.is_own.then_some(end))?;
                    if !is_ready {
                        break;
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(taken)
    }
}

/// Waits until the terminal takes something; `None` as long as it needs. Says whether it does.
fn wait_for_room(terminal: &OwnedFd, end: Option<Instant>) -> io::Result<bool> {
    let left = end.map(|end| end.saturating_duration_since(Instant::now()));
    if left == Some(Duration::ZERO) {
        return Ok(false);
    }
    let left = left.and_then(|left| Timespec::try_from(left).ok());
    match poll(&mut [PollFd::new(terminal, PollFlags::OUT)], left.as_ref()) {
        Ok(0) => Ok(false),
        Ok(_) | Err(Errno::INTR) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// The terminal through a file of its own, whose flags nobody shares.
fn reopen_terminal(terminal: &OwnedFd) -> Option<OwnedFd> {
    let flags = OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let path = format!("/dev/fd/{}", terminal.as_raw_fd());
    let flags = i32::try_from(flags.bits()).ok()?;
    let own: OwnedFd = OpenOptions::new().write(true).custom_flags(flags).open(path).ok()?.into();
    let is_same = fstat(terminal).ok()?.st_rdev == fstat(&own).ok()?.st_rdev;
    // Where opening only doubles the file, its flags are shared still.
    let never_blocks = rustix::fs::fcntl_getfl(&own).ok()?.contains(OFlags::NONBLOCK);
    let is_shared = rustix::fs::fcntl_getfl(terminal).ok()?.contains(OFlags::NONBLOCK);
    (is_same && never_blocks && !is_shared && isatty(&own)).then_some(own)
}
