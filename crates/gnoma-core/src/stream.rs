//! What a model says while it says it, and the [`Accumulator`] that makes one [`Response`] of it.
//!
//! # Contract of a stream
//!
//! | what happens | what the consumer sees |
//! |---|---|
//! | the answer's headers have come | `RateLimits`, first, with what they tell; of a refused call too |
//! | the server refused what can be left out | `Adapted`, once for each, before the answer |
//! | a normal end | `Stop`, then the end of the stream |
//! | the connection ends without the protocol's terminal record | an `Err` of kind `Protocol` or `Network`, then the end |
//! | an error record in mid-stream | an `Err`, then the end |
//! | an unknown record, a keep-alive | nothing |
//!
//! An adapter numbers the blocks of an answer itself ([`Slot`]), in order of first appearance; the
//! vendor's ids and indices are never used as keys. `Usage` is cumulative: the last one holds.

use std::collections::{HashMap, HashSet};

use crate::{
    call_arguments::parse_call_arguments,
    message::{CallId, Content, Message, ModelRef, Redacted, Text, Thinking, ToolCall},
    usage::Usage,
};

pub use crate::stop::StopReason;

/// Number of a block within one answer.
pub type Slot = u32;

/// Most bytes of one answer; the rest is dropped, and the answer counts as cut off by length.
pub const MAX_RESPONSE_BYTES: usize = 64 << 20;

/// One increment of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamEvent {
    /// The answer's HTTP headers arrived, with what they say about rate limits. Comes before
    /// everything else, at most once, and also when the call was refused (429); it is not part of
    /// the answer.
    RateLimits {
        /// Names in lower case and values, as they were sent; empty if they say nothing.
        headers: Vec<(String, String)>,
    },
    /// The server refused part of the request and was asked again without it. Comes before the
    /// answer and is not part of it.
    Adapted {
        /// A note for people that says what was refused and what was done about it.
        note: String,
    },
    /// The provider has begun to answer.
    Started {
        /// The model that answers; may be more specific than the one requested.
        model: Option<String>,
        /// The provider's id of the answer.
        id: Option<String>,
    },
    /// More text of the answer.
    TextDelta {
        /// The block of the answer that it belongs to.
        slot: Slot,
        /// The new piece of text.
        text: String,
    },
    /// More visible reasoning. An empty piece opens the block.
    ThinkingDelta {
        /// The block of the answer that it belongs to.
        slot: Slot,
        /// The new piece of reasoning.
        text: String,
    },
    /// The opaque token of a text, thinking or call block; replaces an earlier one. A slot not seen
    /// before is a thinking block.
    Signature {
        /// The block of the answer that it belongs to.
        slot: Slot,
        /// The token, which is sent whole.
        signature: String,
    },
    /// The vendor's item id of a thinking or call block.
    Item {
        /// The block of the answer that it belongs to.
        slot: Slot,
        /// The vendor's id of the item.
        item: String,
    },
    /// A block of hidden reasoning, whole.
    Redacted {
        /// The block of the answer that it belongs to.
        slot: Slot,
        /// The opaque data of the block.
        data: String,
    },
    /// The beginning of a tool call.
    ToolCallStart {
        /// The block of the answer that it belongs to.
        slot: Slot,
        /// The provider's id; empty where it sends none.
        id: String,
        /// Our name of the tool.
        name: String,
    },
    /// More of a call's arguments.
    ToolCallDelta {
        /// The block of the answer that it belongs to.
        slot: Slot,
        /// JSON text, cut anywhere.
        fragment: String,
    },
    /// A call's arguments are complete.
    ToolCallDone {
        /// The block of the answer that it belongs to.
        slot: Slot,
    },
    /// The tokens counted so far.
    Usage(Usage),
    /// The provider's reason for the end is no reason that gnoma knows. Comes before [`StreamEvent::Stop`].
    UnknownStop {
        /// The provider's word for the reason.
        word: String,
    },
    /// The model stopped. The last event of a good stream.
    Stop(StopReason),
}

