//! The policy for secrets: redact, block or allow, by rule, provider and path.

use std::fmt;

use gnoma_core::glob::glob_matches;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The action taken on a secret that was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FirewallAction {
    /// A placeholder takes its place.
    #[default]
    Redact,
    /// The request is not sent.
    Block,
    /// The secret is sent, and a notice says so.
    Warn,
    /// The secret is sent.
    Allow,
}

/// The facts about a provider that is about to see a text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProviderFacts {
    /// The provider's name as configured.
    pub name: String,
    /// True if the provider runs on the user's machine.
    pub local: bool,
}

/// The name by which an entry means every provider on the user's machine.
const LOCAL: &str = "local";

/// An exception from redaction. What is left out matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AllowEntry {
    /// The rules that the exception covers, as a glob.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The providers that the exception covers, as a glob of their names, or `local`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The files that the exception covers, as a glob; applies to results of tools that read one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The action taken where the exception applies.
    pub action: FirewallAction,
}

/// The policy that decides what is done with secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Policy {
    /// Exceptions; the one that says most wins, of equals the last.
    pub entries: Vec<AllowEntry>,
}

impl Policy {
    /// The action for a secret of `rule` from `path`, on its way to `provider`; `None` for logs and
    /// stores, which no entry that names a provider speaks of.
    #[must_use]
    pub fn action(
        &self,
        rule: &str,
        provider: Option<&ProviderFacts>,
        path: Option<&str>,
    ) -> FirewallAction {
        let fitting = self.entries.iter().filter(|entry| entry.applies_to(rule, provider, path));
        fitting
            .max_by_key(|entry| entry.specificity_score())
            .map_or_else(FirewallAction::default, |entry| entry.action)
    }

    /// Reports whether any entry names files.
    pub(super) fn asks_for_paths(&self) -> bool {
        self.entries.iter().any(|entry| entry.path.is_some())
    }
}

impl AllowEntry {
    fn applies_to(&self, rule: &str, provider: Option<&ProviderFacts>, path: Option<&str>) -> bool {
        let names_provider = |glob: &str| {
            provider.is_some_and(|it| (glob == LOCAL && it.local) || glob_matches(glob, &it.name))
        };
        let names_path = |glob: &str| {
            path.is_some_and(|path| {
                glob_matches(glob, path) || glob_matches(&format!("*/{glob}"), path)
            })
        };
        self.rule.as_deref().is_none_or(|glob| glob_matches(glob, rule))
            && self.provider.as_deref().is_none_or(names_provider)
            && self.path.as_deref().is_none_or(names_path)
    }

    /// Returns how specific the entry is: first how many things it names, then how exactly.
    fn specificity_score(&self) -> (usize, usize) {
        let named = [&self.rule, &self.provider, &self.path];
        let globs = named.into_iter().flatten();
        let letters = |glob: &String| glob.chars().filter(|c| !matches!(c, '*' | '?')).count();
        (globs.clone().count(), globs.map(letters).sum())
    }
}

/// The hash of something that looks like a secret but is none, so that the list reveals nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct AllowedHash([u8; 32]);

/// The fault of a text that is not the hash of an allowed secret. The text may be the secret itself: it is not
/// repeated.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AllowedHashError {
    /// The text does not begin like a hash.
    #[error("an allowed secret is given by its hash, not by its value; {HASH_USAGE}")]
    NoHash,
    /// The hash is too short or too long, or has other characters than hexadecimal digits.
    #[error("the hash of an allowed secret is incomplete; {HASH_USAGE}")]
    Incomplete,
}

gnoma_core::debug_as_display!(AllowedHashError);

/// The advice on how to write a hash.
const HASH_USAGE: &str = "write `sha256:` and the 64 hexadecimal digits of the value's SHA-256";

impl AllowedHash {
    /// Reads `sha256:` and 64 hexadecimal digits.
    ///
    /// # Errors
    /// The text is something else.
    pub fn parse(text: &str) -> Result<Self, AllowedHashError> {
        let digits = text.trim().strip_prefix("sha256:").ok_or(AllowedHashError::NoHash)?;
        let mut digest = [0; 32];
        let pairs = digits.as_bytes().chunks_exact(2);
        let is_whole = digits.len() == 2 * digest.len() && digits.is_ascii();
        for (byte, pair) in digest.iter_mut().zip(pairs) {
            let text = std::str::from_utf8(pair).unwrap_or_default();
            *byte = u8::from_str_radix(text, 16)
                .ok()
                .filter(|_| is_whole && !text.starts_with('+'))
                .ok_or(AllowedHashError::Incomplete)?;
        }
        if is_whole { Ok(Self(digest)) } else { Err(AllowedHashError::Incomplete) }
    }

    /// The entry for a value, to be written into the settings.
    #[must_use]
    pub fn from_value(value: &str) -> Self {
        Self(Sha256::digest(value).into())
    }

    /// Reports whether `value` is one of `list`; takes the same time wherever it stands in the list.
    pub(super) fn contains_value(list: &[Self], value: &str) -> bool {
        if list.is_empty() {
            return false;
        }
        let wanted = Self::from_value(value);
        let differs = |entry: &Self| {
            entry.0.iter().zip(wanted.0).fold(0, |differs, (a, b)| differs | (a ^ b))
        };
        list.iter().fold(false, |found, entry| found | (differs(entry) == 0))
    }
}

impl fmt::Display for AllowedHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for AllowedHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(rule: &str, provider: &str, path: &str, action: FirewallAction) -> AllowEntry {
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        AllowEntry { rule: given(rule), provider: given(provider), path: given(path), action }
    }

    #[test]
    fn most_specific_firewall_policy_entry_wins() {
        let policy = Policy {
            entries: vec![
                entry("aws-*", "", "", FirewallAction::Block),
                entry("", "local", "", FirewallAction::Allow),
                entry("aws-*", "local", "", FirewallAction::Warn),
                entry("", "", "tests/*", FirewallAction::Allow),
                entry("aws-test", "", "", FirewallAction::Redact),
            ],
        };
        let cloud = ProviderFacts { name: "anthropic".into(), local: false };
        let own = ProviderFacts { name: "ollama".into(), local: true };
        assert_eq!(policy.action("github", Some(&cloud), None), FirewallAction::Redact);
        assert_eq!(policy.action("aws-key", Some(&cloud), None), FirewallAction::Block);
        assert_eq!(policy.action("aws-test", Some(&cloud), None), FirewallAction::Redact);
        assert_eq!(policy.action("github", Some(&own), None), FirewallAction::Allow);
        assert_eq!(policy.action("aws-key", Some(&own), None), FirewallAction::Warn);
        assert_eq!(
            policy.action("github", Some(&cloud), Some("/x/tests/a/b")),
            FirewallAction::Allow
        );
        assert_eq!(policy.action("github", None, None), FirewallAction::Redact);
    }

    #[test]
    fn firewall_allowlist_matches_secrets_by_hash_and_never_prints_them() {
        let list = [AllowedHash::from_value("other"), AllowedHash::from_value("example-value")];
        assert!(AllowedHash::contains_value(&list, "example-value"));
        assert!(!AllowedHash::contains_value(&list, "example-valuE"));
        let written = AllowedHash::from_value("example-value").to_string();
        assert_eq!(AllowedHash::parse(&written), Ok(list[1]));
        for wrong in
            ["example-value", "sha256:", "sha256:zz", &written[..70], &format!("{written}0")]
        {
            assert!(!AllowedHash::parse(wrong).unwrap_err().to_string().contains("example-value"));
        }
    }
}
