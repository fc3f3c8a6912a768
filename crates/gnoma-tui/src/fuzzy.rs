//! Fuzzy search: ranks names by a few typed letters: `nucleo-matcher` scores how well the letters fit, and a match
//! inside the last part of a path goes before one that is spread over its folders. The same query gives the same
//! order; spelling mistakes are not guessed at.

use std::cmp::Reverse;

use nucleo_matcher::{
    Config, Matcher, Utf32Str,
    pattern::{Atom, AtomKind, CaseMatching, Normalization},
};

/// The worth of a match inside the last part of a path: more than a word that starts where its letters stand, less
/// than adjacent letters.
const IN_FILE_NAME: u32 = 24;
/// The additional worth of such a match if nothing but the file's ending is left over.
const WHOLE_STEM: u32 = 30;

/// Indices of the best `max` candidates, the best first; of equals the shorter, then the earlier.
///
/// All letters of the query must occur in their order. Upper case letters mean themselves, and so do
/// the others beside them; a query without any means both cases. White space in the query is ignored.
/// A query without letters gives the first candidates as they are.
pub fn rank_candidates<S: AsRef<str>>(query: &str, candidates: &[S], max: usize) -> Vec<usize> {
    let letters: String = query.chars().filter(|c| !c.is_whitespace()).collect();
    if letters.is_empty() {
        return (0..candidates.len().min(max)).collect();
    }
    let mut scorer = Scorer::new(&letters);
    let mut best: Vec<_> = candidates
        .iter()
        .enumerate()
        .filter_map(|(index, candidate)| {
            let name = candidate.as_ref();
            Some((Reverse(scorer.score(name)?), name.len(), index))
        })
        .collect();
    if max > 0 && best.len() > max {
        best.select_nth_unstable(max - 1);
    }
    best.truncate(max);
    gnoma_core::sort::sort_items(&mut best);
    best.into_iter().map(|(_, _, index)| index).collect()
}

struct Scorer {
    letters: Atom,
    /// Characters of the query.
    count: usize,
    /// The query is a path: only whole candidates can match it.
    is_path: bool,
    matcher: Matcher,
    /// For candidates that are not ASCII, so that each does not allocate.
    chars: Vec<char>,
}

impl Scorer {
    fn new(letters: &str) -> Self {
        let (case, forms) = (CaseMatching::Smart, Normalization::Smart);
        Self {
            letters: Atom::new(letters, case, forms, AtomKind::Fuzzy, false),
            count: letters.chars().count(),
            is_path: letters.contains('/'),
            matcher: Matcher::new(Config::DEFAULT.match_paths()),
            chars: Vec::new(),
        }
    }

    fn score(&mut self, path: &str) -> Option<u32> {
        if !self.is_path
            && let Some(score) = self.score_text(file_name(path))
        {
            let stem = file_stem(file_name(path));
            let is_whole = stem.chars().count() == self.count && self.score_text(stem).is_some();
            return Some(score + IN_FILE_NAME + if is_whole { WHOLE_STEM } else { 0 });
        }
        self.score_text(path)
    }

    fn score_text(&mut self, text: &str) -> Option<u32> {
        let text = Utf32Str::new(text, &mut self.chars);
        self.letters.score(text, &mut self.matcher).map(u32::from)
    }
}

/// The last part of a path. A folder ends with a slash; its name is the part before.
fn file_name(path: &str) -> &str {
    let path = path.strip_suffix('/').unwrap_or(path);
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

/// A file's name without its ending.
fn file_stem(name: &str) -> &str {
    match name.split_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem,
        Some(_) | None => name,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ranked<'a>(query: &str, names: &[&'a str]) -> Vec<&'a str> {
        rank_candidates(query, names, 100).into_iter().map(|index| names[index]).collect()
    }

    #[test]
    fn fuzzy_search_ranks_the_best_match_first() {
        for (query, names) in [
            ("main", &["src/main.rs", "main/src/other.rs", "src/domain.rs"][..]),
            ("lib", &["lib.rs", "a/lib.rs", "src/library.rs", "lib/a/b.rs"]),
            ("ct", &["composer_tests.rs", "src/complete.rs"]),
            ("tui/main", &["crates/tui/main.rs", "crates/tui/src/domain.rs"]),
            ("cc", &["CamelCase.java", "accent.java"]),
        ] {
            assert_eq!(ranked(query, names), names, "{query}");
        }
    }

    #[test]
    fn fuzzy_search_is_case_sensitive_for_upper_case_letters() {
        assert_eq!(ranked("Read", &["readme", "README", "Readme"]), ["Readme"]);
        assert_eq!(ranked("rEADME", &["README"]), Vec::<&str>::new());
        assert_eq!(ranked("straße", &["STRAßE/x", "strasse"]), ["STRAßE/x"]);
    }

    #[test]
    fn fuzzy_search_without_accents_matches_both() {
        assert_eq!(ranked("cafe", &["café.md", "cafe.md"]), ["cafe.md", "café.md"]);
        assert_eq!(ranked("café", &["café.md", "cafe.md"]), ["café.md"]);
    }

    #[test]
    fn fuzzy_search_with_a_blank_query_preserves_the_order() {
        assert_eq!(rank_candidates(" ", &["b", "a"], 1), [0]);
    }

    proptest! {
        #[test]
        fn fuzzy_search_finds_exactly_the_subsequence_matches(
            query in "[a-c/]{0,4}",
            names in prop::collection::vec("[a-cA-C漢/._]{0,8}", 0..12),
            max in 0_usize..14,
        ) {
            let best = rank_candidates(&query, &names, max);
            let holds = |name: &String| {
                let mut letters = query.chars().peekable();
                for c in name.to_lowercase().chars() {
                    letters.next_if(|letter| *letter == c);
                }
                letters.peek().is_none()
            };
            let expected = names.iter().filter(|name| holds(name)).count().min(max);
            prop_assert_eq!(best.len(), expected);
            prop_assert!(best.iter().all(|index| holds(&names[*index])));
            let fewer = rank_candidates(&query, &names, max / 2);
            prop_assert_eq!(&best[..fewer.len()], &fewer[..]);
        }
    }
}
