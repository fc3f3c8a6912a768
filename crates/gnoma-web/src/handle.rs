//! One request and its response.

use std::{path::PathBuf, sync::Arc};

use bytes::Bytes;
use gnoma_core::{
    json_value::json,
    protocol::{
        self, Client, ClientMessage, Reply, RequestError, RequestErrorKind, RequestId,
        ServerMessage, SessionSpec, TaskRequest, VERSION,
    },
    tool::BoxFuture,
};
use http_body::Body;
use hyper::{
    HeaderMap, Request, StatusCode,
    header::{HeaderName, HeaderValue, SET_COOKIE},
};
use serde::Deserialize;
use serde_json::Value;
use tokio::{sync::Semaphore, time::timeout};

use crate::{
    access::{Access, Admission, AuthorizedClient, Denial, Rights},
    answer::{self, HttpResponse},
    assets::BUILD,
    body::{self, ResponseBody},
    call,
    carried::{self, SETTINGS},
    events,
    limits::{
        ANSWER_PATIENCE, MAX_BODIES, MAX_BODY_BYTES, MAX_EXCHANGE_BYTES, MAX_NAME_BYTES,
        MAX_STREAMS, MAX_WATCHED_STREAMS, MAX_WATCHER_BODIES, MAX_WATCHER_BODY_BYTES,
    },
    route::{self, Route, StreamQuery},
};

/// The name that a client has over all its requests, so that one that it sends again has no second effect.
const CLIENT: HeaderName = HeaderName::from_static("gnoma-client");
/// Names one request among those of its client: a number.
const REQUEST_ID: HeaderName = HeaderName::from_static("idempotency-key");
/// The last event that a browser has read.
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
/// Shortest name of a client: one that nobody guesses.
const MIN_NAME_BYTES: usize = 8;

/// The services that the page and the API need of the program that they are a part of.
pub trait Site: Send + Sync + 'static {
    /// The program and its version, for people.
    fn program_version(&self) -> String;

    /// The folder that sessions work in unless they are opened with another one.
    fn default_folder(&self) -> PathBuf;

    /// A name for a client, which nobody guesses.
    fn client_name(&self) -> String;

    /// Connects a client of that name to the host; [`Hello::client`](gnoma_core::protocol::Hello).
    fn connect_client(&self, name: String) -> BoxFuture<'_, Result<Client, RequestError>>;

    /// The OpenAPI description of the API, if the program carries one.
    fn api_description(&self) -> Option<String>;

    /// Metrics in Prometheus' text format; `None` if they are not offered.
    fn metrics(&self) -> BoxFuture<'_, Option<String>> {
        Box::pin(std::future::ready(None))
    }

    /// Reports the cost of models in all sessions of the last 30 days, as JSON.
    ///
    /// # Errors
    /// The site has no ledger, or it cannot be read.
    fn usage_report(&self) -> BoxFuture<'_, Result<String, RequestError>> {
        let error = RequestError::new(RequestErrorKind::NotFound, "this server has no ledger");
        Box::pin(std::future::ready(Err(error)))
    }

    /// Adds what nobody sets over HTTP: environment, profile, a folder where none is named.
    fn complete_spec(&self, spec: SessionSpec) -> SessionSpec;
}

/// The most that clients with the same rights may take at once, so that they do not take the place of others.
#[derive(Clone)]
struct Quota {
    bodies: Arc<Semaphore>,
    body_bytes: usize,
    streams: Arc<Semaphore>,
}

impl Quota {
    fn new(bodies: usize, body_bytes: usize, streams: usize) -> Self {
        let places = |count| Arc::new(Semaphore::new(count));
        Self { bodies: places(bodies), body_bytes, streams: places(streams) }
    }
}

/// Answers requests, wherever they come from. Clones share their limits.
#[derive(Clone)]
pub struct Handler {
    site: Arc<dyn Site>,
    access: Arc<Access>,
    steering: Quota,
    watching: Quota,
}

