//! What a person at a terminal meets. The terminal is made by `script`, which every Linux has.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "these are tests")]

use std::{process::Stdio, time::Duration};

use gnoma_core::StopReason;
use gnoma_testkit::{Reply, Script, Wire};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::timeout,
};

use crate::support::{World, calls, exists, says};

/// Nothing on the screen takes longer to appear.
const MAX_WAIT: Duration = Duration::from_secs(20);

/// The program on a terminal of its own.
pub(crate) struct Terminal {
    child: Child,
    keys: ChildStdin,
    screen: ChildStdout,
    /// All that was on the screen so far.
    pub seen: String,
}

impl Terminal {
    pub(crate) fn open(world: &World, arguments: &str) -> Self {
        let mut command = Command::new("script");
        let program = env!("CARGO_BIN_EXE_gnoma");
        command
            .args(["-qec", &format!("{program} {arguments}"), "/dev/null"])
            .current_dir(world.project.path())
            .env_clear()
            .env("TZ", "UTC")
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", world.home.path())
            .env("TERM", "xterm")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let (keys, screen) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, keys, screen, seen: String::new() }
    }

    pub(crate) async fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).await.unwrap();
    }

    /// Reads until `text` is on the screen for the `times`th time.
    pub(crate) async fn wait_for(&mut self, text: &str, times: usize) {
        let reading = async {
            while self.seen.matches(text).count() < times {
                let mut bytes = [0; 4096];
                let count = self.screen.read(&mut bytes).await.unwrap();
                assert!(count > 0, "`{text}` never came: {}", self.seen);
                self.seen.push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        };
        let came = timeout(MAX_WAIT, reading).await;
        assert!(came.is_ok(), "`{text}` never came: {}", self.seen);
    }

    /// Waits for the end; the exit code and everything that was on the screen.
    pub(crate) async fn end(mut self) -> (Option<i32>, String) {
        let rest = async {
            let mut bytes = Vec::new();
            self.screen.read_to_end(&mut bytes).await.unwrap();
            self.seen.push_str(&String::from_utf8_lossy(&bytes));
            self.child.wait().await.unwrap().code()
        };
        let code = timeout(MAX_WAIT, rest).await.expect("the program hangs");
        (code, self.seen)
    }
}

