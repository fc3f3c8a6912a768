//! Finds the images that a server refuses. Pure.
//!
//! A server that takes pictures may refuse one: it is too large, broken, or of a format that the server does
//! not know. Only that one is left out. Where it stands is told by a path into the request, or by its size.
//! Else a few pictures that the server has not accepted before are left out in turn, the latest first: that costs
//! no other picture. Of many pictures, or if several are refused, half is sent, and the rest with later requests. The
//! trials are limited, and what was never accepted is left out at their end, so no request stays refused for pictures.

use std::{collections::VecDeque, sync::Arc};

use gnoma_core::{Content, Message, ModelRequest};
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
    "no es válid",
    "не поддерж",
    "поврежд",
    "不支持的图",
    "読み込め",
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
    "media data",
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
    "support image input",
    "image input is not",
    "image input not",
    "for image input",
    "no image input",
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
/// Most pictures that are left out one after the other; of more, half is sent.
const MAX_SINGLE_TRIALS: usize = 8;
/// Most refusals of one call that say nothing clear; after them all pictures are left out that were never accepted.
pub(crate) const MAX_PICTURE_TRIALS: usize = 16;

/// Pictures that a server has refused, and the state of the trials with others.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RefusedPictures {
    /// They are left out.
    pub(crate) out: Vec<Arc<str>>,
    /// This one is left out because it may be the reason; nothing says so yet.
    suspect: Option<Arc<str>>,
    /// Those that were suspects and were not the only reason.
    cleared: Vec<Arc<str>>,
    /// Pictures of which some are refused; the first group is in the request, the others are left out.
    groups: VecDeque<Vec<Arc<str>>>,
    /// Most pictures of one request; the newest are sent.
    most: Option<usize>,
    /// Requests that were refused since one was accepted.
    refusals: usize,
    /// The message of the server, for the model.
    pub(crate) why: String,
}

impl RefusedPictures {
    /// Reports whether a picture is left out.
    fn is_left_out(&self, base64: &Arc<str>) -> bool {
        contains_picture(&self.out, base64)
            || self.suspect.as_ref().is_some_and(|it| is_same(it, base64))
            || self.groups.iter().skip(1).any(|group| contains_picture(group, base64))
    }

    /// Reports whether a picture is left out only because it may be the reason.
    pub(super) fn is_open(&self) -> bool {
        self.suspect.is_some() || self.groups.len() > 1
    }

    /// The limit of the pictures in one request, and the number of pictures that are left out for other reasons.
    pub(super) fn counts(&self) -> (Option<usize>, usize) {
        let waiting = self.groups.iter().skip(1).map(Vec::len).sum::<usize>();
        (self.most, self.out.len() + usize::from(self.suspect.is_some()) + waiting)
    }

    /// The sizes of the pictures that are left out, in bytes.
    pub(super) fn sizes(&self) -> impl Iterator<Item = usize> {
        let waiting = self.groups.iter().skip(1).flatten();
        self.out.iter().chain(&self.suspect).chain(waiting).map(|picture| file_bytes(picture))
    }

