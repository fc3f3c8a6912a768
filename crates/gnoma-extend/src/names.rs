//! Names of tools as other programs write them, and as gnoma does.

/// The other program's name, and ours. Of several lines, the first has the name for hooks.
const NAMES: [(&str, &str); 15] = [
    ("Bash", "bash"),
    ("Read", "fs.read"),
    ("Write", "fs.write"),
    ("Edit", "fs.edit"),
    ("Edit", "fs.write"),
    ("MultiEdit", "fs.edit"),
    ("Grep", "fs.grep"),
    ("Glob", "fs.glob"),
    ("LS", "fs.ls"),
    ("Skill", "skill"),
    ("Task", "elf.spawn"),
    ("Agent", "elf.spawn"),
    ("Agent", "agent"),
    ("Task", "agent"),
    ("WebFetch", "web"),
];

/// Returns the name that hooks use for a tool of gnoma.
#[must_use]
pub(crate) fn to_claude_name(own: &str) -> &str {
    NAMES.iter().find(|(_, ours)| *ours == own).map_or(own, |(theirs, _)| *theirs)
}

/// Returns gnoma's name for a tool that hooks name in their way.
#[must_use]
pub(crate) fn to_gnoma_name(theirs: &str) -> &str {
    NAMES.iter().find(|(name, _)| *name == theirs).map_or(theirs, |(_, own)| *own)
}

/// Their spelling of a tool whose name was written in another case.
pub(crate) fn correct_case(written: &str) -> Option<&'static str> {
    NAMES.iter().map(|(theirs, _)| *theirs).find(|theirs| theirs.eq_ignore_ascii_case(written))
}

/// All tools of ours that rules about a tool of theirs are about: one about editing is about all that edit.
pub(crate) fn all_ours(theirs: &str) -> impl Iterator<Item = &'static str> {
    NAMES.iter().filter(move |(name, _)| *name == theirs).map(|(_, ours)| *ours)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_names_convert_between_claude_code_and_gnoma() {
        assert_eq!((to_claude_name("fs.edit"), to_claude_name("fs.write")), ("Edit", "Write"));
        assert_eq!((to_claude_name("agent"), to_claude_name("mcp__a__b")), ("Agent", "mcp__a__b"));
        assert_eq!((to_gnoma_name("Edit"), to_gnoma_name("Task")), ("fs.edit", "elf.spawn"));
    }
}
