//! Interprets a server's refusal (HTTP 400): the change that the request needs. Pure.
//!
//! Only what is said clearly counts: an answer of 400 or 422 that names what is not taken. Local servers
//! and routers say some of it with other statuses, in words that are known.

use std::sync::Arc;

use bytes::Bytes;
use gnoma_core::{ErrorKind, ModelRequest, ProviderError, Role};
use serde_json::Value;

use super::{
    apply::{has_pictures, has_thinking},
    change::Adaptation,
    pictures::{
        RefusedPictures, find_refused, is_about_one, limit_pictures, names_picture, refuses_all,
    },
    refusal_phrases::{
        ANSWER_LAST, CLEAR, EARLIER, EFFORT, HOLDERS, KEPT, NO_EFFORT, NO_PICTURES, NO_STREAM,
        NO_THINKING, NO_TOOLS, PART_OF_TOOLS, PICTURES, PLAIN_CONTENT, SYSTEM, TOOL_CHOICE,
        UNKNOWN,
    },
    refused_tool::{is_about_schema, refused_tool, tool_limit},
    room::{self, Room},
    tool_trials::ToolTrials,
};

/// The prefix in the names of tools that are not built in.
const FOREIGN_TOOL: &str = "mcp__";

const SHORT: &str = "max_tokens";
const LONG: &str = "max_completion_tokens";

/// A request that was refused, and how.
pub(crate) struct RefusedRequest<'a> {
    pub(crate) error: &'a ProviderError,
    /// The whole answer of the server.
    pub(crate) body: &'a [u8],
    /// The request that was refused.
    pub(crate) request: &'a ModelRequest,
    /// The fields of the request, all but the conversation.
    pub(crate) fields: &'a Value,
    /// All that was sent.
    pub(crate) sent: &'a [Bytes],
    /// Pictures that the server has refused or taken before.
    pub(crate) pictures: (RefusedPictures, Vec<Arc<str>>),
    /// The state of the trials with refused tools, and the tools that the server has taken before.
    pub(crate) tools: (Option<ToolTrials>, Vec<String>),
    /// Bytes of the prompt.
    pub(crate) bytes: u64,
    /// The output limit has another name for some models.
    pub(crate) has_names: bool,
}

/// A refusal, made ready to look into.
struct ReadRefusal<'a> {
    of: &'a RefusedRequest<'a>,
    /// The message of the server, in small letters.
    text: String,
    /// The field that the server names beside its message.
    param: Option<String>,
}

/// Returns the change that the request needs to be accepted, if it can be told from the refusal.
pub(crate) fn infer_adaptation(of: &RefusedRequest<'_>) -> Option<Adaptation> {
    let text = of.error.message.to_lowercase();
    let is_clear = match of.error.status {
        Some(400 | 422) => true,
        Some(413 | 415) if is_about_one(&text) || is_body_size(of, &text) => true,
        // Local servers fail inside where they cannot read what they were sent.
        Some(500..) if is_in_request(of, &text) => true,
        Some(_) => CLEAR.iter().any(|words| text.contains(words)),
        None => false,
    };
    let may_be = match of.error.kind {
        ErrorKind::BadRequest | ErrorKind::ContextTooLong | ErrorKind::NotFound => true,
        ErrorKind::ServerError | ErrorKind::Overloaded => is_in_request(of, &text),
        _ => false,
    };
    if !is_clear || !may_be {
        return None;
    }
    let said = ReadRefusal { of, param: error_param(of.body), text };
    said.limit_adaptation()
        .or_else(|| said.conversation_adaptation())
        .or_else(|| said.setting_adaptation())
        .or_else(|| said.picture_trial())
}

/// Reports whether a fault of the server comes from what was sent: from a picture, or from the schema of a tool.
fn is_in_request(of: &RefusedRequest<'_>, text: &str) -> bool {
    let has_picture = of.request.messages.iter().any(|message| has_pictures(message));
    let has_tools = foreign_tools(of.request).next().is_some();
    (has_picture && (is_about_one(text) || refuses_all(text)))
        || (has_tools && is_about_schema(text, of.request.format.is_some()))
}

/// Reports whether the whole request is too large, and nothing says that its text is the reason: pictures are the
/// largest part.
fn is_body_size(of: &RefusedRequest<'_>, text: &str) -> bool {
    let is_of_text = ["token", "context", "prompt"].iter().any(|word| text.contains(word));
    of.error.status == Some(413) && !is_of_text
}

/// The names of the tools in a request that are not built in.
pub(crate) fn foreign_tools(request: &ModelRequest) -> impl Iterator<Item = &str> {
    let names = request.tools.iter().map(|tool| tool.name.as_str());
    names.filter(|name| name.starts_with(FOREIGN_TOOL))
}

