//! The small model that sorts requests: which arm it is.

use gnoma_config::{
    Settings,
    settings::{Slm, SlmBackend},
};
use gnoma_core::ModelRef;

/// The name of a server that only the small model's settings know of.
const OWN: &str = "slm";

/// The arm that says what kind of task it is; `None` where the words decide. Without a model of its own
/// it is the one that has the role `small`.
pub(super) fn arm(settings: &Settings) -> Option<ModelRef> {
    let slm = &settings.slm;
    let provider = provider(slm)?;
    match &slm.model {
        Some(model) => Some(ModelRef { provider: provider.to_owned(), model: model.clone() }),
        None => settings.router.roles.small.clone(),
    }
}

/// The server's name and address, where it has one of its own.
pub(super) fn endpoint(settings: &Settings) -> Option<(&'static str, &str)> {
    Some((provider(&settings.slm)?, settings.slm.base_url.as_deref()?))
}

fn provider(slm: &Slm) -> Option<&'static str> {
    match slm.backend {
        _ if !slm.enabled => None,
        SlmBackend::Disabled => None,
        SlmBackend::Auto | SlmBackend::Ollama => Some("ollama"),
        SlmBackend::LlamaCpp | SlmBackend::Llamafile => Some("llamacpp"),
        SlmBackend::Compatible => Some(OWN),
    }
}
