//! What a person wants, by their words: the type of the task, how hard it seems and what it needs. Deciding takes no
//! model and no wait; a small model may be asked too ([`model`]), and this is what counts when it fails.
//!
//! Whole words and phrases are weighed, by the table `words.tsv`: the verb of a command weighs more than the same word
//! elsewhere, the first command more than later ones, and quoted text, code and pasted logs less. The time it takes
//! grows with the length of the text up to [`MOST_TEXT_BYTES`]. Nothing here reads files or remembers anything.

mod complexity;
mod lexicon;
pub mod model;
mod need;
mod priors;
mod score;
mod table;
mod task_type;
mod text_words;

use serde::{Deserialize, Serialize};

pub use complexity::MOST_COMPLEXITY;
pub use need::{DEFAULT_TASK_MICRO_USD, TurnFacts};
pub use priors::{by_type, measured_as};
pub use task_type::{TaskType, UnknownType};
pub use text_words::MOST_TEXT_BYTES;

pub(crate) use task_type::plain_name;

use table::PhraseTable;
use text_words::ParsedText;

/// The source that said what the task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClassificationSource {
    /// The words of the request.
    Heuristic,
    /// A small model that was asked.
    Slm,
    /// The words, since the small model did not answer in time or answered nonsense.
    SlmFallback,
}

impl ClassificationSource {
    /// As it stands in reports, such as `slm_fallback`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Heuristic => "heuristic",
            Self::Slm => "slm",
            Self::SlmFallback => "slm_fallback",
        }
    }
}

/// The classification of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Classification {
    /// The type of the task.
    pub kind: TaskType,
    /// The estimated difficulty of the task, up to [`MOST_COMPLEXITY`].
    pub complexity: u8,
    /// True if tools must be called.
    pub needs_tools: bool,
    /// True if the words speak of a picture that must be seen. Pictures sent along count by [`TurnFacts::images`].
    pub needs_vision: bool,
    /// The source that decided this.
    pub decided_by: ClassificationSource,
    /// The weight of the words for each type, highest first; types they do not speak of are left out.
    pub scores: Vec<(TaskType, u32)>,
}

/// Classifies a task by its words.
#[must_use]
pub fn classify_text(text: &str) -> Classification {
    let table = PhraseTable::built_in();
    let reading = ParsedText::from_text(text, table);
    let scores = score::by_type(&reading, table);
    let kind = scores.first().map_or(TaskType::Generation, |(kind, _)| *kind);
    let hints = complexity::find_hints(&reading, table);
    Classification {
        kind,
        complexity: complexity::score_complexity(kind, &reading, &hints),
        needs_tools: needs_tools(kind, &reading, &hints),
        needs_vision: hints.picture,
        decided_by: ClassificationSource::Heuristic,
        scores,
    }
}

/// Talk, and questions that are not about this project, can be answered without looking at anything. In doubt tools
/// are needed: an arm without them would fail, while one with them only answers.
fn needs_tools(kind: TaskType, reading: &ParsedText, hints: &complexity::Hints) -> bool {
    let about_project = hints.project && !reading.has_code;
    kind != TaskType::Explain || about_project || hints.acts || !reading.names.is_empty()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kind(text: &str) -> TaskType {
        classify_text(text).kind
    }

    #[test]
    fn classifier_ignores_keywords_inside_longer_words() {
        assert_eq!(kind("show the latest address"), TaskType::Generation);
        assert_eq!(kind("prefix of a contest"), TaskType::Generation);
    }

    #[test]
    fn classifier_uses_the_verb_and_not_its_object() {
        assert_eq!(kind("fix the failing test"), TaskType::Debug);
        assert_eq!(kind("write tests for the parser"), TaskType::UnitTest);
        assert_eq!(kind("why does this crash"), TaskType::Debug);
        assert_eq!(kind("what does this function do"), TaskType::Explain);
        assert_eq!(kind("review my diff for security holes"), TaskType::SecurityReview);
    }

    #[test]
    fn classifier_ignores_negated_keywords() {
        assert_eq!(kind("refactor the parser, don't write tests"), TaskType::Refactor);
        assert_eq!(kind("explain the crash handler without debugging it"), TaskType::Explain);
    }

    #[test]
    fn code_quotes_and_file_names_are_not_commands() {
        assert_eq!(kind("explain `fix_bug` in tests/debug_test.rs"), TaskType::Explain);
        assert_eq!(kind("rename \"write tests\" to \"test writer\""), TaskType::Refactor);
        let code = "explain this:\n```\n// fix the bug, write tests, review the crash\n```";
        assert_eq!(kind(code), TaskType::Explain);
    }

    #[test]
    fn pasted_error_log_is_classified_as_debug() {
        let log = "thread 'main' panicked at src/review.rs:3:5:\nerror: write tests and review\n";
        assert_eq!(kind(log), TaskType::Debug);
    }

    #[test]
    fn classifier_marks_general_questions_as_needing_no_tools() {
        for text in [
            "what is a monad?",
            "hi",
            "explain TCP slow start",
            "the difference between Rc and Arc?",
        ] {
            assert!(!classify_text(text).needs_tools, "{text}");
        }
        for text in [
            "how does the scheduler work",
            "explain src/lib.rs",
            "add a flag",
            "yes",
            "charts stay blank",
        ] {
            assert!(classify_text(text).needs_tools, "{text}");
        }
        assert!(!classify_text("what does this do?\n```\nlet x = 1;\n```").needs_tools);
    }

    #[test]
    fn classifier_complexity_grows_with_harder_requests() {
        let easy = classify_text("fix the typo in the readme").complexity;
        let middling = classify_text("add a --verbose flag").complexity;
        let hard = classify_text(
            "redesign the distributed scheduler across the entire codebase with zero downtime",
        )
        .complexity;
        assert!(easy < middling && middling < hard, "{easy} {middling} {hard}");
        assert!(classify_text("review security").complexity >= 60);
    }

    #[test]
    fn classifier_requires_vision_for_an_attached_mockup() {
        assert!(classify_text("make it match the attached mockup").needs_vision);
        assert!(!classify_text("draw a diagram of the modules").needs_vision);
    }

    #[test]
    fn classifier_reads_start_and_end_of_a_long_prompt() {
        let filler = "lorem ipsum dolor ".repeat(100_000);
        let text = format!("{filler}\nwrite tests for the parser");
        assert_eq!(kind(&text), TaskType::UnitTest);
    }

    proptest! {
        #[test]
        fn classifier_assigns_a_task_type_to_any_text(text in "\\PC{0,400}|[`\"'>#\n a-z./:_-]{0,400}") {
            let said = classify_text(&text);
            prop_assert!(said.complexity <= MOST_COMPLEXITY);
            prop_assert!(said.complexity >= said.kind.least_complexity());
            prop_assert_eq!(&said, &classify_text(&text));
            prop_assert!(said.scores.windows(2).all(|pair| pair[0].1 >= pair[1].1));
        }

        #[test]
        fn classifier_is_case_insensitive(text in "[a-z ,.]{0,200}") {
            prop_assert_eq!(classify_text(&text), classify_text(&text.to_uppercase()));
        }
    }
}
