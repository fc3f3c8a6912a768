//! Calls of tools, as they come and go.

use gnoma_core::{CallId, Event, ToolCall, ToolResult, tool::tool_label};

use super::{
    Transcript,
    block::Block,
    call::{Call, CallEnd},
};

impl Transcript {
    pub(super) fn call_event(&mut self, event: &Event) {
        match event {
            Event::ToolCallDrafted { name, .. } => {
                self.close_open();
                self.show_expected(format!("· {} …", tool_label(name)));
            }
            // The call that asks is shown already, and the question ends with its answer.
            Event::PermissionAsked { during: Some(_), .. } => (),
            Event::PermissionAsked { call, .. } => {
                self.add_call(Call::new(call));
                if let Some(call) = self.open_call(&call.id) {
                    call.mark_asked();
                }
            }
            Event::PermissionDecided { call, allowed, reason } => {
                if let Some(call) = self.open_call(call) {
                    call.record_decision(*allowed, reason);
                }
            }
            Event::ToolStarted { call } => self.tool_started(call),
            Event::ToolProgress { call, text } => {
                if let Some(call) = self.open_call(call) {
                    call.record_progress(text);
                }
            }
            Event::ToolEnded { result, diff, duration_ms, .. } => {
                self.tool_ended(result, diff.as_deref(), Some(*duration_ms));
            }
            _ => (),
        }
    }

    pub(super) fn tool_started(&mut self, call: &ToolCall) {
        self.close_open();
        self.add_call(Call::new(call));
        let now = self.now;
        let Some(call) = self.open_call(&call.id) else { return };
        call.start(now);
        let title = call.title();
        if self.options.accessible {
            self.blocks.push_back(Block::Began(title));
        }
    }

    pub(super) fn tool_ended(
        &mut self,
        result: &ToolResult,
        diff: Option<&str>,
        duration_ms: Option<u64>,
    ) {
        let ended = CallEnd::new(result, diff, duration_ms);
        let unfolded = self.options.unfolded;
        if self.open_call(&result.call_id).is_none() {
            self.add_call(Call::without_arguments(&result.call_id, &result.name));
        }
        let Some(call) = self.open_call(&result.call_id) else { return };
        call.record_end(ended);
        let folded = call.to_folded();
        self.open_calls = self.open_calls.saturating_sub(1);
        if let Some(at) = self.unseen.iter().position(|call| call.id == result.call_id) {
            let call = self.unseen.remove(at);
            self.blocks.push_back(Block::Call(call));
        }
        if let Some(folded) = folded
            && !unfolded
        {
            self.folded_outputs.add_folded(folded);
        }
    }

    /// Makes sure that there is such a call.
    pub(super) fn add_call(&mut self, call: Call) {
        self.expected = None;
        if self.open_call(&call.id).is_some() {
            return;
        }
        self.open_calls += 1;
        if self.options.accessible {
            self.unseen.push(call);
        } else {
            self.blocks.push_back(Block::Call(call));
        }
    }

    /// The call of this id that is not over. Ids may come again in later rounds.
    pub(super) fn open_call(&mut self, id: &CallId) -> Option<&mut Call> {
        if self.open_calls == 0 {
            return None;
        }
        let in_blocks = self.blocks.iter_mut().rev().filter_map(|block| match block {
            Block::Call(call) => Some(call),
            _ => None,
        });
        self.unseen.iter_mut().chain(in_blocks).find(|call| call.id == *id && !call.is_over())
    }
}
