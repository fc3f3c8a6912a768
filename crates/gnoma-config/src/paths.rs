//! Paths of configuration files, and how they are read.

use std::{
    fs::Metadata,
    io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use gnoma_core::bounded_file;

/// Largest configuration file that is read.
pub const MAX_CONFIG_BYTES: u64 = 256 * 1024;

const FILE: &str = "config.toml";
const PROFILES: &str = "profiles";
const PROJECT: &str = ".gnoma";
/// Entries that make a folder the root of a project.
const ROOT_MARKS: [&str; 2] = [".git", PROJECT];

/// The user's own file.
#[must_use]
pub fn user_file(config_dir: &Path) -> PathBuf {
    config_dir.join(FILE)
}

/// The folder of the profiles.
#[must_use]
pub fn profiles_dir(config_dir: &Path) -> PathBuf {
    config_dir.join(PROFILES)
}

/// Returns the path of a profile's file.
#[must_use]
pub fn profile_file(config_dir: &Path, name: &str) -> PathBuf {
    profiles_dir(config_dir).join(format!("{name}.toml"))
}

/// Returns the path of a project's configuration file.
#[must_use]
pub fn project_file(project_root: &Path) -> PathBuf {
    project_root.join(PROJECT).join(FILE)
}

/// The first folder from `cwd` upwards that holds `.git` or `.gnoma`. The user's own configuration
/// folder is no project.
#[must_use]
pub fn project_root(cwd: &Path, config_dir: &Path) -> Option<PathBuf> {
    let is_root = |folder: &Path| {
        ROOT_MARKS.iter().any(|mark| {
            let mark = folder.join(mark);
            mark.exists() && !is_stand_in(&mark) && !is_same(&mark, config_dir)
        })
    };
    cwd.ancestors()
        .find(|folder| !is_same(folder, config_dir) && is_root(folder))
        .map(Path::to_path_buf)
}

/// Reports whether `mark` is a folder that the sandbox of a running program has put in the place of something
/// absent. No other folder has such a mode.
fn is_stand_in(mark: &Path) -> bool {
    const MODES: u32 = 0o7777;
    const OF_STAND_INS: u32 = 0o1700;
    let is_one =
        |facts: Metadata| facts.is_dir() && facts.permissions().mode() & MODES == OF_STAND_INS;
    mark.symlink_metadata().is_ok_and(is_one)
}

fn is_same(left: &Path, right: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    real(left) == real(right)
}

/// The file that stands where `folder` or one of the folders around it would be.
pub(crate) fn file_in_place_of(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|place| place.exists()).filter(|place| place.is_file())
}

/// The content of the file at `path`, or `None` when there is none.
///
/// # Errors
/// When it cannot be read, is no plain file, or is larger than [`MAX_CONFIG_BYTES`].
pub fn read_config_file(path: &Path) -> io::Result<Option<Vec<u8>>> {
    bounded_file::read(path, MAX_CONFIG_BYTES)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_nearest_marked_folder_is_the_root() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        let config = home.join(".config/gnoma");
        fs::create_dir_all(home.join("outer/.git")).unwrap();
        fs::create_dir_all(home.join("outer/inner/.gnoma")).unwrap();
        fs::create_dir_all(home.join("outer/inner/deep")).unwrap();
        fs::create_dir_all(config.join(".git")).unwrap();
        let root = |cwd: &str| project_root(&home.join(cwd), &config);
        assert_eq!(root("outer"), Some(home.join("outer")));
        assert_eq!(root("outer/inner/deep"), Some(home.join("outer/inner")));
        assert_eq!(root(".config/gnoma"), None);
        // What the sandbox of a running program shows in place of an absent one is none.
        let stand_in = home.join("outer/inner/deep/.git");
        fs::create_dir(&stand_in).unwrap();
        fs::set_permissions(&stand_in, fs::Permissions::from_mode(0o1700)).unwrap();
        assert_eq!(root("outer/inner/deep"), Some(home.join("outer/inner")));
    }

    #[test]
    fn only_regular_files_below_the_size_limit_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("f");
        assert_eq!(read_config_file(&file).unwrap(), None);
        fs::write(&file, "a = 1").unwrap();
        assert_eq!(read_config_file(&file).unwrap().as_deref(), Some(b"a = 1".as_slice()));
        assert_eq!(read_config_file(&file.join("below-a-file")).unwrap(), None);
        assert!(read_config_file(folder.path()).is_err());
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert_eq!(read_config_file(&pipe).unwrap_err().to_string(), "it is not a regular file");
        fs::write(&file, vec![b' '; 1 + usize::try_from(MAX_CONFIG_BYTES).unwrap()]).unwrap();
        assert!(read_config_file(&file).is_err());
    }
}
