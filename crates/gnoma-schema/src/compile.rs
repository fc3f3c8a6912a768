//! Reads a schema once: every keyword is looked at, every reference followed, every expression built.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::{
    SchemaError, keywords,
    node::{Node, NodeId, Rule},
    refs::{Names, escaped},
};

/// Most parts of a schema.
const MAX_NODES: usize = 20_000;
/// Longest chain of references that lead to nothing but references.
const MAX_CHAIN: usize = 64;

/// The parts of a schema, the whole first; and whether any asks what others have looked at.
pub(crate) fn compile(document: &Value) -> Result<(Vec<Node>, bool), SchemaError> {
    let of_old = |text: &str| {
        ["draft-03", "draft-04", "draft-06", "draft-07"].iter().any(|old| text.contains(old))
    };
    let mut compiler = Compiler {
        document,
        names: Names::of(document),
        is_old: document.get("$schema").and_then(Value::as_str).is_some_and(of_old),
        nodes: Vec::new(),
        known: HashMap::new(),
        waiting: Vec::new(),
        tracks: false,
    };
    compiler.part(String::new())?;
    while let Some((id, pointer)) = compiler.waiting.pop() {
        let node = compiler.read(&pointer)?;
        if let Some(place) = compiler.nodes.get_mut(id) {
            *place = node;
        }
    }
    compiler.refuse_circles()?;
    Ok((compiler.nodes, compiler.tracks))
}

pub(crate) struct Compiler<'d> {
    document: &'d Value,
    names: Names,
    /// Nothing beside a reference counts, as drafts before 2019 have it.
    is_old: bool,
    nodes: Vec<Node>,
    known: HashMap<String, NodeId>,
    waiting: Vec<(NodeId, String)>,
    pub(crate) tracks: bool,
}

/// An object that is a part of a schema, and where it is.
#[derive(Clone, Copy)]
pub(crate) struct Part<'a> {
    pub(crate) object: &'a Map<String, Value>,
    pub(crate) pointer: &'a str,
}

impl<'a> Part<'a> {
    pub(crate) fn get(&self, key: &str) -> Option<&'a Value> {
        self.object.get(key)
    }

    /// That something is wrong with a keyword.
    pub(crate) fn wrong<T>(&self, key: &str, what: impl Into<String>) -> Result<T, SchemaError> {
        let at = format!("{}/{}", self.pointer, escaped(key));
        Err(SchemaError::Wrong { at, what: what.into() })
    }

    pub(crate) fn below(&self, key: &str) -> String {
        format!("{}/{}", self.pointer, escaped(key))
    }
}

impl Compiler<'_> {
    /// The part at a pointer; it is read later.
    pub(crate) fn part(&mut self, pointer: String) -> Result<NodeId, SchemaError> {
        if let Some(known) = self.known.get(&pointer) {
            return Ok(*known);
        }
        let id = self.nodes.len();
        if id >= MAX_NODES {
            let text = format!("it has more than {MAX_NODES} parts");
            return Err(SchemaError::TooLarge(text));
        }
        self.nodes.push(Node::Always(true));
        self.known.insert(pointer.clone(), id);
        self.waiting.push((id, pointer));
        Ok(id)
    }

    /// The part that a reference leads to.
    pub(crate) fn target(
        &mut self,
        reference: &str,
        part: Part<'_>,
    ) -> Result<NodeId, SchemaError> {
        match self.names.resolve(reference, part.pointer) {
            Ok(pointer) if self.document.pointer(&pointer).is_some() => self.part(pointer),
            Ok(_) => part.wrong("$ref", format!("`{reference}` leads nowhere")),
            Err(why) => part.wrong("$ref", why),
        }
    }

    fn read(&mut self, pointer: &str) -> Result<Node, SchemaError> {
        let document = self.document;
        match document.pointer(pointer) {
            Some(Value::Bool(takes)) => Ok(Node::Always(*takes)),
            Some(Value::Object(object)) => {
                let part = Part { object, pointer };
                if self.is_old
                    && let Some(Value::String(reference)) = part.get("$ref")
                {
                    let target = self.target(reference, part)?;
                    return Ok(Node::Rules(vec![Rule::Same(target)]));
                }
                keywords::rules(self, part).map(Node::Rules)
            }
            Some(_) | None => {
                let at = if pointer.is_empty() { "/" } else { pointer }.to_owned();
                let what = "a schema is an object, `true` or `false`".to_owned();
                Err(SchemaError::Wrong { at, what })
            }
        }
    }

    /// Refuses parts that apply themselves to the very same value, which would never end.
    fn refuse_circles(&self) -> Result<(), SchemaError> {
        let mut over = vec![false; self.nodes.len()];
        for start in 0..self.nodes.len() {
            self.walk(start, &mut over, &mut Vec::new())?;
        }
        Ok(())
    }

    fn walk(
        &self,
        id: NodeId,
        over: &mut Vec<bool>,
        path: &mut Vec<NodeId>,
    ) -> Result<(), SchemaError> {
        if over.get(id).copied().unwrap_or(true) {
            return Ok(());
        }
        if path.contains(&id) || path.len() > MAX_CHAIN {
            let named = self.known.iter().find(|(_, known)| **known == id);
            let at = named.map(|(pointer, _)| pointer.as_str()).filter(|it| !it.is_empty());
            let at = at.unwrap_or("/").to_owned();
            let what = "references lead in a circle, or through too many others".to_owned();
            return Err(SchemaError::Wrong { at, what });
        }
        path.push(id);
        if let Some(Node::Rules(rules)) = self.nodes.get(id) {
            for next in rules.iter().flat_map(in_place) {
                self.walk(next, over, path)?;
            }
        }
        path.pop();
        if let Some(done) = over.get_mut(id) {
            *done = true;
        }
        Ok(())
    }
}

/// The parts that a rule applies to the same value.
fn in_place(rule: &Rule) -> Vec<NodeId> {
    match rule {
        Rule::Same(part) | Rule::Not(part) => vec![*part],
        Rule::All(parts) | Rule::Any(parts) | Rule::One(parts) => parts.clone(),
        Rule::If { test, then, otherwise } => {
            [Some(*test), *then, *otherwise].into_iter().flatten().collect()
        }
        Rule::Brings(parts) => parts.iter().map(|(_, part)| *part).collect(),
        Rule::Type(_)
        | Rule::OneOf(_)
        | Rule::Number(..)
        | Rule::Count { .. }
        | Rule::Pattern(_)
        | Rule::Items { .. }
        | Rule::Contains { .. }
        | Rule::Unique
        | Rule::Required(_)
        | Rule::Properties(_)
        | Rule::Names(_)
        | Rule::Needs(_)
        | Rule::OtherItems(_)
        | Rule::OtherProperties(_) => Vec::new(),
    }
}
