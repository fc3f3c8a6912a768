//! What may run, seen from outside, and the guard as commands of its own.

use std::{fs, os::unix::fs::symlink, process::Command};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use gnoma_core::StopReason;
use gnoma_testkit::{Reply, Script, Server, Wire};
use serde_json::{Value, json};

use crate::support::{Run, World, calls, exists, says};

/// A world whose model runs one shell command.
fn shell(command: &str) -> World {
    World::new([calls("bash", &json!({"command": command}).to_string()), says("ok")])
}

/// What the tool of the first round gave back.
fn result(world: &World) -> String {
    let body = world.server.requests()[1].json();
    body["messages"][3]["content"].as_str().unwrap().to_owned()
}

fn repository(world: &World) {
    let made = Command::new("git").args(["init", "-q"]).current_dir(world.project.path()).status();
    assert!(made.unwrap().success());
}

#[tokio::test]
async fn read_only_commands_run_without_approval() {
    for command in [
        "git status && ls | head",
        "for f in *.txt; do wc -l \"$f\"; done; (cat a.txt | sort | uniq -c) || true",
        "find . -name '*.txt' -exec grep -n needle {} +",
        "if [ -f a.txt ]; then echo \"$(head -1 a.txt)\"; fi > /dev/null && cat a.txt",
    ] {
        let world = shell(command);
        repository(&world);
        world.write("a.txt", "needle\n");
        let run = world.run(&["look"]).await;
        assert_eq!(run.code, Some(0), "{run:?}");
        let result = result(&world);
        assert!(result.contains("a.txt") || result.contains("needle"), "{command}: {result}");
    }
}

#[tokio::test]
async fn one_dangerous_part_stops_the_whole_command() {
    for command in [
        "ls; rm -rf x",
        "ls > seen && rm -rf x",
        "echo $(rm -rf x)",
        "find . -name x -exec rm -rf {} \\;",
        "bash -c 'rm -rf x'",
        "cat <<E | sh\nrm -rf x\nE\n",
        "f() { rm -rf x; }; f",
        "X='rm -rf x'; $X",
        "ls | xargs rm -rf",
        "env rm -rf x",
    ] {
        let world = shell(command);
        fs::create_dir(world.project.path().join("x")).unwrap();
        let run = world.run(&["tidy"]).await;
        let said = result(&world);
        let is_denied = said.starts_with("permission denied: ");
        assert!(is_denied || said.contains("discarded"), "{command}: {said}");
        assert_eq!(run.code, Some(4), "{run:?}");
        let project = world.project.path();
        assert!(exists(project, "x") && !exists(project, "seen"), "{command}");
    }
}

#[tokio::test]
async fn permission_rules_allow_and_deny_commands() {
    let touch = "touch one && ls";
    for (rules, made) in [
        ("rule = \"bash(touch one)\"\naction = \"allow\"\n", true),
        ("rule = \"bash(touch *)\"\naction = \"allow\"\n", true),
        ("rule = \"bash(touch two)\"\naction = \"allow\"\n", false),
        (
            "rule = \"bash(touch *)\"\naction = \"allow\"\n\
             [[permission.rules]]\nrule = \"bash(touch one)\"\naction = \"deny\"\n",
            false,
        ),
    ] {
        let world = shell(touch);
        world.configure(&format!("[[permission.rules]]\n{rules}"));
        world.run(&["go"]).await;
        assert_eq!(exists(world.project.path(), "one"), made, "{rules}");
    }
    let denied = shell("cat a.txt");
    denied.configure("[[permission.rules]]\nrule = \"fs.read(a.*)\"\naction = \"deny\"\n");
    denied.write("a.txt", "needle\n");
    denied.run(&["--permission", "bypass", "go"]).await;
    assert!(!result(&denied).contains("needle"), "{}", result(&denied));
}

