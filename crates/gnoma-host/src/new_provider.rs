//! A provider that is to be set up, and the settings with it.

use gnoma_config::{
    Protocol,
    settings::{Provider, ValueSource},
};
use gnoma_core::Secret;

/// A provider that is to be set up, as a person describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewProvider {
    /// The name of the provider.
    pub name: String,
    /// The address of the provider, unless it is the built-in one.
    pub address: Option<String>,
    /// The protocol of the provider, as named in `provider.protocols`.
    pub protocol: Option<String>,
    /// The source of the provider's key.
    pub key: KeySource,
    /// The model to use there, by the provider's own name for it; `None` for any.
    pub model: Option<String>,
    /// `true` if the provider is to be asked by default.
    pub is_default: bool,
}

/// The source of a provider's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// The provider needs no key.
    None,
    /// This variable of the environment.
    Variable(String),
    /// The output of this command.
    Command(String),
    /// The key that the user entered.
    Entered(Secret<String>),
}

impl NewProvider {
    /// Returns the settings with this provider, and with where its key and its address come from. `address_place` names what
    /// a person changes if the address is wrong.
    pub(crate) fn apply(
        &self,
        mut provider: Provider,
        key: Option<Secret<String>>,
        address_place: &str,
    ) -> Provider {
        let name = || self.name.clone();
        let key_source = match &self.key {
            KeySource::None => None,
            KeySource::Variable(variable) => Some(ValueSource::Variable(variable.clone())),
            KeySource::Command(_) => {
                Some(ValueSource::Argument("the command in `--key-command`".to_owned()))
            }
            KeySource::Entered(_) => Some(ValueSource::Argument("what you entered".to_owned())),
        };
        provider.key_sources.extend(key_source.map(|source| (name(), source)));
        provider.api_keys.extend(key.map(|key| (name(), key)));
        if let Some(address) = &self.address {
            let source = ValueSource::Argument(address_place.to_owned());
            provider.endpoint_sources.insert(name(), source);
            provider.endpoints.insert(name(), address.clone());
        }
        let wire = self.protocol.as_deref().and_then(Protocol::from_name);
        provider.protocols.extend(wire.map(|wire| (name(), wire)));
        provider
    }
}

#[cfg(test)]
mod tests {
    use gnoma_config::Sources;

    use super::*;
    use crate::crate_options;

    #[test]
    fn new_provider_errors_name_the_key_and_address_source_given() {
        let sources = Sources { config_dir: "/nonexistent".into(), ..Sources::default() };
        let settings = gnoma_config::load_settings(&sources).unwrap().settings.provider;
        let given = Secret::new("k".to_owned());
        for (name, key, source) in [
            ("work", KeySource::Variable("WORK_KEY".to_owned()), Some("WORK_KEY")),
            ("openai", KeySource::Variable("WORK_KEY".to_owned()), Some("WORK_KEY")),
            ("work", KeySource::Command("pass".to_owned()), Some("the command in `--key-command`")),
            ("work", KeySource::Entered(given.clone()), Some("what you entered")),
            ("work", KeySource::None, None),
        ] {
            let has_key = key != KeySource::None;
            let new = NewProvider {
                name: name.to_owned(),
                address: Some("http://x/v1".to_owned()),
                protocol: None,
                key,
                model: None,
                is_default: false,
            };
            let key = has_key.then(|| given.clone());
            let provider = new.apply(settings.clone(), key, "`--address`");
            let profile = crate_options::provider_profile(&provider, name).unwrap();
            assert_eq!(profile.key_source.as_deref(), source, "{new:?}");
            assert_eq!(profile.address_source.as_deref(), Some("`--address`"), "{new:?}");
        }
    }
}
