//! Which of the pictures in a request a server refuses. Pure.
//!
//! A server that takes pictures may refuse one: it is too large, broken, or of a format that the server does
//! not know. Only that one is left out. Where it stands is told by a path into the request, or by its size;
//! else those that the server has not taken before are left out in turn, the latest first.

use std::sync::Arc;

use gnoma_core::{Content, ModelRequest};
use serde_json::Value;

/// That one picture is refused, and not pictures as such.
const ONE_REFUSED: &[&str] = &[
    "exceeds",
    "exceed ",
    "too large",
    "too big",
    "too small",
    "too many pixels",
    "dimension",
    "must be larger",
    "must be at least",
    "do not meet",
    "does not meet",
    "restriction",
    "width",
    "height",
    "resolution",
    "could not process",
    "cannot process",
    "unable to process",
    "failed to process",
    "failed to decode",
    "error decoding",
    "unknown format",
    "decode image",
    "process image",
    "could not decode",
    "cannot decode",
    "unable to decode",
    "failed to load",
    "could not load",
    "cannot identify",
    "cannot read",
    "could not read",
    "corrupt",
    "damaged",
    "malformed",
    "truncated",
    "invalid image",
    "image is invalid",
    "not a valid image",
    "invalid base64",
    "image format",
    "image type",
    "media type",
    "media_type",
    "mime type",
    "mime_type",
    "unsupported image",
    "image data",
    "aspect ratio",
    "empty image",
    "image size",
    "image file",
    "broken",
    "过大",
    "无效",
    "格式",
    "大きすぎ",
    "無効",
    "zu groß",
    "ungültig",
    "trop grand",
    "invalide",
    "demasiado grande",
    "inválid",
    "non valid",
];
/// Words by which servers mean a picture.
const PICTURE: &[&str] = &[
    "image",
    "picture",
    "photo",
    "png",
    "jpeg",
    "webp",
    "gif",
    "base64",
    "inline_data",
    "inlinedata",
    "图片",
    "图像",
    "画像",
    "이미지",
    "bild",
    "imagen",
    "immagin",
    "imagem",
    "изображен",
];
/// That no picture is taken at all.
const NONE_TAKEN: &[&str] = &[
    "image input",
    "not a multimodal",
    "at most 0 image",
    "image_url`, expected",
    "does not support image",
    "not support images",
    "images are not supported",
    "vision is not supported",
    "does not support vision",
];
/// Smallest number that can be the size of a picture, in bytes.
const LEAST_SIZE: usize = 1_000;

/// Pictures that a server has refused, one by one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RefusedPictures {
    /// They are left out.
    pub(crate) out: Vec<Arc<str>>,
    /// This one is left out because it may be the reason; nothing says so yet.
    pub(crate) suspect: Option<Arc<str>>,
    /// Those that were suspects and were not the reason.
    cleared: Vec<Arc<str>>,
    /// The message of the server, for the model.
    pub(crate) why: String,
}

impl RefusedPictures {
    /// Reports whether a picture is left out.
    pub(crate) fn is_left_out(&self, base64: &Arc<str>) -> bool {
        contains_picture(&self.out, base64)
            || self.suspect.as_ref().is_some_and(|it| is_same(it, base64))
    }

    /// With what a new refusal tells.
    pub(crate) fn merge_refusal(mut self, new: &Self) -> Self {
        self.why.clone_from(&new.why);
        // What was suspected was not the reason, or not the only one.
        self.cleared.extend(self.suspect.take());
        self.out.extend(new.out.iter().cloned());
        self.suspect.clone_from(&new.suspect);
        self
    }
}

/// Reports whether `text`, in small letters, refuses one picture and not all.
pub(super) fn is_about_one(text: &str) -> bool {
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    says(PICTURE) && says(ONE_REFUSED) && !says(NONE_TAKEN)
}

