//! Files as the editor has them, with what is not saved: tools ask from their threads, and the agent asks the
//! client.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        mpsc::{self as reply, SyncSender},
    },
    time::Duration,
};

use gnoma_core::{store::SessionId, tool::OpenFiles};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

/// The time the client may take to show a file. After that, the saved file is read.
const PATIENCE: Duration = Duration::from_secs(2);
/// Files that tools may ask for at a time; one more is read as it is saved.
const MAX_WANTED: usize = 64;

/// A file that a tool wants to see as it is in the editor. Dropped without a word, it is read as it is saved.
#[derive(Debug)]
pub struct WantedFile {
    pub(crate) session: SessionId,
    pub(crate) path: PathBuf,
    pub(crate) reply: SyncSender<String>,
}

/// The requests of tools for files of the editor; the agent owns them.
#[derive(Debug)]
pub struct WantedFiles(pub(crate) mpsc::Receiver<WantedFile>);

#[derive(Debug)]
struct EditorFiles(mpsc::Sender<WantedFile>);

/// The files of the editor, for tools, and what they ask for, for the agent.
#[must_use]
pub fn editor_files() -> (Arc<dyn OpenFiles>, WantedFiles) {
    let (asked, wanted) = mpsc::channel(MAX_WANTED);
    (Arc::new(EditorFiles(asked)), WantedFiles(wanted))
}

impl OpenFiles for EditorFiles {
    fn file_text(&self, session: &str, path: &Path) -> Option<String> {
        let (reply, text) = reply::sync_channel(1);
        let session = SessionId::new(session);
        self.0.try_send(WantedFile { session, path: path.to_owned(), reply }).ok()?;
        text.recv_timeout(PATIENCE).ok()
    }
}

/// The text in a client's answer.
pub(crate) fn parse_file_text(answer: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    struct ShownFile {
        content: String,
    }
    gnoma_core::json::from_str(answer.get()).ok().map(|ShownFile { content }| content)
}
