//! The answer as it comes, and what its end leads to.

use std::{collections::HashMap, sync::Arc};

use gnoma_core::{
    ErrorKind, Event, Message, ProviderError, RawJson, Response, StopReason, StreamEvent, ToolSpec,
    message::Content,
    session::{NoticeLevel, Outcome},
};

use super::{Effects, Turn, answer::AnswerDraft, fits, names, phase::Phase, protocol::Effect};
use crate::{prompt, repair};

/// Most attempts at a call that is answered with nothing.
const EMPTY_ATTEMPTS: u32 = 3;

/// The advice to a person when a prompt leaves no room for an answer.
const NO_ROOM: &str = "Start a new session, compact this one (/compact at its prompt), or use a model with a larger window.";

impl Turn {
    pub(super) fn on_stream_event(
        &mut self,
        attempt: u32,
        mut answer: AnswerDraft,
        event: StreamEvent,
        fx: &mut Effects,
    ) -> Phase {
        let another_call = matches!(event, StreamEvent::ToolCallStart { .. }) && answer.has_call();
        if another_call && self.watch.is_lean {
            fx.push(Effect::DropStream);
            answer.push(&StreamEvent::Stop(StopReason::ToolUse));
            return self.finish_answer(attempt, answer, StopReason::ToolUse, fx);
        }
        if let StreamEvent::Stop(stop) = event {
            let stop = answer.effective_stop(stop);
            answer.push(&StreamEvent::Stop(stop));
            fx.push(Effect::DropStream);
            return self.finish_answer(attempt, answer, stop, fx);
        }
        answer.push(&event);
        if answer.is_full() {
            fx.push(Effect::DropStream);
            return self.finish_answer(attempt, answer, StopReason::MaxTokens, fx);
        }
        if self.emit_piece(&mut answer, event, fx) {
            fx.push(Effect::DropStream);
            return self.cut_short(answer, fx);
        }
        Phase::Calling { attempt, answer }
    }

