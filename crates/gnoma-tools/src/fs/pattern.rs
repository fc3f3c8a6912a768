//! Glob patterns of the file tools.
//!
//! `*` and `?` stay within one name, `**` spans folders, `{a,b}` and `[ab]` choose. A glob without `/`
//! is for the file's name at any depth, one with `/` for the path below the searched folder.

use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};
use gnoma_core::names::typed_form;

use super::Refusal;

/// A compiled glob that matches files.
pub(super) struct Pattern {
    matcher: GlobMatcher,
    /// For names as a keyboard types them, see [`typed_form`].
    typed: Option<GlobMatcher>,
    is_for_names: bool,
}

impl Pattern {
    /// Compiles `glob`, to be used below the folder `root`.
    pub(super) fn new(glob: &str, root: &Path) -> Result<Self, Refusal> {
        let relative = relative_glob(glob, root)?;
        let matcher = compile_glob(relative)
            .map_err(|error| Refusal::Failed(format!("`{glob}` is not a valid glob: {error}")))?;
        let typed = compile_glob(&typed_form(relative)).ok();
        Ok(Self { matcher, typed, is_for_names: !relative.contains('/') })
    }

    /// Reports whether the pattern means the file at `relative`, seen from the searched folder.
    pub(super) fn matches(&self, relative: &Path) -> bool {
        let Some(meant) =
            (if self.is_for_names { relative.file_name().map(Path::new) } else { Some(relative) })
        else {
            return false;
        };
        self.matcher.is_match(meant) || self.matches_as_typed(meant)
    }

    fn matches_as_typed(&self, path: &Path) -> bool {
        let Some((typed, path)) = self.typed.as_ref().zip(path.to_str()) else { return false };
        // Most names are plain: typed, they are what they were.
        if path.is_ascii() { typed.is_match(path) } else { typed.is_match(typed_form(path)) }
    }
}

fn compile_glob(glob: &str) -> Result<GlobMatcher, globset::Error> {
    Ok(GlobBuilder::new(glob).literal_separator(true).build()?.compile_matcher())
}

/// `glob` as seen from `root`: some models write whole paths.
fn relative_glob<'a>(glob: &'a str, root: &Path) -> Result<&'a str, Refusal> {
    let glob = glob.trim_start_matches("./");
    if glob.is_empty() {
        return Err(Refusal::Failed("the glob is empty; `**/*` means every file".to_owned()));
    }
    if glob == "~" || glob.starts_with("~/") {
        return Err(Refusal::Failed(format!(
            "`{glob}`: `~` is not for globs; give the folder as `path` and a glob below it"
        )));
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
    fn glob_without_slash_matches_file_names_and_with_slash_matches_paths() {
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
    fn glob_matches_unicode_spaces_and_quotes_as_typed() {
        assert!(matches("Shot * PM.png", "a/Shot 3.04\u{202f}PM.png"));
        assert!(matches("v\u{a0}*/cafe\u{301}.txt", "v 1/café.txt"));
        assert!(matches("*'s.txt", "it’s.txt"));
        assert!(!matches("Shot * AM.png", "Shot 3.04\u{202f}PM.png"));
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
        assert!(words("~/*.rs").contains("give the folder"));
    }
}
