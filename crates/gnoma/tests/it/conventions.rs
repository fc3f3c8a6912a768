//! What was measured on the program whose files gnoma reads, fact by fact, over the wires of two other
//! vendors. Judged by what ran and by what the model was sent.

use std::collections::BTreeSet;

use gnoma_core::StopReason;
use gnoma_testkit::{Reply, Script, Wire};
use serde_json::{Value, json};

use crate::{
    extend::world_of,
    support::{Run, World, exists},
};

const WIRES: [(Wire, &str); 2] = [(Wire::Responses, "responses"), (Wire::Google, "google")];

fn calls(wire: Wire, name: &str, arguments: &Value) -> Reply {
    let script = Script::text([""; 0]).call("call_a", name, arguments.to_string());
    wire.stream(&script.stop(StopReason::ToolUse))
}

fn says(wire: Wire, text: &str) -> Reply {
    wire.stream(&Script::text([text]).stop(StopReason::EndTurn))
}

fn command(line: &str) -> Value {
    json!({"type": "command", "command": line})
}

/// What the last request says.
fn last(world: &World) -> String {
    world.server.requests().last().unwrap().json().to_string()
}

async fn run(world: &World, args: &[&str]) -> Run {
    let run = world.run(args).await;
    assert_eq!(run.code, Some(0), "{args:?}: {run:?}");
    run
}

/// Matchers with whether they are for `Bash`, and what each of them runs.
const MATCHERS: [(Option<&str>, bool); 12] = [
    (None, true),
    (Some(""), true),
    (Some("*"), true),
    (Some("Bash"), true),
    (Some("Bash|Write"), true),
    (Some("Write, Bash"), true),
    (Some("Bas"), false),
    (Some("bash"), false),
    (Some("Write"), false),
    (Some("^Ba.*"), true),
    (Some("B.sh"), true),
    (Some("a-b|Ba[r-t]h"), true),
];

