//! The steps of a turn: its commands and changed files, each once, and how similar two of them are.

use std::collections::HashMap;

use super::{
    history::PastCall,
    word_tokens::{Vocabulary, WordToken},
};

/// Similarity from which two steps are the same step with other values.
pub(super) const SAME_STEP: f32 = 0.5;
/// Similarity of two commands whose first two words are the same.
const SAME_COMMAND: f32 = 0.62;
/// Similarity of two files of one folder whose endings are the same.
const SAME_FOLDER: f32 = 0.6;
/// Most steps of one turn that are looked at.
pub(super) const MAX_STEPS: usize = 24;
/// Longest command that can be a step, in bytes.
const MAX_COMMAND_BYTES: usize = 1 << 10;

/// The number of a distinct step.
pub(super) type StepId = u32;

/// The kind of action in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum StepKind {
    Command,
    Edit,
    Write,
}

/// A distinct step, wherever it occurs.
pub(super) struct ChoreStep {
    pub(super) kind: StepKind,
    /// The whole text, cut into tokens.
    pub(super) tokens: Vec<WordToken>,
    /// The words among them.
    words: Vec<WordToken>,
    /// Tokens up to the first and second white space.
    heads: [usize; 2],
    /// Tokens up to the last slash.
    folder: usize,
}

/// All distinct steps of a history.
#[derive(Default)]
pub(super) struct Steps {
    numbers: HashMap<(StepKind, String), StepId>,
    all: Vec<ChoreStep>,
    pub(super) vocabulary: Vocabulary,
}

impl Steps {
    /// Returns the distinct steps of calls, in the order of their first occurrence.
    pub(super) fn of_calls(&mut self, calls: &[PastCall]) -> Vec<StepId> {
        let mut ids = Vec::new();
        let mut add = |id: StepId| {
            if !ids.contains(&id) && ids.len() < MAX_STEPS {
                ids.push(id);
            }
        };
        for call in calls {
            match call {
                PastCall::Command(line) => {
                    split_commands(line)
                        .into_iter()
                        .for_each(|command| add(self.intern_step(StepKind::Command, command)));
                }
                PastCall::Edit(path) => add(self.intern_step(StepKind::Edit, path)),
                PastCall::Write(path) => add(self.intern_step(StepKind::Write, path)),
            }
        }
        ids
    }

    pub(super) fn get(&self, id: StepId) -> Option<&ChoreStep> {
        self.all.get(id as usize)
    }

    fn intern_step(&mut self, kind: StepKind, text: &str) -> StepId {
        let key = (kind, text.to_owned());
        if let Some(known) = self.numbers.get(&key) {
            return *known;
        }
        let tokens = self.vocabulary.tokenize(text);
        let words = tokens.iter().copied().filter(|it| self.vocabulary.is_word(*it)).collect();
        let mut spaces =
            tokens.iter().enumerate().filter(|(_, it)| self.vocabulary.text(**it) == " ");
        let heads = [0, 1].map(|_| spaces.next().map_or(tokens.len(), |(at, _)| at));
        let id = StepId::try_from(self.all.len()).unwrap_or(StepId::MAX);
        let folder = tokens.iter().rposition(|it| self.vocabulary.text(*it) == "/").unwrap_or(0);
        self.all.push(ChoreStep { kind, tokens, words, heads, folder });
        self.numbers.insert(key, id);
        id
    }

    /// Returns how similar two steps are, from 0 to 1.
    pub(super) fn similarity(&self, one: StepId, other: StepId) -> f32 {
        if one == other {
            return 1.0;
        }
        let (Some(one), Some(other)) = (self.get(one), self.get(other)) else { return 0.0 };
        match (one.kind, other.kind) {
            (StepKind::Command, StepKind::Command) => one.command_similarity(other),
            (StepKind::Command, _) | (_, StepKind::Command) => 0.0,
            (a, b) => one.path_similarity(other) * if a == b { 1.0 } else { 0.95 },
        }
    }

