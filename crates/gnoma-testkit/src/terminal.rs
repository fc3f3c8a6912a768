//! A terminal with nobody before it: a program runs on a pseudo-terminal of its own, what it prints
//! becomes cells, keys are typed into it. It answers the questions that programs ask a terminal.
//!
//! No window, no tabs and no mouse; what the cells should hold, tests and pictures say.

use std::{
    fs::File,
    io::{self, Read as _, Write as _},
    num::NonZeroU16,
    os::fd::OwnedFd,
    process::{Child, Command},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use rustix::{
    fs::{Mode, OFlags, open},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};
use vt100::{Parser, Screen};

use crate::lock_ignoring_poison;

/// No program is waited for any longer.
const PATIENCE: Duration = Duration::from_secs(20);
const STEP: Duration = Duration::from_millis(5);
const READ_BYTES: usize = 4_096;
/// Lines that have left the screen and are kept.
const SCROLLBACK_LINES: usize = 1_000;
/// The last of the questions that programs ask together: which terminal this is.
const QUESTION: &[u8] = b"\x1b[c";

/// The options for making a terminal.
#[derive(Clone, Copy, Debug)]
pub struct TerminalWindow {
    /// Columns and rows, neither of them 0.
    pub size: (u16, u16),
    /// Red, green and blue of the background, for programs that ask.
    pub ground: [u8; 3],
}

/// A running program and its terminal. Dropping it kills the program.
pub struct Terminal {
    /// The program that runs in the terminal.
    pub child: Child,
    keyboard: OwnedFd,
    /// Kept open, so that what was printed can be read when the program has ended.
    program_end: OwnedFd,
    screen: Arc<Mutex<Parser>>,
    printed: Arc<Mutex<Vec<u8>>>,
    is_frozen: Arc<AtomicBool>,
}

impl Terminal {
    /// Starts `arguments` (a program first) with what `prepare` sets, on a new terminal.
    ///
    /// # Errors
    /// When there is no terminal, no such program, or no `setsid`.
    pub fn start(
        arguments: &[&str],
        window: TerminalWindow,
        prepare: impl FnOnce(&mut Command),
    ) -> io::Result<Self> {
        let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
        grantpt(&keyboard)?;
        unlockpt(&keyboard)?;
        let name = ptsname(&keyboard, Vec::new())?;
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let program_end = open(name, flags, Mode::empty())?;
        // `setsid` makes it the session's terminal, as a terminal's window does.
        let mut command = Command::new("setsid");
        command.arg("--ctty").args(arguments);
        prepare(&mut command);
        command
            .stdin(program_end.try_clone()?)
            .stdout(program_end.try_clone()?)
            .stderr(program_end.try_clone()?);
        let (width, height) = window.size;
        let parser = Parser::new(to_cell_count(height), to_cell_count(width), SCROLLBACK_LINES);
        let screen = Arc::new(Mutex::new(parser));
        set_window_size(&keyboard, window.size)?;
        let child = command.spawn()?;
        let (printed, is_frozen) = (Arc::default(), Arc::default());
        let terminal = Self { child, keyboard, program_end, screen, printed, is_frozen };
        terminal.watch_output(window.ground)?;
        Ok(terminal)
    }

    fn watch_output(&self, ground: [u8; 3]) -> io::Result<()> {
        let mut source = File::from(self.keyboard.try_clone()?);
        let mut answers = File::from(self.keyboard.try_clone()?);
        let (screen, printed) = (Arc::clone(&self.screen), Arc::clone(&self.printed));
        let is_frozen = Arc::clone(&self.is_frozen);
        let [red, green, blue] = ground.map(|part| format!("{part:02x}{part:02x}"));
        let answer = format!("\x1b]11;rgb:{red}/{green}/{blue}\x1b\\\x1b[?2026;2$y\x1b[?62;22c");
        // Ends with the program, whose death makes the read fail.
        thread::spawn(move || {
            let mut buffer = [0; READ_BYTES];
            let mut unseen = Vec::new();
            while let Ok(count @ 1..) = source.read(&mut buffer) {
                while is_frozen.load(Ordering::Relaxed) {
                    thread::sleep(STEP);
                }
                let bytes = buffer.get(..count).unwrap_or_default();
                unseen.extend_from_slice(bytes);
                let shown: Vec<u8> = unseen.drain(..whole_frames(&unseen)).collect();
                lock_ignoring_poison(&screen).process(&shown);
                lock_ignoring_poison(&printed).extend_from_slice(bytes);
                let asks = bytes.windows(QUESTION.len()).any(|window| window == QUESTION);
                if asks && answers.write_all(answer.as_bytes()).is_err() {
                    break;
                }
            }
        });
        Ok(())
    }

    /// Types keys, as the bytes that a terminal sends for them.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn type_keys(&self, keys: &str) -> io::Result<()> {
        File::from(self.keyboard.try_clone()?).write_all(keys.as_bytes())
    }

    /// Makes the window another size, columns and rows, neither of them 0.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn resize(&self, size: (u16, u16)) -> io::Result<()> {
        let (width, height) = size;
        lock_ignoring_poison(&self.screen)
            .screen_mut()
            .set_size(to_cell_count(height), to_cell_count(width));
        set_window_size(&self.keyboard, size)
    }

    /// From now on nothing that is printed is taken, or all is again.
    pub fn set_frozen(&self, is_frozen: bool) {
        self.is_frozen.store(is_frozen, Ordering::Relaxed);
    }

    /// All that was printed, and what will be.
    #[must_use]
    pub fn printed_output(&self) -> Arc<Mutex<Vec<u8>>> {
        Arc::clone(&self.printed)
    }

    /// The program's end of the line.
    #[must_use]
    pub fn program_end(&self) -> &OwnedFd {
        &self.program_end
    }

    /// Returns a copy of what is on the screen.
    #[must_use]
    pub fn screen(&self) -> Screen {
        lock_ignoring_poison(&self.screen).screen().clone()
    }

    /// Waits until the screen is as wanted, and gives it as it was at that moment.
    ///
    /// # Errors
    /// When that does not happen in time; the error shows what there was instead.
    pub fn wait_until(&self, what: &str, is_so: impl Fn(&Screen) -> bool) -> io::Result<Screen> {
        let end = Instant::now() + PATIENCE;
        loop {
            let screen = self.screen();
            if is_so(&screen) {
                return Ok(screen);
            }
            if Instant::now() > end {
                let seen = screen.contents();
                return Err(io::Error::other(format!("no {what} on the screen:\n{seen}")));
            }
            thread::sleep(STEP);
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Whether it had ended before is all the same.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Bytes without a frame that has begun and not ended: a terminal shows all of it or nothing.
fn whole_frames(bytes: &[u8]) -> usize {
    const BEGIN: &[u8] = b"\x1b[?2026h";
    const END: &[u8] = b"\x1b[?2026l";
    let begin = bytes.windows(BEGIN.len()).rposition(|window| window == BEGIN);
    let has_ended = |frame: &[u8]| frame.windows(END.len()).any(|window| window == END);
    let is_begun = |at: &usize| bytes.get(*at..).is_some_and(|frame| !has_ended(frame));
    let torn = || (1..BEGIN.len()).rev().find(|length| bytes.ends_with(&BEGIN[..*length]));
    begin.filter(is_begun).unwrap_or_else(|| bytes.len() - torn().unwrap_or(0))
}

fn set_window_size(keyboard: &OwnedFd, (width, height): (u16, u16)) -> io::Result<()> {
    let size = Winsize { ws_col: width, ws_row: height, ws_xpixel: 0, ws_ypixel: 0 };
    Ok(tcsetwinsize(keyboard, size)?)
}

fn to_cell_count(number: u16) -> NonZeroU16 {
    NonZeroU16::new(number).unwrap_or(NonZeroU16::MIN)
}
