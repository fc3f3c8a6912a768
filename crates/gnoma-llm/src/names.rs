//! Tool names on the wire.
//!
//! Most wires allow `[a-zA-Z0-9_-]{1,64}` for a function name, so `fs.read` is sent as `fs_read` and
//! mapped back when the model calls it.

use std::{borrow::Cow, collections::HashMap, sync::Arc};

use gnoma_core::ToolSpec;

/// Longest function name that every wire takes.
const MAX_NAME_BYTES: usize = 64;

/// The prefix that OpenAI's models occasionally write before the name of a tool.
const NAMESPACE: &str = "functions.";

/// Our names and theirs, both ways, for one set of tools.
#[derive(Clone, Debug, Default)]
pub(crate) struct NameMap {
    to_wire: HashMap<String, String>,
    to_ours: HashMap<String, String>,
}

impl NameMap {
    /// Maps the names of `tools`; the first tool that wants a wire name gets it, later ones a number.
    pub(crate) fn new(tools: &[Arc<ToolSpec>]) -> Self {
        let mut map = Self::default();
        for tool in tools {
            let wanted = sanitize_name(&tool.name);
            let mut wire = wanted.to_string();
            let mut copy = 2_usize;
            while map.to_ours.contains_key(&wire) {
                let suffix = format!("_{copy}");
                let keep = wanted.len().min(MAX_NAME_BYTES - suffix.len());
                wire = format!("{}{suffix}", &wanted[..keep]);
                copy += 1;
            }
            map.to_ours.insert(wire.clone(), tool.name.clone());
            map.to_wire.insert(tool.name.clone(), wire);
        }
        map
    }

    /// Our name as the wire wants it. Names of tools that are gone are made legal.
    pub(crate) fn wire_name<'a>(&'a self, ours: &'a str) -> Cow<'a, str> {
        self.to_wire
            .get(ours)
            .map_or_else(|| sanitize_name(ours), |wire| Cow::Borrowed(wire.as_str()))
    }

    /// The name a model called, as ours. A model may know our spelling from the prompt, and some write the
    /// namespace of their training before it.
    pub(crate) fn tool_name<'a>(&'a self, wire: &'a str) -> &'a str {
        let bare = wire.strip_prefix(NAMESPACE).filter(|_| !self.has_tool(wire));
        let name = bare.filter(|bare| self.has_tool(bare)).unwrap_or(wire);
        self.to_ours.get(name).map_or(name, String::as_str)
    }

    /// Reports whether `name`, in either spelling, is one of the tools on offer.
    pub(crate) fn has_tool(&self, name: &str) -> bool {
        self.to_ours.contains_key(name) || self.to_wire.contains_key(name)
    }

    /// Reports whether `name` is no tool on offer, but the beginning of one's name.
    pub(crate) fn begins_tool(&self, name: &str) -> bool {
        let mut all = self.to_ours.keys().chain(self.to_wire.keys());
        !name.is_empty() && !self.has_tool(name) && all.any(|tool| tool.starts_with(name))
    }
}

fn sanitize_name(name: &str) -> Cow<'_, str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.len() <= MAX_NAME_BYTES && name.chars().all(fits) {
        return Cow::Borrowed(name);
    }
    let mut wire: String = name.chars().map(|c| if fits(c) { c } else { '_' }).collect();
    wire.truncate(MAX_NAME_BYTES);
    if wire.is_empty() {
        wire.push('_');
    }
    Cow::Owned(wire)
}

#[cfg(test)]
mod tests {
    use gnoma_core::{
        RawJson,
        tool::{Access, Tier, ToolKind},
    };
    use proptest::prelude::*;

    use super::*;

    fn tools(names: &[String]) -> Vec<Arc<ToolSpec>> {
        let spec = |name: &String| ToolSpec {
            name: name.clone(),
            description: String::new(),
            parameters: RawJson::empty_object(),
            access: Access::Read,
            touches: [].into(),
            kind: ToolKind::Other,
            tier: Tier::Full,
        };
        names.iter().map(|name| Arc::new(spec(name))).collect()
    }

    proptest! {
        /// Whatever tools are called, each has a legal wire name of its own that maps back.
        #[test]
        fn tool_names_map_to_valid_wire_names_and_back(names in prop::collection::hash_set("[a-z._ é]{1,70}", 1..12)) {
            let names: Vec<_> = names.into_iter().collect();
            let map = NameMap::new(&tools(&names));
            for name in &names {
                let wire = map.wire_name(name);
                prop_assert!(!wire.is_empty() && wire.len() <= MAX_NAME_BYTES);
                prop_assert!(wire.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-'));
                prop_assert_eq!(map.tool_name(&wire), name);
            }
        }
    }

    #[test]
    fn functions_prefix_of_a_tool_name_is_stripped() {
        let map = NameMap::new(&tools(&["fs.read".to_owned()]));
        assert_eq!(map.tool_name("functions.fs_read"), "fs.read");
        assert_eq!(map.tool_name("functions.fs.read"), "fs.read");
        assert_eq!(map.tool_name("functions.other"), "functions.other");
        let both = ["fs.read".to_owned(), "functions.fs.read".to_owned()];
        let map = NameMap::new(&tools(&both));
        assert_eq!(map.tool_name("functions.fs.read"), "functions.fs.read");
        assert_eq!(map.tool_name("functions.fs_read"), "fs.read");
    }

    #[test]
    fn unknown_tool_name_still_maps_to_a_valid_wire_name() {
        let map = NameMap::default();
        assert_eq!(map.wire_name("fs.read"), "fs_read");
        assert_eq!(map.tool_name("fs_read"), "fs_read");
    }
}
