//! Settings of a project for other agents, or for a later gnoma, which nothing here acts on.
//!
//! gnoma looks for them at every start: people who rely on a hook that blocks must learn that it does not. Of what
//! the files say, only the names of their sections are shown.

use std::path::Path;

use gnoma_config::toml;
use gnoma_core::bounded_file;
use serde_json::Value;

/// The most bytes that are read of a file; a longer file counts as one that configures something.
const MAX_BYTES: u64 = 256 << 10;
/// Most settings that are named, and most characters of a name.
const MAX_NAMES: usize = 8;
const MAX_NAME_CHARS: usize = 40;

/// Settings of Claude Code, and the sections of them that gnoma does not act on, as pointers into JSON. Those that
/// restrict it applies, see [`crate::claude_rules`].
const FILES: [&str; 2] = [".claude/settings.json", ".claude/settings.local.json"];
const SECTIONS: [&str; 5] = [
    "/permissions/allow",
    "/permissions/additionalDirectories",
    "/permissions/defaultMode",
    "/permissions/disableBypassPermissionsMode",
    "/sandbox",
];

/// Codex's settings, and what gnoma acts on in a project's: its hooks.
const CODEX_FILE: &str = ".codex/config.toml";
const CODEX_SECTIONS: [&str; 1] = ["hooks"];

/// One sentence for each configured control below `root` that does nothing.
#[must_use]
pub(crate) fn ignored_controls(root: &Path) -> Vec<String> {
    let mut said = Vec::new();
    for name in FILES {
        let found = configured_sections(&root.join(name));
        if !found.is_empty() {
            said.push(format!(
                "`{name}` has {}: gnoma ignores it, so it neither blocks nor runs anything",
                found.join(", ")
            ));
        }
    }
    let codex = idle_codex_settings(&root.join(CODEX_FILE));
    if !codex.is_empty() {
        said.push(format!(
            "`{CODEX_FILE}` has {}: gnoma uses only the hooks of this file, so the rest has no effect",
            codex.join(", ")
        ));
    }
    said
}

/// The settings of Codex in a project that gnoma does not act on. Names come from the project: they are cut and escaped.
fn idle_codex_settings(path: &Path) -> Vec<String> {
    let Some(text) = read_text_start(path) else { return Vec::new() };
    let Ok(table) = toml::from_str::<toml::Table>(&text) else {
        return vec!["settings that are not valid TOML".to_owned()];
    };
    let idle = table.keys().filter(|key| !CODEX_SECTIONS.contains(&key.as_str()));
    let mut named: Vec<String> = idle
        .map(|key| {
            format!("`{}`", key.chars().take(MAX_NAME_CHARS).collect::<String>().escape_debug())
        })
        .collect();
    if named.len() > MAX_NAMES {
        let more = named.split_off(MAX_NAMES).len();
        named.push(format!("{more} more"));
    }
    named
}

/// The beginning of a file; `None` if it is no file or cannot be read.
fn read_text_start(path: &Path) -> Option<String> {
    String::from_utf8(bounded_file::read_start(path, MAX_BYTES).ok()?).ok()
}

/// Returns the names of the sections that hold something. A file that cannot be read is named where its rules are
/// applied, see [`crate::claude_rules`].
fn configured_sections(path: &Path) -> Vec<String> {
    if path.metadata().is_err() {
        return Vec::new();
    }
    let value: Option<Value> =
        read_text_start(path).and_then(|text| gnoma_core::json::from_hand(&text).ok());
    let holds = |section: &&str| match value.as_ref().map(|value| value.pointer(section)) {
        None | Some(None | Some(Value::Null)) => false,
        Some(Some(Value::Object(fields))) => !fields.is_empty(),
        Some(Some(Value::Array(items))) => !items.is_empty(),
        Some(Some(_)) => true,
    };
    let name = |section: &str| format!("`{}`", section.trim_start_matches('/').replace('/', "."));
    SECTIONS.into_iter().filter(holds).map(name).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn ignored_settings_of_other_agents_are_named_without_their_values() {
        let root = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        assert_eq!(ignored_controls(root.path()), [""; 0]);
        put(".claude/settings.json", r#"{"model": "x", "hooks": {}, "permissions": {}}"#);
        assert_eq!(ignored_controls(root.path()), [""; 0]);
        put(
            ".claude/settings.json",
            r#"{"permissions": {"deny": ["c4nary"], "allow": ["c4nary"]}}"#,
        );
        put(".claude/settings.local.json", "{ not JSON, \"sandbox\"");
        put(".codex/config.toml", "notify = ['c4nary']");
        let said = ignored_controls(root.path()).join("\n");
        for part in ["settings.json` has `permissions.allow`:", ".codex"] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert!(!said.contains("settings.local.json"), "nobody knows what it has: {said}");
        assert!(!said.contains("c4nary"), "{said}");
        assert!(
            said.contains("`.codex/config.toml` has `notify`: gnoma uses only the hooks"),
            "{said}"
        );
    }

    #[test]
    fn named_pipes_in_place_of_settings_are_not_waited_for() {
        let root = tempfile::tempdir().unwrap();
        for name in [".claude/settings.json", CODEX_FILE] {
            let pipe = root.path().join(name);
            fs::create_dir_all(pipe.parent().unwrap()).unwrap();
            assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        }
        drop(ignored_controls(root.path()));
    }

    #[test]
    fn codex_hooks_are_not_reported_as_ignored() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join(CODEX_FILE);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let idle_with = |text: &str| {
            fs::write(&file, text).unwrap();
            ignored_controls(root.path()).join("\n")
        };
        assert_eq!(idle_with(""), "");
        assert_eq!(idle_with("[[hooks.PreToolUse]]\nmatcher = 'x'\n"), "");
        let servers =
            idle_with("sandbox_mode = 'read-only'\n[hooks]\n[mcp_servers.x]\ncommand = 'y'\n");
        assert!(servers.contains("`mcp_servers`, `sandbox_mode`:"), "{servers}");
        assert!(idle_with("not = = toml").contains("not valid TOML"));
        let many: String = (0..50).map(|n| format!("k{n:02} = 1\n")).collect();
        assert!(idle_with(&many).contains("`k07`, 42 more:"), "{}", idle_with(&many));
    }
}