impl Handler {
    /// Answers those that are let in, by what the site has.
    #[must_use]
    pub fn new(site: Arc<dyn Site>, access: Arc<Access>) -> Self {
        Self {
            site,
            access,
            steering: Quota::new(MAX_BODIES, MAX_BODY_BYTES, MAX_STREAMS),
            watching: Quota::new(MAX_WATCHER_BODIES, MAX_WATCHER_BODY_BYTES, MAX_WATCHED_STREAMS),
        }
    }

    fn quota_for(&self, rights: Rights) -> &Quota {
        match rights {
            Rights::Steer => &self.steering,
            Rights::Watch => &self.watching,
        }
    }

    /// Answers a request, whatever it is.
    pub async fn answer_request<B>(&self, request: Request<B>) -> HttpResponse
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let (head, body) = request.into_parts();
        let route = route::parse_route(&head.method, head.uri.path(), head.uri.query());
        let reads = matches!(route, Ok(Route::Page(_)));
        if let Err(denial) = self.access.check_host_and_origin(&head.method, &head.headers, reads) {
            let is_lost = reads && denial == Denial::Host;
            return answer::add_security_headers(
                match is_lost.then(|| self.access.host()).flatten() {
                    Some(host) => answer::misdirected_response(host),
                    None => answer::denial_response(denial),
                },
            );
        }
        let answer = match route {
            Err(nowhere) => answer::no_route_response(nowhere),
            Ok(Route::Page(asset)) => answer::file_response(asset, &head.headers),
            Ok(Route::Exchange) => self.exchange_token(&head.headers, body).await,
            Ok(route) => match self.access.authenticate_request(&head.method, &head.headers) {
                Err(denial) => answer::denial_response(denial),
                Ok(admitted) => {
                    if let Some(admission) = head.extensions.get::<Admission>() {
                        admission.set_admitted();
                    }
                    self.let_in(route, admitted, &head.headers, body).await
                }
            },
        };
        answer::add_security_headers(answer)
    }

    async fn exchange_token<B: Body<Data = Bytes> + Unpin>(
        &self,
        headers: &HeaderMap,
        body: B,
    ) -> HttpResponse {
        #[derive(Deserialize)]
        struct ShownToken {
            token: String,
        }
        let bytes = match body::read_body(body, MAX_EXCHANGE_BYTES).await {
            Ok(bytes) => bytes,
            Err(why) => return answer::unread_body_response(why, MAX_EXCHANGE_BYTES),
        };
        let shown = gnoma_core::json::from_bytes::<ShownToken>(&bytes).map_err(|_| Denial::Token);
        let found = shown.and_then(|shown| {
            let (rights, cookie, key) = self.access.exchange_token(&shown.token, headers)?;
            Ok((rights, cookie, json!({ "key": key })))
        });
        match found {
            Err(denial) => answer::denial_response(denial),
            Ok((rights, cookie, mut hello)) => {
                merge_objects(&mut hello, self.describe_server(rights));
                let mut answer = answer::json_response(StatusCode::OK, &hello);
                if let Ok(cookie) = HeaderValue::from_str(&cookie) {
                    answer.headers_mut().insert(SET_COOKIE, cookie);
                }
                answer
            }
        }
    }

    /// Describes this server to a client.
    fn describe_server(&self, rights: Rights) -> Value {
        json!({
            "version": VERSION,
            "program": self.site.program_version(),
            "build": BUILD,
            "rights": rights.name(),
            "folder": self.site.default_folder(),
            "settings": SETTINGS,
        })
    }

    /// Answers somebody who has shown what they may do.
    async fn let_in<B: Body<Data = Bytes> + Unpin>(
        &self,
        route: Route,
        admitted: AuthorizedClient,
        headers: &HeaderMap,
        body: B,
    ) -> HttpResponse {
        let rights = admitted.rights();
        match route {
            Route::Hello => answer::json_response(StatusCode::OK, &self.describe_server(rights)),
            Route::Description => match self.site.api_description() {
                Some(text) => answer::json_text_response(text),
                None => answer::no_route_response(route::RouteError::Missing),
            },
            Route::Usage => self.report_usage(rights).await,
            Route::Metrics => match self.site.metrics().await {
                Some(text) => answer::metrics(text),
                None => answer::no_route_response(route::RouteError::Missing),
            },
            Route::Events(wanted) => self.stream_events(wanted, admitted, headers).await,
            // Nothing is read of what would be refused whatever it says.
            Route::Call { session, name }
                if rights == Rights::Watch && !carried::is_look(&name, session.as_ref()) =>
            {
                answer::denial_response(Denial::Watching)
            }
            Route::Call { .. } | Route::Message => {
                let Quota { bodies, body_bytes, .. } = self.quota_for(rights);
                // Large bodies wait for each other, so that they do not add up.
                let place = bodies.acquire().await;
                let bytes = match body::read_body(body, *body_bytes).await {
                    Ok(bytes) => bytes,
                    Err(why) => return answer::unread_body_response(why, *body_bytes),
                };
                drop(place);
                self.handle_call(route, rights, headers, &bytes).await
            }
            // These were answered before.
            Route::Page(_) | Route::Exchange => {
                answer::no_route_response(route::RouteError::Missing)
            }
        }
    }

    async fn report_usage(&self, rights: Rights) -> HttpResponse {
        if rights == Rights::Watch {
            return answer::denial_response(Denial::Watching);
        }
        match self.site.usage_report().await {
            Ok(text) => answer::json_text_response(text),
            Err(error) => answer::error_response(&error),
        }
    }

    async fn stream_events(
        &self,
        mut wanted: StreamQuery,
        admitted: AuthorizedClient,
        headers: &HeaderMap,
    ) -> HttpResponse {
        let rights = admitted.rights();
        let streams = Arc::clone(&self.quota_for(rights).streams);
        let Ok(permit) = streams.try_acquire_owned() else {
            return answer::busy_response("too many pages are open");
        };
        // What a browser adds when it comes back by itself.
        let last = headers
            .get(&LAST_EVENT)
            .and_then(|it| it.to_str().ok())
            .and_then(route::parse_position);
        if let Some((id, position)) = last {
            let same = wanted.sessions.iter_mut().filter(|(session, _)| *session == id);
            same.for_each(|(_, from)| *from = position);
        }
        let asked = match self.site.connect_client(self.site.client_name()).await {
            Ok(mut client) => {
                events::subscribe_client(&mut client, wanted).map(|asked| (client, asked))
            }
            Err(error) => Err(error),
        };
        match asked {
            Err(error) => answer::unavailable_response(&error),
            Ok((client, asked)) => {
                let stream = events::stream_events(
                    client,
                    asked,
                    &self.describe_server(rights),
                    admitted,
                    permit,
                );
                answer::event_response(ResponseBody::Pieces(Box::pin(stream)))
            }
        }
    }

    async fn handle_call(
        &self,
        route: Route,
        rights: Rights,
        headers: &HeaderMap,
        body: &[u8],
    ) -> HttpResponse {
        let is_whole = matches!(route, Route::Message);
        let message = match route {
            Route::Message => call::parse_message(body),
            Route::Call { session, name } => request_id(headers)
                .and_then(|id| {
                    Ok(ClientMessage {
                        id,
                        session,
                        request: call::parse_named_request(&name, body)?,
                    })
                })
                .map_err(|error| (RequestId(0), error)),
            _ => return answer::no_route_response(route::RouteError::Missing),
        };
        let mut message = match message {
            Ok(message) => message,
            Err((id, error)) => return reply_response(is_whole, id, Err(error)),
        };
        let (id, session) = (message.id, message.session.as_ref());
        match carried::is_permitted(&message.request, session, rights) {
            Ok(()) => (),
            Err(Ok(denial)) => return answer::denial_response(denial),
            Err(Err(error)) => return reply_response(is_whole, id, Err(error)),
        }
        call::complete_spec(&mut message.request, |spec| self.site.complete_spec(spec));
        // Only what has a number of its own can be a request that was sent before.
        let is_numbered = is_whole || headers.contains_key(&REQUEST_ID);
        let name = match client_name(headers, rights) {
            Ok(name) => name.filter(|_| is_numbered).unwrap_or_else(|| self.site.client_name()),
            Err(error) => return reply_response(is_whole, id, Err(error)),
        };
        match self.ask_host(name, message).await {
            Ok(result) => reply_response(is_whole, id, result),
            Err(error) if is_whole => reply_response(is_whole, id, Err(error)),
            Err(error) => answer::unavailable_response(&error),
        }
    }

    /// Asks the host and waits for its reply.
    ///
    /// # Errors
    /// There is no reply: the host cannot be reached, or takes too long.
    async fn ask_host(
        &self,
        name: String,
        message: ClientMessage,
    ) -> Result<Result<Reply, RequestError>, RequestError> {
        let asked = message.id;
        let is_run = matches!(
            message.request,
            protocol::Request::Task(TaskRequest::Run { .. } | TaskRequest::Resume { .. })
        );
        let (requests, mut messages) = self.site.connect_client(name).await?.into_halves();
        requests.forward(message).await.map_err(|_| events::connection_closed_error())?;
        let told = async {
            while let Some(message) = messages.next().await {
                if let ServerMessage::Reply { id, result } = message
                    && id == asked
                {
                    return Ok(result);
                }
            }
            Err(events::connection_closed_error())
        };
        let late = || {
            // The session's events tell how a run goes on.
            if is_run {
                return Ok(Ok(Reply::Done));
            }
            Err(RequestError::new(RequestErrorKind::Failed, "the answer takes too long"))
        };
        timeout(ANSWER_PATIENCE, told).await.unwrap_or_else(|_| late())
    }
}

