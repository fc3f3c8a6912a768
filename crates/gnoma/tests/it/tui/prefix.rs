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
async fn prompt_cache_prefix_changes_only_at_compaction() {
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
                person.waits_for(&format!("{} mode ·", mode.replace('_', " ")));
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
async fn prompt_cache_break_is_explained_by_the_cache_command() {
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

/// Servers, and the tools of each.
const SERVERS: usize = 10;
const TOOLS: usize = 30;
/// In this turn a tool of a server is looked for and called.
const SEARCHED: usize = 3;

fn searching_model(request: &Request) -> Reply {
    if request.method == "GET" {
        return Reply::json(200, r#"{"data":[{"id":"m1"}]}"#);
    }
    let json = request.json();
    let last = json["messages"].as_array().unwrap().last().unwrap().clone();
    let text = last["content"].as_str().unwrap_or_default();
    let number = || text.split_once(' ').map(|(_, number)| number.to_owned()).unwrap_or_default();
    match last["role"].as_str() {
        Some("tool") if text.contains("tool_17") && !text.contains("said") => {
            calls("mcp__s7__tool_17", "{}")
        }
        Some("tool") => says(&format!("Answer {SEARCHED}.")),
        _ if text == format!("turn {SEARCHED}") => calls("mcp_search", r#"{"query":"s7 tool_17"}"#),
        _ => says(&format!("Answer {}.", number())),
    }
}

/// Ten servers with three hundred tools, in the person's settings; the folders that they lie in.
fn many_servers(world: &World) -> Vec<tempfile::TempDir> {
    let text = serde_json::json!({"type": "string", "description": "A text that says what to do."});
    let schema = serde_json::json!({"type": "object", "properties": {"text": text}});
    let mut settings = String::new();
    let folders = (0..SERVERS).map(|server| {
        let folder = crate::mcp::served_folder();
        let tool = |at: usize| serde_json::json!({"name": format!("tool_{at}"), "inputSchema": schema});
        let tools: serde_json::Value = (0..TOOLS).map(tool).collect();
        std::fs::write(folder.path().join("tools.json"), tools.to_string()).unwrap();
        settings.push_str(&format!(
            "[[mcp_servers]]\nname = \"s{server}\"\ncommand = \"sh\"\nargs = [{:?}]\nwritable = [{:?}]\n",
            folder.path().join("server.sh"),
            folder.path()
        ));
        folder
    });
    let folders = folders.collect();
    world.configure(&settings);
    folders
}

#[tokio::test(flavor = "multi_thread")]
async fn many_servers_change_the_beginning_of_requests_only_where_a_tool_is_found() {
    let world = World::with(Server::start(searching_model).unwrap());
    let _folders = many_servers(&world);
    // Who speaks of servers that nobody has seen waits for their tools.
    let run = world.run(&["mcp 0"]).await;
    assert!(run.out.contains("Answer 0."), "{run:?}");
    let before = world.server.requests().len();
    let person = Person::ready(&world, &["--permission", "bypass"]);
    for turn in 1..=TURNS {
        if turn % 7 == 5 {
            let mode = if turn % 2 == 0 { "plan" } else { "accept_edits" };
            person.types(&format!("/permission {mode}\r"));
            person.waits_for(&format!("{} mode ·", mode.replace('_', " ")));
        }
        person.waits_until("rest", Person::is_at_rest);
        person.types(&format!("turn {turn}\r"));
        person.waits_for(&format!("Answer {turn}."));
    }
    person.waits_until("rest", Person::is_at_rest);
    let requests = world.server.requests();
    let posts = requests.iter().skip(before).filter(|request| request.method == "POST");
    let sent: Vec<(String, Vec<serde_json::Value>)> = posts
        .map(|request| {
            let tools = request.json()["tools"].as_array().cloned().unwrap_or_default();
            (String::from_utf8_lossy(&request.body).into_owned(), tools)
        })
        .collect();
    assert!(sent.len() >= TURNS + 2, "{}", sent.len());
    let mut changed = Vec::new();
    for pair in sent.windows(2) {
        let [(one, tools), (next, more)] = pair else { continue };
        let begin = &one[..one.rfind(']').unwrap()];
        if !next.starts_with(begin) {
            assert_eq!(more[..tools.len()], tools[..], "what was on offer stays where it was");
            changed.push(more.len() - tools.len());
        }
    }
    assert_eq!(changed.len(), 1, "only where tools were found: {changed:?}");
    assert!((1..=5).contains(&changed[0]), "{changed:?}");
    person.leaves();
}
