//! A host whose sessions are real engines over scripted providers, and clients that fold what they
//! are told.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{
        Arc, LazyLock, Mutex,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use gnoma_core::{
    Content, Event, Message, Price, Provider, Tool, ToolOutcome,
    protocol::{
        ClientMessage, Detach, Messages, Reply, Request, RequestError, RequestErrorKind, RequestId,
        Requests, ServerMessage, SessionSpec, SessionView, Start, Switch,
    },
    session::{PermissionMode, SessionState},
    store::SessionId,
    tool::{Access, BoxFuture, Spawner},
};
use gnoma_engine::{
    GatePlace, Limits, PersistenceOptions, Rights, Routes, Session, connect_arm,
    routing::RoutingPorts, session::Options,
};
use gnoma_guard::{
    firewall::{Connection, Firewall, FirewallOptions, Policy},
    permission::Permissions,
    secrets::Scanner,
};
use gnoma_host::live::{
    BackgroundService, Change, ChildOpening, Host, OpenedSession, Opener, PreparedSession,
    Services, SessionChangeResult, SessionOpening,
};
use gnoma_router::{
    Arm, Router, RouterSettings, Tuning, Verify,
    pool::{Caps, PoolLimits, Scope},
};
use gnoma_testkit::{Answer, FakeLedger, FakeProvider, FakeTool};

/// Nothing in these tests takes longer, on tokio's clock.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(600);

pub(crate) type MakeProvider = Box<dyn Fn(&SessionId) -> Arc<dyn Provider> + Send + Sync>;
/// Makes what picks the arms of a session.
pub(crate) type MakeTeam = Box<dyn Fn(&SessionId) -> Arc<Routes> + Send + Sync>;

/// What the sessions of a host are made of, and what was done to it.
pub(crate) struct World {
    make: MakeProvider,
    tools: Vec<Arc<dyn Tool>>,
    /// Its sessions can start elfs.
    has_elfs: bool,
    /// The arms of its sessions, where they have more than one.
    team: Option<MakeTeam>,
    /// What sessions may spend together, and where it is counted.
    spending: Option<(FakeLedger, Caps)>,
    next: AtomicU64,
    now_ms: AtomicI64,
    /// Where times are measured, the clock counts microseconds since then.
    clock: Option<std::time::Instant>,
    pub(crate) opened: Mutex<Vec<PathBuf>>,
    pub(crate) effects: Mutex<Vec<PathBuf>>,
    /// Whether its session was used, from first to last.
    pub(crate) used: Mutex<Vec<bool>>,
    pub(crate) tidied: AtomicU64,
}

/// A tool that is asked about in mode auto.
pub(crate) fn writer() -> FakeTool {
    FakeTool::new("write", Access::Edit, |_| ToolOutcome::success_text("done"))
}

impl World {
    pub(crate) fn new(make: MakeProvider, tools: Vec<FakeTool>) -> Arc<Self> {
        Arc::new(Self::with(make, tools))
    }

    /// Its sessions have these tools as well, and spend micro-dollars: a call one for each token.
    pub(crate) fn spending(
        make: MakeProvider,
        tools: Vec<Arc<dyn Tool>>,
        spending: (FakeLedger, Caps),
    ) -> Arc<Self> {
        let mut world = Self::with(make, vec![]);
        (world.tools, world.spending) = (tools, Some(spending));
        Arc::new(world)
    }

    /// Its sessions can start elfs as well.
    pub(crate) fn with_elfs(mut self: Arc<Self>) -> Arc<Self> {
        Arc::get_mut(&mut self).unwrap().has_elfs = true;
        self
    }

    /// Its sessions have these arms, these tools, and elfs.
    pub(crate) fn of_team(team: MakeTeam, tools: Vec<Arc<dyn Tool>>) -> Arc<Self> {
        let nobody = Box::new(|_: &SessionId| -> Arc<dyn Provider> {
            Arc::new(FakeProvider::new(Vec::new()))
        });
        let world = Self::with(nobody, Vec::new());
        Arc::new(Self { team: Some(team), tools, has_elfs: true, ..world })
    }

