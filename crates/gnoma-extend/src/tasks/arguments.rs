//! Arguments of tasks: their types, and the values that a person gives them.

use std::fmt;

/// Most arguments of a task.
pub(super) const MAX_ARGUMENTS: usize = 16;
/// Most values that a choice offers.
const MAX_CHOICES: usize = 20;
/// Longest value of an argument, in bytes.
const MAX_VALUE_BYTES: usize = 4 << 10;
/// Bytes of a wrong value that are shown.
const MAX_SHOWN_BYTES: usize = 60;
/// Longest name of an argument, in bytes.
const MAX_NAME_BYTES: usize = 32;
/// Names that mean something to tasks or, as variables, to a shell.
const RESERVED: [&str; 9] =
    ["answer", "arguments", "argv", "cdpath", "fpath", "manpath", "path", "prompt", "status"];

/// The type of an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArgumentKind {
    /// A version, such as `v1.2.0`, `1.2` or `2.0.0-rc.1`.
    Version,
    /// The path of a file or folder, which need not exist.
    Path,
    /// A name that git accepts for a branch.
    Branch,
    /// A text of any words.
    Text,
    /// A number in decimal digits.
    Number,
    /// One of these values.
    Choice(Vec<String>),
}

/// An argument of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskArgument {
    /// Stands for the value as `$name` in the steps.
    pub name: String,
    /// The values that it accepts.
    pub kind: ArgumentKind,
    /// The value that it has if none is given.
    pub default: Option<String>,
}

/// An argument that is defined or given wrongly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArgumentError {
    /// The name cannot be an argument's.
    Name(String),
    /// The name is taken.
    Reserved(String),
    /// The type is none.
    Kind {
        /// The name of the argument.
        name: String,
        /// The type as it is written.
        written: String,
    },
    /// A choice without values, or with too many.
    Choices(String),
    /// No value was given, and there is no default.
    Missing {
        /// The name of the argument.
        name: String,
        /// The arguments of the task.
        usage: String,
    },
    /// There are more values than arguments.
    TooMany {
        /// The first value that belongs to no argument.
        value: String,
        /// The arguments of the task.
        usage: String,
    },
    /// A value is given twice.
    Twice(String),
    /// Two arguments have the same name.
    Double(String),
    /// An argument that must be given is behind one that need not be.
    Order {
        /// The name of the one that must be given.
        name: String,
        /// The name of the other.
        optional: String,
    },
    /// A recorded value belongs to an argument that the task does not have any more.
    Undeclared(String),
    /// The value is not of the argument's type.
    Value {
        /// The name of the argument.
        name: String,
        /// The value that was given.
        value: String,
        /// The values that the argument accepts.
        wanted: String,
    },
}

impl fmt::Display for ArgumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(
                f,
                "`{}` cannot name an argument; use a-z, 0-9 and `_`, beginning with a letter",
                name.escape_debug()
            ),
            Self::Reserved(name) => {
                write!(f, "`{name}` is reserved; give the argument another name")
            }
            Self::Kind { name, written } => write!(
                f,
                "`{}` is no type of argument `{name}`; write version, path, branch, text, number or choice(a, b), \
                 and a default behind `=`",
                written.escape_debug()
            ),
            Self::Choices(name) => {
                write!(f, "the choice `{name}` needs 1 to {MAX_CHOICES} values, as in choice(a, b)")
            }
            Self::Missing { name, usage } => write!(f, "the argument `{name}` is missing; {usage}"),
            Self::TooMany { value, usage } => {
                write!(f, "`{}` is one argument too many; {usage}", value.escape_debug())
            }
            Self::Twice(name) => write!(f, "the argument `{name}` is given twice"),
            Self::Double(name) => write!(f, "two arguments are called `{name}`"),
            Self::Order { name, optional } => write!(
                f,
                "`{name}` must be given and is behind `{optional}`, which need not be; put `{name}` before it"
            ),
            Self::Undeclared(name) => {
                write!(f, "the task has no argument `{}` any more", name.escape_debug())
            }
            Self::Value { name, value, wanted } => {
                write!(f, "`{}` is not {wanted}, which `{name}` must be", value.escape_debug())
            }
        }
    }
}

