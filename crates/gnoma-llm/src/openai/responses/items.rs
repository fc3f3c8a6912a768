//! The items of an answer while they are written.
//!
//! Everything is kept by `output_index`: ids may change from record to record (Copilot). Text comes as
//! deltas, or only whole in a `done` record, or only in the answer's last record; what was passed on
//! is not taken again.

use std::{collections::HashMap, sync::Arc};

use gnoma_core::{StopReason, StreamEvent, call_arguments::is_stand_in, stream::Slot};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    phase,
    reasoning::kept_id,
    wire::{OutputItem, OutputPart},
};
use crate::{
    arguments::text_of,
    characters::{joined_bytes, skip_joined},
    dialect::Events,
    names::NameMap,
};

/// The kind of a piece of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ItemPartKind {
    Text,
    Refusal,
    Summary,
    RawReasoning,
}

impl ItemPartKind {
    fn is_reasoning(self) -> bool {
        matches!(self, Self::Summary | Self::RawReasoning)
    }
}

/// A piece that has begun.
#[derive(Debug)]
struct ItemPart {
    kind: ItemPartKind,
    index: u64,
    slot: Slot,
    /// The number of bytes of the part that were passed on.
    passed: usize,
}

/// An item of the answer, as far as it is known.
#[derive(Debug)]
enum OpenItem {
    /// A message or a reasoning item.
    Parts(Vec<ItemPart>),
    Call(ItemCall),
    /// The provider's own tools.
    Foreign,
}

#[derive(Debug, Default)]
struct ItemCall {
    /// Set once the call has been announced.
    slot: Option<Slot>,
    /// The arguments that were passed on.
    passed: String,
    done: bool,
}

/// The items known so far.
pub(super) struct Items {
    names: Arc<NameMap>,
    known: HashMap<u64, OpenItem>,
    /// Index of the item that came last, for servers that leave it out.
    latest: u64,
    next_slot: Slot,
    said: bool,
    refused: bool,
    called: bool,
}