    /// Its clock counts microseconds since `begun`.
    pub(crate) fn timed(make: MakeProvider, begun: std::time::Instant) -> Arc<Self> {
        Arc::new(Self { clock: Some(begun), ..Self::with(make, Vec::new()) })
    }

    fn with(make: MakeProvider, tools: Vec<FakeTool>) -> Self {
        let tools = tools.into_iter().map(|tool| Arc::new(tool) as Arc<dyn Tool>).collect();
        Self {
            make,
            tools,
            has_elfs: false,
            team: None,
            spending: None,
            next: AtomicU64::new(1),
            now_ms: AtomicI64::new(1),
            clock: None,
            opened: Mutex::default(),
            effects: Mutex::default(),
            used: Mutex::default(),
            tidied: AtomicU64::new(0),
        }
    }

    /// Every session answers with these.
    pub(crate) fn of(answers: Vec<Answer>) -> (Arc<Self>, Arc<FakeProvider>) {
        let provider = Arc::new(FakeProvider::new(answers));
        let given = Arc::clone(&provider);
        let world = Self::new(Box::new(move |_| Arc::clone(&given) as _), vec![writer()]);
        (world, provider)
    }

    pub(crate) fn host(self: &Arc<Self>) -> Host {
        Host::new(TestOpener(Arc::clone(self)))
    }

    fn new_id(&self) -> SessionId {
        SessionId::new(format!("s{}", self.next.fetch_add(1, Ordering::SeqCst)))
    }

    fn routes(&self, id: &SessionId) -> Arc<Routes> {
        if let Some(team) = &self.team {
            return team(id);
        }
        let (arm, connection) = connect_arm(Connection::new((self.make)(id), false), "m");
        let Some((ledger, caps)) = &self.spending else {
            return Arc::new(Routes::with_single_arm((arm, connection)));
        };
        let price = Price { input: 1_000_000, output: 1_000_000, ..Price::default() };
        let settings = RouterSettings {
            strategy: gnoma_router::Strategy::Single,
            verify: Verify::Off,
            limits: PoolLimits::new(*caps),
            ..RouterSettings::default()
        };
        let ports = RoutingPorts {
            ledger: Some(Arc::new(ledger.clone())),
            now_ms: Box::new(|| 1),
            ..RoutingPorts::default()
        };
        let routes = Routes::new(Router::new(Tuning::default()), settings, ports);
        routes.set_arms([(Arm { price: Some(price), ..arm }, connection)]);
        Arc::new(routes)
    }

    fn firewall(&self) -> Arc<Firewall> {
        /// That of all worlds that have a team: most of the time would otherwise go into making them.
        static SHARED: LazyLock<Arc<Firewall>> = LazyLock::new(new_firewall);
        if self.team.is_some() { Arc::clone(&SHARED) } else { new_firewall() }
    }

    fn engine(&self, id: &SessionId, spec: &SessionSpec, parts: Parts) -> gnoma_engine::Handle {
        let system = format!("be good, {id}");
        let mut tools = self.tools.clone();
        if self.has_elfs && parts.may_spawn {
            tools.extend(gnoma_tools::elf_tools(Vec::new(), false));
        }
        Session::spawn(Options {
            id: id.as_str().into(),
            place: GatePlace::from_folder(Path::new("/")),
            tools,
            routes: self.routes(id),
            system: Box::new(move |_| system.as_str().into()),
            mode: spec.overrides.mode.unwrap_or(PermissionMode::Auto),
            permissions: Permissions::default(),
            firewall: self.firewall(),
            interactive: true,
            limits: Limits::default(),
            history: parts.carried,
            measured: None,
            shape: None,
            thinking: None,
            keeping: PersistenceOptions::default(),
            scope: parts.scope,
            step: None,
            above: parts.above,
            gauge: Arc::default(),
            spawner: Some(parts.spawner),
            spans: None,
            lifecycle: None,
            held_to: None,
            forbidden: Arc::default(),
            ready: None,
        })
    }

