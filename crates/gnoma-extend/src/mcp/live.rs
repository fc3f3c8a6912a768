//! A connection to a server: made, its tools listed, calls carried.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use gnoma_core::{Secret, ToolOutcome, duration, json::RawJson};
use gnoma_net::Http;
use http::{HeaderName, HeaderValue};
use rmcp::{
    RoleClient,
    model::{
        CallToolRequestParams, JsonObject, PaginatedRequestParams, ProtocolVersion,
        ReadResourceRequestParams, ResourceContents, SubscriptionFilter, Tool,
    },
    service::{
        ClientInitializeError, ClientLifecycleMode, RunningService, ServiceError, Subscription,
        serve_client_with_lifecycle,
    },
    transport::{
        StreamableHttpClientTransport, async_rw::AsyncRwTransport, auth::AuthClient,
        streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use tokio::time::{Instant, sleep_until, timeout};

use super::{
    approval::Described,
    calls::{Calls, Running},
    definition::{Definition, ServerReach},
    handler::Handler,
    limits::{
        CALL_TIMEOUT, MAX_CALL, MAX_DESCRIPTION_BYTES, MAX_MESSAGE_BYTES, MAX_PAGES, MAX_RESOURCES,
        MAX_SCHEMA_BYTES, MAX_TOOLS,
    },
    oauth::{self, Tokens},
    process::{self, Process, Started, Stderr, Surroundings},
    result,
};

/// How often a silent call is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A connection. Dropped, it ends, and with it the server's process.
pub(super) struct Live {
    service: RunningService<RoleClient, Handler>,
    process: Option<Process>,
    calls: Calls,
    /// The tools, as they were listed when it was made.
    pub(super) tools: Vec<Described>,
    /// What of them is left out, a sentence each.
    pub(super) left_out: Vec<String>,
}

/// Connects to a server and lists its tools. `shakes_hands`: it is known to speak the wire with the handshake.
///
/// # Errors
/// Why it failed, for people and models.
pub(super) async fn connect(
    definition: &Definition,
    around: &Surroundings,
    stderr: &Stderr,
    handler: Handler,
    shakes_hands: bool,
) -> Result<Live, String> {
    let calls = handler.calls.clone();
    let lifecycle = if shakes_hands { ClientLifecycleMode::Initialize } else { lifecycle() };
    let (service, process) = match &definition.reach {
        ServerReach::Process { .. } => {
            let Started { mut process, stdin, stdout } =
                process::start(definition, around, stderr)?;
            let transport =
                AsyncRwTransport::new(stdout, stdin).with_max_line_length(MAX_MESSAGE_BYTES);
            match serve_client_with_lifecycle(handler, transport, lifecycle).await {
                Ok(service) => (service, Some(process)),
                Err(error) => {
                    process.wrote_all().await;
                    return Err(in_words(&error));
                }
            }
        }
        ServerReach::Http { url, headers } => {
            let tokens = around.tokens(url);
            let service = over_http(&around.http, http(url, headers)?, &tokens, handler, lifecycle);
            let service = service.await.map_err(|failure| failure.describe(&definition.name))?;
            (service, None)
        }
    };
    let mut live = Live { service, process, calls, tools: Vec::new(), left_out: Vec::new() };
    live.list().await?;
    Ok(live)
}

/// How a server is spoken to over HTTP.
fn http(
    url: &str,
    headers: &BTreeMap<String, Secret<String>>,
) -> Result<StreamableHttpClientTransportConfig, String> {
    let mut all = HashMap::new();
    for (name, value) in headers {
        let unusable = || format!("the header `{name}` cannot be sent");
        let mut value = HeaderValue::try_from(value.expose().as_str()).map_err(|_| unusable())?;
        value.set_sensitive(true);
        all.insert(HeaderName::try_from(name.as_str()).map_err(|_| unusable())?, value);
    }
    let mut config = StreamableHttpClientTransportConfig::with_uri(url).custom_headers(all);
    (config.max_sse_event_size, config.max_json_response_size) =
        (MAX_MESSAGE_BYTES, MAX_MESSAGE_BYTES);
    Ok(config)
}

/// Why a server could not be used.
#[derive(Debug)]
pub(super) struct Failure {
    /// For people.
    pub(super) why: String,
    /// What it said when it wanted to know who asks.
    pub(super) challenge: Option<String>,
}

impl Failure {
    fn other(why: String) -> Self {
        Self { why, challenge: None }
    }

    fn describe(self, name: &str) -> String {
        match self.challenge {
            Some(_) => format!("it requires a login; run `gnoma mcp login {name}`"),
            None => self.why,
        }
    }
}

impl From<ServiceError> for Failure {
    fn from(error: ServiceError) -> Self {
        let challenge = error.auth_challenge().map(str::to_owned);
        Self { why: spoken(error), challenge }
    }
}

/// Speaks to a server over HTTP, with its tokens, if there are any.
async fn over_http(
    http: &Http,
    config: StreamableHttpClientTransportConfig,
    tokens: &Tokens,
    handler: Handler,
    lifecycle: ClientLifecycleMode,
) -> Result<RunningService<RoleClient, Handler>, Failure> {
    let client = http.raw(&config.uri).map_err(|error| Failure::other(error.to_string()))?;
    let manager = oauth::manager(http, &config.uri, tokens).await.map_err(Failure::other)?;
    // One kind of client for servers with tokens and without: each kind is another copy of the whole wire.
    let transport =
        StreamableHttpClientTransport::with_client(AuthClient::new(client, manager), config);
    serve_client_with_lifecycle(handler, transport, lifecycle).await.map_err(|error| {
        let challenge = error.auth_challenge().map(str::to_owned);
        let wanted = error.is_authorization_required().then(String::new);
        Failure { why: in_words(&error), challenge: challenge.or(wanted) }
    })
}

/// What the server at an address says to somebody whom it does not know.
pub(super) async fn challenge(http: &Http, url: &str) -> Option<String> {
    let tokens = Tokens::in_memory();
    let failure = connect_to(http, url, &tokens, Handler::new(""), false).await.err()?;
    failure.challenge.filter(|challenge| !challenge.is_empty())
}

/// Connects to an address and asks nothing. `stateful`: by the wire with a handshake only.
pub(super) async fn connect_to(
    http: &Http,
    url: &str,
    tokens: &Tokens,
    handler: Handler,
    stateful: bool,
) -> Result<Live, Failure> {
    let config = self::http(url, &BTreeMap::new()).map_err(Failure::other)?;
    let calls = handler.calls.clone();
    let lifecycle = if stateful { ClientLifecycleMode::Initialize } else { lifecycle() };
    let service = over_http(http, config, tokens, handler, lifecycle).await?;
    Ok(Live { service, process: None, calls, tools: Vec::new(), left_out: Vec::new() })
}

/// The newer wire where the server speaks it, else the one with a handshake.
fn lifecycle() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: Some(ProtocolVersion::V_2025_11_25),
    }
}

