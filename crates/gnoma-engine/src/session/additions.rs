//! What people added to a session: who is asked, and what is under way.

use std::sync::Arc;

use gnoma_core::{
    Message,
    lifecycle::{Lifecycle, PointAnswer, PointKind, SideModel},
    message::Content,
    session::StepTurn,
};
use tokio::{sync::oneshot, task::JoinSet};

use crate::turn::ExtensionStops;

/// The extensions that people added, and their running work.
#[derive(Default)]
pub(super) struct Additions {
    pub(super) lifecycle: Option<Arc<dyn Lifecycle>>,
    /// The answer of the extensions to the start of the session.
    pub(super) started: Option<oneshot::Receiver<PointAnswer>>,
    /// Points that run beside the conversation. Dropping it stops them.
    pub(super) beside: JoinSet<()>,
    /// Notifications that the end of the session waits for. Dropping it stops them.
    pub(super) notifications: JoinSet<()>,
    /// A step of a task that waits for the end of another turn.
    pub(super) next_step: Option<StepTurn>,
}

impl Additions {
    pub(super) fn new(lifecycle: Option<Arc<dyn Lifecycle>>) -> Self {
        Self { lifecycle, ..Self::default() }
    }

    /// They may ask models by this way.
    pub(super) fn set_side_model(&self, model: impl SideModel + 'static) {
        if let Some(lifecycle) = &self.lifecycle {
            lifecycle.set_side_model(Arc::new(model));
        }
    }

    /// Returns the points at which the turn machine stops for the extensions.
    pub(super) fn stop_points(&self) -> ExtensionStops {
        let listens = |kind| self.listener_for(kind).is_some();
        ExtensionStops {
            prompts: listens(PointKind::Prompt) || listens(PointKind::SessionStart),
            commands: self.lifecycle.is_some(),
            end: listens(PointKind::BeforeStop),
        }
    }

    /// Returns the extensions if they listen at this kind of point.
    pub(super) fn listener_for(&self, kind: PointKind) -> Option<Arc<dyn Lifecycle>> {
        self.lifecycle.clone().filter(|lifecycle| lifecycle.has_listener(kind))
    }

    /// Returns the texts that stay besides a summary of the conversation, except those that `stays` already holds.
    pub(super) fn retained_texts(&self, stays: &[Arc<Message>]) -> Vec<String> {
        let mut texts = self.lifecycle.as_ref().map(|all| all.retained_texts()).unwrap_or_default();
        let holds = |text: &str| {
            // Without the marks around it.
            let inner = text.split_once('\n').and_then(|(_, rest)| rest.rsplit_once('\n'));
            let inner = inner.map_or(text, |(inner, _)| inner);
            stays.iter().any(|message| message_contains(message, inner))
        };
        texts.retain(|text| !holds(text));
        texts
    }

    pub(super) fn turn_ended(&self) {
        if let Some(lifecycle) = &self.lifecycle {
            lifecycle.turn_ended();
        }
    }
}

/// Reports whether a message contains a text.
fn message_contains(message: &Message, text: &str) -> bool {
    message.content().iter().any(|content| match content {
        Content::Text(said) => said.text.contains(text),
        Content::ToolResult(result) => result.joined_text().contains(text),
        Content::Thinking(_)
        | Content::RedactedThinking(_)
        | Content::ToolCall(_)
        | Content::Image(_) => false,
    })
}
