//! Requests with the changes that their server wants. Pure.

use std::{borrow::Cow, sync::Arc};

use bytes::Bytes;
use gnoma_core::{
    Content, Message, ModelRequest, ResultPart, Role, ToolChoice, ToolResult, message::Text,
};
use serde_json::Value;

use super::{
    change::Adaptation,
    pictures::{RefusedPictures, contains_picture},
};
use crate::envelope::TAIL;

/// Stands for a picture that is left out.
const NO_PICTURE: &str = "[A picture stood here; this model cannot see pictures.]";
/// The user message that is added after the model's own words.
const GO_ON: &str = "Continue.";
/// The mark of a cached part as it is written in a request. In a text its quotes would have a backslash.
const CACHE_MARK: &[u8] = br#","cache_control":{"type":"ephemeral"}"#;
const CACHE: &str = "cache_control";

/// Bytes of a prompt, as far as it is what was said.
pub(crate) fn prompt_bytes(request: &ModelRequest) -> u64 {
    let said: usize = request.messages.iter().map(|message| message.content_bytes()).sum();
    (request.system.len() + said) as u64
}

/// `request` with what is changed in what it says; `is_form`: its tool is the form of the answer.
pub(crate) fn apply_changes<'r>(
    changes: &[Adaptation],
    request: Cow<'r, ModelRequest>,
    is_form: bool,
) -> Cow<'r, ModelRequest> {
    if changes.is_empty() {
        return request;
    }
    let mut request = request.into_owned();
    for change in changes {
        apply_change(change, &mut request, is_form);
    }
    Cow::Owned(request)
}

fn apply_change(change: &Adaptation, request: &mut ModelRequest, is_form: bool) {
    match change {
        // The fields of the body are changed once it is written.
        Adaptation::Field(_) | Adaptation::Renamed { .. } | Adaptation::Stream => (),
        Adaptation::Tools | Adaptation::OneTool(_) | Adaptation::ToolTrials(_) if is_form => (),
        Adaptation::ToolTrials(trials) => request.tools = trials.offered_tools(&request.tools),
        Adaptation::OneTool(name) => {
            let others = request.tools.iter().filter(|tool| tool.name != *name);
            request.tools = others.cloned().collect();
        }
        Adaptation::Tools => request.tools = Arc::default(),
        Adaptation::ToolChoice => request.tool_choice = ToolChoice::Auto,
        Adaptation::Pictures => {
            rewrite_messages(request, usize::MAX, |message| {
                without_pictures(message, NO_PICTURE, |_| true)
            });
        }
        Adaptation::RefusedPictures(refused) => without_refused(request, refused),
        Adaptation::EarlierThinking(some) => rewrite_messages(request, *some, without_origin),
        Adaptation::Effort => (request.effort, request.thinking) = (None, None),
        Adaptation::SystemRole => system_first(request),
        Adaptation::AnswerLast => {
            let last = request.messages.last().map(|last| last.role());
            if last == Some(Role::Assistant) {
                request.messages.push(Arc::new(Message::user_text(GO_ON)));
            }
        }
        Adaptation::MostTokens(most) => cap_output_tokens(request, *most),
        Adaptation::Room(room) => {
            if let Some(most) = room.max_answer_tokens(prompt_bytes(request)) {
                cap_output_tokens(request, most);
            }
        }
    }
}

fn cap_output_tokens(request: &mut ModelRequest, most: u32) {
    request.max_output_tokens = Some(request.max_output_tokens.map_or(most, |own| own.min(most)));
}

/// Changes the first messages, as far as they have something to change.
fn rewrite_messages(
    request: &mut ModelRequest,
    some: usize,
    change: impl Fn(&Message) -> Option<Message>,
) {
    for message in request.messages.iter_mut().take(some) {
        if let Some(changed) = change(message) {
            *message = Arc::new(changed);
        }
    }
}

/// Puts the provider's words in the place of the pictures that it refuses.
fn without_refused(request: &mut ModelRequest, refused: &RefusedPictures) {
    let text = format!("[A picture stood here; the provider refused it: {}]", refused.why);
    let out = refused.left_out_of(request.messages.iter().rev().map(|message| &**message));
    for (message, out) in request.messages.iter_mut().rev().zip(out) {
        let is_out = |base64: &Arc<str>| contains_picture(&out, base64);
        if let Some(changed) = without_pictures(message, &text, is_out) {
            *message = Arc::new(changed);
        }
    }
}

/// The system prompt stands before what the user says first.
fn system_first(request: &mut ModelRequest) {
    let system = std::mem::take(&mut request.system);
    if system.is_empty() {
        return;
    }
    let first = request.messages.iter_mut().find(|message| message.role() == Role::User);
    let Some(first) = first else { return };
    let prompt = Content::from_text(format!("{system}\n\n"));
    let content = std::iter::once(prompt).chain(first.content().iter().cloned());
    if let Ok(changed) = Message::user(content.collect()) {
        *first = Arc::new(changed);
    }
}