/// OpenAI's field beside the message of an error.
fn error_param(body: &[u8]) -> Option<String> {
    let value: Value = serde_json::from_slice(body).ok()?;
    let param = value.pointer("/error/param").or_else(|| value.get("param"))?.as_str()?;
    Some(param.to_ascii_lowercase())
}

impl ReadRefusal<'_> {
    fn mentions_any(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.text.contains(word))
    }

    fn refuses_any(&self, words: &[&str]) -> bool {
        let is_param = || self.param.as_deref().is_some_and(|param| words.contains(&param));
        self.mentions_any(UNKNOWN) && (self.mentions_any(words) || is_param())
    }

    /// About the length of the answer.
    fn limit_adaptation(&self) -> Option<Adaptation> {
        let fields = self.of.fields;
        let use_instead =
            |name| self.mentions_any(&[&format!("use '{name}'"), &format!("use `{name}`")]);
        for (from, to) in [(SHORT, LONG), (LONG, SHORT)] {
            let is_named = self.names_field(from) && self.mentions_any(UNKNOWN);
            let is_meant = use_instead(to) || (is_named && !self.names_field(to));
            if self.of.has_names && fields.get(from).is_some() && is_meant {
                return Some(Adaptation::Renamed { from, to });
            }
        }
        let most = ["/max_tokens", "/max_completion_tokens", "/max_output_tokens"];
        let nested = ["/generationConfig/maxOutputTokens", "/options/num_predict"];
        let most = most.iter().chain(&nested).find_map(|place| fields.pointer(place)?.as_u64())?;
        let most = u32::try_from(most).ok()?;
        Room::from_refusal(&self.text, most, self.of.bytes)
            .map(Adaptation::Room)
            .or_else(|| room::parse_token_limit(&self.text, most).map(Adaptation::MostTokens))
    }

    /// About what is in the conversation.
    fn conversation_adaptation(&self) -> Option<Adaptation> {
        let messages = &self.of.request.messages;
        let is_last = messages.last().is_some_and(|last| last.role() == Role::Assistant);
        if is_last && self.mentions_any(ANSWER_LAST) {
            return Some(Adaptation::AnswerLast);
        }
        if self.mentions_any(NO_THINKING) {
            return self.of.request.effort.map(|_| Adaptation::Effort);
        }
        let is_earlier = self.mentions_any(EARLIER)
            || (self.mentions_any(&["messages.", "messages["])
                && self.refuses_any(&["reasoning", "thinking"]));
        if is_earlier && messages.iter().any(|message| has_thinking(message)) {
            return Some(Adaptation::EarlierThinking(messages.len()));
        }
        // The tokens of pictures are a part of the prompt: where there are too many, it is too long.
        let is_too_long = self.of.error.kind == ErrorKind::ContextTooLong;
        let is_size = is_body_size(self.of, &self.text);
        let (known, _) = &self.of.pictures;
        if let Some(limited) = limit_pictures(&self.text, self.of.request, known) {
            return Some(self.without_pictures(limited));
        }
        if (is_size || (is_about_one(&self.text) && !is_too_long))
            && let Some(change) = self.refused_pictures()
        {
            return Some(change);
        }
        if self.is_about_pictures() && messages.iter().any(|message| has_pictures(message)) {
            return Some(Adaptation::Pictures);
        }
        let has_system = !self.of.request.system.is_empty();
        (has_system && self.refuses_any(SYSTEM)).then_some(Adaptation::SystemRole)
    }

    fn is_about_pictures(&self) -> bool {
        self.mentions_any(NO_PICTURES)
            || refuses_all(&self.text)
            || self.refuses_any(PICTURES)
            || self.wants_plain_text()
    }

    /// Reports whether the server takes no lists as the content of a message, as servers of models for text alone do.
    fn wants_plain_text(&self) -> bool {
        self.mentions_any(PLAIN_CONTENT)
            && (self.mentions_any(&["content"])
                || (self.mentions_any(&["messages"]) && self.mentions_any(&["sequence", "list"])))
    }

    /// Returns the pictures to leave out, if some of the request can be the reason.
    fn refused_pictures(&self) -> Option<Adaptation> {
        let (known, accepted) = &self.of.pictures;
        let body = self.of.sent.concat();
        let found = find_refused(&self.text, &body, self.of.request, known, accepted)?;
        Some(self.without_pictures(found))
    }

    fn without_pictures(&self, mut refused: RefusedPictures) -> Adaptation {
        refused.why = crate::errors::quote_text(&self.of.error.message);
        Adaptation::RefusedPictures(refused)
    }

    /// Tries the request without new pictures if the refusal speaks of pictures in words that are not known, such as
    /// those of another language.
    fn picture_trial(&self) -> Option<Adaptation> {
        let is_refused = matches!(self.of.error.status, Some(400 | 422))
            && self.of.error.kind == ErrorKind::BadRequest;
        (is_refused && names_picture(&self.text)).then(|| self.refused_pictures())?
    }

    /// About the tools of the request and its other settings.
    fn setting_adaptation(&self) -> Option<Adaptation> {
        let request = self.of.request;
        // The built-in tools have schemas that each vendor takes: a refusal of one of them means something else.
        let refused = refused_tool(&self.text, self.param.as_deref(), &request.tools);
        let is_built_in = refused.is_some();
        if let Some(tool) = refused.filter(|name| name.starts_with(FOREIGN_TOOL)) {
            return Some(Adaptation::OneTool(tool));
        }
        if let Some(most) = tool_limit(&self.text, self.param.as_deref(), request.tools.len()) {
            return self.too_many_tools(most);
        }
        if !request.tools.is_empty() {
            if self.mentions_any(NO_TOOLS) {
                return Some(Adaptation::Tools);
            }
            if self.refuses_any(TOOL_CHOICE) || self.mentions_any(&["invalid tool_choice"]) {
                let fields = self.of.fields;
                let is_sent =
                    ["tool_choice", "toolConfig"].iter().any(|it| fields.get(it).is_some());
                return is_sent.then_some(Adaptation::ToolChoice);
            }
            if self.mentions_any(UNKNOWN)
                && self.names_field("tools")
                && !self.mentions_any(PART_OF_TOOLS)
            {
                return Some(Adaptation::Tools);
            }
        }
        if !is_built_in && is_about_schema(&self.text, request.format.is_some()) {
            return self.tool_trials().map(Adaptation::ToolTrials);
        }
        self.field_adaptation()
    }

    /// About the stream, the effort, and fields of the request that the server does not know.
    fn field_adaptation(&self) -> Option<Adaptation> {
        if self.mentions_any(NO_STREAM) {
            return Some(Adaptation::Stream);
        }
        let has_effort = self.of.request.effort.is_some();
        if has_effort && (self.refuses_any(EFFORT) || self.mentions_any(NO_EFFORT)) {
            return Some(Adaptation::Effort);
        }
        if !self.mentions_any(UNKNOWN) {
            return None;
        }
        if self.names_field("cache_control") {
            return Some(Adaptation::Field("cache_control".to_owned()));
        }
        // Streaming may only be why something else is refused.
        let stream = || self.names_field("stream").then_some(Adaptation::Stream);
        self.named_field().map(Adaptation::Field).or_else(stream)
    }

    /// Returns the next trial after a schema was refused, if nothing says to which tool it belongs.
    fn tool_trials(&self) -> Option<ToolTrials> {
        let (trials, accepted) = &self.of.tools;
        if let Some(trials) = trials.clone().filter(ToolTrials::is_open) {
            return trials.next_trial();
        }
        let unknown =
            foreign_tools(self.of.request).filter(|name| !accepted.iter().any(|it| it == name));
        let begun = ToolTrials::from_unknown(unknown.map(str::to_owned).collect());
        let is_over = trials.as_ref().is_some_and(ToolTrials::is_given_up);
        let begun = begun.filter(|_| !is_over && self.of.request.tools.len() > 1)?;
        Some(match trials {
            Some(known) => known.clone().merge_refusal(&begun),
            None => begun,
        })
    }

    /// Leaves out the last tools of tool servers where more are offered than `most`.
    fn too_many_tools(&self, most: usize) -> Option<Adaptation> {
        let mut names: Vec<_> = foreign_tools(self.of.request).map(str::to_owned).collect();
        let over = self.of.request.tools.len().saturating_sub(most);
        let out = names.split_off(names.len().saturating_sub(over));
        let begun = ToolTrials::from_surplus(out)?;
        let known = self.of.tools.0.clone().filter(|known| !known.is_given_up());
        Some(Adaptation::ToolTrials(known.unwrap_or_default().merge_refusal(&begun)))
    }

    /// The field of the request that is named.
    fn named_field(&self) -> Option<String> {
        let fields = self.of.fields.as_object()?;
        let inner = HOLDERS.iter().filter_map(|holder| Some((*holder, fields.get(*holder)?)));
        let inner = inner.filter_map(|(holder, value)| Some((holder, value.as_object()?)));
        let inner = inner.flat_map(|(holder, value)| {
            value.keys().map(move |name| (format!("{holder}.{name}"), name.clone()))
        });
        let outer = fields.keys().map(|name| (name.clone(), name.clone()));
        let mut named = outer.chain(inner).filter(|(path, name)| {
            !KEPT.contains(&path.as_str()) && self.names_field(&name.to_ascii_lowercase())
        });
        named.next().map(|(path, _)| path)
    }

    /// Reports whether the message names a field. Words that also mean something else must stand in quotes.
    fn names_field(&self, field: &str) -> bool {
        if let Some(param) = &self.param {
            return param == field || param.starts_with(&format!("{field}."));
        }
        let is_word = !field.contains('_') && field.chars().all(|c| c.is_ascii_lowercase());
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        self.text.match_indices(field).any(|(at, _)| {
            let before = self.text[..at].chars().next_back();
            let after = self.text[at + field.len()..].chars().next();
            let is_whole = !before.is_some_and(is_part) && !after.is_some_and(is_part);
            let is_marked = before.is_some_and(|c| matches!(c, '\'' | '"' | '`' | '.'))
                || ["parameter: ", "argument: ", "supplied: ", "field: ", "param: "]
                    .iter()
                    .any(|mark| self.text[..at].ends_with(mark));
            is_whole && (!is_word || is_marked || LONG_WORDS.contains(&field))
        })
    }
}

