//! What each keyword of a schema demands.

use serde_json::{Map, Value};

use crate::{
    compile::{Compiler, Subschema},
    error::SchemaError,
    node::{Bound, Constraint, CountedUnit, NodeId, Pattern, Properties, Types},
    number::Decimal,
    pattern::parse_pattern,
};

type Rules = Result<Vec<Constraint>, SchemaError>;

/// Keywords that cannot be checked, and what to do about them.
const REFUSED: [(&str, &str); 2] = [
    ("$dynamicRef", "dynamic references cannot be checked; use `$ref`"),
    ("$recursiveRef", "recursive references cannot be checked; use `$ref` with `#`"),
];

/// All that a part demands.
pub(crate) fn read_rules(compiler: &mut Compiler<'_>, part: Subschema<'_>) -> Rules {
    for (key, why) in REFUSED {
        if part.get(key).is_some() {
            return part.keyword_error(key, why);
        }
    }
    let mut rules = of_values(part)?;
    rules.extend(of_numbers(part)?);
    rules.extend(of_sizes(part)?);
    rules.extend(of_arrays(compiler, part)?);
    rules.extend(of_objects(compiler, part)?);
    rules.extend(of_properties(compiler, part)?);
    rules.extend(of_others(compiler, part)?);
    rules.extend(read_unevaluated(compiler, part)?);
    Ok(rules)
}

fn of_values(part: Subschema<'_>) -> Rules {
    let mut rules = Vec::new();
    match part.get("type") {
        None => (),
        Some(Value::String(name)) => match Types::from_names([name.as_str()]) {
            Some(types) => rules.push(Constraint::Type(types)),
            None => return part.keyword_error("type", no_type(name)),
        },
        Some(Value::Array(names)) if !names.is_empty() => {
            let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
            match Types::from_names(names.iter().copied()).filter(|types| types.0 != 0) {
                Some(types) => rules.push(Constraint::Type(types)),
                None => return part.keyword_error("type", no_type(&names.join(", "))),
            }
        }
        Some(_) => {
            return part.keyword_error("type", "it must be the name of a type, or a list of names");
        }
    }
    match part.get("enum") {
        None => (),
        Some(Value::Array(values)) => rules.push(Constraint::OneOf(values.clone())),
        Some(_) => return part.keyword_error("enum", "it must be a list of values"),
    }
    rules.extend(part.get("const").map(|value| Constraint::OneOf(vec![value.clone()])));
    Ok(rules)
}

fn no_type(name: &str) -> String {
    format!("`{name}` is not a type; the types are {}", Types::NAMES.join(", "))
}

fn of_numbers(part: Subschema<'_>) -> Rules {
    let mut rules = Vec::new();
    let keys = [
        ("minimum", "exclusiveMinimum", Bound::Least, Bound::Above),
        ("maximum", "exclusiveMaximum", Bound::Most, Bound::Below),
    ];
    for (key, strict_key, loose, strict) in keys {
        // Draft 4 made a bound exclusive with a flag beside it.
        let flag = part.get(strict_key).and_then(Value::as_bool);
        if let Some(number) = read_number(part, key)? {
            let bound = if flag == Some(true) { strict } else { loose };
            rules.push(Constraint::Number(bound, number));
        }
        if flag.is_none()
            && let Some(number) = read_number(part, strict_key)?
        {
            rules.push(Constraint::Number(strict, number));
        }
    }
    if let Some(unit) = read_number(part, "multipleOf")? {
        if !unit.is_positive() {
            return part.keyword_error("multipleOf", "it must be above 0");
        }
        rules.push(Constraint::Number(Bound::MultipleOf, unit));
    }
    Ok(rules)
}

fn read_number(part: Subschema<'_>, key: &str) -> Result<Option<Decimal>, SchemaError> {
    match part.get(key) {
        None => Ok(None),
        Some(Value::Number(number)) => Ok(Some(Decimal::from_number(number))),
        Some(_) => part.keyword_error(key, "it must be a number"),
    }
}

