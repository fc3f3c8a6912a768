//! What runs without asking, and what does not.

use crate::support::{World, calls, exists, says};

#[tokio::test]
async fn call_that_needs_approval_is_denied_without_a_terminal() {
    let world = World::new([
        calls("bash", r#"{"command":"touch made; curl -s 127.0.0.1:9"}"#),
        says("I may not."),
    ]);
    let run = world.run(&["make a file"]).await;
    assert_eq!(run.code, Some(4));
    assert!(!exists(world.project.path(), "made"));
    assert!(run.err.contains("and nobody is there"), "{}", run.err);
    let body = world.server.requests()[1].json();
    let result = body["messages"][3]["content"].as_str().unwrap().to_owned();
    assert!(result.starts_with("permission denied: "), "{result}");
}

#[tokio::test]
async fn permission_modes_decide_what_runs() {
    for (mode, edited, ran) in [
        ("bypass", true, true),
        ("accept_edits", true, false),
        ("acceptEdits", true, false),
        ("auto", false, false),
        ("plan", false, false),
        ("deny", false, false),
    ] {
        let world = World::new([
            calls("fs_write", r#"{"path":"edited","content":"x"}"#),
            calls("bash", r#"{"command":"touch ran; curl -s 127.0.0.1:9"}"#),
            says("ok"),
        ]);
        world.run(&["--permission", mode, "go"]).await;
        let project = world.project.path();
        assert_eq!((exists(project, "edited"), exists(project, "ran")), (edited, ran), "{mode}");
    }
}

#[tokio::test]
async fn commands_do_not_inherit_keys() {
    let world = World::new([calls("bash", r#"{"command":"env > seen"}"#), says("ok")]);
    let mut command = world.command(&["--permission", "bypass", "go"]);
    world.configure("[provider.api_keys]\ntest = \"${WORK_PASS}\"\n");
    command.env("OPENAI_API_KEY", "sk-secret").env("HARMLESS", "yes");
    command.env("WORK_PASS", "sk-secret-too");
    crate::support::finish(command.spawn().unwrap()).await;
    let seen = world.read("seen");
    assert!(seen.contains("HARMLESS=yes") && !seen.contains("sk-secret"), "{seen}");
}
