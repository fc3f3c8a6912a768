//! What a terminal would show of an output, as lines.
//!
//! Programs draw progress over itself: with carriage returns, backspaces, and by moving the cursor up over lines that
//! they erase or write anew. A model that reads the bytes would read each frame. This follows the cursor over the last
//! lines of an output, and passes on a line once the cursor cannot come back to it. Sequences that move nothing (colours,
//! titles) stay where they are, for whoever judges them.

use std::collections::VecDeque;

/// Lines that the cursor can come back to.
const MAX_ROWS: usize = 100;
/// Longest line that is held, in bytes; what is longer is passed on before its end.
const MAX_ROW_BYTES: usize = 4 << 10;
/// Farthest column that the cursor is moved to.
const MAX_COLUMN: usize = 2000;
/// Longest control sequence that is waited for, in bytes.
const MAX_SEQUENCE_BYTES: usize = 256;
/// Longest title, link or the like that is waited for, in bytes.
const MAX_STRING_BYTES: usize = 4 << 10;

const ESCAPE: char = '\u{1b}';

/// Follows the cursor through an output that comes in pieces.
#[derive(Clone, Debug)]
pub struct TerminalText {
    /// The last lines, oldest first; never empty.
    rows: VecDeque<String>,
    /// The row of the cursor, and its column in characters.
    row: usize,
    column: usize,
    /// The cursor stands behind the last character of its row.
    is_at_end: bool,
    saved: (usize, usize),
    /// The beginning of a sequence whose end has not come.
    unfinished: String,
}

