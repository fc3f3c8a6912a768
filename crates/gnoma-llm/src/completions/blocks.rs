//! Content blocks of a streamed answer, and the deltas that belong to each.
//!
//! What a stream tells of its calls is contradictory from server to server; the rules for that stand
//! in [`Blocks::call_of`] and nowhere else.

use std::sync::Arc;

use gnoma_core::{StopReason, StreamEvent, stream::Slot};

use super::{
    content_text::ContentText,
    wire::{CallPiece, ContentPart, ExtraContent, FunctionPiece, Snippet, read_or_default},
};
use crate::{
    dialect::{Events, push_signature},
    lenient_values::{SmallList, Text},
    names::NameMap,
};

/// The kind of block that a text belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextBlockKind {
    Text,
    Thinking,
}

/// A call that has begun.
#[derive(Debug)]
struct OpenCall {
    slot: Slot,
    index: Option<u64>,
    id: String,
    /// The name of the tool on the wire.
    name: String,
    /// False while the name may go on in the next piece.
    is_announced: bool,
}

/// Numbers the blocks of an answer in order of appearance, and tells of them.
pub(crate) struct Blocks {
    names: Arc<NameMap>,
    next: Slot,
    open: Option<(TextBlockKind, Slot)>,
    calls: Vec<OpenCall>,
    refused: bool,
}

impl Blocks {
    pub(crate) fn new(names: Arc<NameMap>) -> Self {
        Self { names, next: 0, open: None, calls: Vec::new(), refused: false }
    }

