//! Marks the words that changed inside a line.

use std::ops::Range;

use gnoma_core::diff::{DiffOp, diff_sequences};
use unicode_segmentation::UnicodeSegmentation as _;

/// Longer lines are not compared.
const MAX_LINE_BYTES: usize = 1_000;
/// Of a hundred bytes, this many must be equal for marks to say something.
const MIN_EQUAL_PERCENT: usize = 40;

/// Most pairs of lines that are compared to find those that belong together.
const MAX_COMPARED: usize = 64;

/// Places in the text, in bytes.
pub(super) type Places = Vec<Range<usize>>;

/// Pairs each removed line with the added one that it became, by their places, in order. Where there are as many of
/// both, one after the other; otherwise those that are most alike.
pub(super) fn pair_lines(removed: &[&str], added: &[&str]) -> Vec<(usize, usize)> {
    if removed.len() == added.len() || removed.len() * added.len() > MAX_COMPARED {
        return (0..removed.len().min(added.len())).map(|at| (at, at)).collect();
    }
    // How alike the first lines of both sides are at best.
    let mut best = vec![vec![0; added.len() + 1]];
    let at = |best: &[Vec<usize>], i: usize, j: usize| {
        best.get(i).and_then(|row| row.get(j)).copied().unwrap_or_default()
    };
    for (i, old) in removed.iter().enumerate() {
        let mut row = vec![0];
        for (j, new) in added.iter().enumerate() {
            let without = at(&best, i, j + 1).max(row.last().copied().unwrap_or_default());
            row.push(without.max(at(&best, i, j) + similarity_percent(old, new)));
        }
        best.push(row);
    }
    let (mut i, mut j) = (removed.len(), added.len());
    let mut pairs = Vec::new();
    while i > 0 && j > 0 {
        let here = at(&best, i, j);
        if here == at(&best, i - 1, j) {
            i -= 1;
        } else if here == at(&best, i, j - 1) {
            j -= 1;
        } else {
            (i, j) = (i - 1, j - 1);
            pairs.push((i, j));
        }
    }
    pairs.reverse();
    pairs
}

/// Returns the equal share of two lines, in percent; 0 where marks would say nothing.
fn similarity_percent(old: &str, new: &str) -> usize {
    let (removed, added) = changed_places(old, new);
    let bytes = |places: &Places| places.iter().map(Range::len).sum::<usize>();
    let changed = bytes(&removed).max(bytes(&added));
    let whole = old.trim().len().max(new.trim().len()).max(1);
    if changed == 0 && old != new { 0 } else { 100_usize.saturating_sub(changed * 100 / whole) }
}

/// The words of a line, and what stands between them. In code, a dot or a colon ends a word.
fn split_words(text: &str) -> impl Iterator<Item = &str> {
    let is_joint = |c: char| matches!(c, '.' | ':' | '\'');
    text.split_word_bounds().flat_map(move |word| {
        let mut rest = word;
        std::iter::from_fn(move || {
            let first = rest.chars().next()?;
            let end = match rest.find(is_joint) {
                Some(0) => first.len_utf8(),
                Some(end) if word.is_ascii() => end,
                _ => rest.len(),
            };
            let (part, after) = rest.split_at(end);
            rest = after;
            Some(part)
        })
    })
}

/// Returns the places that are only in the old line, and those that are only in the new one; nothing where the
/// lines are so different that everything would be marked.
pub(super) fn changed_places(old: &str, new: &str) -> (Places, Places) {
    if old.len().max(new.len()) > MAX_LINE_BYTES {
        return Default::default();
    }
    let (old_words, new_words): (Vec<_>, Vec<_>) =
        (split_words(old).collect(), split_words(new).collect());
    let (mut removed, mut added) = (Places::new(), Places::new());
    let mut equal = 0;
    for change in diff_sequences(&old_words, &new_words, None) {
        let (old_range, new_range) = (change.old_range(), change.new_range());
        if let DiffOp::Equal { .. } = change {
            equal += join_words(&old_words, &old_range).trim_start().len();
            continue;
        }
        push_nonempty(&mut removed, byte_range(&old_words, &old_range));
        push_nonempty(&mut added, byte_range(&new_words, &new_range));
    }
    let whole = old.trim().len().max(new.trim().len());
    if equal * 100 < whole * MIN_EQUAL_PERCENT { Default::default() } else { (removed, added) }
}

fn join_words(words: &[&str], range: &Range<usize>) -> String {
    words.get(range.clone()).unwrap_or_default().concat()
}

fn byte_range(words: &[&str], range: &Range<usize>) -> Range<usize> {
    let start = words.iter().take(range.start).map(|word| word.len()).sum();
    start..start + join_words(words, range).len()
}

fn push_nonempty(places: &mut Places, place: Range<usize>) {
    if !place.is_empty() {
        places.push(place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(old: &str, new: &str) -> (Vec<String>, Vec<String>) {
        let (removed, added) = changed_places(old, new);
        let cut = |text: &str, places: Places| {
            places.into_iter().map(|place| text[place].to_owned()).collect()
        };
        (cut(old, removed), cut(new, added))
    }

    #[test]
    fn diff_pairs_the_most_similar_lines() {
        let removed = ["for line in text.split():", "    out.append(line.strip())"];
        let added =
            ["for line in text.lines():", "    if line:", "        out.append(line.rstrip())"];
        assert_eq!(pair_lines(&removed, &added), [(0, 0), (1, 2)]);
        assert_eq!(pair_lines(&added, &removed), [(0, 0), (2, 1)]);
        assert_eq!(pair_lines(&removed, &added[..2]), [(0, 0), (1, 1)], "as many of both");
        assert_eq!(pair_lines(&["a"], &["x y", "p q"]), [], "none is alike");
        assert_eq!(pair_lines(&["a"], &["a b c", "a"]), [(0, 1)]);
    }

    #[test]
    fn changed_words_are_marked() {
        let (removed, added) = marked("let total = sum(a, b);", "let total = sum(a, c, d);");
        assert_eq!(removed.concat(), "b");
        assert_eq!(added.concat(), "c, d");
        let (removed, added) = marked("for line in text.split():", "for line in text.lines():");
        assert_eq!((removed.concat(), added.concat()), ("split".to_owned(), "lines".to_owned()));
        let none: Vec<String> = Vec::new();
        assert_eq!(marked("one line", "something else entirely"), (none.clone(), none));
    }
}