    /// The pictures that are left out of `messages`, a list for each message, the last message first.
    pub(super) fn left_out_of<'m>(
        &self,
        messages: impl Iterator<Item = &'m Message>,
    ) -> Vec<Vec<Arc<str>>> {
        let mut room = self.most.unwrap_or(usize::MAX);
        let of_message = |message: &'m Message| {
            let pictures = pictures_of(message).into_iter().cloned();
            let (mut out, kept): (Vec<_>, Vec<_>) =
                pictures.partition(|picture| self.is_left_out(picture));
            let surplus = kept.len().saturating_sub(room);
            room -= kept.len() - surplus;
            out.extend(kept.into_iter().take(surplus));
            out
        };
        messages.map(of_message).collect()
    }

    /// Takes over that a request with `pictures` was accepted: the suspect was the reason, and the next request
    /// brings the next group.
    pub(super) fn record_accepted(&mut self, pictures: &[Arc<str>]) {
        self.refusals = 0;
        if !pictures.is_empty() {
            self.out.extend(self.suspect.take());
            self.cleared.clear();
        }
        let is_accepted =
            |group: &Vec<Arc<str>>| group.iter().all(|picture| contains_picture(pictures, picture));
        if self.groups.front().is_some_and(is_accepted) {
            self.groups.pop_front();
        }
    }

    /// Returns the next trial; `new` are the pictures of the refused request that the server never accepted. Returns
    /// `None` if none of them can be the reason.
    fn next_trial(mut self, mut new: Vec<Arc<str>>) -> Option<Self> {
        if self.refusals >= MAX_PICTURE_TRIALS {
            new.extend(self.suspect.take());
            new.append(&mut self.cleared);
            new.extend(self.groups.drain(..).flatten());
            new.retain(|picture| !contains_picture(&self.out, picture));
            let is_some = !new.is_empty();
            self.out.extend(new);
            return is_some.then_some(self);
        }
        if !self.groups.is_empty() {
            self.groups.pop_front();
            return self.with_halves(new);
        }
        new.retain(|picture| !contains_picture(&self.cleared, picture));
        let is_begun = self.suspect.is_some();
        if !is_begun && (new.len() == 1 || new.len() > MAX_SINGLE_TRIALS) {
            return self.with_halves(new);
        }
        self.cleared.extend(self.suspect.take());
        self.suspect = new.pop();
        if self.suspect.is_some() {
            return Some(self);
        }
        // None of them alone is the reason.
        let mut all = std::mem::take(&mut self.cleared);
        all.reverse();
        if all.len() > 2 {
            return self.with_halves(all);
        }
        let is_some = !all.is_empty();
        self.out.extend(all);
        is_some.then_some(self)
    }

    /// Sends the newer half of `refused`, of which some are refused; a single one is left out.
    fn with_halves(mut self, mut refused: Vec<Arc<str>>) -> Option<Self> {
        match refused.len() {
            0 => return None,
            1 => self.out.append(&mut refused),
            all => {
                let newer = refused.split_off(all / 2);
                self.groups.push_front(refused);
                self.groups.push_front(newer);
                return Some(self);
            }
        }
        Some(self)
    }
}

/// Reports whether `text`, in small letters, refuses one picture and not all.
pub(super) fn is_about_one(text: &str) -> bool {
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    names_picture(text) && says(ONE_REFUSED) && !refuses_all(text)
}

/// Reports whether `text`, in small letters, says that no picture is taken.
pub(super) fn refuses_all(text: &str) -> bool {
    NONE_TAKEN.iter().any(|word| text.contains(word))
}

/// Reports whether `text`, in small letters, speaks of a picture.
pub(super) fn names_picture(text: &str) -> bool {
    /// The ends of the names of pictures' files.
    const FILES: [&str; 5] = [".png", ".jpg", ".jpeg", ".gif", ".webp"];
    let is_model = |word: &str| word.contains('-') && word.contains(|c: char| c.is_ascii_digit());
    // A word in the name of a file or a model says nothing.
    let is_name = |word: &&str| is_model(word) || FILES.iter().any(|end| word.ends_with(end));
    let words =
        text.split_whitespace().map(|word| word.trim_matches(['"', '\'', '`', ',', '.', ':']));
    let words: Vec<&str> = words.filter(|word| !is_name(word)).collect();
    let words = words.join(" ");
    PICTURE.iter().any(|word| words.contains(word))
}

/// The pictures to leave out of `request`, whose body was `body`, after its refusal. `known` are those refused
/// before, `accepted` those that the server has taken.
pub(super) fn find_refused(
    text: &str,
    body: &[u8],
    request: &ModelRequest,
    known: &RefusedPictures,
    accepted: &[Arc<str>],
) -> Option<RefusedPictures> {
    let mut known = known.clone();
    known.refusals += 1;
    let left_out = known.left_out_of(request.messages.iter().rev().map(|message| &**message));
    let mut sent = collect_pictures(request);
    sent.retain(|picture| !left_out.iter().any(|out| contains_picture(out, picture)));
    let certain = at_path(text, body, &sent).or_else(|| of_size(text, &sent));
    if let Some(out) = certain.filter(|_| known.refusals < MAX_PICTURE_TRIALS) {
        known.out.extend(out);
        return Some(known);
    }
    sent.retain(|picture| !contains_picture(accepted, picture));
    known.next_trial(sent)
}

/// Leaves out the oldest pictures if `text` names a smaller number of pictures than `request` has.
pub(super) fn limit_pictures(
    text: &str,
    request: &ModelRequest,
    known: &RefusedPictures,
) -> Option<RefusedPictures> {
    let count: usize = request.messages.iter().map(|message| pictures_of(message).len()).sum();
    let most = parse_picture_limit(text)?;
    let is_less = most < known.most.unwrap_or(usize::MAX).min(count);
    is_less.then(|| RefusedPictures { most: Some(most), ..known.clone() })
}

