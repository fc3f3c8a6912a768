//! What a server answers to a call, as a tool's outcome: its texts and images, within limits.

use gnoma_core::{Image, ToolOutcome, message::ResultPart, tool::ToolOutput};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

use super::limits::{MAX_IMAGE_BYTES, MAX_IMAGES, MAX_STORED_TEXT_BYTES, MAX_TEXT_BYTES};

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

    pub(super) fn text(&mut self, text: &str) {
        let kept = gnoma_core::cut::head(text, self.room);
        self.left_out += text.len() - kept.len();
        self.room -= kept.len();
        if !kept.is_empty() {
            self.parts.push(ResultPart::Text { text: kept.to_owned() });
        }
    }

    fn image(&mut self, mime: &str, base64: &str) {
        let is_plain =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
        if !IMAGES.contains(&mime) || !base64.bytes().all(is_plain) {
            return self
                .text("[something that is not a PNG, JPEG, GIF or WebP image was left out]");
        }
        if base64.len() > MAX_IMAGE_BYTES || self.images >= MAX_IMAGES {
            return self.text("[an image is left out: it is too large, or there are too many]");
        }
        self.images += 1;
        self.parts.push(ResultPart::Image(Image { mime: mime.to_owned(), base64: base64.into() }));
    }

    pub(super) fn resource(&mut self, resource: &ResourceContents) {
        match resource {
            ResourceContents::TextResourceContents { uri, text, .. } => {
                self.text(&format!("[{uri}]\n{text}"));
            }
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                let mime = mime_type.as_deref().unwrap_or("application/octet-stream");
                if IMAGES.contains(&mime) {
                    self.image(mime, blob);
                } else {
                    self.text(&format!(
                        "[{uri}: {mime}, {} bytes in base64, left out]",
                        blob.len()
                    ));
                }
            }
            _ => self.text("[a resource of an unknown kind was left out]"),
        }
    }

    fn block(&mut self, block: &ContentBlock) {
        match block {
            ContentBlock::Text(text) => self.text(&text.text),
            ContentBlock::Image(image) => self.image(&image.mime_type, &image.data),
            ContentBlock::Audio(audio) => {
                self.text(&format!("[audio ({}) is left out]", audio.mime_type));
            }
            ContentBlock::Resource(embedded) => self.resource(&embedded.resource),
            ContentBlock::ResourceLink(link) => {
                let about = link.description.as_deref().unwrap_or_default();
                self.text(&format!("[resource {}: {} {about}]", link.uri, link.name));
            }
            _ => self.text("[content of an unknown kind was left out]"),
        }
    }

    pub(super) fn finish(mut self) -> ToolOutput {
        if self.left_out > 0 {
            let text = format!("[{} more bytes of text are left out]", self.left_out);
            self.parts.push(ResultPart::Text { text });
        }
        ToolOutput { parts: self.parts, ..ToolOutput::default() }
    }
}

/// The outcome of a call.
pub(super) fn outcome(result: &CallToolResult, is_stored: bool) -> ToolOutcome {
    let mut parts = ResultParts::new(is_stored);
    for block in &result.content {
        parts.block(block);
    }
    // Servers that give structure give it as text, too; those that do not mean this.
    if let (true, Some(structure)) = (result.content.is_empty(), &result.structured_content) {
        parts.text(&structure.to_string());
    }
    let output = parts.finish();
    if result.is_error == Some(true) {
        ToolOutcome::Failed(output)
    } else {
        ToolOutcome::Done(output)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: serde_json::Value) -> ToolOutcome {
        outcome(&serde_json::from_value(value).unwrap(), false)
    }

    #[test]
    fn texts_images_and_errors_are_passed_on() {
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
        assert_eq!(structured, ToolOutcome::done(r#"{"a":1}"#));
    }

    #[test]
    fn what_is_too_large_or_no_image_is_left_out_and_said() {
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
}
