//! Terminal setup: raw mode is entered and the terminal is restored, whatever happens. What is written to it is made
//! elsewhere.

mod burst;
pub mod decode;
mod output;
mod panics;
mod reader;
mod signals;
pub mod tell;

use std::{
    fs::OpenOptions,
    io::{self, Write},
    os::fd::{AsFd, OwnedFd},
    time::{Duration, Instant},
};

use decode::Decoder;
pub use decode::TerminalInput;
use output::Output;
pub use panics::capture_panics;
use reader::Reader;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Signal as Number, getpgrp, getsid, kill_current_process_group},
    termios::{OptionalActions, Termios, isatty, tcgetattr, tcgetwinsize, tcsetattr},
};
pub use signals::Signal;
use signals::Signals;

use crate::{frame::Size, screen::Layout};

/// The window's title put aside, bracketed paste, reports of focus and of a changed background, no folding of rows, and keys that
/// can be told apart, as XTerm and as kitty do it; kitty also tells which Latin letter a key has.
const TAKE: &str = "\x1b[22;0t\x1b[?2004h\x1b[?1004h\x1b[?2031h\x1b[?7l\x1b[>4;1m\x1b[>5u";
/// Undoes [`TAKE`], in the other order, with plain attributes and the cursor shown.
const GIVE_BACK: &str = "\x1b[<u\x1b[>4;0m\x1b[?7h\x1b[?2031l\x1b[?1004l\x1b[?2004l\x1b[?2026l\x1b[23;0t\x1b[m\x1b[?25h";
/// A screen of its own, on which the wheel makes arrow keys; the mouse itself stays the terminal's, for
/// selecting. What the wheel did before is put aside.
const TAKE_SCREEN: &str = "\x1b[?1049h\x1b[?1007s\x1b[?1007h\x1b[H";
const GIVE_SCREEN_BACK: &str = "\x1b[?1049l\x1b[?1007r";
/// The background's colour, whether frames can be synchronized, and a last question that every
/// terminal answers.
const QUESTIONS: &str = "\x1b]11;?\x1b\\\x1b[?2026$p\x1b[c";
/// Asks for rows and columns.
const SIZE_QUESTION: &[u8] = b"\x1b[18t";
/// At the end, how long answers are waited for that the shell would take for typed text.
const LAST_ANSWERS_WAIT: Duration = Duration::from_millis(150);

/// The time to wait, when the terminal is given back, for one that takes nothing.
const LAST_BYTES_WAIT: Duration = Duration::from_millis(500);
const ESCAPE: u8 = 0x1b;
/// Most bytes that are typed before the terminal is taken over; the system keeps no more.
const MAX_TYPED_AHEAD: usize = 4_096;

/// An event, by the source that it comes from.
#[derive(Debug, PartialEq, Eq)]
pub enum TerminalEvent {
    /// From the person or the terminal.
    Heard(TerminalInput),
    /// A signal from the system.
    Signal(Signal),
    /// The terminal has taken what was written, after that had to wait.
    Written,
}

/// The terminal, taken over as long as this lives.
#[derive(Debug)]
pub struct Terminal {
    input: OwnedFd,
    output: Output,
    before: Termios,
    layout: Layout,
    signals: Signals,
    /// `None` while somebody else has the terminal.
    reader: Option<Reader>,
    /// The input that was typed before another program got the terminal.
    leftover: Vec<TerminalInput>,
    asked: bool,
    /// `true` if the size of the terminal has been asked for and not been answered yet.
    size_asked: bool,
    /// Written after the message when a panic ends the program.
    crash_note: String,
}

impl Terminal {
    /// Takes over the terminal on standard output; keys come from standard input or, when that is
    /// something else, from the terminal itself. `crash_note` is for people whose program ends with
    /// a panic.
    ///
    /// # Errors
    /// When standard output is no terminal, or the terminal is gone.
    pub fn open(layout: Layout, crash_note: String) -> io::Result<Self> {
        let output = io::stdout().as_fd().try_clone_to_owned()?;
        let input = match io::stdin().as_fd() {
            stdin if isatty(stdin) => stdin.try_clone_to_owned()?,
            _ => OpenOptions::new().read(true).open("/dev/tty")?.into(),
        };
        Self::open_on(input, output, layout, crash_note)
    }

