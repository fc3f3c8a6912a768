//! `fs.grep`: lines that match a regular expression, in the order of their files.
//!
//! Files are searched one after the other, and the search ends when enough is found, so a broad pattern costs no
//! more than it shows. Binary, hidden and ignored files are not searched, nor are files whose names say that they
//! contain secrets, unless the call is about them.

use std::path::{Path, PathBuf};

use gnoma_core::{
    ToolCx, ToolSpec, text_truncation,
    tool::{Access, Tier, ToolOutput, TouchedResource},
};
use serde::Deserialize;

use super::{
    FileAnswer, FileTools, Refusal, open,
    pattern::Pattern,
    search::LineSearch,
    target::{TargetKind, relative_display},
    text::{StoppableReader, format_count},
    walk,
};
use crate::{args, line_pattern::LinePattern};

/// Matches shown when the call does not say.
const DEFAULT_RESULTS: usize = 250;
/// Bytes of text one call shows.
const MAX_SHOWN_BYTES: usize = 64 * 1024;
/// Bytes of one line that are shown.
const MAX_LINE_BYTES: usize = 400;
/// Bytes shown before the match in a line that is cut.
const LEAD_BYTES: usize = 100;
/// Files that are named among those left out.
const MAX_LEFT_OUT_NAMED: usize = 5;
/// Memory a compiled pattern may take.
const MAX_PATTERN_BYTES: usize = 10 << 20;

/// The arguments of a call of the tool.
#[derive(Deserialize)]
pub(super) struct GrepArguments {
    pattern: String,
    path: Option<String>,
    glob: Option<String>,
    max_results: Option<usize>,
}

pub(super) fn spec() -> ToolSpec {
    args::tool_spec(
        "fs.grep",
        Access::Read,
        [TouchedResource::path("path")],
        Tier::Full,
        "Search file contents by regex; skips hidden and ignored files. Gives file:line:text.",
        r#"{"type":"object","properties":{"pattern":{"type":"string"},"path":{"type":"string","description":"file or folder"},"glob":{"type":"string","description":"such as *.rs"},"max_results":{"type":"integer","description":"default 250"}},"required":["pattern"]}"#,
    )
}

pub(super) fn run(shared: &FileTools, arguments: &GrepArguments, cx: &ToolCx) -> FileAnswer {
    let target = shared.resolve_target(cx, arguments.path.as_deref().unwrap_or("."))?;
    match target.kind()? {
        TargetKind::File(_) | TargetKind::Folder => {}
        TargetKind::Special => return Err(target.is_special()),
        TargetKind::Missing => return Err(target.is_missing()),
    }
    let glob = arguments.glob.as_deref().filter(|glob| !glob.is_empty());
    let glob = glob.map(|glob| Pattern::new(glob, &target.path)).transpose()?;
    let pattern = LinePattern::compile(&arguments.pattern, MAX_PATTERN_BYTES)
        .map_err(|error| Refusal::Failed(error.to_string()))?;
    let mut search = Search {
        lines: LineSearch::new(pattern, shared.max_file_bytes),
        hits: Hits::up_to(arguments.max_results.unwrap_or(DEFAULT_RESULTS)),
        searched: 0,
        failed: 0,
        secret: Vec::new(),
    };
    for path in matching_files(&target.path, glob.as_ref()) {
        if search.hits.more {
            break;
        }
        let name = relative_display(&cx.cwd, &target.path_as_found(&path));
        let is_meant = || path == target.path || is_granted(&path, cx, shared);
        match shared.restricted_kind(&path).filter(|_| !is_meant()) {
            Some(kind) => search.secret.push(format!("`{name}` ({kind})")),
            None => search.search_file(&path, &name, cx),
        }
        if cx.stop.is_cancelled() {
            return Err(Refusal::Stopped(search.hits.text));
        }
    }
    Ok(ToolOutput::from_text(search.into_report(&arguments.pattern, &target.name)))
}

fn matching_files(root: &Path, glob: Option<&Pattern>) -> impl Iterator<Item = PathBuf> {
    walk::walk_files(root).map(ignore::DirEntry::into_path).filter(move |path| {
        let below = path.strip_prefix(root).ok();
        let below = below.filter(|below| !below.as_os_str().is_empty()).unwrap_or(path);
        glob.is_none_or(|glob| glob.matches(below))
    })
}

/// Reports whether the verdict was about this secret. A grant for an ordinary folder does not cover the secrets in
/// it.
fn is_granted(path: &Path, cx: &ToolCx, shared: &FileTools) -> bool {
    let is_meant =
        |granted: &PathBuf| path.starts_with(granted) && shared.restricted_kind(granted).is_some();
    cx.grant.paths.iter().any(is_meant)
}

