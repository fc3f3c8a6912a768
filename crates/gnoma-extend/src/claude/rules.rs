//! Rules about permissions as that program writes them, such as `Bash(npm test:*)`, in gnoma's words. The one
//! place where they are read: flags, answers, lists in Markdown files, settings that are taken over.
//! Whether what comes out is a rule is for the guard to say.

use std::fmt;

use super::shape::our_name;
use crate::{front_matter::split_list, names};

/// The prefix of rules about tools of MCP servers.
const SERVER: &str = "mcp__";
/// The separator between a server and its tool.
const BETWEEN: &str = "__";

/// The reason why a rule of Claude Code cannot be turned into a rule of gnoma.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleFault {
    /// They have no tool of that name that gnoma has, too.
    NoTool(String),
    /// gnoma's rules cannot say it; why.
    Unsayable(&'static str),
}

impl fmt::Display for RuleFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoTool(name) => match names::correct_case(name) {
                Some(theirs) => {
                    write!(f, "there is no tool `{name}`; here it is written `{theirs}`")
                }
                None => write!(f, "gnoma has no tool `{name}`"),
            },
            Self::Unsayable(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for RuleFault {}

/// The reason why a list of forbidden tools cannot be obeyed.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum ForbiddenToolsError {
    /// An element of the list is not written as rules are.
    #[error(transparent)]
    Rule(#[from] RuleFault),
    /// An element forbids a part of what a tool does, which no name says.
    #[error(
        "`{0}` forbids only a part of a tool; name the whole tool, or deny that part by `[[permission.rules]]`"
    )]
    PartOfTool(String),
    /// An element has a wildcard before its end.
    #[error("in `{0}` a `*` can only stand at the end")]
    InnerWildcard(String),
}

gnoma_core::debug_as_display!(ForbiddenToolsError);

/// A rule such as `Bash(git add:*)`, `Read(./.env)` or `mcp__git` as rules of ours, which together cover the same.
///
/// # Errors
/// gnoma has no tool of that name, or its rules cannot express it.
pub fn our_rules(theirs: &str) -> Result<Vec<String>, RuleFault> {
    let (name, inside) = split_rule(theirs)?;
    if let Some(rest) = name.strip_prefix(SERVER) {
        return match inside {
            None => Ok(vec![of_server(name, rest)]),
            Some(_) => Err(RuleFault::Unsayable(
                "a rule about the tools of an MCP server takes no pattern in brackets",
            )),
        };
    }
    let mut ours: Vec<&str> = names::all_ours(name).collect();
    let other = our_name(name);
    if ours.is_empty() && other != name {
        ours.push(other);
    }
    if ours.is_empty() {
        return Err(RuleFault::NoTool(name.to_owned()));
    }
    let body = inside.map(|inside| translate_body(name, inside)).transpose()?;
    let rule = |own: &str| match &body {
        Some(body) => format!("{own}({body})"),
        None => own.to_owned(),
    };
    Ok(ours.into_iter().map(rule).collect())
}

/// The name, and what is in the brackets where that is not everything.
pub(super) fn split_rule(theirs: &str) -> Result<(&str, Option<&str>), RuleFault> {
    let theirs = theirs.trim();
    let Some((name, rest)) = theirs.split_once('(') else { return Ok((theirs, None)) };
    let inside = rest.strip_suffix(')');
    let inside = inside.ok_or(RuleFault::Unsayable("its bracket is not closed at its end"))?.trim();
    let is_all = matches!(inside, "" | "*" | ":*" | "domain:*");
    Ok((name.trim(), (!is_all).then_some(inside)))
}

/// A rule about a server, a tool of one, or a glob of such names.
fn of_server(name: &str, rest: &str) -> String {
    match rest.split_once(BETWEEN).unwrap_or((rest, "*")) {
        (server, tool) if server.contains('*') || (tool.contains('*') && tool != "*") => {
            name.to_owned()
        }
        (server, tool) => format!("mcp({server}:{tool})"),
    }
}