impl TaskArgument {
    /// Parses what stands behind an argument's name: `version`, `text = origin`, `choice(patch, minor) = patch`.
    pub(super) fn parse(name: &str, written: &str) -> Result<Self, ArgumentError> {
        let letters = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        let is_name = name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.len() <= MAX_NAME_BYTES
            && name.chars().all(letters);
        if !is_name {
            return Err(ArgumentError::Name(name.to_owned()));
        }
        if RESERVED.contains(&name) {
            return Err(ArgumentError::Reserved(name.to_owned()));
        }
        let (kind, default) = match written.split_once('=') {
            Some((kind, default)) => (kind.trim(), Some(strip_quotes(default.trim()).to_owned())),
            None => (written.trim(), None),
        };
        let kind = ArgumentKind::parse(name, kind)?;
        if let Some(default) = default.as_deref().filter(|default| !default.is_empty()) {
            kind.check_value(name, default)?;
        }
        Ok(Self { name: name.to_owned(), kind, default })
    }

    /// Returns the argument for a line of usage: `VERSION`, `[REMOTE]`.
    fn usage(&self) -> String {
        let name = self.name.to_uppercase();
        if self.default.is_some() { format!("[{name}]") } else { name }
    }
}

impl ArgumentKind {
    fn parse(name: &str, written: &str) -> Result<Self, ArgumentError> {
        Ok(match written {
            "version" => Self::Version,
            "path" => Self::Path,
            "branch" => Self::Branch,
            "text" | "" => Self::Text,
            "number" => Self::Number,
            _ => {
                let kind =
                    || ArgumentError::Kind { name: name.to_owned(), written: written.to_owned() };
                let rest = written.strip_prefix("choice").ok_or_else(kind)?.trim();
                let inside = rest.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
                let values: Vec<String> = split_choices(inside.unwrap_or(rest))
                    .map(|value| strip_quotes(value.trim()))
                    .filter(|it| !it.is_empty())
                    .map(str::to_owned)
                    .collect();
                if values.is_empty() || values.len() > MAX_CHOICES {
                    return Err(ArgumentError::Choices(name.to_owned()));
                }
                Self::Choice(values)
            }
        })
    }

    /// Returns what a value must be, for people.
    fn expected_value(&self) -> String {
        match self {
            Self::Version => "a version such as v1.2.0".to_owned(),
            Self::Path => "a path".to_owned(),
            Self::Branch => "the name of a branch".to_owned(),
            Self::Text => {
                format!("text of at most {} KiB without control characters", MAX_VALUE_BYTES >> 10)
            }
            Self::Number => "a number".to_owned(),
            Self::Choice(values) => format!("one of {}", values.join(", ")),
        }
    }

    /// Refuses a value that is not of the type.
    pub(super) fn check_value(&self, name: &str, value: &str) -> Result<(), ArgumentError> {
        let is_plain = value.len() <= MAX_VALUE_BYTES
            && !value.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t'));
        // A command could take a value that begins with a hyphen for an option.
        let is_no_option = !value.starts_with('-') && !value.is_empty();
        let fits = is_plain
            && match self {
                Self::Version => is_version(value),
                Self::Path => is_no_option && !value.contains('\n'),
                Self::Branch => gnoma_core::branch_name::is_valid(value),
                Self::Text => true,
                Self::Number => is_number(value),
                Self::Choice(values) => values.iter().any(|known| known == value),
            };
        if fits {
            return Ok(());
        }
        let shown = value.floor_char_boundary(MAX_SHOWN_BYTES);
        let mark = if shown < value.len() { "…" } else { "" };
        let value = format!("{}{mark}", value.get(..shown).unwrap_or_default());
        Err(ArgumentError::Value { name: name.to_owned(), value, wanted: self.expected_value() })
    }
}

/// Splits the values of a choice at `,` and `|` outside of quotes.
fn split_choices(written: &str) -> impl Iterator<Item = &str> {
    let mut quote = None;
    written.split(move |c: char| match quote {
        Some(open) => {
            quote = (c != open).then_some(open);
            false
        }
        None => {
            quote = matches!(c, '"' | '\'').then_some(c);
            matches!(c, ',' | '|')
        }
    })
}

fn strip_quotes(text: &str) -> &str {
    let inside = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    inside('"').or_else(|| inside('\'')).unwrap_or(text)
}

