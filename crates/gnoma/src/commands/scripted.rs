//! A model that is none: it answers what a person says with a call of one tool, and the result with a word, and
//! remembers what it was sent last. What comes of the call goes through everything that a real one goes through.

use std::{
    future,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use futures_util::stream;
use gnoma_core::{
    EventStream, Message, ModelInfo, ModelRequest, Provider, ProviderError, Role, StopReason,
    StreamEvent,
    message::{Content, ResultPart, ToolResult},
    tool::BoxFuture,
};

/// The id of its call.
pub(super) const CALL: &str = "call_run";

/// A model that follows a script: it calls one tool.
#[derive(Default)]
pub(super) struct ScriptedModel {
    tool: String,
    arguments: String,
    has_called: AtomicBool,
    last: Mutex<Vec<Arc<Message>>>,
}

impl ScriptedModel {
    /// One that calls `tool` with these arguments.
    pub(super) fn with_tool_call(tool: &str, arguments: String) -> Self {
        Self { tool: tool.to_owned(), arguments, ..Self::default() }
    }

    /// The results of tools at the end of the last request, as they came through the firewall, and whether
    /// one of them says that the call failed.
    pub(super) fn last_tool_results(&self) -> (String, bool) {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_result = |message: &&Arc<Message>| message.role() == Role::Tool;
        let results =
            last.iter().rev().skip_while(|message| !is_result(message)).take_while(is_result);
        let content = results.flat_map(|message| message.content());
        let results: Vec<&ToolResult> = content
            .filter_map(|content| match content {
                Content::ToolResult(result) => Some(result),
                _ => None,
            })
            .collect();
        let texts = results.iter().flat_map(|result| &result.parts).map(|part| match part {
            ResultPart::Text { text } => text.as_str(),
            _ => "",
        });
        (texts.collect(), results.iter().any(|result| result.is_error))
    }
}

impl Provider for ScriptedModel {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn stream(&self, request: ModelRequest) -> EventStream {
        // What follows a result, such as a word about a check that failed, is no reason to call again.
        let has_called = self.has_called.swap(true, Ordering::Relaxed);
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = request.messages;
        let events = if has_called {
            vec![
                StreamEvent::TextDelta { slot: 0, text: "done".to_owned() },
                StreamEvent::Stop(StopReason::EndTurn),
            ]
        } else {
            vec![
                StreamEvent::ToolCallStart {
                    slot: 0,
                    id: CALL.to_owned(),
                    name: self.tool.clone(),
                },
                StreamEvent::ToolCallDelta { slot: 0, fragment: self.arguments.clone() },
                StreamEvent::ToolCallDone { slot: 0 },
                StreamEvent::Stop(StopReason::ToolUse),
            ]
        };
        Box::pin(stream::iter(events.into_iter().map(Ok)))
    }

    fn list_models(&self) -> BoxFuture<'_, Result<Vec<ModelInfo>, ProviderError>> {
        Box::pin(future::ready(Ok(Vec::new())))
    }
}
