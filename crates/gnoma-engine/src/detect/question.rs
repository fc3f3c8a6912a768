//! Whether what a person said is only a question, and which files it names.
//!
//! Small models edit files when they were asked about them. Judged word by word, in English: where it
//! is in doubt, it is no question, and everything stays allowed.

/// Words that ask, with a question mark or without.
const ASKING: [&str; 8] = ["how", "what", "what's", "which", "who", "whose", "why", "whom"];

/// Words that may open a statement as well: only a question mark decides.
const OPENINGS: [&str; 12] =
    ["are", "did", "do", "does", "had", "has", "have", "is", "was", "were", "when", "where"];

/// Wishes to be told.
const TELLING: [&str; 5] = ["describe", "explain", "summarise", "summarize", "tell"];

/// Deeds that change something, by their beginnings.
const CHANGING: [&str; 27] = [
    "add",
    "adjust",
    "amend",
    "chang",
    "clean",
    "convert",
    "correct",
    "creat",
    "delet",
    "drop",
    "edit",
    "fix",
    "generat",
    "implement",
    "improv",
    "insert",
    "make",
    "mend",
    "modif",
    "refactor",
    "remov",
    "renam",
    "repair",
    "replac",
    "rewrit",
    "solve",
    "updat",
];

/// Deeds that mean a change of a file wherever they stand as they are.
const ORDERS: [&str; 13] = [
    "adjust", "change", "correct", "delete", "edit", "fix", "modify", "refactor", "remove",
    "rename", "repair", "replace", "update",
];

/// Questions that ask politely for a deed.
const POLITE: [&str; 6] = ["can", "could", "may", "please", "will", "would"];

/// Past forms of deeds: what was done is asked about, not wanted.
const REPORTED: [&str; 5] = ["did", "has", "have", "was", "were"];

/// Words behind which a deed is a thing.
const NAMING: [&str; 9] = ["a", "an", "its", "last", "my", "that", "the", "this", "your"];

/// They stand among so many words at the beginning.
const REPORTED_WITHIN: usize = 4;

/// Letters of a file name's ending.
const MAX_EXTENSION_CHARS: usize = 5;

/// A sentence: its words in lower case, and whether it ends in a question mark.
#[derive(Default)]
struct Sentence {
    words: Vec<String>,
    is_asked: bool,
}

/// Whether `text` asks for an answer and for nothing to be done.
#[must_use]
pub fn asks_only(text: &str) -> bool {
    let sentences = sentences(text);
    !sentences.is_empty() && sentences.iter().all(Sentence::asks)
}

/// Whether `text` wants something to be changed.
#[must_use]
pub fn wants_change(text: &str) -> bool {
    sentences(text).iter().any(Sentence::wants)
}

/// The sentences. A point within a word ends none.
fn sentences(text: &str) -> Vec<Sentence> {
    let mut all = vec![Sentence::default()];
    for word in text.split_whitespace() {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '/'));
        if let Some(last) = all.last_mut() {
            if !bare.is_empty() {
                last.words.push(bare.to_lowercase().replace('\u{2019}', "'"));
            }
            last.is_asked = word.ends_with('?');
        }
        if word.ends_with(['.', '!', '?', ';']) {
            all.push(Sentence::default());
        }
    }
    all.retain(|sentence| !sentence.words.is_empty());
    all
}

impl Sentence {
    fn asks(&self) -> bool {
        let Some(first) = self.words.first().map(String::as_str) else { return false };
        let has = |known: &[&str]| self.words.iter().any(|word| known.contains(&word.as_str()));
        if POLITE.contains(&first) || has(&["please"]) {
            return false;
        }
        let asks = ASKING.contains(&first)
            || TELLING.contains(&first)
            || self.is_asked && (OPENINGS.contains(&first) || has(&ASKING));
        // "Is it fixed?" asks how it is.
        let wants = |word: &str| {
            !word.ends_with("ed") && CHANGING.iter().any(|deed| word.starts_with(deed))
        };
        // "After your change" names a thing.
        let before = std::iter::once("").chain(self.words.iter().map(String::as_str));
        let mut words = before.zip(&self.words);
        asks && (self.reports()
            || !words.any(|(before, word)| wants(word) && !NAMING.contains(&before)))
    }

    fn wants(&self) -> bool {
        let orders = |word: &str| ORDERS.contains(&word);
        let mut words = self.words.iter().map(String::as_str);
        !self.reports() && !self.asks() && words.any(orders)
    }

    /// It asks for what was done already.
    fn reports(&self) -> bool {
        self.words.iter().take(REPORTED_WITHIN).any(|word| REPORTED.contains(&word.as_str()))
    }
}

/// The files that `text` names: words with an ending as file names have it.
#[must_use]
pub fn named_files(text: &str) -> Vec<&str> {
    let words = text.split_whitespace().map(|word| {
        word.trim_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '/' | '.'))
            .trim_end_matches('.')
    });
    words.filter(|word| is_file_name(word)).collect()
}

fn is_file_name(word: &str) -> bool {
    // "i.e" is none, and "a.c" is rare.
    word.len() > 3
        && word.rsplit_once('.').is_some_and(|(name, ending)| {
            name.chars().any(char::is_alphabetic)
                && ending.len() <= MAX_EXTENSION_CHARS
                && ending.starts_with(|c: char| c.is_ascii_alphabetic())
                && ending.chars().all(|c| c.is_ascii_alphanumeric())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_told_from_a_task() {
        for text in [
            "Which version does README.md name?",
            "How many times does fetch in client.py try by default?",
            "Tell me which functions lib/text.js exports.",
            "What did you change?",
            "In which file is the function parse_date defined?",
            "And what does toF(0) give now?",
            "Explain how the parser works.",
            "Is the bug in pop() fixed?",
            "And what does toF(0) give after your change?",
            "Does run.sh go on after a command has failed, or does it stop?",
        ] {
            assert!(asks_only(text), "{text}");
        }
        for text in [
            "",
            "Fix it.",
            "Can you repair it?",
            "Why does test.sh fail? Fix it.",
            "shout('hi') in text.py returns None, it should return 'HI!'.",
            "Set LIMIT to 60 in jobs.py.",
            "What about renaming it to b.py?",
            "How do I fix this?",
            "Would you look at slug.js?",
            "At exactly 90 it has to print full. Fix disk.sh.",
            "to_text in a.py is wrong, correct it",
            "On line 3 the name is misspelt.",
            "When x is 90 it prints fine.",
            "Does nothing for an empty list.",
        ] {
            assert!(!asks_only(text), "{text}");
        }
    }

    #[test]
    fn an_order_to_change_is_told_from_other_words() {
        for text in ["Fix it.", "Can you repair it?", "add() is wrong. Please correct that."] {
            assert!(wants_change(text), "{text}");
        }
        for text in ["What did you change?", "Run the tests.", "Add up the sizes.", "It was fixed."]
        {
            assert!(!wants_change(text), "{text}");
        }
    }

    #[test]
    fn files_are_told_from_other_words() {
        let text =
            "Does `src/a.py` (4.2), i.e. the one beside README.md. say e.g. \"x\"? See b.rs!";
        assert_eq!(named_files(text), ["src/a.py", "README.md", "b.rs"]);
        assert_eq!(named_files("Version 4.2 of it... Why? 1.5x"), Vec::<&str>::new());
    }
}