    /// Takes over a terminal that is read and written through these.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_on(
        input: OwnedFd,
        output: OwnedFd,
        layout: Layout,
        crash_note: String,
    ) -> io::Result<Self> {
        if !isatty(&output) {
            let what = "standard output is not a terminal";
            return Err(io::Error::new(io::ErrorKind::Unsupported, what));
        }
        let before = tcgetattr(&input)?;
        let signals = Signals::listen()?;
        let mut terminal = Self {
            input,
            output: Output::new(output),
            before,
            layout,
            signals,
            reader: None,
            leftover: Vec::new(),
            asked: false,
            size_asked: false,
            crash_note,
        };
        terminal.take_over()?;
        Ok(terminal)
    }

    /// Returns the size of the terminal; a default if the terminal does not report one.
    #[must_use]
    pub fn size(&self) -> Size {
        match tcgetwinsize(self.output.file()) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
                Size::new(size.ws_col.into(), size.ws_row.into())
            }
            _ => Size::default(),
        }
    }

    /// Asks it how large it is; it answers with [`Heard::Size`].
    ///
    /// # Errors
    /// When it is gone.
    pub fn ask_size(&mut self) -> io::Result<()> {
        self.size_asked = true;
        self.write(SIZE_QUESTION)
    }

    /// Reports whether the program has the terminal now.
    #[must_use]
    pub fn is_taken(&self) -> bool {
        self.reader.is_some()
    }

    /// Writes to it. What it does not take at once waits; see [`Self::is_clogged`].
    ///
    /// # Errors
    /// When it is gone.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.output.write(bytes)
    }

    /// Reports whether the terminal has not accepted all of the last write yet. [`News::Written`] reports when it
    /// has.
    #[must_use]
    pub fn is_clogged(&self) -> bool {
        self.output.is_clogged()
    }

    /// The next thing that happens. Safe to drop and call again.
    pub async fn next(&mut self) -> TerminalEvent {
        if !self.leftover.is_empty() && self.is_taken() {
            let heard = self.leftover.remove(0);
            return TerminalEvent::Heard(self.track_answers(heard));
        }
        let (reader, output) = (&mut self.reader, &mut self.output);
        let heard = tokio::select! {
            biased;
            signal = self.signals.next() => return TerminalEvent::Signal(signal),
            heard = read_input(reader) => heard,
            () = output.clear(), if output.is_clogged() => return TerminalEvent::Written,
        };
        TerminalEvent::Heard(self.track_answers(heard))
    }

    /// The next thing from the person or the terminal, if there is one.
    pub fn try_next(&mut self) -> Option<TerminalInput> {
        let reader = self.reader.as_mut()?;
        let heard = match self.leftover.is_empty() {
            true => reader.try_next()?,
            false => self.leftover.remove(0),
        };
        Some(self.track_answers(heard))
    }

    fn track_answers(&mut self, heard: TerminalInput) -> TerminalInput {
        self.mark_answered(answered_queries(std::slice::from_ref(&heard)));
        heard
    }

    fn mark_answered(&mut self, (first, size): (bool, bool)) {
        self.asked &= !first;
        self.size_asked &= !size;
    }

    /// Takes the terminal over again after [`Self::give_back`].
    ///
    /// # Errors
    /// When it is gone.
    pub fn take_over(&mut self) -> io::Result<()> {
        if self.layout == Layout::Plain {
            self.reader = Some(Reader::start(self.input.try_clone()?, Decoder::by_line())?);
            return Ok(());
        }
        let mut raw = self.before.clone();
        raw.make_raw();
        set_attributes(&self.input, &raw)?;
        let mut decoder = self.hear_typed_ahead();
        if self.layout == Layout::FullScreen {
            decoder = decoder.with_wheel();
        }
        let reader = self.input.try_clone().and_then(|input| Reader::start(input, decoder));
        if reader.is_err() {
            set_attributes(&self.input, &self.before).unwrap_or_default();
        }
        self.reader = Some(reader?);
        panics::capture_messages();
        let screen = if self.layout == Layout::FullScreen { TAKE_SCREEN } else { "" };
        self.asked = true;
        self.write(format!("{screen}{TAKE}{QUESTIONS}").as_bytes())
    }

    /// Reads the input that was typed while the terminal made a line feed of Enter. A line feed at the end was
    /// Enter; among other lines it belongs to a text that was pasted.
    fn hear_typed_ahead(&mut self) -> Decoder {
        let mut decoder = Decoder::default();
        let mut buffer = [0; MAX_TYPED_AHEAD];
        let now = Timespec::default();
        let is_there = poll(&mut [PollFd::new(&self.input, PollFlags::IN)], Some(&now));
        if !matches!(is_there, Ok(1..)) {
            return decoder;
        }
        let Ok(count @ 1..) = rustix::io::read(&self.input, &mut buffer) else { return decoder };
        let read = buffer.get_mut(..count).unwrap_or_default();
        // Behind the first escape stands what the terminal says, or keys that are no text.
        let end = read.iter().position(|byte| *byte == ESCAPE).unwrap_or(count);
        let typed = read.get_mut(..end).unwrap_or_default();
        if typed.iter().filter(|byte| **byte == b'\n').count() == 1
            && let Some(last @ b'\n') = typed.last_mut()
        {
            *last = b'\r';
        }
        decoder.feed(read, &mut self.leftover);
        decoder
    }

    /// Gives the terminal to somebody else, as it was. What has been typed is kept. Does nothing when
    /// it is given back already.
    pub fn give_back(&mut self) {
        let Some(mut reader) = self.reader.take() else { return };
        self.leftover.extend(std::iter::from_fn(|| reader.try_next()));
        drop(reader);
        self.mark_answered(answered_queries(&self.leftover));
        if self.layout == Layout::Plain {
            return;
        }
        self.hear_last_answers();
        self.size_asked = false;
        let screen = if self.layout == Layout::FullScreen { GIVE_SCREEN_BACK } else { "" };
        // A terminal that is gone needs nothing any more.
        self.write(format!("{GIVE_BACK}{screen}").as_bytes()).unwrap_or_default();
        self.output.finish(LAST_BYTES_WAIT);
        set_attributes(&self.input, &self.before).unwrap_or_default();
        print_messages(&panics::release_messages());
    }

    /// Sets the note that is printed if the program ends with a panic.
    pub fn set_crash_note(&mut self, crash_note: String) {
        self.crash_note = crash_note;
    }

    /// Reports whether a shell can continue the program after [`Self::suspend_process`]: a terminal's first program has no
    /// shell that waits for it.
    #[must_use]
    pub fn can_stop(&self) -> bool {
        getsid(None).is_ok_and(|session| session != getpgrp())
    }

    /// Gives the terminal back and stops the program, with everything in its process group. The program continues
    /// with [`Signal::GoOn`].
    ///
    /// # Errors
    /// The system does not allow it; the terminal is given back all the same.
    pub fn suspend_process(&mut self) -> io::Result<()> {
        self.give_back();
        Ok(kill_current_process_group(Number::STOP)?)
    }

    fn hear_last_answers(&mut self) {
        let until = Instant::now() + LAST_ANSWERS_WAIT;
        let mut decoder = Decoder::default();
        let mut buffer = [0; 512];
        while self.asked || self.size_asked {
            let left = until.saturating_duration_since(Instant::now());
            let Ok(left) = Timespec::try_from(left) else { return };
            match poll(&mut [PollFd::new(&self.input, PollFlags::IN)], Some(&left)) {
                Ok(1..) => {}
                Err(Errno::INTR) => continue,
                Ok(0) | Err(_) => return,
            }
            let Ok(count @ 1..) = rustix::io::read(&self.input, &mut buffer) else { return };
            let start = self.leftover.len();
            decoder.feed(buffer.get(..count).unwrap_or_default(), &mut self.leftover);
            self.mark_answered(answered_queries(self.leftover.get(start..).unwrap_or_default()));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.give_back();
        if std::thread::panicking() {
            print_messages(std::slice::from_ref(&self.crash_note));
        }
    }
}

