//! What the end of a model call leads to: calls of tools, another round, or the end of the turn.

use std::{collections::HashMap, sync::Arc};

use gnoma_core::{
    Message, RawJson, Response, StopReason, ToolSpec, message::Content, session::Outcome,
};

use super::{Phase, Turn, fits, names};
use crate::{
    call::{Call, CallEnd, Delivery},
    prompt, repair,
    routing::signals::ToolHandling,
};

/// Most rounds of a turn in which another program's agent answers.
const MAX_AGENT_ROUNDS: u32 = 2_000;

impl Turn {
    pub(super) fn on_call_end(&mut self, call: &Call, end: CallEnd) -> Phase {
        self.note_call(call);
        match end {
            CallEnd::Answered { response, stop, has_call } => {
                self.on_answer(response, stop, has_call)
            }
            // The text is kept, and the model receives a note.
            CallEnd::Repeated(response) => {
                self.append_answer(response);
                match self.correct_model(prompt::REPETITION.to_owned()) {
                    Ok(()) => self.call_model(),
                    Err(stuck) => self.deliver_or_check(Outcome::Stuck { what: stuck.to_string() }),
                }
            }
            CallEnd::Failed { error, partial } => {
                let partial = partial.and_then(|partial| self.append_answer(partial));
                self.finish(Outcome::Failed { error, kept_partial: partial.is_some() })
            }
        }
    }

    /// Notes which arm has answered, and what follows from that for the turn.
    pub(super) fn note_call(&mut self, call: &Call) {
        self.delivery = call.delivery.unwrap_or(self.delivery);
        if call.has_moved {
            // Who replaces one that only looked works alone.
            if self.delivery == Delivery::Conferred {
                self.delivery = Delivery::Direct;
            }
            // What the first could not handle is not the other's fault.
            self.watch.handling = ToolHandling::default();
        }
        if let Some(arm) = &call.arm {
            (self.origin, self.watch.is_lean) = (Some(arm.name.clone()), arm.is_lean);
            if arm.is_agent {
                self.most_rounds = self.most_rounds.max(MAX_AGENT_ROUNDS);
            }
        }
    }

    pub(super) fn append_answer(&mut self, response: Response) -> Option<Arc<Message>> {
        self.cx.append_answer(response, self.origin.clone())
    }

    fn on_answer(&mut self, mut response: Response, stop: StopReason, has_call: bool) -> Phase {
        if stop == StopReason::ToolUse {
            repair_calls(&mut response, &self.specs);
        }
        let message = self.append_answer(response);
        match stop {
            StopReason::ToolUse if has_call => self.run_calls(message.as_deref()),
            StopReason::MaxTokens => {
                if let (Some(form), Some(message)) = (&mut self.cx.answer_form, &message) {
                    form.add_partial_answer(&message.text_content());
                }
                self.continue_cut(has_call)
            }
            StopReason::Pause => self.call_model(),
            StopReason::ToolUse
            | StopReason::EndTurn
            | StopReason::StopSequence
            | StopReason::Refusal
            | StopReason::ContentFilter
            | StopReason::Other => self.on_model_done(message.as_deref(), stop),
        }
    }

    fn continue_cut(&mut self, in_call: bool) -> Phase {
        if self.continuations == self.cx.limits.continuations {
            let text = format!(
                "the answer was cut off by the output limit {} times; a higher \
                 `provider.max_tokens` would let it finish",
                self.continuations + 1
            );
            self.cx.warn(text);
            return self.finish(Outcome::Complete { stop: StopReason::MaxTokens });
        }
        self.continuations += 1;
        let note = if in_call { prompt::CONTINUE_CALL } else { prompt::CONTINUE };
        self.notes.push(note.to_owned());
        self.call_model()
    }

    /// The model says that it is done.
    fn on_model_done(&mut self, message: Option<&Message>, stop: StopReason) -> Phase {
        let text = message.map(Message::text_content).unwrap_or_default();
        if let Some(why) = prompt::without_answer(stop, message) {
            self.cx.warn(why);
        }
        if !self.queued.is_empty() {
            return self.call_model();
        }
        if let Some(why) = self.find_form_error(stop, &text) {
            return self.ask_again(why);
        }
        self.may_end(stop, text)
    }

    /// Corrects the model in the next round, if that has not been tried too often.
    fn correct_model(&mut self, note: String) -> Result<(), TooManyCorrections> {
        let most = self.cx.limits.corrections;
        if self.watch.corrections == most {
            return Err(TooManyCorrections(most));
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
