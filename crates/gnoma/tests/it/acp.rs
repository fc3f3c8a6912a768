//! `gnoma acp` as an editor drives it.

use std::{process::Stdio, time::Duration};

use gnoma_testkit::{End, Script, Wire};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout},
    time::timeout,
};

#[cfg(target_os = "linux")]
use crate::serve::Served;
use crate::support::{World, calls, exists, says};

/// Nothing that is waited for takes longer.
const PATIENCE: Duration = Duration::from_secs(30);

/// An editor that has started the agent.
pub(crate) struct Editor {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    next_id: u64,
    /// What came while something else was waited for.
    seen: Vec<Value>,
}

impl Editor {
    pub(crate) async fn start(world: &World) -> Self {
        Self::with(world, json!({})).await
    }

    /// One that can do what `abilities` say.
    async fn with(world: &World, abilities: Value) -> Self {
        let mut child = world.command(&["acp"]).stdin(Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut editor = Self { child, input, output, next_id: 1, seen: Vec::new() };
        let params = json!({ "protocolVersion": 1, "clientCapabilities": abilities });
        let told = editor.ask("initialize", params).await;
        assert_eq!(told["result"]["protocolVersion"], 1);
        editor
    }

    pub(crate) async fn write(&mut self, line: &str) {
        self.input.write_all(line.as_bytes()).await.unwrap();
        self.input.write_all(b"\n").await.unwrap();
    }

    pub(crate) async fn send(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.write(&message.to_string()).await;
        id
    }

    pub(crate) async fn notify(&mut self, method: &str, params: Value) {
        let message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        self.write(&message.to_string()).await;
    }

    /// The next message of which that is so; the others are kept.
    pub(crate) async fn until(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let line = timeout(PATIENCE, self.output.next_line()).await;
            let line = line.expect("nothing comes").unwrap().expect("the agent has ended");
            let message: Value = serde_json::from_str(&line).unwrap();
            assert_eq!(message["jsonrpc"], "2.0", "{line}");
            if is_it(&message) {
                return message;
            }
            self.seen.push(message);
        }
    }

    pub(crate) async fn answer(&mut self, id: u64) -> Value {
        self.until(|message| message["id"] == id && message.get("method").is_none()).await
    }

    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params).await;
        self.answer(id).await
    }

    pub(crate) async fn session(&mut self, world: &World) -> String {
        let params = json!({ "cwd": world.project.path(), "mcpServers": [] });
        let told = self.ask("session/new", params).await;
        told["result"]["sessionId"].as_str().unwrap_or_else(|| panic!("{told}")).to_owned()
    }

    pub(crate) async fn prompt(&mut self, session: &str, text: &str) -> u64 {
        self.send("session/prompt", prompt(session, text)).await
    }

    /// The updates that have come, and their kinds.
    pub(crate) fn updates(&mut self) -> Vec<Value> {
        let seen = std::mem::take(&mut self.seen);
        seen.into_iter().map(|message| message["params"]["update"].clone()).collect()
    }

    /// Ends the agent as an editor does.
    pub(crate) async fn end(self) {
        let Self { mut child, input, .. } = self;
        drop(input);
        let ended = timeout(PATIENCE, child.wait()).await.expect("it goes on").unwrap();
        assert!(ended.success(), "{ended}");
    }
}

fn prompt(session: &str, text: &str) -> Value {
    json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] })
}

fn kinds(updates: &[Value]) -> Vec<String> {
    let kind = |update: &Value| update["sessionUpdate"].as_str().unwrap_or_default().to_owned();
    updates.iter().map(kind).collect()
}

fn statuses(updates: &[Value]) -> Vec<&str> {
    updates.iter().filter_map(|update| update["status"].as_str()).collect()
}

