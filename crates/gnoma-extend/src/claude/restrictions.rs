//! `permissions.deny` and `permissions.ask` of Claude Code's settings as gnoma's rules. Unlike rules that allow they
//! apply as they are, so a rule that can be read in two ways is read in the one that restricts more.

use std::path::{Component, Path, PathBuf};

use super::rules::{RuleFault, our_rules, split_rule};

/// Their tools that gnoma does not have in any form, so that forbidding them needs nothing.
const WITHOUT_COUNTERPART: [&str; 16] = [
    "BashOutput",
    "EnterPlanMode",
    "EnterWorktree",
    "ExitPlanMode",
    "KillBash",
    "KillShell",
    "LSP",
    "Monitor",
    "NotebookRead",
    "PowerShell",
    "SlashCommand",
    "TodoRead",
    "TodoWrite",
    "ToolSearch",
    "WebSearch",
    "Workflow",
];
/// Their tools that read, and those that change files.
const READING: [&str; 4] = ["Read", "Grep", "Glob", "LS"];
const CHANGING: [&str; 4] = ["Edit", "Write", "MultiEdit", "NotebookEdit"];
/// Spellings of the home before a path.
const HOMES: [&str; 3] = ["~/", "$HOME/", "${HOME}/"];
/// Most paths that a pattern with alternatives in braces becomes.
const MAX_ALTERNATIVES: usize = 64;

/// The rules that say of a call in the project what `theirs` says, such as `Read(./secrets/**)`.
///
/// # Errors
/// gnoma has no rules for it.
pub fn restricting_rules(theirs: &str, project: &Path) -> Result<Vec<String>, RuleFault> {
    let (name, inside) = split_rule(theirs)?;
    match (name, inside) {
        ("*", None) => Ok(vec!["*".to_owned()]),
        (name, _) if WITHOUT_COUNTERPART.contains(&name) => Ok(Vec::new()),
        ("NotebookEdit", None) => Ok(vec!["fs.write(**/*.ipynb)".to_owned()]),
        (name, Some(inside)) if READING.contains(&name) => about_paths("fs.read", inside, project),
        (name, Some(inside)) if CHANGING.contains(&name) => {
            about_paths("fs.write", inside, project)
        }
        ("Agent" | "Task", Some(inside)) => Ok(vec![format!("agent({inside})")]),
        ("Skill", Some(inside)) => Ok(vec![format!("skill({})", skill_name(inside))]),
        ("WebFetch", Some(inside)) => Ok(vec![format!("web({})", host_name(inside))]),
        // There a `*` at the beginning stands for any text of the line, here for the rest of its word.
        ("Bash", Some(inside)) if is_open_at_start(inside) => {
            our_rules(&format!("Bash(* {inside})"))
        }
        _ => our_rules(theirs),
    }
}

/// Rules that are about at least what `theirs` is about, for asking where it cannot be said exactly; none where it
/// is not clear what it is about.
#[must_use]
pub fn wider_rules(theirs: &str, project: &Path) -> Vec<String> {
    let (name, rest) = theirs.trim().split_once('(').unwrap_or((theirs.trim(), ""));
    let inside = rest.strip_suffix(')').unwrap_or(rest);
    let name = name.trim();
    let whole = |tool: &str| vec![tool.to_owned()];
    match name {
        "Bash" => match inside.split_whitespace().next() {
            Some(program) if program.chars().all(|c| c.is_alphanumeric() || "._/-".contains(c)) => {
                whole(&format!("bash({program} *)"))
            }
            _ => whole("bash"),
        },
        _ if READING.contains(&name) => wider_paths("fs.read", inside, project),
        _ if CHANGING.contains(&name) => wider_paths("fs.write", inside, project),
        "WebFetch" => whole("web"),
        "Agent" | "Task" => whole("elf.spawn"),
        "Skill" => whole("skill"),
        _ => our_rules(name).unwrap_or_default(),
    }
}

fn wider_paths(tool: &str, inside: &str, project: &Path) -> Vec<String> {
    let open = widen_pattern(inside.trim_start_matches('!'));
    about_paths(tool, &open, project)
        .unwrap_or_else(|_| vec![format!("{tool}(**)"), format!("{tool}(/**)")])
}

