//! The project's memory (`/memory`): a Markdown file with what the person stated, each line with its source.
//!
//! Only requests of the person's own change it; what tools print or models say never gets here.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use gnoma_core::{bounded_file, private_file};

use crate::lock_file::lock_file;

/// The most lines that a memory can have.
pub const MAX_LINES: usize = 60;
/// Longest text of a line, in characters.
const MAX_CHARS: usize = 300;
/// Most bytes of the file that are read: all lines at their longest, with their sources.
const MAX_BYTES: u64 = 128 << 10;
/// The begin of a line.
const BULLET: &str = "- ";
/// The begin of a line's source, which stands behind its text in parentheses.
const SOURCE: &str = " (said ";

/// The reason why the memory is not changed.
#[derive(Debug)]
pub enum MemoryError {
    /// Reading or writing the file fails.
    Io(PathBuf, io::Error),
    /// There is no text.
    Empty,
    /// The text is too long.
    TooLong,
    /// There are as many lines as there may be.
    Full,
    /// There is no line of that number.
    NoLine(usize),
    /// The file has something else than lines of its own, which a change would lose.
    ByHand(PathBuf),
}

impl fmt::Display for MemoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(path, error) => write!(f, "cannot save {}: {error}", path.display()),
            Self::Empty => f.write_str("there is nothing to remember"),
            Self::TooLong => write!(f, "a line has at most {MAX_CHARS} characters"),
            Self::Full => write!(f, "there are {MAX_LINES} lines already, the maximum"),
            Self::NoLine(number) => write!(f, "there is no line {number}"),
            Self::ByHand(path) => write!(
                f,
                "{} has lines that are not `- TEXT`, or more than {MAX_LINES}; change it by hand",
                path.display()
            ),
        }
    }
}

impl std::error::Error for MemoryError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(_, error) => Some(error),
            Self::Empty | Self::TooLong | Self::Full | Self::NoLine(_) | Self::ByHand(_) => None,
        }
    }
}

/// A change of the memory.
#[derive(Clone, Copy, Debug)]
pub enum MemoryChange<'t> {
    /// Adds a line with this text.
    Add(&'t str),
    /// Replaces the text and the source of the line of this number, from 1.
    Edit(usize, &'t str),
    /// Deletes the line of this number, from 1.
    Delete(usize),
    /// Deletes all lines of the memory.
    Clear,
}

/// The memory of a project.
#[derive(Clone, Debug)]
pub struct MemoryFile {
    path: PathBuf,
}

impl MemoryFile {
    /// The memory in this file, which need not exist.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Returns where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn read_text(&self) -> Result<String, MemoryError> {
        let text = bounded_file::read_text(&self.path, MAX_BYTES);
        let text = text.map_err(|error| MemoryError::Io(self.path.clone(), error))?;
        Ok(text.unwrap_or_default())
    }

    /// Returns the lines with their sources, at most [`MAX_LINES`].
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn lines(&self) -> Result<Vec<String>, MemoryError> {
        let text = self.read_text()?;
        let lines = text.lines().filter_map(|line| line.strip_prefix(BULLET));
        Ok(lines.map(str::to_owned).take(MAX_LINES).collect())
    }

    /// Changes it. `source`: when and where the person said that, such as `2026-11-30 in session X`.
    ///
    /// # Errors
    /// The change is none, or the disk refuses; the file is as it was.
    pub fn apply_change(&self, change: MemoryChange<'_>, source: &str) -> Result<(), MemoryError> {
        let failed = |error| MemoryError::Io(self.path.clone(), error);
        let folder = self.path.parent().unwrap_or(Path::new("."));
        private_file::create_folder(folder).map_err(failed)?;
        // Sessions side by side change it one after the other.
        let _lock = lock_file(&self.path.with_extension("lock")).map_err(failed)?;
        let text = self.read_text()?;
        let own = text.lines().filter(|line| line.starts_with(BULLET)).count();
        let all = text.lines().filter(|line| !line.trim().is_empty()).count();
        if own < all || own > MAX_LINES {
            return Err(MemoryError::ByHand(self.path.clone()));
        }
        let mut lines = self.lines()?;
        change_lines(&mut lines, change, source)?;
        let text: String = lines.iter().map(|line| format!("{BULLET}{line}\n")).collect();
        private_file::replace(&self.path, text.as_bytes()).map_err(failed)
    }
}

