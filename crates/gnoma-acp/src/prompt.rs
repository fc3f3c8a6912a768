//! Turns a client's prompt (text, images, resources) into a user message.

use std::sync::Arc;

use gnoma_core::{Content, Image};

use crate::{
    error::RpcError,
    params::{PromptBlock, Resource},
};

/// Types of pictures that models take.
const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// The message. Texts and links become one text, in their order; the texts of resources follow it, each
/// where its link was; pictures come last.
pub(crate) fn parse_content(blocks: Vec<PromptBlock>) -> Result<Vec<Content>, RpcError> {
    let mut said = PromptPart::default();
    for block in blocks {
        said.add_block(block)?;
    }
    let PromptPart { mut text, resources, pictures } = said;
    text.push_str(&resources);
    let text = (!text.trim().is_empty()).then(|| Content::from_text(text));
    let content: Vec<Content> = text.into_iter().chain(pictures).collect();
    if content.is_empty() {
        return Err(RpcError::invalid_params("the prompt is empty"));
    }
    Ok(content)
}

#[derive(Default)]
struct PromptPart {
    text: String,
    resources: String,
    pictures: Vec<Content>,
}

impl PromptPart {
    fn add_block(&mut self, block: PromptBlock) -> Result<(), RpcError> {
        match block.kind.as_str() {
            "text" => {
                let text = block.text.ok_or_else(|| missing_field("text", "text"))?;
                self.push_separator(&text, "\n");
                self.text.push_str(&text);
            }
            "resource_link" => {
                let uri = block.uri.ok_or_else(|| missing_field("resource_link", "uri"))?;
                self.push_link(block.name.as_deref(), &uri);
            }
            "resource" => {
                let resource =
                    block.resource.ok_or_else(|| missing_field("resource", "resource"))?;
                self.add_resource(resource)?;
            }
            "image" => {
                let mime = block.mime_type.ok_or_else(|| missing_field("image", "mimeType"))?;
                let data = block.data.ok_or_else(|| missing_field("image", "data"))?;
                self.add_picture(&mime, data)?;
            }
            "audio" => return Err(RpcError::invalid_params("audio is not supported")),
            other => {
                return Err(RpcError::invalid_params(format!("unknown content type `{other}`")));
            }
        }
        Ok(())
    }

    /// Parts that the client sent apart are not to grow together.
    fn push_separator(&mut self, next: &str, by: &str) {
        let is_apart = self.text.is_empty()
            || self.text.ends_with(|c: char| c.is_whitespace() || c == '(')
            || next.starts_with(|c: char| c.is_whitespace() || c.is_ascii_punctuation());
        if !is_apart {
            self.text.push_str(by);
        }
    }

    fn push_link(&mut self, name: Option<&str>, uri: &str) {
        let place = uri_path(uri);
        let shown = match name.filter(|name| !name.is_empty()) {
            Some(name) if !place.ends_with(name) => format!("[@{name}]({place})"),
            Some(_) | None => format!("@{place}"),
        };
        self.push_separator("", " ");
        self.text.push_str(&shown);
    }

    fn add_resource(
        &mut self,
        Resource { uri, text, blob, mime_type }: Resource,
    ) -> Result<(), RpcError> {
        match (text, blob) {
            (Some(text), _) => {
                self.push_link(None, &uri);
                let place = uri_path(&uri);
                let end = if text.ends_with('\n') { "" } else { "\n" };
                self.resources
                    .push_str(&format!("\n\n<resource uri=\"{place}\">\n{text}{end}</resource>"));
            }
            (None, Some(blob)) => match mime_type {
                Some(mime) if PICTURES.contains(&mime.as_str()) => self.add_picture(&mime, blob)?,
                Some(_) | None => self.push_link(None, &uri),
            },
            (None, None) => return Err(missing_field("resource", "text or blob")),
        }
        Ok(())
    }

    fn add_picture(&mut self, mime: &str, data: String) -> Result<(), RpcError> {
        if !PICTURES.contains(&mime) {
            let text =
                format!("pictures of type `{mime}` are not supported; send PNG, JPEG, GIF or WebP");
            return Err(RpcError::invalid_params(text));
        }
        let picture = Image { mime: mime.to_owned(), base64: Arc::from(data) };
        if !picture.is_base64() {
            return Err(RpcError::invalid_params("the picture's data is not base64"));
        }
        // What a client calls it may be wrong, and a provider would refuse the whole conversation for it.
        let Some(found) = picture.detected_type() else {
            let text =
                format!("the picture is no PNG, JPEG, GIF or WebP, although it is called `{mime}`");
            return Err(RpcError::invalid_params(text));
        };
        self.pictures.push(Content::Image(Image { mime: found.to_owned(), ..picture }));
        Ok(())
    }
}

fn missing_field(kind: &str, field: &str) -> RpcError {
    RpcError::invalid_params(format!("content of type `{kind}` has no `{field}`"))
}

/// The path of a file, else the address as it is.
fn uri_path(uri: &str) -> &str {
    match uri.strip_prefix("file://") {
        Some(path) if path.starts_with('/') && !path.contains('%') => path,
        Some(_) | None => uri,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(json: &str) -> Result<Vec<Content>, RpcError> {
        parse_content(serde_json::from_str(json).unwrap())
    }

    fn text(content: &Content) -> &str {
        match content {
            Content::Text(text) => &text.text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn prompt_mentions_stay_in_place_and_resources_follow() {
        let said = of(
            r#"[{"type":"text","text":"fix "},{"type":"resource_link","uri":"file:///p/a.rs","name":"a.rs"},
                {"type":"text","text":", see"},{"type":"resource_link","uri":"https://x/y","name":"the issue"},
                {"type":"resource","resource":{"uri":"file:///p/b.rs","text":"fn b() {}"}},
                {"type":"image","mimeType":"image/png","data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB"}]"#,
        )
        .unwrap();
        assert_eq!(
            text(&said[0]),
            "fix @/p/a.rs, see [@the issue](https://x/y) @/p/b.rs\n\n<resource uri=\"/p/b.rs\">\nfn b() {}\n</resource>"
        );
        assert!(matches!(&said[1], Content::Image(image) if image.mime == "image/png"));
    }

    #[test]
    fn image_type_is_detected_from_its_bytes() {
        let called = r#"[{"type":"image","mimeType":"image/jpeg","data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB"}]"#;
        let said = of(called).unwrap();
        assert!(matches!(&said[0], Content::Image(image) if image.mime == "image/png"));
    }

    #[test]
    fn unsupported_prompt_content_is_refused() {
        for (wrong, why) in [
            ("[]", "empty"),
            (r#"[{"type":"text","text":" "}]"#, "empty"),
            (r#"[{"type":"text"}]"#, "no `text`"),
            (r#"[{"type":"audio","data":"","mimeType":"audio/wav"}]"#, "audio"),
            (r#"[{"type":"video"}]"#, "unknown content type"),
            (r#"[{"type":"image","mimeType":"image/svg+xml","data":"AAAA"}]"#, "not supported"),
            (r#"[{"type":"image","mimeType":"image/png","data":"a b="}]"#, "base64"),
            (r#"[{"type":"image","mimeType":"image/png","data":"PHN2Zz4="}]"#, "is no PNG"),
            (r#"[{"type":"image","mimeType":"image/png","data":"iVBORw0KGgo="}]"#, "is no PNG"),
        ] {
            let error = of(wrong).unwrap_err();
            assert!(
                error.code == RpcError::INVALID_PARAMS && error.message.contains(why),
                "{error:?}"
            );
        }
    }
}
