//! A value against a schema.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::{
    assertions::{self, Faults, MAX_STEPS, describe_range, describe_value},
    error::SchemaMismatch,
    node::{Constraint, NodeId, Properties, SchemaNode},
    refs::escape_pointer,
};

/// Deepest nesting of parts.
const MAX_DEPTH: usize = 400;

/// Checks `value` against the first part.
pub(crate) fn check_value(
    nodes: &[SchemaNode],
    tracks: bool,
    value: &Value,
) -> Result<(), SchemaMismatch> {
    let mut check = Check { nodes, tracks, steps: 0, depth: 0, is_over: false };
    let mut faults = Faults::default();
    check.check_node(0, value, "", &mut EvaluatedParts::default(), &mut faults);
    if check.is_over {
        return Err(SchemaMismatch::TooManyAlternatives);
    }
    if faults.all.is_empty() { Ok(()) } else { Err(SchemaMismatch::Faults(faults.all)) }
}

/// Items and properties that were looked at.
#[derive(Debug, Default)]
struct EvaluatedParts {
    items: BTreeSet<usize>,
    properties: BTreeSet<String>,
}

struct Check<'n> {
    nodes: &'n [SchemaNode],
    tracks: bool,
    steps: u32,
    depth: usize,
    /// True if the check was abandoned.
    is_over: bool,
}

