//! Builds and owns sessions: what the binary and every other front end share.
//!
//! A client says what it wants in a [`gnoma_core::protocol::SessionSpec`]; this crate turns that into settings,
//! stores, models and a sandbox. Nothing here prints, knows a command line, or reads the environment, the
//! working folder or the umask of the process.

mod address_secrets;
mod agent;
mod agents;
pub mod analytics;
mod blocking_work;
mod branch;
pub mod bug_report;
mod cap_watch;
pub mod changes;
mod child;
mod choice_lists;
pub mod claude_rules;
pub mod clock;
mod conditions;
mod continuation;
pub mod crate_options;
pub mod debug_log;
pub mod driven;
mod environment;
mod error;
pub mod export;
mod extension_lists;
pub mod extensions;
pub mod facts;
pub mod files;
mod files_only_rewind;
mod firewall_setup;
mod first_start;
mod foreign_settings;
pub mod found_extensions;
pub mod guard_setup;
pub mod import;
pub mod instructions;
mod isolation;
mod key_command;
mod last_commit;
mod ledger;
pub mod live;
pub mod mcp;
mod mcp_edit;
mod memory;
mod model_list;
mod new_provider;
mod notices;
mod notify;
mod observers;
mod output_style;
mod places;
mod plugin_choice;
pub mod plugins;
pub mod preview;
mod project;
pub mod project_history;
pub mod project_settings;
mod provider_names;
pub mod providers;
pub mod reachable_hosts;
mod readable_places;
pub mod redo;
mod reopen_changes;
mod repositories;
mod restore;
mod revert_file;
pub mod rewind;
pub mod rewind_candidates;
mod rewind_elf;
pub mod routing;
pub mod rule;
pub mod schedules;
mod service_requests;
mod services;
pub mod session;
pub mod session_opening;
pub mod session_resume;
pub mod session_stores;
pub mod sessions;
pub mod setting;
mod shared;
pub mod status_script;
pub mod tasks;
pub mod telemetry;
pub mod text;
mod timeline;
mod trust_check;
mod trust_preview;
pub mod unused_settings;
pub mod usage;
mod workspace_hint;

pub use self::{
    agents::{AgentProgramError, Agents},
    environment::{Folders, write_obstacle},
    error::{HostError, HostErrorKind, Result},
    notices::Notices,
    places::Places,
    project::Project,
    rewind_elf::rewind_elf,
    shared::ProcessResources,
    trust_preview::{TrustSection, trust_preview},
};
