//! What a rule is and how rule files are written.
//!
//! A rule names one kind of secret by its shape. Files are TOML, one per family:
//!
//! ```toml
//! [[rule]]
//! id = "github-pat"            # kebab-case, unique; people see it in placeholders
//! about = "GitHub personal access token"
//! keywords = ["ghp_"]          # one of them must stand near the match, in any letter case
//! pattern = '''\b(ghp_[A-Za-z0-9]{36})\b'''  # first group is the secret, else the whole match
//! at_keyword = true            # optional: a match always begins with a keyword, one of many names
//! min_entropy = 3.0            # optional: Shannon bits per character of the secret
//! near = ["github"]            # optional: one of these words stands within `reach` bytes
//! reach = 80                   # optional: that distance, before and after the match
//! allow = ['''example''']      # optional: secrets that match one of these are passed
//! family = "forges"            # optional: the file's name
//! match = ["token: ghp_{alnum:36}"]          # texts in which the rule finds exactly one secret
//! no_match = ["ghp_{alnum:12}"]              # texts in which it finds none
//! ```
//!
//! Patterns are linear-time regular expressions over bytes: `\w`, `\d`, `\b` and `(?i)` are ASCII, `.`
//! is any byte but a line feed, and there is no look-around. A pattern is only run around a keyword,
//! so each match must hold or closely follow or precede a keyword of its rule ([`SecretRule::reach`]).
//! Shapeless values (32 hexadecimal digits and the like) need `near` or a name in the pattern.
//!
//! In examples `{hex:N}`, `{HEX:N}`, `{digit:N}`, `{lower:N}`, `{upper:N}`, `{alnum:N}`, `{lowalnum:N}`,
//! `{upalnum:N}`, `{b64:N}`, `{b64url:N}` and `{base32:N}` stand for N characters of the alphabet, and
//! `{uuid}` for a UUID: drawn from a fixed sequence, so that no file holds text that looks like a secret.
//!
//! The program holds the files as tables ([`builtin`]) that one of the tests writes when a file changed.
//!
//! What a rule cannot say (structure over several lines, encodings) is code in `context` and `decode`.

use regex_automata::meta::BuildError;
use serde::Deserialize;

pub(crate) mod builtin;
pub(crate) mod compiled;
#[cfg(test)]
mod examples;
#[cfg(test)]
mod pack;
pub(crate) mod plan;
mod shape;

/// Distance in bytes within which a word of [`SecretRule::near`] counts, unless the rule says otherwise.
pub const DEFAULT_REACH: usize = 80;
/// Longest reach a rule may ask for.
pub const MAX_REACH: usize = 1024;

/// One kind of secret, as it is written in a rule file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretRule {
    /// Unique kebab-case name; shown in placeholders.
    pub id: String,
    /// One line for people: whose secret it is.
    #[serde(default)]
    pub about: String,
    /// Words of which one must stand within reach of the match; compared without letter case.
    /// Empty only in rules of users, which then are tried on all text.
    #[serde(default)]
    pub keywords: Vec<String>,
    /// Promises that every match begins with a keyword, so that the pattern is tried nowhere else.
    /// Where the pattern shows that by itself it need not be said.
    #[serde(default)]
    pub at_keyword: bool,
    /// Regular expression over bytes. The first group is the secret, else the whole match.
    pub pattern: String,
    /// Least Shannon entropy of the secret, in bits per character.
    #[serde(default)]
    pub min_entropy: Option<f64>,
    /// Words of which one must stand within `reach` bytes of the match.
    #[serde(default)]
    pub near: Vec<String>,
    /// Distance in bytes for `near`, before and after the match. At most [`MAX_REACH`].
    #[serde(default = "default_reach")]
    pub reach: usize,
    /// Expressions of secrets that are passed.
    #[serde(default)]
    pub allow: Vec<String>,
    /// Group of rules it belongs to: the name of its file unless given.
    #[serde(default)]
    pub family: String,
    /// Texts in which exactly this rule must find something.
    #[serde(default, rename = "match")]
    pub matches: Vec<String>,
    /// Texts in which it must find nothing.
    #[serde(default)]
    pub no_match: Vec<String>,
}

impl SecretRule {
    /// A rule that is only a name and a pattern, as users write them.
    pub fn from_pattern(id: impl Into<String>, pattern: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            about: String::new(),
            keywords: Vec::new(),
            at_keyword: false,
            pattern: pattern.into(),
            min_entropy: None,
            near: Vec::new(),
            reach: DEFAULT_REACH,
            allow: Vec::new(),
            family: String::new(),
            matches: Vec::new(),
            no_match: Vec::new(),
        }
    }
}

fn default_reach() -> usize {
    DEFAULT_REACH
}

/// The reason why a rule cannot be used. It names the rule, so that a person finds it in their configuration.
#[derive(thiserror::Error)]
pub enum RuleError {
    /// A pattern is not a regular expression of the supported kind, or is too large.
    #[error("the pattern of the secret rule `{rule}` cannot be used: {reason}")]
    Pattern {
        /// Id of the rule.
        rule: String,
        /// The problem with the pattern.
        reason: RulePatternError,
    },
    /// A field has a value that means nothing.
    #[error("the secret rule `{rule}` is not valid: {reason}")]
    Rule {
        /// Id of the rule.
        rule: String,
        /// The problem with the rule.
        reason: RuleFieldError,
    },
}

/// The reason why the pattern of a rule cannot be compiled.
#[derive(thiserror::Error)]
#[error("{}", describe_build_error(.0))]
pub struct RulePatternError(pub(crate) Box<BuildError>);

fn describe_build_error(error: &BuildError) -> String {
    match (error.syntax_error(), error.size_limit()) {
        (Some(syntax), _) => syntax.to_string(),
        (None, Some(limit)) => format!("it needs more than {limit} bytes; count less or split it"),
        (None, None) => error.to_string(),
    }
}

/// The reason why a field of a rule has no meaning.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RuleFieldError {
    /// The rule has no id.
    #[error("it has no id; give it a kebab-case name")]
    NoId,
    /// The distance to other words is larger than [`MAX_REACH`], in bytes.
    #[error("`reach` is {0}, the maximum is {MAX_REACH}")]
    Reach(usize),
    /// A keyword, or a word that must be near, is empty.
    #[error("`keywords` and `near` must not hold empty words")]
    EmptyWord,
    /// Matches begin with a keyword, and there is none.
    #[error("`at_keyword` needs `keywords`")]
    NoKeywords,
}

gnoma_core::debug_as_display!(RuleError, RulePatternError, RuleFieldError);

impl RuleError {
    /// Returns the id of the rule that cannot be used.
    #[must_use]
    pub fn rule(&self) -> &str {
        match self {
            Self::Pattern { rule, .. } | Self::Rule { rule, .. } => rule,
        }
    }
}
