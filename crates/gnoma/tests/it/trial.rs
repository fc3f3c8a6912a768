//! Commands on trial, as a model meets them.

use std::fs;

use gnoma_sandbox::{Strength, Support};

use crate::{
    support::{World, calls, exists, says},
    terminal::Terminal,
};

/// Whether commands can be tried here.
fn can_try(world: &World) -> bool {
    let whole = Support::detect().strength == Strength::Full;
    let why = gnoma_tools::Trials::new(
        env!("CARGO_BIN_EXE_gnoma").into(),
        vec![world.project.path().canonicalize().unwrap()],
        vec![world.home.path().canonicalize().unwrap().join("attempt")],
    );
    let hindrance = why.unavailable_reason();
    if let Some(why) = hindrance {
        gnoma_testkit::skip_test(&format!("no sandbox: nothing can be tried here: {why}"));
    }
    whole && hindrance.is_none()
}

/// A world whose model runs `script` from a file, which nobody has read.
fn running(script: &str) -> World {
    let world = World::new([calls("bash", r#"{"command":"sh ./script.sh"}"#), says("ok")]);
    world.write("script.sh", script);
    world
}

/// What the command said.
async fn said(world: &World, mode: &str) -> String {
    let run = world.run(&["--permission", mode, "go"]).await;
    assert!(matches!(run.code, Some(0 | 4)), "{run:?}");
    let body = world.server.requests()[1].json();
    body["messages"][3]["content"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn read_only_script_runs_on_trial_without_a_question() {
    for mode in ["plan", "auto", "accept_edits"] {
        let world = running("cat script.sh | wc -l; echo $((6 * 7))\n");
        if !can_try(&world) {
            return;
        }
        let text = said(&world, mode).await;
        assert!(text.contains("42") && !text.contains("trial"), "{mode}: {text}");
    }
}

#[tokio::test]
async fn trial_that_cannot_reach_a_local_server_is_reported() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let script = format!(
        "(exec 3<>/dev/tcp/{}/{}) 2>/dev/null && echo UP || echo DOWN\n",
        address.ip(),
        address.port()
    );
    for mode in ["plan", "auto"] {
        let world = World::new([calls("bash", r#"{"command":"bash ./script.sh"}"#), says("ok")]);
        if !can_try(&world) {
            return;
        }
        world.write("script.sh", &script);
        let run = world.run(&["--permission", mode, "go"]).await;
        let told = world.last_request().pop().unwrap().1;
        assert!(told.contains("do not see the servers"), "{mode}: {told} {run:?}");
    }
    for (line, note) in [
        ("for p in /proc/[0-9]*; do :; done", "see only their own"),
        ("echo /*", "see only a part"),
        ("cat /proc/meminfo > /dev/null; ls /usr > /dev/null", ""),
    ] {
        let text = said(&running(&format!("{line}\n")), "auto").await;
        assert!(text.contains(note), "{line}: {text}");
        assert_eq!(text.contains("see only"), !note.is_empty(), "{line}: {text}");
    }
    // A server that the command starts itself is one it sees.
    let world = running(
        "python3 -m http.server 8765 >/dev/null 2>&1 & sleep 0.1; for n in 1 2 3 4 5 6 7 8 9; do (exec 3<>/dev/tcp/127.0.0.1/8765) 2>/dev/null && break; sleep 0.3; done; echo over; kill %1\n",
    );
    let text = said(&world, "auto").await;
    assert!(text.contains("over") && !text.contains("servers of this machine"), "{text}");
}

#[tokio::test]
async fn environment_and_git_config_are_listed_without_approval_and_without_keys() {
    let world = World::new([]);
    if !can_try(&world) {
        return;
    }
    fs::write(world.home.path().join(".gitconfig"), "[user]\n\tname = of the person\n").unwrap();
    let lines = ["env | sort", "export -p", "git config --list"];
    let judged = world.pipe(&["guard", "shell"], &lines.join("\n")).await.out;
    assert!(lines.iter().all(|line| judged.contains(&format!("trial  {line}"))), "{judged}");
    for (mode, line) in ["plan", "auto"].into_iter().flat_map(|mode| lines.map(|line| (mode, line)))
    {
        let mut command = world.command(&["guard", "run", "--mode", mode]);
        command.env("SMTP_PASS", "canary-of-a-key").env("HARMLESS", "harmless-words");
        let run = crate::support::fed(command, line).await;
        let expected = if line.starts_with("git") { "of the person" } else { "harmless-words" };
        let is_missing = line.starts_with("git") && run.out.contains("not found");
        assert!(run.out.contains(expected) || is_missing, "{mode}, {line}: {run:?}");
        assert!(!run.out.contains("SMTP_PASS"), "{mode}, {line}: {run:?}");
    }
}

#[tokio::test]
async fn scripts_of_skills_among_the_settings_run_and_see_no_key() {
    let world = World::new([]);
    if !can_try(&world) {
        return;
    }
    let settings = world.home.path().join(".config/gnoma");
    let skill = settings.join("skills/pdf");
    fs::create_dir_all(&skill).unwrap();
    let script =
        "cat \"$(dirname \"$0\")/data.txt\"; cat \"$(dirname \"$0\")/../../config.toml\" .env; :";
    for (name, text) in
        [("run.sh", script), ("data.txt", "of the skill\n"), (".env", "of nobody\n")]
    {
        fs::write(skill.join(name), text).unwrap();
    }
    for mode in ["plan", "auto"] {
        let command = format!("sh {}\n", skill.join("run.sh").display());
        let run = world.pipe(&["guard", "run", "--mode", mode], &command).await;
        assert!(run.out.contains("of the skill"), "{mode}: {run:?}");
        assert!(
            !run.out.contains("[provider]") && !run.out.contains("of nobody"),
            "{mode}: {run:?}"
        );
    }
}

#[tokio::test]
async fn unapproved_trial_changes_are_discarded() {
    for mode in ["plan", "auto"] {
        let world = running("echo new > made; rm kept; cat made\n");
        world.write("kept", "kept\n");
        if !can_try(&world) {
            return;
        }
        let text = said(&world, mode).await;
        assert!(text.contains("new") && text.contains("ran on trial; 2 changed files"), "{text}");
        assert!(text.contains("kept, made"), "{mode}: {text}");
        assert!(!exists(world.project.path(), "made"), "{mode}");
        assert_eq!(fs::read_to_string(world.project.path().join("kept")).unwrap(), "kept\n");
    }
}

#[tokio::test]
async fn trial_stopped_by_a_timeout_leaves_no_changes() {
    let call = calls("bash", r#"{"command":"sh ./script.sh","timeout":1}"#);
    let world = World::new([call, says("ok")]);
    world.write("script.sh", "echo new > made; sleep 60\n");
    if !can_try(&world) {
        return;
    }
    let text = said(&world, "accept_edits").await;
    assert!(text.contains("[ran on trial; what it changed was discarded]"), "{text}");
    assert!(!exists(world.project.path(), "made"));
}

#[tokio::test]
async fn accept_edits_saves_only_plain_edits_of_a_trial() {
    for (script, is_kept) in [
        ("mkdir -p src; echo new > src/made; echo more >> kept\n", true),
        ("echo new > made; rm kept\n", false),
        ("echo new > made; chmod +x made\n", false),
        ("echo new > made; mkdir -p .vscode; echo x > .vscode/tasks.json\n", false),
        ("echo new > made; mkdir -p sub/.vscode; echo x > sub/.vscode/tasks.json\n", false),
        ("echo new > made; echo x > a.code-workspace\n", false),
        ("echo new > made; mkdir -p b/objects b/refs; echo x > b/HEAD; echo x > b/config\n", false),
        ("echo new > made; ln -s /etc/passwd link\n", false),
    ] {
        let world = running(script);
        world.write("kept", "kept\n");
        if !can_try(&world) {
            return;
        }
        let text = said(&world, "accept_edits").await;
        let made = if is_kept { "src/made" } else { "made" };
        assert_eq!(exists(world.project.path(), made), is_kept, "{script}: {text}");
        assert!(exists(world.project.path(), "kept"), "{script}: {text}");
        let word = if is_kept { "were kept" } else { "discarded" };
        assert!(text.contains(word), "{script}: {text}");
    }
}

#[tokio::test]
async fn trial_cannot_open_workspace_secrets_and_has_its_own_temporary_files() {
    // Words of a language, which no rule for secrets finds.
    const SECRET: &str = "the moon is made of cheese\n";
    let mark = format!("/tmp/gnoma-trial-{}", std::process::id());
    let script = format!(
        "tr a-z b-za < .env; cp .env copy; cp copy .env; mv .env gone; rm -f .env; echo x > {mark}; cat {mark}\n"
    );
    for (mode, is_temporary) in [("auto", true), ("auto", false), ("plan", false)] {
        let mut world = running(&script);
        if !is_temporary {
            world = world.among_files();
            world.write("script.sh", &script);
        }
        world.write(".env", SECRET);
        if !can_try(&world) {
            return;
        }
        let text = said(&world, mode).await;
        assert!(!text.contains("difftf") && !text.contains("uif npp"), "{mode}: {text}");
        assert!(!text.contains("copy") || !text.contains("changed file"), "{mode}: {text}");
        assert!(!std::path::Path::new(&mark).exists());
        assert_eq!(world.read(".env"), SECRET);
    }
}

#[tokio::test]
async fn trial_folder_renames_and_hard_links_need_approval() {
    for (script, reason) in [
        ("mkdir a; python3 -c 'import os; os.rename(\"lower\", \"moved\")'\n", "renames a folder"),
        ("echo more >> one\n", "hard links"),
        ("mv one three\n", "hard links"),
        ("ln lower/file other\n", "hard links"),
        ("mkdir -p .git; echo x > .git/HEAD\n", ".git"),
    ] {
        let world = running(script);
        fs::create_dir(world.project.path().join("lower")).unwrap();
        world.write("lower/file", "x\n");
        world.write("one", "x\n");
        fs::hard_link(world.project.path().join("one"), world.project.path().join("two")).unwrap();
        if !can_try(&world) {
            return;
        }
        let text = said(&world, "auto").await;
        assert!(text.contains("nobody is there to approve it"), "{reason}: {text}");
        assert_eq!(fs::read_to_string(world.project.path().join("two")).unwrap(), "x\n");
        assert!(exists(world.project.path(), "lower"), "{text}");
    }
}

#[tokio::test]
async fn person_saves_all_or_part_of_the_changes_of_a_trial() {
    let all = ["gone", "made", "src/deep/new"];
    for (answer, left) in [
        ("y\n", vec!["made", "src/deep/new"]),
        ("n\n", vec!["gone"]),
        ("p made\n", vec!["gone", "made"]),
        ("p src\n", vec!["gone", "src/deep/new"]),
        ("p *n*, nothing-like-it\n", vec!["src/deep/new"]),
        ("p other\n", vec!["gone"]),
    ] {
        let world = running("mkdir -p src/deep; echo new > made; echo 2 > src/deep/new; rm gone\n");
        world.write("gone", "old\n");
        if !can_try(&world) {
            return;
        }
        let mut terminal = Terminal::open(&world, "--permission auto go");
        terminal.wait_for("reason to deny", 1).await;
        assert!(terminal.seen.contains("Keep what this command changed?"), "{}", terminal.seen);
        let deeds = "`sh ./script.sh` deletes `gone` and creates `made` and `src/deep/new`";
        assert!(terminal.seen.contains(deeds), "{}", terminal.seen);
        terminal.press(answer).await;
        let (code, seen) = terminal.end().await;
        assert_eq!(code, Some(0), "{answer:?}: {seen}");
        let there: Vec<_> =
            all.into_iter().filter(|name| exists(world.project.path(), name)).collect();
        assert_eq!(there, left, "{answer:?}: {seen}");
        let body = world.server.requests()[1].json();
        let told = body["messages"][3]["content"].as_str().unwrap();
        let (kept, dropped) = (told.contains(" kept ("), told.contains("discarded"));
        assert_eq!(
            (kept, dropped),
            (left.iter().any(|name| *name != "gone"), answer != "y\n"),
            "{told}"
        );
    }
}

#[tokio::test]
async fn build_outputs_of_a_trial_persist_for_the_next_command_without_approval() {
    let make = "a.o: a.c\n\tcp a.c a.o\n\techo compiled\ntarget/x: a.o\n\tmkdir -p target; cp a.o target/x\n";
    let one = calls("bash", r#"{"command":"make target/x"}"#);
    let look = calls("bash", r#"{"command":"cat target/x; ls"}"#);
    let world = World::new([one.clone(), one, look, says("ok")]);
    if !can_try(&world) {
        return;
    }
    fs::create_dir(world.project.path().join(".git")).unwrap();
    for (name, text) in [("Makefile", make), ("a.c", "int a;\n"), (".gitignore", "*.o\ntarget\n")] {
        world.write(name, text);
    }
    let run = world.run(&["--permission", "auto", "go"]).await;
    assert!(matches!(run.code, Some(0 | 4)), "{run:?}");
    let requests = world.server.requests();
    let told = |number: usize, message: usize| {
        requests[number].json()["messages"][message]["content"].as_str().unwrap().to_owned()
    };
    assert!(told(1, 3).contains("compiled"), "{}", told(1, 3));
    assert!(
        told(1, 3).contains("[what it built (a.o, target) is not in the workspace: later commands"),
        "{}",
        told(1, 3)
    );
    assert!(!told(2, 5).contains("what it built"), "{}", told(2, 5));
    assert!(
        !told(2, 5).contains("compiled") && told(2, 5).contains("up to date"),
        "{}",
        told(2, 5)
    );
    // Also for those that only read.
    assert_eq!(told(3, 7), "int a;\nMakefile\na.c\na.o\ntarget", "{}", told(3, 7));
    assert!(!exists(world.project.path(), "a.o") && !exists(world.project.path(), "target"));
}

#[tokio::test]
async fn deleting_a_build_folder_on_trial_needs_approval() {
    for (command, gone) in [
        ("rm -rf node_modules build\n", vec!["node_modules", "build"]),
        ("rm -rf node_modules/*; touch made\n", vec!["node_modules/x"]),
        ("rm build/a.o\n", vec!["build/a.o"]),
    ] {
        let world = running(command);
        if !can_try(&world) {
            return;
        }
        for folder in [".git", "build", "node_modules/x"] {
            fs::create_dir_all(world.project.path().join(folder)).unwrap();
        }
        world.write(".gitignore", "node_modules\nbuild\n");
        world.write("Makefile", "all:\n");
        world.write("build/a.o", "o");
        world.write("node_modules/x/index.js", "x");
        let mut terminal = Terminal::open(&world, "--permission auto go");
        terminal.wait_for("reason to deny", 1).await;
        assert!(terminal.seen.contains("deletes"), "{}", terminal.seen);
        terminal.press("y\n").await;
        let (code, seen) = terminal.end().await;
        assert_eq!(code, Some(0), "{seen}");
        for name in ["node_modules", "node_modules/x", "build", "build/a.o"] {
            let is_gone = gone.iter().any(|it| std::path::Path::new(name).starts_with(it));
            assert_eq!(exists(world.project.path(), name), !is_gone, "{command}: {name}: {seen}");
        }
    }
}

#[tokio::test]
async fn build_outputs_of_discarded_changes_are_discarded() {
    let build = calls("bash", r#"{"command":"make target/x; cat target/x"}"#);
    let edit = calls("bash", r#"{"command":"echo other > a.c; make target/x; cat target/x"}"#);
    let world = World::new([build.clone(), edit, build, says("ok")]);
    if !can_try(&world) {
        return;
    }
    let make = "target/x: a.c\n\tmkdir -p target; cp a.c target/x\n\techo compiled\n";
    for (name, text) in [("Makefile", make), ("a.c", "int a;\n"), (".gitignore", "target\n")] {
        world.write(name, text);
    }
    let run = world.run(&["--permission", "auto", "go"]).await;
    assert!(matches!(run.code, Some(0 | 4)), "{run:?}");
    let requests = world.server.requests();
    let told = |number: usize, message: usize| {
        requests[number].json()["messages"][message]["content"].as_str().unwrap().to_owned()
    };
    assert!(
        told(1, 3).contains("int a;") && told(1, 3).contains("[what it built"),
        "{}",
        told(1, 3)
    );
    assert!(told(2, 5).contains("other") && told(2, 5).contains("(a.c)"), "{}", told(2, 5));
    assert!(!told(2, 5).contains("what it built"), "{}", told(2, 5));
    assert!(told(3, 7).contains("compiled\nint a;"), "{}", told(3, 7));
}

#[tokio::test]
async fn build_outputs_in_known_build_folders_need_no_approval() {
    for (script, expected) in [
        (
            "mkdir -p dist app/bin/x; echo 1 > dist/a.js; echo 2 > app/bin/x/a.dll\n",
            "[what it built (app/bin, dist) is",
        ),
        ("mkdir -p data/dist; echo 3 > data/dist/x\n", "(data/dist/x)"),
    ] {
        let world = running(script);
        if !can_try(&world) {
            return;
        }
        for (name, text) in [("package.json", "{}"), (".gitignore", "dist\nbin\ndata\n")] {
            world.write(name, text);
        }
        fs::create_dir(world.project.path().join("app")).unwrap();
        world.write("app/app.csproj", "");
        let text = said(&world, "auto").await;
        assert!(text.contains(expected), "{text}");
        assert_eq!(text.contains("ran on trial"), script.contains("data"), "{text}");
    }
}

#[tokio::test]
async fn plan_mode_trials_build_on_each_other_and_change_nothing_real() {
    let run = |command: &str| calls("bash", &serde_json::json!({ "command": command }).to_string());
    let world = World::new([
        run("sh ./script.sh"),
        run("cat made; ls"),
        run("sh ./more.sh"),
        run("cat made .env"),
        says("ok"),
    ]);
    world.write("script.sh", "echo new > made; rm gone\n");
    world.write(
        "more.sh",
        "cat made; cat .env; echo more >> made; echo x > ~/.cache/pip/mark; cat ~/.cache/pip/mark\n",
    );
    world.write("gone", "x\n");
    world.write(".env", "TOKEN=not-for-models\n");
    fs::create_dir_all(world.home.path().join(".cache/pip")).unwrap();
    if !can_try(&world) {
        return;
    }
    world.run(&["--permission", "plan", "go"]).await;
    let requests = world.server.requests();
    let told = |number: usize| {
        let body = requests[number].json();
        body["messages"][2 * number + 1]["content"].as_str().unwrap().to_owned()
    };
    assert_eq!(told(2), "new\nmade\nmore.sh\nscript.sh", "{}", told(2));
    assert!(
        told(3).starts_with("new\n")
            && told(3)
                .contains("\nx\n[trial runs can neither open nor remove `.env`]\n[ran on trial; "),
        "{}",
        told(3)
    );
    assert!(!requests.iter().any(|request| request.json().to_string().contains("not-for-models")));
    assert!(exists(world.project.path(), "gone") && !exists(world.project.path(), "made"));
    assert!(!exists(world.home.path(), ".cache/pip/mark"));
}

#[tokio::test]
async fn a_database_that_another_program_has_open_is_not_replaced() {
    let world = running("echo new > dev.db; echo new > dev.db-wal\n");
    world.write("dev.db", "old\n");
    world.write("dev.db-wal", "old\n");
    if !can_try(&world) {
        return;
    }
    let open = fs::File::open(world.project.path().join("dev.db")).unwrap();
    let text = said(&world, "accept_edits").await;
    assert!(text.contains("nobody is there to approve it"), "{text}");
    assert_eq!(world.read("dev.db"), "old\n");
    drop(open);
    let world = running("echo new > dev.db; echo new > dev.db-wal\n");
    world.write("dev.db", "old\n");
    world.write("dev.db-wal", "old\n");
    let text = said(&world, "accept_edits").await;
    assert!(text.contains("were kept"), "{text}");
    assert_eq!(world.read("dev.db-wal"), "new\n");
}

/// Makes a machine unfit: a script for a world.
type Unfitting<'a> = &'a dyn Fn(&World) -> String;

/// What the program says where the machine has been made unfit by a script.
fn unfit(world: &World, script: &str, arguments: &[&str]) -> Option<String> {
    let mut command = std::process::Command::new("unshare");
    let script = format!("{script} && exec \"$0\" \"$@\"");
    command.args(["-Urm", "sh", "-c", &script, env!("CARGO_BIN_EXE_gnoma")]).args(arguments);
    command.current_dir(world.project.path()).env_clear();
    command
        .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
        .env("HOME", world.home.path());
    let output = command.output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if text.is_empty() {
        gnoma_testkit::skip_test(&format!(
            "no sandbox: the machine cannot be made unfit: {}",
            said.trim()
        ));
        return None;
    }
    Some(text)
}

#[tokio::test]
async fn commands_need_approval_where_trials_are_impossible_and_doctor_says_why() {
    let overlaid = |folder: &std::path::Path| {
        let (at, own) = (folder.display(), folder.join(".own"));
        let own = own.display();
        format!(
            "mkdir -p {own}/upper {own}/work && mount -t overlay overlay \
             -o lowerdir={at},upperdir={own}/upper,workdir={own}/work,userxattr {at}"
        )
    };
    let everywhere = |world: &World| {
        let (home, project) = (world.home.path(), world.project.path());
        // Beside the workspace as well.
        let beside = format!(".{}.gnoma-trials", project.file_name().unwrap().to_string_lossy());
        let beside = project.with_file_name(beside);
        fs::create_dir(&beside).unwrap();
        let script = [home, project, &beside].map(overlaid).join(" && ");
        format!("{script} && cd {}", project.display())
    };
    let no_spaces = |_: &World| "echo 0 > /proc/sys/user/max_user_namespaces".to_owned();
    let no_networks = |_: &World| "echo 0 > /proc/sys/user/max_net_namespaces".to_owned();
    let no_processes = |_: &World| "echo 0 > /proc/sys/user/max_pid_namespaces".to_owned();
    let mounted = |_: &World| "mkdir sub && mount -t tmpfs tmpfs sub".to_owned();
    let cases: [(Unfitting<'_>, &str); 5] = [
        (&no_spaces, "the sandbox works partly"),
        (&no_networks, "the sandbox works partly"),
        (&no_processes, "the sandbox works partly"),
        (&mounted, "another file system is mounted"),
        (&everywhere, "in `"),
    ];
    for (script, why) in cases {
        let world = World::new([]);
        world.write("script.sh", "echo ran > made\n");
        if !can_try(&world) {
            return;
        }
        let script = script(&world);
        let Some(doctor) = unfit(&world, &script, &["doctor"]) else { return };
        let line = doctor.lines().find(|line| line.contains("trials:")).unwrap_or(&doctor);
        assert!(
            line.contains("✗ trials: not available here, so such commands need approval"),
            "{doctor}"
        );
        assert!(line.contains(why), "{why}: {line}");
        world.write("commands", "sh ./script.sh\n");
        let script = script.replace("mkdir sub &&", "");
        let run = ["guard", "run", "--mode", "auto", "commands"];
        let Some(ran) = unfit(&world, &script, &run) else { return };
        assert!(ran.starts_with("ask "), "{ran}");
        assert!(!exists(world.project.path(), "made"), "{ran}");
        let beside = format!(
            ".{}.gnoma-trials",
            world.project.path().file_name().unwrap().to_string_lossy()
        );
        fs::remove_dir_all(world.project.path().with_file_name(beside)).ok();
    }
}

#[tokio::test]
async fn build_output_renewed_outside_the_trial_is_visible() {
    let run = |command: &str| calls("bash", &serde_json::json!({ "command": command }).to_string());
    let look = run("cat target/out");
    let world = World::new([run("make"), look.clone(), run("sh ./other.sh"), look, says("ok")]);
    if !can_try(&world) {
        return;
    }
    // It runs in the workspace, as a build of the person does.
    world.configure("[[permission.rules]]\nrule = \"bash(sh ./other.sh)\"\naction = \"allow\"\n");
    fs::create_dir(world.project.path().join("target")).unwrap();
    for (name, text) in [
        ("Makefile", "all:\n\techo built > target/out\n"),
        (".gitignore", "target\n"),
        ("target/out", "old\n"),
        ("other.sh", "echo newer > target/out\n"),
    ] {
        world.write(name, text);
    }
    let ended = world.run(&["--permission", "auto", "go"]).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let requests = world.server.requests();
    let told = |number: usize| {
        let body = requests[number].json();
        body["messages"][2 * number + 1]["content"].as_str().unwrap().to_owned()
    };
    assert!(told(2).starts_with("built"), "{}", told(2));
    assert!(told(4).starts_with("newer"), "what is written in place is seen: {}", told(4));
}

#[tokio::test]
async fn background_processes_of_a_trial_are_ended_and_reported() {
    let world = running("sleep 300 >/dev/null 2>&1 &\necho started\n");
    if !can_try(&world) {
        return;
    }
    let text = said(&world, "auto").await;
    assert!(text.contains("started") && text.contains("was ended with the trial"), "{text}");
}
