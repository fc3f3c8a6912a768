//! What a scanner looks for besides the built-in rules, and what it leaves out.

use std::{collections::BTreeSet, sync::Arc};

use super::known::KnownSecrets;
use crate::rules::compiled::CompiledRule;

/// The user's rules and known secrets, and the names of what is switched off.
#[derive(Debug)]
pub(super) struct Selection {
    pub(super) extra: Vec<Arc<CompiledRule>>,
    pub(super) known: KnownSecrets,
    pub(super) disabled: BTreeSet<String>,
    pub(super) disabled_families: BTreeSet<String>,
}

impl Selection {
    /// True if no rule or family is switched off.
    pub(super) fn has_all(&self) -> bool {
        self.disabled.is_empty() && self.disabled_families.is_empty()
    }

    pub(super) fn is_off(&self, id: &str, family: &str) -> bool {
        self.disabled.contains(id) || self.disabled_families.contains(family)
    }
}