/// Parses the number of pictures that a request may have, as in `At most 4 image(s) may be provided`.
fn parse_picture_limit(text: &str) -> Option<usize> {
    const LIMITS: &[&str] = &["at most", "max", "up to", "more than", "only", "limit", "exceed"];
    const TOO_MANY: &[&str] = &["too many images", "too many pictures"];
    let is_limit = |before: &str| LIMITS.iter().any(|word| before.contains(word));
    let named = ["image", "picture"].iter().flat_map(|word| text.match_indices(word));
    let mut limits = named.filter_map(|(at, _)| {
        let before = text.get(..at)?.trim_end();
        let digits = before.trim_end_matches(|c: char| c.is_ascii_digit());
        let number = before.get(digits.len()..)?.parse().ok()?;
        is_limit(digits).then_some(number)
    });
    let begin = TOO_MANY.iter().find_map(|words| text.find(words));
    let after_too_many = || {
        let rest = text.get(begin?..)?;
        // `23 + 0 > 20`
        let (rest, is_limit) =
            rest.split_once('>').map_or((rest, false), |(_, limit)| (limit, true));
        let numbers = rest.split(|c: char| !c.is_ascii_digit());
        let mut numbers = numbers.filter_map(|it| it.parse().ok()).filter(|it| *it > 0_usize);
        if is_limit { numbers.next() } else { numbers.min() }
    };
    limits.next().or_else(after_too_many).filter(|most| *most > 0)
}

/// The pictures of a message, in order.
fn pictures_of(message: &Message) -> Vec<&Arc<str>> {
    let blocks = message.content().iter();
    let pictures = blocks.flat_map(|block| match block {
        Content::Image(image) => vec![&image.base64],
        Content::ToolResult(result) => result.images().map(|image| &image.base64).collect(),
        Content::Text(_)
        | Content::Thinking(_)
        | Content::RedactedThinking(_)
        | Content::ToolCall(_) => Vec::new(),
    });
    pictures.collect()
}

/// The pictures of a request in order, each once.
pub(crate) fn collect_pictures(request: &ModelRequest) -> Vec<Arc<str>> {
    let mut all = Vec::new();
    for picture in request.messages.iter().flat_map(|message| pictures_of(message)) {
        if !contains_picture(&all, picture) {
            all.push(Arc::clone(picture));
        }
    }
    all
}

/// The size of a picture's file, in bytes.
fn file_bytes(base64: &str) -> usize {
    base64.len() / 4 * 3
}

pub(super) fn contains_picture(all: &[Arc<str>], one: &Arc<str>) -> bool {
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
    let is_named = |picture: &&Arc<str>| {
        numbers
            .iter()
            .any(|number| *number == picture.len() || number.abs_diff(file_bytes(picture)) <= 2)
    };
    let named: Vec<_> = sent.iter().filter(is_named).cloned().collect();
    if !named.is_empty() {
        return Some(named);
    }
    // A limit of pixels says nothing of bytes.
    let is_of_pixels = ["pixel", "dimension"].iter().any(|word| text.contains(word));
    let limit = numbers.iter().min().filter(|_| !is_of_pixels)?;
    let larger: Vec<_> = sent.iter().filter(|picture| picture.len() > *limit).cloned().collect();
    (!larger.is_empty()).then_some(larger)
}

