//! Redacts every string of a record before it is written.
//!
//! Arguments of calls are JSON: their strings are seen as they read, not as they are escaped. They
//! stay byte for byte what they were when the hook changes nothing.

use std::{borrow::Cow, collections::HashSet, sync::Arc};

use gnoma_core::{
    CallId, Content, Image, Message, ModelRef, RawJson, Redacted, ResultPart, Role, Text, Thinking,
    ToolCall, ToolResult,
    store::{Record, StoreError, StoreErrorKind},
};
use serde_json::Value;

use crate::{
    error::Result,
    options::{RedactHook, WrittenString},
};

/// `record` as it may be written.
pub(crate) fn redact_record(redact: &RedactHook, record: &Record) -> Result<Record> {
    Ok(match record {
        Record::Message(original) => Record::Message(Arc::new(redact_message(redact, original)?)),
        Record::Routed { arm, why } => {
            Record::Routed { arm: redact_model(redact, arm), why: redact_words(redact, why) }
        }
        Record::Asked { call } => Record::Asked { call: call_id(redact, call) },
        Record::Judged { call, allowed, reason } => Record::Judged {
            call: call_id(redact, call),
            allowed: *allowed,
            reason: redact_words(redact, reason),
        },
        Record::ToolEnded(result) => Record::ToolEnded(tool_result(redact, result)),
        Record::Summary { text, up_to } => {
            Record::Summary { text: redact_words(redact, text), up_to: *up_to }
        }
        Record::Checkpoint { id } => Record::Checkpoint { id: redact_words(redact, id) },
        Record::Title { text } => Record::Title { text: redact_words(redact, text) },
        Record::Interrupted { calls } => {
            Record::Interrupted { calls: calls.iter().map(|call| call_id(redact, call)).collect() }
        }
        Record::Used(usage) => Record::Used(*usage),
        Record::Paid { arm, micro_usd } => {
            Record::Paid { arm: redact_model(redact, arm), micro_usd: *micro_usd }
        }
        Record::Checked { arm, by, passed, evidence } => Record::Checked {
            arm: redact_model(redact, arm),
            by: redact_words(redact, by),
            passed: *passed,
            evidence: redact_words(redact, evidence),
        },
        Record::Rewound { from } => Record::Rewound { from: *from },
        Record::Tombstone { of } => Record::Tombstone { of: *of },
    })
}

/// `text` as it may be written.
pub(crate) fn redact_words(redact: &RedactHook, text: &str) -> String {
    redact(WrittenString::Words, text).into_owned()
}

fn redact_opaque(redact: &RedactHook, token: &str) -> String {
    redact(WrittenString::Opaque, token).into_owned()
}

fn opaque_option(redact: &RedactHook, token: Option<&String>) -> Option<String> {
    token.map(|token| redact_opaque(redact, token))
}

/// A vendor's signature of something, which holds only while both are what they were: a changed one is
/// refused, and so is one of other words.
fn retain_signature(redact: &RedactHook, token: Option<&String>, is_same: bool) -> Option<String> {
    token.filter(|_| is_same).filter(|token| redact_opaque(redact, token) == **token).cloned()
}

/// The items of a message's thinking whose words change. One signature stands for all blocks of an
/// item.
fn changed_items<'a>(redact: &RedactHook, message: &'a Message) -> HashSet<&'a str> {
    let thinking = message.content().iter().filter_map(|part| match part {
        Content::Thinking(thinking) => Some(thinking),
        Content::Text(_)
        | Content::Image(_)
        | Content::RedactedThinking(_)
        | Content::ToolCall(_)
        | Content::ToolResult(_) => None,
    });
    thinking
        .filter(|thinking| redact_words(redact, &thinking.text) != thinking.text)
        .filter_map(|thinking| thinking.item.as_deref())
        .collect()
}

fn call_id(redact: &RedactHook, id: &CallId) -> CallId {
    CallId::new(redact_opaque(redact, id.as_str()))
}

fn redact_model(redact: &RedactHook, model: &ModelRef) -> ModelRef {
    ModelRef {
        provider: redact_words(redact, &model.provider),
        model: redact_words(redact, &model.model),
    }
}

fn redact_message(redact: &RedactHook, original: &Message) -> Result<Message> {
    let changed = changed_items(redact, original);
    let content: Vec<_> =
        original.content().iter().map(|part| redact_block(redact, part, &changed)).collect();
    let rebuilt = match original.role() {
        Role::User => Message::user(content),
        Role::Assistant => {
            let origin = original.origin().map(|origin| redact_model(redact, origin));
            Message::assistant(content, origin, original.stop_reason())
        }
        Role::Tool => Message::results(
            content
                .into_iter()
                .filter_map(|part| match part {
                    Content::ToolResult(result) => Some(result),
                    Content::Text(_)
                    | Content::Image(_)
                    | Content::Thinking(_)
                    | Content::RedactedThinking(_)
                    | Content::ToolCall(_) => None,
                })
                .collect(),
        ),
    };
    rebuilt.map_err(|error| {
        let sentence = format!(
            "a message is not stored: redaction made two call ids the same: \
                                {error}"
        );
        StoreError::new(StoreErrorKind::Io, sentence)
    })
}

