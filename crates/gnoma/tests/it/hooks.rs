//! Hooks, judged by what they did and what the model was sent.

use std::collections::BTreeSet;

use gnoma_core::StopReason;
use gnoma_testkit::{Script, Wire};
use serde_json::{Value, json};

use crate::{
    extend::world_of,
    support::{World, calls, exists, says},
};

/// Claude's settings with hooks `(event, matcher, command)`.
fn settings(hooks: &[(&str, &str, &str)]) -> String {
    let mut all = json!({});
    for (event, matcher, command) in hooks {
        let entry = json!({"matcher": matcher, "hooks": [{"type": "command", "command": command}]});
        match all[event].as_array_mut() {
            Some(entries) => entries.push(entry),
            None => all[event] = json!([entry]),
        }
    }
    json!({ "hooks": all }).to_string()
}

fn world(hooks: &[(&str, &str, &str)], replies: Vec<gnoma_testkit::Reply>) -> World {
    let world = World::new(replies);
    world.put_home(".claude/settings.json", &settings(hooks));
    world
}

fn writes(path: &str) -> gnoma_testkit::Reply {
    calls("fs_write", &json!({"path": path, "content": "x"}).to_string())
}

const EDITS: [&str; 2] = ["--permission", "accept_edits"];

async fn go(world: &World, prompt: &str) -> crate::support::Run {
    world.run(&[EDITS[0], EDITS[1], prompt]).await
}

#[tokio::test]
async fn hook_exit_code_2_blocks_and_its_stderr_reaches_the_model() {
    for (code, blocks) in [(2, true), (1, false), (127, false), (0, false)] {
        let line = format!("echo n0pe >&2; exit {code}");
        let world = world(&[("PreToolUse", "Write", &line)], vec![writes("a.txt"), says("done")]);
        let run = go(&world, "go").await;
        assert_eq!(run.code, Some(0), "{run:?}");
        assert_eq!(exists(world.project.path(), "a.txt"), !blocks, "{code}");
        assert_eq!(world.sent().contains("n0pe"), blocks, "{code}");
        // What fails is shown.
        assert_eq!(run.err.contains("exit code"), code == 1 || code == 127, "{code}: {}", run.err);
    }
}

#[tokio::test]
async fn failing_hook_is_reported_and_blocks_only_if_fail_is_closed() {
    for (fail, blocks) in [("open", false), ("closed", true)] {
        let world = World::new(vec![writes("a.txt"), says("done")]);
        world.configure(&format!(
            "[[hooks]]\nevent = \"pre_tool_use\"\nexec = \"echo Traceback >&2; exit 1\"\nfail = \"{fail}\"\n"
        ));
        let run = go(&world, "go").await;
        assert_eq!(exists(world.project.path(), "a.txt"), !blocks, "{run:?}");
        assert!(run.err.contains("ended with exit code 1: Traceback"), "{run:?}");
    }
}

#[tokio::test]
async fn hook_run_leaves_no_files_in_the_project() {
    const RUNS: usize = 20;
    let world = World::new((0..RUNS).map(|_| says("done"))).among_files();
    world.configure("[[hooks]]\nevent = \"stop\"\nexec = \"true\"\n");
    let names = || -> BTreeSet<_> {
        let entries = std::fs::read_dir(world.project.path()).unwrap();
        entries.map(|entry| entry.unwrap().file_name()).collect()
    };
    let before = names();
    for _ in 0..RUNS {
        let run = go(&world, "go").await;
        assert_eq!((run.code, names()), (Some(0), before.clone()), "{run:?}");
    }
}

#[tokio::test]
async fn hook_input_has_the_fields_that_scripts_read() {
    let log = "cat > seen.json; echo \"$CLAUDE_PROJECT_DIR\" > dir.txt";
    let world = world(&[("PreToolUse", "Edit|Write", log)], vec![writes("a.txt"), says("done")]);
    go(&world, "go").await;
    let seen: Value = serde_json::from_str(&world.read("seen.json")).unwrap();
    assert_eq!(seen["hook_event_name"], "PreToolUse");
    assert_eq!(seen["tool_name"], "Write");
    assert_eq!(seen["tool_input"], json!({"content": "x", "file_path": "a.txt"}));
    assert_eq!(seen["permission_mode"], "acceptEdits");
    let project = world.project.path().canonicalize().unwrap();
    assert_eq!(seen["cwd"], project.to_str().unwrap());
    assert!(seen["session_id"].as_str().is_some_and(|id| !id.is_empty()));
    assert_eq!(world.read("dir.txt").trim(), project.to_str().unwrap());
}

