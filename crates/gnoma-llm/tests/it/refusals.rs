//! Servers that refuse a part of a request: it is left out or lowered, said, and remembered for the
//! conversation alone.

use futures_util::StreamExt as _;
use gnoma_core::{Effort, ModelRequest, Provider, ProviderError, StreamEvent, ToolChoice};
use gnoma_llm::connect_provider;
use gnoma_net::{Http, HttpOptions};
use gnoma_testkit::{Reply, Script, Server};
use serde_json::{Value, json};

use crate::{
    endpoints::{COMPATIBLE, Endpoint, PROTOCOLS},
    histories::{all, ask, tools, user},
};

/// A server that refuses a request for as long as it has something.
struct Case {
    /// Who is asked, and what.
    asked: (&'static str, &'static str),
    /// What it says, and beside which field.
    says: (u16, &'static str, Option<&'static str>),
    /// Where in the request it finds what it refuses.
    place: &'static str,
    /// Words of what people are told.
    told: &'static str,
}

const fn case(
    asked: (&'static str, &'static str),
    says: (u16, &'static str, Option<&'static str>),
    place: &'static str,
    told: &'static str,
) -> Case {
    Case { asked, says, place, told }
}

const CASES: &[Case] = &[
    case(
        ("llamacpp", "text"),
        (400, "Streaming is not supported for this model. Set stream to false.", Some("stream")),
        "/stream",
        "does not stream; gnoma waits for the whole answer",
    ),
    case(
        ("llamacpp", "text"),
        (400, "Unrecognized request argument supplied: stream_options", None),
        "/stream_options",
        "does not accept `stream_options`",
    ),
    case(
        ("llamacpp", "text"),
        (422, "body.stream_options: Extra inputs are not permitted", None),
        "/stream_options",
        "does not accept `stream_options`",
    ),
    case(
        ("openrouter", "limits"),
        (400, "Unsupported parameter: it is not supported with this model", Some("temperature")),
        "/temperature",
        "does not accept `temperature`",
    ),
    case(
        ("anthropic", "limits"),
        (400, "`temperature` is deprecated for this model.", None),
        "/temperature",
        "does not accept `temperature`",
    ),
    case(
        ("google", "limits"),
        (400, "Unknown name \"temperature\" at 'generation_config': Cannot find field.", None),
        "/generationConfig/temperature",
        "does not accept `generationConfig.temperature`",
    ),
    case(
        ("openai-responses", "effort_low"),
        (
            400,
            "Unsupported parameter: 'reasoning.effort' is not supported",
            Some("reasoning.effort"),
        ),
        "/reasoning",
        "cannot be told how hard to think",
    ),
    case(
        ("ollama", "effort_low"),
        (400, "\"gpt-oss:20b\" does not support thinking", None),
        "/think",
        "cannot be told how hard to think",
    ),
    case(
        ("ollama", "tools"),
        (400, "registry.ollama.ai/library/x:latest does not support tools", None),
        "/tools",
        "does not accept tools",
    ),
    case(
        ("openrouter", "tools"),
        (404, "No endpoints found that support tool use.", None),
        "/tools",
        "does not accept tools",
    ),
    case(
        ("llamacpp", "tools_required"),
        (400, "tool_choice 'required' is not supported", None),
        "/tool_choice",
        "does not let gnoma decide whether to call tools",
    ),
    case(
        ("llamacpp", "image"),
        (
            500,
            "image input is not supported - hint: if this is unexpected, provide the mmproj",
            None,
        ),
        "/messages/0/content/1/image_url",
        "does not accept an image",
    ),
    case(
        ("google", "own_thinking"),
        (400, "Thought signature is not valid", None),
        "/contents/1/parts/0/thought",
        "does not accept its earlier thinking",
    ),
    case(
        ("mistral", "system"),
        (400, "The system message is not supported", None),
        "/messages/0/role/system",
        "does not accept a system prompt",
    ),
    case(
        ("azure", "limits"),
        (
            400,
            "Unsupported parameter: 'max_completion_tokens' is not supported with this model. Use \
             'max_tokens' instead.",
            None,
        ),
        "/max_completion_tokens",
        "wants `max_tokens` instead of `max_completion_tokens`",
    ),
    case(
        ("anthropic", "system"),
        (400, "system.0.cache_control: Extra inputs are not permitted", None),
        "/system/0/cache_control",
        "does not accept `cache_control`",
    ),
];

fn endpoint(label: &str) -> &'static Endpoint {
    PROTOCOLS.iter().chain(&COMPATIBLE).find(|endpoint| endpoint.label == label).unwrap()
}

fn refusal(status: u16, message: &str, param: Option<&str>) -> Reply {
    let body =
        json!({"error": {"message": message, "type": "invalid_request_error", "param": param}});
    Reply::json(status, body.to_string())
}

