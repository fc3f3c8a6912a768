//! `fs.ls`: what is in one folder, hidden and ignored entries included.

use std::{
    ffi::OsStr,
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
};

use gnoma_core::{
    ToolCx, ToolSpec,
    tool::{Access, Tier, ToolOutput, TouchedResource},
};
use gnoma_sandbox::STAND_IN_MODE;
use rustix::fs::{Dir, FileType, readlinkat};
use serde::Deserialize;

use super::{
    FileAnswer, FileTools, open,
    target::{Target, TargetKind},
};
use crate::args;

/// Entries named in one answer.
const MAX_ENTRIES: usize = 500;
/// Entries of a folder that are looked at; beyond it the order is the system's.
const MAX_SORTED: usize = 50_000;

/// The arguments of a call of the tool.
#[derive(Deserialize)]
pub(super) struct LsArguments {
    path: Option<String>,
}

pub(super) fn spec() -> ToolSpec {
    args::tool_spec(
        "fs.ls",
        Access::Read,
        [TouchedResource::path("path")],
        Tier::Full,
        "List a folder: kind, bytes, name.",
        r#"{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}"#,
    )
}

pub(super) fn run(shared: &FileTools, arguments: &LsArguments, cx: &ToolCx) -> FileAnswer {
    let target = shared.resolve_target(cx, arguments.path.as_deref().unwrap_or("."))?;
    match target.kind()? {
        TargetKind::Folder => {}
        TargetKind::Missing => return Err(target.is_missing()),
        TargetKind::File(_) | TargetKind::Special => return list_file(&target),
    }
    list_folder(&target)
}

/// Lists the entries of the folder `target`.
pub(super) fn list_folder(target: &Target) -> FileAnswer {
    let folder =
        open::open_folder(&target.path).map_err(|error| target.refuse_operation("list", &error))?;
    let mut entries =
        read_entries(&folder).map_err(|error| target.refuse_operation("list", &error))?;
    if entries.is_empty() {
        return Ok(ToolOutput::from_text(format!("`{}` is empty", target.name)));
    }
    gnoma_core::sort::sort_items(&mut entries);
    Ok(ToolOutput::from_text(render_listing(&folder, &entries)))
}

/// The line for a target that is no folder.
fn list_file(target: &Target) -> FileAnswer {
    let (Some(above), Some(name)) = (target.path.parent(), target.path.file_name()) else {
        return Err(target.is_missing());
    };
    let folder =
        open::open_folder(above).map_err(|error| target.refuse_operation("list", &error))?;
    Ok(ToolOutput::from_text(ListedEntry::from_entry(&folder, name, target.name.clone()).to_line()))
}

/// An entry of a folder: `true` for a file rather than a folder (folders come first), and its name.
type ListedName = (bool, Vec<u8>);

fn read_entries(folder: &OwnedFd) -> io::Result<Vec<ListedName>> {
    let listed = Dir::read_from(folder)?.filter_map(Result::ok).filter_map(|entry| {
        let name = entry.file_name().to_bytes();
        let is_folder = entry.file_type() == FileType::Directory;
        let is_left_out = matches!(name, b"." | b"..") || is_folder && is_stand_in(folder, name);
        (!is_left_out).then(|| (!is_folder, name.to_vec()))
    });
    Ok(listed.take(MAX_SORTED).collect())
}

/// Reports whether the sandbox has put the folder there while a command runs.
fn is_stand_in(folder: &OwnedFd, name: &[u8]) -> bool {
    let facts = open::entry_facts(folder, OsStr::from_bytes(name));
    facts.is_ok_and(|facts| facts.is_some_and(|facts| facts.st_mode & 0o7777 == STAND_IN_MODE))
}

fn render_listing(folder: &OwnedFd, entries: &[ListedName]) -> String {
    let mut lines: Vec<String> = entries
        .iter()
        .take(MAX_ENTRIES)
        .map(|(_, name)| {
            let shown = String::from_utf8_lossy(name).into_owned();
            ListedEntry::from_entry(folder, OsStr::from_bytes(name), shown).to_line()
        })
        .collect();
    let left = entries.len().saturating_sub(MAX_ENTRIES);
    if left > 0 {
        let more = if entries.len() == MAX_SORTED { "or more " } else { "" };
        lines.push(format!("[{left} {more}entries left out: use fs.glob with a pattern]"));
    }
    lines.join("\n")
}

/// The facts that a line tells about an entry.
struct ListedEntry {
    kind: &'static str,
    bytes: Option<u64>,
    name: String,
}

impl ListedEntry {
    fn from_entry(folder: impl AsFd, entry: &OsStr, name: String) -> Self {
        let Ok(Some(facts)) = open::entry_facts(&folder, entry) else {
            return Self { kind: "gone", bytes: None, name };
        };
        match open::file_kind(&facts) {
            FileType::Directory => Self { kind: "dir", bytes: None, name: format!("{name}/") },
            FileType::RegularFile => {
                Self { kind: "file", bytes: u64::try_from(facts.st_size).ok(), name }
            }
            FileType::Symlink => {
                let leads_to = readlinkat(&folder, entry, Vec::new()).unwrap_or_default();
                let leads_to = leads_to.to_string_lossy();
                Self { kind: "link", bytes: None, name: format!("{name} -> {leads_to}") }
            }
            _ => Self { kind: "other", bytes: None, name },
        }
    }

    fn to_line(&self) -> String {
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
    async fn ls_lists_folders_first_and_includes_hidden_files() {
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
        assert_eq!(bench.done("fs.read", json!({"path": "."})).await, listed);
        assert_eq!(bench.done("fs.ls", json!({"path": "b.txt"})).await, "file 5 b.txt");
    }

    #[tokio::test]
    async fn ls_reports_empty_missing_and_truncated_folders() {
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
