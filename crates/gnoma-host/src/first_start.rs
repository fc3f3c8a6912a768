//! Tries and adds a provider for the terminal's first start.

use gnoma_core::{
    Secret,
    protocol::{ConnectBy, Connection, TypedKey},
};

use crate::{
    HostError, Project, Result,
    providers::{self, KeySource, NewProvider},
};

/// Asks a provider for its models; says what it has.
///
/// # Errors
/// The provider does not answer, refuses or has no model. No secret is in the reason.
pub(crate) async fn try_provider(project: &Project, connection: Connection) -> Result<String> {
    let new = to_new_provider(connection);
    let models = match providers::try_new(project, &new, "your entry").await {
        Err(error) if new.model.is_some() && has_no_list(&error) => Vec::new(),
        models => models?,
    };
    match &new.model {
        Some(model) if models.is_empty() => Ok(format!("the model is `{model}`")),
        _ => describe_model_count(&new.name, &models),
    }
}

/// Returns whether a server answered that it has no list of models.
fn has_no_list(error: &HostError) -> bool {
    let texts = [Some(&error.cause), error.remedy.as_ref()];
    texts.into_iter().flatten().any(|text| text.contains("has no list of models"))
}

/// Adds a provider to the person's own settings; returns a sentence that says where.
///
/// # Errors
/// The file cannot be changed.
pub(crate) fn add_provider(project: &Project, connection: Connection) -> Result<String> {
    providers::add_new(project, &to_new_provider(connection))
}

/// A provider as the first start describes it; it is asked from now on.
fn to_new_provider(Connection { provider, by, model }: Connection) -> NewProvider {
    let typed = |key: TypedKey| KeySource::Entered(Secret::new(key.0));
    let (address, key) = match by {
        ConnectBy::Variable(variable) => (None, KeySource::Variable(variable)),
        ConnectBy::Address(address) => (Some(address), KeySource::None),
        ConnectBy::Key(key) => (None, typed(key)),
        ConnectBy::AddressAndKey { address, key } => (Some(address), typed(key)),
    };
    NewProvider { name: provider, address, protocol: None, key, model, is_default: true }
}

/// Describes the models of a provider that is tried. A provider that runs without a model answers, but can do
/// nothing.
fn describe_model_count(name: &str, models: &[String]) -> Result<String> {
    match models.len() {
        0 if name == "ollama" => Err(HostError {
            remedy: Some("`ollama pull qwen3:8b` downloads one".to_owned()),
            ..HostError::failure("Ollama is running, but has no model")
        }),
        0 => Err(HostError::failure(format!("`{name}` works but lists no models"))),
        1 => Ok("1 model".to_owned()),
        count => Ok(format!("{count} models")),
    }
}