/// `changed`: the items of the message's thinking whose words change.
fn redact_block(redact: &RedactHook, part: &Content, changed: &HashSet<&str>) -> Content {
    match part {
        Content::Text(original) => {
            let text = redact_words(redact, &original.text);
            let signature =
                retain_signature(redact, original.signature.as_ref(), text == original.text);
            Content::Text(Text { text, signature })
        }
        Content::Image(picture) => Content::Image(redact_image(redact, picture)),
        Content::Thinking(original) => {
            let text = redact_words(redact, &original.text);
            let is_whole = original.item.as_deref().is_none_or(|item| !changed.contains(item));
            let is_same = is_whole && text == original.text;
            let signature = retain_signature(redact, original.signature.as_ref(), is_same);
            let item = opaque_option(redact, original.item.as_ref());
            Content::Thinking(Thinking { text, signature, item })
        }
        Content::RedactedThinking(hidden) => {
            Content::RedactedThinking(Redacted { data: redact_opaque(redact, &hidden.data) })
        }
        Content::ToolCall(original) => Content::ToolCall(redact_call(redact, original)),
        Content::ToolResult(original) => Content::ToolResult(tool_result(redact, original)),
    }
}

fn tool_result(redact: &RedactHook, original: &ToolResult) -> ToolResult {
    ToolResult {
        call_id: call_id(redact, &original.call_id),
        name: redact_words(redact, &original.name),
        parts: original.parts.iter().map(|part| result_part(redact, part)).collect(),
        is_error: original.is_error,
    }
}

fn redact_image(redact: &RedactHook, picture: &Image) -> Image {
    let base64 = match redact(WrittenString::Opaque, &picture.base64) {
        Cow::Borrowed(same) if same.len() == picture.base64.len() => Arc::clone(&picture.base64),
        changed => Arc::from(changed.as_ref()),
    };
    Image { mime: redact_words(redact, &picture.mime), base64 }
}

fn result_part(redact: &RedactHook, part: &ResultPart) -> ResultPart {
    match part {
        ResultPart::Text { text } => ResultPart::Text { text: redact_words(redact, text) },
        ResultPart::Image(picture) => ResultPart::Image(redact_image(redact, picture)),
    }
}

fn redact_call(redact: &RedactHook, original: &ToolCall) -> ToolCall {
    let (arguments, broken) = redact_arguments(redact, &original.arguments, original.broken);
    let is_same = arguments == original.arguments;
    ToolCall {
        id: call_id(redact, &original.id),
        name: redact_words(redact, &original.name),
        arguments,
        broken,
        signature: retain_signature(redact, original.signature.as_ref(), is_same),
        item: opaque_option(redact, original.item.as_ref()),
    }
}

fn redact_arguments(redact: &RedactHook, original: &RawJson, broken: bool) -> (RawJson, bool) {
    let Ok(mut value) = original.read::<Value>() else {
        return unparsed_arguments(redact, original);
    };
    if !redact_value(redact, &mut value) {
        return (original.clone(), broken);
    }
    (RawJson::from_value(&value).unwrap_or_else(|_| RawJson::empty_object()), broken)
}

/// Arguments nested too deeply to be taken apart are seen as one text.
fn unparsed_arguments(redact: &RedactHook, original: &RawJson) -> (RawJson, bool) {
    match redact(WrittenString::Words, original.get()) {
        Cow::Borrowed(same) if same.len() == original.get().len() => (original.clone(), false),
        changed => {
            let text = RawJson::from_value(&changed.as_ref());
            (text.unwrap_or_else(|_| RawJson::empty_object()), true)
        }
    }
}

/// Redacts the strings and names inside `value`; says whether any changed. The parser has bounded
/// the depth.
fn redact_value(redact: &RedactHook, value: &mut Value) -> bool {
    match value {
        Value::String(text) => match redact(WrittenString::Words, text) {
            Cow::Borrowed(same) if same == text => false,
            changed => {
                *value = Value::String(changed.into_owned());
                true
            }
        },
        Value::Array(items) => {
            let mut changed = false;
            for item in items {
                changed |= redact_value(redact, item);
            }
            changed
        }
        Value::Object(fields) => {
            let mut changed = false;
            let old = std::mem::take(fields);
            for (name, mut field) in old {
                changed |= redact_value(redact, &mut field);
                let kept = redact_words(redact, &name);
                changed |= kept != name;
                fields.insert(kept, field);
            }
            changed
        }
        Value::Number(number) => {
            let digits = number.to_string();
            match redact(WrittenString::Words, &digits) {
                Cow::Borrowed(same) if same == digits => false,
                changed => {
                    let text = changed.into_owned();
                    let same = text == digits;
                    *value = Value::String(text);
                    !same
                }
            }
        }
        Value::Null | Value::Bool(_) => false,
    }
}
