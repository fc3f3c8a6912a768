//! The form that answers of a session must have, and how far a turn has come with it.

use std::sync::Arc;

use gnoma_core::{FormatStage, RawJson};
use gnoma_schema::{Schema, SchemaError};

/// The text at the end of a prompt that introduces the schema of the required form.
const FORM: &str = "\n\nA program reads your final answer. It must be one JSON value that fits this JSON \
     Schema, with nothing before or behind it; use tools first where the task needs them:\n";

/// The form that answers of a session must have.
#[derive(Clone, Debug)]
pub struct AnswerForm {
    pub(crate) schema: Schema,
    pub(crate) text: Arc<RawJson>,
}

impl AnswerForm {
    /// Reads a JSON schema.
    ///
    /// # Errors
    /// It is none, or one that cannot be checked.
    pub fn from_schema(text: &RawJson) -> Result<Self, SchemaError> {
        Ok(Self { schema: Schema::parse(text.get())?, text: Arc::new(text.clone()) })
    }

    /// The instructions about it that end a model's system prompt.
    #[must_use]
    pub fn instructions(&self) -> String {
        format!("{FORM}{}", self.text)
    }
}

/// The reason why an answer does not have the form that it must have.
#[derive(thiserror::Error)]
pub(crate) enum AnswerFormError {
    #[error(transparent)]
    Misfit(#[from] gnoma_schema::Misfit),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

gnoma_core::debug_as_display!(AnswerFormError);

/// The progress of a turn towards an answer in the required form.
#[derive(Debug)]
pub(crate) struct AnswerFormProgress {
    pub(crate) shape: AnswerForm,
    /// Answers of this attempt at the task that did not fit.
    pub(crate) misfits: u32,
    /// Ways to ask that the server has refused.
    refused: Vec<FormatStage>,
    /// The beginning of an answer that the output limit cut off.
    begun: String,
    /// The answer that fits.
    pub(crate) answer: Option<RawJson>,
}

impl AnswerFormProgress {
    pub(crate) fn new(shape: AnswerForm) -> Self {
        Self { shape, misfits: 0, refused: Vec::new(), begun: String::new(), answer: None }
    }

    /// Another attempt at the task begins.
    pub(crate) fn begin_attempt(&mut self) {
        (self.misfits, self.answer) = (0, None);
        self.begun.clear();
        self.refused.clear();
    }

    /// Another model answers from now on.
    pub(crate) fn on_failover(&mut self) {
        self.refused.clear();
        self.begun.clear();
    }

    /// Drops the last answer, because something comes after it.
    pub(crate) fn goes_on(&mut self) {
        self.answer = None;
    }

    /// The output limit has cut an answer off, and the next one continues it.
    pub(crate) fn add_partial_answer(&mut self, text: &str) {
        self.begun.push_str(text);
    }

    /// Only the answer is wanted any more.
    pub(crate) fn is_due(&self) -> bool {
        self.misfits > 0
    }

    /// Notes that the server has refused the way in which the call asks. Returns `false` if it did not ask.
    pub(crate) fn refuse_stage(&mut self) -> bool {
        let stage = self.next_stage();
        self.refused.extend(stage);
        stage.is_some()
    }

    pub(crate) fn next_stage(&self) -> Option<FormatStage> {
        let order: &[FormatStage] = match self.misfits {
            0 => &[FormatStage::WithTools],
            1 => &[FormatStage::AnswerNow, FormatStage::AsCall],
            _ => &[FormatStage::AsCall, FormatStage::AnswerNow],
        };
        order.iter().find(|stage| !self.refused.contains(stage)).copied()
    }

    /// Takes an answer if it has the form.
    pub(crate) fn check_answer(&mut self, text: &str) -> Result<(), AnswerFormError> {
        let begun = std::mem::take(&mut self.begun);
        let whole = format!("{begun}{text}");
        let found = self.shape.schema.find_value(&whole).or_else(|why| {
            // The model has begun again.
            let alone = if begun.is_empty() {
                Err(why.clone())
            } else {
                self.shape.schema.find_value(text)
            };
            alone.map_err(|_| why)
        });
        self.answer = Some(RawJson::parse(found?)?);
        Ok(())
    }
}
