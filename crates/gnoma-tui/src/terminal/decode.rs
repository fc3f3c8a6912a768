//! Parses terminal input: bytes to keys, pastes and answers. Pure: where reads cut the bytes makes no difference,
//! answers are never taken for typed text however late they come, and what is not understood is dropped.
//!
//! Source of the sequences: ECMA-48, the XTerm control sequences and the kitty keyboard protocol.

mod keys;

use crate::{
    frame::Size,
    keymap::{Code, Key},
    theme::Shade,
};

/// A longer paste is refused: no model takes that much, and half of it would be worse than none.
pub const MAX_PASTE_BYTES: usize = 4 << 20;
/// An answer longer than this is none.
const MAX_SEQUENCE_BYTES: usize = 4_096;
/// Terminals make at least so many keys of one notch of a wheel.
const MIN_WHEEL_KEYS: usize = 3;
const PASTE_END: &[u8] = b"\x1b[201~";
const ESCAPE: u8 = 0x1b;
const BELL: u8 = 0x07;

/// An event that came from the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TerminalInput {
    /// A key that was pressed.
    Key(Key),
    /// A paste, with line breaks as `\n`.
    Paste(String),
    /// A paste of so many bytes was too large and is not taken.
    PasteRefused(u64),
    /// The wheel was turned by so many rows, up by positive numbers.
    Wheel(isize),
    /// The window gained the focus, or lost it.
    Focus(bool),
    /// The shade of the background.
    Shade(Shade),
    /// Synchronized output is understood.
    Synchronized,
    /// The size of the terminal.
    Size(Size),
    /// All questions have been answered that will be.
    Answered,
    /// The end, after which nothing more comes.
    End,
}

/// Makes sense of bytes, a few at a time.
#[derive(Debug, Default)]
pub struct Decoder {
    /// The bytes that could not be understood yet.
    rest: Vec<u8>,
    paste: Option<Paste>,
    /// Line feeds are Enter: the terminal reads whole lines.
    by_line: bool,
    /// The terminal makes arrow keys of its wheel.
    has_wheel: bool,
}

#[derive(Debug, Default)]
struct Paste {
    bytes: Vec<u8>,
    /// All that came, also where it is not kept.
    length: u64,
}

/// The meaning of the start of some bytes.
enum ParsedInput {
    /// So many bytes that mean this, or nothing.
    Whole(usize, Option<TerminalInput>),
    /// So many bytes that begin a paste.
    PasteBegins(usize),
    /// The start of something.
    Part,
}

impl Decoder {
    /// A decoder for a terminal that reads whole lines and echoes them itself.
    #[must_use]
    pub fn by_line() -> Self {
        Self { by_line: true, ..Self::default() }
    }

    /// A decoder for a terminal that makes arrow keys of its wheel. Nobody presses a key several times
    /// between two reads, so several at once are the wheel.
    #[must_use]
    pub fn with_wheel(self) -> Self {
        Self { has_wheel: true, ..self }
    }

    /// Reports whether the terminal reads whole lines.
    pub(super) fn is_by_line(&self) -> bool {
        self.by_line
    }

    /// Takes bytes in and gives what they complete.
    pub fn feed(&mut self, bytes: &[u8], heard: &mut Vec<TerminalInput>) {
        let start = heard.len();
        self.decode(bytes, heard);
        if self.has_wheel
            && let Some(rows_up) = wheel_rows(heard.get(start..).unwrap_or_default())
        {
            heard.truncate(start);
            heard.push(TerminalInput::Wheel(rows_up));
        }
    }

