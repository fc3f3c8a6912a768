//! Builds and owns sessions: what the binary and every other front end share.
//!
//! A client says what it wants in a [`gnoma_core::protocol::SessionSpec`]; this crate turns that into settings,
//! stores, models and a sandbox. Nothing here prints, knows a command line, or reads the environment, the
//! working folder or the umask of the process.

mod address_secrets;
mod agent;
mod agents;
pub mod analytics;
mod branch;
pub mod bug_report;
pub mod changes;
mod changing;
mod child;
pub mod claude_rules;
pub mod clock;
mod conditions;
pub mod debug_log;
pub mod driven;
mod elsewhere;
mod environment;
mod error;
pub mod export;
mod extension_lists;
pub mod extensions;
pub mod facts;
pub mod files;
mod first_start;
pub mod guarding;
pub mod import;
pub mod instructions;
mod isolation;
pub mod keeping;
mod key_command;
mod last_commit;
mod ledger;
pub mod live;
pub mod lowering;
pub mod mcp;
mod mcp_edit;
mod memory;
mod model_list;
mod notices;
mod observers;
mod off_loop;
pub mod opening;
pub mod past;
mod places;
mod plugin_choice;
pub mod plugins;
pub mod points;
pub mod preview;
mod project;
pub mod providers;
mod reading;
pub mod redo;
mod repositories;
mod restore;
pub mod resuming;
mod revert_file;
pub mod rewind;
mod rewind_elf;
pub mod routing;
pub mod rule;
pub mod schedules;
mod services;
pub mod session;
pub mod sessions;
pub mod setting;
mod shared;
pub mod status_script;
pub mod tasks;
pub mod telemetry;
pub mod text;
mod timeline;
mod trust_preview;
mod trusted;
mod unkept;
pub mod unused_settings;
pub mod usage;
pub mod wire;
mod workspace_hint;

pub use self::{
    agents::Agents,
    environment::Folders,
    error::{HostError, HostErrorKind, Result},
    notices::Notices,
    places::Places,
    project::Project,
    rewind_elf::rewind_elf,
    shared::Shared,
    trust_preview::{TrustSection, trust_preview},
};
