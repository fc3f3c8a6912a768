//! What people add to gnoma: hooks, skills, commands, agents, plugins and MCP servers.
//!
//! The engine knows the points in a session's life at which extensions may act. What they do there, and
//! which tools they offer, comes from here. Nothing in this crate decides what is allowed.

pub mod agents;
pub mod claude;
pub mod commands;
mod definition_error;
mod extension_source;
mod extensions;
mod front_matter;
pub mod hooks;
mod ignored;
mod lock_file;
pub mod mcp;
pub mod memory;
mod names;
mod nested_instructions;
pub mod output_styles;
mod places;
mod plugin;
pub mod plugins;
mod process_group;
mod rules;
pub mod skills;
pub mod tasks;

pub use extensions::{Extensions, SlashName, slash_names, trust_refusal};
pub use places::{ExtendPlaces, ExtensionSource, TextFileError, in_a_line, instructions_in};
pub use plugin::PluginPlace;
pub use rules::rule_files;
