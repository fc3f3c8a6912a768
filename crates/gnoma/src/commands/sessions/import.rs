//! `gnoma sessions import`: sessions of this and of other programs, from a file or a whole folder.

use std::{
    fs::{self, File},
    io::Read as _,
    path::{Path, PathBuf},
};

use anyhow::Result;
use gnoma_core::{
    json_value::json,
    store::{SessionFacts, SessionStore as _},
};
use gnoma_host::{HostError, Project, clock, project_history::ProjectHistory};
use gnoma_store::{
    ImportOutcome,
    import::{self, Source},
};
use serde_json::Value;

use crate::{
    args::ForeignProgram,
    commands::common::{print_json, print_stored_text},
    report::Exit,
};

/// Most levels of folders within folders that are searched.
const MAX_DEPTH: usize = 6;
/// Most sessions that are imported at once.
const MAX_FOUND: usize = 10_000;
/// Bytes of a file that are read to detect the program that wrote it.
const SNIFFED_BYTES: u64 = 64 << 10;

pub(super) async fn run(
    project: &Project,
    path: PathBuf,
    from: Option<ForeignProgram>,
    all: bool,
    json: bool,
) -> Result<Exit> {
    let found = find_session_files(&path, from.map(to_source))?;
    let past = ProjectHistory::open_or_create(project)?;
    // A file named on the command line is imported even if the project has moved.
    let any_project = all || path.is_file();
    let mut outcomes = Vec::new();
    for (source, file) in found {
        let fate = import_file(&past, source, &file, any_project).await;
        outcomes.push(ImportedFile { source, file, fate });
    }
    let failed = outcomes.iter().any(|outcome| outcome.fate.is_err());
    let printed = if json {
        print_json(&outcomes.iter().map(ImportedFile::to_json).collect())?
    } else {
        print_stored_text(&render_outcomes(&outcomes))?
    };
    Ok(if failed && printed == Exit::Done { Exit::Failed } else { printed })
}

/// The result of the import of one file.
struct ImportedFile {
    source: Source,
    file: PathBuf,
    fate: Result<ImportResult>,
}

enum ImportResult {
    Taken(ImportedSession),
    /// The file was imported as this session before.
    Known(String),
    /// The session in the file is about this folder, which is none of the project's.
    Elsewhere(String),
}

/// The new session, its messages, and what was left out.
struct ImportedSession {
    id: String,
    title: String,
    messages: u64,
    left_out: Option<String>,
    skipped: Value,
}

impl ImportedFile {
    fn to_json(&self) -> Value {
        let (file, source) = (self.file.display().to_string(), self.source.to_string());
        match &self.fate {
            Ok(ImportResult::Taken(taken)) => {
                json!({"file": file, "from": source, "session": taken.id,
                "title": taken.title, "messages": taken.messages, "left_out": taken.skipped})
            }
            Ok(ImportResult::Known(id)) => {
                json!({"file": file, "from": source, "session": id, "known": true})
            }
            Ok(ImportResult::Elsewhere(folder)) => {
                json!({"file": file, "from": source, "elsewhere": folder})
            }
            Err(error) => json!({"file": file, "from": source, "error": format!("{error:#}")}),
        }
    }

    fn describe_outcome(&self) -> String {
        let (file, source) = (self.file.display(), self.source);
        match &self.fate {
            Ok(ImportResult::Taken(ImportedSession { id, title, messages, left_out, .. })) => {
                let left_out = left_out.as_ref().map(|text| format!("  {text}\n"));
                let left_out = left_out.unwrap_or_default();
                format!("{id}  {title}\n  {messages} messages of {source}, from {file}\n{left_out}")
            }
            Ok(ImportResult::Known(id)) => {
                format!("already imported as {id}: {file}, from {source}\n")
            }
            // Counted: in a folder of many projects most are of others.
            Ok(ImportResult::Elsewhere(_)) => String::new(),
            Err(error) => format!("not imported: {file}, from {source}: {error:#}\n"),
        }
    }
}

fn render_outcomes(outcomes: &[ImportedFile]) -> String {
    let mut text: String = outcomes.iter().map(ImportedFile::describe_outcome).collect();
    let is_elsewhere =
        |outcome: &&ImportedFile| matches!(outcome.fate, Ok(ImportResult::Elsewhere(_)));
    let elsewhere = outcomes.iter().filter(is_elsewhere).count();
    if elsewhere > 0 {
        text.push_str(&format!(
            "skipped {elsewhere} sessions of other folders; --all imports them too\n"
        ));
    }
    text
}

async fn import_file(
    past: &ProjectHistory,
    source: Source,
    file: &Path,
    any_project: bool,
) -> Result<ImportResult> {
    let imported = import::read_session(source, file)?;
    if !any_project && !imported.is_about(&past.places.project) {
        return Ok(ImportResult::Elsewhere(imported.project.unwrap_or_default()));
    }
    let (left_out, skipped) = (imported.left_out(), json!(imported.skipped));
    let ImportOutcome { session, is_new } = past.store.import(imported, clock::now_ms()).await?;
    let id = session.to_string();
    if !is_new {
        return Ok(ImportResult::Known(id));
    }
    let SessionFacts { title, messages, .. } = past.store.session_facts(session).await?;
    Ok(ImportResult::Taken(ImportedSession { id, title, messages, left_out, skipped }))
}

fn to_source(foreign: ForeignProgram) -> Source {
    match foreign {
        ForeignProgram::Gnoma => Source::Lines,
        ForeignProgram::Go => Source::GnomaGo,
        ForeignProgram::Claude => Source::ClaudeCode,
        ForeignProgram::Codex => Source::Codex,
        ForeignProgram::Opencode => Source::Opencode,
    }
}