fn change_lines(
    lines: &mut Vec<String>,
    change: MemoryChange<'_>,
    source: &str,
) -> Result<(), MemoryError> {
    let place = |number: usize| {
        let at = number.checked_sub(1).filter(|at| *at < lines.len());
        at.ok_or(MemoryError::NoLine(number))
    };
    match change {
        MemoryChange::Add(_) if lines.len() >= MAX_LINES => return Err(MemoryError::Full),
        MemoryChange::Add(text) => lines.push(format_line(text, source)?),
        MemoryChange::Edit(number, text) => {
            let (at, line) = (place(number)?, format_line(text, source)?);
            if let Some(place) = lines.get_mut(at) {
                *place = line;
            }
        }
        MemoryChange::Delete(number) => {
            let at = place(number)?;
            lines.remove(at);
        }
        MemoryChange::Clear => lines.clear(),
    }
    Ok(())
}

/// Returns a text with its source as one line.
fn format_line(text: &str, source: &str) -> Result<String, MemoryError> {
    let is_word = |word: &&str| !word.is_empty();
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(is_word);
    let text = words.collect::<Vec<_>>().join(" ");
    if text.is_empty() {
        return Err(MemoryError::Empty);
    }
    if text.chars().count() > MAX_CHARS {
        return Err(MemoryError::TooLong);
    }
    Ok(format!("{text}{SOURCE}{source})"))
}

/// Returns the text of a line without its source.
#[must_use]
pub fn text_of_line(line: &str) -> &str {
    line.rsplit_once(SOURCE).map_or(line, |(text, _)| text)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _, thread};

    use super::*;

    fn file() -> (tempfile::TempDir, MemoryFile) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("memory/p.md");
        (folder, MemoryFile::new(path))
    }

    #[test]
    fn lines_are_added_edited_and_deleted_with_their_source() {
        let (_folder, file) = file();
        assert!(file.lines().unwrap().is_empty());
        file.apply_change(MemoryChange::Add("use\n  tabs\u{7}"), "2026-11-30 in session a")
            .unwrap();
        file.apply_change(MemoryChange::Add("no (said x) mocks"), "2026-11-30 in session b")
            .unwrap();
        let lines = file.lines().unwrap();
        assert_eq!(lines[0], "use tabs (said 2026-11-30 in session a)");
        assert_eq!(text_of_line(&lines[1]), "no (said x) mocks");
        let mode = fs::metadata(file.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        file.apply_change(MemoryChange::Edit(1, "use spaces"), "2026-12-01").unwrap();
        file.apply_change(MemoryChange::Delete(2), "").unwrap();
        assert_eq!(file.lines().unwrap(), ["use spaces (said 2026-12-01)"]);
        file.apply_change(MemoryChange::Clear, "").unwrap();
        assert!(file.lines().unwrap().is_empty());
    }

    #[test]
    fn invalid_memory_change_is_an_error_and_changes_nothing() {
        let (_folder, file) = file();
        file.apply_change(MemoryChange::Add("one"), "d").unwrap();
        let long = "x".repeat(MAX_CHARS + 1);
        for (change, part) in [
            (MemoryChange::Add(" \n"), "nothing to remember"),
            (MemoryChange::Add(&long), "at most 300 characters"),
            (MemoryChange::Edit(2, "x"), "there is no line 2"),
            (MemoryChange::Delete(0), "there is no line 0"),
        ] {
            let error = file.apply_change(change, "d").unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        assert_eq!(file.lines().unwrap().len(), 1);
    }

    #[test]
    fn concurrent_memory_changes_lose_no_line_and_stop_at_the_limit() {
        let (_folder, file) = file();
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    (0..10).for_each(|_| drop(file.apply_change(MemoryChange::Add("x"), "d")));
                });
            }
        });
        assert_eq!(file.lines().unwrap().len(), MAX_LINES);
        let full = file.apply_change(MemoryChange::Add("x"), "d").unwrap_err();
        assert!(matches!(full, MemoryError::Full), "{full}");
    }
}
