//! What is known of a rule without building its pattern, which costs a hundred times as much.
//!
//! For built-in rules all this stands in the table they come in ([`super::builtin`]).

use regex_automata::util::syntax;
use regex_syntax::hir::{Hir, Look, literal::Extractor};

use super::{MAX_REACH, SecretRule, shape::Run};

/// Deepest nesting of groups in a pattern.
const MAX_NESTING: u32 = 64;
/// The most bytes that are searched around a keyword when a pattern has no longest match.
const MAX_WINDOW: usize = 512;
/// Beginnings of a pattern that are compared with its keywords.
const MAX_BEGINNINGS: usize = 512;
/// A match that fills its window makes the window grow to at most this.
pub(super) const MAX_GROWN_WINDOW: usize = 16 << 10;

/// The plan that says where to search for a rule, and what has to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SearchPlan {
    /// The place where matches stand.
    pub(crate) place: SearchPlace,
    /// A match ends at most this far behind its start.
    pub(crate) longest: usize,
    /// The run of characters that every match holds.
    pub(crate) run: Run,
}

/// The place to search for a rule when one of its keywords stands in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SearchPlace {
    /// Every match begins with a keyword: nowhere else.
    AtKeyword,
    /// Every match begins with a keyword that begins a word.
    AtWord,
    /// Every match begins with a keyword that begins a word, by the rule's own promise: it is for many services, and rules for one go first.
    AtName,
    /// That many bytes on each side of it.
    Around(usize),
}

impl SearchPlan {
    /// A pattern that cannot be read is searched nowhere; building it says why.
    pub(crate) fn new(rule: &SecretRule) -> Self {
        let Ok(pattern) = syntax::parse_with(&rule.pattern, &bytes_syntax()) else {
            let run = Run { length: 1, alphabets: 0 };
            return Self { place: SearchPlace::AtKeyword, longest: 0, run };
        };
        let longest = pattern.properties().maximum_len().unwrap_or(MAX_GROWN_WINDOW);
        Self {
            place: search_place(rule, &pattern),
            longest: longest.min(MAX_GROWN_WINDOW),
            run: Run::from_pattern(&pattern),
        }
    }
}

/// Patterns are over bytes, and letters are those of ASCII.
pub(super) fn bytes_syntax() -> syntax::Config {
    syntax::Config::new().unicode(false).utf8(false).nest_limit(MAX_NESTING)
}

/// Returns the place where matches of the rule can stand.
fn search_place(rule: &SecretRule, pattern: &Hir) -> SearchPlace {
    let properties = pattern.properties();
    if rule.at_keyword {
        return SearchPlace::AtName;
    }
    if begins_with_keyword(rule) {
        let at_word = properties.look_set_prefix().contains(Look::WordAscii);
        let is_word_like = |word: &String| word.as_bytes().first().is_some_and(is_word);
        return if at_word && rule.keywords.iter().all(is_word_like) {
            SearchPlace::AtWord
        } else {
            SearchPlace::AtKeyword
        };
    }
    let longest = properties.maximum_len().unwrap_or(MAX_WINDOW);
    SearchPlace::Around(longest.min(MAX_WINDOW).max(rule.reach.min(MAX_REACH)))
}

/// True if `\b` counts the byte as a part of a word.
pub(super) fn is_word(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || *byte == b'_'
}

/// True if every match of the pattern begins with one of the rule's keywords.
fn begins_with_keyword(rule: &SecretRule) -> bool {
    // Keywords are compared without letter case anyway, and one spelling is enough to compare.
    let pattern = rule.pattern.strip_prefix("(?i)").unwrap_or(&rule.pattern);
    let Ok(hir) = syntax::parse_with(pattern, &bytes_syntax()) else { return false };
    let mut extractor = Extractor::new();
    extractor.limit_total(MAX_BEGINNINGS);
    let beginnings = extractor.extract(&hir);
    beginnings.literals().is_some_and(|beginnings| {
        beginnings.iter().all(|beginning| {
            let beginning = beginning.as_bytes().to_ascii_lowercase();
            let begins_with =
                |word: &String| beginning.starts_with(word.to_ascii_lowercase().as_bytes());
            rule.keywords.iter().any(begins_with)
        })
    })
}
