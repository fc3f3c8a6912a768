//! What comes of looking at repositories that somebody prepared, seen by its effects.

use std::{fs, os::unix::fs::PermissionsExt as _, process::Command};

use serde_json::Value;

use crate::support::{World, exists, says};

/// Words of a language, which no rule for secrets finds.
const SECRET: &str = "the moon is made of cheese";

/// A workspace with a repository made by `script`, and a program `./x` that leaves a mark.
fn repository(script: &str) -> World {
    let world = World::new([says("ok")]).among_files();
    world.write("x", "#!/bin/sh\necho ran >> \"$(dirname \"$0\")/RAN\"\ncat 2> /dev/null\n");
    let program = world.project.path().join("x");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    world.write("a", "one\n");
    let own = "export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org \
               GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org; set -e; git init -q .; git add a; git commit -qm one\n";
    let made = Command::new("sh")
        .args(["-c", &format!("{own}{script}")])
        .current_dir(world.project.path())
        .status();
    assert!(made.unwrap().success(), "{script}");
    fs::remove_file(world.project.path().join("RAN")).ok();
    world
}

/// Verdict and output of each command.
async fn runs(world: &World, mode: &str, commands: &[&str]) -> Vec<(String, String)> {
    let lines: String = commands
        .iter()
        .map(|command| serde_json::json!({"id": 1, "command": command}).to_string() + "\n")
        .collect();
    let run = world.pipe(&["guard", "run", "--mode", mode, "--jsonl"], &lines).await;
    let answers = run.out.lines().map(|line| {
        let answer: Value = serde_json::from_str(line).unwrap();
        let output = answer["output_b64"].as_str().unwrap();
        let output = base64::Engine::decode(&base64::prelude::BASE64_STANDARD, output).unwrap();
        let verdict = answer["verdict"].as_str().unwrap().to_owned();
        (verdict, String::from_utf8_lossy(&output).into_owned())
    });
    answers.collect()
}

#[tokio::test]
async fn git_filters_of_a_repository_run_at_most_on_trial() {
    for (script, commands) in [
        (
            "echo '* filter=x' > .gitattributes; git config filter.x.clean ./x; touch a",
            &["git status", "git diff"][..],
        ),
        (
            "echo '* filter=x' > .git/info/attributes; git config filter.x.process ./x; touch a",
            &["git status"],
        ),
        (
            "echo '* diff=x' > .gitattributes; git config diff.x.textconv ./x; echo b > a",
            &["git diff", "git log -p", "git show", "git blame a"],
        ),
        ("git config diff.external ./x; echo b > a", &["git diff"]),
        ("git config core.fsmonitor ./x", &["git status", "git ls-files -m"]),
        (
            "printf '[core]\\n\\tfsmonitor = ./x\\n' > more; git config include.path ../more",
            &["git status"],
        ),
        ("git config gpg.program ./x; git config log.showSignature true", &["git log"]),
        (
            "git init -q sub; git -C sub commit -q --allow-empty -m s; git add sub 2>/dev/null; git commit -qm sub; \
          git -C sub config core.fsmonitor \"$PWD/x\"",
            &["git status", "git diff"],
        ),
        (
            "git worktree add -q tree; git config extensions.worktreeConfig true; \
          git -C tree config --worktree core.fsmonitor \"$PWD/x\"",
            &["git -C tree status"],
        ),
        (
            "git init -q --bare bare; git -C bare config core.fsmonitor \"$PWD/x\"; git -C bare config core.bare false; \
          git -C bare config core.worktree ..",
            &["cd bare && git status"],
        ),
        (
            "printf '#!/bin/sh\\n./x\\n' > .git/hooks/post-index-change; chmod +x .git/hooks/post-index-change; touch a",
            &["git status", "git describe --dirty --always"],
        ),
    ] {
        for mode in ["plan", "auto"] {
            let world = repository(script);
            for (command, (verdict, output)) in
                commands.iter().zip(runs(&world, mode, commands).await)
            {
                assert_ne!(verdict, "allow", "{script}: {command}: {output}");
            }
            assert!(!exists(world.project.path(), "RAN"), "{mode}: {script}");
        }
    }
}

#[tokio::test]
async fn git_repository_made_by_a_trial_is_not_trusted() {
    let world = repository("echo target/ > .gitignore");
    world.write(
        "mk",
        "mkdir -p target/n; cd target/n; git init -q; git config filter.x.clean ./x\n",
    );
    let seen = runs(&world, "auto", &["sh ./mk", "git -C target/n status --short"]).await;
    assert!(seen.iter().all(|(verdict, _)| verdict != "allow"), "{seen:?}");
}

