//! One row of the table of keys.

use super::kind::Kind;
use crate::value::Value;

/// The rights of an untrusted project over a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// The project may set it.
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

/// The schema's entry for one known key.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The pattern of the key, such as `provider.api_keys.*`.
    pub path: &'static str,
    /// The kind of value that the key takes.
    pub kind: Kind,
    /// One line about it for people.
    pub doc: &'static str,
    /// The rights of an untrusted project over the key.
    pub guard: Guard,
    /// `true` if an entry of a list is incomplete without this key.
    pub required: bool,
    /// The replacement for a key that older files may set and that is no longer read.
    pub(crate) instead: Option<&'static str>,
    default: Option<fn() -> Value>,
}

impl Row {
    pub(super) const fn new(path: &'static str, kind: Kind, doc: &'static str) -> Self {
        Self { path, kind, doc, guard: Guard::Open, required: false, instead: None, default: None }
    }

    pub(super) const fn with_default(self, default: fn() -> Value) -> Self {
        Self { default: Some(default), ..self }
    }

    pub(super) const fn with_guard(self, guard: Guard) -> Self {
        Self { guard, ..self }
    }

    pub(super) const fn without_effect(self, instead: &'static str) -> Self {
        Self { instead: Some(instead), ..self }
    }

    pub(super) const fn make_required(self) -> Self {
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

    /// Returns the replacement for a key that is no longer read.
    #[must_use]
    pub fn replaced_by(&self) -> Option<&'static str> {
        self.instead
    }

    /// Reports whether the key has one name only, so that it can be shown without being set.
    #[must_use]
    pub fn is_single(&self) -> bool {
        !self.path.contains(['*', '['])
    }
}
