//! What the file tools of one session have in common.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use gnoma_core::{
    ToolCx,
    places::{self, RuledPaths},
    tool::OpenFiles,
};

use super::{FileHolder, Refusal, lease::WriteLease, ledger::Ledger, target::Target, umask::Umask};
use crate::{
    Trials,
    options::{Sandbox, ToolOptions},
};

/// Stands in front of some texts in UTF-8.
pub(super) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The description of a file that a rule keeps from being read without asking.
const RULED: &str = "which a rule denies or asks about";

/// The state that the file tools of one session share.
pub(super) struct FileTools {
    /// Largest file that is loaded or written whole, in bytes.
    pub(super) max_file_bytes: u64,
    /// Permission bits that new files do not get.
    pub(super) umask: Umask,
    /// The record of what the model has seen of which file.
    pub(super) ledger: Ledger,
    /// The user's home folder.
    pub(super) home: Option<PathBuf>,
    /// The editor that the session is seen in, with the session's id.
    editor: Option<(Arc<dyn OpenFiles>, String)>,
    /// The trials of commands, which keep the session's temporary files.
    trials: Option<Arc<Trials>>,
    writing: Mutex<()>,
    holder: FileHolder,
    /// The rules about files.
    rules: Option<Arc<dyn RuledPaths>>,
}

impl Drop for FileTools {
    fn drop(&mut self) {
        self.holder.release_leases();
    }
}

impl FileTools {
    pub(super) fn new(options: &ToolOptions) -> Self {
        Self {
            max_file_bytes: options.max_file_bytes,
            umask: Umask::from_bits(options.umask),
            ledger: Ledger::default(),
            home: options.home.clone(),
            editor: options.editor.clone(),
            trials: match &options.sandbox {
                Sandbox::Walled { trials, .. } => trials.clone(),
                Sandbox::Off => None,
            },
            writing: Mutex::new(()),
            holder: options.holder.clone(),
            rules: options.rules.clone(),
        }
    }

    /// Describes a file that may be read only where a verdict was about it, as the end of a sentence.
    pub(super) fn restricted_kind(&self, path: &Path) -> Option<&'static str> {
        let is_ruled = || self.rules.as_ref().is_some_and(|rules| rules.limits_reading(path));
        places::find_secret(path).map(|secret| secret.kind).or_else(|| is_ruled().then_some(RULED))
    }

    /// The text of a file as it is in the editor, where that differs from what is saved by more than line ends,
    /// and is not too large.
    pub(super) fn unsaved_text(&self, path: &Path, saved: &[u8]) -> Option<String> {
        let (files, session) = self.editor.as_ref()?;
        let text = files.file_text(session, path)?;
        let is_fit = text.len() as u64 <= self.max_file_bytes;
        (is_fit && !normalized_lines(text.as_bytes()).eq(normalized_lines(saved))).then_some(text)
    }

    /// The path that a call names, seen from the working folder. Temporary files are those that commands find.
    pub(super) fn resolve_target(&self, cx: &ToolCx, given: &str) -> Result<Target, Refusal> {
        let place = |path: &Path| self.trials.as_ref()?.temporary_place(path);
        Target::from_call(cx, given, &place)
    }

    /// Takes the file that a call names, unless another elf is changing it.
    pub(super) fn lease_file(&self, cx: &ToolCx, path: &str) -> Result<WriteLease<'_>, Refusal> {
        let target = self.resolve_target(cx, path)?;
        self.holder.acquire_lease(&target.path, &target.name, &cx.stop)
    }

    /// Held from reading a file to replacing it, so that no change between two tools is lost.
    pub(super) fn sole_writer(&self) -> MutexGuard<'_, ()> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The lines of a text, without what editors write in their own way: line ends, a byte order mark, empty lines at
/// the end.
fn normalized_lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text).trim_ascii_end();
    text.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}
