//! Secrets that a trial or a reading command meets, runs outside the sandbox, and commands about the machine.

use std::{fs, net::TcpListener, os::unix::fs::PermissionsExt};

use gnoma_sandbox::{Strength, Support};

use crate::{
    git_layouts::with_gnoma,
    support::{World, calls, exists, says},
    terminal::Terminal,
};

fn is_walled() -> bool {
    Support::detect().strength == Strength::Full
}

/// A world whose model runs `script` from a file, with a secret in a folder.
fn running(script: &str) -> World {
    let world = World::new([calls("bash", r#"{"command":"sh ./script.sh"}"#), says("ok")]);
    world.write("script.sh", script);
    fs::create_dir_all(world.project.path().join("sub")).unwrap();
    world.write("sub/.env", "the moon is made of cheese\n");
    world.write("sub/plain", "plain\n");
    world
}

/// Whether the programs of a script are installed.
fn has(program: &str) -> bool {
    std::process::Command::new(program).arg("--version").output().is_ok()
}

#[tokio::test]
async fn archive_of_a_folder_with_a_secret_is_asked_for_by_its_name_and_never_silently_incomplete()
{
    if !is_walled() {
        return gnoma_testkit::skip_test("there is no whole sandbox");
    }
    let commands = [
        ("tar", "tar czf out.tgz sub 2>/dev/null; true"),
        ("zip", "zip -qr out.zip sub >/dev/null 2>&1; true"),
        ("cp", "cp -r sub out 2>/dev/null; true"),
        ("mv", "mv sub out 2>/dev/null; true"),
        ("rsync", "rsync -a sub/ out/ 2>/dev/null; true"),
        (
            "python3",
            "python3 -c 'import shutil; shutil.make_archive(\"out\", \"zip\", \"sub\")' 2>/dev/null; true",
        ),
        ("perl", "perl -MFile::Copy -e 'copy(\"sub/.env\", \"out\")'; echo x > out2"),
        ("find", "find sub -type f -exec cat {} + > out 2>/dev/null; true"),
        ("rm", "rm -rf sub 2>/dev/null; true"),
    ];
    for (program, script) in commands.into_iter().filter(|(program, _)| has(program)) {
        let world = running(script);
        let run = world.run(&["--permission", "auto", "go"]).await;
        assert!(matches!(run.code, Some(0 | 4)), "{run:?}");
        let told = world.server.requests()[1].json();
        let told = told["messages"][3]["content"].as_str().unwrap().to_owned();
        assert!(told.contains("sub/.env"), "{program}: {told}");
        assert!(told.contains("discarded") || told.contains("not run again"), "{program}: {told}");
        for name in ["out", "out.tgz", "out.zip", "out2"] {
            assert!(!exists(world.project.path(), name), "{program}: {told}");
        }
        assert!(exists(world.project.path(), "sub/plain"), "{program}: {told}");
    }
}

#[tokio::test]
async fn approved_command_runs_once_in_the_workspace_with_the_secret() {
    if !is_walled() {
        return gnoma_testkit::skip_test("there is no whole sandbox");
    }
    for (script, check) in [
        ("tar cf out.tar sub; echo once >> count\n", "sub/.env"),
        ("mv sub moved; echo once >> count\n", "moved/.env"),
        ("rm -rf sub; echo once >> count\n", ""),
    ] {
        let world = running(script);
        let mut terminal = Terminal::open(&world, "--permission auto go");
        terminal.wait_for("reason to deny", 1).await;
        let seen = terminal.seen.replace("\r\n", " ");
        assert!(seen.contains("needs") && seen.contains("sub/.env"), "{script}: {seen}");
        terminal.press("y\n").await;
        let (code, seen) = terminal.end().await;
        assert_eq!(code, Some(0), "{seen}");
        assert_eq!(world.read("count"), "once\n", "{script}: {seen}");
        match check {
            "sub/.env" => {
                let archive = fs::read(world.project.path().join("out.tar")).unwrap();
                assert!(String::from_utf8_lossy(&archive).contains("made of cheese"), "{seen}");
            }
            "" => assert!(!exists(world.project.path(), "sub"), "{seen}"),
            moved => {
                assert_eq!(world.read(moved), "the moon is made of cheese\n");
                assert!(!exists(world.project.path(), "sub"), "{seen}");
            }
        }
    }
}

#[tokio::test]
async fn run_outside_the_sandbox_begins_anew_and_happens_once() {
    if !is_walled() {
        return gnoma_testkit::skip_test("there is no whole sandbox");
    }
    for (answers, lines, is_set) in [
        (&["y\n"][..], "line\n", true),
        (&["n\n", "y\n"], "line\n", false),
        (&["n\n", "n\n"], "", false),
    ] {
        let world = running("echo line >> notes.txt; chmod u+s sub/plain\n");
        world.write("notes.txt", "");
        let mut terminal = Terminal::open(&world, "--permission auto go");
        terminal.wait_for("outside the sandbox?", 1).await;
        for (number, answer) in (1..).zip(answers) {
            terminal.wait_for("reason to deny", number).await;
            terminal.press(answer).await;
        }
        let (code, seen) = terminal.end().await;
        assert_eq!(code, Some(0), "{seen}");
        assert_eq!(world.read("notes.txt"), lines, "{answers:?}: {seen}");
        let mode =
            fs::metadata(world.project.path().join("sub/plain")).unwrap().permissions().mode();
        assert_eq!(mode & 0o4000 != 0, is_set, "{answers:?}: {seen}");
    }
}

/// What `guard run` says of a line, without the line itself.
async fn said(world: &World, mode: &str, line: &str) -> String {
    let run = world.pipe(&["guard", "run", "--mode", mode], line).await;
    run.out.split_once('\n').map(|(_, rest)| rest.trim_end().to_owned()).unwrap_or_default()
}

#[tokio::test]
async fn recursive_reading_commands_skip_secrets_without_failing() {
    if !is_walled() {
        return gnoma_testkit::skip_test("there is no whole sandbox");
    }
    let world = World::new([]);
    world.write("a.txt", "moon\n");
    world.write(".env", "moon\n");
    world.write("server.key", "moon\n");
    for (program, line, expected) in [
        ("grep", "grep -r moon .", "./a.txt:moon"),
        ("rg", "rg --hidden moon", "a.txt:moon"),
        ("wc", "wc -l *", "1 a.txt"),
        ("cat", "cat *", "moon"),
        ("grep", "grep -rl moon . | wc -l; echo $?", "1\n0"),
    ] {
        if !has(program) {
            continue;
        }
        for mode in ["auto", "plan"] {
            let text = said(&world, mode, line).await;
            let (own, note) = text.rsplit_once("\n[").unwrap_or((&text, ""));
            assert_eq!(own.trim(), expected, "{mode}, {line}: {text}");
            assert!(note.contains("skipped, because they hold secrets"), "{line}: {text}");
        }
    }
    let text = said(&world, "auto", "ls -A; test -f .env && echo there").await;
    assert_eq!(text, ".env\na.txt\nserver.key\nthere");
}

#[tokio::test]
async fn process_and_port_commands_see_the_machine() {
    if !is_walled() {
        return gnoma_testkit::skip_test("there is no whole sandbox");
    }
    let world = World::new([]);
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let own = std::process::id();
    let own_text = own.to_string();
    world.write("own.pid", &own_text);
    for (program, line, expected) in [
        ("ps", format!("ps -o pid= -p {own} | tr -d ' '"), own.to_string()),
        (
            "ps",
            format!("test -n \"$(ps -p {own} -o comm=)\" && echo runs || echo not running"),
            "runs".into(),
        ),
        ("pgrep", format!("pgrep . | grep -cx {own}"), "1".into()),
        // Nothing of gnoma's own has the words of the command among its arguments.
        ("pgrep", "pgrep -fc of-nobody-4711".into(), "Exit code 1\n0".into()),
        ("ss", format!("ss -ltn | grep -c ':{port} ' || echo none"), "1".into()),
        ("grep", format!("grep -c . /proc/{own}/comm"), "1".into()),
        (
            "ps",
            format!("ps -eo pid= | tr -d ' ' | grep -cx [{}]{}", &own_text[..1], &own_text[1..]),
            "1".into(),
        ),
        ("test", format!("test -d /proc/{own} && echo runs || echo gone"), "runs".into()),
        ("test", format!("[[ -d /proc/{own} ]] && echo runs || echo gone"), "runs".into()),
        ("test", "[ -e \"/proc/$(cat own.pid)\" ] && echo runs || echo gone".into(), "runs".into()),
        (
            "sh",
            format!("for p in /proc/[0-9]*; do echo $p; done | grep -cx /proc/{own}"),
            "1".into(),
        ),
        (
            "bash",
            format!("bash -c 'pgrep . | grep -qx {own} && echo runs || echo gone'"),
            "runs".into(),
        ),
        (
            "ss",
            format!("sh -c \"ss -ltn | grep -q ':{port} ' && echo open || echo closed\""),
            "open".into(),
        ),
    ] {
        for mode in ["auto", "plan"] {
            if has(program) {
                assert_eq!(said(&world, mode, &line).await, expected, "{mode}, {line}");
            }
        }
    }
    for line in [
        "lsof -i 2>/dev/null || echo none",
        "ss -ltnp",
        "fuser 80/tcp || echo free",
        "tmux ls || echo none",
        "readlink /proc/1234/cwd",
        "kill -0 1234 && echo alive || echo dead",
        "pkill -0 of-nobody-4711 || echo none",
        "test -e /proc/$(cat own.pid) && echo runs || touch gone",
    ] {
        let program = line.split(' ').next().unwrap();
        let run = world.pipe(&["guard", "shell"], line).await;
        let is_asked = run.out.starts_with("ask");
        assert!(is_asked || !has(program), "{line}: {run:?}");
    }
}

#[tokio::test]
async fn approved_signals_reach_processes_outside_the_sandbox() {
    if !is_walled() {
        return gnoma_testkit::skip_test("there is no whole sandbox");
    }
    for line in
        ["kill -0 PID && echo is alive", "kill $(cat own.pid) && echo has ended; rm own.pid"]
    {
        let mut sleeper = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let line = line.replace("PID", &sleeper.id().to_string());
        let arguments = serde_json::json!({"command": line}).to_string();
        let world = World::new([calls("bash", &arguments), says("ok")]);
        world.write("own.pid", &sleeper.id().to_string());
        let mut terminal = Terminal::open(&world, "--permission auto go");
        terminal.wait_for("reason to deny", 1).await;
        let seen = terminal.seen.replace("\r\n", " ");
        terminal.press("y\n").await;
        let (code, _) = terminal.end().await;
        let told = world.last_request().pop().unwrap().1;
        let ended = sleeper.try_wait().unwrap().is_some();
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
        assert!(seen.contains("outside the sandbox"), "{line}: {seen}");
        assert_eq!(code, Some(0), "{line}: {told}");
        assert!(told.contains("is alive") || told.contains("has ended"), "{line}: {told}");
        assert_eq!(ended, line.contains("rm"), "{line}: {told}");
        assert_eq!(exists(world.project.path(), "own.pid"), !line.contains("rm"), "{line}");
    }
}

/// The question that a script leads to in mode auto, and what is there after the answer.
async fn question_of(script: &str, answer: &str) -> (World, String) {
    let world = running(script);
    fs::create_dir_all(world.project.path().join("lib")).unwrap();
    world.write("lib/a.txt", "a\n");
    let mut terminal = Terminal::open(&world, "--permission auto go");
    terminal.wait_for("reason to deny", 1).await;
    let seen = terminal.seen.replace("\r\n", "\n");
    terminal.press(answer).await;
    terminal.end().await;
    (world, seen)
}

#[tokio::test]
async fn question_about_a_run_in_the_workspace_names_what_else_the_trial_changed() {
    if !is_walled() {
        return gnoma_testkit::skip_test("there is no whole sandbox");
    }
    let plant = "mkdir -p .husky web/.vscode; for f in CLAUDE.md .envrc .husky/pre-commit web/.vscode/tasks.json; do echo x > $f; done";
    for (first, why) in [
        ("cat sub/.env > copy", "needs `sub/.env`"),
        ("mkdir -p n/.git/hooks; echo x > n/.git/config", "in the workspace itself"),
    ] {
        let (world, seen) = question_of(&format!("{first}; {plant}\n"), "n\n").await;
        assert!(seen.contains(why), "{first}: {seen}");
        let listed = seen.split_once("Look at these first:").unwrap_or_default().1;
        for name in ["CLAUDE.md", ".envrc", ".husky/pre-commit", "web/.vscode/tasks.json"] {
            assert!(listed.contains(&format!("! {name}")), "{first}, {name}: {seen}");
            assert!(!exists(world.project.path(), name), "{first}, {name}");
        }
        assert!(seen.contains("+x"), "the lines that change are shown: {seen}");
    }
}

#[tokio::test]
async fn symlink_to_a_workspace_secret_is_named_in_the_question() {
    if !is_walled() {
        return gnoma_testkit::skip_test("there is no whole sandbox");
    }
    let (world, seen) = question_of("mkdir -p a/b; ln -s ../../sub/.env a/b/f\n", "n\n").await;
    let listed = seen.split_once("Look at these first:").unwrap_or_default().1;
    assert!(listed.contains("! a/b/f"), "{seen}");
    assert!(listed.contains("which leads to a secret"), "{seen}");
    assert!(!exists(world.project.path(), "a"));
}

#[tokio::test]
async fn folder_rename_that_overlayfs_refuses_is_offered_for_approval() {
    if !is_walled() {
        return gnoma_testkit::skip_test("there is no whole sandbox");
    }
    if !has("python3") {
        return gnoma_testkit::skip_test("`python3` is not installed");
    }
    let script = "python3 -c \"import os; os.rename('lib','lib2')\"; ls\n";
    let (world, seen) = question_of(script, "y\n").await;
    assert!(seen.contains("renames a folder"), "{seen}");
    assert_eq!(world.read("lib2/a.txt"), "a\n", "{seen}");
    assert!(!exists(world.project.path(), "lib"));
}

#[tokio::test]
async fn trial_that_hides_an_unreachable_server_asks_to_leave_the_sandbox() {
    if !is_walled() {
        return gnoma_testkit::skip_test("there is no whole sandbox");
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let script = format!(
        "bash -c '(exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null && echo UP || echo DOWN'\n"
    );
    let (world, seen) = question_of(&script, "y\n").await;
    assert!(seen.contains("outside the sandbox?"), "{seen}");
    let told = world.server.requests()[1].json();
    let told = told["messages"][3]["content"].as_str().unwrap().to_owned();
    assert!(told.contains("UP"), "{told}");
}

#[tokio::test]
async fn outside_paths_opened_during_a_trial_need_approval_and_are_not_called_missing() {
    if !is_walled() || !gnoma_sandbox::reports_tried_files() {
        return gnoma_testkit::skip_test(
            "the sandbox does not report what a command tries to open",
        );
    }
    let world = World::new([says("ok")]).among_files();
    let app = world.project.path().join("app");
    fs::create_dir(&app).unwrap();
    fs::create_dir(world.project.path().join("other")).unwrap();
    // A repository around it would belong to the workspace.
    let made = std::process::Command::new("git").args(["init", "-q"]).current_dir(&app).status();
    assert!(made.unwrap().success());
    world.write("other/f", "far away\n");
    world.write("app/list", "../other/f\n");
    let mut commands = vec![
        "cat \"$(dirname \"$PWD\")/other/f\" 2>/dev/null || echo missing",
        "F=$(echo ../other/f); cat $F 2>/dev/null; true",
        "xargs cat < list",
        "while read f; do cat \"$f\"; done < list 2>/dev/null",
        "read -r d < list; [ -f \"$d\" ] && cat \"$d\" || echo no",
    ];
    if has("python3") {
        commands.push("python3 -c \"print(open('../other/f').read().strip())\"");
    }
    for (command, told) in commands.iter().zip(with_gnoma(&world, &app, "auto", &commands).await) {
        assert!(told.contains("outside of what trial runs can open"), "{command}: {told}");
        assert!(told.contains("/other`") && !told.contains("far away"), "{command}: {told}");
    }
    for (command, told) in commands.iter().zip(with_gnoma(&world, &app, "bypass", &commands).await)
    {
        assert_eq!(told, "far away", "{command}");
    }
    // Of the folders above, no list tells of names, and none is said to be empty.
    let mut lists = vec!["ls \"$(dirname \"$PWD\")\"", "echo \"$(dirname \"$PWD\")\"/*"];
    if has("python3") {
        lists.push("python3 -c \"import glob; print(glob.glob('../*'))\"");
    }
    for (command, told) in lists.iter().zip(with_gnoma(&world, &app, "auto", &lists).await) {
        assert!(told.contains("outside of what trial runs can open"), "{command}: {told}");
        assert!(!told.contains("/other") && !told.contains("other\n"), "{command}: {told}");
    }
    // A message of another program about one of these names is no try.
    world.write("app/log", "../other/x: No such file or directory\n");
    let told = with_gnoma(&world, &app, "auto", &["F=$(echo log); cat $F"]).await.concat();
    assert!(told.contains("/x: No such file") && !told.contains("outside of what"), "{told}");
}
