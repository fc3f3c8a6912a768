//! The thin driver: sends what a dialect has encoded, feeds it what arrives.
//!
//! The consumer pulls: nothing is read ahead of it, and at most one network read's worth of events
//! waits here. Dropping the stream closes the connection.

use std::{
    borrow::Cow,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use futures_core::Stream;
use gnoma_core::{
    EventStream, ModelInfo, ModelRequest, Provider, ProviderError, Secret, StreamEvent,
    tool::BoxFuture,
};
use gnoma_net::{ByteStream, Http, HttpRequest, NetError, Reply};

use crate::{
    Profile, Protocol,
    adapt::{self, Adaptation, RefusedRequest},
    body::Encoder,
    dialect::{Decode, Dialect, Events},
    errors,
    format::{self, Shaped, answer::AnswerCalls},
    framing::Framer,
    names::NameMap,
    textcall::TextCalls,
};

/// Most of an error's body that is read.
const MAX_ERROR_BYTES: usize = 64 << 10;
/// Most of a list of models that is read; the longest known (OpenRouter) is under 1 MB.
const MAX_MODELS_BYTES: usize = 8 << 20;

/// Most changes of one question; what is refused after them stays refused.
const MAX_CHANGES_PER_CALL: usize = 4;

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
    /// What the server refused in the conversations that it is asked about.
    memory: adapt::AdaptationMemory,
}

/// A question as it goes out.
struct SentRequest<'a> {
    request: Cow<'a, ModelRequest>,
    /// Its answer comes as a call.
    as_call: bool,
    names: Arc<NameMap>,
    body: Vec<Bytes>,
}

/// A reply that says that the call failed, and what it says.
struct Refused {
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
            state: AnswerState::Asking(Box::pin(async move { shared.ask(&request).await })),
            profile: Arc::clone(&self.shared.profile),
        })
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<ModelInfo>, ProviderError>> {
        Box::pin(self.shared.models())
    }
}

impl Endpoint {
    /// Asks; where the server refuses what can be left out or lowered, asks without it. What headers tell
    /// of rate limits is the first event, whether the call is answered or refused.
    async fn ask(&self, asked: &ModelRequest) -> AnswerState {
        let mut changes = self.memory.of(asked);
        let mut notes = Events::new();
        loop {
            let mut sent = self.sent(asked, &changes);
            let head = sent.body.first().cloned().unwrap_or_default();
            let body = std::mem::take(&mut sent.body);
            let reply = match self.exchange(&self.dialect.path(&asked.model), Some(body)).await {
                Ok(reply) => reply,
                Err(error) => return AnswerState::Draining(notes, Some(error)),
            };
            let limits = rate_limits(&reply);
            let refused = match self.checked(reply).await {
                Ok(reply) => {
                    notes.push_front(limits);
                    return self.reading(reply, sent, notes, asked);
                }
                Err(refused) => refused,
            };
            let learnt = (notes.len() < MAX_CHANGES_PER_CALL && !sent.as_call)
                .then(|| self.learn(&sent.request, &head, &refused, &changes))
                .flatten();
            let Some((change, all)) = learnt else {
                notes.push_front(limits);
                let error = errors::suggesting(&self.profile, refused.error, &asked.model);
                return AnswerState::Draining(notes, Some(error));
            };
            notes.push_back(StreamEvent::Adapted { note: self.note(asked, &change, &refused) });
            self.memory.keep(asked, all.clone());
            changes = all;
        }
    }