fn is_version(value: &str) -> bool {
    let digits = value.strip_prefix('v').unwrap_or(value);
    let end = digits.find(['-', '+']).unwrap_or(digits.len());
    let (numbers, rest) = digits.split_at(end);
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let in_rest = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+');
    numbers.split('.').all(is_number) && rest.len() != 1 && rest.chars().all(in_rest)
}

fn is_number(value: &str) -> bool {
    let digits = value.strip_prefix('-').unwrap_or(value);
    let (whole, part) = digits.split_once('.').unwrap_or((digits, "0"));
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    is_digits(whole) && is_digits(part)
}

/// Returns the arguments of a task for people: `release VERSION [REMOTE]`.
pub(super) fn usage_line(task: &str, arguments: &[TaskArgument]) -> String {
    let mut line = task.to_owned();
    for argument in arguments {
        line.push(' ');
        line.push_str(&argument.usage());
    }
    line
}

/// Gives each argument its value: from words in order, from `name=value`, or its default. If the last argument is
/// text, it takes all words that are left.
///
/// # Errors
/// A value is missing, given twice, not of its argument's type, or belongs to no argument.
pub fn bind_arguments(
    task: &str,
    arguments: &[TaskArgument],
    words: &[String],
) -> Result<Vec<(String, String)>, ArgumentError> {
    bind_words(task, arguments, words, |_| true)
}

/// As [`bind_arguments`], but checks only some of the values.
pub(super) fn bind_words(
    task: &str,
    arguments: &[TaskArgument],
    words: &[String],
    is_checked: impl Fn(&str) -> bool,
) -> Result<Vec<(String, String)>, ArgumentError> {
    let usage = || format!("usage: {}", usage_line(task, arguments));
    let values = assign_words(arguments, words, &usage)?;
    let bind = |(argument, value): (&TaskArgument, Option<String>)| {
        let name = argument.name.clone();
        let Some(value) = value else {
            let missing = || ArgumentError::Missing { name: name.clone(), usage: usage() };
            return argument.default.clone().map(|value| (name.clone(), value)).ok_or_else(missing);
        };
        if is_checked(&value) {
            argument.kind.check_value(&name, &value)?;
        }
        Ok((name, value))
    };
    arguments.iter().zip(values).map(bind).collect()
}

/// Returns the words that are given for each argument; `None` where none are.
fn assign_words(
    arguments: &[TaskArgument],
    words: &[String],
    usage: &impl Fn() -> String,
) -> Result<Vec<Option<String>>, ArgumentError> {
    let mut values: Vec<Option<String>> = vec![None; arguments.len()];
    let mut next = 0;
    for word in words {
        let named = word.split_once('=').and_then(|(name, value)| {
            Some((arguments.iter().position(|argument| argument.name == name)?, value))
        });
        let (at, value) = match named {
            Some((at, _)) if values.get(at).is_some_and(Option::is_some) => {
                let name = arguments.get(at).map(|argument| argument.name.clone());
                return Err(ArgumentError::Twice(name.unwrap_or_default()));
            }
            Some(named) => named,
            None => {
                while values.get(next).is_some_and(Option::is_some) {
                    next += 1;
                }
                (next, word.as_str())
            }
        };
        match values.get_mut(at) {
            Some(place) => *place = Some(value.to_owned()),
            None => match (arguments.last(), values.last_mut()) {
                (Some(TaskArgument { kind: ArgumentKind::Text, .. }), Some(Some(last))) => {
                    last.push(' ');
                    last.push_str(value);
                }
                _ => {
                    return Err(ArgumentError::TooMany { value: value.to_owned(), usage: usage() });
                }
            },
        }
    }
    Ok(values)
}

