//! Laws of the fold and of the wire, over random logs.

use std::{collections::BTreeSet, fmt::Debug, sync::Arc};

use proptest::prelude::*;
use serde::{Serialize, de::DeserializeOwned};

use super::{
    samples::{Kinds, process_events, sample_events, sample_replies, sample_requests},
    *,
};
use crate::{
    CallId, Content, Event, Message, ModelRef, RawJson, ToolCall, ToolResult, Usage,
    session::{NoticeLevel, Outcome, PermissionMode, SessionState},
    store::SessionId,
    stream::StopReason,
};

/// Walks of a law, unless `GNOMA_WALKS` says another number.
const WALKS: u32 = 20_000;

fn walks() -> ProptestConfig {
    let told = option_env!("GNOMA_WALKS").and_then(|number| number.parse().ok());
    ProptestConfig { cases: told.unwrap_or(WALKS), ..ProptestConfig::default() }
}

fn call(number: u8) -> ToolCall {
    ToolCall::new(CallId::new(format!("c{number}")), "bash", RawJson::empty_object())
}

fn arm() -> ModelRef {
    ModelRef { provider: "p".into(), model: "m".into() }
}

fn turn_event() -> impl Strategy<Value = Event> {
    let text = prop_oneof![40 => "[a-zäö\n]{0,12}", 1 => Just("long ".repeat(60_000))];
    let id = 0_u8..4;
    prop_oneof![
        prop_oneof![
            Just(SessionState::Idle),
            Just(SessionState::Active),
            Just(SessionState::Cancelling)
        ]
        .prop_map(Event::State),
        Just(Event::ModeChanged { mode: PermissionMode::Plan }),
        Just(Event::ThinkingChanged { thinking: Some(crate::ThinkingMode::Off) }),
        (1_u32..9).prop_map(|round| Event::RoundStarted { round, arm: arm(), why: "w".into() }),
        text.clone().prop_map(|text| Event::Text { text }),
        text.clone().prop_map(|text| Event::Thinking { text }),
        id.clone().prop_map(|id| Event::ToolCallDrafted { call: call(id).id, name: "bash".into() }),
        (id.clone(), text.clone())
            .prop_map(|(id, fragment)| Event::ToolCallDelta { call: call(id).id, fragment }),
        text.clone().prop_map(|text| {
            Event::Appended(Arc::new(Message::user_text(if text.is_empty() { "." } else { &text })))
        }),
        id.clone().prop_map(|id| Event::PermissionAsked {
            call: call(id),
            reason: "r".into(),
            preview: Some("-a\n+b".into()),
            always: None,
            inquiry: None,
            during: None,
            parts: Vec::new(),
            notable: Vec::new(),
            dangers: Vec::new(),
        }),
        (id.clone(), any::<bool>()).prop_map(|(id, allowed)| Event::PermissionDecided {
            call: call(id).id,
            allowed,
            reason: String::new()
        }),
        id.clone().prop_map(|id| Event::ToolStarted { call: call(id) }),
        (id.clone(), text.clone())
            .prop_map(|(id, text)| Event::ToolProgress { call: call(id).id, text }),
        (id, text.clone()).prop_map(|(id, text)| Event::ToolEnded {
            call: call(id),
            result: ToolResult::from_text(&call(id), text, false),
            diff: None,
            duration_ms: 1,
            command: None,
        }),
        (0_u64..99).prop_map(|input| {
            let round = Usage { input, ..Usage::default() };
            Event::Usage { round, turn: round }
        }),
        text.prop_map(|text| Event::Notice { level: NoticeLevel::Info, text }),
        Just(Event::Queued { queue: vec![vec![Content::from_text("later")]] }),
        Just(Event::TurnEnded {
            outcome: Outcome::Complete { stop: StopReason::EndTurn },
            rounds: 1,
            usage: Usage::default(),
            undelivered: Vec::new(),
            answer: None,
        }),
    ]
}

/// Whatever can happen: mostly what makes and ends parts of a turn, in any order.
fn event() -> impl Strategy<Value = Event> {
    prop_oneof![4 => turn_event(), 1 => prop::sample::select(sample_events())]
}

fn log(events: Vec<Event>) -> Vec<Envelope> {
    let envelope = |(seq, event): (u64, Event)| Envelope {
        session: SessionId::new("s"),
        epoch: Epoch(7),
        parent: None,
        seq,
        at_ms: i64::try_from(seq).unwrap_or_default() * 10,
        event,
    };
    (1..).zip(events).map(envelope).collect()
}

