//! Attempts on files of the workspace that make other programs run something later.

use std::{fs, process::Command};

use crate::cell::{Cell, Outcome, eventually, has, is_root, is_walled};

/// Runs a script in a repository, and checks that its guards are as they were.
fn guarded(script: &str) -> Option<Outcome> {
    if !is_walled() {
        return None;
    }
    let cell = Cell::repository();
    let outcome = cell.inside(script);
    assert!(outcome.was_walled(), "no walls, no proof: {outcome:?}");
    assert_intact(&cell);
    Some(outcome)
}

fn assert_intact(cell: &Cell) {
    let workspace = &cell.workspace;
    let config = fs::read_to_string(workspace.join(".git/config")).unwrap();
    assert_eq!(config, "[core]\n\trepositoryformatversion = 0\n");
    let hooks: Vec<_> = fs::read_dir(workspace.join(".git/hooks"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(hooks, ["pre-push.sample"]);
    for absent in [".gnoma", ".vscode"] {
        assert!(!workspace.join(absent).exists(), "`{absent}` was left behind");
    }
}

macro_rules! changes {
    ($($name:ident: $script:expr;)*) => {$(
        #[test]
        fn $name() {
            if let Some(outcome) = guarded($script) {
                assert_ne!(outcome.code, Some(0), "{outcome:?}");
            }
        }
    )*};
}

changes! {
    a_hook_cannot_be_made: "echo evil > .git/hooks/pre-commit";
    a_hook_cannot_be_changed: "echo evil >> .git/hooks/pre-push.sample";
    a_hook_cannot_be_renamed: "mv .git/hooks/pre-push.sample .git/hooks/pre-push";
    a_hook_cannot_be_made_runnable: "chmod +x .git/hooks/pre-push.sample";
    a_hook_cannot_be_moved_in: "echo evil > evil; mv evil .git/hooks/pre-commit";
    a_hook_cannot_be_linked_in: "echo evil > evil; ln evil .git/hooks/pre-commit";
    a_hook_cannot_be_reached_through_a_link: "ln -s .git/hooks hooks; echo evil > hooks/pre-commit";
    a_hook_cannot_be_reached_through_dots: "echo evil > .git/objects/../hooks/pre-commit";
    a_hook_cannot_be_reached_from_within: "cd .git/hooks && echo evil > pre-commit";
    the_hooks_cannot_be_removed: "rm -rf .git/hooks";
    the_hooks_cannot_be_moved: "mv .git/hooks .git/old";
    the_hooks_cannot_be_swapped: "mkdir new; python3 -c 'import ctypes; exit(-ctypes.CDLL(None).renameat2(-100, b\"new\", -100, b\".git/hooks\", 2))'";
    the_configuration_cannot_be_changed: "echo '[core] fsmonitor = evil' >> .git/config";
    the_configuration_cannot_be_replaced: "echo evil > .git/config.lock; mv .git/config.lock .git/config";
    the_configuration_cannot_be_removed: "rm -f .git/config";
    the_configuration_cannot_be_changed_by_another_name: "ln .git/config other && echo evil >> other";
    the_repository_cannot_be_moved: "mv .git old && mkdir -p .git/hooks && echo evil > .git/hooks/pre-commit";
    the_repository_cannot_be_removed: "rm -rf .git/config .git/hooks; rmdir .git || rm -rf .git";
    the_repository_cannot_become_a_link: "mkdir evil; rm -rf .git; ln -sT evil .git";
    what_is_absent_cannot_be_made: "mkdir .gnoma && echo evil > .gnoma/config.toml";
    what_is_absent_cannot_be_made_as_a_file: "echo evil > .gnoma";
    what_is_absent_cannot_be_filled: "echo evil > .gnoma/config.toml";
    what_is_absent_cannot_be_moved_in: "mkdir evil; echo x > evil/config.toml; mv -T evil .gnoma";
    what_is_absent_cannot_be_linked: "mkdir evil; ln -sfT evil .gnoma; rmdir .gnoma && ln -s evil .gnoma";
    what_is_absent_cannot_be_moved_away: "mv .gnoma other && mkdir .gnoma";
    what_is_absent_cannot_be_removed: "rmdir .gnoma && mkdir .gnoma && echo evil > .gnoma/config.toml";
    a_part_that_is_absent_cannot_be_made: "mkdir -p .vscode && echo evil > .vscode/settings.json";
}

#[test]
fn the_workspace_itself_cannot_be_moved() {
    if !is_walled() {
        return;
    }
    let cell = Cell::repository();
    cell.refuses("cd ..; mv workspace elsewhere && mkdir -p workspace/.git/hooks");
    assert_intact(&cell);
}

#[test]
fn writable_root_above_the_workspace_does_not_unprotect_git_hooks() {
    if !is_walled() {
        return;
    }
    let cell = Cell::repository();
    let around = cell.workspace.parent().unwrap().to_owned();
    cell.give(&around);
    let cell = cell.with(&[&format!("write={}", around.display())]);
    cell.refuses("cd ..; mv workspace elsewhere && mkdir -p workspace/.git/hooks");
    cell.refuses("cd ../..; mv $OUT/.. elsewhere");
    cell.refuses("echo evil > $OUT/../workspace/.git/hooks/pre-commit");
    cell.permits("echo x > $OUT/new");
    assert_intact(&cell);
}

#[test]
fn protected_path_through_a_symlink_above_the_workspace_is_protected() {
    if !is_walled() {
        return;
    }
    let cell = Cell::new();
    let link = cell.workspace.parent().unwrap().join("link");
    std::os::unix::fs::symlink(&cell.workspace, &link).unwrap();
    for namespaces in ["", "no-namespaces"] {
        let words =
            [format!("write={0}", link.display()), format!("protect={}/.gnoma", link.display())];
        let cell = Cell::new().with(&[&words[0], &words[1], namespaces]);
        cell.inside(&format!("mkdir -p {}/.gnoma/x; true", link.display()));
        assert!(!link.join(".gnoma").exists());
    }
}

#[test]
fn read_only_git_folder_does_not_bypass_protection() {
    if !is_walled() {
        return;
    }
    let cell = Cell::repository();
    let folder = cell.workspace.join(".git");
    fs::remove_file(folder.join("config")).unwrap();
    cell.freely("chmod 555 .git");
    let outcome = cell.inside("chmod 755 .git; echo evil > .git/config");
    cell.freely("chmod 755 .git");
    assert_eq!(outcome.code, Some(125), "{outcome:?}");
    assert!(!folder.join("config").exists());
}

#[test]
fn command_is_not_run_if_a_path_cannot_be_protected() {
    if !is_walled() {
        return;
    }
    let cell = Cell::new();
    let deep = "d/".repeat(40);
    fs::create_dir_all(cell.workspace.join(&deep)).unwrap();
    for name in [&deep, "a/../.git"] {
        let protect = format!("protect={}/{name}", cell.workspace.display());
        let cell = Cell::new().with(&[&format!("write={}", cell.workspace.display()), &protect]);
        let outcome = cell.inside("touch ran");
        assert_eq!(outcome.code, Some(125), "{outcome:?}");
        assert!(cell.leftovers().is_empty());
    }
}

#[test]
fn symlink_to_a_protected_folder_and_its_target_are_protected() {
    if !is_walled() {
        return;
    }
    let cell = Cell::repository();
    cell.put_folder("shared");
    cell.put("shared/config.toml", "mine\n");
    std::os::unix::fs::symlink("shared", cell.workspace.join(".gnoma")).unwrap();
    cell.refuses("rm .gnoma && mkdir .gnoma");
    cell.refuses("mv .gnoma old");
    cell.refuses("echo evil > .gnoma/config.toml");
    cell.refuses("echo evil > shared/config.toml");
    cell.refuses("mv shared other");
    let seen = cell.permits("cat .gnoma/config.toml");
    assert_eq!(seen.stdout, "mine\n");
}

#[test]
fn git_file_of_a_worktree_is_protected() {
    if !is_walled() {
        return;
    }
    let cell = Cell::new();
    cell.put(".git", "gitdir: /elsewhere\n");
    let hooks = format!("protect={}/.git/hooks", cell.workspace.display());
    let cell = cell.with(&[&hooks]);
    cell.refuses("echo 'gitdir: evil' > .git");
    cell.refuses("rm .git; mkdir .git");
    assert_eq!(fs::read_to_string(cell.workspace.join(".git")).unwrap(), "gitdir: /elsewhere\n");
}

#[test]
fn ordinary_writes_beside_protected_paths_succeed() {
    if let Some(outcome) = guarded(
        "echo x > .git/index.lock && mv .git/index.lock .git/index && mkdir .git/refs \
         && echo a > file && mv file other && rm other && cat .git/config .git/hooks/*",
    ) {
        assert!(outcome.succeeded(), "{outcome:?}");
    }
}

#[test]
fn parallel_commands_leave_no_placeholder_files() {
    if !is_walled() {
        return;
    }
    let cell = Cell::repository();
    let running: Vec<_> = (0..8)
        .map(|number| {
            cell.inside_command(&format!("sleep 0.{number}; mkdir .gnoma/x")).spawn().unwrap()
        })
        .collect();
    for mut child in running {
        assert!(!child.wait().unwrap().success());
    }
    assert_intact(&cell);
    assert!(cell.leftovers().is_empty());
}

#[test]
fn killed_command_leaves_no_placeholder_files() {
    if !is_walled() {
        return;
    }
    let cell = Cell::repository();
    let mut owner = cell.inside_command("touch started; sleep 1000").spawn().unwrap();
    assert!(eventually(|| cell.workspace.join("started").exists()));
    assert!(cell.workspace.join(".gnoma").exists(), "a stand-in is what keeps it from being made");
    owner.kill().unwrap();
    owner.wait().unwrap();
    assert!(eventually(|| !cell.workspace.join(".gnoma").exists()));
    assert_intact(&cell);
}

#[test]
fn leftover_empty_placeholder_is_removed_and_a_filled_one_stays() {
    if !is_walled() {
        return;
    }
    let cell = Cell::repository();
    let forgotten = cell.workspace.join(".gnoma");
    cell.put_folder(".gnoma");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o1700);
    fs::set_permissions(&forgotten, mode).unwrap();
    cell.refuses("mkdir .gnoma/x");
    assert!(!forgotten.exists());

    let filled = cell.workspace.join(".gnoma/config.toml");
    let mut running =
        cell.inside_command("touch started; sleep 1; cat .gnoma/config.toml").spawn().unwrap();
    assert!(eventually(|| cell.workspace.join("started").exists()));
    fs::write(&filled, "of the user\n").unwrap();
    assert!(running.wait().unwrap().success());
    assert_eq!(fs::read_to_string(&filled).unwrap(), "of the user\n");
}

#[test]
fn empty_protected_folder_of_the_user_is_not_removed_as_a_placeholder() {
    if !is_walled() {
        return;
    }
    let cell = Cell::repository();
    cell.put_folder(".gnoma");
    cell.refuses("mkdir .gnoma/x");
    assert!(cell.workspace.join(".gnoma").exists());
}

#[test]
fn protected_file_replaced_outside_stays_protected_in_the_sandbox() {
    if !is_walled() {
        return;
    }
    let cell = Cell::repository();
    let config = cell.workspace.join(".git/config");
    let script = "touch started; while test ! -e go; do sleep 0.02; done; sleep 0.5; \
                  cat .git/config; echo evil >> .git/config";
    let running = cell.inside_command(script).stdout(std::process::Stdio::piped()).spawn().unwrap();
    assert!(eventually(|| cell.workspace.join("started").exists()));
    // As `git config` does it.
    cell.put(".git/config.lock", "[user]\n");
    fs::rename(cell.workspace.join(".git/config.lock"), &config).unwrap();
    cell.put("go", "");
    let output = running.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "[user]\n");
    assert!(!output.status.success());
    assert_eq!(fs::read_to_string(&config).unwrap(), "[user]\n");
}

