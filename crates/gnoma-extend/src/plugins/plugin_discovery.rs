//! Finds plugins, and which of them are loaded.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    manifest::Manifest,
    pins::{PluginPins, PluginRecord},
    tree,
};
use crate::{places::ExtensionSource, plugin::PluginPlace};

/// Most plugins of a place.
const MAX_PLUGINS: usize = 200;

/// The folders in which gnoma looks for plugins, and the choice of those that are enabled.
#[derive(Clone, Debug, Default)]
pub struct PluginPlaces {
    /// The folder of the person's plugins.
    pub user: PathBuf,
    /// The folder of what is known of them.
    pub state: PathBuf,
    /// The folder of the project's plugins; `None` where the home is the project.
    pub project: Option<PathBuf>,
    /// The person trusts what the project contains.
    pub is_trusted: bool,
    /// The only enabled ones; empty for all.
    pub enabled: Vec<String>,
    /// Those that are not.
    pub disabled: Vec<String>,
}

/// The state of a plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PluginState {
    /// The plugin is in force.
    Active,
    /// Switched off in the settings.
    Disabled,
    /// The plugin's content was never approved.
    New,
    /// The plugin's content differs from the content that was approved.
    Changed,
    /// The plugin belongs to a project that is not trusted.
    ProjectUntrusted,
    /// The project has one of the same name.
    Replaced,
    /// The plugin cannot be used, with the reason.
    Broken(String),
}

/// A plugin that was found.
#[derive(Clone, Debug)]
pub struct FoundPlugin {
    /// The name of the plugin.
    pub name: String,
    /// The version of the plugin; may be empty.
    pub version: String,
    /// The description of the plugin's purpose; may be empty.
    pub description: String,
    /// The party that provides the plugin.
    pub by: ExtensionSource,
    /// The folder of the plugin.
    pub root: PathBuf,
    /// The source that the plugin was installed from; may be empty.
    pub source: String,
    /// The state of the plugin.
    pub state: PluginState,
    /// The parts of the plugin that cannot be used, a sentence each.
    pub faults: Vec<String>,
}

/// The result of looking for plugins.
#[derive(Clone, Debug, Default)]
pub struct PluginScan {
    /// Those that were found, sorted by name.
    pub all: Vec<FoundPlugin>,
    /// The places of the plugins that are in force.
    pub active: Vec<Arc<PluginPlace>>,
    /// The faults that prevent the use of plugins, a sentence each.
    pub faults: Vec<String>,
}

/// Looks for plugins. The content of those that could be in force is read whole.
#[must_use]
pub fn find_plugins(places: &PluginPlaces) -> PluginScan {
    let mut found = PluginScan::default();
    for root in places.project.iter().flat_map(|folder| plugin_folders(folder)) {
        let look =
            PluginCandidate { places, root: &root, by: ExtensionSource::Project, record: None };
        look.add_to(&mut found);
    }
    let user = plugin_folders(&places.user);
    if !user.is_empty() {
        match PluginPins::open(&places.state) {
            Err(error) => found.faults.push(error.to_string()),
            Ok(pins) => {
                for root in &user {
                    let name = root.file_name().unwrap_or_default().to_string_lossy();
                    let record = pins.all.get(&*name);
                    PluginCandidate { places, root, by: ExtensionSource::User, record }
                        .add_to(&mut found);
                }
            }
        }
    }
    gnoma_core::sort::sort_by(&mut found.all, |one, other| {
        one.name.cmp(&other.name).then(other.by.cmp(&one.by))
    });
    gnoma_core::sort::sort_by(&mut found.active, |one, other| one.name.cmp(&other.name));
    found
}

/// The folders in one, sorted. What begins with a dot is being installed.
fn plugin_folders(place: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(place).into_iter().flatten().flatten().take(MAX_PLUGINS);
    let mut all: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    let is_hidden = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
    };
    all.retain(|path| path.is_dir() && !is_hidden(path));
    gnoma_core::sort::sort_items(&mut all);
    all
}

/// A folder that may be a plugin.
struct PluginCandidate<'a> {
    places: &'a PluginPlaces,
    root: &'a Path,
    by: ExtensionSource,
    record: Option<&'a PluginRecord>,
}

impl PluginCandidate<'_> {
    fn add_to(self, found: &mut PluginScan) {
        let called = self.root.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let source = self.record.map(|record| record.source.clone()).unwrap_or_default();
        let mut plugin = FoundPlugin {
            name: called.clone(),
            version: String::new(),
            description: String::new(),
            by: self.by,
            root: self.root.to_owned(),
            source,
            state: PluginState::Active,
            faults: Vec::new(),
        };
        match Manifest::read(self.root, self.by, Some(&called)) {
            Err(error) => plugin.state = PluginState::Broken(error.to_string()),
            Ok(manifest) => {
                let Manifest { name, version, description, place, faults } = manifest;
                let is_replaced = found.active.iter().any(|other| other.name == name);
                plugin.state = if is_replaced { PluginState::Replaced } else { self.state(&name) };
                if plugin.state == PluginState::Active {
                    found.active.push(Arc::new(place));
                    plugin.faults = faults;
                }
                (plugin.name, plugin.version, plugin.description) = (name, version, description);
            }
        }
        found.all.push(plugin);
    }

    fn state(&self, name: &str) -> PluginState {
        let PluginPlaces { enabled, disabled, is_trusted, .. } = self.places;
        let is_named = |list: &[String]| list.iter().any(|one| one == name);
        if is_named(disabled) || !(enabled.is_empty() || is_named(enabled)) {
            return PluginState::Disabled;
        }
        let approved = match (self.by, self.record) {
            (ExtensionSource::Project, _) if !is_trusted => return PluginState::ProjectUntrusted,
            // Trust in a project is pinned to all that its plugins hold.
            (ExtensionSource::Project, _) => None,
            (_, record) => match record.and_then(|record| record.approved.as_ref()) {
                Some(approved) => Some(approved),
                None => return PluginState::New,
            },
        };
        match tree::read_tree(self.root) {
            Err(error) => PluginState::Broken(error.to_string()),
            Ok(tree) if approved.is_none_or(|approved| *approved == tree.hash) => {
                PluginState::Active
            }
            Ok(_) => PluginState::Changed,
        }
    }
}
