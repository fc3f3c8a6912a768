//! Compares patterns with the commands, skills and tasks that exist.

use std::collections::HashSet;

use super::{
    history::ExistingRecipe,
    pattern::{Pattern, PatternStep},
    turns::Turns,
    word_tokens::split_tokens,
};

/// Share of a chore's fixed words that a text must hold to do that chore. Texts that do a chore hold most of them,
/// others hardly any.
const CHORE_WORDS: f32 = 0.27;
/// Share of a chore's steps of which the text must hold a word, as a fraction: a text about `git commit` and `git push`
/// does not do every chore that ends with them.
const CHORE_STEPS: (usize, usize) = (2, 3);

/// Shortest word that can be another one without its ending, in bytes.
const MIN_STEM_BYTES: usize = 5;

/// Returns the recipe that does what a pattern does: the words of its commands and paths are in the recipe's text, those
/// of most steps among them. Names and languages say nothing.
pub(super) fn find_existing<'a>(
    pattern: &Pattern,
    turns: &Turns,
    existing: &'a [ExistingRecipe],
) -> Option<&'a ExistingRecipe> {
    let vocabulary = &turns.steps.vocabulary;
    let words = |step: &PatternStep| -> HashSet<String> {
        let words = step.template.literal_words(vocabulary);
        let words = words.into_iter().map(|token| vocabulary.text(token).to_lowercase());
        words.filter(|word| word.chars().nth(1).is_some()).collect()
    };
    let steps: Vec<HashSet<String>> = pattern.steps.iter().map(words).collect();
    existing.iter().find(|recipe| does_chore(&recipe.text, &steps))
}

/// Returns whether a text does a chore whose steps have these fixed words.
fn does_chore(text: &str, steps: &[HashSet<String>]) -> bool {
    let words: HashSet<String> = split_tokens(text).map(str::to_lowercase).collect();
    let is_held = |word: &String| words.iter().any(|it| is_same_word(it, word));
    let fixed: HashSet<&String> = steps.iter().flatten().collect();
    let held = fixed.iter().filter(|word| is_held(word)).count();
    // A word that all steps have, such as `git`, says nothing of one of them.
    let is_shared = |word: &String| steps.len() > 1 && steps.iter().all(|step| step.contains(word));
    let is_covered = |step: &&HashSet<String>| {
        let mut own = step.iter().filter(|word| !is_shared(word)).peekable();
        own.peek().is_none() || own.any(is_held)
    };
    let covered = steps.iter().filter(is_covered).count();
    held > 0
        && held as f32 >= CHORE_WORDS * fixed.len() as f32
        && covered * CHORE_STEPS.1 >= steps.len() * CHORE_STEPS.0
}

/// Reports whether two words are the same except for an ending.
fn is_same_word(one: &str, other: &str) -> bool {
    let is_long = one.len().min(other.len()) >= MIN_STEM_BYTES;
    one == other || (is_long && (one.starts_with(other) || other.starts_with(one)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn existing_text_covers_a_repetition_only_if_it_has_words_of_most_steps() {
        let steps = |all: &[&str]| -> Vec<HashSet<String>> {
            let words = |step: &&str| step.split(' ').map(str::to_owned).collect();
            all.iter().map(words).collect()
        };
        let hotfix = steps(&[
            "git checkout hotfix",
            "git commit am",
            "git push origin hotfix",
            "git checkout master",
        ]);
        assert!(!does_chore("git commit -qam x\ngit push -q origin HEAD", &hotfix));
        assert!(does_chore("Check out a branch with git checkout, commit and push it.", &hotfix));
        let release = steps(&["changelog md", "git commit release", "git tag", "git push"]);
        assert!(does_chore("Write CHANGELOG.md, commit, tag and push.", &release));
        assert!(!does_chore("Draw the modules as a diagram.", &release));
    }
}