/// The pattern with any letter in place of classes of letters and of what a backslash keeps.
fn widen_pattern(pattern: &str) -> String {
    let mut open = String::new();
    let mut rest = pattern.chars();
    while let Some(letter) = rest.next() {
        match letter {
            '\\' => {
                rest.next();
                open.push('?');
            }
            '[' => {
                let class = rest.as_str();
                // A bracket right behind the first is one of the class.
                let from = class.chars().take_while(|c| matches!(c, '!' | '^' | ']')).count();
                if let Some(end) = class.get(from..).and_then(|class| class.find(']')) {
                    rest = class.get(from + end + 1..).unwrap_or_default().chars();
                }
                open.push('?');
            }
            letter => open.push(letter),
        }
    }
    open
}

fn about_paths(tool: &str, inside: &str, project: &Path) -> Result<Vec<String>, RuleFault> {
    if inside.starts_with('!') {
        return Err(RuleFault::Unsayable("exceptions with `!` have no counterpart"));
    }
    if inside.contains(['[', '\\']) {
        return Err(RuleFault::Unsayable("classes of letters have no counterpart"));
    }
    let mut all = Vec::new();
    for pattern in expand_braces(inside) {
        all.extend(translate_paths(&pattern, project));
    }
    all.dedup();
    if all.is_empty() {
        return Err(RuleFault::Unsayable("it names no path"));
    }
    Ok(all.into_iter().map(|path| format!("{tool}({path})")).collect())
}

/// The patterns that one with `{a,b}` stands for.
fn expand_braces(pattern: &str) -> Vec<String> {
    let (mut done, mut waiting) = (Vec::new(), vec![pattern.to_owned()]);
    while let Some(pattern) = waiting.pop() {
        let braces = pattern.rfind('{').and_then(|open| {
            let end = pattern.get(open..)?.find('}')? + open;
            Some((pattern.get(..open)?, pattern.get(open + 1..end)?, pattern.get(end + 1..)?))
        });
        match braces {
            Some((before, inside, after)) if done.len() + waiting.len() < MAX_ALTERNATIVES => {
                waiting.extend(inside.split(',').map(|one| format!("{before}{one}{after}")));
            }
            Some((before, _, after)) => done.push(format!("{before}*{after}")),
            None => done.push(pattern),
        }
    }
    done
}

/// Returns the paths that a pattern of Claude Code stands for: below the folder that a session starts in, below the
/// project, or both.
fn translate_paths(pattern: &str, project: &Path) -> Vec<String> {
    let pattern = pattern.trim();
    if let Some(rest) = HOMES.iter().find_map(|home| pattern.strip_prefix(home)) {
        return vec![format!("~/{}", drop_empty_parts(rest))];
    }
    if matches!(pattern, "~" | "$HOME" | "${HOME}") {
        return vec!["~".to_owned()];
    }
    if let Some(rest) = pattern.strip_prefix("//") {
        return vec![format!("/{}", drop_empty_parts(rest))];
    }
    let below = pattern.trim_start_matches('/');
    let relative = drop_empty_parts(below);
    let mut all = Vec::new();
    if !relative.split('/').any(|name| name == "..") {
        all.push(if relative.is_empty() { ".".to_owned() } else { relative.clone() });
    }
    // A bare name is meant at any depth, which a path from the root would not say.
    if relative.contains('/') || relative.is_empty() {
        all.extend(from_root(&project.join(&relative)));
    }
    // One slash begins at the project, and people write it for the machine's root as well.
    if pattern.starts_with('/') && !relative.is_empty() {
        all.push(format!("/{relative}"));
    }
    all
}

/// The pattern without what says nothing: `.`, empty names, and `**` as a part of a name.
fn drop_empty_parts(pattern: &str) -> String {
    let names = pattern.split('/').filter(|name| !name.is_empty() && *name != ".");
    let name = |name: &str| if name == "**" { name.to_owned() } else { single_stars(name) };
    names.map(name).collect::<Vec<_>>().join("/")
}

fn single_stars(name: &str) -> String {
    let mut one = name.replace("**", "*");
    while one.contains("**") {
        one = one.replace("**", "*");
    }
    one
}

/// A path from the root without `..`; `None` where the folder above has a name that is itself a pattern.
fn from_root(path: &Path) -> Option<String> {
    let mut real = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(real.pop()),
            part => real.push(part),
        }
    }
    Some(real.to_str()?.to_owned())
}