/// Reports whether some of the thinking in a message goes back to the model that wrote it.
pub(super) fn has_thinking(message: &Message) -> bool {
    message.origin().is_some()
        && message.content().iter().any(|block| match block {
            Content::Thinking(_) | Content::RedactedThinking(_) => true,
            Content::Text(text) => text.signature.is_some(),
            Content::ToolCall(call) => call.signature.is_some(),
            Content::Image(_) | Content::ToolResult(_) => false,
        })
}

/// As a message of some other model, whose thinking stays at home.
fn without_origin(message: &Message) -> Option<Message> {
    let is_own = has_thinking(message);
    let content = || message.content().to_vec();
    is_own.then(|| Message::assistant(content(), None, message.stop_reason()).ok())?
}

pub(super) fn has_pictures(message: &Message) -> bool {
    message.content().iter().any(|block| match block {
        Content::Image(_) => true,
        Content::ToolResult(result) => result.images().next().is_some(),
        Content::Text(_)
        | Content::Thinking(_)
        | Content::RedactedThinking(_)
        | Content::ToolCall(_) => false,
    })
}

/// With `text` in the place of the pictures that `is_out` names.
fn without_pictures(
    message: &Message,
    text: &str,
    is_out: impl Fn(&Arc<str>) -> bool,
) -> Option<Message> {
    let images = |block: &Content| match block {
        Content::Image(image) => is_out(&image.base64),
        Content::ToolResult(result) => result.images().any(|image| is_out(&image.base64)),
        Content::Text(_)
        | Content::Thinking(_)
        | Content::RedactedThinking(_)
        | Content::ToolCall(_) => false,
    };
    if !message.content().iter().any(images) {
        return None;
    }
    if message.role() == Role::Tool {
        let blind = |result: &ToolResult| ToolResult {
            parts: result.parts.iter().map(|part| blind_part(part, text, &is_out)).collect(),
            ..result.clone()
        };
        return Message::results(message.tool_results().map(blind).collect()).ok();
    }
    let block = |block: &Content| match block {
        Content::Image(image) if is_out(&image.base64) => {
            Content::Text(Text { text: text.to_owned(), signature: None })
        }
        other => other.clone(),
    };
    Message::user(message.content().iter().map(block).collect()).ok()
}

fn blind_part(part: &ResultPart, text: &str, is_out: impl Fn(&Arc<str>) -> bool) -> ResultPart {
    match part {
        ResultPart::Image(image) if is_out(&image.base64) => {
            ResultPart::Text { text: text.to_owned() }
        }
        part => part.clone(),
    }
}

/// The pieces of a body with the changes of its fields. The first piece holds all fields and ends within
/// the list of messages.
pub(crate) fn rewrite_body(changes: &[Adaptation], mut pieces: Vec<Bytes>) -> Vec<Bytes> {
    let of_fields = |it: &&Adaptation| {
        matches!(it, Adaptation::Field(_) | Adaptation::Renamed { .. } | Adaptation::Stream)
    };
    for change in changes.iter().filter(of_fields) {
        if *change == Adaptation::Field(CACHE.to_owned()) {
            for piece in &mut pieces {
                *piece = strip_cache_marks(piece);
            }
        } else if let Some(head) = pieces.first_mut()
            && let Some(Value::Object(fields)) = parse_fields(head)
        {
            let kept =
                fields.into_iter().filter_map(|(name, value)| adapt_field(change, name, value));
            let mut bytes = Value::Object(kept.collect()).to_string().into_bytes();
            bytes.truncate(bytes.len() - TAIL.len());
            *head = bytes.into();
        }
    }
    pieces
}

/// The fields of a body, by its first piece.
pub(crate) fn parse_fields(head: &[u8]) -> Option<Value> {
    serde_json::from_slice(&[head, TAIL].concat()).ok()
}

fn adapt_field(change: &Adaptation, name: String, value: Value) -> Option<(String, Value)> {
    match (change, value) {
        (Adaptation::Field(gone), _) if *gone == name => None,
        (Adaptation::Stream, _) if name == "stream_options" => None,
        // Some servers stream unless they are told not to.
        (Adaptation::Stream, _) if name == "stream" => Some((name, Value::Bool(false))),
        (Adaptation::Renamed { from, to }, value) if *from == name => {
            Some(((*to).to_owned(), value))
        }
        (Adaptation::Field(gone), Value::Object(mut inner)) => {
            if let Some((holder, gone)) = gone.split_once('.')
                && holder == name
            {
                inner.shift_remove(gone);
            }
            Some((name, Value::Object(inner)))
        }
        (_, value) => Some((name, value)),
    }
}

fn strip_cache_marks(piece: &Bytes) -> Bytes {
    let mark = |at: usize| piece[at..].starts_with(CACHE_MARK);
    let Some(first) = (0..piece.len()).find(|at| mark(*at)) else { return piece.clone() };
    let mut out = piece[..first].to_vec();
    let mut at = first;
    while at < piece.len() {
        if mark(at) {
            at += CACHE_MARK.len();
        } else {
            out.push(piece[at]);
            at += 1;
        }
    }
    out.into()
}