/// Fields whose names are words that mean nothing else in a refusal.
const LONG_WORDS: &[&str] = &["temperature"];

#[cfg(test)]
mod tests {
    use gnoma_core::{
        Content, Effort, Image, Message, ModelRef, RawJson, Thinking, ToolChoice, ToolSpec,
        tool::{Access, Tier, ToolKind},
    };
    use serde_json::json;

    use super::*;

    /// A request with all that can be refused.
    fn request() -> ModelRequest {
        let tool = ToolSpec {
            name: "fs.read".to_owned(),
            description: String::new(),
            parameters: RawJson::empty_object(),
            access: Access::Read,
            touches: [].into(),
            kind: ToolKind::Other,
            tier: Tier::Lean,
        };
        let thought = Thinking { text: "hm".into(), signature: Some("s".into()), item: None };
        let origin = ModelRef { provider: "p".into(), model: "m".into() };
        let said = vec![Content::Thinking(thought), Content::from_text("so")];
        let picture = Content::Image(Image::from_bytes("image/png", b"x"));
        ModelRequest {
            model: "m".into(),
            system: "be brief".into(),
            messages: vec![
                Arc::new(Message::user(vec![picture]).unwrap()),
                Arc::new(Message::assistant(said, Some(origin), None).unwrap()),
            ],
            tools: [Arc::new(tool)].into(),
            tool_choice: ToolChoice::Required,
            max_output_tokens: Some(32_000),
            temperature: Some(0.5),
            effort: Some(Effort::High),
            context_window: None,
            format: None,
            thinking: None,
        }
    }