/// Checks the values that were recorded of a run against the arguments that the task has now.
///
/// # Errors
/// A value is missing, not of its argument's type, or of an argument that the task does not have any more.
pub(super) fn rebind_arguments(
    task: &str,
    arguments: &[TaskArgument],
    recorded: &[(String, String)],
) -> Result<Vec<(String, String)>, ArgumentError> {
    let is_declared = |name: &String| arguments.iter().any(|argument| argument.name == *name);
    if let Some((name, _)) = recorded.iter().find(|(name, _)| !is_declared(name)) {
        return Err(ArgumentError::Undeclared(name.clone()));
    }
    let bind = |argument: &TaskArgument| {
        let name = argument.name.clone();
        let value = recorded.iter().find(|(known, _)| *known == name).map(|(_, value)| value);
        let Some(value) = value.or(argument.default.as_ref()).cloned() else {
            let usage = format!("usage: {}", usage_line(task, arguments));
            return Err(ArgumentError::Missing { name, usage });
        };
        // A default may be of no type.
        if argument.default.as_ref() != Some(&value) {
            argument.kind.check_value(&name, &value)?;
        }
        Ok((name, value))
    };
    arguments.iter().map(bind).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argument(name: &str, written: &str) -> TaskArgument {
        TaskArgument::parse(name, written).unwrap()
    }

    #[test]
    fn values_are_accepted_or_refused_by_type() {
        let cases: &[(&str, &[&str], &[&str])] = &[
            (
                "version",
                &["v1.2.0", "1", "2.0.0-rc.1", "1.0+b5"],
                &["", "v", "1..2", "1-", "x1", "1;ls"],
            ),
            ("path", &["a b.txt", "/tmp/x", "ü"], &["", "-rf", "a\nb", "a\0b"]),
            (
                "branch",
                &["main", "feat/x-1"],
                &["", "-d", "a b", "a..b", "/a", "a/", "a.lock", ".a", "a~1", "a@{1}"],
            ),
            ("number", &["0", "-1", "2.50"], &["", "1e5", ".5", "5.", "--1", "0x1"]),
            ("text", &["", "-x", "a\nb", "'; rm -rf /"], &["a\u{1b}[31m", "a\0"]),
            ("choice(patch, minor)", &["patch", "minor"], &["", "major", "patch "]),
        ];
        for (kind, fine, wrong) in cases {
            let kind = argument("x", kind).kind;
            for value in *fine {
                assert!(kind.check_value("x", value).is_ok(), "{kind:?} {value:?}");
            }
            for value in *wrong {
                assert!(kind.check_value("x", value).is_err(), "{kind:?} {value:?}");
            }
        }
        let long = "x".repeat(MAX_VALUE_BYTES + 1);
        let error = argument("x", "text").kind.check_value("x", &long).unwrap_err().to_string();
        assert!(error.starts_with("`xxx") && error.contains("x…` is not text of"), "{error}");
    }

    #[test]
    fn invalid_task_argument_definitions_are_explained() {
        for (name, written, part) in [
            ("Version", "version", "cannot name an argument"),
            ("1a", "text", "cannot name an argument"),
            ("path", "path", "reserved"),
            ("a", "integer", "no type of argument"),
            ("a", "choice()", "needs 1 to"),
            ("a", "version = latest", "a version such as"),
            ("a", "type: text, default: x", "no type of argument"),
        ] {
            let error = TaskArgument::parse(name, written).unwrap_err().to_string();
            assert!(error.contains(part), "{name} {written}: {error}");
        }
        assert_eq!(argument("a", "text = \"\"").default.as_deref(), Some(""));
        assert_eq!(argument("a", "choice(x|y) = y").default.as_deref(), Some("y"));
        let quoted = argument("a", r#"choice(a b, "c, d", 'e|f')"#).kind;
        assert_eq!(quoted, ArgumentKind::Choice(["a b", "c, d", "e|f"].map(str::to_owned).into()));
    }

    #[test]
    fn arguments_are_bound_in_order_by_name_and_by_default() {
        let all = [argument("version", "version"), argument("remote", "text = origin")];
        let bind = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let bound = bind_arguments("release", &all, &words).map_err(|error| error.to_string());
            bound.map(|all| all.into_iter().map(|(_, value)| value).collect::<Vec<_>>().join("|"))
        };
        assert_eq!(bind(&["v1"]).unwrap(), "v1|origin");
        assert_eq!(bind(&["v1", "my", "fork"]).unwrap(), "v1|my fork");
        assert_eq!(bind(&["remote=up", "v1"]).unwrap(), "v1|up");
        assert!(
            bind(&[])
                .unwrap_err()
                .contains("`version` is missing; usage: release VERSION [REMOTE]")
        );
        assert!(bind(&["x"]).unwrap_err().contains("not a version"));
        assert!(bind(&["v1", "version=v2"]).unwrap_err().contains("twice"));
        let one = [argument("version", "version")];
        let words = ["v1".to_owned(), "v2".to_owned()];
        let error = bind_arguments("t", &one, &words).unwrap_err().to_string();
        assert!(error.contains("one argument too many"), "{error}");
    }
}
