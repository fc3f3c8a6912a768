//! The origin of a value (file and line, variable, flag), for error messages.

use std::{collections::BTreeMap, fmt};

use crate::{
    finding::Place,
    key::KeyPath,
    layer::{Entry, MergedLayers},
};

/// The source of a value, which a person changes to change the value: an environment variable or a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueSource {
    /// The environment variable of this name.
    Variable(String),
    /// The words for what a person gave in this run, such as an option of the command.
    Argument(String),
    /// This setting, in a file at a line.
    Setting {
        /// The key of the setting.
        key: String,
        /// The place of the setting.
        place: Place,
    },
}

impl fmt::Display for ValueSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) | Self::Argument(name) => f.write_str(name),
            Self::Setting { key, place: Place::File { path, position } } => {
                write!(f, "`{key}` ({}", path.display())?;
                match position {
                    Some(position) => write!(f, ":{})", position.line),
                    None => f.write_str(")"),
                }
            }
            Self::Setting { key, .. } => write!(f, "`{key}`"),
        }
    }
}

/// Returns the source of a key's value; `None` where it is not set, built in, or on the command line.
pub(super) fn of_key(layers: &MergedLayers, key: &str) -> Option<ValueSource> {
    let path = KeyPath::from_dotted(key);
    let entry = layers.entries().get(&path)?;
    match entry.place {
        Place::File { .. } | Place::Variable(_) => Some(value_source(&path, entry)),
        Place::BuiltIn | Place::Flag(_) => None,
    }
}

/// Returns the sources of the entries of a table.
pub(super) fn of_table(layers: &MergedLayers, table: &str) -> BTreeMap<String, ValueSource> {
    let within = KeyPath::from_dotted(table);
    let entries = layers.entries().iter().filter(|(path, _)| path.is_within(&within));
    gnoma_core::sort::to_map(entries.filter_map(|(path, entry)| {
        Some((path.last_name()?.to_owned(), value_source(path, entry)))
    }))
}

fn value_source(path: &KeyPath, entry: &Entry) -> ValueSource {
    let variable = match &entry.place {
        Place::Variable(name) => Some(name.clone()),
        Place::BuiltIn | Place::File { .. } | Place::Flag(_) => entry.variable.clone(),
    };
    match variable {
        Some(name) => ValueSource::Variable(name),
        None => ValueSource::Setting { key: path.to_string(), place: entry.place.clone() },
    }
}