#[tokio::test]
async fn unparseable_permission_rule_is_reported_before_anything_runs() {
    for (rule, hint) in [
        ("bash(touch made", "bracket"),
        ("bash(a && b)", "bash(a && b)"),
        ("fs.write(../x)", "fs.write(../x)"),
        ("git push", "write it as `bash(git push)`"),
        ("web(https://example.com)", "web(https://example.com)"),
    ] {
        let world = World::new([says("never")]);
        let rules = format!("[[permission.rules]]\nrule = \"{rule}\"\naction = \"allow\"\n");
        world.configure(&rules);
        let run = world.run(&["hi"]).await;
        assert_eq!(run.code, Some(2), "{run:?}");
        let names_it = run.err.contains("permission.rules") && run.err.contains(rule);
        assert!(names_it && run.err.contains(hint), "{}", run.err);
        assert_eq!(world.server.requests().len(), 0);
    }
    let world = World::new([says("never")]);
    world.configure(
        "[[permission.rules]]\ntool = \"bash\"\npattern = \"git\"\naction = \"allow\"\n",
    );
    let run = world.run(&["hi"]).await;
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.err.contains("bash(git status)"), "{}", run.err);
}

/// Writes by a file tool to a place that decides over later runs.
async fn writes(path: &str, flags: &[&str]) -> (World, Run) {
    let call = json!({"path": path, "content": "x"}).to_string();
    let world = World::new([calls("fs_write", &call), says("ok")]);
    repository(&world);
    let mut args = vec!["--permission", "bypass"];
    args.extend(flags);
    args.push("go");
    let run = world.run(&args).await;
    (world, run)
}

#[tokio::test]
async fn guarded_files_need_approval_even_in_bypass_mode() {
    for path in [".git/hooks/pre-commit", ".gnoma/config.toml", ".mcp.json", ".vscode/tasks.json"] {
        let (world, run) = writes(path, &[]).await;
        assert!(!exists(world.project.path(), path), "{path}: {run:?}");
        assert!(
            result(&world).contains("nobody is there to approve it"),
            "{path}: {}",
            result(&world)
        );
        let (world, run) = writes(path, &["--confirm-bypass"]).await;
        assert!(exists(world.project.path(), path), "{path}: {run:?}");
        assert!(run.err.contains("CONFIRMED BYPASS"), "it says so: {run:?}");
    }
    for command in [
        "echo x > .git/hooks/pre-commit",
        "ln -s /tmp .git/hooks/up && ls",
        "cp a.txt .gnoma/config.toml",
        "git config core.hooksPath /tmp/hooks",
        "rm -rf /srv/data/thesis",
        "echo x >> ~/.bashrc",
        "tee ~/.ssh/authorized_keys < a.txt",
    ] {
        let world = shell(command);
        repository(&world);
        world.write("a.txt", "x\n");
        let run = world.run(&["--permission", "bypass", "go"]).await;
        let result = result(&world);
        assert!(result.starts_with("permission denied: "), "{command}: {run:?}");
        assert!(result.contains("nobody is there to approve it"), "{command}: {result}");
    }
}

#[tokio::test]
async fn symlinks_out_of_the_workspace_are_detected() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("notes"), "private words\n").unwrap();
    for (tool, arguments) in [
        ("fs_read", json!({"path": "way/notes"})),
        ("fs_write", json!({"path": "way/new", "content": "x"})),
        ("fs_write", json!({"path": "link", "content": "x"})),
        ("bash", json!({"command": "cat way/notes"})),
        ("bash", json!({"command": "cp a.txt way/new"})),
    ] {
        let world = World::new([calls(tool, &arguments.to_string()), says("ok")]);
        world.write("a.txt", "x\n");
        symlink(outside.path(), world.project.path().join("way")).unwrap();
        symlink(outside.path().join("new"), world.project.path().join("link")).unwrap();
        world.run(&["--permission", "accept_edits", "go"]).await;
        let result = result(&world);
        // A link to what is not there yet is refused by the tool itself.
        let refused = ["permission denied: ", "`link` is a link that leads nowhere"];
        assert!(refused.iter().any(|start| result.starts_with(start)), "{arguments}: {result}");
        assert!(!exists(outside.path(), "new"), "{arguments}");
    }
}

