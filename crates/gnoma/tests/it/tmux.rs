//! A working day in tmux: the program started from a shell in a pane, from the first prompt to the
//! last, with all that comes between. What the program prints goes through a terminal that somebody
//! else wrote.

use std::{
    process::{Command, Output},
    thread,
    time::{Duration, Instant},
};

use gnoma_core::StopReason;
use gnoma_testkit::{Script, Wire};

use crate::support::{World, calls, exists, says};

const PATIENCE: Duration = Duration::from_secs(60);
const STEP: Duration = Duration::from_millis(20);
/// About two words of a stream.
const PIECE_BYTES: usize = 400;
/// The shell's prompt, which gnoma never writes.
const SHELL: &str = "shell%";

/// A server of tmux with one pane, and a shell in it.
struct Pane<'a> {
    world: &'a World,
}

impl<'a> Pane<'a> {
    /// `None` where there is no tmux.
    fn open(world: &'a World) -> Option<Self> {
        let pane = Self { world };
        Command::new("tmux").arg("-V").output().ok()?;
        let shell = format!("exec env 'PS1={SHELL} ' sh -i");
        pane.tmux(&["new-session", "-d", "-x", "80", "-y", "24", &shell]);
        // A key alone is not waited for to become another.
        pane.tmux(&["set-option", "-s", "escape-time", "0"]);
        pane.waits_for(SHELL);
        Some(pane)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let home = self.world.home.path();
        let mut command = Command::new("tmux");
        command
            .arg("-S")
            .arg(home.join("tmux"))
            .args(["-f", "/dev/null"])
            .args(arguments)
            .current_dir(self.world.project.path())
            .env_clear()
            .env("TZ", "UTC")
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", home)
            .env("TERM", "xterm-256color")
            .env("LC_ALL", "C.UTF-8");
        command
    }

    #[track_caller]
    fn tmux(&self, arguments: &[&str]) -> Output {
        let output = self.command(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        output
    }

    fn types(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
    }

    fn presses(&self, key: &str) {
        self.tmux(&["send-keys", key]);
    }

    fn sees(&self) -> String {
        String::from_utf8_lossy(&self.tmux(&["capture-pane", "-p"]).stdout).into_owned()
    }

    /// What tmux knows about the pane.
    fn knows(&self, what: &str) -> String {
        let output = self.tmux(&["display-message", "-p", what]);
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    #[track_caller]
    fn waits_for(&self, text: &str) {
        self.waits_until(text, |seen| seen.contains(text));
    }

    #[track_caller]
    fn waits_until(&self, what: &str, is_so: impl Fn(&str) -> bool) {
        let end = Instant::now() + PATIENCE;
        loop {
            let seen = self.sees();
            if is_so(&seen) {
                return;
            }
            assert!(Instant::now() < end, "no {what:?} on:\n{seen}");
            thread::sleep(STEP);
        }
    }
}

impl Drop for Pane<'_> {
    fn drop(&mut self) {
        self.command(&["kill-server"]).output().ok();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_day_in_tmux() {
    let words = (0..300).map(|number| format!("word{number} "));
    let slowly = Wire::OpenAi.stream_reply(&Script::text(words).with_stop(StopReason::EndTurn));
    let world = World::new([
        says("A first **answer**."),
        calls("bash", r#"{"command":"touch made"}"#),
        says("It is made, and wide."),
        slowly.with_piece_size(PIECE_BYTES).with_piece_delay(Duration::from_millis(100)),
        says("And on."),
    ]);
    let Some(pane) = Pane::open(&world) else {
        gnoma_testkit::skip_test("`tmux` is not installed");
        return;
    };
    pane.types(env!("CARGO_BIN_EXE_gnoma"));
    pane.presses("Enter");
    pane.waits_for("Ask anything");

    pane.types("say something");
    pane.presses("Enter");
    pane.waits_for("A first answer.");

    // A question, and words for the model while it waits.
    pane.types("make it");
    pane.presses("Enter");
    pane.waits_for("always: bash(touch made)");
    assert!(!exists(world.project.path(), "made"));
    pane.types("y");
    pane.waits_for("It is made, and wide.");
    assert!(exists(world.project.path(), "made"));

    // Steered while it streams, then stopped: what was typed comes back, to be sent by a key.
    pane.types("go");
    pane.presses("Enter");
    pane.waits_for("word3 word4");
    pane.types("to the left");
    pane.presses("Enter");
    pane.waits_for("↳ to the left");
    pane.presses("Escape");
    pane.waits_for("stopped;");
    pane.waits_for("› to the left");
    pane.presses("Enter");
    pane.waits_for("And on.");
    let said = world.last_request();
    assert!(said.iter().any(|(role, text)| role == "user" && text.contains("to the left")));
    assert!(said.iter().any(|(role, text)| role == "assistant" && text.contains("word3 word4")));

    // Another size leaves one editor and one line at the bottom.
    pane.types("a draft");
    pane.waits_for("› a draft");
    for (width, height) in [("40", "12"), ("100", "30")] {
        pane.tmux(&["resize-window", "-x", width, "-y", height]);
        let is_whole = |seen: &str| {
            seen.matches("› a draft").count() == 1 && seen.trim_end().lines().count() > 3
        };
        pane.waits_until("one draft", is_whole);
    }

    // To the shell and back, with what was written.
    pane.presses("C-z");
    pane.waits_until("the shell", |seen| seen.trim_end().ends_with(SHELL));
    assert_eq!(pane.knows("#{cursor_flag} #{alternate_on}"), "1 0");
    pane.types("echo $((40 + 2)) between; fg");
    pane.presses("Enter");
    pane.waits_for("42 between");
    pane.waits_until("the draft", |seen| seen.rfind("› a draft") > seen.rfind("42 between"));

    pane.presses("C-u");
    pane.presses("C-d");
    pane.waits_until("the shell", |seen| seen.trim_end().ends_with(SHELL));
    pane.types("echo it ended with $?");
    pane.presses("Enter");
    pane.waits_for("it ended with 0");
    assert_eq!(pane.knows("#{cursor_flag} #{alternate_on}"), "1 0");
}
