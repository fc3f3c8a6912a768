//! Terminal control sequences: where one ends, and whether it only colours text.
//!
//! Follows what terminals do (ECMA-48, and xterm for what it leaves open), with bounded patience:
//! a string that does not end on its line loses its opening only, so that no text is swallowed.

/// Longest control sequence (`CSI … m` and its kin) that is taken for one, in bytes.
const MAX_CONTROL_BYTES: usize = 256;
/// Longest string (title, clipboard, image) that is taken out whole, in bytes.
const MAX_STRING_BYTES: usize = 8 << 10;
/// Intermediate bytes of a short escape sequence.
const MAX_INTERMEDIATES: usize = 4;

/// The kind of sequence that follows an escape character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sequence {
    /// A sequence whose end is not here yet.
    Unfinished,
    /// Text attributes: the sequence's length, and where its parameters start in it.
    Attributes { bytes: usize, parameters: usize },
    /// Anything else, of this length.
    Other { bytes: usize },
}

/// Reads the sequence that `rest` starts with; `end` when nothing follows `rest`.
pub(super) fn read_sequence(rest: &str, end: bool) -> Sequence {
    let bytes = rest.as_bytes();
    match bytes {
        [0x1B, b'[', ..] | [0xC2, 0x9B, ..] => read_control_sequence(bytes, end),
        [0x1B, b']', ..] | [0xC2, 0x9D, ..] => read_string_sequence(bytes, true, end),
        [0x1B, b'P' | b'X' | b'^' | b'_', ..] | [0xC2, 0x90 | 0x98 | 0x9E | 0x9F, ..] => {
            read_string_sequence(bytes, false, end)
        }
        [0x1B, 0x20..=0x2F, ..] => read_short_sequence(bytes, end),
        [0x1B, 0x30..=0x7E, ..] => Sequence::Other { bytes: 2 },
        [0x1B] if !end => Sequence::Unfinished,
        _ => Sequence::Other { bytes: 1 },
    }
}

/// `CSI`, parameters, intermediates, one final byte. Parameters without an end go with it.
fn read_control_sequence(bytes: &[u8], end: bool) -> Sequence {
    const START: usize = 2;
    let body = bytes.get(START..).unwrap_or_default();
    let stop = body.iter().take(MAX_CONTROL_BYTES).position(|b| !(0x20..=0x3F).contains(b));
    match stop.and_then(|at| Some((at, *body.get(at)?))) {
        Some((at, b'm'))
            if body.iter().take(at).all(|b| matches!(b, b'0'..=b'9' | b';' | b':')) =>
        {
            Sequence::Attributes { bytes: START + at + 1, parameters: START }
        }
        Some((at, 0x40..=0x7E)) => Sequence::Other { bytes: START + at + 1 },
        Some((at, _)) => Sequence::Other { bytes: START + at },
        None if body.len() >= MAX_CONTROL_BYTES => Sequence::Other { bytes: START },
        None if end => Sequence::Other { bytes: bytes.len() },
        None => Sequence::Unfinished,
    }
}

/// A string up to its terminator (`ST`, for operating system commands also `BEL`).
fn read_string_sequence(bytes: &[u8], bell_ends: bool, end: bool) -> Sequence {
    const START: usize = 2;
    let opening = Sequence::Other { bytes: START };
    let mut at = START;
    while at < MAX_STRING_BYTES {
        match bytes.get(at..).unwrap_or_default() {
            [] | [0x1B | 0xC2] if !end => return Sequence::Unfinished,
            [0x07, ..] if bell_ends => return Sequence::Other { bytes: at + 1 },
            [0x1B, b'\\', ..] | [0xC2, 0x9C, ..] => return Sequence::Other { bytes: at + 2 },
            [] | [b'\n' | 0x18 | 0x1A | 0x1B, ..] | [0xC2, 0x80..=0x9F, ..] => return opening,
            [_, ..] => at += 1,
        }
    }
    opening
}

/// `ESC`, intermediates, one final byte: character sets, screen alignment.
fn read_short_sequence(bytes: &[u8], end: bool) -> Sequence {
    let body = bytes.get(1..).unwrap_or_default();
    let stop = body.iter().take(MAX_INTERMEDIATES).position(|b| !(0x20..=0x2F).contains(b));
    match stop.and_then(|at| Some((at, *body.get(at)?))) {
        Some((at, 0x30..=0x7E)) => Sequence::Other { bytes: at + 2 },
        None if body.len() < MAX_INTERMEDIATES && !end => Sequence::Unfinished,
        Some(_) | None => Sequence::Other { bytes: 1 },
    }
}

