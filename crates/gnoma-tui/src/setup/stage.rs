//! The steps of the guided start, what can be corrected at each, and what it says of its keys.

use gnoma_core::protocol::Connection;

use super::{
    draft::ProviderDraft,
    entry::InputLine,
    offers::{self, AZURE_ADDRESS, LocalServer, SERVER_ADDRESS},
};

/// The key that asks for a correction of the address.
pub(super) const ADDRESS_KEY: char = 'a';
const KEY_KEY: char = 'k';
pub(super) const PLAIN_KEY: char = 'h';
pub(super) const MODEL_KEY: char = 'm';
/// Parts of the errors of servers that work and list no models, so that one has to be named.
const NO_MODELS: [&str; 2] = ["lists no models", "has no list of models"];
/// The line that goes back where lines are written instead of keys.
pub(super) const BACK_LINE: &str = "q";

/// A step of the guided start.
#[derive(Clone, Debug)]
pub(super) enum Stage {
    Choosing,
    Address {
        draft: ProviderDraft,
        entry: InputLine,
        /// The fault of what was entered before.
        trouble: &'static str,
    },
    Key {
        draft: ProviderDraft,
        entry: InputLine,
    },
    /// The name of a model is entered.
    Model {
        connection: Connection,
        entry: InputLine,
    },
    /// Instructions for starting a server are shown.
    Starting(LocalServer),
    Trying(Connection),
    /// The connection does not work.
    Failed {
        connection: Connection,
        why: String,
    },
    /// The connection works, and waits to be stored.
    Works {
        connection: Connection,
        answer: String,
    },
    /// The connection works and could not be stored.
    Unkept {
        connection: Connection,
        why: String,
    },
}

impl Stage {
    /// Returns the corrections that can be made now, each with its key.
    pub(super) fn corrections(&self, by_line: bool) -> Vec<(char, &'static str)> {
        let mut corrections = Vec::new();
        match self {
            Self::Starting(_) => corrections.push((ADDRESS_KEY, "change the address")),
            Self::Failed { connection, why } => {
                let draft = ProviderDraft::from_connection(connection);
                let address = draft.address.as_deref();
                // Offered only where the server was found to speak no TLS.
                if why.contains("http://") && address.and_then(offers::without_tls).is_some() {
                    corrections.push((PLAIN_KEY, "use http://"));
                }
                if NO_MODELS.iter().any(|part| why.contains(part)) {
                    corrections.push((MODEL_KEY, "name a model"));
                }
                if address.is_some() {
                    corrections.push((ADDRESS_KEY, "change the address"));
                }
                if !by_line && !offers::is_keyless(&connection.provider) {
                    corrections.push((KEY_KEY, "enter another key"));
                }
            }
            Self::Works { connection, .. }
                if ProviderDraft::from_connection(connection).address.is_some() =>
            {
                corrections.push((ADDRESS_KEY, "change the address"));
            }
            _ => (),
        }
        corrections
    }

    /// Returns the title of what is entered.
    pub(super) fn title(&self) -> String {
        match self {
            Self::Address { draft, .. } => match &draft.provider {
                Some(provider) => format!("address of {provider}"),
                None => "address of the server".to_owned(),
            },
            Self::Key { draft, .. } => match &draft.provider {
                Some(provider) => format!("key for {provider}"),
                None => "key".to_owned(),
            },
            Self::Model { connection, .. } => format!("model of {}", connection.provider),
            _ => String::new(),
        }
    }

    /// Describes what can be done now.
    pub(super) fn hint(&self, by_line: bool) -> String {
        let back = back_key(by_line);
        match self {
            Self::Choosing => String::new(),
            Self::Address { draft, trouble, .. } => {
                let is_azure = draft.provider.as_deref() == Some(offers::WITHOUT_ADDRESS);
                let example = if is_azure { AZURE_ADDRESS } else { SERVER_ADDRESS };
                let lead = if trouble.is_empty() { "such as " } else { trouble };
                format!("{lead}{example} · Enter next · {back} back")
            }
            Self::Key { draft, .. } if draft.key_is_optional => {
                format!("type or paste it (hidden), or leave it empty · Enter test · {back} back")
            }
            Self::Key { .. } => format!("type or paste it (hidden) · Enter test · {back} back"),
            Self::Model { .. } => format!("as the server calls it · Enter test · {back} back"),
            Self::Trying(_) => format!("{back} back"),
            Self::Starting(_) => self.hint_with(by_line, "Enter test"),
            Self::Failed { .. } => self.hint_with(by_line, "Enter retry"),
            Self::Works { .. } => self.hint_with(by_line, "Enter save and start"),
            Self::Unkept { .. } => format!("Enter save again · {back} back"),
        }
    }

    fn hint_with(&self, by_line: bool, enter: &str) -> String {
        let corrections = self.corrections(by_line);
        let named = corrections.iter().map(|(key, what)| format!(" · {key} {what}"));
        format!("{enter}{} · {} back", named.collect::<String>(), back_key(by_line))
    }
}

/// Names what goes back: a key, or a line where lines are written instead of keys.
fn back_key(by_line: bool) -> &'static str {
    if by_line { BACK_LINE } else { "Esc" }
}
