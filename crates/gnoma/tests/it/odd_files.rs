//! Files as people have them: in the home, with names that no keyboard types, with marks that no model sees; JSON and
//! YAML as people write them.

use std::{fs, process::Stdio, time::Duration};

use gnoma_core::StopReason;
use gnoma_testkit::{Reply, Script, Wire};
use serde_json::{Value, json};

use crate::support::{World, calls, exists, finish, says};

const BYPASS: [&str; 2] = ["--permission", "bypass"];

fn call(name: &str, arguments: &Value) -> Reply {
    calls(name, &arguments.to_string())
}

/// What the tools answered in the last request.
fn results(world: &World) -> Vec<String> {
    let messages = world.last_request().into_iter();
    messages.filter(|(role, _)| role == "tool").map(|(_, text)| text).collect()
}

#[tokio::test]
async fn tilde_and_home_variable_in_paths_mean_the_home_folder() {
    let write = |path: &str| call("fs_write", &json!({"path": path, "content": "1"}));
    let world =
        World::new([write("~/x.txt"), write("$HOME/y.txt"), write("~nobody/z.txt"), says("done")]);
    let run = world.run(&["--permission", "accept_edits", "go"]).await;
    let results = results(&world);
    assert!(
        results[0].contains("~/x.txt") && results[0].contains("outside the workspace"),
        "{results:?}"
    );
    assert!(
        results[1].contains("y.txt") && results[1].contains("outside the workspace"),
        "{results:?}"
    );
    assert!(results[2].contains("`~nobody` is somebody else's home"), "{results:?}");
    for name in ["~", "$HOME", "~nobody"] {
        assert!(!exists(world.project.path(), name), "{name}: {run:?}");
    }
    let folder = tempfile::tempdir().unwrap();
    let address = format!("file://{}/y%20z.txt", folder.path().display());
    let read = call("fs_read", &json!({"path": "~/notes.txt"}));
    let world = World::new([write("~/x.txt"), write(&address), read, says("done")]);
    world.put_home("notes.txt", "remember the milk");
    let run = world.run(&[BYPASS[0], BYPASS[1], "--confirm-bypass", "go"]).await;
    assert!(exists(world.home.path(), "x.txt") && exists(folder.path(), "y z.txt"), "{run:?}");
    assert!(world.said().contains("remember the milk"), "{run:?}");
    assert!(!exists(world.project.path(), "file:"));
}

#[tokio::test]
async fn file_with_unicode_spaces_in_its_name_is_found_by_a_typed_name() {
    let world = World::new([
        call("fs_read", &json!({"path": "Shot 3.04 PM.txt"})),
        call(
            "fs_edit",
            &json!({"path": "Shot 3.04 PM.txt", "old_string": "hello", "new_string": "bye"}),
        ),
        call("fs_grep", &json!({"pattern": "bye", "path": "Shot 3.04 PM.txt"})),
        call("fs_glob", &json!({"pattern": "Shot * PM.txt"})),
        call("fs_write", &json!({"path": "Shot 3.04 PM.txt", "content": "new\n"})),
        says("done"),
    ]);
    let name = "Shot 3.04\u{202f}PM.txt";
    world.put(name, "hello\n");
    world.run(&[BYPASS[0], BYPASS[1], "go"]).await;
    let results = results(&world);
    assert!(results[0].contains("hello") && results[2].contains("bye"), "{results:?}");
    assert!(results[3].contains(name), "{results:?}");
    assert_eq!(world.read(name), "new\n");
    let names: Vec<_> = fs::read_dir(world.project.path()).unwrap().flatten().collect();
    assert!(!names.iter().any(|entry| entry.file_name() == "Shot 3.04 PM.txt"), "{names:?}");
}

#[tokio::test]
async fn a_byte_order_mark_is_kept_and_is_no_disguise() {
    let world = World::new([
        call("fs_read", &json!({"path": "a.txt"})),
        call("fs_edit", &json!({"path": "a.txt", "old_string": "hello", "new_string": "bye"})),
        call("fs_write", &json!({"path": "a.txt", "content": "new\nworld\n"})),
        call("bash", &json!({"command": "cat a.txt a.txt; git diff --no-index /dev/null a.txt"})),
        says("done"),
    ]);
    world.put("a.txt", "\u{feff}hello\r\nworld\r\n");
    let run = world.run(&[BYPASS[0], BYPASS[1], "go"]).await;
    assert_eq!(world.read("a.txt"), "\u{feff}new\r\nworld\r\n");
    let results = results(&world);
    assert!(results[1].contains("kept: byte order mark, CRLF line ends"), "{results:?}");
    assert!(results[2].contains("kept: byte order mark, CRLF line ends"), "{results:?}");
    assert!(!run.err.contains("disguise"), "{run:?}");
}

#[tokio::test]
async fn finished_tool_call_keeps_its_result_after_a_kill() {
    let script = Script::text([""; 0])
        .with_call("a", "bash", r#"{"command":"echo 0ne"}"#)
        .with_call("b", "bash", r#"{"command":"echo > begun; sleep 30"}"#)
        .with_call("c", "bash", r#"{"command":"echo three"}"#);
    let world = World::new([
        Wire::OpenAi.stream_reply(&script.with_stop(StopReason::ToolUse)),
        says("I see."),
    ]);
    let mut command = world.command(&[BYPASS[0], BYPASS[1], "go"]);
    let mut child = command.stdout(Stdio::null()).spawn().unwrap();
    let begun = async {
        while !exists(world.project.path(), "begun") {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), begun).await.unwrap();
    child.start_kill().unwrap();
    finish(child).await;
    let run = world.run(&["--continue", "and now?"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    let results = results(&world);
    assert_eq!(results[0], "0ne");
    assert!(results[1].contains("is unknown"), "{results:?}");
    assert!(results[2].contains("did not run"), "{results:?}");
    assert!(run.err.contains("while a call of this session was running"), "{run:?}");
}

#[tokio::test]
async fn json_and_yaml_that_people_write_are_read() {
    let world = World::new([call("bash", &json!({"command": "echo r4n"})), says("done")]);
    let deny = r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"n0"}}"#;
    let command = format!("echo loading; echo '{deny}'");
    let hooks = json!({"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": command}]}]});
    let settings = format!("\u{feff}{{\n  // mine\n  \"hooks\": {hooks}, /* last */\n}}\n");
    world.put_home(".claude/settings.json", &settings);
    world.put_home(
        ".claude/skills/a/SKILL.md",
        "---\nname: a\ndescription:\n  Begins below: so\n---\nB\n",
    );
    world.put_home(".claude/skills/b/SKILL.md", "---\nname: b\ndescription: No: end\n\n# Title\n");
    world.put_home(".claude/skills/c/SKILL.md", "# no fields\n");
    world.put_home(
        ".claude/commands/d.md",
        "---\nargument-hint: [one] [two]\nother: [\n---\nText\n",
    );
    let run = world.run(&[BYPASS[0], BYPASS[1], "go"]).await;
    assert!(results(&world)[0].contains("n0") && !world.sent().contains("r4n\""), "{run:?}");
    assert!(run.err.contains("Print the JSON alone"), "{run:?}");
    let sent = world.sent();
    assert!(sent.contains("Begins below: so") && sent.contains("No: end"), "{run:?}");
    assert!(run.err.contains("c/SKILL.md"), "{run:?}");
    let run = world.run(&["/c now"]).await;
    assert!(run.code == Some(2) && run.err.contains("`/c` was left out: "), "{run:?}");
}
