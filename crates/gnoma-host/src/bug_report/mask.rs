//! Masks what may be secret in settings, addresses and logs. Pure.

/// Stands for what is left out.
const MASK: &str = "***";

/// Ends of names in keys whose values may be secrets in any form.
const SECRET_NAMES: [&str; 12] = [
    "key",
    "keys",
    "token",
    "tokens",
    "secret",
    "secrets",
    "password",
    "auth",
    "env",
    "headers",
    "args",
    "credentials",
];

/// Names in keys whose values are command lines.
const COMMAND_NAMES: [&str; 4] = ["command", "commands", "exec", "run"];

/// Returns a setting's value as TOML, without what may be a secret. Of a command line, its first word is left.
pub(super) fn mask_setting(key: &str, value: &str) -> String {
    let is_harmless = matches!(value, "true" | "false" | "\"\"" | "[]" | "{}")
        || value.replace('_', "").parse::<f64>().is_ok();
    if is_harmless {
        return value.to_owned();
    }
    let key = key.to_ascii_lowercase();
    let mut names = key.split(['.', '[', ']', '"', '_', '-']).filter(|name| !name.is_empty());
    if names.clone().any(|name| SECRET_NAMES.contains(&name)) {
        return format!("\"{MASK}\"");
    }
    if names.any(|name| COMMAND_NAMES.contains(&name)) {
        let begin = value.trim_start_matches(['[', '"', '\'', ' ']);
        let word = begin.split([' ', '"', '\'', ',', '\\', '=']).next().unwrap_or_default();
        return format!("\"{word} {MASK}\"");
    }
    match value.split_once("sha256:") {
        Some((before, _)) => format!("{before}sha256:{MASK}\""),
        None => value.to_owned(),
    }
}

/// Replaces what addresses say beyond the server and the path: credentials, queries and fragments.
pub(super) fn mask_addresses(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, address) = rest.split_at(at + "://".len());
        masked.push_str(before);
        let (address, after) = address.split_at(address_length(address));
        let (address, has_more) = match address.find(['?', '#']) {
            Some(end) => (address.split_at(end).0, true),
            None => (address, false),
        };
        match address.rsplit_once('@') {
            Some((_credentials, server)) => masked.push_str(&format!("{MASK}@{server}")),
            None => masked.push_str(address),
        }
        if has_more {
            masked.push_str(&format!("?{MASK}"));
        }
        rest = after;
    }
    masked + rest
}

/// Returns the length of the address at the beginning of a text. A placeholder such as `{{secret:…}}` is a part of it.
fn address_length(text: &str) -> usize {
    let mut open_braces = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '{' => open_braces += 1,
            '}' if open_braces > 0 => open_braces -= 1,
            c if c.is_whitespace() || c.is_control() || "\"'`<>\\,;)]}".contains(c) => return at,
            _ => (),
        }
    }
    text.len()
}

/// Replaces every text among a log's values with its size. Lines of panics stay: they have the program's own words.
pub(super) fn reduce_log(log: &str) -> String {
    let mut reduced = String::with_capacity(log.len());
    for line in log.lines() {
        if line.split(' ').nth(1) == Some("panic") {
            reduced.push_str(line);
        } else {
            reduce_line(line, &mut reduced);
        }
        reduced.push('\n');
    }
    reduced
}

fn reduce_line(line: &str, reduced: &mut String) {
    let mut rest = line;
    while let Some(at) = rest.find("=\"") {
        let (before, value) = rest.split_at(at + 1);
        let length = quoted_length(value);
        reduced.push_str(&format!("{before}<{} bytes>", length.saturating_sub(2)));
        rest = value.get(length..).unwrap_or_default();
    }
    reduced.push_str(rest);
}

/// Returns the length of the quoted text at the beginning, with its quotes. One without an end lasts to the end.
fn quoted_length(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '"' if !is_escaped => return at + 1,
            '\\' => is_escaped = !is_escaped,
            _ => is_escaped = false,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bug_report_settings_mask_secrets_only() {
        for (key, value, expected) in [
            ("provider.default", "\"anthropic\"", "\"anthropic\""),
            ("provider.api_keys.test", "\"***1234\"", "\"***\""),
            ("mcp.servers.x.env.PASS", "\"hunter2\"", "\"***\""),
            ("mcp.servers.x.headers", "{ Authorization = \"b\" }", "\"***\""),
            ("mcp_servers[0].args", "[\"--token\", \"hunter2\"]", "\"***\""),
            ("mcp_servers[0].args", "[]", "[]"),
            ("hooks[0].command", "\"curl -u me:hunter2 x\"", "\"curl ***\""),
            ("hooks[0].command", "[\"curl\", \"hunter2\"]", "\"curl ***\""),
            ("security.allowed[0]", "\"sha256:abc\"", "\"sha256:***\""),
            ("router.caps.day", "5.0", "5.0"),
            ("provider.max_tokens", "8_000", "8_000"),
            ("tui.keymap", "\"vim\"", "\"vim\""),
        ] {
            assert_eq!(mask_setting(key, value), expected, "{key}");
        }
    }

    #[test]
    fn bug_report_urls_keep_host_and_path_without_credentials() {
        for (text, expected) in [
            ("at https://me:hunter2@host/v1?key=abc, ok", "at https://***@host/v1?***, ok"),
            ("\"http://host:1/v1#part\"", "\"http://host:1/v1?***\""),
            ("https://a@b@host x://y", "https://***@host x://y"),
            ("{\"http://host/x?key={{secret:a-1}}\"}", "{\"http://host/x?***\"}"),
            ("no address", "no address"),
        ] {
            assert_eq!(mask_addresses(text), expected);
        }
    }

    #[test]
    fn logs_keep_facts_and_no_texts() {
        let log = "T approval decided call=c1 allowed=true reason=\"say \\\"x=\\\" to \\\\\" ms=3\n\
                   T panic thread=\"main\" at=a.rs:1:2 message=\"a fault\"\nT turn end outcome=complete\n\
                   T warning text=\"cut";
        let expected = "T approval decided call=c1 allowed=true reason=<16 bytes> ms=3\n\
                        T panic thread=\"main\" at=a.rs:1:2 message=\"a fault\"\n\
                        T turn end outcome=complete\nT warning text=<2 bytes>\n";
        assert_eq!(reduce_log(log), expected);
    }

    proptest! {
        #[test]
        fn bug_report_log_never_contains_quoted_values(text in "\\PC{0,30}") {
            let secret = format!("hunter2{text}hunter2");
            let reduced = reduce_log(&format!("T warning text={secret:?} n=1"));
            prop_assert!(!reduced.contains("hunter2") && reduced.ends_with(" n=1\n"), "{}", reduced);
            let masked = mask_addresses(&secret);
            prop_assert!(masked.starts_with("hunter2"));
        }
    }
}
