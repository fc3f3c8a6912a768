//! Recognizes an answer that says what it would do, but does not do it.
//!
//! Small models describe the call that they should make. Use this only for a turn in which no tool has run: later,
//! such a sentence may be an offer.

/// Longer answers say more than an intention.
const MAX_CHARS: usize = 600;

const INTENTIONS: [&str; 8] = [
    "i will ",
    "i'll ",
    "i need to ",
    "i should ",
    "i would ",
    "let me ",
    "let's ",
    "i am going to ",
];
const DEEDS: [&str; 9] =
    ["read", "look", "check", "open", "search", "run", "call", "use the", "examine"];

/// Whether `text` announces work with tools and nothing else.
#[must_use]
pub fn announces(text: &str) -> bool {
    let text = text.trim();
    if text.chars().count() > MAX_CHARS || text.ends_with('?') {
        return false;
    }
    let text = text.to_lowercase().replace('\u{2019}', "'");
    INTENTIONS.iter().any(|intention| {
        let after = text.split_once(intention).map(|(_, after)| after.trim_start());
        after.is_some_and(|after| {
            let words = after.trim_start_matches("first ").trim_start_matches("now ");
            DEEDS.iter().any(|deed| words.starts_with(deed))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_intention_is_told_from_an_answer() {
        for text in [
            "To determine which version is named, I need to read it. The file is at /x/README.md.",
            "I'll check the tests first.",
            "Let\u{2019}s look at the file.",
        ] {
            assert!(announces(text), "{text}");
        }
        for text in [
            "The version is 4.2.",
            "I would rename it; shall I read the callers?",
            "You need to read the manual.",
            "I will not do that.",
        ] {
            assert!(!announces(text), "{text}");
        }
        assert!(!announces(&format!(
            "I need to read it. {}",
            "Here is the whole answer. ".repeat(40)
        )));
    }
}
