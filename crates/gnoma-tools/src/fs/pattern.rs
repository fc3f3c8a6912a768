//! Which files a glob means.
//!
//! `*` and `?` stay within one name, `**` spans folders, `{a,b}` and `[ab]` choose. A glob without `/`
//! is for the file's name at any depth, one with `/` for the path below the searched folder.

use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};

use super::Refusal;

/// A compiled glob.
pub(super) struct Pattern {
    matcher: GlobMatcher,
    is_for_names: bool,
}

impl Pattern {
    /// Compiles `glob`, to be used below the folder `root`.
    pub(super) fn new(glob: &str, root: &Path) -> Result<Self, Refusal> {
        let relative = relative(glob, root)?;
        let matcher = GlobBuilder::new(relative)
            .literal_separator(true)
            .build()
            .map_err(|error| Refusal::Failed(format!("`{glob}` is not a valid glob: {error}")))?
            .compile_matcher();
        Ok(Self { matcher, is_for_names: !relative.contains('/') })
    }

    /// Whether the file at `relative`, seen from the searched folder, is meant.
    pub(super) fn matches(&self, relative: &Path) -> bool {
        if self.is_for_names {
            let name = relative.file_name();
            name.is_some_and(|name| self.matcher.is_match(Path::new(name)))
        } else {
            self.matcher.is_match(relative)
        }
    }
}

/// `glob` as seen from `root`: some models write whole paths.
fn relative<'a>(glob: &'a str, root: &Path) -> Result<&'a str, Refusal> {
    let glob = glob.trim_start_matches("./");
    if glob.is_empty() {
        return Err(Refusal::Failed("the glob is empty; `**/*` means every file".to_owned()));
    }
    if !glob.starts_with('/') {
        return Ok(glob);
    }
    let below = root.to_str().and_then(|root| glob.strip_prefix(root));
    below
        .map(|glob| glob.trim_start_matches('/'))
        .filter(|glob| !glob.is_empty())
        .ok_or_else(|| {
            Refusal::Failed(format!(
                "`{glob}` leads out of the searched folder; give the folder as `path` and a glob below it"
            ))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(glob: &str, path: &str) -> bool {
        let pattern = Pattern::new(glob, Path::new("/root")).unwrap();
        pattern.matches(Path::new(path))
    }

    #[test]
    fn globs_mean_names_or_paths() {
        assert!(matches("*.rs", "a/b/c.rs"));
        assert!(matches("**/*.rs", "c.rs"));
        assert!(matches("src/**/*.rs", "src/a/b.rs"));
        assert!(matches("src/*.{rs,toml}", "src/a.toml"));
        assert!(matches("./src/*.rs", "src/a.rs"));
        assert!(matches("/root/src/*.rs", "src/a.rs"));
        assert!(!matches("src/*.rs", "src/a/b.rs"));
        assert!(!matches("src/*.rs", "other/src/a.rs"));
    }

    #[test]
    fn bad_globs_are_explained() {
        let words = |glob| match Pattern::new(glob, Path::new("/root")) {
            Err(Refusal::Failed(why)) => why,
            _ => String::new(),
        };
        assert!(words("a[").contains("not a valid glob"));
        assert!(words("/elsewhere/*.rs").contains("give the folder"));
        assert!(words("").contains("empty"));
    }
}
