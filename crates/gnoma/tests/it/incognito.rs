//! Incognito: whatever is said or done, and whenever the program is killed, nothing of it stays.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use gnoma_core::StopReason;
use gnoma_testkit::{Reply, Script, Server, Wire};
use serde_json::json;
use tokio::{process::Command, time::sleep};

use crate::support::{World, calls, finish, says};

/// Sessions that are killed, each with a canary in every place.
const SESSIONS: u64 = 10;
/// Places where a session meets words of its own.
const PLACES: [&str; 10] = [
    "prompt",
    "stdin",
    "system",
    "instructions",
    "file",
    "output",
    "arguments",
    "thought",
    "answer",
    "error",
];
/// A session is killed at the latest after this long; most would run about half of it.
const MAX_LIFE_MS: u64 = 3_000;
/// Bytes of output that no model is shown as a whole, so that a tool is tempted to keep them elsewhere.
const LONG_OUTPUT_BYTES: usize = 400_000;

/// A word that stands in one place of one session only.
fn canary(session: u64, place: &str) -> String {
    format!("canary{}of{place}{session}", 7_919 * (session + 1))
}

/// Numbers that are the same in each run, by Marsaglia's xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// A world with every folder that programs keep things in below its home.
struct Watched {
    world: World,
}

impl Watched {
    fn new(session: u64) -> Self {
        let place = |name| canary(session, name);
        let pause = Duration::from_millis(60);
        let thought = Script::text([place("answer"), " and more".to_owned()])
            .with_thinking(place("thought"), "")
            .with_call("call_b", "fs_grep", json!({"pattern": place("arguments")}).to_string())
            .with_stop(StopReason::ToolUse);
        let error = json!({"error": {"message": place("error")}}).to_string();
        let replies = [
            calls("fs_read", r#"{"path":"notes.txt"}"#),
            calls("bash", r#"{"command":"sh ./loud.sh"}"#),
            Wire::OpenAi.stream_reply(&thought).with_piece_delay(pause),
            calls("fs_edit", r#"{"path":"notes.txt","old_string":"end","new_string":"End"}"#),
            calls("bash", r#"{"command":"sh ./loud.sh & wait","background":true}"#),
            Reply::json(503, error),
            says(&place("answer")).with_piece_delay(pause),
        ];
        let world = World::new(replies.map(|reply| reply.with_delay(pause)));
        world.write("notes.txt", &format!("{}\nend\n", place("file")));
        world.write("AGENTS.md", &place("instructions"));
        let line = format!("echo {}", place("output"));
        let loud = format!(
            "{line}\nyes {} | head -c {LONG_OUTPUT_BYTES}\nsleep 0.2\n{line}\n",
            place("output")
        );
        world.write("loud.sh", &loud);
        for folder in ["state", "cache", "data", "runtime", "tmp"] {
            fs::create_dir(world.home.path().join(folder)).unwrap();
        }
        Self { world }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.world.command(args);
        for (name, folder) in [
            ("XDG_CONFIG_HOME", ".config"),
            ("XDG_STATE_HOME", "state"),
            ("XDG_CACHE_HOME", "cache"),
            ("XDG_DATA_HOME", "data"),
            ("XDG_RUNTIME_DIR", "runtime"),
            ("TMPDIR", "tmp"),
        ] {
            command.env(name, self.world.home.path().join(folder));
        }
        command
    }

    /// Runs a session with a word in each place and kills it after a while, unless it has ended.
    async fn killed_after(&self, session: u64, life: Duration) {
        let prompt = canary(session, "prompt");
        let mut args = vec!["--incognito", "--permission", "bypass", &*prompt];
        let system = canary(session, "system");
        // The built-in prompt holds the project's instructions; one of one's own does not.
        if session.is_multiple_of(2) {
            args.extend(["--system", &system]);
        }
        let mut command = self.command(&args);
        command.stdin(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let words = canary(session, "stdin");
        tokio::io::AsyncWriteExt::write_all(&mut stdin, words.as_bytes()).await.unwrap();
        drop(stdin);
        sleep(life).await;
        child.start_kill().ok();
        finish(child).await;
    }

    /// Files of the home that hold one of `words` in their content or their name.
    fn traces(&self, words: &[String]) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![self.world.home.path().to_path_buf()];
        while let Some(folder) = folders.pop() {
            for path in fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path()) {
                if path.is_dir() && !path.is_symlink() {
                    folders.push(path.clone());
                }
                if holds(&path, words) {
                    found.push(path);
                }
            }
        }
        found
    }
}

fn holds(path: &Path, words: &[String]) -> bool {
    let content = if path.is_file() { fs::read(path).unwrap_or_default() } else { Vec::new() };
    let text = format!("{}\n{}", path.display(), String::from_utf8_lossy(&content));
    words.iter().any(|word| text.contains(word.as_str()))
}

/// The canaries of a session, plain and as they look within base64.
fn canaries(session: u64) -> Vec<String> {
    let plain = PLACES.map(|place| canary(session, place));
    let within = plain.iter().flat_map(|word| {
        (0..3).map(move |offset| {
            let encoded =
                BASE64_STANDARD.encode([vec![b' '; offset], word.clone().into()].concat());
            encoded[4..encoded.len() - 4].to_owned()
        })
    });
    within.chain(plain.iter().cloned()).collect()
}

#[tokio::test]
async fn killed_incognito_session_leaves_no_trace() {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let mut asked = 0;
    for session in 0..SESSIONS {
        let watched = Watched::new(session);
        let life = Duration::from_millis(random.below(MAX_LIFE_MS));
        watched.killed_after(session, life).await;
        asked += watched.world.server.requests().len();
        let traces = watched.traces(&canaries(session));
        assert!(traces.is_empty(), "after {life:?} there is something in {traces:?}");
    }
    assert!(asked > 0, "no session came as far as its model");
}

#[tokio::test]
async fn trace_search_finds_planted_canaries() {
    let watched = Watched::new(0);
    let words = canaries(0);
    let encoded = BASE64_STANDARD.encode(format!("xy{}", canary(0, "file")));
    fs::write(watched.world.home.path().join("cache/plain"), canary(0, "prompt")).unwrap();
    fs::write(watched.world.home.path().join("tmp/encoded"), encoded).unwrap();
    fs::write(watched.world.home.path().join("state").join(canary(0, "error")), "").unwrap();
    assert_eq!(watched.traces(&words).len(), 3);
}

#[tokio::test]
async fn local_only_refuses_remote_models_before_anything_is_sent() {
    let models = |request: &gnoma_testkit::Request| match request.method.as_str() {
        "GET" => Reply::json(200, r#"{"object":"list","data":[{"id":"m1","object":"model"}]}"#),
        _ => says("here"),
    };
    let world = World::with(Server::start(models).unwrap());
    let url = world.server.url();
    let elsewhere = "away = \"http://192.0.2.1:8080/v1\"\n";
    let here = format!("llamacpp = \"{url}/v1\"\nopenai = \"{url}/v1\"\n{elsewhere}");
    world.configure(&format!("{here}[privacy]\nlocal_only = true\n"));
    for (name, model) in [("away", "m1"), ("openai", "m1")] {
        let refused = ["--incognito", "--provider", name, "--model", model, "hi"];
        let refused = world.run(&refused).await;
        assert_eq!(refused.code, Some(2), "{refused:?}");
        let why = format!("`{name}` is not on this machine");
        assert!(refused.err.contains(&why), "{refused:?}");
    }
    assert_eq!(world.server.requests().len(), 0);
    // A server of one's own on this machine, whether gnoma knows its name or not.
    for args in [["--provider", "llamacpp"], ["--provider", "test"]] {
        let run = world.run(&["--incognito", args[0], args[1], "hi"]).await;
        assert_eq!((run.code, run.out.as_str()), (Some(0), "here\n"), "{run:?}");
    }
    let run = world.run(&["hi"]).await;
    assert_eq!(run.code, Some(0), "only incognito is held to it: {run:?}");
}

#[tokio::test]
async fn local_provider_with_a_remote_address_is_not_local() {
    let world = World::new([]);
    for elsewhere in ["http://192.0.2.1:8080/v1", "https://models.example.com/v1"] {
        let only = format!("llamacpp = \"{elsewhere}\"\n[privacy]\nlocal_only = true\n");
        world.configure(&only);
        let run = world.run(&["--incognito", "--provider", "llamacpp", "hi"]).await;
        assert_eq!(run.code, Some(2), "{run:?}");
        assert!(run.err.contains("`llamacpp` is not on this machine"), "{run:?}");
    }
}
