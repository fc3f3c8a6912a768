//! Detects streamed text that repeats itself without end.
//!
//! Only the tail of the text is checked, because a loop that is over is no loop.

/// New text that is waited for between two looks: they cost microseconds, deltas come by thousands.
const LOOK_EVERY_BYTES: usize = 512;

/// The longest unit that is searched for: 400 characters in any script of up to three bytes.
const MAX_UNIT_BYTES: usize = 1_200;

/// A unit must be there this often, one after the other.
const MIN_UNITS: usize = 4;

/// The most characters for which words may repeat: enough for tables with equal rows and for "write it fifty
/// times".
const MAX_WORDS_CHARS: usize = 1_200;

/// The most characters that a ruler, an empty box or a matrix of zeros may have.
const MAX_WORDLESS_CHARS: usize = 2_400;

/// The most bytes of blank space in a row. Small models end in nothing but line breaks.
const MAX_BLANK_BYTES: usize = 256;

/// The text that is kept, enough for both limits in any script.
const TAIL_BYTES: usize = 4 * MAX_WORDLESS_CHARS;

/// The number of bytes at the end that are compared first.
const ANCHOR_BYTES: usize = size_of::<u64>();

/// Finds a unit (a letter, a word, a line, a paragraph) that the text has come to repeat exactly
/// and without interruption.
///
/// The sign is a tail of at least four equal units and 1,200 characters, or 2,400 characters when
/// the unit has no letters or is a single character. Lines that differ in a number are no
/// repetition.
#[derive(Debug, Default)]
pub struct Repetition {
    tail: String,
    unseen_bytes: usize,
    blank_bytes: usize,
}

impl Repetition {
    /// Takes the next piece of the stream; returns true if the text so far ends in a repetition, and starts again
    /// from there.
    pub fn push(&mut self, piece: &str) -> bool {
        if self.is_blank_for_long(piece) {
            return true;
        }
        self.tail.push_str(piece);
        self.unseen_bytes = self.unseen_bytes.saturating_add(piece.len());
        if self.unseen_bytes < LOOK_EVERY_BYTES {
            return false;
        }
        self.unseen_bytes = 0;
        self.forget_old();
        let repeats = ends_in_repetition(&self.tail);
        if repeats {
            self.tail.clear();
        }
        repeats
    }

    fn is_blank_for_long(&mut self, piece: &str) -> bool {
        let blank = piece.len() - piece.trim_end().len();
        let before = if blank == piece.len() { self.blank_bytes } else { 0 };
        self.blank_bytes = before.saturating_add(blank);
        let is_long = self.blank_bytes > MAX_BLANK_BYTES;
        if is_long {
            *self = Self::default();
        }
        is_long
    }

    fn forget_old(&mut self) {
        let surplus = self.tail.len().saturating_sub(TAIL_BYTES);
        self.tail.drain(..self.tail.ceil_char_boundary(surplus));
    }
}

/// Reports whether `text` ends in a repetition. The shortest unit decides, because longer ones are multiples of it.
fn ends_in_repetition(text: &str) -> bool {
    let bytes = text.as_bytes();
    let mut anchors = bytes.windows(ANCHOR_BYTES).rev().map(as_number);
    let Some(last) = anchors.next() else {
        return false;
    };
    // Where a unit ended before, the bytes must be those at the end of the text.
    anchors
        .zip(1..=MAX_UNIT_BYTES)
        .filter(|(anchor, _)| *anchor == last)
        .map(|(_, unit)| unit)
        .find(|unit| repeats_by(bytes, *unit))
        .is_some_and(|unit| is_too_much(text, unit))
}

/// A window as one number, which is compared at once.
fn as_number(window: &[u8]) -> Option<u64> {
    window.first_chunk().copied().map(u64::from_ne_bytes)
}

/// Reports whether the end of `bytes` equals the bytes `unit` before it, for the shortest run that could be a sign.
fn repeats_by(bytes: &[u8], unit: usize) -> bool {
    let run = MAX_WORDS_CHARS.max(MIN_UNITS * unit);
    let tail = bytes.len().checked_sub(run).and_then(|start| bytes.get(start..));
    tail.is_some_and(|tail| tail.get(unit..) == tail.get(..run - unit))
}

