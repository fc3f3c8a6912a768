//! Encodes chat completion messages: the items that both vendors write alike.

use std::{borrow::Cow, sync::Arc};

use gnoma_core::{
    AnswerFormat, Content, Image, RawJson, ToolCall, ToolChoice, ToolResult, ToolSpec,
};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::{format, names::NameMap};

/// A message whose content is one text.
#[derive(Debug, Serialize)]
pub(crate) struct PlainMessage<'a> {
    pub(crate) role: &'static str,
    pub(crate) content: &'a str,
}

/// The system prompt as the first message, if there is one.
pub(crate) fn system_message(prompt: &str) -> Vec<PlainMessage<'_>> {
    let item = PlainMessage { role: "system", content: prompt };
    (!prompt.is_empty()).then_some(item).into_iter().collect()
}

/// A tool on offer.
#[derive(Debug, Serialize)]
struct ChatTool<'a> {
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Debug, Serialize)]
struct Function<'a> {
    name: Cow<'a, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    parameters: &'a RawValue,
}

/// The list of tools, or `None` when there are none.
pub(crate) fn encode_tools(tools: &[Arc<ToolSpec>], names: &NameMap) -> Option<RawJson> {
    let tool = |spec| {
        let spec: &ToolSpec = spec;
        ChatTool {
            r#type: "function",
            function: Function {
                name: names.wire_name(&spec.name),
                description: &spec.description,
                parameters: spec.parameters.as_raw(),
            },
        }
    };
    let list: Vec<ChatTool<'_>> = tools.iter().map(|spec| tool(spec)).collect();
    (!list.is_empty()).then(|| RawJson::from_value(&list).ok()).flatten()
}

/// The setting for whether tools may be called; a word or a name.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(crate) enum ChatToolChoice<'a> {
    /// Any tool or none.
    Word(&'static str),
    /// The model must call this tool.
    Named { r#type: &'static str, function: NamedFunction<'a> },
}

/// A function by name.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct NamedFunction<'a> {
    name: Cow<'a, str>,
}

/// The choice as the wire wants it; `None` where it is the default. `required` is the vendor's word
/// for "at least one call".
pub(crate) fn tool_choice<'a>(
    choice: &'a ToolChoice,
    names: &'a NameMap,
    required: &'static str,
) -> Option<ChatToolChoice<'a>> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(ChatToolChoice::Word("none")),
        ToolChoice::Required => Some(ChatToolChoice::Word(required)),
        ToolChoice::Tool(name) => Some(ChatToolChoice::Named {
            r#type: "function",
            function: NamedFunction { name: names.wire_name(name) },
        }),
    }
}

/// The form that the answer must have.
#[derive(Debug, Serialize)]
pub(crate) struct ResponseFormat<'a> {
    r#type: &'static str,
    json_schema: NamedSchema<'a>,
}

#[derive(Debug, Serialize)]
struct NamedSchema<'a> {
    name: &'static str,
    strict: bool,
    schema: &'a RawValue,
}

impl<'a> ResponseFormat<'a> {
    /// Guaranteed where the vendor can.
    pub(crate) fn from_answer_format(format: &'a AnswerFormat) -> Self {
        let schema = format.schema.as_raw();
        let strict = format::is_guaranteed(format);
        let json_schema = NamedSchema { name: format::NAME, strict, schema };
        Self { r#type: "json_schema", json_schema }
    }
}

/// A call the model made.
#[derive(Debug, Serialize)]
pub(crate) struct FunctionCall<'a> {
    id: Cow<'a, str>,
    r#type: &'static str,
    function: CalledFunction<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_content: Option<Extra<'a>>,
}

#[derive(Debug, Serialize)]
struct CalledFunction<'a> {
    name: Cow<'a, str>,
    arguments: Cow<'a, str>,
}

#[derive(Debug, Serialize)]
struct Extra<'a> {
    google: GoogleExtra<'a>,
}

#[derive(Debug, Serialize)]
struct GoogleExtra<'a> {
    thought_signature: &'a str,
}

