//! Permission rules (allow, ask, deny), and their syntax.
//!
//! | written | about |
//! |---|---|
//! | `bash(git status)` | one simple command with exactly these words |
//! | `bash(cargo test *)` | the same with any further arguments |
//! | `fs.write(src/**)`, `fs.*(~/notes/*.md)` | a file tool at these paths |
//! | `web(example.com)`, `web(*.example.com)` | addresses at a host, or below it |
//! | `mcp(server:tool)`, `mcp(server:*)` | tools of an MCP server |
//! | `fs.read`, `mcp__*` | every call of the tools with such a name |
//!
//! Rules that only deny or ask can also say:
//!
//! | written | about |
//! |---|---|
//! | `bash(git push * --force)`, `bash(docker*)` | commands with any words, or any letters, in between |
//! | `agent(reviewer)`, `skill(deploy)` | elfs that work as an agent, and skills, of such a name |

use std::fmt;

use super::{
    command_words::{CommandWords, CommandWordsError},
    host::{HostPattern, HostPatternError},
    paths::{PathPattern, PathPatternError},
};

/// The effect of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RuleAction {
    /// The call is allowed to run.
    Allow,
    /// A person is asked.
    Ask,
    /// The call does not run.
    Deny,
}

impl fmt::Display for RuleAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        })
    }
}

/// The author of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The user's configuration.
    User,
    /// A file of the project; applies only as far as the project is trusted.
    Project,
    /// An answer of "always" in this session.
    Session,
    /// The command line.
    Flag,
}

/// The subject that a rule is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// Every call of the tools whose name fits.
    Tool(String),
    /// Simple commands of `bash`.
    Command(CommandWords),
    /// File tools whose name fits, at these paths.
    Path {
        /// Glob of names of tools.
        tool: String,
        /// The paths that the rule is about.
        path: PathPattern,
    },
    /// Tools that are given an address.
    Host(HostPattern),
    /// Tools of an MCP server.
    Mcp {
        /// The name of the server.
        server: String,
        /// The tool; `None` for all of them.
        tool: Option<String>,
    },
    /// Elfs that work as an agent whose name fits. Only for denying and asking.
    Agent(String),
    /// Skills whose name fits. Only for denying and asking.
    Skill(String),
    /// Calls whose arguments contain a text. Only for denying: a text found somewhere says little about the rest of
    /// a call.
    Text {
        /// Glob of names of tools.
        tool: String,
        /// The text that the arguments contain.
        text: String,
    },
}

/// An exception from the mode.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rule {
    /// The action that the rule prescribes.
    pub action: RuleAction,
    /// The subject that the rule is about.
    pub subject: Subject,
    /// The author of the rule.
    pub origin: Origin,
}

/// A rule that cannot be read.
// The sentence has the fault in it, so the fault is no source: printers of chains would repeat it.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a rule: {fault}", .text.escape_debug())]
pub struct RuleError {
    /// The rule as it was written.
    pub text: String,
    /// The fault of the rule, with what to write instead if that is clear.
    pub fault: RuleSyntaxError,
}

/// The fault of a rule that cannot be read.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleSyntaxError {
    /// The words of a command cannot be read.
    #[error(transparent)]
    Command(#[from] CommandWordsError),
    /// The path cannot be read.
    #[error(transparent)]
    Path(#[from] PathPatternError),
    /// The host cannot be read.
    #[error(transparent)]
    Host(#[from] HostPatternError),
    /// The name of the tool is empty.
    #[error("it names no tool")]
    NoTool,
    /// The name of the tool has a character that no tool's name has.
    #[error("`{}` is not part of a tool's name", .0.escape_debug())]
    ToolCharacter(char),
    /// The bracket is not closed.
    #[error("the bracket is not closed at its end")]
    OpenBracket,
    /// The tool takes no pattern in brackets.
    #[error("only `bash`, `web`, `mcp` and `fs.…` take a pattern in brackets")]
    NoBrackets,
    /// The rule would allow single agents or skills.
    #[error("a rule about single agents or skills can deny or ask, not allow")]
    AllowsAgent,
    /// A rule about an MCP server has no colon.
    #[error("it needs the form `mcp(server:tool)`")]
    McpForm,
    /// The name of the MCP server is not valid.
    #[error("`{}` is not a valid server name", .0.escape_debug())]
    McpServer(String),
    /// The name of the MCP server's tool is not valid.
    #[error("`{}` is not a valid tool name; `*` means all", .0.escape_debug())]
    McpTool(String),
    /// A text in the arguments would do more than deny.
    #[error(
        "a `pattern` over the arguments can only deny; write what may run, such as `tool = \"{example}\"` without a pattern"
    )]
    TextDoesNotDeny {
        /// A rule that says what may run.
        example: &'static str,
    },
    /// The rule has a pattern in brackets and a text as well.
    #[error("it has a pattern in brackets and a `pattern` as well; keep one of them")]
    TwoPatterns,
}

