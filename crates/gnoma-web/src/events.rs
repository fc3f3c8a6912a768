//! What happens, as server-sent events. Every envelope carries its position as the event's id, so that
//! whoever comes back goes on after it.

use bytes::Bytes;
use futures_core::Stream;
use gnoma_core::{
    protocol::{
        Client, Messages, Position, Request, RequestError, RequestErrorKind, RequestId,
        ServerMessage,
    },
    store::SessionId,
};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::{sync::OwnedSemaphorePermit, time::timeout};

use crate::{
    access::Admitted,
    limits::{SIGN_OF_LIFE, WRITE_BYTES},
    route::StreamQuery,
};

/// Asks for what is wanted.
///
/// # Errors
/// The connection has ended, or takes no more.
pub(crate) fn ask(client: &mut Client, wanted: StreamQuery) -> Result<Attaching, RequestError> {
    if wanted.process {
        client.request(None, Request::Watch)?;
    }
    let mut asked = Vec::new();
    for (session, from) in wanted.sessions {
        let id = client.request(Some(&session), Request::Attach { from })?;
        asked.push((id, session));
    }
    Ok(Attaching(asked))
}

/// Which session each request to attach is for.
pub(crate) struct Attaching(Vec<(RequestId, SessionId)>);

/// Tells what happens, beginning with `hello`. Ends when the connection to the host does, and when whoever
/// listens would not be let in any more.
pub(crate) fn stream(
    client: Client,
    asked: Attaching,
    hello: &Value,
    admitted: Admitted,
    permit: OwnedSemaphorePermit,
) -> impl Stream<Item = Bytes> + Send + use<> {
    let mut first = Vec::new();
    write("hello", None, hello, &mut first);
    let (requests, messages) = client.split();
    // The requests are kept: without them the host would end the connection.
    let state = (Some(first), messages, asked, admitted, (requests, permit));
    futures_util::stream::unfold(state, |(first, mut messages, asked, admitted, kept)| async move {
        let bytes = match first {
            Some(first) => first,
            None => tokio::select! {
                () = admitted.over() => return None,
                more = more(&mut messages, &asked) => more?,
            },
        };
        let state = (None, messages, asked, admitted, kept);
        state.3.holds().then(|| (Bytes::from(bytes), state))
    })
}

/// The next events, and what else is there already; a sign of life where nothing happens.
async fn more(messages: &mut Messages, asked: &Attaching) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    loop {
        match timeout(SIGN_OF_LIFE, messages.next()).await {
            Err(_) => return Some(b": \n\n".to_vec()),
            Ok(message) => tell(&message?, asked, &mut out),
        }
        while out.len() < WRITE_BYTES
            && let Some(message) = messages.ready()
        {
            tell(&message, asked, &mut out);
        }
        if !out.is_empty() {
            return Some(out);
        }
    }
}

fn tell(message: &ServerMessage, asked: &Attaching, out: &mut Vec<u8>) {
    match message {
        ServerMessage::Event(envelope) => {
            let position = Position { epoch: envelope.epoch, seq: envelope.seq };
            write("event", Some((&envelope.session, position)), envelope, out);
        }
        ServerMessage::Snapshot(view) => {
            write("snapshot", Some((&view.session, view.position())), view, out);
        }
        ServerMessage::Process(event) => write("process", None, event, out),
        // That it is attached is seen by what follows.
        ServerMessage::Reply { result: Ok(_), .. } => (),
        ServerMessage::Reply { id, result: Err(error) } => {
            let session = asked.0.iter().find(|(asked, _)| asked == id).map(|(_, session)| session);
            write("refused", None, &json!({ "session": session, "error": error }), out);
        }
    }
}

/// Adds an event. JSON holds no line break, so that its data is one line.
fn write(
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
pub(crate) fn gone() -> RequestError {
    RequestError::new(RequestErrorKind::Closed, "the server has ended")
        .with_remedy("It goes on once a server runs again.")
}
