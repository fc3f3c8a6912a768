//! How far a turn has come with the form that its answer must have. Pure.

use gnoma_core::{FormatStage, RawJson};

use crate::answer_form::AnswerForm;

/// The reason why an answer does not have the form that it must have.
#[derive(thiserror::Error)]
pub(super) enum AnswerFormError {
    #[error(transparent)]
    Misfit(#[from] gnoma_schema::Misfit),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

gnoma_core::debug_as_display!(AnswerFormError);

/// The progress of a turn towards an answer in the required form.
#[derive(Debug)]
pub(super) struct AnswerFormProgress {
    pub(super) shape: AnswerForm,
    /// Answers of this attempt at the task that did not fit.
    pub(super) misfits: u32,
    /// Ways to ask that the server has refused.
    pub(super) refused: Vec<FormatStage>,
    /// The beginning of an answer that the output limit cut off.
    begun: String,
    /// The answer that fits.
    pub(super) answer: Option<RawJson>,
}

impl AnswerFormProgress {
    pub(super) fn new(shape: AnswerForm) -> Self {
        Self { shape, misfits: 0, refused: Vec::new(), begun: String::new(), answer: None }
    }

    /// Another attempt at the task begins.
    pub(super) fn begin_attempt(&mut self) {
        (self.misfits, self.answer) = (0, None);
        self.begun.clear();
        self.refused.clear();
    }

    /// Another model answers from now on.
    pub(super) fn on_failover(&mut self) {
        self.refused.clear();
        self.begun.clear();
    }

    /// Drops the last answer, because something comes after it.
    pub(super) fn goes_on(&mut self) {
        self.answer = None;
    }

    /// The output limit has cut an answer off, and the next one continues it.
    pub(super) fn add_partial_answer(&mut self, text: &str) {
        self.begun.push_str(text);
    }

    /// Only the answer is wanted any more.
    pub(super) fn is_due(&self) -> bool {
        self.misfits > 0
    }

    pub(super) fn next_stage(&self) -> Option<FormatStage> {
        let order: &[FormatStage] = match self.misfits {
            0 => &[FormatStage::WithTools],
            1 => &[FormatStage::AnswerNow, FormatStage::AsCall],
            _ => &[FormatStage::AsCall, FormatStage::AnswerNow],
        };
        order.iter().find(|stage| !self.refused.contains(stage)).copied()
    }

    /// Takes an answer if it has the form.
    pub(super) fn check_answer(&mut self, text: &str) -> Result<(), AnswerFormError> {
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
