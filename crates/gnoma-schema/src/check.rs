//! A value against a schema.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::{
    node::{Bound, Constraint, CountedUnit, NodeId, Pattern, Properties, SchemaNode},
    number::Decimal,
    refs::escape_pointer,
};

/// Most faults that are told.
const MAX_FAULTS: usize = 6;
/// Most rules that are applied to one value, its parts included: alternatives within alternatives multiply.
const MAX_STEPS: u32 = 2_000_000;
/// Deepest nesting of parts.
const MAX_DEPTH: usize = 400;
/// Longest value that is shown, in characters.
const MAX_SHOWN_CHARS: usize = 60;

/// Checks `value` against the first part.
pub(crate) fn check_value(nodes: &[SchemaNode], tracks: bool, value: &Value) -> Result<(), String> {
    let mut check = Check { nodes, tracks, steps: 0, depth: 0, is_over: false };
    let mut faults = Faults::default();
    check.check_node(0, value, "", &mut EvaluatedParts::default(), &mut faults);
    if check.is_over {
        return Err("it takes too long to check; the schema has too many alternatives".to_owned());
    }
    if faults.all.is_empty() { Ok(()) } else { Err(faults.all.join("\n")) }
}

/// The faults of a value, a line each, and the depth of the deepest fault.
#[derive(Debug, Default)]
struct Faults {
    all: Vec<String>,
    depth: usize,
}

impl Faults {
    fn add(&mut self, at: &str, what: impl Into<String>) {
        self.depth = self.depth.max(at.matches('/').count());
        if self.all.len() < MAX_FAULTS {
            let place = if at.is_empty() { "the whole".to_owned() } else { format!("`{at}`") };
            self.all.push(format!("{place}: {}", what.into()));
        }
    }
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
            | Constraint::If { .. } => self.in_place(rule, value, at, seen, faults),
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
            Constraint::Type(types) if !types.matches_value(value) => {
                faults.add(at, format!("{} is not {}", describe_value(value), types.to_words()));
            }
            Constraint::OneOf(values) if !values.iter().any(|one| is_same(one, value)) => {
                let all: Vec<_> = values.iter().map(describe_value).collect();
                faults.add(at, format!("{} is not {}", describe_value(value), all.join(" or ")));
            }
            Constraint::Type(_) | Constraint::OneOf(_) => (),
            Constraint::Number(bound, limit) => {
                self::check_bound(*bound, *limit, value, at, faults);
            }
            Constraint::Count { of, least, most } => {
                self::check_count(*of, *least, *most, value, at, faults);
            }
            Constraint::Pattern(pattern) => self::check_pattern(pattern, value, at, faults),
        }
    }

    fn in_place(
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
            Constraint::One(parts) => {
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

    /// At least one must fit. All are looked at, where somebody asks what was seen.
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
                        let below = format!("{at}/{number}");
                        self.check_node(
                            *part,
                            item,
                            &below,
                            &mut EvaluatedParts::default(),
                            faults,
                        );
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
                    faults.add(
                        at,
                        format!("{found} items match `contains`, and there must be {range}"),
                    );
                }
            }
            Constraint::Unique => {
                self.steps = self.steps.saturating_add(check_unique(items, at, faults));
            }
            Constraint::OtherItems(part) => {
                for (number, item) in items.iter().enumerate() {
                    if seen.items.insert(number) {
                        let below = format!("{at}/{number}");
                        self.check_node(
                            *part,
                            item,
                            &below,
                            &mut EvaluatedParts::default(),
                            faults,
                        );
                    }
                }
            }
            _ => (),
        }
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
            Constraint::Required(names) => check_required(object, names, at, faults),
            Constraint::Needs(needs) => {
                for (_, names) in needs.iter().filter(|(name, _)| object.contains_key(name)) {
                    check_required(object, names, at, faults);
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

fn check_required(object: &Map<String, Value>, names: &[String], at: &str, faults: &mut Faults) {
    for name in names.iter().filter(|name| !object.contains_key(*name)) {
        faults.add(at, format!("the property `{name}` is missing"));
    }
}

fn check_bound(bound: Bound, limit: Decimal, value: &Value, at: &str, faults: &mut Faults) {
    let Value::Number(number) = value else { return };
    let own = Decimal::from_number(number);
    let (holds, what) = match bound {
        Bound::Least => (own >= limit, "at least"),
        Bound::Above => (own > limit, "above"),
        Bound::Most => (own <= limit, "at most"),
        Bound::Below => (own < limit, "below"),
        Bound::MultipleOf => (own.is_multiple_of(limit), "a multiple of"),
    };
    if !holds {
        faults.add(at, format!("{number} is not {what} {limit}"));
    }
}

fn check_count(
    of: CountedUnit,
    least: u64,
    most: Option<u64>,
    value: &Value,
    at: &str,
    faults: &mut Faults,
) {
    let (count, what) = match (of, value) {
        (CountedUnit::Characters, Value::String(text)) => (text.chars().count(), "characters"),
        (CountedUnit::Items, Value::Array(items)) => (items.len(), "items"),
        (CountedUnit::Properties, Value::Object(object)) => (object.len(), "properties"),
        (CountedUnit::Characters | CountedUnit::Items | CountedUnit::Properties, _) => return,
    };
    let count = u64::try_from(count).unwrap_or(u64::MAX);
    if count < least || most.is_some_and(|most| count > most) {
        faults.add(
            at,
            format!("it has {count} {what} and must have {}", describe_range(least, most)),
        );
    }
}

fn check_pattern(pattern: &Pattern, value: &Value, at: &str, faults: &mut Faults) {
    let Value::String(text) = value else { return };
    if !pattern.regex.is_match(text) {
        faults.add(at, format!("{} does not match `{}`", describe_value(value), pattern.words));
    }
}

/// Checks that no two items are equal, and returns the number of steps that this took.
fn check_unique(items: &[Value], at: &str, faults: &mut Faults) -> u32 {
    let mut steps = 0_u32;
    for (second, item) in items.iter().enumerate() {
        for (first, other) in items.iter().enumerate().take(second) {
            steps = steps.saturating_add(1);
            if steps > MAX_STEPS {
                faults.add(at, "there are too many items to compare them");
                return steps;
            }
            if is_same(item, other) {
                faults.add(at, format!("the items {first} and {second} are equal"));
                return steps;
            }
        }
    }
    steps
}

/// Reports whether two values are equal: 1 and 1.0 are, and the order of properties does not matter.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            Decimal::from_number(one) == Decimal::from_number(other)
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let holds = |(name, value): (&String, &Value)| {
                other.get(name).is_some_and(|other| is_same(value, other))
            };
            one.len() == other.len() && one.iter().all(holds)
        }
        _ => one == other,
    }
}

/// A value in few characters.
fn describe_value(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text,
    }
}

fn describe_range(least: u64, most: Option<u64>) -> String {
    match most {
        Some(most) if most == least => format!("{least}"),
        Some(most) => format!("{least} to {most}"),
        None => format!("at least {least}"),
    }
}
