//! Which of many names are meant by a few letters: the letters must come in their order, and names
//! where they are together, at the starts of words or in the last part of a path come first. The
//! same question gives the same answer; spelling mistakes are not guessed at.

use std::cmp::Reverse;

/// A letter was found.
const LETTER: i32 = 16;
/// Right behind the one before.
const TOGETHER: i32 = 12;
/// At the start of a word.
const WORD_START: i32 = 10;
/// In the last part of a path.
const IN_NAME: i32 = 24;
/// At the start of the last part of a path.
const NAME_START: i32 = 14;
/// The last part, up to its ending, is nothing else.
const WHOLE_NAME: i32 = 30;
/// For each character between two letters.
const GAP: i32 = -1;
/// Gaps longer than this are not counted further.
const MAX_GAP: usize = 12;

/// A name that is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match {
    /// Its index among the candidates.
    pub index: usize,
    /// Bytes of the name where a letter of the query was found, in its order.
    pub letters: Vec<usize>,
}

/// The best `max` of the candidates, the best first. Upper case letters mean upper case letters,
/// others mean both. A query without letters gives the first candidates as they are.
pub fn rank<S: AsRef<str>>(query: &str, candidates: &[S], max: usize) -> Vec<Match> {
    let query = Query::new(query);
    if query.letters.is_empty() {
        let indices = 0..candidates.len().min(max);
        return indices.map(|index| Match { index, letters: Vec::new() }).collect();
    }
    let mut found = Vec::new();
    let mut places = Vec::new();
    for (index, candidate) in candidates.iter().enumerate() {
        let name = candidate.as_ref();
        let base = start_of_name(name);
        if query.find(name, base, &mut places) {
            found.push((Reverse(query.score(name, base, &places)), name.len(), index));
        }
    }
    if max > 0 && found.len() > max {
        found.select_nth_unstable(max - 1);
    }
    found.truncate(max);
    found.sort_unstable();
    let matched = |(_, _, index): (_, _, usize)| {
        let name = candidates.get(index).map_or("", AsRef::as_ref);
        query.find(name, start_of_name(name), &mut places);
        Match { index, letters: std::mem::take(&mut places) }
    };
    found.into_iter().map(matched).collect()
}

struct Query {
    letters: Vec<char>,
    /// The same as bytes, where they can be looked for as such.
    ascii: Option<Vec<u8>>,
    /// A path is meant, not a name alone.
    has_slash: bool,
    exact_case: bool,
}

impl Query {
    fn new(query: &str) -> Self {
        let letters: Vec<char> = query.chars().filter(|c| !c.is_whitespace()).collect();
        let ascii = letters.iter().map(|c| u8::try_from(*c).ok().filter(u8::is_ascii)).collect();
        let exact_case = letters.iter().copied().any(char::is_uppercase);
        Self { letters, ascii, has_slash: query.contains('/'), exact_case }
    }

    /// Finds the letters in the last part of the path where they all are, else in the whole: the
    /// shortest part that ends where they are complete for the first time. `places` are where each of
    /// them is.
    fn find(&self, name: &str, base: usize, places: &mut Vec<usize>) -> bool {
        let is_in_name = !self.has_slash && base > 0 && self.find_from(name, base, places);
        is_in_name || self.find_from(name, 0, places)
    }

    fn find_from(&self, name: &str, from: usize, places: &mut Vec<usize>) -> bool {
        places.clear();
        let Some(text) = name.get(from..) else { return false };
        let is_found = match &self.ascii {
            Some(letters) => self.find_bytes(letters, text.as_bytes(), places),
            None => self.find_chars(text, places),
        };
        places.reverse();
        places.iter_mut().for_each(|place| *place += from);
        is_found.is_some()
    }

    /// The places from the last to the first.
    fn find_bytes(&self, letters: &[u8], text: &[u8], places: &mut Vec<usize>) -> Option<()> {
        let is = |letter: u8, byte: u8| {
            letter == byte || (!self.exact_case && letter == byte.to_ascii_lowercase())
        };
        let mut end = 0;
        for letter in letters {
            end += text.get(end..)?.iter().position(|byte| is(*letter, *byte))? + 1;
        }
        for letter in letters.iter().rev() {
            end = text.get(..end)?.iter().rposition(|byte| is(*letter, *byte))?;
            places.push(end);
        }
        Some(())
    }

    /// The places from the last to the first.
    fn find_chars(&self, text: &str, places: &mut Vec<usize>) -> Option<()> {
        let is = |letter: char, c: char| letter == c || (!self.exact_case && letter == folded(c));
        let mut end = 0;
        for letter in &self.letters {
            let rest = text.get(end..)?;
            let (at, c) = rest.char_indices().find(|(_, c)| is(*letter, *c))?;
            end += at + c.len_utf8();
        }
        for letter in self.letters.iter().rev() {
            let (at, _) = text.get(..end)?.char_indices().rev().find(|(_, c)| is(*letter, *c))?;
            end = at;
            places.push(at);
        }
        Some(())
    }