struct Search {
    lines: LineSearch,
    hits: Hits,
    searched: usize,
    failed: usize,
    /// Files that were left out, with what they are.
    secret: Vec<String>,
}

impl Search {
    fn search_file(&mut self, path: &Path, name: &str, cx: &ToolCx) {
        let mut add = |pattern: &LinePattern, number, line: &[u8]| {
            self.hits.add_line(name, number, &excerpt_line(line.trim_ascii_end(), pattern))
        };
        let outcome = open::open_file(path)
            .and_then(|file| self.lines.search(StoppableReader::new(file, &cx.stop), &mut add));
        match outcome {
            Ok(()) => self.searched += 1,
            Err(_) => self.failed += 1,
        }
    }

    fn into_report(self, pattern: &str, name: &str) -> String {
        let mut text = self.hits.text;
        if text.is_empty() {
            let searched = format_count(self.searched, "file");
            text = format!("no match for `{pattern}` in `{name}` ({searched} searched)\n");
        }
        if self.hits.more {
            let count = self.hits.count;
            text.push_str(&format!(
                "[first {count}, there are more: narrow `pattern`, `path` or `glob`]\n"
            ));
        }
        if self.failed > 0 {
            let failed = format_count(self.failed, "file");
            text.push_str(&format!("[{failed} could not be read]\n"));
        }
        text.push_str(&left_out(&self.secret));
        text.pop();
        text
    }
}

/// Says which files were left out as secrets, and how they are searched all the same.
fn left_out(secret: &[String]) -> String {
    if secret.is_empty() {
        return String::new();
    }
    let count = format_count(secret.len(), "file");
    let named = secret.iter().take(MAX_LEFT_OUT_NAMED).map(String::as_str);
    let named = named.collect::<Vec<_>>().join(", ");
    let more = if secret.len() > MAX_LEFT_OUT_NAMED { ", …" } else { "" };
    format!(
        "[{count} not searched, as they hold secrets by their names or a rule limits reading them: {named}{more}; to search one, give it as `path`]\n"
    )
}

/// The matches that were found so far.
struct Hits {
    text: String,
    count: usize,
    max: usize,
    /// `true` if more matched than is shown.
    more: bool,
}

impl Hits {
    fn up_to(max: usize) -> Self {
        Self { text: String::new(), count: 0, max: max.max(1), more: false }
    }

    /// Adds a line unless there is enough already; returns whether it was added.
    fn add_line(&mut self, name: &str, number: u64, line: &str) -> bool {
        self.more = self.count >= self.max || self.text.len() >= MAX_SHOWN_BYTES;
        if !self.more {
            self.text.push_str(&format!("{name}:{number}:{line}\n"));
            self.count += 1;
        }
        !self.more
    }
}

/// `line`, or the part of it around its first match when it is long.
fn excerpt_line(line: &[u8], pattern: &LinePattern) -> String {
    if line.len() <= MAX_LINE_BYTES {
        return String::from_utf8_lossy(line).into_owned();
    }
    let at = pattern.find(line).unwrap_or(0);
    let start = at.saturating_sub(LEAD_BYTES).min(line.len() - MAX_LINE_BYTES);
    let end = start + MAX_LINE_BYTES;
    let part = String::from_utf8_lossy(line.get(start..end).unwrap_or(line));
    // A cut may have split a character.
    let part = part.trim_matches(char::REPLACEMENT_CHARACTER);
    let (before, after) = (start > 0, end < line.len());
    // Nor may it split a secret, which would not be recognised any more. The match is shown, though.
    let behind = if before { text_truncation::skip_partial_word(part) } else { part };
    let skipped =
        Some(part.len() - behind.len()).filter(|skipped| start + skipped <= at).unwrap_or(0);
    let part = part.get(skipped..).unwrap_or(part);
    let kept = if after { text_truncation::before_last_word(part) } else { part };
    let part = if start + skipped + kept.len() > at { kept } else { part };
    let mark = |is_cut: bool| if is_cut { "…" } else { "" };
    format!("{}{part}{}", mark(before), mark(after))
}

#[cfg(test)]
mod tests {
    use gnoma_core::ToolOutcome;
    use serde_json::json;

    use super::*;
    use crate::fs::testing::Bench;

    fn project() -> Bench {
        let bench = Bench::new();
        bench.put(".gitignore", "target/\n*.log\n");
        bench.put("src/b.rs", "fn two() {}\nfn three() {}\r\n");
        bench.put("src/a.rs", "// fn\nfn one() {}\n");
        bench.put("docs/a.md", "fn in docs\n");
        bench.put("target/c.rs", "fn built() {}\n");
        bench.put("run.log", "fn logged\n");
        bench.put(".hidden/d.rs", "fn hidden() {}\n");
        bench.put("blob", b"\0fn binary\n");
        bench
    }

