//! The headers in which the wire without a handshake repeats parts of a message, so that what stands between can route
//! it: the method, the name of what is meant, and the arguments of a tool that its schema marks with `x-mcp-header`.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value};

/// The keyword that marks an argument.
const MARK: &str = "x-mcp-header";
/// The prefix of the names of headers that repeat arguments.
const PREFIX: &str = "Mcp-Param-";
/// The marks around values that cannot be sent as they are.
const ENCODED: (&str, &str) = ("=?base64?", "?=");
/// The largest whole number that every server reads exactly.
const MAX_EXACT: i64 = (1 << 53) - 1;

/// An argument that is repeated in a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HeaderParameter {
    name: String,
    /// The keys that lead to it.
    path: Vec<String>,
}

/// The reason why the marks in a tool's schema are not valid.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HeaderParameterError {
    /// Two arguments are sent in one header, which has this name.
    #[error("two of its arguments are sent in the header `{0}`")]
    SameHeader(String),
    /// A mark is set at something else than an argument.
    #[error("`{MARK}` is set where no argument is")]
    NoArgument,
    /// The mark of this argument is not the name of a header.
    #[error("`{MARK}` of `{0}` is no name of a header")]
    HeaderName(String),
    /// Values of this argument cannot be sent in a header.
    #[error("`{0}` is sent in a header, but is neither text nor a whole number nor a truth value")]
    ArgumentKind(String),
    /// Values of this argument may be numbers that some servers read inexactly.
    #[error("`{0}` is sent in a header, but may be too large a number for one")]
    ArgumentRange(String),
}

gnoma_core::debug_as_display!(HeaderParameterError);

impl HeaderParameter {
    /// The header of a call with these arguments; `None` where the argument is not there.
    pub(crate) fn to_header(&self, arguments: &Map<String, Value>) -> Option<(String, String)> {
        let (first, rest) = self.path.split_first()?;
        let value = rest.iter().try_fold(arguments.get(first)?, |value, key| value.get(key))?;
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Bool(_) | Value::Number(_) => value.to_string(),
            Value::Null | Value::Array(_) | Value::Object(_) => return None,
        };
        Some((format!("{PREFIX}{}", self.name), encode_header_value(&text)))
    }
}

/// The headers that say which method a message has, and what it is about.
pub(super) fn method_headers(method: &str, params: &Map<String, Value>) -> Vec<(String, String)> {
    let mut headers = vec![("Mcp-Method".to_owned(), method.to_owned())];
    let named = match method {
        "tools/call" | "prompts/get" => params.get("name"),
        "resources/read" => params.get("uri"),
        _ => None,
    };
    if let Some(name) = named.and_then(Value::as_str) {
        headers.push(("Mcp-Name".to_owned(), encode_header_value(name)));
    }
    headers
}

/// A value as it can be sent in a header.
fn encode_header_value(text: &str) -> String {
    let is_plain = text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
        && text.trim() == text
        && !(text.starts_with(ENCODED.0) && text.ends_with(ENCODED.1));
    if is_plain {
        return text.to_owned();
    }
    format!("{}{}{}", ENCODED.0, STANDARD.encode(text), ENCODED.1)
}

/// The arguments that a tool's schema marks.
///
/// # Errors
/// A mark is not valid, which makes the tool unusable over HTTP.
pub(crate) fn find_header_parameters(
    schema: &Value,
) -> Result<Vec<HeaderParameter>, HeaderParameterError> {
    let mut found = Vec::new();
    let mut path = Vec::new();
    collect_parameters(schema, &mut path, &mut found)?;
    let is_same =
        |one: &HeaderParameter, other: &HeaderParameter| one.name.eq_ignore_ascii_case(&other.name);
    for (at, one) in found.iter().enumerate() {
        if found.iter().skip(at + 1).any(|other| is_same(one, other)) {
            return Err(HeaderParameterError::SameHeader(one.name.clone()));
        }
    }
    if count_marks(schema, 0) != found.len() {
        return Err(HeaderParameterError::NoArgument);
    }
    Ok(found)
}

