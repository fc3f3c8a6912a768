//! Suggests the rules that an answer of "always allow" adds: the narrowest that cover the call, or none.
//!
//! Commands are offered word for word: what is data for one program (`cargo test NAME`) runs code for
//! the next (`cargo test --config …`), and a person can widen a rule that they can read. Nothing is
//! offered for programs whose arguments are code, that run others, delete or fetch.

use gnoma_core::tool::{Access, ToolSpec, split_mcp_name};
use gnoma_shell::{Effect, Invocation, Risk};

use super::{
    JudgementContext,
    command_words::{CommandWords, program_name},
    host::HostPattern,
    paths::PathPattern,
    rule::{Origin, Rule, RuleAction, Subject},
};
use crate::places::JudgedPath;

/// Programs that run what they are given, act for another user, or fetch.
const NEVER: &[&str] = &[
    ".",
    "alias",
    "ansible",
    "ash",
    "at",
    "awk",
    "aws",
    "bash",
    "batch",
    "bpython",
    "builtin",
    "busybox",
    "bun",
    "chgrp",
    "chmod",
    "chown",
    "chroot",
    "chrt",
    "command",
    "coproc",
    "crontab",
    "csh",
    "curl",
    "dash",
    "dd",
    "declare",
    "deno",
    "doas",
    "docker",
    "ed",
    "elvish",
    "emacs",
    "env",
    "eval",
    "ex",
    "exec",
    "expect",
    "export",
    "fish",
    "flock",
    "ftp",
    "gawk",
    "gcloud",
    "gdb",
    "gh",
    "ghci",
    "groovy",
    "iex",
    "ionice",
    "ipython",
    "irb",
    "java",
    "jshell",
    "julia",
    "kill",
    "killall",
    "ksh",
    "kubectl",
    "launchctl",
    "ln",
    "local",
    "lua",
    "m4",
    "mawk",
    "mkfs",
    "mount",
    "nc",
    "ncat",
    "netcat",
    "nice",
    "nix",
    "nix-shell",
    "node",
    "nohup",
    "nsenter",
    "nushell",
    "nvim",
    "ocaml",
    "octave",
    "osascript",
    "parallel",
    "parted",
    "perl",
    "php",
    "pkexec",
    "pkill",
    "podman",
    "powershell",
    "psql",
    "pwsh",
    "python",
    "python2",
    "python3",
    "r",
    "readonly",
    "rlwrap",
    "rm",
    "rmdir",
    "rscript",
    "rsync",
    "ruby",
    "runas",
    "scp",
    "screen",
    "script",
    "sed",
    "set",
    "setarch",
    "setpriv",
    "setsid",
    "sftp",
    "sh",
    "shred",
    "socat",
    "source",
    "sqlite3",
    "ssh",
    "sshpass",
    "stdbuf",
    "strace",
    "su",
    "sudo",
    "swift",
    "systemctl",
    "systemd-run",
    "taskset",
    "tclsh",
    "tcsh",
    "tee",
    "telnet",
    "terraform",
    "time",
    "timeout",
    "tmux",
    "trap",
    "truncate",
    "typeset",
    "umount",
    "unlink",
    "unshare",
    "vi",
    "vim",
    "watch",
    "wget",
    "wish",
    "xargs",
    "yash",
    "zsh",
];

/// Modules of Python that do one known thing, so that `python -m` of them can be offered.
const PYTHON_MODULES: &[&str] =
    &["black", "compileall", "flake8", "isort", "mypy", "pylint", "pytest", "ruff", "unittest"];

/// Rules for later calls of a tool that names nothing it touches: of one that may do anything, only
/// an MCP server's.
pub(super) fn for_tool(tool: &ToolSpec) -> Option<Vec<Rule>> {
    let subject = match split_mcp_name(&tool.name) {
        Some((server, name)) => {
            Subject::Mcp { server: server.to_owned(), tool: Some(name.to_owned()) }
        }
        None if tool.access == Access::Execute => return None,
        None => Subject::Tool(tool.name.clone()),
    };
    readable_rule(subject)
}

pub(super) fn for_host(host: &str) -> Option<Vec<Rule>> {
    readable_rule(Subject::Host(HostPattern::from_host(host)?))
}

pub(super) fn for_path(
    tool: &str,
    spot: &JudgedPath,
    world: &JudgementContext<'_>,
) -> Option<Vec<Rule>> {
    if spot.is_pattern() {
        return None;
    }
    let path = PathPattern::from_path(&spot.real_form().path, world)?;
    readable_rule(Subject::Path { tool: tool.to_owned(), path })
}

/// Rules for one simple command.
pub(super) fn for_command(command: &Invocation) -> Option<Vec<Rule>> {
    let words: Option<Vec<String>> = command.words.iter().cloned().collect();
    let words = words.filter(|words| !is_dangerous(words) && is_mild(command))?;
    readable_rule(Subject::Command(CommandWords::from_words(&words)?))
}

fn is_dangerous(words: &[String]) -> bool {
    let Some(program) = words.first().map(|word| program_name(word).to_ascii_lowercase()) else {
        return true;
    };
    let unversioned =
        program.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    let is_module = unversioned == "python"
        && words.get(1).is_some_and(|option| option == "-m")
        && words.get(2).is_some_and(|module| PYTHON_MODULES.contains(&module.as_str()));
    let listed = |name: &str| NEVER.contains(&name);
    !is_module && (listed(&program) || listed(unversioned) || program.starts_with("mkfs"))
}

/// Reports whether a command is mild: nothing is lost for good, kept for later commands, or hidden.
fn is_mild(command: &Invocation) -> bool {
    command.risk < Risk::High
        && command.effects.iter().all(|effect| match effect {
            Effect::Read(_)
            | Effect::Look(_)
            | Effect::Write(_)
            | Effect::Runs(_)
            | Effect::Repository(_)
            | Effect::Network(_) => true,
            Effect::Delete(_)
            | Effect::Secret(_)
            | Effect::Settings(_)
            | Effect::Environment(_)
            | Effect::System(_)
            | Effect::Unknown(_) => false,
        })
}

/// A rule that people can read back from what is printed.
fn readable_rule(subject: Subject) -> Option<Vec<Rule>> {
    let rule = Rule { action: RuleAction::Allow, subject, origin: Origin::Session };
    let read = Rule::parse(RuleAction::Allow, &rule.to_string(), Origin::Session).ok()?;
    (read == rule).then(|| vec![rule])
}
