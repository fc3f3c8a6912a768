//! The person's corrections of the catalogue, and models of their own.

use std::{collections::BTreeMap, ops::Range};

use gnoma_core::Price;
use toml::{
    Spanned,
    de::{DeTable, DeValue},
    value::Datetime,
};

use super::{
    Capabilities, ListedModel, day, default_models,
    list::{self, SHIPPED},
};

/// Longest text that is read.
pub const MAX_TEXT_BYTES: usize = 1 << 20;
/// Most models that are taken.
pub const MAX_MODELS: usize = 10_000;
/// Dearest price that is believed, in dollars per million tokens.
const MAX_DOLLARS: f64 = 100_000.0;
const MICRO: f64 = 1e6;

/// Models of the user, over those that are shipped.
#[derive(Clone, Debug, Default)]
pub struct Overlay {
    /// By provider and id.
    models: BTreeMap<String, BTreeMap<String, ListedModel>>,
}

/// An error in a user's list of models.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverlayError {
    /// The line of the error, counted from 1.
    pub line: usize,
    /// The description of the error, as a fragment of a sentence.
    pub message: String,
}

impl std::fmt::Display for OverlayError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for OverlayError {}

impl Overlay {
    /// An empty overlay, which leaves the list as it is.
    pub(super) const NONE: Self = Self { models: BTreeMap::new() };

    /// Like [`lookup`](super::lookup); what the user says wins.
    #[must_use]
    pub fn lookup(&self, provider: &str, model: &str) -> Option<ListedModel> {
        list::resolve_id(model, |id| self.find_exact(provider, id))
    }

    /// Like [`of_provider`](super::of_provider), with the user's models.
    #[must_use]
    pub fn of_provider(&self, provider: &str) -> Vec<ListedModel> {
        let mut models: BTreeMap<String, ListedModel> = gnoma_core::sort::to_map(
            SHIPPED.models(provider).map(|model| (model.id.clone(), model)),
        );
        models.extend(
            self.models
                .get(provider)
                .into_iter()
                .flatten()
                .map(|(id, model)| (id.clone(), model.clone())),
        );
        models.into_values().collect()
    }

    /// Like [`usual`](super::usual), with the user's models.
    #[must_use]
    pub fn usual_models(&self, provider: &str, today: i32) -> Vec<ListedModel> {
        default_models::pick_models(self.of_provider(provider), today)
    }

    fn user_model(&self, provider: &str, id: &str) -> Option<&ListedModel> {
        self.models.get(provider)?.get(id)
    }

    fn find_exact(&self, provider: &str, id: &str) -> Option<ListedModel> {
        if let Some(own) = self.user_model(provider, id) {
            return Some(own.clone());
        }
        let listed = SHIPPED.find_exact(provider, id)?;
        // A correction holds for the model's other names too.
        match listed.alias_of.as_deref().and_then(|lead| self.user_model(provider, lead)) {
            Some(own) => {
                Some(ListedModel { id: listed.id, alias_of: listed.alias_of, ..own.clone() })
            }
            None => Some(listed),
        }
    }
}

/// One `[[model]]`. A field that is not written is `None`.
#[derive(Default)]
struct OverlayEntry {
    provider: String,
    id: String,
    context_window: Option<Spanned<u64>>,
    max_output: Option<Spanned<u64>>,
    input_price: Option<Spanned<f64>>,
    output_price: Option<Spanned<f64>>,
    cache_read_price: Option<Spanned<f64>>,
    cache_write_price: Option<Spanned<f64>>,
    tools: Option<bool>,
    vision: Option<bool>,
    thinking: Option<bool>,
    structured_output: Option<bool>,
    released: Option<Spanned<Datetime>>,
    deprecated: Option<Spanned<Datetime>>,
    open_weights: Option<bool>,
}

/// The fields of an entry, for the message about another one.
const FIELDS: &str = "`provider`, `id`, `context_window`, `max_output`, `input_price`, `output_price`, \
    `cache_read_price`, `cache_write_price`, `tools`, `vision`, `thinking`, `structured_output`, `released`, \
    `deprecated`, `open_weights`";

/// An error, and the part of the text that it is about.
struct OverlayFault {
    at: Range<usize>,
    message: String,
}

impl OverlayFault {
    fn new(at: Range<usize>, message: impl Into<String>) -> Self {
        Self { at, message: message.into() }
    }
}

pub(super) fn read_overlay(text: &str) -> Result<Overlay, OverlayError> {
    parse_overlay_text(text).map_err(|wrong| {
        let before = text.as_bytes().get(..wrong.at.start).unwrap_or_default();
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        OverlayError { line, message: wrong.message }
    })
}

