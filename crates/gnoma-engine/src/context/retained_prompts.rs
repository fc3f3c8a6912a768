//! Which of a person's words stay verbatim. Pure.
//!
//! Rules and corrections come first, the newest before older ones; then the latest messages; then what is said
//! nowhere else in the conversation. All of it is quoted in its original order. What does not fit is listed by its
//! beginning.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    ops::Range,
};

use gnoma_core::text_truncation;

use crate::tokens;

/// A message of more tokens is taken apart: a rule in a long paste does not need the paste.
const WHOLE_TOKENS: usize = 256;
/// Rules take at most this part of the room, in tenths.
const RULES_TENTHS: usize = 6;
/// The part of the room, in tenths, that the newest words take at least.
const NEWEST_TENTHS: usize = 2;
/// The fraction of the room, as a divisor, that the listed messages may take at most.
const LISTED_SHARE: usize = 8;
/// Most bytes of what is listed of a message.
const LISTED_BYTES: usize = 80;
/// Words that nothing else says, of a unit that says something of its own.
const NOVEL_WORDS: usize = 2;
/// Letters of a word that counts for that.
const LEAST_LETTERS: usize = 3;
/// Most units that are weighed; of more, the oldest are listed at best.
const MAX_UNITS: usize = 4_096;
/// Stands for what is left out of a message.
pub(super) const GAP: &str = "[…]";

/// Words by which people give rules and correct.
const RULES: [&str; 40] = [
    "always",
    "never",
    "must",
    "mustn't",
    "don't",
    "dont",
    "do not",
    "should",
    "shouldn't",
    "only",
    "instead",
    "prefer",
    "avoid",
    "make sure",
    "remember",
    "from now on",
    "wrong",
    "stop",
    "actually",
    "rather",
    "important",
    "rule",
    "forbidden",
    "not allowed",
    "keep",
    "without",
    "no longer",
    "i meant",
    "i said",
    "please use",
    "note that",
    "immer",
    "nie",
    "niemals",
    "nicht",
    "kein",
    "keine",
    "muss",
    "statt",
    "toujours",
];

/// The words of a person that stay in the context.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RetainedPrompts {
    /// The messages of the person that stay word for word, oldest first.
    pub(crate) verbatim: Vec<String>,
    /// The beginnings of other messages, oldest first.
    pub(crate) listed: Vec<String>,
    /// Messages that are not even listed.
    pub(crate) left: u64,
}

/// A piece of a message that is quoted or not.
struct Unit<'a> {
    message: usize,
    place: Range<usize>,
    text: &'a str,
    tokens: usize,
    is_rule: bool,
}

impl RetainedPrompts {
    /// Chooses what stays of `said`, the oldest first, in about `room` tokens. `before` holds the messages that are
    /// listed already, and the number of messages that are not.
    pub(crate) fn select_quotes(said: &[String], before: (Vec<String>, u64), room: usize) -> Self {
        let mut units: Vec<Unit<'_>> = Vec::new();
        for (message, text) in said.iter().enumerate().rev() {
            if units.len() >= MAX_UNITS {
                break;
            }
            units.extend(units_of(message, text).into_iter().rev());
        }
        // From here on the newest come first.
        let taken = select_units(&units, room);
        let mut verbatim = Vec::new();
        let (mut listed, mut left) = before;
        for (message, text) in said.iter().enumerate() {
            let mut places: Vec<Range<usize>> = taken
                .iter()
                .filter_map(|at| units.get(*at))
                .filter(|unit| unit.message == message)
                .map(|unit| unit.place.clone())
                .collect();
            gnoma_core::sort::by_key(&mut places, |place| place.start);
            match quote_places(text, &places) {
                Some(text) => verbatim.push(text),
                None => listed.push(clip_beginning(text)),
            }
        }
        let mut most = room / LISTED_SHARE;
        let fitting = listed.iter().rev().take_while(|line| {
            let tokens = tokens::estimate(line);
            let fits = tokens <= most;
            most = most.saturating_sub(tokens);
            fits
        });
        let over = listed.len() - fitting.count();
        left += over as u64;
        listed.drain(..over);
        Self { verbatim, listed, left }
    }
}

/// Chooses the units to quote.
fn select_units(units: &[Unit<'_>], room: usize) -> BTreeSet<usize> {
    let novel = count_novel_words(units);
    let mut taken = BTreeSet::new();
    let mut left = room;
    let mut take = |wanted: &dyn Fn(usize, &Unit<'_>) -> bool, most: usize| {
        let mut share = most.min(left);
        for (at, unit) in units.iter().enumerate().filter(|(at, unit)| wanted(*at, unit)) {
            if unit.tokens <= share && taken.insert(at) {
                share -= unit.tokens;
                left -= unit.tokens;
            }
        }
    };
    take(&|_, unit| unit.is_rule, room * RULES_TENTHS / 10);
    take(&|_, _| true, room * NEWEST_TENTHS / 10);
    take(&|at, _| novel.get(at).is_some_and(|words| *words >= NOVEL_WORDS), room);
    take(&|_, unit| unit.is_rule, room);
    take(&|_, _| true, room);
    taken
}

/// Counts for each unit the words that no other unit has.
fn count_novel_words(units: &[Unit<'_>]) -> Vec<usize> {
    let words = |unit: &Unit<'_>| -> HashSet<String> {
        let words = unit.text.split(|it: char| !it.is_alphanumeric() && it != '_' && it != '-');
        let counts = |word: &&str| {
            word.chars().count() >= LEAST_LETTERS && !word.chars().all(|it| it.is_ascii_digit())
        };
        words.filter(counts).map(str::to_lowercase).collect()
    };
    let mut seen: HashMap<String, u32> = HashMap::new();
    for unit in units {
        for word in words(unit) {
            *seen.entry(word).or_default() += 1;
        }
    }
    let alone = |word: &String| seen.get(word) == Some(&1);
    units.iter().map(|unit| words(unit).iter().filter(|word| alone(word)).count()).collect()
}

fn units_of(message: usize, text: &str) -> Vec<Unit<'_>> {
    let is_whole = tokens::estimate(text) <= WHOLE_TOKENS;
    // A piece of a message stands beside a mark for what is left out.
    let around = if is_whole { 2 } else { 4 + tokens::estimate(GAP) };
    let unit = |place: Range<usize>| {
        let text = text.get(place.clone()).unwrap_or_default();
        let tokens = tokens::estimate(text) + around;
        Unit { message, place, text, tokens, is_rule: is_rule(text) }
    };
    if is_whole {
        return vec![unit(0..text.len())];
    }
    let mut units = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let end = start + line.len();
        if tokens::estimate(line) <= WHOLE_TOKENS {
            units.push(unit(start..end));
        } else {
            let mut from = start;
            for sentence in line.split_inclusive(". ") {
                // One that is too long even so is quoted by its beginning.
                let shown = text_truncation::word_prefix(sentence, WHOLE_TOKENS * 4);
                units.push(unit(from..from + shown.len()));
                from += sentence.len();
            }
        }
        start = end;
    }
    units
}