/// Reports whether the run of units of `unit` bytes at the end of `text` is more than any text needs.
fn is_too_much(text: &str, unit: usize) -> bool {
    let bytes = text.as_bytes().iter().rev();
    let earlier = bytes.clone().skip(unit);
    let run = unit + bytes.zip(earlier).take_while(|(late, early)| late == early).count();
    let last = |bytes| {
        let start = text.floor_char_boundary(text.len().saturating_sub(bytes));
        text.get(start..).unwrap_or_default().chars()
    };
    let varies = last(unit).any(|c| !text.ends_with(c));
    let has_words = varies && last(unit).any(char::is_alphabetic);
    let limit = if has_words { MAX_WORDS_CHARS } else { MAX_WORDLESS_CHARS };
    last(run).nth(limit - 1).is_some()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Streams `text` in pieces of `size` characters; how many bytes went in until the sign.
    fn fires_after(text: &str, size: usize) -> Option<usize> {
        let mut detector = Repetition::default();
        let chars: Vec<char> = text.chars().collect();
        let mut seen = 0;
        for piece in chars.chunks(size) {
            let piece: String = piece.iter().collect();
            seen += piece.len();
            if detector.push(&piece) {
                return Some(seen);
            }
        }
        None
    }

    const OPENING: &str = "Let me look at the parser. It reads one token after the other, and ";

    #[test]
    fn repetition_loop_is_detected_within_two_kilobytes() {
        let paragraph = "I should check the file again. Then I will know what the function \
                         does, and whether the caller handles its error as it must. ";
        for unit in ["the ", "ha", "I will fix it now.\n", "Wait, let me check. ", paragraph] {
            let text = format!("{OPENING}{}", unit.repeat(4_000 / unit.len()));
            for size in [1, 7, 64] {
                let bytes = fires_after(&text, size).expect(unit);
                assert!(bytes <= 2_048, "{unit}: {bytes}");
            }
        }
    }

    #[test]
    fn repetition_loop_is_detected_in_any_script_or_without_letters() {
        for unit in ["你好吗。", "🎉", "!", "\n", "0, ", "А что если ", "é"] {
            let text = format!("{OPENING}{}", unit.repeat(6_000));
            assert!(fires_after(&text, 3).is_some(), "{unit}");
        }
    }

    #[test]
    fn tables_rules_and_lists_are_no_repetition_loop() {
        let rows = |row: &str, count| row.repeat(count);
        let numbered: String = (0..300).map(|n| format!("Step {n}: read the file.\n")).collect();
        let files: String =
            (0..200).map(|n| format!("- `src/module_{n}/mod.rs`: nothing to do\n")).collect();
        for text in [
            "-".repeat(400),
            format!("{}\n", "=".repeat(79)).repeat(3),
            rows("|                    |                    |\n", 25),
            rows("| a | b | c |\n", 40),
            rows("        }\n", 30),
            rows("    <td></td>\n", 60),
            rows(&format!("{}\n", "0, ".repeat(28)), 28),
            rows(&format!("║{}║\n", "░".repeat(60)), 20),
            rows("Hello, World!\n", 50),
            numbered,
            files,
        ] {
            let text = format!("{OPENING}\n{text}\nThat is all there is to say.\n{OPENING}");
            for size in [1, 5, 10_000] {
                assert_eq!(fires_after(&text, size), None, "{text}");
            }
        }
    }

    #[test]
    fn interrupted_repetition_is_no_loop() {
        let text = format!("{}and now for something else. ", "over and over. ".repeat(40));
        assert_eq!(fires_after(&text.repeat(2), 6), None);
    }

    #[test]
    fn repetition_detector_memory_is_bounded_and_resets_after_a_hit() {
        let mut detector = Repetition::default();
        let mut different = (0_u32..).map(|n| format!("{} ", n.wrapping_mul(2_654_435_761)));
        for piece in different.by_ref().take(20_000) {
            assert!(!detector.push(&piece));
        }
        assert!(detector.tail.len() <= TAIL_BYTES + LOOK_EVERY_BYTES);
        assert!(detector.push(&"again ".repeat(1_000)));
        assert!(!detector.push(&different.by_ref().take(100).collect::<String>()));
    }

    proptest! {
        #[test]
        fn repetition_detector_fires_only_on_real_repetition(
            opening in "[a-c]{0,40}", unit in "[a-cß好]{1,60}", count in 0_usize..600,
        ) {
            let text = format!("{opening}{}", unit.repeat(count));
            let long = unit.repeat(count).chars().count();
            prop_assert!(!ends_in_repetition(&text) || long + 120 >= MAX_WORDS_CHARS);
            prop_assert!(ends_in_repetition(&text) || long < MAX_WORDLESS_CHARS);
        }

        #[test]
        fn repetition_detector_never_panics_on_any_stream(pieces in prop::collection::vec("\\PC{0,300}", 0..20)) {
            let mut detector = Repetition::default();
            for piece in pieces {
                detector.push(&piece);
            }
        }
    }
}