fn read_count(part: Subschema<'_>, key: &str) -> Result<Option<u64>, SchemaError> {
    let Some(value) = part.get(key) else { return Ok(None) };
    let whole = |number: f64| number >= 0.0 && number.fract() == 0.0 && number <= 1e15;
    let from_float = || value.as_f64().filter(|number| whole(*number));
    match value.as_u64() {
        Some(count) => Ok(Some(count)),
        None => match from_float().and_then(|number| format!("{number}").parse().ok()) {
            Some(count) => Ok(Some(count)),
            None => part.keyword_error(key, "it must be a whole number from 0 on"),
        },
    }
}

/// Lengths and numbers of things, and the pattern of a text.
fn of_sizes(part: Subschema<'_>) -> Rules {
    let mut rules = Vec::new();
    for (of, least, most) in [
        (CountedUnit::Characters, "minLength", "maxLength"),
        (CountedUnit::Items, "minItems", "maxItems"),
        (CountedUnit::Properties, "minProperties", "maxProperties"),
    ] {
        let (least, most) = (read_count(part, least)?, read_count(part, most)?);
        if least.is_some() || most.is_some() {
            rules.push(Constraint::Count { of, least: least.unwrap_or(0), most });
        }
    }
    match part.get("pattern") {
        None => (),
        Some(Value::String(words)) => {
            rules.push(Constraint::Pattern(compile_pattern(part, "pattern", words)?));
        }
        Some(_) => return part.keyword_error("pattern", "it must be a string"),
    }
    match part.get("uniqueItems") {
        None | Some(Value::Bool(false)) => (),
        Some(Value::Bool(true)) => rules.push(Constraint::Unique),
        Some(_) => return part.keyword_error("uniqueItems", "it must be `true` or `false`"),
    }
    Ok(rules)
}

fn compile_pattern(part: Subschema<'_>, key: &str, words: &str) -> Result<Pattern, SchemaError> {
    parse_pattern(words).or_else(|error| part.keyword_error(key, error.to_string()))
}

fn of_arrays(compiler: &mut Compiler<'_>, part: Subschema<'_>) -> Rules {
    let mut rules = Vec::new();
    let is_tuple = matches!(part.get("items"), Some(Value::Array(_)));
    let (first_key, rest_key) =
        if is_tuple { ("items", "additionalItems") } else { ("prefixItems", "items") };
    let first = enqueue_subschemas(compiler, part, first_key)?.unwrap_or_default();
    let rest = enqueue_subschema(compiler, part, rest_key)?;
    if !first.is_empty() || rest.is_some() {
        rules.push(Constraint::Items { first, rest });
    }
    if let Some(contained) = enqueue_subschema(compiler, part, "contains")? {
        let least = read_count(part, "minContains")?.unwrap_or(1);
        rules.push(Constraint::Contains {
            part: contained,
            least,
            most: read_count(part, "maxContains")?,
        });
    }
    Ok(rules)
}

/// The part that a keyword holds.
fn enqueue_subschema(
    compiler: &mut Compiler<'_>,
    part: Subschema<'_>,
    key: &str,
) -> Result<Option<NodeId>, SchemaError> {
    part.get(key).map(|_| compiler.node_at(part.keyword_pointer(key))).transpose()
}

/// The parts in the list that a keyword holds.
fn enqueue_subschemas(
    compiler: &mut Compiler<'_>,
    part: Subschema<'_>,
    key: &str,
) -> Result<Option<Vec<NodeId>>, SchemaError> {
    match part.get(key) {
        None => Ok(None),
        Some(Value::Array(parts)) if !parts.is_empty() => {
            let below = part.keyword_pointer(key);
            let parts = (0..parts.len()).map(|at| compiler.node_at(format!("{below}/{at}")));
            parts.collect::<Result<_, _>>().map(Some)
        }
        Some(_) => part.keyword_error(key, "it must be a list of schemas, and not empty"),
    }
}

/// The members of the object that a keyword holds.
fn read_members<'a>(
    part: Subschema<'a>,
    key: &str,
) -> Result<Option<&'a Map<String, Value>>, SchemaError> {
    match part.get(key) {
        None => Ok(None),
        Some(Value::Object(members)) => Ok(Some(members)),
        Some(_) => part.keyword_error(key, "it must be an object"),
    }
}

fn join_pointer(pointer: &str, key: &str) -> String {
    format!("{pointer}/{}", crate::refs::escape_pointer(key))
}

