//! What rules about files make of a conversation under way: an arm that must not see what was just
//! opened is not sent it.

use gnoma_core::{Content, ErrorKind, ProviderError};

use super::{Session, Way};
use crate::routing::OWN;

impl Session {
    /// Looks at what has come to the conversation for paths that rules ask for.
    pub(in crate::session) fn look_for_paths(&mut self) {
        let Way { concern, looked_at, course, .. } = &mut self.way;
        if !concern.is_asked_for() {
            return;
        }
        let history = self.turn.history();
        for message in history.iter().skip(*looked_at) {
            for content in message.content() {
                match content {
                    Content::Text(text) => concern.hear(&text.text),
                    Content::ToolCall(call) => match serde_json::from_str(call.arguments.get()) {
                        Ok(arguments) => concern.open(&arguments),
                        Err(_broken) => concern.hear(call.arguments.get()),
                    },
                    Content::Image(_)
                    | Content::Thinking(_)
                    | Content::RedactedThinking(_)
                    | Content::ToolResult(_) => {}
                }
            }
        }
        *looked_at = history.len();
        if let Some(course) = course {
            course.task.touched = concern.met();
        }
    }
}

impl Way {
    /// Why the arm of the turn must not be sent the conversation as it is now, by the user's rules.
    pub(super) fn kept_from(&self) -> Option<ProviderError> {
        let course = self.course.as_ref().filter(|_| self.concern.is_asked_for())?;
        let arm = course.arm.name();
        let why = self.routes.kept_from(&arm, &course.task)?;
        let hint = "Name a model that may see it, with --model or /model, or change the rule.";
        let text = format!("{arm} may not see what was opened: it {why}");
        Some(ProviderError::new(ErrorKind::BadRequest, OWN, text).with_hint(hint))
    }
}
