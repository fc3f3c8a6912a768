//! Reads what git writes about a change, and shows it to a model with the numbers of its lines.
//!
//! Lines of a hunk are counted, so that no line of a file passes for a header.

use std::fmt::Write as _;

use gnoma_core::{
    hunk_reader::{HunkReader, Side},
    text_truncation,
};

/// Bytes of a change that a model is shown; files behind that are left out.
const MAX_SHOWN_BYTES: usize = 256 << 10;
/// Bytes of one line that a model is shown.
const MAX_LINE_BYTES: usize = 1_000;

/// A file of a change.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ChangedFile {
    /// The name of the file after the change, from the root of the repository.
    pub path: String,
    /// The reason why the file has no lines, if it has none.
    pub about: &'static str,
    lines: Vec<DiffLine>,
}

#[derive(Debug, PartialEq, Eq)]
struct DiffLine {
    mark: char,
    /// The line's number after the change; 0 for a removed line.
    number: u32,
    text: String,
}

impl ChangedFile {
    /// True if a comment can stand at the line: it is in the change, and not removed.
    pub(super) fn has_line(&self, number: u32) -> bool {
        number > 0 && self.lines.iter().any(|line| line.number == number)
    }

    fn render_diff(&self) -> String {
        let Self { path, about, lines } = self;
        let mut text = format!("=== {path:?}{about}\n");
        for DiffLine { mark, number, text: line } in lines {
            let number = if *number == 0 { String::new() } else { number.to_string() };
            let line = text_truncation::word_prefix(line, MAX_LINE_BYTES);
            let _infallible = writeln!(text, "{mark}{number:>6} | {line}");
        }
        text
    }
}

/// Parses the output of `git diff` into the files of the change.
pub fn parse(diff: &[u8]) -> Vec<ChangedFile> {
    let mut files: Vec<ChangedFile> = Vec::new();
    let mut hunk = HunkReader::default();
    for line in diff.split(|byte| *byte == b'\n') {
        let line = String::from_utf8_lossy(line);
        if !hunk.is_in_hunk()
            && let Some(names) = line.strip_prefix("diff --git ")
        {
            let path = parse_git_name(common_name(names).unwrap_or(names), "a/");
            files.push(ChangedFile { path, about: " (no lines)", lines: Vec::new() });
            continue;
        }
        let Some(file) = files.last_mut() else { continue };
        if !hunk.is_in_hunk() {
            if hunk.read_header(&line) {
                file.about = "";
            } else {
                apply_header_line(&line, file);
            }
            continue;
        }
        // Else it says that the last line has no end.
        if let Some((side, number)) = hunk.read_line(&line) {
            let (mark, number) = match side {
                Side::Added => ('+', number),
                Side::Removed => ('-', 0),
                Side::Same => (' ', number),
            };
            let number = u32::try_from(number).unwrap_or_default();
            let text = line.get(1..).unwrap_or_default().to_owned();
            file.lines.push(DiffLine { mark, number, text });
        }
    }
    files
}

/// A line before the hunks of a file.
fn apply_header_line(line: &str, file: &mut ChangedFile) {
    if let Some(path) = line.strip_prefix("+++ ").filter(|path| *path != "/dev/null") {
        file.path = parse_git_name(path, "b/");
    } else if let Some(path) = line.strip_prefix("rename to ") {
        file.path = parse_git_name(path, "");
    } else if line.starts_with("Binary files ") {
        file.about = " (binary)";
    } else if line.starts_with("deleted file") {
        file.about = " (deleted)";
    }
}

/// The name in `a/NAME b/NAME`.
fn common_name(names: &str) -> Option<&str> {
    let (first, second) = (names.get(..names.len() / 2)?, names.get(names.len() / 2 + 1..)?);
    let bare = |name: &str| name.trim_matches('"').get(2..).map(str::to_owned);
    (bare(first) == bare(second)).then_some(first)
}

/// A name as git writes it: with a prefix, in quotes where it has odd characters, a tab behind blanks.
fn parse_git_name(written: &str, prefix: &str) -> String {
    let written = written.strip_suffix('\t').unwrap_or(written);
    let quoted = written.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let bare = quoted.map_or_else(|| written.to_owned(), unquote_name);
    bare.strip_prefix(prefix).map(str::to_owned).unwrap_or(bare)
}

