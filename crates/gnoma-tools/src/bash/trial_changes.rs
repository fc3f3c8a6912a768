//! The changes of a command on trial, as they are read from its layer.

use std::{
    cell::RefCell,
    path::{Path, PathBuf},
};

use gnoma_core::tool::Trial;
use gnoma_sandbox::layer::{Changes, Layer, LayerError};

use super::{chosen_changes, trial_facts};
use crate::trials::Trials;

/// The changes that were read from a layer.
pub(super) struct ReadChanges {
    /// The changes that need a decision.
    pub(super) changes: Changes,
    /// The changes in folders of build output that are updated in any case.
    pub(super) updates: Changes,
    /// Other folders of build output.
    pub(super) built: Vec<PathBuf>,
}

impl ReadChanges {
    pub(super) fn from_layer(
        layer: &Layer,
        trials: &Trials,
        trial: Trial,
        roots: &[PathBuf],
    ) -> Result<Self, LayerError> {
        let (rebuilt, updated) = (RefCell::new(Vec::new()), RefCell::new(Vec::new()));
        let below_updated = |path: &Path| updated.borrow().iter().any(|top| path.starts_with(top));
        let mut changes = layer.changes_but(&|path| {
            if trial != Trial::Discard && (below_updated(path) || trials.is_updated(path)) {
                if !below_updated(path) {
                    updated.borrow_mut().push(path.to_owned());
                }
                return false;
            }
            let is_rebuilt = trials.is_rebuilt(layer, path);
            if is_rebuilt {
                rebuilt.borrow_mut().push(path.to_owned());
            }
            is_rebuilt
        })?;
        trial_facts::without_stat_cache(&mut changes, roots);
        let (updates, changes) = chosen_changes::split_below(changes, &updated.into_inner());
        Ok(Self { changes, updates, built: rebuilt.into_inner() })
    }
}
