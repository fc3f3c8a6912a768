//! What a turn is about, as far as choosing an arm goes.

use std::sync::Arc;

use gnoma_core::text_truncation;

use super::settings::RouterSettings;
use crate::{
    classify::{self, Classification, ClassificationSource, TaskType, TurnFacts, model},
    rules::{LocalTime, WorkFacts},
    task::{Need, TaskKind},
};

/// Most bytes of a person's words that are kept for what is done with them later.
const MAX_WORDS_BYTES: usize = 64 << 10;

/// A task whose words were not read yet.
const UNREAD: Classification = Classification {
    kind: TaskType::Generation,
    complexity: 0,
    needs_tools: false,
    needs_vision: false,
    decided_by: ClassificationSource::Heuristic,
    scores: Vec::new(),
};

/// The subject of a turn, as far as choosing an arm goes.
#[derive(Clone, Debug)]
pub struct Task {
    /// The words of the person.
    pub words: String,
    /// The kind and difficulty that the words suggest.
    pub classified: Classification,
    /// The facts that are known beside the words.
    facts: TurnFacts,
    /// The requirements of the task, and its worth.
    pub need: Need,
    /// True if the work of the task shows in files.
    pub changes_code: bool,
    /// Files it is about, as far as rules ask for them.
    paths: Vec<String>,
    /// Files that the whole conversation is about.
    pub touched: Vec<String>,
    /// The words were read for it.
    is_judged: bool,
    /// The step of a saved task that it is.
    pub step: Option<Arc<str>>,
}

impl Task {
    /// The task that the words suggest. `is_judged`: something depends on what kind it is; else the
    /// words are read when it is over, not before the first request.
    #[must_use]
    pub fn from_words(
        mut words: String,
        has_images: bool,
        context_tokens: u64,
        is_judged: bool,
        settings: &RouterSettings,
    ) -> Self {
        let mut concern = settings.new_concern();
        concern.add_mentioned_paths(&words);
        words.truncate(text_truncation::word_prefix(&words, MAX_WORDS_BYTES).len());
        let facts = TurnFacts {
            images: has_images,
            context_tokens,
            local_only: settings.local_only,
            second_micro_usd: settings.second_micro_usd,
            task_micro_usd: settings.value_micro_usd,
            ..TurnFacts::default()
        };
        let classified = if is_judged { classify::classify_text(&words) } else { UNREAD };
        Self {
            is_judged,
            paths: concern.matched_paths(),
            ..Self::from_classified(words, classified, facts)
        }
    }

    /// The same, for an arm that answers in a form, and for one that thinks, or for any.
    #[must_use]
    pub fn with_needs(mut self, form: bool, thinking: bool) -> Self {
        (self.facts.structured_output, self.need.structured_output) = (form, form);
        (self.facts.thinking, self.need.thinking) = (thinking, thinking);
        self
    }

    /// Returns the kind of the task, for learning.
    #[must_use]
    pub fn kind(&self) -> TaskKind {
        if self.is_judged {
            return self.router_need().kind;
        }
        self.kind_of_step(classify::classify_text(&self.words).kind.task_kind())
    }

    /// Returns what the router is asked for: a step of a saved task is a kind by itself there, and nowhere else.
    #[must_use]
    pub fn router_need(&self) -> Need {
        Need { kind: self.kind_of_step(self.need.kind.clone()), ..self.need.clone() }
    }

    fn kind_of_step(&self, kind: TaskKind) -> TaskKind {
        match &self.step {
            Some(step) => kind.of_step(step),
            None => kind,
        }
    }

    /// Returns the kind of task if the words were read for it: reading them only to record it would delay a request.
    #[must_use]
    pub fn known_kind(&self) -> Option<&TaskKind> {
        self.is_judged.then_some(&self.need.kind)
    }

    fn from_classified(words: String, classified: Classification, facts: TurnFacts) -> Self {
        let mut need = classified.to_need(&facts);
        // A picture that is only spoken of cannot be seen by anybody.
        need.vision = facts.images;
        let changes_code = match classified.kind {
            TaskType::Boilerplate
            | TaskType::Generation
            | TaskType::Refactor
            | TaskType::UnitTest
            | TaskType::Debug => true,
            TaskType::Review
            | TaskType::Planning
            | TaskType::Orchestration
            | TaskType::SecurityReview
            | TaskType::Explain => false,
        };
        Self {
            words,
            classified,
            facts,
            need,
            changes_code,
            paths: Vec::new(),
            touched: Vec::new(),
            is_judged: true,
            step: None,
        }
    }

    /// This task, but of the previous task's kind if the text says nothing: "go on" continues.
    #[must_use]
    pub fn with_previous_kind(self, before: &Self) -> Self {
        if !self.classified.scores.is_empty() || !self.is_judged {
            return self;
        }
        let classified = Classification {
            kind: before.classified.kind,
            complexity: before.classified.complexity,
            needs_tools: self.classified.needs_tools || before.classified.needs_tools,
            ..self.classified.clone()
        };
        self.read_as(classified)
    }

    /// The task as the classifying arm's answer has it; `None` when it gave none in time.
    #[must_use]
    pub fn with_judgement(self, answer: Option<&str>) -> Self {
        let classified = model::resolve_answer(self.classified.clone(), answer);
        self.read_as(classified)
    }

    fn read_as(self, classified: Classification) -> Self {
        let Self { words, facts, paths, touched, step, .. } = self;
        Self { paths, touched, step, ..Self::from_classified(words, classified, facts) }
    }

    /// As rules see it. `time`: what the clock on the wall says.
    #[must_use]
    pub fn work_facts(&self, time: LocalTime) -> WorkFacts {
        WorkFacts {
            kind: self.need.kind.clone(),
            complexity: self.classified.complexity,
            value_micro_usd: self.need.value_micro_usd,
            paths: self.paths.clone(),
            touched: self.touched.clone(),
            time: Some(time),
        }
    }
}
