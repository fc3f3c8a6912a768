//! Skills that elfs do (`context: fork`), judged by what the models were sent.

use serde_json::{Value, json};

use crate::support::{Run, World, calls, says};

const SKILL: &str = "---\nname: look\ndescription: looks ar0und\ncontext: fork\nallowed-tools: Read\n\
    model: nowhere\n---\nLook at $ARGUMENTS thoroughly.\n!`echo g1ven`\n";

fn world(replies: Vec<gnoma_testkit::Reply>, skill: &str) -> World {
    let world = World::new(replies);
    world.put_home(".claude/skills/look/SKILL.md", skill);
    world
}

fn loads(arguments: &Value) -> gnoma_testkit::Reply {
    calls("skill", &arguments.to_string())
}

fn is_done(run: &Run) {
    assert_eq!(run.code, Some(0), "{run:?}");
}

/// The tools, the system prompt and the last message of a request.
fn asked(world: &World, nth: usize) -> (Vec<String>, String, String) {
    let body = world.server.requests()[nth].json();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let tools = body["tools"].as_array().into_iter().flatten();
    let tools = tools.map(|tool| text(&tool["function"]["name"])).collect();
    let texts = body["messages"].as_array().into_iter().flatten();
    let texts: Vec<_> = texts.map(|message| text(&message["content"])).collect();
    let (first, last) = (texts.first().cloned(), texts.last().cloned());
    (tools, first.unwrap_or_default(), last.unwrap_or_default())
}

