//! A provider that renames tools for models trained on Claude Code, and translates their calls back.

use std::{
    collections::{HashMap, VecDeque},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures_util::Stream;
use gnoma_core::{
    Content, EventStream, Message, ModelInfo, ModelRequest, Provider, ProviderError, RawJson, Role,
    StreamEvent, ToolSpec, provider::ToolChoice, stream::Slot, sync::Mutex, tool::BoxFuture,
};

use super::{
    renamer::{RenameDirection, Renamer},
    shape::{our_name, their_input, their_name, their_spec},
};

/// Tool sets that are remembered: a session's, those of its sub-agents, and without the last tools.
const MAX_SETS: usize = 16;

/// A provider behind which tools have their names.
pub struct RenamingProvider {
    inner: Arc<dyn Provider>,
    known: Mutex<KnownForms>,
}

/// Tools on offer, as a request has them.
type ToolSet = Arc<[Arc<ToolSpec>]>;

/// The messages and tools that were already converted to Claude Code's form. A message must stay the same object:
/// adapters remember how it was encoded.
#[derive(Default)]
struct KnownForms {
    sets: VecDeque<(ToolSet, ToolSet)>,
    messages: HashMap<usize, (Arc<Message>, Arc<Message>)>,
}

impl RenamingProvider {
    /// Shows `inner` tools in their form.
    #[must_use]
    pub fn new(inner: Arc<dyn Provider>) -> Self {
        Self { inner, known: Mutex::default() }
    }

    fn rename_request(&self, mut request: ModelRequest) -> ModelRequest {
        let mut known = self.known.lock();
        request.tools = known.rename_tools(&request.tools);
        // A message without another owner is part of no conversation any more.
        known.messages.retain(|_, (ours, _)| Arc::strong_count(ours) > 1);
        request.messages =
            request.messages.iter().map(|message| known.rename_message(message)).collect();
        if let ToolChoice::Tool(name) = &mut request.tool_choice {
            *name = their_name(name).to_owned();
        }
        request
    }
}

impl KnownForms {
    fn rename_tools(&mut self, ours: &ToolSet) -> ToolSet {
        if let Some((_, theirs)) = self.sets.iter().find(|(known, _)| Arc::ptr_eq(known, ours)) {
            return Arc::clone(theirs);
        }
        let theirs: ToolSet = ours.iter().map(|spec| Arc::new(their_spec(spec))).collect();
        self.sets.push_back((Arc::clone(ours), Arc::clone(&theirs)));
        if self.sets.len() > MAX_SETS {
            self.sets.pop_front();
        }
        theirs
    }

    fn rename_message(&mut self, ours: &Arc<Message>) -> Arc<Message> {
        let is_meant = ours.tool_calls().next().is_some() || ours.tool_results().next().is_some();
        if !is_meant {
            return Arc::clone(ours);
        }
        let place = Arc::as_ptr(ours) as usize;
        let entry = self.messages.entry(place);
        let (_, theirs) = entry.or_insert_with(|| (Arc::clone(ours), Arc::new(rename_calls(ours))));
        Arc::clone(theirs)
    }
}

/// A message with calls and results in their form.
fn rename_calls(ours: &Message) -> Message {
    let content = ours.content().iter().map(|block| match block {
        Content::ToolCall(call) => {
            let mut call = call.clone();
            let input = call.arguments.read().map(|input| their_input(&call.name, input));
            if let (false, Ok(Ok(arguments))) =
                (call.broken, input.map(|it| RawJson::from_value(&it)))
            {
                call.arguments = arguments;
            }
            call.name = their_name(&call.name).to_owned();
            Content::ToolCall(call)
        }
        Content::ToolResult(result) => {
            let mut result = result.clone();
            result.name = their_name(&result.name).to_owned();
            Content::ToolResult(result)
        }
        other => other.clone(),
    });
    let content: Vec<Content> = content.collect();
    let made = match ours.role() {
        Role::Tool => {
            let result = |block| match block {
                Content::ToolResult(result) => Some(result),
                _ => None,
            };
            Message::results(content.into_iter().filter_map(result).collect())
        }
        Role::Assistant | Role::User => {
            Message::assistant(content, ours.origin().cloned(), ours.stop_reason())
        }
    };
    made.unwrap_or_else(|_| ours.clone())
}

impl Provider for RenamingProvider {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn stream(&self, request: ModelRequest) -> EventStream {
        let inner = self.inner.stream(self.rename_request(request));
        Box::pin(TranslatedAnswer { inner, calls: HashMap::new(), ready: VecDeque::new() })
    }

    fn list_models(&self) -> BoxFuture<'_, Result<Vec<ModelInfo>, ProviderError>> {
        self.inner.list_models()
    }
}

/// An answer with its calls in our form.
struct TranslatedAnswer {
    inner: EventStream,
    calls: HashMap<Slot, Renamer>,
    /// The events to deliver before the next one is read; two at most.
    ready: VecDeque<StreamEvent>,
}

impl TranslatedAnswer {
    fn translate_event(&mut self, event: StreamEvent) -> Option<StreamEvent> {
        match event {
            StreamEvent::ToolCallStart { slot, id, name } => {
                let name = our_name(&name).to_owned();
                self.calls.entry(slot).or_insert_with(|| Renamer::new(&name, RenameDirection::In));
                Some(StreamEvent::ToolCallStart { slot, id, name })
            }
            StreamEvent::ToolCallDelta { slot, fragment } => {
                let fragment = match self.calls.get_mut(&slot) {
                    Some(renamer) => renamer.push(&fragment),
                    None => fragment,
                };
                (!fragment.is_empty()).then_some(StreamEvent::ToolCallDelta { slot, fragment })
            }
            StreamEvent::ToolCallDone { slot } => {
                let rest = self.calls.remove(&slot).map(|mut renamer| renamer.finish());
                let done = StreamEvent::ToolCallDone { slot };
                match rest.filter(|rest| !rest.is_empty()) {
                    Some(fragment) => {
                        self.ready.push_back(done);
                        Some(StreamEvent::ToolCallDelta { slot, fragment })
                    }
                    None => Some(done),
                }
            }
            other => Some(other),
        }
    }
}

impl Stream for TranslatedAnswer {
    type Item = Result<StreamEvent, ProviderError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Poll::Ready(Some(Ok(event)));
            }
            match self.inner.as_mut().poll_next(cx) {
                Poll::Ready(Some(Ok(event))) => {
                    if let Some(event) = self.translate_event(event) {
                        return Poll::Ready(Some(Ok(event)));
                    }
                }
                other => return other,
            }
        }
    }
}
