//! Parses tool calls that a model wrote as text.
//!
//! Small models, and servers without a parser for their model's format, put calls into the answer's
//! text. [`TextCalls`] stands behind the decoder of such a server and turns them into real calls; it
//! also takes out the reasoning that such servers leave at the start of the text in `<think>` tags.
//!
//! Text without either comes through unchanged, and at once: only what may be a call, and what follows
//! a call, is held back, up to [`MAX_HELD_BYTES`]. A call counts when the answer is over: if the model goes on
//! in words, or quotes the call as code, it explains one; if the server sends a real one after all, what looked
//! like calls was the model thinking aloud. Both stay text.

mod forms;
mod markup;
mod offer;
mod scan;

use std::{collections::HashMap, sync::Arc};

use gnoma_core::{
    ToolSpec,
    stream::{Slot, StopReason, StreamEvent},
};

use self::{
    forms::{CallText, FormMatch},
    offer::{Offer, TextCall},
};
use crate::{dialect::Events, names::NameMap};

/// Most text that is held back. Calls that end by then are called, whatever follows; what has not ended
/// is no call.
const MAX_HELD_BYTES: usize = 64 << 10;
/// Most events of one network read whose text is looked at piece by piece.
const MAX_PIECES: usize = 32;

const THINK: &str = "<think>";
const THINK_END: &str = "</think>";
const FENCE: &str = "```";

/// The current position in the answer's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextPosition {
    /// Before the first text: only white space so far.
    Start,
    /// Inside a `<think>` element.
    Thinking,
    /// In text that may hold calls.
    Text,
    /// In a fenced block that holds none.
    Fence,
    /// Past the end of the search.
    Over,
}

/// Finds the calls in the text of one answer.
pub(crate) struct TextCalls {
    offer: Offer,
    place: TextPosition,
    /// Text that has not been passed on.
    held: String,
    /// The decoder's block that the text belongs to.
    block: Slot,
    /// The line that the text passed on ends in.
    line: LineStart,
    /// White space that comes next belongs to what was taken out.
    skip_space: bool,
    has_spoken: bool,
    has_called: bool,
    has_stopped: bool,
    slots: Slots,
}

/// The part of a line that stands before a place.
#[derive(Clone, Copy, Debug)]
struct LineStart {
    /// Only white space stands there.
    is_blank: bool,
    /// A back quote is open: what follows is quoted as code.
    in_code: bool,
}

impl LineStart {
    const START: Self = Self { is_blank: true, in_code: false };

    /// Returns the line behind `text`, which continues this one.
    fn after(self, text: &str) -> Self {
        let (before, line) = match text.rsplit_once('\n') {
            Some((_, line)) => (Self::START, line),
            None => (self, text),
        };
        Self {
            is_blank: before.is_blank && line.trim().is_empty(),
            in_code: before.in_code != (line.matches('`').count() % 2 == 1),
        }
    }
}

/// Numbers for blocks: those of the decoder and those made here, in one order.
#[derive(Default)]
struct Slots {
    by_theirs: HashMap<Slot, Slot>,
    next: Slot,
}

impl Slots {
    fn new_slot(&mut self) -> Slot {
        let slot = self.next;
        self.next += 1;
        slot
    }

    fn slot_for(&mut self, theirs: Slot) -> Slot {
        if let Some(slot) = self.by_theirs.get(&theirs) {
            return *slot;
        }
        let slot = self.new_slot();
        self.by_theirs.insert(theirs, slot);
        slot
    }
}

impl TextCalls {
    pub(crate) fn new(names: Arc<NameMap>, tools: Arc<[Arc<ToolSpec>]>) -> Self {
        Self {
            offer: Offer { names, tools },
            place: TextPosition::Start,
            held: String::new(),
            block: 0,
            line: LineStart::START,
            skip_space: false,
            has_spoken: false,
            has_called: false,
            has_stopped: false,
            slots: Slots::default(),
        }
    }

    /// Replaces the decoder's new events by what they mean.
    pub(crate) fn filter_events(&mut self, events: &mut Events) {
        if self.has_stopped {
            return;
        }
        let arrived = std::mem::take(events);
        // Text that came in pieces goes on in pieces, but for a flood.
        let in_pieces = arrived.len() <= MAX_PIECES;
        for event in arrived {
            self.filter_event(event, events);
            if in_pieces {
                self.advance(false, events);
            }
        }
        self.advance(false, events);
    }

    /// The answer is over, perhaps too early: what is still held back is text.
    pub(crate) fn finish(&mut self, events: &mut Events) {
        self.filter_events(events);
        self.give_up(events);
    }

