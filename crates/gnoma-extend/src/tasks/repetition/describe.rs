//! Describes patterns for people: a name, the arguments, the steps with the arguments in their places.

use std::collections::{HashMap, HashSet};

use super::{
    history::PastSession,
    pattern::{Pattern, PatternStep},
    slots::Values,
    steps::StepKind,
    template::TemplatePart,
    turns::Turns,
    word_tokens::split_tokens,
};
use crate::tasks::arguments::ArgumentKind;

/// Longest name that is proposed, in characters.
const MAX_NAME_CHARS: usize = 24;
/// Shortest word of messages that is proposed as a name, in characters.
const MIN_NAME_CHARS: usize = 3;
/// Name of a task that nothing else names.
const USUAL_NAME: &str = "chore";

/// The action of an occurrence in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepeatedAction {
    /// The step ran a command.
    Command,
    /// The step changed a file.
    Edit,
    /// The step wrote a file.
    Write,
}

/// A step of a chore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepeatedStep {
    /// The action of the step.
    pub action: RepeatedAction,
    /// The command or path, with `*` in the places that differ.
    pub shape: String,
    /// The command or path of the newest occurrence that has the step.
    pub example: String,
    /// The command or path with `${name}` for the arguments, if that gives each occurrence's from its values.
    pub template: Option<String>,
    /// The number of occurrences that have the step.
    pub count: usize,
}

/// An argument of a chore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepeatedArgument {
    /// The name in the steps.
    pub name: String,
    /// The type that all its values have.
    pub kind: ArgumentKind,
    /// The values, in the order of the occurrences; empty where an occurrence has none.
    pub values: Vec<String>,
}

impl Turns {
    /// Describes the arguments of a pattern.
    pub(super) fn describe_arguments(
        &self,
        pattern: &Pattern,
        history: &[PastSession],
    ) -> Vec<RepeatedArgument> {
        let mut names: Vec<String> = Vec::new();
        let mut arguments: Vec<RepeatedArgument> = Vec::new();
        for values in &pattern.arguments {
            let values = self.as_said(values, pattern, history);
            let values: Vec<String> = values.into_iter().map(Option::unwrap_or_default).collect();
            if arguments.iter().any(|it| it.values == values) {
                continue;
            }
            let kind = kind_of(&values);
            let name = free_name(&kind, &names);
            names.push(name.clone());
            arguments.push(RepeatedArgument { name, kind, values });
        }
        arguments
    }

    /// Widens values to the words of the messages that hold them, if these occur in the steps as well: `camera` to
    /// `camera.h`.
    fn as_said(&self, values: &Values, pattern: &Pattern, history: &[PastSession]) -> Values {
        let widened: Option<Values> = pattern
            .turns
            .iter()
            .zip(values)
            .map(|(number, value)| {
                let value = value.as_deref().filter(|it| !it.is_empty())?;
                let message = self.turn_message(*number, history)?;
                let word = word_around(message, value)?;
                let turn = self.all.get(*number)?;
                let is_done = turn.steps.iter().any(|id| self.text_of(*id).contains(word));
                is_done.then(|| Some(word.to_owned()))
            })
            .collect();
        widened.unwrap_or_else(|| values.clone())
    }

    fn text_of(&self, id: u32) -> String {
        self.steps.get(id).map(|step| self.steps.vocabulary.join(&step.tokens)).unwrap_or_default()
    }

    /// Describes a step of a pattern.
    pub(super) fn describe_step(
        &self,
        step: &PatternStep,
        arguments: &[RepeatedArgument],
    ) -> RepeatedStep {
        let vocabulary = &self.steps.vocabulary;
        let shape = step.template.pieces.iter().map(|piece| match piece {
            TemplatePart::Literal(token) => vocabulary.text(*token),
            TemplatePart::Slot => "*",
        });
        let texts: Vec<Option<String>> =
            step.found.iter().map(|id| id.map(|id| self.text_of(id))).collect();
        let example = texts.iter().flatten().next_back().cloned().unwrap_or_default();
        RepeatedStep {
            action: match step.kind {
                StepKind::Command => RepeatedAction::Command,
                StepKind::Edit => RepeatedAction::Edit,
                StepKind::Write => RepeatedAction::Write,
            },
            shape: shape.collect(),
            template: shared_template(&texts, arguments),
            example,
            count: step.occurrence_count(),
        }
    }

