//! Types of settings, and how their values are parsed.

use std::time::Duration;

use gnoma_core::{Secret, suggest::nearest_name};

use super::form::Form;
use crate::{
    money::Money,
    tree::{Node, Tree},
    value::{MAX_DURATION, Value, parse_bytes, parse_duration},
};

/// The form of a key's value.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Text; `${VAR}` is expanded.
    Text,
    /// Text that has its own use for `$`, such as a shell line or a pattern.
    Verbatim,
    /// Text that is never shown.
    Secret,
    /// An `http` or `https` address without a password in it.
    Url,
    /// The value `true` or `false`.
    Bool,
    /// A whole number within limits.
    Integer {
        /// The smallest number that is accepted.
        least: i64,
        /// The largest number that is accepted.
        most: i64,
    },
    /// A number within limits.
    Number {
        /// The smallest number that is accepted.
        least: f64,
        /// The largest number that is accepted.
        most: f64,
    },
    /// An amount of money: a number of dollars, or text such as `"5 EUR"`.
    Money {
        /// The largest amount that is accepted.
        most: f64,
    },
    /// A time: whole seconds, or text such as `"30s"`.
    Duration {
        /// The shortest time that is accepted, in seconds.
        least_s: u64,
    },
    /// A size: bytes, or text such as `"1MB"`.
    Bytes,
    /// One of these words. Case, `_` and `-` make no difference.
    Word(&'static [&'static str]),
    /// A text of this form.
    Form(&'static Form),
    /// A list of texts.
    List,
    /// A list of words, each as [`Kind::Word`] has it.
    Words(&'static [&'static str]),
    /// A list of texts of this form.
    Forms(&'static Form),
}

/// The reason why a value was refused.
pub(crate) struct Refusal {
    /// The mistake in the value; follows the key's name.
    pub(crate) message: String,
    /// The advice on what to do.
    pub(crate) hint: Option<String>,
}

impl From<String> for Refusal {
    fn from(message: String) -> Self {
        Self { message, hint: None }
    }
}

impl Kind {
    /// Reports whether `${VAR}` means something in a value of this form.
    pub(crate) fn can_expand(self) -> bool {
        match self {
            Self::Verbatim => false,
            Self::Form(form) | Self::Forms(form) => form.expands,
            _ => true,
        }
    }

    /// Reports whether a value of this form is a secret.
    pub(crate) fn is_secret(self) -> bool {
        matches!(self, Self::Secret)
    }

    /// Reads a value, already expanded.
    pub(crate) fn read_value(self, tree: &Tree) -> Result<Value, Refusal> {
        let value = match (self, tree) {
            (Self::Text | Self::Verbatim, Tree::Text(text)) => {
                Some(Value::Text(text.clone().into()))
            }
            (Self::Secret, Tree::Text(text)) => Some(Value::Secret(Secret::new(text.clone()))),
            (Self::Url, Tree::Text(text)) => return read_url(text),
            (Self::Word(words), Tree::Text(text)) => return read_word(words, text),
            (Self::Bool, Tree::Bool(truth)) => Some(Value::Bool(*truth)),
            (Self::Integer { least, most }, Tree::Integer(number)) => {
                (least..=most).contains(number).then_some(Value::Integer(*number))
            }
            (Self::Number { least, most }, Tree::Number(number)) => {
                (least..=most).contains(number).then_some(Value::Number(*number))
            }
            (Self::Number { least, most }, Tree::Integer(number)) => {
                #[expect(clippy::cast_precision_loss, reason = "limits are small")]
                let number = *number as f64;
                (least..=most).contains(&number).then_some(Value::Number(number))
            }
            (Self::Money { most }, Tree::Number(_) | Tree::Integer(_)) => {
                return Self::Number { least: 0.0, most }.read_value(tree);
            }
            (Self::Money { most }, Tree::Text(text)) => normalize_money(text, most),
            (Self::Duration { least_s }, tree) => read_duration(tree)
                .filter(|time| *time >= Duration::from_secs(least_s))
                .map(Value::Duration),
            (Self::Bytes, Tree::Integer(count)) => u64::try_from(*count).ok().map(Value::Bytes),
            (Self::Bytes, Tree::Text(text)) => parse_bytes(text).map(Value::Bytes),
            (Self::Form(form), Tree::Text(text)) => {
                form.is_valid(text).then(|| Value::Text(text.clone().into()))
            }
            (Self::Form(form), Tree::Integer(number)) if form.takes_numbers => {
                let text = number.to_string();
                form.is_valid(&text).then(|| Value::Text(text.into()))
            }
            (Self::List | Self::Words(_) | Self::Forms(_), Tree::List(nodes)) => {
                return self.read_list(nodes);
            }
            _ => None,
        };
        value.ok_or_else(|| self.refuse_value(tree))
    }

