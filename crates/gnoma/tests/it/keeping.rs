//! What is kept whatever happens, and what never is: crashes, full disks, locks, incognito.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Stdio, time::Duration};

use gnoma_sandbox::{Strength, Support};
use serde_json::json;
use tokio::{process::Command, time::sleep};

use crate::support::{World, calls, exists, finish, says};

/// How long one waits for another process to get somewhere.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// Waits until `is_so`.
async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !is_so().await {
            sleep(Duration::from_millis(20)).await;
        }
    };
    assert!(tokio::time::timeout(MAX_WAIT, waiting).await.is_ok(), "never: {what}");
}

fn files_below(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for path in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        if path.is_dir() && !path.is_symlink() {
            files.extend(files_below(&path));
        }
        files.push(path);
    }
    files
}

#[tokio::test]
async fn session_killed_during_a_tool_call_resumes_with_every_call_answered() {
    let sleeps = calls("bash", r#"{"command":"echo > begun; sleep 30"}"#);
    let world = World::new([sleeps, says("I see.")]);
    let mut child = world.command(&["--permission", "bypass", "wait"]).spawn().unwrap();
    until("the command runs", async || exists(world.project.path(), "begun")).await;
    child.start_kill().unwrap();
    finish(child).await;
    let run = world.run(&["--continue", "what happened?"]).await;
    assert_eq!((run.code, run.out.as_str()), (Some(0), "I see.\n"), "{run:?}");
    assert!(run.err.contains("while a call of this session was running"), "{run:?}");
    let roles: Vec<_> = world.last_request().into_iter().map(|(role, _)| role).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "user"]);
    assert!(world.last_request()[2].1.contains("interrupted"), "{:?}", world.last_request());
}

