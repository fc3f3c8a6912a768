//! The last request to a model, to show what fills its window. It is kept by reference and measured only on demand.

use std::sync::{Arc, Mutex, PoisonError};

use gnoma_core::{Content, Message, protocol::WindowUse, tool::ToolSpec};

use crate::{compact, context::cache::Cache, prompt, tokens};

/// Tokens of a tool's frame besides its words.
const TOOL_FRAME_TOKENS: usize = 8;

/// The last request of a session to a model; before the first call, the request that it would send.
#[derive(Debug, Default)]
pub struct LastRequest {
    sent: Mutex<RequestParts>,
    cache: Mutex<Cache>,
}

#[derive(Debug, Default)]
struct RequestParts {
    system: Arc<str>,
    tools: Arc<[Arc<ToolSpec>]>,
    messages: Vec<Arc<Message>>,
    summary: Option<Arc<Message>>,
}

impl LastRequest {
    /// Remembers what is sent.
    pub fn record_request(
        &self,
        system: Arc<str>,
        tools: Arc<[Arc<ToolSpec>]>,
        messages: Vec<Arc<Message>>,
    ) {
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        (sent.system, sent.tools, sent.messages) = (system, tools, messages);
    }

    /// The text that replaces the beginning of the conversation in requests; `None` if they contain all of it.
    #[must_use]
    pub fn summary(&self) -> Option<String> {
        let sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        sent.summary.as_ref().and_then(|summary| prompt::summary_of(summary))
    }

    /// Remembers what replaces the beginning of the conversation.
    pub(crate) fn set_summary(&self, summary: Option<Arc<Message>>) {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner).summary = summary;
    }

    /// Describes for people what prompt caches saved, and what broke them.
    #[must_use]
    pub fn describe_cache(&self) -> String {
        self.with_cache(|cache| cache.describe_savings())
    }

    pub(crate) fn with_cache<T>(&self, look: impl FnOnce(&mut Cache) -> T) -> T {
        look(&mut self.cache.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Roughly how many tokens each part takes; `instructions` is the part of the system prompt that
    /// is the project's.
    #[must_use]
    pub fn measure_window_use(&self, instructions: &str) -> WindowUse {
        let (system, tools, messages) = {
            let sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
            (Arc::clone(&sent.system), Arc::clone(&sent.tools), sent.messages.clone())
        };
        let of_tool = |spec: &Arc<ToolSpec>| {
            let words = [&*spec.name, &*spec.description, spec.parameters.get()];
            words.map(tokens::estimate).iter().sum::<usize>() + TOOL_FRAME_TOKENS
        };
        let whole = tokens::estimate(&system);
        let instructions =
            if system.contains(instructions) { tokens::estimate(instructions) } else { 0 };
        let is_result = |message: &&Arc<Message>| {
            message.content().iter().any(|part| matches!(part, Content::ToolResult(_)))
        };
        let (results, said): (Vec<_>, Vec<_>) = messages.iter().partition(is_result);
        let sum = |messages: Vec<&Arc<Message>>| {
            let messages: Vec<Arc<Message>> = messages.into_iter().map(Arc::clone).collect();
            compact::estimate_messages(&messages)
        };
        WindowUse {
            system: whole.saturating_sub(instructions) as u64,
            tools: tools.iter().map(of_tool).sum::<usize>() as u64,
            instructions: instructions as u64,
            history: sum(said),
            results: sum(results),
        }
    }
}

#[cfg(test)]
mod tests {
    use gnoma_core::{CallId, RawJson, ToolCall, ToolResult};

    use super::*;

    #[test]
    fn context_window_use_counts_every_part_once() {
        let gauge = LastRequest::default();
        assert_eq!(gauge.measure_window_use(""), WindowUse::default());
        let call = ToolCall::new(CallId::new("c"), "fs.read", RawJson::parse("{}").unwrap());
        let result = ToolResult::from_text(&call, "word ".repeat(100), false);
        let messages =
            vec![Message::user_text("one two three"), Message::results(vec![result]).unwrap()];
        let messages: Vec<Arc<Message>> = messages.into_iter().map(Arc::new).collect();
        gauge.record_request("Be brief.\nUse tabs here.".into(), Arc::default(), messages);
        let used = gauge.measure_window_use("Use tabs here.");
        assert_eq!((used.history, used.tools), (3, 0));
        assert!(
            used.results >= 100 && used.instructions == tokens::estimate("Use tabs here.") as u64
        );
        assert_eq!(gauge.measure_window_use("").system, used.system + used.instructions);
    }
}
