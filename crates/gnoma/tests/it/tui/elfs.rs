//! An elf at the terminal: its session is watched, answered, spoken to and left, and its parent goes on.

use std::time::Duration;

use gnoma_testkit::{Gate, Reply, Request, Server};

use super::Person;
use crate::support::{World, calls, says};

/// A parent that starts an elf in the background, and an elf that asks before it writes and then says what
/// it was told last. It writes once somebody looks, and has written once somebody has spoken.
fn model(request: &Request, [looked, spoken]: &[Gate; 2]) -> Reply {
    let json = request.json();
    let messages = json["messages"].as_array().unwrap();
    let text = |at: usize| messages[at]["content"].as_str().unwrap_or_default().to_owned();
    let last = messages.len() - 1;
    match (text(0).contains("You are an elf"), messages[last]["role"] == "tool") {
        (false, false) if text(last) == "start it" => {
            let tasks = r#"{"tasks":[{"task":"make it","name":"maker"}],"background":true}"#;
            calls("elf_spawn", tasks)
        }
        (false, true) => says("It has begun."),
        (false, false) => says("Well."),
        (true, false) if text(last) == "make it" => {
            calls("fs_write", r#"{"path":"made.txt","content":"x"}"#).with_gate(looked)
        }
        (true, true) => says("Made it.").with_gate(spoken),
        (true, false) => {
            says(&format!("You said: {}.", text(last))).with_delay(Duration::from_secs(1))
        }
    }
}

/// A world with that model, and what it waits for.
fn world() -> (World, [Gate; 2]) {
    let gates = [Gate::default(), Gate::default()];
    let waits = gates.clone();
    (World::with(Server::start(move |request| model(request, &waits)).unwrap()), gates)
}

#[tokio::test(flavor = "multi_thread")]
async fn elf_view_shows_approves_and_messages_an_elf() {
    let (world, [looked, spoken]) = world();
    let person = Person::ready(&world, &[]);
    person.types("start it\r");
    person.waits_for("It has begun.");
    person.types("/elfs maker\r");
    person.waits_for("Watching the elf `maker`");
    person.waits_for("make it");
    looked.open();
    person.waits_for("mode auto: edits need");
    person.types("y");
    person.waits_until("the file", |_| crate::support::exists(world.project.path(), "made.txt"));
    person.types("be quick\r");
    person.waits_for("be quick");
    spoken.open();
    person.waits_for("You said: be quick.");
    person.waits_for("The elf has ended");
    person.waits_for("It has begun.");
    person.types("and now?\r");
    person.waits_for("Well.");
    person.leaves();
}

#[tokio::test(flavor = "multi_thread")]
async fn elf_view_can_be_left_while_the_elf_works() {
    let (world, [looked, spoken]) = world();
    let person = Person::ready(&world, &["--permission", "accept_edits"]);
    person.types("start it\r");
    person.waits_for("It has begun.");
    person.types("/elfs maker\r");
    person.waits_for("Watching the elf `maker`");
    person.types("/elfs back\r");
    person.waits_until("the parent's conversation", |person| {
        let seen = person.sees();
        seen.rfind("It has begun.") > seen.find("Watching the elf")
    });
    looked.open();
    spoken.open();
    person.types("/elfs nobody\r");
    person.waits_for("no elf `nobody` is at work");
    person.types("and now?\r");
    person.waits_for("Well.");
    person.leaves();
}

#[tokio::test(flavor = "multi_thread")]
async fn hooks_hear_what_a_person_writes_to_an_elf_and_can_hold_it_back() {
    let (world, [looked, spoken]) = world();
    let line = "tee -a heard.txt | grep -q 'be quick' || exit 0; echo n0t-this >&2; exit 2";
    let hook = serde_json::json!({"type": "command", "command": line});
    let hooks = serde_json::json!({"hooks": {"UserPromptSubmit": [{"hooks": [hook]}]}});
    world.put_home(".claude/settings.json", &hooks.to_string());
    let person = Person::ready(&world, &["--permission", "accept_edits"]);
    person.types("start it\r");
    person.waits_for("It has begun.");
    person.types("/elfs maker\r");
    person.waits_for("Watching the elf `maker`");
    person.types("be quick\r");
    // What arrives at once is one paste.
    person.waits_for("be quick");
    person.types("be slow\r");
    person.waits_for("be slow");
    looked.open();
    spoken.open();
    person.waits_for("You said: be slow.");
    person.waits_until("the end", |_| world.read("heard.txt").contains("be slow"));
    assert!(world.read("heard.txt").contains("be quick"));
    assert!(!world.sent().contains("be quick"), "{}", world.sent());
    person.leaves();
}

#[tokio::test(flavor = "multi_thread")]
async fn how_hooks_ran_last_is_known_after_another_model_was_chosen() {
    let answer = |request: &Request| match request.method.as_str() {
        "GET" => Reply::json(200, r#"{"data":[{"id":"m1"},{"id":"m2"}]}"#),
        _ => says("Well."),
    };
    let world = World::with(Server::start(answer).unwrap());
    let hook = serde_json::json!({"type": "command", "command": "true"});
    let hooks = serde_json::json!({"hooks": {"UserPromptSubmit": [{"hooks": [hook]}]}});
    world.put_home(".claude/settings.json", &hooks.to_string());
    let person = Person::ready(&world, &[]);
    person.types("hello\r");
    person.waits_for("Well.");
    person.types("/model m2\r");
    person.waits_for("m2 ·");
    person.types("/hooks\r");
    person.waits_for("last run: exit code 0");
    person.leaves();
}