fn parse_overlay_text(text: &str) -> Result<Overlay, OverlayFault> {
    if text.len() > MAX_TEXT_BYTES {
        return Err(OverlayFault::new(0..0, format!("longer than {MAX_TEXT_BYTES} bytes")));
    }
    let file = DeTable::parse(text).map_err(|error| {
        OverlayFault::new(error.span().unwrap_or_default(), error.message().trim())
    })?;
    let entries = file_entries(file.get_ref())?;
    if let Some(first) = entries.get(MAX_MODELS) {
        return Err(OverlayFault::new(first.span(), format!("more than {MAX_MODELS} models")));
    }
    let mut overlay = Overlay::default();
    for entry in entries {
        let at = entry.span();
        let entry = read_entry(entry)?;
        let (provider, id) = (entry.provider.clone(), entry.id.clone());
        if provider.is_empty() || id.is_empty() {
            return Err(OverlayFault::new(at, "`provider` and `id` must not be empty"));
        }
        let base = list::resolve_id(&id, |id| SHIPPED.find_exact(&provider, id));
        let model = merge_entry(entry, base.as_ref(), &at)?;
        let models = overlay.models.entry(provider.clone()).or_default();
        if models.insert(id.clone(), model).is_some() {
            return Err(OverlayFault::new(at, format!("`{provider}/{id}` is listed twice")));
        }
    }
    Ok(overlay)
}

/// Returns the `[[model]]` entries of a file, which holds nothing else.
fn file_entries<'f>(file: &'f DeTable<'f>) -> Result<&'f [Spanned<DeValue<'f>>], OverlayFault> {
    let mut entries: &[_] = &[];
    for (name, value) in file {
        match (name.get_ref().as_ref(), value.get_ref()) {
            ("model", DeValue::Array(models)) => entries = models,
            ("model", _) => {
                return Err(OverlayFault::new(value.span(), "each model is a `[[model]]`"));
            }
            (other, _) => {
                let message = format!("unknown field `{other}`, expected `model`");
                return Err(OverlayFault::new(name.span(), message));
            }
        }
    }
    Ok(entries)
}

fn read_entry(entry: &Spanned<DeValue<'_>>) -> Result<OverlayEntry, OverlayFault> {
    let DeValue::Table(fields) = entry.get_ref() else {
        return Err(OverlayFault::new(entry.span(), "each model is a `[[model]]`"));
    };
    for needed in ["provider", "id"] {
        if !fields.iter().any(|(name, _)| name.get_ref() == needed) {
            return Err(OverlayFault::new(entry.span(), format!("missing field `{needed}`")));
        }
    }
    let mut read = OverlayEntry::default();
    for (name, value) in fields {
        match name.get_ref().as_ref() {
            "provider" => read.provider = read_text(value)?,
            "id" => read.id = read_text(value)?,
            "context_window" => read.context_window = Some(read_count(value)?),
            "max_output" => read.max_output = Some(read_count(value)?),
            "input_price" => read.input_price = Some(read_number(value)?),
            "output_price" => read.output_price = Some(read_number(value)?),
            "cache_read_price" => read.cache_read_price = Some(read_number(value)?),
            "cache_write_price" => read.cache_write_price = Some(read_number(value)?),
            "tools" => read.tools = Some(read_bool(value)?),
            "vision" => read.vision = Some(read_bool(value)?),
            "thinking" => read.thinking = Some(read_bool(value)?),
            "structured_output" => read.structured_output = Some(read_bool(value)?),
            "released" => read.released = Some(read_datetime(value)?),
            "deprecated" => read.deprecated = Some(read_datetime(value)?),
            "open_weights" => read.open_weights = Some(read_bool(value)?),
            other => {
                let message = format!("unknown field `{other}`, expected one of {FIELDS}");
                return Err(OverlayFault::new(name.span(), message));
            }
        }
    }
    Ok(read)
}

fn wrong_type(value: &Spanned<DeValue<'_>>, expected: &str) -> OverlayFault {
    OverlayFault::new(
        value.span(),
        format!("invalid type: {}, expected {expected}", value.get_ref().type_str()),
    )
}

fn read_text(value: &Spanned<DeValue<'_>>) -> Result<String, OverlayFault> {
    let text = value.get_ref().as_str();
    text.map(str::to_owned).ok_or_else(|| wrong_type(value, "a string"))
}

fn read_bool(value: &Spanned<DeValue<'_>>) -> Result<bool, OverlayFault> {
    value.get_ref().as_bool().ok_or_else(|| wrong_type(value, "true or false"))
}

