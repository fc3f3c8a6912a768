//! gnoma as an MCP server, spoken to over its standard input and output.

use std::{process::Stdio, time::Duration};

use gnoma_core::StopReason;
use gnoma_testkit::{Script, Wire};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout},
    time::timeout,
};

use crate::support::{World, exists, says};

/// No answer takes longer.
const MAX_ANSWER: Duration = Duration::from_secs(30);

/// A client's end of a running server.
struct ToolClient {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    next: u64,
}

impl ToolClient {
    /// One that has shaken hands.
    async fn start(world: &World, args: &[&str]) -> Self {
        let args: Vec<&str> = args.iter().copied().chain(["mcp", "serve"]).collect();
        let mut child = world.command(&args).stdin(Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut client = Self { child, input, output, next: 1 };
        client.request("initialize", json!({"protocolVersion": "2025-06-18"})).await;
        client
    }

    async fn send(&mut self, message: &Value) {
        self.input.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn answer(&mut self) -> Value {
        let line = timeout(MAX_ANSWER, self.output.next_line()).await.expect("no answer");
        serde_json::from_str(&line.unwrap().expect("the server has ended")).unwrap()
    }

    async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.next;
        self.next += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        let answer = self.answer().await;
        assert_eq!(answer["id"], id);
        answer["result"].clone()
    }

    async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.request("tools/call", json!({"name": tool, "arguments": arguments})).await
    }

    /// Ends the input: the server ends by itself.
    async fn end(self) {
        let Self { mut child, input, .. } = self;
        drop(input);
        assert!(timeout(MAX_ANSWER, child.wait()).await.unwrap().unwrap().success());
    }
}

#[tokio::test]
async fn mcp_serve_asks_continues_and_reports_sessions() {
    let world = World::new([says("first answer"), says("second answer"), says("late")]);
    let mut served = ToolClient::start(&world, &[]).await;
    let hello = served.request("initialize", json!({"protocolVersion": "2025-06-18"})).await;
    assert_eq!(hello["protocolVersion"], "2025-06-18");
    served.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    let tools = served.request("tools/list", json!({})).await["tools"].clone();
    let names: Vec<&str> =
        tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    for name in ["ask", "continue", "status", "cancel", "fs_read", "fs_edit"] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    let first = served.call("ask", json!({"prompt": "what is it"})).await;
    assert_eq!(first["structuredContent"]["answer"], "first answer", "{first}");
    assert_eq!(first["structuredContent"]["state"], "done");
    let session = first["structuredContent"]["session"].clone();
    let more = json!({"session": session, "prompt": "and now"});
    let second = served.call("continue", more.clone()).await;
    assert!(
        second["content"][0]["text"].as_str().unwrap().starts_with("second answer"),
        "{second}"
    );
    let sent = world.sent();
    assert!(sent.contains("what is it") && sent.contains("and now"));
    assert_eq!(world.server.requests().len(), 2);
    let status = served.call("status", json!({"session": session})).await;
    assert_eq!(status["structuredContent"]["answer"], "second answer");
    let unknown = served.call("status", json!({"session": "nobody"})).await;
    assert_eq!(unknown["isError"], true);
    served.end().await;
    // A saved session goes on in another server.
    let mut served = ToolClient::start(&world, &[]).await;
    let third = served.call("continue", more).await;
    assert_eq!(third["structuredContent"]["answer"], "late", "{third}");
    assert!(world.last_request().iter().any(|(_, text)| text == "first answer"));
    served.end().await;
}

#[tokio::test]
async fn mcp_serve_handles_more_sessions_than_are_open_at_once() {
    // More than are open at once.
    const MANY: usize = 66;
    let world = World::new((0..=MANY).map(|at| says(&format!("answer {at}"))));
    let mut served = ToolClient::start(&world, &[]).await;
    let mut first = None;
    for at in 0..MANY {
        let answer = served.call("ask", json!({"prompt": "go"})).await;
        let facts = &answer["structuredContent"];
        assert_eq!(facts["answer"], format!("answer {at}"), "{answer}");
        first.get_or_insert_with(|| facts["session"].clone());
    }
    let more = json!({"session": first, "prompt": "and now"});
    let more = served.call("continue", more).await;
    assert_eq!(more["structuredContent"]["answer"], format!("answer {MANY}"), "{more}");
    assert!(world.last_request().iter().any(|(_, text)| text == "answer 0"));
    served.end().await;
}

