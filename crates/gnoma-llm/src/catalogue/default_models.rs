//! Chooses a provider's default models when the person named none. A rule over the list's facts; it knows no model.

use super::ListedModel;

/// Classes of price: dollars per million tokens of answer up to which a model belongs to each, in
/// micro-dollars. What is dearer than the last is only used when asked for.
pub(super) const CLASSES: [u64; 4] = [1_500_000, 5_000_000, 16_000_000, 60_000_000];
/// Tokens of prompt without which a session with tools is short.
const LEAST_WINDOW: u64 = 100_000;
/// Models that came within so many days are of one generation: the dearest of them is the best.
const GENERATION_DAYS: i32 = 14;
/// A model is passed over for a cheaper one that came so many days later.
const OVERTAKEN_DAYS: i32 = 150;
/// A model this much older than the provider's newest is of the past.
const STALE_DAYS: i32 = 540;
/// Words in an id that say that it may go any day, is made for other senses, or is sold on terms one
/// must know of, such as that what is sent is learnt from.
const CAVEATS: &[&str] =
    &["alpha", "beta", "contributor", "exp", "experimental", "free", "labs", "omni", "preview"];

/// The newest of each class, cheapest first.
pub(super) fn pick_models(models: Vec<ListedModel>, today: i32) -> Vec<ListedModel> {
    let mut candidates: Vec<(i32, ListedModel)> = models
        .into_iter()
        .filter_map(|model| Some((day_if_usable(&model, today)?, model)))
        .collect();
    let newest = candidates.iter().map(|(day, _)| *day).max().unwrap_or_default();
    candidates.retain(|(day, _)| newest - day <= STALE_DAYS);
    let mut picked: Vec<(i32, ListedModel)> = Vec::new();
    for class in CLASSES {
        let (inside, dearer) =
            candidates.into_iter().partition(|(_, model)| model.price.output <= class);
        candidates = dearer;
        picked.extend(best_model(inside).filter(|(day, _)| {
            // Those picked before are all cheaper.
            picked.iter().all(|(other, _)| other - day < OVERTAKEN_DAYS)
        }));
    }
    picked.into_iter().map(|(_, model)| model).collect()
}

/// The day a model came, if it is one to use.
fn day_if_usable(model: &ListedModel, today: i32) -> Option<i32> {
    let words = model.id.split(['-', '/', ':', '.', '_']);
    let caveat = words.into_iter().any(|word| CAVEATS.contains(&word));
    let day = model.released.filter(|day| *day <= today)?;
    let usable = model.capabilities.tools
        && model.context_window >= LEAST_WINDOW
        && model.price.output > 0
        && !model.is_deprecated(today)
        && !caveat;
    usable.then_some(day)
}

/// The dearest of the newest generation; the shortest name where that leaves several.
fn best_model(inside: Vec<(i32, ListedModel)>) -> Option<(i32, ListedModel)> {
    let newest = inside.iter().map(|(day, _)| *day).max()?;
    inside.into_iter().filter(|(day, _)| newest - day <= GENERATION_DAYS).max_by(|one, other| {
        let rank = |(day, model): &(i32, ListedModel)| {
            (model.price.output, *day, usize::MAX - model.id.len())
        };
        rank(one).cmp(&rank(other)).then_with(|| other.1.id.cmp(&one.1.id))
    })
}

#[cfg(test)]
mod tests {
    use gnoma_core::Price;

    use super::*;
    use crate::catalogue::Capabilities;

    const TODAY: i32 = 20_000;

    fn model(id: &str, dollars: u64, age: i32) -> ListedModel {
        ListedModel {
            provider: "p".to_owned(),
            id: id.to_owned(),
            alias_of: None,
            context_window: 200_000,
            max_output: None,
            price: Price { output: dollars * 1_000_000, ..Price::default() },
            capabilities: Capabilities { tools: true, ..Capabilities::default() },
            released: Some(TODAY - age),
            deprecated: None,
            open_weights: None,
        }
    }

    fn picked(models: &[ListedModel]) -> Vec<String> {
        pick_models(models.to_vec(), TODAY).into_iter().map(|model| model.id).collect()
    }

    #[test]
    fn default_models_are_the_newest_of_each_class() {
        let models = [
            model("large-2", 20, 10),
            model("large-1", 50, 300),
            model("small-1", 1, 40),
            model("small-2", 1, 20),
            model("middle-1", 10, 200),
            model("giant", 120, 1),
        ];
        assert_eq!(picked(&models), ["small-2", "large-2"], "the middle one was overtaken");
    }

    #[test]
    fn default_model_of_one_generation_is_the_most_expensive() {
        let models = [model("a", 10, 10), model("b", 12, 20), model("b-long", 12, 20)];
        assert_eq!(picked(&models), ["b"]);
    }

    #[test]
    fn deprecated_preview_and_small_models_are_no_default_models() {
        let mut gone = model("gone", 1, 0);
        gone.deprecated = Some(TODAY);
        let mut small = model("small", 1, 0);
        small.context_window = 32_000;
        let mut unknown = model("unknown", 1, 0);
        unknown.released = None;
        let tomorrow = model("tomorrow", 1, -1);
        let odd = [gone, small, unknown, tomorrow, model("a-preview", 1, 0), model("gift", 0, 0)];
        assert!(picked(&odd).is_empty());
    }
}
