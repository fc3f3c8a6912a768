//! Checks that an answer goes back to its provider as it came.
//!
//! Where a later request of the same conversation carries the answer, the provider has accepted that
//! form of it. gnoma's own form is compared with it piece by piece: what the answer held and the
//! recorded client sent back, gnoma must send back too; what gnoma sends, the answer must have held.
//! Where the recorded client changed or left out something by itself, that is counted, with the kind.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use gnoma_core::{Content, Message, ModelRef, Response, StopReason, ToolResult};
use gnoma_llm::connect_provider;
use gnoma_net::Http;
use gnoma_testkit::{Cassette, Reply, Server, cassette::Api};

use crate::{
    pieces::{Piece, Turn, answer, or_empty, standard_base64, turns},
    replay::{guarded, model, profile, read, request, side_by_side},
    report::{Report, shortened},
};

/// What became of one answer.
enum Outcome {
    /// Sent back exactly as the recorded client did.
    Same,
    /// Sent back as it came; the recorded client did something else.
    ClientDiffers(String),
    /// Nothing to compare with, for this reason.
    NotRecorded(&'static str),
    /// Sent back changed.
    Failed(String),
}

/// Sends every answer back that a later request carries.
pub(crate) async fn every(cassettes: Vec<Arc<Cassette>>, http: &Http) -> Report {
    let mut conversations: BTreeMap<_, Vec<Arc<Cassette>>> = BTreeMap::new();
    for cassette in cassettes {
        let key = (cassette.conversation.clone(), cassette.api, cassette.provider.clone());
        conversations.entry(key).or_default().push(cassette);
    }
    let mut pairs = Vec::new();
    for mut steps in conversations.into_values() {
        steps.sort_by_key(|cassette| cassette.step);
        while steps.len() > 1 {
            let answered = steps.remove(0);
            pairs.push((answered, steps.clone()));
        }
    }
    let jobs = pairs.into_iter().map(|(answered, later)| {
        let http = http.clone();
        async move {
            let outcome = guarded(outcome(&answered, &later, &http)).await;
            (answered, outcome.unwrap_or_else(Outcome::Failed))
        }
    });
    report(&side_by_side(jobs).await)
}

async fn outcome(
    answered: &Cassette,
    later: &[Arc<Cassette>],
    http: &Http,
) -> Result<Outcome, String> {
    let recorded = match recorded_turn(answered, later) {
        Ok(turn) => turn,
        Err(reason) => return Ok(Outcome::NotRecorded(reason)),
    };
    let own = own_turn(answered, http).await?;
    Ok(compared(answered, &recorded, &own))
}

/// The answer as the recorded client sent it back.
fn recorded_turn(answered: &Cassette, later: &[Arc<Cassette>]) -> Result<Turn, &'static str> {
    if answered.expect.error.is_some() {
        return Err("the call failed");
    }
    if answered.expect.text.is_empty() && answered.expect.tool_calls.is_empty() {
        return Err("the answer holds neither text nor calls");
    }
    if answered.expect.stop_reason.as_deref() != Some("tool_use")
        && !answered.expect.tool_calls.is_empty()
    {
        return Err("the answer was cut in a call, which is not kept");
    }
    let before = turns(answered.api, &answered.request.body).len();
    let mut reason = "the later requests hold no answer at all";
    for next in later {
        for turn in turns(next.api, &next.request.body).into_iter().skip(before) {
            if turn.iter().any(|piece| stands_for(answered, piece)) {
                return Ok(turn);
            }
            reason = "the later requests hold other answers";
        }
    }
    let kept_there = |next: &Arc<Cassette>| next.request.body.get("previous_response_id").is_some();
    Err(if later.iter().any(kept_there) { "the provider keeps the conversation" } else { reason })
}

/// Whether a piece is enough to recognise the answer by.
fn stands_for(answered: &Cassette, piece: &Piece) -> bool {
    match piece {
        Piece::Thinking(_) | Piece::Phase(_) => false,
        Piece::Text(_)
        | Piece::Token(_)
        | Piece::ItemId(_)
        | Piece::CallId(_)
        | Piece::Call { .. } => came_with(answered, piece),
    }
}

