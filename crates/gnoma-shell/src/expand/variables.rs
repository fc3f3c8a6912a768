//! What variables and `~` become in a word.

use std::path::{Path, PathBuf};

use super::expander::Expander;
use super::join::ExpandedPiece;
use super::value::Value;
use crate::syntax::{Operation, Parameter};

/// Parameters that are numbers as long as nobody sets them.
const NUMBERS: [&str; 8] = ["?", "#", "RANDOM", "SECONDS", "LINENO", "UID", "EUID", "PPID"];

/// True if a value outside of quotes stays one word as it is.
fn stays_whole(text: &str) -> bool {
    !text.is_empty() && !text.contains([' ', '\t', '\n', '*', '?', '[', '\\'])
}

impl Expander<'_> {
    pub(super) fn expand_tilde(&self, user: &str) -> ExpandedPiece {
        let known = match user {
            "" => self.home.map(PathBuf::as_path),
            "+" => self.folders.only_folder(),
            _ => None,
        };
        known.and_then(Path::to_str).map_or(ExpandedPiece::Unknown { quoted: true }, |path| {
            ExpandedPiece::Text(path.to_owned())
        })
    }

    pub(super) fn expand_parameter(
        &mut self,
        parameter: &Parameter,
        quoted: bool,
    ) -> ExpandedPiece {
        let name = parameter.name.as_str();
        if looks_secret(name) && !matches!(parameter.operation, Operation::Length) {
            self.secrets.push(name.to_owned());
        }
        self.look_at_hazards(parameter);
        match (&parameter.operation, &parameter.subscript) {
            (Operation::Length, _) => ExpandedPiece::Number,
            (Operation::Value, None) if !parameter.indirect => match self.variable_value(name) {
                Some(Value::Text(text)) if quoted => ExpandedPiece::Text(text),
                Some(Value::Text(text)) => ExpandedPiece::Loose(text),
                Some(Value::Number) => ExpandedPiece::Number,
                Some(Value::OneOf(texts))
                    if quoted || texts.iter().all(|text| stays_whole(text)) =>
                {
                    ExpandedPiece::OneOf(texts)
                }
                Some(Value::Process { may_be_empty }) => {
                    ExpandedPiece::Process { may_be_empty, quoted }
                }
                Some(Value::Listed(places)) => ExpandedPiece::Listed { places, single: quoted },
                Some(Value::Match(pattern)) if quoted => ExpandedPiece::Glob(pattern),
                Some(Value::Match(_) | Value::OneOf(_) | Value::Unknown) | None => {
                    ExpandedPiece::Unknown { quoted: quoted && name != "@" }
                }
            },
            _ => ExpandedPiece::Unknown {
                quoted: quoted && name != "@" && parameter.subscript.is_none(),
            },
        }
    }

    /// Returns the known value of a variable; `IFS` itself is never put in.
    pub(super) fn variable_value(&self, name: &str) -> Option<Value> {
        let path = |path: &Path| path.to_str().map(|text| Value::Text(text.to_owned()));
        match (self.variables.get(name), name) {
            // These the shell sets by itself.
            (_, "IFS" | "_" | "REPLY" | "MAPFILE" | "COPROC") => None,
            (Some(value), _) => Some(value.clone()),
            (None, "HOME") => self.home.and_then(|home| path(home)),
            (None, "PWD") => self.folders.only_folder().and_then(path),
            (None, "$" | "BASHPID") => Some(Value::Process { may_be_empty: false }),
            (None, "!") => Some(Value::Process { may_be_empty: true }),
            (None, name) => NUMBERS.contains(&name).then_some(Value::Number),
        }
    }
}

/// True if a variable of this name likely holds a secret.
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
        || name.ends_with("_PWD")
        || name.ends_with("_DSN")
        || matches!(&*name, "PGPASS" | "SSHPASS" | "DATABASE_URL")
}
