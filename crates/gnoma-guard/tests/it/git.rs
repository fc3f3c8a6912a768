//! What looking at a repository is judged to do, by what the repository itself holds.

use gnoma_core::session::PermissionMode::{Auto, Plan};

use crate::permission_world::Desk;

const SETTING: &str = "`filter.x.clean` in `.git/config`";

#[test]
fn git_command_asks_if_the_git_config_of_the_repository_runs_programs() {
    for command in [
        "git status",
        "git diff",
        "git -C src log",
        "cd src && git blame lib.rs",
        "ls && git status --short | head",
        "/usr/bin/git status",
    ] {
        assert_eq!(Desk::new(Auto).says(&format!("bash {command}")), "allow", "{command}");
        let desk = Desk::new(Auto).running(SETTING);
        let reason = desk.reason(&format!("bash {command}"));
        assert!(reason.contains("filter.x.clean"), "{command}: {reason}");
        assert_eq!(desk.says(&format!("bash {command}")), "ask", "{command}");
        assert_eq!(Desk::new(Plan).running(SETTING).says(&format!("bash {command}")), "deny");
    }
    for command in ["git --version", "ls", "git -C /usr/share status"] {
        let desk = Desk::new(Auto).running(SETTING);
        assert!(!desk.reason(&format!("bash {command}")).contains("filter"), "{command}");
    }
}

#[test]
fn rustc_version_asks_if_the_project_overrides_the_toolchain() {
    for command in ["rustc --version", "cargo -V", "cd src && cargo locate-project"] {
        assert_eq!(Desk::new(Auto).says(&format!("bash {command}")), "allow", "{command}");
        let desk = Desk::new(Auto).with_own_compiler();
        let reason = desk.reason(&format!("bash {command}"));
        assert!(reason.contains("rust-toolchain.toml"), "{command}: {reason}");
        assert_eq!(desk.says(&format!("bash {command}")), "ask", "{command}");
    }
}

#[test]
fn git_commands_that_show_a_committed_secret_need_approval() {
    for command in [
        "git log -p",
        "git log --patch --all",
        "git log -S KEY",
        "git show",
        "git show HEAD~3",
        "git show a1b2c3d",
        "git stash show -p",
        "git stash list -p",
        "git reflog -p",
        "git diff HEAD~1",
        "git diff main...feature",
        "git diff-tree -p HEAD",
        "git cat-file -p a1b2c3d",
        "git cat-file blob a1b2c3d",
        "git cat-file --batch < names",
        "git grep KEY HEAD",
        "git grep --cached KEY",
        "git show HEAD -- .",
        "git show HEAD -- config/.env",
        "cd src && git log -p",
        "for c in a b; do git show $c; done",
    ] {
        let command = format!("bash {command}");
        let desk = Desk::new(Auto).committed("config/.env");
        assert_eq!(desk.says(&command), "ask", "{command}");
        let reason = desk.reason(&command);
        let named =
            reason.contains("`.env` as it was committed") || reason.contains("`config/.env`");
        assert!(named || reason.contains("objects that its input names"), "{command}: {reason}");
    }
}

#[test]
fn approval_for_a_git_setting_also_names_the_committed_secret() {
    for command in ["git log -p", "git show HEAD~1", "git diff HEAD~1"] {
        let desk = Desk::new(Auto).running(SETTING).committed(".env");
        let reason = desk.reason(&format!("bash {command}"));
        assert!(reason.contains("as it was committed"), "{command}: {reason}");
    }
}

#[test]
fn git_commands_that_show_no_committed_secret_run_without_approval() {
    for command in [
        "git status",
        "git log --oneline",
        "git log --stat -5",
        "git diff --stat",
        "git diff -- src",
        "git log -p -- src/lib.rs",
        "git show HEAD -- src",
        "git grep KEY",
        "git ls-files",
        "git blame src/lib.rs",
        "git stash list",
    ] {
        let desk = Desk::new(Auto).committed("config/.env");
        assert_eq!(desk.says(&format!("bash {command}")), "allow", "{command}");
    }
    for command in ["git log -p", "git show", "git diff HEAD~1", "git cat-file -p HEAD"] {
        assert_eq!(Desk::new(Auto).says(&format!("bash {command}")), "allow", "{command}");
    }
}
