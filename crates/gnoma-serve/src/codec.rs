//! Encodes and decodes protocol messages as JSON lines. Pure; what cannot be read gives the one error that its sender
//! is told.

use std::{collections::BTreeMap, fmt, str::Utf8Error};

use gnoma_core::{
    Event,
    lines::{Line, MAX_LINE_BYTES},
    protocol::{
        ClientMessage, Envelope, Greeting, Hello, Position, Recent, RequestError, RequestErrorKind,
        RequestId, ServerMessage, SessionView, VERSION, common_version,
    },
};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

/// Longest part of what was not understood that its sender is shown.
const MAX_SHOWN_CHARS: usize = 60;

/// A request that cannot be read: under which id its error goes back (0 where it has none), and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadableRequest {
    /// The id of the request, as far as it was readable.
    pub id: RequestId,
    /// The error that says why the message cannot be read.
    pub error: RequestError,
}

/// A line that is not the message that was expected.
#[derive(thiserror::Error)]
enum DecodeError {
    #[error(transparent)]
    Utf8(#[from] Utf8Error),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

gnoma_core::debug_as_display!(DecodeError);

/// Reads a client's first line.
///
/// # Errors
/// It is none, or the client speaks a version that is more than one apart.
pub fn parse_hello(line: &Line) -> Result<(Hello, u32), RequestError> {
    let hello: Hello = parse_json(line_bytes(line)?).map_err(|error| {
        malformed_error(&format!(
            "the first line must say which version the client speaks: {error}"
        ))
    })?;
    match common_version(VERSION, hello.version) {
        Some(version) => Ok((hello, version)),
        None => Err(other_version(&hello)),
    }
}

fn other_version(hello: &Hello) -> RequestError {
    let cause = format!(
        "the server speaks version {VERSION} of the protocol and `{}` speaks version {}",
        hello.program, hello.version
    );
    RequestError::new(RequestErrorKind::Version, cause).with_remedy(
        "`gnoma serve --replace` replaces it with a server of your version; its sessions are \
         saved and continue.",
    )
}

/// Reads a client's request.
///
/// # Errors
/// It is none: too long, no JSON, or a request that this version does not know.
pub fn parse_request(line: &Line) -> Result<ClientMessage, UnreadableRequest> {
    #[derive(Deserialize)]
    struct Known {
        id: RequestId,
        request: RequestName,
    }
    let bytes = line_bytes(line).map_err(|error| UnreadableRequest { id: RequestId(0), error })?;
    let unreadable = match decode_utf8(bytes).and_then(|text| Ok(ClientMessage::from_json(text)?)) {
        Ok(message) => return Ok(message),
        Err(error) => error,
    };
    Err(match parse_json::<Known>(bytes) {
        Err(_) => UnreadableRequest { id: RequestId(0), error: malformed_error(&unreadable) },
        Ok(Known { id, request: RequestName(name) }) => {
            let name: String = name.chars().take(MAX_SHOWN_CHARS).collect();
            let cause = format!("the request `{name}` cannot be read: {unreadable}");
            let error = RequestError::new(RequestErrorKind::Unknown, cause)
                .with_remedy("The server may be older or newer than the client.");
            UnreadableRequest { id, error }
        }
    })
}

/// The name of a request, known or not. The rest of it is passed over: as values it could take many
/// times the memory of its line.
struct RequestName(String);

impl<'de> Deserialize<'de> for RequestName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NameVisitor).map(Self)
    }
}

struct NameVisitor;

