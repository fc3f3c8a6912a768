//! Rules about a value as a whole, without its parts, and the faults that they find.

use serde_json::{Map, Value};

use crate::{
    node::{Bound, CountedUnit, Pattern, Types},
    number::Decimal,
};

/// Most faults that are told.
const MAX_FAULTS: usize = 6;
/// Most rules that are applied to one value, its parts included: alternatives within alternatives multiply.
pub(crate) const MAX_STEPS: u32 = 2_000_000;
/// Longest value that is shown, in characters.
const MAX_SHOWN_CHARS: usize = 60;

/// The faults of a value, a line each, and the depth of the deepest fault.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    pub(crate) all: Vec<String>,
    pub(crate) depth: usize,
}

impl Faults {
    pub(crate) fn add(&mut self, at: &str, what: impl Into<String>) {
        self.depth = self.depth.max(at.matches('/').count());
        if self.all.len() < MAX_FAULTS {
            let place = if at.is_empty() { "the whole".to_owned() } else { format!("`{at}`") };
            self.all.push(format!("{place}: {}", what.into()));
        }
    }
}

pub(crate) fn check_type(types: Types, value: &Value, at: &str, faults: &mut Faults) {
    if !types.matches_value(value) {
        faults.add(at, format!("{} is not {}", describe_value(value), types.to_words()));
    }
}

pub(crate) fn check_one_of(values: &[Value], value: &Value, at: &str, faults: &mut Faults) {
    if !values.iter().any(|one| is_same(one, value)) {
        let all: Vec<_> = values.iter().map(describe_value).collect();
        faults.add(at, format!("{} is not {}", describe_value(value), all.join(" or ")));
    }
}

pub(crate) fn check_required(
    object: &Map<String, Value>,
    names: &[String],
    at: &str,
    faults: &mut Faults,
) {
    for name in names.iter().filter(|name| !object.contains_key(*name)) {
        faults.add(at, format!("the property `{name}` is missing"));
    }
}

pub(crate) fn check_bound(
    bound: Bound,
    limit: Decimal,
    value: &Value,
    at: &str,
    faults: &mut Faults,
) {
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

pub(crate) fn check_count(
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

pub(crate) fn check_pattern(pattern: &Pattern, value: &Value, at: &str, faults: &mut Faults) {
    let Value::String(text) = value else { return };
    if !pattern.regex.is_match(text) {
        faults.add(at, format!("{} does not match `{}`", describe_value(value), pattern.words));
    }
}

/// Checks that no two items are equal, and returns the number of steps that this took.
pub(crate) fn check_unique(items: &[Value], at: &str, faults: &mut Faults) -> u32 {
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
pub(crate) fn describe_value(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text,
    }
}

pub(crate) fn describe_range(least: u64, most: Option<u64>) -> String {
    match most {
        Some(most) if most == least => format!("{least}"),
        Some(most) => format!("{least} to {most}"),
        None => format!("at least {least}"),
    }
}
