//! The lines of a file that look most like a text that is not in it.
//!
//! Likeness is the share of three-character pieces two texts have in common, white space aside: one
//! pass over the file, whatever its size, and blind to order within the window.

use std::collections::HashMap;

use super::fold::{FoldedText, MatchTolerance};

/// The most lines that are shown.
const MAX_LINES: usize = 40;
/// Lines shown before and after the window.
const CONTEXT_LINES: usize = 1;
/// Below this likeness (in hundredths) nothing is shown.
const MIN_LIKENESS: usize = 35;

/// Lines of a file, as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NearestLines {
    /// Number of the first line, counted from 1.
    pub(super) first_line: usize,
    /// The lines without their ends.
    pub(super) lines: Vec<String>,
}

type Trigram = [char; 3];

/// The window of `content` most like `wanted`, or `None` when nothing is like it.
pub(super) fn find_nearest(content: &[u8], wanted: &str) -> Option<NearestLines> {
    let wanted = wanted.trim();
    let mut tally = TrigramCount::from_wanted(wanted);
    let lines: Vec<Vec<Option<usize>>> = FoldedText::from_bytes(content, MatchTolerance::Spacing)
        .text
        .lines()
        .map(|line| tally.piece_indices(line))
        .collect();
    let size = wanted.lines().count().min(lines.len());
    let mut best = (0, 0);
    for (at, line) in lines.iter().enumerate() {
        tally.add_line(line);
        if let Some(left) = at.checked_sub(size).and_then(|left| lines.get(left)) {
            tally.remove(left);
        }
        let likeness = tally.likeness_percent();
        if likeness > best.0 {
            best = (likeness, (at + 1).saturating_sub(size));
        }
    }
    let (likeness, first) = best;
    (likeness >= MIN_LIKENESS).then(|| excerpt_around(content, first, size))
}

fn excerpt_around(content: &[u8], first: usize, size: usize) -> NearestLines {
    let start = first.saturating_sub(CONTEXT_LINES);
    let end = first + size + CONTEXT_LINES;
    let lines = content
        .split(|&byte| byte == b'\n')
        .take(end)
        .skip(start)
        .take(MAX_LINES)
        .map(|line| String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line)).into_owned())
        .collect();
    NearestLines { first_line: start + 1, lines }
}

/// The count of the pieces of the wanted text that are in the window.
struct TrigramCount {
    index: HashMap<Trigram, usize>,
    counts: Vec<Count>,
    wanted: usize,
    window: usize,
    common: usize,
}

#[derive(Default)]
struct Count {
    wanted: usize,
    window: usize,
}

impl TrigramCount {
    fn from_wanted(wanted: &str) -> Self {
        let mut tally =
            Self { index: HashMap::new(), counts: Vec::new(), wanted: 0, window: 0, common: 0 };
        for line in FoldedText::from_bytes(wanted.as_bytes(), MatchTolerance::Spacing).text.lines()
        {
            for piece in line_trigrams(line) {
                let next = tally.counts.len();
                let at = *tally.index.entry(piece).or_insert(next);
                if at == next {
                    tally.counts.push(Count::default());
                }
                if let Some(count) = tally.counts.get_mut(at) {
                    count.wanted += 1;
                }
                tally.wanted += 1;
            }
        }
        tally
    }

    /// Returns for each piece of `line` the wanted piece that it is.
    fn piece_indices(&self, line: &str) -> Vec<Option<usize>> {
        line_trigrams(line).map(|piece| self.index.get(&piece).copied()).collect()
    }

    fn add_line(&mut self, line: &[Option<usize>]) {
        self.window += line.len();
        for &at in line.iter().flatten() {
            if let Some(count) = self.counts.get_mut(at) {
                count.window += 1;
                self.common += usize::from(count.window <= count.wanted);
            }
        }
    }

    fn remove(&mut self, line: &[Option<usize>]) {
        self.window -= line.len();
        for &at in line.iter().flatten() {
            if let Some(count) = self.counts.get_mut(at) {
                self.common -= usize::from(count.window <= count.wanted);
                count.window -= 1;
            }
        }
    }

    /// Returns the likeness of the window to the wanted text, in hundredths.
    fn likeness_percent(&self) -> usize {
        (200 * self.common).checked_div(self.wanted + self.window).unwrap_or(0)
    }
}

/// The three-character pieces of a line without its white space; a short line is padded.
fn line_trigrams(line: &str) -> impl Iterator<Item = Trigram> {
    let mut chars: Vec<char> = line.chars().filter(|char| !char.is_whitespace()).collect();
    if !chars.is_empty() {
        chars.resize(chars.len().max(3), ' ');
    }
    let count = chars.len().saturating_sub(2);
    (0..count).filter_map(move |at| <Trigram>::try_from(chars.get(at..at + 3)?).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "fn main() {\n    let total = sum(&values);\n    println!(\"{total}\");\n}\n\nfn other() {\n    nothing_like_it();\n}\n";

    #[test]
    fn nearest_lines_include_a_slightly_different_line() {
        let found = find_nearest(FILE.as_bytes(), "let total = sum(values)").unwrap();
        assert_eq!(found.first_line, 1);
        assert_eq!(found.lines[1], "    let total = sum(&values);");
    }

    #[test]
    fn nearest_lines_of_a_block_are_a_block() {
        let found =
            find_nearest(FILE.as_bytes(), "\nfn other() {\n    nothing_likes_it();\n}\n").unwrap();
        assert_eq!(found.first_line, 5);
        assert_eq!(found.lines[1..4], ["fn other() {", "    nothing_like_it();", "}"]);
    }

    #[test]
    fn nearest_lines_of_unrelated_text_are_none() {
        assert_eq!(find_nearest(FILE.as_bytes(), "SELECT * FROM users"), None);
        assert_eq!(find_nearest(b"", "anything"), None);
        assert_eq!(find_nearest(FILE.as_bytes(), " \n "), None);
    }

    #[test]
    fn nearest_lines_are_truncated_to_a_limit() {
        let file: String = (0..200).map(|n| format!("line number {n}\n")).collect();
        let found = find_nearest(file.as_bytes(), &file.replace("number", "numbers")).unwrap();
        assert_eq!(found.lines.len(), MAX_LINES);
    }
}