impl Live {
    /// Whether it can still be used.
    pub(super) fn is_open(&self) -> bool {
        !self.service.is_closed() && !self.service.peer().is_transport_closed()
    }

    /// The number of its process.
    pub(super) fn process_id(&self) -> Option<i32> {
        self.process.as_ref().and_then(Process::id)
    }

    /// Lists the tools again.
    pub(super) async fn list(&mut self) -> Result<(), String> {
        let (tools, left_out) = self.listed().await?;
        (self.tools, self.left_out) = (tools, left_out);
        Ok(())
    }

    /// The tools as the server lists them now, and what of them is left out.
    pub(super) async fn listed(&self) -> Result<(Vec<Described>, Vec<String>), String> {
        let (mut tools, mut left_out) = (Vec::new(), Vec::new());
        let mut cursor = None;
        let offers_tools =
            self.service.peer_info().is_none_or(|info| info.capabilities.tools.is_some());
        for _ in 0..MAX_PAGES {
            if !offers_tools {
                break;
            }
            let params = PaginatedRequestParams::default().with_cursor(cursor.take());
            let page = self.service.peer().list_tools(Some(params)).await.map_err(spoken)?;
            for tool in page.tools {
                match described(&tool) {
                    _ if tools.len() >= MAX_TOOLS => {
                        left_out.push(format!("`{}`: more than {MAX_TOOLS} tools", tool.name));
                        self.answered();
                        return Ok((tools, left_out));
                    }
                    Ok(tool) => tools.push(tool),
                    Err(why) => left_out.push(format!("`{}`: {why}", tool.name)),
                }
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        self.answered();
        Ok((tools, left_out))
    }

    /// The first page of the tools, with what the server says when it refuses.
    pub(super) async fn listed_plain(&self) -> Result<Vec<Described>, Failure> {
        let page = self.service.peer().list_tools(None).await?;
        Ok(page.tools.iter().filter_map(|tool| described(tool).ok()).collect())
    }

    /// Calls a tool for nobody.
    pub(super) async fn call_plain(&self, tool: &str, arguments: RawJson) -> Result<(), Failure> {
        let arguments: JsonObject =
            arguments.read().map_err(|error| Failure::other(error.to_string()))?;
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        self.service.call_tool(params).await?;
        Ok(())
    }

    /// Ends the connection as the protocol wants it.
    pub(super) async fn close(mut self) {
        const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
        self.service.close_with_timeout(CLOSE_TIMEOUT).await.ok();
    }

    /// What it is spoken to by.
    pub(super) fn service(&self) -> &RunningService<RoleClient, Handler> {
        &self.service
    }

    /// Whether the server has prompts.
    pub(super) fn has_prompts(&self) -> bool {
        self.service.peer_info().is_some_and(|info| info.capabilities.prompts.is_some())
    }

    /// Whether the server has resources.
    pub(super) fn has_resources(&self) -> bool {
        self.service.peer_info().is_some_and(|info| info.capabilities.resources.is_some())
    }

    /// Whether it speaks the newer wire, on which changes are told only to who listens for them.
    pub(super) fn is_stateless(&self) -> bool {
        let newer = |version: &ProtocolVersion| *version >= ProtocolVersion::NO_INITIALIZE;
        self.service.peer_info().is_some_and(|info| newer(&info.protocol_version))
    }

    /// Listens for changes of the list of tools.
    pub(super) async fn listen(&self) -> Result<Subscription, ServiceError> {
        let filter = SubscriptionFilter::builder().tools_list_changed().build();
        self.service.peer().listen(filter).await
    }

    /// The resources, a line each.
    pub(super) async fn resources(&self) -> Result<Vec<String>, String> {
        let mut lines = Vec::new();
        let mut cursor = None;
        for _ in 0..MAX_PAGES {
            let params = PaginatedRequestParams::default().with_cursor(cursor.take());
            let page = self.service.peer().list_resources(Some(params)).await.map_err(spoken)?;
            for resource in page.resources {
                let about = resource.description.or(resource.title).unwrap_or_default();
                lines.push(format!("{}: {} {about}\n", resource.uri, resource.name));
            }
            cursor = page.next_cursor;
            if cursor.is_none() || lines.len() >= MAX_RESOURCES {
                break;
            }
        }
        self.answered();
        Ok(lines)
    }

    /// Reads a resource.
    pub(super) async fn read(&self, uri: &str) -> Result<Vec<ResourceContents>, String> {
        let params = ReadResourceRequestParams::new(uri);
        let read = timeout(CALL_TIMEOUT, self.service.read_resource(params)).await;
        let read = read.map_err(|_late| "the server did not answer in time".to_owned())?;
        self.answered();
        Ok(read.map_err(spoken)?.contents)
    }

    /// Something that was asked for has come: the count of what comes unasked begins again.
    fn answered(&self) {
        if let Some(process) = &self.process {
            process.unasked.store(0, std::sync::atomic::Ordering::Relaxed);
        }
    }

    /// Calls a tool.
    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: &RawJson,
        timeout: Option<Duration>,
        running: Running,
    ) -> ToolOutcome {
        let arguments: JsonObject = match arguments.read() {
            Ok(arguments) => arguments,
            Err(error) => {
                return ToolOutcome::failed(format!("the arguments are not an object: {error}"));
            }
        };
        let (stop, is_stored) = (running.cx.stop.clone(), running.cx.stores_large_results);
        let begun = self.calls.begin(running);
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let call = self.service.call_tool(params);
        let timeout = timeout.filter(|time| !time.is_zero()).unwrap_or(CALL_TIMEOUT);
        let silent = async {
            let last = Instant::now() + MAX_CALL;
            loop {
                let until = begun
                    .heard()
                    .map_or_else(|| Instant::now() + LOOK_EVERY, |heard| heard + timeout);
                sleep_until(until.min(last)).await;
                let now = Instant::now();
                if now >= last || begun.heard().is_some_and(|heard| now >= heard + timeout) {
                    return;
                }
            }
        };
        let outcome = tokio::select! {
            biased;
            () = stop.cancelled() => return ToolOutcome::Interrupted(String::new()),
            called = call => called,
            () = silent => return ToolOutcome::failed(format!(
                "the server did not answer within {}; the call was cancelled",
                duration::words(timeout)
            )),
        };
        self.answered();
        match outcome {
            Ok(answer) => result::outcome(&answer, is_stored),
            Err(error) => ToolOutcome::failed(spoken(error)),
        }
    }
}

/// Why no connection came about, without the names of types.
fn in_words(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::TransportError { error, .. } => match error.error.to_string() {
            said if said.contains("channel closed") || said.contains("roken pipe") => {
                "it ended before it answered".to_owned()
            }
            said => said,
        },
        ClientInitializeError::ConnectionClosed(_) => "it ended before it answered".to_owned(),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => in_words(fallback),
        ClientInitializeError::JsonRpcError(error) => format!("it refused: {}", error.message),
        ClientInitializeError::NoCompatibleProtocolVersion { .. } => {
            "it does not speak a version of the protocol that gnoma supports".to_owned()
        }
        _ => "its first answer is not valid in the protocol".to_owned(),
    }
}

/// An error in a server's words or ours.
pub(super) fn spoken(error: ServiceError) -> String {
    match error {
        ServiceError::McpError(error) => format!("the server refused: {}", error.message),
        ServiceError::TransportClosed => "the server has ended".to_owned(),
        other => format!("the server could not be asked: {other}"),
    }
}

/// A tool within the limits.
fn described(tool: &Tool) -> Result<Described, String> {
    let schema = serde_json::to_string(&*tool.input_schema).map_err(|error| error.to_string())?;
    if schema.len() > MAX_SCHEMA_BYTES {
        return Err(format!("the schema of its arguments is larger than {MAX_SCHEMA_BYTES} bytes"));
    }
    let title = tool.title.as_deref().filter(|_| tool.description.is_none());
    let whole = tool.description.as_deref().or(title).unwrap_or_default();
    let kept = gnoma_core::cut::head(whole, MAX_DESCRIPTION_BYTES);
    let more = if kept.len() < whole.len() { " […]" } else { "" };
    Ok(Described { name: tool.name.to_string(), description: format!("{kept}{more}"), schema })
}

/// A connection that several may use.
pub(super) type SharedLive = Arc<Live>;