gnoma_core::debug_as_display!(RuleError, RuleSyntaxError);

impl Rule {
    /// Reads a rule as people write it.
    ///
    /// # Errors
    /// When it is not exactly one of the forms: a rule that is half understood could cover anything.
    pub fn parse(action: RuleAction, text: &str, origin: Origin) -> Result<Self, RuleError> {
        match Subject::parse(text, action != RuleAction::Allow) {
            Ok(subject) => Ok(Self { action, subject, origin }),
            Err(fault) => Err(RuleError { text: text.to_owned(), fault }),
        }
    }

    /// The rules of a list such as `bash(git add *), bash(git commit *)`, one by one and unread.
    pub fn split_list(text: &str) -> impl Iterator<Item = &str> {
        const BETWEEN: &str = "), ";
        let mut rest = text.trim();
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let end = rest.find(BETWEEN).map_or(rest.len(), |at| at + 1);
            let (part, after) = rest.split_at(end);
            rest = after.trim_start_matches(',').trim_start();
            Some(part)
        })
    }

    /// Reads a rule of the configuration: `tool` is a rule as people write it, or the glob of tools
    /// that a text in the arguments is searched for in.
    ///
    /// # Errors
    /// When it cannot be read, or would allow by a text.
    pub fn from_config(
        action: RuleAction,
        tool: &str,
        pattern: &str,
        origin: Origin,
    ) -> Result<Self, RuleError> {
        let subject = Self::parse(action, tool, origin)?.subject;
        if pattern.is_empty() {
            return Ok(Self { action, subject, origin });
        }
        let fault = match (subject, action) {
            (Subject::Tool(tool), RuleAction::Deny) => {
                let text = pattern.to_owned();
                return Ok(Self { action, subject: Subject::Text { tool, text }, origin });
            }
            (Subject::Tool(tool), RuleAction::Allow | RuleAction::Ask) => {
                RuleSyntaxError::TextDoesNotDeny { example: example_rule(&tool) }
            }
            _ => RuleSyntaxError::TwoPatterns,
        };
        Err(RuleError { text: format!("{tool} with `{pattern}`"), fault })
    }
}

fn example_rule(tool: &str) -> &'static str {
    if tool.starts_with("fs.") { "fs.write(src/**)" } else { "bash(git status)" }
}

impl Subject {
    fn parse(text: &str, is_open: bool) -> Result<Self, RuleSyntaxError> {
        let Some((name, rest)) = text.split_once('(') else {
            return tool_glob(text).map(Self::Tool);
        };
        let name = tool_glob(name)?;
        let body = rest.strip_suffix(')').ok_or(RuleSyntaxError::OpenBracket)?;
        match name.as_str() {
            "bash" => Ok(Self::Command(CommandWords::parse(body, is_open)?)),
            "agent" | "skill" if is_open => {
                let glob = tool_glob(body)?;
                Ok(if name == "agent" { Self::Agent(glob) } else { Self::Skill(glob) })
            }
            "agent" | "skill" => Err(RuleSyntaxError::AllowsAgent),
            "web" => Ok(Self::Host(HostPattern::parse(body, is_open)?)),
            "mcp" => parse_mcp(body),
            tool if tool.starts_with("fs.") => {
                Ok(Self::Path { path: PathPattern::parse(body)?, tool: name })
            }
            _ => Err(RuleSyntaxError::NoBrackets),
        }
    }

    /// Returns how specific the subject is, to compare it with another that is about the same call.
    pub(super) fn specificity_score(&self) -> (u8, usize) {
        const BY_NAME: u8 = 0;
        const BY_PATTERN: u8 = 1;
        const EXACT: u8 = 2;
        let rank = |exact| if exact { EXACT } else { BY_PATTERN };
        match self {
            Self::Tool(tool) | Self::Text { tool, .. } => (BY_NAME, letters_of(tool)),
            Self::Agent(name) | Self::Skill(name) => (BY_PATTERN, letters_of(name)),
            Self::Command(words) => (rank(words.is_exact()), words.specificity_score()),
            Self::Path { path, tool } => {
                (rank(path.is_exact()), path.specificity_score() + letters_of(tool))
            }
            Self::Host(host) => (rank(host.is_exact()), host.specificity_score()),
            Self::Mcp { server, tool } => {
                (rank(tool.is_some()), server.len() + tool.as_ref().map_or(0, String::len))
            }
        }
    }
}

/// Letters of a glob that mean themselves; a whole name counts one more.
fn letters_of(glob: &str) -> usize {
    glob.len() - glob.matches('*').count() + usize::from(!glob.contains('*'))
}

