//! Walls around commands, as a model meets them: it runs what the guard cannot see through.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use gnoma_sandbox::{Strength, Support};
use serde_json::json;

use crate::{
    support::{World, calls, exists, says},
    terminal::Terminal,
};

/// A folder of every Linux that commands may write in, and that is not among the temporary ones.
const ELSEWHERE: &str = "/dev/shm";
/// Nothing outlives the program by more.
const MAX_LINGER: Duration = Duration::from_secs(30);

/// Whether the walls are whole here.
fn is_walled() -> bool {
    let support = Support::detect();
    let whole = support.strength == Strength::Full;
    if !whole {
        let parts = support.parts.iter().map(|part| format!("{}: {}", part.name, part.note));
        gnoma_testkit::skip_test(&format!("no sandbox: {}", parts.collect::<Vec<_>>().join("; ")));
    }
    whole
}

/// A world whose model runs `script` from a file, which nobody has read.
fn running(script: &str) -> World {
    let world = World::new([calls("bash", r#"{"command":"sh ./script.sh"}"#), says("ok")]);
    world.write("script.sh", script);
    world
}

async fn run(world: &World) -> String {
    let run = world.run(&["--permission", "bypass", "go"]).await;
    // Some need approval even here, and nobody is there.
    assert!(matches!(run.code, Some(0 | 4)), "{run:?}");
    result(world)
}

/// What the command said.
fn result(world: &World) -> String {
    let body = world.server.requests()[1].json();
    body["messages"][3]["content"].as_str().unwrap().to_owned()
}

/// Runs `script` behind walls and, to see that it would work, without them.
async fn both(script: &str, prepare: impl Fn(&World)) -> [(World, String); 2] {
    let walled = running(script);
    prepare(&walled);
    let said = run(&walled).await;
    let open = running(script);
    open.configure("[sandbox]\nmode = \"off\"\n");
    prepare(&open);
    let said_without = run(&open).await;
    [(walled, said), (open, said_without)]
}

fn nothing(_: &World) {}

/// A folder outside of everything that commands may write in.
fn elsewhere() -> Option<tempfile::TempDir> {
    let folder = tempfile::tempdir_in(ELSEWHERE).ok();
    if folder.is_none() {
        gnoma_testkit::skip_test(&format!("{ELSEWHERE} cannot be written"));
    }
    folder
}

#[tokio::test]
async fn sandboxed_commands_write_only_in_the_workspace() {
    let Some(outside) = elsewhere().filter(|_| is_walled()) else { return };
    let path = outside.path().join("made");
    let script =
        format!("touch inside /tmp/walls-$$ && rm /tmp/walls-$$\necho x > {}\n", path.display());
    let walled = running(&script);
    let said = run(&walled).await;
    assert!(exists(walled.project.path(), "inside"), "{said}");
    assert!(!path.exists() && !said.contains("[exit 0]"), "{said}");
    let open = running(&script);
    open.configure("[sandbox]\nmode = \"off\"\n");
    let said = run(&open).await;
    assert!(path.exists(), "{said}");
}

#[tokio::test]
async fn sandboxed_command_cannot_create_guarded_files() {
    if !is_walled() {
        return;
    }
    let script = "mkdir -p .git/hooks .gnoma .vscode\n\
        echo x > .git/hooks/pre-commit\n\
        echo x > .gnoma/config.toml\n\
        echo x > .vscode/tasks.json\n\
        mv .git moved && mkdir -p .git/hooks && echo x > .git/hooks/pre-commit\n\
        echo x > ordinary\n";
    let repository =
        |world: &World| fs::create_dir_all(world.project.path().join(".git/hooks")).unwrap();
    for (number, prepare) in [&repository as &dyn Fn(&World), &nothing].into_iter().enumerate() {
        let [(walled, said), (open, _)] = both(script, prepare).await;
        assert!(exists(walled.project.path(), "ordinary"), "{said}");
        for name in [".git/hooks/pre-commit", ".gnoma/config.toml", ".vscode/tasks.json"] {
            assert!(!exists(walled.project.path(), name), "{number}, {name}: {said}");
        }
        for name in [".gnoma/config.toml", ".vscode/tasks.json"] {
            assert!(exists(open.project.path(), name), "{number}, {name}");
        }
    }
    // Nothing is left behind that was not there before.
    let world = running("true\n");
    run(&world).await;
    let mut names: Vec<_> = fs::read_dir(world.project.path()).unwrap().flatten().collect();
    names.retain(|entry| entry.file_name() != "script.sh");
    assert!(names.is_empty(), "{names:?}");
}

#[tokio::test]
async fn commands_see_no_keys_and_no_credentials() {
    let script = "env; cat ~/.ssh/id_ed25519 ~/.aws/credentials ~/.config/gnoma/config.toml\n\
        cat /proc/$PPID/environ /proc/[0-9]*/environ 2> /dev/null | tr '\\0' '\\n'\n";
    let world = running(script);
    for name in [".ssh/id_ed25519", ".aws/credentials"] {
        let path = world.home.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "my private words\n").unwrap();
    }
    world.configure("# my private words\n");
    let mut command = world.command(&["--permission", "bypass", "go"]);
    let keys = ["OPENAI_API_KEY", "GH_TOKEN", "AWS_SECRET_ACCESS_KEY", "NPM_TOKEN", "DB_PASSWORD"];
    command.envs(keys.map(|name| (name, "canary-of-a-key"))).env("HARMLESS", "harmless-words");
    let ended = crate::support::finish(command.spawn().unwrap()).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let said = result(&world);
    assert!(said.contains("HARMLESS=harmless-words"), "{said}");
    if is_walled() {
        // Redaction would hide a value that got here; the name tells.
        for name in keys {
            assert!(!said.contains(name), "{name}: {said}");
        }
        assert!(!said.contains("my private words"), "{said}");
    }
}

#[tokio::test]
async fn sandboxed_command_reaches_the_network_only_if_granted() {
    if !is_walled() {
        return;
    }
    let probe = |world: &World| {
        let address = world.server.url().replace("http://", "");
        let (host, port) = address.split_once(':').unwrap();
        let text = format!("exec 3<>/dev/tcp/{host}/{port} && echo reached\n");
        fs::write(world.project.path().join("probe.bash"), text).unwrap();
    };
    let script = "bash ./probe.bash\n";
    for (network, reached) in [("never", false), ("always", true)] {
        let world = running(script);
        world.configure(&format!("[sandbox]\nnetwork = \"{network}\"\n"));
        probe(&world);
        let said = run(&world).await;
        assert_eq!(said.lines().any(|line| line == "reached"), reached, "{network}: {said}");
    }
    // By default a command that nobody asked about gets through only in mode bypass.
    for (flags, reached) in [("accept_edits", false), ("bypass", true)] {
        let world = running(script);
        world.configure(
            "[[permission.rules]]\nrule = \"bash(sh ./script.sh)\"\naction = \"allow\"\n",
        );
        probe(&world);
        let ended = world.run(&["--permission", flags, "go"]).await;
        let said = result(&world);
        assert_eq!(said.lines().any(|line| line == "reached"), reached, "{ended:?}: {said}");
    }
}

#[tokio::test]
async fn server_that_is_an_approved_job_can_be_reached() {
    if !is_walled() {
        return;
    }
    if std::process::Command::new("python3").arg("--version").output().is_err() {
        return gnoma_testkit::skip_test("`python3` is not installed");
    }
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let world = World::new([
        calls("bash", r#"{"command":"sh ./script.sh","background":true}"#),
        calls("bash", r#"{"command":"until [ -e over ]; do sleep 0.1; done"}"#),
        says("ok"),
    ]);
    let serve = format!("exec python3 -m http.server {port} --bind 127.0.0.1 >/dev/null 2>&1\n");
    world.write("script.sh", &serve);
    let mut terminal = Terminal::open(&world, "--permission auto go");
    terminal.wait_for("reason to deny", 1).await;
    let seen = terminal.seen.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(seen.contains("with a yes it has the network of this machine"), "{seen}");
    let is_reached = || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok();
    assert!(!is_reached(), "it runs before anybody has answered");
    terminal.press("y\n").await;
    let asked = Instant::now();
    while !is_reached() && asked.elapsed() < MAX_LINGER {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(is_reached(), "{}", terminal.seen);
    world.write("over", "");
    let (code, seen) = terminal.end().await;
    assert_eq!(code, Some(0), "{seen}");
    assert!(!result(&world).contains("no network"), "{}", result(&world));
}

#[tokio::test]
async fn background_server_allowed_by_a_rule_is_told_it_has_no_network() {
    if !is_walled() {
        return;
    }
    let world = World::new([
        calls("bash", r#"{"command":"sh ./script.sh","background":true}"#),
        says("ok"),
    ]);
    world.write("script.sh", "sleep 60\n");
    world.configure("[[permission.rules]]\nrule = \"bash(sh ./script.sh)\"\naction = \"allow\"\n");
    let ended = world.run(&["--permission", "auto", "go"]).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(result(&world).contains("it has no network"), "{}", result(&world));
}

/// Processes whose command line names `word`. Numbers of processes mean nothing across walls.
fn survivors(word: &str) -> Vec<PathBuf> {
    let names = |folder: &Path| {
        let line = fs::read(folder.join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(word)
    };
    let folders = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    folders.filter(|folder| names(folder)).collect()
}

#[tokio::test]
async fn processes_of_commands_are_killed_when_the_program_ends() {
    if !is_walled() {
        return;
    }
    let nap = format!("301.{}", std::process::id());
    let script = format!(
        "sleep {nap} > /dev/null 2>&1 &\n\
         setsid sleep {nap} > /dev/null 2>&1 &\n\
         (setsid sh -c 'setsid sleep {nap} & exec setsid sleep {nap}' > /dev/null 2>&1 &)\n\
         nohup sh -c 'trap \"\" TERM HUP INT; sleep {nap}; sleep {nap}' > /dev/null 2>&1 &\n\
         sleep 0.3; echo started\n"
    );
    let world = running(&script);
    let said = run(&world).await;
    assert!(said.contains("started"), "{said}");
    let ended = Instant::now();
    while !survivors(&nap).is_empty() && ended.elapsed() < MAX_LINGER {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(survivors(&nap), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn tool_call_arguments_cannot_disable_the_sandbox() {
    let Some(outside) = elsewhere().filter(|_| is_walled()) else { return };
    let path = outside.path().join("made");
    let arguments = json!({
        "command": "sh ./script.sh", "outside": true, "sandbox": "off", "network": true,
        "dangerously_disable_sandbox": true, "grant": {"outside": true},
    });
    let world = World::new([calls("bash", &arguments.to_string()), says("ok")]);
    world.write("script.sh", &format!("echo x > {}\n", path.display()));
    let ended = world.run(&["--permission", "bypass", "--confirm-bypass", "go"]).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(!path.exists(), "{ended:?}");
}

#[tokio::test]
async fn sandbox_denied_command_runs_outside_if_the_person_approves() {
    for (answer, made) in [("y\n", true), ("n\n", false)] {
        if !is_walled() {
            return;
        }
        let world = running("echo x > .gnoma/config.toml\n");
        fs::create_dir(world.project.path().join(".gnoma")).unwrap();
        let mut terminal = Terminal::open(&world, "--permission bypass go");
        terminal.wait_for("outside the sandbox?", 1).await;
        terminal.wait_for("reason to deny", 1).await;
        let is_made = || exists(world.project.path(), ".gnoma/config.toml");
        assert!(!is_made(), "{}", terminal.seen);
        terminal.press(answer).await;
        let (code, seen) = terminal.end().await;
        assert_eq!(code, Some(0), "{seen}");
        assert_eq!(is_made(), made, "{seen}");
    }
}

#[tokio::test]
async fn guarded_file_created_by_a_command_stays_only_if_approved() {
    for (answer, there) in [("y\n", ".vscode/tasks.json"), ("n\n", ".vscode.held/tasks.json")] {
        if !is_walled() {
            return;
        }
        let world =
            running("mkdir .vscode && echo x > .vscode/tasks.json && ls -A | tr '\\n' ' '\n");
        let mut terminal = Terminal::open(&world, "--permission bypass go");
        terminal.wait_for("has made `.vscode`", 1).await;
        terminal.wait_for("reason to deny", 1).await;
        terminal.press(answer).await;
        let (code, seen) = terminal.end().await;
        assert_eq!(code, Some(0), "{seen}");
        assert!(exists(world.project.path(), there), "{seen}");
        let is_there = exists(world.project.path(), ".vscode");
        assert_eq!(is_there, there.starts_with(".vscode/"), "{seen}");
        let told = result(&world);
        assert!(told.contains(".vscode script.sh"), "no stand-ins are in the workspace: {told}");
        assert_eq!(told.contains("renamed"), !is_there, "{told}");
    }
}

#[tokio::test]
async fn processes_of_commands_are_killed_when_the_program_is_killed() {
    if !is_walled() {
        return;
    }
    let nap = format!("302.{}", std::process::id());
    let world = running(&format!(
        "sleep {nap} &\nsetsid sleep {nap} &\n(setsid nohup sleep {nap} > /dev/null 2>&1 &)\n\
         sleep 0.2; touch up; wait\n"
    ));
    let mut child = world.command(&["--permission", "bypass", "go"]).spawn().unwrap();
    while !exists(world.project.path(), "up") {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(!survivors(&nap).is_empty());
    child.start_kill().unwrap();
    child.wait().await.unwrap();
    let ended = Instant::now();
    while !survivors(&nap).is_empty() && ended.elapsed() < MAX_LINGER {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(survivors(&nap), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn confirmed_bypass_may_write_guarded_files() {
    let hook = ".git/hooks/pre-commit";
    let call = json!({"command": format!("echo x > {hook}")}).to_string();
    let world = World::new([calls("bash", &call), says("ok")]);
    fs::create_dir_all(world.project.path().join(".git/hooks")).unwrap();
    let ended = world.run(&["--permission", "bypass", "--confirm-bypass", "go"]).await;
    assert!(exists(world.project.path(), hook), "{ended:?}: {}", result(&world));
}
