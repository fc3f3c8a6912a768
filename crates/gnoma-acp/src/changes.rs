//! A unified diff as the protocol shows changes: for each hunk the file and its text before and after.

use gnoma_core::json_value::json;
use serde_json::Value;

use crate::tools::normalize_path;

/// Most hunks that are shown of one call.
const MAX_HUNKS: usize = 200;

/// The changes of a diff. `path` is the file where the call names one; a diff itself names files from the
/// folder on, and those elsewhere from the root on, without saying which.
pub(crate) fn of_diff(diff: &str, path: Option<&str>, cwd: &str) -> Vec<Value> {
    let mut reader = HunkReader { path, cwd, ..HunkReader::default() };
    for line in diff.split_inclusive('\n') {
        reader.read_line(line);
    }
    reader.end_hunk();
    let is_of_one = reader.files <= 1;
    if !is_of_one && path.is_some() {
        // Several files: only the diff itself can tell which.
        return of_diff(diff, None, cwd);
    }
    reader.found
}

#[derive(Default)]
struct HunkReader<'a> {
    path: Option<&'a str>,
    cwd: &'a str,
    file: String,
    is_new: bool,
    is_gone: bool,
    files: usize,
    hunk: Option<Hunk>,
    found: Vec<Value>,
}

#[derive(Default)]
struct Hunk {
    before: String,
    after: String,
    /// Lines that are still to come, before and after.
    left: (usize, usize),
}

impl HunkReader<'_> {
    fn read_line(&mut self, line: &str) {
        if let Some(hunk) = self.hunk.as_mut().filter(|hunk| hunk.left != (0, 0)) {
            return hunk.add_line(line);
        }
        let text = line.trim_end_matches('\n');
        if let Some(old) = text.strip_prefix("--- ") {
            self.end_hunk();
            self.is_new = old.trim() == "/dev/null";
            self.file = parse_file_name(old);
        } else if let Some(new) = text.strip_prefix("+++ ") {
            self.files += 1;
            self.is_gone = new.trim() == "/dev/null";
            if !self.is_gone {
                self.file = parse_file_name(new);
            }
        } else if let Some(left) = text.strip_prefix("@@ -").and_then(parse_line_counts) {
            self.end_hunk();
            self.hunk = Some(Hunk { left, ..Hunk::default() });
        }
    }

    fn end_hunk(&mut self) {
        let Some(Hunk { before, after, .. }) = self.hunk.take() else { return };
        if self.found.len() >= MAX_HUNKS {
            return;
        }
        let path = match self.path {
            Some(path) => path.to_owned(),
            None => normalize_path(self.cwd, &self.file),
        };
        let before = (!self.is_new).then_some(before);
        self.found
            .push(json!({ "type": "diff", "path": path, "oldText": before, "newText": after }));
    }
}

impl Hunk {
    fn add_line(&mut self, line: &str) {
        let (mark, rest) = line.split_at_checked(1).unwrap_or(("", ""));
        let (before, after) = &mut self.left;
        match mark {
            "-" => {
                self.before.push_str(rest);
                *before = before.saturating_sub(1);
            }
            "+" => {
                self.after.push_str(rest);
                *after = after.saturating_sub(1);
            }
            " " => {
                self.before.push_str(rest);
                self.after.push_str(rest);
                (*before, *after) = (before.saturating_sub(1), after.saturating_sub(1));
            }
            "\\" => (),
            // The diff was cut: what is there is shown.
            _ => self.left = (0, 0),
        }
    }
}

/// The name in a header, without what stands for the side and a time behind it.
fn parse_file_name(text: &str) -> String {
    let text = text.split('\t').next().unwrap_or_default().trim();
    let name = text.strip_prefix("a/").or_else(|| text.strip_prefix("b/")).unwrap_or(text);
    name.trim_matches('"').to_owned()
}

/// The numbers of lines of `1,2 +3,4 @@`.
fn parse_line_counts(text: &str) -> Option<(usize, usize)> {
    let (old, rest) = text.split_once(" +")?;
    let new = rest.split(' ').next()?;
    let count = |range: &str| match range.split_once(',') {
        Some((_, count)) => count.parse().ok(),
        None => Some(1),
    };
    Some((count(old)?, count(new)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_diff_hunk_is_an_acp_diff_of_its_file() {
        let diff = "--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n@@ -9 +9,2 @@\n nine\n+--- ten\n\
            --- /dev/null\n+++ b/new.txt\n@@ -0,0 +1,1 @@\n+hi\n\\ No newline at end of file\n";
        let found = of_diff(diff, Some("/ignored"), "/p");
        let change = |path: &str, old: Option<&str>, new: &str| json!({ "type": "diff", "path": path, "oldText": old, "newText": new });
        assert_eq!(
            found,
            [
                change("/p/src/a.rs", Some("one\ntwo\nthree\n"), "one\n2\nthree\n"),
                change("/p/src/a.rs", Some("nine\n"), "nine\n--- ten\n"),
                change("/p/new.txt", None, "hi\n"),
            ]
        );
    }

    #[test]
    fn diff_path_uses_the_absolute_path_of_the_call() {
        let diff = "--- a/x/y.txt\n+++ b/x/y.txt\n@@ -1 +0,0 @@\n-a\n";
        let found = of_diff(diff, Some("/x/y.txt"), "/p");
        assert_eq!(found[0]["path"], "/x/y.txt");
        assert_eq!(found[0]["newText"], "");
    }

    #[test]
    fn malformed_diff_shows_nothing_and_a_truncated_one_its_start() {
        assert!(of_diff("{\"command\":\"ls\"}", None, "/p").is_empty());
        assert!(of_diff("@@ nonsense @@\n", None, "/p").is_empty());
        let cut = of_diff("--- a/f\n+++ b/f\n@@ -1,9 +1,9 @@\n a\n… 90 more lines\n", None, "/p");
        assert_eq!(cut[0]["oldText"], "a\n");
    }
}
