//! Conversations that put every rule of a wire to the test.

use std::sync::Arc;

use gnoma_core::{
    AnswerFormat, CallId, Content, Effort, FormatStage, Image, Message, ModelRequest, RawJson,
    ResultPart, StopReason, ToolCall, ToolChoice, ToolResult, ToolSpec,
    tool::{Access, Tier, ToolKind},
};

use crate::endpoints::{COMPATIBLE, Endpoint, PROTOCOLS};

/// The smallest PNG there is: one transparent point.
const POINT: &[u8] = &[
    0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0x00, 0x00, 0x00, 0x0D, 0x49, 0x48, 0x44, 0x52,
    0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x06, 0x00, 0x00, 0x00, 0x1F, 0x15, 0xC4,
    0x89, 0x00, 0x00, 0x00, 0x0A, 0x49, 0x44, 0x41, 0x54, 0x78, 0x9C, 0x63, 0x00, 0x01, 0x00, 0x00,
    0x05, 0x00, 0x01, 0x0D, 0x0A, 0x2D, 0xB4, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4E, 0x44, 0xAE,
    0x42, 0x60, 0x82,
];

/// What is said to an endpoint's model, by name.
pub(crate) fn all(endpoint: &Endpoint) -> Vec<(&'static str, ModelRequest)> {
    vec![
        ("text", ask(endpoint, [user("Hello")])),
        ("two_texts", ask(endpoint, [piped()])),
        ("conversation", conversation(endpoint)),
        ("tools", with_tools(endpoint, ToolChoice::Auto)),
        ("tools_none", with_tools(endpoint, ToolChoice::None)),
        ("tools_required", with_tools(endpoint, ToolChoice::Required)),
        ("tools_one", with_tools(endpoint, fs_read())),
        ("call", with_call(endpoint)),
        ("parallel_calls", parallel_calls(endpoint)),
        ("broken_call", broken_call(endpoint)),
        ("image", ask(endpoint, [image()])),
        ("image_result", image_result(endpoint)),
        ("own_thinking", own_thinking(endpoint)),
        ("foreign_thinking", foreign_thinking(endpoint)),
        ("only_thinking", only_thinking(endpoint)),
        ("interrupted", interrupted(endpoint)),
        ("steering", steering(endpoint)),
        ("limits", limits(endpoint)),
        ("effort_none", effort(endpoint, Effort::None)),
        ("effort_low", effort(endpoint, Effort::Low)),
        ("schema_with_tools", with_schema(endpoint, FormatStage::WithTools)),
        ("schema_now", with_schema(endpoint, FormatStage::AnswerNow)),
        ("schema_as_call", with_schema(endpoint, FormatStage::AsCall)),
    ]
}