#[tokio::test]
async fn acp_session_load_replays_a_turn_with_its_permission_question() {
    let write = r#"{"path":"a.txt","content":"hi\n"}"#;
    let world = World::new([calls("fs_write", write), says("written"), says("again")]);
    let mut editor = Editor::start(&world).await;
    let session = editor.session(&world).await;
    let prompt_id = editor.prompt(&session, "write it").await;
    let asked = editor.until(|it| it["method"] == "session/request_permission").await;
    assert!(!exists(world.project.path(), "a.txt"), "nobody has approved");
    let announced = editor.updates();
    assert!(
        announced.iter().any(|it| it["sessionUpdate"] == "tool_call"
            && it["toolCallId"] == asked["params"]["toolCall"]["toolCallId"]),
        "{announced:?}"
    );
    let change = &asked["params"]["toolCall"]["content"][0];
    assert_eq!(change["path"], json!(world.project.path().join("a.txt")));
    assert_eq!((&change["oldText"], &change["newText"]), (&Value::Null, &json!("hi\n")));
    let outcome = json!({ "outcome": { "outcome": "selected", "optionId": "0" } });
    let answer = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": outcome });
    editor.write(&answer.to_string()).await;
    assert_eq!(editor.answer(prompt_id).await["result"]["stopReason"], "end_turn");
    assert_eq!(world.read("a.txt"), "hi\n");
    let told = editor.updates();
    assert_eq!(statuses(&told), ["in_progress", "completed"], "{told:?}");
    assert_eq!(kinds(&told).last().unwrap(), "agent_message_chunk");
    editor.end().await;

    let mut editor = Editor::start(&world).await;
    let folder = world.project.path();
    let listed = editor.ask("session/list", json!({ "cwd": folder })).await;
    assert_eq!(listed["result"]["sessions"][0]["sessionId"], json!(session));
    let params = json!({ "sessionId": session, "cwd": folder, "mcpServers": [] });
    let loaded = editor.ask("session/load", params.clone()).await;
    assert_eq!(loaded["result"]["modes"]["currentModeId"], "auto", "{loaded}");
    let told = editor.updates();
    assert_eq!(
        kinds(&told)[..4],
        ["user_message_chunk", "tool_call", "tool_call_update", "agent_message_chunk"]
    );
    assert_eq!(statuses(&told), ["pending", "completed"]);
    let prompt_id = editor.prompt(&session, "and now?").await;
    assert_eq!(editor.answer(prompt_id).await["result"]["stopReason"], "end_turn");
    editor.ask("session/close", json!({ "sessionId": session })).await;
    editor.updates();
    editor.ask("session/resume", params).await;
    assert!(kinds(&editor.updates()).iter().all(|kind| kind != "user_message_chunk"));
    let deleted = editor.ask("session/delete", json!({ "sessionId": session })).await;
    assert_eq!(deleted["result"], json!({}), "{deleted}");
    let again = editor.ask("session/delete", json!({ "sessionId": session })).await;
    assert_eq!(again["result"], json!({}), "{again}");
    let listed = editor.ask("session/list", json!({ "cwd": folder })).await;
    assert_eq!(listed["result"]["sessions"], json!([]));
    let nowhere = editor.ask("session/list", json!({ "cwd": "/no/such/folder" })).await;
    assert_eq!(nowhere["result"]["sessions"], json!([]));
    editor.end().await;
}

/// Both see the same in the same order, one answers, and one that is killed stalls nobody.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn two_editors_share_a_session_of_the_server() {
    let write = r#"{"path":"a.txt","content":"hi\n"}"#;
    let world = World::new([says("hello"), calls("fs_write", write), says("written"), says("on")]);
    let _server = Served::starts(&world, &[]);
    let mut first = Editor::start(&world).await;
    let session = first.session(&world).await;
    let hello = first.prompt(&session, "hello").await;
    first.answer(hello).await;
    let mut second = Editor::start(&world).await;
    let params = json!({ "sessionId": session, "cwd": world.project.path(), "mcpServers": [] });
    second.ask("session/load", params).await;
    assert_eq!(kinds(&second.updates())[..2], ["user_message_chunk", "agent_message_chunk"]);

    let prompt_id = first.prompt(&session, "write it").await;
    let is_question = |it: &Value| it["method"] == "session/request_permission";
    let asked = first.until(is_question).await;
    let also = second.until(is_question).await;
    let outcome = json!({ "outcome": { "outcome": "selected", "optionId": "0" } });
    let answer = json!({ "jsonrpc": "2.0", "id": also["id"], "result": outcome });
    second.write(&answer.to_string()).await;
    let withdrawn = first.until(|it| it["method"] == "$/cancel_request").await;
    assert_eq!(withdrawn["params"]["requestId"], asked["id"]);
    // Too late, and of no effect.
    let denied = json!({ "outcome": { "outcome": "selected", "optionId": "2" } });
    let late = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": denied });
    first.write(&late.to_string()).await;
    assert_eq!(first.answer(prompt_id).await["result"]["stopReason"], "end_turn");
    assert_eq!(world.read("a.txt"), "hi\n");
    let done = |it: &Value| it["params"]["update"]["content"]["text"] == "written";
    second.until(done).await;
    let seen = second.updates();
    assert!(kinds(&seen).contains(&"user_message_chunk".to_owned()), "{seen:?}");
    assert!(statuses(&seen).ends_with(&["in_progress", "completed"]), "{seen:?}");

    second.child.start_kill().unwrap();
    let last = first.prompt(&session, "go on").await;
    assert_eq!(first.answer(last).await["result"]["stopReason"], "end_turn");
    first.end().await;
}

