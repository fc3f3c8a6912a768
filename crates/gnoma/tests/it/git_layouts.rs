//! Git in every layout of a repository, against the same commands in a shell without gnoma.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use gnoma_sandbox::{Strength, Support};
use serde_json::{Value, json};

use crate::support::{World, fed, says};

/// Makes a repository in a folder of this name.
const MAKE: &str = "set -e; make() { git init -q -b main $1; mkdir -p $1/sub; echo top > $1/top; \
    echo s > $1/sub/s; git -C $1 add -A; git -C $1 commit -qm one; }; ";

/// Name, script that makes it in an empty folder, and the folder that gnoma is started in.
const LAYOUTS: [(&str, &str, &str); 8] = [
    ("subfolder", "make repo", "repo/sub"),
    ("linked work tree", "make repo; git -C repo worktree add -q ../wt -b w", "wt"),
    ("subfolder of one", "make repo; git -C repo worktree add -q ../wt -b w", "wt/sub"),
    (
        "submodule",
        "make lib; make super; cd super; \
         git -c protocol.file.allow=always submodule --quiet add ../lib module",
        "super/module",
    ),
    ("sparse", "make repo; git -C repo sparse-checkout set sub", "repo/sub"),
    ("bare", "make repo; git clone -q --bare repo x.git", "x.git"),
    (
        "bare with work tree",
        "make repo; mkdir p; git clone -q --bare repo p/.bare; echo 'gitdir: ./.bare' > p/.git; \
         git -C p worktree add -q tree main",
        "p/tree",
    ),
    ("another owner", "make repo; chown -R 1234 repo", "repo/sub"),
];

const READING: [&str; 9] = [
    "git status --short",
    "git status",
    "git log --format=%s",
    "git diff",
    "git diff --stat HEAD",
    "git branch",
    "git stash list",
    "git rev-parse --show-toplevel",
    "git describe --always --dirty | grep -c dirty",
];

const CHANGING: [&str; 10] = [
    "git add -A && git commit -qm two",
    "git checkout -q -b side",
    "echo x > made && git add made",
    "git stash -q && git stash pop -q",
    "git commit -qm three",
    "git checkout -q - && git rebase -q side",
    "git worktree add -q tree2 -b other",
    "git tag v1",
    "git branch t1 && git branch -u side t1 && git branch -m t1 t2 && \
     git for-each-ref --format='%(upstream:short)' refs/heads/t2",
    "git log --format=%s",
];

/// A layout with something to see in it: its world, and the folder that gnoma is started in.
fn layout(script: &str, at: &str) -> (World, PathBuf) {
    let world = World::new([says("ok")]).among_files();
    let settings = "[user]\nname = a\nemail = a@example.org\n[safe]\ndirectory = *\n";
    fs::write(world.home.path().join(".gitconfig"), settings).unwrap();
    let folder = world.project.path().join(at);
    bare(&world, world.project.path(), &format!("{MAKE}{script}"));
    let change = "test -e HEAD || { echo more >> $(git ls-files | head -1); echo new > new; }; \
                  test ! -e ../top || echo more >> ../top";
    bare(&world, &folder, change);
    (world, folder)
}

/// Runs a command without gnoma: the exit code and the output as gnoma tells them.
fn bare(world: &World, folder: &Path, command: &str) -> String {
    let output = Command::new("bash")
        .args(["-c", &format!("exec 2>&1; {command}")])
        .current_dir(folder)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", world.home.path())
        .env("GIT_PAGER", "cat")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    match output.status.code() {
        Some(0) if text.is_empty() => "(no output)".to_owned(),
        Some(0) => text,
        code => format!("Exit code {}\n{text}", code.unwrap()).trim().to_owned(),
    }
}

/// Runs commands with gnoma when nobody can be asked: what the model is told of each.
pub(crate) async fn with_gnoma(
    world: &World,
    folder: &Path,
    mode: &str,
    commands: &[&str],
) -> Vec<String> {
    let line = |command: &&str| json!({"id": 1, "command": command}).to_string() + "\n";
    let lines: String = commands.iter().map(line).collect();
    let line = match mode {
        "confirmed" => &["--confirm-bypass", "guard", "run", "--mode", "bypass", "--jsonl"][..],
        mode => &["guard", "run", "--mode", mode, "--jsonl"],
    };
    let mut gnoma = world.command(line);
    gnoma.current_dir(folder);
    let run = fed(gnoma, &lines).await;
    let told = run.out.lines().map(|line| {
        let answer: Value = serde_json::from_str(line).unwrap();
        let output = answer["output_b64"].as_str().unwrap();
        let output = base64::Engine::decode(&base64::prelude::BASE64_STANDARD, output).unwrap();
        String::from_utf8_lossy(&output).trim().to_owned()
    });
    told.collect()
}

