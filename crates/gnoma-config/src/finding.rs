//! A fault in a configuration file, with its line and column and a sentence.

use std::{collections::BTreeMap, fmt, io, path::Path, sync::Arc};

use gnoma_core::system_error::without_numbers;

use crate::{
    key::KeyPath,
    text::{Position, Snippet},
};

/// Most findings of one severity that are kept.
const MAX_KEPT: usize = 50;
/// Most findings that are shown; a broken file must not fill the screen.
const MAX_SHOWN: usize = 20;

/// The layers, in order of precedence: a later one wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// The values built into the program.
    Default,
    /// The user's `config.toml`.
    User,
    /// The profile that the user chose.
    Profile,
    /// The project's `.gnoma/config.toml`.
    Project,
    /// An environment variable.
    Environment,
    /// The command line.
    Flag,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Default => "default",
            Self::User => "user",
            Self::Profile => "profile",
            Self::Project => "project",
            Self::Environment => "environment",
            Self::Flag => "flag",
        })
    }
}

/// The place where a value was set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the program itself.
    BuiltIn,
    /// In a file; without a position where the file as a whole is meant.
    File {
        /// The path of the file.
        path: Arc<Path>,
        /// The key or value in it.
        position: Option<Position>,
    },
    /// In this environment variable.
    Variable(String),
    /// On the command line, under this key.
    Flag(String),
}

impl Place {
    /// Line and column, in a file.
    #[must_use]
    pub fn position(&self) -> Option<Position> {
        match self {
            Self::File { position, .. } => *position,
            Self::BuiltIn | Self::Variable(_) | Self::Flag(_) => None,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => f.write_str("built in"),
            Self::File { path, position: None } => write!(f, "{}", path.display()),
            Self::File { path, position: Some(Position { line, column }) } => {
                write!(f, "{}:{line}:{column}", path.display())
            }
            Self::Variable(name) => write!(f, "environment variable {name}"),
            Self::Flag(key) => write!(f, "command line, {key}"),
        }
    }
}

/// A failure of the system in its own words: without its number, and without a temporary file that a library names.
pub(crate) fn system_words(error: &io::Error) -> String {
    let words = error.to_string();
    without_numbers(words.split(" at path ").next().unwrap_or(&words)).into_owned()
}

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// A setting was ignored.
    Warning,
    /// The configuration cannot be used.
    Error,
}

/// One thing to tell the user. Its text form is a block of lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The severity of this finding.
    pub severity: Severity,
    /// The key it is about, where it is about one.
    pub key: Option<String>,
    /// The text that says what happened and why; a fragment without a full stop.
    pub message: String,
    /// The advice on what to do about it.
    pub hint: Option<String>,
    /// The place that the finding is about.
    pub place: Place,
    /// The line there, safe to show.
    pub snippet: Option<Snippet>,
}

impl Finding {
    /// A finding about the whole of `place`.
    pub(crate) fn new(severity: Severity, place: Place, message: impl Into<String>) -> Self {
        Self { severity, key: None, message: message.into(), hint: None, place, snippet: None }
    }

    /// Says which key it is about.
    pub(crate) fn with_key(mut self, key: impl fmt::Display) -> Self {
        self.key = Some(key.to_string());
        self
    }

    /// Says what to do.
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Shows the line that it is about.
    pub(crate) fn with_snippet(mut self, snippet: Option<Snippet>) -> Self {
        self.snippet = snippet;
        self
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.severity {
            Severity::Warning => "warning: ",
            Severity::Error => "error: ",
        })?;
        if let Some(key) = &self.key {
            write!(f, "`{key}` ")?;
        }
        f.write_str(&self.message)?;
        write!(f, "\n  --> {}", self.place)?;
        if let Some(snippet) = &self.snippet {
            write!(f, "\n{}", snippet.render())?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\nhint: {hint}")?;
        }
        Ok(())
    }
}

/// A configuration that cannot be used: everything that was found, warnings too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// Errors, of which there is at least one, before warnings; both in the order of the layers.
    pub findings: Vec<Finding>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: Vec<_> = self.findings.iter().take(MAX_SHOWN).map(Finding::to_string).collect();
        f.write_str(&shown.join("\n\n"))?;
        match self.findings.len().saturating_sub(MAX_SHOWN) {
            0 => Ok(()),
            more => write!(f, "\n\nand {more} more"),
        }
    }
}

impl ConfigError {
    /// Returns the number of errors, without warnings.
    pub(crate) fn count_errors(&self) -> usize {
        self.findings.iter().filter(|finding| finding.severity == Severity::Error).count()
    }

    /// The errors alone as sentences, a line each, without their places: for a person who knows what
    /// was just written.
    #[must_use]
    pub fn sentences(&self) -> String {
        let errors = self.findings.iter().filter(|finding| finding.severity == Severity::Error);
        let sentence = |finding: &Finding| {
            let key = finding.key.as_ref().map_or_else(String::new, |key| format!("`{key}` "));
            let hint = finding.hint.as_ref().map_or_else(String::new, |hint| format!("; {hint}"));
            format!("{key}{}{hint}", finding.message)
        };
        errors.map(sentence).collect::<Vec<_>>().join("\n")
    }
}

impl std::error::Error for ConfigError {}

/// Findings as they come up. Of each severity only the first ones are kept: a hostile file must not
/// keep the program busy.
#[derive(Default)]
pub(crate) struct Report {
    findings: Vec<Finding>,
    left_out: usize,
    /// Keys whose values read a variable that is not set, with that variable.
    unset: Vec<(KeyPath, String)>,
}

impl Report {
    /// Adds a finding to the report.
    pub(crate) fn add(&mut self, finding: Finding) {
        self.add_with(finding.severity, || finding);
    }

    /// Notes a finding that is costly to make.
    pub(crate) fn add_with(&mut self, severity: Severity, finding: impl FnOnce() -> Finding) {
        if self.count_severity(severity) < MAX_KEPT {
            self.findings.push(finding());
        } else {
            self.left_out += 1;
        }
    }

    /// Notes that the value of a key reads a variable that is not set.
    pub(crate) fn add_unset(&mut self, key: &KeyPath, variable: &str) {
        if self.unset.len() < MAX_KEPT {
            self.unset.push((key.clone(), variable.to_owned()));
        }
    }

    /// The variables that are not set, by the last name of the keys in `table` that read them.
    pub(crate) fn unset_in(&self, table: &str) -> BTreeMap<String, String> {
        let within = KeyPath::from_dotted(table);
        let keys = self.unset.iter().filter(|(key, _)| key.is_within(&within));
        gnoma_core::sort::to_map(
            keys.filter_map(|(key, variable)| {
                Some((key.last_name()?.to_owned(), variable.clone()))
            }),
        )
    }

    /// Returns the number of errors among the findings; exact as long as it is small.
    pub(crate) fn error_count(&self) -> usize {
        self.count_severity(Severity::Error)
    }

    fn count_severity(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }

    /// The findings, if none of them is an error.
    pub(crate) fn into_findings(mut self) -> Result<Vec<Finding>, ConfigError> {
        let has_errors = self.error_count() > 0;
        if let Some(last) = self.findings.last().filter(|_| self.left_out > 0) {
            let message = format!("{} more are not listed", self.left_out);
            self.findings.push(Finding::new(Severity::Warning, last.place.clone(), message));
        }
        if has_errors {
            // What must be mended is not to be lost among warnings.
            gnoma_core::sort::by_key(&mut self.findings, |finding| {
                finding.severity == Severity::Warning
            });
            Err(ConfigError { findings: self.findings })
        } else {
            Ok(self.findings)
        }
    }
}