    /// Returns keys that similar steps have in common: one of two steps' keys is the same if they are similar.
    pub(super) fn similarity_keys(&self, id: StepId) -> Vec<(StepKind, WordToken, WordToken)> {
        let Some(step) = self.get(id) else { return Vec::new() };
        let pair = |kind, pair: (Option<&WordToken>, Option<&WordToken>)| match pair {
            (Some(a), Some(b)) => Some((kind, *a, *b)),
            _ => None,
        };
        let words = &step.words;
        match step.kind {
            StepKind::Command => words
                .iter()
                .skip(1)
                .take(KEYED_WORDS)
                .filter_map(|word| pair(StepKind::Command, (words.first(), Some(word))))
                .chain(
                    pair(StepKind::Command, (words.first(), words.first()))
                        .filter(|_| words.len() == 1),
                )
                .collect(),
            StepKind::Edit | StepKind::Write => words
                .iter()
                .take(words.len().saturating_sub(1))
                .filter_map(|word| pair(StepKind::Edit, (words.last(), Some(word))))
                .chain(
                    pair(StepKind::Edit, (words.first(), words.first()))
                        .filter(|_| words.len() == 1),
                )
                .collect(),
        }
    }
}

/// Words behind the first of a command that find similar commands.
const KEYED_WORDS: usize = 8;

impl ChoreStep {
    /// Returns the first two words of a command.
    pub(super) fn command_head(&self) -> Option<&[WordToken]> {
        (self.kind == StepKind::Command).then(|| self.tokens.get(..self.heads[1]))?
    }

    fn command_similarity(&self, other: &Self) -> f32 {
        let [first, second] = self.heads;
        let [other_first, other_second] = other.heads;
        if self.tokens.get(..first) != other.tokens.get(..other_first) {
            return 0.0;
        }
        let is_same_command =
            second > first && self.tokens.get(..second) == other.tokens.get(..other_second);
        let dice = dice_coefficient(&self.words, &other.words);
        if is_same_command { dice.max(SAME_COMMAND) } else { dice }
    }

    fn path_similarity(&self, other: &Self) -> f32 {
        if self.words.last() != other.words.last() {
            return 0.0;
        }
        // The ending alone says little.
        let [one, two] =
            [&self.words, &other.words].map(|it| it.split_last().map_or(&it[..0], |(_, it)| it));
        let dice = dice_coefficient(one, two);
        let is_same_folder =
            self.folder > 0 && self.tokens.get(..self.folder) == other.tokens.get(..other.folder);
        if is_same_folder { dice.max(SAME_FOLDER) } else { dice }
    }
}

/// The share of words that two sequences have in common, in order.
fn dice_coefficient(one: &[WordToken], other: &[WordToken]) -> f32 {
    let total = one.len() + other.len();
    if total == 0 {
        return 0.0;
    }
    let mut row = vec![0_u16; other.len() + 1];
    for a in one {
        let mut diagonal = 0;
        for (at, b) in other.iter().enumerate() {
            let [left, above] = [row[at], row[at + 1]];
            row[at + 1] = if a == b { diagonal + 1 } else { above.max(left) };
            diagonal = above;
        }
    }
    2.0 * f32::from(row[other.len()]) / total as f32
}

/// Cuts a line for the shell into its commands, at `&&`, `;` and line ends outside of quotes. A leading `cd` is left out.
fn split_commands(line: &str) -> Vec<&str> {
    let mut commands = Vec::new();
    let (mut start, mut quote, mut is_escaped) = (0, None, false);
    let mut skip = false;
    for (at, c) in line.char_indices() {
        if std::mem::take(&mut skip) {
            continue;
        }
        let behind = line.get(at..).unwrap_or_default();
        let width = match (quote, c) {
            _ if std::mem::take(&mut is_escaped) => 0,
            (None | Some('"'), '\\') => {
                is_escaped = true;
                0
            }
            (Some(open), c) if open == c => {
                quote = None;
                0
            }
            (None, '"' | '\'') => {
                quote = Some(c);
                0
            }
            (None, '&') if behind.starts_with("&&") => 2,
            (None, ';' | '\n') => 1,
            _ => 0,
        };
        if width > 0 {
            commands.push(line.get(start..at).unwrap_or_default());
            start = at + width;
            skip = width == 2;
        }
    }
    commands.push(line.get(start..).unwrap_or_default());
    let is_step = |it: &&str| !it.is_empty() && it.len() <= MAX_COMMAND_BYTES;
    let is_move = |it: &&str| *it == "cd" || it.starts_with("cd ");
    let commands: Vec<&str> = commands.into_iter().map(str::trim).filter(is_step).collect();
    commands.into_iter().filter(|it| !is_move(it)).collect()
}
