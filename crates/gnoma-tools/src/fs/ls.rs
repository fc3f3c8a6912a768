//! `fs.ls`: what is in one folder, hidden and ignored entries included.

use std::{
    fs::{self, DirEntry},
    path::Path,
};

use gnoma_core::{
    ToolCx, ToolSpec,
    tool::{Access, Tier, ToolOutput, Touches},
};
use serde::Deserialize;

use super::{
    Answer, Shared,
    target::{Kind, Target},
};
use crate::args;

/// Entries named in one answer.
const MAX_ENTRIES: usize = 500;
/// Entries of a folder that are looked at; beyond it the order is the system's.
const MAX_SORTED: usize = 50_000;

/// What a call asks for.
#[derive(Deserialize)]
pub(super) struct Arguments {
    path: Option<String>,
}

pub(super) fn spec() -> ToolSpec {
    args::spec(
        "fs.ls",
        Access::Read,
        Touches::Path("path"),
        Tier::Full,
        "List a folder: kind, bytes, name.",
        r#"{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}"#,
    )
}

pub(super) fn run(_shared: &Shared, arguments: &Arguments, cx: &ToolCx) -> Answer {
    let target = Target::of(cx, arguments.path.as_deref().unwrap_or("."))?;
    match target.kind()? {
        Kind::Folder => {}
        Kind::Missing => return Err(target.is_missing()),
        Kind::File(_) | Kind::Special => {
            let line = Entry::at(&target.path, target.name.clone()).line();
            return Ok(ToolOutput::text(line));
        }
    }
    let mut entries: Vec<DirEntry> = fs::read_dir(&target.path)
        .map_err(|error| target.cannot("list", &error))?
        .filter_map(Result::ok)
        .take(MAX_SORTED)
        .collect();
    if entries.is_empty() {
        return Ok(ToolOutput::text(format!("`{}` is empty", target.name)));
    }
    entries.sort_by_cached_key(|entry| (!is_folder(entry), entry.file_name()));
    Ok(ToolOutput::text(listing(&entries)))
}

fn is_folder(entry: &DirEntry) -> bool {
    entry.file_type().is_ok_and(|kind| kind.is_dir())
}

fn listing(entries: &[DirEntry]) -> String {
    let mut lines: Vec<String> = entries
        .iter()
        .take(MAX_ENTRIES)
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            Entry::at(&entry.path(), name).line()
        })
        .collect();
    let left = entries.len().saturating_sub(MAX_ENTRIES);
    if left > 0 {
        let more = if entries.len() == MAX_SORTED { "or more " } else { "" };
        lines.push(format!("[{left} {more}entries left out: use fs.glob with a pattern]"));
    }
    lines.join("\n")
}

/// What a line says about an entry.
struct Entry {
    kind: &'static str,
    bytes: Option<u64>,
    name: String,
}

impl Entry {
    fn at(path: &Path, name: String) -> Self {
        let Ok(facts) = fs::symlink_metadata(path) else {
            return Self { kind: "gone", bytes: None, name };
        };
        let (kind, bytes, name) = if facts.is_dir() {
            ("dir", None, format!("{name}/"))
        } else if facts.is_symlink() {
            let leads_to = fs::read_link(path).unwrap_or_default();
            ("link", None, format!("{name} -> {}", leads_to.display()))
        } else if facts.is_file() {
            ("file", Some(facts.len()), name)
        } else {
            ("other", None, name)
        };
        Self { kind, bytes, name }
    }

    fn line(&self) -> String {
        let bytes = self.bytes.map_or_else(|| "-".to_owned(), |bytes| bytes.to_string());
        format!("{} {bytes} {}", self.kind, self.name)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fs::testing::Bench;

    #[tokio::test]
    async fn folders_come_first_and_everything_is_shown() {
        let bench = Bench::new();
        bench.put("b.txt", "12345");
        bench.put(".env", "");
        bench.put("z/a", "");
        bench.put("a dir/x", "");
        std::os::unix::fs::symlink("b.txt", bench.path("link")).unwrap();
        let listed = bench.done("fs.ls", json!({})).await;
        assert_eq!(
            listed,
            "dir - a dir/\ndir - z/\nfile 0 .env\nfile 5 b.txt\nlink - link -> b.txt"
        );
        assert_eq!(bench.done("fs.ls", json!({"path": "b.txt"})).await, "file 5 b.txt");
    }

    #[tokio::test]
    async fn empty_missing_and_crowded_folders_are_said_to_be_so() {
        let bench = Bench::new();
        assert_eq!(bench.done("fs.ls", json!({"path": "."})).await, "`.` is empty");
        let missing = bench.failed("fs.ls", json!({"path": "nope"})).await;
        assert!(missing.contains("does not exist"), "{missing}");
        for n in 0..MAX_ENTRIES + 2 {
            bench.put(&format!("f{n:04}"), "");
        }
        let crowded = bench.done("fs.ls", json!({})).await;
        assert_eq!(crowded.lines().count(), MAX_ENTRIES + 1);
        assert!(crowded.contains("[2 entries left out"), "{crowded}");
    }
}
