//! Checks bidirectional (bidi) controls: whether the text around them needs them.
//!
//! Honest uses close what they open, on one line, around or beside text of the other direction.
//! Attacks on source code leave a span open, or turn text around that has no such letters.

use super::scripts::is_right_to_left;

/// Longest span that is looked at, in bytes.
const MAX_SPAN_BYTES: usize = 8 << 10;
/// The distance behind a mark or span in which letters of the other direction are looked for, in bytes.
const MAX_AHEAD_BYTES: usize = 512;
/// The most spans within spans.
const MAX_DEPTH: usize = 16;

const LEFT_EMBEDDING: char = '\u{202A}';
const RIGHT_EMBEDDING: char = '\u{202B}';
const POP_EMBEDDING: char = '\u{202C}';
const LEFT_OVERRIDE: char = '\u{202D}';
const RIGHT_OVERRIDE: char = '\u{202E}';
const LEFT_ISOLATE: char = '\u{2066}';
const RIGHT_ISOLATE: char = '\u{2067}';
const FIRST_ISOLATE: char = '\u{2068}';
const POP_ISOLATE: char = '\u{2069}';

/// The decision about the controls of a stretch of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BidiVerdict {
    /// The length of the stretch.
    pub bytes: usize,
    /// True if the controls of the stretch stay.
    pub stays: bool,
}

/// A span that is open.
struct OpenSpan {
    by: char,
    has_right_to_left: bool,
}

/// Judges the span that `opening` opens before `behind`; `None` when its end is not here yet.
///
/// `line_turns`: letters written from right to left stand before it on the line.
pub(super) fn judge_span(
    opening: char,
    behind: &str,
    line_turns: bool,
    end: bool,
) -> Option<BidiVerdict> {
    let mut open = vec![OpenSpan { by: opening, has_right_to_left: false }];
    let mut needs_turning_line = opening != FIRST_ISOLATE;
    for (at, c) in behind.char_indices() {
        let at = opening.len_utf8() + at;
        let unclosed = BidiVerdict { bytes: at, stays: false };
        if at >= MAX_SPAN_BYTES || ends_line(c) {
            return Some(unclosed);
        }
        match c {
            LEFT_OVERRIDE | RIGHT_OVERRIDE => return Some(unclosed),
            LEFT_EMBEDDING | RIGHT_EMBEDDING | LEFT_ISOLATE | RIGHT_ISOLATE | FIRST_ISOLATE => {
                if open.len() == MAX_DEPTH {
                    return Some(unclosed);
                }
                needs_turning_line |= c != FIRST_ISOLATE;
                open.push(OpenSpan { by: c, has_right_to_left: false });
            }
            POP_EMBEDDING | POP_ISOLATE => {
                let Some(closed) = open.pop().filter(|open| is_justified(open, c)) else {
                    return Some(unclosed);
                };
                if let Some(outer) = open.last_mut() {
                    outer.has_right_to_left |= closed.has_right_to_left;
                    continue;
                }
                let bytes = at + c.len_utf8();
                let turns = line_turns || closed.has_right_to_left || !needs_turning_line;
                let stays = turns || turns_after(behind, bytes - opening.len_utf8(), end)?;
                return Some(BidiVerdict { bytes, stays });
            }
            _ => {
                if let Some(innermost) = open.last_mut() {
                    innermost.has_right_to_left |= is_right_to_left(c);
                }
            }
        }
    }
    end.then_some(BidiVerdict { bytes: opening.len_utf8() + behind.len(), stays: false })
}

/// Reports whether letters written from right to left follow on the line, from the byte `from` on.
fn turns_after(behind: &str, from: usize, end: bool) -> Option<bool> {
    Some(scan_ahead(behind.get(from..).unwrap_or_default(), 0, end)? == LineRemainder::Turns)
}

/// Reports whether `close` closes `open`, and the span held what it was opened for.
fn is_justified(open: &OpenSpan, close: char) -> bool {
    match open.by {
        LEFT_EMBEDDING => close == POP_EMBEDDING,
        RIGHT_EMBEDDING => close == POP_EMBEDDING && open.has_right_to_left,
        RIGHT_ISOLATE => close == POP_ISOLATE && open.has_right_to_left,
        _ => close == POP_ISOLATE,
    }
}

/// The kind of text that follows on the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineRemainder {
    /// Letters written from right to left.
    Turns,
    /// None of them in so many bytes, which is as far as one looks.
    Calm { bytes: usize },
}

/// Looks for letters written from right to left; the first `known` bytes have none. `None` when too
/// little is here to tell.
pub(super) fn scan_ahead(rest: &str, known: usize, end: bool) -> Option<LineRemainder> {
    let known = known.min(rest.len());
    for (at, c) in rest.get(known..)?.char_indices() {
        let bytes = known + at;
        if bytes >= MAX_AHEAD_BYTES || ends_line(c) {
            return Some(LineRemainder::Calm { bytes });
        }
        if is_right_to_left(c) {
            return Some(LineRemainder::Turns);
        }
    }
    end.then_some(LineRemainder::Calm { bytes: rest.len() })
}

/// Reports whether looking ahead stops at this character: at line ends, and at what a terminal would swallow.
fn ends_line(c: char) -> bool {
    c == '\n' || c == '\u{1B}' || ('\u{80}'..='\u{9F}').contains(&c)
}
