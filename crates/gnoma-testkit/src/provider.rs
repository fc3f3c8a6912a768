//! A provider that answers by a script.

use std::{
    collections::VecDeque,
    future,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::{StreamExt as _, stream};
use gnoma_core::{
    ErrorKind, EventStream, ModelInfo, ModelRequest, Provider, ProviderError, StopReason,
    StreamEvent, tool::BoxFuture,
};

use crate::lock_ignoring_poison;

/// One scripted answer of a provider.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// The events that the consumer is given, in order.
    pub events: Vec<Result<StreamEvent, ProviderError>>,
    /// Wait before each, in tokio's time.
    pub wait: Duration,
    /// Stay open and silent after the last one.
    pub hang: bool,
}

impl Answer {
    /// Creates an answer of these events.
    #[must_use]
    pub fn from_events(events: Vec<Result<StreamEvent, ProviderError>>) -> Self {
        Self { events, ..Self::default() }
    }

    /// Creates an answer of these words that then ends.
    pub fn text(words: impl Into<String>) -> Self {
        let text = StreamEvent::TextDelta { slot: 0, text: words.into() };
        Self::from_events(vec![Ok(text), Ok(StreamEvent::Stop(StopReason::EndTurn))])
    }

    /// Calls, each an id, a name and arguments as JSON text, to be run.
    #[must_use]
    pub fn calls(calls: &[(&str, &str, &str)]) -> Self {
        let mut events = Vec::new();
        for (slot, (id, name, arguments)) in (0..).zip(calls) {
            events.push(Ok(StreamEvent::ToolCallStart {
                slot,
                id: (*id).to_owned(),
                name: (*name).to_owned(),
            }));
            events.push(Ok(StreamEvent::ToolCallDelta { slot, fragment: (*arguments).to_owned() }));
            events.push(Ok(StreamEvent::ToolCallDone { slot }));
        }
        events.push(Ok(StreamEvent::Stop(StopReason::ToolUse)));
        Self::from_events(events)
    }

    /// A failure at once.
    #[must_use]
    pub fn from_error(kind: ErrorKind) -> Self {
        Self::from_events(vec![Err(ProviderError::new(kind, "fake", "as scripted"))])
    }

    /// Creates an answer that stays silent forever.
    #[must_use]
    pub fn endless_silence() -> Self {
        Self::default().then_hang()
    }

    /// Silent for ever after its events.
    #[must_use]
    pub fn then_hang(mut self) -> Self {
        self.hang = true;
        self
    }

    /// With a wait before each event.
    #[must_use]
    pub fn with_event_delay(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }
}

#[derive(Default)]
struct ProviderState {
    answers: Mutex<VecDeque<Answer>>,
    requests: Mutex<Vec<ModelRequest>>,
}

/// Gives each request the next answer and keeps the requests. Asked once too often, it fails with
/// [`ErrorKind::Protocol`].
#[derive(Default)]
pub struct FakeProvider {
    shared: Arc<ProviderState>,
    models: Vec<ModelInfo>,
    /// One share of it for each stream that is alive.
    open: Arc<()>,
}

impl FakeProvider {
    /// A provider of these answers, called `fake`.
    #[must_use]
    pub fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        let fake = Self::default();
        lock_ignoring_poison(&fake.shared.answers).extend(answers);
        fake
    }

    /// Adds an answer to the end of the queue.
    pub fn push(&self, answer: Answer) {
        lock_ignoring_poison(&self.shared.answers).push_back(answer);
    }

    /// The requests so far.
    #[must_use]
    pub fn requests(&self) -> Vec<ModelRequest> {
        lock_ignoring_poison(&self.shared.requests).clone()
    }

    /// Returns the number of streams that are not dropped yet.
    #[must_use]
    pub fn open_streams(&self) -> usize {
        Arc::strong_count(&self.open) - 1
    }
}

impl ProviderState {
    fn next(&self, request: ModelRequest) -> Answer {
        lock_ignoring_poison(&self.requests).push(request);
        let next = lock_ignoring_poison(&self.answers).pop_front();
        next.unwrap_or_else(|| {
            let message = "the script has no answer left";
            let error = ProviderError::new(ErrorKind::Protocol, "fake", message);
            Answer::from_events(vec![Err(error)])
        })
    }
}

impl Provider for FakeProvider {
    fn name(&self) -> &'static str {
        "fake"
    }

    fn stream(&self, request: ModelRequest) -> EventStream {
        let shared = Arc::clone(&self.shared);
        let open = Arc::clone(&self.open);
        let answer = stream::once(async move { shared.next(request) });
        Box::pin(answer.flat_map(move |answer| stream_answer(answer, Arc::clone(&open))))
    }

    fn list_models(&self) -> BoxFuture<'_, Result<Vec<ModelInfo>, ProviderError>> {
        Box::pin(future::ready(Ok(self.models.clone())))
    }
}

/// The events, then perhaps silence; keeps `open` until it is dropped.
fn stream_answer(answer: Answer, open: Arc<()>) -> EventStream {
    let wait = answer.wait;
    let events = stream::iter(answer.events).then(move |event| {
        let _kept = &open;
        async move {
            if !wait.is_zero() {
                tokio::time::sleep(wait).await;
            }
            event
        }
    });
    if answer.hang { Box::pin(events.chain(stream::pending())) } else { Box::pin(events) }
}

#[cfg(test)]
mod tests {
    use gnoma_core::{Accumulator, ToolChoice};
    use tokio::time::{Instant, timeout};

    use super::*;

    fn request() -> ModelRequest {
        ModelRequest {
            model: "m".into(),
            system: "".into(),
            messages: Vec::new(),
            tools: Arc::new([]),
            tool_choice: ToolChoice::Auto,
            max_output_tokens: None,
            temperature: None,
            effort: None,
            context_window: None,
            format: None,
            thinking: None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn fake_provider_answers_in_order_with_delays_and_then_fails() {
        let wait = Duration::from_secs(60);
        let calls =
            Answer::calls(&[("a", "fs.read", "{}"), ("b", "fs.ls", "{}")]).with_event_delay(wait);
        let fake = FakeProvider::new([calls, Answer::endless_silence()]);

        let begun = Instant::now();
        let mut first = Accumulator::new();
        let mut stream = fake.stream(request());
        while let Some(event) = stream.next().await {
            first.push(&event.unwrap());
        }
        let first = first.into_response();
        assert_eq!(first.tool_calls().count(), 2);
        assert_eq!(first.stop, Some(StopReason::ToolUse));
        assert_eq!(begun.elapsed(), 7 * wait);

        let mut silent = fake.stream(request());
        assert!(timeout(wait, silent.next()).await.is_err());
        drop(stream);
        assert_eq!(fake.open_streams(), 1);
        drop(silent);
        assert_eq!(fake.open_streams(), 0);

        let last = fake.stream(request()).next().await.unwrap();
        assert_eq!(last.unwrap_err().kind, ErrorKind::Protocol);
        assert_eq!(fake.requests().len(), 3);
    }
}
