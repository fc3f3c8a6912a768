//! Makes a pattern of similar turns, and decides if it is a chore that a person would want as a task.

use std::collections::{HashMap, HashSet};

use super::{
    history::PastSession,
    messages::find_named_values,
    slots::{Values, find_arguments, plain_letters},
    steps::{ChoreStep, StepId, StepKind},
    template::{Template, TemplatePart},
    turns::{MIN_STEPS, Turns},
    word_tokens::WordToken,
};

/// Fewest occurrences of a chore.
const MIN_OCCURRENCES: usize = 3;
/// Fewest sessions, forks of one counted once.
const MIN_FAMILIES: usize = 2;
/// Most arguments of a chore.
const MAX_ARGUMENTS: usize = 3;
/// Most occurrences that are compared; of more, the most similar and newest.
const MAX_MEMBERS: usize = 32;
/// A step is rare if it occurs outside of the pattern at most once for this many occurrences.
const RARE: usize = 3;
/// Similarity from which a turn that ended badly was a try at the same chore.
const SAME_TRY: f32 = 0.75;

/// The score of a command that has an argument in common with another step or the messages.
const LINKED_COMMAND: usize = 4;
/// The score of another rare command.
const RARE_COMMAND: usize = 2;
/// The score of a rare command of many words whose first two words are common.
const RARE_WORDS: usize = 1;
/// The score of a commit: what its message names was changed in the turn, also in everyday work.
const COMMIT: usize = 1;
/// The first words of a commit.
const COMMIT_WORDS: &str = "git commit";
/// Words of such a command.
const MANY_WORDS: usize = 4;
/// The score of a rare file that has an argument in common with another step.
const LINKED_FILE: usize = 2;
/// The score of a file that is the same each time.
const FIXED_FILE: usize = 1;
/// The score that the steps of a chore must reach together.
const MIN_SCORE: usize = 4;

/// A step of a pattern.
#[derive(Clone, Debug)]
pub(super) struct PatternStep {
    pub(super) kind: StepKind,
    pub(super) template: Template,
    /// The step in each occurrence.
    pub(super) found: Vec<Option<StepId>>,
    /// The place among the steps of the newest occurrence.
    order: usize,
}

impl PatternStep {
    /// Returns the number of occurrences that have the step.
    pub(super) fn occurrence_count(&self) -> usize {
        self.found.iter().flatten().count()
    }
}

/// Turns that do the same with other values.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    /// The turns, by their numbers.
    pub(super) turns: Vec<usize>,
    /// Steps of the chore.
    pub(super) steps: Vec<PatternStep>,
    /// Steps that some occurrences lack.
    pub(super) optional: Vec<PatternStep>,
    /// The values of each argument, in the order of `turns`.
    pub(super) arguments: Vec<Values>,
    /// The score of how particular its steps are.
    pub(super) score: usize,
}

impl Pattern {
    /// Puts the occurrences in the order of the history.
    fn sort_by_time(&mut self) {
        let mut order: Vec<usize> = (0..self.turns.len()).collect();
        gnoma_core::sort::sort_by(&mut order, |a, b| self.turns.get(*a).cmp(&self.turns.get(*b)));
        fn permute_values<T: Clone>(values: &[T], order: &[usize]) -> Vec<T> {
            order.iter().filter_map(|at| values.get(*at)).cloned().collect()
        }
        for step in self.steps.iter_mut().chain(&mut self.optional) {
            step.found = permute_values(&step.found, &order);
        }
        for argument in &mut self.arguments {
            *argument = permute_values(argument, &order);
        }
        self.turns = permute_values(&self.turns, &order);
    }
}

/// A pattern that is still growing.
struct GrowingPattern<'a> {
    turns: &'a Turns,
    members: Vec<usize>,
    steps: Vec<PatternStep>,
}

impl<'a> GrowingPattern<'a> {
    fn new(turns: &'a Turns, seed: usize) -> Self {
        let ids = turns.all.get(seed).map_or(&[][..], |turn| &turn.steps);
        let steps = ids
            .iter()
            .enumerate()
            .filter_map(|(order, id)| {
                let step = turns.steps.get(*id)?;
                let template = Template::of_tokens(&step.tokens);
                Some(PatternStep { kind: step.kind, template, found: vec![Some(*id)], order })
            })
            .collect();
        Self { turns, members: vec![seed], steps }
    }

    /// Returns the pattern with one more turn.
    fn with_turn(&self, seed_steps: &[StepId], number: usize) -> Option<Self> {
        let other = self.turns.all.get(number)?;
        let pairs = self.turns.pair_steps(seed_steps, &other.steps);
        let vocabulary = &self.turns.steps.vocabulary;
        let mut steps = self.steps.clone();
        for step in &mut steps {
            let pair = pairs.iter().find(|pair| pair.0 == step.order);
            let id = pair.and_then(|pair| other.steps.get(pair.1)).copied();
            if let Some(found) = id.and_then(|id| self.turns.steps.get(id)) {
                step.template = step.template.generalize(&found.tokens, vocabulary);
            }
            step.found.push(id);
        }
        let members = self.members.iter().copied().chain([number]).collect();
        Some(Self { turns: self.turns, members, steps })
    }

