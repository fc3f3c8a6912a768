//! The parts of a schema while it is read, and where references lead.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::{
    error::SchemaError,
    node::{NodeId, SchemaNode},
    refs::{Names, escape_pointer},
};

/// Most parts of a schema.
const MAX_NODES: usize = 20_000;

pub(crate) struct Compiler<'d> {
    pub(crate) document: &'d Value,
    pub(crate) names: Names,
    /// True if keywords beside a reference do not count, as in drafts before 2019.
    pub(crate) is_old: bool,
    pub(crate) nodes: Vec<SchemaNode>,
    pub(crate) known: HashMap<String, NodeId>,
    pub(crate) waiting: Vec<(NodeId, String)>,
    pub(crate) tracks: bool,
}

/// An object that is a part of a schema, and where it is.
#[derive(Clone, Copy)]
pub(crate) struct Subschema<'a> {
    pub(crate) object: &'a Map<String, Value>,
    pub(crate) pointer: &'a str,
}

impl<'a> Subschema<'a> {
    pub(crate) fn get(&self, key: &str) -> Option<&'a Value> {
        self.object.get(key)
    }

    /// That something is wrong with a keyword.
    pub(crate) fn keyword_error<T>(
        &self,
        key: &str,
        what: impl Into<String>,
    ) -> Result<T, SchemaError> {
        let at = format!("{}/{}", self.pointer, escape_pointer(key));
        Err(SchemaError::Wrong { at, what: what.into() })
    }

    pub(crate) fn keyword_pointer(&self, key: &str) -> String {
        format!("{}/{}", self.pointer, escape_pointer(key))
    }
}

impl Compiler<'_> {
    /// The part at a pointer; it is read later.
    pub(crate) fn node_at(&mut self, pointer: String) -> Result<NodeId, SchemaError> {
        if let Some(known) = self.known.get(&pointer) {
            return Ok(*known);
        }
        let id = self.nodes.len();
        if id >= MAX_NODES {
            let text = format!("it has more than {MAX_NODES} parts");
            return Err(SchemaError::TooLarge(text));
        }
        self.nodes.push(SchemaNode::Always(true));
        self.known.insert(pointer.clone(), id);
        self.waiting.push((id, pointer));
        Ok(id)
    }

    /// The part that a reference leads to.
    pub(crate) fn resolve_reference(
        &mut self,
        reference: &str,
        part: Subschema<'_>,
    ) -> Result<NodeId, SchemaError> {
        match self.names.resolve(reference, part.pointer) {
            Ok(pointer) if self.document.pointer(&pointer).is_some() => self.node_at(pointer),
            Ok(_) => part.keyword_error("$ref", format!("`{reference}` points nowhere")),
            Err(error) => part.keyword_error("$ref", error.to_string()),
        }
    }
}
