//! One of each event, request and reply, for the laws. A kind that is added and has no sample does not
//! compile, or fails `there_is_a_sample_of_each_kind`.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use super::*;
use crate::{
    CallId, Content, ErrorKind, Event, Message, ModelRef, ProviderError, RawJson, ThinkingMode,
    ToolCall, ToolResult, Usage,
    session::{
        AttemptLimit, CommandEnd, ContextUse, Fullness, Inquiry, NotableChange, NoticeLevel,
        Outcome, PermissionAnswer, PermissionMode, Routing, Scope, SessionState, TrialEnd,
    },
    store::{EntryId, Hit, ResultId, SessionFacts, SessionId},
    stream::StopReason,
};

/// The kinds of a type.
pub(super) trait Kinds {
    const ALL: &'static [&'static str];
    fn kind(&self) -> &'static str;
}

macro_rules! kinds {
    ($type:ident: $($variant:ident)*) => {
        impl Kinds for $type {
            const ALL: &'static [&'static str] = &[$(stringify!($variant)),*];
            fn kind(&self) -> &'static str {
                match self { $($type::$variant { .. } => stringify!($variant)),* }
            }
        }
    };
}

kinds!(Event: Started Info Models State ModeChanged ThinkingChanged PlanChanged Queued RoundStarted Routed ArmChanged Conferred
    Checking Checked Cost Compacted Uncompacted Context Text Thinking ToolCallDrafted ToolCallDelta Appended
    PermissionAsked PermissionDecided ToolStarted ToolProgress ToolEnded Usage Retrying Waiting
    Continuing Notice TurnEnded Unknown);
kinds!(Request: Open List StoredIn Delete Watch Shutdown Attach Detach KeepRunning Status Wait Send EditQueue Answer Cancel
    CancelElf WatchElf Close SetMode SetThinking KeepRule Trust Pin Rate Compact EditSummary UndoCompaction Rewind RewindElf Redo Points Changes SessionChanges CommitChanges RevertFile Files Export Fork Rename
    Search Stored History Output Models Providers Profiles Switch TryProvider AddProvider
    RemoveProvider Settings
    SetSetting Usage Explain Task Memory);
kinds!(Reply: Done Opened Live Status Text Points Hits Stored History Output Choices Settings Window
    Usage Task);
kinds!(ProcessEvent: Opened Changed Closed Lagged Stopping);

fn sample_call(number: u8) -> ToolCall {
    ToolCall::new(CallId::new(format!("c{number}")), "bash", RawJson::empty_object())
}

fn sample_arm(model: &str) -> ModelRef {
    ModelRef { provider: "p".into(), model: model.into() }
}

fn sample_error() -> ProviderError {
    ProviderError {
        kind: ErrorKind::Overloaded,
        provider: "p".into(),
        message: "busy".into(),
        status: Some(529),
        code: Some("overloaded_error".into()),
        retry_after: Some(Duration::from_millis(1_500)),
        hint: Some("Try again later".into()),
    }
}

fn sample_usage() -> Usage {
    Usage { input: 7, output: 2, cache_read: 90, ..Usage::default() }
}

fn sample_choice() -> Choice {
    let (name, about) = ("p/m".to_owned(), "a model".to_owned());
    Choice { name, about, current: true, arm: Some(sample_arm("m")), window: Some(8_192) }
}

