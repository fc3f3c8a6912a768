//! Incognito with everything on: hooks, a server of tools, an elf, commands on trial, a page. Whatever is on, and
//! whenever the program is killed, no file and no folder is there that was not there before.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use gnoma_sandbox::{MemoryFolder, Policy, ReadScope, SessionSandbox, Support};
use gnoma_testkit::Reply;
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::Command,
    time::{sleep, timeout},
};

use crate::{
    mcp::Served,
    support::{World, calls, finish, says},
};

/// Sessions that are killed; `GNOMA_KILLS` sets more.
const KILLS: u64 = 5;
/// A session is killed at the latest after this long; most have ended by then.
const MAX_LIFE_MS: u64 = 4_000;
/// Nothing here takes longer.
const MAX_WAIT: Duration = Duration::from_secs(60);
/// Looks like a token, so that it would be redacted where it is saved.
const TOKEN: &str = "ghp_x7Kq9LmZ2tRw4VbN8sYp3HdJ6fGcA1eQ0uTi";
/// The folders below the home that programs keep things in, by the variable that names each.
const FOLDERS: [(&str, &str); 6] = [
    ("XDG_CONFIG_HOME", ".config"),
    ("XDG_STATE_HOME", "state"),
    ("XDG_CACHE_HOME", "cache"),
    ("XDG_DATA_HOME", "data"),
    ("XDG_RUNTIME_DIR", "runtime"),
    ("TMPDIR", "tmp"),
];

