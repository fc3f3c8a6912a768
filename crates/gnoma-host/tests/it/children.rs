//! Sessions that tools of others start: none outlives its parent, may more or spends more, and each call
//! gets exactly one result.

use std::{collections::HashSet, sync::Arc, time::Duration};

use gnoma_core::{
    CallId, Content, Message, Provider, Tool, ToolCall, ToolCx, ToolOutcome, ToolSpec,
    ledger::{Ledger as _, Total},
    protocol::{Overrides, Question, Reply, Request, RequestErrorKind, SessionSpec, SessionView},
    session::{PermissionAnswer, PermissionMode, SessionState},
    store::SessionId,
    tool::{Access, BoxFuture, ChildControl, ChildEnd, ChildLink, ChildResult, ChildTask},
};
use gnoma_host::live::Host;
use gnoma_router::pool::Caps;
use gnoma_testkit::{FakeLedger, FakeTool};
use proptest::prelude::*;

use super::{
    obedient::{Asked, Obedient},
    support::{Window, World, kept, kind, say, truth, writer},
};

/// Steps of all walks together, unless `GNOMA_WALKS` says another number.
const STEPS: u32 = 8_000;
/// Steps of one walk.
const WALK: usize = 40;
/// Walks below sessions that may do nothing.
const DENIED_WALKS: u32 = 40;
/// Nothing takes longer that waits for nobody.
const QUIET: Duration = Duration::from_secs(60);
/// What a call of these tests costs, in micro-dollars.
const CALL_MICRO_USD: u64 = 6_000;

/// A tool that has a session started.
struct Start {
    spec: ToolSpec,
    mode: Option<PermissionMode>,
    limit_micro_usd: Option<u64>,
}

impl Start {
    fn new() -> Self {
        let spec =
            FakeTool::new("start", Access::Read, |_| ToolOutcome::success_text("")).spec().clone();
        Self { spec, mode: None, limit_micro_usd: None }
    }
}

impl Tool for Start {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run(&self, call: ToolCall, cx: ToolCx) -> BoxFuture<'static, ToolOutcome> {
        let overrides = Overrides { mode: self.mode, ..Overrides::default() };
        let limit_micro_usd = self.limit_micro_usd;
        Box::pin(async move {
            let told: serde_json::Value = call.arguments.read().unwrap();
            let content = vec![Content::from_text(told["say"].as_str().unwrap())];
            let spec = SessionSpec { overrides, interactive: true, ..SessionSpec::default() };
            let task = ChildTask { spec, content, limit_micro_usd, ..ChildTask::default() };
            match cx.spawn_child(&call.id, task).await {
                Ok(ChildResult { end: ChildEnd::Completed, text, .. }) => {
                    ToolOutcome::success_text(text)
                }
                Ok(ChildResult { end: ChildEnd::Cancelled, .. }) => {
                    ToolOutcome::failure_text("it was cancelled")
                }
                Ok(ChildResult { end: ChildEnd::Failed(why), .. }) => {
                    ToolOutcome::failure_text(why)
                }
                Err(error) => ToolOutcome::failure_text(error.to_string()),
            }
        })
    }
}

/// A tool that has a session started and tells it more than it can take at once.
struct Flood {
    spec: ToolSpec,
    messages: usize,
}

impl Tool for Flood {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run(&self, call: ToolCall, cx: ToolCx) -> BoxFuture<'static, ToolOutcome> {
        let messages = self.messages;
        Box::pin(async move {
            let content = vec![Content::from_text("nap")];
            let (link, handle) = ChildLink::new();
            let task = ChildTask { content, ..ChildTask::default() };
            let work = cx.session.unwrap().spawn_child(call.id, task, link);
            let told = async {
                for number in 0..messages {
                    handle.control.send(ChildControl::Say(format!("{number}."))).await.unwrap();
                }
                std::future::pending::<()>().await;
            };
            tokio::select! {
                ended = work => ToolOutcome::success_text(format!("{:?}", ended.map(|it| it.end))),
                () = told => ToolOutcome::success_text(""),
            }
        })
    }
}

