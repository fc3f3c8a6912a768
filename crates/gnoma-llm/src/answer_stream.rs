//! The stream of one answer: bytes of the connection in, events out.
//!
//! A server that has said why its answer ends owes nothing more. If the connection stays open, breaks or
//! carries junk after that, the answer is whole all the same: it is neither thrown away nor asked for again.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use futures_core::Stream;
use gnoma_core::{ErrorKind, ProviderError, StopReason, StreamEvent, Usage, tool::BoxFuture};
use gnoma_net::ByteStream;
use serde::de::IgnoredAny;
use tokio::time::{Sleep, sleep};

use crate::{
    Profile,
    characters::{CharacterJoiner, replace_fragments},
    dialect::{AnswerDecoder, Events},
    errors,
    format::answer::AnswerCalls,
    framing::Framer,
    textcall::TextCalls,
};

/// The time to wait for more of an answer after its reason to stop and its tokens have come. Some gateways send
/// both with every piece.
const GRACE: Duration = Duration::from_secs(1);
/// The same where the tokens are still to come.
const GRACE_FOR_USAGE: Duration = Duration::from_secs(3);
/// The same where more of the answer has come after a reason to stop before.
const GRACE_FOR_MORE: Duration = Duration::from_secs(10);

/// An answer of so few tokens has used up no limit but that of the window.
const FEW_TOKENS: u64 = 16;
/// The least limit of an answer that so few tokens leave unused.
const LEAST_LIMIT: u32 = 64;
/// No window is so small that fewer tokens of a prompt fill it.
const LEAST_PROMPT: u64 = 1_024;

/// The limits on the length of an answer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AnswerLimits {
    /// Most tokens that were asked for.
    pub(crate) most: Option<u32>,
    /// The context window of the model, in tokens.
    pub(crate) window: Option<u32>,
}

impl AnswerLimits {
    /// Reports whether an answer that was ended by its length has not come near the requested limit, so that only
    /// the window can have ended it.
    fn are_unused(self, usage: Usage) -> bool {
        let prompt = usage.input + usage.cache_read + usage.cache_write;
        let is_unused = self.most.is_some_and(|most| most >= LEAST_LIMIT) && prompt >= LEAST_PROMPT;
        // A server may have a smaller window than its model.
        let may_fill = |window: u32| prompt + usage.output >= u64::from(window) / 2;
        // A server counts a few tokens otherwise.
        let fills = |window: u32| prompt + usage.output + FEW_TOKENS >= u64::from(window);
        (1..=FEW_TOKENS).contains(&usage.output)
            && ((is_unused && self.window.is_none_or(may_fill)) || self.window.is_some_and(fills))
    }
}

/// One answer, being asked for or being read.
pub(crate) struct AnswerStream {
    pub(crate) state: AnswerState,
    pub(crate) profile: Arc<Profile>,
}

/// The progress of an answer.
pub(crate) enum AnswerState {
    /// The head of the reply is waited for.
    Asking(BoxFuture<'static, Self>),
    /// The body is read.
    Reading(Box<AnswerReader>),
    /// The body is over; what is left is handed out, then perhaps an error.
    Draining(Events, Option<ProviderError>),
}

/// The body of an answer, and what reads it.
pub(crate) struct AnswerReader {
    body: ByteStream,
    framer: Framer,
    /// A record has been seen.
    has_record: bool,
    decoder: Box<dyn AnswerDecoder>,
    events: Events,
    characters: CharacterJoiner,
    text_calls: Option<TextCalls>,
    answer_calls: Option<AnswerCalls>,
    limits: AnswerLimits,
    usage: Option<Usage>,
    /// True if something of the answer has come.
    has_begun: bool,
    /// More of the answer has come after a reason to stop.
    has_gone_on: bool,
    /// The reason to stop came in the same record as a piece of the answer.
    ends_with_content: bool,
    /// Ends the wait for more once the server has said why the answer ends.
    grace: Option<Pin<Box<Sleep>>>,
}

/// Reports whether an event belongs to the answer, and is not about its request.
fn is_of_answer(event: &StreamEvent) -> bool {
    !matches!(event, StreamEvent::RateLimits { .. } | StreamEvent::Adapted { .. })
}

/// Reports whether an event brings more of the text that the model wrote.
fn is_content(event: &StreamEvent) -> bool {
    let is_about = matches!(
        event,
        StreamEvent::Started { .. } | StreamEvent::Usage(_) | StreamEvent::UnknownStop { .. }
    );
    is_of_answer(event) && !is_about && !matches!(event, StreamEvent::Stop(_))
}

/// Reports whether a record is a value of JSON that can say nothing of an answer, such as `null`.
fn is_scalar(data: &str) -> bool {
    let data = data.trim();
    !data.starts_with(['{', '[', '"']) && serde_json::from_str::<IgnoredAny>(data).is_ok()
}

impl AnswerReader {
    pub(crate) fn new(
        body: ByteStream,
        decoder: Box<dyn AnswerDecoder>,
        events: Events,
        text_calls: Option<TextCalls>,
        answer_calls: Option<AnswerCalls>,
        limits: AnswerLimits,
    ) -> Self {
        Self {
            body,
            framer: Framer::default(),
            has_record: false,
            decoder,
            events,
            characters: CharacterJoiner::default(),
            text_calls,
            answer_calls,
            limits,
            usage: None,
            has_begun: false,
            has_gone_on: false,
            ends_with_content: false,
            grace: None,
        }
    }