    /// Reports whether the answer has no block yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.next == 0
    }

    /// A block of its own; text after it starts another.
    pub(crate) fn new_slot(&mut self) -> Slot {
        self.open = None;
        let slot = self.next;
        self.next += 1;
        slot
    }

    fn slot_for(&mut self, kind: TextBlockKind) -> Slot {
        match self.open {
            Some((open, slot)) if open == kind => slot,
            _ => {
                let slot = self.new_slot();
                self.open = Some((kind, slot));
                slot
            }
        }
    }

    /// Adds a piece of text to the answer.
    pub(crate) fn push_text(&mut self, text: Text<'_>, out: &mut Events) {
        if !text.is_empty() {
            let slot = self.slot_for(TextBlockKind::Text);
            let text = text.into_string();
            out.push_back(StreamEvent::TextDelta { slot, text });
        }
    }

    /// More visible reasoning; its block, unless there is nothing of it.
    pub(crate) fn push_thinking(&mut self, text: Text<'_>, out: &mut Events) -> Option<Slot> {
        if text.is_empty() {
            return None;
        }
        let slot = self.slot_for(TextBlockKind::Thinking);
        let text = text.into_string();
        out.push_back(StreamEvent::ThinkingDelta { slot, text });
        Some(slot)
    }

    /// Adds a piece of text by which the model refuses.
    pub(crate) fn push_refusal(&mut self, text: Text<'_>, out: &mut Events) {
        self.refused |= !text.is_empty();
        self.push_text(text, out);
    }

    /// A `content`, in either form.
    pub(crate) fn push_content(
        &mut self,
        content: ContentText<'_, ContentPart<'_>>,
        out: &mut Events,
    ) {
        match content {
            ContentText::Text(text) => self.push_text(text, out),
            ContentText::Parts(parts) => {
                for part in parts {
                    let is_thought = part.is_thought();
                    self.push_thoughts(part.thinking, out);
                    self.push_thoughts(read_or_default(part.summary), out);
                    if is_thought {
                        self.push_thinking(part.text, out);
                    } else {
                        self.push_text(part.text, out);
                    }
                    self.push_refusal(part.refusal, out);
                }
            }
        }
    }

    fn push_thoughts(&mut self, thoughts: ContentText<'_, Snippet<'_>>, out: &mut Events) {
        match thoughts {
            ContentText::Text(text) => {
                self.push_thinking(text, out);
            }
            ContentText::Parts(snippets) => {
                for snippet in snippets {
                    self.push_thinking(snippet.text, out);
                }
            }
        }
    }

    /// A list of calls, or of pieces of calls.
    pub(crate) fn push_calls(&mut self, calls: SmallList<CallPiece<'_>>, out: &mut Events) {
        for piece in calls {
            self.push_call(piece, out);
        }
    }

    /// A call or a piece of one.
    pub(crate) fn push_call(&mut self, piece: CallPiece<'_>, out: &mut Events) {
        let function = match (piece.function, piece.custom) {
            (Some(function), _) => function,
            (None, Some(custom)) => read_or_default(Some(custom)),
            (None, None) => FunctionPiece::new(piece.name, piece.arguments),
        };
        let fragment = function.arguments_text();
        let (id, name) = (piece.id.as_str(), function.name.as_str());
        let known = self.extend_name(piece.index.0, id, name);
        let known = known.or_else(|| self.call_of(piece.index.0, id, name));
        if known.is_none() && name.is_empty() && fragment.is_empty() {
            return;
        }
        let slot = known.unwrap_or_else(|| self.start_call(piece.index.0, id, name, out));
        let extra: ExtraContent<'_> = read_or_default(piece.extra_content);
        let signature = extra.google.thought_signature;
        if !fragment.is_empty() || !signature.is_empty() {
            self.announce_call(out);
        }
        if !fragment.is_empty() {
            let fragment = fragment.into_owned();
            out.push_back(StreamEvent::ToolCallDelta { slot, fragment });
        }
        push_signature(slot, signature, out);
    }

    fn start_call(&mut self, index: Option<u64>, id: &str, name: &str, out: &mut Events) -> Slot {
        self.announce_call(out);
        let slot = self.new_slot();
        let (id, name) = (id.to_owned(), name.to_owned());
        let is_cut = self.names.begins_tool(&name);
        self.calls.push(OpenCall { slot, index, id, name, is_announced: false });
        if !is_cut {
            self.announce_call(out);
        }
        slot
    }

    /// Tells of the last call, if that was put off because its name might go on.
    fn announce_call(&mut self, out: &mut Events) {
        if let Some(call) = self.calls.last_mut()
            && !std::mem::replace(&mut call.is_announced, true)
        {
            out.push_back(StreamEvent::ToolCallStart {
                slot: call.slot,
                id: call.id.clone(),
                name: self.names.tool_name(&call.name).to_owned(),
            });
        }
    }

    /// Adds `name` to the name of the last call, if a tool is named so: some servers cut names, too.
    fn extend_name(&mut self, index: Option<u64>, id: &str, name: &str) -> Option<Slot> {
        let call = self.calls.last_mut().filter(|call| !call.is_announced)?;
        let whole = format!("{}{name}", call.name);
        let is_same = call.index == index && (id.is_empty() || call.id == id);
        let is_tool = self.names.has_tool(&whole) || self.names.begins_tool(&whole);
        if name.is_empty() || !is_same || !is_tool {
            return None;
        }
        call.name = whole;
        Some(call.slot)
    }

    /// The call that a piece continues. The index alone does not tell: some servers leave it out or
    /// give every call the same; others repeat id and name in every piece. So a piece that names a
    /// tool continues a call only if id and name agree with it.
    fn call_of(&self, index: Option<u64>, id: &str, name: &str) -> Option<Slot> {
        // A nameless piece is never a new call, whatever id it carries.
        let agrees = |call: &&OpenCall| {
            name.is_empty() || (call.name == name && (id.is_empty() || call.id == id))
        };
        let known = match index {
            Some(_) => self.calls.iter().rev().find(|call| call.index == index),
            // Without an index and an id, naming a tool is the only sign of a new call.
            None if id.is_empty() && !name.is_empty() => None,
            None => {
                let same = self.calls.iter().rev().find(|call| !id.is_empty() && call.id == id);
                same.or(self.calls.last())
            }
        };
        known.filter(agrees).map(|call| call.slot)
    }

    /// Says that the calls are complete. Pieces of several calls may come in turns, so none is
    /// before the end.
    pub(crate) fn finish_calls(&mut self, out: &mut Events) {
        self.announce_call(out);
        let done = |call: &OpenCall| StreamEvent::ToolCallDone { slot: call.slot };
        out.extend(self.calls.iter().map(done));
    }

    /// The stop reason in the light of what was said: a forced call ends with `stop` on some wires,
    /// and so does a refusal.
    pub(crate) fn stop_reason(&self, stop: StopReason) -> StopReason {
        match stop {
            StopReason::EndTurn | StopReason::ToolUse if !self.calls.is_empty() => {
                StopReason::ToolUse
            }
            StopReason::EndTurn | StopReason::ToolUse if self.refused => StopReason::Refusal,
            StopReason::ToolUse => StopReason::EndTurn,
            StopReason::EndTurn
            | StopReason::MaxTokens
            | StopReason::StopSequence
            | StopReason::Refusal
            | StopReason::ContentFilter
            | StopReason::Pause
            | StopReason::Other => stop,
        }
    }
}
