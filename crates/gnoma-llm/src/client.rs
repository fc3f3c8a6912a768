//! The HTTP client of all dialects: sends the encoded request, decodes the stream.
//!
//! The consumer pulls: nothing is read ahead of it, and at most one network read's worth of events
//! waits here. Dropping the stream closes the connection.

use std::{borrow::Cow, mem::Discriminant, sync::Arc, time::Duration};

use bytes::Bytes;
use gnoma_core::{
    EventStream, ModelInfo, ModelRequest, Provider, ProviderError, Secret, StreamEvent,
    tool::BoxFuture,
};
use gnoma_net::{Http, HttpRequest, NetError, Reply};
use jiff::Timestamp;

use crate::{
    Profile, Protocol,
    adapt::{self, Adaptation, RefusedRequest},
    answer_stream::{AnswerLimits, AnswerReader, AnswerState, AnswerStream},
    body::Encoder,
    dialect::{Dialect, Events},
    errors,
    format::{self, FormattedRequest, answer::AnswerCalls},
    names::NameMap,
    textcall::TextCalls,
};

/// Most of an error's body that is read.
const MAX_ERROR_BYTES: usize = 64 << 10;
/// Most of a list of models that is read; the longest known (OpenRouter) is under 1 MB.
const MAX_MODELS_BYTES: usize = 8 << 20;

/// Most changes of one question; what is refused after them stays refused. Trials that find out what is refused do
/// not count: they have a limit of their own.
const MAX_CHANGES_PER_CALL: usize = 4;
/// Most trials of one question that find out which tools and pictures are refused.
const MAX_TRIALS_PER_CALL: usize = adapt::MAX_TRIALS + adapt::MAX_PICTURE_TRIALS + 2;

/// Headers about rate limits that are kept of an answer; known providers send up to a dozen.
const MAX_RATE_HEADERS: usize = 32;

/// A provider reached over HTTP.
pub(crate) struct Client {
    shared: Arc<Endpoint>,
}

struct Endpoint {
    profile: Arc<Profile>,
    dialect: Box<dyn Dialect>,
    http: Http,
    encoder: Encoder,
    /// The request features that the server refused, for the conversations that it is asked about.
    memory: adapt::AdaptationMemory,
}

/// A question as it goes out.
struct SentRequest<'a> {
    request: Cow<'a, ModelRequest>,
    /// True if the answer comes as a tool call.
    as_call: bool,
    names: Arc<NameMap>,
    body: Vec<Bytes>,
}

/// The notes of one question about changes of its request; of the trials of one sort, only the last note.
#[derive(Default)]
struct ChangeNotes {
    notes: Vec<(Discriminant<Adaptation>, String)>,
    changes: usize,
    trials: usize,
}

impl ChangeNotes {
    fn may_change(&self) -> bool {
        self.changes < MAX_CHANGES_PER_CALL && self.trials < MAX_TRIALS_PER_CALL
    }

    fn record_change(&mut self, change: &Adaptation) {
        let kind = std::mem::discriminant(change);
        if matches!(change, Adaptation::ToolTrials(_) | Adaptation::RefusedPictures(_)) {
            self.notes.retain(|(noted, _)| *noted != kind);
            self.trials += 1;
        } else {
            self.changes += 1;
        }
    }

    fn push(&mut self, change: &Adaptation, note: String) {
        self.notes.push((std::mem::discriminant(change), note));
    }

    /// The events of the call until here, without the headers of a reply.
    fn into_plain_events(self) -> Events {
        self.notes.into_iter().map(|(_, note)| StreamEvent::Adapted { note }).collect()
    }

    /// The events of the call until here; `limits` is the first.
    fn into_events(self, limits: StreamEvent) -> Events {
        let mut events = self.into_plain_events();
        events.push_front(limits);
        events
    }
}

/// A reply that says that the call failed, and what it says.
struct RefusalReply {
    error: ProviderError,
    body: Vec<u8>,
}

impl Client {
    pub(crate) fn new(profile: Arc<Profile>, dialect: Box<dyn Dialect>, http: Http) -> Self {
        let (encoder, memory) = (Encoder::default(), adapt::AdaptationMemory::default());
        Self { shared: Arc::new(Endpoint { profile, dialect, http, encoder, memory }) }
    }
}

impl Provider for Client {
    fn name(&self) -> &str {
        &self.shared.profile.name
    }

    fn stream(&self, request: ModelRequest) -> EventStream {
        let shared = Arc::clone(&self.shared);
        Box::pin(AnswerStream {
            state: AnswerState::Asking(Box::pin(
                async move { shared.request_answer(&request).await },
            )),
            profile: Arc::clone(&self.shared.profile),
        })
    }

