//! A model that does what it is told, for tests of sessions that start others.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::{StreamExt as _, stream};
use gnoma_core::{
    ErrorKind, EventStream, Message, ModelInfo, ModelRequest, Provider, ProviderError, StopReason,
    StreamEvent, ToolResult, Usage, tool::BoxFuture,
};

/// The texts of one request, and who is asked, as its system prompt tells.
pub(crate) type Asked = Arc<Mutex<Vec<(String, Vec<String>)>>>;

/// Does what the last message says: `start X` has a session started that does X, `pair X` two at once;
/// `spawn JSON` and `elf JSON` call those tools, `write` calls one that is asked for, `late` does so later,
/// `nap` answers later, `hang` never ends, `fail` fails, and anything else is said.
#[derive(Default)]
pub(crate) struct Obedient(pub(crate) Asked);

pub(crate) type Events = Vec<Result<StreamEvent, ProviderError>>;

fn calls(name: &str, arguments: &[String]) -> Events {
    let mut events = Vec::new();
    for (slot, arguments) in (0..).zip(arguments) {
        let (id, name) = (format!("c{slot}"), name.to_owned());
        events.push(Ok(StreamEvent::ToolCallStart { slot, id, name }));
        events.push(Ok(StreamEvent::ToolCallDelta { slot, fragment: arguments.clone() }));
        events.push(Ok(StreamEvent::ToolCallDone { slot }));
    }
    events.push(Ok(StreamEvent::Stop(StopReason::ToolUse)));
    events
}

/// An answer that only says something.
pub(crate) fn text(text: String) -> Events {
    vec![Ok(StreamEvent::TextDelta { slot: 0, text }), Ok(StreamEvent::Stop(StopReason::EndTurn))]
}

/// What a message says: its text, or the results in it.
pub(crate) fn words(message: &Message) -> String {
    let results: Vec<_> = message.tool_results().map(ToolResult::joined_text).collect();
    if results.is_empty() { message.text_content() } else { results.join(", ") }
}

/// Events with a pause before each.
pub(crate) fn paced(events: Events, pause: Duration) -> EventStream {
    Box::pin(stream::iter(events).then(move |event| async move {
        tokio::time::sleep(pause).await;
        event
    }))
}

impl Obedient {
    /// What it answers, without what that takes, and how long each piece of it takes; `None` if it never answers.
    pub(crate) fn answer(&self, request: &ModelRequest) -> Option<(Events, Duration)> {
        let texts: Vec<String> = request.messages.iter().map(|one| words(one)).collect();
        let said = texts.last().cloned().unwrap();
        self.0.lock().unwrap().push((request.system.to_string(), texts));
        let is_result = request.messages.last().unwrap().tool_results().next().is_some();
        let (word, rest) = said.split_once(' ').unwrap_or((&said, ""));
        let task = serde_json::json!({ "say": rest }).to_string();
        let events = match word {
            _ if is_result => text(said.clone()),
            "start" => calls("start", &[task]),
            "pair" => calls("start", &[task.clone(), task]),
            "spawn" => calls("elf.spawn", &[rest.to_owned()]),
            "elf" => calls("elf", &[rest.to_owned()]),
            "write" | "late" => calls("write", &["{}".to_owned()]),
            "hang" => return None,
            "fail" => vec![Err(ProviderError::new(ErrorKind::BadRequest, "obedient", "as told"))],
            _ => text(format!("said {said}")),
        };
        let pause = Duration::from_millis(if matches!(word, "nap" | "late") { 1_000 } else { 3 });
        Some((events, pause))
    }
}

impl Provider for Obedient {
    fn name(&self) -> &'static str {
        "obedient"
    }

    fn stream(&self, request: ModelRequest) -> EventStream {
        let Some((events, pause)) = self.answer(&request) else {
            return Box::pin(stream::pending());
        };
        let usage = Usage { input: 5_000, output: 1_000, ..Usage::default() };
        let events = std::iter::once(Ok(StreamEvent::Usage(usage))).chain(events);
        paced(events.collect(), pause)
    }

    fn list_models(&self) -> BoxFuture<'_, Result<Vec<ModelInfo>, ProviderError>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}
