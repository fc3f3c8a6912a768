//! What the view keeps in the state folder: prompts that were sent, and what is written and not sent.
//! For nobody else to read, and without secrets: see [`super::effects`].
//!
//! Several programs may work on one project at the same time. Each has a place of its own for what is
//! written, and holds it by a lock that goes with the program, however that ends: what lies in a place
//! without an owner was left behind, and whoever starts next takes it over.

use gnoma_host::{Folders as _, files::read};
use gnoma_tui::{composer::Draft, history::History};
use std::{
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use crate::environment::ProcessEnvironment;

const FOLDER: &str = "tui";
const HISTORY: &str = "history";
/// A longer history loses its older half.
const MAX_HISTORY_BYTES: u64 = 4 << 20;
/// Most bytes of drafts: images are in them.
const MAX_DRAFT_BYTES: u64 = 64 << 20;
/// Programs on one project whose drafts can be kept.
const MAX_PLACES: usize = 64;

/// The prompts and drafts that are kept in the state folder.
#[derive(Clone, Debug)]
pub(super) struct ViewFiles {
    folder: PathBuf,
    /// The prefix that the names of this project's drafts share.
    name: String,
    own: Arc<OnceLock<DraftFolder>>,
}

/// The folder in which this program keeps its drafts.
#[derive(Debug)]
struct DraftFolder {
    drafts: PathBuf,
    /// The lock that keeps other programs from this folder while it is open.
    _lock: File,
}

/// The kind of draft folders to look for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DraftPlaces {
    /// Folders in which drafts were left.
    Used,
    /// Folders without any drafts.
    Empty,
}

impl ViewFiles {
    /// The files for work in `project`; nothing is read or made yet.
    pub(super) fn new(around: &ProcessEnvironment, project: &str) -> Self {
        let folder = around.environment.state_dir().join(FOLDER);
        let name = format!("draft-{}", gnoma_store::project_key(project));
        Self { folder, name, own: Arc::default() }
    }

    /// The prompts that were sent before.
    pub(super) fn load_history(&self) -> History {
        let file = self.folder.join(HISTORY);
        let is_long = fs::metadata(&file).is_ok_and(|facts| facts.len() > MAX_HISTORY_BYTES);
        let text = fs::read_to_string(&file).unwrap_or_default();
        let history = History::from_lines(&text);
        if is_long {
            let half = text.floor_char_boundary(text.len() / 2);
            let newer = text.get(half..).and_then(|rest| rest.split_once('\n'));
            // What cannot be shortened now is shortened another time.
            if let Some((_, newer)) = newer {
                self.replace_file(&file, newer.as_bytes()).unwrap_or_default();
            }
        }
        history
    }

    /// Adds a line to the history.
    pub(super) fn append_history(&self, line: &str) -> io::Result<()> {
        self.make_folder()?;
        let file = self.folder.join(HISTORY);
        let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(file)?;
        file.write_all(format!("{line}\n").as_bytes())
    }

    /// Returns the drafts that an ended program had written and not sent. They belong to this program from now on.
    pub(super) fn load_drafts(&self) -> Vec<Draft> {
        let Ok(place) = self.draft_folder(DraftPlaces::Used) else { return Vec::new() };
        let text = read(&place.drafts, MAX_DRAFT_BYTES).ok().flatten();
        text.and_then(|text| gnoma_core::json::from_str(&text).ok()).unwrap_or_default()
    }

    /// Keeps that; nothing at all where nothing is written.
    pub(super) fn save_drafts(&self, drafts: &[Draft]) -> io::Result<()> {
        if drafts.iter().all(Draft::is_blank) {
            let Some(place) = self.own.get() else { return Ok(()) };
            return match fs::remove_file(&place.drafts) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                Ok(()) | Err(_) => Ok(()),
            };
        }
        self.make_folder()?;
        self.replace_file(
            &self.draft_folder(DraftPlaces::Empty)?.drafts,
            &serde_json::to_vec(drafts)?,
        )
    }

    /// This program's place; one that it has already, whatever is looked for.
    fn draft_folder(&self, which: DraftPlaces) -> io::Result<&DraftFolder> {
        if let Some(place) = self.own.get() {
            return Ok(place);
        }
        for number in 0..MAX_PLACES {
            let drafts = self.folder.join(format!("{}-{number}.json", self.name));
            if drafts.exists() == (which == DraftPlaces::Used)
                && let Some(lock) = self.lock_draft(number)?
                // The owner may have ended, or another one begun, between the two.
                && drafts.exists() == (which == DraftPlaces::Used)
            {
                return Ok(self.own.get_or_init(|| DraftFolder { drafts, _lock: lock }));
            }
        }
        Err(io::Error::other("too many gnoma processes are using this project"))
    }

    /// Locks the draft of that number; `None` if another process holds it.
    fn lock_draft(&self, number: usize) -> io::Result<Option<File>> {
        let path = self.folder.join(format!("{}-{number}.lock", self.name));
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn make_folder(&self) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)
    }

    fn replace_file(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
        file.write_all(bytes)?;
        file.persist(path)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The files of a program of its own.
    fn program(folder: &Path) -> ViewFiles {
        ViewFiles { folder: folder.to_owned(), name: "draft-x".to_owned(), own: Arc::default() }
    }

    #[test]
    fn concurrent_programs_keep_separate_drafts() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (program(folder.path()), program(folder.path()));
        one.save_drafts(&["from one".into()]).unwrap();
        other.save_drafts(&["from the other".into()]).unwrap();
        assert_eq!(program(folder.path()).load_drafts(), [], "both are there still");
        drop(one);
        let next = program(folder.path());
        assert_eq!(next.load_drafts(), [Draft::from("from one")]);
        assert_eq!(program(folder.path()).load_drafts(), [], "it is the next one's now");
        next.save_drafts(&[]).unwrap();
        drop((next, other));
        assert_eq!(program(folder.path()).load_drafts(), [Draft::from("from the other")]);
    }

    #[test]
    fn saving_no_drafts_creates_no_folder() {
        let folder = tempfile::tempdir().unwrap();
        let files = program(&folder.path().join("tui"));
        assert_eq!(files.load_drafts(), []);
        files.save_drafts(&[]).unwrap();
        assert!(!folder.path().join("tui").exists());
    }
}
