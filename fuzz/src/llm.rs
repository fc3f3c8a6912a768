//! What servers send: framing, and the answers of every protocol.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use gnoma_core::{
    Accumulator, Message, ModelRef, ModelRequest, Response, Role, StopReason, StreamEvent,
    ToolCall, ToolChoice, ToolResult, stream::Slot,
};
use gnoma_llm::{
    Profile, Protocol,
    internals::{self, Events, Framer, FramingError, Record},
};
use serde_json::value::RawValue;

/// Longest piece that an input is cut into.
const MAX_PIECE_BYTES: usize = 32;

const PROVIDER: &str = "fuzz";
const MODEL: &str = "m";

const PROTOCOLS: [Protocol; 6] = [
    Protocol::Mistral,
    Protocol::Anthropic,
    Protocol::OpenAi,
    Protocol::Responses,
    Protocol::Google,
    Protocol::Ollama,
];

/// The records of a body are the same wherever it is cut.
pub fn framing(input: &[u8]) {
    let whole = framed([input]);
    assert_eq!(framed(pieces(input)), whole, "cut into pieces");
    assert_eq!(framed(input.chunks(1)), whole, "cut into bytes");
}

/// An answer is the same wherever it is cut, it ends as the contract of streams says, and what it
/// leaves in the history is a lawful message that can be stored and sent to anybody.
pub fn stream(protocol: Protocol, input: &[u8]) {
    let answer = read(protocol, [input]);
    assert_eq!(read(protocol, pieces(input)), answer, "cut into pieces");
    assert_eq!(read(protocol, input.chunks(1)), answer, "cut into bytes");
    assert_ends_once(&answer);
    assert_pieces_have_their_block(&answer.events);
    let response = response(&answer.events);
    let stop = response.stop;
    let origin = ModelRef { provider: PROVIDER.into(), model: MODEL.into() };
    if let Some(message) = response.into_message(Some(origin)) {
        assert_is_lawful(&message, stop);
        assert_can_be_stored(&message);
        assert_can_be_sent(message);
    }
}

/// Cuts `input` where it says itself: the first byte of a piece tells how long the piece is.
fn pieces(input: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = input;
    std::iter::from_fn(move || {
        let first = usize::from(*rest.first()?);
        let (piece, after) = rest.split_at((1 + first % MAX_PIECE_BYTES).min(rest.len()));
        rest = after;
        Some(piece)
    })
}

/// All that a framer says of a body.
#[derive(Debug, Default, PartialEq, Eq)]
struct Framed {
    records: Vec<OwnedRecord>,
    rest: Option<OwnedRecord>,
    error: Option<String>,
    is_cut: bool,
}

#[derive(Debug, PartialEq, Eq)]
struct OwnedRecord {
    event: String,
    data: String,
    whole: bool,
}

impl From<Record<'_>> for OwnedRecord {
    fn from(record: Record<'_>) -> Self {
        Self {
            event: record.event.into_owned(),
            data: record.data.into_owned(),
            whole: record.whole,
        }
    }
}

fn framed<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Framed {
    let mut framer = Framer::default();
    let mut framed = Framed::default();
    for piece in pieces {
        if let Err(error) = add_records(&mut framer, piece, &mut framed.records) {
            framed.error = Some(without_quote(&error.to_string()));
            return framed;
        }
    }
    framed.is_cut = framer.is_cut();
    framed.rest = framer.unfinished_record().map(OwnedRecord::from);
    framed
}

fn add_records(
    framer: &mut Framer,
    piece: &[u8],
    records: &mut Vec<OwnedRecord>,
) -> Result<(), FramingError> {
    framer.feed(piece)?;
    while let Some(record) = framer.next_record()? {
        records.push(record.into());
    }
    Ok(())
}

/// A failure without what it quotes of the answer: that is as much as has come.
fn without_quote(failure: &str) -> String {
    failure.split_once(": it begins with").map_or(failure, |(reason, _)| reason).to_owned()
}

/// What the consumer of a stream sees.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    events: Events,
    failure: Option<String>,
}

/// Reads an answer as the client does. What fails after the stop is nobody's concern.
fn read<'a>(protocol: Protocol, pieces: impl IntoIterator<Item = &'a [u8]>) -> Answer {
    let mut events = Events::new();
    let went = take(protocol, pieces, &mut events);
    let failure =
        went.err().filter(|_| !events.iter().any(is_stop)).map(|failure| without_quote(&failure));
    Answer { events, failure }
}

