//! `${VAR}` and `${VAR:-default}` in values.
//!
//! A variable that is empty counts as missing, as a key that is empty is no key. `$${` stands for a
//! plain `${`. Defaults do not nest.

use std::collections::BTreeMap;

/// Environment variables, by their names.
pub type Environment = BTreeMap<String, String>;

/// The reason why a text could not be expanded.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ExpandError {
    /// This variable is not set and has no default.
    Missing(String),
    /// The `${…}` itself is wrong; the words say how.
    Malformed(&'static str),
}

/// Reports whether `text` refers to a variable.
pub(crate) fn has_variable(text: &str) -> bool {
    text.contains("${")
}

/// Returns the name of the first variable that `text` takes a value from. One in whose place its default stands is none.
pub(crate) fn first_variable<'a>(text: &'a str, env: &Environment) -> Option<&'a str> {
    let asked = text.match_indices("${").filter(|(at, _)| !text[..*at].ends_with('$'));
    asked.map(|(at, _)| &text[at + 2..]).find_map(|inside| {
        let name = inside.split_once('}')?.0;
        let (name, has_default) = match name.split_once(":-") {
            Some((name, _)) => (name, true),
            None => (name, false),
        };
        let is_set = env.get(name).is_some_and(|value| !value.is_empty());
        (is_variable_name(name) && (is_set || !has_default)).then_some(name)
    })
}

/// Puts the variables' values into `text`.
pub(crate) fn expand_variables(text: &str, env: &Environment) -> Result<String, ExpandError> {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        if let Some(before) = before.strip_suffix('$') {
            expanded.push_str(before);
            expanded.push_str("${");
            rest = after;
            continue;
        }
        let (inside, after) =
            after.split_once('}').ok_or(ExpandError::Malformed("has `${` without `}`"))?;
        expanded.push_str(before);
        expanded.push_str(resolve_variable(inside, env)?);
        rest = after;
    }
    expanded.push_str(rest);
    Ok(expanded)
}

fn resolve_variable<'a>(inside: &'a str, env: &'a Environment) -> Result<&'a str, ExpandError> {
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    if default.is_some_and(has_variable) {
        return Err(ExpandError::Malformed("has a variable inside the default of another"));
    }
    if !is_variable_name(name) {
        return Err(ExpandError::Malformed(
            "has `${…}` around something that is not a variable name",
        ));
    }
    let value = env.get(name).filter(|value| !value.is_empty()).map(String::as_str);
    value.or(default).ok_or_else(|| ExpandError::Missing(name.to_owned()))
}

fn is_variable_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> Result<String, ExpandError> {
        let env = [("HOST", "example.org"), ("EMPTY", "")];
        expand_variables(text, &env.map(|(name, value)| (name.to_owned(), value.to_owned())).into())
    }

    #[test]
    fn environment_variables_and_defaults_are_expanded() {
        let cases = [
            ("plain $5 {x}", "plain $5 {x}"),
            ("https://${HOST}/v1", "https://example.org/v1"),
            ("${HOST}${HOST}", "example.orgexample.org"),
            ("${NONE:-local}", "local"),
            ("${EMPTY:-local}", "local"),
            ("${NONE:-}", ""),
            ("$${HOST}", "${HOST}"),
        ];
        for (text, wanted) in cases {
            assert_eq!(expanded(text).as_deref(), Ok(wanted), "{text}");
        }
    }

    #[test]
    fn first_environment_variable_of_a_text_is_found() {
        for (text, name) in [
            ("${WORK_KEY}", Some("WORK_KEY")),
            ("https://${HOST:-local}/${PATH}", Some("HOST")),
            ("https://${NONE:-local}/${PATH}", Some("PATH")),
            ("${NONE:-default}", None),
            ("${EMPTY:-default}", None),
            ("$${HOST} ${PORT}", Some("PORT")),
            ("plain", None),
            ("${", None),
        ] {
            let env = [("HOST", "example.org"), ("EMPTY", "")];
            let env: Environment =
                env.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
            assert_eq!(first_variable(text, &env), name, "{text}");
        }
    }

    #[test]
    fn missing_and_malformed_variables_are_distinguished() {
        assert_eq!(expanded("${NONE}"), Err(ExpandError::Missing("NONE".to_owned())));
        assert_eq!(expanded("${EMPTY}"), Err(ExpandError::Missing("EMPTY".to_owned())));
        for text in ["${HOST", "${}", "${1A}", "${A B}", "${A:-${B}}"] {
            assert!(matches!(expanded(text), Err(ExpandError::Malformed(_))), "{text}");
        }
    }

    #[test]
    fn expanded_variable_is_not_expanded_again() {
        let env = [("A".to_owned(), "${B}".to_owned())].into();
        assert_eq!(expand_variables("${A}", &env).as_deref(), Ok("${B}"));
    }
}
