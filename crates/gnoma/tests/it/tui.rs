//! The face at the terminal, as a person meets it: the program on a pseudo-terminal of its own, and
//! the screen that comes of what it prints.

use std::{
    fs::File,
    io::Write as _,
    process::{Command, ExitStatus},
    thread,
    time::{Duration, Instant},
};

use gnoma_core::StopReason;
use gnoma_testkit::{Reply, Script, Server, Terminal, TerminalWindow, Wire};
use rustix::{
    process::{Pid, Signal, kill_process},
    termios::{LocalModes, tcgetattr},
};

use crate::support::{World, calls, exists, says};

mod back;
mod edges;
mod elfs;
mod first_start;
mod prefix;
mod status;
mod themes;

const PATIENCE: Duration = Duration::from_secs(60);
const STEP: Duration = Duration::from_millis(5);
const WIDTH: u16 = 80;
const HEIGHT: u16 = 24;
/// Shows nothing.
const THE_END: &str = "\x1b]2;over\x1b\\";
const UP_AND_DOWN: [(&str, &str); 6] = [
    ("\x1b[?25l", "\x1b[?25h"),
    ("\x1b[?2004h", "\x1b[?2004l"),
    ("\x1b[?1004h", "\x1b[?1004l"),
    ("\x1b[?1049h", "\x1b[?1049l"),
    ("\x1b[?7l", "\x1b[?7h"),
    ("\x1b[?2026h", "\x1b[?2026l"),
];

/// The program, and a person before its terminal.
pub(crate) struct Person {
    pub(crate) terminal: Terminal,
}

impl Person {
    pub(crate) fn starts(world: &World, arguments: &[&str]) -> Self {
        Self::starts_in(world, arguments, "C.UTF-8")
    }

    fn starts_in(world: &World, arguments: &[&str], locale: &str) -> Self {
        let window = TerminalWindow { size: (WIDTH, HEIGHT), ground: [0; 3] };
        let program = [&[env!("CARGO_BIN_EXE_gnoma")], arguments].concat();
        let prepare = |command: &mut Command| {
            command
                .current_dir(world.project.path())
                .env_clear()
                .env("TZ", "UTC")
                .env("PATH", "/usr/local/bin:/usr/bin:/bin")
                .env("HOME", world.home.path())
                .env("XDG_RUNTIME_DIR", world.home.path().join("run"))
                .env("TERM", "xterm-256color")
                .env("LANG", locale);
        };
        Self { terminal: Terminal::start(&program, window, prepare).unwrap() }
    }

    pub(crate) fn types(&self, keys: &str) {
        self.terminal.type_keys(keys).unwrap();
    }

    pub(crate) fn sees(&self) -> String {
        self.terminal.screen().contents()
    }

    fn printed(&self) -> String {
        String::from_utf8_lossy(&self.terminal.printed_output().lock().unwrap()).into_owned()
    }

    #[track_caller]
    pub(crate) fn waits_for(&self, text: &str) {
        self.waits_until(text, |person| person.sees().contains(text));
    }

    #[track_caller]
    pub(crate) fn waits_until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !is_so(self) {
            assert!(Instant::now() < end, "no {what:?} on:\n{}", self.sees());
            thread::sleep(STEP);
        }
    }

    /// Starts, and waits until keys are taken.
    pub(crate) fn ready(world: &World, arguments: &[&str]) -> Self {
        let person = Self::starts(world, arguments);
        // Before that the system itself echoes keys and turns Enter into a line break.
        person.waits_for("› ");
        person.types("hello");
        person.waits_for("hello");
        person.types("\x15");
        person.waits_until("an empty line", |person| !person.sees().contains("hello"));
        person
    }

    fn resizes(&self, width: u16, height: u16) {
        self.terminal.resize((width, height)).unwrap();
    }

    pub(crate) fn signals(&self, signal: Signal) {
        let id = Pid::from_raw(i32::try_from(self.terminal.child.id()).unwrap()).unwrap();
        kill_process(id, signal).unwrap();
    }

    /// Nothing runs: the window's title says so, whatever a hint has taken the place of below.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.printed().rsplit("\x1b]2;").next().is_some_and(|title| title.starts_with("gnoma"))
    }

    /// Leaves with Ctrl+D, which only asks once more while a turn runs: an answer is on the screen a
    /// moment before its turn is over.
    #[track_caller]
    pub(crate) fn leaves(self) -> (ExitStatus, String) {
        self.waits_until("rest", Self::is_at_rest);
        self.types("\x04");
        self.ends()
    }

    /// Waits for the end; the terminal must be as it was.
    #[track_caller]
    pub(crate) fn ends(mut self) -> (ExitStatus, String) {
        let end = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.terminal.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < end, "it does not end:\n{}", self.sees());
            thread::sleep(STEP);
        };
        let modes = tcgetattr(self.terminal.program_end()).unwrap().local_modes;
        assert!(modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG));
        // What is written behind all else is seen behind all else.
        let mut terminal = File::from(self.terminal.program_end().try_clone().unwrap());
        terminal.write_all(THE_END.as_bytes()).unwrap();
        self.waits_until("the end of what was printed", |person| {
            person.printed().ends_with(THE_END)
        });
        let printed = self.printed();
        for (up, down) in UP_AND_DOWN {
            assert!(printed.rfind(down) >= printed.rfind(up), "{up:?} stays: {printed:?}");
        }
        (status, self.sees())
    }
}