    /// Proposes a name: a word that most messages of a pattern have and few others, or else one of its commands.
    pub(super) fn propose_name(&self, pattern: &Pattern, history: &[PastSession]) -> String {
        let said =
            |number: &usize| words_of(self.turn_message(*number, history).unwrap_or_default());
        let mut counts: HashMap<String, usize> = HashMap::new();
        for word in pattern.turns.iter().flat_map(said) {
            *counts.entry(word).or_default() += 1;
        }
        let most = (pattern.turns.len() * 2).div_ceil(3);
        let values: HashSet<String> =
            pattern.arguments.iter().flatten().flatten().flat_map(|it| words_of(it)).collect();
        let mut words: Vec<(String, usize)> = counts
            .into_iter()
            .filter(|(word, count)| *count >= most && !values.contains(word))
            .collect();
        let everywhere: Vec<HashSet<String>> = if words.is_empty() {
            Vec::new()
        } else {
            let turns = history.iter().rev().take(COMPARED_SESSIONS).flat_map(|it| &it.turns);
            turns.map(|turn| words_of(&turn.message)).collect()
        };
        let outside = |word: &String| everywhere.iter().filter(|it| it.contains(word)).count();
        words.retain(|(word, count)| outside(word) <= count * 2);
        gnoma_core::sort::by_key(&mut words, |(word, count)| {
            (outside(word).saturating_sub(*count), word.clone())
        });
        words
            .into_iter()
            .map(|(word, _)| word)
            .chain(pattern.steps.iter().rev().filter_map(|step| self.label_of(step)))
            .next()
            .unwrap_or_else(|| USUAL_NAME.to_owned())
    }

    /// Labels the steps of a pattern: `tag`, `changelog`, `push`.
    pub(super) fn step_labels(&self, pattern: &Pattern) -> Vec<String> {
        let mut labels: Vec<String> = Vec::new();
        for label in pattern.steps.iter().filter_map(|step| self.label_of(step)) {
            if !labels.contains(&label) {
                labels.push(label);
            }
        }
        labels
    }

    /// The word that a step is best known by: the second word of a command, or the name of a file.
    fn label_of(&self, step: &PatternStep) -> Option<String> {
        let vocabulary = &self.steps.vocabulary;
        let mut text = String::new();
        for piece in &step.template.pieces {
            match piece {
                TemplatePart::Literal(token) => text.push_str(vocabulary.text(*token)),
                TemplatePart::Slot => text.push('*'),
            }
        }
        let stem = |path: &str| {
            let name = path.rsplit('/').next().unwrap_or(path);
            let stem = name.split('.').find(|it| !it.is_empty()).unwrap_or(name);
            let is_plain = stem.chars().count() >= 2
                && stem.chars().all(|c| c.is_alphanumeric() || "-_".contains(c));
            is_plain.then(|| stem.to_lowercase())
        };
        let label = match step.kind {
            StepKind::Command => {
                let mut words = text.split_whitespace().filter(|it| !it.starts_with('-'));
                let program = words.next()?;
                let verb = words.next().filter(|it| !it.contains(['*', '=', '"', '\'', ':', '$']));
                verb.and_then(stem).or_else(|| stem(program))
            }
            StepKind::Edit | StepKind::Write => stem(&text).or_else(|| {
                let folder = text.rsplit('/').nth(1)?;
                stem(folder)
            }),
        };
        label.filter(|it| it.chars().count() <= MAX_NAME_CHARS)
    }
}

/// Sessions whose messages are compared to find a name.
const COMPARED_SESSIONS: usize = 200;

/// The words of a message in small letters, without numbers.
fn words_of(message: &str) -> HashSet<String> {
    split_tokens(message)
        .map(str::to_lowercase)
        .filter(|word| {
            let length = word.chars().count();
            (MIN_NAME_CHARS..=MAX_NAME_CHARS).contains(&length)
                && word.chars().all(char::is_alphabetic)
        })
        .collect()
}

