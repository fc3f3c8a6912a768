//! Renders terminal output to plain lines: carriage returns, progress bars and cursor movements are applied.
//!
//! Programs draw progress over itself: with carriage returns, backspaces, and by moving the cursor up over lines that
//! they erase or write anew. A model that reads the bytes would read each frame. This follows the cursor over the last
//! lines of an output, and passes on a line once the cursor cannot come back to it. Sequences that move nothing (colours,
//! titles) stay where they are, for whoever judges them.
//!
//! A screen that is cleared is passed on unless the next one shows the same with other numbers. What a program draws on
//! the other screen of a terminal is gone when it leaves that, as in a terminal.

mod frame;
mod row;
mod screen;
mod sequence;

use std::collections::VecDeque;

use frame::is_redrawn;
use row::{overwrite_row, row_width};
use screen::{MAX_COLUMN, Screen};
use sequence::{Sequence, scan_sequence};

/// Lines that the cursor can come back to.
const MAX_ROWS: usize = 100;
/// Longest line that is held, in bytes; what is longer is passed on before its end.
const MAX_ROW_BYTES: usize = 4 << 10;

const ESCAPE: char = '\u{1b}';

/// Follows the cursor through an output that comes in pieces.
#[derive(Clone, Debug, Default)]
pub struct TerminalText {
    screen: Screen,
    /// The main screen, while a program draws on the other one.
    main: Option<Box<Screen>>,
    /// The screen that was cleared last, until it is known whether it is drawn again.
    cleared: VecDeque<String>,
    /// The beginning of a sequence whose end has not come.
    unfinished: String,
}

impl TerminalText {
    /// All lines of a whole output.
    #[must_use]
    pub fn render(output: &str) -> String {
        let (mut screen, mut text) = (Self::default(), String::with_capacity(output.len()));
        screen.push(output, |line| text.push_str(line));
        screen.finish(|line| text.push_str(line));
        text
    }

    /// Takes a piece, and passes on the lines that nothing can change any more.
    pub fn push(&mut self, piece: &str, mut sink: impl FnMut(&str)) {
        let joined;
        let mut rest = if self.unfinished.is_empty() {
            piece
        } else {
            joined = std::mem::take(&mut self.unfinished) + piece;
            &joined
        };
        while !rest.is_empty() {
            rest = self.pass_on_lines(rest, &mut sink);
            let Some(first) = rest.chars().next() else { break };
            let plain = rest.find(is_control).unwrap_or(rest.len());
            if plain > 0 {
                let (text, behind) = rest.split_at(plain);
                self.write_text(text, &mut sink);
                rest = behind;
                continue;
            }
            let length = match scan_sequence(rest) {
                Sequence::None => {
                    self.apply_control(first, &mut sink);
                    first.len_utf8()
                }
                Sequence::Whole(length) => {
                    self.apply_sequence(rest.get(..length).unwrap_or_default(), &mut sink);
                    length
                }
                Sequence::Unfinished => {
                    rest.clone_into(&mut self.unfinished);
                    return;
                }
            };
            rest = rest.get(length..).unwrap_or_default();
        }
    }

    /// Passes on the lines that are left, without a line end behind the last, and starts anew.
    pub fn finish(&mut self, mut sink: impl FnMut(&str)) {
        let mut ended = std::mem::take(self);
        let unfinished = std::mem::take(&mut ended.unfinished);
        ended.write_text(unfinished.trim_start_matches(ESCAPE), &mut sink);
        ended.settle_cleared(&mut sink);
        if let Some(main) = ended.main.take() {
            pass_on_rows(&main.rows, &mut sink);
            sink("\n");
        }
        pass_on_rows(&ended.screen.rows, &mut sink);
    }

