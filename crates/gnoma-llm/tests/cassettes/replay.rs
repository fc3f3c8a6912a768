//! Replays recordings over HTTP, at several sizes of piece.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::{FutureExt as _, StreamExt as _, stream};
use gnoma_core::{
    Accumulator, Message, ModelRequest, Provider, ProviderError, RawJson, Response, Secret,
    ToolChoice, ToolSpec,
    tool::{Access, Tier, ToolKind},
};
use gnoma_llm::{Profile, Protocol, connect_provider};
use gnoma_net::Http;
use gnoma_testkit::{Cassette, Server, cassette::Api};
use serde_json::Value;
use tokio::task::JoinSet;

/// Bytes to a piece: single bytes, sizes that cut words and records, and everything at once.
pub(crate) const SIZES: [usize; 4] = [1, 7, 64, usize::MAX];

/// Recordings under way at once.
const CONCURRENT: usize = 16;

/// Longest wait for one reading; nothing in a recording waits.
const PATIENCE: Duration = Duration::from_secs(60);

/// What gnoma made of one answer.
pub(crate) struct Reading {
    /// The answer as far as it was read.
    pub(crate) response: Response,
    /// The failure that ended it.
    pub(crate) error: Option<ProviderError>,
}

/// A recording and its readings, one for each of [`SIZES`]; an adapter that hung or panicked has
/// given words instead.
pub(crate) struct Readings {
    /// The recording.
    pub(crate) cassette: Arc<Cassette>,
    /// In the order of [`SIZES`].
    pub(crate) by_size: Vec<Result<Reading, String>>,
}

/// Reads every recording at every size.
pub(crate) async fn every(cassettes: Vec<Arc<Cassette>>, http: &Http) -> Vec<Readings> {
    let one = |cassette: Arc<Cassette>| {
        let http = http.clone();
        async move {
            let mut by_size = Vec::with_capacity(SIZES.len());
            for size in SIZES {
                by_size.push(guarded(replay(&cassette, &http, size)).await);
            }
            Readings { cassette, by_size }
        }
    };
    side_by_side(cassettes.into_iter().map(one)).await
}

/// Runs `jobs` on all cores, a bounded number at once; the results are in order.
pub(crate) async fn side_by_side<T: Send + 'static>(
    jobs: impl Iterator<Item = impl Future<Output = T> + Send + 'static>,
) -> Vec<T> {
    let tasks = jobs.map(|job| async move {
        let mut task = JoinSet::new();
        task.spawn(job);
        task.join_next().await
    });
    let done: Vec<_> = stream::iter(tasks).buffered(CONCURRENT).collect().await;
    done.into_iter().flatten().map(Result::unwrap).collect()
}

/// The outcome of `job`; a panic or a hang becomes words.
pub(crate) async fn guarded<T>(job: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let job = AssertUnwindSafe(job).catch_unwind();
    match tokio::time::timeout(PATIENCE, job).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(panic)) => {
            let words = panic.downcast_ref::<String>().map(String::as_str);
            let words = words.or_else(|| panic.downcast_ref::<&str>().copied());
            Err(format!("panicked: {}", words.unwrap_or_default()))
        }
        Err(_) => Err("hung".to_owned()),
    }
}

async fn replay(cassette: &Cassette, http: &Http, size: usize) -> Result<Reading, String> {
    let reply = cassette.reply(size).map_err(|error| error.to_string())?;
    let server = Server::start_with_replies([reply]).map_err(|error| error.to_string())?;
    let provider = connect_provider(profile(cassette, &server.url()), http.clone());
    Ok(read(&*provider, request(cassette)).await)
}

/// Asks and reads to the end.
pub(crate) async fn read(provider: &dyn Provider, request: ModelRequest) -> Reading {
    let mut stream = provider.stream(request);
    let mut answer = Accumulator::new();
    let mut error = None;
    while let Some(event) = stream.next().await {
        match event {
            Ok(event) => answer.push(&event),
            Err(failure) => error = Some(failure),
        }
    }
    Reading { response: answer.into_response(), error }
}

/// The adapter that reads the recording, pointed at `url`.
pub(crate) fn profile(cassette: &Cassette, url: &str) -> Profile {
    let protocol = match cassette.api {
        Api::Anthropic => Protocol::Anthropic,
        Api::OpenAi => Protocol::OpenAi,
        Api::Responses => Protocol::Responses,
        Api::Mistral => Protocol::Mistral,
        Api::Google => Protocol::Google,
        Api::Ollama => Protocol::Ollama,
    };
    let mut profile = Profile::new(&cassette.provider, protocol, url);
    profile.key = Some(Secret::new("test-key".to_owned()));
    profile
}

/// A request like the recorded one in what decides how the answer is read: model and tools.
pub(crate) fn request(cassette: &Cassette) -> ModelRequest {
    ModelRequest {
        model: model(cassette).into(),
        system: "".into(),
        messages: vec![Arc::new(Message::user_text("hello"))],
        tools: tools(&cassette.request.body),
        tool_choice: ToolChoice::Auto,
        max_output_tokens: None,
        temperature: None,
        effort: None,
        context_window: None,
        format: None,
        thinking: None,
    }
}

/// The model asked for: in the body, or in Google's path.
pub(crate) fn model(cassette: &Cassette) -> String {
    let in_body = cassette.request.body.get("model").and_then(Value::as_str);
    let in_path = || {
        let (_, rest) = cassette.request.path.split_once("models/")?;
        rest.split([':', '?']).next()
    };
    let answered = cassette.expect.model.as_deref();
    let model = in_body.or_else(in_path).or(answered);
    model.unwrap_or("model").to_owned()
}

/// The client's tools of a recorded body, in whichever form it has them.
fn tools(body: &Value) -> Arc<[Arc<ToolSpec>]> {
    let listed = body.get("tools").and_then(Value::as_array);
    let declared = listed.into_iter().flatten().flat_map(|tool| {
        let many = ["functionDeclarations", "function_declarations"];
        match many.iter().find_map(|key| tool.get(key)?.as_array()) {
            Some(list) => list.iter().collect(),
            None => vec![tool.get("function").unwrap_or(tool)],
        }
    });
    declared.filter_map(tool).map(Arc::new).collect()
}

fn tool(declared: &Value) -> Option<ToolSpec> {
    let schema = ["parameters", "input_schema"]
        .iter()
        .find_map(|key| declared.get(key))
        .and_then(|schema| RawJson::from_value(schema).ok());
    Some(ToolSpec {
        name: declared.get("name")?.as_str()?.to_owned(),
        description: String::new(),
        parameters: schema.unwrap_or_else(RawJson::empty_object),
        access: Access::Read,
        touches: [].into(),
        kind: ToolKind::Other,
        tier: Tier::Full,
    })
}
