//! What is known of variables, and what becomes of them in a word.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::join::{MAX_CHOICES, Piece};
use super::{Expander, Field};
use crate::facts::Place;
use crate::syntax::{Operation, Parameter};

/// Parameters that are numbers as long as nobody sets them.
const NUMBERS: [&str; 9] = ["?", "#", "$", "RANDOM", "SECONDS", "LINENO", "UID", "EUID", "PPID"];

/// What is known of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// Exactly this.
    Text(String),
    /// Some number.
    Number,
    /// One of these.
    OneOf(Vec<String>),
    /// A name that a program lists, of something at one of these places.
    Listed(Arc<[Place]>),
    /// One of the names that fit a pattern.
    Match(String),
    /// It was set, to what is not known.
    Unknown,
}

impl Value {
    /// Whether it is certainly a plain number.
    pub(crate) fn is_number(&self) -> bool {
        match self {
            Self::Number => true,
            Self::Text(text) => is_number(text),
            Self::OneOf(texts) => texts.iter().all(|text| is_number(text)),
            Self::Match(_) | Self::Listed(_) | Self::Unknown => false,
        }
    }

    /// What is known when either this or `other` may be so.
    pub(crate) fn or(&self, other: &Self) -> Self {
        if self == other {
            return self.clone();
        }
        if self.is_number() && other.is_number() {
            return Self::Number;
        }
        match (self.texts(), other.texts()) {
            (Some(texts), Some(more)) => Self::one_of(texts.iter().chain(more).cloned()),
            _ => Self::Unknown,
        }
    }

    /// One of `texts`, as long as these are few.
    pub(crate) fn one_of(texts: impl IntoIterator<Item = String>) -> Self {
        let mut choices: Vec<String> = Vec::new();
        for text in texts {
            if !choices.contains(&text) {
                choices.push(text);
            }
            if choices.len() > MAX_CHOICES {
                return Self::Unknown;
            }
        }
        match choices.as_slice() {
            [] => Self::Unknown,
            [text] => Self::Text(text.clone()),
            _ => Self::OneOf(choices),
        }
    }

    /// What is known of a variable that gets what `field` becomes, as one word.
    pub(crate) fn of(field: &Field) -> Self {
        match field {
            Field::Known(text) => Self::Text(text.clone()),
            Field::Pattern(pattern) => Self::Match(pattern.clone()),
            Field::OneOf { choices, .. } => Self::one_of(choices.iter().cloned()),
            Field::Listed { places, .. } => Self::Listed(Arc::clone(places)),
            Field::Unknown { .. } => Self::Unknown,
        }
    }

    fn texts(&self) -> Option<&[String]> {
        match self {
            Self::Text(text) => Some(std::slice::from_ref(text)),
            Self::OneOf(texts) => Some(texts),
            Self::Number | Self::Match(_) | Self::Listed(_) | Self::Unknown => None,
        }
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a value outside of quotes stays one word as it is.
fn stays_whole(text: &str) -> bool {
    !text.is_empty() && !text.contains([' ', '\t', '\n', '*', '?', '[', '\\'])
}

impl Expander<'_> {
    pub(super) fn tilde(&self, user: &str) -> Piece {
        let known = match user {
            "" => self.home.map(PathBuf::as_path),
            "+" => self.folders.only(),
            _ => None,
        };
        known
            .and_then(Path::to_str)
            .map_or(Piece::Unknown { quoted: true }, |path| Piece::Text(path.to_owned()))
    }

    pub(super) fn parameter(&mut self, parameter: &Parameter, quoted: bool) -> Piece {
        let name = parameter.name.as_str();
        if looks_secret(name) && !matches!(parameter.operation, Operation::Length) {
            self.secrets.push(name.to_owned());
        }
        self.look_at_hazards(parameter);
        match (&parameter.operation, &parameter.subscript) {
            (Operation::Length, _) => Piece::Number,
            (Operation::Value, None) if !parameter.indirect => match self.value(name) {
                Some(Value::Text(text)) if quoted => Piece::Text(text),
                Some(Value::Text(text)) => Piece::Loose(text),
                Some(Value::Number) => Piece::Number,
                Some(Value::OneOf(texts))
                    if quoted || texts.iter().all(|text| stays_whole(text)) =>
                {
                    Piece::OneOf(texts)
                }
                Some(Value::Listed(places)) => Piece::Listed { places, single: quoted },
                Some(Value::Match(pattern)) if quoted => Piece::Glob(pattern),
                Some(Value::Match(_) | Value::OneOf(_) | Value::Unknown) | None => {
                    Piece::Unknown { quoted: quoted && name != "@" }
                }
            },
            _ => Piece::Unknown { quoted: quoted && name != "@" && parameter.subscript.is_none() },
        }
    }

    /// What is known of a variable; `IFS` itself is never put in.
    pub(super) fn value(&self, name: &str) -> Option<Value> {
        let path = |path: &Path| path.to_str().map(|text| Value::Text(text.to_owned()));
        match (self.variables.get(name), name) {
            // These the shell sets by itself.
            (_, "IFS" | "_" | "REPLY" | "MAPFILE" | "COPROC") => None,
            (Some(value), _) => Some(value.clone()),
            (None, "HOME") => self.home.and_then(|home| path(home)),
            (None, "PWD") => self.folders.only().and_then(path),
            (None, name) => NUMBERS.contains(&name).then_some(Value::Number),
        }
    }
}

/// Whether a variable of this name likely holds a secret.
pub(crate) fn looks_secret(name: &str) -> bool {
    const MARKS: [&str; 13] = [
        "JWT",
        "COOKIE",
        "SECRET",
        "TOKEN",
        "PASSWORD",
        "PASSWD",
        "PASSPHRASE",
        "API_KEY",
        "APIKEY",
        "ACCESS_KEY",
        "PRIVATE_KEY",
        "CREDENTIAL",
        "AUTH_KEY",
    ];
    let name = name.to_ascii_uppercase();
    MARKS.iter().any(|mark| name.contains(mark))
        || name.ends_with("_KEY")
        || name.ends_with("_PAT")
        || name.ends_with("_PASS")
        || name.ends_with("_DSN")
        || matches!(&*name, "PGPASS" | "SSHPASS" | "MYSQL_PWD" | "DATABASE_URL")
}