/// Reports whether the terminal on standard error accepts a line now, so that writing one cannot delay the end of
/// the program.
#[must_use]
pub fn can_write_without_waiting() -> bool {
    let stderr = io::stderr();
    let mut file = [PollFd::new(&stderr, PollFlags::OUT)];
    matches!(poll(&mut file, Some(&Timespec::default())), Ok(1..))
}

/// Reports whether the input answers the questions at the start, and whether it answers the one about the size.
fn answered_queries(heard: &[TerminalInput]) -> (bool, bool) {
    let size = heard.iter().any(|heard| matches!(heard, TerminalInput::Size(_)));
    (heard.contains(&TerminalInput::Answered), size)
}

/// Returns the next input from the reader; without a reader it waits forever.
async fn read_input(reader: &mut Option<Reader>) -> TerminalInput {
    match reader {
        Some(reader) => reader.next().await,
        None => std::future::pending().await,
    }
}

fn set_attributes(terminal: &OwnedFd, termios: &Termios) -> io::Result<()> {
    loop {
        match tcsetattr(terminal, OptionalActions::Now, termios) {
            Err(Errno::INTR) => {}
            other => return Ok(other?),
        }
    }
}

fn print_messages(messages: &[String]) {
    for message in messages.iter().filter(|message| !message.is_empty()) {
        // There is nobody left to tell when this fails.
        writeln!(io::stderr(), "{message}").unwrap_or_default();
    }
}
