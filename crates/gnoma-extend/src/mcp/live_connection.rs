//! A connection to a server: made, its lists read, calls carried.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use gnoma_core::{
    ToolOutcome, duration, json::RawJson, sync::Mutex, task::box_future, tool::BoxFuture,
};
use gnoma_net::Http;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep_until, timeout};

use super::{
    approval::DescribedTool,
    calls::{Calls, ServerCall, ServerCallGuard},
    definition::{Definition, ServerReach},
    error::CallError,
    failure::{CallFailure, ConnectionError},
    handler::Handler,
    http::{HeaderParameter, HttpLink},
    limits::{CALL_TIMEOUT, MAX_CALL, PROBE_TIMEOUT},
    listed_tool::ListedTool,
    lists::{Collector, ListElement},
    oauth::{Authorizer, Tokens},
    peer::{Link, Peer},
    process::{self, Process, ServerEnvironment, StartedProcess, Stderr},
    result,
    stdio::Stdio,
    version::Handshake,
    wire::rpc::{HEADER_MISMATCH, RequestParams},
};

/// The interval at which a silent call is checked.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The tools of a server, and what of its list is left out, a sentence each.
pub(super) type ToolList = (Vec<DescribedTool>, Vec<String>);

/// A connection. Dropped, it ends, and with it the server's process.
pub(super) struct LiveConnection {
    peer: Peer,
    process: Option<Process>,
    calls: Calls,
    /// The arguments that are sent in headers, by the names of tools.
    headers: Mutex<HashMap<String, Vec<HeaderParameter>>>,
}

/// Connects to a server.
///
/// # Errors
/// The program of the server could not be started, or the server refused or could not be reached.
pub(super) async fn connect_server(
    definition: &Definition,
    around: &ServerEnvironment,
    stderr: &Stderr,
    handler: Handler,
    handshake: Handshake,
) -> Result<LiveConnection, ConnectionError> {
    let handler = handler.with_reporter(around.reporter.clone());
    match &definition.reach {
        ServerReach::Process { .. } => {
            match start_program(definition, around, stderr, handler.clone(), handshake).await {
                // There are programs that end when something comes before the handshake.
                Err(ConnectionError::EndedEarly) if handshake == Handshake::Ask => {
                    stderr.clear();
                    start_program(definition, around, stderr, handler, Handshake::Yes).await
                }
                started => started,
            }
        }
        ServerReach::Http { url, headers } => {
            let authorizer = Authorizer::new(&around.http, url, &around.tokens_for(url));
            let link = HttpLink::new(&around.http, url, headers, authorizer, handler.clone());
            let peer = Peer::open(Link::Http(Box::new(link)), handler.clone(), handshake).await;
            let live = peer.map(|peer| LiveConnection::new(peer, None, &handler));
            live.map_err(|error| CallFailure::new(error, definition).into())
        }
    }
}

/// Starts a program and connects to it.
async fn start_program(
    definition: &Definition,
    around: &ServerEnvironment,
    stderr: &Stderr,
    handler: Handler,
    handshake: Handshake,
) -> Result<LiveConnection, ConnectionError> {
    let StartedProcess { mut process, stdin, stdout } =
        process::start_program(definition, around, stderr)?;
    let link = Link::Program(Stdio::new(stdin, stdout, handler.clone(), stderr.clone()));
    match Peer::open(link, handler.clone(), handshake).await {
        Ok(peer) => Ok(LiveConnection::new(peer, Some(process), &handler)),
        Err(CallError::Ended) => {
            process.wrote_all().await;
            Err(ConnectionError::EndedEarly)
        }
        Err(error) => Err(CallFailure::Other(Box::new(error)).into()),
    }
}

/// Returns the challenge with which the server at an address answers an unknown client.
pub(super) async fn fetch_challenge(http: &Http, url: &str) -> Option<String> {
    let tokens = Tokens::in_memory();
    match connect_to(http, url, &tokens, Handler::new(""), Handshake::Ask).await.err()? {
        CallError::Unauthorized(challenge) => Some(challenge).filter(|it| !it.is_empty()),
        _ => None,
    }
}

