//! Texts of skills that were used in a session: they outlive a summary of the conversation.

use gnoma_core::{sync::Mutex, text_truncation};

/// Most bytes of one text, and of all.
const MAX_KEPT_BYTES: usize = 16 << 10;
const MAX_ALL_BYTES: usize = 32 << 10;

/// The skills that were used, the last one at the end.
#[derive(Debug, Default)]
pub(crate) struct UsedSkills(Mutex<Vec<(String, String)>>);

impl UsedSkills {
    /// A skill was used.
    pub(crate) fn record_use(&self, name: &str, text: String) {
        let mut all = self.0.lock();
        all.retain(|(known, _)| known != name);
        all.push((name.to_owned(), text));
    }

    /// Their texts, as far as they may stay: those that were used last.
    pub(crate) fn retained_texts(&self) -> Vec<String> {
        let all = self.0.lock();
        let mut left = MAX_ALL_BYTES;
        let mut texts = Vec::new();
        for (name, text) in all.iter().rev() {
            let text = text_truncation::word_prefix(text.trim(), MAX_KEPT_BYTES);
            if text.len() > left {
                continue;
            }
            left -= text.len();
            texts.push(format!("<skill name=\"{name}\">\n{text}\n</skill>"));
        }
        texts.reverse();
        texts
    }
}
