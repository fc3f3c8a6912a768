//! A provider as far as it was described.

use gnoma_core::{
    Secret,
    protocol::{ConnectBy, Connection, TypedKey},
};

use super::offers::name_of;

/// A provider that is being described.
#[derive(Clone, Debug, Default)]
pub(super) struct ProviderDraft {
    /// The name of the provider; without one, it is named after its address.
    pub provider: Option<String>,
    /// The address of the provider, if it was entered or has to be.
    pub address: Option<String>,
    /// The key of the provider, once it was entered.
    pub key: Option<Secret<String>>,
    /// `true` if the provider may do without a key.
    pub key_is_optional: bool,
    /// The model of the provider, if it lists none.
    pub model: Option<String>,
}

impl ProviderDraft {
    /// Returns a draft of the connection that was tried, to be corrected.
    pub(super) fn from_connection(connection: &Connection) -> Self {
        let provider = Some(connection.provider.clone());
        let secret = |key: &TypedKey| Some(Secret::new(key.0.clone()));
        let (address, key) = match &connection.by {
            ConnectBy::Variable(_) => (None, None),
            ConnectBy::Key(key) => (None, secret(key)),
            ConnectBy::Address(address) => (Some(address.clone()), None),
            ConnectBy::AddressAndKey { address, key } => (Some(address.clone()), secret(key)),
        };
        let model = connection.model.clone();
        Self { provider, key, key_is_optional: address.is_some(), address, model }
    }

    /// Returns the connection to try; a server without a name gets one that none of `taken` has.
    pub(super) fn into_connection(self, taken: &[String]) -> Connection {
        let Self { provider, address, key, model, .. } = self;
        let of_address = || name_of(address.as_deref().unwrap_or_default(), taken);
        let provider = provider.unwrap_or_else(of_address);
        let key = key.map(|key| TypedKey(key.expose().clone()));
        let by = match (address, key) {
            (Some(address), Some(key)) => ConnectBy::AddressAndKey { address, key },
            (Some(address), None) => ConnectBy::Address(address),
            (None, key) => ConnectBy::Key(key.unwrap_or_else(|| TypedKey(String::new()))),
        };
        Connection { provider, by, model }
    }
}