#[tokio::test]
async fn acp_session_open_elsewhere_is_refused_and_continues_as_a_fork() {
    let world = World::new([says("The first answer."), says("In the copy.")]);
    world.write("notes.txt", "x");
    let mut first = Editor::start(&world).await;
    let session = first.session(&world).await;
    let file = format!("file://{}", world.project.path().join("notes.txt").display());
    let link = json!({ "type": "resource_link", "uri": file, "name": "notes.txt" });
    let words = json!({ "type": "text", "text": "look at " });
    let params = json!({ "sessionId": session, "prompt": [words, link] });
    let told = first.ask("session/prompt", params).await;
    assert_eq!(told["result"]["stopReason"], "end_turn", "{told}");

    let mut second = Editor::start(&world).await;
    let params = json!({ "sessionId": session, "cwd": world.project.path(), "mcpServers": [] });
    for method in ["session/load", "session/resume"] {
        let error = second.ask(method, params.clone()).await["error"].clone();
        assert_eq!(error["code"], -32_003, "{error}");
        assert_eq!(error["data"]["offers"], json!(["session/fork"]));
    }
    let copy = second.ask("session/fork", params).await;
    let copy = copy["result"]["sessionId"].as_str().unwrap_or_else(|| panic!("{copy}")).to_owned();
    assert_ne!(copy, session);
    let prompt = second.prompt(&copy, "go on").await;
    assert_eq!(second.answer(prompt).await["result"]["stopReason"], "end_turn");
    let texts = world.last_request();
    assert!(texts.iter().any(|(_, text)| text.contains("The first answer.")), "{texts:?}");
    let listed = second.ask("session/list", json!({ "cwd": world.project.path() })).await;
    let titles = listed["result"]["sessions"].as_array().unwrap().iter();
    let titles: Vec<_> = titles.map(|it| it["title"].as_str().unwrap()).collect();
    assert!(titles.contains(&"look at @notes.txt"), "{titles:?}");
    first.end().await;
    second.end().await;
}

