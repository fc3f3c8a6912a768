//! "Did you mean": the known name closest to a misspelt one.

use crate::message::ModelRef;

/// Longer names are not compared: the work grows with the product of the lengths.
const MAX_NAME_CHARS: usize = 64;
/// Names from here on may be written with two slips.
const LONG_NAME_CHARS: usize = 8;

/// Returns the name nearest to `wrong`, if one is near: at most a third of its letters differ. Of two that are as near,
/// returns the one as long as `wrong`.
#[must_use]
pub fn nearest_name<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let wrong_length = wrong.chars().count();
    if wrong_length > MAX_NAME_CHARS {
        return None;
    }
    let ranked = names.filter_map(|name| {
        let length = name.chars().count();
        let distance = strsim::osa_distance(wrong, name);
        let is_near = distance <= (wrong_length.max(length) / 3).max(1);
        is_near.then_some((distance, wrong_length.abs_diff(length), name))
    });
    ranked.min().map(|(_, _, name)| name)
}

/// Returns the model that people mean by `wanted`: `provider/model`, the model, or a word of its name.
pub fn find_model<'a>(
    wanted: &str,
    mut models: impl Iterator<Item = &'a ModelRef> + Clone,
) -> Option<&'a ModelRef> {
    let is_exact = |model: &&ModelRef| model.model == wanted || model.to_string() == wanted;
    let has_word =
        |model: &&ModelRef| model.model.split(['-', '_', '.', ':', '/']).any(|it| it == wanted);
    models.clone().find(is_exact).or_else(|| models.find(has_word))
}

/// True if `written` is `name` with a slip in it: one letter, or two from eight letters on. [`nearest_name`] is for
/// words that are known to be wrong; words that are further apart than this are usually other words.
#[must_use]
pub fn is_slip_of(written: &str, name: &str) -> bool {
    let longest = written.chars().count().max(name.chars().count());
    let most = if longest < LONG_NAME_CHARS { 1 } else { 2 };
    longest <= MAX_NAME_CHARS && strsim::osa_distance(&written.to_lowercase(), name) <= most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_is_found_by_its_name_or_a_word_of_it() {
        let model = |model: &str| ModelRef { provider: "p".into(), model: model.into() };
        let all = [model("big-opus"), model("opus"), model("small")];
        let find = |wanted| find_model(wanted, all.iter()).map(|found| found.model.as_str());
        let found = ["opus", "big", "p/small", "smal"].map(find);
        assert_eq!(found, [Some("opus"), Some("big-opus"), Some("small"), None]);
    }

    #[test]
    fn typo_suggestion_is_limited_to_similar_names() {
        let names = ["mode", "model", "max_tokens", "temperature"];
        assert_eq!(nearest_name("modle", names.into_iter()), Some("model"));
        assert_eq!(nearest_name("mdoe", names.into_iter()), Some("mode"), "a swap is one edit");
        assert_eq!(nearest_name("max_token", names.into_iter()), Some("max_tokens"));
        assert_eq!(nearest_name("colour", names.into_iter()), None);
    }

    #[test]
    fn typo_detection_tells_a_slip_from_another_word() {
        for (written, name) in
            [("lst", "list"), ("Sesions", "sessions"), ("shwo", "show"), ("remov", "remove")]
        {
            assert!(is_slip_of(written, name), "{written}");
        }
        for (written, name) in
            [("tests", "task"), ("fix", "ci"), ("wrong", "rnu"), (&"x".repeat(999), "x")]
        {
            assert!(!is_slip_of(written, name), "{written:.9}");
        }
    }
}
