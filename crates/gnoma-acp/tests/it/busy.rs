//! A host that takes nothing for a while: what the client said is not lost.

use gnoma_acp::{Agent, AgentMessage, AgentOptions};
use gnoma_core::{
    CallId, Event, RawJson, ToolCall,
    lines::Line,
    protocol::{
        Client, Envelope, Epoch, MAX_REQUESTS, Peer, Reply, Request, RequestError,
        RequestErrorKind, RequestId, ServerMessage, SessionSpec, SessionView,
    },
    session::{PermissionAnswer, PermissionMode, SessionState},
    store::SessionId,
};
use serde_json::{Value, json};

struct Editor {
    agent: Agent,
    peer: Peer,
}

impl Editor {
    /// An editor with a session that asks about a call.
    fn asked() -> Self {
        let (client, peer) = Client::new_pair();
        let options = AgentOptions { spec: SessionSpec::default(), version: "0".to_owned() };
        let mut editor = Self { agent: Agent::new(client, options), peer };
        editor
            .sends(json!({ "id": 1, "method": "initialize", "params": { "protocolVersion": 1 } }));
        let params = json!({ "cwd": "/work", "mcpServers": [] });
        editor.sends(json!({ "id": 2, "method": "session/new", "params": params }));
        let (open, _) = editor.taken();
        let session = SessionId::new("s");
        editor.replies(open, Ok(Reply::Opened { session: session.clone() }));
        let (attach, _) = editor.taken();
        editor.replies(attach, Ok(Reply::Done));
        let mut view = SessionView::new(session.clone(), Epoch(7), None);
        let started = Event::Started {
            session: "s".into(),
            cwd: "/work".into(),
            tools: Vec::new(),
            mode: PermissionMode::Auto,
            messages: 0,
        };
        let asked = Event::PermissionAsked {
            call: ToolCall::new(CallId::new("c"), "bash", RawJson::empty_object()),
            reason: "mode auto asks".into(),
            preview: None,
            always: None,
            inquiry: None,
            during: None,
            parts: Vec::new(),
            notable: Vec::new(),
            dangers: Vec::new(),
        };
        for (seq, event) in (1..).zip([started, Event::State(SessionState::Active), asked]) {
            let session = session.clone();
            view.apply_envelope(&Envelope {
                session,
                epoch: Epoch(7),
                parent: None,
                seq,
                at_ms: 1,
                event,
            });
        }
        editor.agent.on_message(AgentMessage::Told(ServerMessage::Snapshot(Box::new(view))));
        editor
    }

    fn sends(&mut self, mut message: Value) {
        message["jsonrpc"] = json!("2.0");
        self.agent.on_client_line(&Line::Whole(message.to_string().into_bytes()));
    }

    fn replies(&mut self, id: RequestId, result: Result<Reply, RequestError>) {
        self.agent.on_message(AgentMessage::Told(ServerMessage::Reply { id, result }));
    }

    /// What the host takes next.
    fn taken(&mut self) -> (RequestId, Request) {
        let message = self.peer.requests.try_recv().expect("nothing was asked");
        (message.id, message.request)
    }

    /// What was written since.
    fn told(&mut self) -> Vec<Value> {
        let out = String::from_utf8(std::mem::take(self.agent.output_buffer())).unwrap();
        out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn question(&mut self) -> Value {
        let told = self.told().into_iter().find(|it| it["method"] == "session/request_permission");
        told.expect("nothing is asked")["id"].clone()
    }

    fn approves(&mut self, question: &Value) {
        let outcome = json!({ "outcome": { "outcome": "selected", "optionId": "0" } });
        self.sends(json!({ "id": question, "result": outcome }));
    }
}

fn is_approved(request: &Request) -> bool {
    matches!(request, Request::Answer { answer: PermissionAnswer::Allow, .. })
}

#[test]
fn answer_and_cancel_wait_for_a_busy_host() {
    let mut editor = Editor::asked();
    let question = editor.question();
    for id in 0..MAX_REQUESTS {
        editor.sends(json!({ "id": 100 + id, "method": "session/list", "params": {} }));
    }
    assert!(!editor.agent.is_behind());
    editor.approves(&question);
    for _ in 0..5_000 {
        editor.sends(json!({ "method": "session/cancel", "params": { "sessionId": "s" } }));
    }
    assert!(editor.agent.is_behind(), "the client is not heard until the host has room");
    editor.sends(json!({ "id": 3, "method": "session/list", "params": {} }));
    let told = editor.told();
    assert!(told.iter().any(|it| it["id"] == 3 && it["error"]["code"].is_i64()), "{told:?}");

    let taken: Vec<_> = (0..MAX_REQUESTS).map(|_| editor.taken()).collect();
    assert!(taken.iter().all(|(_, request)| matches!(request, Request::StoredIn { .. })));
    editor.replies(taken[0].0, Ok(Reply::Stored(Vec::new())));
    assert!(!editor.agent.is_behind());
    assert!(is_approved(&editor.taken().1), "the answer comes first");
    assert_eq!(editor.taken().1, Request::Cancel);
    assert!(editor.peer.requests.try_recv().is_err(), "and nothing twice");
}

#[test]
fn permission_question_refused_by_a_busy_host_is_asked_again() {
    let mut editor = Editor::asked();
    let question = editor.question();
    editor.approves(&question);
    let (id, request) = editor.taken();
    assert!(is_approved(&request));
    let busy = || RequestError::new(RequestErrorKind::Busy, "too many requests are waiting");
    editor.replies(id, Err(busy()));
    let again = editor.question();
    assert_ne!(again, question);
    editor.approves(&again);
    let (id, request) = editor.taken();
    assert!(is_approved(&request));
    // Somebody else has answered meanwhile: nobody is asked again.
    let call = CallId::new("c");
    let event = Event::PermissionDecided { call, allowed: true, reason: String::new() };
    let (session, epoch) = (SessionId::new("s"), Epoch(7));
    let decided = Envelope { session, epoch, parent: None, seq: 4, at_ms: 2, event };
    editor.agent.on_message(AgentMessage::Told(ServerMessage::Event(decided.into())));
    editor.replies(id, Err(busy()));
    assert!(editor.told().iter().all(|it| it["method"] != "session/request_permission"));
}