    fn list_models(&self) -> BoxFuture<'_, Result<Vec<ModelInfo>, ProviderError>> {
        Box::pin(self.shared.fetch_models())
    }
}

impl Endpoint {
    /// Asks; where the server refuses what can be left out or lowered, asks without it. What headers tell
    /// of rate limits is the first event, whether the call is answered or refused.
    async fn request_answer(&self, asked: &ModelRequest) -> AnswerState {
        let mut changes = self.memory.changes_for(asked);
        let mut notes = ChangeNotes::default();
        loop {
            let mut sent = self.prepare_request(asked, &changes);
            let body = std::mem::take(&mut sent.body);
            let path = self.dialect.answer_path(&asked.model);
            let reply = match self.send_request(&path, Some(body.clone())).await {
                Ok(reply) => reply,
                Err(error) => return AnswerState::Draining(notes.into_plain_events(), Some(error)),
            };
            let limits = rate_limits(&reply);
            let mut refused = match self.check_status(reply).await {
                Ok(reply) => {
                    self.memory.accept_pictures(asked, adapt::collect_pictures(&sent.request));
                    let tools = adapt::foreign_tools(&sent.request).map(str::to_owned);
                    self.memory.accept_tools(asked, tools.collect());
                    return self.start_reading(reply, sent, notes.into_events(limits), asked);
                }
                Err(refused) => refused,
            };
            let (text_bytes, bytes) = request_sizes(&sent.request, &body);
            refused.error =
                errors::detect_overflow(&self.profile, refused.error, text_bytes, bytes);
            let learnt = (notes.may_change() && !sent.as_call)
                .then(|| self.learn_adaptation(asked, (&sent.request, &body), &refused, &changes))
                .flatten();
            if let Some((change, all)) = &learnt {
                self.memory.record_changes(asked, all.clone());
                notes.record_change(change);
            }
            let learnt = learnt.filter(|(change, _)| {
                !matches!(change, Adaptation::ToolTrials(tried) if tried.is_given_up())
            });
            let Some((change, all)) = learnt else {
                let error = errors::suggest_model(&self.profile, refused.error, &asked.model);
                let error = errors::refused_size(&self.profile, error, bytes);
                return AnswerState::Draining(notes.into_events(limits), Some(error));
            };
            notes.push(&change, self.describe_change(asked, &change, &refused));
            changes = all;
        }
    }