    fn read(kind: ErrorKind, status: u16, message: &str) -> Option<Adaptation> {
        let mut error = ProviderError::new(kind, "p", message);
        error.status = Some(status);
        let fields = json!({"model": "m", "stream": true, "store": false, "max_tokens": 32_000,
            "temperature": 0.5, "tools": [], "tool_choice": "required", "include": [],
            "stream_options": {}, "messages": []});
        let refusal = RefusedRequest {
            error: &error,
            body: b"",
            request: &request(),
            fields: &fields,
            sent: &[],
            pictures: <_>::default(),
            tools: <_>::default(),
            bytes: 9_000,
            has_names: false,
        };
        infer_adaptation(&refusal)
    }

    #[test]
    fn unsupported_parameter_errors_are_mapped_to_request_adaptations() {
        let field = |name: &str| Some(Adaptation::Field(name.to_owned()));
        let earlier = || Some(Adaptation::EarlierThinking(2));
        for (message, change) in [
            (
                "litellm.UnsupportedParamsError: openai does not support parameters: ['temperature']",
                field("temperature"),
            ),
            (
                "litellm.UnsupportedParamsError: x does not support parameters: ['tools'], for model=y",
                Some(Adaptation::Tools),
            ),
            (
                "Extra inputs are not permitted, field: 'stream_options', value: {}",
                field("stream_options"),
            ),
            ("Unsupported param: tools", Some(Adaptation::Tools)),
            ("Function call is not supported for deepseek-reasoner", Some(Adaptation::Tools)),
            ("deepseek-reasoner does not support this tool_choice", Some(Adaptation::ToolChoice)),
            (
                "Invalid tool_choice type: 'object'. Supported string values: none, auto",
                Some(Adaptation::ToolChoice),
            ),
            (
                "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
                Some(Adaptation::SystemRole),
            ),
            ("'messages.1' : property 'reasoning_content' is unsupported", earlier()),
            ("messages.1: property 'reasoning' is unsupported", earlier()),
            ("messages.1.content.0: Invalid `signature` in `thinking` block", earlier()),
            (
                "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `text`",
                Some(Adaptation::Effort),
            ),
            ("Model grok-4 does not support parameter reasoningEffort.", Some(Adaptation::Effort)),
            (
                "Budget 0 is invalid. This model only works in thinking mode.",
                Some(Adaptation::Effort),
            ),
            ("invalid think value: \"high\"", Some(Adaptation::Effort)),
            (
                "Unsupported value: 'stream' does not support true with this model.",
                Some(Adaptation::Stream),
            ),
            ("This model does not support streaming.", Some(Adaptation::Stream)),
            ("`temperature` is not supported when `stream` is true", field("temperature")),
            ("reasoning_effort is not supported when 'stream' is set", Some(Adaptation::Effort)),
            ("Qwen/Qwen3-8B is not a multimodal model", Some(Adaptation::Pictures)),
            ("unknown variant `image_url`, expected `text`", Some(Adaptation::Pictures)),
            ("messages[2].content must be a string", Some(Adaptation::Pictures)),
            (
                "'messages.2' : for 'role:user' the following must be satisfied[('messages.2.content' : value must be \
                 a string)]",
                Some(Adaptation::Pictures),
            ),
            (
                "Failed to deserialize the JSON body into the target type: messages[2]: invalid type: sequence, \
                 expected a string at line 1 column 9000",
                Some(Adaptation::Pictures),
            ),
            ("body.messages.2.content: Input should be a valid string", Some(Adaptation::Pictures)),
            ("messages.2.tool_call_id: Input should be a valid string", None),
            (
                "The last message of deepseek-reasoner must be a user message",
                Some(Adaptation::AnswerLast),
            ),
            (
                "too many tokens: max tokens must be less than or equal to 4096",
                Some(Adaptation::MostTokens(4096)),
            ),
            // Nothing that can be left out.
            ("Invalid value for 'model'", None),
            ("Unknown parameter: 'store'.", None),
            ("Unknown parameter: 'max_output_tokens'.", None),
            ("tools[0].function.parameters: unsupported keyword", None),
            ("You must include at least one message; empty ones are not supported", None),
        ] {
            assert_eq!(read(ErrorKind::BadRequest, 400, message), change, "{message}");
        }
    }