    /// What goes out for `asked`, with what the server wants changed.
    fn sent<'a>(&self, asked: &'a ModelRequest, changes: &[Adaptation]) -> SentRequest<'a> {
        let Shaped { request, as_call } = format::shaped(&self.profile, asked);
        let request = adapt::applied(changes, request, as_call);
        let (body, names) = self.encoder.encode(&*self.dialect, &self.profile.name, &request);
        SentRequest { request, as_call, names, body: adapt::rewritten(changes, body) }
    }

    /// What a refusal teaches: what is new, and all that is changed from now on.
    fn learn(
        &self,
        request: &ModelRequest,
        head: &[u8],
        refused: &Refused,
        changes: &[Adaptation],
    ) -> Option<(Adaptation, Vec<Adaptation>)> {
        let fields = &adapt::fields(head)?;
        let (error, body, bytes) = (&refused.error, &refused.body, adapt::bytes(request));
        let has_names = self.profile.protocol == Protocol::OpenAi;
        let refusal = RefusedRequest { error, body, request, fields, bytes, has_names };
        let change = adapt::change(&refusal)?;
        let all = adapt::joined(changes, change.clone())?;
        Some((change, all))
    }

    /// What people read of a change.
    fn note(&self, asked: &ModelRequest, change: &Adaptation, refused: &Refused) -> String {
        let (name, said) = (&self.profile.name, errors::quote(&refused.error.message));
        format!("{name}/{} {} (it answered: {said})", asked.model, change.words())
    }

    fn reading(
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
        AnswerState::Reading(Box::new(Reading {
            body: reply.into_body(),
            framer: Framer::default(),
            decoder: self.dialect.decoder(names),
            events,
            text_calls,
            answer_calls: asked.format.as_ref().filter(|_| as_call).map(wrapped),
            has_begun: false,
        }))
    }

    async fn models(&self) -> Result<Vec<ModelInfo>, ProviderError> {
        let reply = self.exchange(self.dialect.models_path(), None).await?;
        let reply = self.checked(reply).await.map_err(|refused| refused.error)?;
        let body = reply.into_bytes(MAX_MODELS_BYTES).await.map_err(|error| self.net(&error))?;
        Ok(self.dialect.models(&body))
    }

    /// Sends, and waits for the head of the reply.
    async fn exchange(&self, path: &str, body: Option<Vec<Bytes>>) -> Result<Reply, ProviderError> {
        if let Some(error) = errors::unusable_key(&self.profile) {
            return Err(error);
        }
        let mut headers = self.dialect.headers();
        if body.is_some() {
            headers.push(("content-type", Secret::new("application/json".to_owned())));
        }
        let headers = headers.into_iter().map(|(name, value)| (name.into(), value)).collect();
        let request = HttpRequest { url: self.profile.url(path), headers, body };
        self.http.send(request).await.map_err(|error| self.net(&error))
    }

    /// The reply, where its status is that of a success.
    async fn checked(&self, reply: Reply) -> Result<Reply, Refused> {
        if reply.status < 300 {
            return Ok(reply);
        }
        let status = reply.status;
        if status < 400 {
            let error = errors::redirected(&self.profile, status, reply.header("location"));
            return Err(Refused { error, body: Vec::new() });
        }
        let wait = wait(&reply);
        let body = reply.into_bytes(MAX_ERROR_BYTES).await.unwrap_or_default();
        let error = errors::from_status(&self.profile, status, wait, &body);
        Err(Refused { error, body })
    }

    fn net(&self, error: &NetError) -> ProviderError {
        errors::from_net(&self.profile, error)
    }
}

/// What the headers tell of rate limits; told where it is nothing, too, as a sign of life.
fn rate_limits(reply: &Reply) -> StreamEvent {
    let headers: Vec<_> = reply
        .headers()
        .filter(|(name, _)| name.contains("ratelimit") || *name == "retry-after")
        .take(MAX_RATE_HEADERS)
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    StreamEvent::RateLimits { headers }
}

/// The wait that the headers of a failure ask for. `retry-after-ms` is OpenAI's.
fn wait(reply: &Reply) -> Option<Duration> {
    let told = reply.header("retry-after");
    let wait = told.and_then(|value| errors::retry_after(value, reply.header("date")));
    let exact = || Some(Duration::from_millis(reply.header("retry-after-ms")?.parse().ok()?));
    wait.or_else(exact)
}

/// One answer, being asked for or being read.
struct AnswerStream {
    state: AnswerState,
    profile: Arc<Profile>,
}

