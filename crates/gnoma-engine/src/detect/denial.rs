//! Whether an answer says that nothing was changed.
//!
//! Judged word by word, in English: enough to doubt the answer if there was a change, and no more. Statements about
//! other things ("I did not change the tests") do not count.

/// Words that deny the deed after them.
const DENIALS: [&str; 9] =
    ["not", "didn't", "haven't", "hasn't", "never", "without", "couldn't", "wasn't", "weren't"];

/// Deeds that change something.
const DEEDS: [&str; 12] = [
    "change",
    "changed",
    "changing",
    "edit",
    "edited",
    "editing",
    "make",
    "made",
    "making",
    "modify",
    "modified",
    "modifying",
];

/// Words that mean everything, or the subject of the conversation.
const WHOLE: [&str; 5] = ["anything", "it", "code", "file", "files"];

/// Words before those that add nothing.
const FILLERS: [&str; 8] = ["any", "the", "this", "a", "single", "actual", "yet", "actually"];

/// Words after which only the rest is meant.
const REST: [&str; 5] = ["else", "other", "besides", "beyond", "except"];

/// Whether `text` says that nothing was changed, or not the file at `path`.
#[must_use]
pub fn denies_change(text: &str, path: &str) -> bool {
    let text = text.to_lowercase().replace('’', "'");
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path).to_lowercase();
    text.split(['\n', ';', '!', '?', '—']).flat_map(|part| part.split(". ")).any(|sentence| {
        let words: Vec<&str> = sentence
            .split(|c: char| c.is_whitespace() || c == ',')
            .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()))
            .filter(|word| !word.is_empty())
            .collect();
        !words.iter().any(|word| REST.contains(word))
            && (denies_deed(&words, &name) || says_no_changes(&words))
    })
}

/// "did not change anything", "haven't modified the file", "was not changed".
fn denies_deed(words: &[&str], name: &str) -> bool {
    words.iter().enumerate().any(|(at, word)| {
        if !DENIALS.contains(word) {
            return false;
        }
        let mut after = words.iter().skip(at + 1).filter(|word| !FILLERS.contains(word));
        let Some(deed) = after.next().filter(|deed| DEEDS.contains(deed)) else { return false };
        let changes = matches!(*deed, "make" | "made" | "making");
        match after.next() {
            Some(what) if changes => matches!(*what, "change" | "changes" | "edit" | "edits"),
            Some(what) => WHOLE.contains(what) || *what == name,
            // "the file was not changed"
            None => {
                !changes && words.iter().take(at).any(|word| WHOLE.contains(word) || *word == name)
            }
        }
    })
}

/// "no changes were made", "made no changes", "nothing was changed".
fn says_no_changes(words: &[&str]) -> bool {
    words.windows(2).enumerate().any(|(at, pair)| {
        let next = words.get(at + 2).copied();
        let is_state = |word: &str| matches!(word, "were" | "was" | "have" | "has" | "made");
        match pair {
            ["no", "changes" | "change" | "edits"] => {
                next.is_some_and(is_state)
                    || (next.is_none()
                        && at > 0
                        && words.get(at - 1).is_some_and(|it| *it == "made"))
            }
            ["nothing", "was" | "has"] => {
                words.iter().skip(at + 2).any(|word| DEEDS.contains(word))
            }
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_denies_the_change_is_told_from_one_that_bounds_it() {
        for text in [
            "I did not change anything.",
            "The function is right, so I didn’t modify the file.",
            "No changes were made.",
            "I made no changes",
            "Nothing was changed.",
            "I have not made any changes yet.",
            "calc.py was not changed.",
            "I haven't edited src/calc.py or calc.py. I haven't changed calc.py.",
        ] {
            assert!(denies_change(text, "src/calc.py"), "{text}");
        }
        for text in [
            "double() now returns x * 2.",
            "I changed calc.py and did not change anything else.",
            "I did not change the tests.",
            "No other changes were made.",
            "No changes to the tests were needed.",
            "The result does not change when x is 0.",
            "I edited calc.py; other.py was not changed.",
        ] {
            assert!(!denies_change(text, "src/calc.py"), "{text}");
        }
    }
}
