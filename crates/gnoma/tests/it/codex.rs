//! `gnoma codex exec`, as the Codex SDK drives it.

use serde_json::{Value, json};

use crate::support::{Run, World, calls, exists, says};

/// Words that the SDK writes, before those of a thread.
const SDK: [&str; 4] = ["exec", "--experimental-json", "--sandbox", "workspace-write"];

fn events(run: &Run) -> Vec<Value> {
    run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn kinds(events: &[Value]) -> Vec<String> {
    let kind = |event: &Value| {
        let item = event["item"]["type"].as_str().map(|item| format!(" {item}"));
        format!("{}{}", event["type"].as_str().unwrap(), item.unwrap_or_default())
    };
    events.iter().map(kind).collect()
}

async fn turn(world: &World, more: &[&str], prompt: &str) -> (Run, Vec<Value>) {
    let run = world.pipe(&[&SDK, more].concat(), prompt).await;
    let events = events(&run);
    (run, events)
}

#[tokio::test]
async fn codex_thread_has_turns_and_resumes_by_id() {
    let world = World::new([says("one"), says("two")]);
    let (run, events) =
        turn(&world, &["--model", "gpt-5.5-codex", "--skip-git-repo-check"], "hi").await;
    assert_eq!(run.code, Some(0), "{run:?}");
    let kinds = kinds(&events);
    assert_eq!(
        kinds,
        ["thread.started", "turn.started", "item.completed agent_message", "turn.completed"]
    );
    assert_eq!(events[2]["item"]["text"], "one");
    let usage = &events[3]["usage"];
    for count in ["input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens"]
    {
        assert!(usage[count].is_u64(), "{count}: {usage}");
    }
    // A model that only another vendor has leaves the choice.
    assert_eq!(world.server.requests()[0].json()["model"], "m1");
    let id = events[0]["thread_id"].as_str().unwrap();
    let (_, events) = turn(&world, &["resume", id], "again").await;
    assert_eq!((&events[0]["thread_id"], &events[2]["item"]["text"]), (&json!(id), &json!("two")));
    let said: Vec<_> = world.last_request().into_iter().map(|(_, text)| text).collect();
    assert_eq!(said, ["hi", "one", "again"]);
}

#[tokio::test]
async fn codex_tool_calls_are_items_by_kind() {
    let steps = r#"{"steps":[{"text":"a","status":"done"},{"text":"b","status":"pending"}]}"#;
    let world = World::new([
        calls("bash", r#"{"command":"echo hi"}"#),
        calls("fs_write", r#"{"path":"n.txt","content":"x\n"}"#),
        calls("fs_ls", r#"{"path":"."}"#),
        calls("plan", steps),
        says("done"),
    ])
    .among_files();
    let (run, events) = turn(&world, &[], "work").await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(
        kinds(&events)[2..],
        [
            "item.started command_execution",
            "item.completed command_execution",
            "item.completed file_change",
            "item.started mcp_tool_call",
            "item.completed mcp_tool_call",
            "item.started todo_list",
            "item.completed agent_message",
            "item.completed todo_list",
            "turn.completed",
        ]
    );
    let item = |at: usize| &events[at]["item"];
    assert_eq!(item(2)["id"], item(3)["id"]);
    assert_eq!((&item(3)["exit_code"], &item(3)["aggregated_output"]), (&json!(0), &json!("hi")));
    assert_eq!(item(4)["changes"], json!([{ "path": "n.txt", "kind": "add" }]));
    assert_eq!((&item(5)["server"], &item(5)["tool"]), (&json!("gnoma"), &json!("fs.ls")));
    assert_eq!(
        item(7)["items"],
        json!([{"text": "a", "completed": true}, {"text": "b", "completed": false}])
    );
    assert!(exists(world.project.path(), "n.txt"));
}

#[tokio::test]
async fn codex_sandbox_denial_fails_the_item_and_the_turn_continues() {
    let world = World::new([calls("fs_write", r#"{"path":"n.txt","content":"x"}"#), says("well")]);
    let run = world.pipe(&["exec", "--experimental-json"], "write").await;
    let events = events(&run);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(
        (&events[2]["item"]["status"], &events[3]["item"]["text"]),
        (&json!("failed"), &json!("well"))
    );
    assert!(!exists(world.project.path(), "n.txt"));
}

#[tokio::test]
async fn codex_output_schema_answer_is_the_last_message() {
    let world = World::new([says("Here: {\"a\": 1}"), says("{\"a\":2}")]);
    world.write(
        "s.json",
        r#"{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}"#,
    );
    let (_, events) = turn(&world, &["--output-schema", "s.json"], "which?").await;
    let messages = |events: &[Value]| {
        let items = events.iter().filter(|event| event["item"]["type"] == "agent_message");
        items.map(|event| event["item"]["text"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(messages(&events).last().unwrap(), r#"{"a":1}"#);
    let (_, events) = turn(&world, &["--output-schema", "s.json"], "which?").await;
    assert_eq!(messages(&events), [r#"{"a":2}"#]);
}

#[tokio::test]
async fn codex_failed_turn_ends_with_turn_failed() {
    let world = World::new([]);
    let (run, events) = turn(&world, &[], "hi").await;
    assert_ne!(run.code, Some(0));
    let last = events.last().unwrap();
    assert_eq!(last["type"], "turn.failed");
    assert!(last["error"]["message"].as_str().unwrap().contains("500"), "{last}");
    let (run, events) = turn(&world, &["resume", "nope"], "hi").await;
    assert_eq!((run.code, &events[0]["type"]), (Some(2), &json!("error")), "{run:?}");
    let run = world.run(&["codex", "login"]).await;
    assert!(run.code == Some(2) && run.err.contains("only `exec`"), "{run:?}");
    let run = world.run(&["codex", "--help"]).await;
    assert!(run.code == Some(0) && run.out.contains("codexPathOverride"), "{run:?}");
}