    fn filter_event(&mut self, event: StreamEvent, out: &mut Events) {
        match event {
            StreamEvent::TextDelta { slot, text } => {
                if slot != self.block {
                    self.advance(true, out);
                    self.block = slot;
                }
                if self.held.is_empty() {
                    self.held = text;
                } else {
                    self.held.push_str(&text);
                }
            }
            StreamEvent::Stop(reason) => {
                let reason = self.resolve_stop(reason, out);
                self.has_stopped = true;
                out.push_back(StreamEvent::Stop(reason));
            }
            StreamEvent::ToolCallStart { slot, id, name } => {
                self.advance(false, out);
                self.give_up(out);
                let slot = self.slots.slot_for(slot);
                out.push_back(StreamEvent::ToolCallStart { slot, id, name });
            }
            StreamEvent::RateLimits { .. }
            | StreamEvent::Adapted { .. }
            | StreamEvent::UnknownStop { .. }
            | StreamEvent::Started { .. }
            | StreamEvent::Usage(_) => out.push_back(event),
            mut other => {
                self.advance(true, out);
                renumber_slots(&mut other, &mut self.slots);
                out.push_back(other);
            }
        }
    }

    /// Returns the reason why the model stopped, given the calls that were found. An answer that was cut holds no
    /// call at its end.
    fn resolve_stop(&mut self, reason: StopReason, out: &mut Events) -> StopReason {
        match reason {
            StopReason::EndTurn | StopReason::StopSequence | StopReason::ToolUse => {
                self.advance(true, out);
            }
            StopReason::MaxTokens
            | StopReason::Refusal
            | StopReason::ContentFilter
            | StopReason::Pause
            | StopReason::Other => self.advance(false, out),
        }
        self.give_up(out);
        match reason {
            StopReason::EndTurn | StopReason::StopSequence if self.has_called => {
                StopReason::ToolUse
            }
            reason => reason,
        }
    }

    /// From here on all is what the decoder says it is.
    fn give_up(&mut self, out: &mut Events) {
        if self.place == TextPosition::Thinking {
            self.advance(true, out);
        }
        self.place = TextPosition::Over;
        self.advance(true, out);
    }

    /// Passes on what is decided. `ended`: no more text will come.
    fn advance(&mut self, ended: bool, out: &mut Events) {
        loop {
            if self.skip_space {
                let space = self.held.len() - self.held.trim_start().len();
                self.held.drain(..space);
            }
            if self.held.is_empty() {
                return;
            }
            self.skip_space = false;
            let goes_on = match self.place {
                TextPosition::Start => self.detect_thinking(ended),
                TextPosition::Thinking => self.emit_thinking(ended, out),
                TextPosition::Text => self.search_call(ended, out),
                TextPosition::Fence => self.leave_fence(ended, out),
                TextPosition::Over => {
                    self.release_text(self.held.len(), out);
                    false
                }
            };
            if !goes_on {
                return;
            }
        }
    }

    fn detect_thinking(&mut self, ended: bool) -> bool {
        let text = self.held.trim_start();
        if let Some(thought) = text.strip_prefix(THINK) {
            self.held = thought.to_owned();
            self.skip_space = true;
            self.place = TextPosition::Thinking;
        } else if ended || !THINK.starts_with(text) || self.held.len() > MAX_HELD_BYTES {
            self.place = TextPosition::Text;
        } else {
            return false;
        }
        true
    }

    fn emit_thinking(&mut self, ended: bool, out: &mut Events) -> bool {
        let end = self.held.find(THINK_END);
        let length = end.unwrap_or_else(|| {
            let kept = if ended { 0 } else { tail_of(&self.held, THINK_END) };
            self.held.len() - kept
        });
        let text: String = self.held.drain(..length).collect();
        if !text.is_empty() {
            let slot = self.slots.slot_for(self.block);
            out.push_back(StreamEvent::ThinkingDelta { slot, text });
        }
        if end.is_some() {
            self.held.drain(..THINK_END.len());
            self.begin_block();
            self.place = TextPosition::Text;
        }
        end.is_some()
    }