fn all_hooks() -> Value {
    let mut before: Vec<Value> = Vec::new();
    for (at, (matcher, _)) in MATCHERS.iter().enumerate() {
        let mut group = json!({"hooks": [command(&format!("echo {at} >> fired.txt"))]});
        if let Some(matcher) = matcher {
            group["matcher"] = json!(matcher);
        }
        before.push(group);
    }
    // None of these blocks.
    for harmless in ["echo '{\"deci'", "echo n0pe1 >&2; exit 1", "no-such-program-here"] {
        before.push(json!({"matcher": "Bash", "hooks": [command(harmless)]}));
    }
    before.push(json!({"hooks": [command("cat > PreToolUse.json")]}));
    let said = r#"cat > PostToolUse.json; echo '{"hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"h3ard"}}'"#;
    let note = |event: &str, more: &str| json!([{"hooks": [command(&format!("cat > {event}.json{more}"))]}]);
    let stop = "; grep -q 'stop_hook_active\":true' Stop.json || { echo g0-on >&2; exit 2; }";
    json!({"hooks": {
        "PreToolUse": before,
        "PostToolUse": [{"hooks": [command("echo unh3ard"), command(said)]}],
        "PostToolUseFailure": note("PostToolUseFailure", ""),
        "UserPromptSubmit": note("UserPromptSubmit", r#"; echo '{"hookSpecificOutput":{"hookEventName":"UserPromptSubmit","additionalContext":"fr0m-prompt"}}'"#),
        "SessionStart": note("SessionStart", "; echo fr0m-start"),
        "SessionEnd": note("SessionEnd", ""),
        "Stop": note("Stop", stop),
        "WorktreeCreate": note("WorktreeCreate", ""),
    }})
}

#[tokio::test]
async fn hooks_run_where_they_match_with_their_facts_and_are_heard_where_they_should_be() {
    for (wire, protocol) in WIRES {
        let world = world_of(
            protocol,
            vec![
                calls(wire, "bash", &json!({"command": "echo hi > made.txt"})),
                calls(wire, "fs_read", &json!({"path": "not-there.txt"})),
                says(wire, "one"),
                says(wire, "two"),
            ],
        );
        world.put_home(".claude/settings.json", &all_hooks().to_string());
        let local = json!({"hooks": {"PreToolUse": [{"matcher": "Read", "hooks": [command("echo local >> fired.txt")]}]}});
        world.put(".claude/settings.local.json", &local.to_string());
        run(&world, &["trust"]).await;
        let said = run(&world, &["--permission", "bypass", "go"]).await;
        assert!(exists(world.project.path(), "made.txt"), "{said:?}");
        let fired = world.read("fired.txt");
        let fired: BTreeSet<&str> = fired.lines().collect();
        for (at, (matcher, fires)) in MATCHERS.iter().enumerate() {
            assert_eq!(fired.contains(&*at.to_string()), *fires, "{matcher:?}");
        }
        assert!(fired.contains("local"), "{fired:?}");
        let sent = last(&world);
        for part in ["h3ard", "g0-on", "fr0m-prompt", "fr0m-start"] {
            assert!(sent.contains(part), "{protocol}: {part} {sent}");
        }
        for part in ["unh3ard", "n0pe1"] {
            assert!(!world.sent().contains(part), "{protocol}: {part}");
        }
        facts(&world);
        // What is no event here is said.
        assert!(said.err.contains("gnoma has no event `WorktreeCreate`"), "{said:?}");
        assert_eq!(world.server.requests().len(), 4);
    }
}

/// Each event's fields.
fn facts(world: &World) {
    let common = ["session_id", "transcript_path", "cwd", "hook_event_name"];
    let all: [(&str, &[&str]); 7] = [
        ("PreToolUse", &["permission_mode", "prompt_id", "tool_name", "tool_input", "tool_use_id"]),
        ("PostToolUse", &["tool_name", "tool_input", "tool_response", "duration_ms"]),
        ("PostToolUseFailure", &["tool_name", "error", "duration_ms"]),
        ("UserPromptSubmit", &["prompt"]),
        ("SessionStart", &["source"]),
        ("SessionEnd", &["reason"]),
        ("Stop", &["stop_hook_active", "last_assistant_message", "background_tasks"]),
    ];
    for (event, fields) in all {
        let seen: Value = serde_json::from_str(&world.read(&format!("{event}.json"))).unwrap();
        for field in common.iter().chain(fields) {
            assert!(!seen[field].is_null(), "{event} has no {field}: {seen}");
        }
        assert_eq!(seen["hook_event_name"], event);
    }
    let seen: Value = serde_json::from_str(&world.read("Stop.json")).unwrap();
    assert_eq!(
        (&seen["stop_hook_active"], &seen["last_assistant_message"]),
        (&json!(true), &json!("two"))
    );
}

#[tokio::test]
async fn texts_are_said_as_their_files_say_and_bodies_wait_until_they_are_used() {
    let texts = [
        ("all.md", "T $ARGUMENTS.", "/all a b", "T a b."),
        ("at.md", "T $0|$1|$2|$ARGUMENTS[0]|$ARGUMENTS[1].", "/at 'a a' b", "T a a|b|$2|a a|b."),
        ("none.md", "T.", "/none a b", "T.\\n\\nARGUMENTS: a b"),
        ("sub/x.md", "---\ndescription: d\nargument-hint: \"[n]\"\n---\nT $0", "/sub:x 7", "T 7"),
        ("shows.md", "!`echo f0und`\nout=!`date` !`echo tw0`", "/shows", "f0und\\nout=!`date` tw0"),
        ("file.md", "See @notes.txt.", "/file", "remember the milk"),
    ];
    for (wire, protocol) in WIRES {
        let replies = (0..texts.len() + 2).map(|_| says(wire, "ok")).collect();
        let world = world_of(protocol, replies);
        for (file, text, _, _) in texts {
            world.put(&format!(".claude/commands/{file}"), text);
        }
        world.put("notes.txt", "remember the milk");
        let skill = |name: &str, more: &str, body: &str| {
            let text = format!("---\nname: {name}\ndescription: about-{name}\n{more}---\n{body}");
            world.put(&format!(".claude/skills/{name}/SKILL.md"), &text);
        };
        skill("open", "", "b0dy of it");
        skill("shut", "disable-model-invocation: true\n", "sh0ut $ARGUMENTS");
        world.put(".claude/skills/broken/SKILL.md", "---\nname: [\nbr0ken");
        world.put(
            ".claude/agents/helper.md",
            "---\nname: helper\ndescription: about-helper\ntools: Read\n---\nag3nt body",
        );
        world.put("CLAUDE.md", "m3mory @more.md\n```\n@not.md\n```\n");
        world.put("more.md", "imp0rted");
        world.put("not.md", "n0t-imported");
        world.put(".claude/rules/r.md", "rul3");
        run(&world, &["trust"]).await;
        let said = run(&world, &["hello"]).await;
        let sent = last(&world);
        for part in ["about-open", "about-helper", "m3mory", "imp0rted", "rul3"] {
            assert!(sent.contains(part), "{protocol}: {part}: {said:?} {sent}");
        }
        for part in ["b0dy", "about-shut", "ag3nt", "n0t-imported", "br0ken"] {
            assert!(!sent.contains(part), "{protocol}: {part}: {sent}");
        }
        run(&world, &["/shut up now"]).await;
        assert!(last(&world).contains("sh0ut up now"), "{}", last(&world));
        for (_, _, line, wanted) in texts {
            run(&world, &["--permission", "bypass", line]).await;
            assert!(last(&world).contains(wanted), "{protocol} {line}: {}", last(&world));
        }
    }
}
