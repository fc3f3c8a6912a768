//! What a verdict grants, and that it comes of the same look at the files as the verdict.

use std::{
    cell::Cell,
    path::{Path, PathBuf},
};

use gnoma_core::session::PermissionMode;
use gnoma_guard::permission::{JudgementContext, Verdict};

use crate::permission_world::{Desk, HOME, WORKSPACE, parse};

/// Commands that read `p` and `q` of the workspace.
const READING: [&str; 14] = [
    "bash cat p",
    "bash cat ./p",
    "bash cat < p",
    "bash cat p* && wc p",
    "bash head -n 3 p q",
    "bash tail -c 20 sub/../p",
    "bash grep -n key p",
    "bash wc -l p q",
    "bash sort p | uniq",
    "bash diff p q",
    "bash sed -n 1,5p p",
    "bash cut -d: -f1 p | rev",
    "bash od -c p && stat p",
    "fs.read p",
];

/// Numbers that look random, the same in each run.
fn next(state: &Cell<u64>) -> u64 {
    let mut number = state.get();
    number ^= number << 13;
    number ^= number >> 7;
    number ^= number << 17;
    state.set(number);
    number
}

#[test]
fn symlink_swap_while_judging_never_grants_an_unjudged_secret() {
    const TRIES: usize = 250;
    let secret = PathBuf::from(HOME).join(".ssh/id_rsa");
    let state = Cell::new(0x9e37_79b9_7f4a_7c15);
    let (mut allowed, mut asked) = (0, 0);
    for mode in [PermissionMode::Auto, PermissionMode::AcceptEdits, PermissionMode::Plan] {
        let desk = Desk::new(mode).with_files(&["p", "q", "sub/x"]);
        for call in READING {
            let (tool, call) = parse(call);
            for _ in 0..TRIES {
                // Each look finds a file or a link in its place.
                let resolve = |path: &Path| {
                    let is_file = path.starts_with(WORKSPACE) && path != Path::new(WORKSPACE);
                    let is_link = is_file && next(&state).is_multiple_of(2);
                    if is_link { secret.clone() } else { path.to_owned() }
                };
                let judge = |world: &JudgementContext<'_>| {
                    let world = JudgementContext { resolve: &resolve, ..*world };
                    desk.permissions.judge(mode, &world, &tool, &call)
                };
                match desk.look(judge) {
                    Verdict::Allow { grant, .. } => {
                        allowed += 1;
                        let mut granted = grant.paths.iter().chain(&grant.readable_by_all);
                        assert!(!granted.any(|path| *path == secret), "{call:?}: {grant:?}");
                    }
                    Verdict::Ask { grant, reason, .. } => {
                        asked += 1;
                        let is_named = reason.contains("~/.ssh/id_rsa");
                        assert!(is_named || !grant.paths.contains(&secret), "{call:?}: {reason}");
                    }
                    Verdict::Deny { .. } => {}
                }
            }
        }
    }
    assert!(allowed > 0 && asked > 0, "{allowed} {asked}");
}

#[test]
fn glob_argument_is_judged_by_the_files_that_it_matches() {
    let desk = |files: &[&str]| Desk::new(PermissionMode::Auto).with_files(files);
    let plain = desk(&["README.md", "src/main.rs", "src2/x", "a.rs"]);
    for command in [
        "cat README*",
        "ls src*",
        "git diff -- src*",
        "wc -l src*/*",
        "head *me*",
        "cat nothing*",
        "cat src?/x*",
    ] {
        assert_eq!(plain.says(&format!("bash {command}")), "allow", "{command}");
    }
    let secret = desk(&["README.md", "README.env", "conf/prod.env", "src/id_rsa"])
        .link(&format!("{WORKSPACE}/link1"), &format!("{WORKSPACE}/conf/prod.env"));
    for command in ["cat README*", "cat conf/p*", "cat c*/prod*", "head src/id*", "cat link*"] {
        let said = secret.reason(&format!("bash {command}"));
        assert!(said.contains("always needs approval"), "{command}: {said}");
    }
    for command in ["cat README.m*", "ls src*"] {
        assert_eq!(secret.says(&format!("bash {command}")), "allow", "{command}");
    }
    // What is not expanded by stars alone is judged by what it could mean.
    for command in ["cat .{env,x}", "cat .@(env|x)", "find . -name '.e*' -exec cat {} +"] {
        assert_eq!(plain.says(&format!("bash {command}")), "ask", "{command}");
    }
}