/// Converts the text in the brackets of a rule to gnoma's form.
fn translate_body(name: &str, inside: &str) -> Result<String, RuleFault> {
    match name {
        "Bash" => Ok(match inside.strip_suffix(":*") {
            // `git add:*` is any `git add …`.
            Some(words) => format!("{words} *"),
            None => inside.to_owned(),
        }),
        "WebFetch" => Ok(inside.strip_prefix("domain:").unwrap_or(inside).to_owned()),
        "Skill" => Err(RuleFault::Unsayable("gnoma has no rules about single skills")),
        "Task" | "Agent" => Err(RuleFault::Unsayable("gnoma has no rules about single agents")),
        "Read" | "Write" | "Edit" | "MultiEdit" | "Grep" | "Glob" | "LS" => translate_path(inside),
        _ => Err(RuleFault::Unsayable("gnoma's rules about this tool take no pattern in brackets")),
    }
}

/// Two slashes begin an absolute path, one begins at the project.
fn translate_path(inside: &str) -> Result<String, RuleFault> {
    if inside.starts_with('!') || inside.contains(['[', ']', '\\']) {
        return Err(RuleFault::Unsayable(
            "in gnoma's rules only `*`, `**` and `?` are wildcards in paths",
        ));
    }
    Ok(match inside.strip_prefix("//") {
        Some(rest) => format!("/{rest}"),
        None => match inside.trim_start_matches("./").trim_start_matches('/') {
            "" => ".".to_owned(),
            path => path.to_owned(),
        },
    })
}

/// The tools in a list such as `Bash(git add:*), Read`, as our rules write them; tools of servers keep their names.
/// What cannot be expressed is left out: a list permits what it names and nothing else.
#[must_use]
pub fn tool_list(text: &str) -> Vec<String> {
    let by_commas = split_list(text);
    // The specification of skills separates with spaces, others with commas.
    let parts: Vec<String> = match &*by_commas {
        [one] => split_at_spaces(one),
        _ => by_commas,
    };
    parts.iter().filter(|part| !part.is_empty()).filter_map(|part| listed_tool(part)).collect()
}

/// The tools that a list such as `Edit, mcp__git` forbids, by names and globs of names.
///
/// # Errors
/// An element of the list forbids what no name says.
pub fn forbidden_tools(text: &str) -> Result<Vec<String>, ForbiddenToolsError> {
    let mut all = Vec::new();
    for part in split_list(text)
        .iter()
        .flat_map(|part| split_at_spaces(part))
        .filter(|part| !part.is_empty())
    {
        if split_rule(&part)?.1.is_some() {
            return Err(ForbiddenToolsError::PartOfTool(part));
        }
        // "All of it" in brackets forbids the tool.
        let name = part.split_once('(').map_or(&*part, |(name, _)| name.trim());
        if name.trim_end_matches('*').contains('*') {
            return Err(ForbiddenToolsError::InnerWildcard(part));
        }
        match our_rules(name) {
            Ok(rules) if !name.starts_with(SERVER) => all.extend(rules),
            Ok(_) => all.extend(listed_tool(name)),
            Err(_) => all.push(name.to_owned()),
        }
    }
    Ok(all)
}

fn listed_tool(part: &str) -> Option<String> {
    if let Some(rest) = part.strip_prefix(SERVER) {
        let is_whole = !rest.contains(BETWEEN) && !rest.contains('*');
        return Some(format!("{part}{}", if is_whole { "__*" } else { "" }));
    }
    match our_rules(part) {
        // The tool of that name alone: who may edit files may not write new ones for it.
        Ok(rules) => rules.into_iter().next(),
        Err(RuleFault::NoTool(_)) => Some(part.to_owned()),
        Err(RuleFault::Unsayable(_)) => None,
    }
}

