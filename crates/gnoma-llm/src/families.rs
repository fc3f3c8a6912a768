//! Reasoning efforts that OpenAI-compatible models accept, by their names.
//!
//! Servers agree on the parameter and differ in the words, and a wrong word, or a temperature that a
//! reasoning model does not take, costs the whole request. Sources: OpenAI's guides "Reasoning models"
//! and "Using GPT-5.x" (parameter compatibility), Groq's and xAI's guides on reasoning, and what the
//! servers refused.

use gnoma_core::Effort;

/// The condition under which a temperature may be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Temperature {
    Always,
    /// Unless an effort is asked for.
    WithoutEffort,
    /// Only when the model is told not to think, and not when nothing is said about thinking.
    WithoutThinking,
    Never,
}

/// Models that take the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    /// The prefix of the models' names.
    begins: &'static str,
    /// The text that the models' names contain besides the prefix.
    holds: &'static str,
    reasons: bool,
    /// Their words for no, low, medium and high effort; nothing is said where there is none.
    words: [Option<&'static str>; 4],
    temperature: Temperature,
}

impl Family {
    /// The word for `effort`, where there is one.
    pub(crate) fn effort_word(&self, effort: Effort) -> Option<&'static str> {
        let [none, low, medium, high] = self.words;
        match effort {
            Effort::None => none,
            Effort::Low => low,
            Effort::Medium => medium,
            Effort::High => high,
        }
    }

    /// Reports whether the models may have reasoning that can be asked for.
    pub(crate) fn can_reason(&self) -> bool {
        self.reasons
    }

    /// Reports whether a temperature may be set together with `effort`.
    pub(crate) fn accepts_temperature(&self, effort: Option<Effort>) -> bool {
        match self.temperature {
            Temperature::Always => true,
            Temperature::WithoutEffort => effort.is_none_or(|effort| effort == Effort::None),
            Temperature::WithoutThinking => effort == Some(Effort::None),
            Temperature::Never => false,
        }
    }
}

