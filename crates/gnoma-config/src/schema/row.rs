//! One row of the table of keys.

use super::kind::Kind;
use crate::value::Value;

/// What an untrusted project may do with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// Set it.
    Open,
    /// Not set it: it could run a program, redirect traffic or weaken a protection.
    Trusted,
    /// Set it to a value that permits no more than the one below (`permission.mode`).
    NotLooser,
    /// Set it to no more than the layers below, trusted or not (`router.caps`).
    NeverMore,
    /// Add entries that refuse, not entries that allow (`permission.rules`).
    OnlyDeny,
    /// Not set it, trusted or not: it is about the person (`otel`).
    Personal,
}

/// One known key.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Its pattern, such as `provider.api_keys.*`.
    pub path: &'static str,
    /// What it is set to.
    pub kind: Kind,
    /// One line about it for people.
    pub doc: &'static str,
    /// What an untrusted project may do with it.
    pub guard: Guard,
    /// Whether an entry of a list is incomplete without it.
    pub required: bool,
    /// What to use instead of a key that older files may set and nothing reads any more.
    pub(crate) instead: Option<&'static str>,
    default: Option<fn() -> Value>,
}

impl Row {
    pub(super) const fn new(path: &'static str, kind: Kind, doc: &'static str) -> Self {
        Self { path, kind, doc, guard: Guard::Open, required: false, instead: None, default: None }
    }

    pub(super) const fn or(self, default: fn() -> Value) -> Self {
        Self { default: Some(default), ..self }
    }

    pub(super) const fn guarded(self, guard: Guard) -> Self {
        Self { guard, ..self }
    }

    pub(super) const fn without_effect(self, instead: &'static str) -> Self {
        Self { instead: Some(instead), ..self }
    }

    pub(super) const fn required(self) -> Self {
        Self { required: true, ..self }
    }

    /// The built-in value, where there is one.
    pub(crate) fn default_value(&self) -> Option<Value> {
        self.default.map(|make| make())
    }

    /// The built-in value as TOML writes it, where there is one.
    #[must_use]
    pub fn built_in(&self) -> Option<String> {
        self.default_value().map(|value| value.to_string())
    }

    /// What to use in place of a key that nothing reads any more.
    #[must_use]
    pub fn replaced_by(&self) -> Option<&'static str> {
        self.instead
    }

    /// Whether the key has one name only, so that it can be shown without being set.
    #[must_use]
    pub fn is_single(&self) -> bool {
        !self.path.contains(['*', '['])
    }
}