    /// Looks for the next thing that may be a call.
    fn search_call(&mut self, ended: bool, out: &mut Events) -> bool {
        let mut line = self.line;
        let mut from = 0;
        while let Some(offset) = self.held[from..].find(['<', '[', '{', '`']) {
            let at = from + offset;
            line = line.after(&self.held[from..at]);
            let text = &self.held[at..];
            match self.judge_text(at, line, ended) {
                FormMatch::Text if line.is_blank && text.starts_with(FENCE) => {
                    self.release_text(at + FENCE.len(), out);
                    self.place = TextPosition::Fence;
                    return true;
                }
                FormMatch::Text => (),
                FormMatch::Open | FormMatch::Calls(..)
                    if !ended && text.len() <= MAX_HELD_BYTES =>
                {
                    self.release_words(at, out);
                    return false;
                }
                FormMatch::Open => break,
                FormMatch::Calls(length, calls) => {
                    self.release_words(at, out);
                    let start = self.held.len() - (self.held.trim_start().len());
                    self.held.drain(..start + length);
                    self.emit_calls(calls, out);
                    return true;
                }
            }
            from = at + 1;
            line = line.after(&self.held[at..from]);
        }
        if ended {
            self.release_text(self.held.len(), out);
        } else {
            self.release_words(self.held.len(), out);
        }
        false
    }

    /// Judges the text that is held from `at` on, which stands at `line`.
    fn judge_text(&self, at: usize, line: LineStart, ended: bool) -> FormMatch {
        if line.in_code {
            return FormMatch::Text;
        }
        let (before, text) = self.held.split_at(at);
        let opens_answer = !self.has_spoken && before.trim().is_empty();
        let on_own_line = line.is_blank;
        self.offer.match_to_end(CallText { text, on_own_line, opens_answer, ended })
    }

    /// Looks for the end of a block that holds no calls.
    fn leave_fence(&mut self, ended: bool, out: &mut Events) -> bool {
        let mut line = self.line;
        let mut from = 0;
        while let Some(offset) = self.held[from..].find('`') {
            let at = from + offset;
            line = line.after(&self.held[from..at]);
            let ticks = &self.held[at..];
            if line.is_blank && ticks.starts_with(FENCE) {
                self.release_text(at + FENCE.len(), out);
                self.place = TextPosition::Text;
                return true;
            }
            if line.is_blank && !ended && FENCE.starts_with(ticks) {
                self.release_text(at, out);
                return false;
            }
            from = at + 1;
            line = line.after(&self.held[at..from]);
        }
        self.release_text(self.held.len(), out);
        false
    }

    /// Passes on the first `length` bytes, unless they are white space before anything else: that is
    /// kept until words follow.
    fn release_words(&mut self, length: usize, out: &mut Events) {
        let is_space = self.held[..length].trim().is_empty();
        if self.has_spoken || !is_space || length > MAX_HELD_BYTES {
            self.release_text(length, out);
        }
    }

    fn release_text(&mut self, length: usize, out: &mut Events) {
        if length == 0 {
            return;
        }
        let text = if length == self.held.len() {
            std::mem::take(&mut self.held)
        } else {
            self.held.drain(..length).collect()
        };
        self.line = self.line.after(&text);
        self.has_spoken = true;
        let slot = self.slots.slot_for(self.block);
        out.push_back(StreamEvent::TextDelta { slot, text });
    }

    fn emit_calls(&mut self, calls: Vec<TextCall>, out: &mut Events) {
        self.has_called |= !calls.is_empty();
        for TextCall { name, arguments } in calls {
            let slot = self.slots.new_slot();
            out.push_back(StreamEvent::ToolCallStart { slot, id: String::new(), name });
            if !arguments.is_empty() {
                let fragment = arguments;
                out.push_back(StreamEvent::ToolCallDelta { slot, fragment });
            }
            out.push_back(StreamEvent::ToolCallDone { slot });
        }
        self.begin_block();
    }

    /// Begins a new block for what comes next in the decoder's block.
    fn begin_block(&mut self) {
        self.slots.by_theirs.remove(&self.block);
        self.skip_space = true;
        self.line = LineStart::START;
    }
}

fn renumber_slots(event: &mut StreamEvent, slots: &mut Slots) {
    match event {
        StreamEvent::TextDelta { slot, .. }
        | StreamEvent::ThinkingDelta { slot, .. }
        | StreamEvent::Signature { slot, .. }
        | StreamEvent::Item { slot, .. }
        | StreamEvent::Redacted { slot, .. }
        | StreamEvent::ToolCallStart { slot, .. }
        | StreamEvent::ToolCallDelta { slot, .. }
        | StreamEvent::ToolCallDone { slot } => *slot = slots.slot_for(*slot),
        StreamEvent::RateLimits { .. }
        | StreamEvent::Adapted { .. }
        | StreamEvent::UnknownStop { .. }
        | StreamEvent::Started { .. }
        | StreamEvent::Usage(_)
        | StreamEvent::Stop(_) => (),
    }
}

/// Returns the number of bytes at the end of `text` that may be the start of `mark`.
fn tail_of(text: &str, mark: &str) -> usize {
    (1..mark.len())
        .rev()
        .find(|length| mark.get(..*length).is_some_and(|start| text.ends_with(start)))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
