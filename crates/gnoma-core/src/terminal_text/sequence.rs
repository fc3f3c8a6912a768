//! Finds the end of a terminal escape sequence.

/// Longest control sequence that is waited for, in bytes.
const MAX_SEQUENCE_BYTES: usize = 256;
/// Longest title, link or the like that is waited for, in bytes.
const MAX_STRING_BYTES: usize = 4 << 10;

/// The control sequence after an escape character.
pub(super) enum Sequence {
    /// No control sequence follows.
    None,
    /// A sequence of this length in bytes.
    Whole(usize),
    /// The end of the sequence has not arrived.
    Unfinished,
}

/// The sequence that `rest` starts with.
#[expect(clippy::match_same_arms, reason = "each case stands beside its reason")]
pub(super) fn scan_sequence(rest: &str) -> Sequence {
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
