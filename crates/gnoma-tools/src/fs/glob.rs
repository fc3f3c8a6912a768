//! `fs.glob`: files by name, newest first.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    path::{Path, PathBuf},
    time::SystemTime,
};

use gnoma_core::{
    ToolCx, ToolSpec,
    tool::{Access, Tier, ToolOutput, TouchedResource},
};
use serde::Deserialize;

use super::{
    FileAnswer, FileTools, Refusal,
    pattern::Pattern,
    target::{TargetKind, relative_display},
    walk,
};
use crate::args;

/// Files named in one answer.
const MAX_FILES: usize = 200;

/// The arguments of a call of the tool.
#[derive(Deserialize)]
pub(super) struct GlobArguments {
    pattern: String,
    path: Option<String>,
}

pub(super) fn spec() -> ToolSpec {
    args::tool_spec(
        "fs.glob",
        Access::Read,
        [TouchedResource::path("path")],
        Tier::Full,
        "Find files by glob, newest first; skips hidden and ignored files.",
        r#"{"type":"object","properties":{"pattern":{"type":"string","description":"such as src/**/*.rs"},"path":{"type":"string","description":"folder"}},"required":["pattern"]}"#,
    )
}

pub(super) fn run(shared: &FileTools, arguments: &GlobArguments, cx: &ToolCx) -> FileAnswer {
    let target = shared.resolve_target(cx, arguments.path.as_deref().unwrap_or("."))?;
    match target.kind()? {
        TargetKind::Folder => {}
        TargetKind::Missing => return Err(target.is_missing()),
        TargetKind::File(_) | TargetKind::Special => {
            return Err(Refusal::Failed(format!(
                "`{}` is not a folder; give the folder to search as `path`",
                target.name
            )));
        }
    }
    let pattern = Pattern::new(&arguments.pattern, &target.path)?;
    let mut newest = NewestFiles::default();
    for entry in walk::walk_files(&target.path) {
        if cx.stop.is_cancelled() {
            return Err(Refusal::Stopped(newest.into_text(&cx.cwd)));
        }
        let below = entry.path().strip_prefix(&target.path);
        if below.is_ok_and(|below| pattern.matches(below)) {
            let modified = entry.metadata().ok().and_then(|facts| facts.modified().ok());
            newest.add_file(
                modified.unwrap_or(SystemTime::UNIX_EPOCH),
                target.path_as_found(entry.path()),
            );
        }
    }
    if newest.count == 0 {
        let glob = &arguments.pattern;
        let text = format!("no file matches `{glob}` in `{}`", target.name);
        return Ok(ToolOutput::from_text(text));
    }
    Ok(ToolOutput::from_text(newest.into_text(&cx.cwd)))
}

/// The newest of many files; those of the same time in the order of their paths.
#[derive(Default)]
struct NewestFiles {
    kept: BinaryHeap<(Reverse<SystemTime>, PathBuf)>,
    count: usize,
}

impl NewestFiles {
    fn add_file(&mut self, modified: SystemTime, path: PathBuf) {
        self.count += 1;
        self.kept.push((Reverse(modified), path));
        if self.kept.len() > MAX_FILES {
            self.kept.pop();
        }
    }

    fn into_text(self, cwd: &Path) -> String {
        let left = self.count - self.kept.len();
        let files = self.kept.into_sorted_vec();
        let mut lines: Vec<String> =
            files.iter().map(|(_, path)| relative_display(cwd, path)).collect();
        if left > 0 {
            lines.push(format!("[{left} older files left out: narrow `pattern` or `path`]"));
        }
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use std::{fs::File, time::Duration};

    use serde_json::json;

    use super::*;
    use crate::fs::testing::Bench;

    fn put_aged(bench: &Bench, name: &str, age_s: u64) {
        bench.put(name, "");
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 - age_s);
        File::options()
            .write(true)
            .open(bench.path(name))
            .and_then(|file| file.set_modified(time))
            .unwrap();
    }

    #[tokio::test]
    async fn glob_lists_the_newest_file_first() {
        let bench = Bench::new();
        put_aged(&bench, "src/old.rs", 90);
        put_aged(&bench, "src/deep/new.rs", 10);
        put_aged(&bench, "same_b.rs", 50);
        put_aged(&bench, "same_a.rs", 50);
        put_aged(&bench, "other.py", 0);
        let found = bench.done("fs.glob", json!({"pattern": "**/*.rs"})).await;
        assert_eq!(found, "src/deep/new.rs\nsame_a.rs\nsame_b.rs\nsrc/old.rs");
        let below = bench.done("fs.glob", json!({"pattern": "*.rs", "path": "src/deep"})).await;
        assert_eq!(below, "src/deep/new.rs");
    }

    #[tokio::test]
    async fn hidden_and_ignored_files_are_left_out() {
        let bench = Bench::new();
        bench.put(".gitignore", "out/\n");
        for name in ["a.rs", "out/b.rs", ".c.rs", ".d/e.rs"] {
            bench.put(name, "");
        }
        assert_eq!(bench.done("fs.glob", json!({"pattern": "*.rs"})).await, "a.rs");
        let none = bench.done("fs.glob", json!({"pattern": "*.py"})).await;
        assert_eq!(none, "no file matches `*.py` in `.`");
    }

    #[tokio::test]
    async fn glob_above_the_limit_lists_the_newest_files() {
        let bench = Bench::new();
        for n in 0..MAX_FILES + 3 {
            put_aged(&bench, &format!("f{n:03}"), n as u64);
        }
        let found = bench.done("fs.glob", json!({"pattern": "*"})).await;
        assert!(found.starts_with("f000\nf001\n"));
        assert!(found.ends_with("f199\n[3 older files left out: narrow `pattern` or `path`]"));
    }

    #[tokio::test]
    async fn glob_in_a_file_instead_of_a_folder_is_an_error() {
        let bench = Bench::new();
        bench.put("a", "");
        let refusal = bench.failed("fs.glob", json!({"pattern": "*", "path": "a"})).await;
        assert!(refusal.contains("not a folder"), "{refusal}");
    }
}
