//! Secrets that a trial or a reading command meets, runs outside the sandbox, and commands about the machine.

use std::{fs, net::TcpListener, os::unix::fs::PermissionsExt};

use gnoma_sandbox::{Strength, Support};

use crate::{
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
        return gnoma_testkit::skip("there is no whole sandbox");
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
        return gnoma_testkit::skip("there is no whole sandbox");
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
        return gnoma_testkit::skip("there is no whole sandbox");
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
async fn reading_commands_that_walk_skip_secrets_and_end_as_if_there_were_none() {
    if !is_walled() {
        return gnoma_testkit::skip("there is no whole sandbox");
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
async fn commands_about_processes_and_ports_answer_about_the_machine() {
    if !is_walled() {
        return gnoma_testkit::skip("there is no whole sandbox");
    }
    let world = World::new([]);
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let own = std::process::id();
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
    ] {
        let program = line.split(' ').next().unwrap();
        let run = world.pipe(&["guard", "shell"], line).await;
        let is_asked = run.out.starts_with("ask");
        assert!(is_asked || !has(program), "{line}: {run:?}");
    }
}