#[tokio::test]
async fn a_long_line_costs_one_error() {
    let world = World::new([]);
    let mut served = ToolClient::start(&world, &[]).await;
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    served.send(&json!("x".repeat(17 << 20))).await;
    served.send(&ping).await;
    let refused = served.answer().await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&Value::Null, &json!(-32_600)));
    assert_eq!(served.answer().await["result"], json!({}));
    served.end().await;
}

#[tokio::test]
async fn mcp_serve_refuses_a_request_id_in_use() {
    let slow = Script::text(["word "; 20]).with_stop(StopReason::EndTurn);
    let slow = Wire::OpenAi
        .stream_reply(&slow)
        .with_piece_size(30)
        .with_piece_delay(Duration::from_millis(100));
    let world = World::new([slow, says("second")]);
    let mut served = ToolClient::start(&world, &[]).await;
    let ask = |prompt: &str| {
        let params = json!({"name": "ask", "arguments": {"prompt": prompt}});
        json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params})
    };
    served.send(&ask("one")).await;
    served.send(&ask("two")).await;
    let refused = served.answer().await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&Value::Null, &json!(-32_600)));
    let answer = served.answer().await;
    assert_eq!(answer["id"], 7);
    assert!(answer["result"]["structuredContent"]["answer"].as_str().unwrap().contains("word"));
    assert_eq!(world.server.requests().len(), 1);
    // It may be used again once its call is over.
    served.send(&ask("two")).await;
    assert_eq!(served.answer().await["result"]["structuredContent"]["answer"], "second");
    served.end().await;
}

#[tokio::test]
async fn mcp_serve_file_tools_obey_permission_rules() {
    let world = World::new([]).among_files();
    world.write("a.txt", "c0ntent\n");
    let mut served = ToolClient::start(&world, &[]).await;
    let read = served.call("fs_read", json!({"path": "a.txt"})).await;
    assert!(read["content"][0]["text"].as_str().unwrap().contains("c0ntent"), "{read}");
    let write = json!({"path": "b.txt", "content": "x"});
    let refused = served.call("fs_write", write.clone()).await;
    assert_eq!(refused["isError"], true, "{refused}");
    assert!(!exists(world.project.path(), "b.txt"));
    served.end().await;
    let mut served = ToolClient::start(&world, &["--permission", "accept_edits"]).await;
    let written = served.call("fs_write", write).await;
    assert_eq!(written["isError"], false, "{written}");
    assert!(exists(world.project.path(), "b.txt"));
    let outside = served.call("fs_write", json!({"path": "/etc/gnoma-x", "content": "x"})).await;
    assert_eq!(outside["isError"], true, "{outside}");
    served.end().await;
}

#[tokio::test]
async fn mcp_serve_file_changes_are_rewound_call_by_call() {
    let world = World::new([]).among_files();
    world.write("a.txt", "before\n");
    let mut served = ToolClient::start(&world, &["--permission", "accept_edits"]).await;
    served.call("fs_read", json!({"path": "a.txt"})).await;
    for (path, content) in [("a.txt", "after\n"), ("b.txt", "new\n")] {
        let written = served.call("fs_write", json!({"path": path, "content": content})).await;
        assert_eq!(written["isError"], false, "{written}");
    }
    let sessions = world.sessions().await;
    assert_eq!(sessions.len(), 1, "all changes are in one session");
    let run = world.run(&["rewind", "1"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(!exists(world.project.path(), "b.txt") && world.read("a.txt") == "after\n", "{run:?}");
    let run = world.run(&["rewind", "1"]).await;
    assert_eq!((run.code, world.read("a.txt").as_str()), (Some(0), "before\n"), "{run:?}");
    // It goes on with what there is.
    let again = served.call("fs_write", json!({"path": "c.txt", "content": "x"})).await;
    assert_eq!(again["isError"], false, "{again}");
    served.end().await;
}