#[tokio::test]
async fn hook_json_deny_beats_allow_on_other_wires() {
    let allow = r#"echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}'"#;
    let deny = r#"echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"n0pe"}}'"#;
    let old = r#"echo '{"decision":"block","reason":"n0pe"}'"#;
    for (wire, protocol) in [(Wire::Anthropic, "anthropic"), (Wire::Google, "google")] {
        for second in [deny, old] {
            let script = Script::text([""; 0]).with_call(
                "c",
                "fs_write",
                r#"{"path":"a.txt","content":"x"}"#,
            );
            let replies = vec![
                wire.stream_reply(&script.with_stop(StopReason::ToolUse)),
                wire.stream_reply(&Script::text(["done"]).with_stop(StopReason::EndTurn)),
            ];
            let world = world_of(protocol, replies);
            let hooks = [("PreToolUse", "*", allow), ("PreToolUse", "^Wri", second)];
            world.put_home(".claude/settings.json", &settings(&hooks));
            let run = go(&world, "go").await;
            assert!(!exists(world.project.path(), "a.txt"), "{run:?}");
            assert!(world.sent().contains("n0pe"), "{run:?}");
        }
    }
}

#[tokio::test]
async fn a_denial_in_utf16_counts() {
    let deny = r#"{"decision": "block", "reason": "n0pe"}"#;
    for text in [format!("\u{feff}{deny}\r\n"), deny.to_owned()] {
        let bytes = text.encode_utf16().flat_map(u16::to_le_bytes);
        let escaped: String = bytes.map(|byte| format!("\\{byte:03o}")).collect();
        let line = format!("printf '{escaped}'");
        let world = world(&[("PreToolUse", "Write", &line)], vec![writes("a.txt"), says("done")]);
        let run = go(&world, "go").await;
        assert!(!exists(world.project.path(), "a.txt"), "{run:?}");
        assert!(world.sent().contains("n0pe"), "{run:?}");
    }
}

#[tokio::test]
async fn hook_allow_never_widens_permissions() {
    let allow = r#"echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}'"#;
    let world = world(&[("PreToolUse", "", allow)], vec![writes("a.txt"), says("done")]);
    world.run(&["--permission", "deny", "go"]).await;
    assert!(!exists(world.project.path(), "a.txt"));
}

#[tokio::test]
async fn changed_arguments_are_judged_again() {
    let to = |path: &str| {
        format!(
            r#"echo '{{"hookSpecificOutput":{{"hookEventName":"PreToolUse","updatedInput":{{"file_path":"{path}","content":"y"}}}}}}'"#
        )
    };
    let world1 =
        world(&[("PreToolUse", "Write", &to("b.txt"))], vec![writes("a.txt"), says("done")]);
    go(&world1, "go").await;
    assert_eq!(world1.read("b.txt"), "y");
    assert!(!exists(world1.project.path(), "a.txt"));
    let outside = tempfile::tempdir().unwrap();
    let path = outside.path().join("c.txt");
    let world2 = world(
        &[("PreToolUse", "Write", &to(path.to_str().unwrap()))],
        vec![writes("a.txt"), says("done")],
    );
    go(&world2, "go").await;
    assert!(!path.exists() && !exists(world2.project.path(), "a.txt"));
}

