//! Expands `~` to a person's home folder in paths.

use std::path::{Path, PathBuf};

/// Returns what a written path means: `~` and what is below it in the home, any other path in `base`.
#[must_use]
pub fn expand(path: impl AsRef<Path>, home: Option<&Path>, base: &Path) -> PathBuf {
    let path = path.as_ref();
    match (path.strip_prefix("~"), home) {
        (Ok(below), Some(home)) => home.join(below),
        _ => base.join(path),
    }
}

/// Returns a path for people, with `~` for the home.
#[must_use]
pub fn shorten(path: &Path, home: Option<&Path>) -> PathBuf {
    match home.and_then(|home| path.strip_prefix(home).ok()) {
        Some(below) if below.as_os_str().is_empty() => PathBuf::from("~"),
        Some(below) => Path::new("~").join(below),
        None => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leading_tilde_expands_to_the_home_folder_and_back() {
        let home = Path::new("/home/ada");
        for (written, meant) in [
            ("~", "/home/ada"),
            ("~/a", "/home/ada/a"),
            ("~ada/a", "/work/~ada/a"),
            ("a/~", "/work/a/~"),
            ("/a", "/a"),
        ] {
            let path = expand(written, Some(home), Path::new("/work"));
            assert_eq!(path, Path::new(meant), "{written}");
        }
        assert_eq!(expand("~/a", None, Path::new("/work")), Path::new("/work/~/a"));
        for (path, shown) in
            [("/home/ada", "~"), ("/home/ada/a", "~/a"), ("/home/adam", "/home/adam")]
        {
            assert_eq!(shorten(Path::new(path), Some(home)).display().to_string(), shown);
        }
    }
}