    async fn open(
        self: Arc<Self>,
        mut wanted: SessionOpening,
    ) -> Result<PreparedSession, RequestError> {
        let spec = wanted.spec.clone();
        if wanted.session.is_none() {
            self.opened.lock().unwrap().push(spec.folder.clone());
        }
        match spec.profile.as_deref() {
            Some("slow") => tokio::time::sleep(Duration::from_secs(1)).await,
            // Two kilobytes each, and none like another.
            Some("long") => {
                let message = |number| Message::user_text(format!("{number:08} ").repeat(228));
                wanted.carried = (0..100).map(|number| Arc::new(message(number))).collect();
            }
            // Enough to compact.
            Some("past") => {
                let message =
                    |number| Message::user_text(format!("{number} what was said ").repeat(10));
                wanted.carried = (0..12).map(|number| Arc::new(message(number))).collect();
            }
            Some("broken") => {
                return Err(RequestError::new(RequestErrorKind::Invalid, "it is broken"));
            }
            _ => (),
        }
        let id = match (&wanted.session, &spec.start) {
            (Some(id), _) => id.clone(),
            (None, Start::Stored { id, .. }) => SessionId::new(id.as_str()),
            (None, _) => self.new_id(),
        };
        let services = Arc::new(TestServices(Arc::clone(&self)));
        let messages = wanted.carried.clone();
        let named = id.clone();
        let opening = Box::pin(async move {
            if spec.profile.as_deref() == Some("locked") {
                return Err(RequestError::new(RequestErrorKind::Held, "it is open elsewhere"));
            }
            let SessionOpening { carried, spawner, .. } = wanted;
            let parts = Parts { carried, scope: None, above: None, may_spawn: true, spawner };
            let engine = self.engine(&named, &spec, parts);
            Ok(opened(engine, Watched(self)))
        });
        let (info, notes) = Default::default();
        Ok(PreparedSession { id, info, messages, notes, opening, services })
    }
}

fn new_firewall() -> Arc<Firewall> {
    Arc::new(Firewall::new(FirewallOptions {
        scanner: Scanner::new(Default::default()).unwrap(),
        policy: Policy::default(),
        allowed: Vec::new(),
        first_placeholder: 1,
    }))
}

fn opened(engine: gnoma_engine::Handle, beside: impl BackgroundService + 'static) -> OpenedSession {
    OpenedSession {
        engine,
        beside: Box::new(beside),
        models: Box::new(Vec::new),
        jobs: Arc::new(|| 0),
    }
}

/// What a session's engine is made of besides its world.
struct Parts {
    carried: Vec<Arc<Message>>,
    scope: Option<Scope>,
    above: Option<Rights>,
    may_spawn: bool,
    spawner: Arc<dyn Spawner>,
}

/// What works beside a session, and notes whether somebody uses it.
struct Watched(Arc<World>);

impl BackgroundService for Watched {
    fn set_used(&self, is_used: bool) {
        let mut used = self.0.used.lock().unwrap();
        if used.last() != Some(&is_used) {
            used.push(is_used);
        }
    }
}

struct TestOpener(Arc<World>);

impl Opener for TestOpener {
    fn open(
        &self,
        wanted: SessionOpening,
    ) -> BoxFuture<'static, Result<PreparedSession, RequestError>> {
        Box::pin(Arc::clone(&self.0).open(wanted))
    }

    fn now_ms(&self) -> i64 {
        match self.0.clock {
            Some(begun) => i64::try_from(begun.elapsed().as_micros()).unwrap(),
            None => self.0.now_ms.fetch_add(1, Ordering::SeqCst),
        }
    }

    fn new_id(&self) -> SessionId {
        self.0.new_id()
    }
}

struct TestServices(Arc<World>);