#[test]
fn guarded_home_files_need_approval_also_in_a_workspace_below_the_home() {
    let files = [
        ".local/bin/tool",
        "bin/t2",
        ".cargo/bin/t3",
        ".nvm/nvm.sh",
        ".pyenv/shims/python",
        ".asdf/plugins/x/bin/install",
        ".newmanager/shims/node",
        ".oh-my-zsh/custom/x.zsh",
        ".bashrc.d/x.sh",
        ".config/fish/conf.d/x.fish",
        ".config/starship.toml",
        "tools/own",
    ];
    for root in ["", ".local", "bin", ".cargo", ".config", ".nvm", "tools"] {
        let workspace = if root.is_empty() { HOME.to_owned() } else { format!("{HOME}/{root}") };
        let tools = format!("{HOME}/tools");
        let desk = Desk::new(PermissionMode::AcceptEdits).at(&workspace).searching(&tools);
        for file in files {
            let path = format!("{HOME}/{file}");
            assert_eq!(desk.says(&format!("fs.write {path}")), "ask", "{root}: {path}");
            assert_eq!(desk.says(&format!("bash echo x > {path}")), "ask", "{root}: {path}");
            let Some(below) = file.strip_prefix(root) else { continue };
            let below = below.trim_start_matches('/');
            assert_eq!(desk.says(&format!("fs.edit {below}")), "ask", "{root}: {below}");
        }
    }
    let desk = Desk::new(PermissionMode::AcceptEdits);
    for plain in ["bin/t2", "tools/own", ".local/share/x", "scripts/run.sh"] {
        assert_eq!(desk.says(&format!("fs.write {plain}")), "allow", "{plain}");
    }
}

#[test]
fn guarded_files_need_approval_also_in_a_copy_of_the_workspace() {
    let copy = "/home/ada/.cache/gnoma/copies/1";
    for (of, file) in [
        (".local", "bin/tool"),
        ("", "bin/t2"),
        ("", ".cargo/bin/t3"),
        (".config", "fish/config.fish"),
        (".nvm", "nvm.sh"),
    ] {
        let desk = || Desk::new(PermissionMode::AcceptEdits).at(copy);
        assert_eq!(desk().says("fs.write src/x"), "allow");
        let desk = desk().copy_of(&format!("{HOME}/{of}"));
        assert_eq!(desk.says(&format!("fs.write {file}")), "ask", "{of} {file}");
        assert_eq!(desk.says(&format!("bash echo x > {file}")), "ask", "{of} {file}");
        let rc = if matches!(of, "" | ".nvm") { "ask" } else { "allow" };
        assert_eq!(desk.says("fs.write .psqlrc"), rc, "{of}");
        let plain = if of == ".nvm" { "ask" } else { "allow" };
        assert_eq!(desk.says("fs.write share/x"), plain, "{of}");
    }
}

#[test]
fn writing_agents_md_and_other_agent_instructions_needs_approval() {
    let desk = Desk::new(PermissionMode::AcceptEdits);
    for file in [
        "AGENTS.md",
        "sub/agents.md",
        "AGENTS.override.md",
        "CLAUDE.md",
        "CLAUDE.local.md",
        ".claude/CLAUDE.md",
        "GEMINI.md",
        "QWEN.md",
        ".cursorrules",
        ".github/copilot-instructions.md",
        ".github/instructions/x.instructions.md",
    ] {
        assert_eq!(desk.says(&format!("fs.write {file}")), "ask", "{file}");
        assert_eq!(desk.says(&format!("bash echo x > {file}")), "ask", "{file}");
        assert_eq!(desk.says(&format!("fs.read {file}")), "allow", "{file}");
    }
    for file in ["README.md", "docs/agents.txt", "AGENTS.md.txt"] {
        assert_eq!(desk.says(&format!("fs.write {file}")), "allow", "{file}");
    }
}

