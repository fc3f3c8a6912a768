//! Compares patterns with the commands, skills and tasks that exist.

use std::collections::HashSet;

use super::{history::ExistingRecipe, pattern::Pattern, turns::Turns, word_tokens::split_tokens};

/// Share of a chore's fixed words that a text must hold to do that chore. Texts that do a chore hold most of them,
/// others hardly any.
const CHORE_WORDS: f32 = 0.27;

/// Shortest word that can be another one without its ending, in bytes.
const MIN_STEM_BYTES: usize = 5;

/// Returns the recipe that does what a pattern does: the words of its commands and paths are in the recipe's text.
/// Names and languages say nothing.
pub(super) fn find_existing<'a>(
    pattern: &Pattern,
    turns: &Turns,
    existing: &'a [ExistingRecipe],
) -> Option<&'a ExistingRecipe> {
    let vocabulary = &turns.steps.vocabulary;
    let fixed: HashSet<String> = pattern
        .steps
        .iter()
        .flat_map(|step| step.template.literal_words(vocabulary))
        .map(|token| vocabulary.text(token).to_lowercase())
        .filter(|word| word.chars().nth(1).is_some())
        .collect();
    existing.iter().find(|recipe| {
        let words: HashSet<String> = split_tokens(&recipe.text).map(str::to_lowercase).collect();
        let held =
            fixed.iter().filter(|word| words.iter().any(|it| is_same_word(it, word))).count();
        held > 0 && held as f32 >= CHORE_WORDS * fixed.len() as f32
    })
}

/// Reports whether two words are the same except for an ending.
fn is_same_word(one: &str, other: &str) -> bool {
    let is_long = one.len().min(other.len()) >= MIN_STEM_BYTES;
    one == other || (is_long && (one.starts_with(other) || other.starts_with(one)))
}
