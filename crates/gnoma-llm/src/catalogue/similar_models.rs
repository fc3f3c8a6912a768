//! Finds the listed model that an unknown name may mean: `sonnet`, `GPT-5`, `mistral-larg-latest`.

use std::cmp::Reverse;

use super::{model::ListedModel, overlay::Overlay};

/// Shorter names are in too many others.
const MIN_CHARS: usize = 3;
/// Longer names are like no other; the work grows with the product of the lengths.
const MAX_CHARS: usize = 80;
/// Of this many characters, one may be wrong.
const CHARS_PER_SLIP: usize = 6;

/// The newest model of a provider that has all the words of `name`, else the one that is spelt most like it.
pub(crate) fn find_similar_model(provider: &str, name: &str) -> Option<String> {
    let wanted = normalize_name(name);
    if !(MIN_CHARS..=MAX_CHARS).contains(&wanted.len()) {
        return None;
    }
    let models = Overlay::NONE.of_provider(provider);
    if models.iter().any(|model| model.id == name) {
        return None;
    }
    let lower = name.to_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).collect();
    let has_words = |model: &&ListedModel| {
        let id = model.id.to_lowercase();
        normalize_name(&id).contains(&wanted) || words.iter().all(|word| id.contains(word))
    };
    // Of those that came together, the one with the plainest name.
    let rank = |model: &&ListedModel| {
        (
            normalize_name(&model.id) == wanted,
            model.deprecated.is_none(),
            model.released,
            Reverse(model.id.len()),
        )
    };
    let spelt_alike = || {
        let slips = |model: &ListedModel| strsim::osa_distance(&lower, &model.id.to_lowercase());
        let nearest = models.iter().min_by_key(|model| slips(model));
        nearest.filter(|model| slips(model) <= lower.len() / CHARS_PER_SLIP)
    };
    let meant = models.iter().filter(has_words).max_by_key(rank).or_else(spelt_alike);
    meant.map(|model| model.id.clone())
}

/// Returns the letters and digits of a name in lower case: the part that different spellings agree on.
fn normalize_name(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_or_misspelled_model_name_suggests_a_listed_model() {
        let begins =
            |provider: &str, name: &str| find_similar_model(provider, name).unwrap_or_default();
        assert!(begins("anthropic", "sonnet").starts_with("claude-sonnet-"));
        assert!(begins("anthropic", "Claude Opus").starts_with("claude-opus-"));
        assert_eq!(begins("openai", "GPT-4O"), "gpt-4o");
        assert_eq!(begins("openai", "gpt4o-mini"), "gpt-4o-mini");
        assert_eq!(begins("mistral", "mistral-larg-latest"), "mistral-large-latest");
        for (provider, name) in
            [("openai", "gpt-4o"), ("openai", "x"), ("openai", "llama"), ("nobody", "gpt-4o")]
        {
            assert_eq!(find_similar_model(provider, name), None, "{name}");
        }
    }
}