pub(super) fn sample_events() -> Vec<Event> {
    let (text, why) = (|| "text".to_owned(), || "why".to_owned());
    let id = || sample_call(1).id;
    vec![
        Event::Started {
            session: "s".into(),
            cwd: "/work".into(),
            tools: vec!["bash".into()],
            mode: PermissionMode::Auto,
            messages: 3,
        },
        Event::Info(Box::new(SessionInfo {
            folder: "~/work".into(),
            window: Some(200_000),
            last_call: sample_usage(),
            resumed: Some(ResumedFrom { title: text(), changed_ms: 7, is_copy: true }),
            connectable: vec!["mistral".into()],
            instructions: vec!["AGENTS.md".into()],
            ..SessionInfo::default()
        })),
        Event::Models { models: vec![sample_choice()] },
        Event::State(SessionState::Active),
        Event::ModeChanged { mode: PermissionMode::Plan },
        Event::PlanChanged {
            steps: vec![crate::plan::PlanStep { text: text(), ..Default::default() }],
        },
        Event::ThinkingChanged { thinking: Some(ThinkingMode::Tokens(8_000)) },
        Event::Queued { queue: vec![vec![Content::from_text("later")]] },
        Event::RoundStarted { round: 2, arm: sample_arm("m"), why: why() },
        Event::Routed(Box::new(Routing {
            kind: "debug".into(),
            complexity: 40,
            decided_by: "heuristic".into(),
            strategy: "single".into(),
            arms: vec![sample_arm("m")],
            why: why(),
            candidates: vec!["p/m 0.9".into()],
            seed: 7,
        })),
        Event::ArmChanged {
            from: sample_arm("m"),
            to: sample_arm("n"),
            why: why(),
            retracted: true,
        },
        Event::Conferred {
            members: vec![sample_arm("m")],
            chair: Some(sample_arm("n")),
            author: sample_arm("m"),
        },
        Event::Checking { arm: sample_arm("m"), by: "make".into() },
        Event::Checked { arm: sample_arm("m"), by: "make".into(), passed: true, evidence: text() },
        Event::Cost {
            arm: sample_arm("m"),
            call_micro_usd: Some(5),
            turn_micro_usd: 9,
            session_micro_usd: 20,
            estimated: true,
        },
        Event::Compacted { summary: text(), messages: 12 },
        Event::Uncompacted { summary: Some(text()), messages: 4 },
        Event::Context(ContextUse {
            tokens: 190_000,
            window: Some(200_000),
            fullness: Fullness::Critical,
        }),
        Event::Text { text: text() },
        Event::Thinking { text: text() },
        Event::ToolCallDrafted { call: id(), name: "bash".into() },
        Event::ToolCallDelta { call: id(), fragment: "{".into() },
        Event::Appended(Arc::new(Message::user_text("hello"))),
        Event::PermissionAsked {
            call: sample_call(1),
            reason: why(),
            preview: Some("-a\n+b".into()),
            always: Some("bash(ls)".into()),
            inquiry: Some(Inquiry { choices: vec!["one".into()] }),
            during: Some(id()),
            parts: vec!["a.txt".into()],
            notable: vec![NotableChange { name: "a.txt".into(), what: "created".into() }],
            dangers: vec!["deletes `a.txt`".into()],
        },
        Event::PermissionDecided { call: id(), allowed: false, reason: why() },
        Event::ToolStarted { call: sample_call(1) },
        Event::ToolProgress { call: id(), text: text() },
        Event::ToolEnded {
            call: sample_call(1),
            result: ToolResult::from_text(&sample_call(1), "out", false),
            diff: Some("-a\n+b".into()),
            duration_ms: 4,
            command: Some(CommandEnd { exit_code: Some(1), trial: Some(TrialEnd::NotKept) }),
        },
        Event::Usage { round: sample_usage(), turn: sample_usage() },
        Event::Retrying {
            error: sample_error(),
            attempt: 2,
            wait_ms: 1_500,
            retracted: true,
            limit: Some(AttemptLimit::Attempts(8)),
        },
        Event::Waiting { arm: sample_arm("m"), waited_ms: 4_000, limit_ms: 60_000 },
        Event::Continuing { time: 1, most: 3, joins: true },
        Event::Notice { level: NoticeLevel::Warning, text: text() },
        Event::TurnEnded {
            outcome: Outcome::Failed { error: sample_error(), kept_partial: true },
            rounds: 3,
            usage: sample_usage(),
            undelivered: vec![Arc::new(Message::user_text("later"))],
            answer: None,
        },
        Event::TurnEnded {
            outcome: Outcome::Unfit { why: why(), answers: 4 },
            rounds: 4,
            usage: sample_usage(),
            undelivered: Vec::new(),
            answer: None,
        },
        Event::TurnEnded {
            outcome: Outcome::Complete { stop: StopReason::EndTurn },
            rounds: 1,
            usage: sample_usage(),
            undelivered: Vec::new(),
            answer: Some(RawJson::empty_object()),
        },
        Event::Unknown,
    ]
}

