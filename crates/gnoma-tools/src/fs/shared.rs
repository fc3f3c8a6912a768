//! What the file tools of one session have in common.

use std::sync::{Mutex, MutexGuard, PoisonError};

use gnoma_core::ToolCx;

use super::{FileHolder, Refusal, lease::Writing, ledger::Ledger, target::Target, umask::Umask};
use crate::options::ToolOptions;

/// What the file tools of one session have in common.
pub(super) struct FileTools {
    /// Largest file that is loaded or written whole, in bytes.
    pub(super) max_file_bytes: u64,
    /// Permission bits that new files do not get.
    pub(super) umask: Umask,
    /// What the model has seen of which file.
    pub(super) ledger: Ledger,
    writing: Mutex<()>,
    holder: FileHolder,
}

impl Drop for FileTools {
    fn drop(&mut self) {
        self.holder.end();
    }
}

impl FileTools {
    pub(super) fn new(options: &ToolOptions) -> Self {
        Self {
            max_file_bytes: options.max_file_bytes,
            umask: Umask::of(options.umask),
            ledger: Ledger::default(),
            writing: Mutex::new(()),
            holder: options.holder.clone(),
        }
    }

    /// Takes the file that a call names, unless another elf is changing it.
    pub(super) fn lease(&self, cx: &ToolCx, path: &str) -> Result<Writing<'_>, Refusal> {
        let target = Target::of(cx, path)?;
        self.holder.take(&target.path, &target.name, &cx.stop)
    }

    /// Held from reading a file to replacing it, so that no change between two tools is lost.
    pub(super) fn sole_writer(&self) -> MutexGuard<'_, ()> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
