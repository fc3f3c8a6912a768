//! Placeholders for secrets, and how they are turned back into the secrets for tools.
//!
//! A secret that must not leave becomes `{{secret:RULE:N}}`. The vault remembers which is which for as long as the
//! session lives, in memory that is wiped; none of it is ever written to disk. The caller decides what may be
//! restored where; [`RestoredText::used`] says what is at stake.
//!
//! `N` starts at a number that differs from session to session and cannot be guessed. A web page that talks a model
//! into writing `{{secret:aws:1}}`, and a placeholder of yesterday's session, therefore resolve to nothing instead
//! of someone's secret. Small numbers are never used, so that documents can show what a placeholder looks like.

mod placeholder;

use std::{borrow::Cow, collections::HashMap, fmt, sync::Arc};

use gnoma_core::{RawJson, sync::Mutex};
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use crate::strings;

/// The lowest number with which a session may begin. Lower ones are for examples.
pub const LEAST_NUMBER: u64 = 1 << 16;

/// Secrets that are remembered; those beyond are hidden for good.
const MAX_SECRETS: usize = 65_536;

/// The secrets of a session and their placeholders.
pub struct Vault {
    first: u64,
    kept: Mutex<VaultEntries>,
}

#[derive(Default)]
struct VaultEntries {
    values: HashMap<Arc<str>, Zeroizing<String>>,
    placeholders: HashMap<[u8; 32], Arc<str>>,
    counts: HashMap<String, u64>,
}

/// A text with its secrets put back.
#[derive(Clone, PartialEq, Eq)]
pub struct RestoredText<T> {
    /// The text; where [`unknown`](Self::unknown) is not empty it must not be used.
    pub text: T,
    /// The placeholders that were replaced, each once.
    pub used: Vec<Arc<str>>,
    /// Text that looks like a placeholder but is none, as written, each once.
    pub unknown: Vec<String>,
}

impl<T> fmt::Debug for RestoredText<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { text: _, used, unknown } = self;
        f.debug_struct("Restored").field("used", used).field("unknown", unknown).finish()
    }
}

impl Vault {
    /// An empty vault. `first` is where counting starts: a random number, new for each session, and
    /// at least [`LEAST_NUMBER`].
    #[must_use]
    pub fn new(first: u64) -> Self {
        Self { first, kept: Mutex::default() }
    }

    /// The placeholder for a secret: the same one for the same value, whichever rule found it.
    pub fn conceal(&self, rule: &str, value: &str) -> Arc<str> {
        let digest: [u8; 32] = Sha256::digest(value).into();
        let mut kept = self.kept.lock();
        if let Some(placeholder) = kept.placeholders.get(&digest) {
            return Arc::clone(placeholder);
        }
        let rule = name_of(rule);
        if kept.values.len() >= MAX_SECRETS {
            return placeholder::format_placeholder(&rule, 0).into();
        }
        let count = kept.counts.entry(rule.clone()).or_default();
        let number = self.first.wrapping_add(*count).max(1);
        *count += 1;
        let placeholder: Arc<str> = placeholder::format_placeholder(&rule, number).into();
        kept.values.insert(Arc::clone(&placeholder), Zeroizing::new(value.to_owned()));
        kept.placeholders.insert(digest, Arc::clone(&placeholder));
        placeholder
    }

    /// Reports whether the value has a placeholder.
    pub(crate) fn has_value(&self, value: &str) -> bool {
        let digest: [u8; 32] = Sha256::digest(value).into();
        self.kept.lock().placeholders.contains_key(&digest)
    }

    /// Puts the secrets back into a text.
    #[must_use]
    pub fn restore<'a>(&self, text: &'a str) -> RestoredText<Cow<'a, str>> {
        let mut restored =
            RestoredText { text: Cow::Borrowed(text), used: vec![], unknown: vec![] };
        if let Some(whole) =
            self.replace_placeholders(text, &mut restored.used, &mut restored.unknown)
        {
            restored.text = Cow::Owned(whole);
        }
        restored
    }

    /// Puts the secrets back into the strings of a JSON value; the rest of it stays byte for byte.
    #[must_use]
    pub fn restore_json(&self, json: &RawJson) -> RestoredText<RawJson> {
        let (mut used, mut unknown) = (Vec::new(), Vec::new());
        let restored = strings::map_strings(json.get(), |text| {
            self.replace_placeholders(text, &mut used, &mut unknown)
        });
        let text = restored.and_then(|text| RawJson::parse(text).ok());
        RestoredText { text: text.unwrap_or_else(|| json.clone()), used, unknown }
    }

    /// The text with its placeholders replaced; `None` when there is nothing to replace.
    fn replace_placeholders(
        &self,
        text: &str,
        used: &mut Vec<Arc<str>>,
        unknown: &mut Vec<String>,
    ) -> Option<String> {
        let mut filled: Option<String> = None;
        let mut copied = 0;
        let kept = self.kept.lock();
        for range in placeholder::find_placeholders(text) {
            let written = text.get(range.clone()).unwrap_or_default();
            let Some((placeholder, value)) = kept.values.get_key_value(written) else {
                if !unknown.iter().any(|known| known == written) {
                    unknown.push(written.to_owned());
                }
                continue;
            };
            if !used.contains(placeholder) {
                used.push(Arc::clone(placeholder));
            }
            let filled = filled.get_or_insert_default();
            filled.push_str(text.get(copied..range.start).unwrap_or_default());
            filled.push_str(value);
            copied = range.end;
        }
        let mut filled = filled?;
        filled.push_str(text.get(copied..).unwrap_or_default());
        Some(filled)
    }

    /// Runs `use_value` on the secret behind a placeholder.
    pub(crate) fn with_value<T>(
        &self,
        placeholder: &str,
        use_value: impl FnOnce(&str) -> T,
    ) -> Option<T> {
        self.kept.lock().values.get(placeholder).map(|value| use_value(value))
    }

    /// Reports whether a text that looks like a placeholder stands for nothing in any session.
    pub(crate) fn is_example(written: &str) -> bool {
        placeholder::placeholder_number(written).is_some_and(|number| number < LEAST_NUMBER)
    }

    /// The positions of placeholders in a text, resolvable or not.
    pub(crate) fn find_placeholders(text: &str) -> Vec<std::ops::Range<usize>> {
        placeholder::find_placeholders(text).collect()
    }
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vault")
            .field("secrets", &self.kept.lock().values.len())
            .finish_non_exhaustive()
    }
}

/// A rule's name as a placeholder can hold it.
fn name_of(rule: &str) -> String {
    let fit = |c: char| if placeholder::is_rule_char(c) { c } else { '-' };
    let name: String = rule.chars().take(placeholder::MAX_RULE_CHARS).map(fit).collect();
    if name.is_empty() { "secret".to_owned() } else { name }
}
