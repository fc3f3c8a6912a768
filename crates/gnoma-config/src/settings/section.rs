//! Reading the fields of one table. The schema has seen to their types.

use std::time::Duration;

use gnoma_core::ModelRef;

use crate::{condition::arm_named, key::KeyPath, layer::MergedLayers, value::Value};

/// Micro-dollars in a dollar.
const MICRO_USD: f64 = 1e6;

/// A table of the merged layers.
pub(super) struct Section<'a> {
    layers: &'a MergedLayers,
    path: KeyPath,
    has_built_in: bool,
}

impl<'a> Section<'a> {
    /// The table under a dotted key.
    pub(super) fn from_key(layers: &'a MergedLayers, key: &str) -> Self {
        Self { layers, path: KeyPath::from_dotted(key), has_built_in: true }
    }

    /// The table under a name of the user's; such tables have no built-in values.
    pub(super) fn child_section(&self, name: &str) -> Self {
        Self { layers: self.layers, path: self.path.with_name(name), has_built_in: false }
    }

    /// The section of an item of a list, by its position.
    pub(super) fn item_section(&self, index: usize) -> Self {
        Self { layers: self.layers, path: self.path.with_index(index), has_built_in: false }
    }

    /// Returns the key of this section.
    pub(super) fn path(&self) -> &KeyPath {
        &self.path
    }

    pub(super) fn text(&self, field: &str) -> Option<String> {
        self.value(field)?.into_text()
    }

    /// A list of texts; empty where none is set.
    pub(super) fn texts(&self, field: &str) -> Vec<String> {
        self.value(field).map(Value::into_texts).unwrap_or_default()
    }

    /// Returns the values below a field, each with its first name there: of `env.A` that is `A`.
    pub(super) fn entries_below(&self, field: &str) -> Vec<(String, Value)> {
        let path = self.path.with_name(field);
        let length = path.segments().len();
        let entries = self.layers.entries().range(path.clone()..);
        let inside = entries.take_while(|(inner, _)| inner.is_within(&path));
        let named = inside.filter_map(|(inner, entry)| {
            let name = inner.segments().get(length)?.name()?;
            Some((name.to_owned(), entry.value.clone()))
        });
        named.collect()
    }

    pub(super) fn arm(&self, field: &str) -> Option<ModelRef> {
        arm_named(&self.text(field)?)
    }

    pub(super) fn read_switch(&self, field: &str) -> Option<bool> {
        match self.value(field)? {
            Value::Bool(truth) => Some(truth),
            _ => None,
        }
    }

    pub(super) fn whole_number(&self, field: &str) -> Option<u64> {
        match self.value(field)? {
            Value::Integer(number) => u64::try_from(number).ok(),
            _ => None,
        }
    }

    pub(super) fn count(&self, field: &str) -> Option<u32> {
        u32::try_from(self.whole_number(field)?).ok()
    }

    pub(super) fn number(&self, field: &str) -> Option<f64> {
        match self.value(field)? {
            Value::Number(number) => Some(number),
            _ => None,
        }
    }

    /// Returns a field's dollars as micro-dollars.
    pub(super) fn micro_usd(&self, field: &str) -> Option<u64> {
        self.layers.to_dollars(&self.value(field)?).map(micro_usd)
    }

    pub(super) fn duration(&self, field: &str) -> Option<Duration> {
        match self.value(field)? {
            Value::Duration(time) => Some(time),
            _ => None,
        }
    }

    fn value(&self, field: &str) -> Option<Value> {
        let path = self.path.with_name(field);
        if self.has_built_in {
            return self.layers.value_at(&path);
        }
        // A search of the schema for each field of thousands of entries would be felt.
        self.layers.entries().get(&path).map(|entry| entry.value.clone())
    }
}

/// Dollars, not negative, in the nearest whole micro-dollars.
pub(super) fn micro_usd(dollars: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "no amount is negative, and one beyond the range is no limit either way"
    )]
    let micro_usd = (dollars * MICRO_USD).round() as u64;
    micro_usd
}