    fn decode(&mut self, bytes: &[u8], heard: &mut Vec<TerminalInput>) {
        let mut rest = std::mem::take(&mut self.rest);
        rest.extend_from_slice(bytes);
        let mut todo = &rest[..];
        while !todo.is_empty() {
            let taken = match &mut self.paste {
                Some(paste) => {
                    let (taken, over) = paste.consume_bytes(todo);
                    if over {
                        heard.extend(self.paste.take().map(Paste::into_heard));
                    }
                    taken
                }
                None => self.decode_next(todo, heard),
            };
            if taken == 0 {
                break;
            }
            todo = todo.get(taken..).unwrap_or_default();
        }
        let understood = rest.len() - todo.len();
        rest.drain(..understood);
        self.rest = rest;
    }

    /// Reports whether the rest may be a key by itself: it is one if nothing follows within moments.
    #[must_use]
    pub fn is_in_doubt(&self) -> bool {
        self.paste.is_none() && self.rest.first() == Some(&ESCAPE) && self.rest.len() <= 2
    }

    /// Takes the rest as a key, because nothing has followed.
    pub fn flush_escape(&mut self, heard: &mut Vec<TerminalInput>) {
        if !self.is_in_doubt() {
            return;
        }
        let escape = Key::plain(Code::Escape);
        match std::mem::take(&mut self.rest).get(1) {
            None => heard.push(TerminalInput::Key(escape)),
            Some(&ESCAPE) => heard.extend([TerminalInput::Key(escape), TerminalInput::Key(escape)]),
            Some(&byte) => {
                let key = Key::plain(Code::Char(char::from(byte)));
                heard.push(with_alt(TerminalInput::Key(key)));
            }
        }
    }

    /// Takes the first thing in the bytes; gives how many it has, zero when it is not complete.
    fn decode_next(&mut self, bytes: &[u8], heard: &mut Vec<TerminalInput>) -> usize {
        match parse_first(bytes) {
            ParsedInput::Whole(taken, what) => {
                heard.extend(what.map(|what| self.by_lines(what)));
                taken
            }
            ParsedInput::PasteBegins(taken) => {
                self.paste = Some(Paste::default());
                taken
            }
            ParsedInput::Part if bytes.len() > MAX_SEQUENCE_BYTES => bytes.len(),
            ParsedInput::Part => 0,
        }
    }

    fn by_lines(&self, heard: TerminalInput) -> TerminalInput {
        if self.by_line && heard == TerminalInput::Key(Key::with_control('j')) {
            return TerminalInput::Key(Key::plain(Code::Enter));
        }
        heard
    }
}

impl Paste {
    /// Takes bytes into the paste. Returns how many were taken, and whether the paste ends with them.
    fn consume_bytes(&mut self, bytes: &[u8]) -> (usize, bool) {
        let mut from = 0;
        while let Some(place) = bytes.iter().skip(from).position(|byte| *byte == ESCAPE) {
            let (text, rest) = bytes.split_at(from + place);
            if rest.starts_with(PASTE_END) {
                self.add(text);
                return (text.len() + PASTE_END.len(), true);
            }
            if PASTE_END.starts_with(rest) {
                self.add(text);
                return (text.len(), false);
            }
            from = text.len() + 1;
        }
        self.add(bytes);
        (bytes.len(), false)
    }

    fn add(&mut self, bytes: &[u8]) {
        self.length += bytes.len() as u64;
        if self.is_too_long() {
            self.bytes = Vec::new();
        } else {
            self.bytes.extend_from_slice(bytes);
        }
    }

    fn is_too_long(&self) -> bool {
        self.length > MAX_PASTE_BYTES as u64
    }

    fn into_heard(self) -> TerminalInput {
        if self.is_too_long() {
            return TerminalInput::PasteRefused(self.length);
        }
        let text = String::from_utf8_lossy(&self.bytes);
        TerminalInput::Paste(text.replace("\r\n", "\n").replace('\r', "\n"))
    }
}

/// By how many rows the wheel was turned, where that is what these keys are.
fn wheel_rows(heard: &[TerminalInput]) -> Option<isize> {
    let is_all = |code| {
        let arrow = TerminalInput::Key(Key::plain(code));
        heard.len() >= MIN_WHEEL_KEYS && heard.iter().all(|heard| *heard == arrow)
    };
    let rows = isize::try_from(heard.len()).ok()?;
    match (is_all(Code::Up), is_all(Code::Down)) {
        (true, _) => Some(rows),
        (_, true) => Some(-rows),
        (false, false) => None,
    }
}