    /// The steps that nearly all members have, with the arguments they need.
    fn core_steps(&self) -> (Vec<PatternStep>, Vec<PatternStep>, Vec<Values>) {
        let needed = (self.members.len() * 3).div_ceil(4);
        let (mut core, others): (Vec<_>, Vec<_>) =
            self.steps.iter().cloned().partition(|step| step.occurrence_count() >= needed);
        let optional = others.into_iter().filter(|step| step.occurrence_count() >= 2).collect();
        for step in &mut core {
            step.template.widen_slots(&self.turns.steps.vocabulary);
        }
        let arguments = find_arguments(&self.differing_parts(&core));
        (core, optional, arguments)
    }

    /// The differing parts of steps.
    fn differing_parts(&self, steps: &[PatternStep]) -> Vec<Values> {
        let mut parts = Vec::new();
        for step in steps {
            let values: Vec<Option<Vec<String>>> = step
                .found
                .iter()
                .map(|id| self.turns.slot_values(&step.template, (*id)?))
                .collect();
            for slot in 0..step.template.slot_count() {
                let part = values.iter().map(|it| it.as_ref().and_then(|it| it.get(slot).cloned()));
                parts.push(part.collect());
            }
        }
        parts
    }
}

impl Turns {
    /// Returns the values of a template's slots in a step.
    pub(super) fn slot_values(&self, template: &Template, id: StepId) -> Option<Vec<String>> {
        let step = self.steps.get(id)?;
        let ranges = template.match_tokens(&step.tokens)?;
        let value = |range| self.steps.vocabulary.join(step.tokens.get(range).unwrap_or_default());
        Some(ranges.into_iter().map(value).collect())
    }

    /// Returns the pattern around a turn, if it is a chore.
    pub(super) fn pattern_around(&self, seed: usize, history: &[PastSession]) -> Option<Pattern> {
        let turn = self.all.get(seed).filter(|it| it.ended_well && it.steps.len() >= MIN_STEPS)?;
        let similar = if self.can_be_chore(turn) { self.similar_to(seed) } else { Vec::new() };
        if similar.len() + 1 < MIN_OCCURRENCES {
            return None;
        }
        let mut growing = GrowingPattern::new(self, seed);
        let mut tried = 0;
        for (number, _) in &similar {
            if growing.members.len() == MAX_MEMBERS {
                break;
            }
            tried += 1;
            if !self.all.get(*number).is_some_and(|it| it.ended_well) {
                continue;
            }
            let Some(next) = growing.with_turn(&turn.steps, *number) else { continue };
            let (core, _, arguments) = next.core_steps();
            if core.len() >= MIN_STEPS && arguments.len() <= MAX_ARGUMENTS {
                growing = next;
            }
        }
        if !self.is_repeated(&growing.members, history) {
            return None;
        }
        let (steps, optional, arguments) = growing.core_steps();
        // Failed tries at the chore, and further occurrences of it, say nothing against it.
        let is_same = |(at, it): &(usize, &(usize, f32))| {
            let ended_well = self.all.get(it.0).is_some_and(|turn| turn.ended_well);
            it.1 >= SAME_TRY && (!ended_well || *at >= tried)
        };
        let same = similar.iter().enumerate().filter(is_same).map(|(_, it)| it.0);
        let near: HashSet<usize> = growing.members.iter().copied().chain(same).collect();
        let mut pattern = Pattern { turns: growing.members, steps, optional, arguments, score: 0 };
        if pattern.arguments.is_empty() {
            let message = |number: &usize| self.turn_message(*number, history).unwrap_or_default();
            let messages: Vec<&str> = pattern.turns.iter().map(message).collect();
            pattern.arguments.extend(find_named_values(&messages));
        }
        let is_chore = self.judge_pattern(&mut pattern, &near, history);
        pattern.sort_by_time();
        is_chore.then_some(pattern)
    }

    /// Reports whether turns are enough occurrences in enough sessions. Forks of one session count as one.
    fn is_repeated(&self, members: &[usize], history: &[PastSession]) -> bool {
        let mut counts: HashMap<&str, HashMap<usize, usize>> = HashMap::new();
        for turn in members.iter().filter_map(|number| self.all.get(*number)) {
            let Some(session) = history.get(turn.session) else { continue };
            *counts.entry(&session.family).or_default().entry(turn.session).or_default() += 1;
        }
        let occurrences: usize =
            counts.values().map(|sessions| sessions.values().max().copied().unwrap_or(0)).sum();
        occurrences >= MIN_OCCURRENCES && counts.len() >= MIN_FAMILIES
    }

