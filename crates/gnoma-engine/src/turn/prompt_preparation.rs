//! A person's message on its way to the model: hooks run, commands become their text, and shell commands in that
//! text are judged, approved and run like any other.

use std::collections::VecDeque;

use gnoma_core::{
    CallId, Content, Message, RawJson, ResultPart, Role, StopReason, ToolCall, ToolOutcome,
    lifecycle::{PreparedPrompt, PromptCall, PromptPart},
    session::Outcome,
};
use serde_json::{Value, json};

use super::{
    Phase, Turn,
    batch::Batch,
    prompt_state::{PromptPartCall, PromptPreparation, PromptTemplate},
    protocol::StepCommand,
};
use crate::{call::Call, effect::Effect, prompt};

impl Turn {
    pub(super) fn is_prepared_first(&self, message: &Message) -> bool {
        let begins_with_slash = || message.text_content().starts_with('/');
        self.added.stops.prompts || (self.added.stops.commands && begins_with_slash())
    }

    /// Prepares what needs it, then begins the turn with everything or continues with the next round.
    pub(super) fn prepare_messages(
        &mut self,
        mut ready: Vec<Message>,
        mut left: VecDeque<Message>,
        begins: bool,
    ) -> Phase {
        while let Some(current) = left.pop_front() {
            if self.is_prepared_first(&current) {
                self.cx.push(Effect::Prepare(current.text_content()));
                let (filling, is_answered) = (None, true);
                let preparing =
                    PromptPreparation { ready, current, left, filling, begins, is_answered };
                return Phase::Preparing(Box::new(preparing));
            }
            ready.push(current);
        }
        if begins { self.begin_with(ready) } else { self.go_on_with(ready) }
    }

    fn begin_with(&mut self, ready: Vec<Message>) -> Phase {
        if ready.is_empty() {
            self.rounds = 0;
            return self.finish(Outcome::Complete { stop: StopReason::EndTurn });
        }
        // Before what was said, so that the person has the last word.
        self.tell_news();
        for message in ready {
            self.cx.append(message);
        }
        Phase::Calling(Box::new(Call::choose_arm(self.call_request(), &mut self.cx)))
    }

    fn go_on_with(&mut self, ready: Vec<Message>) -> Phase {
        let last = self.cx.conversation.messages().last();
        let is_answered = last.is_some_and(|last| last.role() == Role::Assistant);
        if ready.is_empty() {
            self.tell_queue();
        }
        if ready.is_empty() && self.notes.is_empty() && is_answered {
            if !self.queued.is_empty() {
                return self.call_model();
            }
            return self.deliver_or_check(Outcome::Complete { stop: StopReason::EndTurn });
        }
        self.next_round(ready)
    }

    /// A message is prepared: the commands in it run, and the next one is prepared.
    pub(super) fn on_preparation(
        &mut self,
        mut preparing: Box<PromptPreparation>,
        prepared: PreparedPrompt,
        shell: String,
    ) -> Phase {
        let PreparedPrompt { block, parts, call, context, notices, tools: _, model: _ } = prepared;
        for text in notices {
            self.cx.warn(text);
        }
        if let Some(why) = block {
            self.cx.warn(format!("not sent to the model: {why}"));
            let PromptPreparation { ready, left, begins, .. } = *preparing;
            return self.prepare_messages(ready, left, begins);
        }
        let Some(parts) = parts else {
            let mut content = preparing.current.content().to_vec();
            content.extend(context_note(&context));
            return self.is_ready(*preparing, content);
        };
        preparing.filling = None;
        let of = PromptTemplate { parts, call, context, shell, step_timeout_s: None };
        self.fill_message(*preparing, of)
    }

    /// Runs the next shell command in a message, then the tool that is called with its words; if there is
    /// neither, the message is ready.
    fn fill_message(&mut self, mut preparing: PromptPreparation, mut of: PromptTemplate) -> Phase {
        while let Some(NextCall { at, tool, arguments, told }) = next_call(&mut of) {
            self.checks += 1;
            let id = CallId::new(format!("gnoma-prompt-{}-{}", self.turns, self.checks));
            if let Ok(arguments) = RawJson::from_value(&arguments)
                && !tool.is_empty()
            {
                let mut batch = Batch::of_check(ToolCall::new(id, &*tool, arguments));
                if let Some(call) = batch.take_startable().pop() {
                    self.cx.push(Effect::Judge(call));
                    preparing.filling = Some(PromptPartCall { of, at, told, batch });
                    return Phase::Preparing(Box::new(preparing));
                }
            }
            if let Some(part) = of.parts.get_mut(at) {
                *part = PromptPart::Text("[not run: there is no shell here]".to_owned());
            }
        }
        let text: String = of.parts.iter().map(part_text).collect();
        let others = preparing.current.content().iter();
        let others = others.filter(|content| !matches!(content, Content::Text(_))).cloned();
        let mut content: Vec<Content> = others.collect();
        if !text.trim().is_empty() {
            content.insert(0, Content::from_text(text));
        }
        content.extend(context_note(&of.context));
        self.is_ready(preparing, content)
    }