#[tokio::test(start_paused = true)]
async fn messages_to_a_busy_session_are_delivered_later_in_order() {
    let spec = Start::new().spec;
    let (messages, asked) = (90, Asked::default());
    let given = Arc::clone(&asked);
    let make =
        Box::new(move |_: &SessionId| Arc::new(Obedient(Arc::clone(&given))) as Arc<dyn Provider>);
    let spending = (FakeLedger::default(), Caps::default());
    let host = World::spending(make, vec![Arc::new(Flood { spec, messages })], spending).host();
    let mut window = Window::new(&host, "person");
    let session = window.open(kept()).await;
    window.attach(&session).await;
    window.turn(&session, "start x").await;
    let asked = asked.lock().unwrap();
    let last = asked.iter().rfind(|(_, texts)| texts[0] == "nap").unwrap();
    let all: Vec<_> = (0..messages).map(|number| format!("{number}.")).collect();
    let heard: Vec<_> = last.1.iter().filter(|text| all.contains(text)).cloned().collect();
    assert_eq!(heard, all, "each of them once, in order");
}

struct Family {
    host: Host,
    ledger: FakeLedger,
    writer: FakeTool,
    window: Window,
}

impl Family {
    fn new(start: Start, caps: Caps) -> Self {
        let (writer, ledger) = (writer(), FakeLedger::default());
        let tools: Vec<Arc<dyn Tool>> = vec![Arc::new(start), Arc::new(writer.clone())];
        let make = Box::new(|_: &SessionId| Arc::new(Obedient::default()) as Arc<dyn Provider>);
        let host = World::spending(make, tools, (ledger.clone(), caps)).host();
        let window = Window::new(&host, "person");
        Self { host, ledger, writer, window }
    }

    async fn open(&mut self, mode: PermissionMode) -> SessionId {
        let overrides = Overrides { mode: Some(mode), ..Overrides::default() };
        let session = self.window.open(SessionSpec { overrides, ..kept() }).await;
        self.window.attach(&session).await;
        session
    }

    async fn say(&mut self, session: &SessionId, text: &str) {
        self.window.ask(Some(session), say(text)).await.unwrap();
    }

    /// Says something and waits for the end of the turn: its last words.
    async fn turn(&mut self, session: &SessionId, text: &str) -> String {
        self.window.turn(session, text).await;
        self.messages(session).await.last().unwrap().text_content()
    }

    async fn messages(&mut self, session: &SessionId) -> Vec<Arc<Message>> {
        let all = Request::History { before: None, max: 1_000 };
        match self.window.ask(Some(session), all).await {
            Ok(Reply::History { messages, .. }) => messages,
            other => panic!("{other:?}"),
        }
    }

    fn living(&self) -> Vec<SessionId> {
        let mut all: Vec<_> =
            self.host.sessions().into_iter().map(|live| live.status.session).collect();
        all.sort_by_key(ToString::to_string);
        all
    }

    /// Waits until so many sessions live, and gives the one that was opened last.
    async fn until_living(&mut self, count: usize) -> SessionId {
        for _ in 0..1_000 {
            if self.living().len() == count {
                return self.living().pop().unwrap();
            }
            self.window.settle(Duration::from_millis(1)).await;
        }
        panic!("{:?} live", self.living());
    }

    async fn question(&mut self, session: &SessionId) -> Question {
        let asks = |view: &SessionView| view.status().questions > 0;
        self.window.until(|own| asks(&own.views[session])).await;
        self.window.views[session].turn.as_ref().unwrap().questions[0].clone()
    }

    async fn answer(&mut self, session: &SessionId, call: &CallId) -> Result<(), RequestErrorKind> {
        let request = Request::Answer { call: call.clone(), answer: PermissionAnswer::Allow };
        match self.window.ask(Some(session), request).await {
            Ok(_) => Ok(()),
            outcome => Err(kind(outcome)),
        }
    }

    async fn micro_usd(&self) -> u64 {
        let totals = self.ledger.daily_totals(0).await.unwrap();
        totals.iter().map(|Total { amount, .. }| amount.micro_usd).sum()
    }
}

#[tokio::test(start_paused = true)]
async fn child_session_started_by_a_tool_returns_its_answer() {
    let mut family = Family::new(Start::new(), Caps::default());
    let parent = family.open(PermissionMode::Auto).await;
    family.say(&parent, "start start write").await;
    let grandchild = family.until_living(3).await;
    let view = truth(&family.host, &grandchild).await;
    assert_eq!(view.parent.as_ref().map(SessionId::as_str), Some("s2"));
    let child = truth(&family.host, view.parent.as_ref().unwrap()).await;
    assert_eq!(child.parent.as_ref(), Some(&parent));
    // What it asks comes to whoever sees the first of them.
    let question = family.question(&parent).await;
    assert!(question.reason.contains("needs approval for `start`"), "{}", question.reason);
    assert!(question.reason.contains("needs approval for `write`"), "{}", question.reason);
    family.answer(&parent, &question.call.id).await.unwrap();
    family.window.until_state(&parent, SessionState::Idle).await;
    assert_eq!(family.messages(&parent).await.last().unwrap().text_content(), "done");
    assert_eq!((family.living(), family.writer.calls().len()), (vec![parent], 1));
    assert_eq!(family.micro_usd().await, 6 * CALL_MICRO_USD, "two calls each");
}

