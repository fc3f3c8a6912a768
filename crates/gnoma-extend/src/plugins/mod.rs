//! Plugins: folders that contain commands, skills, agents, hooks and MCP servers under one name.
//!
//! A person's plugin is a copy among gnoma's data, with the hash of its whole content that was approved; one
//! changed byte disables it. A project's plugin depends on trust in the project. Nothing of a plugin that is not
//! loaded is read beyond its manifest.

mod archive;
mod content_error;
mod error;
mod install;
mod manifest;
mod market;
mod pins;
mod plugin_discovery;
mod source;
mod tree;
mod validate;

pub use self::{
    content_error::{
        ArchiveEntryFlaw, PluginArchiveError, PluginPathError, PluginPathFlaw, PluginTreeError,
        RefusedLinkTarget,
    },
    error::{
        GitError, ManifestError, MarketSourceError, PluginError, PluginJsonError, PluginNameError,
        PluginPinsError, PluginSourceError,
    },
    install::{PluginInstaller, PluginReview, describe_capabilities},
    manifest::Manifest,
    plugin_discovery::{FoundPlugin, PluginPlaces, PluginScan, PluginState, find_plugins},
    tree::{PluginFiles, PluginTree, TreeChange, read_tree},
    validate::validate_folder,
};