    /// Passes on at once what the cursor cannot come back to of lines without controls, and returns the rest: an output without
    /// end comes faster than line by line.
    fn pass_on_lines<'t>(&mut self, text: &'t str, sink: &mut impl FnMut(&str)) -> &'t str {
        let is_behind_all = self.screen.is_at_end && self.screen.row + 1 == self.screen.rows.len();
        let is_behind_all = is_behind_all && self.main.is_none();
        let is_plain = |byte: &u8| matches!(byte, b'\n' | b'\t' | 0x20..=0x7e);
        let plain = text.as_bytes().iter().position(|byte| !is_plain(byte)).unwrap_or(text.len());
        let plain = if is_behind_all { text.get(..plain).unwrap_or_default() } else { "" };
        let Some((last, _)) = plain.rmatch_indices('\n').nth(MAX_ROWS) else { return text };
        self.settle_cleared(sink);
        pass_on_rows(&self.screen.rows, sink);
        sink(text.get(..=last).unwrap_or_default());
        self.screen = Screen { saved: (0, self.screen.saved.1), ..Screen::default() };
        text.get(last + 1..).unwrap_or_default()
    }

    fn apply_control(&mut self, control: char, sink: &mut impl FnMut(&str)) {
        let (row, column) = (self.screen.row, self.screen.column);
        match control {
            '\n' => self.break_line(sink),
            '\r' => self.screen.move_to_screen_row(row, 0),
            '\u{8}' => self.screen.move_to_screen_row(row, column.saturating_sub(1)),
            // One that begins no sequence shows nothing.
            _ => {}
        }
    }

    /// Writes text without controls at the cursor.
    fn write_text(&mut self, text: &str, sink: &mut impl FnMut(&str)) {
        if text.is_empty() {
            return;
        }
        let screen = &mut self.screen;
        screen.fill_rows();
        screen.is_home = false;
        let (column, is_at_end) = (screen.column, screen.is_at_end);
        screen.column += text.chars().count();
        let (end, mut bytes) = (screen.column, 0);
        screen.edit_row(|row| {
            if is_at_end {
                row.push_str(text);
            } else {
                overwrite_row(row, column, text);
            }
            bytes = row.len();
            is_at_end || end >= row_width(row)
        });
        if bytes > MAX_ROW_BYTES {
            self.pass_on_long_row(sink);
        }
    }

    /// Passes on a line that is longer than is held, with the lines before it.
    fn pass_on_long_row(&mut self, sink: &mut impl FnMut(&str)) {
        self.settle_cleared(sink);
        while self.screen.row > 0 {
            self.pass_on_first(sink);
        }
        self.screen.column = 0;
        let is_main = self.main.is_none();
        self.screen.edit_row(|row| {
            if is_main {
                sink(row);
            }
            row.clear();
            true
        });
    }

    fn pass_on_first(&mut self, sink: &mut impl FnMut(&str)) {
        self.settle_cleared(sink);
        // What leaves the other screen is nowhere.
        if let Some(row) = self.screen.pop_first().filter(|_| self.main.is_none()) {
            sink(&row);
            sink("\n");
        }
    }

    /// Passes on the screen that was cleared last, unless it is drawn again.
    fn settle_cleared(&mut self, sink: &mut impl FnMut(&str)) {
        // What is drawn on the other screen says nothing about the main one.
        let drawn = self.main.as_ref().map_or(&self.screen.rows, |main| &main.rows);
        let cleared = std::mem::take(&mut self.cleared);
        if !is_redrawn(&cleared, drawn) {
            pass_on_rows(&cleared, sink);
            sink("\n");
        }
    }

    fn clear_screen(&mut self, sink: &mut impl FnMut(&str)) {
        let is_blank = |row: &String| row.trim().is_empty();
        if self.main.is_none() && !self.screen.rows.iter().all(is_blank) {
            self.settle_cleared(sink);
            self.cleared = std::mem::take(&mut self.screen.rows);
            while self.cleared.back().is_some_and(is_blank) {
                self.cleared.pop_back();
            }
        }
        self.screen = Screen { saved: self.screen.saved, ..Screen::default() };
    }

    /// Begins the other screen of a terminal, or goes back to the main one.
    fn switch_screen(&mut self, is_other: bool) {
        if !is_other {
            if let Some(main) = self.main.take() {
                self.screen = *main;
            }
        } else if self.main.is_none() {
            self.main = Some(Box::new(std::mem::take(&mut self.screen)));
        }
    }

    fn break_line(&mut self, sink: &mut impl FnMut(&str)) {
        if self.screen.is_on_unwritten_row() {
            return self.screen.move_to_screen_row(self.screen.row + 1, 0);
        }
        if self.screen.row + 1 == self.screen.rows.len() {
            self.screen.rows.push_back(String::new());
            self.pass_on_excess(sink);
        }
        self.screen.move_to(self.screen.row + 1, 0);
    }

    fn pass_on_excess(&mut self, sink: &mut impl FnMut(&str)) {
        while self.screen.rows.len() > MAX_ROWS {
            self.pass_on_first(sink);
        }
    }

    /// Does what a sequence says, or puts it where the cursor is.
    fn apply_sequence(&mut self, sequence: &str, sink: &mut impl FnMut(&str)) {
        let screen = &mut self.screen;
        let (row, column) = (screen.row, screen.column);
        let is_done = match (sequence.strip_prefix("\u{1b}["), sequence) {
            (Some(control), _) => {
                let (parameters, last) = control.split_at(control.len().saturating_sub(1));
                if parameters.starts_with(['?', '<', '=', '>']) {
                    self.obey_private(parameters, last)
                } else {
                    self.obey_control(parameters, last, sink)
                }
            }
            (None, "\u{1b}7") => {
                screen.saved = (row, column);
                true
            }
            (None, "\u{1b}8") => {
                screen.move_to_screen_row(screen.saved.0, screen.saved.1);
                true
            }
            (None, "\u{1b}M") => {
                screen.move_to_screen_row(row.saturating_sub(1), column);
                true
            }
            (None, "\u{1b}c") => {
                self.clear_screen(sink);
                true
            }
            // Keys and character sets: nothing of it is text.
            (None, "\u{1b}=" | "\u{1b}>" | "\u{1b}(B" | "\u{1b})B" | "\u{1b}%G") => true,
            (None, _) => false,
        };
        if !is_done {
            self.screen.embed_sequence(sequence);
        }
    }

    /// Changes a private mode; whether it is one. They show or hide the cursor and the like: nothing of it is text.
    fn obey_private(&mut self, parameters: &str, last: &str) -> bool {
        let mut modes = parameters.trim_start_matches('?').split(';');
        if matches!(last, "h" | "l") && modes.any(|mode| matches!(mode, "47" | "1047" | "1049")) {
            self.switch_screen(last == "h");
        }
        matches!(last, "h" | "l" | "m" | "u" | "n" | "c" | "q" | "p" | "s" | "r" | "t")
    }

    /// Moves or erases as a control sequence says; whether it is one of these, or shows nothing.
    fn obey_control(&mut self, parameters: &str, last: &str, sink: &mut impl FnMut(&str)) -> bool {
        let mut numbers = parameters.split(';').map(|number| number.parse::<usize>().ok());
        let first = numbers.next().flatten();
        let second = numbers.next().flatten();
        let count = first.unwrap_or(1).clamp(1, MAX_COLUMN);
        let screen = &mut self.screen;
        let (row, column) = (screen.row, screen.column);
        match last {
            "A" => screen.move_to_screen_row(row.saturating_sub(count), column),
            "B" => screen.move_to(row + count, column),
            "C" => screen.move_to_screen_row(row, column + count),
            "D" => screen.move_to_screen_row(row, column.saturating_sub(count)),
            "E" => screen.move_to(row + count, 0),
            "F" => screen.move_to_screen_row(row.saturating_sub(count), 0),
            "G" | "`" => screen.move_to_screen_row(row, count - 1),
            "H" | "f" => {
                screen.move_to_screen_row(count - 1, second.unwrap_or(1).max(1) - 1);
                screen.is_home = (screen.row, screen.column) == (0, 0);
            }
            "d" => screen.move_to_screen_row(count - 1, column),
            "K" => screen.erase_in_row(first.unwrap_or(0)),
            "J" => self.erase_screen(first.unwrap_or(0), sink),
            "P" => screen.delete_characters(count),
            "X" => screen.erase_characters(count),
            "@" => screen.insert_blanks(count),
            "L" => {
                screen.insert_rows(count);
                self.pass_on_excess(sink);
            }
            "M" => screen.delete_rows(count),
            "s" => screen.saved = (row, column),
            "u" => screen.move_to_screen_row(screen.saved.0, screen.saved.1),
            // Scrolls, chooses what scrolls, and asks or tells the terminal something: the lines stay what they are.
            "S" | "T" | "r" | "n" | "c" | "t" | "q" | "p" | "g" | "h" | "l" => (),
            _ => return false,
        }
        true
    }

    fn erase_screen(&mut self, which: usize, sink: &mut impl FnMut(&str)) {
        match which {
            0 if self.screen.is_home => self.clear_screen(sink),
            0 => self.screen.erase_rows(false),
            1 => self.screen.erase_rows(true),
            // What has scrolled away.
            3 => (),
            _ => self.clear_screen(sink),
        }
    }
}