/// Parses what the bytes begin with.
fn parse_first(bytes: &[u8]) -> ParsedInput {
    match bytes {
        [ESCAPE] | [ESCAPE, ESCAPE] => ParsedInput::Part,
        // Some terminals put an escape before a sequence for Alt.
        [ESCAPE, ESCAPE, b'[' | b'O', ..] => {
            match parse_first(bytes.get(1..).unwrap_or_default()) {
                ParsedInput::Whole(taken, what @ Some(TerminalInput::Key(_))) => {
                    ParsedInput::Whole(taken + 1, what.map(with_alt))
                }
                ParsedInput::Part => ParsedInput::Part,
                // An answer of the terminal came right behind the key.
                _ => parsed_key(1, Key::plain(Code::Escape)),
            }
        }
        [ESCAPE, ESCAPE, ..] => parsed_key(1, Key::plain(Code::Escape)),
        [ESCAPE, b'[' | b'O' | b']' | b'P'] => ParsedInput::Part,
        [ESCAPE, b'[', rest @ ..] => control_sequence(rest),
        [ESCAPE, b'O', letter, ..] => match keys::by_letter(*letter, keys::NO_MODIFIERS) {
            Some(key) => parsed_key(3, key),
            None => ParsedInput::Whole(
                2,
                Some(with_alt(TerminalInput::Key(Key::plain(Code::Char('O'))))),
            ),
        },
        [ESCAPE, b']', b'0'..=b'9', ..] | [ESCAPE, b'P', b'0'..=b'9' | b'>' | b'!' | b'+', ..] => {
            text_sequence(bytes)
        }
        [ESCAPE, rest @ ..] => match parse_character(rest) {
            ParsedInput::Whole(taken, what) => ParsedInput::Whole(taken + 1, what.map(with_alt)),
            other => other,
        },
        _ => parse_character(bytes),
    }
}

fn parsed_key(taken: usize, key: Key) -> ParsedInput {
    ParsedInput::Whole(taken, Some(TerminalInput::Key(key)))
}

fn with_alt(heard: TerminalInput) -> TerminalInput {
    match heard {
        TerminalInput::Key(pressed) => {
            TerminalInput::Key(Key { alt: true, ..pressed }.to_normal_form())
        }
        other => other,
    }
}

/// One character, typed or made with Control.
fn parse_character(bytes: &[u8]) -> ParsedInput {
    let Some(&byte) = bytes.first() else { return ParsedInput::Part };
    if let Some(control) = keys::by_control(byte) {
        return parsed_key(1, control);
    }
    let length = match byte {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => 1,
    };
    let text = bytes.get(..length).unwrap_or(bytes);
    match std::str::from_utf8(text) {
        Ok(text) => ParsedInput::Whole(
            length,
            text.chars().next().map(|c| TerminalInput::Key(Key::plain(Code::Char(c)))),
        ),
        Err(error) if error.error_len().is_none() && text.len() < length => ParsedInput::Part,
        Err(_) => ParsedInput::Whole(1, None),
    }
}

