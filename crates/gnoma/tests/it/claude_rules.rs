//! Rules of Claude Code's settings that restrict apply as they are: those of a person, and those of a project that
//! nobody trusts.

use std::fs;

use serde_json::json;

use crate::support::{World, calls, says};

/// What a model was told that came of one call.
async fn told(settings: (&str, serde_json::Value), tool: &str, arguments: &str) -> String {
    let world = World::new([calls(tool, arguments), says("done")]);
    let (file, permissions) = settings;
    let text = json!({ "permissions": permissions }).to_string();
    match file.strip_prefix("~/") {
        Some(name) => world.put_home(name, &text),
        None => {
            let path = world.project.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }
    fs::create_dir(world.project.path().join("secrets")).unwrap();
    world.write("secrets/a.txt", "hush\n");
    world.write("open.txt", "open words\n");
    let run = world.run(&["--permission", "accept_edits", "go on"]).await;
    let told = world.last_request().pop().unwrap().1;
    format!("{told}\n{}", run.err)
}

#[tokio::test]
async fn claude_settings_deny_rules_apply_before_trust() {
    let read = r#"{"path":"secrets/a.txt"}"#;
    let cat = r#"{"command":"cat secrets/a.txt"}"#;
    let deny = |rule: &str| json!({ "deny": [rule] });
    for (file, rule, tool, arguments) in [
        (".claude/settings.json", "Read(./secrets/**)", "fs_read", read),
        (".claude/settings.local.json", "Read(./secrets/**)", "fs_read", read),
        ("~/.claude/settings.json", "Read(secrets/**)", "fs_read", read),
        ("~/.claude/settings.local.json", "Read(**/a.txt)", "fs_read", read),
        (".claude/settings.json", "Read(./secrets/**)", "bash", cat),
        (".claude/settings.json", "Bash(cat:*)", "bash", cat),
        (".claude/settings.json", "Bash(cat * )", "bash", cat),
        (
            ".claude/settings.json",
            "Edit(open.txt)",
            "fs_write",
            r#"{"path":"open.txt","content":"x"}"#,
        ),
        (
            ".claude/settings.json",
            "Agent(general-purpose)",
            "elf_spawn",
            r#"{"tasks":[{"task":"x"}]}"#,
        ),
    ] {
        let told = told((file, deny(rule)), tool, arguments).await;
        assert!(told.contains("denied") && !told.contains("hush"), "{file} {rule}: {told}");
    }
}

#[tokio::test]
async fn claude_settings_ask_rules_apply_but_allow_rules_do_not() {
    let cat = r#"{"command":"cat open.txt"}"#;
    let asked = told((".claude/settings.json", json!({"ask": ["Bash(cat:*)"]})), "bash", cat).await;
    assert!(asked.contains("permission denied") && !asked.contains("open words"), "{asked}");
    let free = told((".claude/settings.json", json!({"ask": ["Bash(ls:*)"]})), "bash", cat).await;
    assert!(free.contains("open words"), "{free}");
    let curl = r#"{"command":"curl http://127.0.0.1:9/"}"#;
    let allow = json!({"allow": ["Bash(curl:*)"]});
    let allowed = told((".claude/settings.json", allow), "bash", curl).await;
    assert!(allowed.contains("permission denied"), "{allowed}");
}

#[tokio::test]
async fn unsupported_claude_permission_rule_is_reported_and_widened_to_ask() {
    let read = r#"{"path":"secrets/a.txt"}"#;
    let deny = json!({"deny": ["Read(secrets/[a-c].txt)", "Nonsense(x)", 7]});
    let told = told((".claude/settings.json", deny), "fs_read", read).await;
    assert!(!told.contains("hush"), "{told}");
    for part in
        ["`Read(secrets/[a-c].txt)`", "gnoma asks before", "`Nonsense(x)`", "it has no effect"]
    {
        assert!(told.contains(part), "{part}: {told}");
    }
}

#[tokio::test]
async fn sandbox_hides_files_that_a_claude_rule_denies_or_asks_about() {
    let python = r#"{"command":"python3 -c \"print(open('secrets/' + 'a.txt').read()[::-1])\""}"#;
    let grep = r#"{"command":"grep -r hu ."}"#;
    let archive = r#"{"command":"tar cf - *"}"#;
    let search = r#"{"pattern":"hu"}"#;
    let file = ".claude/settings.json";
    for rule in ["Read(./secrets)", "Read(./secrets/**)", "Read(**/secrets/**)", "Read(*.txt)"] {
        for permissions in [json!({ "deny": [rule] }), json!({ "ask": [rule] })] {
            for (tool, arguments) in
                [("bash", python), ("bash", grep), ("bash", archive), ("fs_grep", search)]
            {
                let told = told((file, permissions.clone()), tool, arguments).await;
                let is_shown = told.contains("hush") || told.contains("hsuh");
                assert!(!is_shown, "{permissions} {tool} {arguments}: {told}");
            }
        }
    }
}

#[tokio::test]
async fn trial_does_not_save_changes_that_an_ask_rule_covers() {
    let arguments =
        r#"{"command":"sh -c 'for n in src out; do mkdir -p $n; echo x > $n/new.js; done'"}"#;
    let world = World::new([calls("bash", arguments), says("done")]);
    fs::create_dir(world.project.path().join(".claude")).unwrap();
    world.write(".claude/settings.json", r#"{"permissions": {"ask": ["Edit(src/**)"]}}"#);
    world.run(&["--permission", "accept_edits", "go on"]).await;
    assert!(!world.project.path().join("src/new.js").exists());
}
