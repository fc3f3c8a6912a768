//! Elicitation: questions of an MCP server to the person, and their answers.
//!
//! A form is put as a question that wants words: its own defaults, or `field = value`. A page is put as a
//! question of yes or no. Whoever asks for something secret is warned about.

use gnoma_core::{
    session::{Inquiry, PermissionAnswer},
    tool::Question,
};
use serde_json::{Map, Value};

/// Longest message of a server that is shown, in bytes.
const MAX_SHOWN_BYTES: usize = 1000;
/// Most values of a field that are offered.
const MAX_CHOICES: usize = 8;
/// The answer that sends a form as it came.
const SEND_DEFAULTS: &str = "Send the defaults";
/// The answer that sends nothing.
const DECLINE: &str = "Decline";
/// Words in fields that are for secrets.
const SECRET_WORDS: [&str; 12] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "api key",
    "api_key",
    "apikey",
    "credential",
    "private key",
    "one-time",
    "card number",
];

/// A question that a server asks.
pub(super) enum ElicitationQuestion {
    /// A form to fill in.
    Form {
        /// The message of the server.
        message: String,
        /// The fields' schemas, by name.
        fields: Map<String, Value>,
        /// The fields that must be filled.
        required: Vec<String>,
    },
    /// A page that a person is to open.
    Page {
        /// The message of the server.
        message: String,
        /// The address of the page.
        url: String,
    },
    /// A question of an unknown kind.
    Unknown,
}

/// The answer of a person to a server's question.
#[derive(Debug, PartialEq)]
pub(super) enum ElicitationAnswer {
    /// Yes, with this content.
    Accept(Map<String, Value>),
    /// The person declines the question.
    Decline,
}

impl ElicitationQuestion {
    /// Reads the parameters of a question. A form without usable fields is one that wants yes or no.
    pub(super) fn from_params(params: &Value) -> Self {
        let text = |key: &str| params.get(key).and_then(Value::as_str).map(str::to_owned);
        let message = text("message").unwrap_or_default();
        match (text("mode").as_deref(), text("url")) {
            (Some("url"), Some(url)) => Self::Page { message, url },
            (None | Some("form"), _) => {
                let schema = params.get("requestedSchema");
                let field = |key: &str| schema.and_then(|schema| schema.get(key));
                let fields = field("properties").and_then(Value::as_object).cloned();
                let required = field("required").and_then(Value::as_array).into_iter().flatten();
                let required = required.filter_map(Value::as_str).map(str::to_owned).collect();
                Self::Form { message, fields: fields.unwrap_or_default(), required }
            }
            (Some(_), _) => Self::Unknown,
        }
    }

    /// The question for a person.
    pub(super) fn to_question(&self, server: &str) -> Option<Question> {
        let (message, rest, inquiry) = match self {
            Self::Form { message, fields, required } => (
                message,
                self::describe_fields(fields, required),
                Some(Inquiry { choices: self.choices() }),
            ),
            Self::Page { message, url } => (message, format!("open {url} in a browser"), None),
            Self::Unknown => return None,
        };
        let message = gnoma_core::text_truncation::word_prefix(message, MAX_SHOWN_BYTES)
            .replace(['\n', '\r'], " ");
        let warning = if self.wants_secret() {
            " Careful: it asks for something secret. Servers must not; what you enter goes to the server."
        } else {
            ""
        };
        let text = format!("the MCP server `{server}` asks: {message} ({rest}).{warning}");
        Some(Question { text, inquiry, ..Question::default() })
    }

    /// Answers to choose from: the values of the only field, the defaults where they are enough, and no.
    fn choices(&self) -> Vec<String> {
        let Self::Form { fields, .. } = self else { return Vec::new() };
        let only = fields.values().next().filter(|_| fields.len() == 1);
        let values = only.and_then(|field| field.get("enum")?.as_array());
        let values = values.into_iter().flatten().filter_map(Value::as_str).take(MAX_CHOICES);
        let mut choices: Vec<_> = values.map(str::to_owned).collect();
        if self.answer_with_defaults() != ElicitationAnswer::Decline {
            choices.push(SEND_DEFAULTS.to_owned());
        }
        choices.push(DECLINE.to_owned());
        choices
    }

    fn wants_secret(&self) -> bool {
        let Self::Form { message, fields, .. } = self else { return false };
        let text = format!("{message} {}", Value::Object(fields.clone())).to_lowercase();
        SECRET_WORDS.iter().any(|word| text.contains(word))
    }

    /// Converts a person's answer to the answer for the server.
    pub(super) fn interpret_answer(&self, answer: &PermissionAnswer) -> ElicitationAnswer {
        match (self, answer) {
            (Self::Form { .. }, PermissionAnswer::Text { text }) if text == SEND_DEFAULTS => {
                self.answer_with_defaults()
            }
            (Self::Form { .. }, PermissionAnswer::Text { text }) if text != DECLINE => {
                self.fill_form(text)
            }
            (
                Self::Page { .. },
                PermissionAnswer::Allow | PermissionAnswer::Always | PermissionAnswer::Rule { .. },
            ) => ElicitationAnswer::Accept(Map::new()),
            _ => ElicitationAnswer::Decline,
        }
    }

