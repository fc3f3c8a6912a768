//! Builds a valid path from pieces in whatever order a transcript has them: the blocks of an answer become one
//! message, its results the next; calls without a result are marked as interrupted.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use gnoma_core::{
    CallId, Content, Message, ModelRef, StopReason, ToolCall, ToolResult, Usage,
    store::{Entry, EntryId, Record},
};

use super::imported::{ImportedTranscript, MAX_ENTRIES, import_error};
use crate::{error::Result, recover::INTERRUPTED, text};

/// Counts kept of calls and results that do not belong together.
const NO_RESULT: &str = "calls without a result";
const NO_CALL: &str = "results without a call";
const TWICE: &str = "calls with an id used before in one answer";

/// An answer that is being put together.
struct ImportedAnswer {
    group: Option<String>,
    at_ms: i64,
    content: Vec<Content>,
    origin: Option<ModelRef>,
    stop: Option<StopReason>,
    usage: Option<Usage>,
    results: HashMap<CallId, ToolResult>,
}

/// Takes pieces, gives entries.
#[derive(Default)]
pub(super) struct Builder {
    imported: ImportedTranscript,
    answer: Option<ImportedAnswer>,
    latest_ms: i64,
}

impl Builder {
    /// Remembers when the next piece was made; pieces without a time keep the last one.
    pub(super) fn set_time(&mut self, at_ms: Option<i64>) {
        self.latest_ms = at_ms.unwrap_or(self.latest_ms);
    }

    /// Counts something that has no place here.
    pub(super) fn count_skipped(&mut self, kind: &str) {
        // Kinds come from the file: their number and length stay bounded.
        const MAX_KINDS: usize = 64;
        const KIND_CHARS: usize = 60;
        let kind = text::one_line(kind, KIND_CHARS);
        let known = self.imported.skipped.contains_key(&kind);
        if known || self.imported.skipped.len() < MAX_KINDS {
            self.imported.count_skipped(&kind);
        } else {
            self.imported.count_skipped("other kinds");
        }
    }

    /// Sets the title, the first time.
    pub(super) fn set_title_once(&mut self, title: Option<String>) {
        self.imported.title = self.imported.title.take().or(title);
    }

    /// Sets the title a person gave, whatever it was before.
    pub(super) fn override_title(&mut self, title: Option<String>) {
        self.imported.title = title.or(self.imported.title.take());
    }

    /// Sets the project, the first time.
    pub(super) fn set_project_once(&mut self, project: Option<String>) {
        self.imported.project = self.imported.project.take().or(project);
    }

    /// Sets the name it has where it comes from, the first time.
    pub(super) fn set_origin_once(&mut self, id: Option<String>) {
        self.imported.origin = self.imported.origin.take().or(id);
    }

    /// Adds what a person said.
    pub(super) fn add_user_message(&mut self, content: Vec<Content>) -> Result<()> {
        self.finish_answer()?;
        match Message::user(content) {
            Ok(message) => self.push(Record::Message(Arc::new(message))),
            Err(_) => {
                self.count_skipped("empty messages");
                Ok(())
            }
        }
    }

    /// A model wrote a block. Blocks of one `group` are one answer; without groups an answer ends
    /// with its first result.
    pub(super) fn add_model_block(
        &mut self,
        group: Option<&str>,
        origin: Option<&ModelRef>,
        block: Content,
    ) -> Result<()> {
        let same = self.answer.as_ref().is_some_and(|answer| match group {
            Some(group) => answer.group.as_deref() == Some(group),
            None => answer.group.is_none() && answer.results.is_empty(),
        });
        if !same {
            self.finish_answer()?;
        }
        let latest_ms = self.latest_ms;
        let answer = self.answer.get_or_insert_with(|| ImportedAnswer {
            group: group.map(str::to_owned),
            at_ms: latest_ms,
            content: Vec::new(),
            origin: origin.cloned(),
            stop: None,
            usage: None,
            results: HashMap::new(),
        });
        answer.content.push(block);
        Ok(())
    }

    /// Records why the answer being written ended.
    pub(super) fn set_stop_reason(&mut self, stop: Option<StopReason>) {
        if let Some(answer) = &mut self.answer {
            answer.stop = stop.or(answer.stop);
        }
    }

    /// Records what the answer being written cost; told again, the last word counts.
    pub(super) fn set_usage(&mut self, usage: Usage) -> Result<()> {
        match &mut self.answer {
            Some(answer) => {
                answer.usage = Some(usage);
                Ok(())
            }
            None => self.push(Record::Used(usage)),
        }
    }

    /// A call was answered. The name is filled in from the call.
    pub(super) fn add_result(&mut self, result: ToolResult) {
        let known = self.answer.as_mut().and_then(|answer| {
            let calls = &answer.content;
            let called = calls
                .iter()
                .any(|block| matches!(block, Content::ToolCall(call) if call.id == result.call_id));
            called.then_some(&mut answer.results)
        });
        match known {
            Some(results) => {
                results.insert(result.call_id.clone(), result);
            }
            None => self.count_skipped(NO_CALL),
        }
    }

    /// An entry that is not part of the conversation.
    pub(super) fn add_record(&mut self, record: Record) -> Result<()> {
        self.finish_answer()?;
        self.push(record)
    }

    fn push(&mut self, record: Record) -> Result<()> {
        if self.imported.entries.len() >= MAX_ENTRIES {
            return Err(import_error(format_args!("it has more than {MAX_ENTRIES} entries")));
        }
        let parent = self.imported.entries.last().map(|entry| entry.id);
        let id = EntryId(parent.map_or(1, |parent| parent.0 + 1));
        self.imported.entries.push(Entry { id, parent, at_ms: self.latest_ms, record });
        Ok(())
    }

    fn finish_answer(&mut self) -> Result<()> {
        let Some(mut answer) = self.answer.take() else { return Ok(()) };
        let latest_ms = std::mem::replace(&mut self.latest_ms, answer.at_ms);
        let mut seen = HashSet::new();
        let mut calls: Vec<ToolCall> = Vec::new();
        answer.content.retain(|block| {
            let Content::ToolCall(call) = block else { return true };
            let is_new = seen.insert(call.id.clone());
            if is_new {
                calls.push(call.clone());
            } else {
                self.imported.count_skipped(TWICE);
            }
            is_new
        });
        if let Ok(message) = Message::assistant(answer.content, answer.origin, answer.stop) {
            self.push(Record::Message(Arc::new(message)))?;
            if let Some(usage) = answer.usage {
                self.push(Record::Used(usage))?;
            }
        }
        self.latest_ms = latest_ms;
        self.close_calls(&calls, answer.results)
    }

    fn close_calls(
        &mut self,
        calls: &[ToolCall],
        mut given: HashMap<CallId, ToolResult>,
    ) -> Result<()> {
        let mut results = Vec::with_capacity(calls.len());
        for call in calls {
            let result = given.remove(&call.id).filter(|result| !result.parts.is_empty());
            results.push(match result {
                Some(result) => ToolResult { name: call.name.clone(), ..result },
                None => {
                    self.count_skipped(NO_RESULT);
                    ToolResult::from_text(call, INTERRUPTED, true)
                }
            });
        }
        match Message::results(results) {
            Ok(message) => self.push(Record::Message(Arc::new(message))),
            Err(_) => Ok(()),
        }
    }

    /// Finishes and returns the whole path.
    pub(super) fn finish(mut self) -> Result<ImportedTranscript> {
        self.finish_answer()?;
        Ok(self.imported)
    }
}