#[test]
fn shell_test_and_git_status_outside_the_workspace_need_approval_like_stat() {
    let desk = Desk::new(PermissionMode::Auto);
    for (command, place) in [
        ("test -d ../other && echo yes || echo no", "/home/ada/work/other"),
        ("[ -f ~/f ] && echo yes || echo no", "/home/ada/f"),
        ("[[ -e ../other ]] && echo yes", "/home/ada/work/other"),
        ("test -a ../other/f", "/home/ada/work/other/f"),
        ("compgen -f ../other/", "/home/ada/work/other"),
        ("[ ../other -nt src ]", "/home/ada/work/other"),
        ("bash -c '[ -e ../other/f ]'", "/home/ada/work/other/f"),
        ("git -C ../other status -s", "/home/ada/work/other"),
        ("git --git-dir=../other/.git log", "/home/ada/work/other/.git"),
        ("cd ../other && git log --oneline | wc -l", "/home/ada/work/other"),
        ("(cd ../other; pwd)", "/home/ada/work/other"),
        ("pushd ../other; popd", "/home/ada/work/other"),
        ("realpath ../other/f", "/home/ada/work/other/f"),
        ("echo ../o*", "/home/ada/work"),
        ("for d in ../*/; do echo $d; done", "/home/ada/work"),
        ("make -C ../other -n", "/home/ada/work/other"),
        ("npm --prefix ../other pkg get name", "/home/ada/work/other"),
        ("source ~/.profile", "/home/ada/.profile"),
    ] {
        let call = format!("bash {command}");
        assert_eq!(desk.says(&call), "ask", "{command}");
        let paths = desk.grant(&call).paths;
        assert!(paths.contains(&PathBuf::from(place)), "{command}: {paths:?}");
    }
    let reason = desk.reason("bash test -d ../other");
    assert!(reason.contains("reads `~/work/other`, outside the workspace"), "{reason}");
    assert_eq!(desk.says("bash [ -e ~/.ssh/id_rsa ]"), "ask");
    // That nobody is asked would say that there is none.
    assert_eq!(desk.with_files(&["src/a"]).says("bash echo ~/.ssh/id_*"), "ask");
    assert_eq!(Desk::new(PermissionMode::Bypass).says("bash [ -e ~/.ssh/id_rsa ]"), "ask");
    assert_eq!(Desk::new(PermissionMode::Bypass).says("bash source .env"), "ask");
}

#[test]
fn shell_test_cd_and_globs_in_readable_folders_need_no_approval() {
    let desk = Desk::new(PermissionMode::Auto)
        .with_files(&["src/a"])
        .with(&["ask fs.read(plans/**)", "deny fs.read(keys/**)"]);
    for command in [
        "test -d src && echo yes",
        "[ -f .env ] && [[ -r .env ]]",
        "cd /home/ada/work/app && git status",
        "cd plans && pwd",
        "cd src; pwd; cd ..",
        "echo src/* *.md",
        "for f in *; do echo \"$f\"; done",
        "git -C src status",
        "[ -e /etc/hosts ] && [ -x /usr/bin/git ]",
        "cd /usr/share && pwd",
        // Nothing fits these.
        "echo ~/*.nothing /no*where",
    ] {
        let call = format!("bash {command}");
        assert_eq!(desk.says(&call), "allow", "{command}: {}", desk.reason(&call));
        assert!(desk.grant(&call).paths.is_empty(), "{command}");
    }
}

#[test]
fn glob_through_a_symlink_that_leads_outside_asks_and_grants_the_target() {
    let desk = Desk::new(PermissionMode::Auto)
        .with_files(&["src/a", "src/b/c"])
        .link("/home/ada/work/app/out", "/home/ada/work/other")
        .link("/home/ada/work/app/in", "/home/ada/work/app/src");
    for command in [
        "ls -d */",
        "echo */",
        "for d in */; do echo $d; done",
        "ls *",
        "ls -lL *",
        "stat -L *",
        "wc -l o*",
        "du -D *",
    ] {
        let call = format!("bash {command}");
        assert_eq!(desk.says(&call), "ask", "{command}");
        let paths = desk.grant(&call).paths;
        assert!(paths.contains(&PathBuf::from("/home/ada/work/other")), "{command}: {paths:?}");
    }
    for command in [
        "echo *",
        "ls -l *",
        "stat *",
        "du -sh *",
        "echo src/*/ i*/",
        "cat src/*",
        "echo */*.nothing",
    ] {
        let call = format!("bash {command}");
        assert_eq!(desk.says(&call), "allow", "{command}: {}", desk.reason(&call));
    }
}

#[test]
fn every_link_that_a_pattern_follows_outside_is_granted_among_many_names() {
    let files: Vec<String> = (0..100).map(|number| format!("d{number}/a")).collect();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let desk = Desk::new(PermissionMode::Auto)
        .with_files(&files)
        .link("/home/ada/work/app/x", "/home/ada/work/other")
        .link("/home/ada/work/app/y", "/home/ada/work/more");
    for command in ["ls -d */", "wc -l *"] {
        let paths = desk.grant(&format!("bash {command}")).paths;
        for place in ["/home/ada/work/other", "/home/ada/work/more"] {
            assert!(paths.contains(&PathBuf::from(place)), "{command}: {paths:?}");
        }
    }
}

