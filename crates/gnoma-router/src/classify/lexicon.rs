//! Phrases found in a row of words. What a phrase means is the caller's.

use std::collections::HashMap;

/// Other words that `..` in a phrase may stand for.
const MOST_GAP: usize = 4;
/// Parts of a phrase, gaps included.
const MOST_SLOTS: usize = 8;
/// Letters by which phrases are looked up: stems have at least so many.
const KEY_LETTERS: usize = 3;

/// One word as a phrase gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum WordForm {
    Whole(String),
    Stem(String),
}

impl WordForm {
    fn parse(text: &str) -> Option<Self> {
        match text.strip_suffix('*') {
            Some(stem) if stem.chars().count() >= KEY_LETTERS => Some(Self::Stem(stem.to_owned())),
            None if !text.is_empty() => Some(Self::Whole(text.to_owned())),
            Some(_) | None => None,
        }
    }

    fn matches_word(&self, word: &str) -> bool {
        match self {
            Self::Whole(whole) => word == whole,
            Self::Stem(stem) => word.starts_with(stem.as_str()),
        }
    }

    fn lookup_key(&self) -> &str {
        match self {
            Self::Whole(text) | Self::Stem(text) => word_key(text),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Slot {
    OneOf(Vec<WordForm>),
    Gap,
}

#[derive(Clone, Debug)]
struct PhraseEntry<M> {
    slots: Vec<Slot>,
    meaning: M,
}

/// A phrase that was found.
#[derive(Clone, Debug)]
pub(super) struct PhraseMatch<'a, M> {
    /// The number of the phrase, counted in the order added.
    pub(super) entry: usize,
    /// The meaning of the phrase.
    pub(super) meaning: &'a M,
    /// The places of its own words, without those that a gap stands for.
    pub(super) places: Vec<usize>,
}

/// Phrases and what they mean.
#[derive(Clone, Debug)]
pub(super) struct Lexicon<M> {
    entries: Vec<PhraseEntry<M>>,
    by_key: HashMap<String, Vec<usize>>,
}

impl<M> Default for Lexicon<M> {
    fn default() -> Self {
        Self { entries: Vec::new(), by_key: HashMap::new() }
    }
}

impl<M> Lexicon<M> {
    /// Adds a phrase; `None` when it is not one.
    pub(super) fn add_phrase(&mut self, phrase: &str, meaning: M) -> Option<()> {
        let slots = parse_phrase(phrase)?;
        let Some(Slot::OneOf(first)) = slots.first() else {
            return None;
        };
        let entry = self.entries.len();
        for form in first {
            match self.by_key.get_mut(form.lookup_key()) {
                Some(listed) if listed.last() == Some(&entry) => {}
                Some(listed) => listed.push(entry),
                None => drop(self.by_key.insert(form.lookup_key().to_owned(), vec![entry])),
            }
        }
        self.entries.push(PhraseEntry { slots, meaning });
        Some(())
    }

    /// Returns the number of phrases.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The phrase of the most words that begins at this place; of equals the heaviest, of these the one added first.
    /// `word` gives the word at a place, `None` where the row ends or a phrase may not go on; `weight` what a meaning
    /// weighs here, `None` where it says nothing.
    pub(super) fn find_phrase<'w>(
        &self,
        start: usize,
        word: impl Fn(usize) -> Option<&'w str>,
        weight: impl Fn(&M) -> Option<u32>,
    ) -> Option<PhraseMatch<'_, M>> {
        let mut best: Option<(PhraseMatch<'_, M>, (usize, u32))> = None;
        for index in self.by_key.get(word_key(word(start)?))? {
            let Some(entry) = self.entries.get(*index) else { continue };
            let Some(weight) = weight(&entry.meaning) else { continue };
            let Some(places) = locate_slots(&entry.slots, start, &word) else { continue };
            let rank = (places.len(), weight);
            if best.as_ref().is_none_or(|(_, best)| rank > *best) {
                best = Some((PhraseMatch { entry: *index, meaning: &entry.meaning, places }, rank));
            }
        }
        best.map(|(found, _)| found)
    }
}

fn word_key(word: &str) -> &str {
    let end = word.char_indices().nth(KEY_LETTERS).map_or(word.len(), |(end, _)| end);
    word.get(..end).unwrap_or(word)
}

/// Two gaps never meet, and none begins or ends a phrase.
fn parse_phrase(phrase: &str) -> Option<Vec<Slot>> {
    let slots: Vec<Slot> = phrase
        .split_whitespace()
        .map(|part| match part {
            ".." => Some(Slot::Gap),
            words => words.split('|').map(WordForm::parse).collect::<Option<_>>().map(Slot::OneOf),
        })
        .collect::<Option<_>>()?;
    let misplaced = slots.windows(2).any(|pair| pair == [Slot::Gap, Slot::Gap])
        || slots.first() == Some(&Slot::Gap)
        || slots.last() == Some(&Slot::Gap);
    (!slots.is_empty() && slots.len() <= MOST_SLOTS && !misplaced).then_some(slots)
}

/// Returns the places where the words of a phrase stand. A gap takes as few words as it can.
fn locate_slots<'w>(
    slots: &[Slot],
    start: usize,
    word: &impl Fn(usize) -> Option<&'w str>,
) -> Option<Vec<usize>> {
    let mut found = Vec::with_capacity(slots.len());
    let (mut at, mut may_skip) = (start, 0);
    for slot in slots {
        match slot {
            Slot::Gap => may_skip = MOST_GAP,
            Slot::OneOf(forms) => {
                let fits = |place: &usize| {
                    word(*place)
                        .is_some_and(|word| forms.iter().any(|form| form.matches_word(word)))
                };
                let reachable = (at..=at + may_skip).take_while(|place| word(*place).is_some());
                let place = { reachable }.find(fits)?;
                found.push(place);
                (at, may_skip) = (place + 1, 0);
            }
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(phrases: &[&str], text: &str) -> Option<(usize, Vec<usize>)> {
        let mut lexicon = Lexicon::default();
        for phrase in phrases {
            lexicon.add_phrase(phrase, ()).unwrap();
        }
        let words: Vec<&str> = text.split(' ').collect();
        lexicon
            .find_phrase(0, |place| words.get(place).copied(), |()| Some(0))
            .map(|found| (found.entry, found.places))
    }

    #[test]
    fn the_longest_phrase_wins() {
        assert_eq!(find(&["fix", "fix the test|tests"], "fix the tests"), Some((1, vec![0, 1, 2])));
        assert_eq!(find(&["write .. tests", "write"], "write tests"), Some((0, vec![0, 1])));
        assert_eq!(find(&["write .. tests"], "write a b c d tests"), Some((0, vec![0, 5])));
        assert_eq!(find(&["write .. tests"], "write a b c d e tests"), None);
    }

    #[test]
    fn classifier_lexicon_matches_whole_words_and_starred_stems() {
        assert_eq!(find(&["test"], "tests"), None);
        assert_eq!(find(&["refactor*"], "refactoring"), Some((0, vec![0])));
        assert_eq!(find(&["füg*"], "fügst"), Some((0, vec![0])));
    }

    #[test]
    fn classifier_lexicon_rejects_malformed_phrases() {
        for phrase in ["", "..", "a ..", ".. a", "a .. .. b", "ab*", "a||b", "*"] {
            assert!(Lexicon::default().add_phrase(phrase, ()).is_none(), "{phrase}");
        }
    }
}
