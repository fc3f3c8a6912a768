//! Every value with the layer that set it. Secrets are masked.

use crate::{
    finding::{Origin, Place},
    key::KeyPath,
    layer::MergedLayers,
    schema::ROWS,
};

/// A value as people see it, and who set it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedValue {
    /// The key as TOML writes it; an entry of a list has its name or number in it.
    pub key: String,
    /// The value as TOML on one line; a secret is `"***"`, a long one with its last four characters.
    pub value: String,
    /// The layer that sets the value.
    pub origin: Origin,
    /// The place in that layer.
    pub place: Place,
}

/// Everything that is set, and the built-in values of what is not, sorted by key.
pub(crate) fn explain_all(layers: &MergedLayers) -> Vec<ExplainedValue> {
    let set = layers.entries().iter().map(|(path, entry)| ExplainedValue {
        key: path.to_string(),
        value: entry.value.to_string(),
        origin: entry.origin,
        place: entry.place.clone(),
    });
    let unset = ROWS.iter().filter(|row| row.is_single()).filter_map(|row| {
        let is_set = layers.entries().contains_key(&KeyPath::from_dotted(row.path));
        Some(ExplainedValue {
            key: row.path.to_owned(),
            value: row.default_value().filter(|_| !is_set)?.to_string(),
            origin: Origin::Default,
            place: Place::BuiltIn,
        })
    });
    let mut all: Vec<_> = set.chain(unset).collect();
    gnoma_core::sort::sort_by(&mut all, |left, right| left.key.cmp(&right.key));
    all
}

/// The values as lines `key = value`; with `origin`, each says in a comment who set it.
#[must_use]
pub fn render_values(values: &[ExplainedValue], origin: bool) -> String {
    let mut lines = String::new();
    for ExplainedValue { key, value, origin: layer, place } in values {
        let comment = match place {
            _ if !origin => String::new(),
            Place::BuiltIn => format!("  # {layer}"),
            Place::Variable(_) => format!("  # {place}"),
            Place::File { .. } | Place::Flag(_) => {
                format!("  # {layer}: {place}")
            }
        };
        lines.push_str(&format!("{key} = {value}{comment}\n"));
    }
    lines
}