#[tokio::test]
async fn post_tool_use_hook_adds_to_or_replaces_the_tool_result() {
    let world1 = world(
        &[
            ("PostToolUse", "Write", "echo lint: b4d >&2; exit 2"),
            ("PostToolUse", "Write", "echo unh3ard"),
        ],
        vec![writes("a.txt"), says("done")],
    );
    go(&world1, "go").await;
    assert!(exists(world1.project.path(), "a.txt"));
    assert!(world1.sent().contains("lint: b4d") && !world1.sent().contains("unh3ard"));
    let output = r#"echo '{"hookSpecificOutput":{"hookEventName":"PostToolUse","updatedToolOutput":"inst3ad","additionalContext":"m0re"}}'"#;
    let world2 = world(
        &[("PostToolUse", "Read", output)],
        vec![calls("fs_read", r#"{"path":"a.txt"}"#), says("done")],
    );
    world2.write("a.txt", "or1ginal");
    go(&world2, "go").await;
    let sent = world2.sent();
    assert!(
        sent.contains("inst3ad") && sent.contains("m0re") && !sent.contains("or1ginal"),
        "{sent}"
    );
}

#[tokio::test]
async fn user_prompt_submit_hook_adds_context_or_blocks_the_prompt() {
    let world1 = world(
        &[
            ("SessionStart", "startup", "echo fr0m-start"),
            ("UserPromptSubmit", "", "echo fr0m-prompt"),
        ],
        vec![says("done")],
    );
    go(&world1, "hello").await;
    let sent = world1.sent();
    assert!(sent.contains("fr0m-start") && sent.contains("fr0m-prompt") && sent.contains("hello"));
    let world2 = world(
        &[("UserPromptSubmit", "", "grep -q s3cret && { echo no >&2; exit 2; }; exit 0")],
        vec![says("done")],
    );
    let run = go(&world2, "a s3cret").await;
    assert_eq!((run.code, world2.server.requests().len()), (Some(1), 0), "{run:?}");
    assert!(run.err.contains("not sent to the model: no"), "{run:?}");
    let run = world2.run(&["--output-format", "json", "a s3cret"]).await;
    let result: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!((run.code, &result["is_error"]), (Some(1), &json!(true)), "{run:?}");
    assert_eq!(result["subtype"], "error_during_execution");
    assert_eq!(result["error"], "not sent to the model: no");
    go(&world2, "fine").await;
    assert_eq!(world2.server.requests().len(), 1);
}

#[tokio::test]
async fn stop_hook_continues_the_turn() {
    let line = "cat > stop.json; grep -q '\"stop_hook_active\":true' stop.json || { echo d0-more >&2; exit 2; }";
    let world = world(&[("Stop", "", line)], vec![says("one"), says("two")]);
    let run = go(&world, "go").await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(world.server.requests().len(), 2);
    assert!(world.said().contains("d0-more"), "{}", world.said());
    let seen: Value = serde_json::from_str(&world.read("stop.json")).unwrap();
    assert_eq!(seen["last_assistant_message"], "two");
}

#[tokio::test]
async fn continue_false_ends_the_turn_after_the_call_has_run() {
    let line = r#"echo '{"continue":false,"stopReason":"en0ugh"}'"#;
    let world = world(&[("PreToolUse", "Write", line)], vec![writes("a.txt"), says("never")]);
    let run = go(&world, "go").await;
    assert!(exists(world.project.path(), "a.txt"));
    assert_eq!(world.server.requests().len(), 1);
    assert!(run.err.contains("en0ugh"), "{run:?}");
}

#[tokio::test]
async fn project_hooks_need_trust_and_a_changed_script_revokes_it() {
    let world = World::new((0..4).map(|_| says("a")));
    let hook = "sh $CLAUDE_PROJECT_DIR/scripts/hook.sh";
    world.put(".claude/settings.json", &settings(&[("SessionStart", "", hook)]));
    world.put("scripts/hook.sh", "echo ran >> ran.txt");
    let run = world.run(&["hi"]).await;
    assert!(run.err.contains("has hooks (1)") && run.err.contains("gnoma trust"), "{run:?}");
    assert!(!exists(world.project.path(), "ran.txt"));
    let trusted = world.run(&["trust", "--yes"]).await;
    assert!(trusted.out.contains("scripts/hook.sh"), "{trusted:?}");
    let run = world.run(&["hi"]).await;
    assert_eq!(world.read("ran.txt"), "ran\n", "{run:?}");
    world.put("scripts/hook.sh", "echo run >> ran.txt");
    world.run(&["hi"]).await;
    assert_eq!(world.read("ran.txt"), "ran\n");
}

#[tokio::test]
async fn trust_lists_pinned_and_unpinned_files() {
    let world = World::new([]);
    let long = format!("sh $SCRIPT {}", "and so on ".repeat(100));
    let events = [
        ("SessionStart", "", "sh ./hooks/*.sh"),
        ("PreToolUse", "", "python3 -m tools.check"),
        ("PostToolUse", "", long.as_str()),
    ];
    world.put(".claude/settings.json", &settings(&events));
    for file in ["hooks/a.sh", "tools/check.py", "tools/other.py", "hooks/sub/b.sh"] {
        world.put(file, "true");
    }
    let trusted = world.run(&["trust", "--yes"]).await;
    let (pinned, open) =
        trusted.out.split_once("which trust does not cover").expect("something is not pinned");
    for file in ["hooks/a.sh", "tools/check.py", ".claude/settings.json"] {
        assert!(pinned.contains(&format!("  {file}\n")), "{file}: {trusted:?}");
    }
    assert!(!pinned.contains("other.py") && !pinned.contains("sub/b.sh"), "{trusted:?}");
    let line = open.lines().nth(1).unwrap();
    assert_eq!(line.trim_end(), format!("  {}", long.trim_end()), "what would run is shown whole");
    assert!(!open.contains("python3"), "{open}");
}

#[tokio::test]
async fn gnoma_hooks_run_and_fail_closed_where_configured() {
    let world = World::new([
        writes("a.txt"),
        says("x"),
        writes("b.txt"),
        says("x"),
        writes("c.txt"),
        says("x"),
    ]);
    let hook = |more: &str| {
        format!(
            "[[hooks]]\nname = \"mine\"\nevent = \"pre_tool_use\"\ntool_pattern = \"fs.*\"\n{more}\n"
        )
    };
    world.configure(&hook("exec = \"exit 2\""));
    go(&world, "go").await;
    assert!(!exists(world.project.path(), "a.txt"));
    world.configure(&hook("exec = \"no-such-program\"\nfail = \"closed\""));
    let run = go(&world, "go").await;
    assert!(!exists(world.project.path(), "b.txt") && run.err.contains("`mine`"), "{run:?}");
    world.configure(&hook("exec = \"echo '{\\\"action\\\":\\\"allow\\\",\\\"transformed\\\":{\\\"path\\\":\\\"d.txt\\\",\\\"content\\\":\\\"t\\\"}}'\""));
    let run = go(&world, "go").await;
    assert!(exists(world.project.path(), "d.txt"), "{run:?}");
}

#[tokio::test]
async fn hook_timeout_ends_the_hook_and_does_not_block() {
    let world = World::new([writes("a.txt"), says("done")]);
    let entry = json!({"type": "command", "command": "sleep 30", "timeout": 0.3});
    let hooks = json!({"hooks": {"PreToolUse": [{"hooks": [entry]}], "Nonsense": [{"hooks": []}]}});
    world.put_home(".claude/settings.json", &hooks.to_string());
    let run = go(&world, "go").await;
    assert!(exists(world.project.path(), "a.txt") && run.err.contains("took longer"), "{run:?}");
    assert!(run.err.contains("no event `Nonsense`"), "{run:?}");
}

#[tokio::test]
async fn async_hook_finishes_its_work_without_delaying_the_turn() {
    let world = World::new([writes("a.txt"), says("done")]);
    let entry =
        json!({"type": "command", "command": "sleep 1; echo l4te > late.txt", "async": true});
    let hooks = json!({"hooks": {"PreToolUse": [{"hooks": [entry]}]}});
    world.put_home(".claude/settings.json", &hooks.to_string());
    let run = go(&world, "go").await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(world.read("late.txt"), "l4te\n");
}

#[tokio::test]
async fn hook_that_answers_async_continues_in_the_background() {
    let line = r#"echo '{"async": true}'; sleep 2; cat > /dev/null; echo l4te > late.txt; echo n0pe >&2; exit 2"#;
    let world = world(
        &[("PreToolUse", "", line), ("PostToolUse", "", "test -e late.txt || echo > early.txt")],
        vec![writes("a.txt"), says("done")],
    );
    let run = go(&world, "go").await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(exists(world.project.path(), "a.txt") && exists(world.project.path(), "early.txt"));
    assert_eq!(world.read("late.txt"), "l4te\n");
    assert!(!world.sent().contains("n0pe"));
}

#[tokio::test]
async fn async_hook_ends_after_its_async_timeout() {
    let line = r#"echo '{"async": true, "asyncTimeout": 300}'; sleep 20; echo l4te > late.txt"#;
    let world = world(&[("PreToolUse", "", line)], vec![writes("a.txt"), says("done")]);
    let began = std::time::Instant::now();
    let run = go(&world, "go").await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(began.elapsed() < std::time::Duration::from_secs(20), "{run:?}");
    assert!(!exists(world.project.path(), "late.txt"));
}

/// A hook of this kind before a file is written, in Claude's settings.
fn asks(kind: &str, more: &Value, replies: Vec<gnoma_testkit::Reply>) -> World {
    let world = World::new(replies);
    let mut entry =
        json!({"type": kind, "prompt": "Files may only be written in src.", "timeout": 20});
    entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let hooks = json!({"hooks": {"PreToolUse": [{"matcher": "Write", "hooks": [entry]}]}});
    world.put_home(".claude/settings.json", &hooks.to_string());
    world
}

#[tokio::test]
async fn prompt_hook_asks_a_model_whether_its_condition_holds() {
    let no = r#"Well. {"ok": false, "reason": "n0t-there"}"#;
    for (answer, runs, shown) in [
        (r#"{"ok": true}"#, true, ""),
        (no, false, ""),
        ("I do not know", true, "was not answered with"),
    ] {
        let replies = vec![writes("a.txt"), says(answer), says("done")];
        let world = asks("prompt", &json!({}), replies);
        let run = go(&world, "go").await;
        assert_eq!(exists(world.project.path(), "a.txt"), runs, "{answer}: {run:?}");
        assert!(run.err.contains(shown), "{answer}: {run:?}");
        assert_eq!(world.said().contains("n0t-there"), !runs, "{answer}");
        let asked = world.server.requests()[1].json();
        assert!(asked["tools"].as_array().is_none_or(Vec::is_empty), "{asked}");
        let asked = asked.to_string();
        assert!(asked.contains("only be written in src") && asked.contains("file_path"), "{asked}");
    }
}

#[tokio::test]
async fn prompt_hook_uses_the_small_model_and_reports_an_unknown_one() {
    let roles =
        "[provider.models]\ntest = [\"m1\", \"tiny\"]\n[router.roles]\nsmall = \"test/tiny\"\n";
    for (more, wanted) in [(json!({}), Some("tiny")), (json!({"model": "nobody"}), None)] {
        let replies = vec![writes("a.txt"), says(r#"{"ok": true}"#), says("done")];
        let world = asks("prompt", &more, replies);
        world.configure(roles);
        let run = world.run(&["--permission", "accept_edits", "--model", "m1", "go"]).await;
        let models: Vec<_> =
            world.server.requests().iter().map(|it| it.json()["model"].clone()).collect();
        assert_eq!(models.iter().any(|it| it == "tiny"), wanted.is_some(), "{models:?} {run:?}");
        assert_eq!(run.err.contains("`nobody` is unavailable"), wanted.is_none(), "{run:?}");
    }
}

#[tokio::test]
async fn a_sub_agent_of_a_hook_reads_files_and_nothing_else() {
    let looks = calls("fs_read", r#"{"path":"rules.txt"}"#);
    let no = says(r#"{"ok": false, "reason": "the rules say n0"}"#);
    let world = asks("agent", &json!({}), vec![writes("a.txt"), looks, no, says("done")]);
    world.write("rules.txt", "nobody wr1tes");
    let run = go(&world, "go").await;
    assert!(!exists(world.project.path(), "a.txt") && world.said().contains("say n0"), "{run:?}");
    let asked = world.server.requests()[2].json();
    let names: Vec<_> = asked["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["function"]["name"].clone())
        .collect();
    assert!(names.iter().all(|it| it.as_str().unwrap().starts_with("fs_")), "{names:?}");
    assert!(!names.iter().any(|it| it == "fs_write") && asked.to_string().contains("wr1tes"));
}

#[tokio::test]
async fn http_hook_posts_redacted_input_and_its_answer_applies() {
    let deny = r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"n0pe"}}"#;
    let listener = gnoma_testkit::Server::start_with_replies([
        gnoma_testkit::Reply::json(200, deny),
        gnoma_testkit::Reply::json(500, "{}"),
    ])
    .unwrap();
    let secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let write = |path: &str| {
        calls("fs_write", &json!({"path": path, "content": format!("key {secret}")}).to_string())
    };
    let more = json!({
        "url": format!("{}/hook", listener.url()), "headers": {"X-Token": "Bearer ${HOOK_TOKEN} $HOME"},
        "allowedEnvVars": ["HOOK_TOKEN"],
    });
    let world = asks("http", &more, vec![write("a.txt"), write("b.txt"), says("done")]);
    let mut command = world.command(&["--permission", "accept_edits", "go"]);
    let run = crate::support::finish(command.env("HOOK_TOKEN", "t0ken").spawn().unwrap()).await;
    assert!(!exists(world.project.path(), "a.txt") && world.sent().contains("n0pe"), "{run:?}");
    // What fails is shown and does not block.
    assert!(exists(world.project.path(), "b.txt") && run.err.contains("status 500"), "{run:?}");
    let asked = listener.requests();
    assert_eq!(asked[0].header("x-token"), Some("Bearer t0ken $HOME"));
    let facts = asked[0].json();
    assert_eq!(
        (&facts["tool_name"], &facts["tool_input"]["file_path"]),
        (&json!("Write"), &json!("a.txt"))
    );
    assert!(!facts.to_string().contains(secret), "{facts}");
    let world = asks("http", &more, vec![writes("a.txt"), says("done")]);
    world.configure("[sandbox]\nnetwork = \"never\"\n");
    let run = go(&world, "go").await;
    assert!(run.err.contains("was not sent") && listener.requests().len() == 2, "{run:?}");
}

#[tokio::test]
async fn gnoma_prompt_hooks_run_and_unsupported_ones_are_reported() {
    let world =
        World::new([writes("a.txt"), says(r#"{"ok": false, "reason": "n0"}"#), says("done")]);
    let hook = |event: &str, kind: &str, exec: &str| {
        format!("[[hooks]]\nevent = \"{event}\"\ntype = \"{kind}\"\nexec = \"{exec}\"\n")
    };
    let hooks = [
        hook("pre_tool_use", "prompt", "Is it good?"),
        hook("session_end", "prompt", "Was it good?"),
        hook("stop", "http", "ftp://x"),
    ];
    world.configure(&hooks.concat());
    let run = go(&world, "go").await;
    assert!(!exists(world.project.path(), "a.txt"), "{run:?}");
    for part in ["once the session has ended", "not an http address"] {
        assert!(run.err.contains(part), "{part}: {run:?}");
    }
}

/// What a no-op hook before each call adds to it, where a model takes a moment for each answer. Prints it
/// and asserts nothing:
///
///     cargo test -p gnoma --test it -- --ignored --nocapture a_hook_that_does_nothing
#[tokio::test]
#[ignore = "a measurement: it prints and asserts nothing"]
async fn a_hook_that_does_nothing_costs_little() {
    const CALLS: u32 = 20;
    for thinking in [0, 300] {
        let mut took = Vec::new();
        for hooks in [&[][..], &[("PreToolUse", "", "exit 0")], &[]] {
            let wait = std::time::Duration::from_millis(thinking);
            let read =
                |at: u32| calls("fs_read", &json!({"path": format!("{at}.txt")}).to_string());
            let replies =
                (0..CALLS).map(read).chain([says("done")]).map(|reply| reply.with_delay(wait));
            let world = world(hooks, replies.collect());
            (0..CALLS).for_each(|at| world.write(&format!("{at}.txt"), "x"));
            let since = std::time::Instant::now();
            let run = go(&world, "go").await;
            assert_eq!(world.server.requests().len(), CALLS as usize + 1, "{run:?}");
            took.push(since.elapsed());
        }
        let added = took[1].saturating_sub(took[0].min(took[2])) / CALLS;
        println!("thinking {thinking} ms: a no-op hook adds {added:?} to a call ({took:?})");
    }
}

#[tokio::test]
async fn hook_input_names_the_transcript_and_the_prompt() {
    let copy = "cat > seen.json; cp \"$(sed -n 's/.*\"transcript_path\":\"\\([^\"]*\\)\".*/\\1/p' seen.json)\" t.jsonl";
    let world = world(&[("Stop", "", copy)], vec![writes("a.txt"), says("all d0ne")]);
    go(&world, "do the th1ng").await;
    let seen: Value = serde_json::from_str(&world.read("seen.json")).unwrap();
    assert!(seen["prompt_id"].as_str().is_some_and(|id| !id.is_empty()), "{seen}");
    let text = world.read("t.jsonl");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["message"]["content"], "do the th1ng", "{text}");
    assert_eq!(lines[1]["message"]["content"][0]["name"], "Write", "{text}");
    assert_eq!(lines.last().unwrap()["message"]["content"][0]["text"], "all d0ne", "{text}");
    assert!(!std::path::Path::new(seen["transcript_path"].as_str().unwrap()).exists());
}
