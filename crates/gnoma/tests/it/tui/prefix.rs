//! What begins a request stays as it is, byte by byte, over many turns with elfs and other modes: only where the
//! conversation is compacted does it begin anew, and `/cache` names that.

use gnoma_testkit::{Reply, Request, Server};

use super::Person;
use crate::support::{World, calls, says};

/// Turns of the conversation.
const TURNS: usize = 50;
/// Before this turn it is compacted.
const COMPACTED: usize = 24;

fn model(request: &Request) -> Reply {
    if request.method == "GET" {
        return Reply::json(200, r#"{"data":[{"id":"m1"}]}"#);
    }
    let json = request.json();
    let messages = json["messages"].as_array().unwrap();
    let last = messages.last().unwrap();
    let text = last["content"].as_str().unwrap_or_default();
    match text.split_once(' ') {
        _ if last["role"] == "tool" => says("Read it."),
        Some(("elf", number)) if !messages[0].to_string().contains("You are an elf") => {
            calls("elf_spawn", &format!(r#"{{"tasks":["part {number}"]}}"#))
        }
        Some(("turn", number)) => says(&format!("Answer {number}.")),
        _ => says("All that was said."),
    }
}

/// The bodies of the parent's own requests, without those that have a summary made.
fn own(world: &World) -> Vec<String> {
    let requests = world.server.requests();
    let bodies = requests.iter().filter(|request| request.method == "POST");
    let bodies = bodies.map(|request| String::from_utf8_lossy(&request.body).into_owned());
    bodies.filter(|body| body.contains("elf_spawn") && !body.contains("You are an elf")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_beginning_of_requests_changes_only_where_that_is_told() {
    let world = World::with(Server::start(model).unwrap());
    let person = Person::ready(&world, &[]);
    for turn in 0..TURNS {
        match turn {
            COMPACTED => {
                person.types("/compact\r");
                person.waits_for("ompacted");
            }
            turn if turn % 7 == 3 => {
                let mode = if turn % 2 == 0 { "plan" } else { "accept_edits" };
                person.types(&format!("/permission {mode}\r"));
                person.waits_for(&format!("{mode} ·"));
            }
            _ => (),
        }
        person.waits_until("rest", Person::is_at_rest);
        let before = own(&world).len();
        let (text, answer) = match turn % 10 {
            5 => (format!("elf {turn}"), "Read it.".to_owned()),
            _ => (format!("turn {turn}"), format!("Answer {turn}.")),
        };
        person.types(&format!("{text}\r"));
        person.waits_until(&answer, |_| own(&world).len() > before);
        person.waits_for(&answer);
    }
    person.waits_until("rest", Person::is_at_rest);
    let bodies = own(&world);
    assert!(bodies.len() >= TURNS, "{}", bodies.len());
    let begins = |body: &str| {
        let end = body.rfind("]").unwrap();
        body[..end].to_owned()
    };
    let mut broken = Vec::new();
    for pair in bodies.windows(2) {
        if !pair[1].starts_with(&begins(&pair[0])) {
            let said = pair[1].rfind("turn ").map(|at| pair[1][at..].chars().take(7).collect());
            broken.push(said.unwrap_or_else(String::new));
        }
    }
    assert_eq!(broken, [format!("turn {COMPACTED}")]);
    person.types("/cache\r");
    person.waits_for("conversation: compacted");
    person.leaves();
}
