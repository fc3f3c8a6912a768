//! Detects a turn that goes in circles or claims too much.
//!
//! Each detector is a small state that receives what happened and says whether it is the sign it watches for. The
//! turn machine decides what follows from a sign (a corrective message, the end of the turn). All state is bounded,
//! whatever a model streams.

mod announce;
mod calls;
mod check;
mod claim;
mod denial;
mod question;
mod repetition;
mod runner;

pub use announce::announces;
pub use calls::{PatchSpiral, Repeat, SameCall};
pub use check::RedCheck;
pub use claim::claims_success;
pub use denial::denies_change;
pub use question::{
    Intent, alluded_files, asks_about_files, asks_only, named_files, named_folders, order_files,
    wanted, wants_change, wants_run,
};
pub use repetition::Repetition;

/// Shorter answers say too little to be judged.
const MIN_GREETING_CHARS: usize = 10;

/// Longer answers have content; a friendly phrase in them is no sign.
const MAX_GREETING_CHARS: usize = 300;

/// How a model opens a conversation.
const GREETINGS: [&str; 6] = [
    "how can i help",
    "how can i assist",
    "what would you like",
    "what can i do for you",
    "i'm ready to",
    "hi there",
];

/// Whether `text` greets as if nothing had been asked: small models fall back to this after a
/// tool's result. Only means something after a round with tools.
#[must_use]
pub fn greets(text: &str) -> bool {
    let text = text.trim();
    let length = text.chars().take(MAX_GREETING_CHARS + 1).count();
    if !(MIN_GREETING_CHARS..=MAX_GREETING_CHARS).contains(&length) {
        return false;
    }
    let text = text.to_lowercase().replace('’', "'");
    GREETINGS.iter().any(|greeting| {
        text.match_indices(greeting).any(|(start, _)| !ends_in_letter(&text, start))
    })
}

/// Whether the part of `text` before `end` ends within a word.
fn ends_in_letter(text: &str, end: usize) -> bool {
    text.get(..end).is_some_and(|before| before.ends_with(char::is_alphanumeric))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greeting_is_told_from_an_answer() {
        for text in [
            "Hi there! How can I help you today?",
            "Hello! I’m ready to assist with your project.",
            "What would you like me to do?",
        ] {
            assert!(greets(text), "{text}");
        }
        let report = "The parser now accepts empty lines and the tests are green. ".repeat(6);
        for text in [
            "Hi there",
            "The delphi there is an old one.",
            "I renamed the function in all three files.",
            &format!("{report}What would you like me to do next?"),
        ] {
            assert!(!greets(text), "{text}");
        }
    }
}