/// Parses the bytes that follow `ESC [`.
fn control_sequence(rest: &[u8]) -> ParsedInput {
    const START: usize = 2;
    // The Linux console's function keys.
    if let [b'[', rest @ ..] = rest {
        return match rest.first() {
            Some(letter) => {
                ParsedInput::Whole(START + 2, keys::by_console(*letter).map(TerminalInput::Key))
            }
            None => ParsedInput::Part,
        };
    }
    let Some(end) = rest.iter().position(|byte| !(0x20..=0x3f).contains(byte)) else {
        return ParsedInput::Part;
    };
    let (parameters, after) = rest.split_at(end);
    let last = after.first().copied().unwrap_or_default();
    if !(0x40..=0x7e).contains(&last) {
        // It is broken off: the byte that does so is for the next.
        return ParsedInput::Whole(START + end, None);
    }
    let taken = START + end + 1;
    let parameters = std::str::from_utf8(parameters).unwrap_or_default();
    match (parameters, last) {
        ("200", b'~') => ParsedInput::PasteBegins(taken),
        ("", b'I') => ParsedInput::Whole(taken, Some(TerminalInput::Focus(true))),
        ("", b'O') => ParsedInput::Whole(taken, Some(TerminalInput::Focus(false))),
        _ if parameters.starts_with(['?', '>', '<', '=']) => {
            ParsedInput::Whole(taken, parse_report(parameters, last))
        }
        (_, b't') => ParsedInput::Whole(taken, parse_size(parameters)),
        _ => ParsedInput::Whole(taken, keys::by_sequence(parameters, last).map(TerminalInput::Key)),
    }
}

/// The size in `8;rows;columns`.
fn parse_size(parameters: &str) -> Option<TerminalInput> {
    let (rows, columns) = parameters.strip_prefix("8;")?.split_once(';')?;
    let number =
        |text: &str| text.parse::<u16>().ok().filter(|number| *number > 0).map(usize::from);
    Some(TerminalInput::Size(Size::new(number(columns)?, number(rows)?)))
}

/// An answer to a question, or a report that was asked for.
fn parse_report(parameters: &str, last: u8) -> Option<TerminalInput> {
    match (parameters, last) {
        (_, b'c') if parameters.starts_with('?') => Some(TerminalInput::Answered),
        ("?2026;1$" | "?2026;2$" | "?2026;3$", b'y') => Some(TerminalInput::Synchronized),
        ("?997;1", b'n') => Some(TerminalInput::Shade(Shade::Dark)),
        ("?997;2", b'n') => Some(TerminalInput::Shade(Shade::Light)),
        _ => None,
    }
}

/// A sequence that holds text and ends with BEL or ST.
fn text_sequence(bytes: &[u8]) -> ParsedInput {
    let Some(end) = bytes.iter().skip(1).position(|byte| matches!(*byte, BELL | ESCAPE)) else {
        return ParsedInput::Part;
    };
    let end = end + 1;
    let content = bytes.get(2..end).and_then(|text| std::str::from_utf8(text).ok());
    let what = content.and_then(parse_background).map(TerminalInput::Shade);
    match bytes.get(end..) {
        Some([BELL, ..]) => ParsedInput::Whole(end + 1, what),
        Some([ESCAPE, b'\\', ..]) => ParsedInput::Whole(end + 2, what),
        Some([ESCAPE]) => ParsedInput::Part,
        _ => ParsedInput::Whole(end, None),
    }
}