    fn read_list(self, nodes: &[Node]) -> Result<Value, Refusal> {
        let entry = match self {
            Self::Words(words) => Self::Word(words),
            Self::Forms(form) => Self::Form(form),
            _ => Self::Text,
        };
        let read = |node: &Node| match (&node.tree, entry.read_value(&node.tree)) {
            (_, Ok(Value::Text(text))) => Ok(text),
            (Tree::Text(text), Err(Refusal { hint, .. })) => {
                let text = text.escape_debug();
                let message =
                    format!("must be {}, not one with `{text}` in it", self.describe_expected());
                Err(Refusal { message, hint })
            }
            (_, Ok(_) | Err(_)) => Err(self.refuse_value(&Tree::List(Vec::new()))),
        };
        let texts: Vec<_> = nodes.iter().map(read).collect::<Result<_, _>>()?;
        Ok(Value::List(texts.into()))
    }

    fn refuse_value(self, tree: &Tree) -> Refusal {
        format!("must be {}, not {}", self.describe_expected(), self.describe_found(tree)).into()
    }

    /// Returns a description of the values that are accepted.
    #[must_use]
    pub fn describe_expected(self) -> String {
        match self {
            Self::Text | Self::Verbatim | Self::Secret => "text".to_owned(),
            Self::Url => {
                "an address with its scheme, such as \"http://localhost:8080/v1\"".to_owned()
            }
            Self::Bool => "true or false".to_owned(),
            Self::Integer { least, most: i64::MAX } => format!("a whole number from {least} up"),
            Self::Integer { least, most } => format!("a whole number from {least} to {most}"),
            Self::Number { least, most: f64::MAX } => format!("a number from {least} up"),
            Self::Number { least, most } => format!("a number from {least} to {most}"),
            Self::Money { most } => {
                format!("an amount from 0 to {most}: dollars, or text such as \"5 EUR\"")
            }
            Self::Duration { least_s } => {
                let days = MAX_DURATION.as_secs() / (24 * 60 * 60);
                let range = format!("from {least_s} s to {days} days");
                format!(
                    "a time {range}: a number of seconds, or text such as \"30s\", \"1m30s\" or \"30 days\""
                )
            }
            Self::Bytes => {
                "a size: a number of bytes, or text such as \"1MB\" or \"64KiB\"".to_owned()
            }
            Self::Word(words) => format!("one of {}", words.join(", ")),
            Self::Form(form) => form.describe_expected(),
            Self::List => "a list of strings".to_owned(),
            Self::Words(words) => format!("a list, each entry one of {}", words.join(", ")),
            Self::Forms(form) => format!("a list, each entry {}", form.describe_expected()),
        }
    }

    /// Returns a description of the value that was found: the value itself when it has the right type, else its
    /// type.
    fn describe_found(self, tree: &Tree) -> String {
        match (self, tree) {
            (Self::Integer { .. } | Self::Number { .. }, Tree::Integer(number)) => {
                format!("`{number}`")
            }
            (Self::Duration { .. } | Self::Bytes, Tree::Integer(number)) => format!("`{number}`"),
            (Self::Form(form), Tree::Integer(number)) if form.takes_numbers => {
                format!("`{number}`")
            }
            (Self::Number { .. }, Tree::Number(number)) => format!("`{number}`"),
            (
                Self::Money { .. } | Self::Duration { .. } | Self::Bytes | Self::Form(_),
                Tree::Text(text),
            ) => {
                format!("`{}`", text.escape_debug())
            }
            (Self::List | Self::Words(_) | Self::Forms(_), Tree::List(_)) => {
                "a list with other values in it".to_owned()
            }
            (_, tree) => tree.type_name().to_owned(),
        }
    }
}