    /// Shows a piece of the answer; says whether the model has begun to repeat itself.
    fn emit_piece(
        &mut self,
        answer: &mut AnswerDraft,
        event: StreamEvent,
        fx: &mut Effects,
    ) -> bool {
        match event {
            StreamEvent::TextDelta { text, .. } if !text.is_empty() => {
                let loops = self.watch.text_repeats(&text);
                fx.push(Effect::Emit(Event::Text { text }));
                return loops;
            }
            StreamEvent::ThinkingDelta { text, .. } if !text.is_empty() => {
                fx.push(Effect::Emit(Event::Thinking { text }));
            }
            StreamEvent::ToolCallStart { slot, name, .. } => {
                if let Some(call) = answer.begin_draft(slot, &self.call_ids) {
                    fx.push(Effect::Emit(Event::ToolCallDrafted { call, name }));
                }
            }
            StreamEvent::ToolCallDelta { slot, fragment } => {
                let loops = self.watch.arguments_repeat(&fragment);
                if let Some(call) = answer.draft_id(slot).cloned() {
                    fx.push(Effect::Emit(Event::ToolCallDelta { call, fragment }));
                }
                return loops;
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

    /// The model repeats itself: its text is kept, and it receives a note.
    fn cut_short(&mut self, answer: AnswerDraft, fx: &mut Effects) -> Phase {
        self.append_answer(answer, fx);
        match self.correct_model(prompt::REPETITION.to_owned()) {
            Ok(()) => self.call_model(fx),
            Err(stuck) => self.deliver_or_check(Outcome::Stuck { what: stuck.to_string() }, fx),
        }
    }

    fn finish_answer(
        &mut self,
        attempt: u32,
        answer: AnswerDraft,
        stop: StopReason,
        fx: &mut Effects,
    ) -> Phase {
        if let Some(error) = self.no_answer(attempt, &answer, stop) {
            return self.fail_over(attempt, Some(answer), error, fx);
        }
        if stop == StopReason::Other && answer.unknown_stop().is_some() {
            return self.end_unknown(answer, fx);
        }
        let has_calls = answer.has_call();
        if stop == StopReason::MaxTokens && self.answers.continuations < self.limits.continuations {
            let (time, most) = (self.answers.continuations + 1, self.limits.continuations);
            fx.push(Effect::Emit(Event::Continuing { time, most, joins: !has_calls }));
        }
        let message = if stop == StopReason::ToolUse {
            let mut response = answer.finish();
            repair_calls(&mut response, &self.specs);
            self.keep_response(response, fx)
        } else {
            self.append_answer(answer, fx)
        };
        match stop {
            StopReason::ToolUse if has_calls => self.run_calls(message.as_deref(), fx),
            StopReason::MaxTokens => {
                if let (Some(shaping), Some(message)) = (&mut self.answers.shaping, &message) {
                    shaping.add_partial_answer(&message.text_content());
                }
                self.continue_cut(has_calls, fx)
            }
            StopReason::Pause => self.call_model(fx),
            StopReason::ToolUse
            | StopReason::EndTurn
            | StopReason::StopSequence
            | StopReason::Refusal
            | StopReason::ContentFilter
            | StopReason::Other => self.on_model_done(message.as_deref(), stop, fx),
        }
    }

    /// Returns an error if an answer has ended although nothing was written, unless there was nothing to say.
    fn no_answer(
        &self,
        attempt: u32,
        answer: &AnswerDraft,
        stop: StopReason,
    ) -> Option<ProviderError> {
        // After tools have run, some models end without a word, and mean it.
        let is_empty = stop == StopReason::EndTurn && !answer.has_content();
        let is_repeated = attempt < EMPTY_ATTEMPTS && !self.watch.has_run_tools();
        let (kind, text) = match stop {
            // Calls that are whole are run, see `AnswerDraft::settled`.
            StopReason::Other if answer.has_call() => {
                (ErrorKind::Garbled, "the answer ended in the middle of a call")
            }
            StopReason::Other if !answer.has_words() => (
                ErrorKind::Garbled,
                "the answer ended without text, for a reason that gnoma does not know",
            ),
            StopReason::EndTurn if is_empty && is_repeated => {
                (ErrorKind::Garbled, "the answer is empty")
            }
            StopReason::MaxTokens if answer.is_without_room() => (
                ErrorKind::ContextTooLong,
                "the prompt fills the model's window and leaves no room for an answer",
            ),
            _ => return None,
        };
        let provider = self.origin.as_ref().map_or("provider", |origin| &origin.provider);
        let word = answer.unknown_stop().filter(|_| stop == StopReason::Other);
        let text = word.map_or_else(|| text.to_owned(), |word| format!("{text} (`{word}`)"));
        let error = ProviderError::new(kind, provider, text);
        Some(if kind == ErrorKind::ContextTooLong { error.with_hint(NO_ROOM) } else { error })
    }

    /// Ends the turn with an answer that ended with a word that gnoma does not know: it may lack its rest.
    fn end_unknown(&mut self, answer: AnswerDraft, fx: &mut Effects) -> Phase {
        let provider = self.origin.as_ref().map_or("provider", |origin| &origin.provider);
        let text = format!(
            "the answer ended for a reason that gnoma does not know (`{}`) and may be incomplete",
            answer.unknown_stop().unwrap_or_default()
        );
        let error = ProviderError::new(ErrorKind::ServerError, provider, text)
            .with_hint("Ask it to continue, or use another model with --model.");
        let kept_partial = self.append_answer(answer, fx).is_some();
        self.finish(Outcome::Failed { error, kept_partial }, fx)
    }

    fn continue_cut(&mut self, in_call: bool, fx: &mut Effects) -> Phase {
        if self.answers.continuations == self.limits.continuations {
            let text = format!(
                "The answer was cut off by the output limit {} times; a higher \
                 `provider.max_tokens` would let it finish.",
                self.answers.continuations + 1
            );
            fx.push(Effect::Emit(Event::Notice { level: NoticeLevel::Warning, text }));
            return self.finish(Outcome::Complete { stop: StopReason::MaxTokens }, fx);
        }
        self.answers.continuations += 1;
        let note = if in_call { prompt::CONTINUE_CALL } else { prompt::CONTINUE };
        self.notes.push(note.to_owned());
        self.call_model(fx)
    }

    /// The model says that it is done.
    fn on_model_done(
        &mut self,
        message: Option<&Message>,
        stop: StopReason,
        fx: &mut Effects,
    ) -> Phase {
        let text = message.map(Message::text_content).unwrap_or_default();
        if let Some(why) = prompt::without_answer(stop, message) {
            let (level, text) = (NoticeLevel::Warning, why.to_owned());
            fx.push(Effect::Emit(Event::Notice { level, text }));
        }
        if !self.queued.is_empty() {
            return self.call_model(fx);
        }
        if let Some(why) = self.find_form_error(stop, &text) {
            return self.ask_again(why, fx);
        }
        self.may_end(stop, text, fx)
    }

    /// Corrects the model in the next round, if that has not been tried too often.
    fn correct_model(&mut self, note: String) -> Result<(), TooManyCorrections> {
        if self.watch.corrections == self.limits.corrections {
            return Err(TooManyCorrections(self.limits.corrections));
        }
        self.watch.corrections += 1;
        self.notes.push(note);
        Ok(())
    }
}

/// The model repeats itself, although it was corrected as often as is allowed.
#[derive(thiserror::Error)]
#[error("the model kept repeating itself after {0} corrections")]
struct TooManyCorrections(u32);

gnoma_core::debug_as_display!(TooManyCorrections);

/// Repairs names and arguments before they reach history, guard or tool, which all read the same from then on: what is not JSON
/// or a text that holds it, and texts where the tool wants something else. Names that occur twice cannot be repaired.
fn repair_calls(response: &mut Response, specs: &HashMap<String, Arc<ToolSpec>>) {
    for block in &mut response.content {
        let Content::ToolCall(call) = block else { continue };
        if let Some(meant) = names::meant_tool(&call.name, specs) {
            call.name = meant;
        }
        if let Ok(text) = call.arguments.read::<String>() {
            if let Some(arguments) = repair::repair_arguments(&text) {
                call.arguments = arguments;
                call.broken = false;
            }
        } else if repair::repeats_a_key(call.arguments.get()) {
            let text = RawJson::from_value(&call.arguments.get());
            call.arguments = text.unwrap_or_else(|_| RawJson::empty_object());
            call.broken = true;
        }
        if let Some(respelt) =
            specs.get(&call.name).and_then(|spec| fits::normalize_arguments(spec, call))
        {
            call.arguments = respelt;
        }
    }
}
