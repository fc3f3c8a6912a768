//! Tasks by other ways than `gnoma task run`: a prompt, an editor, the page.

use serde_json::json;

use crate::{
    acp::Editor,
    support::{World, says},
};

const TASK: &str = "---\narguments:\n  v: version\n---\n## Say it\nSay $v.\n";

fn world() -> World {
    let world = World::new([says("said")]);
    world.put_home(".config/gnoma/tasks/zed.md", TASK);
    world
}

#[tokio::test]
async fn prompt_that_names_a_task_runs_it_or_says_how() {
    let world = world();
    for line in [&["task", "zed", "v1"][..], &["task", "save", "foo"]] {
        let run = world.run(line).await;
        assert_eq!(run.code, Some(2), "{run:?}");
        assert!(run.err.contains("/task") || run.err.contains("gnoma task run zed v1"), "{run:?}");
    }
    let missing = world.run(&["-p", "/task other v1"]).await;
    assert_eq!(missing.code, Some(2), "{missing:?}");
    assert!(missing.err.contains("there is no task `other`"), "{missing:?}");
    let wrong = world.run(&["-p", "/task zed latest"]).await;
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(world.server.requests().is_empty());
    let run = world.run(&["-p", "/task zed v1"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.err.contains("Task zed is done"), "{run:?}");
    assert!(world.said_by_people().contains("Say v1."));
}

#[tokio::test]
async fn editor_is_offered_tasks_and_hears_how_a_run_ended() {
    let world = world();
    let mut editor = Editor::start(&world).await;
    let session = editor.session(&world).await;
    let list = editor.prompt(&session, "/task").await;
    assert_eq!(editor.answer(list).await["result"]["stopReason"], "end_turn");
    let told = json!(editor.updates()).to_string();
    assert!(told.contains(r#""name":"task""#) && told.contains("/task zed V"), "{told}");
    let wrong = editor.prompt(&session, "/task zed latest").await;
    let answer = editor.answer(wrong).await;
    assert!(answer["error"]["message"].as_str().unwrap().contains("not a version"), "{answer}");
    let run = editor.prompt(&session, "/task zed v1").await;
    assert_eq!(editor.answer(run).await["result"]["stopReason"], "end_turn");
    let told = json!(editor.updates()).to_string();
    assert!(told.contains("said"), "{told}");
    assert_eq!(told.matches("Task zed is done: 1 step").count(), 1, "{told}");
    assert_eq!(world.server.requests().len(), 1);
    editor.end().await;
}
