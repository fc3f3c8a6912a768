//! A question to one arm beside the conversation: the whole answer as text, within a time.

use std::time::Duration;

use futures_util::StreamExt as _;
use gnoma_core::{
    Accumulator, ErrorKind, ModelRequest, Provider as _, ProviderError, StreamEvent, Usage,
    message::Content,
};
use tokio::time::timeout;

use crate::arm::Arm;

/// What came back.
#[derive(Clone, Debug, Default)]
pub(crate) struct Said {
    /// The text of the answer, thinking left out.
    pub(crate) text: String,
    /// What it took.
    pub(crate) usage: Option<Usage>,
}

/// Asks and waits for the whole answer.
pub(crate) async fn ask(
    arm: &Arm,
    request: ModelRequest,
    patience: Duration,
) -> Result<Said, ProviderError> {
    let whole = async {
        let mut stream = arm.provider.stream(request);
        let mut answer = Accumulator::new();
        while let Some(event) = stream.next().await {
            let event = event?;
            answer.push(&event);
            if matches!(event, StreamEvent::Stop(_)) || answer.is_full() {
                break;
            }
        }
        let response = answer.finish();
        let text = response.content.iter().filter_map(|content| match content {
            Content::Text(text) => Some(text.text.as_str()),
            Content::Image(_)
            | Content::Thinking(_)
            | Content::RedactedThinking(_)
            | Content::ToolCall(_)
            | Content::ToolResult(_) => None,
        });
        Ok(Said { text: text.collect(), usage: response.usage })
    };
    timeout(patience, whole).await.unwrap_or_else(|_late| {
        let name = arm.provider.facts().name.clone();
        Err(ProviderError::new(ErrorKind::Timeout, name, "did not answer in time"))
    })
}
