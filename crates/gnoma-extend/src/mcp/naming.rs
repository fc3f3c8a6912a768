//! Names of servers and tools, as models and rules write them: `mcp__server__tool`.

use sha2::{Digest as _, Sha256};

use super::limits::MAX_NAME_BYTES;

/// The prefix of the names of all servers' tools.
pub const PREFIX: &str = "mcp__";
/// The separator between a server and its tool.
const BETWEEN: &str = "__";
/// Hexadecimal digits that keep shortened names apart.
const MARK_DIGITS: usize = 6;
/// Longest name of a server, in bytes: its tools' names need room.
const MAX_SERVER_BYTES: usize = 32;

/// The word that may mean any server.
const ANY: &str = "mcp";
/// Words in names of servers that do not tell which one is meant.
const SAY_NOTHING: [&str; 3] = [ANY, "plugin", "server"];

/// A name that no MCP server may have.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServerNameError {
    /// The name is empty or too long, or has other characters than names may have.
    #[error(
        "`{}` cannot be a server's name: letters, digits, `-` and `_`, at most {MAX_SERVER_BYTES}",
        .0.escape_debug()
    )]
    Characters(String),
    /// Within the names of tools it could be taken for the end of the server's name.
    #[error("`{0}` cannot be a server's name: it begins or ends with `_`, or contains `__`")]
    Underscores(String),
}

gnoma_core::debug_as_display!(ServerNameError);

/// Checks that a server may have this name.
///
/// # Errors
/// The name is not allowed.
pub fn check_server(name: &str) -> Result<(), ServerNameError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if name.is_empty() || name.len() > MAX_SERVER_BYTES || !name.bytes().all(is_plain) {
        return Err(ServerNameError::Characters(name.to_owned()));
    }
    if name.contains(BETWEEN) || name.starts_with('_') || name.ends_with('_') {
        return Err(ServerNameError::Underscores(name.to_owned()));
    }
    Ok(())
}

/// The name of a server that a plugin brings along: `plugin_PLUGIN_SERVER`, as another program has it. A
/// longer one is cut, and a mark keeps it apart.
#[must_use]
pub(super) fn of_plugin(plugin: &str, server: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let parts = [plugin, server].map(|part| part.chars().map(plain).collect::<String>());
    let parts = parts.iter().map(|part| part.split('_').filter(|it| !it.is_empty()));
    let name = parts.flatten().fold("plugin".to_owned(), |name, part| format!("{name}_{part}"));
    if name.len() <= MAX_SERVER_BYTES {
        return name;
    }
    let mark = short_hash(&format!("{plugin}\0{server}"));
    let kept = name.get(..MAX_SERVER_BYTES - MARK_DIGITS - 1).unwrap_or(&name);
    format!("{}_{mark}", kept.trim_end_matches('_'))
}

/// A few digits that identify a text.
fn short_hash(text: &str) -> String {
    let digits: String = Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
    digits.get(..MARK_DIGITS).unwrap_or_default().to_owned()
}

/// The name under which a server's tool is offered. What providers do not take in names is replaced, and
/// a mark keeps apart what would be the same after that.
#[must_use]
pub fn qualified_tool_name(server: &str, tool: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' };
    let replaced: String = tool.chars().map(plain).collect();
    let name = format!("{PREFIX}{server}{BETWEEN}{replaced}");
    if replaced == tool && name.len() <= MAX_NAME_BYTES {
        return name;
    }
    let mark = short_hash(tool);
    let room = MAX_NAME_BYTES - MARK_DIGITS - 1;
    let kept = name.get(..room.min(name.len())).unwrap_or(&name);
    format!("{kept}_{mark}")
}

/// Reports whether a text names a server: it contains all words of the server's name, except those that tell
/// nothing; or it mentions MCP, which may mean any of them.
pub(super) fn is_named(server: &str, text: &str) -> bool {
    let words = |text: &str| -> Vec<String> {
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        words.map(str::to_lowercase).collect()
    };
    let (said, name) = (words(text), words(server));
    if said.iter().any(|word| word == ANY) {
        return true;
    }
    let mut telling = name.iter().filter(|word| !SAY_NOTHING.contains(&word.as_str())).peekable();
    match telling.peek() {
        Some(_) => telling.all(|word| said.contains(word)),
        None => name.iter().any(|word| said.contains(word)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mcp_tool_names_are_valid_for_every_provider_and_unique() {
        assert_eq!(qualified_tool_name("git", "git_log"), "mcp__git__git_log");
        let long = "x".repeat(100);
        let names = [
            qualified_tool_name("git", "a.b"),
            qualified_tool_name("git", "a/b"),
            qualified_tool_name("git", "a_b"),
            qualified_tool_name("g", &long),
        ];
        for name in &names {
            assert!(name.len() <= MAX_NAME_BYTES, "{name}");
            assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-'));
        }
        assert_ne!(names[0], names[1]);
        assert_ne!(names[0], names[2]);
        assert_ne!(qualified_tool_name("g", &long), qualified_tool_name("g", &format!("{long}y")));
    }

    #[test]
    fn mcp_server_is_recognized_in_a_message_by_its_name_or_tools() {
        for text in ["Use Git: log", "call mcp__git__git_log", "@git:repo://x", "the git-server"] {
            assert!(is_named("git", text), "{text}");
        }
        assert!(!is_named("git", "look at the digits of github"));
        assert!(is_named("plugin_demo_db", "ask mcp__plugin_demo_db__query"));
        assert!(is_named("plugin_demo_db", "the db of demo"));
        assert!(!is_named("plugin_demo_db", "write a plugin"));
        assert!(is_named("mcp-server", "my mcp server") && !is_named("mcp-server", "a thing"));
        assert!(is_named("git", "call mcp__.*log"));
    }

    #[test]
    fn mcp_server_names_cannot_imitate_another_server() {
        for name in ["a__b", "_a", "a_", "", "a b", "a/b", "mcp__x", "ä"] {
            assert!(check_server(name).is_err(), "{name}");
        }
        assert!(check_server("my-server_1").is_ok());
        assert_eq!(of_plugin("demo", "db"), "plugin_demo_db");
        let odd = ["_a__", "ä.b", &"x".repeat(80)].map(|name| of_plugin("my-plugin", name));
        assert!(odd.iter().all(|name| check_server(name).is_ok()), "{odd:?}");
        assert_ne!(of_plugin(&"x".repeat(40), "a"), of_plugin(&"x".repeat(40), "b"));
    }
}
