//! The built-in tools: a shell, files, and elfs.
//!
//! One file per tool, each with its spec, its `run` and its tests. Tools never ask for permission and
//! do not know who may call them; their [`ToolSpec`](gnoma_core::ToolSpec) declares what they touch.

mod args;
mod ask;
mod bash;
#[cfg(target_os = "linux")]
mod build_output;
mod elf;
mod fs;
mod line_pattern;
mod options;
mod plan;
mod read_result;
mod repository;
mod scratch_place;
#[cfg(target_os = "linux")]
mod trial_output;
#[cfg(target_os = "linux")]
mod trials;
#[cfg(not(target_os = "linux"))]
#[path = "trials_elsewhere.rs"]
mod trials;
#[cfg(target_os = "linux")]
mod trials_error;

use std::sync::Arc;

use gnoma_core::Tool;

pub use ask::ask_tool;
pub use bash::{UnattendedEnvironment, protected_paths, suggest_remedy as unattended_remedy};
pub use elf::{Agent, elf_tools};
pub use fs::{Disk, FileHolder, file_names, intended_path, resolve_links};
pub use options::{ReadingPlaces, Sandbox, ToolOptions};
pub use plan::plan_tool;
pub use read_result::read_result;
pub use repository::{NoRepositoryFinder, RepositoryFinder, WorkspaceRepository};
pub use scratch_place::ScratchPlace;
pub use trials::{Trials, TrialsError};

/// Reads and writes whole texts for another program's agent; the caller judges and shows the calls.
#[must_use]
pub fn plain_files(options: &ToolOptions) -> [Arc<dyn Tool>; 2] {
    fs::plain_tools(options)
}

/// The built-in tools, in the order they are offered.
#[must_use]
pub fn builtin_tools(options: &ToolOptions) -> Vec<Arc<dyn Tool>> {
    let mut tools = bash::shell_tools(options);
    tools.extend(fs::file_tools(options));
    tools
}