/// `*deploy*`: neither `* --force`, whose `*` is a word of its own, nor `**`.
fn is_open_at_start(inside: &str) -> bool {
    let rest = inside.strip_prefix('*').map(|rest| rest.trim_start_matches('*'));
    rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with([' ', ':']))
}

/// The name of a skill, without the arguments that may follow.
fn skill_name(inside: &str) -> &str {
    let name = inside.strip_suffix(":*").unwrap_or(inside);
    name.split_whitespace().next().unwrap_or(name)
}

/// The host of an address, a domain, or what stands there.
fn host_name(inside: &str) -> &str {
    let inside = inside.strip_prefix("domain:").unwrap_or(inside).trim();
    let Some((_, rest)) = inside.split_once("://") else { return inside };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    let host = authority.rsplit('@').next().unwrap_or(authority);
    host.split(':').next().unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claude_code_deny_and_ask_rules_are_converted() {
        let project = Path::new("/p");
        for (theirs, ours) in [
            ("Bash(npm run test:*)", "bash(npm run test *)"),
            ("Bash(git push * --force)", "bash(git push * --force)"),
            ("Bash(*deploy*)", "bash(* *deploy*)"),
            ("Bash(*deploy:*)", "bash(* *deploy *)"),
            ("Bash(* --force)", "bash(* --force)"),
            ("Read(./secrets/**)", "fs.read(secrets/**) fs.read(/p/secrets/**)"),
            ("Read(~/.ssh/**)", "fs.read(~/.ssh/**)"),
            ("Read($HOME/.aws)", "fs.read(~/.aws)"),
            ("Read(.env)", "fs.read(.env)"),
            (
                "Read(**/*.{pem,key})",
                "fs.read(**/*.key) fs.read(/p/**/*.key) fs.read(**/*.pem) fs.read(/p/**/*.pem)",
            ),
            ("Read(//etc/passwd)", "fs.read(/etc/passwd)"),
            (
                "Read(/etc/passwd)",
                "fs.read(etc/passwd) fs.read(/p/etc/passwd) fs.read(/etc/passwd)",
            ),
            ("Read(../other/**)", "fs.read(/other/**)"),
            ("Read(a/./b//c)", "fs.read(a/b/c) fs.read(/p/a/b/c)"),
            ("Read(**.env)", "fs.read(*.env)"),
            ("Grep(src/**)", "fs.read(src/**) fs.read(/p/src/**)"),
            ("Edit(docs/**)", "fs.write(docs/**) fs.write(/p/docs/**)"),
            ("Write", "fs.write"),
            ("Edit", "fs.edit fs.write"),
            ("NotebookEdit", "fs.write(**/*.ipynb)"),
            ("WebFetch(domain:evil.example)", "web(evil.example)"),
            ("WebFetch(domain:*.example)", "web(*.example)"),
            ("WebFetch(https://u@evil.example:80/x)", "web(evil.example)"),
            ("WebFetch", "web"),
            ("WebSearch", ""),
            ("mcp__git__push", "mcp(git:push)"),
            ("mcp__git", "mcp(git:*)"),
            ("Agent(Explore)", "agent(Explore)"),
            ("Task(reviewer)", "agent(reviewer)"),
            ("Skill(deploy *)", "skill(deploy)"),
            ("*", "*"),
        ] {
            let rules = restricting_rules(theirs, project).map(|all| all.join(" "));
            assert_eq!(rules.as_deref(), Ok(ours), "{theirs}");
        }
    }

    #[test]
    fn claude_code_deny_rule_without_equivalent_becomes_a_wider_ask_rule() {
        let project = Path::new("/p");
        for (theirs, wider) in [
            ("Read(src/[a-z].rs)", "fs.read(src/?.rs) fs.read(/p/src/?.rs)"),
            ("Read(!a)", "fs.read(a)"),
            ("Bash(ls", "bash(ls *)"),
            ("Bash(curl * | sh)", "bash(curl *)"),
            ("Bash($X)", "bash"),
            ("mcp__git(log)", "mcp(git:*)"),
            ("Edit(x\\ y)", "fs.write(x?y)"),
            ("Nothing(x)", ""),
        ] {
            assert_eq!(wider_rules(theirs, project).join(" "), wider, "{theirs}");
        }
        assert!(restricting_rules("Read(src/[a-z].rs)", project).is_err());
        assert!(restricting_rules("Nothing(x)", project).is_err());
    }
}