#[tokio::test]
async fn each_tool_call_is_judged_after_the_effects_of_earlier_calls() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("notes"), "private words\n").unwrap();
    let link = format!("ln -s {} way", outside.path().display());
    let script = Script::text([""; 0])
        .with_call("call_a", "bash", json!({"command": link}).to_string())
        .with_call("call_b", "fs_read", r#"{"path": "way/notes"}"#)
        .with_call("call_c", "bash", r#"{"command": "cat way/notes"}"#)
        .with_call("call_d", "fs_write", r#"{"path": "way/new", "content": "x"}"#)
        .with_stop(StopReason::ToolUse);
    let world = World::new([Wire::OpenAi.stream_reply(&script), says("ok")]);
    let rule = "[[permission.rules]]\nrule = \"bash(ln *)\"\naction = \"allow\"\n";
    world.configure(rule);
    let run = world.run(&["--permission", "accept_edits", "go"]).await;
    let sent = world.server.requests()[1].json();
    let results: Vec<_> = sent["messages"].as_array().unwrap().iter().skip(3).collect();
    assert!(fs::read_link(world.project.path().join("way")).is_ok(), "{run:?} {results:?}");
    for result in &results[1..4] {
        let text = result["content"].as_str().unwrap();
        assert!(text.starts_with("permission denied: "), "{text}");
    }
    assert!(!exists(outside.path(), "new"));
}

fn token() -> String {
    ["gh", "p_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"].concat()
}

#[tokio::test]
async fn scan_lists_secrets_with_their_places_and_never_shows_them() {
    let world = World::new([]);
    world.write("clean.txt", "nothing here\n");
    world.write("a.txt", &format!("first line\n  token: {}\n", token()));
    let run = world.run(&["guard", "scan", "clean.txt"]).await;
    assert_eq!((run.code, run.out.as_str()), (Some(0), ""), "{run:?}");
    for run in [
        world.run(&["guard", "scan", "a.txt"]).await,
        world.pipe(&["guard", "scan"], &world.read("a.txt")).await,
        world.pipe(&["guard", "scan", "-"], &world.read("a.txt")).await,
    ] {
        assert_eq!(run.code, Some(1), "{run:?}");
        assert!(run.out.starts_with("2:10 github-") && run.out.ends_with("redact\n"), "{run:?}");
        assert!(!run.out.contains(&token()), "{run:?}");
    }
    let run = world.run(&["guard", "scan", "missing.txt"]).await;
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.err.contains("cannot read `missing.txt`"), "{run:?}");
    world.configure(
        "[[security.patterns]]\nname = \"x\"\nregex = \"(unclosed\"\naction = \"warn\"\n",
    );
    let run = world.run(&["guard", "scan", "a.txt"]).await;
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.err.contains("security.patterns") && run.err.contains("`x`"), "{run:?}");
    assert!(run.err.contains("config.toml:8:"), "{run:?}");
}

/// The answers to JSON lines.
fn answers(run: &Run) -> Vec<Value> {
    run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn decoded(value: &Value) -> String {
    String::from_utf8(BASE64_STANDARD.decode(value.as_str().unwrap()).unwrap()).unwrap()
}

#[tokio::test]
async fn json_lines_are_answered_one_by_one() {
    let world = World::new([]);
    let line = |id: &str, text: &str| {
        format!("{}\n", json!({"id": id, "text_b64": BASE64_STANDARD.encode(text)}))
    };
    let input = line("a", "nothing") + "\n" + &line("b", &format!("k {} .", token()));
    let run = world.pipe(&["guard", "scan", "--jsonl"], &input).await;
    let rows = answers(&run);
    assert_eq!((run.code, rows.len()), (Some(1), 2), "{run:?}");
    assert_eq!(decoded(&rows[0]["redacted_b64"]), "nothing");
    let finding = &rows[1]["findings"][0];
    assert_eq!((&finding["start"], &finding["end"]), (&json!(2), &json!(42)), "{run:?}");
    let redacted = decoded(&rows[1]["redacted_b64"]);
    assert!(redacted.starts_with("k {{secret:github-") && redacted.ends_with("}} ."), "{redacted}");

    let run = world.pipe(&["guard", "clean", "--jsonl"], &line("c", "a\u{202E}b\u{1b}[8mc")).await;
    let row = &answers(&run)[0];
    assert_eq!((run.code, decoded(&row["text_b64"]).as_str()), (Some(1), "abc"), "{run:?}");
    assert_eq!(row["flags"].as_array().map(Vec::len), Some(2), "{run:?}");

    let command = |text: &str| format!("{}\n", json!({"id": text, "command": text}));
    let run = world.pipe(&["guard", "shell", "--jsonl"], &(command("ls") + &command("rm a"))).await;
    let verdicts: Vec<_> = answers(&run).iter().map(|row| row["verdict"].clone()).collect();
    assert_eq!((run.code, &verdicts[0]), (Some(1), &json!("allow")), "{run:?}");
    assert!(["ask", "trial"].map(|word| json!(word)).contains(&verdicts[1]), "{run:?}");

    let run = world.pipe(&["guard", "scan", "--jsonl"], "{\"id\": 1}\n").await;
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.err.contains("line 1 is not a valid request"), "{run:?}");
}