impl Default for TerminalText {
    fn default() -> Self {
        Self {
            rows: VecDeque::from([String::new()]),
            row: 0,
            column: 0,
            is_at_end: true,
            saved: (0, 0),
            unfinished: String::new(),
        }
    }
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
                self.write(text, &mut sink);
                rest = behind;
                continue;
            }
            let length = match sequence(rest) {
                Sequence::None => {
                    self.control(first, &mut sink);
                    first.len_utf8()
                }
                Sequence::Whole(length) => {
                    self.obey(rest.get(..length).unwrap_or_default());
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
        ended.write(unfinished.trim_start_matches(ESCAPE), &mut sink);
        let last = ended.rows.len() - 1;
        for (at, row) in ended.rows.iter().enumerate() {
            sink(row);
            if at < last {
                sink("\n");
            }
        }
    }

    /// Passes on at once what the cursor cannot come back to of lines without controls, and returns the rest: an output without
    /// end comes faster than line by line.
    fn pass_on_lines<'t>(&mut self, text: &'t str, sink: &mut impl FnMut(&str)) -> &'t str {
        let is_behind_all = self.is_at_end && self.row + 1 == self.rows.len();
        let is_plain = |byte: &u8| matches!(byte, b'\n' | b'\t' | 0x20..=0x7e);
        let plain = text.as_bytes().iter().position(|byte| !is_plain(byte)).unwrap_or(text.len());
        let plain = if is_behind_all { text.get(..plain).unwrap_or_default() } else { "" };
        let Some((last, _)) = plain.rmatch_indices('\n').nth(MAX_ROWS) else { return text };
        for (at, row) in std::mem::take(&mut self.rows).iter().enumerate() {
            sink(if at > 0 { "\n" } else { "" });
            sink(row);
        }
        sink(text.get(..=last).unwrap_or_default());
        self.rows.push_back(String::new());
        (self.row, self.column, self.saved.0) = (0, 0, 0);
        text.get(last + 1..).unwrap_or_default()
    }

    fn control(&mut self, control: char, sink: &mut impl FnMut(&str)) {
        match control {
            '\n' => self.break_line(sink),
            '\r' => self.move_to(self.row, 0),
            '\u{8}' => self.move_to(self.row, self.column.saturating_sub(1)),
            // One that begins no sequence shows nothing.
            _ => {}
        }
    }

    /// Writes text without controls at the cursor.
    fn write(&mut self, text: &str, sink: &mut impl FnMut(&str)) {
        let (column, is_at_end) = (self.column, self.is_at_end);
        self.column += text.chars().count();
        let (end, mut bytes) = (self.column, 0);
        self.edit_row(|row| {
            if is_at_end {
                row.push_str(text);
            } else {
                overwrite(row, column, text);
            }
            bytes = row.len();
            is_at_end || end >= columns(row)
        });
        if bytes > MAX_ROW_BYTES {
            self.pass_on_long_row(sink);
        }
    }

    /// Passes on a line that is longer than is held, with the lines before it.
    fn pass_on_long_row(&mut self, sink: &mut impl FnMut(&str)) {
        while self.row > 0 {
            self.pass_on_first(sink);
        }
        self.column = 0;
        self.edit_row(|row| {
            sink(row);
            row.clear();
            true
        });
    }

    fn pass_on_first(&mut self, sink: &mut impl FnMut(&str)) {
        if let Some(row) = self.rows.pop_front() {
            sink(&row);
            sink("\n");
        }
        self.row = self.row.saturating_sub(1);
        self.saved.0 = self.saved.0.saturating_sub(1);
    }

    fn break_line(&mut self, sink: &mut impl FnMut(&str)) {
        if self.row + 1 == self.rows.len() {
            self.rows.push_back(String::new());
            if self.rows.len() > MAX_ROWS {
                self.pass_on_first(sink);
            }
        }
        self.move_to(self.row + 1, 0);
    }

    fn move_to(&mut self, row: usize, column: usize) {
        self.row = row.min(self.rows.len().saturating_sub(1));
        self.column = column.min(MAX_COLUMN.max(self.column));
        let column = self.column;
        self.edit_row(|row| if column == 0 { row.is_empty() } else { column == columns(row) });
    }

    /// Changes the row of the cursor; `edit` says whether the cursor is behind its last character then.
    fn edit_row(&mut self, edit: impl FnOnce(&mut String) -> bool) {
        if let Some(row) = self.rows.get_mut(self.row) {
            self.is_at_end = edit(row);
        }
    }

    /// Puts what takes no place at the cursor.
    fn embed(&mut self, sequence: &str) {
        let (column, is_at_end) = (self.column, self.is_at_end);
        self.edit_row(|row| {
            let at = if is_at_end { row.len() } else { byte_of(row, column) };
            row.insert_str(at, sequence);
            is_at_end
        });
    }

    /// Does what a sequence says, or puts it where the cursor is.
    fn obey(&mut self, sequence: &str) {
        let is_done = match (sequence.strip_prefix("\u{1b}["), sequence) {
            (Some(control), _) => {
                let (parameters, last) = control.split_at(control.len().saturating_sub(1));
                self.obey_control(parameters, last)
            }
            (None, "\u{1b}7") => {
                self.saved = (self.row, self.column);
                true
            }
            (None, "\u{1b}8") => {
                self.move_to(self.saved.0, self.saved.1);
                true
            }
            (None, "\u{1b}M") => {
                self.move_to(self.row.saturating_sub(1), self.column);
                true
            }
            (None, _) => false,
        };
        if !is_done {
            self.embed(sequence);
        }
    }

    /// Moves or erases as a control sequence says; whether it is one of these.
    fn obey_control(&mut self, parameters: &str, last: &str) -> bool {
        // Private modes show or hide the cursor and the like: nothing of it is text.
        if parameters.starts_with('?') {
            return matches!(last, "h" | "l");
        }
        let mut numbers = parameters.split(';').map(|number| number.parse::<usize>().ok());
        let first = numbers.next().flatten();
        let second = numbers.next().flatten();
        let count = first.unwrap_or(1).clamp(1, MAX_COLUMN);
        let (row, column) = (self.row, self.column);
        match last {
            "A" => self.move_to(row.saturating_sub(count), column),
            "B" => self.move_to(row + count, column),
            "C" => self.move_to(row, column + count),
            "D" => self.move_to(row, column.saturating_sub(count)),
            "E" => self.move_to(row + count, 0),
            "F" => self.move_to(row.saturating_sub(count), 0),
            "G" | "`" => self.move_to(row, count - 1),
            "H" | "f" => self.move_to(count - 1, second.unwrap_or(1).max(1) - 1),
            "d" => self.move_to(count - 1, column),
            "K" => self.erase_in_row(first.unwrap_or(0)),
            "J" => self.erase_rows(first.unwrap_or(0)),
            "P" => self.delete_characters(count),
            "M" => self.delete_rows(count),
            "s" => self.saved = (row, column),
            "u" => self.move_to(self.saved.0, self.saved.1),
            _ => return false,
        }
        true
    }

    fn erase_in_row(&mut self, which: usize) {
        let column = self.column;
        self.edit_row(|row| {
            let at = byte_of(row, column);
            match which {
                0 => row.truncate(at),
                1 => row.replace_range(..at, &" ".repeat(column.min(columns(row)))),
                _ => row.clear(),
            }
            column == columns(row)
        });
    }

    fn erase_rows(&mut self, which: usize) {
        match which {
            0 => {
                self.erase_in_row(0);
                self.rows.truncate(self.row + 1);
            }
            1 => {
                for row in self.rows.iter_mut().take(self.row) {
                    row.clear();
                }
                self.erase_in_row(1);
            }
            _ => {
                self.rows = VecDeque::from([String::new()]);
                self.move_to(0, 0);
            }
        }
    }

    fn delete_characters(&mut self, count: usize) {
        let column = self.column;
        self.edit_row(|row| {
            let (from, to) = (byte_of(row, column), byte_of(row, column + count));
            row.replace_range(from..to, "");
            column == columns(row)
        });
    }

    fn delete_rows(&mut self, count: usize) {
        let row = self.row;
        self.rows.drain(row..(row + count).min(self.rows.len()));
        if self.rows.len() <= row {
            self.rows.push_back(String::new());
        }
        self.move_to(row, 0);
    }
}

