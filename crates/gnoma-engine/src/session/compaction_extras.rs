//! What of a past stays readable beside its summary: its large results, and files that have changed
//! since they were read.

use std::{collections::HashMap, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt as _;
use gnoma_core::{
    Content, Message, ResultPart, Tool, ToolCall, ToolCx, ToolOutcome, ToolResult,
    lifecycle::PointKind, message::CallId, text_truncation,
};
use tokio::{task::spawn_blocking, time::timeout};

use super::state::Session;
use crate::{
    context::{
        Strategy,
        brief::{self, Brief, ReadBackRoom},
    },
    gate::Judge,
    large_results::{self, LargeResults},
    tokens,
    turn::Verdict,
};

/// Most results of a past that move to the result store.
const MAX_ASIDE: usize = 20;
/// Smaller results are not worth it.
const LEAST_ASIDE_TOKENS: usize = 256;
/// Most files that are looked at again.
const MAX_READ_AGAIN: usize = 20;
/// Longest wait for one.
const READ_PATIENCE: Duration = Duration::from_secs(5);
/// Most bytes of what a result is named by.
const MAX_NAME_BYTES: usize = 80;

/// The parts of a past that stay readable beside its summary.
pub(super) struct CompactionExtras {
    results: Vec<OffloadedResult>,
    store: Option<(Arc<LargeResults>, String)>,
    files: Vec<RereadFile>,
    judge: Judge,
    cx: ToolCx,
    room: ReadBackRoom,
}

/// A result that moves to the result store.
struct OffloadedResult {
    name: String,
    text: String,
    /// The id of the result in the result store, if it is already there.
    id: Option<String>,
}

/// A file that is looked at again, as it was read.
struct RereadFile {
    path: String,
    hash: String,
    call: ToolCall,
    tool: Arc<dyn Tool>,
}

impl Session {
    /// Returns the parts of a past that stay readable: nothing if its oldest messages are simply left out.
    pub(super) fn kept_beside(
        &self,
        past: &[Arc<Message>],
        brief: &Brief,
        strategy: Strategy,
        window_tokens: Option<u32>,
    ) -> CompactionExtras {
        let reader = self.reads_results.as_ref().filter(|_| strategy == Strategy::Full);
        let store = self.persistence.large_results.clone();
        let store = store.zip(reader.map(|reader| reader.name.clone()));
        let results = if store.is_some() { find_large_results(past) } else { Vec::new() };
        // What hooks and skills hold a model back from is not read without asking them.
        let is_free = self.added.listener_for(PointKind::BeforeTool).is_none()
            && self.gate.rights.tool_limits().is_empty();
        let again = |(path, read): (&String, &brief::LastRead)| {
            let tool = Arc::clone(self.tools.by_name.get(&read.call.name)?);
            let (hash, call) = (read.hash.clone(), read.call.clone());
            Some(RereadFile { path: path.clone(), hash, call, tool })
        };
        let files = if is_free && strategy != Strategy::Truncate {
            brief.deeds.reads.iter().filter_map(again).take(MAX_READ_AGAIN).collect()
        } else {
            Vec::new()
        };
        let room = ReadBackRoom::for_window(window_tokens);
        CompactionExtras {
            results,
            store,
            files,
            judge: self.gate.current_judge(),
            cx: self.tool_cx(),
            room,
        }
    }
}

impl CompactionExtras {
    /// Sets the results aside and reads the files again. Gives how the results are named, and the files
    /// that are not what they were.
    pub(super) async fn save_and_reread(self) -> (Vec<String>, Vec<(String, String)>) {
        let Self { results, store, files, judge, cx, room } = self;
        let mut aside = Vec::new();
        if let Some((store, reader)) = store {
            for OffloadedResult { name, text, id } in results {
                let bytes = text.len();
                let id = match id {
                    Some(id) => Some(id),
                    None => store.set_aside(&text).await.map(|id| id.to_string()),
                };
                let Some(id) = id else { break };
                aside.push(format!("`{id}` ({reader} reads it): {name}, {bytes} bytes"));
            }
        }
        let mut read = Vec::new();
        for file in files {
            if let Some(text) = file.rerun_call(judge.clone(), cx.clone()).await {
                read.push((file.path, file.hash, text));
            }
        }
        (aside, brief::read_back(read, room))
    }
}

impl RereadFile {
    /// The current result of the same call, if it may run without approval.
    async fn rerun_call(&self, judge: Judge, cx: ToolCx) -> Option<String> {
        let (tool, call) = (Arc::clone(&self.tool), self.call.clone());
        let judged =
            spawn_blocking(move || judge.decide(tool.spec(), &call, |_, _| Ok(None))).await;
        let (Verdict::Allow { .. }, Some(admitted)) = judged.ok()? else { return None };
        let (call, grant) = admitted.without_secrets()?;
        let cx = ToolCx { grant, stores_large_results: false, ..cx };
        let run = AssertUnwindSafe(self.tool.run(call, cx)).catch_unwind();
        match timeout(READ_PATIENCE, run).await {
            Ok(Ok(ToolOutcome::Done(output))) => {
                let parts = output.parts;
                let (call_id, name) = (CallId::new(""), String::new());
                Some(ToolResult { call_id, name, parts, is_error: false }.joined_text())
            }
            _ => None,
        }
    }
}

/// The large results of a past, the latest last.
fn find_large_results(past: &[Arc<Message>]) -> Vec<OffloadedResult> {
    let calls = past.iter().flat_map(|message| message.tool_calls());
    let names: HashMap<&CallId, &ToolCall> = calls.map(|call| (&call.id, call)).collect();
    let mut found = Vec::new();
    for message in past.iter().rev() {
        for content in message.content().iter().rev() {
            let Content::ToolResult(result) = content else { continue };
            let has_pictures = result.parts.iter().any(|it| matches!(it, ResultPart::Image(_)));
            let text = result.joined_text();
            if has_pictures || tokens::estimate(&text) < LEAST_ASIDE_TOKENS {
                continue;
            }
            let arguments = names.get(&result.call_id).map_or("", |call| call.arguments.get());
            let what = format!("{} {}", result.name, arguments.replace(['\n', '`'], " "));
            let name = text_truncation::word_prefix(&what, MAX_NAME_BYTES).to_owned();
            let id = large_results::kept_as(&text).map(str::to_owned);
            found.push(OffloadedResult { name, text, id });
            if found.len() == MAX_ASIDE {
                found.reverse();
                return found;
            }
        }
    }
    found.reverse();
    found
}
