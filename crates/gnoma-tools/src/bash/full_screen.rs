//! Programs that draw on a full screen and wait for a person: editors, monitors, menus.
//!
//! They have no terminal here, and nothing to read; without this they would wait until their time is up.

use std::time::Duration;

use tokio::time::Instant;

/// The time for which a program that has drawn a screen writes nothing until it is taken to wait. Shorter than the
/// usual interval of `watch`, longer than editors need to save and end.
const SILENCE: Duration = Duration::from_millis(1500);
/// The time for which a program may draw on a full screen until it is taken to show it to a person: such as `watch`
/// with a short interval, or a monitor.
const MAX_DRAWING: Duration = Duration::from_secs(8);
/// Most bytes of the parameters of a control sequence; longer ones place no cursor.
const MAX_PARAMETER_BYTES: usize = 16;
/// Blanks from the beginning of a line from which on they erase a screen: half of 24 rows of 80. Programs write them
/// to a terminal that cannot clear.
const MIN_ERASING_BLANKS: usize = 960;

/// Columns of the screen that programs draw on if they find no terminal.
const COLUMNS: usize = 80;

/// The end of a line in which an editor says that it has no terminal.
const NO_TERMINAL: &str = "not to a terminal";

/// The advice for a program that wants a person.
const REMEDY: &str = "it draws on a full screen and waits for a person at a terminal, and none is here. Change files with \
                      `fs.edit`; run a command that is watched once, by itself; give other programs their answers as arguments.";

/// Recognises in an output that a program has drawn on a full screen, wherever reads cut it.
#[derive(Debug, Default)]
pub(super) struct ScreenWatch {
    sequence: Sequence,
    blanks: usize,
    last: char,
    /// The number of characters of [`NO_TERMINAL`] that were just read.
    matched: usize,
    /// The program has said that its output is no terminal.
    says_no_terminal: bool,
    /// `true` from a placed cursor on, until a plain line comes.
    is_placed: bool,
    /// `true` from an alternate or an erased screen on, until it is left or a plain line comes.
    is_full: bool,
    /// The time of the last output.
    wrote_at: Option<Instant>,
    /// The time at which the screen was taken that is open now.
    taken_at: Option<Instant>,
}

/// The place in a control sequence.
#[derive(Debug, Default)]
enum Sequence {
    #[default]
    Outside,
    Escaped,
    Parameters(String),
}

impl ScreenWatch {
    /// Adds output.
    pub(super) fn push(&mut self, text: &str, now: Instant) {
        if !text.is_empty() {
            self.wrote_at = Some(now);
        }
        for c in text.chars() {
            self.read_char(c);
            self.last = c;
            self.taken_at = self.is_full.then(|| self.taken_at.unwrap_or(now));
        }
    }

    /// Reports whether the program has drawn a screen and not left it. One that leaves ends its last line.
    pub(super) fn is_open(&self) -> bool {
        (self.is_full || self.is_placed) && self.last != '\n'
    }

    /// Reports whether the output has ended its last line.
    pub(super) fn has_ended_line(&self) -> bool {
        self.last == '\n'
    }

    /// Returns the time from which on the program is taken to wait: when it has written nothing for a while, or has
    /// held a full screen for long. A placed cursor alone is no reason: progress bars place it, and then work in
    /// silence.
    pub(super) fn waits_from(&self) -> Option<Instant> {
        let is_certain = self.is_full || self.is_placed && self.says_no_terminal;
        let silent_from = self.wrote_at.filter(|_| is_certain && self.is_open())? + SILENCE;
        let shown_from = self.taken_at.map(|at| at + MAX_DRAWING);
        Some(shown_from.map_or(silent_from, |from| from.min(silent_from)))
    }

    /// Reports whether the program waits for a person now.
    pub(super) fn waits_at(&self, now: Instant) -> bool {
        self.waits_from().is_some_and(|from| from <= now)
    }

    /// Reports whether a full screen is open, or another one on which nothing has changed for a while.
    pub(super) fn shows_screen(&self, now: Instant) -> bool {
        let is_still = self.wrote_at.is_some_and(|at| at + SILENCE <= now);
        self.is_open() && (self.is_full || is_still)
    }

    fn read_char(&mut self, c: char) {
        let is_first = matches!(self.last, '\0' | '\n' | '\r');
        self.blanks = if c == ' ' && (is_first || self.blanks > 0) { self.blanks + 1 } else { 0 };
        self.is_full |= self.blanks >= MIN_ERASING_BLANKS;
        let is_next = NO_TERMINAL.chars().nth(self.matched) == Some(c);
        self.matched =
            if is_next { self.matched + 1 } else { usize::from(NO_TERMINAL.starts_with(c)) };
        self.says_no_terminal |= self.matched == NO_TERMINAL.len();
        match &mut self.sequence {
            Sequence::Outside if c == '\u{1b}' => self.sequence = Sequence::Escaped,
            // Who draws on a screen ends lines with `\r\n`.
            Sequence::Outside if c == '\n' && self.last != '\r' => {
                (self.is_placed, self.is_full) = (false, false);
            }
            Sequence::Outside => {}
            Sequence::Escaped if c == '[' => self.sequence = Sequence::Parameters(String::new()),
            Sequence::Parameters(parameters) if ('@'..='~').contains(&c) => {
                match (parameters.as_str(), c) {
                    ("?1049" | "?1047" | "?47", 'h') => self.is_full = true,
                    ("?1049" | "?1047" | "?47", 'l') => {
                        (self.is_placed, self.is_full) = (false, false);
                    }
                    (place, 'H' | 'f') => self.is_placed |= !is_first_place(place),
                    _ => {}
                }
                self.sequence = Sequence::Outside;
            }
            Sequence::Parameters(parameters) if parameters.len() < MAX_PARAMETER_BYTES => {
                parameters.push(c);
            }
            Sequence::Escaped | Sequence::Parameters(_) => self.sequence = Sequence::Outside,
        }
    }
}