/// The shade in an answer like `11;rgb:1e1e/1e1e/2e2e`.
fn parse_background(content: &str) -> Option<Shade> {
    let colour = content.strip_prefix("11;")?;
    let parts = colour.strip_prefix("rgb:").or_else(|| colour.strip_prefix("rgba:"))?;
    let mut parts = parts.split('/').map(|part| {
        let most = 16_u32.checked_pow(u32::try_from(part.len()).ok()?)?.checked_sub(1)?;
        let value = u32::from_str_radix(part, 16).ok()?.checked_mul(255)?.checked_div(most)?;
        u8::try_from(value).ok()
    });
    Some(Shade::from_rgb(parts.next()??, parts.next()??, parts.next()??))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn heard(bytes: &[u8]) -> Vec<TerminalInput> {
        let mut heard = Vec::new();
        let mut decoder = Decoder::default();
        decoder.feed(bytes, &mut heard);
        decoder.flush_escape(&mut heard);
        heard
    }

    fn keys(bytes: &str) -> String {
        let name = |heard: &TerminalInput| match heard {
            TerminalInput::Key(key) => key.to_string(),
            other => format!("{other:?}"),
        };
        heard(bytes.as_bytes()).iter().map(name).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn typed_keys_as_all_terminals_send_them() {
        assert_eq!(keys("aß漢"), "a ß 漢");
        assert_eq!(keys("\r\t\x7f\x1b"), "enter tab backspace esc");
        assert_eq!(keys("\x03\n\0"), "ctrl+c ctrl+j ctrl+space");
        assert_eq!(keys("\x1bb\x1b\x7f"), "alt+b alt+backspace");
        assert_eq!(keys("\x1b[A\x1bOB\x1b[1;5C"), "up down ctrl+right");
        assert_eq!(keys("\x1b[3~\x1b[5;2~\x1b[Z"), "delete shift+pageup shift+tab");
        assert_eq!(keys("\x1bOP\x1b[15~\x1b[[A"), "f1 f5 f1");
        assert_eq!(keys("\x1b\x1b[D"), "alt+left");
        assert_eq!(keys("\x1b\x1b"), "esc esc");
    }

    #[test]
    fn a_size_is_rows_and_columns() {
        let heard = |bytes: &[u8]| {
            let mut heard = Vec::new();
            Decoder::default().feed(bytes, &mut heard);
            heard
        };
        assert_eq!(heard(b"\x1b[8;24;80t"), [TerminalInput::Size(Size::new(80, 24))]);
        let escape = TerminalInput::Key(Key::plain(Code::Escape));
        assert_eq!(heard(b"\x1b\x1b[8;24;80t"), [escape, TerminalInput::Size(Size::new(80, 24))]);
        for other in ["\x1b[8;0;80t", "\x1b[8;24t", "\x1b[3;24;80t", "\x1b[8;24;99999999t"] {
            assert_eq!(heard(other.as_bytes()), [], "{other:?}");
        }
    }

    #[test]
    fn keys_of_the_kitty_protocol_and_of_xterm() {
        assert_eq!(keys("\x1b[13;2u"), "shift+enter");
        assert_eq!(keys("\x1b[27u\x1b[97;5u"), "esc ctrl+a");
        assert_eq!(keys("\x1b[97;5:3u\x1b[97;1:2u"), "a");
        assert_eq!(keys("\x1b[57414u\x1b[57400u"), "enter 1");
        assert_eq!(keys("\x1b[57358u"), "");
        assert_eq!(keys("\x1b[27;2;13~"), "shift+enter");
        assert_eq!(keys("\x1b[1089::99;5u\x1b[97:65;6u"), "ctrl+c ctrl+shift+a");
    }

    #[test]
    fn old_and_new_encodings_of_a_key_are_one_key() {
        for (old, new, name) in [
            ("A", "\x1b[97;2u", "shift+a"),
            ("\x1b[Z", "\x1b[9;2u", "shift+tab"),
            ("\x1f", "\x1b[55;5u", "ctrl+_"),
            ("\x1bB", "\x1b[98;4u", "alt+shift+b"),
            ("!", "\x1b[33;2u", "!"),
            ("\n", "\x1b[106;5u", "ctrl+j"),
            ("\x1bx", "\x1b[120;33u", "alt+x"),
            (" ", "\x1b[32u", "space"),
        ] {
            assert_eq!((keys(old), keys(new)), (name.to_owned(), name.to_owned()));
        }
        assert_eq!(keys("\x1b[57388u\x1b[57387u"), "f24");
    }

    #[test]
    fn terminal_query_replies_are_not_typed_text() {
        let answers = "\x1b]11;rgb:1e1e/1e1e/2e2e\x1b\\\x1b[?2026;2$y\x1b[?62;22c";
        assert_eq!(
            heard(answers.as_bytes()),
            [
                TerminalInput::Shade(Shade::Dark),
                TerminalInput::Synchronized,
                TerminalInput::Answered
            ]
        );
        assert_eq!(heard(b"\x1b]11;rgb:ff/ff/ee\x07"), [TerminalInput::Shade(Shade::Light)]);
        assert_eq!(heard(b"\x1b[?2026;0$y\x1b[?1u\x1bP>|Term 1.0\x1b\\"), []);
        assert_eq!(heard(b"\x1b[?997;2n"), [TerminalInput::Shade(Shade::Light)]);
        assert_eq!(keys("\x1b[I\x1b[O"), "Focus(true) Focus(false)");
    }

    #[test]
    fn bracketed_paste_includes_escape_sequences() {
        assert_eq!(
            heard(b"\x1b[200~a\r\nb\x1b[A\rc\x1b[201~d"),
            [
                TerminalInput::Paste("a\nb\u{1b}[A\nc".to_owned()),
                TerminalInput::Key(Key::plain(Code::Char('d')))
            ]
        );
    }

    #[test]
    fn three_arrow_keys_at_once_are_mouse_wheel_scrolling() {
        let heard = |bytes: &[u8]| {
            let mut heard = Vec::new();
            Decoder::default().with_wheel().feed(bytes, &mut heard);
            heard
        };
        assert_eq!(heard(b"\x1b[A\x1b[A\x1b[A"), [TerminalInput::Wheel(3)]);
        assert_eq!(heard(b"\x1bOB\x1bOB\x1bOB\x1bOB"), [TerminalInput::Wheel(-4)]);
        assert_eq!(heard(b"\x1b[A\x1b[A").len(), 2);
        assert_eq!(heard(b"\x1b[A\x1b[A\x1b[B").len(), 3);
        assert_eq!(keys("\x1b[A\x1b[A\x1b[A"), "up up up");
    }

    #[test]
    fn a_paste_that_is_too_long_is_refused_and_not_kept() {
        let mut paste = Paste::default();
        paste.consume_bytes(&vec![b'a'; MAX_PASTE_BYTES]);
        assert_eq!(paste.consume_bytes(b"bc\x1b[201~"), (8, true));
        assert_eq!(paste.bytes.capacity(), 0);
        assert_eq!(paste.into_heard(), TerminalInput::PasteRefused(MAX_PASTE_BYTES as u64 + 2));
    }

    #[test]
    fn lines_of_a_terminal_that_edits_them_itself() {
        let mut decoder = Decoder::by_line();
        let mut heard = Vec::new();
        decoder.feed(b"y\n", &mut heard);
        assert_eq!(heard.last(), Some(&TerminalInput::Key(Key::plain(Code::Enter))));
    }

    /// Bytes as they come, with many of the beginnings that matter.
    fn stream() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            prop::sample::select(vec![
                &b"\x1b[200~"[..],
                b"\x1b[201~",
                b"\x1b[",
                b"\x1b]11;rgb:",
                b"\x1b\\",
                b"\x1b",
                b"\x1bO",
                b"\x1bP1",
                b"\x1b[?",
                b"1;5",
                b"u",
                b"~",
                b"A",
                b"\x07",
                "漢".as_bytes(),
                b"\x1b[[",
            ])
            .prop_map(<[u8]>::to_vec),
            prop::collection::vec(any::<u8>(), 0..3),
        ];
        prop::collection::vec(piece, 0..20).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn key_decoding_is_independent_of_read_boundaries(bytes in stream(), cuts in prop::collection::vec(1_usize..5, 0..60)) {
            let mut at_once = Vec::new();
            Decoder::default().feed(&bytes, &mut at_once);
            let mut decoder = Decoder::default();
            let mut in_parts = Vec::new();
            let mut rest = &bytes[..];
            for cut in cuts {
                let (part, after) = rest.split_at(cut.min(rest.len()));
                decoder.feed(part, &mut in_parts);
                rest = after;
            }
            decoder.feed(rest, &mut in_parts);
            prop_assert_eq!(in_parts, at_once);
        }
    }
}