fn session() -> Served {
    let elf = json!({"tasks": [{"task": "look around"}]}).to_string();
    let pause = Duration::from_millis(30);
    let replies = [
        calls("bash", r#"{"command":"cat notes.txt; ls"}"#),
        calls("bash", r#"{"command":"sh ./change.sh"}"#),
        calls("mcp__fake__echo", r#"{"text":"hi"}"#),
        calls("elf_spawn", &elf),
        says("the elf looked"),
        calls("fs_edit", r#"{"path":"notes.txt","old_string":"end","new_string":"End"}"#),
        says("all done"),
    ];
    let served = Served::with(replies.map(|reply: Reply| reply.with_delay(pause)));
    served.configure("\n[[permission.rules]]\nrule = \"mcp(fake:*)\"\naction = \"allow\"\n");
    let world = &served.world;
    world.write("notes.txt", &format!("{TOKEN}\nend\n"));
    world.write("change.sh", "echo made > made.txt\n");
    let line =
        json!([{"hooks": [{"type": "command", "command": "cat > /dev/null; echo ran >> hooked"}]}]);
    let points = ["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"];
    let hooks: serde_json::Map<_, _> =
        points.map(|point| (point.to_owned(), line.clone())).into_iter().collect();
    world.put_home(".claude/settings.json", &json!({ "hooks": hooks }).to_string());
    prepare(world);
    served
}

fn prepare(world: &World) {
    for (_, folder) in FOLDERS {
        fs::create_dir_all(world.home.path().join(folder)).unwrap();
    }
}

fn command(world: &World, args: &[&str]) -> Command {
    let mut command = world.command(args);
    for (name, folder) in FOLDERS {
        command.env(name, world.home.path().join(folder));
    }
    command
}

fn start(world: &World) -> Command {
    let prompt = format!("use {TOKEN} with fake");
    command(world, &["--incognito", "--permission", "accept_edits", &prompt])
}

/// Everything below the home.
fn paths(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut waiting = vec![folder.to_path_buf()];
    while let Some(folder) = waiting.pop() {
        for path in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
            if path.is_dir() && !path.is_symlink() {
                waiting.push(path.clone());
            }
            found.insert(path);
        }
    }
    found
}

#[track_caller]
fn assert_same(world: &World, before: &BTreeSet<PathBuf>, when: &str) {
    let after = paths(world.home.path());
    let new: Vec<_> = after.difference(before).collect();
    assert!(new.is_empty(), "{when}: {new:?}");
}

fn has_trials(world: &World) -> bool {
    let memory = MemoryFolder::new(env!("CARGO_BIN_EXE_gnoma").into());
    let roots = vec![world.project.path().canonicalize().unwrap()];
    let trials = gnoma_tools::Trials::new(env!("CARGO_BIN_EXE_gnoma").into(), roots, Vec::new());
    trials.in_memory(memory.into()).unavailable_reason().is_none()
}

#[tokio::test]
async fn no_file_is_made_with_everything_on() {
    let served = session();
    let world = &served.world;
    let before = paths(world.home.path());
    let run = finish(start(world).spawn().unwrap()).await;
    assert_same(world, &before, "at the end");
    // All of it was really on.
    assert!(world.project.path().join("hooked").exists(), "{run:?}");
    assert!(served.at("called").exists(), "{run:?}");
    assert_eq!(world.read("notes.txt"), format!("{TOKEN}\nEnd\n"));
    assert_eq!(world.server.requests().len(), 7, "{run:?}");
    if has_trials(world) {
        assert_eq!((run.code, world.read("made.txt").as_str()), (Some(0), "made\n"), "{run:?}");
    } else {
        gnoma_testkit::skip_test("there are no layers in memory here");
    }
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "how often it is killed is said from outside")]
async fn incognito_session_killed_at_any_moment_leaves_no_file() {
    let kills = std::env::var("GNOMA_KILLS").ok().and_then(|text| text.parse().ok());
    let kills: u64 = kills.unwrap_or(KILLS);
    let mut asked = 0;
    for kill in 0..kills {
        let served = session();
        let world = &served.world;
        let before = paths(world.home.path());
        let mut child = start(world).spawn().unwrap();
        // Evenly over the life of a session, in an order that a short run covers, too.
        let life = Duration::from_millis(kill * 1_619 % MAX_LIFE_MS);
        let ended = timeout(life, child.wait()).await.is_ok();
        if !ended {
            child.start_kill().unwrap();
        }
        finish(child).await;
        assert_same(world, &before, &format!("killed after {life:?}"));
        asked += world.server.requests().len();
    }
    assert!(asked > 0, "no session came as far as its model");
}

#[tokio::test]
async fn a_page_in_incognito_leaves_no_token_and_no_socket() {
    let world = World::new([]);
    prepare(&world);
    let before = paths(world.home.path());
    let mut command = command(&world, &["--incognito", "web", "--port", "0"]);
    let mut child = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let links = timeout(MAX_WAIT, async {
        let mut links = 0;
        while let Ok(Some(line)) = lines.next_line().await {
            links += usize::from(line.contains("/#t="));
            if line.contains("its page") {
                break;
            }
        }
        links
    });
    assert_eq!(links.await.unwrap(), 2);
    assert_same(&world, &before, "while it runs");
    child.start_kill().unwrap();
    finish(child).await;
    assert_same(&world, &before, "killed");
    let run = world.run(&["--incognito", "serve"]).await;
    assert_eq!(run.code, Some(2), "{run:?}");
}

#[tokio::test]
async fn commands_in_incognito_share_temporary_files_in_memory() {
    let world = World::new([]);
    if !has_trials(&world) {
        return gnoma_testkit::skip_test("there are no folders in memory here");
    }
    let launcher = PathBuf::from(env!("CARGO_BIN_EXE_gnoma"));
    let memory = Arc::new(MemoryFolder::new(launcher.clone()));
    let scratch = memory.create_scratch().unwrap();
    let places = ["/usr", "/bin", "/lib", "/lib64", "/etc"].map(PathBuf::from);
    let project = world.project.path().canonicalize().unwrap();
    let shown = places.into_iter().chain([project.clone()]).collect();
    let policy = Policy {
        readable: ReadScope::Only { shown, hidden: Vec::new() },
        temporary: Some(scratch.folder().to_owned()),
        alone: true,
        ..Policy::default()
    };
    let walls = SessionSandbox::new(launcher, &Support::detect());
    let run = |script: &str| {
        let mut command = walls.command("/bin/sh", ["-c", script], &policy);
        let ended = command.current_dir(&project).output().unwrap();
        String::from_utf8_lossy(&[ended.stdout, ended.stderr].concat()).into_owned()
    };
    assert_eq!(run("echo one > /tmp/shared; echo two > /var/tmp/other"), "");
    assert_eq!(run("cat /tmp/shared /var/tmp/other"), "one\ntwo\n");
    assert_eq!(fs::read_to_string(scratch.folder().join("tmp/shared")).unwrap(), "one\n");
    assert!(!Path::new("/tmp/shared").exists() && !Path::new("/var/tmp/other").exists());
    let folder = scratch.folder().to_owned();
    drop((scratch, memory));
    assert!(!folder.exists());
}

#[tokio::test]
async fn transcripts_for_hooks_hold_no_secret_and_go_with_a_killed_session() {
    let world = World::new([calls("bash", r#"{"command":"sleep 30"}"#), says("done")]);
    let copy = "sed -n 's/.*\"transcript_path\":\"\\([^\"]*\\)\".*/\\1/p' > path; cat \"$(cat path)\" > seen";
    let hooks =
        json!({"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": copy}]}]}});
    world.put_home(".claude/settings.json", &hooks.to_string());
    let prompt = format!("use {TOKEN}");
    let mut child = world.command(&["--permission", "accept_edits", &prompt]).spawn().unwrap();
    let seen = world.project.path().join("seen");
    timeout(MAX_WAIT, async {
        while !fs::read_to_string(&seen).is_ok_and(|text| text.contains("github-pat")) {
            sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .unwrap();
    child.start_kill().unwrap();
    finish(child).await;
    let text = world.read("seen");
    assert!(!text.contains(TOKEN), "{text}");
    let path = PathBuf::from(world.read("path").trim());
    assert!(path.exists(), "{path:?}");
    world.run(&["--permission", "plan", "go on"]).await;
    assert!(!path.exists() && !path.parent().unwrap().exists(), "{path:?}");
}