/// `call` under the given id.
pub(crate) fn encode_call<'a>(
    call: &'a ToolCall,
    id: Cow<'a, str>,
    names: &'a NameMap,
) -> FunctionCall<'a> {
    FunctionCall {
        id,
        r#type: "function",
        function: CalledFunction {
            name: names.wire_name(&call.name),
            arguments: arguments_text(call),
        },
        extra_content: None,
    }
}

impl<'a> FunctionCall<'a> {
    /// The call with the signature that Google wants back.
    pub(crate) fn with_signature(mut self, signature: Option<&'a str>) -> Self {
        self.extra_content =
            signature.map(|thought_signature| Extra { google: GoogleExtra { thought_signature } });
        self
    }
}

/// The arguments as text. vLLM and llama.cpp parse the history's arguments and refuse the whole
/// conversation when they are no object, so what a model wrote instead travels inside one.
fn arguments_text(call: &ToolCall) -> Cow<'_, str> {
    let text = call.arguments.get();
    if text.starts_with('{') {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(format!("{{\"_raw\":{text}}}"))
    }
}

/// The content that a user or a tool shows.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum UserContent<'a> {
    /// A plain text. Servers for text-only models know no other form.
    Text(Cow<'a, str>),
    /// A list of texts and pictures.
    Parts(Vec<UserContentPart<'a>>),
}

/// A piece of what is shown.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum UserContentPart<'a> {
    /// A piece of text.
    Text { text: Cow<'a, str> },
    /// A picture, as a data URL.
    ImageUrl { image_url: ImageUrl<'a> },
}

/// A picture inside the request.
#[derive(Debug, Serialize)]
pub(crate) struct ImageUrl<'a> {
    #[serde(serialize_with = "data_url")]
    url: &'a Image,
}

fn data_url<S: Serializer>(image: &&Image, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("data:{};base64,{}", image.mime, image.base64))
}

/// A message from the user.
#[derive(Debug, Serialize)]
pub(crate) struct UserMessage<'a> {
    role: &'static str,
    content: UserContent<'a>,
}

/// A user's message. Pictures become a note where the server takes none.
pub(crate) fn from_user(content: &[Content], images: bool) -> UserMessage<'_> {
    let has_images = content.iter().any(|block| matches!(block, Content::Image(_)));
    let content = if has_images && images {
        UserContent::Parts(content.iter().filter_map(content_part).collect())
    } else {
        UserContent::Text(join_paragraphs(content))
    };
    UserMessage { role: "user", content }
}

fn content_part(block: &Content) -> Option<UserContentPart<'_>> {
    match block {
        Content::Text(text) => Some(UserContentPart::Text { text: Cow::Borrowed(&text.text) }),
        Content::Image(image) => {
            Some(UserContentPart::ImageUrl { image_url: ImageUrl { url: image } })
        }
        Content::Thinking(_)
        | Content::RedactedThinking(_)
        | Content::ToolCall(_)
        | Content::ToolResult(_) => None,
    }
}

fn join_paragraphs(content: &[Content]) -> Cow<'_, str> {
    let mut texts = content.iter().filter_map(|block| match block {
        Content::Text(text) => Some(text.text.as_str()),
        Content::Image(_) => Some(IMAGE_LEFT_OUT),
        Content::Thinking(_)
        | Content::RedactedThinking(_)
        | Content::ToolCall(_)
        | Content::ToolResult(_) => None,
    });
    let first = texts.next().unwrap_or_default();
    texts.fold(Cow::Borrowed(first), |so_far, next| Cow::Owned(format!("{so_far}\n\n{next}")))
}

/// Stands for a picture where the server takes none.
const IMAGE_LEFT_OUT: &str = "(a picture, which this model cannot be shown)";

/// Stands for a result that is nothing but pictures, which cannot be part of a tool's message.
pub(crate) const IMAGES_FOLLOW: &str = "(images follow)";

/// The text of a result. No flag tells an error on these wires: the text does. `images` says whether
/// the server takes pictures, which then follow.
pub(crate) fn result_text(result: &ToolResult, images: bool) -> Cow<'_, str> {
    let text = result.joined_text();
    let has_images = result.images().next().is_some();
    match (text.is_empty(), has_images, images) {
        (true, true, true) => Cow::Borrowed(IMAGES_FOLLOW),
        (true, true, false) => Cow::Borrowed(IMAGE_LEFT_OUT),
        (false, true, false) => Cow::Owned(format!("{text}\n{IMAGE_LEFT_OUT}")),
        (_, false, _) | (false, true, true) => Cow::Owned(text),
    }
}