    /// Builds the request that goes out for `asked`, with the changes that the server wants.
    fn prepare_request<'a>(
        &self,
        asked: &'a ModelRequest,
        changes: &[Adaptation],
    ) -> SentRequest<'a> {
        let FormattedRequest { request, as_call } = format::shape_request(&self.profile, asked);
        let is_blind = self.profile.blind_models.iter().any(|model| **model == *request.model);
        let request = if is_blind {
            adapt::apply_changes(&[Adaptation::Pictures], request, as_call)
        } else {
            request
        };
        let request = adapt::apply_changes(changes, request, as_call);
        let (body, names) = self.encoder.encode(&*self.dialect, &self.profile.name, &request);
        SentRequest { request, as_call, names, body: adapt::rewrite_body(changes, body) }
    }

    /// Learns from a refusal. Returns the new change, and all changes that apply from now on.
    fn learn_adaptation(
        &self,
        asked: &ModelRequest,
        (request, sent): (&ModelRequest, &[Bytes]),
        refused: &RefusalReply,
        changes: &[Adaptation],
    ) -> Option<(Adaptation, Vec<Adaptation>)> {
        let fields = &adapt::parse_fields(sent.first()?)?;
        let known = changes.iter().find_map(|change| match change {
            Adaptation::RefusedPictures(known) => Some(known.clone()),
            _ => None,
        });
        let pictures = (known.unwrap_or_default(), self.memory.accepted_pictures(asked));
        let trials = changes.iter().find_map(|change| match change {
            Adaptation::ToolTrials(trials) => Some(trials.clone()),
            _ => None,
        });
        let tools = (trials, self.memory.accepted_tools(asked));
        let (error, body, bytes) = (&refused.error, &refused.body, adapt::prompt_bytes(request));
        let has_names = self.profile.protocol == Protocol::OpenAi;
        let refusal = RefusedRequest {
            error,
            body,
            request,
            fields,
            sent,
            pictures,
            tools,
            bytes,
            has_names,
        };
        let change = adapt::infer_adaptation(&refusal)?;
        let all = adapt::merge_change(changes, change.clone())?;
        Some((change, all))
    }

    /// Describes a change of requests for people.
    fn describe_change(
        &self,
        asked: &ModelRequest,
        change: &Adaptation,
        refused: &RefusalReply,
    ) -> String {
        let (name, said) = (&self.profile.name, errors::quote_text(&refused.error.message));
        format!("{name}/{} {} (it answered: {said})", asked.model, change.describe_effect())
    }

    fn start_reading(
        &self,
        reply: Reply,
        sent: SentRequest<'_>,
        events: Events,
        asked: &ModelRequest,
    ) -> AnswerState {
        let SentRequest { request, as_call, names, .. } = sent;
        let text_calls = (self.profile.reads_text_calls() && !request.tools.is_empty())
            .then(|| TextCalls::new(Arc::clone(&names), Arc::clone(&request.tools)));
        let wrapped = |format: &_| AnswerCalls::new(format::is_wrapped(format));
        let answer_calls = asked.format.as_ref().filter(|_| as_call).map(wrapped);
        let decoder = self.dialect.new_decoder(names);
        let limits =
            AnswerLimits { most: request.max_output_tokens, window: request.context_window };
        let body = reply.into_body();
        let reading = AnswerReader::new(body, decoder, events, text_calls, answer_calls, limits);
        AnswerState::Reading(Box::new(reading))
    }

    async fn fetch_models(&self) -> Result<Vec<ModelInfo>, ProviderError> {
        let reply = self.send_request(self.dialect.models_path(), None).await?;
        let reply = self.check_status(reply).await;
        let reply = reply.map_err(|refused| errors::refused_list(&self.profile, refused.error))?;
        let body =
            reply.into_bytes(MAX_MODELS_BYTES).await.map_err(|error| self.net_error(&error))?;
        if let Some(error) = errors::no_list(&self.profile, &body) {
            return Err(error);
        }
        Ok(self.dialect.parse_models(&body))
    }

    /// Sends, and waits for the head of the reply.
    async fn send_request(
        &self,
        path: &str,
        body: Option<Vec<Bytes>>,
    ) -> Result<Reply, ProviderError> {
        if let Some(error) = errors::unusable_key(&self.profile) {
            return Err(error);
        }
        let mut headers = self.dialect.request_headers();
        if body.is_some() {
            headers.push(("content-type", Secret::new("application/json".to_owned())));
        }
        let headers = headers.into_iter().map(|(name, value)| (name.into(), value)).collect();
        let request = HttpRequest { url: self.profile.url_for(path), headers, body };
        self.http.send(request).await.map_err(|error| self.net_error(&error))
    }

    /// The reply, where its status is that of a success.
    async fn check_status(&self, reply: Reply) -> Result<Reply, RefusalReply> {
        if reply.status < 300 {
            return Ok(reply);
        }
        let status = reply.status;
        if status < 400 {
            let error = errors::redirect_error(&self.profile, status, reply.header("location"));
            return Err(RefusalReply { error, body: Vec::new() });
        }
        let wait = parse_retry_after(&reply);
        let body = reply.into_bytes(MAX_ERROR_BYTES).await.unwrap_or_default();
        let error = errors::from_status(&self.profile, status, wait, &body);
        Err(RefusalReply { error, body })
    }

    fn net_error(&self, error: &NetError) -> ProviderError {
        errors::from_net(&self.profile, error)
    }
}

/// Returns the sizes of a request without and with its pictures, in bytes.
fn request_sizes(request: &ModelRequest, body: &[Bytes]) -> (usize, usize) {
    let bytes: usize = body.iter().map(Bytes::len).sum();
    let pictures: usize = adapt::collect_pictures(request).iter().map(|it| it.len()).sum();
    (bytes.saturating_sub(pictures), bytes)
}

/// Returns the event with the headers about rate limits. It is sent even if there are none, as a sign of life.
fn rate_limits(reply: &Reply) -> StreamEvent {
    let headers: Vec<_> = reply
        .headers()
        .filter(|(name, _)| name.contains("ratelimit") || *name == "retry-after")
        .take(MAX_RATE_HEADERS)
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    StreamEvent::RateLimits { headers }
}

/// The wait that the headers of a failure ask for.
fn parse_retry_after(reply: &Reply) -> Option<Duration> {
    let now = errors::sent_at(reply.header("date")).unwrap_or_else(Timestamp::now);
    errors::asked_wait(&reply.headers().collect::<Vec<_>>(), now)
}