impl Services for TestServices {
    fn answer_request(&self, request: Request) -> BoxFuture<'static, Result<Reply, RequestError>> {
        let world = Arc::clone(&self.0);
        Box::pin(async move {
            if let Request::Export { path } = request {
                tokio::time::sleep(Duration::from_millis(300)).await;
                world.effects.lock().unwrap().push(path);
            } else if let Request::Rename { title } = request {
                tokio::time::sleep(Duration::from_millis(300)).await;
                if title == "refused" {
                    return Err(RequestError::new(RequestErrorKind::Failed, "no room"));
                }
                return Ok(Reply::Text(title.replace('\u{202e}', "")));
            }
            Ok(Reply::Text("done".to_owned()))
        })
    }

    fn check_change(&self, change: Change) -> BoxFuture<'static, Result<(), RequestError>> {
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(20)).await;
            match change.request {
                Request::Rewind { turns: 99, .. } => {
                    Err(RequestError::new(RequestErrorKind::Invalid, "there are not so many"))
                }
                _ => Ok(()),
            }
        })
    }

    fn apply_change(
        &self,
        change: Change,
    ) -> BoxFuture<'static, Result<SessionChangeResult, RequestError>> {
        let Change { request, mut spec } = change;
        let world = Arc::clone(&self.0);
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(20)).await;
            world.effects.lock().unwrap().push("changed".into());
            match request {
                Request::Switch(Switch::Model(name)) if name == "none" => {
                    return Err(RequestError::new(RequestErrorKind::NotFound, "no such model"));
                }
                // Its settings are read in vain.
                Request::Switch(Switch::Model(name)) => spec.profile = Some(name),
                Request::Fork => spec.folder.push("copy"),
                Request::Switch(
                    Switch::New
                    | Switch::Stored(_)
                    | Switch::Copy(_)
                    | Switch::Profile(_)
                    | Switch::Incognito(_)
                    | Switch::Folder(_),
                ) => spec.folder.push("other"),
                _ => (),
            }
            Ok(SessionChangeResult { spec, keeps_messages: true, told: String::new() })
        })
    }

    fn prepare_child(
        &self,
        wanted: ChildOpening,
    ) -> BoxFuture<'static, Result<(SessionSpec, PreparedSession), RequestError>> {
        let world = Arc::clone(&self.0);
        Box::pin(async move {
            let wait_ms = if wanted.task.name == "late" { 5_000 } else { 5 };
            tokio::time::sleep(Duration::from_millis(wait_ms)).await;
            let ChildOpening { id, task, scope, rights, spawner, .. } = wanted;
            let (spec, may_spawn) = (task.spec, task.may_spawn);
            let (scope, above) = (Some(scope), Some(rights));
            let parts = Parts { carried: Vec::new(), scope, above, may_spawn, spawner };
            let engine = world.engine(&id, &spec, parts);
            let opened = opened(engine, ());
            let opening = Box::pin(async { Ok(opened) });
            let services = Arc::new(Self(world));
            let (info, messages, notes) = Default::default();
            Ok((spec, PreparedSession { id, info, messages, notes, opening, services }))
        })
    }

    fn unchanged_spec(&self, spec: SessionSpec) -> SessionSpec {
        spec
    }

    fn remove_old_data(&self) -> BoxFuture<'static, ()> {
        self.0.tidied.fetch_add(1, Ordering::SeqCst);
        Box::pin(async {})
    }
}

/// A client that folds what it is told.
pub(crate) struct Window {
    requests: Option<Requests>,
    messages: Messages,
    next_id: u64,
    pub(crate) views: HashMap<SessionId, SessionView>,
    pub(crate) snapshots: usize,
    pub(crate) replies: Vec<(RequestId, Result<Reply, RequestError>)>,
    pub(crate) process: Vec<gnoma_core::protocol::ProcessEvent>,
    /// The events that came, where they are recorded.
    pub(crate) recorded: Option<Vec<Event>>,
    is_over: bool,
}

impl Window {
    pub(crate) fn new(host: &Host, name: &str) -> Self {
        let (requests, messages) = host.connect(name).into_halves();
        Self {
            requests: Some(requests),
            messages,
            next_id: 1,
            views: HashMap::new(),
            snapshots: 0,
            replies: Vec::new(),
            process: Vec::new(),
            recorded: None,
            is_over: false,
        }
    }

    /// Sends a request under an id of the caller's choice; `false` where it would have to wait.
    pub(crate) fn put(&mut self, message: ClientMessage) -> bool {
        use futures_util::FutureExt as _;
        let Some(requests) = &self.requests else { return false };
        matches!(requests.forward(message).now_or_never(), Some(Ok(())))
    }

