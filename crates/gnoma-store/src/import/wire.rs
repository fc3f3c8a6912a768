//! Looking into foreign JSON, and the shapes several programs share.

use gnoma_core::{CallId, Content, Image, ModelRef, RawJson, ResultPart, Text, ToolCall, Usage};
use serde_json::Value;

/// A field as text.
pub(super) fn text_field<'a>(value: &'a Value, field: &str) -> Option<&'a str> {
    value.get(field)?.as_str()
}

/// A field as an owned text.
pub(super) fn string_field(value: &Value, field: &str) -> Option<String> {
    text_field(value, field).map(str::to_owned)
}

/// A field as a count; what is missing is none.
pub(super) fn count_field(value: &Value, field: &str) -> u64 {
    value.get(field).and_then(Value::as_u64).unwrap_or(0)
}

/// Returns the items of a field.
pub(super) fn items_field<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The texts of a list of blocks.
pub(super) fn block_texts(blocks: &Value) -> Vec<&str> {
    let blocks = blocks.as_array().map_or(&[][..], Vec::as_slice);
    blocks.iter().filter_map(|block| text_field(block, "text")).collect()
}

/// Plain text, unless there is none.
pub(super) fn text_content(text: Option<&str>) -> Option<Content> {
    text.filter(|text| !text.is_empty())
        .map(|text| Content::Text(Text { text: text.to_owned(), signature: None }))
}

/// The model that wrote, unless it is not told.
pub(super) fn model_ref(provider: &str, model: Option<&str>) -> Option<ModelRef> {
    model.map(|model| ModelRef { provider: provider.to_owned(), model: model.to_owned() })
}

/// A call whose arguments are a JSON value.
pub(super) fn call_of_value(id: &str, name: &str, arguments: Option<&Value>) -> ToolCall {
    let arguments = arguments.filter(|value| !value.is_null());
    let raw = arguments.and_then(|value| RawJson::from_value(value).ok());
    ToolCall::new(CallId::new(id), name, raw.unwrap_or_else(RawJson::empty_object))
}

/// A call whose arguments are text that should be JSON.
pub(super) fn call_of_text(id: &str, name: &str, arguments: &str) -> ToolCall {
    match RawJson::parse(arguments) {
        Ok(raw) => ToolCall::new(CallId::new(id), name, raw),
        Err(_) => {
            let raw = RawJson::from_value(&arguments).unwrap_or_else(|_| RawJson::empty_object());
            ToolCall { broken: true, ..ToolCall::new(CallId::new(id), name, raw) }
        }
    }
}

/// A picture written as `data:<mime>;base64,<data>`.
pub(super) fn data_url(url: &str) -> Option<Image> {
    let (mime, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    decode_image(mime, data)
}

/// A picture, if that is what it is.
pub(super) fn decode_image(mime: &str, base64: &str) -> Option<Image> {
    let sound = mime.starts_with("image/")
        && base64.bytes().all(|b| b.is_ascii_alphanumeric() || b"+/=".contains(&b));
    sound.then(|| Image { mime: mime.to_owned(), base64: base64.into() })
}

/// One text as the whole answer of a tool.
pub(super) fn result_parts(text: &str) -> Vec<ResultPart> {
    let text = if text.is_empty() { "(no output)" } else { text };
    vec![ResultPart::Text { text: text.to_owned() }]
}

/// Counts of a provider that tells cached tokens apart from the rest of the prompt.
pub(super) fn token_usage(input: u64, output: u64, cache_read: u64, cache_write: u64) -> Usage {
    Usage { input, output, cache_read, cache_write, ..Usage::default() }
}
