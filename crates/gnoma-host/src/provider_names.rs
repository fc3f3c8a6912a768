//! The names of providers.

use gnoma_config::settings::Provider;
use gnoma_llm::KNOWN;

/// All names that mean a provider: those that are known, then those that are configured.
pub(crate) fn provider_names(provider: &Provider) -> Vec<String> {
    let known = KNOWN.iter().map(|known| known.name.to_owned());
    known.chain(provider.endpoints.keys().cloned()).collect()
}