#[tokio::test]
async fn git_works_in_every_layout_as_without_gnoma() {
    if Support::detect().strength != Strength::Full {
        gnoma_testkit::skip_test("no sandbox: commands see all of the machine here");
        return;
    }
    let everything: Vec<_> = CHANGING.iter().chain(&READING).copied().collect();
    for (name, script, at) in LAYOUTS {
        if name == "another owner" && !rustix::process::geteuid().is_root() {
            continue;
        }
        for (mode, commands) in
            [("auto", &READING[..]), ("plan", &READING[..2]), ("bypass", &everything)]
        {
            let ((ours, at_ours), (theirs, at_theirs)) = (layout(script, at), layout(script, at));
            let told = with_gnoma(&ours, &at_ours, mode, commands).await;
            assert_eq!(told.len(), commands.len(), "{name}, {mode}");
            for (command, told) in commands.iter().zip(told) {
                if name == "bare"
                    && (command.starts_with("echo") || command.contains("worktree add"))
                {
                    // There they write into git's own folder, which needs approval in every mode.
                    continue;
                }
                let path = |world: &World| world.project.path().display().to_string();
                let told = told.replace(&path(&ours), "/work");
                let expected = bare(&theirs, &at_theirs, command).replace(&path(&theirs), "/work");
                assert_eq!(told, expected, "{name}, {mode}: {command}");
            }
        }
    }
}

#[tokio::test]
async fn a_git_file_that_names_a_foreign_repository_opens_nothing() {
    if Support::detect().strength != Strength::Full {
        println!("skipped: commands see all of the machine here");
        return;
    }
    // The other repository does not say that the workspace is its work tree.
    for script in [
        "make other; mkdir w; echo \"gitdir: $PWD/other/.git\" > w/.git",
        "make other; mkdir w; ln -s ../other/.git w/.git",
        "make other; make w; echo ../../other/.git > w/.git/commondir",
        "make other; mkdir -p w g; echo ../other/.git > g/commondir; cp other/.git/HEAD g; \
         echo \"$PWD/w/.git\" > g/gitdir; echo \"gitdir: $PWD/g\" > w/.git",
        "make other; git -C other worktree add -q ../real -b x; mkdir w; cp real/.git w/.git",
    ] {
        for command in ["git log --format=%s", "cat ../other/top; git show HEAD:top", "git add -A"]
        {
            let world = World::new([says("ok")]).among_files();
            bare(
                &world,
                world.project.path(),
                &format!(
                    "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b.c GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b.c; {MAKE}{script}"
                ),
            );
            let folder = world.project.path().join("w");
            let told = with_gnoma(&world, &folder, "auto", &[command]).await.join("\n");
            assert!(!told.contains("one") && !told.contains("top\n"), "{script}: {told}");
            let reached = "sh -c 'cat ../other/.git/HEAD ../other/top; git log --format=%s'";
            let told = with_gnoma(&world, &folder, "auto", &[reached]).await.join("\n");
            assert!(!told.contains("one") && !told.contains("refs/heads"), "{script}: {told}");
        }
    }
}

#[tokio::test]
async fn commands_cannot_change_git_hooks_or_config_outside_the_workspace() {
    if Support::detect().strength != Strength::Full {
        gnoma_testkit::skip_test("no sandbox: nothing holds it here");
        return;
    }
    for (name, script, at) in &LAYOUTS[..4] {
        let (world, folder) = layout(script, at);
        let evil = "d=$(git rev-parse --git-common-dir); echo x > $d/hooks/pre-commit; \
            echo '[core] fsmonitor = ./x' >> $d/config; git config core.fsmonitor ./x; \
            mv $d/hooks $d/h; git rev-parse --git-dir > /dev/null && echo reached";
        fs::write(folder.join("evil.sh"), evil).unwrap();
        let told = with_gnoma(&world, &folder, "bypass", &["sh ./evil.sh"]).await.join("\n");
        assert!(told.contains("reached"), "{name}: {told}");
        let look = "d=$(git rev-parse --git-common-dir); ls $d/hooks | grep -c '^pre-commit$'; \
                    grep -c fsmonitor $d/config";
        assert_eq!(bare(&world, &folder, look), "Exit code 1\n0\n0", "{name}");
    }
}

/// Two branches that differ in files that gnoma holds otherwise.
const BRANCHES: &str = "make p; cd p; mkdir .vscode .husky; echo '{}' > .vscode/settings.json; \
    echo old > .husky/pre-commit; git add -A; git commit -qm two; git checkout -qb feat; \
    echo '{\"tasks\":[]}' > .vscode/tasks.json; echo new > .husky/pre-commit; git add -A; \
    git commit -qm feat; git checkout -q main; echo m > m; git add -A; git commit -qm main";