#[tokio::test]
async fn guard_run_executes_only_what_needs_no_approval() {
    let world = World::new([]);
    let secret = token();
    world.write("notes", &format!("words\nkey {secret}\n"));
    let commands = ["cat notes", "rm notes", "cat ~/.ssh/id_rsa", "echo in > made", "ls -A"];
    let lines = |commands: &[&str]| -> String {
        let line = |command: &&str| format!("{}\n", json!({"id": command, "command": command}));
        commands.iter().map(line).collect()
    };
    let run = world.pipe(&["guard", "run", "--mode", "plan", "--jsonl"], &lines(&commands)).await;
    let rows = answers(&run);
    assert_eq!(run.code, Some(1), "{run:?}");
    let verdicts: Vec<_> = rows.iter().map(|row| row["verdict"].as_str().unwrap()).collect();
    // Where nothing can be tried, what changes something is refused while planning.
    let tries = verdicts[1] == "trial";
    let changing = if tries { "trial" } else { "refuse" };
    assert_eq!(verdicts, ["allow", changing, "ask", changing, "allow"], "{run:?}");
    for row in &rows {
        let is_tried = row["verdict"] == "trial";
        assert_eq!(row["ran"], json!(row["verdict"] == "allow" || is_tried), "{row}");
        assert_eq!((row["changed"] == json!([]), &row["kept"]), (!is_tried, &json!([])), "{row}");
    }
    let told = |place: usize| decoded(&rows[place]["output_b64"]);
    assert!(told(0).starts_with("words\nkey {{secret:") && !told(0).contains(&secret));
    let said = if tries { "[ran on trial; 1 changed file" } else { "permission denied: mode plan" };
    assert!(told(1).starts_with(said), "{}", told(1));
    assert!(told(2).contains("nobody"), "{}", told(2));
    // While planning, one step sees what another has done on trial.
    assert_eq!(told(4), if tries { "made" } else { "notes" });
    // What runs and changes something is told.
    let args = ["guard", "run", "--mode", "bypass", "--jsonl"];
    let run = world.pipe(&args, &lines(&["echo in > made; rm notes"])).await;
    let row = &answers(&run)[0];
    assert_eq!((run.code, &row["verdict"], &row["ran"]), (Some(0), &json!("allow"), &json!(true)));
    let mut names: Vec<_> =
        row["changed"].as_array().unwrap().iter().map(Value::to_string).collect();
    names.sort();
    assert!(names[0].ends_with("/made\"") && names[1].ends_with("/notes\""), "{names:?}");
    let run = world.pipe(&["guard", "run", "--mode", "auto"], "cat made\nrm made\n").await;
    assert_eq!(run.code, Some(if tries { 0 } else { 1 }), "{run:?}");
    let verdict = if tries { "trial" } else { "ask" };
    let begins = format!("allow  cat made\nin\n{verdict:<6} rm made\n");
    assert!(run.out.starts_with(&begins), "{run:?}");
}

#[tokio::test]
async fn command_is_judged_after_the_changes_of_an_earlier_trial() {
    let world = World::new([]);
    world.write("prepare.sh", "ln -s ~/.ssh notes; mkdir -p d/.git/hooks; echo > d/.git/config\n");
    std::fs::create_dir(world.project.path().join("d")).unwrap();
    world.write("d/a", "words\n");
    world.write("toolchain.sh", "echo 'path = \"x\"' > rust-toolchain.toml\n");
    let lines: String = [
        "cat notes/hosts",
        "git -C d status",
        "cargo --version",
        "sh ./prepare.sh",
        "sh ./toolchain.sh",
        "cat notes/hosts",
        "git -C d status",
        "cargo --version",
        "cat d/a",
    ]
    .map(|command| format!("{}\n", json!({"id": command, "command": command})))
    .concat();
    let run = world.pipe(&["guard", "run", "--mode", "plan", "--jsonl"], &lines).await;
    let rows = answers(&run);
    let verdicts: Vec<_> = rows.iter().map(|row| row["verdict"].as_str().unwrap()).collect();
    if verdicts[3] != "trial" {
        gnoma_testkit::skip_test(&format!("no sandbox: nothing can be tried here: {verdicts:?}"));
        return;
    }
    let [tried @ .., reading, status, compiler, plain] = &verdicts[..] else { unreachable!() };
    assert_eq!(tried, ["allow", "allow", "allow", "trial", "trial"], "{run:?}");
    assert_eq!(
        [*reading, *status, *compiler, *plain],
        ["ask", "trial", "trial", "allow"],
        "{run:?}"
    );
}