/// Connects to an address and asks nothing.
pub(super) async fn connect_to(
    http: &Http,
    url: &str,
    tokens: &Tokens,
    handler: Handler,
    handshake: Handshake,
) -> Result<LiveConnection, CallError> {
    let authorizer = Authorizer::new(http, url, tokens);
    let link = HttpLink::new(http, url, &BTreeMap::new(), authorizer, handler.clone());
    let peer = Peer::open(Link::Http(Box::new(link)), handler.clone(), handshake).await?;
    Ok(LiveConnection::new(peer, None, &handler))
}

impl LiveConnection {
    fn new(peer: Peer, process: Option<Process>, handler: &Handler) -> Self {
        Self { peer, process, calls: handler.calls.clone(), headers: Mutex::default() }
    }

    /// Returns whether it can still be used.
    pub(super) fn is_open(&self) -> bool {
        self.peer.is_open()
    }

    /// The number of its process.
    pub(super) fn process_id(&self) -> Option<i32> {
        self.process.as_ref().and_then(Process::id)
    }

    /// The tools as the server lists them now, and what of them is left out.
    ///
    /// # Errors
    /// The server cannot be asked.
    pub(super) fn list_tools(&self) -> BoxFuture<'_, Result<ToolList, CallError>> {
        box_future(async move {
            let listed = self.list_pages::<ListedTool>("tools").await?;
            let mut faults = listed.describe_faults();
            let mut tools = Vec::new();
            let mut headers = HashMap::new();
            for ListedTool { described, headers: marked } in listed.elements {
                match marked {
                    Err(why) if self.peer.has_headers() => {
                        faults.push(format!("`{}`: {why}", described.name));
                        continue;
                    }
                    Ok(marked) if !marked.is_empty() => {
                        headers.insert(described.name.clone(), marked);
                    }
                    Ok(_) | Err(_) => {}
                }
                tools.push(described);
            }
            *self.headers.lock() = headers;
            faults.splice(0..0, self.peer.info.notes.iter().cloned());
            Ok((tools, faults))
        })
    }

    /// Reads a list of the server, page by page. A server that has no such thing has an empty one.
    pub(super) async fn list_pages<T: ListElement>(
        &self,
        kind: &str,
    ) -> Result<Collector<T>, CallError> {
        let mut all = Collector::new();
        let info = &self.peer.info;
        if !info.may_list(kind) {
            return Ok(all);
        }
        let is_declared = info.has_capability(kind);
        let limit = if is_declared { CALL_TIMEOUT } else { PROBE_TIMEOUT };
        let method = format!("{kind}/list");
        let mut cursor: Option<String> = None;
        loop {
            let mut params = Map::new();
            if let Some(cursor) = &cursor {
                params.insert("cursor".to_owned(), cursor.clone().into());
            }
            let page = self.peer.request_within(limit, &method, &params.into()).await;
            let next = match (page, &cursor) {
                (Ok(page), _) => all.add_page(&page),
                (Err(error), Some(after)) => {
                    all.break_off(after, &error.to_string());
                    None
                }
                (Err(CallError::Refused(_)), None) if !is_declared || info.is_silent() => None,
                (Err(CallError::Status(..) | CallError::Late), None) if !is_declared => None,
                (Err(error), None) => return Err(error),
            };
            match next {
                Some(next) => cursor = Some(next),
                None => break,
            }
        }
        self.reset_unsolicited();
        Ok(all)
    }

    /// Asks something that takes no long time.
    ///
    /// # Errors
    /// The server cannot be asked, or refuses.
    pub(super) async fn send_short_request(
        &self,
        method: &str,
        params: Map<String, Value>,
    ) -> Result<Value, CallError> {
        let answer = self.peer.request_within(CALL_TIMEOUT, method, &params.into()).await;
        self.reset_unsolicited();
        answer
    }

    /// Calls a tool for nobody.
    pub(super) async fn call_plain(
        &self,
        tool: &str,
        arguments: &RawJson,
    ) -> Result<(), CallError> {
        self.send_call(tool, arguments, None, None).await.map(drop)
    }

    /// Ends the connection as the protocol wants it.
    pub(super) async fn close(self) {
        const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
        // Dropping the connection ends it without an answer.
        timeout(CLOSE_TIMEOUT, self.peer.close()).await.ok();
    }

    /// Returns whether the server has resources.
    pub(super) fn has_resources(&self) -> bool {
        self.peer.info.has_capability("resources")
    }

    /// Returns whether it speaks the newer wire, on which changes are told only to who listens for them.
    pub(super) fn is_stateless(&self) -> bool {
        self.peer.info.is_stateless()
    }

    /// Listens for changes of the list of tools until the server ends that.
    pub(super) async fn listen_for_changes(&self) -> Result<(), CallError> {
        let mut params = Map::new();
        params.insert("notifications".to_owned(), json!({"toolsListChanged": true}));
        self.peer.request("subscriptions/listen", &params.into()).await.map(drop)
    }

    /// Resets the count of unrequested data, because something that was asked for has arrived.
    fn reset_unsolicited(&self) {
        if let Some(process) = &self.process {
            process.reset_unsolicited();
        }
    }

    /// Sends a call. Where its headers are not what the server expects, the list of tools is read anew and the call
    /// sent once more: the server has not worked on it.
    async fn send_call(
        &self,
        tool: &str,
        arguments: &RawJson,
        token: Option<u64>,
        traceparent: Option<String>,
    ) -> Result<Value, CallError> {
        let mut params = Map::new();
        let headers = self.headers_of(tool, arguments);
        params.insert("name".to_owned(), tool.into());
        if let Some(token) = token {
            let mut meta = json!({"progressToken": token});
            // The key has no prefix, as SEP-414 of the protocol says.
            if let (Some(meta), Some(span)) = (meta.as_object_mut(), traceparent) {
                meta.insert("traceparent".to_owned(), span.into());
            }
            params.insert("_meta".to_owned(), meta);
        }
        let params = RequestParams::with_arguments(params, arguments);
        match self.peer.request_whole("tools/call", &params, &headers).await {
            Err(CallError::Refused(error)) if error.code == HEADER_MISMATCH => {
                self.list_tools().await?;
                let headers = self.headers_of(tool, arguments);
                self.peer.request_whole("tools/call", &params, &headers).await
            }
            outcome => outcome,
        }
    }

    fn headers_of(&self, tool: &str, arguments: &RawJson) -> Vec<(String, String)> {
        let all = self.headers.lock();
        let Some(marked) = all.get(tool).filter(|_| self.peer.has_headers()) else {
            return Vec::new();
        };
        let arguments = arguments.read().unwrap_or_default();
        marked.iter().filter_map(|parameter| parameter.to_header(&arguments)).collect()
    }

    /// Calls a tool of the server that is defined so.
    pub(super) async fn call_tool(
        &self,
        definition: &Definition,
        tool: &str,
        arguments: &RawJson,
        timeout: Option<Duration>,
        running: ServerCall,
    ) -> ToolOutcome {
        if let Err(error) = arguments.read::<HashMap<String, IgnoredAny>>() {
            return ToolOutcome::failure_text(format!("the arguments are not an object: {error}"));
        }
        let (stop, is_stored) = (running.cx.stop.clone(), running.cx.stores_large_results);
        let traceparent = running.cx.traceparent.clone();
        let begun = self.calls.begin_call(running);
        let call = self.send_call(tool, arguments, Some(begun.number), traceparent);
        let timeout = timeout.filter(|time| !time.is_zero()).unwrap_or(CALL_TIMEOUT);
        let silent = wait_for_silence(&begun, timeout);
        let outcome = tokio::select! {
            biased;
            () = stop.cancelled() => return ToolOutcome::Interrupted(String::new()),
            called = call => called,
            () = silent => return ToolOutcome::failure_text(format!(
                "the server did not answer within {}; the call was cancelled",
                duration::format_duration(timeout)
            )),
        };
        self.reset_unsolicited();
        match outcome {
            Ok(answer) => result::to_outcome(&answer, is_stored),
            Err(error) => {
                ToolOutcome::failure_text(CallFailure::new(error, definition).to_string())
            }
        }
    }
}

/// Waits until a call was silent for `timeout`, or has taken as long as any call may.
async fn wait_for_silence(begun: &ServerCallGuard, timeout: Duration) {
    let last = Instant::now() + MAX_CALL;
    loop {
        let until = begun
            .last_activity()
            .map_or_else(|| Instant::now() + LOOK_EVERY, |heard| heard + timeout);
        sleep_until(until.min(last)).await;
        let now = Instant::now();
        if now >= last || begun.last_activity().is_some_and(|heard| now >= heard + timeout) {
            return;
        }
    }
}

/// A connection that several may use.
pub(super) type SharedConnection = Arc<LiveConnection>;