    #[tokio::test]
    async fn grep_matches_are_sorted_by_file_and_line() {
        let found = project().done("fs.grep", json!({"pattern": "^fn \\w+"})).await;
        let expected = "docs/a.md:1:fn in docs\nsrc/a.rs:2:fn one() {}\nsrc/b.rs:1:fn two() {}\nsrc/b.rs:2:fn three() {}";
        assert_eq!(found, expected);
    }

    #[tokio::test]
    async fn path_and_glob_narrow_the_search() {
        let bench = project();
        let grep = |path, glob| {
            bench.done("fs.grep", json!({"pattern": "^fn", "path": path, "glob": glob}))
        };
        assert_eq!(grep("src/a.rs", None).await, "src/a.rs:2:fn one() {}");
        assert_eq!(grep("src", Some("b.*")).await.lines().count(), 2);
        assert_eq!(grep(".", Some("docs/**")).await, "docs/a.md:1:fn in docs");
        assert!(grep("src", Some("*.py")).await.contains("(0 files searched)"));
        let outside = bench.path("src/a.rs");
        assert_eq!(grep(outside.to_str().unwrap(), None).await, "src/a.rs:2:fn one() {}");
    }

    #[tokio::test]
    async fn grep_skips_secret_files_and_names_them() {
        let bench = Bench::new();
        bench.put("src/a.rs", "let key = 1;\n");
        bench.put("certs/server.key", "key of a server\n");
        bench.put("prod.env", "key=1\n");
        let found = bench.done("fs.grep", json!({"pattern": "key"})).await;
        assert!(found.starts_with("src/a.rs:1:let key = 1;\n[2 files not searched"), "{found}");
        assert!(
            found.contains("`certs/server.key` (a key file), `prod.env` (an environment file)")
        );
        let named = bench.done("fs.grep", json!({"pattern": "key", "path": "prod.env"})).await;
        assert_eq!(named, "prod.env:1:key=1");
        let globbed = bench.done("fs.grep", json!({"pattern": "key", "glob": "*.key"})).await;
        assert!(globbed.starts_with("no match"), "{globbed}");
    }

    #[test]
    fn grep_opens_a_secret_file_only_with_a_grant_for_it() {
        let bench = Bench::new();
        let mut cx = bench.cx();
        let key = bench.path("certs/server.key");
        cx.grant.paths = vec![bench.path("certs")];
        let shared = FileTools::new(&crate::ToolOptions::default());
        assert!(!is_granted(&key, &cx, &shared));
        cx.grant.paths = vec![key.clone()];
        assert!(is_granted(&key, &cx, &shared));
        cx.grant.paths = vec![bench.path(".ssh")];
        assert!(is_granted(&bench.path(".ssh/id_rsa"), &cx, &shared));
    }

    #[tokio::test]
    async fn grep_dollar_anchor_matches_before_crlf() {
        let found = project().done("fs.grep", json!({"pattern": "three\\(\\) \\{\\}$"})).await;
        assert_eq!(found, "src/b.rs:2:fn three() {}");
    }

    /// The numbers of the lines of `content` that match.
    async fn matching_lines(content: impl AsRef<[u8]>, pattern: &str) -> Vec<u64> {
        let bench = Bench::new();
        bench.put("f", content);
        let found = bench.done("fs.grep", json!({"pattern": pattern})).await;
        let numbers = found.lines().filter_map(|line| line.strip_prefix("f:"));
        numbers.map(|line| line.split_once(':').unwrap().0.parse().unwrap()).collect()
    }

    #[tokio::test]
    async fn pattern_matches_within_one_line() {
        let text = "fn a\nb\r\n\n\r\nfn É ٣\nlast";
        for (pattern, lines) in [
            ("^fn", vec![1, 5]),
            ("[ab]$", vec![1, 2]),
            ("^$", vec![3, 4]),
            ("\\Ab\\z", vec![2]),
            ("(?m)^b$", vec![2]),
            ("", vec![1, 2, 3, 4, 5, 6]),
            ("x*", vec![1, 2, 3, 4, 5, 6]),
            ("a\\sb|a[^x]b|(?s)a.b", vec![]),
            ("\\s", vec![1, 5]),
            ("(?i)é", vec![5]),
            ("\\bÉ\\b.\\d", vec![5]),
            ("st$", vec![6]),
        ] {
            assert_eq!(matching_lines(text, pattern).await, lines, "{pattern}");
        }
        for (pattern, why) in
            [("a\nb", "\"\\n\" is not allowed"), ("a\\r$", "\"\\r\" is not allowed")]
        {
            let failed = project().failed("fs.grep", json!({"pattern": pattern})).await;
            assert!(failed.contains(why), "{failed}");
        }
    }

