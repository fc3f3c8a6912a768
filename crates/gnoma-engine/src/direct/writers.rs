//! The tools by which files are changed and made, found by what they take.

use std::{collections::HashMap, sync::Arc};

use gnoma_core::{ToolSpec, tool::ToolKind};
use serde_json::Value;

/// A session's tools by name.
pub(super) type Specs = HashMap<String, Arc<ToolSpec>>;

/// What the tools are called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Writers {
    /// Replaces `old_string` by `new_string`.
    pub(crate) edit: String,
    /// Puts `content` into a file.
    pub(crate) write: String,
}

impl Writers {
    /// Those of a session, if it has both.
    pub(super) fn of(specs: &Specs) -> Option<Self> {
        let named = |arguments: &[&str]| {
            let fits = specs.values().filter(|spec| takes(spec, arguments));
            fits.map(|spec| spec.name.clone()).min()
        };
        let edit = named(&["path", "old_string", "new_string"])?;
        Some(Self { edit, write: named(&["path", "content"])? })
    }
}

fn takes(spec: &ToolSpec, arguments: &[&str]) -> bool {
    let has_all = |schema: Value| {
        let properties = schema.get("properties").and_then(Value::as_object);
        properties.is_some_and(|known| arguments.iter().all(|name| known.contains_key(*name)))
    };
    spec.kind == ToolKind::WritesFiles && spec.parameters.read().is_ok_and(has_all)
}
