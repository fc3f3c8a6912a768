//! ProcessEnvironment that are not as they should be: no UTF-8, windows of no use, pastes of no sense, files
//! and shells that are gone.

use std::{
    fmt::Write as _,
    sync::{Arc, Condvar, Mutex},
};

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_without_utf_8_gets_ascii_alone() {
    let world = World::new([
        says("# Größe\n\n- café 漢字 🎉\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n---\n"),
        calls("bash", r#"{"command":"touch made"}"#),
        says("It is made."),
    ]);
    let person = Person::starts_in(&world, &[], "C");
    person.waits_for("> ");
    person.types("say something\r");
    person.waits_for("caf? ???? ??");
    person.types("/help\r");
    person.waits_for("/exit");
    person.types("/theme\r");
    person.waits_for("Enter select - Esc close");
    person.types("\x1b");
    person.waits_until("no list", |person| !person.sees().contains("Enter select"));
    person.types("make it\r");
    person.waits_for("always: bash(touch made)");
    person.types("y");
    person.waits_for("It is made.");
    let printed = person.terminal.printed_output();
    person.leaves();
    let printed = printed.lock().unwrap();
    let others: Vec<u8> = printed.iter().copied().filter(|byte| !byte.is_ascii()).collect();
    assert!(others.is_empty(), "{:?}", String::from_utf8_lossy(&others));
}

#[tokio::test(flavor = "multi_thread")]
async fn too_small_window_is_reported_and_its_input_is_preserved() {
    let world = World::new([says("An answer of some words.")]);
    let person = Person::ready(&world, &[]);
    person.types("go\r");
    person.waits_for("An answer of some words.");
    person.resizes(10, 3);
    person.waits_for("Window too");
    person.types("blind");
    person.resizes(80, 24);
    person.waits_for("blind");
    person.types("\x15");
    person.leaves();
}

#[tokio::test(flavor = "multi_thread")]
async fn window_too_small_at_start_works_after_a_resize() {
    let world = World::new([says("An answer.")]);
    let person = Person::starts(&world, &[]);
    person.resizes(10, 3);
    person.waits_for("Window too");
    person.types("go\r");
    person.resizes(80, 24);
    person.waits_for("An answer.");
    assert_eq!(person.sees().matches("An answer.").count(), 1, "{}", person.sees());
    person.leaves();
}

#[tokio::test(flavor = "multi_thread")]
async fn paste_over_the_size_limit_is_refused_and_freed() {
    let world = World::new([]);
    let person = Person::ready(&world, &[]);
    let before = memory_kb(&person);
    let line = "x".repeat(1_000) + "\r";
    person.types("\x1b[200~");
    for _ in 0..8_000 {
        person.types(&line);
    }
    person.types("\x1b[201~");
    person.waits_for("the limit is 4 MB");
    let grown = memory_kb(&person).saturating_sub(before);
    assert!(grown < 4_096, "{grown} KB more than before");
    person.leaves();
}

/// The memory that the program itself has on the machine.
fn memory_kb(person: &Person) -> u64 {
    let status =
        std::fs::read_to_string(format!("/proc/{}/status", person.terminal.child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn mentioned_file_missing_at_send_is_named() {
    let world = World::new([says("An answer.")]);
    world.write("notes.txt", "words");
    let person = Person::ready(&world, &[]);
    person.types("read @not");
    person.waits_for("notes.txt");
    person.types("\t");
    std::fs::remove_file(world.project.path().join("notes.txt")).unwrap();
    person.types("\r");
    person.waits_for("`notes.txt` does not exist");
    person.waits_for("An answer.");
    person.leaves();
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_image_file_stays_text_with_a_reason() {
    let world = World::new([]);
    world.write("photo.png", "no picture");
    let person = Person::ready(&world, &[]);
    person.types(&format!("\x1b[200~{}/photo.png\x1b[201~", world.project.path().display()));
    person.waits_for("stays text: it is not a");
    person.types("\x15");
    person.leaves();
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_shell_command_is_reported_and_the_terminal_is_restored() {
    let world = World::new([]);
    let person = Person::ready(&world, &[]);
    person.types("!kill -9 $$\r");
    person.waits_for("killed by signal 9");
    person.types("/shell kill -9 $$\r");
    person.waits_for("killed by signal 9");
    person.types("still here");
    person.waits_for("still here");
    person.types("\x15");
    person.leaves();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_has_the_terminal_ends_with_gnoma() {
    let world = World::new([]);
    let person = Person::ready(&world, &[]);
    person.types("/shell echo $$ > id; exec sleep 103\r");
    person.waits_until("its id", |_| written_id(&world).is_some());
    person.signals(Signal::TERM);
    let (status, seen) = person.ends();
    assert_eq!(status.code(), Some(143), "{seen}");
    ends_soon(&written_id(&world).unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn window_title_is_restored_after_a_shell() {
    let world = World::new([]);
    let person = Person::ready(&world, &[]);
    person.types("/shell touch done\r");
    person.waits_until("its end", |_| exists(world.project.path(), "done"));
    person.waits_until("the title", |person| {
        let printed = person.printed();
        // Put aside for gnoma once more, and then named.
        let mut taken = printed.split("\x1b[22;0t").skip(2);
        taken.next().is_some_and(|since| since.contains("\x1b]2;gnoma"))
    });
    person.leaves();
}

#[tokio::test(flavor = "multi_thread")]
async fn resumed_session_shows_its_context_usage() {
    let world = World::new([says("An answer.")]);
    let person = Person::ready(&world, &[]);
    person.types("go\r");
    // Until the provider has counted, it is an estimate.
    person.waits_for("An answer.");
    person.waits_until("rest", Person::is_at_rest);
    let seen = person.sees();
    let context = seen.split("context ").nth(1).unwrap().split(' ').next().unwrap().to_owned();
    person.leaves();
    let person = Person::ready(&world, &["--continue"]);
    person.waits_for(&format!("context {context}"));
    person.leaves();
}

/// A server on this machine names its models after the window is there. The settings name none, as the guided start
/// writes them.
#[tokio::test(flavor = "multi_thread")]
async fn conversation_with_a_model_that_is_found_late_is_shown_when_it_is_resumed() {
    let gate = Arc::new((Mutex::new(true), Condvar::new()));
    let opened = Arc::clone(&gate);
    let server = Server::start(move |request| {
        if request.path().ends_with("/models") {
            let (is_open, changed) = &*opened;
            let is_open = is_open.lock().unwrap();
            let _open = changed.wait_timeout_while(is_open, PATIENCE, |open| !*open).unwrap();
            return Reply::json(200, r#"{"data":[{"id":"m1"}]}"#);
        }
        says("An answer of before.")
    });
    let world = World::with(server.unwrap());
    let config = format!(
        "[provider]\ndefault = \"local\"\n[provider.endpoints]\nlocal = \"{}/v1\"\n",
        world.server.url()
    );
    std::fs::write(world.home.path().join(".config/gnoma/config.toml"), config).unwrap();
    let run = world.run(&["the first question"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    for how in [&["--continue"][..], &[]] {
        *gate.0.lock().unwrap() = false;
        let person = Person::starts(&world, how);
        if how.is_empty() {
            person.waits_for("Continue your last session “the first question”");
            person.types("/resume last\r");
        }
        person.waits_for("An answer of before.");
        person.waits_for("Continuing “the first question”");
        *gate.0.lock().unwrap() = true;
        gate.1.notify_all();
        person.waits_until("rest", Person::is_at_rest);
        person.leaves();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn full_screen_is_redrawn_after_a_shell() {
    let mut lines = String::new();
    for line in 0..100 {
        write!(lines, "line {line}\n\n").unwrap();
    }
    let world = World::new([says(&lines)]);
    let person = Person::ready(&world, &["--full-screen"]);
    person.types("go\r");
    person.waits_for("line 99");
    let before = person.sees();
    person.types("/shell printf 'from %s' the-shell\r");
    person.waits_for("Press Enter to return");
    person.types("\r");
    person.waits_until("the same picture", |person| {
        person.sees().lines().take(18).eq(before.lines().take(18))
    });
    person.types("\x1b[H");
    person.waits_for("line 0");
    person.types("\x1b[F");
    person.waits_for("line 99");
    person.types("\x1b[A\x1b[A\x1b[A");
    person.waits_for("more below");
    person.types("\x1b[B\x1b[B\x1b[B");
    person.waits_until("the end", |person| !person.sees().contains("more below"));
    person.leaves();
}