    fn is_ready(&mut self, preparing: PromptPreparation, content: Vec<Content>) -> Phase {
        let PromptPreparation { mut ready, left, begins, is_answered, .. } = preparing;
        ready.extend(Message::user(content).ok());
        if !is_answered {
            for message in ready {
                self.cx.append(message);
            }
            return self.finish(Outcome::Complete { stop: StopReason::EndTurn });
        }
        self.prepare_messages(ready, left, begins)
    }

    /// Runs a command of the person's as a turn of its own. Its output is added to the history below `line`; no model
    /// answers.
    pub(super) fn run_command(
        &mut self,
        StepCommand { line, command, shell, timeout_s }: StepCommand,
    ) -> Phase {
        let parts = vec![
            PromptPart::Text(format!("{line}\n```\n$ {command}\n")),
            PromptPart::Command(command),
            PromptPart::Text("\n```".to_owned()),
        ];
        let preparing = PromptPreparation {
            ready: Vec::new(),
            current: Message::user_text(line),
            left: VecDeque::new(),
            filling: None,
            begins: true,
            is_answered: false,
        };
        let step_timeout_s = Some(timeout_s);
        let of = PromptTemplate { parts, call: None, context: Vec::new(), shell, step_timeout_s };
        self.fill_message(preparing, of)
    }

    /// Inserts the output of a command that a message calls, once it has run or was refused.
    pub(super) fn on_fill_outcome(
        &mut self,
        mut preparing: Box<PromptPreparation>,
        ended: ToolOutcome,
    ) -> Phase {
        let Some(filling) = preparing.filling.take() else { return Phase::Preparing(preparing) };
        let PromptPartCall { mut of, at, told: (done, failed), .. } = filling;
        let before = if matches!(ended, ToolOutcome::Done(_)) { done } else { failed };
        if let Some(part) = of.parts.get_mut(at) {
            *part = PromptPart::Text(before + &said_by(ended));
        }
        self.fill_message(*preparing, of)
    }

    /// Ends the turn where a hook wants it ended after these calls.
    pub(super) fn is_stopped_after(&mut self) -> Option<Outcome> {
        let why = self.added.stop_after.take()?;
        self.cx.warn(format!("a hook ended the turn: {why}"));
        Some(Outcome::Complete { stop: StopReason::Other })
    }
}

/// A call for a message, and the part that its result becomes.
struct NextCall {
    at: usize,
    tool: String,
    arguments: Value,
    /// The text before a result, and the text before the reason why there is none.
    told: (String, String),
}

fn next_call(of: &mut PromptTemplate) -> Option<NextCall> {
    let command = |(at, part): (usize, &PromptPart)| match part {
        PromptPart::Text(_) => None,
        PromptPart::Command(command) => Some((
            at,
            match of.step_timeout_s {
                Some(limit) => {
                    json!({ "command": command, "timeout": limit, "stop_at_error": true })
                }
                None => json!({ "command": command }),
            },
        )),
    };
    if let Some((at, arguments)) = of.parts.iter().enumerate().find_map(command) {
        let (tool, told) = (of.shell.clone(), <(String, String)>::default());
        return Some(NextCall { at, tool, arguments, told });
    }
    let PromptCall { tool, mut arguments, words: place, done, failed } = of.call.take()?;
    let text: String = of.parts.iter().map(part_text).collect();
    if let Some(place) = arguments.pointer_mut(place) {
        *place = text.into();
    }
    of.parts = vec![PromptPart::Text(String::new())];
    Some(NextCall { at: 0, tool, arguments, told: (done, failed) })
}

fn part_text(part: &PromptPart) -> &str {
    match part {
        PromptPart::Text(text) => text,
        PromptPart::Command(_) => "",
    }
}

fn context_note(context: &[String]) -> Option<Content> {
    (!context.is_empty()).then(|| Content::from_text(prompt::system_note(&context.join("\n"))))
}

fn said_by(outcome: ToolOutcome) -> String {
    let call = ToolCall::new(CallId::new(""), "", RawJson::empty_object());
    let parts = outcome.into_result(&call).parts.into_iter().filter_map(|part| match part {
        ResultPart::Text { text } => Some(text),
        ResultPart::Image(_) => None,
    });
    parts.collect::<Vec<_>>().join("\n").trim_end().to_owned()
}
