//! The model catalogue: context windows, prices, capabilities and release days of known models.
//!
//! The list is a file of this folder, made by `cargo xtask catalogue` from public data that it names
//! with their days. It is unpacked when it is first asked; a look-up searches the lines of one provider and reads
//! one. Nothing here asks a server, and no model is named in code; an old price is still a price, so
//! how old the list is is told ([`age_days`]) and left to the caller. What users add or correct lies
//! over it ([`parse_overlay`]).

mod day;
mod default_models;
mod list;
mod model;
mod overlay;
mod similar_models;

use self::list::SHIPPED;
pub use self::model::{Capabilities, ListedModel};
pub use self::overlay::{MAX_MODELS, MAX_TEXT_BYTES, Overlay, OverlayError};
pub(crate) use self::similar_models::find_similar_model;

/// A model by provider and id: as listed; else, for an id with a date, `latest` or a server's variant
/// behind it (`-20260205`, `-2603`, `@20260205`, `:free`), the listed one without it. Never another
/// model that merely begins alike.
#[must_use]
pub fn lookup(provider: &str, model: &str) -> Option<ListedModel> {
    Overlay::NONE.lookup(provider, model)
}

/// All models of a provider under their first names, by id.
#[must_use]
pub fn of_provider(provider: &str) -> Vec<ListedModel> {
    Overlay::NONE.of_provider(provider)
}

/// The few models of a provider that are worth having at hand unasked, cheapest first: the newest of
/// each class of price that is not on its way out, experimental or dear beyond use: one of each at most.
#[must_use]
pub fn usual_models(provider: &str, today: i32) -> Vec<ListedModel> {
    Overlay::NONE.usual_models(provider, today)
}

/// The providers that are listed, sorted.
pub fn providers() -> impl Iterator<Item = &'static str> {
    SHIPPED.providers()
}

/// Parses the models that users add or correct, as TOML.
///
/// ```toml
/// [[model]]
/// provider = "mistral"
/// id = "mistral-large-latest"
/// # All that follows is optional for a listed model. A new one needs the window and both prices.
/// context_window = 262144
/// max_output = 32768
/// input_price = 0.5            # dollars per million tokens
/// output_price = 1.5
/// cache_read_price = 0.05
/// cache_write_price = 0.5
/// tools = true
/// vision = true
/// thinking = false
/// structured_output = true
/// released = 2025-12-02
/// deprecated = 2027-01-31
/// open_weights = true
/// ```
///
/// # Errors
/// The line, and what is wrong there.
pub fn parse_overlay(text: &str) -> Result<Overlay, OverlayError> {
    overlay::read_overlay(text)
}

/// The day of the list: that of its newest source.
#[must_use]
pub fn made_on() -> i32 {
    SHIPPED.made_on().unwrap_or_default()
}

/// Returns the age of the list in days; 0 if the clock is behind it.
#[must_use]
pub fn age_days(today: i32) -> u32 {
    u32::try_from(today.saturating_sub(made_on())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A day some weeks after the list.
    fn soon() -> i32 {
        made_on() + 20
    }

    #[test]
    fn every_catalogue_model_is_found_by_its_id() {
        let mut count = 0;
        for provider in providers() {
            for model in of_provider(provider) {
                assert_eq!(lookup(provider, &model.id).as_ref(), Some(&model));
                count += 1;
            }
        }
        assert!(count > 500, "{count} models");
    }

    #[test]
    fn every_shipped_model_catalogue_line_is_valid() {
        let mut seen = Vec::new();
        for provider in providers() {
            let lines = SHIPPED.model_ids(provider);
            assert!(
                lines.is_sorted_by(|one, next| one < next),
                "{provider}: sorted, and once each"
            );
            for id in lines {
                let model = lookup(provider, id).unwrap();
                assert_eq!(model.id, id);
                assert!(model.context_window >= 8_000, "{provider}/{id}");
                assert!(model.capabilities.tools && model.price.output <= 1_000_000_000, "{id}");
                assert!(model.alias_of.is_none_or(|lead| lead != model.id));
                seen.push(model.released);
            }
        }
        let dated = seen.iter().flatten().count();
        assert!(dated * 10 > seen.len() * 7, "{dated} of {} have a day", seen.len());
        assert!(seen.iter().flatten().all(|day| (17_000..=made_on()).contains(day)));
        assert!(SHIPPED.len() < 150_000, "{} bytes", SHIPPED.len());
        assert!(age_days(soon()) == 20 && age_days(0) == 0);
    }

    #[test]
    fn model_lookup_ignores_date_and_variant_suffixes() {
        let found = |provider, model: &str| lookup(provider, model).map(|model| model.id);
        for provider in providers() {
            // Behind a colon, anything goes.
            let plain = |model: &ListedModel| !model.id.contains(':');
            for model in of_provider(provider).into_iter().filter(plain) {
                for suffix in
                    ["-20991231", "-2099-12-31", "-9912", "@20991231", ":nitro", "-latest"]
                {
                    let asked = format!("{}{suffix}", model.id);
                    let listed = SHIPPED.model_ids(provider).contains(&asked.as_str());
                    let expected = if listed { &asked } else { &model.id };
                    assert_eq!(found(provider, &asked).as_ref(), Some(expected), "{asked}");
                }
                for suffix in ["-mini-pro-x", "-5", "-12", "x", "-", "@", ":", "-2026-mini"] {
                    let asked = format!("{}{suffix}", model.id);
                    let named = found(provider, &asked);
                    assert!(named.is_none_or(|id| id == asked), "{asked}");
                }
            }
        }
        assert_eq!(lookup("nobody", "gpt"), None);
    }

    #[test]
    fn azure_lists_openai_models_at_openai_prices() {
        let model = of_provider("openai").remove(0);
        let sold = lookup("azure", &model.id).unwrap();
        assert_eq!((sold.provider.as_str(), sold.price), ("azure", model.price));
    }

    #[test]
    fn usual_models_are_few_and_not_deprecated() {
        for provider in providers() {
            let usual = usual_models(provider, soon());
            assert!(usual.len() <= default_models::CLASSES.len());
            assert!(usual.is_sorted_by(|one, next| one.price.output < next.price.output));
            for model in &usual {
                assert!(!model.is_deprecated(soon()), "{provider}/{}", model.id);
            }
        }
        for provider in ["mistral", "anthropic", "openai", "google", "groq", "xai", "deepseek"] {
            assert!(!usual_models(provider, soon()).is_empty(), "{provider}");
        }
    }
}