#[tokio::test]
async fn fork_skill_loaded_by_a_model_runs_in_an_elf_with_its_tools_only() {
    let writes = calls("fs_write", r#"{"path":"b.txt","content":"x"}"#);
    let load = loads(&json!({"name": "look", "arguments": "a.txt"}));
    let world = world(vec![load, writes, says("all is well"), says("done")], SKILL);
    is_done(&world.run(&["--permission", "bypass", "secret plans: look at it"]).await);
    assert!(asked(&world, 0).1.contains("ar0und (an elf does it"), "{}", asked(&world, 0).1);
    let (tools, system, task) = asked(&world, 1);
    assert_eq!(tools, ["fs_read", "skill"]);
    assert!(system.contains("You are an elf"), "{system}");
    // Commands in a skill that the model loads stay text.
    assert!(task.contains("Look at a.txt thoroughly.\n!`echo g1ven`"), "{task}");
    assert!(!world.server.requests()[1].json().to_string().contains("secret plans"));
    assert!(!world.project.path().join("b.txt").exists(), "it has no tool that writes");
    let (_, _, result) = asked(&world, 3);
    assert!(result.starts_with("elf `look`: completed") && result.contains("all is well"));
}

#[tokio::test]
async fn fork_skill_named_by_a_person_runs_in_an_elf_even_if_models_may_not_load_it() {
    for more in ["", "disable-model-invocation: true\n"] {
        let skill = SKILL.replace("context: fork\n", &format!("context: fork\n{more}"));
        let world = world(vec![says("all is well"), says("done")], &skill);
        is_done(&world.run(&["--permission", "bypass", "/look b.txt"]).await);
        let (tools, _, task) = asked(&world, 0);
        // Where models may load none, there is no tool for it.
        let has_more = if more.is_empty() { &["fs_read", "skill"][..] } else { &["fs_read"] };
        assert_eq!(tools, has_more);
        assert!(task.contains("Look at b.txt thoroughly.\ng1ven"), "{task}");
        let (tools, _, said) = asked(&world, 1);
        assert!(tools.len() > 2, "the turn is not held to them: {tools:?}");
        assert!(said.starts_with("`/look b.txt` was done by an elf."), "{said}");
        assert!(said.contains("all is well"), "{said}");
    }
}

#[tokio::test]
async fn elf_rules_and_limits_apply_to_fork_skills() {
    // A rule.
    let load = || loads(&json!({"name": "look"}));
    let world_with = |rule: &str| {
        let world = world(vec![load(), says("done")], SKILL);
        world.configure(&format!("[[permission.rules]]\nrule = \"{rule}\"\naction = \"deny\"\n"));
        world
    };
    for rule in ["elf.spawn", "skill"] {
        let world = world_with(rule);
        is_done(&world.run(&["--permission", "bypass", "look"]).await);
        assert_eq!(world.server.requests().len(), 2, "{rule}: no elf was started");
        assert!(asked(&world, 1).2.contains(rule), "{rule}: {}", asked(&world, 1).2);
    }
    // A command that holds its turn to other tools.
    let world = world(vec![load(), says("done")], SKILL);
    world.put_home(".claude/commands/only.md", "---\nallowed-tools: Read\n---\nGo\n");
    is_done(&world.run(&["--permission", "bypass", "/only"]).await);
    assert_eq!(world.server.requests().len(), 2, "no elf was started");
    // An agent that is not there.
    let skill = SKILL.replace("context: fork\n", "context: fork\nagent: nobody\n");
    let world = self::world(vec![load(), says("done")], &skill);
    is_done(&world.run(&["--permission", "bypass", "look"]).await);
    assert!(asked(&world, 1).2.contains("there is no agent `nobody`"), "{}", asked(&world, 1).2);
}

#[tokio::test]
async fn elf_that_may_not_spawn_runs_a_fork_skill_itself() {
    let spawn = calls("elf_spawn", r#"{"tasks":[{"task":"use the skill"}]}"#);
    let load = loads(&json!({"name": "look", "arguments": "c.txt"}));
    let world = world(vec![spawn, load, says("seen"), says("done")], SKILL);
    is_done(&world.run(&["--permission", "bypass", "go"]).await);
    let (_, _, loaded) = asked(&world, 2);
    assert!(loaded.starts_with("Look at c.txt thoroughly."), "{loaded}");
}

/// A hook for calls of `tool`.
fn hook(world: &World, event: &str, tool: &str, command: &str) {
    let entry = json!({"type": "command", "command": command});
    let hooks = json!({"hooks": {event: [{"matcher": tool, "hooks": [entry]}]}});
    world.put_home(".claude/settings.json", &hooks.to_string());
}

#[tokio::test]
async fn hooks_run_before_the_elf_of_a_fork_skill_starts() {
    for person in [false, true] {
        // What forbids it.
        let replies = match person {
            false => vec![loads(&json!({"name": "look"})), says("done")],
            true => vec![says("done")],
        };
        let count = replies.len();
        let prompt = if person { "/look b.txt" } else { "look" };
        let world = self::world(replies, SKILL);
        hook(&world, "PreToolUse", "elf.spawn", "echo n0-elfs >&2; exit 2");
        is_done(&world.run(&["--permission", "bypass", prompt]).await);
        assert_eq!(world.server.requests().len(), count, "no elf was started");
        let (_, _, said) = asked(&world, count - 1);
        assert!(said.contains("n0-elfs"), "{said}");
        let failed = "`/look b.txt` could not be done by an elf: ";
        assert_eq!(said.starts_with(failed), person, "{said}");
        assert!(!said.contains("was done"), "{said}");
    }
    // What changes it.
    let load = loads(&json!({"name": "look"}));
    let world = world(vec![load, says("all is well"), says("done")], SKILL);
    let input = json!({"tasks": [{"task": "Do s0mething else."}]});
    let answer = json!({"hookSpecificOutput": {"hookEventName": "PreToolUse",
        "permissionDecision": "allow", "updatedInput": input}});
    hook(&world, "PreToolUse", "elf.spawn", &format!("echo '{answer}'"));
    is_done(&world.run(&["--permission", "bypass", "look"]).await);
    assert!(asked(&world, 1).2.contains("Do s0mething else."), "{}", asked(&world, 1).2);
}

#[tokio::test]
async fn model_cannot_load_an_untrusted_or_disabled_fork_skill() {
    for is_trusted in [true, false] {
        let load = loads(&json!({"name": "deploy", "task": "anything", "arguments": "x"}));
        let world = world(vec![load, says("done")], SKILL);
        let mut skill = SKILL.replace("name: look", "name: deploy");
        if is_trusted {
            skill = skill.replace("context:", "disable-model-invocation: true\ncontext:");
            world.put_home(".claude/skills/deploy/SKILL.md", &skill);
        } else {
            world.put(".claude/skills/deploy/SKILL.md", &skill);
        }
        is_done(&world.run(&["--permission", "bypass", "go"]).await);
        assert_eq!(world.server.requests().len(), 2, "no elf was started");
        let (_, _, said) = asked(&world, 1);
        assert!(said.contains("there is no skill `deploy`"), "{said}");
    }
}

#[tokio::test]
async fn fork_skill_that_was_denied_is_not_reported_as_done() {
    let world = world(vec![says("done")], SKILL);
    world.configure("[[permission.rules]]\nrule = \"elf.spawn\"\naction = \"deny\"\n");
    is_done(&world.run(&["--permission", "bypass", "/look b.txt"]).await);
    let (_, _, said) = asked(&world, 0);
    assert!(said.starts_with("`/look b.txt` could not be done by an elf: "), "{said}");
    assert!(said.contains("elf.spawn") && !said.contains("was done"), "{said}");
}

#[tokio::test]
async fn fork_skill_without_an_elf_limits_the_turn_to_its_tools() {
    let spawn = calls("elf_spawn", r#"{"tasks":[{"task":"/look c.txt"}]}"#);
    let writes = calls("fs_write", r#"{"path":"b.txt","content":"x"}"#);
    let world = world(vec![spawn, writes, says("seen"), says("done")], SKILL);
    is_done(&world.run(&["--permission", "bypass", "go"]).await);
    let (_, _, task) = asked(&world, 1);
    assert!(task.contains("Look at c.txt thoroughly."), "{task}");
    assert!(!world.project.path().join("b.txt").exists(), "{}", asked(&world, 2).2);
}
