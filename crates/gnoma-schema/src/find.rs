//! The value in an answer: models put it into fences, and words before and behind it.

use serde_json::Value;

use crate::error::SchemaMismatch;

/// Most places in a text at which a value is looked for.
const MAX_PLACES: usize = 64;
/// Longer text is not looked at, in bytes.
const MAX_TEXT_BYTES: usize = 8 << 20;

const FENCE: &str = "```";

/// The reason why an answer does not fit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// The answer contains no JSON.
    #[error("it is not JSON: {0}")]
    NoJson(String),
    /// The JSON in the answer does not fit.
    #[error(transparent)]
    Unfit(SchemaMismatch),
}

/// Checks that a value fits.
type Check<'a> = &'a dyn Fn(&Value) -> Result<(), SchemaMismatch>;

/// The value of `text` that fits, as compact JSON.
pub(crate) fn find_value(check: Check<'_>, text: &str) -> Result<String, Misfit> {
    let whole = text.trim();
    if whole.is_empty() {
        return Err(Misfit::NoJson("it is empty".to_owned()));
    }
    if whole.len() > MAX_TEXT_BYTES {
        return Err(Misfit::NoJson("it is too long".to_owned()));
    }
    let mut misfit = match serde_json::from_str::<Value>(whole) {
        Ok(value) => match check(&value) {
            Ok(()) => return Ok(value.to_string()),
            // It is JSON as a whole: something in it was not meant.
            Err(why) => return Err(Misfit::Unfit(why)),
        },
        Err(error) => Misfit::NoJson(error.to_string()),
    };
    for value in fenced_values(whole).into_iter().chain(embedded_values(whole)) {
        match check(&value) {
            Ok(()) => return Ok(value.to_string()),
            Err(why) if matches!(misfit, Misfit::NoJson(_)) => misfit = Misfit::Unfit(why),
            Err(_) => (),
        }
    }
    Err(misfit)
}

/// Returns the values in fenced blocks, the last first.
fn fenced_values(text: &str) -> Vec<Value> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once(FENCE) {
        let Some((block, after)) = after.split_once(FENCE) else { break };
        // The word behind the fence says which language it is.
        let inside = block.split_once('\n').map_or(block, |(_, inside)| inside);
        let value = serde_json::from_str(inside.trim()).or_else(|_| serde_json::from_str(block));
        found.extend(value.ok());
        if found.len() >= MAX_PLACES {
            break;
        }
        rest = after;
    }
    found.reverse();
    found
}

/// The outermost objects and lists, the last first.
fn embedded_values(text: &str) -> Vec<Value> {
    let mut found = Vec::new();
    let mut from = 0;
    for _ in 0..MAX_PLACES {
        let rest = text.get(from..).unwrap_or_default();
        let Some(at) = rest.find(['{', '[']) else { break };
        let begun = rest.get(at..).unwrap_or_default();
        let mut values = serde_json::Deserializer::from_str(begun).into_iter::<Value>();
        if let Some(Ok(value)) = values.next() {
            found.push(value);
            from += at + values.byte_offset();
        } else {
            from += at + 1;
        }
    }
    found.reverse();
    found
}

#[cfg(test)]
mod tests {
    use crate::Schema;

    #[test]
    fn structured_output_json_is_found_in_fences_or_prose() {
        let schema = Schema::parse(
            r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#,
        )
        .unwrap();
        for text in [
            r#"{"n":1}"#,
            " \n{\"n\": 1.0e0 }\n",
            "```json\n{\"n\":1}\n```",
            "Here it is:\n```\n{ \"n\": 1 }\n```\nDone.",
            r#"Not {"m":2}, but {"n":1} it is."#,
            r#"{"n":"x"} was wrong; {"n":1}"#,
        ] {
            let found = schema.find_value(text).unwrap();
            assert!(found == r#"{"n":1}"# || found == r#"{"n":1.0}"#, "{text}: {found}");
        }
        for text in ["", "no", "{\"n\":", "[{\"n\":1}]", r#"{"n":"1"}"#, "{\"a\":{\"n\":1}}"] {
            assert!(schema.find_value(text).is_err(), "{text}");
        }
        let why = schema.find_value("It is {\"n\":true}.").unwrap_err().to_string();
        assert_eq!(why, "`/n`: true is not integer");
    }
}