/// A message is answered by a message; a request by name by its reply alone.
fn reply_response(
    is_whole: bool,
    id: RequestId,
    result: Result<Reply, RequestError>,
) -> HttpResponse {
    if is_whole {
        return answer::json_response(StatusCode::OK, &ServerMessage::Reply { id, result });
    }
    match result {
        Ok(reply) => answer::json_response(StatusCode::OK, &reply),
        Err(error) => answer::error_response(&error),
    }
}

/// The name that a client gives itself. Those who may do different things never share one.
fn client_name(headers: &HeaderMap, rights: Rights) -> Result<Option<String>, RequestError> {
    let Some(name) = headers.get(&CLIENT) else { return Ok(None) };
    let name = name.to_str().unwrap_or_default();
    let fits = (MIN_NAME_BYTES..=MAX_NAME_BYTES).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if fits {
        return Ok(Some(format!("{} {name}", rights.name())));
    }
    let cause = "the header Gnoma-Client has 8 to 64 letters, digits and hyphens";
    Err(RequestError::new(RequestErrorKind::Invalid, cause))
}

/// Reads the number of a request. It counts among those of its client, so that without a client's name a request that is
/// sent again would take effect again.
fn request_id(headers: &HeaderMap) -> Result<RequestId, RequestError> {
    let Some(value) = headers.get(&REQUEST_ID) else { return Ok(RequestId(1)) };
    let invalid = |cause| RequestError::new(RequestErrorKind::Invalid, cause);
    if !headers.contains_key(&CLIENT) {
        let error = invalid("the header Idempotency-Key needs the header Gnoma-Client");
        return Err(error.with_remedy(
            "Send a name of your program in it: 8 to 64 letters, digits and hyphens.",
        ));
    }
    let number = value.to_str().ok().and_then(|text| text.parse().ok());
    number.map(RequestId).ok_or_else(|| invalid("the header Idempotency-Key is a number"))
}

fn merge_objects(into: &mut Value, from: Value) {
    if let (Value::Object(into), Value::Object(from)) = (into, from) {
        into.extend(from);
    }
}