#[tokio::test]
async fn parallel_tool_calls_ask_for_approval_one_by_one() {
    let script = Script::text([""; 0])
        .with_call("c1", "fs_ls", r#"{"path":"."}"#)
        .with_call("c2", "fs_glob", r#"{"pattern":"*"}"#)
        .with_stop(StopReason::ToolUse);
    let world = World::new([Wire::OpenAi.stream_reply(&script), says("both seen")]);
    let mut terminal = Terminal::open(&world, "--permission default look");
    terminal.wait_for("reason to deny", 1).await;
    assert!(!terminal.seen.contains("Find files?"), "{}", terminal.seen);
    terminal.press("y\n").await;
    terminal.wait_for("reason to deny", 2).await;
    assert!(terminal.seen.contains("Find files?"), "{}", terminal.seen);
    terminal.press("y\n").await;
    let (code, seen) = terminal.end().await;
    assert_eq!(code, Some(0), "{seen}");
    assert!(seen.contains("both seen"), "{seen}");
}

#[tokio::test]
async fn input_typed_before_a_permission_question_does_not_answer_it() {
    let call = calls("bash", r#"{"command":"touch made"}"#).with_delay(Duration::from_secs(1));
    let world = World::new([call, says("ok")]);
    let mut terminal = Terminal::open(&world, "go");
    terminal.wait_for("waiting for ", 1).await;
    terminal.press("y\n").await;
    terminal.wait_for("reason to deny", 1).await;
    terminal.press("use make\n").await;
    let (code, seen) = terminal.end().await;
    assert_eq!(code, Some(0), "{seen}");
    assert!(!exists(world.project.path(), "made"), "{seen}");
    let told = world.last_request();
    let refused = ["denied by the user: use make", "discarded: use make"];
    assert!(
        refused.iter().any(|said| told.iter().any(|(_, text)| text.contains(said))),
        "{told:?}"
    );
}

#[tokio::test]
async fn ctrl_c_at_a_permission_question_ends_the_turn() {
    let world = World::new([calls("bash", r#"{"command":"touch made"}"#)]);
    let mut terminal = Terminal::open(&world, "go");
    terminal.wait_for("reason to deny", 1).await;
    terminal.press("\x03").await;
    let (code, seen) = terminal.end().await;
    assert_eq!(code, Some(130), "{seen}");
    assert!(!exists(world.project.path(), "made"), "{seen}");
}

#[tokio::test]
async fn permission_question_starts_on_its_own_line() {
    let script =
        Script::text(["I make ", "it."]).with_call("c1", "bash", r#"{"command":"touch made"}"#);
    let call = Wire::OpenAi.stream_reply(&script.with_stop(StopReason::ToolUse));
    let world = World::new([call, says("ok")]);
    let mut terminal = Terminal::open(&world, "go");
    terminal.wait_for("reason to deny", 1).await;
    let (before, _question) = terminal.seen.split_once("Keep what this command changed?").unwrap();
    assert!(before.contains("I make it.\r\n"), "{before}");
    terminal.press("y\n").await;
    terminal.end().await;
    assert!(exists(world.project.path(), "made"));
}

#[tokio::test]
async fn waiting_line_shows_the_latest_output_of_a_command() {
    let world = World::new([calls("bash", r#"{"command":"echo at work; sleep 2"}"#), says("ok")]);
    let mut terminal = Terminal::open(&world, "--permission bypass go");
    terminal.wait_for("sleep 2: at work", 1).await;
    let (code, seen) = terminal.end().await;
    assert_eq!(code, Some(0), "{seen}");
}

#[tokio::test]
async fn server_error_text_cannot_control_the_terminal() {
    let error = r#"{"error":{"message":"\u001b]0;owned\u0007\u001b[2Jgone"}}"#;
    let world = World::new([Reply::json(400, error)]);
    let (code, seen) = Terminal::open(&world, "hi").end().await;
    assert_eq!(code, Some(1), "{seen}");
    assert!(
        seen.contains("gone") && !seen.contains("\x1b]0;") && !seen.contains("\x1b[2J"),
        "{seen}"
    );
}

#[tokio::test]
async fn resume_without_id_offers_a_list_of_sessions() {
    let world = World::new([says("one"), says("two"), says("three"), says("four")]);
    for words in ["older words", "newer words"] {
        world.run(&[words]).await;
    }
    let mut terminal = Terminal::open(&world, "--resume --print");
    terminal.wait_for("Which one?", 1).await;
    assert!(terminal.seen.contains("newer words"), "{}", terminal.seen);
    terminal.press("9\n").await;
    terminal.wait_for("no session `9`", 1).await;
    terminal.press("2\n").await;
    terminal.wait_for("> ", 1).await;
    terminal.press("go on\n").await;
    let (code, seen) = terminal.end().await;
    assert!(code == Some(0) && seen.contains("three"), "{seen}");
    assert_eq!(world.last_request()[0].1, "older words");
    assert_eq!(world.last_request()[2].1, "go on");
    let mut terminal = Terminal::open(&world, "--resume 'and on'");
    terminal.wait_for("Which one?", 1).await;
    terminal.press("\n").await;
    let (code, seen) = terminal.end().await;
    assert_eq!(code, Some(0), "{seen}");
    assert_eq!(world.last_request()[0].1, "older words", "the one that was added to last");
}

#[tokio::test]
async fn session_delete_needs_confirmation() {
    let world = World::new([says("one")]);
    world.run(&["some words"]).await;
    for (answer, left) in [("n\n", 1), ("y\n", 0)] {
        let id = world.sessions().await.remove(0);
        let mut terminal = Terminal::open(&world, &format!("sessions delete {id}"));
        terminal.wait_for("Delete permanently?", 1).await;
        terminal.press(answer).await;
        let (code, seen) = terminal.end().await;
        assert_eq!(code, Some(0), "{seen}");
        assert_eq!(world.sessions().await.len(), left, "{seen}");
    }
}

#[tokio::test]
async fn a_session_that_is_open_elsewhere_is_offered_as_a_copy() {
    let slow = says("slow").with_delay(Duration::from_secs(8));
    let world = World::new([slow, says("in the copy")]);
    let first = world.command(&["first"]).spawn().unwrap();
    let mut open = false;
    while !open {
        tokio::time::sleep(Duration::from_millis(50)).await;
        open = world.json(&["sessions", "list", "--json"]).await[0]["held_by"].is_object();
    }
    let mut terminal = Terminal::open(&world, "--continue 'me too'");
    terminal.wait_for("Continue in a copy?", 1).await;
    terminal.press("y\n").await;
    let (code, seen) = terminal.end().await;
    assert!(code == Some(0) && seen.contains("in the copy"), "{seen}");
    let run = crate::support::finish(first).await;
    assert_eq!(run.out, "slow\n", "{run:?}");
}
