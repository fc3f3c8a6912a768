//! `--log FILE` and `GNOMA_LOG`: whether this process writes a debug log, and where.

use std::path::Path;

use gnoma_host::{
    Folders as _, HostError, clock,
    debug_log::{self, LogFilter, LogLevel},
};

use crate::{environment::ProcessEnvironment, report};

/// The directives of the log, such as `debug`.
const VARIABLE: &str = "GNOMA_LOG";

/// Starts the debug log that the command line or the environment asks for. `--log` alone means everything, and
/// `GNOMA_LOG` alone a file in the state folder. Warns of directives that cannot be read.
///
/// # Errors
/// The file exists and is not a debug log.
pub(crate) fn start_log(file: Option<&Path>, around: &ProcessEnvironment) -> Result<(), HostError> {
    let (filter, unreadable) = LogFilter::parse(around.var(VARIABLE).unwrap_or_default());
    for directive in unreadable {
        report::print_warning(&format!(
            "the environment variable {VARIABLE}: `{directive}` is left out; use off, error, warn, info, debug or \
             trace, or STEP=LEVEL such as `tool=debug`"
        ));
    }
    match filter.filter(|filter| !filter.is_off()) {
        Some(filter) => install_log(file, filter, around),
        None if file.is_none() => Ok(()),
        None => install_log(file, LogLevel::Debug.into(), around),
    }
}

/// Starts a debug log of everything in the state folder, unless this process has one.
///
/// # Errors
/// The file exists and is not a debug log.
pub(crate) fn start_full_log(around: &ProcessEnvironment) -> Result<(), HostError> {
    match debug_log::path() {
        Some(_) => Ok(()),
        None => install_log(None, LogLevel::Debug.into(), around),
    }
}

fn install_log(
    file: Option<&Path>,
    filter: LogFilter,
    around: &ProcessEnvironment,
) -> Result<(), HostError> {
    let path = match file {
        Some(file) => around.cwd.join(file),
        None => debug_log::default_path(&around.environment.state_dir(), clock::now_ms()),
    };
    // The log's hook for panics must be the outer one: while a view has the terminal, the view's hook ends a panic.
    gnoma_tui::terminal::capture_panics();
    debug_log::install(path, filter, file.is_none())
}