fn take<'a>(
    protocol: Protocol,
    pieces: impl IntoIterator<Item = &'a [u8]>,
    events: &mut Events,
) -> Result<(), String> {
    let mut framer = Framer::default();
    let mut decoder = internals::protocol_decoder(protocol);
    for piece in pieces {
        framer.feed(piece).map_err(|error| error.to_string())?;
        while let Some(record) = framer.next_record().map_err(|error| error.to_string())? {
            decoder.decode_frame(record.as_frame(), events).map_err(|error| error.to_string())?;
        }
    }
    if !framer.has_received() || framer.is_cut() {
        return Err("cut".to_owned());
    }
    while let Some(record) = framer.unfinished_record() {
        // It may be cut: then the end is what is reported.
        let _cut = decoder.decode_frame(record.as_frame(), events);
    }
    decoder.finish(events).map_err(|error| error.to_string())
}

fn is_stop(event: &StreamEvent) -> bool {
    matches!(event, StreamEvent::Stop(_))
}

fn assert_ends_once(answer: &Answer) {
    let stops = answer.events.iter().filter(|event| is_stop(event)).count();
    assert!(stops <= 1, "{stops} stops");
    assert!(stops == 0 || answer.events.back().is_some_and(is_stop), "something follows the stop");
    assert_eq!(stops == 0, answer.failure.is_some(), "an answer stops, or it says why it does not");
}

/// A piece of a call that has not begun would be lost, and so would words in a call's block.
fn assert_pieces_have_their_block(events: &Events) {
    let mut is_call: HashMap<Slot, bool> = HashMap::new();
    for event in events {
        match event {
            StreamEvent::TextDelta { slot, .. }
            | StreamEvent::ThinkingDelta { slot, .. }
            | StreamEvent::Redacted { slot, .. } => {
                assert!(!*is_call.entry(*slot).or_insert(false), "words for the call {slot}");
            }
            StreamEvent::Signature { slot, .. } | StreamEvent::Item { slot, .. } => {
                is_call.entry(*slot).or_insert(false);
            }
            StreamEvent::ToolCallStart { slot, .. } => {
                assert_eq!(is_call.insert(*slot, true), None, "block {slot} has begun before");
            }
            StreamEvent::ToolCallDelta { slot, .. } | StreamEvent::ToolCallDone { slot } => {
                assert_eq!(is_call.get(slot), Some(&true), "no call has begun in {slot}");
            }
            StreamEvent::RateLimits { .. }
            | StreamEvent::Adapted { .. }
            | StreamEvent::Started { .. }
            | StreamEvent::Usage(_)
            | StreamEvent::UnknownStop { .. }
            | StreamEvent::Stop(_) => (),
        }
    }
}

fn response(events: &Events) -> Response {
    let mut accumulator = Accumulator::new();
    events.iter().for_each(|event| accumulator.push(event));
    accumulator.into_response()
}

fn assert_is_lawful(message: &Message, stop: Option<StopReason>) {
    assert_eq!(message.role(), Role::Assistant);
    assert!(!message.content().is_empty());
    let calls: Vec<&ToolCall> = message.tool_calls().collect();
    let distinct: HashSet<_> = calls.iter().map(|call| &call.id).collect();
    assert_eq!(calls.len(), distinct.len(), "two calls share an id");
    assert!(
        calls.is_empty() || stop == Some(StopReason::ToolUse),
        "calls of an answer that was cut"
    );
}

fn assert_can_be_stored(message: &Message) {
    let stored = serde_json::to_string(message).map_err(|error| error.to_string());
    let read = stored.and_then(|stored| {
        serde_json::from_str::<Message>(&stored).map_err(|error| error.to_string())
    });
    assert_eq!(read.as_ref(), Ok(message));
}

fn assert_can_be_sent(message: Message) {
    let request = request(message);
    for protocol in PROTOCOLS {
        let body = internals::encode_request(Profile::new(PROVIDER, protocol, ""), &request);
        let is_json = serde_json::from_slice::<&RawValue>(&body).is_ok();
        let body = String::from_utf8_lossy(&body);
        assert!(is_json && body.starts_with('{'), "no body for {protocol:?}: {body}");
    }
}

/// The next request: a question, the answer, and the results of its calls or another question.
fn request(answer: Message) -> ModelRequest {
    let results: Vec<_> =
        answer.tool_calls().map(|call| ToolResult::from_text(call, "done", false)).collect();
    let reply = Message::results(results).unwrap_or_else(|_| Message::user_text("Go on"));
    ModelRequest {
        model: MODEL.into(),
        system: "".into(),
        messages: [Message::user_text("Hello"), answer, reply].map(Arc::new).into(),
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