/// A whole answer of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Response {
    /// The blocks in order. Calls are here whatever the stop reason.
    pub content: Vec<Content>,
    /// The reason why the answer ended; `None` if it was cut off.
    pub stop: Option<StopReason>,
    /// Tokens, if the provider reported them.
    pub usage: Option<Usage>,
    /// The model that answered, if the provider named it.
    pub model: Option<String>,
    /// The provider's id of the answer.
    pub id: Option<String>,
}

impl Response {
    /// The message for the history, or `None` when nothing was said.
    ///
    /// Calls are kept only if the answer stopped to have them run: those of an answer that was cut
    /// may be cut themselves, and a call in the history must be answered. Reasoning at the end of
    /// what remains goes too, since providers refuse an assistant message that ends in it.
    #[must_use]
    pub fn into_message(mut self, origin: Option<ModelRef>) -> Option<Message> {
        if self.stop != Some(StopReason::ToolUse) {
            let before = self.content.len();
            self.content.retain(|block| !matches!(block, Content::ToolCall(_)));
            let cut = self.stop.is_none() || before != self.content.len();
            while cut
                && matches!(
                    self.content.last(),
                    Some(Content::Thinking(_) | Content::RedactedThinking(_))
                )
            {
                self.content.pop();
            }
        }
        Message::assistant(self.content, origin, self.stop).ok()
    }

    /// The calls, in order, whatever the stop reason.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.content.iter().filter_map(|block| match block {
            Content::ToolCall(call) => Some(call),
            Content::Text(_)
            | Content::Image(_)
            | Content::Thinking(_)
            | Content::RedactedThinking(_)
            | Content::ToolResult(_) => None,
        })
    }
}

#[derive(Debug)]
enum Draft {
    Text(Text),
    Thinking(Thinking),
    Redacted(Redacted),
    Call {
        id: CallId,
        name: String,
        arguments: String,
        signature: Option<String>,
        item: Option<String>,
        is_done: bool,
    },
}

/// Collects the events of one stream into exactly one [`Response`].
///
/// Total: any sequence of events, in any order and cut anywhere, gives a response whose message
/// keeps the laws of [`Message`].
#[derive(Debug, Default)]
pub struct Accumulator {
    drafts: Vec<Draft>,
    index: HashMap<Slot, usize>,
    /// The ids of the calls so far.
    call_ids: HashSet<CallId>,
    bytes: usize,
    overflow: bool,
    stop: Option<StopReason>,
    unknown_stop: Option<String>,
    usage: Option<Usage>,
    model: Option<String>,
    id: Option<String>,
}

impl Accumulator {
    /// An accumulator for one stream.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// True if anything that a person could see has arrived: from then on a retry would repeat it.
    #[must_use]
    pub fn has_content(&self) -> bool {
        !self.drafts.is_empty()
    }

    /// True if any text of the answer, apart from thinking, or any call has begun.
    #[must_use]
    pub fn has_words(&self) -> bool {
        self.drafts.iter().any(|draft| match draft {
            Draft::Text(text) => !text.text.trim().is_empty(),
            Draft::Call { .. } => true,
            Draft::Thinking(_) | Draft::Redacted(_) => false,
        })
    }