fn tool_glob(text: &str) -> Result<String, RuleSyntaxError> {
    let is_known = |letter: char| letter.is_ascii_alphanumeric() || "._-*".contains(letter);
    if text.is_empty() {
        return Err(RuleSyntaxError::NoTool);
    }
    match text.chars().find(|letter| !is_known(*letter)) {
        None => Ok(text.to_owned()),
        Some(letter) => Err(RuleSyntaxError::ToolCharacter(letter)),
    }
}

fn parse_mcp(body: &str) -> Result<Subject, RuleSyntaxError> {
    let (server, tool) = body.split_once(':').ok_or(RuleSyntaxError::McpForm)?;
    let is_name = |text: &str| {
        !text.is_empty()
            && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "._-".contains(letter))
    };
    if !is_name(server) {
        return Err(RuleSyntaxError::McpServer(server.to_owned()));
    }
    if tool != "*" && !is_name(tool) {
        return Err(RuleSyntaxError::McpTool(tool.to_owned()));
    }
    let tool = (tool != "*").then(|| tool.to_owned());
    Ok(Subject::Mcp { server: server.to_owned(), tool })
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tool(tool) => f.write_str(tool),
            Self::Command(words) => write!(f, "bash({words})"),
            Self::Path { tool, path } => write!(f, "{tool}({path})"),
            Self::Host(host) => write!(f, "web({host})"),
            Self::Mcp { server, tool } => {
                write!(f, "mcp({server}:{})", tool.as_deref().unwrap_or("*"))
            }
            Self::Agent(name) => write!(f, "agent({name})"),
            Self::Skill(name) => write!(f, "skill({name})"),
            Self::Text { tool, text } => write!(f, "{tool} with `{}`", text.escape_debug()),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.subject.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Result<Rule, RuleError> {
        Rule::parse(RuleAction::Allow, text, Origin::User)
    }

    #[test]
    fn permission_rule_list_is_split_at_commas_outside_parentheses() {
        let listed = |text| Rule::split_list(text).collect::<Vec<_>>();
        assert_eq!(listed("bash(a, b), fs.write(c)"), ["bash(a, b)", "fs.write(c)"]);
        assert_eq!(listed(" fs.read "), ["fs.read"]);
        assert!(listed("").is_empty());
    }

    #[test]
    fn permission_rules_print_as_they_are_written() {
        for text in [
            "bash(git status)",
            "bash(cargo test *)",
            "bash(git commit -m 'fix: a; b')",
            "fs.write(src/**)",
            "fs.read(~/notes/**)",
            "fs.edit(app/(group)/page.tsx)",
            "fs.*",
            "fs.*(docs/*.md)",
            "web(example.com)",
            "web(*.example.com)",
            "mcp(server:tool)",
            "mcp(server:*)",
            "mcp__*",
            "*",
        ] {
            assert_eq!(read(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn malformed_permission_rules_are_rejected() {
        for text in [
            "",
            "bash()",
            "bash(*)",
            "bash(gh:*)",
            "bash(git status",
            "bash(git status); rm",
            "bash(a && b)",
            "bash (ls)",
            "Bash(ls)",
            "fs.write()",
            "fs.write(../x)",
            "fs.write(a**)",
            "fs.read(~root/x)",
            "web(https://example.com)",
            "web(*)",
            "mcp(server)",
            "mcp(*:*)",
            "agent(x)",
            "fs.write (src)",
            "läs",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn agent_skill_and_wildcard_bash_rules_can_only_deny_or_ask() {
        for text in
            ["agent(reviewer)", "skill(deploy-*)", "bash(git push * --force)", "bash(docker*)"]
        {
            for action in [RuleAction::Deny, RuleAction::Ask] {
                let rule = Rule::parse(action, text, Origin::User).unwrap();
                assert_eq!(rule.to_string(), text);
            }
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn config_rule_with_a_pattern_can_only_deny() {
        let configured =
            |action, tool, pattern| Rule::from_config(action, tool, pattern, Origin::User);
        assert!(configured(RuleAction::Deny, "bash", "rm -rf").is_ok());
        assert!(configured(RuleAction::Allow, "bash", "").is_ok());
        assert!(configured(RuleAction::Allow, "bash(git status)", "").is_ok());
        assert!(configured(RuleAction::Deny, "bash(git status)", "x").is_err());
        let error = configured(RuleAction::Allow, "bash", "git status").unwrap_err();
        assert!(error.to_string().contains("bash(git status)"), "{error}");
    }

    proptest! {
        #[test]
        fn permission_rules_round_trip_through_display_and_parse(
            text in "(bash|fs\\.[a-z*]{1,4}|web|mcp|[a-z_*.]{1,6})(\\([^\\p{C}]{0,12}\\))?"
        ) {
            if let Ok(rule) = read(&text) {
                prop_assert_eq!(read(&rule.to_string()).unwrap(), rule);
            }
        }
    }
}