/// git that could write only some files of a checkout would leave a tree that is neither the old nor the new one.
#[tokio::test]
async fn sandboxed_git_writes_the_same_work_tree_as_git_alone() {
    if Support::detect().strength != Strength::Full {
        gnoma_testkit::skip_test("no sandbox: commands see all of the machine here");
        return;
    }
    for command in [
        "git stash -q -u",
        "git stash -q -u && git stash pop -q",
        "git checkout -q . && git merge -q --no-edit feat",
        "git checkout -q . && git checkout -q feat",
        "git checkout -q . && git rebase -q feat",
        "git checkout -q . && git cherry-pick feat > /dev/null",
        "git reset -q --hard feat",
        "git checkout -q . && git diff main feat | git apply",
        "cd sub && git checkout -q feat -- .. && cd ..",
        "git rm -rfq .husky && git mv .vscode vs",
    ] {
        let ((ours, at_ours), (theirs, at_theirs)) = (layout(BRANCHES, "p"), layout(BRANCHES, "p"));
        let told = with_gnoma(&ours, &at_ours, "confirmed", &[command]).await.join("\n");
        let path = |world: &World| world.project.path().display().to_string();
        let told = told.replace(&path(&ours), "/work");
        let expected = bare(&theirs, &at_theirs, command).replace(&path(&theirs), "/work");
        assert_eq!(told, expected, "{command}");
        let state = "git status --short; git log --format=%s; git stash list | wc -l; \
                     find . -path ./.git -prune -o -type f -print | sort | xargs sha1sum";
        let state = |world: &World, folder: &Path| bare(world, folder, state);
        assert_eq!(state(&ours, &at_ours), state(&theirs, &at_theirs), "{command}");
    }
}

/// A patch brings any file: nothing that needs approval comes with it unasked.
#[tokio::test]
async fn git_writes_no_guarded_file_without_approval() {
    if Support::detect().strength != Strength::Full {
        gnoma_testkit::skip_test("no sandbox: commands see all of the machine here");
        return;
    }
    let evil = "git -c alias.x='!mkdir -p .vsc\"\"ode; echo hi > .vsc\"\"ode/tasks.json' x";
    for (mode, command) in [
        (
            "bypass",
            "git stash -q; git checkout -q feat; git diff main feat | git apply -R".to_owned(),
        ),
        ("bypass", format!("git stash list; {evil}")),
        ("confirmed", format!("git stash list; {evil}")),
    ] {
        let (world, folder) = layout(BRANCHES, "p");
        let told = with_gnoma(&world, &folder, mode, &[&command]).await;
        assert!(!folder.join(".vscode/tasks.json").exists(), "{mode}: {command}: {told:?}");
    }
}

/// A commit that skips a check of the person's own is named, and trust lets the check run.
#[tokio::test]
async fn git_hooks_that_do_not_run_are_named_until_the_project_is_trusted() {
    if Support::detect().strength != Strength::Full {
        gnoma_testkit::skip_test("no sandbox: hooks run here");
        return;
    }
    let (world, folder) = layout("make p", "p");
    let hook = "cd .git/hooks && printf '#!/bin/sh\necho REFUSED >&2\nexit 1\n' > pre-commit && chmod +x *";
    bare(&world, &folder, hook);
    let command = ["git add -A && git commit -qm two && git status --short"];
    let told = with_gnoma(&world, &folder, "bypass", &command).await.join("\n");
    assert!(told.contains("did not run") && told.contains(": pre-commit;"), "{told}");
    let mut trust = world.command(&["trust", "--yes"]);
    trust.current_dir(&folder);
    let run = fed(trust, "").await;
    assert!(run.out.contains("pre-commit"), "{run:?}");
    bare(&world, &folder, "echo more >> top");
    let told = with_gnoma(&world, &folder, "bypass", &command).await.join("\n");
    assert!(told.contains("REFUSED") && !told.contains("did not run"), "{told}");
    // Trust is in the hook that was shown.
    bare(&world, &folder, "echo 'echo CHANGED' >> .git/hooks/pre-commit");
    let told = with_gnoma(&world, &folder, "bypass", &command).await.join("\n");
    assert!(!told.contains("REFUSED") && told.contains("did not run"), "{told}");
}

#[tokio::test]
async fn rehearsal_that_takes_a_lock_outside_of_the_workspace_never_fails_for_it() {
    if Support::detect().strength != Strength::Full {
        gnoma_testkit::skip_test("no sandbox: commands see all of the machine here");
        return;
    }
    for (name, script, at) in LAYOUTS.into_iter().take(4) {
        let (world, folder) = layout(script, at);
        let told = with_gnoma(&world, &folder, "auto", &["git add -n ."]).await;
        assert!(!told[0].contains("index.lock"), "{name}: {told:?}");
        let told = with_gnoma(&world, &folder, "bypass", &["git add -n ."]).await;
        assert_eq!(told[0], bare(&world, &folder, "git add -n ."), "{name}");
    }
}
