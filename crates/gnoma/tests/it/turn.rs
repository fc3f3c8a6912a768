//! Turns: what is asked, what is run, what is answered.

use gnoma_core::StopReason;
use gnoma_testkit::{Script, Wire};

use crate::support::{World, calls, says};

#[tokio::test]
async fn command_line_words_are_the_prompt_and_the_answer_goes_to_stdout() {
    let world = World::new([says("Hello there.")]);
    let run = world.run(&["say", "hello"]).await;
    assert_eq!((run.code, run.out.as_str()), (Some(0), "Hello there.\n"), "{run:?}");
    let body = world.server.requests()[0].json();
    assert_eq!(body["model"], "m1");
    assert_eq!(body["messages"][1]["content"], "say hello");
}

#[tokio::test]
async fn stdin_is_the_prompt_or_its_context() {
    let world = World::new([says("a"), says("b")]);
    world.pipe(&[], "just this\n").await;
    world.pipe(&["review"], "a diff\n").await;
    let prompts: Vec<_> = world
        .server
        .requests()
        .iter()
        .map(|request| request.json()["messages"][1]["content"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(prompts[0].trim(), "just this");
    assert_eq!(prompts[1], "review\n\n<stdin>\na diff\n</stdin>");
}

#[tokio::test]
async fn image_mention_in_stdin_attaches_no_file() {
    let world = World::new([says("a")]);
    let run = world.pipe(&["review"], "+ [Image: /etc/hostname]\n").await;
    assert_eq!(run.code, Some(0), "{run:?}");
}

#[tokio::test]
async fn binary_stdin_is_refused() {
    let world = World::new([]);
    let run = world.pipe(&["what is this?"], "\u{7f}ELF\0\0").await;
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.err.contains("standard input is not text"), "{run:?}");
}

#[tokio::test]
async fn file_tools_change_real_files_and_their_results_are_sent() {
    let world = World::new([
        calls("fs_read", r#"{"path":"a.txt"}"#),
        calls("fs_edit", r#"{"path":"a.txt","old_string":"one","new_string":"two"}"#),
        says("Changed."),
    ]);
    world.write("a.txt", "one\n");
    let run = world.run(&["--permission", "accept_edits", "change it"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(world.read("a.txt"), "two\n");
    let requests = world.server.requests();
    let messages = requests[2].json()["messages"].clone();
    let roles: Vec<_> = messages.as_array().unwrap().iter().map(|m| m["role"].clone()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "assistant", "tool"]);
    assert!(messages[3]["content"].as_str().unwrap().contains("one"));
    assert!(run.err.contains("Edit a.txt"), "{}", run.err);
}

#[tokio::test]
async fn results_of_parallel_tool_calls_are_sent_in_call_order() {
    let script = Script::text([""; 0])
        .with_call("c1", "fs_grep", r#"{"pattern":"needle"}"#)
        .with_call("c2", "fs_read", r#"{"path":"a.txt"}"#)
        .with_call("c3", "fs_ls", r#"{"path":"."}"#)
        .with_stop(StopReason::ToolUse);
    let world = World::new([Wire::OpenAi.stream_reply(&script), says("done")]);
    world.write("a.txt", "needle\n");
    world.run(&["look"]).await;
    let body = world.server.requests()[1].json();
    let ids: Vec<_> = body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|message| message["tool_call_id"].as_str())
        .map(str::to_owned)
        .collect();
    assert_eq!(ids, ["c1", "c2", "c3"]);
}

#[tokio::test]
async fn tool_calls_written_as_text_by_small_models_run() {
    let text = "```json\n{\"name\": \"fs.read\", \"arguments\": {\"path\": \"a.txt\"}}\n```";
    let world = World::new([says(text), says("It says hi.")]);
    world.write("a.txt", "hi\n");
    let run = world.run(&["what is in a.txt?"]).await;
    assert_eq!(run.out, "It says hi.\n", "{run:?}");
}

#[tokio::test]
async fn rounds_are_limited_by_max_turns() {
    let world = World::new([
        calls("fs_ls", r#"{"path":"."}"#),
        calls("fs_ls", r#"{"path":".."}"#),
        says("never"),
    ]);
    let run = world.run(&["--max-turns", "2", "loop"]).await;
    assert_eq!(run.code, Some(6));
    assert!(run.err.contains("stopped after 2 model calls"), "{}", run.err);
    assert_eq!(world.server.requests().len(), 2);
}

#[tokio::test]
async fn the_system_prompt_can_be_replaced_and_instructions_are_added() {
    let world = World::new([says("a"), says("b")]);
    world.write("AGENTS.md", "Use tabs.");
    world.run(&["hi"]).await;
    world.run(&["--system", "Be brief.", "hi"]).await;
    let system = |at: usize| {
        let body = world.server.requests()[at].json();
        body["messages"][0]["content"].as_str().unwrap().to_owned()
    };
    assert!(system(0).contains("Use tabs."));
    assert_eq!(system(1), "Be brief.");
}
