//! What changed inside a line, by words.

use std::ops::Range;

use gnoma_core::diff::{DiffOp, changes};
use unicode_segmentation::UnicodeSegmentation as _;

/// Longer lines are not compared.
const MAX_LINE_BYTES: usize = 1_000;
/// Of a hundred bytes, this many must be equal for marks to say something.
const MIN_EQUAL_PERCENT: usize = 40;

/// Places in the text, in bytes.
type Places = Vec<Range<usize>>;

/// What is only in the old line, and what is only in the new one; nothing where the lines are so
/// different that everything would be marked.
pub(super) fn between(old: &str, new: &str) -> (Places, Places) {
    if old.len().max(new.len()) > MAX_LINE_BYTES {
        return Default::default();
    }
    let (old_words, new_words): (Vec<_>, Vec<_>) =
        (old.split_word_bounds().collect(), new.split_word_bounds().collect());
    let (mut removed, mut added) = (Places::new(), Places::new());
    let mut equal = 0;
    for change in changes(&old_words, &new_words, None) {
        let (old_range, new_range) = (change.old_range(), change.new_range());
        if let DiffOp::Equal { .. } = change {
            equal += bytes(&old_words, &old_range).trim_start().len();
            continue;
        }
        note(&mut removed, place(&old_words, &old_range));
        note(&mut added, place(&new_words, &new_range));
    }
    let whole = old.trim().len().max(new.trim().len());
    if equal * 100 < whole * MIN_EQUAL_PERCENT { Default::default() } else { (removed, added) }
}

fn bytes(words: &[&str], range: &Range<usize>) -> String {
    words.get(range.clone()).unwrap_or_default().concat()
}

fn place(words: &[&str], range: &Range<usize>) -> Range<usize> {
    let start = words.iter().take(range.start).map(|word| word.len()).sum();
    start..start + bytes(words, range).len()
}

fn note(places: &mut Places, place: Range<usize>) {
    if !place.is_empty() {
        places.push(place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(old: &str, new: &str) -> (Vec<String>, Vec<String>) {
        let (removed, added) = between(old, new);
        let cut = |text: &str, places: Places| {
            places.into_iter().map(|place| text[place].to_owned()).collect()
        };
        (cut(old, removed), cut(new, added))
    }

    #[test]
    fn changed_words_are_marked() {
        let (removed, added) = marked("let total = sum(a, b);", "let total = sum(a, c, d);");
        assert_eq!(removed.concat(), "b");
        assert_eq!(added.concat(), "c, d");
        let none: Vec<String> = Vec::new();
        assert_eq!(marked("one line", "something else entirely"), (none.clone(), none));
    }
}
