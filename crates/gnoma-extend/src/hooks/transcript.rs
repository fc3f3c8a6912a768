//! The conversation for hooks that read `transcript_path`: a JSON object a line, in the other program's format, as
//! far as the points of the session reveal it, without secrets. It is deleted with the session.

use std::{fmt, io::Write as _, path::Path};

use gnoma_core::{lifecycle::Point, sync::Mutex, text_truncation};
use serde_json::{Value, json};

use super::{
    input::{outcome_text, tool_input},
    remote_hooks::{HookReach, SecretRemover, clean_strings},
};
use crate::names::to_claude_name;

/// Most bytes of it; what comes later is left out.
const MAX_TRANSCRIPT_BYTES: usize = 8 << 20;
/// Most of what one tool said.
const MAX_RESULT_BYTES: usize = 64 << 10;

/// The conversation so far.
pub(crate) struct Transcript {
    file: tempfile::NamedTempFile,
    lines: Mutex<PendingText>,
    clean: Option<SecretRemover>,
}

impl fmt::Debug for Transcript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transcript").field("file", &self.file).finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct PendingText {
    text: String,
    bytes: usize,
}

impl Transcript {
    /// Creates a transcript in a folder; `None` if it cannot be written. It has no secrets that `reach` takes out of
    /// texts.
    pub(crate) fn create_in(folder: &Path, reach: &HookReach) -> Option<Self> {
        let made =
            tempfile::Builder::new().prefix("transcript-").suffix(".jsonl").tempfile_in(folder);
        Some(Self { file: made.ok()?, lines: Mutex::default(), clean: reach.clean.clone() })
    }

    /// Returns the path of the transcript.
    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    /// Takes in what a point tells. It is written when a hook is run.
    pub(crate) fn record_point(&self, session: &str, point: &Point) {
        let mut lines = self.lines.lock();
        for mut entry in transcript_entries(point) {
            if let Some(clean) = &self.clean {
                clean_strings(&mut entry, clean);
            }
            if let Some(fields) = entry.as_object_mut() {
                fields.insert("sessionId".to_owned(), session.into());
            }
            let line = format!("{entry}\n");
            lines.bytes += line.len();
            if lines.bytes <= MAX_TRANSCRIPT_BYTES {
                lines.text.push_str(&line);
            }
        }
    }

    /// Writes what was taken in.
    pub(crate) fn flush(&self) {
        let mut lines = self.lines.lock();
        let text = std::mem::take(&mut lines.text);
        // Without it a hook sees less; nothing else depends on it.
        let _full = self.file.as_file().write_all(text.as_bytes());
    }
}

fn transcript_entries(point: &Point) -> Vec<Value> {
    let message = |role: &str, content: Value| json!({"type": role, "message": {"role": role, "content": content}});
    match point {
        Point::Prompt { text } => vec![message("user", json!(text))],
        Point::AfterTool { call, outcome, .. } => {
            let id = call.id.as_str();
            let used = json!([{
                "type": "tool_use", "id": id, "name": to_claude_name(&call.name), "input": tool_input(call),
            }]);
            let (text, is_error) = outcome_text(outcome);
            let text = text_truncation::word_prefix(&text, MAX_RESULT_BYTES);
            let result = json!([{
                "type": "tool_result", "tool_use_id": id, "content": text, "is_error": is_error,
            }]);
            vec![message("assistant", used), message("user", result)]
        }
        Point::BeforeStop { last_words, .. } => {
            vec![message("assistant", json!([{"type": "text", "text": last_words}]))]
        }
        _ => Vec::new(),
    }
}