#[tokio::test]
async fn links_among_temporary_files_of_the_session_are_followed_when_a_command_is_judged() {
    let world = World::new([]).among_files();
    let way = format!("/tmp/gnoma-test-way-{}", std::process::id());
    world.write("prepare.sh", &format!("ln -s ~/.ssh {way}\n"));
    let reads = format!("cat {way}/hosts");
    let lines: String = [reads.as_str(), "sh ./prepare.sh", reads.as_str()]
        .map(|command| format!("{}\n", json!({"id": command, "command": command})))
        .concat();
    let run = world.pipe(&["guard", "run", "--mode", "plan", "--jsonl"], &lines).await;
    let rows = answers(&run);
    let verdicts: Vec<_> = rows.iter().map(|row| row["verdict"].as_str().unwrap()).collect();
    if verdicts[1] != "trial" {
        gnoma_testkit::skip_test(&format!("no sandbox: nothing can be tried here: {verdicts:?}"));
        return;
    }
    assert_eq!(verdicts, ["allow", "trial", "ask"], "{run:?}");
}

#[tokio::test]
async fn clean_prints_the_text_without_what_hides_in_it() {
    let world = World::new([]);
    let run = world.pipe(&["guard", "clean"], "plain\ttext, فارسی می‌خواهم\r\n").await;
    assert_eq!((run.code, run.out.as_str()), (Some(0), "plain\ttext, فارسی می‌خواهم\r\n"));
    let run = world.pipe(&["guard", "clean"], "pass\u{E0070}\u{E0077}word\u{200B}\n").await;
    assert_eq!((run.code, run.out.as_str()), (Some(1), "password\n"), "{run:?}");
    assert!(run.err.contains("removed"), "{run:?}");
}

