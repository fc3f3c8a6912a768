//! Finds chores that a person has had done again and again, from stored sessions: no model, no clock, no network.
//!
//! Two turns resemble each other if most of their commands and changed files do, whatever their order and their
//! messages' language. What differs between the occurrences of a chore becomes its arguments. There are no lists of
//! words: a command is everyday work if the same person also runs it beside other work.

mod describe;
mod draft;
mod existing;
mod history;
mod messages;
mod pattern;
mod slots;
mod steps;
mod template;
mod turns;
mod word_tokens;

#[cfg(test)]
mod tests;

pub use self::{
    describe::{RepeatedAction, RepeatedArgument, RepeatedStep},
    draft::draft_from_repetition,
    history::{ExistingRecipe, PastCall, PastSession, PastTurn},
};
use self::{existing::find_existing, pattern::Pattern, turns::Turns};

/// A chore that was done several times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repetition {
    /// A name for its task: a word of the person's messages, or of its commands.
    pub name: String,
    /// The occurrences, the oldest first, as indexes of a session and of a turn in its list.
    pub occurrences: Vec<(usize, usize)>,
    /// The steps that all occurrences have.
    pub steps: Vec<RepeatedStep>,
    /// Steps that some occurrences lack.
    pub optional_steps: Vec<RepeatedStep>,
    /// The values that differ.
    pub arguments: Vec<RepeatedArgument>,
    /// A word for each step: `changelog`, `tag`, `push`.
    pub labels: Vec<String>,
}

impl Repetition {
    /// Returns what names the chore again when it has occurred more often: its labels in alphabetical order.
    #[must_use]
    pub fn key(&self) -> String {
        let mut labels: Vec<&str> = self.labels.iter().map(String::as_str).collect();
        gnoma_core::sort::sort_items(&mut labels);
        labels.join(" ")
    }

    /// Returns the chore in a few words: `release VERSION (changelog, tag, push)`.
    #[must_use]
    pub fn summary(&self) -> String {
        let mut text = self.name.clone();
        for argument in &self.arguments {
            text.push(' ');
            text.push_str(&argument.name.to_uppercase());
        }
        let others: Vec<&str> =
            self.labels.iter().map(String::as_str).filter(|it| *it != self.name).collect();
        if let Some(shown) = others.get(..others.len().min(MAX_LABELS)).filter(|it| !it.is_empty())
        {
            let more = if others.len() > shown.len() { ", …" } else { "" };
            text.push_str(&format!(" ({}{more})", shown.join(", ")));
        }
        text
    }
}

/// Most labels in a summary.
const MAX_LABELS: usize = 4;

/// Longest history in which each occurrence of a chore is compared with all turns again.
const MAX_THOROUGH_SESSIONS: usize = 200;

/// The chores of a history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundChores {
    /// Those that no recipe does yet, the most particular first.
    pub new: Vec<Repetition>,
    /// Those that a recipe does already, each with the recipe's name.
    pub existing: Vec<(Repetition, String)>,
}

/// Returns the chores in a history that no recipe does yet, the most particular first. The sessions must be in the
/// order of their time.
#[must_use]
pub fn find_repetitions(history: &[PastSession], existing: &[ExistingRecipe]) -> Vec<Repetition> {
    find_chores(history, existing).new
}

/// Returns all chores in a history. The sessions must be in the order of their time.
#[must_use]
pub fn find_chores(history: &[PastSession], existing: &[ExistingRecipe]) -> FoundChores {
    let turns = Turns::of_history(history, existing);
    let mut patterns: Vec<Pattern> = Vec::new();
    let mut is_seen = vec![false; turns.all.len()];
    for seed in 0..turns.all.len() {
        if is_seen[seed] {
            continue;
        }
        let Some(pattern) = turns.pattern_around(seed, history) else { continue };
        // In long histories, the other occurrences would give the same pattern again.
        if history.len() > MAX_THOROUGH_SESSIONS {
            pattern.turns.iter().for_each(|turn| is_seen[*turn] = true);
        }
        patterns.push(pattern);
    }
    describe_chores(patterns, &turns, history, existing)
}

/// Returns the chore that the last turn of a session belongs to, if no recipe does it yet.
#[must_use]
pub fn find_repetition_of(
    history: &[PastSession],
    session: &str,
    existing: &[ExistingRecipe],
) -> Option<Repetition> {
    let turns = Turns::of_history(history, existing);
    let is_of_session =
        |at: usize| history.get(at).is_some_and(|session_at| session_at.id == session);
    let seed = turns.all.iter().rposition(|turn| is_of_session(turn.session))?;
    let turn = turns.all.get(seed)?;
    let is_last = history.get(turn.session).is_some_and(|it| it.turns.len() == turn.at + 1);
    let pattern = turns.pattern_around(seed, history).filter(|_| is_last)?;
    describe_chores(vec![pattern], &turns, history, existing).new.pop()
}

/// Describes patterns: none that overlaps a more particular one.
fn describe_chores(
    mut patterns: Vec<Pattern>,
    turns: &Turns,
    history: &[PastSession],
    existing: &[ExistingRecipe],
) -> FoundChores {
    gnoma_core::sort::by_key(&mut patterns, |it| std::cmp::Reverse((it.score, it.turns.len())));
    let mut is_covered = vec![false; turns.all.len()];
    patterns.retain(|pattern| {
        let is_new = !pattern.turns.iter().any(|turn| is_covered[*turn]);
        if is_new {
            pattern.turns.iter().for_each(|turn| is_covered[*turn] = true);
        }
        is_new
    });
    let mut found = FoundChores::default();
    for pattern in &patterns {
        let described = describe_repetition(pattern, turns, history);
        match find_existing(pattern, turns, existing) {
            Some(recipe) => found.existing.push((described, recipe.name.clone())),
            None => found.new.push(described),
        }
    }
    found
}

fn describe_repetition(pattern: &Pattern, turns: &Turns, history: &[PastSession]) -> Repetition {
    let arguments = turns.describe_arguments(pattern, history);
    let places = pattern.turns.iter().filter_map(|number| turns.all.get(*number));
    let steps = |steps: &[pattern::PatternStep]| {
        steps.iter().map(|step| turns.describe_step(step, &arguments)).collect()
    };
    Repetition {
        name: turns.propose_name(pattern, history),
        occurrences: places.map(|turn| (turn.session, turn.at)).collect(),
        steps: steps(&pattern.steps),
        optional_steps: steps(&pattern.optional),
        labels: turns.step_labels(pattern),
        arguments,
    }
}
