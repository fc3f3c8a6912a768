//! Files as an editor shows them.

use std::{fmt, path::Path};

/// An editor in which files may be open with changes that are not saved.
pub trait OpenFiles: Send + Sync {
    /// The text of a file as a person sees it who has `session` in that editor; `None` where the editor does not
    /// say. May block for a moment, so it is called where that is no harm.
    fn file_text(&self, session: &str, path: &Path) -> Option<String>;
}

impl fmt::Debug for dyn OpenFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OpenFiles")
    }
}
