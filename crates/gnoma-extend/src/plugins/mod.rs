//! Plugins: folders that bring commands, skills, agents, hooks and MCP servers along under one name.
//!
//! A plugin of the person's lies as a copy among gnoma's data, with the hash of its whole content that was
//! approved; one changed byte takes it out of force. One of a project stands and falls with trust in the
//! project. Nothing of a plugin that is not in force is read beyond its manifest.

mod archive;
mod found;
mod install;
mod manifest;
mod market;
mod pins;
mod source;
mod tree;
mod validate;

pub use self::{
    found::{FoundPlugin, PluginPlaces, PluginState, PluginsFound, find},
    install::{PluginInstaller, PluginNews, overview},
    manifest::Manifest,
    tree::{PluginFiles, PluginTree, TreeChange, read},
    validate::validate,
};