/// Passes on lines, without a line end behind the last.
fn pass_on_rows(rows: &VecDeque<String>, sink: &mut impl FnMut(&str)) {
    for (at, row) in rows.iter().enumerate() {
        sink(if at > 0 { "\n" } else { "" });
        sink(row);
    }
}

/// True if a character is a control character for the screen.
fn is_control(letter: char) -> bool {
    matches!(letter, '\n' | '\r' | '\u{8}' | ESCAPE)
}
#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn carriage_return_progress_output_renders_as_its_final_screen() {
        for (output, shown) in [
            // pip, curl, a shell loop: one line drawn over.
            ("\r 10%\r 50%\r100%\ndone\n", "100%\ndone\n"),
            (
                "Receiving: 1%\rReceiving: 100%, done.\r\nResolving",
                "Receiving: 100%, done.\nResolving",
            ),
            // A shorter frame over a longer one leaves its end, unless that is erased.
            ("longer text\rshort", "shortr text"),
            ("longer text\r\u{1b}[Kshort", "short"),
            ("longer text\u{1b}[2K\rshort", "short"),
            // tqdm and spinners.
            ("a |\u{8}/\u{8}-\u{8}\\\u{8} \u{8}ok\n", "a ok\n"),
            ("N\u{8}Na\u{8}am\u{8}me\u{8}e", "Name"),
            // npm, docker, cargo: several lines drawn anew.
            (
                "one: 1%\ntwo: 1%\n\u{1b}[2A\u{1b}[Kone: 100%\n\u{1b}[Ktwo: 100%\nend\n",
                "one: 100%\ntwo: 100%\nend\n",
            ),
            ("a\nb\nc\u{1b}[2F\u{1b}[JA\n", "A\n"),
            ("a\n\u{1b}[s1\u{1b}[u2\u{1b}7\u{1b}8\n", "a\n2\n"),
            ("old 1\nold\u{1b}[2J\u{1b}[Hold 2\nnew", "old 2\nnew"),
            ("ab\u{1b}[1Dc\u{1b}[5Gd\u{1b}[2G\u{1b}[P", "a  d"),
            ("x\u{1b}[?25l\u{1b}[?2026hy\u{1b}[?25h", "xy"),
            // What moves nothing stays.
            (
                "\u{1b}[32mok\u{1b}[0m 1%\r\u{1b}[32mok\u{1b}[0m 2%",
                "\u{1b}[32mok\u{1b}[0m\u{1b}[32mok\u{1b}[0m 2%",
            ),
            ("plain\tünï\n\n日本語\n", "plain\tünï\n\n日本語\n"),
            ("\u{1b}]0;title\u{7}x", "\u{1b}]0;title\u{7}x"),
        ] {
            if output.contains("[32m") {
                let plain =
                    TerminalText::render(output).replace("\u{1b}[32m", "").replace("\u{1b}[0m", "");
                assert_eq!(plain, "ok 2%");
                continue;
            }
            assert_eq!(TerminalText::render(output), shown, "{output:?}");
        }
    }

    #[test]
    fn cursor_positioning_escapes_place_text_on_their_row() {
        for (output, shown) in [
            ("\u{1b}[1;1Hone\u{1b}[5;1Hfive", "one\n\n\n\nfive"),
            ("\u{1b}[3;4Hx\u{1b}[1;1Hy", "y\n\n   x"),
            ("\u{1b}[2dtwo\u{1b}[1;1Hone", "one\ntwo"),
            // To the last row at the end, as most programs with a screen do, and to ask for its size.
            ("one\u{1b}[24;1H\u{1b}[K\n", "one"),
            ("one\u{1b}[s\u{1b}[999;999H\u{1b}[6n\u{1b}[u two", "one two"),
            ("one\u{1b}[3;1H\u{1b}[31mx", "one\u{1b}[31m\n\nx"),
        ] {
            assert_eq!(TerminalText::render(output), shown, "{output:?}");
        }
        let far = TerminalText::render("\u{1b}[9999;1Hlast");
        assert_eq!(far.lines().count(), screen::SCREEN_ROWS);
    }

    #[test]
    fn cleared_screen_output_is_preserved_unless_the_frame_is_redrawn() {
        let clear = "\u{1b}[2J\u{1b}[H";
        for (output, shown) in [
            (format!("build failed: E1\n{clear}watching"), "build failed: E1\nwatching"),
            ("error: x\n\u{1b}[H\u{1b}[2J\u{1b}[3Jok\n".to_owned(), "error: x\nok\n"),
            ("error: x\n\u{1b}[H\u{1b}[Jok\n".to_owned(), "error: x\nok\n"),
            ("error: x\n\u{1b}cok\n".to_owned(), "error: x\nok\n"),
            (
                format!("first\n{clear}load: 1\n{clear}load: 2\n{clear}load: 3\n"),
                "first\nload: 3\n",
            ),
            (format!("a: 1\n{clear}{clear}b"), "a: 1\nb"),
            (format!("{clear}x"), "x"),
        ] {
            assert_eq!(TerminalText::render(&output), shown, "{output:?}");
        }
    }

    #[test]
    fn alternate_screen_output_is_dropped_when_the_program_exits_it() {
        let drawn = "keep me\n\u{1b}[?1049h\u{1b}[H\u{1b}[2JTUI\nx";
        for leave in ["\u{1b}[?1049l", "\u{1b}[?1047l", "\u{1b}[?25h;\u{8}\u{1b}[?1;1049l"] {
            assert_eq!(TerminalText::render(&format!("{drawn}{leave} after")), "keep me\n after");
        }
        // One that was killed has not left it.
        assert_eq!(TerminalText::render(drawn), "keep me\n\nTUI\nx");
        let long = format!("a\n\u{1b}[?1049h{}\u{1b}[?1049lb", "line\n".repeat(1_000));
        assert_eq!(TerminalText::render(&long), "a\nb");
    }

    #[test]
    fn escape_sequences_leave_no_characters_in_rendered_terminal_text() {
        for (output, shown) in [
            ("abcdef\u{1b}[3G\u{1b}[2Xx", "abx ef"),
            ("abc\u{1b}[2G\u{1b}[@x", "axbc"),
            ("one\ntwo\u{1b}[2;1H\u{1b}[Lnew", "one\nnew\ntwo"),
            ("a\u{1b}[S\u{1b}[2T\u{1b}[0;23r\u{1b}[6n\u{1b}[c\u{1b}[4 q\u{1b}[!pb", "ab"),
            ("a\u{1b}[>4;1m\u{1b}[=1u\u{1b}[<u\u{1b}[?2026$p\u{1b}[>cb", "ab"),
            ("a\u{1b}(B\u{1b}=\u{1b}>b", "ab"),
        ] {
            assert_eq!(TerminalText::render(output), shown, "{output:?}");
        }
    }

    #[test]
    fn plain_output_of_many_lines_renders_unchanged() {
        let text: String = (0..1_000)
            .map(|line| if line % 3 == 0 { "\n".to_owned() } else { format!("line {line}\n") })
            .collect();
        assert_eq!(TerminalText::render(&text), text);
        assert_eq!(TerminalText::render(&format!("{text}a\rb")), format!("{text}b"));
    }

    #[test]
    fn three_thousand_progress_bar_frames_render_as_one_line() {
        let frames: String = (1..=3000).map(|at| format!("\rprogress {at}% ####")).collect();
        assert_eq!(TerminalText::render(&(frames + "\nend\n")), "progress 3000% ####\nend\n");
    }

    #[test]
    fn scrolled_off_terminal_rows_are_emitted_and_never_overwritten() {
        let (mut screen, mut text) = (TerminalText::default(), String::new());
        for line in 0..MAX_ROWS * 3 {
            screen.push(&format!("{line}\n"), |row| text.push_str(row));
            assert!(screen.screen.rows.len() <= MAX_ROWS);
        }
        screen.push(&format!("\u{1b}[{}A\rnew", MAX_ROWS * 9), |row| text.push_str(row));
        screen.finish(|row| text.push_str(row));
        assert!(text.starts_with("0\n1\n2\n"), "{text}");
        assert!(text.contains("\nnew\n") && text.contains("\n299\n"), "{text}");
    }

    #[test]
    fn overlong_terminal_line_uses_bounded_memory() {
        let (mut screen, mut bytes) = (TerminalText::default(), 0);
        for _ in 0..100 {
            screen.push(&"x".repeat(10_000), |row| bytes += row.len());
            assert!(screen.screen.rows.iter().map(String::len).sum::<usize>() <= MAX_ROW_BYTES);
        }
        screen.finish(|row| bytes += row.len());
        assert_eq!(bytes, 1_000_000);
    }

    fn pieces() -> impl Strategy<Value = Vec<String>> {
        let piece = prop_oneof![
            Just("ab"),
            Just("é日"),
            Just("\n"),
            Just("\r"),
            Just("\u{8}"),
            Just("\u{1b}["),
            Just("2"),
            Just("A"),
            Just("K"),
            Just("J"),
            Just("H"),
            Just("m"),
            Just(";"),
            Just("\u{1b}"),
            Just("999999999999C"),
            Just("7"),
            Just("8"),
            Just("P"),
            Just("M"),
            Just("\u{1b}]0;"),
            Just("\u{7}"),
            Just("\u{1b}[31m"),
            Just("\u{1b}[2J"),
            Just("\u{1b}[H"),
            Just("\u{1b}[7;1H"),
            Just("\u{1b}[?1049h"),
            Just("\u{1b}[?1049l"),
            Just("\u{1b}[3L"),
        ];
        prop::collection::vec(piece.prop_map(str::to_owned), 0..40)
    }

    proptest! {
        #[test]
        fn terminal_text_renders_the_same_for_any_chunking(pieces in pieces()) {
            let (mut screen, mut text) = (TerminalText::default(), String::new());
            for piece in &pieces {
                screen.push(piece, |row| text.push_str(row));
            }
            screen.finish(|row| text.push_str(row));
            prop_assert_eq!(text, TerminalText::render(&pieces.concat()));
        }

        /// Text without controls comes through as it is.
        #[test]
        fn terminal_text_without_control_characters_renders_unchanged(text in "[a-z é日\t\n]{0,200}") {
            prop_assert_eq!(TerminalText::render(&text), text);
        }
    }
}