#[test]
fn git_in_the_sandbox_sees_no_placeholders_and_runs_no_hooks() {
    if !is_walled() || !has("git") {
        return;
    }
    let cell = Cell::new().with(&["git"]);
    let git = |args: &str| {
        let outcome = cell.freely(&format!("git {args}"));
        assert!(outcome.succeeded(), "{outcome:?}");
    };
    git("init -q");
    git("config user.email a@example.com");
    git("config user.name a");
    let hook = cell.workspace.join(".git/hooks/pre-commit");
    cell.freely(&format!(
        "printf '#!/bin/sh\\ntouch hooked\\n' > {0}; chmod +x {0}",
        hook.display()
    ));
    git("config core.fsmonitor 'touch monitored; false'");
    let names: Vec<String> = [".git/hooks", ".git/config", ".gnoma", ".mcp.json"]
        .map(|name| format!("protect={}/{name}", cell.workspace.display()))
        .into();
    let words: Vec<&str> = names.iter().map(String::as_str).collect();
    let cell = cell.with(&words);
    let done = cell.permits("echo a > file && git add -A && git commit -qm one && git status --porcelain && git ls-files");
    assert_eq!(done.stdout, "file\n");
    assert!(!cell.workspace.join("hooked").exists() && !cell.workspace.join("monitored").exists());
    cell.refuses("git config core.hooksPath evil");
}

