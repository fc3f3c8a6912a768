//! A resource as a server lists it.

use serde_json::Value;

use super::{
    limits::MAX_RESOURCES,
    lists::{ListElement, ListElementError, identity_field, text_field},
};

/// A resource in a server's list.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ListedResource {
    uri: String,
    name: String,
    about: String,
}

impl ListElement for ListedResource {
    const FIELD: &'static str = "resources";
    const KIND: &'static str = "resource";
    const MAX: usize = MAX_RESOURCES;

    fn from_value(value: &Value) -> Result<(Self, Option<String>), ListElementError> {
        let uri = identity_field(value, "uri")?;
        let (name, odd_name) = text_field(value, "name");
        let (description, odd_text) = text_field(value, "description");
        let about = if description.is_empty() { text_field(value, "title").0 } else { description };
        Ok((Self { uri, name, about }, odd_name.or(odd_text)))
    }

    fn identity(&self) -> &str {
        &self.uri
    }
}

impl ListedResource {
    /// The resource in a line, as models read it.
    pub(super) fn to_line(&self) -> String {
        format!("{}: {} {}\n", self.uri, self.name, self.about)
    }
}
