//! `gnoma claude`, driven over its standard input and output as the SDKs drive it.

use std::{process::Stdio, time::Duration};

use gnoma_core::StopReason;
use gnoma_testkit::{Reply, Script, Wire};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout},
    time::timeout,
};

use crate::{
    extend::world_of,
    support::{World, calls, exists, says},
};

/// No message takes longer.
const PATIENCE: Duration = Duration::from_secs(20);
const STREAMS: [&str; 4] = ["--output-format", "stream-json", "--input-format", "stream-json"];

/// The program, as an SDK has it.
struct Driven {
    child: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
    /// All that it has said.
    said: Vec<Value>,
}

impl Driven {
    fn start(world: &World, more: &[&str]) -> Self {
        let args: Vec<_> = STREAMS.iter().chain(more).copied().collect();
        let mut command = world.command(&args);
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { input: child.stdin.take(), output, child, said: Vec::new() }
    }

    async fn send(&mut self, message: &Value) {
        let line = format!("{message}\n");
        self.input.as_mut().unwrap().write_all(line.as_bytes()).await.unwrap();
    }

    async fn ask(&mut self, id: &str, request: Value) {
        self.send(&json!({"type": "control_request", "request_id": id, "request": request})).await;
    }

    async fn say(&mut self, text: &str) {
        let message = json!({"role": "user", "content": text});
        self.send(&json!({"type": "user", "session_id": "", "message": message})).await;
    }

    async fn reply(&mut self, question: &Value, response: Value) {
        let response = json!({"subtype": "success", "request_id": question["request_id"],
            "response": response});
        self.send(&json!({"type": "control_response", "response": response})).await;
    }

    /// The next message.
    async fn next(&mut self) -> Option<Value> {
        let line = timeout(PATIENCE, self.output.next_line()).await.expect("nothing comes");
        let message: Value = serde_json::from_str(&line.unwrap()?).unwrap();
        self.said.push(message.clone());
        Some(message)
    }

    /// The next message that fits.
    async fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.next().await.expect("it ended");
            if fits(&message) {
                return message;
            }
        }
    }

    async fn until_type(&mut self, kind: &str) -> Value {
        self.until(|message| message["type"] == kind).await
    }

    /// The answer to a request.
    async fn answer(&mut self, id: &str) -> Value {
        let is_it = |message: &Value| message["response"]["request_id"] == id;
        self.until(is_it).await["response"].clone()
    }

    /// Answers all that is asked, to the end of the turn; what was asked.
    async fn answered_by(&mut self, answer: impl Fn(&Value) -> Value) -> Vec<Value> {
        let mut asked = Vec::new();
        loop {
            let message = self.next().await.expect("it ended");
            match message["type"].as_str() {
                Some("result") => return asked,
                Some("control_request") => {
                    self.reply(&message, answer(&message["request"])).await;
                    asked.push(message["request"].clone());
                }
                _ => (),
            }
        }
    }

    /// Lets it end; its exit code.
    async fn end(mut self) -> (Option<i32>, Vec<Value>) {
        drop(self.input.take());
        while self.next().await.is_some() {}
        let status = timeout(PATIENCE, self.child.wait()).await.expect("it hangs").unwrap();
        (status.code(), self.said)
    }
}

fn writes(path: &str) -> Reply {
    calls("Write", &json!({"file_path": path, "content": "x"}).to_string())
}

