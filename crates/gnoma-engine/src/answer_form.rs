//! The form that answers of a session must have.

use std::sync::Arc;

use gnoma_core::RawJson;
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
