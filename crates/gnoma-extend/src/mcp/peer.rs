//! The peer of an MCP connection: stdio or HTTP, with or without the handshake.

use std::{fmt, time::Duration};

use serde_json::{Map, Value};
use tokio::time::timeout;

use super::{
    error::CallError,
    handler::Handler,
    http::{HttpLink, OutgoingRequest},
    limits::{MAX_INPUT_ROUNDS, PROBE_TIMEOUT},
    stdio::Stdio,
    version::{self, Handshake, STATELESS, ServerInfo},
    wire::rpc::{self, RequestParams, RpcError, UNSUPPORTED_VERSION},
};

/// The transport over which messages reach a server.
pub(super) enum Link {
    /// By the standard input and output of a program.
    Program(Stdio),
    /// Over HTTP requests and streams.
    Http(Box<HttpLink>),
}

/// A server, once it is known which wire it speaks. Dropped, the connection ends.
pub(super) struct Peer {
    link: Link,
    handler: Handler,
    pub(super) info: ServerInfo,
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer").field("info", &self.info).finish_non_exhaustive()
    }
}

impl Peer {
    /// Finds out which wire a server speaks, and begins to speak it.
    ///
    /// # Errors
    /// [`CallError::Ended`] where a program may be one that takes nothing before the handshake.
    pub(super) async fn open(
        link: Link,
        handler: Handler,
        handshake: Handshake,
    ) -> Result<Self, CallError> {
        let mut peer = Self { link, handler, info: ServerInfo::default() };
        if handshake == Handshake::Ask
            && let Some(info) = peer.discover().await?
        {
            peer.info = info;
            return Ok(peer);
        }
        let mut reported = peer.handler.report_request("initialize");
        let answer = match &peer.link {
            Link::Http(link) => link.start_session().await?,
            Link::Program(link) => {
                let answer = link.request("initialize", &version::initialize_params()).await?;
                link.send_line(rpc::notification_line("notifications/initialized", &Map::new()))
                    .await?;
                answer
            }
        };
        if let Some(request) = &mut reported {
            request.failed = false;
        }
        drop(reported);
        peer.info = ServerInfo::from_answer(&answer, false);
        if let Link::Http(link) = &peer.link {
            link.follow_events().await;
        }
        Ok(peer)
    }

    /// Returns the facts about a server that speaks the wire without a handshake; `None` where the server does not
    /// speak it.
    #[expect(clippy::match_same_arms, reason = "each case stands beside its reason")]
    async fn discover(&self) -> Result<Option<ServerInfo>, CallError> {
        let mut is_first = true;
        let nothing = RequestParams::default();
        loop {
            let asked = self.send_request("server/discover", &nothing, &[], true);
            let asked = timeout(PROBE_TIMEOUT, asked).await.unwrap_or(Err(CallError::Late));
            return match asked {
                Ok(answer) if has_version(answer.get("supportedVersions"), STATELESS) => {
                    Ok(Some(ServerInfo::from_answer(&answer, true)))
                }
                Ok(_) => Ok(None),
                Err(CallError::Refused(error)) if error.code == UNSUPPORTED_VERSION => {
                    let supported = error.data.get("supported");
                    if has_version(supported, STATELESS) && std::mem::take(&mut is_first) {
                        continue;
                    }
                    let has_older = supported.and_then(Value::as_array).is_some_and(|all| {
                        all.iter().filter_map(Value::as_str).any(|one| one < STATELESS)
                    });
                    if has_older { Ok(None) } else { Err(CallError::Refused(error)) }
                }
                Err(CallError::Refused(error)) if error.is_stateless() => {
                    Err(CallError::Refused(error))
                }
                Err(
                    CallError::Refused(_)
                    | CallError::Unreadable(_)
                    | CallError::Status(..)
                    | CallError::Broken(_)
                    | CallError::SessionLost(_)
                    | CallError::Late,
                ) => Ok(None),
                Err(
                    error @ (CallError::Ended
                    | CallError::Unauthorized(_)
                    | CallError::Login(_)
                    | CallError::Busy(..)
                    | CallError::Moved(_)
                    | CallError::Unreachable(_)),
                ) => Err(error),
            };
        }
    }