fn read_names(part: Subschema<'_>, key: &str, value: &Value) -> Result<Vec<String>, SchemaError> {
    let name = |name: &Value| name.as_str().map(str::to_owned);
    let names = value.as_array().and_then(|names| names.iter().map(name).collect());
    match names {
        Some(names) => Ok(names),
        None => part.keyword_error(key, "it must be a list of names"),
    }
}

fn of_objects(compiler: &mut Compiler<'_>, part: Subschema<'_>) -> Rules {
    let mut rules = Vec::new();
    match part.get("required") {
        // Draft 3 had a flag in the property itself.
        None | Some(Value::Bool(_)) => (),
        Some(value) => rules.push(Constraint::Required(read_names(part, "required", value)?)),
    }
    rules.extend(enqueue_subschema(compiler, part, "propertyNames")?.map(Constraint::Names));
    let (mut needs, mut brings) = (Vec::new(), Vec::new());
    for key in ["dependentRequired", "dependentSchemas", "dependencies"] {
        let Some(found) = read_members(part, key)? else { continue };
        let pointer = part.keyword_pointer(key);
        for (name, value) in found {
            if key != "dependentSchemas" && value.is_array() {
                needs.push((name.clone(), read_names(part, key, value)?));
            } else if key != "dependentRequired" {
                brings.push((name.clone(), compiler.node_at(join_pointer(&pointer, name))?));
            } else {
                return part.keyword_error(key, "its members must be lists of names");
            }
        }
    }
    rules.extend((!needs.is_empty()).then_some(Constraint::Needs(needs)));
    rules.extend((!brings.is_empty()).then_some(Constraint::Brings(brings)));
    Ok(rules)
}

fn of_properties(compiler: &mut Compiler<'_>, part: Subschema<'_>) -> Rules {
    let mut parts = Properties::default();
    if let Some(found) = read_members(part, "properties")? {
        let pointer = part.keyword_pointer("properties");
        for name in found.keys() {
            parts.named.insert(name.clone(), compiler.node_at(join_pointer(&pointer, name))?);
        }
    }
    if let Some(found) = read_members(part, "patternProperties")? {
        let pointer = part.keyword_pointer("patternProperties");
        for words in found.keys() {
            let pattern = compile_pattern(part, "patternProperties", words)?;
            parts.matching.push((pattern, compiler.node_at(join_pointer(&pointer, words))?));
        }
    }
    parts.others = enqueue_subschema(compiler, part, "additionalProperties")?;
    let Properties { named, matching, others } = &parts;
    let says_nothing = named.is_empty() && matching.is_empty() && others.is_none();
    Ok((!says_nothing).then_some(Constraint::Properties(parts)).into_iter().collect())
}

/// Returns the rules of the keywords that apply other parts to the same value.
fn of_others(compiler: &mut Compiler<'_>, part: Subschema<'_>) -> Rules {
    let mut rules = Vec::new();
    match part.get("$ref") {
        None => (),
        Some(Value::String(reference)) => {
            rules.push(Constraint::Same(compiler.resolve_reference(reference, part)?));
        }
        Some(_) => return part.keyword_error("$ref", "it must be a string"),
    }
    rules.extend(enqueue_subschemas(compiler, part, "allOf")?.map(Constraint::All));
    rules.extend(enqueue_subschemas(compiler, part, "anyOf")?.map(Constraint::Any));
    rules.extend(enqueue_subschemas(compiler, part, "oneOf")?.map(Constraint::One));
    rules.extend(enqueue_subschema(compiler, part, "not")?.map(Constraint::Not));
    let then = enqueue_subschema(compiler, part, "then")?;
    let otherwise = enqueue_subschema(compiler, part, "else")?;
    if let Some(test) = enqueue_subschema(compiler, part, "if")? {
        rules.push(Constraint::If { test, then, otherwise });
    }
    Ok(rules)
}

/// Returns the rules of the keywords that ask which items and properties all others have looked at.
fn read_unevaluated(compiler: &mut Compiler<'_>, part: Subschema<'_>) -> Rules {
    let items = enqueue_subschema(compiler, part, "unevaluatedItems")?.map(Constraint::OtherItems);
    let properties = enqueue_subschema(compiler, part, "unevaluatedProperties")?
        .map(Constraint::OtherProperties);
    let rules: Vec<_> = items.into_iter().chain(properties).collect();
    compiler.tracks |= !rules.is_empty();
    Ok(rules)
}
