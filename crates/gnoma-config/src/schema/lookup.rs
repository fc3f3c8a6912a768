//! Finds rows by path, and says how files go over each other there.

use super::{keys::ROWS, row::Row};
use crate::key::{KeyPath, Segment};

/// Sections that a later file replaces whole: half a security policy is no policy.
const REPLACED_WHOLE: [&str; 2] = ["security", "plugins"];

/// The result of looking up a path in the schema.
pub(crate) enum KnownKey {
    /// A key that takes a value.
    Key(&'static Row),
    /// A table of further keys.
    Section,
    /// A list of tables, with the name of the field that identifies an entry, if there is one.
    List(Option<&'static str>),
    /// The schema has no such key.
    Nothing,
}

/// Looks `path` up in the schema.
pub(crate) fn lookup_key(path: &KeyPath) -> KnownKey {
    let mut known = KnownKey::Nothing;
    for row in ROWS {
        let mut steps = row.path.split('.');
        if !path
            .segments()
            .iter()
            .all(|segment| steps.next().is_some_and(|step| step_matches(step, segment)))
        {
            continue;
        }
        match steps.next() {
            None => return KnownKey::Key(row),
            Some(step) => known = identity_field(step).map_or(KnownKey::Section, KnownKey::List),
        }
    }
    known
}

/// The row of a key that takes a value.
pub(crate) fn find_row(path: &KeyPath) -> Option<&'static Row> {
    match lookup_key(path) {
        KnownKey::Key(row) => Some(row),
        KnownKey::Section | KnownKey::List(_) | KnownKey::Nothing => None,
    }
}

/// The rows directly below `path`, each with its last step.
pub(crate) fn rows_below(path: &KeyPath) -> impl Iterator<Item = (&'static str, &'static Row)> {
    ROWS.iter().filter_map(move |row| {
        let mut steps = row.path.split('.');
        let fits = path
            .segments()
            .iter()
            .all(|segment| steps.next().is_some_and(|step| step_matches(step, segment)));
        Some((steps.next().filter(|_| fits)?, row))
    })
}

/// Returns the number of steps of `path` that name the part which a later file replaces as one.
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

/// Returns the number of steps of `path` that name the entry of a list it belongs to, if it belongs to one.
pub(crate) fn entry_length(path: &KeyPath) -> Option<usize> {
    let steps = find_row(path)?.path.split('.');
    steps.enumerate().find(|(_, step)| step.starts_with('[')).map(|(depth, _)| depth + 1)
}

fn step_matches(step: &'static str, segment: &Segment) -> bool {
    match segment {
        Segment::Name(name) => {
            step == name || step == "*" || identity_field(step).flatten().is_some()
        }
        Segment::Index(_) => step == "[]",
    }
}

/// `Some(field)` for a step that stands for the entries of a list.
fn identity_field(step: &'static str) -> Option<Option<&'static str>> {
    let field = step.strip_prefix('[')?.strip_suffix(']')?;
    Some((!field.is_empty()).then_some(field))
}
