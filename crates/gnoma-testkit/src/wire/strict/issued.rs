//! What a vendor has handed out and may be sent back.

use crate::wire::script::Script;

/// What a vendor has handed out and may be sent back. Whatever else looks like it is foreign.
#[derive(Clone, Debug, Default)]
pub struct Issued {
    thoughts: Vec<String>,
    tokens: Vec<String>,
}

impl Issued {
    /// Notes what an answer hands out.
    pub fn note(&mut self, script: &Script) {
        if !script.thinking.is_empty() {
            self.thoughts.push(script.thinking.concat());
        }
        self.tokens.extend(script.signature.clone());
    }

    /// Whether the vendor's model has thought so. An answer that was cut off leaves the beginning.
    pub(super) fn thought(&self, text: &str) -> bool {
        !text.is_empty() && self.thoughts.iter().any(|thought| thought.starts_with(text))
    }

    /// Whether the vendor has made this signature, or whatever it calls its opaque token.
    pub(super) fn token(&self, token: &str) -> bool {
        self.tokens.iter().any(|own| own == token)
    }
}
