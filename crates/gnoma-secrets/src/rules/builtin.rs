//! The rules that come with gnoma: one file per family under `rules/`.
//!
//! A family here is a file of `rules/`; nothing else is read, and nothing is read from disk.

use super::{Rule, RuleError, RuleFile};

/// Builds the table of rule files from their names.
macro_rules! rule_files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../rules/", $name, ".toml")))),*]
    };
}

/// Name of the family and text of its file.
const FILES: &[(&str, &str)] = rule_files![
    "ai",
    "cloud",
    "commerce",
    "data",
    "databases",
    "developer",
    "finance",
    "forges",
    "identity",
    "infrastructure",
    "messaging",
    "monitoring",
    "saas"
];

/// All built-in rules, in the order of the files.
///
/// # Errors
/// A file that is not in the format; a test keeps that from being shipped.
pub(crate) fn load() -> Result<Vec<Rule>, RuleError> {
    let mut rules = Vec::new();
    for (family, text) in FILES {
        rules.extend(RuleFile::parse(family, text)?.rule);
    }
    Ok(rules)
}

/// Names of the files.
#[cfg(test)]
pub(crate) fn families() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(family, _)| *family)
}