/// Whether a character is more than text.
fn is_control(letter: char) -> bool {
    matches!(letter, '\n' | '\r' | '\u{8}' | ESCAPE)
}

/// Puts `text` over what stands from `column` on, with blanks where the row does not reach there.
fn overwrite(row: &mut String, column: usize, text: &str) {
    let width = columns(row);
    row.extend(std::iter::repeat_n(' ', column.saturating_sub(width)));
    let from = byte_of(row, column);
    let to = byte_of(row, column + text.chars().count());
    row.replace_range(from..to, text);
}

/// Whether each byte of a row is a character that takes a place.
fn is_plain(row: &str) -> bool {
    row.is_ascii() && !row.as_bytes().contains(&0x1b)
}

/// The width of a row in characters, without its sequences.
fn columns(row: &str) -> usize {
    if is_plain(row) { row.len() } else { Glyphs(row).count() }
}

/// Where the character at `column` begins, behind the sequences before it.
fn byte_of(row: &str, column: usize) -> usize {
    if is_plain(row) {
        return column.min(row.len());
    }
    Glyphs(row).nth(column).map_or(row.len(), |at| row.len() - at)
}

/// The characters that take a place in a row, each as the bytes from it to the end of the row.
struct Glyphs<'r>(&'r str);

impl Iterator for Glyphs<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        loop {
            let rest = self.0;
            let first = rest.chars().next()?;
            let Sequence::Whole(length) = sequence(rest) else {
                self.0 = rest.get(first.len_utf8()..).unwrap_or_default();
                return Some(rest.len());
            };
            self.0 = rest.get(length..).unwrap_or_default();
        }
    }
}

/// What follows an escape character.
enum Sequence {
    /// Nothing that is a sequence.
    None,
    /// A sequence of this length in bytes.
    Whole(usize),
    /// Its end has not come.
    Unfinished,
}

