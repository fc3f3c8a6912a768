//! Random walks: clients ask anything of anything, leave in the middle and come back.

use std::{
    collections::{HashMap, HashSet},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use gnoma_core::{
    CallId, Content, ModelRef,
    message::Text,
    protocol::{
        ClientMessage, ConnectBy, Connection, Reply, Request, RequestError, RequestId, SessionSpec,
        SessionView, Switch, Topic,
    },
    session::{PermissionAnswer, PermissionMode, Scope, SessionState},
    store::{ResultId, SessionId},
};
use gnoma_host::live::Host;
use gnoma_testkit::{Answer, FakeProvider};
use proptest::prelude::*;

use super::support::{Window, World, kept, truth, writer};

/// Steps of all walks together, unless `GNOMA_WALKS` says another number.
const STEPS: u32 = 50_000;
/// Steps of one walk.
const WALK: usize = 100;
const CLIENTS: usize = 3;
/// Looks at a session that goes on meanwhile.
const LOOKS: usize = 100;
/// Nothing that a request waits for takes longer.
const QUIET: Duration = Duration::from_secs(30);

#[derive(Clone, Debug)]
enum Step {
    Ask(usize, u64, Ask),
    Repeat(usize, prop::sample::Index),
    Read(usize, usize),
    Wait(u64),
    Break(usize),
    AskNoMore(usize),
}

#[derive(Clone, Copy, Debug)]
enum Ask {
    Open,
    OpenInVain,
    List,
    Attach(bool),
    Detach,
    Status,
    Send,
    Answer,
    Cancel,
    Close,
    Mode,
    Export,
    History,
    Switch(bool),
    Fork,
    /// One of [`others`].
    Other(usize),
}

/// Requests of every other kind.
fn others() -> Vec<Request> {
    let model = ModelRef { provider: "fake".into(), model: "m".into() };
    let address = ConnectBy::Address("http://127.0.0.1:1".to_owned());
    let connection = Connection { provider: "fake".to_owned(), by: address, model: None };
    vec![
        Request::Watch,
        Request::KeepRunning { keep: true },
        Request::KeepRunning { keep: false },
        Request::EditQueue { was: Vec::new(), queue: vec![vec![Content::from_text("later")]] },
        Request::SetMode { mode: PermissionMode::Plan },
        Request::KeepRule { rule: "write".into(), scope: Scope::Session, dry_run: true },
        Request::KeepRule { rule: "write".into(), scope: Scope::Project, dry_run: false },
        Request::Trust,
        Request::Pin { arm: Some(model) },
        Request::Pin { arm: None },
        Request::Rate { good: true },
        Request::Compact { focus: String::new() },
        Request::Rewind { turns: 1, files: true, conversation: true },
        Request::Rewind { turns: 99, files: true, conversation: true },
        Request::Redo,
        Request::Points,
        Request::Changes,
        Request::Rename { title: "a title".into() },
        Request::Rename { title: "refused".into() },
        Request::Search { words: "words".into(), max: 5 },
        Request::Stored { max: 5 },
        Request::Output { result: ResultId::new("r1"), from: 0, max_bytes: 10 },
        Request::Models { ask: true },
        Request::Providers,
        Request::Profiles,
        Request::Switch(Switch::Profile("other".into())),
        Request::Switch(Switch::Stored(None)),
        Request::Switch(Switch::Copy(None)),
        Request::Switch(Switch::Incognito(true)),
        Request::Switch(Switch::New),
        Request::TryProvider(connection.clone()),
        Request::AddProvider(connection),
        Request::Settings,
        Request::SetSetting { key: "a.b".into(), value: "1".into() },
        Request::Usage,
        Request::Explain(Topic::Routing),
        Request::Explain(Topic::Elfs),
        Request::CancelElf { name: "nobody".into() },
        Request::Send { content: Vec::new() },
    ]
}

fn ask() -> impl Strategy<Value = Ask> {
    prop_oneof![
        2 => Just(Ask::Open),
        1 => Just(Ask::OpenInVain),
        1 => Just(Ask::List),
        6 => any::<bool>().prop_map(Ask::Attach),
        1 => Just(Ask::Detach),
        2 => Just(Ask::Status),
        8 => Just(Ask::Send),
        5 => Just(Ask::Answer),
        2 => Just(Ask::Cancel),
        1 => Just(Ask::Close),
        1 => Just(Ask::Mode),
        3 => Just(Ask::Export),
        1 => Just(Ask::History),
        2 => any::<bool>().prop_map(Ask::Switch),
        1 => Just(Ask::Fork),
        8 => (0..others().len()).prop_map(Ask::Other),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let client = 0..CLIENTS;
    prop_oneof![
        12 => (client.clone(), 0_u64..5, ask()).prop_map(|(client, session, ask)| {
            Step::Ask(client, session, ask)
        }),
        3 => (client.clone(), any::<prop::sample::Index>())
            .prop_map(|(client, which)| Step::Repeat(client, which)),
        4 => (client.clone(), 1_usize..40).prop_map(|(client, most)| Step::Read(client, most)),
        3 => (0_u64..400).prop_map(Step::Wait),
        1 => client.clone().prop_map(Step::Break),
        1 => client.prop_map(Step::AskNoMore),
    ]
}

/// A client with its name, over all its connections.
struct Person {
    name: String,
    window: Window,
    asked: Vec<ClientMessage>,
    /// How often each was asked on this connection.
    on_this: HashMap<RequestId, usize>,
    first: HashMap<RequestId, Result<Reply, RequestError>>,
    attached: HashSet<SessionId>,
}

impl Person {
    fn new(host: &Host, number: usize) -> Self {
        let name = format!("client {number}");
        let window = Window::new(host, &name);
        let (asked, on_this, first, attached) = Default::default();
        Self { name, window, asked, on_this, first, attached }
    }

    fn put(&mut self, message: &ClientMessage) {
        if self.window.put(message.clone()) {
            *self.on_this.entry(message.id).or_default() += 1;
        }
    }

    fn ask(&mut self, session: u64, ask: Ask) {
        let id = RequestId(self.asked.len() as u64 + 1);
        let named = SessionId::new(format!("s{session}"));
        let unique = PathBuf::from(format!("/{}/{}", self.name, id.0));
        let request = match ask {
            Ask::Open => Request::Open(Box::new(SessionSpec { folder: unique, ..kept() })),
            Ask::OpenInVain => {
                let profile = Some("broken".to_owned());
                Request::Open(Box::new(SessionSpec { folder: unique, profile, ..kept() }))
            }
            Ask::List => Request::List,
            Ask::Attach(knows) => {
                let view = self.window.views.get(&named).filter(|_| knows);
                Request::Attach { from: view.map(SessionView::position) }
            }
            Ask::Detach => Request::Detach,
            Ask::Status => Request::Status,
            Ask::Send => super::support::say(&format!("<{}>", unique.display())),
            Ask::Answer => {
                let turn = self.window.views.get(&named).and_then(|view| view.turn.as_ref());
                let asked = turn.and_then(|turn| turn.questions.first());
                let call = asked.map_or(CallId::new("none"), |asked| asked.call.id.clone());
                Request::Answer { call, answer: PermissionAnswer::Allow }
            }
            Ask::Cancel => Request::Cancel,
            Ask::Close => Request::Close,
            Ask::Mode => Request::SetMode { mode: PermissionMode::Auto },
            Ask::Export => Request::Export { path: unique },
            Ask::History => Request::History { before: None, max: 5 },
            Ask::Switch(works) => {
                let model = if works { "m2" } else { "none" };
                Request::Switch(Switch::Model(model.to_owned()))
            }
            Ask::Fork => Request::Fork,
            Ask::Other(which) => others().swap_remove(which),
        };
        let is_for_process = matches!(request, Request::Open(_) | Request::List | Request::Watch);
        let session = (!is_for_process).then_some(named);
        let message = ClientMessage { id, session, request };
        self.put(&message);
        self.asked.push(message);
    }

    /// Looks at the replies that have come: those to a repeated request are its first.
    fn compare(&mut self) {
        for (id, outcome) in self.window.replies.drain(..) {
            let left = self.on_this.get_mut(&id).expect("a reply to what was not asked here");
            *left = left.checked_sub(1).expect("a second reply");
            let message = self.asked.iter().find(|message| message.id == id).unwrap();
            if let (Some(session), Ok(_)) = (&message.session, &outcome) {
                match message.request {
                    Request::Attach { .. } => drop(self.attached.insert(session.clone())),
                    Request::Detach => drop(self.attached.remove(session)),
                    _ => (),
                }
            }
            if !message.request.is_read() {
                let first = self.first.entry(id).or_insert_with(|| outcome.clone());
                assert_eq!(*first, outcome, "{message:?}");
            }
        }
    }

    /// Every request that was asked on this connection has been answered.
    async fn finish(&mut self) {
        self.window.settle(QUIET).await;
        self.compare();
        let left: Vec<_> = self.on_this.iter().filter(|(_, left)| **left > 0).collect();
        assert!(left.is_empty(), "not answered: {left:?} of {:?}", self.asked);
    }

    fn come_back(&mut self, host: &Host) {
        // What it knows it still knows.
        let views = std::mem::take(&mut self.window.views);
        self.window = Window::new(host, &self.name);
        self.window.views = views;
        self.on_this.clear();
        self.attached.clear();
    }
}

async fn walk(steps: Vec<Step>) {
    let wait = Duration::from_millis(7);
    let answers = (0..40).flat_map(|number| {
        let id = format!("c{number}");
        let calls = Answer::calls(&[(&*id, "write", "{}")]).with_event_delay(wait);
        let silence = (number % 5 == 4).then(Answer::endless_silence);
        [Some(calls), Some(Answer::text("a few words").with_event_delay(wait)), silence]
            .into_iter()
            .flatten()
    });
    let provider = Arc::new(FakeProvider::new(answers));
    let given = Arc::clone(&provider);
    let world = World::new(Box::new(move |_| Arc::clone(&given) as _), vec![writer()]);
    let host = world.host();
    let mut opener = Window::new(&host, "opener");
    for _ in 0..2 {
        opener.open(kept()).await;
    }
    let mut people: Vec<_> = (0..CLIENTS).map(|number| Person::new(&host, number)).collect();
    for step in steps {
        match step {
            Step::Ask(client, session, ask) => people[client].ask(session, ask),
            Step::Repeat(client, which) => {
                let person = &mut people[client];
                if !person.asked.is_empty() {
                    let message = which.get(&person.asked).clone();
                    person.put(&message);
                }
            }
            Step::Read(client, most) => {
                tokio::task::yield_now().await;
                people[client].window.read(most);
            }
            Step::Wait(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
            Step::Break(client) => people[client].come_back(&host),
            Step::AskNoMore(client) => {
                let person = &mut people[client];
                person.window.ask_no_more();
                person.finish().await;
                assert!(person.window.is_over(), "the connection does not end");
                person.come_back(&host);
            }
        }
        people.iter_mut().for_each(Person::compare);
    }
    for person in &mut people {
        person.finish().await;
    }
    // Whoever is attached has the host's view, and was told of the end.
    for person in &mut people {
        for session in &person.attached {
            if host.sessions().iter().all(|live| live.status.session != *session) {
                assert_eq!(person.window.views[session].state, SessionState::Closed);
                continue;
            }
            // Time goes on while the others settle: both are looked at until they tell of the same event.
            let mut held = truth(&host, session).await;
            for _ in 0..LOOKS {
                person.window.settle(Duration::from_millis(1)).await;
                if person.window.views[session].position() == held.position() {
                    break;
                }
                held = truth(&host, session).await;
            }
            assert_eq!(person.window.views[session], held);
        }
    }
    had_one_effect(&world, &provider, &people);
}

fn had_one_effect(world: &World, provider: &FakeProvider, people: &[Person]) {
    let opened = world.opened.lock().unwrap();
    let effects = world.effects.lock().unwrap();
    let requests = provider.requests();
    for message in people.iter().flat_map(|person| &person.asked) {
        let count = match &message.request {
            Request::Open(spec) => opened.iter().filter(|folder| **folder == spec.folder).count(),
            Request::Export { path } => effects.iter().filter(|it| *it == path).count(),
            Request::Send { content } => {
                let Some(Content::Text(Text { text, .. })) = content.first() else { continue };
                let said = |request: &gnoma_core::ModelRequest| {
                    let texts = request.messages.iter().map(|message| message.text_content());
                    texts.map(|all| all.matches(&**text).count()).sum::<usize>()
                };
                requests.iter().map(said).max().unwrap_or_default()
            }
            _ => 0,
        };
        assert!(count <= 1, "{count} effects of {message:?}");
    }
}

#[test]
fn every_request_gets_one_reply_and_one_effect() {
    let steps = option_env!("GNOMA_WALKS").and_then(|told| told.parse().ok()).unwrap_or(STEPS);
    let cases = steps.div_ceil(WALK as u32).max(1);
    let config = ProptestConfig { cases, max_shrink_iters: 200, ..ProptestConfig::default() };
    proptest!(config, |(steps in prop::collection::vec(step(), WALK..=WALK))| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(walk(steps));
    });
}