fn empty() -> SessionView {
    SessionView::new(SessionId::new("s"), Epoch(7), None)
}

fn folded(mut view: SessionView, log: &[Envelope]) -> SessionView {
    log.iter().for_each(|envelope| view.apply_envelope(envelope));
    view
}

proptest! {
    #![proptest_config(walks())]

    /// A snapshot in place of the events before it leads to the same view; what is applied twice
    /// counts once.
    #[test]
    fn session_snapshot_equals_folding_the_events_before_it(
        events in prop::collection::vec(event(), 0..24),
        cut in 0_usize..24,
        again in 0_usize..24,
    ) {
        let log = log(events);
        let cut = cut.min(log.len());
        let whole = folded(empty(), &log);
        // As another process gets it.
        let snapshot = serde_json::to_string(&folded(empty(), &log[..cut])).unwrap();
        let snapshot: SessionView = crate::json::from_str(&snapshot).unwrap();
        prop_assert_eq!(&folded(snapshot.clone(), &log[cut..]), &whole);
        prop_assert_eq!(&folded(snapshot, &log[again.min(cut)..]), &whole);
    }

    /// A front end that begins with the events of a view sees the turn that the view holds, with the
    /// ends of its texts.
    #[test]
    fn session_view_current_events_rebuild_the_running_turn(
        events in prop::collection::vec(event(), 0..24),
    ) {
        let view = folded(empty(), &log(events));
        let again = folded(empty(), &log(view.current_events()));
        prop_assert_eq!(again.state, view.state);
        prop_assert_eq!(again.status().questions, view.status().questions);
        let ends = |view: &SessionView| view.turn.as_ref().map(|turn| {
            let outputs = turn.calls.iter().map(|running| running.output.text.clone());
            let drafts = turn.drafts.iter().map(|draft| draft.id.clone());
            (turn.text.text.clone(), turn.thinking.text.clone(), turn.queue.clone(),
             turn.usage, outputs.collect::<Vec<_>>(), drafts.collect::<Vec<_>>())
        });
        prop_assert_eq!(ends(&again), ends(&view));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// What goes over a socket comes out as it went in.
    #[test]
    fn protocol_envelopes_and_session_views_round_trip_through_json(events in prop::collection::vec(event(), 0..12)) {
        let log = log(events);
        for envelope in &log {
            let json = serde_json::to_string(envelope).unwrap();
            prop_assert_eq!(&crate::json::from_str::<Envelope>(&json).unwrap(), envelope);
        }
        let message = ServerMessage::Snapshot(Box::new(folded(empty(), &log)));
        let json = serde_json::to_string(&message).unwrap();
        prop_assert_eq!(crate::json::from_str::<ServerMessage>(&json).unwrap(), message);
    }
}

/// Each comes out of the wire as it went in, and there is one of each kind.
fn survive<T: Kinds + Serialize + DeserializeOwned + PartialEq + Debug>(samples: &[T]) {
    for sample in samples {
        let json = serde_json::to_string(sample).unwrap();
        assert_eq!(crate::json::from_str::<T>(&json).unwrap(), *sample, "{json}");
    }
    let seen: BTreeSet<_> = samples.iter().map(Kinds::kind).collect();
    assert_eq!(seen, T::ALL.iter().copied().collect(), "a kind without a sample");
}

#[test]
fn protocol_requests_replies_and_events_round_trip_through_json() {
    survive(&sample_events());
    survive(&sample_requests());
    survive(&sample_replies());
    survive(&process_events());
    let refused = RequestError::new(RequestErrorKind::Busy, "a turn runs").with_remedy("Wait");
    let result: Result<Reply, RequestError> = Err(refused.clone());
    let reply = ServerMessage::Reply { id: RequestId(3), result };
    let json = serde_json::to_string(&reply).unwrap();
    assert_eq!(crate::json::from_str::<ServerMessage>(&json).unwrap(), reply);
    let (program, client) = ("gnoma 0.1".to_owned(), "c".to_owned());
    let hello = Hello { version: 1, program: program.clone(), client };
    let json = serde_json::to_string(&hello).unwrap();
    assert_eq!(serde_json::from_str::<Hello>(&json).unwrap(), hello);
    for greeting in [Greeting::Welcome { version: 1, program, pid: 7 }, Greeting::Refused(refused)]
    {
        let json = serde_json::to_string(&greeting).unwrap();
        assert_eq!(serde_json::from_str::<Greeting>(&json).unwrap(), greeting);
    }
}