    /// Takes one network read.
    fn push_bytes(&mut self, profile: &Profile, bytes: &[u8]) -> Result<(), ProviderError> {
        let went = self.decode_bytes(profile, bytes);
        self.filter_events();
        went
    }

    fn decode_bytes(&mut self, profile: &Profile, bytes: &[u8]) -> Result<(), ProviderError> {
        self.framer
            .feed(bytes)
            .map_err(|error| errors::unreadable_body(profile, &error.to_string(), bytes))?;
        loop {
            match self.framer.next_record() {
                Ok(Some(record)) if record.event.is_empty() && is_scalar(&record.data) => (),
                Ok(Some(record)) => {
                    let is_first = !std::mem::replace(&mut self.has_record, true);
                    let foreign = (is_first && !record.whole)
                        .then(|| errors::foreign_stream(profile, &record.data));
                    if let Some(error) = foreign.flatten() {
                        return Err(error);
                    }
                    let (known, had_ending) = (self.events.len(), self.decoder.ending().is_some());
                    let went = self.decoder.decode_frame(record.as_frame(), &mut self.events);
                    if self.events.iter().skip(known).any(is_content) {
                        // Some gateways give a reason to stop with every piece.
                        self.has_gone_on |= had_ending;
                        self.ends_with_content = self.decoder.ending().is_some();
                        self.grace = None;
                    }
                    for event in self.events.iter().skip(known) {
                        if let StreamEvent::Usage(usage) = event {
                            self.usage = Some(*usage);
                        }
                    }
                    self.has_begun |= self.events.iter().any(is_of_answer);
                    went.map_err(|error| {
                        let message = replace_fragments(&error.message);
                        let error = ProviderError { message, ..error };
                        errors::in_answer(profile, error, self.has_begun)
                    })?;
                }
                Ok(None) => return Ok(()),
                Err(error) => return Err(errors::protocol_error(profile, error.to_string())),
            }
        }
    }

    /// Passes the new events through what stands behind the decoder.
    fn filter_events(&mut self) {
        if self.framer.has_fragments() || self.characters.is_waiting() {
            self.characters.filter_events(&mut self.events);
        }
        if let Some(text_calls) = &mut self.text_calls {
            text_calls.filter_events(&mut self.events);
        }
        if let Some(answer_calls) = &mut self.answer_calls {
            answer_calls.filter_events(&mut self.events);
        }
    }

    /// The body has ended.
    fn finish_body(&mut self, profile: &Profile) -> Result<(), ProviderError> {
        if !self.framer.has_received() {
            return Err(errors::empty_answer(profile));
        }
        if self.framer.is_cut() {
            return Err(errors::truncated_answer(profile));
        }
        while let Some(record) = self.framer.unfinished_record() {
            // A record without its end may be cut; then the end is what is reported.
            let _cut = self.decoder.decode_frame(record.as_frame(), &mut self.events);
        }
        self.decoder.finish(&mut self.events)
    }