/// An answer of many pieces with a wait after each.
pub(crate) fn slowly(words: &str, pieces: usize) -> Reply {
    let script = Script::text(std::iter::repeat_n(words, pieces)).with_stop(StopReason::EndTurn);
    Wire::OpenAi.stream_reply(&script).with_piece_delay(Duration::from_millis(100))
}

#[tokio::test(flavor = "multi_thread")]
async fn full_conversation_works_in_the_window_and_resumes() {
    let world = World::new([
        says("A first **answer**."),
        calls("bash", r#"{"command":"touch made"}"#),
        says("It is made."),
    ]);
    let person = Person::ready(&world, &[]);
    person.types("say something\r");
    person.waits_for("A first answer.");
    person.types("make it\r");
    person.waits_for("yes, keep all of it");
    assert!(!exists(world.project.path(), "made"));
    person.types("y");
    person.waits_for("It is made.");
    assert!(exists(world.project.path(), "made"));
    assert_eq!(world.last_request()[0].1, "say something");
    let (status, seen) = person.leaves();
    assert_eq!(status.code(), Some(0), "{seen}");
    assert!(seen.contains("gnoma --resume"), "{seen}");

    let person = Person::ready(&world, &["--continue"]);
    person.waits_for("It is made.");
    assert_eq!(person.leaves().0.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn esc_stops_the_turn_and_keeps_its_work() {
    let world = World::new([slowly("word ", 200), says("And on.")]);
    let person = Person::ready(&world, &[]);
    person.types("go\r");
    person.waits_for("word word");
    person.types("\x1b");
    person.types("next\r");
    person.waits_for("And on.");
    let said = world.last_request();
    assert!(said.iter().any(|(role, text)| role == "assistant" && text.contains("word word")));
    person.leaves();
}

#[tokio::test(flavor = "multi_thread")]
async fn resize_leaves_the_screen_intact() {
    let world = World::new([says("An answer.")]);
    let person = Person::ready(&world, &[]);
    person.types("go\r");
    person.waits_for("An answer.");
    person.resizes(40, 12);
    person.types("narrow");
    person.waits_for("narrow");
    person.resizes(100, 30);
    person.types(" and wide");
    person.waits_for("narrow and wide");
    assert_eq!(person.sees().matches("narrow and wide").count(), 1, "{}", person.sees());
    person.types("\x15\x04");
    person.ends();
}

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_restores_the_terminal_and_saves_the_draft() {
    let world = World::new([says("An answer.")]);
    let person = Person::ready(&world, &[]);
    person.types("not sent yet");
    person.waits_for("not sent yet");
    person.signals(Signal::TERM);
    let (status, seen) = person.ends();
    assert_eq!(status.code(), Some(143), "{seen}");

    let person = Person::starts(&world, &[]);
    person.waits_for("not sent yet");
    person.types("\r");
    person.waits_for("An answer.");
    assert_eq!(world.last_request()[0].1, "not sent yet");
    person.leaves();
}

#[tokio::test(flavor = "multi_thread")]
async fn each_signal_ends_the_window_with_its_exit_code_and_saves_the_session() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129), (Signal::INT, 130)] {
        let world = World::new([slowly("word ", 200)]);
        let person = Person::ready(&world, &[]);
        person.types("what was asked\r");
        person.waits_for("word word");
        person.signals(signal);
        let (status, seen) = person.ends();
        assert_eq!(status.code(), Some(code), "{signal:?}: {seen}");
        let after = seen.split("gnoma --resume ").nth(1).expect("how to go on");
        let id = after.split_whitespace().next().unwrap().to_owned();
        let person = Person::starts(&world, &["--resume", &id]);
        person.waits_for("what was asked");
        person.waits_for("word word");
        assert_eq!(person.leaves().0.code(), Some(0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn incognito_window_leaves_no_files() {
    let world = World::new([says("An answer.")]);
    let person = Person::ready(&world, &["--incognito"]);
    person.types("between us\r");
    person.waits_for("An answer.");
    person.types("a draft");
    person.waits_for("a draft");
    person.signals(Signal::TERM);
    person.ends();
    assert!(!exists(world.home.path(), ".local/state/gnoma"));
}

#[tokio::test(flavor = "multi_thread")]
async fn model_change_continues_the_conversation() {
    // The one in between goes to the question which models there are: the server does not say.
    let world = World::new([says("From the first."), says("no list"), says("From the second.")]);
    let person = Person::ready(&world, &[]);
    person.types("one\r");
    person.waits_for("From the first.");
    person.waits_until("rest", Person::is_at_rest);
    person.types("/model m2\r");
    person.waits_for("test/m2 ");
    let seen = person.sees();
    let parted = seen.lines().filter(|line| line.contains(" · ") && !line.starts_with("gnoma "));
    assert_eq!(parted.count(), 1, "only the status line: {seen}");
    assert_eq!(seen.matches('›').count(), 2, "what was said, and the editor: {seen}");
    person.types("two\r");
    person.waits_for("From the second.");
    assert_eq!(world.last_request()[0].1, "one");
    assert_eq!(world.server.requests().last().unwrap().json()["model"], "m2");
    person.leaves();
}

#[tokio::test(flavor = "multi_thread")]
async fn status_line_shows_a_model_with_its_provider_as_given() {
    let world = World::new([]);
    let person = Person::ready(&world, &["-m", "test/m2"]);
    assert!(person.sees().contains(" · test/m2 · "), "{}", person.sees());
    person.leaves();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_its_provider_does_not_list_is_refused_with_one_that_is_near() {
    let world = World::with(
        Server::start(|request| match request.path().ends_with("/models") {
            true => {
                Reply::json(200, r#"{"object":"list","data":[{"id":"m1"},{"id":"mistral-x"}]}"#)
            }
            false => says("Still the first."),
        })
        .unwrap(),
    );
    let person = Person::ready(&world, &[]);
    person.types("/model mistral-y\r");
    person.waits_for("did you mean `mistral-x`?");
    person.types("hi\r");
    person.waits_for("Still the first.");
    assert_eq!(world.server.requests().last().unwrap().json()["model"], "m1");
    person.leaves();
}

#[tokio::test(flavor = "multi_thread")]
async fn input_typed_during_a_session_change_goes_to_the_next_session() {
    let world = World::new([says("no list"), says("From the second.")]);
    let person = Person::ready(&world, &[]);
    person.types("/model m2\rtwo\r");
    person.waits_for("From the second.");
    assert_eq!(world.last_request()[0].1, "two");
    assert_eq!(world.server.requests().last().unwrap().json()["model"], "m2");
    person.leaves();
}

/// A question about `touch made`, which is answered with these keys; then the same in another session.
async fn is_asked_once(world: &World, keys: &str) {
    let person = Person::ready(world, &[]);
    person.types("make it\r");
    person.waits_for("always: bash(touch made)");
    person.types(keys);
    person.waits_for("It is made.");
    person.leaves();
    std::fs::remove_file(world.project.path().join("made")).unwrap();
    let person = Person::ready(world, &[]);
    person.types("again\r");
    person.waits_for("And again.");
    assert!(exists(world.project.path(), "made"));
    person.leaves();
}

fn makes_twice() -> World {
    let makes = || calls("bash", r#"{"command":"touch made"}"#);
    World::new([makes(), says("It is made."), makes(), says("And again.")])
}

#[tokio::test(flavor = "multi_thread")]
async fn always_rule_for_the_person_is_saved_in_the_user_config() {
    let world = makes_twice();
    // The folder is no project, so that the next scope is the person's.
    is_asked_once(&world, "sa").await;
    let text = std::fs::read_to_string(world.home.path().join(".config/gnoma/config.toml"));
    let rule = "[[permission.rules]]\nrule = \"bash(touch made)\"\naction = \"allow\"\n";
    assert!(text.unwrap().ends_with(rule));
}

#[tokio::test(flavor = "multi_thread")]
async fn always_rule_for_a_project_is_saved_there_and_trusted() {
    let world = makes_twice();
    std::fs::create_dir(world.project.path().join(".git")).unwrap();
    is_asked_once(&world, "sa").await;
    let text = std::fs::read_to_string(world.project.path().join(".gnoma/config.toml"));
    assert!(text.unwrap().contains("rule = \"bash(touch made)\""));
}

#[tokio::test(flavor = "multi_thread")]
async fn always_rule_is_not_saved_in_an_untrusted_project() {
    let world = World::new([calls("bash", r#"{"command":"touch made"}"#)]);
    let file = world.project.path().join(".gnoma/config.toml");
    std::fs::create_dir(world.project.path().join(".gnoma")).unwrap();
    std::fs::write(&file, "# theirs\n").unwrap();
    let person = Person::ready(&world, &[]);
    person.types("make it\r");
    person.waits_for("always: bash(touch made)");
    person.types("s");
    person.waits_for("this project is not trusted");
    person.waits_for("everywhere, in ~/.config/gnoma/config.toml");
    person.types("\x1b");
    assert_eq!(std::fs::read_to_string(file).unwrap(), "# theirs\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn window_warns_of_untrusted_hooks_at_the_start_and_runs_its_own_program() {
    let world = World::new([]);
    let hook = r#"{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"true"}]}]}}"#;
    world.put(".claude/settings.json", hook);
    let person = Person::ready(&world, &[]);
    person.waits_for("block nothing yet");
    for (line, told) in [
        ("/redo\r", "nothing to redo yet"),
        ("/fork\r", "nothing to copy yet"),
        ("/add-dir missing\r", "no such folder"),
        ("/trust\r", "Trust this project?"),
    ] {
        person.types(line);
        person.waits_for(told);
    }
    person.types("n\r");
    person.waits_for("is not trusted");
    assert!(!person.sees().contains("command not found"), "{}", person.sees());
}

#[tokio::test(flavor = "multi_thread")]
async fn input_typed_before_the_first_frame_is_sent() {
    let world = World::new([says("An answer.")]);
    let person = Person::starts(&world, &[]);
    person.types("early\r");
    person.waits_for("An answer.");
    assert_eq!(world.last_request()[0].1, "early");
    person.leaves();
}

#[tokio::test(flavor = "multi_thread")]
async fn incognito_is_left_and_entered_whatever_the_settings_say() {
    let world = World::new([]);
    world.configure("[privacy]\nincognito = true\n");
    let person = Person::ready(&world, &[]);
    person.waits_for(" incognito ");
    person.types("/incognito\r");
    person.waits_until("no incognito", |person| {
        let seen = person.sees();
        seen.contains("› ") && !seen.contains("incognito")
    });
    person.types("/incognito\r");
    person.waits_for(" incognito ");
    person.leaves();
}

#[tokio::test(flavor = "multi_thread")]
async fn frozen_terminal_does_not_keep_the_program_alive() {
    let world = World::new([says(&"many words ".repeat(40_000))]);
    let mut person = Person::ready(&world, &[]);
    person.terminal.set_frozen(true);
    person.types("go\r");
    // Much more than what a terminal takes without a reader.
    thread::sleep(Duration::from_secs(1));
    person.signals(Signal::TERM);
    let end = Instant::now() + PATIENCE;
    while person.terminal.child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < end, "it does not end");
        thread::sleep(STEP);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn full_screen_scrolls_and_follows_a_resize() {
    let lines: String = (0..100).map(|line| format!("line {line}\n\n")).collect();
    let world = World::new([says(&lines)]);
    let person = Person::ready(&world, &["--full-screen"]);
    person.types("go\r");
    person.waits_for("line 99");
    person.types("\x1b[5~");
    person.waits_for("more below");
    assert!(!person.sees().contains("line 99"));
    person.resizes(40, 12);
    person.waits_until("a smaller picture", |person| {
        person.sees().lines().count() <= 12 && person.sees().contains("more below")
    });
    person.types("\x1b[6~\x1b[6~\x1b[6~\x1b[6~");
    person.waits_for("line 99");
    person.leaves();
}

#[tokio::test(flavor = "multi_thread")]
async fn full_screen_is_left_at_the_end() {
    let world = World::new([says("An answer.")]);
    let person = Person::ready(&world, &["--full-screen"]);
    person.types("go\r");
    person.waits_for("An answer.");
    let (status, _) = person.leaves();
    assert_eq!(status.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn server_error_text_cannot_draw_on_the_window() {
    let error = r#"{"error":{"message":"\u001b]0;owned\u0007\u001b[2Jgone"}}"#;
    let world = World::new([Reply::json(400, error)]);
    let person = Person::ready(&world, &[]);
    person.types("go\r");
    person.waits_for("gone");
    person.types("\x04");
    let printed = person.terminal.printed_output();
    person.ends();
    let printed = String::from_utf8_lossy(&printed.lock().unwrap()).into_owned();
    assert!(!printed.contains("\x1b]0;owned") && !printed.contains("\x1b[2J"), "{printed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_windows_side_by_side_restore_separate_drafts() {
    let world = World::new([]);
    let one = Person::ready(&world, &[]);
    one.types("from one");
    one.waits_for("from one");
    let other = Person::ready(&world, &[]);
    assert!(!other.sees().contains("from one"), "somebody writes it still: {}", other.sees());
    other.types("from the other");
    other.waits_for("from the other");
    for person in [one, other] {
        person.signals(Signal::TERM);
        person.ends();
    }
    let person = Person::starts(&world, &[]);
    person.waits_for("from one");
    let person = (Person::starts(&world, &[]), person);
    person.0.waits_for("from the other");
}

#[tokio::test(flavor = "multi_thread")]
async fn incognito_continues_the_conversation_and_leaving_it_starts_a_new_one() {
    let world = World::new([says("First."), says("Second."), says("Third.")]);
    let person = Person::ready(&world, &[]);
    person.types("one\r");
    person.waits_for("First.");
    person.waits_until("rest", Person::is_at_rest);
    // All in one go: what is typed behind it goes to the next session.
    person.types("/incognito\rtwo\r");
    person.waits_for("Second.");
    person.waits_for("The model still remembers");
    assert_eq!(world.last_request()[0].1, "one");
    person.types("/incognito\r");
    person.waits_for("Started a new conversation");
    person.types("three\r");
    person.waits_for("Third.");
    assert_eq!(world.last_request()[0].1, "three");
    person.leaves();
}

#[tokio::test(flavor = "multi_thread")]
async fn interrupted_turn_is_reported_when_the_session_continues() {
    let world = World::new([calls("bash", r#"{"command":"touch made"}"#)]);
    let mut person = Person::ready(&world, &[]);
    person.types("make it\r");
    person.waits_for("always: bash(touch made)");
    person.terminal.child.kill().unwrap();
    person.terminal.child.wait().unwrap();
    let person = Person::starts(&world, &["--continue"]);
    person.waits_for("The last turn did not finish");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shell_line_is_stopped_by_a_key_and_by_the_end() {
    let world = World::new([]);
    let person = Person::ready(&world, &[]);
    person.types("!sleep 101\r");
    person.waits_for("Esc stops");
    person.types("\x1b");
    person.waits_for("  stopped");
    person.types("!echo $$ > id; exec sleep 102\r");
    person.waits_until("its id", |_| written_id(&world).is_some());
    person.leaves();
    ends_soon(&written_id(&world).unwrap());
}

/// What a command has written of itself into the file `id`.
fn written_id(world: &World) -> Option<String> {
    let text = std::fs::read_to_string(world.project.path().join("id")).ok()?;
    text.strip_suffix('\n').map(str::to_owned)
}

#[track_caller]
fn ends_soon(id: &str) {
    let end = Instant::now() + PATIENCE;
    let runs = || {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat"));
        stat.is_ok_and(|stat| !stat.contains(") Z "))
    };
    while runs() {
        assert!(Instant::now() < end, "it runs on");
        thread::sleep(STEP);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_setting_that_does_not_exist_is_not_written() {
    let world = World::new([]);
    let person = Person::ready(&world, &[]);
    person.types("/config set tui.vm true\r");
    person.waits_for("there is no such key");
    let text = std::fs::read_to_string(world.home.path().join(".config/gnoma/config.toml"));
    assert!(!text.unwrap().contains("vm"));
    person.leaves();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_of_settings_shows_what_was_just_saved() {
    let world = World::new([]);
    let person = Person::ready(&world, &[]);
    person.types("/config set router.caps.day 5\r");
    person.waits_for("Saved");
    person.types("/config router.caps.day\r");
    person.waits_for("the session began with no value");
    person.types("\x1b");
    person.waits_until("no list", |person| !person.sees().contains("began with"));
    person.leaves();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tilde_in_the_path_of_an_export_is_the_home() {
    let world = World::new([says("An answer.")]);
    let person = Person::ready(&world, &[]);
    person.types("go\r");
    person.waits_for("An answer.");
    person.waits_until("rest", Person::is_at_rest);
    person.types("/export ~/talk.md\r");
    person.waits_until("the export", |_| exists(world.home.path(), "talk.md"));
    assert!(!exists(world.project.path(), "~"));
    person.leaves();
}