    /// Asks no more, but still listens.
    pub(crate) fn ask_no_more(&mut self) {
        self.requests = None;
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    fn take(&mut self, message: ServerMessage) {
        match message {
            ServerMessage::Reply { id, result } => self.replies.push((id, result)),
            ServerMessage::Snapshot(view) => {
                self.snapshots += 1;
                self.views.insert(view.session.clone(), *view);
            }
            ServerMessage::Event(envelope) => {
                let view = self.views.get_mut(&envelope.session).expect("an event before a view");
                assert_eq!(envelope.epoch, view.epoch, "another epoch without a snapshot");
                assert!(envelope.seq <= view.seq + 1, "a gap");
                view.apply_envelope(&envelope);
                if let Some(recorded) = &mut self.recorded {
                    recorded.push(envelope.event.clone());
                }
            }
            ServerMessage::Process(event) => self.process.push(event),
        }
    }

    /// Reads what is there.
    pub(crate) fn read(&mut self, most: usize) {
        for _ in 0..most {
            let Some(message) = self.messages.try_next() else { return };
            self.take(message);
        }
    }

    /// Reads until nothing comes for so long.
    pub(crate) async fn settle(&mut self, quiet: Duration) {
        while !self.is_over {
            match tokio::time::timeout(quiet, self.messages.next()).await {
                Ok(Some(message)) => self.take(message),
                Ok(None) => self.is_over = true,
                Err(_) => return,
            }
        }
    }

    pub(crate) async fn until(&mut self, stop: impl Fn(&Self) -> bool) {
        while !stop(self) {
            let next = tokio::time::timeout(MAX_WAIT, self.messages.next()).await;
            let message = next.expect("nothing comes").expect("the connection has ended");
            self.take(message);
        }
    }

    pub(crate) fn send(&mut self, session: Option<&SessionId>, request: Request) -> RequestId {
        let id = RequestId(self.next_id);
        self.next_id += 1;
        assert!(self.put(ClientMessage { id, session: session.cloned(), request }));
        id
    }

    pub(crate) async fn ask(
        &mut self,
        session: Option<&SessionId>,
        request: Request,
    ) -> Result<Reply, RequestError> {
        let asked = self.send(session, request);
        self.until(|own| own.replies.iter().any(|(id, _)| *id == asked)).await;
        self.replies.iter().find(|(id, _)| *id == asked).unwrap().1.clone()
    }

    pub(crate) async fn open(&mut self, spec: SessionSpec) -> SessionId {
        match self.ask(None, Request::Open(Box::new(spec))).await {
            Ok(Reply::Opened { session }) => session,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn attach(&mut self, session: &SessionId) {
        self.ask(Some(session), Request::Attach { from: None }).await.unwrap();
        self.until(|own| own.views.contains_key(session)).await;
    }

    /// Says something, and waits for the end of the turn.
    pub(crate) async fn turn(&mut self, session: &SessionId, text: &str) {
        self.ask(Some(session), say(text)).await.unwrap();
        self.until_state(session, SessionState::Active).await;
        self.until_state(session, SessionState::Idle).await;
    }

    pub(crate) async fn until_state(&mut self, session: &SessionId, state: SessionState) {
        self.until(|own| own.views.get(session).is_some_and(|view| view.state == state)).await;
    }
}

/// A host of that world, and a window on a session in it.
pub(crate) async fn attached(world: &Arc<World>) -> (Host, Window, SessionId) {
    let host = world.host();
    let mut window = Window::new(&host, "w");
    let session = window.open(kept()).await;
    window.attach(&session).await;
    (host, window, session)
}

pub(crate) fn say(text: &str) -> Request {
    Request::Send { content: vec![Content::from_text(text)] }
}

pub(crate) fn kept() -> SessionSpec {
    SessionSpec { detach: Detach::Keep, ..SessionSpec::default() }
}

/// The host's own view: what whoever comes now is given.
pub(crate) async fn truth(host: &Host, session: &SessionId) -> SessionView {
    let mut fresh = Window::new(host, "fresh");
    fresh.attach(session).await;
    fresh.views[session].clone()
}

pub(crate) fn kind(outcome: Result<Reply, RequestError>) -> RequestErrorKind {
    outcome.expect_err("an error is due").kind
}
