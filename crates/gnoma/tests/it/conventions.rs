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
    let script = Script::text([""; 0]).with_call("call_a", name, arguments.to_string());
    wire.stream_reply(&script.with_stop(StopReason::ToolUse))
}

fn says(wire: Wire, text: &str) -> Reply {
    wire.stream_reply(&Script::text([text]).with_stop(StopReason::EndTurn))
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
async fn claude_hooks_run_for_matching_events_with_their_input() {
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
        run(&world, &["trust", "--yes"]).await;
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
        (
            "PreToolUse",
            &[
                "permission_mode",
                "prompt_id",
                "tool_name",
                "tool_input",
                "tool_use_id",
                "effort",
                "model",
            ],
        ),
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
async fn custom_commands_expand_arguments_and_skill_bodies_load_only_on_use() {
    let texts = [
        ("all.md", "T $ARGUMENTS.", "/all a b", "T a b."),
        ("at.md", "T $0|$1|$2|$ARGUMENTS[0]|$ARGUMENTS[1].", "/at 'a a' b", "T a a|b|$2|a a|b."),
        ("none.md", "T.", "/none a b", "T.\\n\\nARGUMENTS: a b"),
        ("sub/x.md", "---\ndescription: d\nargument-hint: \"[n]\"\n---\nT $0", "/sub:x 7", "T 7"),
        ("shows.md", "!`echo f0und`\nout=!`date` !`echo tw0`", "/shows", "f0und\\nout=!`date` tw0"),
        ("file.md", "See @notes.txt.", "/file", "remember the milk"),
        (
            "named.md",
            "---\narguments: [issue, by]\n---\nT $issue|$by|$issues|$1.",
            "/named 7 'a a'",
            "T 7|a a|$issues|a a.",
        ),
        ("block.md", "T\n```!\necho f0r\necho b0th\n```\nend", "/block", "T\\nf0r\\nb0th\\nend"),
    ];
    for (wire, protocol) in WIRES {
        let replies = (0..texts.len() + 3).map(|_| says(wire, "ok")).collect();
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
        skill("where", "", "in ${CLAUDE_SKILL_DIR} of ${CLAUDE_SESSION_ID}, $ARGUMENTS");
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
        run(&world, &["trust", "--yes"]).await;
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
        run(&world, &["/where n0w"]).await;
        let folder = world.project.path().canonicalize().unwrap();
        let folder = format!("in {} of ", folder.join(".claude/skills/where").display());
        let sent = last(&world);
        let rest = sent.split_once(&folder).unwrap_or_else(|| panic!("{folder}: {sent}")).1;
        assert!(!rest.starts_with('$') && rest.contains(", n0w"), "{rest}");
        for (_, _, line, wanted) in texts {
            run(&world, &["--permission", "bypass", line]).await;
            assert!(last(&world).contains(wanted), "{protocol} {line}: {}", last(&world));
        }
    }
}

/// Claude's settings with hooks of these events, each of which writes its facts to a file of its name.
fn noted(events: &[&str]) -> String {
    let note = |event: &&str| {
        let line = format!("cat > {event}.json");
        ((*event).to_owned(), json!([{"hooks": [command(&line)]}]))
    };
    let hooks: serde_json::Map<String, Value> = events.iter().map(note).collect();
    json!({ "hooks": hooks }).to_string()
}

fn facts_of(world: &World, event: &str) -> Value {
    serde_json::from_str(&world.read(&format!("{event}.json"))).unwrap()
}

#[tokio::test]
async fn hooks_know_the_sub_agent_that_they_run_in() {
    for (wire, protocol) in WIRES {
        let spawn = json!({"tasks": [{"task": "look", "name": "one", "agent": "helper"}]});
        let replies = vec![
            calls(wire, "elf_spawn", &spawn),
            calls(wire, "bash", &json!({"command": "true"})),
            says(wire, "looked"),
            says(wire, "done"),
        ];
        let world = world_of(protocol, replies);
        let text = "---\nname: helper\ndescription: helps\ntools: Bash\n---\nag3nt body";
        world.put_home(".claude/agents/helper.md", text);
        let events = ["SubagentStart", "SubagentStop", "PreToolUse", "SessionEnd"];
        let mut settings: Value = serde_json::from_str(&noted(&events)).unwrap();
        settings["hooks"]["PreToolUse"][0]["matcher"] = json!("Bash");
        settings["hooks"]["SubagentStart"][0]["matcher"] = json!("helper");
        world.put_home(".claude/settings.json", &settings.to_string());
        run(&world, &["--permission", "bypass", "go"]).await;
        let inside = facts_of(&world, "PreToolUse");
        let (begin, end) = (facts_of(&world, "SubagentStart"), facts_of(&world, "SubagentStop"));
        let id = inside["agent_id"].as_str().unwrap();
        assert!(!id.is_empty());
        for seen in [&inside, &begin, &end] {
            assert_eq!((&seen["agent_id"], &seen["agent_type"]), (&json!(id), &json!("helper")));
            assert_eq!(seen["session_id"], begin["session_id"], "{protocol}");
            assert_ne!(seen["session_id"], id);
        }
        assert_eq!(inside["effort"], json!({"level": "high"}));
        assert!(inside["model"].as_str().is_some_and(|model| !model.is_empty()), "{inside}");
        assert_eq!(end["last_assistant_message"], "looked");
    }
}

#[tokio::test]
async fn hooks_of_codex_run_from_its_settings_unless_they_are_switched_off() {
    let hook = |file: &str| {
        format!(
            "[[hooks.PreToolUse]]\nmatcher = \"^Bash$\"\n[[hooks.PreToolUse.hooks]]\ntype = \"command\"\ncommand = \"cat > {file}\"\n"
        )
    };
    for (wire, protocol) in WIRES {
        let turn = || [calls(wire, "bash", &json!({"command": "true"})), says(wire, "done")];
        let world = world_of(protocol, [turn(), turn(), turn()].into_iter().flatten().collect());
        let home = |more: &str| {
            let text = format!("model = \"x\"\n{}{}{more}", hook("one.json"), hook("two.json"));
            world.put_home(".codex/config.toml", &text);
        };
        // A project switches off nothing of the person's.
        let own = world.home.path().join(".codex/config.toml");
        let state = |at: &str| {
            format!("[hooks.state.\"{}:pre_tool_use:{at}\"]\nenabled = false\n", own.display())
        };
        world.put(".codex/config.toml", &(hook("project.json") + &state("0:0")));
        home(&state("1:0"));
        let said = run(&world, &["--permission", "bypass", "go"]).await;
        assert!(said.err.contains("do not run until you trust it"), "{said:?}");
        let there = |name: &str| exists(world.project.path(), name);
        assert!(there("one.json") && !there("two.json") && !there("project.json"), "{said:?}");
        let seen: Value = serde_json::from_str(&world.read("one.json")).unwrap();
        assert_eq!((&seen["tool_name"], &seen["turn_id"]), (&json!("Bash"), &seen["prompt_id"]));
        run(&world, &["trust", "--yes"]).await;
        run(&world, &["--permission", "bypass", "go"]).await;
        assert!(there("project.json"));
        let listed = run(&world, &["extensions"]).await.out;
        assert!(listed.contains("a hook for PreToolUse is turned off"), "{listed}");
        for name in ["one.json", "project.json"] {
            std::fs::remove_file(world.project.path().join(name)).unwrap();
        }
        home("[features]\nhooks = false\n");
        let said = run(&world, &["--permission", "bypass", "go"]).await;
        assert!(!there("one.json") && !there("project.json"), "{said:?}");
        assert!(said.err.contains("turned off in Codex's settings"), "{said:?}");
    }
}

#[tokio::test]
async fn claude_local_md_and_nested_rules_are_read() {
    for (wire, protocol) in WIRES {
        let world = world_of(protocol, (0..3).map(|_| says(wire, "ok")).collect());
        world.put("CLAUDE.local.md", "l0cal words");
        world.put(".claude/rules/front/deep/a.md", "d33p rule");
        run(&world, &["hello"]).await;
        let sent = last(&world);
        assert!(sent.contains("l0cal words") && sent.contains("d33p rule"), "{sent}");
        world.put(".claude/CLAUDE.md", "inn3r words");
        run(&world, &["hello"]).await;
        let sent = last(&world);
        assert!(sent.contains("l0cal words") && sent.contains("inn3r words"), "{sent}");
    }
}

#[tokio::test]
async fn sub_agents_never_use_their_disallowed_tools() {
    for (wire, protocol) in WIRES {
        let spawn = json!({"tasks": [{"task": "write it", "agent": "reader"}]});
        let write = json!({"path": "a.txt", "content": "x"});
        let replies = vec![
            calls(wire, "elf_spawn", &spawn),
            calls(wire, "fs_write", &write),
            says(wire, "no"),
            says(wire, "done"),
            calls(wire, "fs_write", &write),
            says(wire, "done"),
        ];
        let world = world_of(protocol, replies);
        let agent = |name: &str, more: &str| {
            let text = format!("---\nname: {name}\ndescription: about-{name}\n{more}---\nbody");
            world.put_home(&format!(".claude/agents/{name}.md"), &text);
        };
        agent("reader", "disallowedTools: fs.*, Bash\npermissionMode: dontAsk\n");
        agent("mapped", "disallowedTools:\n  Write: true\n");
        agent("part", "disallowedTools: Bash(rm:*)\n");
        let said = run(&world, &["--permission", "bypass", "go"]).await;
        assert!(!exists(world.project.path(), "a.txt"), "{said:?}");
        for part in
            ["mapped.md: its `disallowedTools` must be a list", "part.md: `disallowedTools`"]
        {
            assert!(said.err.contains(part), "{said:?}");
        }
        assert!(
            said.err.contains("reader.md: gnoma does not support `permissionMode`"),
            "{said:?}"
        );
        let elf = world.server.requests()[1].json().to_string();
        assert!(!elf.contains("\"fs_write\"") && !elf.contains("\"bash\""), "{elf}");
        assert!(!elf.contains("about-mapped"), "{elf}");
        // The same where the person's session works as it.
        let said = run(&world, &["--permission", "bypass", "--agent", "reader", "go"]).await;
        assert!(!exists(world.project.path(), "a.txt"), "{said:?}");
    }
}

#[tokio::test]
async fn sub_agent_permission_mode_never_exceeds_its_parent() {
    for (agents, parents, is_written) in [
        ("plan", "accept_edits", false),
        ("acceptEdits", "plan", false),
        ("acceptEdits", "accept_edits", true),
    ] {
        let (wire, protocol) = WIRES[0];
        let spawn = json!({"tasks": [{"task": "write it", "agent": "writer"}]});
        let write = json!({"path": "a.txt", "content": "x"});
        let replies = vec![
            calls(wire, "elf_spawn", &spawn),
            calls(wire, "fs_write", &write),
            says(wire, "written"),
            says(wire, "done"),
        ];
        let world = world_of(protocol, replies);
        let text =
            format!("---\nname: writer\ndescription: d\npermissionMode: {agents}\n---\nbody");
        world.put_home(".claude/agents/writer.md", &text);
        let said = run(&world, &["--permission", parents, "go"]).await;
        assert_eq!(
            exists(world.project.path(), "a.txt"),
            is_written,
            "{agents} in {parents}: {said:?}"
        );
        assert!(!said.err.contains("permissionMode"), "{said:?}");
    }
}

#[tokio::test]
async fn stop_hook_continues_the_turn_at_most_eight_times() {
    let line =
        r#"echo '{"hookSpecificOutput":{"hookEventName":"Stop","additionalContext":"g0-on"}}'"#;
    for (wire, protocol) in WIRES {
        let world = world_of(protocol, (0..20).map(|_| says(wire, "done")).collect());
        let hooks = json!({"hooks": {"Stop": [{"hooks": [command(line)]}]}});
        world.put_home(".claude/settings.json", &hooks.to_string());
        let said = run(&world, &["go"]).await;
        assert!(last(&world).contains("g0-on"));
        assert_eq!(world.server.requests().len(), 9, "{said:?}");
        assert!(said.err.contains("kept the model going 8 times"), "{said:?}");
    }
}

#[tokio::test]
async fn a_hook_runs_only_for_the_calls_that_its_condition_is_about() {
    let runs =
        |command: &str| crate::support::calls("bash", &json!({ "command": command }).to_string());
    for (condition, call, is_run) in [
        ("Bash(git push *)", runs("true; A=b git push --dry-run"), true),
        ("Bash(git push *)", runs("git status"), false),
        // What cannot be read might be anything.
        ("Bash(git push *)", runs("$UNSET_OR_NOT push"), true),
        (
            "Edit(*.ts)",
            crate::support::calls("fs_write", r#"{"path":"src/a.ts","content":"x"}"#),
            true,
        ),
        (
            "Edit(*.ts)",
            crate::support::calls("fs_write", r#"{"path":"src/a.rs","content":"x"}"#),
            false,
        ),
        ("Edit(*.ts)", runs("echo x > a.ts"), false),
        ("Write", runs("true"), false),
        // What gnoma cannot read holds nothing back.
        ("Bash(git p; now)", runs("true"), true),
    ] {
        let world = World::new([call, crate::support::says("done")]);
        let entry = json!({"type": "command", "command": "touch ran", "if": condition});
        let hooks = json!({"hooks": {"PreToolUse": [{"hooks": [entry]}]}});
        world.put_home(".claude/settings.json", &hooks.to_string());
        let run = world.run(&["--permission", "accept_edits", "go"]).await;
        assert!(matches!(run.code, Some(0 | 4)), "{run:?}");
        assert_eq!(exists(world.project.path(), "ran"), is_run, "{condition}: {run:?}");
        assert_eq!(run.err.contains("cannot read"), condition.contains("p; now"), "{}", run.err);
    }
}

#[tokio::test]
async fn unsupported_claude_settings_are_reported() {
    let world = world_of("responses", vec![says(Wire::Responses, "ok")]);
    let hook = json!({"type": "command", "command": "true", "if": 5, "flag": true});
    let stop = json!({"type": "command", "command": "true", "if": "Bash(ls)"});
    let hooks = json!({"PreToolUse": [{"hooks": [hook]}], "Stop": [{"hooks": [stop]}]});
    let settings = json!({"hooks": hooks, "outputStyle": "x",
        "permissions": {"deny": ["Read(./secret)", "Read(a[b]c)"], "allow": ["Read"]}});
    world.put_home(".claude/settings.json", &settings.to_string());
    world.put_home(
        ".claude/skills/s/SKILL.md",
        "---\nname: s\ndescription: d\ncontext: other\neffort: high\n---\nbody",
    );
    world.put_home(".claude/commands/c.md", "---\nshell: x\n---\nbody");
    let said = run(&world, &["go"]).await;
    for part in [
        "has an `if` that gnoma cannot read (must be a string)",
        "a hook for Stop: `if` works only for tool calls, so this hook never runs",
        "gnoma cannot apply the deny rule `Read(a[b]c)`",
        "gnoma asks before `fs.read(a?c)` instead",
        "skills/s/SKILL.md: gnoma does not support `context`, `effort`",
    ] {
        assert!(said.err.contains(part), "{part}: {said:?}");
    }
    assert!(!said.err.contains("outputStyle") && !said.err.contains("c.md"), "{said:?}");
    for command in ["extensions", "doctor"] {
        let out = world.run(&[command]).await.out;
        for part in [
            "`outputStyle`, `permissions.allow`",
            "`flag`",
            "commands/c.md: gnoma does not \
             support",
        ] {
            assert!(out.contains(part), "{command}: {part}: {out}");
        }
    }
}