impl<'de> Visitor<'de> for NameVisitor {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a request")
    }

    fn visit_str<E>(self, name: &str) -> Result<String, E> {
        Ok(name.to_owned())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<String, A::Error> {
        let mut name: Option<String> = None;
        while let Some((key, IgnoredAny)) = fields.next_entry()? {
            name.get_or_insert(key);
        }
        Ok(name.unwrap_or_default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<String, A::Error> {
        while let Some(IgnoredAny) = parts.next_element()? {}
        Ok(String::new())
    }
}

/// Reads the server's first line.
///
/// # Errors
/// It is none.
pub fn parse_greeting(line: &Line) -> Result<Greeting, RequestError> {
    parse_json(line_bytes(line)?).map_err(|error: DecodeError| malformed_error(&error))
}

/// Reads a message of the server. What only a newer version knows is left out of it, so that the rest is
/// of use: an event becomes [`Event::Unknown`] and the numbers stay without gaps, a snapshot goes without
/// such events, a reply becomes an error. `None` is news of the process that this version does not know.
///
/// # Errors
/// It is none.
pub fn parse_message(line: &Line) -> Result<Option<ServerMessage>, RequestError> {
    let bytes = line_bytes(line)?;
    match decode_utf8(bytes).and_then(|text| Ok(ServerMessage::from_json(text)?)) {
        Ok(message) => Ok(Some(message)),
        Err(error) => parse_newer_message(bytes).map_err(|_| malformed_error(&error)),
    }
}

/// A message as a newer server may send it.
fn parse_newer_message(bytes: &[u8]) -> Result<Option<ServerMessage>, DecodeError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Newer<'a> {
        Event(Place),
        #[serde(borrow)]
        Snapshot(BTreeMap<String, &'a RawValue>),
        Reply {
            id: RequestId,
        },
        Process(IgnoredAny),
    }
    #[derive(Deserialize)]
    struct Place {
        session: gnoma_core::store::SessionId,
        parent: Option<gnoma_core::store::SessionId>,
        #[serde(flatten)]
        at: Position,
        at_ms: i64,
    }
    Ok(match parse_json(bytes)? {
        Newer::Event(Place { session, parent, at: Position { epoch, seq }, at_ms }) => {
            let event = Event::Unknown;
            let envelope = Envelope { session, epoch, parent, seq, at_ms, event };
            Some(ServerMessage::Event(envelope.into()))
        }
        Newer::Snapshot(view) => Some(ServerMessage::Snapshot(parse_newer_snapshot(view)?)),
        Newer::Reply { id } => {
            let cause = "the server's answer comes from a newer version and cannot be read";
            let result = Err(RequestError::new(RequestErrorKind::Unknown, cause)
                .with_remedy("Restart the window with the server's version of gnoma."));
            Some(ServerMessage::Reply { id, result })
        }
        Newer::Process(IgnoredAny) => None,
    })
}

/// Reads a snapshot without the events in it that only a newer version knows.
fn parse_newer_snapshot(
    view: BTreeMap<String, &RawValue>,
) -> Result<Box<SessionView>, DecodeError> {
    // A binding of its own: its values may live as short as those that are put in below.
    let mut view = view;
    let recent = view.get("recent").and_then(|all| parse_text::<Vec<&RawValue>>(all.get()).ok());
    let known: Option<Box<RawValue>> = recent.and_then(|mut recent| {
        recent.retain(|event| parse_text::<Recent>(event.get()).is_ok());
        serde_json::value::to_raw_value(&recent).ok()
    });
    if let Some(known) = &known {
        view.insert("recent".to_owned(), known);
    }
    parse_text(&serde_json::to_string(&view)?)
}

/// Adds a message as a line. Nothing in the protocol fails to encode; if something did, it is left
/// out.
pub fn encode_message(message: &impl Serialize, out: &mut Vec<u8>) {
    let before = out.len();
    match serde_json::to_writer(&mut *out, message) {
        Ok(()) => out.push(b'\n'),
        Err(_) => out.truncate(before),
    }
}

/// Adds a message of the server as a line that its client reads: in place of one that is too long stands
/// what is left of it, so that the connection goes on.
pub fn write_message(message: ServerMessage, out: &mut Vec<u8>) {
    let before = out.len();
    encode_message(&message, out);
    let bytes = out.len() - before;
    if bytes > MAX_LINE_BYTES {
        // Nor does the buffer keep its size.
        out.truncate(before);
        out.shrink_to(before);
        encode_message(&replace_oversized(message, bytes), out);
    }
}

/// Returns the message that is sent in place of one that is too long for a line.
fn replace_oversized(message: ServerMessage, bytes: usize) -> ServerMessage {
    match message {
        ServerMessage::Reply { id, result: _ } => ServerMessage::Reply {
            id,
            result: Err(RequestError::new(
                RequestErrorKind::Failed,
                format!(
                    "the answer is {} MB, and a message can be at most {}",
                    bytes.div_ceil(1 << 20),
                    MAX_LINE_BYTES >> 20
                ),
            )
            .with_remedy("Ask for a smaller part of it.")),
        },
        // Its number stays, so that no event seems to be missing.
        ServerMessage::Event(envelope) => {
            let Envelope { session, epoch, parent, seq, at_ms, event: _ } = &*envelope;
            let short = Envelope {
                session: session.clone(),
                epoch: *epoch,
                parent: parent.clone(),
                seq: *seq,
                at_ms: *at_ms,
                event: Event::Unknown,
            };
            ServerMessage::Event(short.into())
        }
        ServerMessage::Snapshot(mut view) => {
            view.recent.clear();
            view.models.clear();
            if let Some(turn) = &mut view.turn {
                turn.queue.clear();
                turn.questions.iter_mut().for_each(|question| question.preview = None);
                turn.calls.clear();
            }
            ServerMessage::Snapshot(view)
        }
        ServerMessage::Process(event) => ServerMessage::Process(event),
    }
}

fn line_bytes(line: &Line) -> Result<&[u8], RequestError> {
    match line {
        Line::Whole(bytes) => Ok(bytes),
        Line::TooLong => Err(malformed_error(&format!(
            "the line is longer than {} MB and was not read",
            MAX_LINE_BYTES >> 20
        ))),
    }
}

fn parse_json<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, DecodeError> {
    parse_text(decode_utf8(bytes)?)
}

fn decode_utf8(bytes: &[u8]) -> Result<&str, DecodeError> {
    Ok(std::str::from_utf8(bytes)?)
}

/// All that is stored or sent is read from text, never from bytes or a tree as well: each way would be another
/// copy of the code for every type.
fn parse_text<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, DecodeError> {
    Ok(gnoma_core::json::from_str(text)?)
}

fn malformed_error(cause: &dyn fmt::Display) -> RequestError {
    RequestError::new(RequestErrorKind::Malformed, cause.to_string())
}

#[cfg(test)]
mod tests {
    use gnoma_core::{
        protocol::{Reply, Request},
        store::SessionId,
    };
    use proptest::prelude::*;

    use super::*;

    fn line(text: &str) -> Line {
        Line::Whole(text.as_bytes().to_vec())
    }

    #[test]
    fn request_round_trips_through_the_codec() {
        let session = Some(SessionId::new("s"));
        let message = ClientMessage { id: RequestId(3), session, request: Request::Cancel };
        let mut out = Vec::new();
        encode_message(&message, &mut out);
        assert_eq!(
            String::from_utf8_lossy(&out),
            "{\"id\":3,\"session\":\"s\",\"request\":\"cancel\"}\n"
        );
        out.pop();
        assert_eq!(parse_request(&Line::Whole(out)), Ok(message));
    }

    #[test]
    fn an_unknown_request_is_named_under_its_id() {
        let unreadable = parse_request(&line("{\"id\":7,\"request\":{\"dance\":{}}}")).unwrap_err();
        assert_eq!(
            (unreadable.id, unreadable.error.kind),
            (RequestId(7), RequestErrorKind::Unknown)
        );
        assert!(unreadable.error.cause.contains("`dance`"), "{}", unreadable.error);
        for rubbish in ["", "x", "{}", "[]", "{\"id\":-1}", "\u{0}"] {
            let unreadable = parse_request(&line(rubbish)).unwrap_err();
            let expected = (RequestId(0), RequestErrorKind::Malformed);
            assert_eq!((unreadable.id, unreadable.error.kind), expected, "{rubbish}");
        }
    }

    /// What a client reads of a message, and how long its line was.
    fn read_back(sent: ServerMessage) -> ServerMessage {
        let mut out = Vec::new();
        write_message(sent, &mut out);
        assert!(out.len() <= MAX_LINE_BYTES && out.ends_with(b"\n"), "{}", out.len());
        out.pop();
        parse_message(&Line::Whole(out)).unwrap().unwrap()
    }

    #[test]
    fn message_over_the_line_limit_is_replaced_by_an_error() {
        let long = "x".repeat(MAX_LINE_BYTES);
        let result = Ok(Reply::Text(long.clone()));
        let reply = read_back(ServerMessage::Reply { id: RequestId(5), result });
        let ServerMessage::Reply { id: RequestId(5), result: Err(error) } = reply else {
            panic!("{reply:?}")
        };
        assert!(error.cause.contains("33 MB"), "{error}");

        let (session, epoch) = (SessionId::new("s"), Default::default());
        let event = Event::Text { text: long.clone() };
        let envelope = Envelope { session, epoch, parent: None, seq: 4, at_ms: 5, event };
        let event = read_back(ServerMessage::Event(envelope.into()));
        let ServerMessage::Event(envelope) = event else { panic!("{event:?}") };
        assert_eq!((envelope.seq, &envelope.event), (4, &Event::Unknown));

        let queue = vec![vec![gnoma_core::Content::from_text(long)]];
        let turn = Some(gnoma_core::protocol::RunningTurn { queue, ..Default::default() });
        let view = SessionView { seq: 7, turn, ..SessionView::default() };
        let snapshot = read_back(ServerMessage::Snapshot(Box::new(view)));
        let ServerMessage::Snapshot(view) = snapshot else { panic!("{snapshot:?}") };
        assert_eq!((view.seq, view.turn.unwrap().queue.len()), (7, 0));
    }

    #[test]
    fn adjacent_protocol_versions_are_compatible() {
        let read = |version: u32| {
            parse_hello(&line(&format!(
                "{{\"version\":{version},\"program\":\"p\",\"client\":\"c\"}}"
            )))
        };
        assert_eq!(read(VERSION).unwrap().1, VERSION);
        assert_eq!(read(VERSION + 1).unwrap().1, VERSION);
        let error = read(VERSION + 2).unwrap_err();
        assert_eq!(error.kind, RequestErrorKind::Version);
        assert!(error.remedy.unwrap().contains("--replace"));
    }

    #[test]
    fn unknown_event_of_a_newer_version_preserves_its_sequence_number() {
        let text = "{\"event\":{\"session\":\"s\",\"epoch\":1,\"seq\":4,\"at_ms\":5,\"event\":{\"sang\":{}}}}";
        let Ok(Some(ServerMessage::Event(envelope))) = parse_message(&line(text)) else { panic!() };
        assert_eq!((envelope.seq, &envelope.event), (4, &Event::Unknown));
    }

    #[test]
    fn unknown_parts_of_a_newer_version_do_not_end_the_connection() {
        let known = Recent {
            seq: 2,
            at_ms: 3,
            event: Event::Usage { round: Default::default(), turn: Default::default() },
        };
        let view = SessionView { seq: 4, recent: [known.clone()].into(), ..Default::default() };
        let mut text = Vec::new();
        encode_message(&ServerMessage::Snapshot(Box::new(view)), &mut text);
        let mut json: serde_json::Value = serde_json::from_slice(&text).unwrap();
        let recent = json["snapshot"]["recent"].as_array_mut().unwrap();
        recent.push(serde_json::json!({"seq": 3, "at_ms": 4, "event": {"sang": {"high": true}}}));
        let read = parse_message(&line(&json.to_string())).unwrap();
        let Some(ServerMessage::Snapshot(view)) = read else { panic!("{read:?}") };
        assert_eq!((view.seq, view.recent), (4, [known].into()));

        let read = parse_message(&line("{\"reply\":{\"id\":7,\"result\":{\"Ok\":{\"sung\":1}}}}"));
        let Ok(Some(ServerMessage::Reply { id: RequestId(7), result: Err(error) })) = read else {
            panic!("{read:?}")
        };
        assert_eq!(error.kind, RequestErrorKind::Unknown);
        assert_eq!(parse_message(&line("{\"process\":{\"sings\":{}}}")), Ok(None));
        assert!(parse_message(&line("{\"sings\":{}}")).is_err());
    }

    proptest! {
        /// Whatever bytes come, reading them ends in a message or an error.
        #[test]
        fn message_parser_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let line = Line::Whole(bytes);
            let _ = (parse_hello(&line).is_ok(), parse_request(&line).is_ok(), parse_message(&line).is_ok());
        }
    }
}