#[tokio::test]
async fn session_killed_at_any_moment_resumes_with_a_valid_request() {
    for wait_ms in [0, 15, 30, 60, 120, 250, 500, 900] {
        let pause = Duration::from_millis(40);
        let write = json!({"path": "a", "content": "1"}).to_string();
        let replies = [
            calls("fs_ls", r#"{"path":"."}"#),
            calls("fs_write", &write),
            calls("bash", r#"{"command":"sleep 0.2; echo 2 > a"}"#),
            says("done"),
        ];
        let script = std::sync::atomic::AtomicUsize::new(0);
        let server = gnoma_testkit::Server::start(move |_: &gnoma_testkit::Request| {
            let at = script.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            replies.get(at).cloned().unwrap_or_else(|| says("later")).with_delay(pause)
        });
        let world = World::with(server.unwrap());
        let mut child = world.command(&["--permission", "bypass", "work"]).spawn().unwrap();
        sleep(Duration::from_millis(wait_ms)).await;
        child.start_kill().ok();
        finish(child).await;
        let run = world.run(&["--permission", "bypass", "--continue", "go on"]).await;
        if run.code == Some(2) {
            assert!(run.err.contains("no saved sessions in"), "after {wait_ms} ms: {run:?}");
            continue;
        }
        assert_eq!(run.code, Some(0), "after {wait_ms} ms: {run:?}");
        for request in world.server.requests() {
            assert_legal(&request.json()["messages"]);
        }
        let repair = world.run(&["sessions", "repair"]).await;
        assert!(repair.out.starts_with("the database is intact"), "{repair:?}");
    }
}

/// Every call is answered right after, in order, and nothing else is.
fn assert_legal(messages: &serde_json::Value) {
    let mut open: Vec<String> = Vec::new();
    for message in messages.as_array().unwrap() {
        if message["role"] == "tool" {
            let answered = message["tool_call_id"].as_str().unwrap();
            assert!(!open.is_empty() && open.remove(0) == answered, "{messages}");
            continue;
        }
        assert!(open.is_empty(), "{messages}");
        let calls = message["tool_calls"].as_array().into_iter().flatten();
        open.extend(calls.map(|call| call["id"].as_str().unwrap().to_owned()));
    }
    assert!(open.is_empty(), "{messages}");
}

#[tokio::test]
async fn incognito_leaves_no_file_and_no_folder() {
    let write = json!({"path": "a", "content": "1"}).to_string();
    let world = World::new([calls("fs_write", &write), says("done")]);
    let before = files_below(world.home.path());
    let run = world.run(&["--incognito", "--permission", "accept_edits", "write"]).await;
    assert_eq!((run.code, run.out.as_str()), (Some(0), "done\n"), "{run:?}");
    assert_eq!(world.read("a"), "1");
    assert_eq!(files_below(world.home.path()), before);
    let run = world.run(&["--incognito", "--continue", "go on"]).await;
    assert_eq!(run.code, Some(2), "{run:?}");
}

#[tokio::test]
async fn commands_that_read_sessions_create_no_files() {
    let world = World::new([says("one")]);
    world.run(&["in the project"]).await;
    let elsewhere = tempfile::tempdir().unwrap();
    let before = files_below(world.home.path());
    let commands: [&[&str]; 6] = [
        &["sessions", "list"],
        &["sessions", "search", "words"],
        &["sessions", "stats"],
        &["sessions", "show"],
        &["sessions", "repair"],
        &["--continue", "go on"],
    ];
    for command in commands {
        let cwd = elsewhere.path().to_str().unwrap();
        let run = world.run(&[&["--cwd", cwd][..], command].concat()).await;
        assert_eq!(files_below(world.home.path()), before, "{command:?}: {run:?}");
    }
}

#[tokio::test]
async fn incognito_refuses_commands_that_write_to_stored_sessions() {
    let write = json!({"path": "a", "content": "1"}).to_string();
    let world = World::new([calls("fs_write", &write), says("done")]);
    world.run(&["--permission", "accept_edits", "write"]).await;
    let id = world.sessions().await.remove(0);
    world.write("canary-of-a-name", "canary of a content");
    let before = contents_below(&world.kept());
    let commands: [&[&str]; 8] = [
        &["changes"],
        &["rewind"],
        &["rewind", "--dry-run"],
        &["redo"],
        &["sessions", "fork"],
        &["sessions", "rename", &id, "title"],
        &["sessions", "repair"],
        &["sessions", "import", "canary-of-a-name"],
    ];
    for command in commands {
        let run = world.run(&[&["--incognito"][..], command].concat()).await;
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{command:?}: {run:?}");
        assert!(run.err.contains("does not work in incognito"), "{command:?}: {run:?}");
    }
    let list = world.run(&["--incognito", "sessions", "list"]).await;
    assert!(list.out.contains(&id), "what was kept before can be read: {list:?}");
    let stats = world.run(&["--incognito", "sessions", "stats"]).await;
    assert_eq!(stats.code, Some(0), "{stats:?}");
    assert_eq!(contents_below(&world.kept()), before);
}

/// The files that matter to a reader of the disk, with what they hold.
fn contents_below(folder: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let files = files_below(folder).into_iter().filter(|file| {
        // Shared memory of the database holds no words, and its log is emptied by readers.
        file.is_file() && !file.to_string_lossy().contains(".db-")
    });
    let mut contents: Vec<_> = files.map(|file| (file.clone(), fs::read(file).unwrap())).collect();
    contents.sort();
    contents
}

#[tokio::test]
async fn session_keep_false_saves_no_session() {
    let world = World::new([says("done")]);
    world.configure("[session]\nkeep = false\n");
    let run = world.run(&["hi"]).await;
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{run:?}");
    assert!(!world.kept().join("sessions").exists());
}

#[tokio::test]
async fn stored_session_files_are_private() {
    let write = json!({"path": "a", "content": "1"}).to_string();
    let world = World::new([calls("fs_write", &write), says("done")]);
    world.run(&["--permission", "accept_edits", "write"]).await;
    let files = files_below(&world.kept());
    assert!(files.len() > 3, "{files:?}");
    for file in files {
        let mode = fs::symlink_metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{}: {mode:o}", file.display());
    }
}

#[tokio::test]
async fn unwritable_state_folder_does_not_stop_a_turn() {
    let write = json!({"path": "a", "content": "1"}).to_string();
    let world = World::new([calls("fs_write", &write), says("done")]);
    let state = world.home.path().join("state");
    fs::write(&state, "a file, not a folder").unwrap();
    let mut command = world.command(&["--permission", "accept_edits", "write"]);
    let child = command.env("XDG_STATE_HOME", &state).spawn().unwrap();
    let run = finish(child).await;
    assert_eq!((run.code, run.out.as_str()), (Some(0), "done\n"), "{run:?}");
    assert_eq!(world.read("a"), "1");
    assert!(run.err.contains("warning"), "the person is told: {run:?}");
    assert_eq!(fs::read_to_string(&state).unwrap(), "a file, not a folder");
}

/// In a mount namespace, since the superuser may write to folders that are read-only by their mode.
#[tokio::test]
async fn a_read_only_home_stops_no_turn() {
    let world = World::new([says("done")]);
    let script =
        "mount --bind \"$HOME\" \"$HOME\" && mount -o remount,bind,ro \"$HOME\" && exec \"$@\"";
    let mut command = with_own_mounts(&world, script);
    command.arg("sh").arg(env!("CARGO_BIN_EXE_gnoma")).arg("hi");
    let Ok(child) = command.spawn() else {
        return gnoma_testkit::skip_test("`unshare` is not installed");
    };
    let run = finish(child).await;
    if run.err.contains("unshare:") || run.err.contains("mount:") {
        return gnoma_testkit::skip_test(&format!("no sandbox: {}", run.err.trim()));
    }
    assert_eq!((run.code, run.out.as_str()), (Some(0), "done\n"), "{run:?}");
    assert!(run.err.contains("cannot be written"), "{run:?}");
    assert_eq!(run.err.matches("warning").count(), 1, "it is said once: {run:?}");
}

/// The program with a disk of so many kilobytes for its state, in a mount namespace of its own.
fn on_small_disk(world: &World, kilobytes: u32, args: &[&str]) -> Command {
    let mut command = with_small_disk(world, kilobytes, "exec \"$@\"");
    command.args(args);
    command
}

/// A script with a disk of so many kilobytes at `$0` for the program's state; `$1` is the program.
fn with_small_disk(world: &World, kilobytes: u32, script: &str) -> Command {
    let state = world.home.path().join("state");
    fs::create_dir_all(&state).unwrap();
    let script = format!("mount -t tmpfs -o size={kilobytes}k none \"$0\" && {script}");
    let mut command = with_own_mounts(world, &script);
    command.arg(&state).arg(env!("CARGO_BIN_EXE_gnoma")).env("XDG_STATE_HOME", &state);
    command
}

/// A script in a mount namespace of its own, with the world's home and project.
fn with_own_mounts(world: &World, script: &str) -> Command {
    let mut command = Command::new("unshare");
    command
        .args(["--map-root-user", "--mount", "sh", "-c", script])
        .current_dir(world.project.path())
        .env_clear()
        .env("TZ", "UTC")
        .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
        .env("HOME", world.home.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

#[tokio::test]
async fn a_full_disk_stops_no_turn() {
    let write = json!({"path": "a", "content": "1"}).to_string();
    for kilobytes in [4, 64, 200] {
        let world = World::new([calls("fs_write", &write), says("done")]);
        let args = ["--permission", "accept_edits", "write"];
        let Ok(child) = on_small_disk(&world, kilobytes, &args).spawn() else {
            return gnoma_testkit::skip_test("`unshare` is not installed");
        };
        let run = finish(child).await;
        if run.err.contains("unshare:") || run.err.contains("mount:") {
            return gnoma_testkit::skip_test(&format!("no sandbox: {}", run.err.trim()));
        }
        assert_eq!((run.code, run.out.as_str()), (Some(0), "done\n"), "{kilobytes} kB: {run:?}");
        assert_eq!(world.read("a"), "1");
        assert!(run.err.contains("warning"), "{kilobytes} kB: the person is told: {run:?}");
    }
}

/// What was said goes on, and is not saved; that is told.
#[tokio::test]
async fn sessions_on_a_disk_that_cannot_be_written_are_read_and_go_on() {
    for shut in ["mount -o remount,ro \"$0\"", "cat /dev/zero > \"$0/large\" 2> /dev/null; true"] {
        let world = World::new([says("the first answer"), says("the second answer")]);
        let script = format!(
            "\"$1\" first && {{ {shut}; }} && \"$1\" sessions list && \"$1\" sessions show && \
             \"$1\" --continue second && echo ---- && \"$1\" sessions show"
        );
        let Ok(child) = with_small_disk(&world, 4096, &script).spawn() else {
            return gnoma_testkit::skip_test("`unshare` is not installed");
        };
        let run = finish(child).await;
        if run.err.contains("unshare:") || run.err.contains("mount:") {
            return gnoma_testkit::skip_test(&format!("no sandbox: {}", run.err.trim()));
        }
        assert_eq!(run.code, Some(0), "{shut}: {run:?}");
        let (out, after) = run.out.split_once("----\n").unwrap_or_else(|| panic!("{run:?}"));
        assert!(out.contains("first") && out.ends_with("the second answer\n"), "{run:?}");
        assert_eq!(out.matches("the first answer").count(), 2, "said and shown: {run:?}");
        let asked = world.last_request();
        assert_eq!(asked.len(), 3, "{shut}: {asked:?}");
        let told = |words| run.err.matches(words).count();
        if shut.starts_with("mount") {
            // Each of the four processes says it, once.
            assert_eq!((told("are not saved"), told("warning: ")), (4, 4), "{shut}: {run:?}");
        } else {
            // What the first process has left of its log may hold the second turn.
            let is_saved = after.contains("the second answer");
            assert!(is_saved || told("cannot be saved") > 0, "{shut}: {run:?}");
        }
    }
}

#[tokio::test]
async fn session_open_in_another_process_is_named_and_can_be_forked() {
    let world = World::new([
        says("one"),
        says("slow").with_delay(Duration::from_secs(6)),
        says("in the copy"),
    ]);
    world.run(&["first"]).await;
    let id = world.sessions().await.remove(0);
    let first = world.command(&["--continue", "second"]).spawn().unwrap();
    until("the session is open", async || {
        world.json(&["sessions", "list", "--json"]).await[0]["held_by"].is_object()
    })
    .await;
    let refused = world.run(&["--continue", "me too"]).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains(&format!("`{id}` is open in process")), "{refused:?}");
    assert!(refused.err.contains("--fork"), "{refused:?}");
    let deleted = world.run(&["sessions", "delete", "-y", &id]).await;
    assert_eq!(deleted.code, Some(1), "{deleted:?}");
    let rewound = world.run(&["rewind"]).await;
    assert_eq!(rewound.code, Some(1), "{rewound:?}");
    let forked = world.run(&["--resume", &id, "--fork", "me too"]).await;
    assert_eq!((forked.code, forked.out.as_str()), (Some(0), "in the copy\n"), "{forked:?}");
    let run = finish(first).await;
    assert_eq!((run.code, run.out.as_str()), (Some(0), "slow\n"), "{run:?}");
    assert_eq!(world.sessions().await.len(), 2);
}

#[tokio::test]
async fn session_max_keep_limits_stored_sessions() {
    let world = World::new(["one", "two", "three"].map(says));
    world.configure("[session]\nmax_keep = 2\n");
    for words in ["first", "second", "third"] {
        world.run(&[words]).await;
    }
    assert_eq!(world.sessions().await.len(), 2);
    let list = world.run(&["sessions", "list"]).await;
    assert!(!list.out.contains("first"), "{list:?}");
}

#[tokio::test]
async fn a_configured_folder_in_the_project_is_no_part_of_its_checkpoints() {
    let write = json!({"path": "a", "content": "1"}).to_string();
    let world = World::new([calls("fs_write", &write), says("done"), says("more")]);
    world.configure("[session]\nfolder = \".kept\"\n");
    world.run(&["--permission", "accept_edits", "write"]).await;
    assert!(world.project.path().join(".kept/sessions").is_dir());
    assert!(!world.kept().exists());
    let changes = world.run(&["changes"]).await;
    assert_eq!(changes.out, "A a\n", "{changes:?}");
    let run = world.run(&["rewind", "--files"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(!exists(world.project.path(), "a"));
    world.run(&["-c", "go on"]).await;
    assert_eq!(world.last_request()[0].1, "write", "the store itself was not taken back");
}

#[tokio::test]
async fn a_configured_folder_is_closed_to_tools_like_the_state_folder() {
    const WORDS: &str = "what only the program reads";
    let outside = tempfile::tempdir().unwrap();
    for folder in [outside.path().to_str().unwrap(), "inside"] {
        let look = json!({"path": format!("{folder}/canary")}).to_string();
        let world = World::new([
            says("one"),
            calls("fs_read", &look),
            calls("bash", r#"{"command":"sh ./script.sh"}"#),
            says("done"),
        ]);
        world.configure(&format!("[session]\nfolder = \"{folder}\"\n"));
        let script = format!("cat {folder}/canary\nrm -rf {folder}/*\necho x > {folder}/made\n");
        world.write("script.sh", &script);
        world.run(&["first"]).await;
        let vault = world.project.path().join(folder);
        fs::write(vault.join("canary"), WORDS).unwrap();
        let run = world.run(&["--permission", "bypass", "look"]).await;
        assert_eq!(run.code, Some(4), "{run:?}");
        let [read, ran] = [2, 4].map(|at| world.last_request()[at].1.clone());
        assert!(!read.contains(WORDS), "{folder}: {read}");
        if Support::detect().strength == Strength::Full {
            assert!(!ran.contains(WORDS), "{folder}: {ran}");
            assert_eq!(fs::read_to_string(vault.join("canary")).unwrap(), WORDS, "{ran}");
            assert!(!exists(&vault, "made"), "{ran}");
        }
    }
}

#[tokio::test]
async fn home_folder_session_is_saved_without_checkpoints() {
    let world = World::new([says("hello")]);
    let mut command = world.command(&["hi"]);
    let run = finish(command.current_dir(world.home.path()).spawn().unwrap()).await;
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{run:?}");
    let home = world.home.path().to_str().unwrap();
    let list = world.run(&["--cwd", home, "sessions", "list"]).await;
    assert!(list.out.contains("hi"), "{list:?}");
    let changes = world.run(&["--cwd", home, "changes"]).await;
    assert!(
        changes.code == Some(2) && changes.err.contains("no checkpoints are kept in a home folder"),
        "{changes:?}"
    );
    let doctor = world.run(&["--cwd", home, "doctor"]).await;
    assert!(doctor.out.contains("no checkpoints are kept in a home folder"), "{doctor:?}");
}

/// As for anybody, root included: nobody can make a folder in `/proc`.
#[tokio::test]
async fn session_folder_that_cannot_be_created_is_reported_by_runs_and_doctor() {
    let world = World::new((0..4).map(|_| says("hello")));
    world.configure("[session]\nfolder = \"/proc/x\"\n");
    let run = world.run(&["hi"]).await;
    assert_eq!(run.out, "hello\n", "{run:?}");
    assert!(run.err.contains("not being saved"), "{run:?}");
    assert!(run.err.contains("`session.folder` ("), "{run:?}");
    let doctor = world.run(&["doctor"]).await;
    assert_eq!(doctor.code, Some(1), "{doctor:?}");
    assert!(doctor.out.contains("✗ sessions and files: /proc/x"), "{doctor:?}");
    assert!(doctor.out.contains("`session.folder` ("), "{doctor:?}");
    assert!(!doctor.out.contains("✓ sessions:"), "{doctor:?}");
    world.configure("");
    let mut command = world.command(&["hi"]);
    command.env("XDG_STATE_HOME", "/proc");
    let run = finish(command.spawn().unwrap()).await;
    assert!(run.err.contains("XDG_STATE_HOME"), "{run:?}");
}

#[tokio::test]
async fn large_tool_result_is_stored_and_read_back_in_a_later_run() {
    let loud = calls("bash", r#"{"command":"seq 1000 4999"}"#);
    let look = json!({"id": "r1", "pattern": "^3000$"}).to_string();
    let world = World::new([loud, says("put away"), calls("read_result", &look), says("found")]);
    let run = world.run(&["--permission", "bypass", "be loud"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    let result = world.last_request()[2].1.clone();
    assert!(result.contains("read_result") && result.contains("r1"), "{result}");
    assert!(!result.contains("3000"), "{result}");
    let run = world.run(&["--continue", "where is 3000?"]).await;
    assert_eq!((run.code, run.out.as_str()), (Some(0), "found\n"), "{run:?}");
    let found = world.last_request().pop().unwrap().1;
    assert!(found.contains("3000"), "{found}");
}

#[tokio::test]
async fn many_processes_in_one_project_lose_nothing_and_say_nothing() {
    const PROCESSES: usize = 8;
    let world = World::new((0..PROCESSES).map(|_| says("done")));
    let start = |number: usize| world.command(&[&format!("task {number}")]).spawn().unwrap();
    let children: Vec<_> = (0..PROCESSES).map(start).collect();
    for child in children {
        let run = finish(child).await;
        assert_eq!((run.code, run.out.as_str(), run.err.as_str()), (Some(0), "done\n", ""));
    }
    let sessions = world.json(&["sessions", "list", "--json"]).await;
    let sessions = sessions.as_array().unwrap();
    assert_eq!(sessions.len(), PROCESSES);
    assert!(sessions.iter().all(|facts| facts["messages"] == 2), "{sessions:?}");
}