    /// The form with its own defaults; without one for a field that must be filled there is no answer.
    pub(super) fn answer_with_defaults(&self) -> ElicitationAnswer {
        let Self::Form { fields, required, .. } = self else {
            return ElicitationAnswer::Accept(Map::new());
        };
        let mut content = Map::new();
        for (name, schema) in fields {
            let default = schema.get("default").cloned();
            let yes = (schema.get("type").and_then(Value::as_str) == Some("boolean"))
                .then(|| true.into());
            match default.or(yes) {
                Some(value) => drop(content.insert(name.clone(), value)),
                None if required.contains(name) => return ElicitationAnswer::Decline,
                None => (),
            }
        }
        ElicitationAnswer::Accept(content)
    }

    /// The form with what a person wrote: `field = value`, several parted by `;`. For the only field the
    /// value is enough.
    fn fill_form(&self, text: &str) -> ElicitationAnswer {
        let Self::Form { fields, required, .. } = self else { return ElicitationAnswer::Decline };
        let mut content = Map::new();
        if let Some((name, schema)) = fields.iter().next().filter(|_| fields.len() == 1)
            && !text.trim_start().starts_with(&**name)
        {
            content.insert(name.clone(), parse_field_value(schema, text.trim()));
            return ElicitationAnswer::Accept(content);
        }
        for part in text.split([';', '\n']) {
            let Some((name, value)) = part.split_once('=') else { continue };
            let (name, value) = (name.trim(), value.trim());
            let Some(schema) = fields.get(name) else { continue };
            content.insert(name.to_owned(), parse_field_value(schema, value));
        }
        let is_whole =
            !content.is_empty() && required.iter().all(|name| content.contains_key(name));
        if is_whole { ElicitationAnswer::Accept(content) } else { ElicitationAnswer::Decline }
    }
}

/// A value as its field wants it.
fn parse_field_value(schema: &Value, text: &str) -> Value {
    let parsed = match schema.get("type").and_then(Value::as_str) {
        Some("integer" | "number" | "boolean") => gnoma_core::json::from_str(text).ok(),
        Some("array") => {
            let items = text.split(',').map(|item| Value::from(item.trim())).collect();
            Some(Value::Array(items))
        }
        Some(_) | None => None,
    };
    parsed.unwrap_or_else(|| text.into())
}

/// The fields as a person reads them.
fn describe_fields(fields: &Map<String, Value>, required: &[String]) -> String {
    let field = |(name, schema): (&String, &Value)| {
        let kind = schema.get("type").and_then(Value::as_str).unwrap_or("text");
        let default = schema.get("default").map(|value| format!(" = {value}")).unwrap_or_default();
        let must = if required.contains(name) { ", required" } else { "" };
        format!("{name}: {kind}{default}{must}")
    };
    let listed: Vec<_> = fields.iter().map(field).collect();
    if listed.is_empty() {
        return "yes or no".to_owned();
    }
    format!("fields {}; answer with `field = value`, separate several with `;`", listed.join("; "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "it is written where it is asked")]
    fn asked(properties: Value, required: &[&str]) -> ElicitationQuestion {
        let params = json!({"mode": "form", "message": "Tell me", "requestedSchema": {
            "type": "object", "properties": properties, "required": required
        }});
        ElicitationQuestion::from_params(&params)
    }

    fn text(text: &str) -> PermissionAnswer {
        PermissionAnswer::Text { text: text.to_owned() }
    }

    #[test]
    fn mcp_elicitation_form_is_filled_from_defaults_or_text_or_declined() {
        let fields =
            json!({"name": {"type": "string", "default": "Bo"}, "age": {"type": "integer"}});
        let optional = asked(fields.clone(), &["name"]);
        let ElicitationAnswer::Accept(content) = optional.interpret_answer(&text(SEND_DEFAULTS))
        else {
            panic!()
        };
        assert_eq!(Value::Object(content), json!({"name": "Bo"}));
        let whole = asked(fields, &["name", "age"]);
        for no in [text(DECLINE), text("no thanks"), text(SEND_DEFAULTS), PermissionAnswer::Allow] {
            assert_eq!(whole.interpret_answer(&no), ElicitationAnswer::Decline, "{no:?}");
        }
        let ElicitationAnswer::Accept(content) =
            whole.interpret_answer(&text("name = Al; age = 7"))
        else {
            panic!()
        };
        assert_eq!(Value::Object(content), json!({"name": "Al", "age": 7}));
        let one =
            asked(json!({"colour": {"type": "string", "enum": ["red", "blue"]}}), &["colour"]);
        assert_eq!(
            one.to_question("s").unwrap().inquiry.unwrap().choices,
            ["red", "blue", DECLINE]
        );
        let ElicitationAnswer::Accept(content) = one.interpret_answer(&text("red")) else {
            panic!()
        };
        assert_eq!(Value::Object(content), json!({"colour": "red"}));
    }

    #[test]
    fn mcp_elicitation_that_asks_for_secrets_shows_a_warning() {
        let secret = asked(json!({"x": {"type": "string", "description": "your API key"}}), &["x"]);
        assert!(secret.to_question("s").unwrap().text.contains("Careful"));
        let plain = asked(json!({"x": {"type": "string"}}), &["x"]);
        assert!(!plain.to_question("s").unwrap().text.contains("Careful"));
    }
}
