//! Providers: which there are, and whether one can be asked at all.

use gnoma_config::Settings;
use gnoma_llm::KNOWN;
use gnoma_tui::desk::Found;

use crate::{routing::find_provider, wire};

/// What a provider could be made of, where none can be asked. Asks the network only where neither the
/// settings nor the environment name one.
pub(super) async fn found(settings: &Settings) -> Option<Found> {
    if settings.provider.default.is_some() {
        return None;
    }
    if has_key(settings) || find_provider(settings, &wire::http(settings)).await.is_some() {
        return None;
    }
    let hosted = KNOWN.iter().filter(|known| !known.local);
    let providers = hosted.map(|known| known.name.to_owned()).collect();
    Some(Found { providers, ..Found::default() })
}

fn has_key(settings: &Settings) -> bool {
    let keys = &settings.provider.api_keys;
    KNOWN.iter().any(|known| !known.local && keys.contains_key(known.name))
}

/// All names that mean a provider.
pub(super) fn named(settings: &Settings) -> Vec<String> {
    let known = KNOWN.iter().map(|known| known.name.to_owned());
    known.chain(settings.provider.endpoints.keys().cloned()).collect()
}

/// All that could be asked: with a key, or at an address that the settings name.
pub(super) fn configured(settings: &Settings) -> Vec<String> {
    let with_key = settings.provider.api_keys.keys();
    let mut names: Vec<_> = with_key.chain(settings.provider.endpoints.keys()).cloned().collect();
    names.extend(settings.provider.default.clone());
    names.sort();
    names.dedup();
    names
}