    /// Returns whether it can still be used.
    pub(super) fn is_open(&self) -> bool {
        match &self.link {
            Link::Program(link) => link.is_open(),
            Link::Http(link) => link.is_open(),
        }
    }

    /// Returns whether arguments may have to be sent in headers.
    pub(super) fn has_headers(&self) -> bool {
        matches!(self.link, Link::Http(_)) && self.info.is_stateless()
    }

    /// Sends a request, and gives its result.
    pub(super) async fn request(
        &self,
        method: &str,
        params: &RequestParams,
    ) -> Result<Value, CallError> {
        self.send_request(method, params, &[], self.info.is_stateless()).await
    }

    /// The same, within a time.
    pub(super) async fn request_within(
        &self,
        limit: Duration,
        method: &str,
        params: &RequestParams,
    ) -> Result<Value, CallError> {
        let asked = timeout(limit, self.request_whole(method, params, &[])).await;
        asked.unwrap_or(Err(CallError::Late))
    }

    /// Sends a request, answers what the server asks for meanwhile, and gives the result in the end.
    pub(super) async fn request_whole(
        &self,
        method: &str,
        params: &RequestParams,
        headers: &[(String, String)],
    ) -> Result<Value, CallError> {
        let mut more = params.clone();
        for _ in 0..=MAX_INPUT_ROUNDS {
            let result =
                self.send_request(method, &more, headers, self.info.is_stateless()).await?;
            let kind = result.get("resultType").and_then(Value::as_str);
            if !self.info.is_stateless() || kind != Some("input_required") {
                return Ok(result);
            }
            more.clone_from(params);
            self.give_input(&result, &mut more.fields).await?;
        }
        let said = format!("it asked for more than {MAX_INPUT_ROUNDS} times");
        Err(CallError::Refused(RpcError::new(0, said)))
    }

    /// Puts into a request what the server wants to know before it goes on.
    async fn give_input(
        &self,
        result: &Value,
        params: &mut Map<String, Value>,
    ) -> Result<(), CallError> {
        if let Some(requests) = result.get("inputRequests").and_then(Value::as_object) {
            let mut responses = Map::new();
            for (key, request) in requests {
                let method = request.get("method").and_then(Value::as_str).unwrap_or_default();
                let wanted = request.get("params").cloned().unwrap_or_default();
                let answer = self.handler.answer_request(method, &wanted).await;
                responses.insert(key.clone(), answer.map_err(CallError::Refused)?);
            }
            params.insert("inputResponses".to_owned(), Value::Object(responses));
        }
        if let Some(state) = result.get("requestState") {
            params.insert("requestState".to_owned(), state.clone());
        }
        Ok(())
    }

    async fn send_request(
        &self,
        method: &str,
        params: &RequestParams,
        headers: &[(String, String)],
        is_stateless: bool,
    ) -> Result<Value, CallError> {
        let mut params = params.clone();
        if is_stateless {
            version::add_client_meta(&mut params.fields);
        }
        let mut reported = self.handler.report_request(method);
        let answer = match &self.link {
            Link::Program(link) => link.request(method, &params).await,
            Link::Http(link) => {
                link.send_request(&OutgoingRequest {
                    method,
                    params: &params,
                    headers,
                    is_stateless,
                })
                .await
            }
        };
        if let Some(request) = &mut reported {
            request.failed = answer.is_err();
        }
        answer
    }

    /// Ends the connection as the protocol wants it.
    pub(super) async fn close(self) {
        if let Link::Http(link) = &self.link {
            link.close().await;
        }
    }
}

fn has_version(versions: Option<&Value>, version: &str) -> bool {
    let all = versions.and_then(Value::as_array).into_iter().flatten();
    all.filter_map(Value::as_str).any(|one| one == version)
}