#[test]
fn command_that_reads_paths_computed_at_run_time_gets_no_read_only_grant() {
    let reads_only = |mode, command: &str| Desk::new(mode).grant(command).reads_only;
    for command in ["bash cat \"$(dirname \"$PWD\")/other/f\"", "bash echo ../other/f | xargs cat"]
    {
        for mode in [PermissionMode::Bypass, PermissionMode::Default] {
            assert!(!reads_only(mode, command), "{mode}: {command}");
        }
    }
    for command in [
        "bash echo \"$(dirname \"$PWD\")\"/*",
        "bash for d in \"$(git rev-parse --show-toplevel)\"/*/; do echo \"$d\"; done",
        "bash cd \"$(dirname \"$PWD\")\" && pwd",
        "bash realpath \"$(dirname \"$PWD\")/other\"",
    ] {
        assert!(!reads_only(PermissionMode::Default, command), "{command}");
        assert_eq!(Desk::new(PermissionMode::Default).says(command), "ask", "{command}");
    }
    assert!(reads_only(PermissionMode::Bypass, "bash cat src/a"));
    assert!(reads_only(PermissionMode::Default, "bash echo \"$(git rev-parse HEAD)\" src/*"));
}

#[test]
fn ln_s_writes_the_symlink_and_not_its_target() {
    let desk = Desk::new(PermissionMode::Bypass);
    for command in [
        "ln -sfn build latest && ls build",
        "ln -s notes.txt link; wc -l notes.txt",
        "cp notes.txt n3 && ln -s n3 n4 && rm n3",
        "ln -s ../README.md docs/readme",
    ] {
        let call = format!("bash {command}");
        assert_eq!(desk.says(&call), "allow", "{command}: {}", desk.reason(&call));
    }
    for command in ["ln -s ../a ../l", "ln -s build b; cat b/x", "ln -s build; cat build/x"] {
        let call = format!("bash {command}");
        assert_eq!(desk.says(&call), "ask", "{command}: {}", desk.reason(&call));
    }
}

#[test]
fn git_push_to_a_local_folder_names_and_grants_the_folder_that_it_writes() {
    let desk = Desk::new(PermissionMode::Auto);
    let call = "bash git push ../other.git main";
    let (reason, grant) = (desk.reason(call), desk.grant(call));
    assert!(reason.contains("writes `~/work/other.git`"), "{reason}");
    assert!(!reason.contains("talks to"), "{reason}");
    let folder = PathBuf::from("/home/ada/work/other.git");
    assert!(grant.writable.contains(&folder), "{grant:?}");
}

#[test]
fn git_config_write_is_granted_unasked_only_if_no_hook_or_program_runs() {
    let settings = PathBuf::from("/home/ada/work/app/.git/config");
    let is_granted = |desk: &Desk, command: &str| {
        desk.grant(&format!("bash {command}")).writable.contains(&settings)
    };
    let bypass = || Desk::new(PermissionMode::Bypass);
    for command in ["git branch -u origin/main", "git checkout -b t --track main; git log -3"] {
        assert!(is_granted(&bypass(), command), "{command}");
        assert!(!is_granted(&bypass().with_hooks(), command), "{command}");
        assert!(!is_granted(&bypass().running("core.fsmonitor"), command), "{command}");
        assert!(is_granted(&Desk::new(PermissionMode::Auto).with_hooks(), command), "{command}");
    }
    for command in [
        "GIT_SSH_COMMAND=./x git fetch origin",
        "export GIT_EDITOR=./x; git branch --edit-description",
        "git branch a; ./x",
        "git status",
    ] {
        assert!(!is_granted(&bypass(), command), "{command}");
    }
    let asked = Desk::new(PermissionMode::Auto);
    assert!(is_granted(&asked, "git fetch origin"));
    assert!(!is_granted(&asked, "GIT_SSH_COMMAND=./x git fetch origin"));
}

#[test]
fn approved_write_to_the_home_runs_outside_the_sandbox_unless_code_is_unknown() {
    let desk = Desk::new(PermissionMode::Auto).with_files(&["src/a"]);
    for (command, is_outside) in [
        ("echo l >> notes.txt; echo x > ~/f.txt; cat notes.txt", true),
        ("mkdir -p ~/a/b", true),
        ("git clone -q . ~/copy", true),
        ("su -c id", true),
        // What unknown code would do there is not for one yes.
        ("./build.sh > ~/f.txt", false),
        ("git clone -q --template=./t . ~/copy", false),
        ("git worktree add ~/tree", false),
        ("tar xf evil.tar; cp a ~/x", false),
        ("echo x > ../f.txt", false),
        ("echo x > /srv/f.txt", false),
    ] {
        let call = format!("bash {command}");
        assert_eq!(desk.says(&call), "ask", "{command}");
        assert_eq!(desk.grant(&call).outside, is_outside, "{command}");
        let reason = desk.reason(&call);
        assert_eq!(reason.ends_with("runs outside the sandbox"), is_outside, "{reason}");
    }
    let denying = Desk::new(PermissionMode::Deny).with_files(&["src/a"]);
    assert_eq!(denying.says("bash echo x > ~/f.txt"), "deny");
}