    /// Decides if a pattern is particular: everyday commands occur beside other work as well.
    fn judge_pattern(
        &self,
        pattern: &mut Pattern,
        near: &HashSet<usize>,
        history: &[PastSession],
    ) -> bool {
        if pattern.steps.len() < MIN_STEPS || pattern.arguments.len() > MAX_ARGUMENTS {
            return false;
        }
        let limit = pattern.turns.len() / RARE;
        let mut score = 0;
        for step in &pattern.steps {
            let fits = |it: &ChoreStep| step.template.match_tokens(&it.tokens).is_some();
            let outside = self.count_outside(step, near, fits);
            if outside > limit {
                continue;
            }
            let shares_argument = self.shares_argument(step, pattern, history);
            score += match step.kind {
                StepKind::Command => {
                    let words = step.template.literal_words(&self.steps.vocabulary).count();
                    let head = self.head_of(step);
                    let has_head = |it: &ChoreStep| it.tokens.starts_with(&head);
                    match () {
                        () if words < 2 => 0,
                        () if self.steps.vocabulary.join(&head) == COMMIT_WORDS => COMMIT,
                        () if shares_argument => LINKED_COMMAND,
                        () if self.count_outside(step, near, has_head) == 0 => RARE_COMMAND,
                        () if outside == 0 && words >= MANY_WORDS => RARE_WORDS,
                        () => 0,
                    }
                }
                StepKind::Edit | StepKind::Write if shares_argument => LINKED_FILE,
                StepKind::Edit | StepKind::Write
                    if step.template.slot_count() == 0 && outside == 0 =>
                {
                    FIXED_FILE
                }
                StepKind::Edit | StepKind::Write => 0,
            };
        }
        pattern.score = score;
        score >= MIN_SCORE
    }

    /// The first two words of a command, or the first if the second differs.
    fn head_of(&self, step: &PatternStep) -> Vec<WordToken> {
        let mut head = Vec::new();
        let mut spaces = 0;
        for piece in &step.template.pieces {
            let TemplatePart::Literal(token) = piece else { break };
            spaces += usize::from(self.steps.vocabulary.text(*token) == " ");
            if spaces == 2 {
                break;
            }
            head.push(*token);
        }
        head
    }

    /// Reports whether an argument in a step also occurs in another step, or a command's argument in the messages.
    fn shares_argument(
        &self,
        step: &PatternStep,
        pattern: &Pattern,
        history: &[PastSession],
    ) -> bool {
        let holds = |step: &PatternStep, argument: &Values| {
            step.template.slot_count() > 0
                && step.found.iter().zip(argument).all(|(id, value)| {
                    let values = id.and_then(|id| self.slot_values(&step.template, id));
                    let (Some(values), Some(value)) = (values, value) else { return true };
                    let value = plain_letters(value);
                    values.iter().any(|it| plain_letters(it).contains(&value))
                })
        };
        let is_said = |argument: &Values| {
            pattern.turns.iter().zip(argument).all(|(number, value)| {
                let message =
                    self.turn_message(*number, history).map(plain_letters).unwrap_or_default();
                value.as_deref().is_none_or(|it| message.contains(&plain_letters(it)))
            })
        };
        let all = || pattern.steps.iter().chain(&pattern.optional);
        pattern.arguments.iter().any(|argument| {
            let others = all().filter(|it| holds(it, argument)).count();
            holds(step, argument)
                && (others >= 2 || (step.kind == StepKind::Command && is_said(argument)))
        })
    }

    /// The message of a turn.
    pub(super) fn turn_message<'a>(
        &self,
        number: usize,
        history: &'a [PastSession],
    ) -> Option<&'a str> {
        let turn = self.all.get(number)?;
        Some(&history.get(turn.session)?.turns.get(turn.at)?.message)
    }

    /// Counts turns outside of a pattern that have a step.
    fn count_outside(
        &self,
        step: &PatternStep,
        near: &HashSet<usize>,
        is_same: impl Fn(&ChoreStep) -> bool,
    ) -> usize {
        let Some(id) = step.found.iter().flatten().next() else { return 0 };
        let is_command = |kind| kind == StepKind::Command;
        let has_step = |number: &u32| {
            let number = *number as usize;
            let is_like =
                |it: &ChoreStep| is_command(it.kind) == is_command(step.kind) && is_same(it);
            !near.contains(&number)
                && self.all.get(number).is_some_and(|turn| {
                    turn.steps.iter().any(|id| self.steps.get(*id).is_some_and(is_like))
                })
        };
        self.with_steps_like(*id).iter().filter(|it| has_step(it)).count()
    }
}
