//! The event stream (SSE) of the page. Every envelope carries its position as the event's id, so that whoever comes
//! back goes on after it.

use bytes::Bytes;
use futures_core::Stream;
use gnoma_core::{
    Event,
    json_value::json,
    protocol::{
        Client, Envelope, Messages, Position, Request, RequestError, RequestErrorKind, RequestId,
        ServerMessage,
    },
    store::SessionId,
};
use serde::Serialize;
use serde_json::Value;
use tokio::{
    sync::OwnedSemaphorePermit,
    time::{Instant, timeout, timeout_at},
};

use crate::{
    access::AuthorizedClient,
    limits::{SIGN_OF_LIFE, TICK, WRITE_BYTES},
    route::StreamQuery,
};

/// Asks for what is wanted.
///
/// # Errors
/// The connection has ended, or takes no more.
pub(crate) fn subscribe_client(
    client: &mut Client,
    wanted: StreamQuery,
) -> Result<AttachRequests, RequestError> {
    if wanted.process {
        client.send_request(None, Request::Watch)?;
    }
    let mut asked = Vec::new();
    for (session, from) in wanted.sessions {
        let id = client.send_request(Some(&session), Request::Attach { from })?;
        asked.push((id, session));
    }
    Ok(AttachRequests(asked))
}

/// The session that each request to attach is for.
pub(crate) struct AttachRequests(Vec<(RequestId, SessionId)>);

/// Tells what happens, beginning with `hello`. Ends when the connection to the host does, and when whoever
/// listens would not be let in any more.
pub(crate) fn stream_events(
    client: Client,
    asked: AttachRequests,
    hello: &Value,
    admitted: AuthorizedClient,
    permit: OwnedSemaphorePermit,
) -> impl Stream<Item = Bytes> + Send + use<> {
    let mut first = Vec::new();
    write_event("hello", None, hello, &mut first);
    let (requests, messages) = client.into_halves();
    // The requests are kept: without them the host would end the connection.
    let state = (Some(first), messages, asked, admitted, (requests, permit));
    futures_util::stream::unfold(state, |(first, mut messages, asked, admitted, kept)| async move {
        let bytes = match first {
            Some(first) => first,
            None => tokio::select! {
                () = admitted.wait_until_revoked() => return None,
                more = next_events(&mut messages, &asked) => more?,
            },
        };
        let state = (None, messages, asked, admitted, kept);
        state.3.is_valid().then(|| (Bytes::from(bytes), state))
    })
}

/// The next events; a sign of life where nothing happens. Pieces of a text wait a moment for those that follow,
/// so that a page gets a few large ones in place of thousands.
async fn next_events(messages: &mut Messages, asked: &AttachRequests) -> Option<Vec<u8>> {
    let mut batch = Batch::default();
    while batch.len() == 0 {
        let Ok(first) = timeout(SIGN_OF_LIFE, messages.next()).await else {
            return Some(b": \n\n".to_vec());
        };
        let mut may_grow = batch.add_message(&first?, asked);
        let until = Instant::now() + TICK;
        while batch.len() < WRITE_BYTES {
            let next = match messages.try_next() {
                None if may_grow => timeout_at(until, messages.next()).await.ok().flatten(),
                ready => ready,
            };
            let Some(next) = next else { break };
            may_grow = batch.add_message(&next, asked);
        }
    }
    Some(batch.into_bytes())
}

/// Server-sent events that are being written. The last of them is a piece of a text that may grow.
#[derive(Default)]
struct Batch {
    out: Vec<u8>,
    growing: Option<Envelope>,
}

impl Batch {
    fn len(&self) -> usize {
        self.out.len() + self.growing.as_ref().map_or(0, Envelope::event_bytes)
    }

    /// Takes in a message; says whether what follows may become one with it.
    fn add_message(&mut self, message: &ServerMessage, asked: &AttachRequests) -> bool {
        if let ServerMessage::Event(envelope) = message {
            if self.growing.as_mut().is_some_and(|known| join_text_events(known, envelope)) {
                return true;
            }
            self.flush_growing();
            if let Some(event) = clone_text_event(&envelope.event) {
                let Envelope { session, epoch, parent, seq, at_ms, event: _ } = &**envelope;
                let (session, parent) = (session.clone(), parent.clone());
                let (epoch, seq, at_ms) = (*epoch, *seq, *at_ms);
                self.growing = Some(Envelope { session, epoch, parent, seq, at_ms, event });
                return true;
            }
        }
        self.flush_growing();
        write_message(message, asked, &mut self.out);
        false
    }

    fn flush_growing(&mut self) {
        if let Some(envelope) = self.growing.take() {
            tell_event(&envelope, &mut self.out);
        }
    }

    fn into_bytes(mut self) -> Vec<u8> {
        self.flush_growing();
        self.out
    }
}

/// A copy of an event that only adds to a text. A clone of any event would be 10 KB of code.
fn clone_text_event(event: &Event) -> Option<Event> {
    Some(match event {
        Event::Text { text } => Event::Text { text: text.clone() },
        Event::Thinking { text } => Event::Thinking { text: text.clone() },
        Event::ToolCallDelta { call, fragment } => {
            Event::ToolCallDelta { call: call.clone(), fragment: fragment.clone() }
        }
        Event::ToolProgress { call, text } => {
            Event::ToolProgress { call: call.clone(), text: text.clone() }
        }
        _ => return None,
    })
}

