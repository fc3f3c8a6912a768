//! Common mistakes in configuration files: JSON or YAML instead of TOML, missing quotes, keys of other assistants.

/// Keys of other assistants' files, and what gnoma has in their place.
const KEYS: &[(&[&str], &str)] = &[
    (
        &["api_key", "apikey", "apiKey", "provider.api_key", "provider.key", "provider.token"],
        "keys go to `provider.api_keys`: `[provider.api_keys]` and a line `NAME = \"${NAME_API_KEY}\"`",
    ),
    (
        &[
            "base_url",
            "api_base",
            "provider.base_url",
            "provider.url",
            "provider.endpoint",
            "provider.api_base",
        ],
        "addresses go to `provider.endpoints`: `[provider.endpoints]` and a line `NAME = \"https://…/v1\"`",
    ),
    (&["provider.name", "model_provider"], "the provider to use is `provider.default`"),
    (
        &["model_providers", "providers"],
        "`gnoma providers add` sets a provider up; its address is in `provider.endpoints`, its key in \
         `provider.api_keys`",
    ),
    (
        &["limits", "budget", "budgets", "caps", "max_budget_usd"],
        "spending caps are `router.caps.session`, `router.caps.day` and `router.caps.month`",
    ),
    (
        &["approval_policy", "sandbox_mode", "defaultMode", "permission_mode", "permissionMode"],
        "`permission.mode` says what needs approval, `sandbox.mode` how commands are restricted",
    ),
    (&["mcpServers", "mcp"], "write each server under a header `[[mcp_servers]]`"),
    (
        &["permission.allow", "permission.ask", "permission.deny"],
        "write each rule under a header `[[permission.rules]]`: `rule = \"bash(git *)\"`, `action = \"allow\"`",
    ),
    (&["hooks.command"], "the program is `exec`"),
    (
        &["max_turns", "session.max_turns"],
        "`--max-turns` limits one run, `tools.max_rounds` every turn",
    ),
    (&["env"], "set variables in the shell; `${NAME}` in a value reads one"),
];

/// The hint for a key that is like no other.
pub(crate) const LISTS_KEYS: &str =
    "`gnoma config show` lists those that are set, docs/configuration.md all";

/// Returns a hint on what to write in place of a key of another assistant. The position of an entry in a list does not
/// count.
pub(crate) fn of_key(path: &str) -> Option<&'static str> {
    let steps: Vec<&str> = path.split('.').filter(|step| step.parse::<usize>().is_err()).collect();
    let path = steps.join(".");
    KEYS.iter().find(|(keys, _)| keys.contains(&path.as_str())).map(|(_, hint)| *hint)
}

/// Returns a hint for a whole file that is in another language.
pub(crate) fn other_language_hint(text: &str) -> Option<&'static str> {
    let mut lines = text.lines().map(str::trim);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with('#'))?;
    if first.starts_with('{') {
        return Some("this is JSON; write TOML: `key = \"value\"` below a header `[section]`");
    }
    let is_yaml = first == "---"
        || first.split_once(':').is_some_and(|(key, after)| {
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            !key.is_empty()
                && key.chars().all(is_name)
                && (after.is_empty() || after.starts_with(' '))
        });
    is_yaml.then_some("this is YAML; write TOML: `key = \"value\"` below a header `[section]`")
}

/// Returns a hint for the line that holds the byte `at`.
pub(crate) fn of_line(text: &str, at: usize) -> Option<&'static str> {
    let before = text.get(..at)?;
    let start = before.rfind('\n').map_or(0, |end| end + 1);
    let line = text.get(start..)?.lines().next()?;
    if line.contains(is_unseen) {
        return Some(
            "the line has a character that is no plain space or cannot be seen: write it again",
        );
    }
    if line.contains(['\u{201c}', '\u{201d}', '\u{2018}', '\u{2019}']) {
        return Some("use straight quotes: \"…\"");
    }
    let (_, value) = line.split_once('=')?;
    let value = value.trim();
    let is_bare =
        value.starts_with(|c: char| c.is_alphabetic() || c == '/' || c == '~' || c == '$');
    is_bare.then_some("put text in quotes: \"…\"")
}

/// True for what looks like a space, or is not seen at all, and is neither to TOML.
fn is_unseen(c: char) -> bool {
    let is_hidden = matches!(c, '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}');
    is_hidden || !c.is_ascii() && c.is_whitespace()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_and_yaml_configuration_is_recognised() {
        assert!(
            other_language_hint("{\"provider\": {}}").is_some_and(|hint| hint.contains("JSON"))
        );
        assert!(
            other_language_hint("# mine\nprovider:\n  default: x\n")
                .is_some_and(|hint| hint.contains("YAML"))
        );
        assert!(other_language_hint("---\na: b\n").is_some());
        for toml in ["", "# a: b", "[a]\nb = 1", "a.b = \"c: d\"", "a = { b = 1 }", "[a\nb: c"] {
            assert_eq!(other_language_hint(toml), None, "{toml}");
        }
    }

    #[test]
    fn unquoted_text_is_reported_at_its_position() {
        let text = "a = 1\nb = mistral\nc = \u{201c}x\u{201d}\nd = 'x\n";
        assert_eq!(of_line(text, 3), None);
        assert!(of_line(text, 10).is_some_and(|hint| hint.contains("put text in quotes")));
        assert!(of_line(text, 22).is_some_and(|hint| hint.contains("straight quotes")));
        assert_eq!(of_line(text, text.len()), None);
        assert!(of_line("\u{a0}[tui]\n", 0).is_some_and(|hint| hint.contains("no plain space")));
    }

    #[test]
    fn no_valid_key_is_listed_as_a_mistake() {
        for row in crate::schema::ROWS {
            assert_eq!(of_key(row.path), None, "{}", row.path);
        }
    }
}