/// Reports whether the parameters of a placed cursor mean the first place of all, where `clear` goes.
fn is_first_place(parameters: &str) -> bool {
    parameters.split(';').all(|number| matches!(number, "" | "0" | "1"))
}

/// Returns the text about a program that wants a person, with what stands on its screen, behind the word `done` about
/// what was done, or has to be.
pub(super) fn describe_screen(done: &str, shown: &str) -> String {
    let rows = shown.lines().map(row_text).filter(|row| !matches!(row.trim(), "" | "~"));
    let mut text = format!("{done}: {REMEDY}");
    for row in rows {
        text.push('\n');
        text.push_str(row);
    }
    text
}

/// Returns the text of a row, without the blanks that erased what was there before.
fn row_text(row: &str) -> &str {
    let row = row.trim_end();
    let text = row.trim_start();
    if row.len() - text.len() >= COLUMNS { text } else { row }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_waiting(output: &str) -> bool {
        let now = Instant::now();
        let (mut whole, mut cut) = (ScreenWatch::default(), ScreenWatch::default());
        whole.push(output, now);
        for c in output.chars() {
            cut.push(c.encode_utf8(&mut [0; 4]), now);
        }
        assert_eq!(whole.is_open(), cut.is_open(), "{output:?}");
        assert_eq!(whole.waits_from(), cut.waits_from(), "{output:?}");
        whole.waits_from().is_some()
    }

    #[test]
    fn open_full_screen_program_is_detected_as_waiting() {
        let watch = format!("{}Every 2.0s: date\r", " ".repeat(1920));
        for output in [
            "Vim: Warning: Output is not to a terminal\n\u{c}\u{1b}[24;1H\"f\" 1L, 6B\u{1b}[1;1Hhello\r\n~  \r\n~  ",
            "\u{1b}[?1049h\u{1b}[22;0;0t\u{1b}[H\u{1b}[2JEvery 1.0s: date\u{1b}[3;1Hnow",
            "built\n\u{1b}[?47h menu",
            &watch,
        ] {
            assert!(is_waiting(output), "{output:?}");
        }
    }

    #[test]
    fn progress_bars_and_cleared_screens_are_no_full_screen_program() {
        for output in [
            "",
            "hello\nhello",
            "10%\r20%\r30%",
            "\u{1b}[H\u{1b}[2J\u{1b}[3Jwaiting",
            "\u{1b}[1;1H\u{1b}[2Jwaiting",
            "one\ntwo\n\u{1b}[2A\u{1b}[Jone",
            "\u{1b}[32mok\u{1b}[0m",
            "\u{1b}[?1049hmenu\u{1b}[?1049l",
            "\u{1b}[24;1H\"f\" 1L, 6B\r\r\n\"f\" 1L, 6B written\r\r\n",
            "\u{1b}[24;1H\"f\" written\r\r\nCompiling\ngnoma",
            "\u{1b}[2J\u{1b}[0;0Hwaiting",
            "\u{1b}[2J\u{1b}[;Hwaiting",
            "\u{1b}[5;10Hcopying",
            "Unpacking\r\n\u{1b}7\u{1b}[24;0f\u{1b}[42m 40%\u{1b}[49m\u{1b}8",
            &format!("name{}end", " ".repeat(1_000)),
        ] {
            assert!(!is_waiting(output), "{output:?}");
        }
    }

    #[test]
    fn full_screen_program_that_redraws_constantly_is_stopped_after_a_limit() {
        let begin = Instant::now();
        let second = Duration::from_secs(1);
        let mut screen = ScreenWatch::default();
        screen.push("\u{1b}[?1049h", begin);
        for time in 1..=20 {
            screen.push("\u{1b}[1;1Hframe", begin + second * time);
            assert!(screen.shows_screen(begin + second * time));
        }
        assert_eq!(screen.waits_from(), Some(begin + MAX_DRAWING));
        assert!(screen.waits_at(begin + MAX_DRAWING) && !screen.waits_at(begin + second));
        screen.push("\u{1b}[?1049l\u{1b}[?1049h\u{1b}[1;1Hother", begin + second * 21);
        assert_eq!(screen.waits_from(), Some(begin + second * 21 + SILENCE));
        screen.push("\u{1b}[?1049l", begin + second * 22);
        assert_eq!(screen.waits_from(), None);
    }

    #[test]
    fn full_screen_description_omits_empty_rows() {
        let erased = describe_screen("Stopped", &format!("{}Every 2.0s: date", " ".repeat(1920)));
        assert!(erased.ends_with(".\nEvery 2.0s: date"), "{erased}");
        let text = describe_screen("Stopped", "built\nhello      \n~     \n~\n\n     1,1  All");
        assert!(text.contains("person at a terminal") && text.contains("`fs.edit`"), "{text}");
        assert!(text.ends_with(".\nbuilt\nhello\n     1,1  All"), "{text}");
    }
}
