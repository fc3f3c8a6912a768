//! Names of tools as other programs write them, and as gnoma does.

use crate::front_matter::listed;

/// The other program's name, and ours. The first of ours with several stands for it towards hooks.
const NAMES: [(&str, &str); 13] = [
    ("Bash", "bash"),
    ("Read", "fs.read"),
    ("Write", "fs.write"),
    ("Edit", "fs.edit"),
    ("MultiEdit", "fs.edit"),
    ("Grep", "fs.grep"),
    ("Glob", "fs.glob"),
    ("LS", "fs.ls"),
    ("Skill", "skill"),
    ("Task", "elf.spawn"),
    ("Agent", "elf.spawn"),
    ("Agent", "agent"),
    ("WebFetch", "web"),
];

/// What hooks call a tool of ours.
#[must_use]
pub(crate) fn theirs(own: &str) -> &str {
    NAMES.iter().find(|(_, ours)| *ours == own).map_or(own, |(theirs, _)| *theirs)
}

/// What we call a tool of theirs.
#[must_use]
pub(crate) fn ours(theirs: &str) -> &str {
    NAMES.iter().find(|(name, _)| *name == theirs).map_or(theirs, |(_, own)| *own)
}

/// The tools that a list such as `Bash(git add:*), Read` allows, as our rules write them.
#[must_use]
pub(crate) fn allowed(text: &str) -> Vec<String> {
    let by_commas = listed(text);
    // The specification of skills separates with spaces, others with commas.
    let parts: Vec<String> = match &*by_commas {
        [one] => spaced(one),
        _ => by_commas,
    };
    parts.iter().filter_map(|part| rule(part)).collect()
}

/// The parts of a text between spaces that stand in no brackets.
fn spaced(text: &str) -> Vec<String> {
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

/// A rule such as `Bash(git add:*)`, as our rules write it; `None` where it is empty.
#[must_use]
pub fn rule(part: &str) -> Option<String> {
    let rule = whole_rule(part);
    (!rule.is_empty()).then_some(rule)
}

fn whole_rule(part: &str) -> String {
    let part = part.trim();
    let Some((name, inside)) = part.split_once('(') else { return ours(part).to_owned() };
    let inside = inside.trim_end_matches(')').trim();
    let own = ours(name.trim());
    if inside.is_empty() || inside == "*" || inside == ":*" {
        return own.to_owned();
    }
    // `git add:*` is any `git add …`.
    let inside = match inside.strip_suffix(":*") {
        Some(words) => format!("{words} *"),
        None => inside.to_owned(),
    };
    format!("{own}({inside})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_tools_become_rules() {
        let rules = ["bash(git add *)", "bash(npm test)", "fs.read", "fs.edit"];
        assert_eq!(allowed("Bash(git add:*), Bash(npm test), Read, Edit"), rules);
        assert_eq!(allowed("Bash(git add:*) Bash(npm test) Read Edit"), rules);
        assert_eq!(allowed("Bash(*)"), ["bash"]);
        assert_eq!(theirs("fs.edit"), "Edit");
        assert_eq!(theirs("mcp__a__b"), "mcp__a__b");
    }
}
