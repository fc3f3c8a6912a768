//! Two sessions of one process, opened from settings as everybody's are, over a model server: neither
//! changes a byte of what the other sends, and no placeholder crosses.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use gnoma_core::{
    protocol::{Environment, Overrides, Reply, Request, SessionSpec, Switch},
    session::PermissionMode,
};
use gnoma_host::{clock::Clock, live::Host, session_opening::Projects};
use gnoma_testkit::{Script, Server, Wire};
use proptest::prelude::*;

use super::support::{Window, kept};

/// Interleavings of two sessions, unless `GNOMA_WALKS` says another number: 0.12 s each, most of it for
/// opening and ending both.
const INTERLEAVINGS: u32 = 100;
/// Messages of a person in each of them.
const TURNS: usize = 3;
/// The folders of the sessions.
const FOLDERS: [&str; 2] = ["left", "right"];
const NOW_MS: i64 = 1_795_307_625_000;

fn secret(session: usize) -> String {
    let tail = if session == 0 { "L5m6N7o8P9q0R1" } else { "R4m5N6o7P8q9R0" };
    ["gh", "p_", "a1B2c3D4e5F6g7H8i9J0k1", tail].concat()
}

/// How long each message of a session and each answer to it waits.
#[derive(Clone, Debug)]
struct Pace {
    messages: Vec<Duration>,
    answers: Vec<Duration>,
}

/// The machine: its folders, its settings and its model server.
struct Machine {
    around: tempfile::TempDir,
    server: Server,
    paces: Arc<Mutex<[Vec<Duration>; 2]>>,
}

/// What a session sent, request by request, and the files that it wrote.
type Course = (Vec<(String, Vec<(String, String)>, Vec<u8>)>, Vec<String>);

impl Machine {
    fn new() -> Self {
        let paces = Arc::new(Mutex::new([Vec::new(), Vec::new()]));
        let given = Arc::clone(&paces);
        let server = Server::start(move |request| {
            let wait = given.lock().unwrap()[of(request)].pop();
            answer(request).with_delay(wait.unwrap_or_default())
        });
        let (around, server) = (tempfile::tempdir().unwrap(), server.unwrap());
        let config = around.path().join("home/.config/gnoma");
        fs::create_dir_all(&config).unwrap();
        let text = format!(
            "default_profile = \"plain\"\n[provider.endpoints]\nhere = \"{}/v1\"\n[router]\nlearn = false\nverify = \"off\"\n\
             strategy = \"single\"\ndiscovery_interval = \"0s\"\n[checkpoints]\nenabled = false\n",
            server.url()
        );
        fs::write(config.join("config.toml"), text).unwrap();
        let strict = "[[security.patterns]]\nname = \"acme\"\nregex = \"ACME-[0-9]{10}\"\n";
        fs::create_dir(config.join("profiles")).unwrap();
        for (name, text) in [("plain", ""), ("strict", strict)] {
            fs::write(config.join(format!("profiles/{name}.toml")), text).unwrap();
        }
        Self { around, server, paces }
    }

    fn folder(&self, session: usize) -> PathBuf {
        self.around.path().canonicalize().unwrap().join(FOLDERS[session])
    }

    fn spec(&self, session: usize) -> SessionSpec {
        let home = self.around.path().join("home").display().to_string();
        let variables = [("HOME", home.as_str()), ("PATH", "/usr/bin:/bin")];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        SessionSpec {
            folder: self.folder(session),
            environment: Environment::new(BTreeMap::from(variables)),
            overrides: Overrides {
                provider: Some("here".to_owned()),
                model: Some("m".to_owned()),
                mode: Some(PermissionMode::Bypass),
                ..Overrides::default()
            },
            ..kept()
        }
    }

    /// Opens both sessions in a process of their own and has those talk that have a pace.
    async fn talk(&self, paces: [Option<&Pace>; 2]) -> [Course; 2] {
        for session in [0, 1] {
            drop(fs::remove_dir_all(self.folder(session)));
            fs::create_dir(self.folder(session)).unwrap();
            let answers = paces[session].map(|pace| pace.answers.clone());
            self.paces.lock().unwrap()[session] = answers.unwrap_or_default();
        }
        let before = self.server.requests().len();
        let host = Host::new(Projects::with_clock(clock()));
        let mut opener = Window::new(&host, "opener");
        let sessions = [opener.open(self.spec(0)).await, opener.open(self.spec(1)).await];
        let side = |number: usize| {
            let mut window = Window::new(&host, &format!("w{number}"));
            let session = sessions[number].clone();
            async move {
                window.attach(&session).await;
                let waits = paces[number].map(|pace| &*pace.messages).unwrap_or_default();
                for (turn, wait) in waits.iter().enumerate() {
                    tokio::time::sleep(*wait).await;
                    let text = format!("turn {turn}, my token is {}", secret(number));
                    window.turn(&session, &text).await;
                }
            }
        };
        tokio::join!(side(0), side(1));
        host.shut_down().await;
        let requests = self.server.requests().split_off(before);
        [0, 1].map(|number| {
            let own = requests.iter().filter(|request| of(request) == number);
            let sent = own.map(|request| {
                (request.target.clone(), request.headers.clone(), request.body.to_vec())
            });
            (sent.collect(), written(&self.folder(number)))
        })
    }
}

