//! Reads the turns of a stored session for the detector of repeated chores. Pure: entries in, turns out.

use std::{collections::HashMap, path::Path};

use gnoma_core::{
    CallId, Message, Role, ToolCall, ToolResult,
    store::{Entry, EntryId, Record},
    text_truncation,
};
use gnoma_extend::tasks::repetition::{PastCall, PastTurn};
use gnoma_guard::shell::{StartContext, analyse_command};
use serde_json::Value;

use crate::timeline;

/// Most calls of one turn that are read.
const MAX_CALLS: usize = 48;
/// Longest command that is read, in bytes.
const MAX_COMMAND_BYTES: usize = 1 << 10;
/// Longest path that is read, in bytes.
const MAX_PATH_BYTES: usize = 256;
/// Bytes of a message that are read.
const MAX_MESSAGE_BYTES: usize = 1 << 10;
/// Names that tools have for the path of a file.
const PATH_FIELDS: [&str; 4] = ["path", "file_path", "filePath", "notebook_path"];
/// Names that tools have for a command.
const COMMAND_FIELDS: [&str; 2] = ["command", "cmd"];
/// Beginnings of the lines that name files in a patch of Codex.
const PATCH_LINES: [(&str, bool); 2] = [("*** Add File: ", true), ("*** Update File: ", false)];

/// A turn while its entries are read.
#[derive(Default)]
struct OpenTurn {
    turn: PastTurn,
    is_copied: bool,
    /// The commands that were called last under each text, by the calls' ids.
    commands: HashMap<CallId, String>,
    failed: HashMap<String, bool>,
    check: Option<bool>,
    was_interrupted: bool,
    is_answered: bool,
}

/// Returns the turns on a session's path. Those that a fork copied, up to and with the entry `forked_at`, are left out.
pub(super) fn read_turns(
    path: &[Entry],
    forked_at: Option<EntryId>,
    project: &Path,
) -> Vec<PastTurn> {
    let starts: HashMap<EntryId, String> =
        timeline::list_turns(path).into_iter().map(|turn| (turn.said, turn.words)).collect();
    let mut turns: Vec<OpenTurn> = Vec::new();
    for entry in path {
        if let Some(words) = starts.get(&entry.id) {
            let message = text_truncation::word_prefix(words, MAX_MESSAGE_BYTES).to_owned();
            let index = u32::try_from(turns.len()).unwrap_or(u32::MAX);
            turns.push(OpenTurn {
                turn: PastTurn { index, message, ..PastTurn::default() },
                is_copied: forked_at.is_some_and(|at| entry.id <= at),
                ..OpenTurn::default()
            });
            continue;
        }
        let Some(turn) = turns.last_mut() else { continue };
        match &entry.record {
            Record::Message(message) => turn.add_message(message, project),
            Record::ToolEnded(result) => turn.add_result(result),
            Record::Checked { passed, .. } => turn.check = Some(*passed),
            Record::Interrupted { .. } => turn.was_interrupted = true,
            Record::Asked { .. }
            | Record::Routed { .. }
            | Record::Judged { .. }
            | Record::Used(_)
            | Record::Paid { .. }
            | Record::Summary { .. }
            | Record::Checkpoint { .. }
            | Record::Title { .. }
            | Record::Rewound { .. }
            | Record::Tombstone { .. } => {}
        }
    }
    turns.into_iter().filter(|turn| !turn.is_copied).map(OpenTurn::into_past_turn).collect()
}

impl OpenTurn {
    fn add_message(&mut self, message: &Message, project: &Path) {
        if message.role() == Role::Assistant {
            self.is_answered = message.tool_calls().next().is_none();
        }
        for call in message.tool_calls() {
            let room = MAX_CALLS.saturating_sub(self.turn.calls.len());
            let calls = calls_of(call, project);
            if let Some(PastCall::Command(command)) = calls.first() {
                self.commands.insert(call.id.clone(), command.clone());
            }
            self.turn.calls.extend(calls.into_iter().take(room));
        }
        message.tool_results().for_each(|result| self.add_result(result));
    }

    fn add_result(&mut self, result: &ToolResult) {
        if let Some(command) = self.commands.get(&result.call_id) {
            self.failed.insert(command.clone(), result.is_error);
        }
    }

    /// A turn ended well if the model finished, no check failed, and no command failed the last time it ran.
    fn into_past_turn(self) -> PastTurn {
        let Self { mut turn, failed, check, was_interrupted, is_answered, .. } = self;
        turn.ended_well = is_answered
            && !was_interrupted
            && check != Some(false)
            && !failed.values().any(|has_failed| *has_failed);
        turn.calls.shrink_to_fit();
        turn
    }
}

/// Returns the steps of a call, by the fields that tools of gnoma and of other programs have.
fn calls_of(call: &ToolCall, project: &Path) -> Vec<PastCall> {
    let Ok(arguments) = serde_json::from_str::<Value>(call.arguments.get()) else {
        return Vec::new();
    };
    if let Some(patch) = patch_of(&arguments) {
        return files_of_patch(patch, project);
    }
    let command = COMMAND_FIELDS.iter().find_map(|field| match arguments.get(field)? {
        Value::String(line) => Some(line.as_str()),
        Value::Array(words) => words.last()?.as_str(),
        _ => None,
    });
    if let Some(line) = command {
        let fits = line.len() <= MAX_COMMAND_BYTES && !only_reads(line, project);
        return fits.then(|| PastCall::Command(line.to_owned())).into_iter().collect();
    }
    let path = PATH_FIELDS.iter().find_map(|field| arguments.get(field)?.as_str());
    let Some(path) = path.and_then(|path| relative_path(path, project)) else { return Vec::new() };
    let tool = call.name.to_ascii_lowercase();
    if tool.contains("write") {
        vec![PastCall::Write(path)]
    } else if tool.contains("edit") {
        vec![PastCall::Edit(path)]
    } else {
        Vec::new()
    }
}

/// Returns the text of a patch in the form of Codex.
fn patch_of(arguments: &Value) -> Option<&str> {
    let is_patch = |text: &&str| text.trim_start().starts_with("*** Begin Patch");
    let in_command = arguments.get("command").and_then(Value::as_array).and_then(|it| it.last());
    let candidates = [Some(arguments), arguments.get("input"), arguments.get("patch"), in_command];
    candidates.into_iter().flatten().find_map(|it| it.as_str().filter(is_patch))
}

fn files_of_patch(patch: &str, project: &Path) -> Vec<PastCall> {
    let file = |line: &str| {
        let (path, is_new) = PATCH_LINES
            .iter()
            .find_map(|(beginning, is_new)| Some((line.strip_prefix(beginning)?, *is_new)))?;
        let path = relative_path(path.trim(), project)?;
        Some(if is_new { PastCall::Write(path) } else { PastCall::Edit(path) })
    };
    patch.lines().filter_map(file).take(MAX_CALLS).collect()
}

fn only_reads(line: &str, project: &Path) -> bool {
    analyse_command(line, &StartContext { cwd: project.to_owned(), home: None }).is_read_only()
}

/// A path as the project sees it.
fn relative_path(path: &str, project: &Path) -> Option<String> {
    let inside =
        Path::new(path).strip_prefix(project).map_or(path, |it| it.to_str().unwrap_or(path));
    let inside = inside.trim_start_matches("./");
    (!inside.is_empty() && inside.len() <= MAX_PATH_BYTES).then(|| inside.to_owned())
}
