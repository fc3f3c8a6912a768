//! The table of all known keys: what may be set, to what, and what it means.
//!
//! Checking, suggestions, defaults, trust and `config show` all read this one table. Patterns of
//! keys have steps between dots: a name, `*` for any name the user chooses, `[]` for the entries of
//! a list that is appended to, `[id]` for those of a list whose entries are named by their `id`.

#[cfg(test)]
mod docs;
mod features;
mod form;
mod keys;
mod kind;
mod lookup;
mod row;
mod words;

pub use self::{
    features::{FEATURES, Feature, FeatureStage},
    form::Form,
    keys::ROWS,
    kind::{Kind, wrong_address},
    row::{Guard, Row},
    words::THEMES,
};
pub(crate) use self::{
    kind::Refusal,
    lookup::{KnownKey, entry_length, find_row, lookup_key, rows_below, unit_length},
};

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use gnoma_core::{Effort, session::PermissionMode};
    use gnoma_router::{Strategy, Verify, classify::TaskType, rules::Day};

    use super::*;
    use crate::{settings::Protocol, tree};

    #[test]
    fn default_values_are_valid_for_their_keys() {
        for row in ROWS {
            let Some(default) = row.default_value() else {
                continue;
            };
            let written: toml::Table = format!("value = {default}").parse().unwrap();
            let read = row.kind.read_value(&tree::of_value(&written["value"]).tree);
            assert_eq!(read.ok(), Some(default), "{}", row.path);
        }
    }

    #[test]
    fn only_keys_without_wildcards_have_default_values() {
        let with_default = ROWS.iter().filter(|row| row.default_value().is_some());
        assert_eq!(with_default.filter(|row| !row.is_single()).map(|row| row.path).next(), None);
    }

    #[test]
    fn schema_word_lists_match_their_types() {
        assert_eq!(words::MODES, PermissionMode::ALL.map(PermissionMode::name));
        assert_eq!(words::DAYS, Day::ALL.map(Day::name));
        let sorted = |names: [&'static str; 10]| BTreeSet::from(names);
        assert_eq!(sorted(words::TASKS), sorted(TaskType::ALL.map(TaskType::name)));
        assert_eq!(words::STRATEGIES, Strategy::ALL.map(Strategy::name));
        assert_eq!(words::VERIFIERS, Verify::ALL.map(Verify::name));
        assert_eq!(words::PROTOCOLS, Protocol::ALL.map(Protocol::name));
        for (effort, name) in [Effort::None, Effort::Low, Effort::Medium, Effort::High]
            .into_iter()
            .zip(words::EFFORTS)
        {
            assert_eq!(format!("{effort:?}").to_lowercase(), name);
        }
    }

    #[test]
    fn schema_rows_have_unique_keys() {
        let mut paths: Vec<_> = ROWS.iter().map(|row| row.path).collect();
        paths.sort_unstable();
        paths.dedup();
        assert_eq!(paths.len(), ROWS.len());
    }
}
