//! Plugins, judged by what the model was sent and what ran.

use std::{fs, path::Path, process::Command};

use serde_json::json;

use crate::{
    support::{World, calls, exists, says},
    terminal::Terminal,
};

const SERVER: &str = r#"cd "$(dirname "$0")" || exit 1
reply() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9][0-9]*\).*/\1/p')
  case $line in
    *'"method":"initialize"'*)
      reply '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"f","version":"1"}}' ;;
    *'"method":"tools/list"'*) reply '{"tools":[{"name":"ask","description":"b0und","inputSchema":{"type":"object"}}]}' ;;
    *'"id":'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}\n' "$id" ;;
  esac
done
"#;

/// Writes a plugin with a part of every kind.
fn demo(root: &Path) {
    let put = |name: &str, text: &str| {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    put(
        ".claude-plugin/plugin.json",
        r#"{"name":"demo","version":"1.0.0","description":"Shows it.","author":{"name":"a"}}"#,
    );
    put("commands/hi.md", "---\ndescription: says hi\n---\nHi $0 from ${CLAUDE_PLUGIN_ROOT}.");
    put("skills/pdf/SKILL.md", "---\nname: pdf\ndescription: Reads what1s in a PDF.\n---\nDo.");
    put("agents/helper.md", "---\nname: helper\ndescription: helps\n---\np");
    put(
        "scripts/note.sh",
        "cat > /dev/null; echo ran >> noted.txt; echo \"$GNOMA_PLUGIN_ROOT\" > root.txt",
    );
    let hook = json!({"type": "command", "command": "sh ${CLAUDE_PLUGIN_ROOT}/scripts/note.sh"});
    let hooks = json!({"hooks": {"PreToolUse": [{"matcher": "Write", "hooks": [hook]}]}});
    put("hooks/hooks.json", &hooks.to_string());
    let server = json!({"command": "sh", "args": ["${GNOMA_PLUGIN_ROOT}/server.sh"]});
    put(".mcp.json", &json!({"mcpServers": {"db": server}}).to_string());
    put("server.sh", SERVER);
}

impl World {
    fn plugin(&self) -> std::path::PathBuf {
        self.home.path().join(".local/share/gnoma/plugins/demo")
    }

    /// A turn that writes a file, so that the plugin's hook runs.
    async fn writes(&self) -> crate::support::Run {
        self.run(&["--permission", "accept_edits", "go with the db of demo"]).await
    }
}

fn turn() -> [gnoma_testkit::Reply; 2] {
    [calls("fs_write", r#"{"path":"a.txt","content":"x"}"#), says("done")]
}

#[tokio::test]
async fn installed_plugin_parts_work_under_its_name() {
    let world = World::new(turn().into_iter().chain([says("hi")])).among_files();
    let source = tempfile::tempdir().unwrap();
    demo(source.path());
    let run = world.run(&["plugin", "install", source.path().to_str().unwrap()]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    for part in
        ["`demo` 1.0.0", "hook PreToolUse: sh", "plugin_demo_db runs sh", "1 command, 1 skill"]
    {
        assert!(run.out.contains(part), "{part}: {run:?}");
    }
    let run = world.writes().await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(world.read("noted.txt").lines().count(), 1, "{run:?}");
    assert_eq!(Path::new(world.read("root.txt").trim()), world.plugin().canonicalize().unwrap());
    let sent = world.sent();
    for part in ["demo:pdf: Reads what1s", "mcp__plugin_demo_db__ask", "b0und"] {
        assert!(sent.contains(part), "{part}: {run:?}");
    }
    world.run(&["/demo:hi there"]).await;
    assert!(world.said().starts_with("Hi there from /"), "{}", world.said());
    let all = world.run(&["extensions"]).await.out;
    for part in ["plugin", "demo:hi", "demo:pdf", "demo:helper", "plugin_demo_db"] {
        assert!(all.contains(part), "{part}: {all}");
    }
    let removed = world.run(&["plugin", "remove", "demo"]).await;
    assert!(removed.out.contains("removed") && !world.plugin().exists(), "{removed:?}");
}

#[tokio::test]
async fn changed_or_updated_plugin_is_disabled_until_trusted() {
    let world = World::new(turn().into_iter().chain(turn()).chain(turn())).among_files();
    let source = tempfile::tempdir().unwrap();
    demo(source.path());
    fs::remove_file(source.path().join(".mcp.json")).unwrap();
    world.run(&["plugin", "install", source.path().to_str().unwrap()]).await;
    let script = world.plugin().join("scripts/note.sh");
    fs::write(&script, format!("{} ", fs::read_to_string(&script).unwrap())).unwrap();
    let run = world.writes().await;
    assert!(
        run.err.contains("`demo` is not loaded") && run.err.contains("gnoma plugin trust"),
        "{run:?}"
    );
    assert!(!exists(world.project.path(), "noted.txt") && !world.sent().contains("what1s"));
    let refused = world.run(&["plugin", "trust", "demo"]).await;
    assert!(refused.code == Some(2) && refused.err.contains("trust demo --yes"), "{refused:?}");
    for part in ["~ scripts/note.sh", "-cat > /dev/null", "+cat > /dev/null"] {
        assert!(refused.out.contains(part), "{part}: {refused:?}");
    }
    let mut terminal = Terminal::open(&world, "plugin trust demo");
    terminal.wait_for("Approve this plugin?", 1).await;
    terminal.press("n\n").await;
    let (ended, screen) = terminal.end().await;
    assert!(ended == Some(1) && screen.contains("is not approved"), "{screen}");
    let trusted = world.run(&["plugin", "trust", "demo", "--yes"]).await;
    assert!(trusted.out.contains("approved `demo`"), "{trusted:?}");
    world.writes().await;
    assert!(exists(world.project.path(), "noted.txt"));
    fs::remove_file(world.project.path().join("noted.txt")).unwrap();
    fs::write(source.path().join("commands/new.md"), "n3w line").unwrap();
    let updated = world.run(&["plugin", "update"]).await;
    for part in ["+ commands/new.md", "n3w line", "gnoma plugin trust demo"] {
        assert!(updated.out.contains(part), "{part}: {updated:?}");
    }
    let run = world.writes().await;
    assert!(!exists(world.project.path(), "noted.txt"), "{run:?}");
    let list = world.json(&["plugin", "list", "--json"]).await;
    assert_eq!(list[0]["is_loaded"], false);
    world.run(&["plugin", "trust", "demo", "--yes"]).await;
    let again = world.run(&["plugin", "update", "demo"]).await;
    assert!(again.out.contains("up to date"), "{again:?}");
}

#[tokio::test]
async fn plugins_install_from_archives_repositories_and_marketplaces() {
    let world = World::new([]);
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    demo(&at("market/plugins/demo"));
    fs::create_dir(at("market/.claude-plugin")).unwrap();
    let plugins = json!([
        {"name": "demo", "source": "./plugins/demo", "description": "Shows."},
        {"name": "other", "source": {"source": "npm", "package": "x"}},
    ]);
    let market = json!({"name": "m", "owner": {"name": "o"}, "plugins": plugins});
    fs::write(at("market/.claude-plugin/marketplace.json"), market.to_string()).unwrap();
    let shell = |line: &str| {
        let done =
            Command::new("sh").args(["-c", line]).current_dir(folder.path()).output().unwrap();
        assert!(done.status.success(), "{line}: {done:?}");
    };
    shell("tar -czf demo.tar.gz -C market/plugins demo");
    shell(
        "cp -r market/plugins/demo repo && cd repo && git init -q && git add -A && \
         git -c user.name=a -c user.email=a@b commit -q -m x",
    );
    let sources = [
        at("demo.tar.gz").display().to_string(),
        format!("file://{}", at("repo").display()),
        format!("demo@{}", at("market").display()),
    ];
    for source in sources {
        let run = world.run(&["plugin", "install", &source]).await;
        assert!(run.out.contains("installed `demo` 1.0.0"), "{source}: {run:?}");
        assert!(world.plugin().join("commands/hi.md").is_file());
        assert!(!world.plugin().join(".git").exists());
        let again = world.run(&["plugin", "install", &source]).await;
        assert!(again.err.contains("already"), "{again:?}");
        let update = world.run(&["plugin", "update", "demo"]).await;
        assert!(update.out.contains("up to date"), "{source}: {update:?}");
        assert_eq!(world.run(&["plugin", "remove", "demo"]).await.code, Some(0));
    }
    let market = at("market");
    let run = world.run(&["plugin", "install", market.to_str().unwrap()]).await;
    assert!(run.err.contains("demo: Shows.") && run.code != Some(0), "{run:?}");
    let other = format!("other@{}", market.display());
    let run = world.run(&["plugin", "install", &other]).await;
    assert!(run.err.contains("npm"), "{run:?}");
    let check = world.run(&["plugin", "validate", market.to_str().unwrap()]).await;
    assert!(check.code == Some(1) && check.out.contains("npm"), "{check:?}");
    let check = world.run(&["plugin", "validate", at("repo").to_str().unwrap()]).await;
    assert_eq!(check.code, Some(0), "{check:?}");
    std::os::unix::fs::symlink("/etc/passwd", at("repo/out")).unwrap();
    let run = world.run(&["plugin", "install", at("repo").to_str().unwrap()]).await;
    assert!(run.err.contains("leads out") && !world.plugin().exists(), "{run:?}");
}

#[tokio::test]
async fn plugin_of_an_untrusted_project_runs_nothing_and_is_reported() {
    let world = World::new(turn().into_iter().chain(turn())).among_files();
    demo(&world.project.path().join(".gnoma/plugins/demo"));
    let run = world.writes().await;
    assert!(
        run.err.contains("has the plugin `demo`") && run.err.contains("gnoma trust"),
        "{run:?}"
    );
    assert!(!exists(world.project.path(), "noted.txt") && !world.sent().contains("what1s"));
    let trusted = world.run(&["trust", "--yes"]).await;
    assert!(trusted.out.contains(".gnoma/plugins/demo/scripts/note.sh"), "{trusted:?}");
    let run = world.writes().await;
    assert!(exists(world.project.path(), "noted.txt"), "{run:?}");
    assert!(world.sent().contains("what1s"));
    world.put(".gnoma/plugins/demo/scripts/note.sh", "echo other");
    let all = world.run(&["extensions"]).await;
    assert!(all.out.contains("needs `gnoma trust`"), "{all:?}");
}

#[tokio::test]
async fn project_plugin_script_is_pinned_by_trust() {
    let world = World::new(turn().into_iter().chain(turn())).among_files();
    demo(&world.project.path().join(".gnoma/plugins/demo"));
    let hook = json!({"type": "command", "command": "sh ./scripts/hook.sh"});
    let hooks = json!({"hooks": {"PreToolUse": [{"matcher": "Write", "hooks": [hook]}]}});
    world.put(".gnoma/plugins/demo/hooks/hooks.json", &hooks.to_string());
    world.put("scripts/hook.sh", "echo ran >> ran.txt");
    let trusted = world.run(&["trust", "--yes"]).await;
    assert!(trusted.out.contains("  scripts/hook.sh\n"), "{trusted:?}");
    let run = world.writes().await;
    assert_eq!(world.read("ran.txt"), "ran\n", "{run:?}");
    world.put("scripts/hook.sh", "echo other >> ran.txt");
    let run = world.writes().await;
    assert_eq!(world.read("ran.txt"), "ran\n", "{run:?}");
    assert!(run.err.contains("gnoma trust"), "{run:?}");
}

#[tokio::test]
async fn plugin_install_pins_a_commit_and_stores_no_password() {
    let world = World::new([]);
    let folder = tempfile::tempdir().unwrap();
    let shell = |line: &str| {
        let done =
            Command::new("sh").args(["-c", line]).current_dir(folder.path()).output().unwrap();
        assert!(done.status.success(), "{line}: {done:?}");
        String::from_utf8(done.stdout).unwrap().trim().to_owned()
    };
    demo(&folder.path().join("repo"));
    let commit = "git add -A && git -c user.name=a -c user.email=a@b commit -q -m x";
    let first = shell(&format!("cd repo && git init -q && {commit} && git rev-parse HEAD"));
    shell(&format!("cd repo && echo n3w > commands/new.md && {commit}"));
    let repo = format!("file://{}", folder.path().join("repo").display());
    let entry = json!({"name": "demo", "source": {"source": "url", "url": repo, "ref": "no-such", "sha": first}});
    fs::create_dir_all(folder.path().join("market/.claude-plugin")).unwrap();
    let market = json!({"name": "m", "owner": {"name": "o"}, "plugins": [entry]});
    fs::write(folder.path().join("market/.claude-plugin/marketplace.json"), market.to_string())
        .unwrap();
    let of_market = format!("demo@{}", folder.path().join("market").display());
    for source in [format!("{repo}#{first}"), of_market] {
        let run = world.run(&["plugin", "install", &source]).await;
        assert!(run.out.contains("installed `demo`"), "{source}: {run:?}");
        assert!(world.plugin().join("commands/hi.md").exists());
        assert!(!world.plugin().join("commands/new.md").exists(), "{source}");
        world.run(&["plugin", "remove", "demo"]).await;
    }
    let gone = format!("{repo}#{}", "0".repeat(40));
    let run = world.run(&["plugin", "install", &gone]).await;
    assert!(run.code != Some(0) && run.err.contains("there is no commit"), "{run:?}");
    let run = world.run(&["plugin", "install", "https://me:s3cret@127.0.0.1:1/a.git"]).await;
    assert!(run.err.contains("https://127.0.0.1:1/a.git"), "{run:?}");
    assert!(!format!("{run:?}").contains("s3cret"), "{run:?}");
}