#[tokio::test]
async fn a_turn_that_is_cancelled_says_so_and_the_next_one_runs() {
    let endless = Wire::OpenAi.stream_reply(&Script::text(["word "; 20])).with_end(End::Stall(600));
    let write = calls("fs_write", r#"{"path":"a.txt","content":"hi"}"#);
    let world = World::new([endless, write, says("well")]);
    let mut editor = Editor::start(&world).await;
    let session = editor.session(&world).await;
    let running = editor.prompt(&session, "talk").await;
    let chunk = |it: &Value| it["params"]["update"]["sessionUpdate"] == "agent_message_chunk";
    editor.until(chunk).await;
    editor.notify("session/cancel", json!({ "sessionId": session })).await;
    assert_eq!(editor.answer(running).await["result"]["stopReason"], "cancelled");

    let asking = editor.prompt(&session, "write").await;
    let asked = editor.until(|it| it["method"] == "session/request_permission").await;
    editor.updates();
    editor.notify("session/cancel", json!({ "sessionId": session })).await;
    let outcome = json!({ "outcome": { "outcome": "cancelled" } });
    let answer = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": outcome });
    editor.write(&answer.to_string()).await;
    assert_eq!(editor.answer(asking).await["result"]["stopReason"], "cancelled");
    let told = editor.updates();
    assert_eq!(statuses(&told), ["failed"], "exactly one end: {told:?}");

    let last = editor.prompt(&session, "go on").await;
    assert_eq!(editor.answer(last).await["result"]["stopReason"], "end_turn");
    editor.end().await;
}

#[tokio::test]
async fn acp_invalid_request_gets_an_error_and_leaves_sessions_unchanged() {
    let world = World::new([says("hello")]);
    let mut editor = Editor::start(&world).await;
    let session = editor.session(&world).await;
    let mut too_deep = "[".repeat(200_000);
    too_deep.insert_str(0, r#"{"jsonrpc":"2.0","id":901,"method":"session/new","params":{"cwd":"#);
    let batch = r#"[{"jsonrpc":"2.0","id":900,"method":"initialize"}]"#;
    for (line, code) in [
        ("{this is not JSON", -32_700),
        (too_deep.as_str(), -32_700),
        (batch, -32_600),
        ("5", -32_600),
        (r#"{"id":902,"method":"session/new"}"#, -32_600),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"session/new"}"#, -32_600),
        (r#"{"jsonrpc":"2.0","id":903,"method":"no/such"}"#, -32_601),
        (
            r#"{"jsonrpc":"2.0","id":904,"method":"session/prompt","params":{"sessionId":5}}"#,
            -32_602,
        ),
        (r#"{"jsonrpc":"2.0","id":905,"method":"session/prompt","params":[]}"#, -32_602),
        (r#"{"jsonrpc":"2.0","id":906,"method":"session/new","params":{"cwd":"rel"}}"#, -32_602),
        (
            r#"{"jsonrpc":"2.0","id":907,"method":"session/load","params":{"sessionId":"2026","cwd":"/"}}"#,
            -32_002,
        ),
    ] {
        editor.write(line).await;
        let told = editor.until(|it| it.get("error").is_some()).await;
        assert_eq!(told["error"]["code"], code, "{line:.80}");
    }
    let utf16: Vec<u8> =
        "{\"jsonrpc\":\"2.0\"}".encode_utf16().flat_map(u16::to_le_bytes).collect();
    editor.input.write_all(&[0xff, 0xfe]).await.unwrap();
    editor.input.write_all(&utf16).await.unwrap();
    editor.write("").await;
    assert_eq!(editor.until(|it| it.get("error").is_some()).await["error"]["code"], -32_700);
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..100 {
        editor.input.write_all(&piece).await.unwrap();
    }
    editor.write("").await;
    assert_eq!(editor.until(|it| it.get("error").is_some()).await["error"]["code"], -32_600);
    let id = editor.prompt(&session, "hi").await;
    // A second request under that id, which is not answered yet.
    let again = json!({ "jsonrpc": "2.0", "id": id, "method": "session/list", "params": {} });
    editor.write(&again.to_string()).await;
    assert_eq!(editor.answer(id).await["result"]["stopReason"], "end_turn");
    let told = editor.updates();
    assert!(kinds(&told).contains(&"agent_message_chunk".to_owned()));
    editor.end().await;
}

#[tokio::test]
async fn acp_request_before_initialize_is_refused() {
    let world = World::new([]);
    let mut child = world.command(&["acp"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let early = r#"{"jsonrpc":"2.0","id":"early","method":"session/new","params":{"cwd":"/","mcpServers":[]}}"#;
    let hello =
        r#"{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":999}}"#;
    input.write_all(format!("{early}\n{hello}\n").as_bytes()).await.unwrap();
    drop(input);
    let output = timeout(PATIENCE, child.wait_with_output()).await.expect("it goes on").unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let told: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&told[0]["id"], &told[0]["error"]["code"]), (&json!("early"), &json!(-32_600)));
    assert_eq!(
        (&told[1]["id"], &told[1]["result"]["protocolVersion"]),
        (&json!("hello"), &json!(1))
    );
    assert!(told[1]["result"]["agentInfo"]["version"].is_string());
}

/// An editor that shows its files.
fn shows_files() -> Value {
    json!({ "fs": { "readTextFile": true } })
}

/// What the model was told of its last call.
fn told_last(world: &World) -> String {
    world.last_request().last().unwrap().1.clone()
}

#[tokio::test]
async fn acp_read_uses_the_editor_buffer_only_within_the_workspace() {
    let outside = tempfile::tempdir().unwrap();
    let file = outside.path().join("o.txt");
    std::fs::write(&file, "outside\n").unwrap();
    let beyond = json!({ "path": file }).to_string();
    let read = r#"{"path":"a.txt"}"#;
    let world = World::new([
        calls("fs_read", read),
        says("read"),
        calls("fs_read", read),
        says("read"),
        calls("fs_read", &beyond),
        says("read"),
    ]);
    world.write("a.txt", "saved\n");
    let mut editor = Editor::with(&world, shows_files()).await;
    let session = editor.session(&world).await;
    let shown = json!({ "content": "typed, with AKIAIOSFODNN7EXAMPLQ\n" });
    let refused = json!({ "code": -32_603, "message": "not open" });
    for (field, answer, told) in [("result", shown, "typed, with"), ("error", refused, "saved")] {
        let prompt_id = editor.prompt(&session, "read it").await;
        let asked = editor.until(|it| it["method"] == "fs/read_text_file").await;
        let path = world.project.path().canonicalize().unwrap().join("a.txt");
        assert_eq!(asked["params"], json!({ "sessionId": session, "path": path }));
        let answer = json!({ "jsonrpc": "2.0", "id": asked["id"], field: answer });
        editor.write(&answer.to_string()).await;
        editor.answer(prompt_id).await;
        assert!(told_last(&world).contains(told), "{}", told_last(&world));
        assert!(!told_last(&world).contains("AKIAIOSFODNN7EXAMPLQ"), "the firewall sees it, too");
    }
    let prompt_id = editor.prompt(&session, "read the other").await;
    let is_end = |it: &Value| it["id"] == prompt_id && it.get("method").is_none();
    let next = editor.until(|it| is_end(it) || it["method"] == "session/request_permission").await;
    if !is_end(&next) {
        let outcome = json!({ "outcome": { "outcome": "selected", "optionId": "0" } });
        let answer = json!({ "jsonrpc": "2.0", "id": next["id"], "result": outcome });
        editor.write(&answer.to_string()).await;
        editor.answer(prompt_id).await;
    }
    assert!(told_last(&world).contains("outside"), "{}", told_last(&world));
    assert!(editor.seen.iter().all(|it| it["method"] != "fs/read_text_file"));
    editor.end().await;
}

#[tokio::test]
async fn acp_read_falls_back_to_disk_when_the_editor_does_not_answer() {
    let read = r#"{"path":"a.txt"}"#;
    let world =
        World::new([calls("fs_read", read), says("read"), calls("fs_read", read), says("read")]);
    world.write("a.txt", "saved\n");
    for abilities in [json!({}), shows_files()] {
        let mut editor = Editor::with(&world, abilities).await;
        let session = editor.session(&world).await;
        let prompt_id = editor.prompt(&session, "read it").await;
        editor.answer(prompt_id).await;
        assert!(told_last(&world).contains("saved"), "{}", told_last(&world));
        editor.end().await;
    }
}

#[tokio::test]
async fn acp_reports_the_plan_and_the_thinking_level() {
    let steps = r#"{"steps":[{"text":"look","status":"done"},{"text":"mend","status":"active"}]}"#;
    let world = World::new([calls("plan", steps), says("planned")]);
    let mut editor = Editor::start(&world).await;
    let session = editor.session(&world).await;
    let wanted = json!({ "sessionId": session, "configId": "thinking", "value": "off" });
    let told = editor.ask("session/set_config_option", wanted).await;
    let options = told["result"]["configOptions"].as_array().unwrap();
    let thinking = options.iter().find(|it| it["category"] == "thought_level").unwrap();
    assert_eq!(thinking["currentValue"], "off");
    let prompt_id = editor.prompt(&session, "plan").await;
    editor.answer(prompt_id).await;
    let told = editor.updates();
    let plan = |told: &[Value]| told.iter().find(|it| it["sessionUpdate"] == "plan").cloned();
    let entries = plan(&told).unwrap()["entries"].clone();
    assert_eq!(entries[0]["status"], "completed");
    assert_eq!(
        entries[1],
        json!({ "content": "mend", "priority": "medium", "status": "in_progress" })
    );
    editor.end().await;
    let mut editor = Editor::start(&world).await;
    let params = json!({ "sessionId": session, "cwd": world.project.path(), "mcpServers": [] });
    editor.ask("session/load", params.clone()).await;
    editor.ask("session/list", json!({})).await;
    assert_eq!(plan(&editor.updates()).unwrap()["entries"], entries);
    editor.end().await;
}

#[tokio::test]
async fn acp_shows_elfs_as_a_tool_call_with_their_tasks() {
    let tasks = r#"{"tasks":[{"task":"count the files","name":"counter"}]}"#;
    let world = World::new([calls("elf_spawn", tasks), says("there are two"), says("two")]);
    let mut editor = Editor::start(&world).await;
    let session = editor.session(&world).await;
    let prompt_id = editor.prompt(&session, "count").await;
    let is_end = |it: &Value| it["id"] == prompt_id && it.get("method").is_none();
    let next = editor.until(|it| is_end(it) || it["method"] == "session/request_permission").await;
    if !is_end(&next) {
        let outcome = json!({ "outcome": { "outcome": "selected", "optionId": "0" } });
        let answer = json!({ "jsonrpc": "2.0", "id": next["id"], "result": outcome });
        editor.write(&answer.to_string()).await;
        editor.answer(prompt_id).await;
    }
    let told = editor.updates();
    let of =
        |status: &str| told.iter().find(|it| it["status"] == status && it["content"].is_array());
    let begun = of("pending").unwrap();
    assert_eq!(begun["kind"], "think");
    assert!(begun["content"].to_string().contains("counter: count the files"), "{begun}");
    let ended = of("completed").unwrap()["content"].to_string();
    assert!(ended.contains("count the files") && ended.contains("there are two"), "{ended}");
    editor.end().await;
}
