//! What a vendor has handed out and may be sent back.

use crate::wire::script::Script;

/// The values that a vendor has handed out and that may be sent back. Anything else that looks like them is
/// foreign.
#[derive(Clone, Debug, Default)]
pub struct IssuedTokens {
    thoughts: Vec<String>,
    tokens: Vec<String>,
}

impl IssuedTokens {
    /// Notes what an answer hands out.
    pub fn record_answer(&mut self, script: &Script) {
        if !script.thinking.is_empty() {
            self.thoughts.push(script.thinking.concat());
        }
        self.tokens.extend(script.signature.clone());
    }

    /// Reports whether the vendor's model has had this thought. An answer that was cut off leaves the beginning.
    pub(super) fn has_thought(&self, text: &str) -> bool {
        !text.is_empty() && self.thoughts.iter().any(|thought| thought.starts_with(text))
    }

    /// Reports whether the vendor has made this signature, or an opaque token that it calls by another name.
    pub(super) fn has_token(&self, token: &str) -> bool {
        self.tokens.iter().any(|own| own == token)
    }
}