/// The sequence that `rest` starts with.
#[expect(clippy::match_same_arms, reason = "each case stands beside its reason")]
fn sequence(rest: &str) -> Sequence {
    let bytes = rest.as_bytes();
    match bytes {
        [0x1b] => Sequence::Unfinished,
        [0x1b, b'[', body @ ..] => {
            let end =
                body.iter().take(MAX_SEQUENCE_BYTES).position(|byte| !(0x20..=0x3f).contains(byte));
            match end.and_then(|end| Some((end, body.get(end)?))) {
                Some((end, 0x40..=0x7e)) => Sequence::Whole(2 + end + 1),
                None if body.len() < MAX_SEQUENCE_BYTES => Sequence::Unfinished,
                Some(_) | None => Sequence::None,
            }
        }
        [0x1b, b']' | b'P' | b'X' | b'^' | b'_', body @ ..] => string_sequence(body),
        [0x1b, 0x20..=0x2f] => Sequence::Unfinished,
        [0x1b, 0x20..=0x2f, 0x30..=0x7e, ..] => Sequence::Whole(3),
        [0x1b, 0x30..=0x7e, ..] => Sequence::Whole(2),
        _ => Sequence::None,
    }
}

/// A title, a link or the like, to its terminator on the same line.
fn string_sequence(body: &[u8]) -> Sequence {
    let is_end = |byte: &u8| matches!(byte, 0x07 | 0x1b | b'\n' | b'\r');
    let end = body.iter().take(MAX_STRING_BYTES).position(is_end);
    match end.map(|end| (end, body.get(end..).unwrap_or_default())) {
        Some((end, [0x07, ..])) => Sequence::Whole(2 + end + 1),
        Some((end, [0x1b, b'\\', ..])) => Sequence::Whole(2 + end + 2),
        Some((_, [0x1b])) => Sequence::Unfinished,
        None if body.len() < MAX_STRING_BYTES => Sequence::Unfinished,
        Some(_) | None => Sequence::None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn progress_is_read_as_a_terminal_shows_it_in_the_end() {
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
            ("old\nold\u{1b}[2J\u{1b}[Hnew", "new"),
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
    fn many_lines_in_one_piece_are_passed_on_as_they_are() {
        let text: String = (0..1_000)
            .map(|line| if line % 3 == 0 { "\n".to_owned() } else { format!("line {line}\n") })
            .collect();
        assert_eq!(TerminalText::render(&text), text);
        assert_eq!(TerminalText::render(&format!("{text}a\rb")), format!("{text}b"));
    }

    #[test]
    fn three_thousand_frames_are_one_line() {
        let frames: String = (1..=3000).map(|at| format!("\rprogress {at}% ####")).collect();
        assert_eq!(TerminalText::render(&(frames + "\nend\n")), "progress 3000% ####\nend\n");
    }

    #[test]
    fn lines_that_the_cursor_cannot_reach_are_passed_on_and_stay() {
        let (mut screen, mut text) = (TerminalText::default(), String::new());
        for line in 0..MAX_ROWS * 3 {
            screen.push(&format!("{line}\n"), |row| text.push_str(row));
            assert!(screen.rows.len() <= MAX_ROWS);
        }
        screen.push(&format!("\u{1b}[{}A\rnew", MAX_ROWS * 9), |row| text.push_str(row));
        screen.finish(|row| text.push_str(row));
        assert!(text.starts_with("0\n1\n2\n"), "{text}");
        assert!(text.contains("\nnew\n") && text.contains("\n299\n"), "{text}");
    }

    #[test]
    fn a_line_of_any_length_takes_little_room() {
        let (mut screen, mut bytes) = (TerminalText::default(), 0);
        for _ in 0..100 {
            screen.push(&"x".repeat(10_000), |row| bytes += row.len());
            assert!(screen.rows.iter().map(String::len).sum::<usize>() <= MAX_ROW_BYTES);
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
        ];
        prop::collection::vec(piece.prop_map(str::to_owned), 0..40)
    }

    proptest! {
        #[test]
        fn cuts_make_no_difference(pieces in pieces()) {
            let (mut screen, mut text) = (TerminalText::default(), String::new());
            for piece in &pieces {
                screen.push(piece, |row| text.push_str(row));
            }
            screen.finish(|row| text.push_str(row));
            prop_assert_eq!(text, TerminalText::render(&pieces.concat()));
        }

        /// Text without controls comes through as it is.
        #[test]
        fn plain_text_stays(text in "[a-z é日\t\n]{0,200}") {
            prop_assert_eq!(TerminalText::render(&text), text);
        }
    }
}
