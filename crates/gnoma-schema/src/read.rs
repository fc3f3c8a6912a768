//! Reads a schema once: every keyword is looked at, every reference followed, every expression built.

use std::collections::HashMap;

use serde_json::Value;

use crate::{
    compile::{Compiler, Subschema},
    error::SchemaError,
    keywords,
    node::{Constraint, NodeId, SchemaNode},
    refs::Names,
};

/// Longest chain of references that lead to nothing but references.
const MAX_CHAIN: usize = 64;

/// The parts of a schema, the whole first; and whether any asks what others have looked at.
pub(crate) fn read_schema(document: &Value) -> Result<(Vec<SchemaNode>, bool), SchemaError> {
    let of_old = |text: &str| {
        ["draft-03", "draft-04", "draft-06", "draft-07"].iter().any(|old| text.contains(old))
    };
    let mut compiler = Compiler {
        document,
        names: Names::from_document(document),
        is_old: document.get("$schema").and_then(Value::as_str).is_some_and(of_old),
        nodes: Vec::new(),
        known: HashMap::new(),
        waiting: Vec::new(),
        tracks: false,
    };
    compiler.node_at(String::new())?;
    while let Some((id, pointer)) = compiler.waiting.pop() {
        let node = read_node(&mut compiler, &pointer)?;
        if let Some(place) = compiler.nodes.get_mut(id) {
            *place = node;
        }
    }
    refuse_circles(&compiler)?;
    Ok((compiler.nodes, compiler.tracks))
}

fn read_node(compiler: &mut Compiler<'_>, pointer: &str) -> Result<SchemaNode, SchemaError> {
    let document = compiler.document;
    match document.pointer(pointer) {
        Some(Value::Bool(takes)) => Ok(SchemaNode::Always(*takes)),
        Some(Value::Object(object)) => {
            let part = Subschema { object, pointer };
            if compiler.is_old
                && let Some(Value::String(reference)) = part.get("$ref")
            {
                let target = compiler.resolve_reference(reference, part)?;
                return Ok(SchemaNode::Rules(vec![Constraint::Same(target)]));
            }
            keywords::read_rules(compiler, part).map(SchemaNode::Rules)
        }
        Some(_) | None => {
            let at = if pointer.is_empty() { "/" } else { pointer }.to_owned();
            let what = "a schema is an object, `true` or `false`".to_owned();
            Err(SchemaError::Wrong { at, what })
        }
    }
}

/// Refuses parts that apply themselves to the very same value, which would never end.
fn refuse_circles(compiler: &Compiler<'_>) -> Result<(), SchemaError> {
    let mut over = vec![false; compiler.nodes.len()];
    for start in 0..compiler.nodes.len() {
        check_reference_loops(compiler, start, &mut over, &mut Vec::new())?;
    }
    Ok(())
}

fn check_reference_loops(
    compiler: &Compiler<'_>,
    id: NodeId,
    over: &mut Vec<bool>,
    path: &mut Vec<NodeId>,
) -> Result<(), SchemaError> {
    if over.get(id).copied().unwrap_or(true) {
        return Ok(());
    }
    if path.contains(&id) || path.len() > MAX_CHAIN {
        let named = compiler.known.iter().find(|(_, known)| **known == id);
        let at = named.map(|(pointer, _)| pointer.as_str()).filter(|it| !it.is_empty());
        let at = at.unwrap_or("/").to_owned();
        let what = "references lead in a circle, or through too many others".to_owned();
        return Err(SchemaError::Wrong { at, what });
    }
    path.push(id);
    if let Some(SchemaNode::Rules(rules)) = compiler.nodes.get(id) {
        for next in rules.iter().flat_map(in_place) {
            check_reference_loops(compiler, next, over, path)?;
        }
    }
    path.pop();
    if let Some(done) = over.get_mut(id) {
        *done = true;
    }
    Ok(())
}

/// The parts that a rule applies to the same value.
fn in_place(rule: &Constraint) -> Vec<NodeId> {
    match rule {
        Constraint::Same(part) | Constraint::Not(part) => vec![*part],
        Constraint::All(parts) | Constraint::Any(parts) | Constraint::One(parts) => parts.clone(),
        Constraint::If { test, then, otherwise } => {
            [Some(*test), *then, *otherwise].into_iter().flatten().collect()
        }
        Constraint::Brings(parts) => parts.iter().map(|(_, part)| *part).collect(),
        Constraint::Type(_)
        | Constraint::OneOf(_)
        | Constraint::Number(..)
        | Constraint::Count { .. }
        | Constraint::Pattern(_)
        | Constraint::Items { .. }
        | Constraint::Contains { .. }
        | Constraint::Unique
        | Constraint::Required(_)
        | Constraint::Properties(_)
        | Constraint::Names(_)
        | Constraint::Needs(_)
        | Constraint::OtherItems(_)
        | Constraint::OtherProperties(_) => Vec::new(),
    }
}
