//! An elf at the terminal: its session is watched, answered, spoken to and left, and its parent goes on.

use std::time::Duration;

use gnoma_testkit::{Reply, Request, Server};

use super::Person;
use crate::support::{World, calls, says};

/// A parent that starts an elf in the background, and an elf that asks before it writes and then says what
/// it was told last.
fn model(request: &Request) -> Reply {
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
            let write = calls("fs_write", r#"{"path":"made.txt","content":"x"}"#);
            // Until somebody looks, also where the machine is busy.
            write.after(Duration::from_secs(8))
        }
        (true, true) => says("Made it.").after(Duration::from_millis(1_500)),
        (true, false) => says(&format!("You said: {}.", text(last))).after(Duration::from_secs(1)),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_elf_is_watched_answered_spoken_to_and_left_and_its_parent_goes_on() {
    let world = World::with(Server::start(model).unwrap());
    let person = Person::ready(&world, &[]);
    person.types("start it\r");
    person.waits_for("It has begun.");
    person.types("/elfs maker\r");
    person.waits_for("Watching the elf `maker`");
    person.waits_for("make it");
    person.waits_for("mode auto: edits need");
    person.types("y");
    person.waits_until("the file", |_| crate::support::exists(world.project.path(), "made.txt"));
    person.types("be quick\r");
    person.waits_for("You said: be quick.");
    person.waits_for("The elf has ended");
    person.waits_for("It has begun.");
    person.types("and now?\r");
    person.waits_for("Well.");
    person.leaves();
}

#[tokio::test(flavor = "multi_thread")]
async fn who_looks_at_an_elf_can_go_back_while_it_works() {
    let world = World::with(Server::start(model).unwrap());
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
    person.types("/elfs nobody\r");
    person.waits_for("no elf `nobody` is at work");
    person.types("and now?\r");
    person.waits_for("Well.");
    person.leaves();
}
