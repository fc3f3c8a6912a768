//! The debug log: a line for each step of a session at its borders, for people who look for a fault.
//!
//! Off by default, and then nothing is computed. It is written from the events that front ends get, so it adds nothing
//! to the engine. It has sizes and names, never what people, models or tools wrote; reasons and errors pass the
//! firewall's redaction. Sessions in incognito are not logged.

mod file;
mod line;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use gnoma_core::{Event, store::SessionId};

use self::{file::LogFile, line::SessionLines};
pub use self::{file::MAX_PART_BYTES, line::LogLevel};
use crate::{Project, clock};

/// The log of this process. The command line decides once whether there is one.
static LOG: OnceLock<ProcessLog> = OnceLock::new();

struct ProcessLog {
    file: LogFile,
    level: LogLevel,
}

/// Writes a debug log from now on, which only the first call does. The file is made with the first line.
pub fn install(path: PathBuf, level: LogLevel) {
    // A second log would have half of the lines.
    let _installed = LOG.set(ProcessLog { file: LogFile::new(path), level });
}

/// The file of a process's debug log in gnoma's state folder. Removes the oldest files of other processes there.
#[must_use]
pub fn default_path(state: &Path, now_ms: i64) -> PathBuf {
    let folder = state.join("logs");
    file::remove_oldest(&folder);
    folder.join(format!("{now_ms}-{}.log", std::process::id()))
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
        Some(Self { log, project, lines: SessionLines::default(), has_complained: false })
    }

    /// Writes the line of an event, if it has one.
    pub(crate) fn write(&mut self, session: &SessionId, event: &Event) {
        let now_ms = clock::now_ms();
        let Some(line) = self.lines.line(now_ms, event, self.log.level) else { return };
        let line = line.render(|value| self.project.firewall.text(value));
        let line = format!("session={} {line}", session.as_str());
        if let Err(error) = self.log.file.append(&line::stamp(now_ms, &line))
            && !std::mem::replace(&mut self.has_complained, true)
        {
            let path = self.log.file.path().display();
            let text = format_args!("the debug log `{path}` cannot be written: {error}");
            self.project.notices.warning(text);
        }
    }
}
