//! The form that the answer of a turn must have: the answer is checked, and requested again if it does not fit.
//!
//! At first the model works as usual, and its last text is checked. If that does not fit, the model is asked for
//! the answer alone, without tools: in the wire's own way, then as a call. A form that the server rejects is not
//! sent that way again; the prompt always describes the form.

use std::sync::Arc;

use gnoma_core::{AnswerFormat, RawJson, StopReason, session::Outcome};

use super::{Phase, Turn};
use crate::{
    answer_form::{AnswerForm, AnswerFormProgress},
    prompt,
};

/// Most times in a turn that an answer that does not fit is asked for again.
pub(super) const MAX_RETRIES: u32 = 3;

impl Turn {
    /// The same, with answers in that form.
    pub(crate) fn in_shape(mut self, shape: Option<AnswerForm>) -> Self {
        self.cx.answer_form = shape.map(AnswerFormProgress::new);
        self
    }

    /// Reports whether answers must have a form.
    pub(crate) fn has_shape(&self) -> bool {
        self.cx.answer_form.is_some()
    }

    /// The form that the call that was just wanted asks for.
    pub(crate) fn answer_format(&self) -> Option<AnswerFormat> {
        let form = self.cx.answer_form.as_ref()?;
        Some(AnswerFormat { schema: Arc::clone(&form.shape.text), stage: form.next_stage()? })
    }

    /// Reports whether the model may now give only an answer in its form.
    pub(crate) fn wants_shape(&self) -> bool {
        self.cx.answer_form.as_ref().is_some_and(AnswerFormProgress::is_due)
    }

    /// Describes what is wrong with the form of the answer that would end the turn.
    pub(super) fn find_form_error(&mut self, stop: StopReason, text: &str) -> Option<String> {
        let form = self.cx.answer_form.as_mut().filter(|_| !is_refusal(stop))?;
        form.check_answer(text).err().map(|error| error.to_string())
    }

    /// Asks for the answer again, or ends the turn without one.
    pub(super) fn ask_again(&mut self, why: String) -> Phase {
        let Some(form) = &mut self.cx.answer_form else { return self.call_model() };
        form.misfits += 1;
        let time = form.misfits;
        if time > MAX_RETRIES || !self.has_rounds() {
            return self.deliver_or_check(Outcome::Unfit { why, answers: time });
        }
        let first = why.lines().next().unwrap_or_default();
        let text = format!(
            "the answer does not fit the schema ({first}); asking again ({time} of {MAX_RETRIES})"
        );
        self.cx.warn(text);
        self.notes.push(prompt::schema_correction(&why));
        self.call_model()
    }

    /// Returns the real outcome of the turn: it is complete only with an answer in its form.
    pub(super) fn in_its_shape(&mut self, outcome: Outcome) -> (Outcome, Option<RawJson>) {
        let Some(form) = &mut self.cx.answer_form else { return (outcome, None) };
        match outcome {
            Outcome::Complete { stop } if !is_refusal(stop) => match form.answer.take() {
                Some(answer) => (Outcome::Complete { stop }, Some(answer)),
                None => {
                    let why = "the turn ended without an answer that fits the schema".to_owned();
                    (Outcome::Unfit { why, answers: form.misfits }, None)
                }
            },
            other => (other, None),
        }
    }
}

/// A refusal is no answer that could fit.
fn is_refusal(stop: StopReason) -> bool {
    matches!(stop, StopReason::Refusal | StopReason::ContentFilter)
}
