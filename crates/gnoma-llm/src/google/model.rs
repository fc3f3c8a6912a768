//! Parameters that Gemini models accept, by their version.
//!
//! Source: Google's guides "Gemini thinking" and "Thought signatures".

use gnoma_core::{Effort, ThinkingMode};

use super::wire::ThinkingConfig;

/// The way in which models of one generation are told to think.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ThinkingForm {
    /// They cannot be told.
    Plain,
    /// By a budget in tokens.
    Budget,
    /// By a level of thinking.
    Level,
}

/// The budget by which the model decides itself.
const DYNAMIC: i32 = -1;
/// The largest budget that all of them take.
const MAX_BUDGET: u32 = 24_576;

type Version = (u32, u32);

/// The form from each version on, newest first.
const FORMS: [(Version, ThinkingForm); 3] =
    [((3, 0), ThinkingForm::Level), ((2, 5), ThinkingForm::Budget), ((0, 0), ThinkingForm::Plain)];

/// Gemini 3 brought levels of thinking, demanded signatures on calls, and takes pictures inside of
/// function responses.
pub(crate) fn is_third_generation(model: &str) -> bool {
    thinking_form(model) == ThinkingForm::Level
}

/// Reports whether the model cannot be told not to think.
pub(crate) fn always_thinks(model: &str) -> bool {
    match thinking_form(model) {
        ThinkingForm::Plain => false,
        ThinkingForm::Budget => model.contains("pro"),
        ThinkingForm::Level => true,
    }
}

/// The parameter for `effort`, where the model has one.
pub(super) fn thinking_config(
    model: &str,
    effort: Effort,
    mode: Option<ThinkingMode>,
) -> Option<ThinkingConfig> {
    let (thinking_budget, thinking_level) = match (thinking_form(model), mode) {
        (ThinkingForm::Plain, _) => return None,
        (ThinkingForm::Budget, Some(ThinkingMode::Adaptive)) => (Some(DYNAMIC), None),
        (ThinkingForm::Budget, Some(ThinkingMode::Tokens(tokens))) => {
            (Some(i32::try_from(tokens.min(MAX_BUDGET)).unwrap_or(DYNAMIC)), None)
        }
        (ThinkingForm::Budget, _) => (Some(budget_for(model, effort)), None),
        // Left to itself, the model thinks as much as the task needs.
        (ThinkingForm::Level, Some(ThinkingMode::Adaptive)) => (None, None),
        (ThinkingForm::Level, _) => (None, Some(level_for(model, effort))),
    };
    Some(ThinkingConfig {
        include_thoughts: effort != Effort::None,
        thinking_budget,
        thinking_level,
    })
}

fn budget_for(model: &str, effort: Effort) -> i32 {
    match effort {
        // The larger ones cannot stop thinking; this is the least they take.
        Effort::None if model.contains("pro") => 128,
        Effort::None => 0,
        Effort::Low => 1024,
        Effort::Medium => 8192,
        Effort::High => 24_576,
    }
}

fn level_for(model: &str, effort: Effort) -> &'static str {
    match effort {
        Effort::None if model.contains("flash") => "minimal",
        Effort::None | Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
    }
}

fn thinking_form(model: &str) -> ThinkingForm {
    let Some((_, name)) = model.split_once("gemini-") else {
        return ThinkingForm::Plain;
    };
    // `gemini-flash-latest` is one of the newest.
    let version = parse_version(name).unwrap_or((u32::MAX, 0));
    FORMS.iter().find(|(since, _)| version >= *since).map_or(ThinkingForm::Plain, |(_, form)| *form)
}

/// Parses the version in a name such as `2.5-flash` or `3-pro-preview`.
fn parse_version(name: &str) -> Option<Version> {
    let number = name.split('-').next()?;
    let (major, minor) = number.split_once('.').unwrap_or((number, "0"));
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gemini_generations_get_thinking_budget_or_level() {
        let budget = |tokens| (Some(tokens), None);
        let level = |level| (None, Some(level));
        for (model, effort, expected) in [
            ("gemini-2.5-flash", Effort::None, budget(0)),
            ("models/gemini-2.5-pro", Effort::None, budget(128)),
            ("gemini-2.5-pro", Effort::High, budget(24_576)),
            ("gemini-3-flash-preview", Effort::None, level("minimal")),
            ("gemini-3.1-pro-preview", Effort::None, level("low")),
            ("gemini-flash-latest", Effort::Medium, level("medium")),
        ] {
            let told = thinking_config(model, effort, None).unwrap();
            let told_form = (told.thinking_budget, told.thinking_level);
            assert_eq!(told_form, expected, "{model}");
            assert_eq!(told.include_thoughts, effort != Effort::None, "{model}");
        }
        let told = |model, mode| {
            let told = thinking_config(model, Effort::Low, Some(mode)).unwrap();
            (told.thinking_budget, told.thinking_level)
        };
        assert_eq!(told("gemini-2.5-flash", ThinkingMode::Adaptive), budget(-1));
        assert_eq!(told("gemini-2.5-flash", ThinkingMode::Tokens(99_999)), budget(24_576));
        assert_eq!(told("gemini-3-pro", ThinkingMode::Adaptive), (None, None));
        assert_eq!(told("gemini-3-pro", ThinkingMode::Tokens(99)), level("low"));
        for model in ["gemini-2.0-flash-001", "gemini-1.5-pro", "gemma-3-27b-it"] {
            assert_eq!(thinking_config(model, Effort::High, None), None, "{model}");
        }
    }
}
