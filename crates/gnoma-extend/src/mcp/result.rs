//! Turns the result of an MCP tool call into a tool outcome, within limits.

use gnoma_core::{Image, ToolOutcome, message::ResultPart, tool::ToolOutput};
use serde_json::Value;

use super::{
    limits::{MAX_IMAGE_BYTES, MAX_IMAGES, MAX_STORED_TEXT_BYTES, MAX_TEXT_BYTES},
    wire::rpc,
};

/// The kinds of images that every provider takes.
const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Puts parts together, as far as there is room.
pub(super) struct ResultParts {
    parts: Vec<ResultPart>,
    room: usize,
    images: usize,
    left_out: usize,
}

impl ResultParts {
    /// Room for a result. `is_stored`: what is large is put aside and read piece by piece.
    pub(super) fn new(is_stored: bool) -> Self {
        let room = if is_stored { MAX_STORED_TEXT_BYTES } else { MAX_TEXT_BYTES };
        Self { parts: Vec::new(), room, images: 0, left_out: 0 }
    }

    pub(super) fn push_text(&mut self, text: &str) {
        let kept = gnoma_core::text_truncation::word_prefix(text, self.room);
        self.left_out += text.len() - kept.len();
        self.room -= kept.len();
        if !kept.is_empty() {
            self.parts.push(ResultPart::Text { text: kept.to_owned() });
        }
    }

    fn push_image(&mut self, mime: &str, base64: &str) {
        let is_plain =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
        if !IMAGES.contains(&mime) || !base64.bytes().all(is_plain) {
            return self
                .push_text("[something that is not a PNG, JPEG, GIF or WebP image was left out]");
        }
        if base64.len() > MAX_IMAGE_BYTES || self.images >= MAX_IMAGES {
            return self
                .push_text("[an image is left out: it is too large, or there are too many]");
        }
        self.images += 1;
        self.parts.push(ResultPart::Image(Image { mime: mime.to_owned(), base64: base64.into() }));
    }

    pub(super) fn push_resource(&mut self, resource: &Value) {
        let field = |key: &str| resource.get(key).and_then(Value::as_str);
        let uri = field("uri").unwrap_or("a resource");
        match (field("text"), field("blob")) {
            (Some(text), _) => self.push_text(&format!("[{uri}]\n{text}")),
            (None, Some(blob)) => {
                let mime = field("mimeType").unwrap_or("application/octet-stream");
                if IMAGES.contains(&mime) {
                    self.push_image(mime, blob);
                } else {
                    let bytes = blob.len();
                    self.push_text(&format!("[{uri}: {mime}, {bytes} bytes in base64, left out]"));
                }
            }
            (None, None) => {
                self.push_text(&format!("[{uri} is left out: it has neither text nor data]"));
            }
        }
    }

    fn push_block(&mut self, block: &Value) {
        let field = |key: &str| block.get(key).and_then(Value::as_str);
        match (field("type"), field("data"), field("mimeType")) {
            (Some("image"), Some(data), Some(mime)) => self.push_image(mime, data),
            _ => self.push_text(&text_of(block)),
        }
    }

    pub(super) fn into_output(mut self) -> ToolOutput {
        if self.left_out > 0 {
            let text = format!("[{} more bytes of text are left out]", self.left_out);
            self.parts.push(ResultPart::Text { text });
        }
        ToolOutput { parts: self.parts, ..ToolOutput::default() }
    }
}

/// A part of an answer as text. A part that cannot be read is named in its place.
pub(super) fn text_of(block: &Value) -> String {
    let field = |key: &str| block.get(key).and_then(Value::as_str);
    let about = || field("description").or(field("title")).unwrap_or_default();
    match field("type") {
        // Some leave the type out, or write the text itself.
        Some("text") | None => match field("text").or(block.as_str()) {
            Some(text) => text.to_owned(),
            None if block.get("resource").is_some() => embedded_text(block),
            None => format!("[a part is left out: it cannot be read: {}]", shorten_block(block)),
        },
        Some("image") => "[an image is left out: it cannot be read]".to_owned(),
        Some("audio") => {
            format!("[audio ({}) is left out]", field("mimeType").unwrap_or("of an unknown kind"))
        }
        Some("resource") => embedded_text(block),
        Some("resource_link") => match field("uri") {
            Some(uri) => {
                format!("[resource {uri}: {} {}]", field("name").unwrap_or_default(), about())
            }
            None => "[a link to a resource is left out: it has no `uri`]".to_owned(),
        },
        Some(other) => {
            let kind = gnoma_core::text_truncation::word_prefix(other, 40);
            format!("[a part of an unknown kind, `{kind}`, is left out: {}]", shorten_block(block))
        }
    }
}

/// The text of a resource that is part of an answer.
fn embedded_text(block: &Value) -> String {
    let resource = block.get("resource").unwrap_or(&Value::Null);
    let field = |key: &str| resource.get(key).and_then(Value::as_str);
    let uri = field("uri").unwrap_or("a resource");
    match (field("text"), field("blob")) {
        (Some(text), _) => format!("[{uri}]\n{text}"),
        (None, Some(_)) => format!("[{uri} is left out: it is no text]"),
        (None, None) => format!("[{uri} is left out: it has neither text nor data]"),
    }
}

/// The beginning of a part, to see what it was.
fn shorten_block(block: &Value) -> String {
    const MAX_BYTES: usize = 200;
    let whole = block.to_string();
    let start = gnoma_core::text_truncation::word_prefix(&whole, MAX_BYTES);
    if start.len() < whole.len() { format!("{start}…") } else { whole }
}

