//! Secrets whose values are known: the keys this program itself was given.
//!
//! Searched one by one: there are few, and a joint automaton would keep copies that are not wiped.

use gnoma_core::secret::Secret;
use memchr::memmem;

use super::raw::{Label, Raw};

/// Shortest known value that is searched for.
pub const MIN_KNOWN_BYTES: usize = 8;

/// Rule ids and values.
#[derive(Debug)]
pub(crate) struct KnownSecrets(Vec<(String, Secret<String>)>);

impl KnownSecrets {
    /// Keeps the values that are long enough.
    pub(crate) fn new(mut values: Vec<(String, Secret<String>)>) -> Self {
        values.retain(|(_, value)| value.expose().len() >= MIN_KNOWN_BYTES);
        Self(values)
    }

    /// The rule id of the value with that index.
    pub(crate) fn name(&self, index: usize) -> &str {
        self.0.get(index).map_or("known", |(name, _)| name)
    }

    /// Adds every place of `text` where a value stands.
    pub(crate) fn find(&self, text: &[u8], found: &mut Vec<Raw>) {
        for (index, (_, value)) in self.0.iter().enumerate() {
            let value = value.expose().as_bytes();
            for start in memmem::find_iter(text, value) {
                found.push(Raw { span: start..start + value.len(), label: Label::Known(index) });
            }
        }
    }
}