/// Reports whether a text by a person gives a rule or corrects the model.
fn is_rule(text: &str) -> bool {
    let text = text.to_lowercase().replace('’', "'");
    let is_letter = |it: Option<char>| it.is_some_and(char::is_alphanumeric);
    RULES.iter().any(|rule| {
        text.match_indices(rule).any(|(at, _)| {
            let before = text.get(..at).and_then(|head| head.chars().next_back());
            let after = text.get(at + rule.len()..).and_then(|tail| tail.chars().next());
            !is_letter(before) && !is_letter(after)
        })
    }) || text.trim_start().starts_with("no,")
        || text.trim_start().starts_with("no.")
}

/// These places of a text, with a mark for each gap; `None` if there are none.
fn quote_places(text: &str, places: &[Range<usize>]) -> Option<String> {
    let mut out = String::new();
    let mut end = 0;
    for place in places {
        if place.start > end {
            push_gap(&mut out);
        }
        out.push_str(text.get(place.clone())?);
        end = place.end;
    }
    if end < text.trim_end().len() {
        push_gap(&mut out);
    }
    (!places.is_empty()).then(|| out.trim().to_owned())
}

fn push_gap(out: &mut String) {
    if !out.is_empty() && !out.ends_with('\n') {
        out.push('\n');
    }
    if !out.trim_end().ends_with(GAP) {
        out.push_str(GAP);
        out.push('\n');
    }
}

/// Returns the beginning of a message on one line.
fn clip_beginning(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let head = text_truncation::word_prefix(&line, LISTED_BYTES);
    if head.len() < line.len() { format!("{head}…") } else { head.to_owned() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn chosen(said: &[String], room: usize) -> RetainedPrompts {
        RetainedPrompts::select_quotes(said, (Vec::new(), 0), room)
    }

    #[test]
    fn standing_instructions_are_recognized_in_user_messages() {
        for text in ["Always use tabs.", "no, the other one", "Do not push", "we DON’T log that"]
        {
            assert!(is_rule(text), "{text}");
        }
        for text in ["the waste is nothing", "what does it do?", "neverland"] {
            assert!(!is_rule(text), "{text}");
        }
    }

    #[test]
    fn compaction_keeps_an_instruction_inside_a_long_paste() {
        let paste = "2026-11-22 12:00 the log line says the very same thing again\n".repeat(400);
        let said = [format!("Look at this:\n{paste}Never delete the fixtures.\n{paste}")];
        let words = chosen(&said, 300);
        assert!(words.verbatim[0].contains("Never delete the fixtures."), "{words:?}");
        assert!(words.verbatim[0].contains(GAP) && words.verbatim[0].len() < 3_000);
    }

    #[test]
    fn compaction_prefers_unique_user_messages_over_repetitive_ones() {
        let mut said: Vec<String> = (0..100)
            .map(|turn| format!("Go on with step {turn} of the list, please, as before."))
            .collect();
        said[10] = "The staging database is called heron-blue.".to_owned();
        let words = chosen(&said, 400);
        assert!(words.verbatim.iter().any(|it| it.contains("heron-blue")), "{words:?}");
        assert!(words.verbatim.last().unwrap().contains("step 99"), "the newest stays");
        let all = words.verbatim.len() + words.listed.len() + words.left as usize;
        assert_eq!(all, 100, "nothing is dropped without a word");
    }

    proptest! {
        #[test]
        fn quoted_user_messages_are_verbatim_and_fit_the_token_budget(
            said in prop::collection::vec(".{0,40}|[a-z .\n]{0,3000}|always [a-z]{3,9}", 0..20),
            room in 16..800_usize,
        ) {
            let words = chosen(&said, room);
            let quoted: usize = words.verbatim.iter().map(|text| tokens::estimate(text)).sum();
            prop_assert!(quoted <= room + 4 * said.len(), "{} of {}", quoted, room);
            for text in &words.verbatim {
                let parts = || text.split(GAP).map(str::trim);
                prop_assert!(said.iter().any(|said| parts().all(|part| said.contains(part))), "{text}");
            }
        }

        #[test]
        fn user_messages_that_fit_the_budget_are_retained_whole(said in prop::collection::vec("[a-z]{1,9}( [a-z]{1,9}){0,9}", 0..20)) {
            prop_assert_eq!(chosen(&said, 20_000).verbatim, said);
        }
    }
}