fn sample_spec() -> SessionSpec {
    SessionSpec {
        folder: "/work".into(),
        more_folders: vec!["/more".into()],
        environment: Environment::new(BTreeMap::from([("A".into(), "b".into())])),
        umask: Some(0o027),
        profile: Some("mine".into()),
        overrides: Overrides {
            provider: Some("p".into()),
            mode: Some(PermissionMode::Deny),
            max_rounds: Some(3),
            budget_micro_usd: Some(500_000),
            ..Overrides::default()
        },
        system: Some("be brief".into()),
        answer_schema: Some(RawJson::empty_object()),
        start: Start::Stored { id: "abc".into(), fork: true },
        interactive: true,
        detach: Detach::Keep,
        mcp_servers: vec![ClientServer {
            name: "files".into(),
            address: ServerAddress::Program {
                command: "/bin/files".into(),
                args: vec!["-v".into()],
                environment: Environment::default(),
            },
        }],
        agent: Some("reviewer".into()),
    }
}

pub(super) fn sample_requests() -> Vec<Request> {
    let connection = |by| Connection { provider: "p".into(), by, model: None };
    let text = || "text".to_owned();
    vec![
        Request::Open(Box::new(sample_spec())),
        Request::List,
        Request::StoredIn { spec: Box::default(), max: 5 },
        Request::Delete { spec: Box::default(), id: SessionId::new("s") },
        Request::Watch,
        Request::Shutdown,
        Request::Attach { from: Some(Position { epoch: Epoch(7), seq: 9 }) },
        Request::Attach { from: None },
        Request::Detach,
        Request::KeepRunning { keep: true },
        Request::Status,
        Request::Wait { max_seconds: Some(5) },
        Request::Send { content: vec![Content::from_text("hello")] },
        Request::EditQueue {
            was: vec![vec![Content::from_text("a")]],
            queue: vec![vec![Content::from_text("b")]],
        },
        Request::Answer {
            call: sample_call(1).id,
            answer: PermissionAnswer::Text { text: text() },
        },
        Request::Answer {
            call: sample_call(1).id,
            answer: PermissionAnswer::Rule { rule: "bash(ls)".into(), scope: Scope::Project },
        },
        Request::Cancel,
        Request::CancelElf { name: text() },
        Request::WatchElf { name: text() },
        Request::Close,
        Request::SetMode { mode: PermissionMode::Bypass },
        Request::SetThinking { thinking: Some(ThinkingMode::Adaptive) },
        Request::KeepRule { rule: "bash(ls)".into(), scope: Scope::User, dry_run: true },
        Request::Trust,
        Request::Pin { arm: Some(sample_arm("m")) },
        Request::Rate { good: false },
        Request::Compact { focus: text() },
        Request::EditSummary { summary: text() },
        Request::UndoCompaction,
        Request::Rewind { turns: 2, files: true, conversation: false },
        Request::RewindElf { name: text() },
        Request::Redo,
        Request::Points,
        Request::Changes,
        Request::SessionChanges,
        Request::CommitChanges,
        Request::RevertFile { since: ChangesSince::Turn, path: text(), hunk: Some(text()) },
        Request::Files { max: 5 },
        Request::Export { path: PathBuf::from("a.md") },
        Request::Fork,
        Request::Rename { title: text() },
        Request::Search { words: text(), max: 5 },
        Request::Stored { max: 5 },
        Request::History { before: Some(9), max: 5 },
        Request::Output { result: ResultId::new("r1"), from: 8, max_bytes: 100 },
        Request::Models { ask: true },
        Request::Providers,
        Request::Profiles,
        Request::Switch(Switch::Stored(Some("abc".into()))),
        Request::Switch(Switch::Copy(None)),
        Request::Switch(Switch::Folder("../more".into())),
        Request::RemoveProvider { provider: text() },
        Request::TryProvider(connection(ConnectBy::Address("http://127.0.0.1:1".into()))),
        Request::AddProvider(connection(ConnectBy::Key(TypedKey("k".into())))),
        Request::AddProvider(connection(ConnectBy::AddressAndKey {
            address: "http://127.0.0.1:1".into(),
            key: TypedKey("k".into()),
        })),
        Request::Settings,
        Request::SetSetting { key: "a.b".into(), value: "1".into() },
        Request::Usage,
        Request::Explain(Topic::Context),
        Request::Task(TaskRequest::Run { line: "release v1".into() }),
        Request::Task(TaskRequest::DeclineOffer),
        Request::Task(TaskRequest::Schedules),
        Request::Task(TaskRequest::Complete { words: "release".into() }),
        Request::Task(TaskRequest::Repair { name: "release".into() }),
        Request::Memory(MemoryRequest::Show),
        Request::Memory(MemoryRequest::Edit { line: 2, text: text() }),
        Request::Task(TaskRequest::Resume {
            run: text(),
            choice: Some(TaskResumeChoice::Stronger),
        }),
    ]
}