/// The refused ones among the pictures of `request`, whose body was `body`. `known` are those refused before,
/// `accepted` those that the server has taken.
pub(super) fn find_refused(
    text: &str,
    body: &[u8],
    request: &ModelRequest,
    known: &RefusedPictures,
    accepted: &[Arc<str>],
) -> Option<RefusedPictures> {
    let mut sent = collect_pictures(request);
    sent.retain(|picture| !known.is_left_out(picture));
    let why = text.to_owned();
    let certain = at_path(text, body, &sent).or_else(|| of_size(text, &sent));
    if let Some(out) = certain {
        return Some(RefusedPictures { out, why, ..RefusedPictures::default() });
    }
    let is_new = |picture: &&Arc<str>| {
        !contains_picture(accepted, picture) && !contains_picture(&known.cleared, picture)
    };
    let new: Vec<Arc<str>> = sent.iter().filter(is_new).cloned().collect();
    match (&new[..], &known.suspect) {
        ([], None) => None,
        // None of them alone is the reason.
        ([], Some(suspect)) => {
            let all = known.cleared.iter().chain([suspect]).cloned().collect();
            Some(RefusedPictures { out: all, why, ..RefusedPictures::default() })
        }
        ([only], None) if known.cleared.is_empty() => {
            Some(RefusedPictures { out: vec![Arc::clone(only)], why, ..RefusedPictures::default() })
        }
        ([.., last], _) => {
            let suspect = Some(Arc::clone(last));
            Some(RefusedPictures { suspect, why, ..RefusedPictures::default() })
        }
    }
}

/// The pictures of a request in order, each once.
pub(crate) fn collect_pictures(request: &ModelRequest) -> Vec<Arc<str>> {
    let mut all = Vec::new();
    let blocks = request.messages.iter().flat_map(|message| message.content());
    let found = blocks.flat_map(|block| match block {
        Content::Image(image) => vec![&image.base64],
        Content::ToolResult(result) => result.images().map(|image| &image.base64).collect(),
        Content::Text(_)
        | Content::Thinking(_)
        | Content::RedactedThinking(_)
        | Content::ToolCall(_) => Vec::new(),
    });
    for picture in found {
        if !contains_picture(&all, picture) {
            all.push(Arc::clone(picture));
        }
    }
    all
}

fn contains_picture(all: &[Arc<str>], one: &Arc<str>) -> bool {
    all.iter().any(|other| is_same(other, one))
}

fn is_same(one: &Arc<str>, other: &Arc<str>) -> bool {
    Arc::ptr_eq(one, other) || one == other
}

/// The picture at a path such as `messages.2.content.0.image` or `input[3].content[1]` that `text` names.
fn at_path(text: &str, body: &[u8], sent: &[Arc<str>]) -> Option<Vec<Arc<str>>> {
    let begin = ["messages", "contents", "input"].into_iter().find_map(|name| {
        let at = text.find(&format!("{name}.")).or_else(|| text.find(&format!("{name}[")))?;
        text.get(at..)
    })?;
    let body: Value = serde_json::from_slice(body).ok()?;
    let is_path = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '[' | ']' | '/');
    let path = begin.split(|c| !is_path(c)).next()?;
    let steps = path.split(['.', '[', ']', '/']).filter(|step| !step.is_empty());
    let mut place = &body;
    let mut is_within = false;
    for step in steps {
        let next = match step.parse::<usize>() {
            Ok(index) => place.get(index),
            Err(_) => place.get(step),
        };
        // Names of types stand in some paths: they lead nowhere.
        if let Some(next) = next {
            place = next;
            is_within = true;
        }
    }
    let found: Vec<_> =
        sent.iter().filter(|picture| json_contains(place, picture)).map(Arc::clone).collect();
    (is_within && found.len() == 1).then_some(found)
}

