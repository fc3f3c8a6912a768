//! The person's approvals of plugins, each pinned to the content's hash. One file that only its owner can write,
//! replaced as a whole.

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use gnoma_core::{bounded_file, private_file};
use serde::{Deserialize, Serialize};

use super::{error::PluginPinsError, source::without_login, tree::PluginFiles};

const FILE: &str = "plugins.json";
/// Most bytes of the file.
const MAX_PINS_BYTES: u64 = 16 << 20;

/// The record of an installed plugin.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct PluginRecord {
    /// The source that the plugin came from, as `install` takes it.
    pub(super) source: String,
    /// The hash that was approved; none where it waits for that.
    pub(super) approved: Option<String>,
    /// The files that were approved last.
    pub(super) files: PluginFiles,
}

/// The records of all installed plugins.
#[derive(Debug)]
pub(super) struct PluginPins {
    path: PathBuf,
    pub(super) all: BTreeMap<String, PluginRecord>,
}

impl PluginPins {
    /// Reads the records in a state folder.
    ///
    /// # Errors
    /// The file cannot be read or relied on; then no plugin is in force.
    pub(super) fn open(state: &Path) -> Result<Self, PluginPinsError> {
        let path = state.join(FILE);
        let facts = match fs::metadata(&path) {
            Ok(facts) => facts,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self { path, all: BTreeMap::new() });
            }
            Err(source) => return Err(PluginPinsError::Unreadable { path, source }),
        };
        if facts.permissions().mode() & 0o022 != 0 {
            return Err(PluginPinsError::WritableByOthers(path));
        }
        let damaged = || PluginPinsError::Damaged(path.clone());
        let text = bounded_file::read_existing(&path, MAX_PINS_BYTES).map_err(|_| damaged())?;
        let mut all: BTreeMap<String, PluginRecord> =
            gnoma_core::json::from_bytes(&text).map_err(|_| damaged())?;
        // Written before passwords were left out.
        for record in all.values_mut() {
            record.source = without_login(&record.source);
        }
        Ok(Self { path, all })
    }

    /// Replaces the file by these records.
    pub(super) fn save(&self) -> Result<(), PluginPinsError> {
        let text = serde_json::to_vec_pretty(&self.all).map_err(io::Error::from);
        let written = text.and_then(|text| private_file::replace(&self.path, &text));
        written.map_err(|source| PluginPinsError::Unwritable { path: self.path.clone(), source })
    }
}