fn read_duration(tree: &Tree) -> Option<Duration> {
    match tree {
        Tree::Integer(seconds) => {
            let time = Duration::from_secs(u64::try_from(*seconds).ok()?);
            (time <= MAX_DURATION).then_some(time)
        }
        Tree::Text(text) => parse_duration(text),
        Tree::Number(_) | Tree::Bool(_) | Tree::List(_) | Tree::Table(_) | Tree::Other(_) => None,
    }
}

fn normalize_money(text: &str, most: f64) -> Option<Value> {
    let money = Money::parse(text).filter(|money| money.amount <= most)?;
    Some(Value::Text(money.to_text().into()))
}

fn read_word(words: &'static [&'static str], text: &str) -> Result<Value, Refusal> {
    let folded = fold_word(text);
    if let Some(word) = words.iter().find(|word| fold_word(word) == folded) {
        return Ok(Value::Text((*word).into()));
    }
    let is_near = |word: &&str| {
        let plain = fold_word(word);
        nearest_name(&folded, std::iter::once(plain.as_str())).is_some()
    };
    let near = nearest_name(text, words.iter().copied());
    let near = near.or_else(|| words.iter().copied().find(is_near));
    Err(Refusal {
        message: format!("cannot be `{}`: it is one of {}", text.escape_debug(), words.join(", ")),
        hint: near.map(|word| format!("did you mean `{word}`?")),
    })
}

fn fold_word(word: &str) -> String {
    word.chars().filter(|c| *c != '_' && *c != '-').flat_map(char::to_lowercase).collect()
}

/// Returns the mistake in the address of a provider, in words that come after the provider's name; `None` where
/// there is none.
#[must_use]
pub fn wrong_address(text: &str) -> Option<String> {
    let Refusal { message, hint } = read_url(text).err()?;
    Some(match hint {
        Some(hint) => format!("{message}; {hint}"),
        None => message,
    })
}

/// Takes an address only when it says plainly where a request goes, and holds no password: addresses
/// show up in messages and logs.
fn read_url(text: &str) -> Result<Value, Refusal> {
    let (scheme, rest) = text.split_once("://").unwrap_or_default();
    let is_known = ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if host.contains('@') {
        return Err(Refusal {
            message: "holds a user name or password, which would show up in messages".to_owned(),
            hint: Some("take it out of the address; keys go to `provider.api_keys`".to_owned()),
        });
    }
    let is_foreign = |c: char| c.is_whitespace() || c.is_control() || c == '\\';
    let fault = if !is_known {
        Some(format!("must be {}", Kind::Url.describe_expected()))
    } else if text.contains(is_foreign) {
        Some("contains a blank or another character that no address has".to_owned())
    } else {
        host.is_empty().then(|| format!("names no host behind `{scheme}://`"))
    };
    if let Some(message) = fault {
        return Err(Refusal { message, hint: meant_url(text) });
    }
    let port = host.rsplit_once(':').map(|(_, port)| port).filter(|port| !port.contains(']'));
    if let Some(port) = port.filter(|port| port.parse::<u16>().is_err()) {
        let message =
            format!("has no usable port: `{}` is not one from 1 to 65535", port.escape_debug());
        return Err(message.into());
    }
    Ok(Value::Text(format!("{}://{rest}", scheme.to_ascii_lowercase()).into()))
}

/// The address that was probably meant: without blanks and quotes around it, and with how it is spoken to.
fn meant_url(text: &str) -> Option<String> {
    let bare = text.trim_matches(|c: char| c.is_whitespace() || c == '"' || c == '\'');
    let is_plain =
        !bare.is_empty() && bare.chars().all(|c| c.is_ascii_graphic() && c != '\\' && c != '@');
    let meant = if bare.contains("://") {
        (bare != text).then(|| bare.to_owned())
    } else {
        let host = bare.trim_start_matches(['h', 't', 'p', 's', ':']).trim_start_matches('/');
        let host = if bare.contains("//") || bare.starts_with("http:/") { host } else { bare };
        let is_near = ["localhost", "127.", "192.168.", "10.", "0.0.0.0", "["];
        let is_near = is_near.iter().any(|near| host.starts_with(near));
        let scheme = if is_near { "http" } else { "https" };
        host.contains(['.', ':', '/']).then(|| format!("{scheme}://{host}"))
    };
    meant.filter(|_| is_plain).map(|meant| format!("did you mean \"{meant}\"?"))
}
