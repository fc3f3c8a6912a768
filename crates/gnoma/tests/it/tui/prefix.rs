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

/// A server of tools that has another one once it was called.
const GROWS: &str = r#"
cd "$(dirname "$0")"
tool() { printf '{"name":"%s","description":"d","inputSchema":{"type":"object","properties":{}}}' "$1"; }
reply() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9][0-9]*\).*/\1/p')
  case $line in
    *'"method":"initialize"'*)
      reply '{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"f","version":"1"}}' ;;
    *'"method":"tools/list"'*)
      if [ -e called ]; then reply "{\"tools\":[$(tool grow),$(tool breaker)]}"; touch listed
      else reply "{\"tools\":[$(tool grow)]}"; fi ;;
    *'"method":"tools/call"'*)
      touch called
      printf '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n'
      reply '{"content":[{"type":"text","text":"grown"}]}' ;;
    *'"id":'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}\n' "$id" ;;
  esac
done
"#;

#[tokio::test(flavor = "multi_thread")]
async fn what_was_planted_to_break_the_beginning_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let server = folder.path().join("server.sh");
    std::fs::write(&server, GROWS).unwrap();
    let answers = ["First.", "Second.", "Third.", "Fourth."].map(says);
    let [first, second, third, fourth] = answers;
    let world = World::new([first, calls("mcp__fake__grow", "{}"), second, third, fourth]);
    world.configure(&format!(
        "[permission]\nmode = \"bypass\"\n[[mcp_servers]]\nname = \"fake\"\ncommand = \"sh\"\n\
         args = [{server:?}]\nwritable = [{:?}]\n",
        folder.path()
    ));
    let person = Person::ready(&world, &[]);
    // Who speaks of a server that nobody has seen waits for its tools.
    for (said, answer) in [("one with mcp", "First."), ("two", "Second.")] {
        person.types(&format!("{said}\r"));
        person.waits_for(answer);
        person.waits_until("rest", Person::is_at_rest);
    }
    person.waits_until("the new list", |_| folder.path().join("listed").exists());
    // The list is read, and known a moment later.
    for (said, answer) in [("three", "Third."), ("four", "Fourth.")] {
        std::thread::sleep(std::time::Duration::from_millis(300));
        person.types(&format!("{said}\r"));
        person.waits_for(answer);
        person.waits_until("rest", Person::is_at_rest);
    }
    person.types("/cache\r");
    person.waits_for("tools: +mcp__fake__breaker");
    person.leaves();
}
