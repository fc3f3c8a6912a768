//! Permission rules and tool lists that the driving program gives by flags. Pure.

use gnoma_extend::claude::{RuleFault, our_name, our_rules};
use gnoma_guard::permission::{Origin, Rule, RuleAction};

use super::error::DriverError;

/// A rule as such programs write it, or in gnoma's words, as gnoma's rules: all of them, or none.
///
/// # Errors
/// Why there are none like it.
pub(super) fn parse_rules(
    action: RuleAction,
    written: &str,
    origin: Origin,
) -> Result<Vec<Rule>, DriverError> {
    let ours = match our_rules(written) {
        Ok(ours) => ours,
        // The name may be one of gnoma's own.
        Err(RuleFault::NoTool(_)) => vec![written.trim().to_owned()],
        Err(RuleFault::Unsayable(why)) => return Err(DriverError::UnsayableRule(why)),
    };
    let rules = ours.iter().map(|text| Rule::parse(action, text, origin));
    rules.collect::<Result<_, _>>().map_err(DriverError::InvalidRule)
}

/// A sentence where a name is none of a tool that gnoma has. Its own ones are in small letters.
pub(super) fn about_nothing(written: &str) -> Option<String> {
    match our_rules(written) {
        Err(RuleFault::NoTool(name)) if name.starts_with(|c: char| c.is_ascii_uppercase()) => {
            Some(format!("gnoma has no tool `{name}`, so a rule about it changes nothing"))
        }
        _ => None,
    }
}

/// True if an entry of a list names a tool of gnoma: by its name in that program or in gnoma, or by its server.
pub(super) fn names_tool(listed: &str, tool: &str) -> bool {
    let of_server = |server: &str| tool.strip_prefix(server).is_some_and(|it| it.starts_with("__"));
    let server = listed.strip_suffix("__*").unwrap_or(listed);
    our_name(listed) == tool || (server.starts_with("mcp__") && of_server(server))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claude_permission_rules_are_parsed_completely_or_refused() {
        let read = |written| {
            let rules = parse_rules(RuleAction::Deny, written, Origin::Flag)?;
            Ok::<_, DriverError>(
                rules.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
            )
        };
        for (written, ours) in [
            ("mcp__git", "mcp(git:*)"),
            ("Read(./.env)", "fs.read(.env)"),
            ("WebFetch(domain:example.com)", "web(example.com)"),
            ("Edit", "fs.edit fs.write"),
            ("fs.write(a)", "fs.write(a)"),
            ("WebSearch", "WebSearch"),
        ] {
            assert_eq!(read(written).unwrap(), ours);
        }
        for written in ["Bash(a && b)", "Bash(npm run test; ls)", "Read(../x)", "Task(x)", "Foo(x)"]
        {
            assert!(read(written).is_err(), "{written}");
        }
        assert!(about_nothing("WebSearch").is_some() && about_nothing("bash").is_none());
    }

    #[test]
    fn tool_lists_match_tools_and_mcp_servers() {
        assert!(
            names_tool("mcp__git", "mcp__git__log") && names_tool("mcp__git__*", "mcp__git__log")
        );
        assert!(!names_tool("mcp__git", "mcp__github__log") && !names_tool("Read(a)", "fs.read"));
        assert!(names_tool("Read", "fs.read") && names_tool("fs.read", "fs.read"));
    }
}
