//! What every match of a pattern holds, so that text without it need not be searched.
//!
//! Only one thing is looked at: an unbroken run of characters of one alphabet. Source code is full of
//! names of services and seldom holds such a run near one.

use regex_syntax::hir::{Class, Hir, HirKind};

/// Longer runs are not asked for.
const MAX_RUN: usize = 64;

/// The alphabets that runs are made of, small ones first; the last holds all others.
const ALPHABETS: [&str; 8] = [
    "0-9",
    "0-9a-f",
    "0-9A-Fa-f",
    "0-9a-z",
    "0-9A-Z",
    "0-9A-Za-z",
    "0-9A-Z_a-z-",
    "0-9A-Z_a-z-+/=",
];

/// For each byte, the alphabets that hold it, as bits.
static MEMBERSHIP: [u8; 256] = membership_table();

const fn membership_table() -> [u8; 256] {
    let mut bits = [0; 256];
    let mut byte = 0;
    while byte < 0x80 {
        let sign = byte as u8;
        bits[byte] = match sign {
            b'0'..=b'9' => 0b1111_1111,
            b'a'..=b'f' => 0b1110_1110,
            b'g'..=b'z' => 0b1110_1000,
            b'A'..=b'F' => 0b1111_0100,
            b'G'..=b'Z' => 0b1111_0000,
            b'_' | b'-' => 0b1100_0000,
            b'+' | b'/' | b'=' => 0b1000_0000,
            _ => 0,
        };
        byte += 1;
    }
    bits
}

/// So many characters of one alphabet in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// Number of characters; 0 where none are certain.
    pub(crate) length: usize,
    /// Bits of the alphabets that hold all characters, as in [`MEMBERSHIP`].
    pub(crate) alphabets: u8,
}

impl Run {
    const NONE: Self = Self { length: 0, alphabets: u8::MAX };

    /// The run that every match of the pattern holds.
    pub(crate) fn from_pattern(pattern: &Hir) -> Self {
        let run = certain_run(pattern);
        Self { length: run.length.min(MAX_RUN), ..run }
    }

    /// True if `text` holds the run. The function looks at few bytes of a text that does not.
    pub(crate) fn is_in(&self, text: &[u8]) -> bool {
        let mut low = 0;
        while let Some(part) = text.get(low..low + self.length) {
            // Backwards: what is left of the last other byte cannot be a part of the run.
            match part.iter().rposition(|&byte| self.excludes_byte(byte)) {
                Some(at) => low += at + 1,
                None => return true,
            }
        }
        false
    }

    fn excludes_byte(self, byte: u8) -> bool {
        MEMBERSHIP[usize::from(byte)] & self.smallest_alphabet() == 0
    }

    /// Only the smallest alphabet.
    fn smallest_alphabet(self) -> u8 {
        self.alphabets & self.alphabets.wrapping_neg()
    }

    /// Returns the weight of the run as evidence: long runs and small alphabets weigh more.
    fn weight(self) -> usize {
        self.length * (ALPHABETS.len() + 2 - self.alphabets.trailing_zeros() as usize)
    }

    fn max_by_weight(self, other: Self) -> Self {
        if other.weight() > self.weight() { other } else { self }
    }

    /// The run of both, one after the other.
    fn followed_by(self, next: Self) -> Self {
        Self { length: self.length + next.length, alphabets: self.alphabets & next.alphabets }
    }
}

fn certain_run(hir: &Hir) -> Run {
    if let Some(run) = whole_run(hir) {
        return run;
    }
    match hir.kind() {
        HirKind::Capture(capture) => certain_run(&capture.sub),
        HirKind::Repetition(repetition) if repetition.min > 0 => certain_run(&repetition.sub),
        HirKind::Concat(parts) => certain_of_row(parts),
        HirKind::Alternation(parts) => {
            let runs = parts.iter().map(certain_run);
            let common = runs.reduce(|one, other| Run {
                length: one.length.min(other.length),
                alphabets: one.alphabets & other.alphabets,
            });
            common.filter(|run| run.alphabets != 0).unwrap_or(Run::NONE)
        }
        HirKind::Repetition(_)
        | HirKind::Empty
        | HirKind::Literal(_)
        | HirKind::Class(_)
        | HirKind::Look(_) => Run::NONE,
    }
}

