//! The answer as it comes, and its end.

use std::ops::ControlFlow::{Break, Continue};

use gnoma_core::{ErrorKind, Event, ProviderError, StopReason, StreamEvent};

use super::{ARGUMENT_LOOPS, Call, CallEnd, CallStep, Phase};
use crate::{effect::CallEffect, turn_context::TurnContext};

/// Most attempts at a call that is answered with nothing.
const EMPTY_ATTEMPTS: u32 = 3;

/// The advice to a person when a prompt leaves no room for an answer.
const NO_ROOM: &str = "Start a new session, compact this one (/compact at its prompt), or use a model with a larger window.";

impl Call {
    pub(super) fn on_stream_event(&mut self, event: StreamEvent, cx: &mut TurnContext) -> CallStep {
        let is_call = matches!(event, StreamEvent::ToolCallStart { .. });
        if is_call && self.draft.has_call() && self.arm.as_ref().is_some_and(|arm| arm.is_lean) {
            self.draft.push(&StreamEvent::Stop(StopReason::ToolUse));
            return self.end_answer(StopReason::ToolUse, cx);
        }
        if let StreamEvent::Stop(stop) = event {
            let stop = self.draft.effective_stop(stop);
            self.draft.push(&StreamEvent::Stop(stop));
            return self.end_answer(stop, cx);
        }
        self.draft.push(&event);
        if self.draft.is_full() {
            return self.end_answer(StopReason::MaxTokens, cx);
        }
        if self.emit_piece(event, cx) {
            cx.push(CallEffect::CloseStream);
            return Break(CallEnd::Repeated(self.settle(cx).unwrap_or_default()));
        }
        Continue(Phase::Streaming)
    }

    /// Shows a piece of the answer; says whether the model has begun to repeat itself.
    fn emit_piece(&mut self, event: StreamEvent, cx: &mut TurnContext) -> bool {
        match event {
            StreamEvent::TextDelta { text, .. } if !text.is_empty() => {
                let loops = self.repetition.push(&text);
                cx.emit(Event::Text { text });
                return loops;
            }
            StreamEvent::ThinkingDelta { text, .. } if !text.is_empty() => {
                cx.emit(Event::Thinking { text });
            }
            StreamEvent::ToolCallStart { slot, name, .. } => {
                if let Some(call) = self.draft.begin_draft(slot, &cx.conversation) {
                    cx.emit(Event::ToolCallDrafted { call, name });
                }
            }
            StreamEvent::ToolCallDelta { slot, fragment } => {
                self.argument_loops += u32::from(self.repetition.push(&fragment));
                if let Some(call) = self.draft.draft_id(slot).cloned() {
                    cx.emit(Event::ToolCallDelta { call, fragment });
                }
                return self.argument_loops >= ARGUMENT_LOOPS;
            }
            StreamEvent::RateLimits { .. }
            | StreamEvent::Adapted { .. }
            | StreamEvent::Started { .. }
            | StreamEvent::TextDelta { .. }
            | StreamEvent::ThinkingDelta { .. }
            | StreamEvent::Signature { .. }
            | StreamEvent::Item { .. }
            | StreamEvent::Redacted { .. }
            | StreamEvent::ToolCallDone { .. }
            | StreamEvent::Usage(_)
            | StreamEvent::UnknownStop { .. }
            | StreamEvent::Stop(_) => (),
        }
        false
    }

    fn end_answer(&mut self, stop: StopReason, cx: &mut TurnContext) -> CallStep {
        cx.push(CallEffect::CloseStream);
        if let Some(error) = self.missing_answer_error(stop) {
            return Continue(self.fail_over(error, cx));
        }
        if let Some(error) = self.unknown_stop_error(stop) {
            return Break(CallEnd::Failed { error, partial: self.settle(cx) });
        }
        let (has_call, most) = (self.draft.has_call(), cx.limits.continuations);
        if stop == StopReason::MaxTokens && self.request.continuations < most {
            let (time, joins) = (self.request.continuations + 1, !has_call);
            cx.emit(Event::Continuing { time, most, joins });
        }
        let response = self.settle(cx).unwrap_or_default();
        Break(CallEnd::Answered { response, stop, has_call })
    }

    /// Returns an error if an answer has ended although nothing was written, unless there was nothing to say.
    fn missing_answer_error(&self, stop: StopReason) -> Option<ProviderError> {
        let Self { draft, attempt, .. } = self;
        // After tools have run, some models end without a word, and mean it.
        let is_empty = stop == StopReason::EndTurn && !draft.has_content();
        let is_repeated = *attempt < EMPTY_ATTEMPTS && !self.request.accepts_empty;
        let (kind, text) = match stop {
            // Calls that are whole are run, see `AnswerDraft::effective_stop`.
            StopReason::Other if draft.has_call() || draft.lacks_call() => {
                (ErrorKind::Garbled, "the answer ended in the middle of a call")
            }
            StopReason::Other if !draft.has_words() => (
                ErrorKind::Garbled,
                "the answer ended without text, for a reason that gnoma does not know",
            ),
            StopReason::EndTurn if is_empty && is_repeated => {
                (ErrorKind::Garbled, "the answer is empty")
            }
            StopReason::MaxTokens if draft.is_without_room() => (
                ErrorKind::ContextTooLong,
                "the prompt fills the model's window and leaves no room for an answer",
            ),
            _ => return None,
        };
        let word = draft.unknown_stop().filter(|_| stop == StopReason::Other);
        let text = word.map_or_else(|| text.to_owned(), |word| format!("{text} (`{word}`)"));
        let error = ProviderError::new(kind, self.provider(), text);
        Some(if kind == ErrorKind::ContextTooLong { error.with_hint(NO_ROOM) } else { error })
    }

    /// Returns the failure of an answer that ended with a word that gnoma does not know: it may lack its rest.
    fn unknown_stop_error(&self, stop: StopReason) -> Option<ProviderError> {
        let word = self.draft.unknown_stop().filter(|_| stop == StopReason::Other)?;
        let text = format!(
            "the answer ended for a reason that gnoma does not know (`{word}`) and may be incomplete"
        );
        let error = ProviderError::new(ErrorKind::ServerError, self.provider(), text);
        Some(error.with_hint("Ask it to continue, or use another model with --model."))
    }

    fn provider(&self) -> &str {
        self.arm.as_ref().map_or("provider", |arm| &arm.name.provider)
    }
}