#[tokio::test(start_paused = true)]
async fn child_session_question_is_answered_once_in_child_or_parent() {
    for at_the_child in [false, true] {
        let mut family = Family::new(Start::new(), Caps::default());
        let parent = family.open(PermissionMode::Auto).await;
        family.say(&parent, "start write").await;
        let child = family.until_living(2).await;
        family.window.attach(&child).await;
        let above = family.question(&parent).await;
        let own = family.question(&child).await;
        assert_eq!(above.preview.as_deref(), Some("{}"), "what would be called is seen");
        let mut places = [(&parent, &above.call.id), (&child, &own.call.id)];
        if at_the_child {
            places.reverse();
        }
        family.answer(places[0].0, places[0].1).await.unwrap();
        family.window.settle(Duration::from_millis(1)).await;
        let second = family.answer(places[1].0, places[1].1).await;
        assert!(matches!(second, Err(RequestErrorKind::NotAsked | RequestErrorKind::NoSession)));
        family.window.until_state(&parent, SessionState::Idle).await;
        assert_eq!(family.writer.calls().len(), 1);
        assert_eq!(family.living(), [parent]);
    }
}

#[tokio::test(start_paused = true)]
async fn child_session_ends_with_the_parents_turn_or_session() {
    for end in [Request::Cancel, Request::Close] {
        let mut family = Family::new(Start::new(), Caps::default());
        let parent = family.open(PermissionMode::Auto).await;
        family.say(&parent, "pair start hang").await;
        family.until_living(5).await;
        family.window.ask(Some(&parent), end.clone()).await.unwrap();
        if end == Request::Cancel {
            family.window.until_state(&parent, SessionState::Idle).await;
            family.window.settle(QUIET).await;
            assert_eq!(family.living(), std::slice::from_ref(&parent));
            assert_eq!(family.turn(&parent, "hello").await, "said hello");
        } else {
            family.window.until_state(&parent, SessionState::Closed).await;
            family.window.settle(QUIET).await;
            assert!(family.living().is_empty());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn tool_call_result_says_how_the_child_session_failed() {
    let mut family = Family::new(Start::new(), Caps::default());
    let parent = family.open(PermissionMode::Auto).await;
    let told = family.turn(&parent, "start fail").await;
    assert!(told.contains("as told"), "{told}");
    family.say(&parent, "start hang").await;
    let child = family.until_living(2).await;
    family.window.ask(Some(&child), Request::Close).await.unwrap();
    family.window.until_state(&parent, SessionState::Idle).await;
    let told = family.messages(&parent).await.last().unwrap().text_content();
    assert!(told.contains("cancelled"), "{told}");
    family.say(&parent, "start hang").await;
    let child = family.until_living(2).await;
    let refused = family.window.ask(Some(&child), Request::Fork).await;
    assert_eq!(kind(refused), RequestErrorKind::Invalid, "no way leads out of its rights");
    family.window.ask(Some(&child), Request::Cancel).await.unwrap();
    family.window.until_state(&parent, SessionState::Idle).await;
    let told = family.messages(&parent).await.last().unwrap().text_content();
    assert!(told.contains("cancelled"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn child_session_never_has_more_permissions_than_its_parent() {
    let bold = || Start { mode: Some(PermissionMode::Bypass), ..Start::new() };
    let mut family = Family::new(bold(), Caps::default());
    let parent = family.open(PermissionMode::Deny).await;
    let told = family.turn(&parent, "start start write").await;
    assert!(told.contains("permission denied"), "{told}");
    // What changes above holds below at once, and what a person wants below is held to what is above.
    let parent = family.open(PermissionMode::Bypass).await;
    family.say(&parent, "start start late").await;
    let grandchild = family.until_living(4).await;
    for (session, mode) in [(&parent, PermissionMode::Deny), (&grandchild, PermissionMode::Bypass)]
    {
        family.window.ask(Some(session), Request::SetMode { mode }).await.unwrap();
    }
    family.window.until_state(&parent, SessionState::Idle).await;
    let told = family.messages(&parent).await.last().unwrap().text_content();
    assert!(told.contains("permission denied"), "{told}");
    assert!(family.writer.calls().is_empty());
    // And it needs not ask where its parent need not.
    let parent = family.open(PermissionMode::Bypass).await;
    assert_eq!(family.turn(&parent, "start write").await, "done");
    assert_eq!(family.writer.calls().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn child_session_spends_from_its_own_and_its_parents_cap() {
    let at_most = |limit| Start { limit_micro_usd: Some(limit), ..Start::new() };
    let mut family = Family::new(at_most(0), Caps::default());
    let parent = family.open(PermissionMode::Bypass).await;
    let told = family.turn(&parent, "start hello").await;
    assert!(told.contains("session"), "{told}");
    assert_eq!(family.micro_usd().await, 2 * CALL_MICRO_USD, "the parent's own calls");

    let caps = Caps { session: Some(8 * CALL_MICRO_USD), ..Caps::default() };
    let mut family = Family::new(Start::new(), caps);
    let parent = family.open(PermissionMode::Bypass).await;
    family.turn(&parent, "pair pair pair hello").await;
    let spent = family.micro_usd().await;
    assert!((6 * CALL_MICRO_USD..=16 * CALL_MICRO_USD).contains(&spent), "{spent}");
    let another = family.open(PermissionMode::Bypass).await;
    assert_eq!(family.turn(&another, "start hello").await, "said hello", "its own money");
}

#[tokio::test(start_paused = true)]
async fn child_sessions_are_limited_in_depth_and_count() {
    let mut family = Family::new(Start::new(), Caps::default());
    let parent = family.open(PermissionMode::Bypass).await;
    let told = family.turn(&parent, &format!("{}hello", "start ".repeat(12))).await;
    assert!(told.contains("8 levels deep"), "{told}");
    assert_eq!(family.living(), [parent]);
}

#[derive(Clone, Debug)]
enum Step {
    Open(PermissionMode),
    Say(usize, String),
    Cancel(usize),
    Close(usize),
    Answer(usize, bool),
    /// A session that another one started is to be in another mode.
    Mode(usize, PermissionMode),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let mode = prop_oneof![Just(PermissionMode::Auto), Just(PermissionMode::Bypass)];
    let above = prop::collection::vec(prop_oneof![Just("start"), Just("pair")], 0..4);
    let task = prop_oneof![
        2 => Just("hello"),
        4 => Just("write"),
        1 => Just("fail"),
        2 => Just("hang"),
    ];
    let said = (above, task)
        .prop_map(|(above, task)| above.into_iter().chain([task]).collect::<Vec<_>>().join(" "));
    let session = 0_usize..40;
    prop_oneof![
        1 => mode.prop_map(Step::Open),
        4 => (session.clone(), said).prop_map(|(session, said)| Step::Say(session, said)),
        2 => session.clone().prop_map(Step::Cancel),
        1 => session.clone().prop_map(Step::Close),
        6 => (session.clone(), any::<bool>())
            .prop_map(|(session, allow)| Step::Answer(session, allow)),
        2 => session.prop_map(|session| Step::Mode(session, PermissionMode::Bypass)),
        6 => (0_u64..40).prop_map(Step::Wait),
    ]
}

impl Family {
    /// The session as it is, if it lives.
    async fn seen(&self, session: &SessionId) -> Option<SessionView> {
        let mut window = Window::new(&self.host, "passer-by");
        window.ask(Some(session), Request::Attach { from: None }).await.ok()?;
        window.until(|own| own.views.contains_key(session)).await;
        window.views.remove(session)
    }

    fn pick(&self, which: usize) -> Option<SessionId> {
        let living = self.living();
        living.get(which % living.len().max(1)).cloned()
    }

    async fn step(&mut self, step: Step, parents: &mut HashSet<(SessionId, SessionId)>) {
        let (which, request) = match step {
            Step::Open(mode) => return drop(self.open(mode).await),
            Step::Wait(ms) => {
                self.window.settle(Duration::from_millis(ms)).await;
                return self.look(parents).await;
            }
            Step::Say(which, said) => (which, say(&said)),
            Step::Cancel(which) => (which, Request::Cancel),
            Step::Close(which) => (which, Request::Close),
            Step::Mode(which, mode) => {
                let Some(session) = self.pick(which) else { return };
                let Some(view) = self.seen(&session).await else { return };
                if view.parent.is_none() {
                    return;
                }
                (which, Request::SetMode { mode })
            }
            Step::Answer(which, allow) => {
                let Some(session) = self.pick(which) else { return };
                let Some(view) = self.seen(&session).await else { return };
                let questions = view.turn.map(|turn| turn.questions).unwrap_or_default();
                let Some(question) = questions.into_iter().next() else { return };
                let reason = "no".to_owned();
                let no = PermissionAnswer::Deny { reason };
                let answer = if allow { PermissionAnswer::Allow } else { no };
                (which, Request::Answer { call: question.call.id, answer })
            }
        };
        if let Some(session) = self.pick(which) {
            let _ended_meanwhile = self.window.ask(Some(&session), request).await;
        }
    }

    /// Nobody lives whose parent does not.
    async fn look(&self, parents: &mut HashSet<(SessionId, SessionId)>) {
        for session in self.living() {
            if let Some(view) = self.seen(&session).await {
                parents.extend(view.parent.map(|parent| (session, parent)));
            }
        }
        let living = self.living();
        for (child, parent) in parents.iter() {
            assert!(!living.contains(child) || living.contains(parent), "{child} of {parent}");
        }
    }
}

/// Every call is answered by one result, in the message after it.
fn is_answered(messages: &[Arc<Message>]) {
    for (at, message) in messages.iter().enumerate() {
        let calls: Vec<_> = message.tool_calls().map(|call| &call.id).collect();
        if !calls.is_empty() {
            let results = messages.get(at + 1).map(|next| next.tool_results().collect::<Vec<_>>());
            let answered: Vec<_> = results.iter().flatten().map(|result| &result.call_id).collect();
            assert_eq!(calls, answered);
        }
    }
}

/// `only`: the mode of all sessions that nobody started; those below are wanted in another one.
async fn walk(steps: Vec<Step>, only: Option<PermissionMode>) {
    const CAP: u64 = 20 * CALL_MICRO_USD;
    let caps = Caps { session: Some(CAP), ..Caps::default() };
    let start = Start { mode: only.map(|_| PermissionMode::Bypass), ..Start::new() };
    let mut family = Family::new(start, caps);
    let mut roots = vec![family.open(only.unwrap_or(PermissionMode::Bypass)).await];
    let mut parents = HashSet::new();
    for step in steps {
        let step = match (step, only) {
            (Step::Open(_), Some(only)) => Step::Open(only),
            (step, _) => step,
        };
        if matches!(step, Step::Open(_)) && roots.len() >= 3 {
            continue;
        }
        family.step(step, &mut parents).await;
        let opened = family.window.views.keys().filter(|id| !roots.contains(id)).cloned();
        roots.extend(opened.collect::<Vec<_>>());
    }
    for root in &roots {
        let _ended = family.window.ask(Some(root), Request::Cancel).await;
    }
    family.window.settle(QUIET).await;
    for root in roots.clone() {
        if family.living().contains(&root) {
            is_answered(&family.messages(&root).await);
            let _closed = family.window.ask(Some(&root), Request::Close).await;
        }
    }
    family.window.settle(QUIET).await;
    assert!(family.living().is_empty(), "{:?} outlive their parents", family.living());
    assert!(family.ledger.held_reservations().is_empty(), "all is settled");
    // A session's cap holds for it and all below it, but for what was in flight: eight at once.
    let most = roots.len() as u64 * (CAP + 8 * CALL_MICRO_USD);
    assert!(family.micro_usd().await <= most, "{} of {most}", family.micro_usd().await);
    let written = family.writer.calls().len();
    assert!(only.is_none() || written == 0, "{written} calls were denied above, and run below");
}

#[test]
fn random_child_sessions_end_with_parents_and_respect_caps() {
    let steps = option_env!("GNOMA_WALKS").and_then(|told| told.parse().ok()).unwrap_or(STEPS);
    let cases = steps.div_ceil(WALK as u32).max(1);
    let config = ProptestConfig { cases, max_shrink_iters: 200, ..ProptestConfig::default() };
    proptest!(config, |(steps in prop::collection::vec(step(), WALK..=WALK))| {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_time().start_paused(true).build().unwrap().block_on(walk(steps, None));
    });
}

#[test]
fn child_sessions_never_do_what_an_ancestor_is_denied() {
    let config =
        ProptestConfig { cases: DENIED_WALKS, max_shrink_iters: 100, ..ProptestConfig::default() };
    proptest!(config, |(steps in prop::collection::vec(step(), WALK..=WALK))| {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().unwrap();
        runtime.block_on(walk(steps, Some(PermissionMode::Deny)));
    });
}
