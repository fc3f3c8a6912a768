//! The table of all known keys: what may be set, to what, and what it means.
//!
//! Checking, suggestions, defaults, trust and `config show` all read this one table. Patterns of
//! keys have steps between dots: a name, `*` for any name the user chooses, `[]` for the entries of
//! a list that is appended to, `[id]` for those of a list whose entries are named by their `id`.

#[cfg(test)]
mod docs;
mod form;
mod keys;
mod kind;

pub(crate) use kind::Refusal;
pub use {form::Form, keys::ROWS, kind::Kind};

use crate::{
    key::{KeyPath, Segment},
    value::Value,
};

/// Sections that a later file replaces whole: half a security policy is no policy.
const REPLACED_WHOLE: [&str; 2] = ["security", "plugins"];

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
    const fn new(path: &'static str, kind: Kind, doc: &'static str) -> Self {
        Self { path, kind, doc, guard: Guard::Open, required: false, instead: None, default: None }
    }

    const fn or(self, default: fn() -> Value) -> Self {
        Self { default: Some(default), ..self }
    }

    const fn guarded(self, guard: Guard) -> Self {
        Self { guard, ..self }
    }

    const fn without_effect(self, instead: &'static str) -> Self {
        Self { instead: Some(instead), ..self }
    }

    const fn required(self) -> Self {
        Self { required: true, ..self }
    }

    /// The built-in value, where there is one.
    pub(crate) fn default_value(&self) -> Option<Value> {
        self.default.map(|make| make())
    }

    /// Whether the key has one name only, so that it can be shown without being set.
    pub(crate) fn is_single(&self) -> bool {
        !self.path.contains(['*', '['])
    }
}

/// What the schema knows about a path.
pub(crate) enum Known {
    /// A key that takes a value.
    Key(&'static Row),
    /// A table of further keys.
    Section,
    /// A list of tables, with the name of the field that identifies an entry, if there is one.
    List(Option<&'static str>),
    /// No such key.
    Nothing,
}

/// Looks `path` up.
pub(crate) fn lookup(path: &KeyPath) -> Known {
    let mut known = Known::Nothing;
    for row in ROWS {
        let mut steps = row.path.split('.');
        if !path
            .segments()
            .iter()
            .all(|segment| steps.next().is_some_and(|step| fits(step, segment)))
        {
            continue;
        }
        match steps.next() {
            None => return Known::Key(row),
            Some(step) => known = identity(step).map_or(Known::Section, Known::List),
        }
    }
    known
}

/// The row of a key that takes a value.
pub(crate) fn row(path: &KeyPath) -> Option<&'static Row> {
    match lookup(path) {
        Known::Key(row) => Some(row),
        Known::Section | Known::List(_) | Known::Nothing => None,
    }
}

/// The rows directly below `path`, each with its last step.
pub(crate) fn below(path: &KeyPath) -> impl Iterator<Item = (&'static str, &'static Row)> {
    ROWS.iter().filter_map(move |row| {
        let mut steps = row.path.split('.');
        let fits = path
            .segments()
            .iter()
            .all(|segment| steps.next().is_some_and(|step| fits(step, segment)));
        Some((steps.next().filter(|_| fits)?, row))
    })
}

/// How many steps of `path` name the part that a later file replaces as one.
pub(crate) fn unit_length(path: &KeyPath) -> usize {
    let all = path.segments().len();
    let Some(Segment::Name(section)) = path.segments().first() else {
        return all;
    };
    if REPLACED_WHOLE.contains(&section.as_str()) {
        return 1;
    }
    entry_length(path).filter(|_| path.first_index().is_none()).unwrap_or(all)
}

/// How many steps of `path` name the entry of a list it belongs to, if it does.
pub(crate) fn entry_length(path: &KeyPath) -> Option<usize> {
    let steps = row(path)?.path.split('.');
    steps.enumerate().find(|(_, step)| step.starts_with('[')).map(|(depth, _)| depth + 1)
}

fn fits(step: &'static str, segment: &Segment) -> bool {
    match segment {
        Segment::Name(name) => step == name || step == "*" || identity(step).flatten().is_some(),
        Segment::Index(_) => step == "[]",
    }
}

/// `Some(field)` for a step that stands for the entries of a list.
fn identity(step: &'static str) -> Option<Option<&'static str>> {
    let field = step.strip_prefix('[')?.strip_suffix(']')?;
    Some((!field.is_empty()).then_some(field))
}

#[cfg(test)]
mod tests {
    use gnoma_core::{Effort, session::PermissionMode};

    use super::*;
    use crate::{
        settings::{Protocol, Weekday},
        tree,
    };

    #[test]
    fn every_built_in_value_is_one_that_its_key_takes() {
        for row in ROWS {
            let Some(default) = row.default_value() else {
                continue;
            };
            let written: toml::Table = format!("value = {default}").parse().unwrap();
            let read = row.kind.read(&tree::of_value(&written["value"]).tree);
            assert_eq!(read.ok(), Some(default), "{}", row.path);
        }
    }

    #[test]
    fn only_keys_of_one_name_have_built_in_values() {
        let with_default = ROWS.iter().filter(|row| row.default_value().is_some());
        assert_eq!(with_default.filter(|row| !row.is_single()).map(|row| row.path).next(), None);
    }

    #[test]
    fn word_lists_agree_with_the_types_they_stand_for() {
        assert_eq!(keys::MODES, PermissionMode::ALL.map(PermissionMode::name));
        assert_eq!(keys::DAYS, Weekday::ALL.map(Weekday::name));
        assert_eq!(keys::PROTOCOLS, Protocol::ALL.map(Protocol::name));
        for (effort, name) in
            [Effort::None, Effort::Low, Effort::Medium, Effort::High].into_iter().zip(keys::EFFORTS)
        {
            assert_eq!(format!("{effort:?}").to_lowercase(), name);
        }
    }

    #[test]
    fn no_two_rows_know_the_same_key() {
        let mut paths: Vec<_> = ROWS.iter().map(|row| row.path).collect();
        paths.sort_unstable();
        paths.dedup();
        assert_eq!(paths.len(), ROWS.len());
    }
}