    /// True if only white space has arrived.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.drafts.iter().all(|draft| match draft {
            Draft::Text(text) => text.text.trim().is_empty(),
            Draft::Call { .. } | Draft::Thinking(_) | Draft::Redacted(_) => false,
        })
    }

    /// True if a call has begun.
    #[must_use]
    pub fn has_call(&self) -> bool {
        self.drafts.iter().any(|draft| matches!(draft, Draft::Call { .. }))
    }

    /// The id of the call in this block, as the response will have it.
    #[must_use]
    pub fn call_id(&self, slot: Slot) -> Option<&CallId> {
        match self.drafts.get(*self.index.get(&slot)?)? {
            Draft::Call { id, .. } => Some(id),
            Draft::Text(_) | Draft::Thinking(_) | Draft::Redacted(_) => None,
        }
    }

    /// The stop reason, given what has arrived: an answer that ended for an unknown reason waits
    /// for its calls if it has any and all of them are complete. Otherwise a vendor's new word for
    /// a reason would lose them.
    #[must_use]
    pub fn effective_stop_reason(&self, stop: StopReason) -> StopReason {
        let is_whole = |draft: &Draft| match draft {
            Draft::Call { arguments, is_done, .. } => {
                *is_done && !parse_call_arguments(arguments).1
            }
            Draft::Text(_) | Draft::Thinking(_) | Draft::Redacted(_) => true,
        };
        if stop == StopReason::Other && self.has_call() && self.drafts.iter().all(is_whole) {
            return StopReason::ToolUse;
        }
        stop
    }

    /// True if more has arrived than an answer may contain. In that case all that follows is rejected.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.overflow
    }

    /// Tokens reported so far.
    #[must_use]
    pub fn usage(&self) -> Option<Usage> {
        self.usage
    }

    /// The stop reason, once it has arrived.
    #[must_use]
    pub fn stop_reason(&self) -> Option<StopReason> {
        self.stop
    }

    /// The provider's word for the end, where gnoma does not know it.
    #[must_use]
    pub fn unknown_stop(&self) -> Option<&str> {
        self.unknown_stop.as_deref()
    }

    /// Adds one event to the answer.
    pub fn push(&mut self, event: &StreamEvent) {
        match event {
            StreamEvent::Started { model, id } => {
                self.model = model.clone().or_else(|| self.model.take());
                self.id = id.clone().or_else(|| self.id.take());
            }
            StreamEvent::TextDelta { slot, text } => {
                self.add_text(*slot, text, || Draft::Text(Text::default()));
            }
            StreamEvent::ThinkingDelta { slot, text } => {
                self.add_text(*slot, text, new_thinking_draft);
            }
            StreamEvent::Signature { slot, signature } => self.set_signature(*slot, signature),
            StreamEvent::Item { slot, item } => self.set_item(*slot, item),
            StreamEvent::Redacted { slot, data } => {
                if self.reserve_bytes(data.len()) {
                    self.draft_at(*slot, || Draft::Redacted(Redacted { data: data.clone() }));
                }
            }
            StreamEvent::ToolCallStart { slot, id, name } => self.start_call(*slot, id, name),
            StreamEvent::ToolCallDelta { slot, fragment } => {
                if !self.reserve_bytes(fragment.len()) {
                    return;
                }
                let found = self.index.get(slot).and_then(|at| self.drafts.get_mut(*at));
                if let Some(Draft::Call { arguments, .. }) = found {
                    arguments.push_str(fragment);
                }
            }
            StreamEvent::ToolCallDone { slot } => {
                let found = self.index.get(slot).and_then(|at| self.drafts.get_mut(*at));
                if let Some(Draft::Call { is_done, .. }) = found {
                    *is_done = true;
                }
            }
            StreamEvent::RateLimits { .. } | StreamEvent::Adapted { .. } => (),
            StreamEvent::UnknownStop { word } => self.unknown_stop = Some(word.clone()),
            StreamEvent::Usage(usage) => self.usage = Some(*usage),
            StreamEvent::Stop(stop) => self.stop = Some(*stop),
        }
    }

    fn start_call(&mut self, slot: Slot, id: &str, name: &str) {
        if !self.reserve_bytes(size_of::<Draft>() + id.len() + name.len()) {
            return;
        }
        if self.index.contains_key(&slot) {
            return;
        }
        let id = unique_id(id, self.drafts.len(), &mut self.call_ids);
        self.draft_at(slot, || Draft::Call {
            id,
            name: name.into(),
            arguments: String::new(),
            signature: None,
            item: None,
            is_done: false,
        });
    }

    fn add_text(&mut self, slot: Slot, text: &str, new: fn() -> Draft) {
        if !self.reserve_bytes(text.len()) {
            return;
        }
        match self.draft_at(slot, new) {
            Draft::Text(draft) => draft.text.push_str(text),
            Draft::Thinking(draft) => draft.text.push_str(text),
            Draft::Redacted(_) | Draft::Call { .. } => (),
        }
    }

    fn set_signature(&mut self, slot: Slot, new: &str) {
        if !self.reserve_bytes(new.len()) {
            return;
        }
        match self.draft_at(slot, new_thinking_draft) {
            Draft::Text(Text { signature, .. })
            | Draft::Thinking(Thinking { signature, .. })
            | Draft::Call { signature, .. } => *signature = Some(new.to_owned()),
            Draft::Redacted(_) => (),
        }
    }

    fn set_item(&mut self, slot: Slot, new: &str) {
        if !self.reserve_bytes(size_of::<Draft>() + new.len()) {
            return;
        }
        match self.draft_at(slot, new_thinking_draft) {
            Draft::Thinking(Thinking { item, .. }) | Draft::Call { item, .. } => {
                *item = Some(new.to_owned());
            }
            Draft::Text(_) | Draft::Redacted(_) => (),
        }
    }

    /// The answer, all of it that arrived. Without a [`StreamEvent::Stop`] it counts as cut off.
    #[must_use]
    pub fn into_response(self) -> Response {
        let mut content = Vec::with_capacity(self.drafts.len());
        for draft in self.drafts {
            match draft {
                Draft::Text(text) if text.text.is_empty() && text.signature.is_none() => (),
                Draft::Text(mut text) => {
                    // It is kept as long as the conversation: what it grew by ahead goes.
                    text.text.shrink_to_fit();
                    content.push(Content::Text(text));
                }
                Draft::Thinking(thinking)
                    if thinking.text.is_empty()
                        && thinking.signature.is_none()
                        && thinking.item.is_none() => {}
                Draft::Thinking(mut thinking) => {
                    thinking.text.shrink_to_fit();
                    content.push(Content::Thinking(thinking));
                }
                Draft::Redacted(redacted) => content.push(Content::RedactedThinking(redacted)),
                Draft::Call { id, name, arguments, signature, item, is_done: _ } => {
                    let (arguments, broken) = parse_call_arguments(&arguments);
                    content.push(Content::ToolCall(ToolCall {
                        id,
                        name,
                        arguments,
                        broken,
                        signature,
                        item,
                    }));
                }
            }
        }
        let stop = if self.overflow { Some(StopReason::MaxTokens) } else { self.stop };
        Response { content, stop, usage: self.usage, model: self.model, id: self.id }
    }

    fn draft_at(&mut self, slot: Slot, new: impl FnOnce() -> Draft) -> &mut Draft {
        let next = self.drafts.len();
        let at = *self.index.entry(slot).or_insert(next);
        if at == next {
            self.bytes = self.bytes.saturating_add(size_of::<Draft>());
            self.drafts.push(new());
        }
        &mut self.drafts[at]
    }

    fn reserve_bytes(&mut self, more: usize) -> bool {
        self.bytes = self.bytes.saturating_add(more);
        self.overflow |= self.bytes > MAX_RESPONSE_BYTES;
        !self.overflow
    }
}