/// The colours that text has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TextColours {
    ink: Option<Colour>,
    paper: Option<Colour>,
    is_concealed: bool,
}

/// A colour by its number in the palette, or by its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Colour {
    Palette(u32),
    Parts(u32, u32, u32),
}

impl TextColours {
    /// The pen after the parameters of a text attribute sequence.
    pub(super) fn with_attributes(mut self, parameters: &str) -> Self {
        let mut numbers = parameters.split([';', ':']).map(|n| n.parse().unwrap_or(0));
        while let Some(number) = numbers.next() {
            match number {
                0 => self = Self::default(),
                8 => self.is_concealed = true,
                28 => self.is_concealed = false,
                30..=37 => self.ink = Some(Colour::Palette(number - 30)),
                38 => self.ink = extended_colour(&mut numbers),
                39 => self.ink = None,
                40..=47 => self.paper = Some(Colour::Palette(number - 40)),
                48 => self.paper = extended_colour(&mut numbers),
                49 => self.paper = None,
                90..=97 => self.ink = Some(Colour::Palette(number - 82)),
                100..=107 => self.paper = Some(Colour::Palette(number - 92)),
                _ => {}
            }
        }
        self
    }

    /// Reports whether text written with this pen cannot be read.
    pub(super) fn hides_text(self) -> bool {
        self.is_concealed || (self.ink.is_some() && self.ink == self.paper)
    }
}

/// The colour behind `38` or `48`.
fn extended_colour(numbers: &mut impl Iterator<Item = u32>) -> Option<Colour> {
    match numbers.next()? {
        5 => numbers.next().map(Colour::Palette),
        2 => Some(Colour::Parts(numbers.next()?, numbers.next()?, numbers.next()?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn other(bytes: usize) -> Sequence {
        Sequence::Other { bytes }
    }

    #[test]
    fn escape_sequence_ends_where_a_terminal_ends_it() {
        assert_eq!(read_sequence("\x1b[2Jx", true), other(4));
        assert_eq!(read_sequence("\x1b[?25l", true), other(6));
        assert_eq!(read_sequence("\x1b]0;title\x07x", true), other(10));
        assert_eq!(read_sequence("\x1b]8;;http://x\x1b\\y", true), other(15));
        assert_eq!(read_sequence("\u{90}q\u{9c}y", true), other(5));
        assert_eq!(read_sequence("\x1b(0", true), other(3));
        assert_eq!(read_sequence("\x1bMx", true), other(2));
        assert_eq!(read_sequence("\x1b\x1b", true), other(1));
        let attributes = Sequence::Attributes { bytes: 7, parameters: 2 };
        assert_eq!(read_sequence("\x1b[1;31mx", true), attributes);
        assert_eq!(read_sequence("\x1b[>4;2mx", true), other(7));
    }

    #[test]
    fn unterminated_escape_string_does_not_swallow_the_following_text() {
        assert_eq!(read_sequence("\x1b]0;title\nnext\x07", true), other(2));
        assert_eq!(read_sequence("\x1bPabc", true), other(2));
        let long = format!("\x1b]0;{}\x07", "x".repeat(MAX_STRING_BYTES));
        assert_eq!(read_sequence(&long, true), other(2));
        assert_eq!(read_sequence("\x1b]0;ti", false), Sequence::Unfinished);
    }

    #[test]
    fn text_in_the_background_colour_or_concealed_is_detected_as_hidden() {
        assert!(TextColours::default().with_attributes("37;47").hides_text());
        assert!(TextColours::default().with_attributes("38;5;0;40").hides_text());
        assert!(
            TextColours::default()
                .with_attributes("38;2;1;2;3")
                .with_attributes("48:2:1:2:3")
                .hides_text()
        );
        assert!(TextColours::default().with_attributes("8").hides_text());
        assert!(!TextColours::default().with_attributes("37;47").with_attributes("").hides_text());
        assert!(!TextColours::default().with_attributes("1;31;40").hides_text());
    }
}
