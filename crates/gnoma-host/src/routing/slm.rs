//! The small language model (SLM) that classifies requests for the router.

use gnoma_config::settings::{Slm, SlmBackend};
use gnoma_core::ModelRef;

use crate::project_settings::RoutingSettings;

/// The name of a server that only the small model's settings know of.
const OWN: &str = "slm";

/// The arm that says what kind of task it is; `None` where the words decide. Without a model of its own
/// it is the one that has the role `small`.
#[must_use]
pub fn classifier_arm(settings: &RoutingSettings) -> Option<ModelRef> {
    let slm = &settings.slm;
    let provider = provider_name(slm)?;
    match &slm.model {
        Some(model) => Some(ModelRef { provider: provider.to_owned(), model: model.clone() }),
        None => settings.router.roles.small.clone(),
    }
}

/// Reports whether the settings name the arm for nothing but sorting requests.
pub(super) fn only_sorts(settings: &RoutingSettings, arm: &ModelRef) -> bool {
    let provider = &settings.provider;
    let is_default = provider.default.as_deref() == Some(&arm.provider)
        && provider.model.as_ref().is_none_or(|model| *model == arm.model);
    let listed = provider.models.get(&arm.provider);
    !is_default
        && !settings.arms.contains_key(&arm.to_string())
        && !listed.is_some_and(|models| models.contains(&arm.model))
        && !settings.router.roles.named_arms().any(|(_, named)| named == arm)
}

/// The server's name and address, if it has one of its own.
pub(super) fn endpoint(settings: &RoutingSettings) -> Option<(&'static str, &str)> {
    Some((provider_name(&settings.slm)?, settings.slm.base_url.as_deref()?))
}

fn provider_name(slm: &Slm) -> Option<&'static str> {
    match slm.backend {
        _ if !slm.enabled => None,
        SlmBackend::Disabled => None,
        SlmBackend::Auto | SlmBackend::Ollama => Some("ollama"),
        SlmBackend::LlamaCpp | SlmBackend::Llamafile => Some("llamacpp"),
        SlmBackend::Compatible => Some(OWN),
    }
}