/// Whether the answer held the piece.
fn came_with(answered: &Cassette, piece: &Piece) -> bool {
    let expect = &answered.expect;
    match piece {
        Piece::Text(text) => {
            let refusal = expect.refusal_text.as_deref().unwrap_or_default();
            format!("{}{refusal}", expect.text).contains(text)
        }
        Piece::Thinking(text) => expect.thinking.contains(text),
        Piece::Token(token) => {
            let mut tokens = expect.signatures.iter();
            tokens.any(|came| came == token || standard_base64(came) == *token)
                || answered.body_contains(token)
        }
        Piece::Phase(phase) => answered.body_contains(&format!("\"{phase}\"")),
        Piece::ItemId(id) => answered.body_contains(id),
        Piece::CallId(id) => {
            let mut ids = expect.tool_calls.iter().filter_map(|call| call.id.as_deref());
            ids.any(|known| known == id)
        }
        Piece::Call { name, arguments } => expect
            .tool_calls
            .iter()
            .any(|call| call.name == *name && or_empty(call.args.clone()) == *arguments),
    }
}

/// The answer as gnoma sends it back after having read it.
async fn own_turn(answered: &Cassette, http: &Http) -> Result<Turn, String> {
    let reply = answered.reply(usize::MAX).map_err(|error| error.to_string())?;
    let server = Server::start_with_replies([reply, Reply::json(200, "{}")])
        .map_err(|error| error.to_string())?;
    let provider = connect_provider(profile(answered, &server.url()), http.clone());
    let mut asked = request(answered);
    let reading = read(&*provider, asked.clone()).await;
    let origin = ModelRef { provider: answered.provider.clone(), model: model(answered) };
    asked.messages.extend(exchange(reading.response, origin)?);
    read(&*provider, asked).await;
    let requests = server.requests();
    let sent = requests.get(1).ok_or("the second request was not sent")?;
    let mut turns = turns(answered.api, &sent.json());
    if turns.len() > 1 {
        return Err(format!("one answer was sent as {} turns", turns.len()));
    }
    turns.pop().ok_or_else(|| "the answer was not sent".to_owned())
}

/// The answer as a message, and what must follow it.
fn exchange(response: Response, origin: ModelRef) -> Result<[Arc<Message>; 2], String> {
    let message = response.into_message(Some(origin));
    let message = message.ok_or("the answer makes no message")?;
    let next = if message.stop_reason() == Some(StopReason::ToolUse) {
        let results = message.content().iter().filter_map(|block| match block {
            Content::ToolCall(call) => Some(ToolResult::from_text(call, "done", false)),
            _ => None,
        });
        Message::results(results.collect()).map_err(|error| error.to_string())?
    } else {
        Message::user_text("go on")
    };
    Ok([Arc::new(message), Arc::new(next)])
}

fn compared(answered: &Cassette, recorded: &Turn, own: &Turn) -> Outcome {
    if recorded == own {
        return Outcome::Same;
    }
    let faults = faults(answered, recorded, own);
    if faults.is_empty() {
        Outcome::ClientDiffers(client_changes(recorded, own))
    } else {
        Outcome::Failed(faults.join("; "))
    }
}

/// What gnoma has lost, invented or moved.
fn faults(answered: &Cassette, recorded: &Turn, own: &Turn) -> Vec<String> {
    let lost = recorded
        .iter()
        .filter(|piece| came_with(answered, piece) && !holds(own, piece))
        .filter(|piece| !is_by_reference(answered, piece) && !is_illegal(answered, piece))
        .filter(|piece| !has_other_copy(answered, own, piece));
    let invented =
        own.iter().filter(|piece| !came_with(answered, piece) && !is_stand_in(answered, piece));
    let mut faults: Vec<String> = lost.map(|piece| format!("lost {piece:?}")).collect();
    faults.extend(invented.map(|piece| format!("invented {piece:?}")));
    let body = answered.response.body.as_deref().unwrap_or_default();
    let came = answer(answered.api, body);
    let reference = came.as_ref().unwrap_or(recorded);
    if !in_same_order(own, reference) {
        faults.push(format!("order: came {reference:?}, sent {own:?}"));
    }
    faults
}

/// What the recorded client did to the answer by itself.
fn client_changes(recorded: &Turn, own: &Turn) -> String {
    let missing = |from: &Turn, piece: &&Piece| !holds(from, piece);
    let left_out = own.iter().filter(|piece| missing(recorded, piece));
    let changed = recorded.iter().filter(|piece| missing(own, piece));
    let mut kinds: BTreeSet<String> = left_out
        .map(|piece| format!("left out {}", piece.kind()))
        .chain(changed.map(|piece| format!("added or changed {}", piece.kind())))
        .collect();
    if !in_same_order(own, recorded) {
        kinds.insert("moved or doubled pieces".to_owned());
    }
    if kinds.is_empty() {
        kinds.insert("cut the same content otherwise".to_owned());
    }
    kinds.into_iter().collect::<Vec<_>>().join(", ")
}

