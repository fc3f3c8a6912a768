//! What people add: commands and skills, judged by what the model was sent.

use gnoma_core::StopReason;
use gnoma_testkit::{Reply, Script, Server, Wire};

use crate::support::{World, calls, says};

impl World {
    /// Writes a file of the project, with its folders.
    pub(crate) fn put(&self, name: &str, text: &str) {
        let path = self.project.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Writes a file of the home, with its folders.
    pub(crate) fn put_home(&self, name: &str, text: &str) {
        let path = self.home.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// What the last message said that the model was sent.
    pub(crate) fn said(&self) -> String {
        self.last_request().last().unwrap().1.clone()
    }

    /// Everything that was sent, as one text.
    pub(crate) fn sent(&self) -> String {
        let requests = self.server.requests();
        requests.iter().map(|request| format!("{}\n", request.json())).collect()
    }
}

/// A world whose provider speaks another wire.
pub(crate) fn world_of(protocol: &str, replies: Vec<Reply>) -> World {
    let world = World::with(Server::start_with_replies(replies).unwrap());
    world.configure(&format!("[provider.protocols]\ntest = \"{protocol}\"\n"));
    world
}

#[tokio::test]
async fn custom_commands_expand_arguments_shell_output_and_files() {
    let world = World::new([says("a"), says("b"), says("c"), says("d"), says("e")]);
    world.put(".claude/commands/fix.md", "---\ndescription: fix it\n---\nFix $0 in $1, not $2.");
    world.put(".claude/commands/git/log.md", "Look: !`echo f0und` and out=!`date`. @notes.txt");
    world.put(".gnoma/commands/plain.md", "Do the thing.\n");
    world.put_home(".claude/commands/mine.md", "Mine: $ARGUMENTS.");
    world.put_home(".config/gnoma/commands/fix.md", "not this one");
    world.put("notes.txt", "remember the milk");
    world.run(&["trust", "--yes"]).await;
    world.run(&["/fix 'the bug' main.rs"]).await;
    assert_eq!(world.said(), "Fix the bug in main.rs, not $2.");
    world.run(&["/git:log"]).await;
    let said = world.said();
    assert!(said.starts_with("Look: f0und"), "{said}");
    assert!(said.contains("out=!`date`") && said.contains("remember the milk"), "{said}");
    world.run(&["/plain", "now", "please"]).await;
    assert_eq!(world.said(), "Do the thing.\n\nARGUMENTS: now please");
    world.run(&["/mine a b"]).await;
    assert_eq!(world.said(), "Mine: a b.");
    world.run(&["/nobody knows this"]).await;
    assert_eq!(world.said(), "/nobody knows this");
}

#[tokio::test]
async fn custom_command_leaves_out_denied_shell_output_and_outside_files() {
    let world = World::new([says("a"), says("b")]);
    world.put_home(".claude/commands/rm.md", "x !`rm -rf keep` y @../secret.txt @.env");
    world.put(".env", "c4nary");
    world.put("keep/file", "");
    world.run(&["--permission", "deny", "/rm"]).await;
    let said = world.said();
    assert!(said.starts_with("x permission denied") && said.contains("y @../secret.txt"), "{said}");
    assert!(!said.contains("c4nary"));
    assert!(crate::support::exists(world.project.path(), "keep/file"));
}

#[tokio::test]
async fn custom_command_allowed_tools_limit_its_turn() {
    let world = World::new([
        calls("fs_write", r#"{"path":"a.txt","content":"x"}"#),
        calls("bash", r#"{"command":"echo not this; echo f0und"}"#),
        calls("bash", r#"{"command":"echo f0und"}"#),
        says("done"),
    ]);
    world
        .put_home(".claude/commands/look.md", "---\nallowed-tools: Read, Bash(echo f0und)\n---\nx");
    let run = world.run(&["--permission", "bypass", "/look"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(!crate::support::exists(world.project.path(), "a.txt"));
    let results: Vec<String> = world
        .last_request()
        .into_iter()
        .filter(|(role, _)| role == "tool")
        .map(|it| it.1)
        .collect();
    assert!(
        results[0].contains("allows only these tools: fs.read, bash(echo f0und)"),
        "{results:?}"
    );
    assert!(results[1].contains("allows only"), "{results:?}");
    assert!(results[2].contains("f0und") && !results[2].contains("allows only"), "{results:?}");
}

#[tokio::test]
async fn an_untrusted_project_runs_nothing_and_offers_no_skills() {
    let world = World::new([says("a"), says("b")]);
    world.put(".claude/commands/x.md", "see !`echo run > ran.txt`");
    world.put(
        ".claude/skills/pdf/SKILL.md",
        "---\nname: pdf\ndescription: Reads a c4nary.\n---\nDo.",
    );
    let run = world.run(&["--permission", "bypass", "/x"]).await;
    assert_eq!(world.server.requests().len(), 0, "{run:?}");
    assert!(run.err.contains("`/x` (.claude/commands/x.md), but you have not trusted"), "{run:?}");
    assert!(!crate::support::exists(world.project.path(), "ran.txt"));
    assert!(run.code == Some(2) && run.err.contains("gnoma trust"), "{run:?}");
    let run = world.run(&["--output-format", "json", "/x", "now"]).await;
    assert!(run.code == Some(2) && run.out.contains("\"is_error\":true"), "{run:?}");
    let told = world.run(&["hi"]).await;
    assert!(told.err.contains("has 1 skill that"), "{told:?}");
    let trusted = world.run(&["trust", "--yes"]).await;
    assert!(trusted.out.contains(".claude/skills/pdf/SKILL.md"), "{trusted:?}");
    world.run(&["hello"]).await;
    assert!(world.sent().contains("c4nary"));
    // One changed byte takes the trust back.
    world.put(
        ".claude/skills/pdf/SKILL.md",
        "---\nname: pdf\ndescription: Reads a c4nary!\n---\nDo.",
    );
    let run = world.run(&["hello"]).await;
    assert!(run.err.contains("gnoma trust"), "{run:?}");
    assert_eq!(world.sent().matches("c4nary").count(), 1);
}

#[tokio::test]
async fn unknown_model_or_tools_of_an_agent_are_reported() {
    let world = World::new((0..4).map(|_| says("hello")));
    let agent = |name: &str, more: &str| {
        let text = format!("---\nname: {name}\ndescription: d\n{more}---\nDo it.");
        world.put_home(&format!(".claude/agents/{name}.md"), &text);
    };
    agent("picky", "model: nosuch\ntools: Foo, Read, mcp__later__tool\n");
    agent("plain", "model: inherit\ntools: Read\n");
    let run = world.run(&["--agent", "picky", "hi"]).await;
    assert_eq!(run.out, "hello\n", "{run:?}");
    assert!(run.err.contains("`nosuch`, which the agent `picky` wants, is not in"), "{run:?}");
    assert!(run.err.contains("lists tools that are not in this session: `Foo`\n"), "{run:?}");
    let run = world.run(&["--agent", "plain", "hi"]).await;
    assert_eq!((run.out.as_str(), run.err.as_str()), ("hello\n", ""), "{run:?}");
    let doctor = world.run(&["doctor"]).await;
    assert!(doctor.out.contains("the agent `picky`: no tool has the name `Foo`"), "{doctor:?}");
}

#[tokio::test]
async fn untrusted_project_does_not_override_personal_commands_skills_or_agents() {
    let world = World::new([says("a"), says("b"), says("c"), says("d"), says("e")]);
    let skill = |text: &str| format!("---\nname: pdf\ndescription: Do {text}\n---\nDo {text}");
    let agent = |text: &str| format!("---\nname: helper\ndescription: d\n---\nDo {text}");
    world.put_home(".claude/commands/greet.md", "Do mine");
    world.put_home(".claude/skills/pdf/SKILL.md", &skill("mine"));
    world.put_home(".claude/agents/helper.md", &agent("mine"));
    world.put(".claude/commands/greet.md", "Do theirs");
    world.put(".claude/commands/commit.md", "Do theirs");
    world.put(".claude/skills/pdf/SKILL.md", &skill("theirs"));
    world.put(".claude/agents/helper.md", &agent("theirs"));
    let run = world.run(&["/greet x"]).await;
    assert!(world.said().starts_with("Do mine"), "{}", world.said());
    assert!(world.sent().contains("pdf: Do mine"), "{}", world.sent());
    assert_eq!(run.err.matches("warning: ").count(), 1, "{run:?}");
    let names = "its `/commit`, `/greet`, `/pdf`, agent `helper` do not replace yours";
    assert!(run.err.contains(names) && run.err.contains("gnoma trust"), "{run:?}");
    for words in [vec!["/pdf"], vec!["/commit"], vec!["--agent", "helper", "hi"]] {
        let run = world.run(&words).await;
        assert_eq!(run.code, Some(0), "{run:?}");
        assert!(!world.sent().contains("theirs"), "{words:?}: {}", world.sent());
    }
    world.run(&["trust", "--yes"]).await;
    world.run(&["/greet x"]).await;
    assert!(world.said().starts_with("Do theirs"), "{}", world.said());
}

#[tokio::test]
async fn skills_are_listed_and_loaded_on_anthropic_and_responses_wires() {
    for (wire, protocol) in [(Wire::Anthropic, "anthropic"), (Wire::Responses, "responses")] {
        let call = |arguments: &str| {
            let script = Script::text([""; 0]).with_call("call_a", "skill", arguments);
            wire.stream_reply(&script.with_stop(StopReason::ToolUse))
        };
        let done = || wire.stream_reply(&Script::text(["done"]).with_stop(StopReason::EndTurn));
        let replies = vec![
            call(r#"{"name":"pdf"}"#),
            call(r#"{"name":"pdf","file":"ref/a.md"}"#),
            call(r#"{"name":"pdf","file":"../other.md"}"#),
            done(),
            done(),
        ];
        let world = world_of(protocol, replies);
        world.put_home(
            ".claude/skills/pdf/SKILL.md",
            "---\nname: pdf\ndescription: Reads what1s in a PDF.\n---\nFirst d0 this.",
        );
        world.put_home(".claude/skills/pdf/ref/a.md", "deta1ls");
        world.put_home(".claude/skills/other.md", "---\nname: o\ndescription: x\n---\nouts1de");
        world.put_home(
            ".claude/skills/mine/SKILL.md",
            "---\nname: mine\ndescription: h1dden\ndisable-model-invocation: true\n---\nm1ne $0",
        );
        let run = world.run(&["read it"]).await;
        assert_eq!(run.code, Some(0), "{run:?}");
        let first = world.server.requests()[0].json().to_string();
        assert!(first.contains("what1s") && !first.contains("d0 this"), "{first}");
        assert!(!first.contains("h1dden"), "{first}");
        let sent = world.sent();
        assert!(sent.contains("First d0 this") && sent.contains("deta1ls"), "{sent}");
        assert!(!sent.contains("outs1de"), "{sent}");
        world.run(&["/mine here"]).await;
        assert!(world.sent().contains("m1ne here"), "{}", world.sent());
    }
}

#[tokio::test]
async fn bundled_skills_are_available_and_batch_uses_elfs() {
    let world = World::new([says("a"), says("b")]);
    world.run(&["/review the parser"]).await;
    assert!(world.said().contains("ARGUMENTS: the parser"), "{}", world.said());
    world.run(&["/batch all"]).await;
    let said = world.said();
    assert!(said.contains("`elf.spawn`") && said.contains("ARGUMENTS: all"), "{said}");
}

#[tokio::test]
async fn instructions_are_read_with_imports_and_those_of_a_folder_when_it_is_touched() {
    let world = World::new([
        calls("fs_read", r#"{"path":"sub/deep/a.txt"}"#),
        calls("fs_read", r#"{"path":"sub/deep/a.txt","offset":1}"#),
        says("done"),
    ]);
    world.put("CLAUDE.md", "r00t @docs/more.md");
    world.put("docs/more.md", "imp0rted");
    world.put(".claude/rules/a.md", "rul3");
    world.put_home(".claude/CLAUDE.md", "m1ne");
    world.put("sub/AGENTS.md", "n3sted");
    world.put("sub/deep/a.txt", "text");
    world.run(&["look"]).await;
    let first = world.server.requests()[0].json().to_string();
    for part in ["r00t", "imp0rted", "rul3", "m1ne"] {
        assert!(first.contains(part), "{part}: {first}");
    }
    assert!(!first.contains("n3sted"));
    let last = world.server.requests()[2].json().to_string();
    assert_eq!(last.matches("n3sted").count(), 1, "{last}");
}

#[tokio::test]
async fn symlinked_extension_files_never_load_a_secret_file() {
    let world =
        World::new([calls("fs_read", r#"{"path":"sub/a.txt"}"#), says("done"), says("done")]);
    world.put(".env", "pla1n words");
    world.put("sub/a.txt", "text");
    world.put(".claude/rules/r.md", "rul3");
    world.put(".claude/commands/c.md", "c0mmand");
    let link = |target: &str, name: &str| {
        std::os::unix::fs::symlink(target, world.project.path().join(name)).unwrap();
    };
    link(".env", "AGENTS.md");
    link("../.env", "sub/CLAUDE.md");
    link("../../.env", ".claude/rules/e.md");
    link("../../.env", ".claude/commands/e.md");
    world.run(&["look"]).await;
    world.run(&["/e"]).await;
    let sent: String =
        world.server.requests().iter().map(|request| request.json().to_string()).collect();
    assert!(sent.contains("rul3") && !sent.contains("pla1n"), "{sent}");
}

#[tokio::test]
async fn skills_are_listed_shown_and_checked() {
    let world = World::new([]);
    world.put(".claude/skills/pdf/SKILL.md", "---\nname: pdf\ndescription: d\nmodel: x\n---\nb0dy");
    world.put(".claude/agents/a.md", "---\nname: helper\ndescription: helps\n---\np");
    let list = world.run(&["skills", "list"]).await;
    assert!(list.out.contains("pdf") && list.out.contains("needs `gnoma trust`"), "{list:?}");
    let show = world.run(&["skills", "show", "pdf"]).await;
    assert!(show.out.contains("b0dy"), "{show:?}");
    let check = world.run(&["skills", "validate", ".claude/skills/pdf"]).await;
    assert_eq!(check.code, Some(1), "{check:?}");
    assert!(check.out.contains("model"), "{check:?}");
    let agents = world.run(&["agents", "list"]).await;
    assert!(agents.out.contains("helper"), "{agents:?}");
    let all = world.run(&["extensions"]).await;
    assert!(all.out.contains("review") && all.out.contains("helper"), "{all:?}");
    let doctor = world.run(&["doctor"]).await;
    assert!(doctor.out.contains("1 skill waits for `gnoma trust`"), "{doctor:?}");
}

#[tokio::test]
async fn path_scoped_rules_are_sent_once_when_a_matching_file_is_read() {
    let world = World::new([
        calls("fs_read", r#"{"path":"notes.txt"}"#),
        calls("fs_read", r#"{"path":"src/a.rs"}"#),
        calls("fs_read", r#"{"path":"src/deep/b.rs"}"#),
        says("done"),
    ]);
    world.put(".claude/rules/rust.md", "---\npaths:\n  - \"src/**/*.rs\"\n---\nn0 unwrap");
    world.put(".claude/rules/all.md", "al1 files");
    for name in ["notes.txt", "src/a.rs", "src/deep/b.rs"] {
        world.put(name, "text");
    }
    world.run(&["look"]).await;
    let sent: Vec<String> =
        world.server.requests().iter().map(|request| request.json().to_string()).collect();
    assert!(sent[0].contains("al1 files") && !sent[0].contains("n0 unwrap"), "{}", sent[0]);
    assert!(!sent[1].contains("n0 unwrap"), "{}", sent[1]);
    assert!(sent[2].contains("n0 unwrap"), "{}", sent[2]);
    assert_eq!(sent[3].matches("n0 unwrap").count(), 1, "{}", sent[3]);
}

#[tokio::test]
async fn import_of_opencode_settings_is_all_or_nothing() {
    let world = World::new([]);
    let token = format!("ghp_{}", "c4naryR7tQ2mZx9LwV5bKp3HsN8dJf6GyT1u");
    world.put_home(
        ".config/opencode/opencode.json",
        &r#"{"permission": {"bash": {"git push": "deny"}}, "mcp": {
            "far": {"type": "remote", "url": "https://x.example/mcp?k=c4nary"},
            "user": {"type": "remote", "url": "https://u:c4nary@x.example/mcp"},
            "near": {"command": ["npx", "x", "--token", "c4nary", "T0KEN"]}}}"#
            .replace("T0KEN", &token),
    );
    world.put_home(".config/opencode/command/fix.md", "the first");
    world.put_home(".config/opencode/commands/fix.md", "the second");
    let home = world.home.path();
    let config = || std::fs::read_to_string(home.join(".config/gnoma/config.toml")).unwrap();
    let (before, folder) = (config(), home.join(".config/gnoma/commands"));
    // A file stands where the folder has to be.
    std::fs::write(&folder, "").unwrap();
    let failed = world.run(&["import", "opencode", "--write"]).await;
    assert!(failed.code == Some(2) && failed.err.contains("nothing was imported"), "{failed:?}");
    assert_eq!(config(), before);
    std::fs::remove_file(&folder).unwrap();
    let written = world.run(&["import", "opencode", "--write"]).await;
    assert!(written.code == Some(0) && written.out.contains("comes from"), "{written:?}");
    assert!(!written.out.contains("c4nary"), "{}", written.out);
    assert!(config().contains("git push") && config().contains("c4nary"), "{}", config());
    assert_eq!(std::fs::read_to_string(folder.join("fix.md")).unwrap(), "the first");
}

#[tokio::test]
async fn import_previews_settings_of_other_assistants_and_writes_them_on_request() {
    let world = World::new([]);
    world.put_home(
        ".claude/settings.json",
        r#"{"permissions": {"allow": ["Bash(npm run test:*)"], "deny": ["Read(./.env)", "Task"], "defaultMode": "plan"},
            "hooks": {"Stop": []}, "statusLine": {}, "enabledPlugins": {"demo@m": true}}"#,
    );
    world.put_home(
        ".claude.json",
        r#"{"mcpServers": {"files": {"command": "npx", "args": ["-y", "x"], "env": {"K": "c4nary"}}, "far": {"type": "http", "url": "https://x.example/mcp"}}}"#,
    );
    world.put_home(
        ".codex/config.toml",
        "model = \"o9\"\n[mcp_servers.far]\nurl = \"https://x.example\"\n",
    );
    world.put_home(".codex/prompts/fix.md", "Fix $1 and $2.");
    world.put_home(
        ".config/opencode/opencode.json",
        "{ // mine\n\"permission\": {\"bash\": {\"git push\": \"deny\"}}, \"command\": {\"t\": {\"template\": \"Test $1\"}},}",
    );
    let shown = world.run(&["import", "claude"]).await;
    for part in [
        "allow bash(npm run test *)",
        "deny fs.read(.env)",
        "MCP server files: npx -y x",
        "~/.claude/settings.json: hooks",
        "deny elf.spawn (from `Task`)",
        "statusLine",
        "demo@m",
        "permission.mode plan",
        "--write",
    ] {
        assert!(shown.out.contains(part), "{part}: {shown:?}");
    }
    assert!(!shown.out.contains("c4nary"), "{shown:?}");
    let config =
        || std::fs::read_to_string(world.home.path().join(".config/gnoma/config.toml")).unwrap();
    assert!(!config().contains("npm run"));
    for from in ["claude", "codex", "opencode"] {
        let written = world.run(&["import", from, "--write"]).await;
        assert_eq!(written.code, Some(0), "{from}: {written:?}");
    }
    assert!(config().contains("npm run test") && config().contains("git push"), "{}", config());
    let again = world.run(&["import", "claude", "--write"]).await;
    assert!(again.out.contains("there already") && !again.out.contains("wrote"), "{again:?}");
    assert_eq!(config().matches("name = \"far\"").count(), 1);
    let list = world.run(&["mcp", "list", "--offline"]).await;
    assert!(list.out.contains("files") && list.out.contains("far"), "{list:?}");
    let all = world.run(&["extensions"]).await.out;
    assert!(all.contains("fix") && all.contains("commands/t.md"), "{all}");
}

#[tokio::test]
async fn output_style_is_sent_once_it_is_trusted_and_a_missing_one_is_named() {
    let world = World::new([says("a"), says("b"), says("c")]);
    world.put_home(".claude/output-styles/t.md", "---\nname: Terse\n---\nm1ne: three sentences.");
    world.configure("[answers]\nstyle = \"terse\"\n");
    world.run(&["hello"]).await;
    let sent = world.sent();
    assert!(sent.contains("m1ne: three sentences.") && sent.contains("You are gnoma"), "{sent}");
    world.put(".claude/output-styles/own.md", "the1rs: no lists.");
    world.configure("[answers]\nstyle = \"own\"\n");
    let waits = world.run(&["hello"]).await;
    assert!(waits.err.contains("`own` is not used: it is the project's"), "{waits:?}");
    assert!(!world.sent().contains("the1rs"));
    world.run(&["trust", "--yes"]).await;
    world.run(&["hello"]).await;
    assert!(world.sent().contains("the1rs: no lists."));
    world.configure("[answers]\nstyle = \"none\"\n");
    let missing = world.run(&["hello"]).await;
    assert!(missing.err.contains("the known ones are: Terse, own"), "{missing:?}");
}