    fn score(&self, name: &str, base: usize, places: &[usize]) -> i32 {
        let mut score = 0;
        // Where a letter would be together with the one before.
        let mut next = None;
        for (place, letter) in places.iter().copied().zip(&self.letters) {
            score += LETTER + place_bonus(name, base, place);
            score += match next {
                None => 0,
                Some(next) if next == place => TOGETHER,
                Some(next) => GAP * small(place.saturating_sub(next).min(MAX_GAP)),
            };
            next = Some(place + letter.len_utf8());
        }
        let first = places.first().copied();
        if first.is_some_and(|first| first >= base) {
            score += IN_NAME;
        }
        if first == Some(base) && next.is_some_and(|end| is_stem(name, end)) {
            score += WHOLE_NAME;
        }
        score
    }
}

/// Where the last part of a path begins. A folder ends with a slash; its name is the part before.
fn start_of_name(name: &str) -> usize {
    let path = name.strip_suffix('/').unwrap_or(name);
    path.rfind('/').map_or(0, |slash| slash + 1)
}

fn place_bonus(name: &str, base: usize, place: usize) -> i32 {
    if place == base {
        return WORD_START + NAME_START;
    }
    let byte = |at: Option<usize>| at.and_then(|at| name.as_bytes().get(at).copied());
    let starts_word = match (byte(place.checked_sub(1)), byte(Some(place))) {
        // Letters that are not ASCII are letters of words.
        (Some(before), _) if before.is_ascii() && !before.is_ascii_alphanumeric() => true,
        (Some(before), Some(c)) => before.is_ascii_lowercase() && c.is_ascii_uppercase(),
        (None, _) | (_, None) => true,
    };
    if starts_word { WORD_START } else { 0 }
}

/// Whether nothing but the ending of a file's name follows.
fn is_stem(name: &str, end: usize) -> bool {
    let rest = name.get(end..).unwrap_or_default();
    rest.is_empty() || rest == "/" || (rest.starts_with('.') && !rest.contains('/'))
}

/// The lower case form where it is one character.
fn folded(c: char) -> char {
    if c.is_ascii() {
        return c.to_ascii_lowercase();
    }
    let mut forms = c.to_lowercase();
    match (forms.next(), forms.next()) {
        (Some(form), None) => form,
        _ => c,
    }
}

fn small(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ranked<'a>(query: &str, names: &[&'a str]) -> Vec<&'a str> {
        rank(query, names, 100).iter().map(|found| names[found.index]).collect()
    }

    #[test]
    fn what_people_mean_comes_first() {
        for (query, names) in [
            ("main", &["src/main.rs", "src/domain.rs", "main/src/other.rs"][..]),
            ("lib", &["lib.rs", "a/lib.rs", "src/library.rs", "lib/a/b.rs"]),
            ("ct", &["composer_tests.rs", "src/complete.rs"]),
            ("tui/main", &["crates/tui/main.rs", "crates/tui/src/domain.rs"]),
            ("cc", &["CamelCase.java", "accent.java"]),
        ] {
            assert_eq!(ranked(query, names), names, "{query}");
        }
    }

    #[test]
    fn an_upper_case_letter_means_one() {
        assert_eq!(ranked("Read", &["readme", "README", "Readme"]), ["Readme"]);
        assert_eq!(ranked("rEADME", &["README"]), Vec::<&str>::new());
        assert_eq!(ranked("straße", &["STRAßE/x", "strasse"]), ["STRAßE/x"]);
    }

    #[test]
    fn the_letters_are_told() {
        let found = rank("mn", &["x/amain.rs"], 1);
        assert_eq!(found, [Match { index: 0, letters: vec![3, 6] }]);
        assert_eq!(rank("", &["b", "a"], 1), [Match { index: 0, letters: vec![] }]);
    }

    proptest! {
        #[test]
        fn all_that_hold_the_letters_in_order_are_found_and_no_others(
            query in "[a-cé/]{0,4}",
            names in prop::collection::vec("[a-cA-Cé/._]{0,8}", 0..12),
            max in 0_usize..14,
        ) {
            let found = rank(&query, &names, max);
            let holds = |name: &String| {
                let mut letters = query.chars().peekable();
                for c in name.chars() {
                    letters.next_if(|letter| *letter == folded(c));
                }
                letters.peek().is_none()
            };
            let expected = names.iter().filter(|name| holds(name)).count().min(max);
            prop_assert_eq!(found.len(), expected);
            for Match { index, letters } in &found {
                prop_assert!(holds(&names[*index]));
                let read: String = letters.iter().map(|at| names[*index][*at..].chars().next().unwrap()).collect();
                prop_assert_eq!(read.to_lowercase(), query.clone());
            }
            let fewer = rank(&query, &names, max / 2);
            prop_assert_eq!(&found[..fewer.len()], &fewer[..]);
        }
    }
}
