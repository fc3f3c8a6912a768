//! `--log FILE` and `GNOMA_LOG`: whether this process writes a debug log, and where.

use std::path::Path;

use gnoma_host::{
    Folders as _, HostError, clock,
    debug_log::{self, LogLevel},
};

use crate::{environment::ProcessEnvironment, report};

/// The level of the log, such as `debug`.
const VARIABLE: &str = "GNOMA_LOG";
/// A value of it that turns the log off.
const OFF: &str = "off";

/// Starts the debug log that the command line or the environment asks for. `--log` alone means everything, and
/// `GNOMA_LOG` alone a file in the state folder.
///
/// # Errors
/// The variable does not name a level, or the file exists and is not a debug log.
pub(crate) fn start_log(file: Option<&Path>, around: &ProcessEnvironment) -> Result<(), HostError> {
    let level = around.var(VARIABLE).filter(|level| !level.is_empty() && *level != OFF);
    let level = match level {
        Some(level) => level.parse().map_err(|error| {
            HostError::usage(format!("the environment variable {VARIABLE}: {error}"))
        })?,
        None if file.is_none() => return Ok(()),
        None => LogLevel::Debug,
    };
    let path = match file {
        Some(file) => around.cwd.join(file),
        None => {
            let path = debug_log::default_path(&around.environment.state_dir(), clock::now_ms());
            report::print_line(format_args!("debug log: `{}`", path.display()));
            path
        }
    };
    // The log's hook for panics must be the outer one: while a view has the terminal, the view's hook ends a panic.
    gnoma_tui::terminal::install_panic_hook();
    debug_log::install(path, level)
}