fn new_thinking_draft() -> Draft {
    Draft::Thinking(Thinking::default())
}

/// The provider's id if it is usable and new, otherwise one of ours.
fn unique_id(id: &str, nth: usize, taken: &mut HashSet<CallId>) -> CallId {
    let wanted = if id.is_empty() { CallId::new(format!("call_{nth}")) } else { CallId::new(id) };
    if taken.insert(wanted.clone()) {
        return wanted;
    }
    // Counting from here on finds a free number at once, however many calls share an id.
    let mut copy = taken.len();
    loop {
        let fresh = CallId::new(format!("{wanted}_{copy}"));
        if taken.insert(fresh.clone()) {
            return fresh;
        }
        copy += 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::message::Role;

    #[test]
    fn accumulated_stream_text_has_no_spare_capacity() {
        let mut accumulator = Accumulator::default();
        for _ in 0..300 {
            let text = "words ".to_owned();
            accumulator.push(&StreamEvent::ThinkingDelta { slot: 0, text: text.clone() });
            accumulator.push(&StreamEvent::TextDelta { slot: 1, text });
        }
        for content in accumulator.into_response().content {
            let (Content::Text(Text { text, .. }) | Content::Thinking(Thinking { text, .. })) =
                content
            else {
                panic!("neither words nor thinking: {content:?}");
            };
            assert_eq!((text.len(), text.capacity()), (1_800, 1_800));
        }
    }

    fn event() -> impl Strategy<Value = StreamEvent> {
        let slot = 0_u32..5;
        let piece = "[a-z{}\":,0-9 ]{0,8}";
        let stop = prop_oneof![
            Just(StopReason::EndTurn),
            Just(StopReason::ToolUse),
            Just(StopReason::MaxTokens),
            Just(StopReason::Refusal),
        ];
        prop_oneof![
            (slot.clone(), piece).prop_map(|(slot, text)| StreamEvent::TextDelta { slot, text }),
            (slot.clone(), piece)
                .prop_map(|(slot, text)| StreamEvent::ThinkingDelta { slot, text }),
            (slot.clone(), "[A-Z]{0,4}")
                .prop_map(|(slot, signature)| StreamEvent::Signature { slot, signature }),
            (slot.clone(), "[A-Z]{1,4}")
                .prop_map(|(slot, data)| StreamEvent::Redacted { slot, data }),
            (slot.clone(), "[ab]{0,1}", "[a-z.]{0,6}")
                .prop_map(|(slot, id, name)| StreamEvent::ToolCallStart { slot, id, name }),
            (slot.clone(), piece)
                .prop_map(|(slot, fragment)| StreamEvent::ToolCallDelta { slot, fragment }),
            slot.prop_map(|slot| StreamEvent::ToolCallDone { slot }),
            (0_u64..9).prop_map(|n| StreamEvent::Usage(Usage { output: n, ..Usage::default() })),
            stop.prop_map(StreamEvent::Stop),
        ]
    }

    proptest! {
        /// Any sequence of events, however cut, gives a message that keeps the domain's laws.
        #[test]
        fn any_stream_event_sequence_accumulates_to_a_valid_message(events in prop::collection::vec(event(), 0..40)) {
            let mut accumulator = Accumulator::new();
            for event in &events {
                accumulator.push(event);
            }
            let stopped_for_tools = accumulator.stop_reason() == Some(StopReason::ToolUse);
            let response = accumulator.into_response();
            if let Some(message) = response.into_message(None) {
                prop_assert_eq!(message.role(), Role::Assistant);
                prop_assert!(!message.content().is_empty());
                prop_assert!(stopped_for_tools || message.tool_calls().next().is_none());
                let ids: Vec<_> = message.tool_calls().map(|call| call.id.clone()).collect();
                let distinct: HashSet<_> = ids.iter().collect();
                prop_assert_eq!(ids.len(), distinct.len());
                let stored = serde_json::to_string(&message).unwrap();
                prop_assert_eq!(serde_json::from_str::<Message>(&stored).unwrap(), message);
            }
        }

        /// Where a text is cut does not matter.
        #[test]
        fn stream_text_accumulates_the_same_for_any_chunking(text in "\\PC{0,40}", at in 0_usize..40) {
            let at = text.char_indices().map(|(i, _)| i).nth(at).unwrap_or(text.len());
            let mut whole = Accumulator::new();
            whole.push(&StreamEvent::TextDelta { slot: 0, text: text.clone() });
            let mut cut = Accumulator::new();
            for piece in [&text[..at], &text[at..]] {
                cut.push(&StreamEvent::TextDelta { slot: 0, text: piece.to_owned() });
            }
            prop_assert_eq!(whole.into_response(), cut.into_response());
        }
    }

    fn start(slot: Slot, id: &str, name: &str) -> StreamEvent {
        StreamEvent::ToolCallStart { slot, id: id.into(), name: name.into() }
    }

    #[test]
    fn signatures_come_through_unchanged() {
        let mut accumulator = Accumulator::new();
        accumulator.push(&StreamEvent::ThinkingDelta { slot: 0, text: "so".into() });
        accumulator.push(&StreamEvent::Signature { slot: 0, signature: "Ab+/=".into() });
        accumulator.push(&StreamEvent::TextDelta { slot: 1, text: "yes".into() });
        accumulator.push(&StreamEvent::Stop(StopReason::EndTurn));
        let message = accumulator.into_response().into_message(None).unwrap();
        let expected = Thinking { text: "so".into(), signature: Some("Ab+/=".into()), item: None };
        assert_eq!(message.content()[0], Content::Thinking(expected));
    }

    #[test]
    fn tool_calls_without_id_or_arguments_get_defaults() {
        let mut accumulator = Accumulator::new();
        accumulator.push(&start(0, "", "fs.ls"));
        accumulator.push(&start(1, "", "bash"));
        accumulator.push(&StreamEvent::ToolCallDelta { slot: 1, fragment: "null".into() });
        accumulator.push(&StreamEvent::Stop(StopReason::ToolUse));
        let response = accumulator.into_response();
        let calls: Vec<_> = response.tool_calls().collect();
        assert_eq!(calls[0].id.as_str(), "call_0");
        assert_eq!(calls[1].arguments.get(), "{}");
    }

    #[test]
    fn complete_tool_calls_run_despite_an_unknown_stop_reason() {
        let mut accumulator = Accumulator::new();
        assert_eq!(
            accumulator.effective_stop_reason(StopReason::Other),
            StopReason::Other,
            "nothing to run"
        );
        accumulator.push(&start(0, "c", "bash"));
        accumulator.push(&StreamEvent::ToolCallDelta { slot: 0, fragment: "{}".into() });
        assert_eq!(
            accumulator.effective_stop_reason(StopReason::Other),
            StopReason::Other,
            "not whole"
        );
        accumulator.push(&StreamEvent::ToolCallDone { slot: 0 });
        assert_eq!(accumulator.effective_stop_reason(StopReason::Other), StopReason::ToolUse);
        assert_eq!(accumulator.effective_stop_reason(StopReason::MaxTokens), StopReason::MaxTokens);
        accumulator.push(&start(1, "d", "bash"));
        accumulator.push(&StreamEvent::ToolCallDelta { slot: 1, fragment: "{\"comm".into() });
        accumulator.push(&StreamEvent::ToolCallDone { slot: 1 });
        assert_eq!(
            accumulator.effective_stop_reason(StopReason::Other),
            StopReason::Other,
            "one is cut"
        );
    }

    #[test]
    fn truncated_stream_keeps_text_and_drops_incomplete_tool_calls() {
        let mut accumulator = Accumulator::new();
        accumulator.push(&StreamEvent::TextDelta { slot: 0, text: "I will".into() });
        accumulator.push(&start(1, "c", "bash"));
        accumulator.push(&StreamEvent::ToolCallDelta { slot: 1, fragment: "{\"comm".into() });
        let response = accumulator.into_response();
        assert!(response.tool_calls().next().unwrap().broken);
        let message = response.into_message(None).unwrap();
        assert_eq!((message.text_content().as_str(), message.tool_calls().count()), ("I will", 0));
    }
}
