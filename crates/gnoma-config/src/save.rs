//! Changes a configuration file on disk, whole or not at all. How its text changes is decided in
//! [`crate::edit`].

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use gnoma_core::private_file::FileReplacement;

use crate::{
    edit::{self, Change, EditError},
    finding::{ConfigError, system_words},
    key::KeyPath,
    load,
    paths::{self, MAX_CONFIG_BYTES},
    schema::{self, Kind},
};

/// The text of a file before and after a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedFile {
    /// The text before; `None` where there was no file.
    pub before: Option<String>,
    /// The text after the change.
    pub after: String,
}

impl SavedFile {
    /// Reports whether the change alters the text of the file.
    #[must_use]
    pub fn has_changed(&self) -> bool {
        self.before.as_deref().unwrap_or_default() != self.after
    }
}

/// The reason why a file was not changed. The file is as it was. The error's text form is a sentence with the cause
/// and, where the cause does not say it, what to do.
#[derive(thiserror::Error)]
pub enum SaveError {
    /// The file cannot be read.
    #[error("it cannot be read: {}", system_words(.0))]
    Unreadable(io::Error),
    /// The file is not UTF-8 text.
    #[error("it is not UTF-8 text; fix it or move it away first")]
    NotText,
    /// The file is a link to a target outside its folder.
    #[error("it is a link to {}, outside its folder; change that file, or replace the link with a file", .to.display())]
    Link {
        /// The target of the link.
        to: PathBuf,
    },
    /// The change cannot be made in this text.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// With the change it could not be used as a configuration.
    #[error("{}", .0.sentences())]
    Invalid(ConfigError),
    /// With the change it would be larger than what is read.
    #[error("it would be larger than {MAX_CONFIG_BYTES} bytes; remove something first")]
    TooLarge,
    /// Somebody else changed it at the same time.
    #[error("another program changed it at the same time; retry")]
    ChangedMeanwhile,
    /// The file cannot be written.
    #[error("it cannot be written: {}", system_words(.0))]
    Unwritable(io::Error),
}

gnoma_core::debug_as_display!(SaveError);

/// Makes all `changes` in the file at `path`, which need not be there. A new file is for its owner
/// alone; a file that gets a key becomes so, and any other keeps its permissions.
///
/// # Errors
/// Why none was made.
pub fn save_changes(path: &Path, changes: &[Change]) -> Result<SavedFile, SaveError> {
    let path = resolve_link(path)?;
    let before = read_text(&path)?;
    let after = edit::apply_changes(before.as_deref().unwrap_or_default(), changes)?;
    let saved = SavedFile { before, after };
    if !saved.has_changed() {
        return Ok(saved);
    }
    if saved.after.len() as u64 > MAX_CONFIG_BYTES {
        return Err(SaveError::TooLarge);
    }
    if let Err(errors) = load::check_user_file(&saved.after) {
        let before = load::check_user_file(saved.before.as_deref().unwrap_or_default());
        let count_before = before.err().map_or(0, |errors| errors.count_errors());
        // A change that removes one of several errors is a step of a repair.
        if errors.count_errors() >= count_before {
            return Err(SaveError::Invalid(errors));
        }
    }
    let has_key = changes.iter().any(is_secret);
    replace_file(&path, &saved, has_key)?;
    Ok(saved)
}

/// The file that a path means: links within a folder are followed and stay.
fn resolve_link(path: &Path) -> Result<PathBuf, SaveError> {
    if !path.is_symlink() {
        return Ok(path.to_owned());
    }
    let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
    match path.canonicalize() {
        Ok(to) if to.parent() == folder.as_deref() => Ok(to),
        Ok(to) => Err(SaveError::Link { to }),
        Err(_) => Err(SaveError::Link { to: fs::read_link(path).unwrap_or_default() }),
    }
}

fn read_text(path: &Path) -> Result<Option<String>, SaveError> {
    let content = paths::read_config_file(path).map_err(SaveError::Unreadable)?;
    content.map(String::from_utf8).transpose().map_err(|_| SaveError::NotText)
}

fn is_secret(change: &Change) -> bool {
    let Change::Set { path, .. } = change else { return false };
    let path = path.iter().fold(KeyPath::default(), |path, name| path.with_name(name));
    schema::find_row(&path).is_some_and(|row| matches!(row.kind, Kind::Secret))
}