/// Whether a request holds something at a place, whose last step may be the word that stands there.
fn holds(body: &Value, place: &str) -> bool {
    let (front, last) = place.rsplit_once('/').unwrap();
    let is_off = |it: &Value| it.is_null() || (last == "stream" && *it == Value::Bool(false));
    body.pointer(place).is_some_and(|it| !is_off(it))
        || body.pointer(front).is_some_and(|it| it == last)
}

/// A question of a kind.
fn question(endpoint: &Endpoint, kind: &str) -> ModelRequest {
    if kind == "system" {
        return ModelRequest { system: "Be brief.".into(), ..ask(endpoint, [user("hi")]) };
    }
    let request = all(endpoint).into_iter().find(|(name, _)| *name == kind).unwrap().1;
    // Who thinks may have no temperature.
    let effort = request.effort.filter(|_| kind != "limits");
    ModelRequest { effort, ..request }
}

/// What people were told, and how it ended.
async fn asked(
    provider: &dyn Provider,
    request: ModelRequest,
) -> (Vec<String>, Option<ProviderError>) {
    let (mut notes, mut stream) = (Vec::new(), provider.stream(request));
    while let Some(event) = stream.next().await {
        match event {
            Ok(StreamEvent::Adapted { note }) => notes.push(note),
            Ok(_) => (),
            Err(error) => return (notes, Some(error)),
        }
    }
    (notes, None)
}

/// A provider that refuses what `refuses` finds in a request.
fn strict(
    endpoint: &'static Endpoint,
    refuses: impl Fn(&Value) -> Option<Reply> + Send + Sync + 'static,
) -> (Server, std::sync::Arc<dyn Provider>) {
    let good = endpoint.wire.stream_reply(&Script::text(["good"]));
    let server =
        Server::start(move |request| refuses(&request.json()).unwrap_or_else(|| good.clone()));
    let server = server.unwrap();
    let provider =
        connect_provider(endpoint.profile(&server.url()), Http::new(HttpOptions::default()));
    (server, provider)
}

#[tokio::test]
async fn rejected_parameter_is_omitted_for_the_rest_of_the_conversation() {
    for Case { asked: (label, history), says: (status, message, param), place, told } in CASES {
        let endpoint = endpoint(label);
        let refuses = |body: &Value| holds(body, place).then(|| refusal(*status, message, *param));
        let (server, provider) = strict(endpoint, refuses);
        let first = question(endpoint, history);
        let (notes, error) = asked(&*provider, first.clone()).await;
        assert_eq!(error, None, "{label}: {place}");
        assert!(notes.len() == 1 && notes[0].contains(told), "{label}: {notes:?}");
        let (sent, again) = (server.requests()[0].json(), server.requests()[1].json());
        assert!(holds(&sent, place) && !holds(&again, place), "{label}: {sent} {again}");
        let (notes, error) = asked(&*provider, first).await;
        assert_eq!((notes, error), (vec![], None), "{label}: it is remembered");
        let (notes, _) = asked(&*provider, question(endpoint, history)).await;
        assert_eq!(notes.len(), 1, "{label}: another conversation knows nothing of it");
    }
}