impl Check<'_> {
    fn check_node(
        &mut self,
        id: NodeId,
        value: &Value,
        at: &str,
        seen: &mut EvaluatedParts,
        faults: &mut Faults,
    ) {
        self.steps += 1;
        if self.steps > MAX_STEPS || self.depth > MAX_DEPTH {
            self.is_over = true;
        }
        if self.is_over {
            return faults.add(at, "not checked");
        }
        let nodes = self.nodes;
        match nodes.get(id) {
            Some(SchemaNode::Always(true)) => (),
            Some(SchemaNode::Always(false)) | None => faults.add(at, "no value is allowed here"),
            Some(SchemaNode::Rules(rules)) => {
                self.depth += 1;
                for rule in rules {
                    self.check_rule(rule, value, at, seen, faults);
                }
                self.depth -= 1;
            }
        }
    }

    /// Checks that the part accepts the value; only then do the items and properties that it has looked at count.
    fn try_node(
        &mut self,
        id: NodeId,
        value: &Value,
        at: &str,
        seen: &mut EvaluatedParts,
    ) -> Result<(), Faults> {
        let (mut own, mut faults) = (EvaluatedParts::default(), Faults::default());
        self.check_node(id, value, at, &mut own, &mut faults);
        if !faults.all.is_empty() {
            return Err(faults);
        }
        seen.items.append(&mut own.items);
        seen.properties.append(&mut own.properties);
        Ok(())
    }

    fn check_rule(
        &mut self,
        rule: &Constraint,
        value: &Value,
        at: &str,
        seen: &mut EvaluatedParts,
        faults: &mut Faults,
    ) {
        match rule {
            Constraint::Same(_)
            | Constraint::All(_)
            | Constraint::Any(_)
            | Constraint::One(_)
            | Constraint::Not(_)
            | Constraint::If { .. } => self.check_in_place(rule, value, at, seen, faults),
            Constraint::Items { .. }
            | Constraint::Contains { .. }
            | Constraint::Unique
            | Constraint::OtherItems(_) => {
                if let Value::Array(items) = value {
                    self.check_array(rule, items, at, seen, faults);
                }
            }
            Constraint::Properties(_)
            | Constraint::Required(_)
            | Constraint::Names(_)
            | Constraint::Needs(_)
            | Constraint::Brings(_)
            | Constraint::OtherProperties(_) => {
                if let Value::Object(object) = value {
                    self.check_object(rule, (value, object), at, seen, faults);
                }
            }
            Constraint::Type(types) => assertions::check_type(*types, value, at, faults),
            Constraint::OneOf(values) => assertions::check_one_of(values, value, at, faults),
            Constraint::Number(bound, limit) => {
                assertions::check_bound(*bound, *limit, value, at, faults);
            }
            Constraint::Count { of, least, most } => {
                assertions::check_count(*of, *least, *most, value, at, faults);
            }
            Constraint::Pattern(pattern) => assertions::check_pattern(pattern, value, at, faults),
        }
    }

    fn check_in_place(
        &mut self,
        rule: &Constraint,
        value: &Value,
        at: &str,
        seen: &mut EvaluatedParts,
        faults: &mut Faults,
    ) {
        match rule {
            Constraint::Same(part) => self.check_node(*part, value, at, seen, faults),
            Constraint::All(parts) => {
                for part in parts {
                    self.check_node(*part, value, at, seen, faults);
                }
            }
            Constraint::Any(parts) => self.check_any(parts, value, at, seen, faults),
            Constraint::One(parts) => self.check_exactly_one(parts, value, at, seen, faults),
            Constraint::Not(part) => {
                let fits = self.try_node(*part, value, at, &mut EvaluatedParts::default()).is_ok();
                let found = fits.then(|| format!("the schema rules out {}", describe_value(value)));
                found.into_iter().for_each(|found| faults.add(at, found));
            }
            Constraint::If { test, then, otherwise } => {
                let holds = self.try_node(*test, value, at, seen).is_ok();
                if let Some(part) = if holds { then } else { otherwise } {
                    self.check_node(*part, value, at, seen, faults);
                }
            }
            _ => (),
        }
    }

    fn check_exactly_one(
        &mut self,
        parts: &[NodeId],
        value: &Value,
        at: &str,
        seen: &mut EvaluatedParts,
        faults: &mut Faults,
    ) {
        let mut fitting = Vec::new();
        for (number, part) in parts.iter().enumerate() {
            if self.try_node(*part, value, at, seen).is_ok() {
                fitting.push(number.to_string());
            }
        }
        if fitting.is_empty() {
            self.check_any(parts, value, at, seen, faults);
        } else if fitting.len() > 1 {
            let text = format!(
                "exactly one alternative must fit, and {} do (numbers {})",
                fitting.len(),
                fitting.join(", ")
            );
            faults.add(at, text);
        }
    }

    /// Checks that at least one alternative fits. All are checked if another rule asks which parts were looked at.
    fn check_any(
        &mut self,
        parts: &[NodeId],
        value: &Value,
        at: &str,
        seen: &mut EvaluatedParts,
        faults: &mut Faults,
    ) {
        let mut nearest: Option<Faults> = None;
        let mut fits = false;
        for part in parts {
            match self.try_node(*part, value, at, seen) {
                Ok(()) => fits = true,
                // The one that came furthest is what was meant.
                Err(found) => {
                    if nearest.as_ref().is_none_or(|nearest| found.depth > nearest.depth) {
                        nearest = Some(found);
                    }
                }
            }
            if fits && !self.tracks {
                return;
            }
        }
        if !fits {
            let nearest = nearest.unwrap_or_default().all.join("; ");
            let text = format!("none of {} alternatives fits; the nearest: {nearest}", parts.len());
            faults.add(at, text);
        }
    }

    fn check_array(
        &mut self,
        rule: &Constraint,
        items: &[Value],
        at: &str,
        seen: &mut EvaluatedParts,
        faults: &mut Faults,
    ) {
        match rule {
            Constraint::Items { first, rest } => {
                for (number, item) in items.iter().enumerate() {
                    if let Some(part) = first.get(number).or(rest.as_ref()) {
                        self.check_item(*part, (number, item), at, faults);
                        seen.items.insert(number);
                    }
                }
            }
            Constraint::Contains { part, least, most } => {
                let mut found = 0_u64;
                for (number, item) in items.iter().enumerate() {
                    if self.try_node(*part, item, at, &mut EvaluatedParts::default()).is_ok() {
                        found += 1;
                        seen.items.insert(number);
                    }
                }
                if found < *least || most.is_some_and(|most| found > most) {
                    let range = describe_range(*least, *most);
                    let text = format!("{found} items match `contains`, and there must be {range}");
                    faults.add(at, text);
                }
            }
            Constraint::Unique => {
                self.steps = self.steps.saturating_add(assertions::check_unique(items, at, faults));
            }
            Constraint::OtherItems(part) => {
                for (number, item) in items.iter().enumerate() {
                    if seen.items.insert(number) {
                        self.check_item(*part, (number, item), at, faults);
                    }
                }
            }
            _ => (),
        }
    }

    fn check_item(
        &mut self,
        part: NodeId,
        (number, item): (usize, &Value),
        at: &str,
        faults: &mut Faults,
    ) {
        let below = format!("{at}/{number}");
        self.check_node(part, item, &below, &mut EvaluatedParts::default(), faults);
    }

    fn check_object(
        &mut self,
        rule: &Constraint,
        (value, object): (&Value, &Map<String, Value>),
        at: &str,
        seen: &mut EvaluatedParts,
        faults: &mut Faults,
    ) {
        match rule {
            Constraint::Required(names) => assertions::check_required(object, names, at, faults),
            Constraint::Needs(needs) => {
                for (_, names) in needs.iter().filter(|(name, _)| object.contains_key(name)) {
                    assertions::check_required(object, names, at, faults);
                }
            }
            Constraint::Brings(parts) => {
                for (_, part) in parts.iter().filter(|(name, _)| object.contains_key(name)) {
                    self.check_node(*part, value, at, seen, faults);
                }
            }
            Constraint::Names(part) => {
                for name in object.keys() {
                    let name = Value::String(name.clone());
                    self.check_node(*part, &name, at, &mut EvaluatedParts::default(), faults);
                }
            }
            Constraint::Properties(parts) => self.check_properties(parts, object, at, seen, faults),
            Constraint::OtherProperties(part) => {
                for (name, value) in object {
                    if seen.properties.insert(name.clone()) {
                        self.check_other_property(*part, (name, value), at, faults);
                    }
                }
            }
            _ => (),
        }
    }

    fn check_properties(
        &mut self,
        Properties { named, matching, others }: &Properties,
        object: &Map<String, Value>,
        at: &str,
        seen: &mut EvaluatedParts,
        faults: &mut Faults,
    ) {
        for (name, value) in object {
            let below = format!("{at}/{}", escape_pointer(name));
            let mut is_known = false;
            if let Some(part) = named.get(name) {
                is_known = true;
                self.check_node(*part, value, &below, &mut EvaluatedParts::default(), faults);
            }
            for (_, part) in matching.iter().filter(|(pattern, _)| pattern.regex.is_match(name)) {
                is_known = true;
                self.check_node(*part, value, &below, &mut EvaluatedParts::default(), faults);
            }
            if let Some(part) = others.filter(|_| !is_known) {
                is_known = true;
                self.check_other_property(part, (name, value), at, faults);
            }
            if is_known && self.tracks {
                seen.properties.insert(name.clone());
            }
        }
    }

    /// A property that is not among those that are named.
    fn check_other_property(
        &mut self,
        part: NodeId,
        (name, value): (&str, &Value),
        at: &str,
        faults: &mut Faults,
    ) {
        let below = format!("{at}/{}", escape_pointer(name));
        if matches!(self.nodes.get(part), Some(SchemaNode::Always(false))) {
            return faults.add(&below, "this property is not allowed");
        }
        self.check_node(part, value, &below, &mut EvaluatedParts::default(), faults);
    }
}
