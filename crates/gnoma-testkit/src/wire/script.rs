//! One answer of a model, in no vendor's words.

use gnoma_core::{StopReason, Usage};
use serde_json::Value;

/// A tool call in a [`Script`].
#[derive(Clone, Debug)]
pub struct ScriptCall {
    /// The provider's id of it.
    pub id: String,
    /// The tool, in the wire's spelling.
    pub name: String,
    /// Arguments as JSON text.
    pub arguments: String,
}

/// One answer: thinking, then text, then calls.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// Reasoning, a delta each. Left out on wires that show none.
    pub thinking: Vec<String>,
    /// Opaque token of the reasoning (of the first call on Google's wire).
    pub signature: Option<String>,
    /// Words, a delta each.
    pub text: Vec<String>,
    /// The calls of the answer.
    pub calls: Vec<ScriptCall>,
    /// The reason why the answer stops; `None` means to have its calls run, if it has some, or that it is done.
    pub stop: Option<StopReason>,
    /// The tokens of the answer.
    pub usage: Usage,
}

impl Script {
    /// An answer of these words, a delta each.
    pub fn text<T: Into<String>>(words: impl IntoIterator<Item = T>) -> Self {
        Self {
            text: words.into_iter().map(Into::into).collect(),
            usage: Usage { input: 10, output: 5, ..Usage::default() },
            ..Self::default()
        }
    }

    /// With reasoning before it.
    #[must_use]
    pub fn with_thinking(mut self, words: impl Into<String>, signature: impl Into<String>) -> Self {
        self.thinking.push(words.into());
        self.signature = Some(signature.into());
        self
    }

    /// With one more call.
    #[must_use]
    pub fn with_call(
        mut self,
        id: impl Into<String>,
        name: impl Into<String>,
        arguments: impl Into<String>,
    ) -> Self {
        self.calls.push(ScriptCall {
            id: id.into(),
            name: name.into(),
            arguments: arguments.into(),
        });
        self
    }

    /// Stopped for this reason.
    #[must_use]
    pub fn with_stop(mut self, stop: StopReason) -> Self {
        self.stop = Some(stop);
        self
    }

    /// With this count of tokens.
    #[must_use]
    pub fn with_usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }

    /// Returns the reason why the answer stops.
    pub(super) fn stop_reason(&self) -> StopReason {
        self.stop.unwrap_or(if self.calls.is_empty() {
            StopReason::EndTurn
        } else {
            StopReason::ToolUse
        })
    }
}

impl ScriptCall {
    /// The arguments in two fragments.
    pub(super) fn argument_fragments(&self) -> (&str, &str) {
        let half = self.arguments.len() / 2;
        let cut = (half..self.arguments.len()).find(|at| self.arguments.is_char_boundary(*at));
        self.arguments.split_at(cut.unwrap_or(self.arguments.len()))
    }

    /// The arguments as a value, for wires that send them so.
    pub(super) fn argument_value(&self) -> Value {
        serde_json::from_str(&self.arguments).unwrap_or_default()
    }
}