/// A name without its quotes, as the language C has them.
fn unquote_name(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next() {
            Some(first @ b'0'..=b'3') => {
                let mut digit = || rest.next().unwrap_or(b'0').wrapping_sub(b'0') & 7;
                let (second, third) = (digit(), digit());
                bytes.push((first - b'0') << 6 | second << 3 | third);
            }
            Some(b'n') => bytes.push(b'\n'),
            Some(b't') => bytes.push(b'\t'),
            Some(b'r') => bytes.push(b'\r'),
            Some(other) => bytes.push(other),
            None => (),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the change as a model is shown it, and the names of the files that are left out because it is too long.
pub fn render_changes(files: &[ChangedFile]) -> (String, Vec<String>) {
    let (mut text, mut left_out) = (String::new(), Vec::new());
    for file in files {
        let more = file.render_diff();
        if text.len() + more.len() > MAX_SHOWN_BYTES {
            left_out.push(file.path.clone());
        } else {
            text.push_str(&more);
        }
    }
    (text, left_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "diff --git a/src/a.rs b/src/a.rs\nindex 1..2 100644\n--- a/src/a.rs\n+++ b/src/a.rs\n\
        @@ -2,3 +2,4 @@ fn main() {\n one\n--- a/gone\n+++ b/elsewhere\n+diff --git a/x b/x\n three\n\
        @@ -20 +21,0 @@\n-last\n\\ No newline at end of file\n\
        diff --git a/p q.txt b/p q.txt\nnew file mode 100644\n--- /dev/null\n+++ b/p q.txt\t\n@@ -0,0 +1,2 @@\n+a\n+b\n\
        diff --git a/i.png b/i.png\nBinary files a/i.png and b/i.png differ\n\
        diff --git a/o b/n\nsimilarity index 100%\nrename from o\nrename to n\n\
        diff --git \"a/t\\tb\\303\\274\\\"\" \"b/t\\tb\\303\\274\\\"\"\nold mode 100644\nnew mode 100755\n";

    #[test]
    fn diff_content_lines_are_not_taken_for_headers() {
        let files = parse(HOSTILE.as_bytes());
        let names: Vec<_> = files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(names, ["src/a.rs", "p q.txt", "i.png", "n", "t\tbü\""]);
        let at =
            |file: usize| (0..30).filter(|line| files[file].has_line(*line)).collect::<Vec<_>>();
        assert_eq!(at(0), [2, 3, 4, 5]);
        assert_eq!(at(1), [1, 2]);
        assert!(at(2).is_empty() && at(3).is_empty());
    }

    #[test]
    fn rendered_diff_has_line_numbers_and_a_size_limit() {
        let files = parse(HOSTILE.as_bytes());
        let (text, left_out) = render_changes(&files);
        assert!(
            text.contains(
                "=== \"src/a.rs\"\n      2 | one\n-       | -- a/gone\n+     3 | ++ b/elsewhere\n"
            ),
            "{text}"
        );
        assert!(
            text.contains("=== \"i.png\" (binary)\n=== \"n\" (no lines)\n=== \"t\\tbü\\\"\""),
            "{text}"
        );
        assert!(left_out.is_empty());
        let many = format!(
            "diff --git a/big b/big\n--- a/big\n+++ b/big\n@@ -0,0 +1,9000 @@\n{}{HOSTILE}",
            "+0123456789012345678901234567890\n".repeat(9_000)
        );
        let (text, left_out) = render_changes(&parse(many.as_bytes()));
        assert_eq!(left_out, ["big"]);
        assert!(text.contains("src/a.rs"));
    }

    #[test]
    fn malformed_diff_does_not_panic() {
        for text in [
            "@@ -1 +1 @@\n+x",
            "diff --git \n@@ -4294967295,4294967295 +4294967295,2 @@\n+a\n+b\n+c",
            "diff --git ü",
        ] {
            parse(text.as_bytes());
        }
    }
}
