//! What rules about files make of a conversation under way: an arm that must not see what was just
//! opened is not sent it.

use gnoma_core::Content;

use super::{router::Router, state::Session};

impl Session {
    /// Looks at what has come to the conversation for paths that rules ask for.
    pub(super) fn look_for_paths(&mut self) {
        let Router { concern, looked_at, plan, .. } = &mut self.router;
        if !concern.is_asked_for() {
            return;
        }
        let history = self.turn.history();
        for message in history.iter().skip(*looked_at) {
            for content in message.content() {
                match content {
                    Content::Text(text) => concern.add_mentioned_paths(&text.text),
                    Content::ToolCall(call) => {
                        match gnoma_core::json::from_str(call.arguments.get()) {
                            Ok(arguments) => concern.open(&arguments),
                            Err(_broken) => concern.add_mentioned_paths(call.arguments.get()),
                        }
                    }
                    Content::Image(_)
                    | Content::Thinking(_)
                    | Content::RedactedThinking(_)
                    | Content::ToolResult(_) => {}
                }
            }
        }
        *looked_at = history.len();
        if let Some(plan) = plan {
            plan.task.touched = concern.matched_paths();
        }
    }
}