/// The sessions at `path`: that file, or all that are found below that folder.
fn find_session_files(
    path: &Path,
    from: Option<Source>,
) -> Result<Vec<(Source, PathBuf)>, HostError> {
    let shown = path.display();
    let mut found = Vec::new();
    if path.is_dir() {
        look_below(path, from, MAX_DEPTH, &mut found);
        gnoma_core::sort::sort_by(&mut found, |left, right| left.1.cmp(&right.1));
    } else if path.metadata().is_ok_and(|facts| facts.is_file() && facts.len() == 0) {
        return Err(HostError::usage(format!("`{shown}` is empty")));
    } else if path.is_file() {
        let source = from.or_else(|| detect_source(path));
        found.extend(source.map(|source| (source, path.to_owned())));
    } else {
        return Err(HostError::usage(format!("`{shown}` does not exist")));
    }
    if found.is_empty() && path.is_dir() {
        let what = from.map_or("session files of any known program".to_owned(), looked_for);
        return Err(HostError::usage(format!("no sessions found in `{shown}`: looked for {what}")));
    }
    if found.is_empty() {
        return Err(HostError::usage(format!(
            "`{shown}` is no file of sessions that gnoma knows: its own are `.jsonl` files, which `gnoma sessions \
             export --format jsonl` writes; --from go|claude|codex|opencode names another program"
        )));
    }
    Ok(found)
}

/// Describes the files of a program's sessions.
fn looked_for(source: Source) -> String {
    let (program, files) = match source {
        Source::Lines => ("gnoma", "`.jsonl` files from `gnoma sessions export`"),
        Source::GnomaGo => ("gnoma (Go)", "folders with a `messages.json`"),
        Source::ClaudeCode => ("Claude Code", "`.jsonl` files, as below `~/.claude/projects`"),
        Source::Codex => ("Codex", "`.jsonl` files, as below `~/.codex/sessions`"),
        Source::Opencode => {
            ("opencode", "`.json` files of sessions, as below `~/.local/share/opencode/storage`")
        }
    };
    format!("{program}'s {files}")
}

fn look_below(
    folder: &Path,
    from: Option<Source>,
    depth: usize,
    found: &mut Vec<(Source, PathBuf)>,
) {
    if folder.join("messages.json").is_file() && from.is_none_or(|from| from == Source::GnomaGo) {
        found.push((Source::GnomaGo, folder.to_owned()));
        return;
    }
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, kind) = (entry.path(), entry.file_type());
        if found.len() >= MAX_FOUND {
            return;
        }
        match kind {
            Ok(kind) if kind.is_dir() && depth > 0 => look_below(&path, from, depth - 1, found),
            Ok(kind) if kind.is_file() => {
                let source =
                    detect_source(&path).filter(|source| from.is_none_or(|from| from == *source));
                found.extend(source.map(|source| (source, path)));
            }
            Ok(_) | Err(_) => (),
        }
    }
}

/// Detects the program that wrote a session's file, by its name and beginning.
fn detect_source(path: &Path) -> Option<Source> {
    let ending = path.extension().and_then(|ending| ending.to_str());
    let mut begin = Vec::new();
    File::open(path).ok()?.take(SNIFFED_BYTES).read_to_end(&mut begin).ok()?;
    source_of_content(ending?, &String::from_utf8_lossy(&begin))
}

fn source_of_content(ending: &str, begin: &str) -> Option<Source> {
    match ending {
        "jsonl" => begin.lines().find_map(whose_line),
        // The whole file is one object, which may be longer than what was read.
        "json" => {
            let has = |field: &str| begin.contains(&format!("\"{field}\""));
            (has("directory") && has("version") && has("time")).then_some(Source::Opencode)
        }
        _ => None,
    }
}

fn whose_line(line: &str) -> Option<Source> {
    let value: Value = gnoma_core::json::from_str(line).ok()?;
    let has = |field: &str| value.get(field).is_some();
    let kind = value.get("type").and_then(Value::as_str);
    match kind {
        _ if has("gnoma_session") => Some(Source::Lines),
        Some("session_meta" | "response_item" | "event_msg" | "turn_context") if has("payload") => {
            Some(Source::Codex)
        }
        Some("user" | "assistant") if has("message") => Some(Source::ClaudeCode),
        Some("summary") if has("leafUuid") => Some(Source::ClaudeCode),
        Some("message" | "function_call" | "reasoning") if !has("message") => Some(Source::Codex),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn import_detects_the_session_format_from_the_first_lines() {
        let cases = [
            ("jsonl", r#"{"gnoma_session":1,"facts":{}}"#, Some(Source::Lines)),
            ("jsonl", r#"{"type":"session_meta","payload":{}}"#, Some(Source::Codex)),
            ("jsonl", "{}\n{\"type\":\"user\",\"message\":{}}", Some(Source::ClaudeCode)),
            ("jsonl", r#"{"type":"message","role":"user"}"#, Some(Source::Codex)),
            (
                "json",
                r#"{"id":"s","version":"1","directory":"/p","time":{}}"#,
                Some(Source::Opencode),
            ),
            ("json", r#"{"name":"package"}"#, None),
            ("txt", r#"{"gnoma_session":1}"#, None),
            ("jsonl", "no json", None),
        ];
        for (ending, begin, source) in cases {
            assert_eq!(source_of_content(ending, begin), source, "{begin}");
        }
    }
}