/// The family of `model`: the first of `list` that fits.
pub(crate) fn find_family(list: &'static [Family], model: &str) -> &'static Family {
    // Routers put the vendor in front: `openai/gpt-4o`.
    let name = model.rsplit('/').next().unwrap_or(model);
    let fits = |family: &&Family| name.starts_with(family.begins) && name.contains(family.holds);
    list.iter().find(fits).unwrap_or(&ANY)
}

const SILENT: [Option<&str>; 4] = [None; 4];
const WORDS: [Option<&str>; 4] = [Some("none"), Some("low"), Some("medium"), Some("high")];
const FROM_LOW: [Option<&str>; 4] = [Some("low"), Some("low"), Some("medium"), Some("high")];
const FROM_MINIMAL: [Option<&str>; 4] =
    [Some("minimal"), Some("low"), Some("medium"), Some("high")];
const FROM_MEDIUM: [Option<&str>; 4] =
    [Some("medium"), Some("medium"), Some("medium"), Some("high")];
const LOW_OR_HIGH: [Option<&str>; 4] = [Some("low"), Some("low"), Some("high"), Some("high")];
const ON_OR_OFF: [Option<&str>; 4] =
    [Some("none"), Some("default"), Some("default"), Some("default")];

/// A model nobody knows.
const ANY: Family = Family {
    begins: "",
    holds: "",
    reasons: true,
    words: WORDS,
    temperature: Temperature::WithoutEffort,
};

/// A model that does not reason, and refuses to be told how.
const fn plain_family(begins: &'static str) -> Family {
    let (words, temperature) = (SILENT, Temperature::Always);
    Family { begins, holds: "", reasons: false, words, temperature }
}

/// A reasoning model that samples as it likes.
const fn strict_family(
    begins: &'static str,
    holds: &'static str,
    words: [Option<&'static str>; 4],
) -> Family {
    Family { begins, holds, reasons: true, words, temperature: Temperature::Never }
}

/// A reasoning model that takes any temperature.
const fn relaxed_family(begins: &'static str, words: [Option<&'static str>; 4]) -> Family {
    Family { begins, holds: "", reasons: true, words, temperature: Temperature::Always }
}

/// OpenAI's models. Deployments on Azure may have any name.
pub(crate) const OPENAI: &[Family] = &[
    plain_family("gpt-3"),
    plain_family("gpt-4"),
    plain_family("chatgpt-"),
    plain_family("gpt-5-chat"),
    relaxed_family("gpt-oss", FROM_LOW),
    strict_family("gpt-5", "-chat", SILENT),
    strict_family("gpt-5-pro", "", SILENT),
    strict_family("gpt-5", "-pro", FROM_MEDIUM),
    strict_family("gpt-5", "-codex", FROM_LOW),
    Family { begins: "gpt-5.", temperature: Temperature::WithoutThinking, ..ANY },
    strict_family("gpt-5", "", FROM_MINIMAL),
    Family { begins: "gpt-", temperature: Temperature::WithoutThinking, ..ANY },
    strict_family("codex-", "", FROM_LOW),
    strict_family("o1", "", FROM_LOW),
    strict_family("o3", "", FROM_LOW),
    strict_family("o4", "", FROM_LOW),
];

/// The models that Groq serves.
pub(crate) const GROQ: &[Family] = &[
    relaxed_family("gpt-oss", FROM_LOW),
    relaxed_family("qwen3", ON_OR_OFF),
    relaxed_family("", SILENT),
];

/// xAI's models. The older ones have their effort in their name.
pub(crate) const XAI: &[Family] = &[
    relaxed_family("grok-3-mini", LOW_OR_HIGH),
    relaxed_family("grok-4.1", SILENT),
    relaxed_family("grok-4.2", SILENT),
    relaxed_family("grok-4.3", WORDS),
    relaxed_family("grok-4.", FROM_LOW),
    relaxed_family("grok-latest", FROM_LOW),
    relaxed_family("", SILENT),
];

#[cfg(test)]
mod tests {
    use super::*;

    const EFFORTS: [Effort; 4] = [Effort::None, Effort::Low, Effort::Medium, Effort::High];

    #[test]
    fn reasoning_effort_words_are_mapped_per_model_family() {
        for (list, model, words) in [
            (OPENAI, "gpt-4o-mini", SILENT),
            (OPENAI, "openai/o3", FROM_LOW),
            (OPENAI, "gpt-5-nano-2025-08-07", FROM_MINIMAL),
            (OPENAI, "gpt-5-codex", FROM_LOW),
            (OPENAI, "gpt-5-chat-latest", SILENT),
            (OPENAI, "gpt-5.2-pro", FROM_MEDIUM),
            (OPENAI, "gpt-5.5", WORDS),
            (OPENAI, "gpt-6", WORDS),
            (OPENAI, "gpt-oss:20b", FROM_LOW),
            (OPENAI, "my-deployment", WORDS),
            (GROQ, "openai/gpt-oss-120b", FROM_LOW),
            (GROQ, "qwen/qwen3-32b", ON_OR_OFF),
            (GROQ, "llama-3.3-70b-versatile", SILENT),
            (XAI, "grok-4.3", WORDS),
            (XAI, "grok-4-1-fast-reasoning", SILENT),
        ] {
            let heard = EFFORTS.map(|effort| find_family(list, model).effort_word(effort));
            assert_eq!(heard, words, "{model}");
        }
    }

    #[test]
    fn temperature_is_sent_only_to_models_that_accept_it() {
        let samples = |list, model| {
            let family = find_family(list, model);
            [None, Some(Effort::None), Some(Effort::High)]
                .map(|effort| family.accepts_temperature(effort))
        };
        assert_eq!(samples(OPENAI, "gpt-4.1"), [true, true, true]);
        assert_eq!(samples(OPENAI, "o4-mini"), [false, false, false]);
        assert_eq!(samples(OPENAI, "gpt-5"), [false, false, false]);
        assert_eq!(samples(OPENAI, "gpt-5.5"), [false, true, false]);
        assert_eq!(samples(OPENAI, "my-deployment"), [true, true, false]);
        assert_eq!(samples(GROQ, "openai/gpt-oss-20b"), [true, true, true]);
    }
}