/// A question with nothing but messages.
pub(crate) fn ask(
    endpoint: &Endpoint,
    messages: impl IntoIterator<Item = Message>,
) -> ModelRequest {
    ModelRequest {
        model: endpoint.model.into(),
        system: "".into(),
        messages: messages.into_iter().map(Arc::new).collect(),
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

pub(crate) fn user(text: &str) -> Message {
    Message::user_text(text)
}

/// A call of `tool` on a file.
pub(crate) fn call(id: &str, tool: &str) -> ToolCall {
    let arguments = RawJson::parse(r#"{"path": "src/main.rs", "limit": 1.0}"#).unwrap();
    ToolCall::new(CallId::new(id), tool, arguments)
}

/// What the endpoint's own model said, to have its calls run or because it was done.
pub(crate) fn said(endpoint: &Endpoint, content: Vec<Content>) -> Message {
    let calls = content.iter().any(|block| matches!(block, Content::ToolCall(_)));
    let stop = if calls { StopReason::ToolUse } else { StopReason::EndTurn };
    Message::assistant(content, Some(endpoint.model_ref()), Some(stop)).unwrap()
}

/// Answers every call of `message`.
pub(crate) fn results(message: &Message) -> Message {
    let result = |call| ToolResult::from_text(call, "// a comment", false);
    Message::results(message.tool_calls().map(result).collect()).unwrap()
}

/// The tools on offer.
pub(crate) fn tools() -> Arc<[Arc<ToolSpec>]> {
    let spec = |name: &str, description: &str, access, parameters: &str| {
        Arc::new(ToolSpec {
            name: name.to_owned(),
            description: description.to_owned(),
            parameters: RawJson::parse(parameters).unwrap(),
            access,
            touches: [].into(),
            kind: ToolKind::Other,
            tier: Tier::Lean,
        })
    };
    Arc::new([
        spec(
            "fs.read",
            "Reads a file.",
            Access::Read,
            r#"{"type":"object","properties":{"path":{"type":"string","description":"Path of the file."},"limit":{"type":"integer","minimum":1}},"required":["path"],"additionalProperties":false}"#,
        ),
        spec(
            "bash",
            "Runs a command.",
            Access::Execute,
            r#"{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}"#,
        ),
    ])
}

/// With a system prompt and tools on offer.
fn equipped(request: ModelRequest) -> ModelRequest {
    ModelRequest { system: "You are gnoma.".into(), tools: tools(), ..request }
}

fn piped() -> Message {
    Message::user(vec![
        Content::from_text("What came in on the pipe."),
        Content::from_text("Explain it."),
    ])
    .unwrap()
}

fn conversation(endpoint: &Endpoint) -> ModelRequest {
    let messages = [
        user("Hello"),
        said(endpoint, vec![Content::from_text("Good day.")]),
        user("And \"now\"?\n\tÄ 🦀"),
    ];
    ModelRequest { system: "You are gnoma.".into(), ..ask(endpoint, messages) }
}

fn with_tools(endpoint: &Endpoint, choice: ToolChoice) -> ModelRequest {
    ModelRequest { tool_choice: choice, ..equipped(ask(endpoint, [user("Read it")])) }
}

fn fs_read() -> ToolChoice {
    ToolChoice::Tool("fs.read".to_owned())
}

/// A round without words: the whole message is a call.
fn with_call(endpoint: &Endpoint) -> ModelRequest {
    let calls = vec![Content::ToolCall(call("c00000001", "fs.read"))];
    let calls = said(endpoint, calls);
    let answers = results(&calls);
    equipped(ask(endpoint, [user("Read it"), calls, answers]))
}

/// Two calls of one tool and one of a tool that is gone, which has failed.
fn parallel_calls(endpoint: &Endpoint) -> ModelRequest {
    let calls = [
        call("c00000001", "fs.read"),
        call("c00000002", "fs.read"),
        call("c00000003", "web.fetch"),
    ];
    let answers = vec![
        ToolResult::from_text(&calls[0], "fn main() {}", false),
        ToolResult::from_text(&calls[1], "", false),
        ToolResult::from_text(&calls[2], "there is no tool `web.fetch`", true),
    ];
    let mut content = vec![Content::from_text("All at once.")];
    content.extend(calls.into_iter().map(Content::ToolCall));
    let messages = [user("Read them"), said(endpoint, content), Message::results(answers).unwrap()];
    equipped(ask(endpoint, messages))
}

/// Arguments that were no JSON, kept as the text they were.
fn broken_call(endpoint: &Endpoint) -> ModelRequest {
    let broken = ToolCall {
        arguments: RawJson::from_value(&r#"{"path": "src/ma"#).unwrap(),
        broken: true,
        ..call("c00000001", "fs.read")
    };
    let refusal = ToolResult::from_text(&broken, "the arguments are no JSON", true);
    let messages = [
        user("Read it"),
        said(endpoint, vec![Content::ToolCall(broken)]),
        Message::results(vec![refusal]).unwrap(),
    ];
    equipped(ask(endpoint, messages))
}

fn image() -> Message {
    Message::user(vec![
        Content::from_text("What is this?"),
        Content::Image(Image::from_bytes("image/png", POINT)),
    ])
    .unwrap()
}

/// One result with words and a picture, one with nothing but a picture, one with words.
fn image_result(endpoint: &Endpoint) -> ModelRequest {
    let calls =
        [call("c00000001", "fs.read"), call("c00000002", "fs.read"), call("c00000003", "bash")];
    let picture = || ResultPart::Image(Image::from_bytes("image/png", POINT));
    let mut answers: Vec<ToolResult> =
        calls.iter().map(|call| ToolResult::from_text(call, "a point", false)).collect();
    answers[0].parts.push(picture());
    answers[1].parts = vec![picture()];
    let messages = [
        user("Look at them"),
        said(endpoint, calls.into_iter().map(Content::ToolCall).collect()),
        Message::results(answers).unwrap(),
    ];
    equipped(ask(endpoint, messages))
}

/// What the model thought comes back to it.
fn own_thinking(endpoint: &Endpoint) -> ModelRequest {
    let mut messages = turn_of(endpoint);
    messages.push(user("Thanks. Again?"));
    let calls = said(endpoint, endpoint.reads_a_file());
    let answers = results(&calls);
    messages.extend([calls, answers]);
    equipped(ask(endpoint, messages))
}

/// A conversation that everybody else has had a turn in, the last of them another model of the same
/// provider.
fn foreign_thinking(endpoint: &Endpoint) -> ModelRequest {
    let others = PROTOCOLS.iter().chain(&COMPATIBLE);
    let mut messages: Vec<Message> = others
        .filter(|other| other.model_ref() != endpoint.model_ref())
        .flat_map(turn_of)
        .collect();
    let sibling = Endpoint { model: "another-model", ..*endpoint };
    messages.extend(turn_of(&sibling));
    messages.extend(odd_ids(&sibling));
    messages.push(user("And now you"));
    equipped(ask(endpoint, messages))
}

/// A turn with a tool, and an answer.
fn turn_of(endpoint: &Endpoint) -> Vec<Message> {
    let calls = said(endpoint, endpoint.reads_a_file());
    let answers = results(&calls);
    let end = said(endpoint, endpoint.answers());
    vec![user("What is in it?"), calls, answers, end]
}

/// Ids that some server sends and another refuses.
fn odd_ids(endpoint: &Endpoint) -> Vec<Message> {
    let ids = ["functions.fs.read:0", "call 1 ä", &"long".repeat(20)];
    let calls = ids.map(|id| Content::ToolCall(call(id, "fs.read"))).into();
    let calls = said(endpoint, calls);
    let answers = results(&calls);
    let end = said(endpoint, vec![Content::from_text("Read.")]);
    vec![user("All three"), calls, answers, end]
}

/// An answer of somebody else of which nothing may be sent.
fn only_thinking(endpoint: &Endpoint) -> ModelRequest {
    let other = PROTOCOLS.iter().find(|other| other.label == "anthropic").unwrap();
    let sibling = Endpoint { model: "another-model", ..*other };
    let mut thoughts = other.reads_a_file();
    thoughts.retain(|block| matches!(block, Content::Thinking(_) | Content::RedactedThinking(_)));
    let messages = [user("Well?"), said(&sibling, thoughts), user("Say it")];
    ask(endpoint, messages)
}

/// An answer that was cut off; the user goes on.
fn interrupted(endpoint: &Endpoint) -> ModelRequest {
    let cut = Message::assistant(
        vec![Content::from_text("I will begin with ")],
        Some(endpoint.model_ref()),
        None,
    )
    .unwrap();
    ask(endpoint, [user("Do it"), cut, user("Stop, the other one")])
}

/// The user says something while the tools run.
fn steering(endpoint: &Endpoint) -> ModelRequest {
    let mut request = with_call(endpoint);
    request.messages.push(Arc::new(user("Only the first line")));
    request
}

fn limits(endpoint: &Endpoint) -> ModelRequest {
    ModelRequest {
        max_output_tokens: Some(4096),
        temperature: Some(0.2),
        effort: Some(Effort::High),
        context_window: Some(32_768),
        ..ask(endpoint, [user("Think hard")])
    }
}

/// An answer in a form that every vendor with a field for it guarantees; except as a call, where it is a
/// list, which no vendor takes as the arguments of one.
fn with_schema(endpoint: &Endpoint, stage: FormatStage) -> ModelRequest {
    let schema = match stage {
        FormatStage::WithTools | FormatStage::AnswerNow => {
            r#"{"type":"object","properties":{"line":{"type":"integer"}},"required":["line"],"additionalProperties":false}"#
        }
        FormatStage::AsCall => {
            r##"{"type":"array","items":{"$ref":"#/$defs/line"},"$defs":{"line":{"type":"integer"}}}"##
        }
    };
    let choice = match stage {
        FormatStage::WithTools => ToolChoice::Auto,
        FormatStage::AnswerNow | FormatStage::AsCall => ToolChoice::None,
    };
    let schema = Arc::new(RawJson::parse(schema).unwrap());
    let format = Some(AnswerFormat { schema, stage });
    ModelRequest { format, tool_choice: choice, ..with_call(endpoint) }
}

fn effort(endpoint: &Endpoint, effort: Effort) -> ModelRequest {
    ModelRequest { effort: Some(effort), ..with_tools(endpoint, ToolChoice::Required) }
}
