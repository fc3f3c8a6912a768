//! What the face keeps in the state folder: prompts that were sent, and what is written and not sent.
//! For nobody else to read, and without secrets: see [`super::hands`].

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use gnoma_tui::{composer::Draft, history::History};

use crate::surroundings::Surroundings;

const FOLDER: &str = "tui";
const HISTORY: &str = "history";
/// A longer history loses its older half.
const MAX_HISTORY_BYTES: u64 = 4 << 20;
/// Most bytes of drafts: images are in them.
const MAX_DRAFT_BYTES: u64 = 64 << 20;

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Files {
    folder: PathBuf,
    drafts: PathBuf,
}

impl Files {
    /// The files for work in `project`; nothing is read or made yet.
    pub(super) fn new(around: &Surroundings, project: &str) -> Self {
        let folder = around.state_dir().join(FOLDER);
        let name = format!("draft-{}.json", gnoma_store::project_key(project));
        Self { drafts: folder.join(name), folder }
    }

    /// The prompts that were sent before.
    pub(super) fn history(&self) -> History {
        let file = self.folder.join(HISTORY);
        let is_long = fs::metadata(&file).is_ok_and(|facts| facts.len() > MAX_HISTORY_BYTES);
        let text = fs::read_to_string(&file).unwrap_or_default();
        let history = History::from_lines(&text);
        if is_long {
            let half = text.floor_char_boundary(text.len() / 2);
            let newer = text.get(half..).and_then(|rest| rest.split_once('\n'));
            // What cannot be shortened now is shortened another time.
            if let Some((_, newer)) = newer {
                self.replace(&file, newer.as_bytes()).unwrap_or_default();
            }
        }
        history
    }

    /// Adds a line to the history.
    pub(super) fn remember(&self, line: &str) -> io::Result<()> {
        self.make_folder()?;
        let file = self.folder.join(HISTORY);
        let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(file)?;
        file.write_all(format!("{line}\n").as_bytes())
    }

    /// What was written and not sent.
    pub(super) fn drafts(&self) -> Vec<Draft> {
        let text = read(&self.drafts, MAX_DRAFT_BYTES).ok().flatten();
        text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
    }

    /// Keeps that; nothing at all where nothing is written.
    pub(super) fn save(&self, drafts: &[Draft]) -> io::Result<()> {
        if drafts.iter().all(Draft::is_blank) {
            return match fs::remove_file(&self.drafts) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                Ok(()) | Err(_) => Ok(()),
            };
        }
        self.make_folder()?;
        self.replace(&self.drafts, &serde_json::to_vec(drafts)?)
    }

    fn make_folder(&self) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)
    }

    fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
        file.write_all(bytes)?;
        file.persist(path)?;
        Ok(())
    }
}

/// A file's text; `None` where there is no such file.
pub(super) fn read(path: &Path, max_bytes: u64) -> io::Result<Option<String>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let mut text = String::new();
    file.take(max_bytes + 1).read_to_string(&mut text)?;
    if text.len() as u64 > max_bytes {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is too large"));
    }
    Ok(Some(text))
}
