//! The debug log: a line for each step of a session at its borders, for people who look for a fault.
//!
//! Off by default, and then nothing is computed. It is written from the events that front ends get, so it adds nothing
//! to the engine. It has sizes and names, never what people, models or tools wrote; reasons and errors pass the
//! firewall's redaction. Sessions in incognito are not logged.

mod file;
mod filter;
mod line;
mod panic;
mod process_log;
mod step;

use std::{
    borrow::Cow,
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use gnoma_core::{Event, store::SessionId};
use gnoma_extend::hooks::HookRunReport;

pub(crate) use self::step::{LoggedStep, report_messages};
use self::{
    file::LogFile,
    line::SessionLines,
    process_log::{LOG, ProcessLog},
};
pub use self::{
    file::MAX_PART_BYTES,
    filter::{LogFilter, LogLevel},
};
use crate::{HostError, Project, Result, clock};

/// Writes a debug log from now on, also of panics. Only the first call does. The file is made when a session that is
/// logged begins, which also tells the person where it is if `names_file`. Hooks for panics that are installed later must
/// call the one before them.
///
/// # Errors
/// There is such a file and it is not a debug log, or it cannot be opened.
pub fn install(path: PathBuf, filter: LogFilter, names_file: bool) -> Result<()> {
    let file = LogFile::new(path);
    file.check_ownership().map_err(|error| match error.kind() {
        io::ErrorKind::InvalidInput => HostError::usage(error.to_string()),
        _ => {
            let path = file.path().display();
            HostError::usage(format!("the debug log `{path}` cannot be written: {error}"))
        }
    })?;
    // A second log would have half of the lines.
    let names_file = AtomicBool::new(names_file);
    if LOG.set(ProcessLog { file, filter, names_file }).is_ok() {
        panic::install_hook(|lines| {
            // A panic cannot tell anybody that the log fails.
            LOG.get().into_iter().for_each(|log| drop(log.file.append(lines)));
        });
    }
    Ok(())
}

/// Returns the file of this process's debug log, if it writes one.
#[must_use]
pub fn path() -> Option<&'static Path> {
    LOG.get().map(|log| log.file.path())
}

/// The file of a process's debug log in gnoma's state folder. Removes the oldest files of other processes there.
#[must_use]
pub fn default_path(state: &Path, now_ms: i64) -> PathBuf {
    let folder = state.join("logs");
    file::remove_oldest(&folder);
    folder.join(format!("{now_ms}-{}.log", std::process::id()))
}

/// Returns the end of the newest log in gnoma's state folder.
pub(crate) fn read_last(state: &Path) -> Option<String> {
    /// More than most sessions write.
    const MAX_BYTES: u64 = 1 << 20;
    file::read_last(&state.join("logs"), MAX_BYTES)
}

/// Writes the line of a hook's run, if this process writes a log. The session must be one that may be logged.
pub(crate) fn write_hook(session: &str, run: &HookRunReport<'_>) {
    let Some(log) = LOG.get() else { return };
    let Some(line) = line::format_hook(run, &log.filter) else { return };
    log.append(&format!("session={session} {}", line.render(Cow::Borrowed)));
}

/// The lines of one session.
pub struct SessionLog {
    log: &'static ProcessLog,
    project: Arc<Project>,
    lines: SessionLines,
    /// The person was told that the file cannot be written.
    has_complained: bool,
}

impl SessionLog {
    /// The log of a session, if this process writes one and the session may be logged.
    pub(crate) fn open(project: &Arc<Project>) -> Option<Self> {
        let log = LOG.get()?;
        if project.is_incognito() {
            project.notices.info("incognito: this session is not in the debug log");
            return None;
        }
        let project = Arc::clone(project);
        let mut session =
            Self { log, project, lines: SessionLines::default(), has_complained: false };
        let begun = log.file.begin();
        if begun.is_ok() && log.names_file.swap(false, Ordering::Relaxed) {
            let path = log.file.path().display();
            session.project.notices.info(format_args!("debug log: `{path}`"));
        }
        session.report_failure(begun);
        Some(session)
    }

    /// Writes the line of an event, if it has one.
    pub(crate) fn write(&mut self, session: &SessionId, event: &Event) {
        let now_ms = clock::now_ms();
        let Some(line) = self.lines.format_event(now_ms, event, &self.log.filter) else { return };
        let line = line.render(|value| self.project.firewall.redact_text(value));
        let line = format!("session={} {line}", session.as_str());
        let written = self.log.file.append(&line::add_timestamp(now_ms, &line));
        self.report_failure(written);
    }

    /// Tells the person once that the file cannot be written.
    fn report_failure(&mut self, written: io::Result<()>) {
        if let Err(error) = written
            && !std::mem::replace(&mut self.has_complained, true)
        {
            let path = self.log.file.path().display();
            let text = format_args!("the debug log `{path}` cannot be written: {error}");
            self.project.notices.warning(text);
        }
    }
}