fn collect_parameters(
    schema: &Value,
    path: &mut Vec<String>,
    found: &mut Vec<HeaderParameter>,
) -> Result<(), HeaderParameterError> {
    /// Deepest arguments that are looked at.
    const MAX_DEPTH: usize = 32;
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return Ok(());
    };
    if path.len() >= MAX_DEPTH {
        return Ok(());
    }
    for (key, property) in properties {
        path.push(key.clone());
        if let Some(mark) = property.get(MARK) {
            let name = mark.as_str().filter(|name| is_token(name));
            let name = name.ok_or_else(|| HeaderParameterError::HeaderName(key.clone()))?;
            check_kind(key, property)?;
            found.push(HeaderParameter { name: name.to_owned(), path: path.clone() });
        }
        collect_parameters(property, path, found)?;
        path.pop();
    }
    Ok(())
}

fn is_token(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_part)
}

/// Checks that the values of the argument `key` can be sent in a header.
fn check_kind(key: &str, property: &Value) -> Result<(), HeaderParameterError> {
    match property.get("type").and_then(Value::as_str) {
        Some("string" | "boolean" | "integer") => (),
        _ => return Err(HeaderParameterError::ArgumentKind(key.to_owned())),
    }
    let is_exact = |key: &str| {
        let limit = property.get(key).and_then(Value::as_f64);
        limit.is_none_or(|limit| limit.abs() <= MAX_EXACT as f64)
    };
    let is_fine = is_exact("minimum") && is_exact("maximum");
    is_fine.then_some(()).ok_or_else(|| HeaderParameterError::ArgumentRange(key.to_owned()))
}

/// Returns the number of marks anywhere in a schema, also where they mean nothing.
fn count_marks(schema: &Value, depth: usize) -> usize {
    /// Deeper is nothing that a model gets.
    const MAX_DEPTH: usize = 64;
    /// Keywords whose value is data and no schema.
    const DATA: [&str; 5] = ["default", "const", "enum", "examples", "example"];
    if depth > MAX_DEPTH {
        return 0;
    }
    match schema {
        Value::Object(fields) => {
            let own = usize::from(
                fields.contains_key(MARK) && !fields.get(MARK).is_some_and(Value::is_object),
            );
            let below = fields.iter().filter(|(key, _)| !DATA.contains(&key.as_str()));
            own + below.map(|(_, value)| count_marks(value, depth + 1)).sum::<usize>()
        }
        Value::Array(all) => all.iter().map(|value| count_marks(value, depth + 1)).sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn mcp_header_values_that_are_not_ascii_are_base64_encoded() {
        for (text, header) in [
            ("us-west1", "us-west1"),
            ("us west", "us west"),
            ("", ""),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ] {
            assert_eq!(encode_header_value(text), header);
        }
    }

    #[test]
    fn x_mcp_header_arguments_are_found_in_the_schema_and_sent_as_headers() {
        let schema = json!({"properties": {
            "at": {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}},
            "count": {"type": "integer", "x-mcp-header": "Count"},
        }});
        let marked = find_header_parameters(&schema).unwrap();
        let header = |arguments: Value| -> Vec<_> {
            marked.iter().filter_map(|it| it.to_header(arguments.as_object().unwrap())).collect()
        };
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let both = header(json!({"at": {"region": "eu"}, "count": 3}));
        assert_eq!(both, [pair("Mcp-Param-Region", "eu"), pair("Mcp-Param-Count", "3")]);
        assert_eq!(header(json!({"at": {}, "count": null})), []);
    }

    #[test]
    fn invalid_x_mcp_header_annotations_are_rejected() {
        let text =
            |mark: Value| json!({"properties": {"a": {"type": "string", "x-mcp-header": mark}}});
        for schema in [
            text(json!("")),
            text(json!("a b")),
            text(json!("a\r\nb")),
            text(json!(1)),
            json!({"properties": {"a": {"type": "number", "x-mcp-header": "A"}}}),
            json!({"properties": {"a": {"type": "array", "items": {"type": "string", "x-mcp-header": "A"}}}}),
            json!({"properties": {
                "a": {"type": "string", "x-mcp-header": "A"},
                "b": {"type": "string", "x-mcp-header": "a"},
            }}),
        ] {
            assert!(find_header_parameters(&schema).is_err(), "{schema}");
        }
        assert_eq!(find_header_parameters(&json!(true)), Ok(Vec::new()));
    }
}