/// Puts the new text in the file's place: whoever reads meanwhile sees the old one or the new one.
fn replace_file(path: &Path, saved: &SavedFile, has_key: bool) -> Result<(), SaveError> {
    fs::create_dir_all(path.parent().unwrap_or(Path::new("."))).map_err(SaveError::Unwritable)?;
    let before = path.metadata().ok().filter(|_| !has_key).map(|facts| facts.permissions());
    let new = FileReplacement::prepare(path, saved.after.as_bytes(), before);
    let new = new.map_err(SaveError::Unwritable)?;
    if read_text(path)? != saved.before {
        return Err(SaveError::ChangedMeanwhile);
    }
    new.commit().map_err(SaveError::Unwritable)
}

#[cfg(test)]
mod tests {
    use std::{
        fs::Permissions,
        os::unix::fs::{PermissionsExt as _, symlink},
    };

    use super::*;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o777
    }

    fn set(path: &Path, key: &str, value: &str) -> Result<SavedFile, SaveError> {
        save_changes(path, &[Change::set_path(&key.split('.').collect::<Vec<_>>(), value)])
    }

    #[test]
    fn saved_file_preserves_its_permissions_until_it_contains_an_api_key() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("new/config.toml");
        assert_eq!(set(&file, "tui.theme", "mono").unwrap().before, None);
        assert_eq!(mode(&file), 0o600);
        fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        set(&file, "tui.theme", "ember").unwrap();
        assert_eq!(mode(&file), 0o644);
        assert!(!set(&file, "tui.theme", "ember").unwrap().has_changed());
        set(&file, "provider.api_keys.mistral", "k").unwrap();
        assert_eq!(mode(&file), 0o600);
        let text = "[tui]\ntheme = \"ember\"\n\n[provider.api_keys]\nmistral = \"k\"\n";
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
        assert_eq!(
            fs::read_dir(file.parent().unwrap()).unwrap().count(),
            1,
            "nothing is left over"
        );
    }

    #[test]
    fn invalid_settings_are_not_saved() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.toml");
        let refused = set(&file, "provider.max_tokens", "many").unwrap_err().to_string();
        assert!(refused.contains("`provider.max_tokens` must be"), "{refused}");
        assert!(!file.exists());
        for (text, why) in
            [(&b"[a"[..], "line 1"), (b"\xff", "UTF-8"), (b"tui = 1\n", "`tui` is set")]
        {
            fs::write(&file, text).unwrap();
            let refused = set(&file, "tui.theme", "mono").unwrap_err().to_string();
            assert!(refused.contains(why), "{refused}");
            assert_eq!(fs::read(&file).unwrap(), text);
        }
        let half = usize::try_from(MAX_CONFIG_BYTES).unwrap() / 2;
        fs::write(&file, format!("#{}\n", "x".repeat(half))).unwrap();
        let refused = set(&file, "tui.theme", &"x".repeat(half)).unwrap_err();
        assert!(matches!(refused, SaveError::TooLarge));
    }

    #[test]
    fn saving_a_change_that_fixes_one_of_several_errors_succeeds() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.toml");
        fs::write(&file, "[router.caps]\nday = \"5 EUR\"\nmonth = \"9 CHF\"\n").unwrap();
        let refused = set(&file, "tui.theme", "mono").unwrap_err().to_string();
        assert!(refused.contains("`router.exchange.EUR`"), "{refused}");
        for currency in ["EUR", "CHF"] {
            let rate = [Change::set_path(&["router", "exchange", currency], 1.1)];
            save_changes(&file, &rate).unwrap();
        }
        set(&file, "tui.theme", "mono").unwrap();
    }

    #[test]
    fn symlinked_config_is_saved_only_within_its_folder() {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let link = folder.path().join("config.toml");
        for to in [other.path().join("config.toml"), other.path().join("nothing")] {
            symlink(&to, &link).unwrap();
            fs::write(other.path().join("config.toml"), "").unwrap();
            let refused = set(&link, "tui.theme", "mono").unwrap_err().to_string();
            assert!(refused.contains(&format!("it is a link to {}", to.display())), "{refused}");
            assert_eq!(fs::read(other.path().join("config.toml")).unwrap(), b"");
            fs::remove_file(&link).unwrap();
        }
        fs::write(folder.path().join("real.toml"), "").unwrap();
        symlink("real.toml", &link).unwrap();
        set(&link, "tui.vim", "true").unwrap_err();
        set(&link, "tui.theme", "mono").unwrap();
        assert!(link.is_symlink() && fs::read(folder.path().join("real.toml")).unwrap().len() > 9);
    }
}