fn certain_of_row(parts: &[Hir]) -> Run {
    let (mut best, mut row) = (Run::NONE, Run::NONE);
    for part in parts {
        row = match whole_run(part) {
            Some(run) => {
                best = best.max_by_weight(run);
                row.followed_by(run)
            }
            None => {
                best = best.max_by_weight(certain_run(part));
                Run::NONE
            }
        };
        best = best.max_by_weight(row);
    }
    best
}

/// The run that all text of the expression is, if it holds nothing but characters of one alphabet.
fn whole_run(hir: &Hir) -> Option<Run> {
    let alphabets = expression_alphabets(hir);
    (alphabets != 0).then(|| Run { length: hir.properties().minimum_len().unwrap_or(0), alphabets })
}

/// Bits of the alphabets that hold all text of the expression.
fn expression_alphabets(hir: &Hir) -> u8 {
    let all =
        |parts: &[Hir]| parts.iter().fold(u8::MAX, |bits, part| bits & expression_alphabets(part));
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => u8::MAX,
        HirKind::Literal(literal) => byte_alphabets(literal.0.iter().copied()),
        HirKind::Class(Class::Bytes(class)) => {
            byte_alphabets(class.ranges().iter().flat_map(|range| range.start()..=range.end()))
        }
        HirKind::Class(Class::Unicode(class)) => {
            let letters = class.ranges().iter().flat_map(|range| range.start()..=range.end());
            byte_alphabets(letters.map(|letter| u8::try_from(letter).unwrap_or(u8::MAX)))
        }
        HirKind::Repetition(repetition) => expression_alphabets(&repetition.sub),
        HirKind::Capture(capture) => expression_alphabets(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => all(parts),
    }
}

fn byte_alphabets(bytes: impl Iterator<Item = u8>) -> u8 {
    bytes.fold(u8::MAX, |bits, byte| bits & MEMBERSHIP[usize::from(byte)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_of(pattern: &str) -> (usize, &'static str) {
        let syntax = regex_automata::util::syntax::Config::new().unicode(false).utf8(false);
        let pattern = regex_automata::util::syntax::parse_with(pattern, &syntax).unwrap();
        let run = Run::from_pattern(&pattern);
        (run.length, ALPHABETS[run.alphabets.trailing_zeros() as usize])
    }

    #[test]
    fn most_selective_run_of_every_match_is_taken_from_the_regex() {
        assert_eq!(run_of(r"(?i)name\s{0,4}([a-f0-9]{16}|[\w-]{20})\b"), (16, "0-9A-Z_a-z-"));
        assert_eq!(run_of(r"\b(key-[a-z]{10})"), (14, "0-9A-Z_a-z-"));
        assert_eq!(run_of(r"name[^:]{0,9}:([a-f0-9]{40})\b"), (40, "0-9a-f"));
        assert_eq!(run_of(r"=([\w-]{6}\.[\w-]{30})"), (30, "0-9A-Z_a-z-"));
        assert_eq!(run_of(r"(a{9})|(b{7})"), (7, "0-9a-f"));
        assert_eq!(run_of(r"=([^\s]{20})").0, 1);
        assert_eq!(run_of(r"(a{9})|.{3}").0, 0);
        assert_eq!(run_of(r"([A-Za-z0-9]{640})"), (MAX_RUN, "0-9A-Za-z"));
    }

    #[test]
    fn required_run_is_found_at_any_offset() {
        let run = |length| Run { length, alphabets: 0b1110_1000 };
        for before in 0..40 {
            let text = format!("{} {}", "a b".repeat(before), "x".repeat(9));
            assert!(run(9).is_in(text.as_bytes()), "{text}");
            assert!(!run(10).is_in(text.as_bytes()), "{text}");
        }
        assert!(run(0).is_in(b""));
    }

    #[test]
    fn alphabet_membership_table_matches_its_character_classes() {
        for (index, alphabet) in ALPHABETS.iter().enumerate() {
            let class = format!("[{}]", alphabet.replace('/', r"\/"));
            let class = regex_automata::meta::Regex::new(&class).unwrap();
            for byte in 0..=u8::MAX {
                let is_member = MEMBERSHIP[usize::from(byte)] >> index & 1 == 1;
                assert_eq!(class.is_match([byte].as_slice()), is_member, "{alphabet} {byte}");
            }
        }
    }
}