#[cfg(test)]
mod tests {
    use gnoma_core::{Image, ToolChoice};

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
    fn rejected_image_error_is_told_from_a_model_without_vision() {
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
            "failed to create new sequence: failed to process inputs: invalid image input",
            "la imagen no es válida",
            "画像を読み込めません",
            "不支持的图像",
            "изображение повреждено",
        ] {
            assert!(is_about_one(text), "{text}");
        }
        for text in [
            "this model does not support image input",
            "this model is missing data required for image input",
            "m is not a multimodal model",
            "unknown variant `image_url`, expected `text`",
            "at most 0 image(s) may be provided",
            "input is too large",
        ] {
            assert!(!is_about_one(text), "{text}");
        }
    }

    #[test]
    fn rejected_image_is_identified_by_the_json_path_in_the_error() {
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
    fn rejected_image_is_identified_by_the_size_limit_in_the_error() {
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

    /// Plays a server that refuses the pictures `bad`. Returns the refusals of the first call, the places that were
    /// sent when it was accepted, and those that are sent in the end.
    fn play(count: usize, bad: &[usize], accepted: usize) -> (usize, Vec<usize>, Vec<usize>) {
        let bytes: Vec<Vec<u8>> = (0..count).map(|at| vec![u8::try_from(at).unwrap(); 9]).collect();
        let request = request(&bytes.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let all = collect_pictures(&request);
        let mut accepted = all[..accepted].to_vec();
        let (mut known, mut first, mut refusals) = (RefusedPictures::default(), None, 0);
        for _ in 0..3 * MAX_PICTURE_TRIALS {
            let sent: Vec<usize> = (0..count).filter(|at| !known.is_left_out(&all[*at])).collect();
            if sent.iter().any(|at| bad.contains(at)) {
                refusals += 1;
                let text = "could not process image";
                known = find_refused(text, b"", &request, &known, &accepted).unwrap();
                continue;
            }
            let pictures: Vec<_> = sent.iter().map(|at| Arc::clone(&all[*at])).collect();
            known.record_accepted(&pictures);
            accepted.extend(pictures);
            first.get_or_insert((refusals, sent));
        }
        let last = (0..count).filter(|at| !known.is_left_out(&all[*at])).collect();
        let (refusals, sent) = first.expect("a request is accepted");
        (refusals, sent, last)
    }

    #[test]
    fn rejected_image_among_many_is_the_only_one_left_out() {
        for (count, bad) in [(2, 0), (3, 1), (5, 0), (6, 0), (6, 5), (8, 3), (8, 0)] {
            let good: Vec<usize> = (0..count).filter(|at| *at != bad).collect();
            let (refusals, sent, last) = play(count, &[bad], 0);
            assert_eq!((sent, last), (good.clone(), good), "{bad} of {count}");
            assert!(refusals <= MAX_SINGLE_TRIALS + 1, "{refusals}");
        }
        // One was accepted before.
        assert_eq!(play(3, &[1], 1), (2, vec![0, 2], vec![0, 2]));
    }

    #[test]
    fn several_rejected_images_are_left_out_within_the_trial_limit() {
        for (count, bad) in [
            (2, vec![0, 1]),
            (3, vec![0, 1]),
            (4, vec![0, 1, 2, 3]),
            (5, vec![1, 3]),
            (5, vec![0, 1, 2, 3, 4]),
            (8, vec![2, 7]),
            (20, vec![11]),
            (40, (0..40).collect()),
        ] {
            let (refusals, _, last) = play(count, &bad, 0);
            assert!(refusals <= MAX_PICTURE_TRIALS, "{refusals} for {bad:?} of {count}");
            assert!(last.iter().all(|at| !bad.contains(at)), "{bad:?} of {count}: {last:?}");
        }
        let (_, _, last) = play(20, &[11], 0);
        assert_eq!(last.len(), 19, "later requests bring the others back");
    }

    #[test]
    fn image_count_limit_of_the_server_keeps_the_newest_images() {
        let request = request(&[b"one", b"two", b"three"]);
        let all = collect_pictures(&request);
        for (text, most) in [
            ("at most 1 image(s) may be provided in one request.", Some(1)),
            ("too many images in request. max is 2.", Some(2)),
            ("no more than 2 images are allowed", Some(2)),
            ("too many images and documents: 4 + 0 > 2", Some(2)),
            ("too many images and documents: 4 + 1 > 1", Some(1)),
            ("at most 4 image(s) may be provided", None),
            ("image exceeds 2 mb maximum", None),
            ("at most 0 image(s) may be provided in one request.", None),
        ] {
            let limited = limit_pictures(text, &request, &RefusedPictures::default());
            assert_eq!(limited.as_ref().and_then(|it| it.most), most, "{text}");
            let Some((limited, most)) = limited.zip(most) else { continue };
            let out = limited.left_out_of(request.messages.iter().rev().map(|message| &**message));
            let mut out: Vec<_> = out.into_iter().flatten().collect();
            out.reverse();
            assert_eq!(out, all[..3 - most], "{text}");
        }
    }

    #[test]
    fn image_word_in_a_file_or_model_name_is_no_image_error() {
        assert!(!names_picture("'tool_choice' is not supported by bild-7b"));
        assert!(!names_picture("could not save build/photo.png"));
        assert!(names_picture("messages[0].content[1].image_url is invalid"));
        assert!(
            names_picture("das bild ist beschädigt") && names_picture("unsupported image/tiff")
        );
    }

    #[test]
    fn image_pixel_limit_is_not_taken_for_a_byte_limit() {
        let request = request(&[&[7; 3_000], &[8; 3_000]]);
        let text = "image dimensions exceed max allowed size for many-image requests: 2000 pixels";
        let known = find_refused(text, b"", &request, &RefusedPictures::default(), &[]).unwrap();
        assert!(known.out.is_empty() && known.is_open());
    }
}