#[tokio::test]
async fn server_without_streaming_gets_a_non_streamed_request() {
    let answers = [
        ("llamacpp", r#"{"choices":[{"message":{"content":"good"},"finish_reason":"stop"}]}"#),
        ("ollama", r#"{"message":{"content":"good"},"done":true,"done_reason":"stop"}"#),
    ];
    for (label, answer) in answers {
        let endpoint = endpoint(label);
        let (_server, provider) = strict(endpoint, move |body| {
            let refusal = || refusal(400, "This model does not support streaming.", None);
            let asked_for_one = body.get("stream") == Some(&Value::Bool(false));
            Some(if asked_for_one { Reply::json(200, answer.to_owned()) } else { refusal() })
        });
        let mut stream = provider.stream(ask(endpoint, [user("hi")]));
        let (mut notes, mut said) = (0, String::new());
        while let Some(event) = stream.next().await {
            match event {
                Ok(StreamEvent::Adapted { .. }) => notes += 1,
                Ok(StreamEvent::TextDelta { text, .. }) => said += &text,
                Ok(_) => (),
                Err(error) => panic!("{label}: {error:?}"),
            }
        }
        assert_eq!((notes, &*said), (1, "good"), "{label}");
    }
}

#[tokio::test]
async fn max_tokens_is_lowered_after_a_too_large_error() {
    let (window, input) = (8_192, 3_000);
    let endpoint = endpoint("llamacpp");
    let (server, provider) = strict(endpoint, move |body| {
        let most = body["max_tokens"].as_u64()?;
        let message = format!(
            "'max_tokens' or 'max_completion_tokens' is too large: {most}. This model's maximum context \
             length is {window} tokens and your request has {input} input tokens ({most} > {window} - \
             {input})."
        );
        (most + input > window).then(|| refusal(400, &message, None))
    });
    let mut request = ask(endpoint, [user(&"words ".repeat(2_000))]);
    request.max_output_tokens = Some(8_192);
    let (notes, error) = asked(&*provider, request.clone()).await;
    assert!(
        error.is_none() && notes[0].contains("has room for 8192 tokens"),
        "{notes:?} {error:?}"
    );
    // The next round has more to read, and is not refused.
    request.messages.push(user(&"more ".repeat(400)).into());
    assert_eq!(asked(&*provider, request).await, (vec![], None));
    let most: Vec<_> =
        server.requests().iter().map(|it| it.json()["max_tokens"].as_u64().unwrap()).collect();
    assert!(most[0] == 8_192 && most[1] > 5_000 && most[2] < most[1], "{most:?}");
}

/// A server that wants these gone does not get it.
#[tokio::test]
async fn required_request_fields_are_never_omitted() {
    let table = [
        ("openai-responses", "text", "Unknown parameter: 'store'.", "/store"),
        (
            "openai-responses",
            "tools",
            "Invalid schema: tools[0].parameters is not supported",
            "/tools",
        ),
        ("anthropic", "limits", "Unknown parameter: 'max_tokens'.", "/max_tokens"),
        ("llamacpp", "limits", "temperature 0.5 is too hot", "/temperature"),
    ];
    for (label, history, message, place) in table {
        let refuses = move |body: &Value| holds(body, place).then(|| refusal(400, message, None));
        let (server, provider) = strict(endpoint(label), refuses);
        let (notes, error) = asked(&*provider, question(endpoint(label), history)).await;
        assert!(notes.is_empty() && error.is_some(), "{label}: {notes:?}");
        assert_eq!(server.requests().len(), 1, "{label}");
    }
}

/// A server that finds something new each time is not asked for ever.
#[tokio::test]
async fn request_adaptation_gives_up_if_every_field_is_rejected() {
    let endpoint = endpoint("openrouter");
    let (server, provider) = strict(endpoint, |body| {
        let fields = ["tools", "tool_choice", "temperature", "reasoning", "stream_options"];
        let field = fields.iter().find(|field| body.get(**field).is_some()).unwrap_or(&"model");
        Some(refusal(400, &format!("Unknown parameter: '{field}'."), Some(field)))
    });
    let mut request = question(endpoint, "tools_required");
    (request.temperature, request.effort) = (Some(0.5), Some(Effort::High));
    assert_ne!(request.tool_choice, ToolChoice::Auto);
    let (notes, error) = asked(&*provider, request).await;
    assert!(error.is_some() && notes.len() == 4, "{notes:?}");
    assert_eq!(server.requests().len(), 5);
}

/// Servers that name no tool: each other tool is offered in the end.
#[tokio::test]
async fn rejected_tool_is_found_if_the_server_does_not_name_it() {
    for (status, message) in [
        (
            400,
            "Invalid request: tools.function.parameters is not a valid moonshot flavored json schema",
        ),
        (500, "failed to parse grammar"),
        (422, "The provided JSON schema contains features not supported by xgrammar."),
    ] {
        let endpoint = endpoint("llamacpp");
        let names = |body: &Value| -> Vec<String> {
            let tools = body["tools"].as_array().cloned().unwrap_or_default();
            let name = |tool: &Value| tool["function"]["name"].as_str().unwrap().to_owned();
            tools.iter().map(name).collect()
        };
        let (server, provider) = strict(endpoint, move |body| {
            let is_odd = names(body).iter().any(|name| name == "mcp__s__t2");
            is_odd.then(|| refusal(status, message, None))
        });
        let mut request = ask(endpoint, [user("hi")]);
        let own = tools();
        let foreign = (0..5).map(|at| {
            std::sync::Arc::new(gnoma_core::ToolSpec {
                name: format!("mcp__s__t{at}"),
                ..(*own[0]).clone()
            })
        });
        request.tools = own.iter().cloned().chain(foreign).collect();
        let mut last = Vec::new();
        for round in 0..5 {
            let (notes, error) = asked(&*provider, request.clone()).await;
            assert_eq!(error, None, "{message}");
            assert!(notes.len() <= 1, "{notes:?}");
            assert!(round > 0 || notes[0].contains("leaves out"), "{notes:?}");
            last = names(&server.requests().last().unwrap().json());
        }
        assert_eq!(
            last,
            ["fs_read", "bash", "mcp__s__t0", "mcp__s__t1", "mcp__s__t3", "mcp__s__t4"]
        );
        assert!(server.requests().len() <= 12, "{}", server.requests().len());
        // What it has taken before is not the reason for another refusal.
        let before = server.requests().len();
        assert_eq!(asked(&*provider, request).await, (vec![], None));
        assert_eq!(server.requests().len(), before + 1);
    }
}
