//! Texts of skills that were used in a session: they outlive a summary of the conversation.

use gnoma_core::{sync::Mutex, text_truncation};

/// Most bytes of one text, and of all.
const MAX_KEPT_BYTES: usize = 16 << 10;
const MAX_ALL_BYTES: usize = 32 << 10;

/// The skills that were used, the last one at the end.
#[derive(Debug, Default)]
pub(crate) struct UsedSkills {
    texts: Mutex<Vec<(String, String)>>,
    /// The names of those that the running turn has used.
    in_turn: Mutex<Vec<String>>,
}

impl UsedSkills {
    /// A skill was used.
    pub(crate) fn record_use(&self, name: &str, text: String) {
        let mut all = self.texts.lock();
        all.retain(|(known, _)| known != name);
        all.push((name.to_owned(), text));
        let mut in_turn = self.in_turn.lock();
        in_turn.retain(|known| known != name);
        in_turn.push(name.to_owned());
    }

    /// Returns the names of the skills that the running turn has used.
    pub(crate) fn names_in_turn(&self) -> Vec<String> {
        self.in_turn.lock().clone()
    }

    /// Forgets which skills were used in the turn; their texts stay.
    pub(crate) fn end_turn(&self) {
        self.in_turn.lock().clear();
    }

    /// Their texts, as far as they may stay: those that were used last.
    pub(crate) fn retained_texts(&self) -> Vec<String> {
        let all = self.texts.lock();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn used_skill_is_counted_per_turn_and_its_text_is_retained() {
        let used = UsedSkills::default();
        used.record_use("pdf", "Read it.".to_owned());
        used.record_use("pdf", "Read it.".to_owned());
        assert_eq!(used.names_in_turn(), ["pdf"]);
        used.end_turn();
        assert!(used.names_in_turn().is_empty());
        assert_eq!(used.retained_texts().len(), 1);
    }
}