    #[tokio::test]
    async fn grep_searches_utf16_and_bom_files_as_text() {
        let utf16 = |bytes: fn(u16) -> [u8; 2]| {
            "\u{feff}hé\r\n\u{1d11e} x\n".encode_utf16().flat_map(bytes).collect::<Vec<u8>>()
        };
        for content in [utf16(u16::to_le_bytes), utf16(u16::to_be_bytes)] {
            assert_eq!(matching_lines(&content, "^hé$|^.\\sx").await, [1, 2]);
        }
        assert_eq!(matching_lines(b"\xff\xfea\0\0\xd8\n\0a\0", "^a").await, [1, 2]);
        assert_eq!(matching_lines("\u{feff}a\nb", "^a|^b").await, [1, 2]);
        assert_eq!(matching_lines(b"caf\xe9 a\n", "caf.|a$|(?-u)\\xe9").await, [1]);
        assert_eq!(matching_lines(b"caf\xe9\n", "caf.").await, [0; 0]);
    }

    #[tokio::test]
    async fn binary_file_is_searched_up_to_its_first_zero_byte() {
        assert_eq!(matching_lines(b"x\n\0x\n", "x").await, [0; 0]);
        let long = [&b"x\n".repeat(40_000)[..], b"x\0\nx\n"].concat();
        assert_eq!(matching_lines(&long, "x").await.len(), DEFAULT_RESULTS);
        let late = [b"x\n", &b"y\n".repeat(40_000)[..], b"x\0\nx\n"].concat();
        assert_eq!(matching_lines(&late, "x").await, [1]);
    }

    #[tokio::test]
    async fn lines_longer_than_a_block_are_searched_up_to_a_limit() {
        let long = ["a\n", &"b".repeat(200_000), "c\nd\n", &"e".repeat(70_000), "f"].concat();
        assert_eq!(matching_lines(&long, "a|c|d|f$").await, [1, 2, 3, 4]);
        let bench = Bench::new();
        bench.put("f", ["a\n", &"b".repeat(17 << 20), "\na\n"].concat());
        let found = bench.done("fs.grep", json!({"pattern": "a"})).await;
        assert_eq!(found, "f:1:a\n[1 file could not be read]");
    }

    #[tokio::test]
    async fn grep_says_if_there_are_more_results_than_the_limit() {
        let bench = Bench::new();
        bench.put("a", "x\n".repeat(300));
        let default = bench.done("fs.grep", json!({"pattern": "x"})).await;
        assert_eq!(default.lines().count(), DEFAULT_RESULTS + 1);
        assert!(
            default.ends_with("[first 250, there are more: narrow `pattern`, `path` or `glob`]")
        );
        let all = bench.done("fs.grep", json!({"pattern": "x", "max_results": 300})).await;
        assert_eq!(all.lines().count(), 300);
    }

    #[tokio::test]
    async fn grep_shows_a_long_line_around_its_match() {
        let bench = Bench::new();
        bench.put("min.js", format!("{}needle{}\n", "ä".repeat(1000), "b".repeat(1000)));
        let found = bench.done("fs.grep", json!({"pattern": "needle"})).await;
        assert!(found.starts_with("min.js:1:…ä"), "{found}");
        assert!(found.contains("needle") && found.ends_with("b…"), "{found}");
        assert!(found.len() < 2 * MAX_LINE_BYTES);
    }

    #[tokio::test]
    async fn bad_patterns_and_missing_paths_are_explained() {
        let bench = project();
        let bad = bench.failed("fs.grep", json!({"pattern": "a("})).await;
        assert!(bad.contains("unclosed group"), "{bad}");
        let missing = bench.failed("fs.grep", json!({"pattern": "a", "path": "scr"})).await;
        assert!(missing.contains("similar names: `src`"), "{missing}");
        let none = bench.done("fs.grep", json!({"pattern": "zzz"})).await;
        assert_eq!(none, "no match for `zzz` in `.` (4 files searched)");
    }

    #[tokio::test]
    async fn cancelled_grep_is_interrupted() {
        let bench = project();
        bench.stop.cancel();
        let outcome = bench.outcome("fs.grep", json!({"pattern": "fn"})).await;
        assert!(matches!(outcome, ToolOutcome::Interrupted(_)));
    }
}