/// One at which time stands still, and at which every session has the same chance.
fn clock() -> Clock {
    let next = AtomicI64::new(0);
    let id = move || {
        let id = gnoma_store::session_id(NOW_MS, next.fetch_add(1, Ordering::SeqCst));
        id.as_str().to_owned()
    };
    Clock::new(|| NOW_MS, || 1 << 40, id)
}

/// The session that has sent it.
fn of(request: &gnoma_testkit::Request) -> usize {
    let body = String::from_utf8_lossy(&request.body);
    FOLDERS.iter().position(|folder| body.contains(&format!("/{folder}"))).unwrap()
}

/// An answer that depends on what it is asked alone: the secret that it was told last is written into a
/// file.
fn answer(request: &gnoma_testkit::Request) -> gnoma_testkit::Reply {
    let body = request.json();
    let messages = body["messages"].as_array().unwrap();
    let number = messages.len();
    let last = messages.last().unwrap();
    if last["role"] != "user" {
        return Wire::OpenAi.stream_reply(&Script::text([format!("written {number}")]));
    }
    let text = last.to_string();
    let start = text.find("{{secret:").unwrap();
    let end = start + text[start..].find("}}").unwrap() + 2;
    let arguments = serde_json::json!({"path": format!("{number}"), "content": &text[start..end]});
    let script =
        Script::default().with_call(format!("c{number}"), "fs_write", arguments.to_string());
    Wire::OpenAi.stream_reply(&script)
}

fn written(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let mut files: Vec<_> = files.collect();
    files.sort();
    files.iter().map(|file| fs::read_to_string(file).unwrap()).collect()
}

#[test]
fn requests_of_a_session_do_not_depend_on_another_session() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _entered = runtime.enter();
    let machine = Machine::new();
    let even = Pace { messages: vec![Duration::ZERO; TURNS], answers: Vec::new() };
    let alone = [[Some(&even), None], [None, Some(&even)]];
    let [left, right] = alone.map(|paces| runtime.block_on(machine.talk(paces)));
    for (number, (sent, files)) in [(0, &left[0]), (1, &right[1])] {
        assert_eq!((sent.len(), files.len()), (2 * TURNS, TURNS));
        let has_secret = |body: &Vec<u8>| String::from_utf8_lossy(body).contains(&secret(number));
        assert!(!sent.iter().any(|(_, _, body)| has_secret(body)), "a secret was sent");
        assert!(files.iter().all(|text| *text == secret(number)), "{files:?}");
    }
    let told = option_env!("GNOMA_WALKS").and_then(|told| told.parse().ok());
    let cases = told.unwrap_or(INTERLEAVINGS);
    // How two sessions meet differs from run to run: there is nothing to shrink.
    let config = ProptestConfig { cases, max_shrink_iters: 0, ..ProptestConfig::default() };
    let waits = |most: usize| {
        prop::collection::vec((0_u64..3_000).prop_map(Duration::from_micros), most..=most)
    };
    let pace = || {
        let waits = (waits(TURNS), waits(2 * TURNS));
        waits.prop_map(|(messages, answers)| Pace { messages, answers })
    };
    proptest!(config, |(one in pace(), other in pace())| {
        let both = runtime.block_on(machine.talk([Some(&one), Some(&other)]));
        prop_assert_eq!(&both[0], &left[0]);
        prop_assert_eq!(&both[1], &right[1]);
    });
}

#[tokio::test]
async fn requests_after_a_profile_switch_follow_its_redaction_rules() {
    let machine = Machine::new();
    fs::create_dir(machine.folder(0)).unwrap();
    let host = Host::new(Projects::default());
    let mut window = Window::new(&host, "w");
    let first = window.open(machine.spec(0)).await;
    window.attach(&first).await;
    let strict = Request::Switch(Switch::Profile("strict".to_owned()));
    let Ok(Reply::Opened { session: second }) = window.ask(Some(&first), strict).await else {
        panic!("no session was opened")
    };
    window.attach(&second).await;
    // The session before it lives on under its own.
    for (session, shows) in [(&second, false), (&first, true)] {
        let before = machine.server.requests().len();
        let text = format!("not {}, and not ACME-1234567890", secret(0));
        window.turn(session, &text).await;
        let sent = machine.server.requests().split_off(before);
        assert_eq!(sent.len(), 2);
        for request in sent {
            let body = String::from_utf8_lossy(&request.body);
            assert!(!body.contains(&secret(0)) && body.contains("ACME-") == shows, "{body}");
        }
    }
}