#[test]
fn sandbox_also_holds_for_root() {
    if !is_walled() || !is_root() {
        gnoma_testkit::skip_test("this is for root");
        return;
    }
    let cell = Cell::repository();
    let probe = env!("CARGO_BIN_EXE_walls-probe");
    let run = |script: &str| {
        let workspace = cell.workspace.display();
        let policy = ["write=", "protect="]
            .iter()
            .zip(["", "/.git/config"])
            .map(|(key, end)| format!("{key}{workspace}{end}"));
        let mut command = Command::new(probe);
        command
            .arg("inside")
            .args(policy)
            .args(["--", "sh", "-c", script])
            .current_dir(&cell.workspace);
        Outcome::from(command.env("OUT", &cell.outside).env("P", probe).output().unwrap())
    };
    for attempt in [
        "echo out > $OUT/new",
        "echo evil > .git/config",
        "echo 1 > /proc/sys/kernel/panic",
        "mknod disk b 8 0",
        "mount -t tmpfs none /mnt",
        "chmod u+s .git/config; cp /bin/true t; chmod u+s t",
        "head -c 1 /dev/vda",
        "$P act socket 17 3 768",
        "chroot / true",
        "kill -0 $PPID",
    ] {
        let outcome = run(attempt);
        assert!(!outcome.succeeded() && outcome.was_walled(), "{attempt}: {outcome:?}");
    }
    let owned = run("echo x > mine && chown 1:1 mine && rm mine");
    assert!(owned.succeeded(), "{owned:?}");
}