fn json_contains(value: &Value, picture: &str) -> bool {
    match value {
        Value::String(text) => text.contains(picture),
        Value::Array(list) => list.iter().any(|value| json_contains(value, picture)),
        Value::Object(fields) => fields.values().any(|value| json_contains(value, picture)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The pictures whose size `text` names, as bytes or in base64; or else those above the limit that it names.
fn of_size(text: &str, sent: &[Arc<str>]) -> Option<Vec<Arc<str>>> {
    let numbers: Vec<usize> = text
        .split(|c: char| !c.is_ascii_digit() && c != ',')
        .filter_map(|word| word.replace(',', "").parse().ok())
        .filter(|number| *number >= LEAST_SIZE)
        .collect();
    let bytes = |picture: &str| picture.len() / 4 * 3;
    let is_named = |picture: &&Arc<str>| {
        numbers
            .iter()
            .any(|number| *number == picture.len() || number.abs_diff(bytes(picture)) <= 2)
    };
    let named: Vec<_> = sent.iter().filter(is_named).cloned().collect();
    if !named.is_empty() {
        return Some(named);
    }
    let limit = numbers.iter().min()?;
    let larger: Vec<_> = sent.iter().filter(|picture| picture.len() > *limit).cloned().collect();
    (!larger.is_empty()).then_some(larger)
}

#[cfg(test)]
mod tests {
    use gnoma_core::{Image, Message, ToolChoice};

    use super::*;

    fn request(pictures: &[&[u8]]) -> ModelRequest {
        let message = |bytes: &&[u8]| {
            let image = Content::Image(Image::from_bytes("image/png", bytes));
            Arc::new(Message::user(vec![image]).unwrap())
        };
        ModelRequest {
            model: "m".into(),
            system: "".into(),
            messages: pictures.iter().map(message).collect(),
            tools: [].into(),
            tool_choice: ToolChoice::Auto,
            max_output_tokens: None,
            temperature: None,
            effort: None,
            context_window: None,
            format: None,
            thinking: None,
        }
    }

    fn body(request: &ModelRequest) -> Vec<u8> {
        let message = |picture: Arc<str>| {
            serde_json::json!({"role": "user", "content": [{"type": "text"}, {"image_url": {"url":
                format!("data:image/png;base64,{picture}")}}]})
        };
        let all: Vec<Value> = collect_pictures(request).into_iter().map(message).collect();
        serde_json::json!({"messages": all, "input": all}).to_string().into_bytes()
    }

    #[test]
    fn one_refused_picture_is_told_from_a_model_without_eyes() {
        for text in [
            "messages.2.content.0.image.source.base64: image exceeds 5 mb maximum: 6034288 bytes",
            "could not process image",
            "invalid image data",
            "unsupported image type image/tiff",
            "the image format is not supported",
            "图片格式无效",
            "das bild ist zu groß",
            "the image length and width do not meet the model restrictions. [height:1 or width:1 must be larger than 10]",
            "failed to decode image: image: unknown format",
            "the resolution of the picture is not allowed",
        ] {
            assert!(is_about_one(text), "{text}");
        }
        for text in [
            "this model does not support image input",
            "m is not a multimodal model",
            "unknown variant `image_url`, expected `text`",
            "at most 0 image(s) may be provided",
            "input is too large",
        ] {
            assert!(!is_about_one(text), "{text}");
        }
    }

    #[test]
    fn refused_picture_is_found_by_its_path() {
        let request = request(&[b"one", b"two", b"three"]);
        let all = collect_pictures(&request);
        for text in [
            "messages.1.content.1.image.source.base64: could not process image",
            "invalid value: 'messages[1].content[1].image_url.url'. broken image",
            "'input[1].content[1].image_url': image data is invalid",
        ] {
            let none = RefusedPictures::default();
            let found = find_refused(text, &body(&request), &request, &none, &[]).unwrap();
            assert_eq!(found.out, [Arc::clone(&all[1])], "{text}");
        }
    }

    #[test]
    fn refused_picture_is_found_by_its_size() {
        let large = [7; 2_000];
        let request = request(&[b"one", &large]);
        let all = collect_pictures(&request);
        for text in
            ["image exceeds 1500 bytes", "image exceeds the maximum: 2000 bytes > 1,500 bytes"]
        {
            let none = RefusedPictures::default();
            let found = find_refused(text, b"", &request, &none, &[]).unwrap();
            assert_eq!(found.out, [Arc::clone(&all[1])], "{text}");
        }
    }

    #[test]
    fn pictures_that_were_not_taken_yet_are_suspected_in_turn() {
        let request = request(&[b"old", b"one", b"two"]);
        let all = collect_pictures(&request);
        let accepted = [Arc::clone(&all[0])];
        let text = "could not process image";
        let mut known = RefusedPictures::default();
        let mut left_out = Vec::new();
        while let Some(new) = find_refused(text, b"", &request, &known, &accepted) {
            known = known.merge_refusal(&new);
            left_out.push(all.iter().map(|picture| known.is_left_out(picture)).collect::<Vec<_>>());
            if known.suspect.is_none() {
                break;
            }
        }
        assert_eq!(left_out, [[false, false, true], [false, true, false], [false, true, true]]);
    }
}