fn read_count(value: &Spanned<DeValue<'_>>) -> Result<Spanned<u64>, OverlayFault> {
    let number = match value.get_ref() {
        DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
        _ => None,
    };
    let number = number.ok_or_else(|| wrong_type(value, "a whole number of at least 0"))?;
    Ok(Spanned::new(value.span(), number))
}

fn read_number(value: &Spanned<DeValue<'_>>) -> Result<Spanned<f64>, OverlayFault> {
    let number = match value.get_ref() {
        DeValue::Float(number) => number.as_str().parse().ok(),
        DeValue::Integer(number) => {
            i64::from_str_radix(number.as_str(), number.radix()).ok().map(|whole| whole as f64)
        }
        _ => None,
    };
    let number = number.ok_or_else(|| wrong_type(value, "a number"))?;
    Ok(Spanned::new(value.span(), number))
}

fn read_datetime(value: &Spanned<DeValue<'_>>) -> Result<Spanned<Datetime>, OverlayFault> {
    match value.get_ref() {
        DeValue::Datetime(datetime) => Ok(Spanned::new(value.span(), *datetime)),
        _ => Err(wrong_type(value, "a date such as 2026-05-01, without quotes")),
    }
}

/// The capabilities that are assumed for a model about which nothing is said.
const TOOLS_ONLY: Capabilities =
    Capabilities { tools: true, vision: false, thinking: false, structured_output: false };

/// Returns the model that an entry describes, with listed facts where the entry gives none.
fn merge_entry(
    entry: OverlayEntry,
    base: Option<&ListedModel>,
    at: &Range<usize>,
) -> Result<ListedModel, OverlayFault> {
    let needed = |what: &str| {
        let (provider, id) = (&entry.provider, &entry.id);
        OverlayFault::new(
            at.clone(),
            format!("`{provider}/{id}` is not listed, so it needs `{what}`"),
        )
    };
    let capabilities = merge_capabilities(&entry, base);
    let listed = base.map(|base| base.price);
    let input = read_price(entry.input_price)?.or(listed.map(|price| price.input));
    let input = input.ok_or_else(|| needed("input_price"))?;
    let output = read_price(entry.output_price)?.or(listed.map(|price| price.output));
    // The listed prices of the cache go with the listed price of input; another input price replaces them.
    let kept = listed.filter(|price| price.input == input);
    let price = Price {
        input,
        output: output.ok_or_else(|| needed("output_price"))?,
        cache_read: read_price(entry.cache_read_price)?
            .or(kept.map(|price| price.cache_read))
            .unwrap_or(input),
        cache_write: read_price(entry.cache_write_price)?
            .or(kept.map(|price| price.cache_write))
            .unwrap_or(input),
    };
    let window = read_token_limit(entry.context_window)?.or(base.map(|base| base.context_window));
    Ok(ListedModel {
        context_window: window.ok_or_else(|| needed("context_window"))?,
        max_output: read_token_limit(entry.max_output)?.or(base.and_then(|base| base.max_output)),
        price,
        capabilities,
        released: read_day_number(entry.released)?.or(base.and_then(|base| base.released)),
        deprecated: read_day_number(entry.deprecated)?.or(base.and_then(|base| base.deprecated)),
        open_weights: entry.open_weights.or(base.and_then(|base| base.open_weights)),
        alias_of: None,
        provider: entry.provider,
        id: entry.id,
    })
}

fn merge_capabilities(entry: &OverlayEntry, base: Option<&ListedModel>) -> Capabilities {
    let listed = base.map_or(TOOLS_ONLY, |base| base.capabilities);
    Capabilities {
        tools: entry.tools.unwrap_or(listed.tools),
        vision: entry.vision.unwrap_or(listed.vision),
        thinking: entry.thinking.unwrap_or(listed.thinking),
        structured_output: entry.structured_output.unwrap_or(listed.structured_output),
    }
}

fn read_price(price: Option<Spanned<f64>>) -> Result<Option<u64>, OverlayFault> {
    let Some(price) = price else { return Ok(None) };
    let dollars = *price.get_ref();
    if (0.0..=MAX_DOLLARS).contains(&dollars) {
        return Ok(Some((dollars * MICRO).round() as u64));
    }
    let message = format!("a price must be 0 to {MAX_DOLLARS} dollars per million tokens");
    Err(OverlayFault::new(price.span(), message))
}

fn read_token_limit(count: Option<Spanned<u64>>) -> Result<Option<u64>, OverlayFault> {
    match count {
        Some(count) if *count.get_ref() == 0 => {
            Err(OverlayFault::new(count.span(), "a limit must be at least 1 token"))
        }
        other => Ok(other.map(Spanned::into_inner)),
    }
}