/// Adds the next event of a session to the one before it, where both add to the same text. It then stands at
/// the place of the second.
fn join_text_events(known: &mut Envelope, next: &Envelope) -> bool {
    if known.session != next.session || known.epoch != next.epoch || known.seq + 1 != next.seq {
        return false;
    }
    let (text, piece) = match (&mut known.event, &next.event) {
        (Event::Text { text }, Event::Text { text: piece })
        | (Event::Thinking { text }, Event::Thinking { text: piece }) => (text, piece),
        (
            Event::ToolCallDelta { call, fragment },
            Event::ToolCallDelta { call: other, fragment: piece },
        ) if call == other => (fragment, piece),
        (Event::ToolProgress { call, text }, Event::ToolProgress { call: other, text: piece })
            if call == other =>
        {
            (text, piece)
        }
        _ => return false,
    };
    text.push_str(piece);
    known.seq = next.seq;
    known.at_ms = next.at_ms;
    true
}

fn write_message(message: &ServerMessage, asked: &AttachRequests, out: &mut Vec<u8>) {
    match message {
        ServerMessage::Event(envelope) => tell_event(envelope, out),
        ServerMessage::Snapshot(view) => {
            write_event("snapshot", Some((&view.session, view.position())), view, out);
        }
        ServerMessage::Process(event) => write_event("process", None, event, out),
        // That it is attached is seen by what follows.
        ServerMessage::Reply { result: Ok(_), .. } => (),
        ServerMessage::Reply { id, result: Err(error) } => {
            let session = asked.0.iter().find(|(asked, _)| asked == id).map(|(_, session)| session);
            write_event("refused", None, &json!({ "session": session, "error": error }), out);
        }
    }
}

fn tell_event(envelope: &Envelope, out: &mut Vec<u8>) {
    let position = Position { epoch: envelope.epoch, seq: envelope.seq };
    write_event("event", Some((&envelope.session, position)), envelope, out);
}

/// Adds an event. JSON holds no line break, so that its data is one line.
fn write_event(
    kind: &str,
    place: Option<(&SessionId, Position)>,
    data: &impl Serialize,
    out: &mut Vec<u8>,
) {
    if let Some((session, Position { epoch, seq })) = place {
        out.extend_from_slice(format!("id: {session}@{}.{seq}\n", epoch.0).as_bytes());
    }
    out.extend_from_slice(format!("event: {kind}\ndata: ").as_bytes());
    // Nothing in the protocol fails to encode.
    let _infallible = serde_json::to_writer(&mut *out, data);
    out.extend_from_slice(b"\n\n");
}

/// The connection to the host ended before it said anything.
pub(crate) fn connection_closed_error() -> RequestError {
    RequestError::new(RequestErrorKind::Closed, "the server has ended")
        .with_remedy("It continues once a server runs again.")
}

#[cfg(test)]
mod tests {
    use gnoma_core::{
        CallId,
        protocol::{Epoch, SessionView},
        session::SessionState,
    };

    use super::*;

    fn told(events: &[(&str, u64, Event)]) -> (Vec<u64>, Vec<Envelope>) {
        let mut batch = Batch::default();
        for (session, seq, event) in events {
            let envelope = Envelope {
                session: SessionId::new(*session),
                epoch: Epoch(1),
                parent: None,
                seq: *seq,
                at_ms: 9,
                event: event.clone(),
            };
            batch.add_message(&ServerMessage::Event(envelope.into()), &AttachRequests(Vec::new()));
        }
        let text = String::from_utf8(batch.into_bytes()).unwrap();
        let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
        let all: Vec<Envelope> = data.map(|data| serde_json::from_str(data).unwrap()).collect();
        (all.iter().map(|envelope| envelope.seq).collect(), all)
    }

    #[test]
    fn coalesced_text_deltas_take_the_position_of_the_last() {
        let text = |text: &str| Event::Text { text: text.to_owned() };
        let thinking = || Event::Thinking { text: "hm".to_owned() };
        let out =
            |call: &str| Event::ToolProgress { call: CallId::new(call), text: "x".to_owned() };
        let log = [
            ("s", 1, Event::State(SessionState::Active)),
            ("s", 2, thinking()),
            ("s", 3, thinking()),
            ("s", 4, text("a")),
            ("s", 5, text("b")),
            ("s", 6, text("c")),
            ("s", 7, out("c1")),
            ("s", 8, out("c2")),
            ("s", 9, out("c2")),
            ("s", 10, text("d")),
            // Something lies between them that this stream was not told of.
            ("s", 12, text("e")),
            ("other", 13, text("f")),
        ];
        let (seqs, all) = told(&log);
        assert_eq!(seqs, [1, 3, 6, 7, 9, 10, 12, 13]);
        assert_eq!(all[2].event, text("abc"));
        let (mut view, mut same) = (SessionView::default(), SessionView::default());
        (view.epoch, same.epoch) = (Epoch(1), Epoch(1));
        let own = |it: &&Envelope| it.session.as_str() == "s";
        all.iter().filter(own).for_each(|envelope| view.apply_envelope(envelope));
        let single = log.iter().map(|one| told(std::slice::from_ref(one)).1.remove(0));
        single.filter(|it| own(&it)).for_each(|envelope| same.apply_envelope(&envelope));
        assert_eq!(view, same, "the state is the same");
    }
}