/// Reasoning that came without a token can only be sent back by naming what the provider has stored;
/// gnoma asks it to store nothing.
fn is_by_reference(answered: &Cassette, piece: &Piece) -> bool {
    answered.api == Api::Responses
        && answered.expect.signatures.is_empty()
        && matches!(piece, Piece::ItemId(_) | Piece::Thinking(_))
}

/// A stream has a reasoning item twice, encrypted anew and with some servers under another id; either
/// copy may go back.
fn has_other_copy(answered: &Cassette, own: &Turn, piece: &Piece) -> bool {
    answered.api == Api::Responses
        && own.iter().any(|other| {
            let alike = matches!(
                (piece, other),
                (Piece::Token(_), Piece::Token(_)) | (Piece::ItemId(_), Piece::ItemId(_))
            );
            alike && came_with(answered, other)
        })
}

/// Mistral takes ids of nine letters and digits only. A recording that has others was scrubbed.
fn is_illegal(answered: &Cassette, piece: &Piece) -> bool {
    let legal = |id: &str| id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    match piece {
        Piece::CallId(id) => answered.api == Api::Mistral && !legal(id),
        Piece::Text(_)
        | Piece::Thinking(_)
        | Piece::Phase(_)
        | Piece::Token(_)
        | Piece::ItemId(_)
        | Piece::Call { .. } => false,
    }
}

/// Where the provider sent no id, or none that it would take, gnoma makes one.
fn is_stand_in(answered: &Cassette, piece: &Piece) -> bool {
    let without_id = answered.expect.tool_calls.iter().any(|call| {
        let id = call.id.clone().unwrap_or_default();
        id.is_empty() || is_illegal(answered, &Piece::CallId(id))
    });
    matches!(piece, Piece::CallId(_)) && without_id
}

/// Whether `turn` carries the piece, words perhaps among others.
fn holds(turn: &Turn, piece: &Piece) -> bool {
    let joined =
        |part: fn(&Piece) -> Option<&str>| -> String { turn.iter().filter_map(part).collect() };
    match piece {
        Piece::Text(text) => joined(|piece| match piece {
            Piece::Text(text) => Some(text),
            _ => None,
        })
        .contains(text),
        Piece::Thinking(text) => joined(|piece| match piece {
            Piece::Thinking(text) => Some(text),
            _ => None,
        })
        .contains(text),
        Piece::Phase(_)
        | Piece::Token(_)
        | Piece::ItemId(_)
        | Piece::CallId(_)
        | Piece::Call { .. } => turn.contains(piece),
    }
}

/// Whether the pieces that both have come in the same order and number.
fn in_same_order(one: &Turn, other: &Turn) -> bool {
    common(one, other) == common(other, one)
}

/// The pieces of `turn` that `other` has exactly so. A phase goes with its words, however these are cut.
fn common<'a>(turn: &'a Turn, other: &Turn) -> Vec<&'a Piece> {
    let counts = |piece: &&Piece| !matches!(piece, Piece::Phase(_)) && other.contains(piece);
    turn.iter().filter(counts).collect()
}

fn report(outcomes: &[(Arc<Cassette>, Outcome)]) -> Report {
    let mut text = String::new();
    let mut counts: BTreeMap<(Api, String), usize> = BTreeMap::new();
    let mut failures = 0;
    for (answered, outcome) in outcomes {
        let what = match outcome {
            Outcome::Same => "sent back alike".to_owned(),
            Outcome::ClientDiffers(how) => format!("sent back whole; the recorded client {how}"),
            Outcome::NotRecorded(why) => format!("not comparable: {why}"),
            Outcome::Failed(how) => {
                failures += 1;
                text.push_str(&format!("{}\n    {}\n", answered.id, shortened(how)));
                "FAILED".to_owned()
            }
        };
        *counts.entry((answered.api, what)).or_default() += 1;
    }
    text.push_str("\nanswers of recorded conversations, sent back\n");
    for ((api, what), times) in &counts {
        text.push_str(&format!("{:<24} {times:>5} {what}\n", api.to_string()));
    }
    Report { text, failures }
}
