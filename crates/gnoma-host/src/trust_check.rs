//! Looks up whether a person trusts what a project contains.

use gnoma_config::{FileTrust, paths, project_root, trust::Store};
use gnoma_core::protocol::SessionSpec;

use crate::Folders as _;

/// The trust in a project whose files act on its behalf.
#[must_use]
pub fn project_trust(spec: &SessionSpec) -> FileTrust {
    let SessionSpec { folder, environment, .. } = spec;
    let root = project_root(folder, &environment.config_dir()).unwrap_or_else(|| folder.clone());
    let content = match paths::read_config_file(&paths::project_file(&root)) {
        Ok(content) => content.unwrap_or_default(),
        Err(_) => return FileTrust::Unknown,
    };
    let store = Store::open(&environment.state_dir());
    store.map_or(FileTrust::Unknown, |store| store.file_trust(&root, &content))
}