#[tokio::test]
async fn guard_shell_and_explain_report_the_verdict() {
    let world = World::new([]);
    let run = world.pipe(&["guard", "shell"], "ls | head\ngit log -3\n").await;
    assert_eq!(run.code, Some(0), "{run:?}");
    let run = world.pipe(&["guard", "shell"], "ls\nrm -rf build\n\n").await;
    assert_eq!(run.code, Some(1), "{run:?}");
    let asks = ["ask    rm -rf build\n", "trial  rm -rf build\n"];
    let says_so = run.out.contains("allow  ls\n") && asks.iter().any(|line| run.out.contains(line));
    assert!(says_so, "{run:?}");

    let run =
        world.run(&["guard", "explain", "cd src && grep -rn word . | head; rm -rf build"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    for said in ["4 simple commands", "grep -rn word .", "deletes `src/build`", "verdict: ask"] {
        assert!(run.out.contains(said), "{said}: {}", run.out);
    }
    let run = world.run(&["guard", "explain", "echo 'unclosed"]).await;
    assert!(run.out.contains("not understood") && run.out.contains("verdict: ask"), "{run:?}");
}

#[tokio::test]
async fn doctor_reports_sandbox_privacy_and_model_checks() {
    let world = World::new([]);
    let run = world.run(&["doctor"]).await;
    // No model answers here.
    assert!(run.code == Some(1) && run.out.contains("✗ test (default)"), "{run:?}");
    for said in [
        "sandbox: ",
        "commands that only read: ",
        "seccomp",
        "privacy: normal",
        "workspace: ",
        "bash: ",
    ] {
        assert!(run.out.contains(said), "{said}: {}", run.out);
    }
    let folder = world.project.path();
    let is_temporary = gnoma_sandbox::TEMPORARY.iter().any(|place| folder.starts_with(place));
    let are_unseen = is_temporary || !gnoma_sandbox::reports_tried_files();
    let is_said = run.out.contains("names beside the workspace: ");
    assert_eq!(is_said, are_unseen && run.out.contains("✓ trials"), "{}", run.out);
    let places = gnoma_sandbox::Support::detect().parts;
    assert!(places.iter().all(|part| run.out.contains(&part.note)), "{run:?}");
    world.configure("[sandbox]\nmode = \"off\"\n[privacy]\nincognito = true\n");
    let run = world.run(&["doctor"]).await;
    assert!(run.out.contains("turned off") && run.out.contains("nothing is saved"), "{run:?}");
    let asked = world.server.requests();
    assert!(asked.iter().all(|request| request.path().ends_with("/models")), "{asked:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_checks_models_and_names_what_is_wrong_with_the_configuration() {
    let server = Server::start(|_| Reply::json(200, r#"{"data":[{"id":"m1"},{"id":"m2"}]}"#));
    let world = World::with(server.unwrap());
    let run = world.run(&["doctor"]).await;
    assert!(run.out.contains("✓ test (default): answers at "), "{run:?}");
    assert!(run.out.contains("2 models: m1, m2; `m1` is there"), "{run:?}");
    let code = if run.out.contains("\n  ✗ ") { 1 } else { 0 };
    assert_eq!(run.code, Some(code), "{run:?}");
    let file = world.home.path().join(".config/gnoma/config.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("\"m1\"", "\"m9\"")).unwrap();
    let run = world.run(&["doctor"]).await;
    assert!(run.out.contains("does not list `m9`") && run.code == Some(1), "{run:?}");
    let down = "[provider]\ndefault = \"w\"\n[provider.endpoints]\nw = \"http://127.0.0.1:9/v1\"\n";
    std::fs::write(&file, down).unwrap();
    let run = world.run(&["doctor"]).await;
    assert!(run.out.contains("start the server") && !run.out.contains("repairs"), "{run:?}");
    std::fs::write(&file, "[provider\n").unwrap();
    let run = world.run(&["doctor"]).await;
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.out.contains("config.toml:1:") && run.out.contains("sandbox: "), "{run:?}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn always_answer_covers_only_calls_of_its_rule() {
    use crate::terminal::Terminal;
    let touch =
        |name: &str| calls("bash", &json!({"command": format!("touch {name}")}).to_string());
    let world = World::new([touch("one"), touch("one"), touch("two"), says("done")]);
    let mut terminal = Terminal::open(&world, "go");
    terminal.wait_for("reason to deny", 1).await;
    assert!(terminal.seen.contains("[a]lways bash(touch one)"), "{}", terminal.seen);
    terminal.press("a\n").await;
    terminal.wait_for("reason to deny", 2).await;
    assert!(exists(world.project.path(), "one"), "{}", terminal.seen);
    assert_eq!(world.server.requests().len(), 3, "the second call was not asked about");
    terminal.press("n\n").await;
    let (code, seen) = terminal.end().await;
    assert_eq!(code, Some(0), "{seen}");
    assert!(!exists(world.project.path(), "two"), "{seen}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn always_is_not_offered_for_sending_a_secret() {
    use crate::terminal::Terminal;
    let command = "curl -s http://127.0.0.1:9/ -H 'X: KEY'";
    let script = move |request: &gnoma_testkit::Request| {
        let body = String::from_utf8_lossy(&request.body).into_owned();
        let Some(at) = body.find("{{secret:github-") else { return says("no placeholder") };
        if body.contains("\"tool\"") {
            return says("done");
        }
        let end = at + body[at..].find("}}").unwrap() + 2;
        let command = command.replace("KEY", &body[at..end]);
        calls("bash", &json!({"command": command}).to_string())
    };
    let world = World::with(gnoma_testkit::Server::start(script).unwrap());
    let mut terminal = Terminal::open(&world, &format!("--permission bypass 'use {}'", token()));
    terminal.wait_for("reason to deny", 1).await;
    assert!(terminal.seen.contains("of your secrets"), "{}", terminal.seen);
    assert!(!terminal.seen.contains("[a]lways"), "{}", terminal.seen);
    terminal.press("n\n").await;
    let (code, seen) = terminal.end().await;
    assert_eq!(code, Some(0), "{seen}");
}