impl Items {
    pub(super) fn new(names: Arc<NameMap>) -> Self {
        Self {
            names,
            known: HashMap::new(),
            latest: 0,
            next_slot: 0,
            said: false,
            refused: false,
            called: false,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    pub(super) fn latest_index(&self) -> u64 {
        self.latest
    }

    /// Index of an item that begins without telling it.
    pub(super) fn next(&self) -> u64 {
        if self.is_empty() { 0 } else { self.latest.saturating_add(1) }
    }

    /// More of a piece.
    pub(super) fn push_delta(
        &mut self,
        at: u64,
        kind: ItemPartKind,
        index: u64,
        text: &str,
        out: &mut Events,
    ) {
        if text.is_empty() {
            return;
        }
        let Some(part) = self.part_mut(at, kind, index) else {
            return;
        };
        part.passed += joined_bytes(text);
        let (slot, text) = (part.slot, text.to_owned());
        match kind {
            ItemPartKind::Text => self.said = true,
            ItemPartKind::Refusal => self.refused = true,
            ItemPartKind::Summary | ItemPartKind::RawReasoning => (),
        }
        out.push_back(if kind.is_reasoning() {
            StreamEvent::ThinkingDelta { slot, text }
        } else {
            StreamEvent::TextDelta { slot, text }
        });
    }

    /// A piece as a whole: what did not come as deltas is taken.
    pub(super) fn complete_part(
        &mut self,
        at: u64,
        kind: ItemPartKind,
        index: u64,
        text: &str,
        out: &mut Events,
    ) {
        let passed = self
            .parts(at)
            .iter()
            .find(|part| part.kind == kind && part.index == index)
            .map_or(0, |part| part.passed);
        self.push_delta(at, kind, index, skip_joined(text, passed), out);
    }

    /// The piece, begun if it is new. A reasoning item shows summaries or raw reasoning, whichever
    /// comes first: the other kind would say the same twice.
    fn part_mut(&mut self, at: u64, kind: ItemPartKind, index: u64) -> Option<&mut ItemPart> {
        let item = self.known.entry(at).or_insert_with(|| OpenItem::Parts(Vec::new()));
        let OpenItem::Parts(parts) = item else {
            return None;
        };
        let known = parts.iter().rposition(|part| part.kind == kind && part.index == index);
        if let Some(known) = known {
            return parts.get_mut(known);
        }
        if kind.is_reasoning() && parts.iter().any(|part| part.kind != kind) {
            return None;
        }
        let slot = self.next_slot;
        self.next_slot += 1;
        parts.push(ItemPart { kind, index, slot, passed: 0 });
        parts.last_mut()
    }

    fn parts(&self, at: u64) -> &[ItemPart] {
        match self.known.get(&at) {
            Some(OpenItem::Parts(parts)) => parts,
            Some(OpenItem::Call(_) | OpenItem::Foreign) | None => &[],
        }
    }

    pub(super) fn begin_item(&mut self, at: u64, item: &OutputItem<'_>, out: &mut Events) {
        self.latest = at;
        let known = match item.kind.as_str() {
            "message" | "reasoning" => OpenItem::Parts(Vec::new()),
            "function_call" | "custom_tool_call" => OpenItem::Call(self.start_call(item, out)),
            _ => OpenItem::Foreign,
        };
        self.known.insert(at, known);
    }

    /// A call, announced if its name is known already.
    fn start_call(&mut self, item: &OutputItem<'_>, out: &mut Events) -> ItemCall {
        let mut call = ItemCall::default();
        self.announce_call(&mut call, item, out);
        call
    }

    fn announce_call(&mut self, call: &mut ItemCall, item: &OutputItem<'_>, out: &mut Events) {
        let (None, Some(name)) = (call.slot, item.name.non_empty()) else {
            return;
        };
        let slot = self.next_slot;
        self.next_slot += 1;
        self.called = true;
        call.slot = Some(slot);
        let id = item.call_id.non_empty().or(item.id.non_empty());
        out.push_back(StreamEvent::ToolCallStart {
            slot,
            id: id.unwrap_or_default().to_owned(),
            name: self.names.tool_name(name).to_owned(),
        });
        if let Some(item) = item.id.non_empty() {
            let item = item.to_owned();
            out.push_back(StreamEvent::Item { slot, item });
        }
    }

    pub(super) fn more_arguments(&mut self, at: u64, fragment: &str, out: &mut Events) {
        if let Some(OpenItem::Call(call)) = self.known.get_mut(&at) {
            call.push_arguments(fragment, out);
        }
    }

    pub(super) fn whole_arguments(&mut self, at: u64, arguments: &str, out: &mut Events) {
        if let Some(OpenItem::Call(call)) = self.known.get_mut(&at) {
            call.complete_arguments(arguments, out);
        }
    }

    /// The item as a whole: what is missing of it is taken from here.
    pub(super) fn complete_item(&mut self, at: u64, item: &OutputItem<'_>, out: &mut Events) {
        self.latest = at;
        match item.kind.as_str() {
            "message" => self.complete_message(at, item, out),
            "reasoning" => self.complete_reasoning(at, item, out),
            "function_call" | "custom_tool_call" => self.complete_call(at, item, out),
            _ => (),
        }
    }

    fn complete_message(&mut self, at: u64, item: &OutputItem<'_>, out: &mut Events) {
        let content = parse_list::<OutputPart<'_>>(item.content);
        // Were the indices of the deltas others than those of the list, all would be taken twice.
        if self.parts(at).len() < content.len() {
            for (index, part) in (0..).zip(&content) {
                match part.kind.as_str() {
                    "refusal" => {
                        self.complete_part(
                            at,
                            ItemPartKind::Refusal,
                            index,
                            part.refusal.as_str(),
                            out,
                        );
                    }
                    _ => self.complete_part(at, ItemPartKind::Text, index, part.text.as_str(), out),
                }
            }
        }
        if let Some(phase) = item.phase.non_empty() {
            out.extend(self.parts(at).iter().map(|part| StreamEvent::Signature {
                slot: part.slot,
                signature: phase::to_signature(phase),
            }));
        }
    }

    fn complete_reasoning(&mut self, at: u64, item: &OutputItem<'_>, out: &mut Events) {
        for (kind, shown) in
            [(ItemPartKind::Summary, item.summary), (ItemPartKind::RawReasoning, item.content)]
        {
            if self.parts(at).is_empty() {
                for (index, part) in (0..).zip(&parse_list::<OutputPart<'_>>(shown)) {
                    self.complete_part(at, kind, index, part.text.as_str(), out);
                }
            }
        }
        if let Some(signature) = item.encrypted_content.non_empty() {
            self.push_signature(at, signature.to_owned(), out);
        }
        let parts = self.parts(at);
        let raw = parts.iter().any(|part| part.kind == ItemPartKind::RawReasoning);
        if raw || !item.id.is_empty() {
            out.extend(parts.iter().map(|part| StreamEvent::Item {
                slot: part.slot,
                item: kept_id(item.id.as_str(), raw),
            }));
        }
    }

    /// The encrypted content goes to the last part; reasoning that shows nothing gets an empty one.
    fn push_signature(&mut self, at: u64, signature: String, out: &mut Events) {
        let last = self.parts(at).last().map(|part| part.slot);
        let slot = last.or_else(|| Some(self.part_mut(at, ItemPartKind::Summary, 0)?.slot));
        if let Some(slot) = slot {
            out.push_back(StreamEvent::Signature { slot, signature });
        }
    }

    fn complete_call(&mut self, at: u64, item: &OutputItem<'_>, out: &mut Events) {
        let mut call = match self.known.remove(&at) {
            Some(OpenItem::Call(call)) => call,
            _ => ItemCall::default(),
        };
        self.announce_call(&mut call, item, out);
        match item.arguments {
            Some(raw) => call.complete_arguments(&text_of(raw), out),
            None => call.complete_arguments(item.input.as_str(), out),
        }
        self.known.insert(at, OpenItem::Call(call));
    }

    /// The list of all items: everything, where nothing was streamed. Else only the reasoning in it,
    /// whose id and encryption the last record may change; the last ones are those that hold.
    pub(super) fn take_output(&mut self, output: &[OutputItem<'_>], out: &mut Events) {
        let is_streamed = !self.known.is_empty();
        if is_streamed && self.known.len() != output.len() {
            return;
        }
        for (at, item) in (0..).zip(output) {
            if !is_streamed || (item.kind.as_str() == "reasoning" && !self.parts(at).is_empty()) {
                self.complete_item(at, item, out);
            }
        }
    }

    /// The stop reason of an answer that ended by itself.
    pub(super) fn natural_stop(&self) -> StopReason {
        if self.called {
            StopReason::ToolUse
        } else if self.refused && !self.said {
            StopReason::Refusal
        } else {
            StopReason::EndTurn
        }
    }
}

impl ItemCall {
    fn push_arguments(&mut self, fragment: &str, out: &mut Events) {
        if let (Some(slot), false) = (self.slot, fragment.is_empty()) {
            self.passed.push_str(fragment);
            let fragment = fragment.to_owned();
            out.push_back(StreamEvent::ToolCallDelta { slot, fragment });
        }
    }

    /// The arguments are complete: what did not come in pieces is taken. A server may write them in another way than
    /// in the pieces, with other blanks for example, so nothing is added to pieces that are an object by themselves.
    fn complete_arguments(&mut self, whole: &str, out: &mut Events) {
        if is_stand_in(&self.passed) && !is_stand_in(whole) {
            self.push_arguments(whole, out);
        } else if !is_object(&self.passed) {
            self.push_arguments(skip_joined(whole, joined_bytes(&self.passed)), out);
        }
        if let (Some(slot), false) = (self.slot, self.done) {
            self.done = true;
            out.push_back(StreamEvent::ToolCallDone { slot });
        }
    }
}

fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{') && serde_json::from_str::<&RawValue>(text).is_ok()
}

/// A list. An element of another form than expected is an empty one, and anything but a list holds none.
pub(super) fn parse_list<'a, T: Deserialize<'a> + Default>(raw: Option<&'a RawValue>) -> Vec<T> {
    let elements: Vec<&RawValue> =
        raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    elements.into_iter().map(|raw| serde_json::from_str(raw.get()).unwrap_or_default()).collect()
}