/// The word of a message around a value, with the signs that names and versions have.
fn word_around<'a>(message: &'a str, value: &str) -> Option<&'a str> {
    let joins = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    let is_whole = |start: usize| {
        let behind = message.get(start + value.len()..).unwrap_or_default();
        let before = message.get(..start).unwrap_or_default();
        !joins(before.chars().next_back()) && !joins(behind.chars().next())
    };
    let start = message.match_indices(value).map(|it| it.0).find(|start| is_whole(*start))?;
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_./@".contains(c);
    let before = message.get(..start)?;
    let begin = before.rfind(|c: char| !is_part(c)).map_or(0, |at| {
        at + before.get(at..).and_then(|it| it.chars().next()).map_or(1, char::len_utf8)
    });
    let behind = message.get(start + value.len()..)?;
    let end = start + value.len() + behind.find(|c: char| !is_part(c)).unwrap_or(behind.len());
    let word = message.get(begin..end)?;
    Some(word.trim_matches(|c: char| !c.is_ascii_alphanumeric())).filter(|it| it.contains(value))
}

/// The first type that all values have.
fn kind_of(values: &[String]) -> ArgumentKind {
    let is_file = values.iter().all(|it| it.contains('/') || has_file_extension(it));
    let kinds = [ArgumentKind::Number, ArgumentKind::Version, ArgumentKind::Path];
    kinds
        .into_iter()
        .find(|kind| {
            (*kind != ArgumentKind::Path || is_file)
                && values.iter().all(|it| !it.is_empty() && kind.check_value("value", it).is_ok())
        })
        .unwrap_or(ArgumentKind::Text)
}

fn has_file_extension(value: &str) -> bool {
    value.rsplit_once('.').is_some_and(|(stem, ending)| {
        !stem.is_empty()
            && !ending.is_empty()
            && ending.len() <= 5
            && ending.bytes().all(|b| b.is_ascii_alphabetic())
    })
}

/// A name for an argument that no other one has.
fn free_name(kind: &ArgumentKind, names: &[String]) -> String {
    let name = match kind {
        ArgumentKind::Version => "version",
        ArgumentKind::Path => "file",
        ArgumentKind::Number => "number",
        ArgumentKind::Branch => "branch",
        ArgumentKind::Text | ArgumentKind::Choice(_) => "name",
    };
    let numbered = (2..).map(|number| format!("{name}{number}"));
    std::iter::once(name.to_owned())
        .chain(numbered)
        .find(|it| !names.contains(it))
        .unwrap_or_default()
}

/// The newest text with `${name}` for the arguments, if it gives each text from its own values.
fn shared_template(texts: &[Option<String>], arguments: &[RepeatedArgument]) -> Option<String> {
    let (newest, text) =
        texts.iter().enumerate().rev().find_map(|(at, it)| Some((at, it.as_ref()?)))?;
    let mut longest_first: Vec<&RepeatedArgument> = arguments.iter().collect();
    gnoma_core::sort::by_key(&mut longest_first, |it| {
        std::cmp::Reverse(it.values.get(newest).map_or(0, String::len))
    });
    if text.contains('$')
        && longest_first.iter().any(|it| text.contains(&format!("${{{}}}", it.name)))
    {
        return None;
    }
    let mut template = text.clone();
    for argument in longest_first {
        let value = argument.values.get(newest).filter(|it| !it.is_empty())?;
        template = replace_outside_names(&template, value, &format!("${{{}}}", argument.name));
    }
    let gives = |(at, text): (usize, &Option<String>)| {
        let Some(text) = text else { return true };
        let filled = arguments.iter().fold(template.clone(), |filled, argument| {
            let value = argument.values.get(at).map_or("", String::as_str);
            filled.replace(&format!("${{{}}}", argument.name), value)
        });
        filled == *text
    };
    texts.iter().enumerate().all(gives).then_some(template)
}

/// Replaces a value, but not inside of names that are in the text already.
pub(super) fn replace_outside_names(text: &str, value: &str, name: &str) -> String {
    let mut replaced = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let end = rest.get(at..).and_then(|it| it.find('}')).map_or(rest.len(), |it| at + it + 1);
        replaced.push_str(&rest.get(..at).unwrap_or_default().replace(value, name));
        replaced.push_str(rest.get(at..end).unwrap_or_default());
        rest = rest.get(end..).unwrap_or_default();
    }
    replaced + &rest.replace(value, name)
}