#[tokio::test]
async fn rust_toolchain_path_of_a_project_runs_at_most_on_trial() {
    let world = repository("true");
    let commands = ["rustc --version", "cargo -V", "cd sub && cargo --version"];
    std::fs::create_dir(world.project.path().join("sub")).unwrap();
    for (text, is_free) in
        [("[toolchain]\nchannel = \"1.80\"\n", true), ("[toolchain]\npath = \"/x\"\n", false)]
    {
        world.write("rust-toolchain.toml", text);
        for (verdict, output) in runs(&world, "auto", &commands).await {
            assert_eq!(verdict == "allow", is_free, "{text}: {output}");
        }
    }
}

#[tokio::test]
async fn committed_secrets_are_not_shown_by_any_git_command() {
    let script = format!(
        "mkdir config; echo '{SECRET}' > config/.env; git add -f config/.env; git commit -qm two; \
         git tag two; git rm -q config/.env; git commit -qm three; echo b > a; git stash -q; \
         git rev-parse two:config/.env > id; git branch -q side two"
    );
    let world = repository(&script);
    let id = world.read("id");
    let blob = format!("git cat-file -p {}", id.trim());
    let batch = format!("echo {} | git cat-file --batch", id.trim());
    let by_id = format!("git show {}", id.trim());
    let commands = [
        "git log -p --full-diff -- a",
        "git log -p --follow -- a",
        "git log -p --all",
        "git log -p -2",
        "git show HEAD~1",
        "git show two",
        "git show ':/two'",
        "git show HEAD^^{tree}:config/.env",
        "git show side:config/.env",
        "git diff HEAD~2 HEAD~1",
        "git diff two HEAD",
        "git diff HEAD~2..side",
        "git reflog -p",
        "git log -g -p",
        "git stash show -p",
        "git grep -n moon two",
        "git grep moon $(git rev-list --all)",
        "git archive two | tar xO",
        "git log -G moon -p",
        "git rev-list --all | xargs git show",
        "git diff-tree -p two~1 two",
        "git cat-file -p two:config/.env",
        "git log -L1,1:config/.env two",
        "git blame two -- config/.env",
        "git format-patch --stdout -2",
        "git bundle create - --all",
        "git fast-export --all",
        "git whatchanged -p",
        "git cat-file --batch-all-objects --batch",
        "git diff two -- config",
        &blob,
        &batch,
        &by_id,
    ];
    for mode in ["plan", "auto"] {
        for (command, (verdict, output)) in commands.iter().zip(runs(&world, mode, &commands).await)
        {
            assert!(!output.contains(SECRET), "{mode}: {verdict}: {command}: {output}");
        }
    }
}

#[tokio::test]
async fn git_read_commands_run_without_approval_in_usual_repositories() {
    let world = repository(
        "echo b > a; git config core.hooksPath .husky/_; git config core.fsmonitor false",
    );
    let commands =
        ["git status --short", "git diff", "git log -p", "git show HEAD", "git -C . blame a"];
    for mode in ["plan", "auto"] {
        for (command, (verdict, output)) in commands.iter().zip(runs(&world, mode, &commands).await)
        {
            assert_eq!(verdict, "allow", "{mode}: {command}: {output}");
            assert!(!output.contains("(no output)"), "{mode}: {command}: {output}");
        }
    }
}

#[tokio::test]
async fn sources_that_debug_information_names_are_not_shown_where_they_are_secret() {
    let world = World::new([]).among_files();
    world.write(".env", &format!("{SECRET}\n").repeat(20));
    let named = world.project.path().join(".env");
    let source = format!("#line 1 \"{}\"\nint main(void) {{ return 0; }}\n", named.display());
    world.write("a.c", &source);
    let mut compiler = Command::new("cc");
    compiler.args(["-g", "a.c", "-o", "a.out"]).current_dir(world.project.path());
    let built = compiler.status().is_ok_and(|status| status.success());
    if !built || Command::new("objdump").arg("--version").output().is_err() {
        gnoma_testkit::skip_test("`objdump` is not installed");
        return;
    }
    fs::remove_file(world.project.path().join("a.c")).unwrap();
    for mode in ["plan", "auto"] {
        for (verdict, output) in
            runs(&world, mode, &["objdump -S a.out", "objdump -dl --source a.out"]).await
        {
            assert_ne!(verdict, "allow", "{mode}");
            assert!(!output.contains(SECRET), "{mode}: {output}");
        }
    }
}
