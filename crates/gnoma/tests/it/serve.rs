//! Sessions that live in a server: windows that come, go, are killed, and a server that ends.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    os::unix::{fs::PermissionsExt as _, net::UnixStream},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use gnoma_core::StopReason;
use gnoma_testkit::{Reply, Script, Wire};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::{
    support::{World, calls, exists, says},
    tui::{Person, slowly},
};

mod requests;

const PATIENCE: Duration = Duration::from_secs(60);
const STEP: Duration = Duration::from_millis(10);

/// A server that runs.
pub(crate) struct Served {
    child: Child,
}

impl Served {
    pub(crate) fn starts(world: &World, arguments: &[&str]) -> Self {
        std::fs::create_dir_all(world.home.path().join("run")).unwrap();
        let arguments = [&["serve"], arguments].concat();
        // A server has a umask of its own.
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", "umask 077; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_gnoma")])
            .args(arguments)
            .current_dir("/")
            .env_clear()
            .env("TZ", "UTC")
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", world.home.path())
            .env("XDG_RUNTIME_DIR", world.home.path().join("run"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut served = Self { child: command.spawn().unwrap() };
        let mut lines = BufReader::new(served.child.stderr.take().unwrap());
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        // One that it takes the place of may be named first.
        if line.contains("by a signal") {
            line.clear();
            lines.read_line(&mut line).unwrap();
        }
        assert!(line.contains("server.sock"), "{line}");
        served.child.stderr = Some(lines.into_inner());
        served
    }

    fn signals(&self, signal: Signal) {
        let id = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(id, signal).unwrap();
    }

    /// Waits for its end; gives its code and what it said last.
    fn ends(&mut self) -> (Option<i32>, String) {
        let end = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < end, "the server does not end");
            thread::sleep(STEP);
        };
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (status.code(), said)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// An answer that goes on for long and never says the same twice.
fn counts() -> Reply {
    let pieces = (1..1_000).map(|number| format!("{number} sheep, "));
    let script = Script::text(pieces).with_stop(StopReason::EndTurn);
    Wire::OpenAi
        .stream_reply(&script)
        .with_piece_size(256)
        .with_piece_delay(Duration::from_millis(50))
}

/// The sessions of the server, by `gnoma ps --json`.
async fn sessions(world: &World) -> Vec<Value> {
    world.json(&["ps", "--json"]).await.as_array().unwrap().clone()
}

async fn waits_until(what: &str, world: &World, is_so: impl Fn(&[Value]) -> bool) {
    let end = Instant::now() + PATIENCE;
    loop {
        let sessions = sessions(world).await;
        if is_so(&sessions) {
            return;
        }
        assert!(Instant::now() < end, "no {what}: {sessions:?}");
        tokio::time::sleep(STEP).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn detached_window_reattaches_to_its_session() {
    let world = World::new([says("An answer."), says("Another one.")]);
    let _served = Served::starts(&world, &[]);
    let person = Person::ready(&world, &[]);
    person.types("what was asked\r");
    person.waits_for("An answer.");
    person.types("/detach\r");
    let (status, seen) = person.ends();
    assert_eq!(status.code(), Some(0));
    let id = seen.split("gnoma attach ").nth(1).expect("how to come back");
    let id = id.split_whitespace().next().unwrap().to_owned();
    waits_until("session without a window", &world, |all| {
        all.len() == 1 && all[0]["subscribers"] == 0 && all[0]["status"]["session"] == *id
    })
    .await;
    let person = Person::starts(&world, &["attach", &id]);
    person.waits_for("what was asked");
    person.waits_for("An answer.");
    person.types("and now\r");
    person.waits_for("Another one.");
    person.leaves();
    assert_eq!(world.sessions().await, [id]);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_windows_show_the_same_and_either_may_answer() {
    let world =
        World::new([calls("bash", r#"{"command":"touch made"}"#), says("It is made."), counts()]);
    let _served = Served::starts(&world, &[]);
    let first = Person::ready(&world, &[]);
    first.types("make it\r");
    first.waits_for("yes, keep all of it");
    let second = Person::starts(&world, &["attach"]);
    second.waits_for("yes, keep all of it");
    second.types("y");
    first.waits_for("It is made.");
    second.waits_for("It is made.");
    let mode = |name| world.project.path().join(name).metadata().unwrap().permissions().mode();
    std::fs::write(world.project.path().join("by the client"), "").unwrap();
    assert_eq!(mode("made"), mode("by the client"));
    first.types("go on\r");
    second.waits_for("3 sheep");
    first.signals(Signal::KILL);
    second.types("\x1b");
    second.waits_for("stopped; work done");
    second.leaves();
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_window_leaves_its_session_running() {
    for signal in [Signal::KILL, Signal::HUP] {
        let world = World::new([counts()]);
        let _served = Served::starts(&world, &[]);
        let person = Person::ready(&world, &[]);
        person.types("count\r");
        person.waits_for("3 sheep");
        person.signals(signal);
        waits_until("session without a window", &world, |all| {
            all.len() == 1 && all[0]["subscribers"] == 0
        })
        .await;
        // Longer than anything that was sent before takes to be seen.
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!(sessions(&world).await[0]["status"]["state"], "active", "{signal:?}");
        drop(person);
        let person = Person::starts(&world, &["attach"]);
        person.waits_for("30 sheep");
        person.types("\x1b");
        person.waits_for("stopped; work done");
        // Whoever leaves takes it along, as without a server.
        person.leaves();
        waits_until("end of the session", &world, <[Value]>::is_empty).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn suspended_window_does_not_delay_other_windows() {
    let world = World::new([slowly("many words ", 60), says("The end.")]);
    let _served = Served::starts(&world, &[]);
    let first = Person::ready(&world, &[]);
    let second = Person::starts(&world, &["attach"]);
    second.waits_for("› ");
    first.signals(Signal::STOP);
    // Not that of a shell: the window itself takes nothing any more.
    second.types("go\r");
    second.waits_for("many words");
    waits_until("end of the turn", &world, |all| all[0]["status"]["state"] == "idle").await;
    second.types("again\r");
    second.waits_for("The end.");
    first.signals(Signal::CONT);
    first.waits_for("The end.");
}

#[tokio::test(flavor = "multi_thread")]
async fn session_resumes_from_saved_state_after_the_server_is_killed() {
    let world = World::new([says("An answer."), says("Another one.")]);
    let mut served = Served::starts(&world, &[]);
    let person = Person::ready(&world, &[]);
    person.types("what was asked\r");
    person.waits_for("An answer.");
    waits_until("end of the turn", &world, |all| all[0]["status"]["state"] == "idle").await;
    served.signals(Signal::KILL);
    served.ends();
    // The stale socket is taken over, and the window finds its session again.
    let _again = Served::starts(&world, &[]);
    waits_until("session in the new server", &world, |all| all.len() == 1).await;
    person.types("and now\r");
    person.waits_for("Another one.");
    assert_eq!(world.last_request().len(), 3);
    person.leaves();
}

/// The result of the one call, as the model reads it after the server was killed while it was open.
async fn told_after_a_kill(
    mode: &str,
    command: &str,
    until: impl Fn(&World, &Person),
) -> (World, String) {
    let arguments = serde_json::json!({ "command": command }).to_string();
    let world = World::new([calls("bash", &arguments), says("I see.")]);
    world.configure(&format!("[permission]\nmode = \"{mode}\"\n"));
    let mut served = Served::starts(&world, &[]);
    let person = Person::ready(&world, &[]);
    person.types("make it\r");
    person.waits_for("no, and tell the model why");
    until(&world, &person);
    served.signals(Signal::KILL);
    served.ends();
    drop(person);
    let run = world.run(&["--continue", "what happened?"]).await;
    assert_eq!((run.code, run.out.trim()), (Some(0), "I see."), "{run:?}");
    let sent = world.last_request();
    let roles: Vec<_> = sent.iter().map(|(role, _)| role.as_str()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "user"]);
    let told = format!("{}\n{}", run.err, sent[2].1);
    (world, told)
}

#[tokio::test(flavor = "multi_thread")]
async fn open_permission_question_is_denied_when_the_server_is_killed() {
    let (world, told) = told_after_a_kill("default", "touch made", |_, _| ()).await;
    assert!(told.contains("did not run") && !told.contains("may have"), "{told}");
    assert!(!told.contains("is unknown") && !told.contains("were running"), "{told}");
    assert!(!exists(world.project.path(), "made"));
}

#[tokio::test(flavor = "multi_thread")]
async fn unapproved_trial_changes_are_discarded_when_the_server_is_killed() {
    let (world, told) = told_after_a_kill("auto", "touch made", |_, _| ()).await;
    assert!(!exists(world.project.path(), "made"));
    // Where nothing can be tried the question came before.
    assert!(told.contains("discarded") || told.contains("did not run"), "{told}");
    assert!(!told.contains("is unknown"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tool_call_running_when_the_server_was_killed_has_an_unknown_outcome() {
    let approve = |world: &World, person: &Person| {
        person.types("y");
        let end = Instant::now() + PATIENCE;
        while !exists(world.project.path(), "made") {
            assert!(Instant::now() < end, "the command does not run");
            thread::sleep(STEP);
        }
    };
    let (_world, told) = told_after_a_kill("default", "touch made; sleep 20", approve).await;
    assert!(told.contains("is unknown") && !told.contains("did not run"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_saves_sessions_and_names_running_ones() {
    let world = World::new([counts(), says("It goes on.")]);
    let mut served = Served::starts(&world, &[]);
    let person = Person::ready(&world, &[]);
    person.types("what was asked\r");
    person.waits_for("3 sheep");
    served.signals(Signal::TERM);
    let (code, said) = served.ends();
    assert_eq!(code, Some(143), "{said}");
    assert!(said.contains("stopped while working") && said.contains("what was asked"), "{said}");
    drop(person);
    let run = world.run(&["--continue", "and now"]).await;
    assert_eq!((run.code, run.out.trim()), (Some(0), "It goes on."), "{run:?}");
    assert!(world.last_request().iter().any(|(_, text)| text.contains("3 sheep")));
}

/// Speaks as a server of a version far apart does, until it is killed. Run by the test below.
#[test]
#[ignore = "another test runs it in a process of its own"]
#[expect(clippy::disallowed_methods, reason = "the other test says where")]
fn a_server_of_another_version() {
    let Some(socket) = std::env::var_os("GNOMA_TEST_SOCKET") else { return };
    let listener = std::os::unix::net::UnixListener::bind(socket).unwrap();
    for stream in listener.incoming() {
        let mut stream = BufReader::new(stream.unwrap());
        let mut hello = String::new();
        stream.read_line(&mut hello).ok();
        let refusal =
            "{\"refused\":{\"kind\":\"version\",\"cause\":\"the server speaks version 9\"}}\n";
        stream.get_mut().write_all(refusal.as_bytes()).ok();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_of_another_version_is_replaced() {
    let world = World::new([says("An answer.")]);
    let folder = world.home.path().join("run/gnoma");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700)).unwrap();
    let socket = folder.join("server.sock");
    let old = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "serve::a_server_of_another_version"])
        .env("GNOMA_TEST_SOCKET", &socket)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let mut old = Served { child: old.unwrap() };
    while UnixStream::connect(&socket).is_err() {
        tokio::time::sleep(STEP).await;
    }
    let refused = world.run(&["ps"]).await;
    assert!(refused.err.contains("speaks version 9"), "{refused:?}");
    let _new = Served::starts(&world, &["--replace"]);
    assert_eq!(old.ends().0, None, "a signal ended it");
    assert!(sessions(&world).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_was_stopped_is_named_and_replaced() {
    let world = World::new([says("An answer.")]);
    let mut first = Served::starts(&world, &[]);
    first.signals(Signal::STOP);
    let begun = Instant::now();
    let run = world.run(&["ps"]).await;
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    assert!(run.err.contains(&first.child.id().to_string()), "{run:?}");
    assert!(run.err.contains("gnoma serve --replace"), "{run:?}");
    let _second = Served::starts(&world, &["--replace"]);
    assert_eq!(first.ends().0, Some(143), "it stored everything");
}

#[tokio::test(flavor = "multi_thread")]
async fn second_server_is_refused_unless_it_replaces_the_first() {
    let world = World::new([says("An answer.")]);
    let mut first = Served::starts(&world, &[]);
    let second = world.run(&["serve"]).await;
    assert_eq!(second.code, Some(2), "{second:?}");
    assert!(second.err.contains(&first.child.id().to_string()), "{second:?}");
    let _third = Served::starts(&world, &["--replace"]);
    assert_eq!(first.ends().0, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_exit_ends_a_server_without_windows() {
    let world = World::new([says("An answer.")]);
    let mut served = Served::starts(&world, &["--idle-exit", "1s"]);
    let person = Person::ready(&world, &[]);
    thread::sleep(Duration::from_millis(1_500));
    assert!(served.child.try_wait().unwrap().is_none(), "a window is open");
    person.leaves();
    assert_eq!(served.ends().0, Some(0));
    let run = world.run(&["ps"]).await;
    assert!(run.err.contains("no gnoma server is running"), "{run:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_protocol_lines_get_one_error_and_change_nothing() {
    let world = World::new([says("An answer.")]);
    let _served = Served::starts(&world, &[]);
    let person = Person::ready(&world, &[]);
    let socket = world.home.path().join("run/gnoma/server.sock");
    let says = |lines: &[u8]| {
        let mut stream = UnixStream::connect(&socket).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(lines).ok();
        stream.shutdown(std::net::Shutdown::Write).ok();
        let mut heard = String::new();
        stream.read_to_string(&mut heard).ok();
        heard
    };
    let hello = "{\"version\":1,\"program\":\"test\",\"client\":\"c\"}\n";
    assert!(says(b"rubbish\n").contains("malformed"));
    assert!(says(b"{\"version\":1,").contains("malformed"));
    assert!(says(b"{\"version\":99,\"program\":\"x\",\"client\":\"c\"}\n").contains("--replace"));
    for (line, kind) in [
        ("rubbish\n", "malformed"),
        ("{\"id\":7,\"request\":{\"dance\":{}}}\n", "unknown"),
        ("{\"id\":8,\"session\":\"no\",\"request\":\"cancel\"}\n", "no_session"),
        ("{\"id\":9,\"request\":\"cancel\"}\n", "no_session"),
        ("{\"id\":10,", "malformed"),
    ] {
        let heard = says(format!("{hello}{line}").as_bytes());
        let mut lines = heard.lines();
        assert!(lines.next().unwrap().contains("welcome"), "{heard}");
        assert!(lines.next().is_some_and(|reply| reply.contains(kind)), "{line}: {heard}");
        assert_eq!(lines.next(), None, "{line}: {heard}");
    }
    person.types("still there\r");
    person.waits_for("An answer.");
    person.leaves();
}