/// The pictures that tools returned, as a message from the user that says whose they are.
pub(crate) fn result_images<'a>(
    results: impl Iterator<Item = &'a ToolResult>,
    names: &NameMap,
) -> Option<UserMessage<'a>> {
    let mut parts = Vec::new();
    for result in results {
        let mut images = result.images().peekable();
        if images.peek().is_some() {
            let text = format!("Images from the call of {}:", names.wire_name(&result.name));
            parts.push(UserContentPart::Text { text: text.into() });
        }
        parts.extend(
            images.map(|image| UserContentPart::ImageUrl { image_url: ImageUrl { url: image } }),
        );
    }
    (!parts.is_empty()).then_some(UserMessage { role: "user", content: UserContent::Parts(parts) })
}

#[cfg(test)]
mod tests {
    use gnoma_core::{CallId, ResultPart};

    use super::*;

    fn json(item: &impl Serialize) -> String {
        serde_json::to_string(item).unwrap()
    }

    #[test]
    fn tool_call_arguments_are_encoded_as_a_json_object_string() {
        let names = NameMap::default();
        let mut call = ToolCall::new(CallId::new("c"), "fs.read", RawJson::empty_object());
        call.arguments = RawJson::parse(r#"{ "a" : 1 }"#).unwrap();
        let sound = json(&encode_call(&call, "c".into(), &names));
        assert_eq!(
            sound,
            r#"{"id":"c","type":"function","function":{"name":"fs_read","arguments":"{ \"a\" : 1 }"}}"#
        );
        call.arguments = RawJson::from_value(&r#"{"a":"#).unwrap();
        call.broken = true;
        assert_eq!(arguments_text(&call), r#"{"_raw":"{\"a\":"}"#);
        assert!(RawJson::parse(arguments_text(&call)).is_ok());
    }

    #[test]
    fn user_text_is_a_string_and_images_make_content_parts() {
        let picture = Image::from_bytes("image/png", b"png");
        let words = [Content::from_text("look"), Content::from_text("here")];
        assert_eq!(json(&from_user(&words, true)), r#"{"role":"user","content":"look\n\nhere"}"#);
        let both = [Content::from_text("look"), Content::Image(picture)];
        assert_eq!(
            json(&from_user(&both, true)),
            concat!(
                r#"{"role":"user","content":[{"type":"text","text":"look"},"#,
                r#"{"type":"image_url","image_url":{"url":"data:image/png;base64,cG5n"}}]}"#
            )
        );
    }

    #[test]
    fn tool_result_images_follow_in_a_user_message_naming_the_tool() {
        let call = ToolCall::new(CallId::new("c"), "fs.read", RawJson::empty_object());
        let mut result = ToolResult::from_text(&call, "x", false);
        let names = NameMap::default();
        assert!(result_images([&result].into_iter(), &names).is_none());
        result.parts = vec![ResultPart::Image(Image::from_bytes("image/png", b"png"))];
        assert_eq!(result_text(&result, true), IMAGES_FOLLOW);
        assert_eq!(
            json(&result_images([&result].into_iter(), &names)),
            concat!(
                r#"{"role":"user","content":[{"type":"text","text":"Images from the call of fs_read:"},"#,
                r#"{"type":"image_url","image_url":{"url":"data:image/png;base64,cG5n"}}]}"#
            )
        );
    }

    #[test]
    fn tool_choice_is_encoded_as_word_or_function_name() {
        let names = NameMap::default();
        assert_eq!(tool_choice(&ToolChoice::Auto, &names, "any"), None);
        let required = tool_choice(&ToolChoice::Required, &names, "any");
        assert_eq!(json(&required), r#""any""#);
        let choice = ToolChoice::Tool("fs.read".into());
        assert_eq!(
            json(&tool_choice(&choice, &names, "any")),
            r#"{"type":"function","function":{"name":"fs_read"}}"#
        );
    }
}