fn read_day_number(day: Option<Spanned<Datetime>>) -> Result<Option<i32>, OverlayFault> {
    let Some(day) = day else { return Ok(None) };
    let date = day.get_ref().date.and_then(|date| {
        day::from_parts(i32::from(date.year), i32::from(date.month), i32::from(date.day))
    });
    let message = "a date must be in 1970 or later, such as 2026-05-01, without quotes";
    date.map(Some).ok_or_else(|| OverlayFault::new(day.span(), message))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::catalogue;

    fn wrong(text: &str) -> String {
        read_overlay(text).unwrap_err().to_string()
    }

    #[test]
    fn user_model_entry_overrides_the_catalogue() {
        let listed = catalogue::of_provider("openai").remove(0);
        let overlay = read_overlay(&format!(
            "[[model]]\nprovider = 'openai'\nid = '{}'\noutput_price = 7\nreleased = 2026-05-01\n",
            listed.id
        ))
        .unwrap();
        let found = overlay.lookup("openai", &listed.id).unwrap();
        assert_eq!(found.price, Price { output: 7_000_000, ..listed.price });
        assert_eq!(found.released, Some(20_574));
        assert_eq!(found.context_window, listed.context_window, "the rest is as listed");
        let dated = format!("{}-20991231", listed.id);
        assert_eq!(overlay.lookup("openai", &dated), Some(found.clone()));
        assert_eq!(overlay.of_provider("openai").len(), catalogue::of_provider("openai").len());
        assert!(overlay.of_provider("openai").contains(&found));
    }

    #[test]
    fn model_override_applies_to_aliases() {
        let alias = catalogue::providers()
            .flat_map(|provider| {
                SHIPPED.model_ids(provider).into_iter().map(move |id| (provider, id))
            })
            .find_map(|(provider, id)| {
                catalogue::lookup(provider, id)?.alias_of.map(|lead| (provider, id, lead))
            });
        let (provider, id, lead) = alias.unwrap();
        let overlay = read_overlay(&format!(
            "[[model]]\nprovider = '{provider}'\nid = '{lead}'\nvision = false\nmax_output = 5"
        ))
        .unwrap();
        let found = overlay.lookup(provider, id).unwrap();
        assert_eq!((found.max_output, found.alias_of), (Some(5), Some(lead)));
    }

    #[test]
    fn unlisted_model_entry_needs_price_and_context_window() {
        let new = "[[model]]\nprovider = 'mine'\nid = 'x'\n";
        assert_eq!(wrong(new), "line 1: `mine/x` is not listed, so it needs `input_price`");
        let priced = format!("{new}input_price = 0\noutput_price = 0.5\n");
        assert_eq!(wrong(&priced), "line 1: `mine/x` is not listed, so it needs `context_window`");
        let overlay = read_overlay(&format!("{priced}context_window = 32768\n")).unwrap();
        let model = overlay.lookup("mine", "x").unwrap();
        assert_eq!((model.price.output, model.price.cache_read), (500_000, 0));
        assert!(model.capabilities.tools && !model.capabilities.vision);
        assert_eq!(overlay.of_provider("mine"), [model]);
    }

    #[test]
    fn model_overlay_error_names_its_line() {
        let model = "[[model]]\nprovider = 'mine'\nid = 'x'\n";
        let unknown = wrong(&format!("\n{model}conext_window = 3\n"));
        assert!(unknown.starts_with("line 5: unknown field `conext_window`"), "{unknown}");
        assert!(wrong("models = 3").starts_with("line 1: unknown field `models`"));
        assert!(
            wrong(&format!("{model}input_price = -1")).starts_with("line 4: a price must be 0 to")
        );
        assert!(
            wrong(&format!("{model}input_price = nan")).starts_with("line 4: a price must be 0 to")
        );
        assert!(
            wrong(&format!("{model}input_price=1\noutput_price=1\ncontext_window = 0"))
                .starts_with("line 6: a limit")
        );
        let sound = format!("{model}input_price=1\noutput_price=1\ncontext_window=9000\n");
        assert!(
            wrong(&format!("{sound}released = 10:00:00")).starts_with("line 7: a date must be")
        );
        assert_eq!(wrong(&format!("{sound}{sound}")), "line 7: `mine/x` is listed twice");
        assert!(wrong("[[model]]\nid = 'x'").contains("missing field `provider`"));
        assert!(read_overlay("").is_ok());
    }

    proptest! {
        #[test]
        fn model_overlay_parser_never_panics(text in "(\\[\\[model\\]\\]\n)?([a-z_]{0,12} ?=? ?['0-9a-z:.-]{0,12}\n?){0,6}") {
            if let Ok(overlay) = read_overlay(&text) {
                let _few = overlay.usual_models("mine", 20_000);
            }
        }
    }
}