/// The outcome of a call.
pub(super) fn to_outcome(result: &Value, is_stored: bool) -> ToolOutcome {
    let mut parts = ResultParts::new(is_stored);
    let structure = result.get("structuredContent").filter(|value| !value.is_null());
    // A result that could be read as it was written has that text.
    let structure = structure.map(rpc::value_text);
    match (result.get("content"), structure) {
        // Servers that give structure give it as text, too; those that do not mean this.
        (None | Some(Value::Null), Some(structure)) => parts.push_text(&structure),
        (Some(Value::Array(all)), Some(structure)) if all.is_empty() => {
            parts.push_text(&structure);
        }
        (Some(Value::Array(all)), _) => all.iter().for_each(|block| parts.push_block(block)),
        (Some(one @ Value::Object(_)), _) => parts.push_block(one),
        (Some(Value::String(text)), _) => parts.push_text(text),
        (None | Some(Value::Null), None) => match result.as_object().map(serde_json::Map::len) {
            Some(0) => {}
            _ => {
                parts.push_text(&format!("[the answer has no content: {}]", shorten_block(result)));
            }
        },
        (Some(other), structure) => {
            parts.push_text(&format!(
                "[the content is left out: it cannot be read: {}]",
                shorten_block(other)
            ));
            if let Some(structure) = structure {
                parts.push_text(&structure);
            }
        }
    }
    let output = parts.into_output();
    if result.get("isError") == Some(&Value::Bool(true)) {
        ToolOutcome::Failed(output)
    } else {
        ToolOutcome::Done(output)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "it is written where it is read")]
    fn read(value: Value) -> ToolOutcome {
        to_outcome(&value, false)
    }

    #[test]
    fn mcp_result_text_images_and_errors_are_passed_on() {
        let done = read(json!({"content": [
            {"type": "text", "text": "one"},
            {"type": "image", "mimeType": "image/png", "data": "aGk="},
            {"type": "resource", "resource": {"uri": "a://b", "text": "two"}}
        ]}));
        let ToolOutcome::Done(output) = done else { panic!("{done:?}") };
        assert_eq!(output.parts.len(), 3);
        assert!(matches!(&output.parts[1], ResultPart::Image(image) if image.mime == "image/png"));
        let failed = read(json!({"content": [{"type": "text", "text": "no"}], "isError": true}));
        assert!(matches!(failed, ToolOutcome::Failed(_)));
        let structured = read(json!({"content": [], "structuredContent": {"a": 1}}));
        assert_eq!(structured, ToolOutcome::success_text(r#"{"a":1}"#));
    }

    #[test]
    fn mcp_result_parts_that_are_too_large_or_no_image_are_omitted_with_a_note() {
        let huge = "x".repeat(MAX_TEXT_BYTES + 10);
        let ToolOutcome::Done(output) = read(json!({"content": [
            {"type": "text", "text": huge},
            {"type": "text", "text": "more"},
        ]})) else {
            panic!()
        };
        let last = output.parts.last().unwrap();
        assert!(matches!(last, ResultPart::Text { text } if text.contains("14 more bytes")));
        let done =
            read(json!({"content": [{"type": "image", "mimeType": "text/html", "data": "<"}]}));
        assert!(format!("{done:?}").contains("left out"));
    }

    #[test]
    fn invalid_mcp_result_part_is_reported_and_the_others_are_passed_on() {
        for (part, named) in [
            (json!({"type": "hologram", "x": 1}), "`hologram`"),
            (json!({"type": "text"}), "cannot be read"),
            (json!({"type": "text", "text": 7}), "cannot be read"),
            (json!({"type": "image", "data": 1, "mimeType": "image/png"}), "an image is left out"),
            (json!({"type": "image", "data": "aGk="}), "an image is left out"),
            (json!({"type": "audio"}), "audio"),
            (json!({"type": "resource"}), "is left out"),
            (json!({"type": "resource", "resource": {"uri": "a://b"}}), "a://b"),
            (json!({"type": "resource_link", "name": "x"}), "no `uri`"),
            (json!({"type": 3}), "cannot be read"),
            (json!(null), "cannot be read"),
            (json!([1]), "cannot be read"),
        ] {
            let done = read(json!({"content": [
                {"type": "text", "text": "one"}, part, {"type": "text", "text": "two"}
            ]}));
            let ToolOutcome::Done(output) = &done else { panic!("{done:?}") };
            let text = |at: usize| match &output.parts[at] {
                ResultPart::Text { text } => text.as_str(),
                ResultPart::Image(_) => panic!("{part}"),
            };
            assert_eq!((text(0), text(2), output.parts.len()), ("one", "two", 3), "{part}");
            assert!(text(1).contains(named), "{part}: {}", text(1));
        }
        for (result, text) in [
            (json!({"content": "plain"}), "plain"),
            (json!({"content": {"type": "text", "text": "one"}}), "one"),
            (json!({"content": ["bare"]}), "bare"),
            (json!({"content": [{"text": "no type"}]}), "no type"),
            (json!({"structuredContent": {"a": 1}}), r#"{"a":1}"#),
            (json!({"structuredContent": "{\"a\": 1.10}"}), r#"{"a": 1.10}"#),
        ] {
            assert_eq!(read(result.clone()), ToolOutcome::success_text(text), "{result}");
        }
        for result in [json!(null), json!(3), json!([]), json!({"content": 5}), json!({"x": 1})] {
            assert!(format!("{:?}", read(result.clone())).contains("[the "), "{result}");
        }
    }
}
