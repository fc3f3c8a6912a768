//! Unified diffs of two versions of a file, for people and for the model.

use std::time::{Duration, Instant};

use gnoma_core::diff::{cut_line, unified_diff};

use super::{
    content_kind::{ContentKind, sort_of},
    encoding::TextForm,
    text::truncate_chars,
};

/// Lines around a change.
const CONTEXT_LINES: usize = 3;
/// Most lines a diff shows to people.
const MAX_LINES_FOR_PEOPLE: usize = 1000;
/// Most lines a diff shows to the model, which wrote the change itself.
const MAX_LINES_FOR_MODEL: usize = 60;
/// Characters of a line that are shown.
const MAX_LINE_CHARS: usize = 500;
/// After this long the diff is made coarse instead of small.
const PATIENCE: Duration = Duration::from_millis(200);

/// The differences of two versions.
pub(crate) struct Diff {
    header: String,
    hunks: String,
}

impl Diff {
    /// From `old` (`None`: no such file) to `new`; bytes that are not UTF-8 are shown as `U+FFFD`.
    pub(crate) fn from_contents(name: &str, old: Option<&[u8]>, new: &[u8]) -> Self {
        let name = name.trim_start_matches('/');
        let before = old.map_or_else(|| "/dev/null".to_owned(), |_| format!("a/{name}"));
        Self {
            header: format!("--- {before}\n+++ b/{name}\n"),
            hunks: render_hunks(old.unwrap_or_default(), new),
        }
    }

    /// Of a file that is deleted.
    pub(crate) fn from_deletion(name: &str, old: &[u8]) -> Self {
        let name = name.trim_start_matches('/');
        Self { header: format!("--- a/{name}\n+++ /dev/null\n"), hunks: render_hunks(old, &[]) }
    }

    /// The whole diff, or nothing when there is nothing to show.
    pub(crate) fn for_people(&self) -> Option<String> {
        if self.hunks.is_empty() {
            return None;
        }
        let shown = first_lines(&self.hunks, MAX_LINES_FOR_PEOPLE);
        let left = || self.hunks.lines().skip(MAX_LINES_FOR_PEOPLE);
        let cut = match left().count() {
            0 => String::new(),
            count => {
                let begin_with = |sign| left().filter(|line| line.starts_with(sign)).count();
                format!("{}\n", cut_line(count, begin_with('+'), begin_with('-')))
            }
        };
        Some(format!("{}{shown}{cut}", self.header))
    }

    /// Returns the hunks alone, for the model.
    pub(super) fn for_model(&self) -> String {
        let shown = first_lines(&self.hunks, MAX_LINES_FOR_MODEL);
        match self.hunks.lines().skip(MAX_LINES_FOR_MODEL).count() {
            0 => shown,
            left => format!("{shown}[{left} more diff lines]\n"),
        }
    }
}

fn render_hunks(old: &[u8], new: &[u8]) -> String {
    // What marks or encodes a text is no part of its lines.
    let ((_, old), (_, new)) = (TextForm::decode(old), TextForm::decode(new));
    if sort_of(&old) != ContentKind::Text || sort_of(&new) != ContentKind::Text {
        return String::new();
    }
    let (old, new) = (String::from_utf8_lossy(&old), String::from_utf8_lossy(&new));
    unified_diff(&old, &new, CONTEXT_LINES, Instant::now().checked_add(PATIENCE))
}

fn first_lines(text: &str, max: usize) -> String {
    let mut shown = String::new();
    for line in text.lines().take(max) {
        let (kept, was_cut) = truncate_chars(line, MAX_LINE_CHARS);
        shown.push_str(kept);
        shown.push_str(if was_cut { "…\n" } else { "\n" });
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diff_has_file_headers_and_three_context_lines() {
        let old = b"1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let new = b"1\n2\n3\n4\nfive\n6\n7\n8\n9\n";
        let diff = Diff::from_contents("n.txt", Some(old), new);
        let hunk = "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n";
        assert_eq!(diff.for_model(), hunk);
        assert_eq!(diff.for_people().unwrap(), format!("--- a/n.txt\n+++ b/n.txt\n{hunk}"));
    }

    #[test]
    fn diff_shows_a_missing_newline_at_end_of_file() {
        let diff = Diff::from_contents("a", Some(b"x"), b"x\n");
        assert!(diff.for_model().contains("\\ No newline at end of file"));
    }

    #[test]
    fn diff_omits_bom_and_decodes_utf16() {
        let diff =
            Diff::from_contents("a", Some(b"\xef\xbb\xbfx\n"), b"\xef\xbb\xbfy\n").for_model();
        assert_eq!(diff, "@@ -1 +1 @@\n-x\n+y\n");
        let diff =
            Diff::from_contents("a", Some(b"\xff\xfex\0\n\0"), b"\xff\xfe\xe9\0\n\0").for_model();
        assert_eq!(diff, "@@ -1 +1 @@\n-x\n+é\n");
    }

    #[test]
    fn diff_of_a_deleted_file_names_the_file() {
        let diff = Diff::from_deletion("a/out", b"x\n").for_people().unwrap();
        assert_eq!(diff, "--- a/a/out\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n");
    }

    #[test]
    fn long_diff_says_how_many_lines_are_omitted() {
        let new = "line\n".repeat(MAX_LINES_FOR_PEOPLE + 5);
        let diff = Diff::from_contents("a", None, new.as_bytes());
        let people = diff.for_people().unwrap();
        assert!(people.starts_with("--- /dev/null\n"));
        assert!(people.ends_with("[6 more diff lines: +6 -0]\n"));
        assert!(diff.for_model().ends_with(" more diff lines]\n"));
        assert!(diff.for_model().len() < people.len());
        let other = Diff::from_contents("a", Some(new.as_bytes()), b"other\n");
        let people = other.for_people().unwrap();
        let left = people.lines().last().and_then(gnoma_core::diff::parse_cut_line).unwrap();
        let shown = |sign| people.lines().skip(2).filter(|line| line.starts_with(sign)).count();
        assert_eq!((shown('+') + left.0, shown('-') + left.1), (1, MAX_LINES_FOR_PEOPLE + 5));
    }

    #[test]
    fn equal_and_binary_versions_have_no_diff() {
        assert_eq!(Diff::from_contents("a", Some(b"x"), b"x").for_people(), None);
        assert_eq!(Diff::from_contents("a", Some(b"x\0"), b"y").for_people(), None);
    }
}