    /// Ends an answer whose connection has failed: well, if the server had said why the answer ends.
    fn end_with(&mut self, error: ProviderError) -> Result<(), ProviderError> {
        let is_whole = match self.decoder.ending().map(|ending| ending.reason) {
            // A reason that nobody knows may be the failure that is told of next.
            None | Some(StopReason::Other) => false,
            // So may the limit; a connection that fails after it says nothing of the answer.
            Some(StopReason::MaxTokens) => {
                matches!(error.kind, ErrorKind::Network | ErrorKind::Timeout | ErrorKind::Garbled)
            }
            Some(_) => true,
        };
        if is_whole { self.decoder.finish(&mut self.events) } else { Err(error) }
    }

    /// Waits until nothing more of the answer is to be expected; for ever where it has not ended.
    fn poll_grace(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(ending) = self.decoder.ending() else { return Poll::Pending };
        let grace = if self.has_gone_on {
            GRACE_FOR_MORE
        } else if ending.has_usage && !self.ends_with_content {
            GRACE
        } else {
            GRACE_FOR_USAGE
        };
        self.grace.get_or_insert_with(|| Box::pin(sleep(grace))).as_mut().poll(cx)
    }

    /// All events that will come are here, whether the answer is complete or not.
    fn drain_events(&mut self) -> Events {
        if self.framer.has_fragments() || self.characters.is_waiting() {
            self.characters.filter_events(&mut self.events);
            let mut alone = Events::new();
            self.characters.flush_fragments(&mut alone);
            self.events.append(&mut alone);
        }
        if let Some(text_calls) = &mut self.text_calls {
            text_calls.finish(&mut self.events);
        }
        if let Some(answer_calls) = &mut self.answer_calls {
            answer_calls.filter_events(&mut self.events);
        }
        std::mem::take(&mut self.events)
    }

    fn has_stopped(&self) -> bool {
        matches!(self.events.back(), Some(StreamEvent::Stop(_)))
    }

    /// Reports whether the answer, ended by `last` events, was cut because the window is full, and not by its
    /// limit.
    fn has_filled_window(&self, last: &Events) -> bool {
        let is_cut = last.back() == Some(&StreamEvent::Stop(StopReason::MaxTokens));
        let usage = last.iter().rev().find_map(|event| match event {
            StreamEvent::Usage(usage) => Some(*usage),
            _ => None,
        });
        is_cut && usage.or(self.usage).is_some_and(|usage| self.limits.are_unused(usage))
    }

    /// Reads on: `Ready` once the body is over, with what is wrong with it.
    fn poll_body(
        &mut self,
        profile: &Profile,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<(), ProviderError>>> {
        // After the last event the end of the body is looked for once, without waiting:
        // a connection that is read to its end can be used again.
        let stopped = self.has_stopped();
        let piece = match Pin::new(&mut self.body).poll_next(cx) {
            Poll::Ready(piece) => piece,
            Poll::Pending if stopped => return Poll::Ready(Some(Ok(()))),
            Poll::Pending => {
                ready!(self.poll_grace(cx));
                return Poll::Ready(Some(self.decoder.finish(&mut self.events)));
            }
        };
        let went = match piece {
            Some(Ok(_)) if stopped => return Poll::Ready(None),
            None | Some(Err(_)) if stopped => return Poll::Ready(Some(Ok(()))),
            Some(Ok(bytes)) => {
                let went = self.push_bytes(profile, &bytes);
                if self.has_stopped() {
                    return Poll::Ready(None);
                }
                // Signs of life are no reason to wait for an answer that has ended.
                match went {
                    Ok(()) if self.poll_grace(cx).is_ready() => {
                        self.decoder.finish(&mut self.events)
                    }
                    Ok(()) => return Poll::Ready(None),
                    Err(error) => Err(error),
                }
            }
            None => self.finish_body(profile),
            Some(Err(error)) => Err(errors::from_net(profile, &error)),
        };
        Poll::Ready(Some(went.or_else(|error| self.end_with(error))))
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
                    if !reading.has_stopped()
                        && let Some(event) = reading.events.pop_front()
                    {
                        return Poll::Ready(Some(Ok(event)));
                    }
                    if let Some(went) = ready!(reading.poll_body(&this.profile, cx)) {
                        let mut events = reading.drain_events();
                        let mut error = went.err();
                        if reading.has_filled_window(&events) {
                            events.pop_back();
                            error = Some(errors::window_full(&this.profile));
                        }
                        this.state = AnswerState::Draining(events, error);
                    }
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