/// The parts of a text between spaces that stand in no brackets.
fn split_at_spaces(text: &str) -> Vec<String> {
    let (mut parts, mut depth) = (vec![String::new()], 0_usize);
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => (),
        }
        if c.is_whitespace() && depth == 0 {
            parts.push(String::new());
        } else if let Some(last) = parts.last_mut() {
            last.push(c);
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claude_code_disallowed_tools_convert_to_tool_names() {
        let forbidden = |text: &str| forbidden_tools(text);
        assert_eq!(forbidden("Bash(*)").unwrap(), ["bash"]);
        assert_eq!(forbidden("mcp__git(*)").unwrap(), ["mcp__git__*"]);
        assert_eq!(forbidden("fs.*, mcp__git__push").unwrap(), ["fs.*", "mcp__git__push"]);
        for text in ["Bash(rm:*)", "mcp__git__*_write"] {
            assert!(forbidden(text).is_err(), "{text}");
        }
    }

    #[test]
    fn claude_code_permission_rules_are_converted() {
        for (theirs, ours) in [
            ("Bash(npm run test:*)", "bash(npm run test *)"),
            ("Bash(git push origin main)", "bash(git push origin main)"),
            ("Bash(echo (a))", "bash(echo (a))"),
            ("Bash(:*)", "bash"),
            ("Read(./.env)", "fs.read(.env)"),
            ("Read(//etc/**)", "fs.read(/etc/**)"),
            ("Read(~/.ssh/**)", "fs.read(~/.ssh/**)"),
            ("Read(/)", "fs.read(.)"),
            ("Edit(/src/**)", "fs.edit(src/**) fs.write(src/**)"),
            ("MultiEdit(a)", "fs.edit(a)"),
            ("WebFetch(domain:example.com)", "web(example.com)"),
            ("WebFetch(domain:*)", "web"),
            ("Task", "elf.spawn agent"),
            ("AskUserQuestion", "ask"),
            ("mcp__git", "mcp(git:*)"),
            ("mcp__git__*", "mcp(git:*)"),
            ("mcp__git__log", "mcp(git:log)"),
            ("mcp__git__get_*", "mcp__git__get_*"),
            ("mcp__*", "mcp__*"),
        ] {
            assert_eq!(our_rules(theirs).map(|all| all.join(" ")).as_deref(), Ok(ours), "{theirs}");
        }
    }

    #[test]
    fn claude_code_rules_without_equivalent_are_reported() {
        for theirs in [
            "Bash(ls",
            "Bash(ls) x",
            "Task(x)",
            "Skill(x)",
            "Read(src/[a-z].rs)",
            "Read(!a)",
            "AskUserQuestion(a)",
            "mcp__git(log)",
        ] {
            assert!(matches!(our_rules(theirs), Err(RuleFault::Unsayable(_))), "{theirs}");
        }
        for theirs in ["WebSearch", "TodoWrite(x)", "bash", ""] {
            assert!(matches!(our_rules(theirs), Err(RuleFault::NoTool(_))), "{theirs}");
        }
        let fault = our_rules("bash(ls)").unwrap_err().to_string();
        assert!(fault.ends_with("here it is written `Bash`"), "{fault}");
    }

    #[test]
    fn claude_code_allowed_tools_list_is_converted_to_rules() {
        let rules = ["bash(git add *)", "bash(npm test)", "fs.read", "fs.edit"];
        assert_eq!(tool_list("Bash(git add:*), Bash(npm test), Read, Edit"), rules);
        assert_eq!(tool_list("Bash(git add:*) Bash(npm test) Read Edit"), rules);
        assert_eq!(tool_list("Bash(*)"), ["bash"]);
        let named = ["mcp__git__*", "mcp__git__log", "fs.ls"];
        assert_eq!(tool_list("mcp__git, mcp__git__log, fs.ls, Skill(x)"), named);
    }
}