fn sample_live_session() -> LiveSession {
    LiveSession {
        status: Status { session: SessionId::new("s"), questions: 1, ..Status::default() },
        parent: Some(SessionId::new("p")),
        folder: "/work".into(),
        title: "hello".into(),
        subscribers: 2,
        jobs: 1,
        changed_ms: 99,
    }
}

pub(super) fn sample_replies() -> Vec<Reply> {
    let session = || SessionId::new("s");
    let stored = SessionFacts {
        id: session(),
        project: "/work".into(),
        title: "hello".into(),
        created_ms: 1,
        changed_ms: 2,
        messages: 3,
        bytes: 4,
        usage: sample_usage(),
        forked_from: Some((session(), EntryId(1))),
        held_by: None,
        child: None,
    };
    let hit = Hit {
        session: session(),
        title: "hello".into(),
        entry: EntryId(3),
        at_ms: 4,
        snippet: "hel".into(),
    };
    vec![
        Reply::Done,
        Reply::Opened { session: session() },
        Reply::Live(vec![sample_live_session()]),
        Reply::Status(Box::new(sample_live_session().status)),
        Reply::Text("text".into()),
        Reply::Points(vec![RewindPoint { turns: 1, ..RewindPoint::default() }]),
        Reply::Hits(vec![hit]),
        Reply::Stored(vec![stored]),
        Reply::History {
            first: 4,
            messages: vec![Arc::new(Message::user_text("hello"))],
            notes: vec![HistoryNote { after: 4, seq: 9, at_ms: 5, event: Event::Unknown }],
        },
        Reply::Output { text: "text".into(), next: Some(9), total_bytes: 100 },
        Reply::Choices(vec![sample_choice()]),
        Reply::Settings(vec![Setting { key: "a.b".into(), ..Setting::default() }]),
        Reply::Window {
            used: WindowUse { system: 1, tools: 2, ..WindowUse::default() },
            sources: "AGENTS.md".into(),
        },
        Reply::Usage { usage: sample_usage(), micro_usd: 12, is_cost_partial: true },
        Reply::Task(Box::new(TaskReport {
            task: "release".into(),
            run: "r1".into(),
            state: TaskRunState::Failed,
            steps: vec![TaskStepReport {
                title: "Test".into(),
                kind: "command".into(),
                state: TaskStepState::Failed,
                why: "it failed".into(),
                took_ms: 5,
                micro_usd: 0,
            }],
            summary: "text".into(),
        })),
    ]
}

pub(super) fn process_events() -> Vec<ProcessEvent> {
    let session = || SessionId::new("s");
    vec![
        ProcessEvent::Opened { session: session() },
        ProcessEvent::Changed { session: session(), state: SessionState::Idle, questions: 2 },
        ProcessEvent::Closed { session: session() },
        ProcessEvent::Lagged { sessions: vec![sample_live_session()] },
        ProcessEvent::Stopping,
    ]
}