    #[test]
    fn model_without_vision_is_recognized_whatever_its_status() {
        for (kind, status, message) in [
            (ErrorKind::BadRequest, 500, "this model does not support images"),
            (ErrorKind::BadRequest, 500, "this model does not support image input"),
            (ErrorKind::ServerError, 500, "this model is missing data required for image input"),
            (ErrorKind::BadRequest, 400, "Model does not support images."),
        ] {
            assert_eq!(read(kind, status, message), Some(Adaptation::Pictures), "{message}");
        }
    }

    #[test]
    fn image_rejection_is_recognized_in_many_languages() {
        for (kind, status, message) in [
            (ErrorKind::ServerError, 500, "failed to process inputs: invalid image input"),
            (ErrorKind::BadRequest, 400, "L'image ne peut pas être lue"),
            (ErrorKind::BadRequest, 400, "La imagen no es válida"),
            (ErrorKind::BadRequest, 422, "画像を読み込めません"),
            (ErrorKind::BadRequest, 400, "不支持的图像"),
            (ErrorKind::BadRequest, 400, "Изображение повреждено"),
            (ErrorKind::BadRequest, 400, "invalid character in media data"),
        ] {
            let change = read(kind, status, message);
            assert!(
                matches!(change, Some(Adaptation::RefusedPictures(_))),
                "{message}: {change:?}"
            );
        }
        assert_eq!(read(ErrorKind::ServerError, 500, "L'image ne peut pas être lue"), None);
    }

    #[test]
    fn request_adapts_only_to_unambiguous_client_errors() {
        let message = "m does not support parameter temperature";
        assert!(read(ErrorKind::BadRequest, 422, message).is_some());
        assert_eq!(read(ErrorKind::ServerError, 500, message), None);
        assert_eq!(read(ErrorKind::Auth, 400, message), None);
        assert_eq!(read(ErrorKind::BadRequest, 403, message), None);
        let router = "No endpoints found that support tool use.";
        assert_eq!(read(ErrorKind::NotFound, 404, router), Some(Adaptation::Tools));
    }
}