fn names(request: &Value) -> Vec<String> {
    let tools = request["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn claude_stream_json_turn_has_the_expected_messages() {
    for wire in ["openai", "mistral"] {
        let by = if wire == "mistral" { Wire::Mistral } else { Wire::OpenAi };
        let script = Script::text(["Hi", " there"]).with_stop(StopReason::EndTurn);
        let world = world_of(wire, vec![by.stream_reply(&script)]);
        let mut driven = Driven::start(&world, &["--include-partial-messages"]);
        driven.ask("i", json!({"subtype": "initialize", "hooks": null})).await;
        assert_eq!(driven.answer("i").await["subtype"], "success");
        driven.say("hi").await;
        let (code, said) = driven.end().await;
        assert_eq!(code, Some(0), "{said:?}");
        let of = |kind: &str| said.iter().find(|it| it["type"] == kind).cloned().unwrap();
        assert!(of("system")["claude_code_version"].as_str().unwrap() >= "2.0.0");
        assert_eq!(of("assistant")["message"]["content"][0]["text"], "Hi there");
        let pieces: String =
            said.iter().filter_map(|it| it["event"]["delta"]["text"].as_str()).collect();
        assert_eq!(pieces, "Hi there");
        let result = of("result");
        assert_eq!(
            (&result["subtype"], &result["result"]),
            (&json!("success"), &json!("Hi there"))
        );
        assert_eq!(result["usage"]["output_tokens"], 5);
        assert!(result["total_cost_usd"].is_number() && result["duration_api_ms"].is_number());
        // Models see the names that such programs write about.
        let sent = names(&world.server.requests()[0].json());
        assert!(sent.contains(&"Read".to_owned()) && sent.contains(&"Bash".to_owned()), "{sent:?}");
        assert!(!sent.iter().any(|name| name.starts_with("fs")), "{sent:?}");
    }
}

#[tokio::test]
async fn claude_sdk_permission_prompt_approves_edits_and_denies_calls() {
    let world = World::new([writes("a.txt"), writes("b.txt"), says("done")]);
    let mut driven = Driven::start(&world, &["--permission-prompt-tool", "stdio"]);
    driven.say("go").await;
    let question = driven.until_type("control_request").await;
    let input = json!({"file_path": "a.txt", "content": "x"});
    assert_eq!(question["request"]["subtype"], "can_use_tool");
    assert_eq!(question["request"]["input"], input);
    // What the model said of the call is told before anybody is asked about it.
    assert!(driven.said.iter().any(|it| it["message"]["content"][0]["name"] == "Write"));
    let changed = json!({"file_path": "c.txt", "content": "changed"});
    driven.reply(&question, json!({"behavior": "allow", "updatedInput": changed})).await;
    let question = driven.until_type("control_request").await;
    driven.reply(&question, json!({"behavior": "deny", "message": "n0pe"})).await;
    let result = driven.until_type("result").await;
    let (code, said) = driven.end().await;
    assert_eq!(code, Some(0));
    assert_eq!(world.read("c.txt"), "changed");
    assert!(!exists(world.project.path(), "a.txt") && !exists(world.project.path(), "b.txt"));
    assert_eq!(result["permission_denials"][0]["tool_input"]["file_path"], "b.txt");
    let results = said.iter().filter_map(|it| it["message"]["content"][0]["content"].as_str());
    assert!(results.clone().any(|text| text.contains("n0pe")), "{said:?}");
}

#[tokio::test]
async fn claude_sdk_updated_input_is_checked_against_permission_rules() {
    let outside = tempfile::tempdir().unwrap();
    let path = outside.path().join("x.txt");
    let world = World::new([writes("a.txt"), says("done")]);
    world.configure("[permission]\nrules = [{ action = \"deny\", tool = \"fs.write(b.txt)\" }]\n");
    let mut driven = Driven::start(&world, &["--permission-prompt-tool", "stdio"]);
    driven.say("go").await;
    let question = driven.until_type("control_request").await;
    let changed = json!({"file_path": "b.txt", "content": "x"});
    driven.reply(&question, json!({"behavior": "allow", "updatedInput": changed})).await;
    driven.until_type("result").await;
    driven.end().await;
    assert!(!exists(world.project.path(), "b.txt") && !path.exists());
}

#[tokio::test]
async fn claude_sdk_hook_callbacks_block_calls_and_add_context() {
    let bash = |command: &str| calls("Bash", &json!({"command": command}).to_string());
    let world = World::new([bash("echo no > no.txt"), bash("echo yes > yes.txt"), says("done")]);
    let mut driven = Driven::start(&world, &["--permission-prompt-tool", "stdio"]);
    let hooks = json!({
        "PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["pre"]}],
        "PostToolUse": [{"matcher": null, "hookCallbackIds": ["post"]}],
        "UserPromptSubmit": [{"hookCallbackIds": ["prompt"]}],
        "Stop": [{"hookCallbackIds": ["stop"]}],
    });
    driven.ask("i", json!({"subtype": "initialize", "hooks": hooks})).await;
    driven.say("go").await;
    let mut called = Vec::new();
    let result = loop {
        let message = driven.next().await.unwrap();
        if message["type"] == "result" {
            break message;
        }
        if message["type"] != "control_request" {
            continue;
        }
        assert_eq!(message["request"]["subtype"], "hook_callback", "{message}");
        let id = message["request"]["callback_id"].as_str().unwrap().to_owned();
        let command = message["request"]["input"]["tool_input"]["command"].as_str();
        let decision = |decision: &str| {
            json!({"hookSpecificOutput": {"hookEventName": "PreToolUse",
                "permissionDecision": decision, "permissionDecisionReason": "n0pe"}})
        };
        let answer = match (id.as_str(), command) {
            ("pre", Some(command)) if command.contains("no.txt") => decision("deny"),
            ("pre", _) => decision("allow"),
            ("prompt", _) => json!({"hookSpecificOutput": {"hookEventName": "UserPromptSubmit",
                "additionalContext": "the c0ntext"}}),
            _ => json!({}),
        };
        driven.reply(&message, answer).await;
        called.push(id);
    };
    driven.end().await;
    assert_eq!(called, ["prompt", "pre", "pre", "post", "stop"]);
    assert_eq!(result["subtype"], "success");
    assert!(!exists(world.project.path(), "no.txt"));
    assert_eq!(world.read("yes.txt"), "yes\n");
    let sent = world.server.requests();
    assert!(sent[0].json().to_string().contains("the c0ntext"));
    assert!(sent[1].json().to_string().contains("n0pe"));
}

fn decides(decision: &str) -> Value {
    json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": decision}})
}

#[tokio::test]
async fn claude_sdk_hook_allow_applies_to_one_tool_call() {
    // Both calls have one id, as those of some servers do. The first needs no approval.
    let read = calls("Read", r#"{"file_path": "a.txt"}"#);
    let world = World::new([read, writes("b.txt"), says("done")]);
    world.write("a.txt", "x");
    let mut driven = Driven::start(&world, &[]);
    let hooks = json!({"PreToolUse": [{"matcher": "Read", "hookCallbackIds": ["pre"]}]});
    driven.ask("i", json!({"subtype": "initialize", "hooks": hooks})).await;
    driven.say("go").await;
    let asked = driven.answered_by(|_| decides("allow")).await;
    driven.end().await;
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert!(!exists(world.project.path(), "b.txt"));
}

#[tokio::test]
async fn claude_sdk_hook_allow_does_not_override_ask_or_deny_of_another_hook() {
    for other in ["ask", "deny"] {
        let world = World::new([writes("a.txt"), says("done")]);
        let mut driven = Driven::start(&world, &[]);
        let hooks = json!({"PreToolUse": [{"hookCallbackIds": ["one", "two"]}]});
        driven.ask("i", json!({"subtype": "initialize", "hooks": hooks})).await;
        driven.say("go").await;
        let answer = |request: &Value| {
            decides(if request["callback_id"] == "one" { "allow" } else { other })
        };
        assert_eq!(driven.answered_by(answer).await.len(), 2);
        driven.end().await;
        assert!(!exists(world.project.path(), "a.txt"), "{other}");
    }
}

#[tokio::test]
async fn claude_sdk_permission_request_hook_changes_the_input_that_runs() {
    let world = World::new([writes("a.txt"), writes("b.txt"), says("done")]);
    world.configure("[permission]\nrules = [{ action = \"deny\", tool = \"fs.write(no.txt)\" }]\n");
    let mut driven = Driven::start(&world, &[]);
    let hooks = json!({"PermissionRequest": [{"hookCallbackIds": ["asked"]}]});
    driven.ask("i", json!({"subtype": "initialize", "hooks": hooks})).await;
    driven.say("go").await;
    let answer = |request: &Value| {
        let path = request["input"]["tool_input"]["file_path"].as_str().unwrap();
        let to = if path == "a.txt" { "c.txt" } else { "no.txt" };
        let decision = json!({"behavior": "allow",
            "updatedInput": {"file_path": to, "content": "changed"}});
        json!({"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}})
    };
    assert_eq!(driven.answered_by(answer).await.len(), 2);
    driven.end().await;
    assert_eq!(world.read("c.txt"), "changed");
    for name in ["a.txt", "b.txt", "no.txt"] {
        assert!(!exists(world.project.path(), name), "{name}");
    }
}

#[tokio::test]
async fn claude_sdk_permission_updates_apply_from_the_next_call() {
    let bash = |command: &str| calls("Bash", &json!({"command": command}).to_string());
    let replies = [writes("a.txt"), writes("b.txt"), bash("touch c.txt"), bash("touch d.txt")];
    let world = World::new(replies.into_iter().chain([says("done")]));
    let mut driven = Driven::start(&world, &["--permission-prompt-tool", "stdio"]);
    driven.say("go").await;
    let rules = |behavior: &str, name: &str, inside: &str| {
        json!({"type": "addRules", "behavior": behavior, "destination": "session",
            "rules": [{"toolName": name, "ruleContent": inside}]})
    };
    let updates = [rules("deny", "Write", "b.txt"), rules("allow", "Bash", "touch:*")];
    let asked = driven
        .answered_by(|_| json!({"behavior": "allow", "updatedPermissions": updates.clone()}))
        .await;
    driven.end().await;
    assert_eq!(asked.len(), 1, "{asked:?}");
    for (name, is_there) in [("a.txt", true), ("b.txt", false), ("c.txt", true), ("d.txt", true)] {
        assert_eq!(exists(world.project.path(), name), is_there, "{name}");
    }
}

#[tokio::test]
async fn claude_sdk_in_process_mcp_tools_are_called() {
    let world = World::new([calls("mcp__calc__add", r#"{"a": 1, "b": 2}"#), says("three")]);
    let config = json!({"mcpServers": {"calc": {"type": "sdk", "name": "calc"}}}).to_string();
    let args = ["--mcp-config", &config, "--allowedTools", "mcp__calc__add"];
    let mut driven = Driven::start(&world, &args);
    driven.ask("i", json!({"subtype": "initialize"})).await;
    driven.say("add").await;
    loop {
        let message = driven.next().await.unwrap();
        if message["type"] == "result" {
            break;
        }
        if message["request"]["subtype"] != "mcp_message" {
            continue;
        }
        let rpc = &message["request"]["message"];
        let result = match rpc["method"].as_str().unwrap() {
            "tools/list" => json!({"tools": [{"name": "add", "description": "adds",
                "inputSchema": {"type": "object"}}]}),
            "tools/call" => {
                assert_eq!(rpc["params"]["arguments"], json!({"a": 1, "b": 2}));
                json!({"content": [{"type": "text", "text": "3!"}]})
            }
            _ => json!({}),
        };
        let response = json!({"jsonrpc": "2.0", "id": rpc["id"], "result": result});
        driven.reply(&message, json!({"mcp_response": response})).await;
    }
    driven.ask("s", json!({"subtype": "mcp_status"})).await;
    let status = driven.answer("s").await;
    assert_eq!(status["response"]["mcpServers"][0]["status"], "connected");
    let (code, said) = driven.end().await;
    assert_eq!(code, Some(0));
    let init = said.iter().find(|it| it["subtype"] == "init").unwrap();
    assert!(init["tools"].as_array().unwrap().contains(&json!("mcp__calc__add")), "{init}");
    assert!(world.server.requests()[1].json().to_string().contains("3!"));
}

#[tokio::test]
async fn claude_sdk_disallowed_tools_are_denied_in_every_mode() {
    let read = calls("Read", r#"{"file_path": ".env"}"#);
    let world = World::new([read, calls("mcp__calc__add", "{}"), says("done")]);
    std::fs::write(world.project.path().join(".env"), "s3cret-of-env").unwrap();
    let config = json!({"mcpServers": {"calc": {"type": "sdk", "name": "calc"}}}).to_string();
    let args = [
        "--dangerously-skip-permissions",
        "--disallowedTools",
        "Read(./.env)",
        "mcp__calc,WebFetch(domain:example.com),NotebookEdit",
        "--mcp-config",
        &config,
    ];
    let mut driven = Driven::start(&world, &args);
    driven.ask("i", json!({"subtype": "initialize"})).await;
    driven.say("go").await;
    loop {
        let message = driven.next().await.unwrap();
        if message["type"] == "result" {
            break;
        }
        if message["request"]["subtype"] != "mcp_message" {
            continue;
        }
        let rpc = &message["request"]["message"];
        assert_ne!(rpc["method"], "tools/call");
        let tools = json!([{"name": "add", "inputSchema": {"type": "object"}}]);
        let response = json!({"jsonrpc": "2.0", "id": rpc["id"], "result": {"tools": tools}});
        driven.reply(&message, json!({"mcp_response": response})).await;
    }
    let (_, said) = driven.end().await;
    let sent = world.server.requests();
    assert_eq!(sent.len(), 3, "{said:?}");
    assert!(!names(&sent[0].json()).contains(&"mcp__calc__add".to_owned()));
    let told = sent[1].json().to_string();
    assert!(told.contains("fs.read(.env)") && !told.contains("s3cret-of-env"), "{told}");
    for rule in ["Bash(a && b)", "Read(../x)", "Task(x)", "Bash(ls"] {
        let run = world.run(&["claude", "-p", "hi", "--disallowedTools", rule]).await;
        assert!(run.code == Some(2) && run.err.contains("cannot be enforced"), "{run:?}");
    }
    assert_eq!(world.server.requests().len(), 3);
    let run = world.run(&["claude", "-p", "hi", "--allowedTools", "Bash(a && b)"]).await;
    assert!(run.err.contains("allows nothing"), "{run:?}");
}

#[tokio::test]
async fn claude_sdk_sub_agent_messages_carry_the_parent_tool_call() {
    let arguments = json!({"description": "rev", "prompt": "look", "subagent_type": "rev"});
    let replies = [calls("Agent", &arguments.to_string()), says("from the agent"), says("done")];
    let world = World::new(replies);
    let mut driven = Driven::start(&world, &[]);
    let agents = json!({"rev": {"description": "reviews", "prompt": "You are a r3viewer",
        "tools": ["Read"], "model": "sonnet"}});
    driven.ask("i", json!({"subtype": "initialize", "agents": agents})).await;
    driven.say("go").await;
    driven.until_type("result").await;
    let (code, said) = driven.end().await;
    assert_eq!(code, Some(0), "{said:?}");
    let of_child: Vec<_> = said
        .iter()
        .filter(|it| it["type"] == "assistant" && it["parent_tool_use_id"].is_string())
        .collect();
    assert_eq!(of_child.len(), 1, "{said:?}");
    assert_eq!(of_child[0]["message"]["content"][0]["text"], "from the agent");
    for subtype in ["task_started", "task_notification"] {
        assert!(said.iter().any(|it| it["subtype"] == subtype), "{subtype}");
    }
    let request = world.server.requests()[1].json();
    assert!(request.to_string().contains("You are a r3viewer"));
    assert_eq!(names(&request), ["Read"]);
    let init = said.iter().find(|it| it["subtype"] == "init").unwrap();
    assert!(init["tools"].as_array().unwrap().contains(&json!("Agent")));
}

#[tokio::test]
async fn a_sub_agent_is_held_to_the_rules_of_its_definition() {
    let task = |agent: &str| {
        let task = json!({"description": "t", "prompt": "go", "subagent_type": agent});
        calls("Agent", &task.to_string())
    };
    let bash = |command: &str| calls("Bash", &json!({"command": command}).to_string());
    let replies = [task("t"), bash("touch a.txt"), bash("mkdir b"), says("did"), task("bad")];
    let world = World::new(replies.into_iter().chain([says("done")]));
    let mut driven = Driven::start(&world, &["--permission-prompt-tool", "stdio"]);
    let agents = json!({"t": {"description": "t", "prompt": "You t0uch", "tools": ["Bash(touch:*)"]},
        "bad": {"description": "b", "prompt": "You are bad", "permissionMode": "n0ne"}});
    driven.ask("i", json!({"subtype": "initialize", "agents": agents})).await;
    driven.say("go").await;
    // What it asks is asked once, and the approval is for its call alone.
    let asked = driven.answered_by(|_| json!({"behavior": "allow"})).await;
    driven.end().await;
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert!(exists(world.project.path(), "a.txt") && !exists(world.project.path(), "b"));
    let sent = world.server.requests().last().unwrap().json().to_string();
    assert!(sent.contains("unknown mode `n0ne`"), "{sent}");
}

#[tokio::test]
async fn claude_sdk_offers_file_sub_agents_only_from_trusted_folders() {
    let rev = |text: &str| {
        format!("---\nname: {text}\ndescription: reviews\n---\nYou review as {text}.\n")
    };
    let call = r#"{"description":"d","prompt":"look","subagent_type":"mine"}"#;
    let world = World::new([calls("Agent", call), says("seen"), says("done")]);
    for (folder, name) in [(world.home.path(), "mine"), (world.project.path(), "theirs")] {
        let folder = folder.join(".claude/agents");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(format!("{name}.md")), rev(name)).unwrap();
    }
    let mut driven = Driven::start(&world, &["--permission-mode", "bypassPermissions"]);
    driven.say("go").await;
    driven.until_type("result").await;
    let (code, said) = driven.end().await;
    assert_eq!(code, Some(0), "{said:?}");
    let init = said.iter().find(|it| it["subtype"] == "init").unwrap();
    assert_eq!(init["agents"], json!(["mine", "general-purpose"]), "nobody trusts the project");
    let requests = world.server.requests();
    assert!(requests.iter().any(|it| it.json().to_string().contains("You review as mine.")));
}

#[tokio::test]
async fn claude_sdk_session_resumes_by_id_and_forks() {
    let world = World::new([says("one"), says("two"), says("three"), says("four")]);
    let id = "12345678-1234-4234-9234-123456789012";
    let mut driven = Driven::start(&world, &["--session-id", id, "--system-prompt", "Be br1ef"]);
    driven.say("first").await;
    assert_eq!(driven.until_type("result").await["session_id"], id);
    driven.say("second").await;
    driven.until_type("result").await;
    driven.end().await;
    assert!(world.server.requests()[0].json().to_string().contains("Be br1ef"));
    for (more, is_same) in [(None, true), (Some("--fork-session"), false)] {
        let resume = format!("--resume={id}");
        let args: Vec<_> = [resume.as_str()].into_iter().chain(more).collect();
        let mut driven = Driven::start(&world, &args);
        driven.say("third").await;
        let result = driven.until_type("result").await;
        driven.end().await;
        assert_eq!(result["session_id"] == id, is_same, "{result}");
        let sent = world.server.requests().last().unwrap().json().to_string();
        assert!(sent.contains("first") && sent.contains("two"), "{sent}");
    }
    let mut driven = Driven::start(&world, &["--resume=00000000-0000-4000-8000-000000000000"]);
    driven.ask("i", json!({"subtype": "initialize"})).await;
    let result = driven.until_type("result").await;
    assert!(result["errors"][0].as_str().unwrap().starts_with("No conversation found"));
    assert_eq!(driven.end().await.0, Some(1));
}

#[tokio::test]
async fn claude_sdk_limits_turns_interrupts_and_changes_permission_mode() {
    let slow = Script::text(["word"; 50]).with_stop(StopReason::EndTurn);
    let slow = Wire::OpenAi
        .stream_reply(&slow)
        .with_piece_size(60)
        .with_piece_delay(Duration::from_millis(100));
    let bash = calls("Bash", r#"{"command": "echo hi"}"#);
    let world = World::new([slow, writes("a.txt"), says("done"), bash]);
    let mut driven = Driven::start(&world, &["--allowedTools", "Bash"]);
    driven.say("slow").await;
    driven.until(|message| message["subtype"] == "init").await;
    tokio::time::sleep(Duration::from_millis(600)).await;
    driven.ask("x", json!({"subtype": "interrupt"})).await;
    assert_eq!(driven.answer("x").await["subtype"], "success");
    let result = driven.until_type("result").await;
    assert_eq!(result["subtype"], "error_during_execution");
    driven.ask("m", json!({"subtype": "set_permission_mode", "mode": "acceptEdits"})).await;
    assert_eq!(driven.answer("m").await["subtype"], "success");
    driven.ask("n", json!({"subtype": "set_permission_mode", "mode": "nonsense"})).await;
    assert_eq!(driven.answer("n").await["subtype"], "error");
    driven.ask("o", json!({"subtype": "set_model", "model": "m2"})).await;
    assert_eq!(driven.answer("o").await["subtype"], "success");
    driven.say("write").await;
    assert_eq!(driven.until_type("result").await["subtype"], "success");
    assert_eq!(world.read("a.txt"), "x");
    assert_eq!(world.server.requests()[1].json()["model"], "m2");
    driven.ask("c", json!({"subtype": "get_context_usage"})).await;
    assert!(driven.answer("c").await["response"]["totalTokens"].as_u64().unwrap() > 0);
    driven.ask("u", json!({"subtype": "bogus"})).await;
    assert_eq!(driven.answer("u").await["subtype"], "error");
    driven.end().await;
    let mut driven = Driven::start(&world, &["--max-turns", "1", "--allowedTools", "Bash"]);
    driven.say("loop").await;
    let result = driven.until_type("result").await;
    assert_eq!(
        (&result["subtype"], &result["is_error"]),
        (&json!("error_max_turns"), &json!(true))
    );
    assert_eq!(driven.end().await.0, Some(1));
}

#[tokio::test]
async fn claude_sdk_ignores_malformed_input_lines() {
    let world = World::new([says("still here")]);
    let mut driven = Driven::start(&world, &["--from-the-future", "x"]);
    for bad in [json!([1]), json!({"type": "x"}), json!({"type": "user"}), json!(null)] {
        driven.send(&bad).await;
    }
    driven.input.as_mut().unwrap().write_all(b"no json\n\xff\xfe\n").await.unwrap();
    let unknown = json!({"subtype": "success", "request_id": "never", "response": {}});
    driven.send(&json!({"type": "control_response", "response": unknown})).await;
    driven.say("hi").await;
    assert_eq!(driven.until_type("result").await["result"], "still here");
    assert_eq!(driven.end().await.0, Some(0));
}

#[tokio::test]
async fn claude_print_mode_works_by_symlink_and_by_command() {
    let world = World::new([says("one"), says("two")]);
    let run = world.run(&["claude", "-p", "hi"]).await;
    assert_eq!((run.code, run.out.as_str()), (Some(0), "one\n"), "{run:?}");
    let link = world.home.path().join("claude");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_gnoma"), &link).unwrap();
    let mut command = tokio::process::Command::new(&link);
    let output = command.arg("-v").env_clear().output().await.unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("(gnoma "), "{output:?}");
    let run = world.run(&["claude", "-p", "--output-format", "json", "hi"]).await;
    let result: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(result["result"], "two");
}