enum AnswerState {
    Asking(BoxFuture<'static, Self>),
    Reading(Box<Reading>),
    /// The body is over; what is left is handed out, then perhaps an error.
    Draining(Events, Option<ProviderError>),
}

struct Reading {
    body: ByteStream,
    framer: Framer,
    decoder: Box<dyn Decode>,
    events: Events,
    text_calls: Option<TextCalls>,
    answer_calls: Option<AnswerCalls>,
    /// Something of the answer has come.
    has_begun: bool,
}

fn is_of_answer(event: &StreamEvent) -> bool {
    !matches!(event, StreamEvent::RateLimits { .. } | StreamEvent::Adapted { .. })
}

impl Reading {
    /// Takes one network read.
    fn take(&mut self, profile: &Profile, bytes: &[u8]) -> Result<(), ProviderError> {
        self.framer.feed(bytes).map_err(|why| errors::misframed(profile, why, bytes))?;
        loop {
            match self.framer.next_record() {
                Ok(Some(record)) => {
                    let went = self.decoder.frame(record.frame(), &mut self.events);
                    self.has_begun |= self.events.iter().any(is_of_answer);
                    went.map_err(|error| errors::in_answer(profile, error, self.has_begun))?;
                }
                Ok(None) => break,
                Err(why) => return Err(errors::protocol(profile, why)),
            }
        }
        if let Some(text_calls) = &mut self.text_calls {
            text_calls.filter(&mut self.events);
        }
        if let Some(answer_calls) = &mut self.answer_calls {
            answer_calls.filter(&mut self.events);
        }
        Ok(())
    }

    /// The body has ended.
    fn end(&mut self, profile: &Profile) -> Result<(), ProviderError> {
        if !self.framer.received() {
            return Err(errors::empty(profile));
        }
        if self.framer.is_cut() {
            return Err(errors::truncated(profile));
        }
        if let Some(record) = self.framer.rest() {
            // A record without its end may be cut; then the end is what is reported.
            let _cut = self.decoder.frame(record.frame(), &mut self.events);
        }
        self.decoder.finish(&mut self.events)
    }

    /// All events that will come are here, whether the answer is complete or not.
    fn drain(&mut self) -> Events {
        if let Some(text_calls) = &mut self.text_calls {
            text_calls.finish(&mut self.events);
        }
        if let Some(answer_calls) = &mut self.answer_calls {
            answer_calls.filter(&mut self.events);
        }
        std::mem::take(&mut self.events)
    }

    fn has_stopped(&self) -> bool {
        matches!(self.events.back(), Some(StreamEvent::Stop(_)))
    }
}

impl Stream for AnswerStream {
    type Item = Result<StreamEvent, ProviderError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            match &mut this.state {
                AnswerState::Asking(asking) => {
                    this.state = ready!(asking.as_mut().poll(cx));
                }
                AnswerState::Reading(reading) => {
                    // After the last event the end of the body is looked for once, without waiting:
                    // a connection that is read to its end can be used again.
                    let stopped = reading.has_stopped();
                    if !stopped && let Some(event) = reading.events.pop_front() {
                        return Poll::Ready(Some(Ok(event)));
                    }
                    let piece = match Pin::new(&mut reading.body).poll_next(cx) {
                        Poll::Ready(piece) => piece,
                        Poll::Pending if stopped => None,
                        Poll::Pending => return Poll::Pending,
                    };
                    let went = match piece {
                        Some(Ok(_)) if stopped => continue,
                        Some(Ok(bytes)) => {
                            let went = reading.take(&this.profile, &bytes);
                            if went.is_ok() || reading.has_stopped() {
                                continue;
                            }
                            went
                        }
                        None | Some(Err(_)) if stopped => Ok(()),
                        None => reading.end(&this.profile),
                        Some(Err(error)) => Err(errors::from_net(&this.profile, &error)),
                    };
                    let events = reading.drain();
                    this.state = AnswerState::Draining(events, went.err());
                }
                AnswerState::Draining(events, error) => {
                    if let Some(event) = events.pop_front() {
                        return Poll::Ready(Some(Ok(event)));
                    }
                    return Poll::Ready(error.take().map(Err));
                }
            }
        }
    }
}
