//! Settings of a project for other agents, or for a later gnoma, which nothing here acts on.
//!
//! gnoma looks for them at every start: people who rely on a hook that blocks must learn that it does not. Of what
//! the files say, only the names of their sections are shown.

use std::{fs::File, io::Read as _, path::Path};

use serde_json::Value;

/// What is read of a file at most; more is taken for something configured.
const MAX_BYTES: u64 = 256 << 10;

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

/// Files and folders that count as soon as they hold anything.
const PLACES: [(&str, &str); 1] =
    [(".codex/config.toml", "settings of another agent, with its limits and servers")];

/// One sentence for each configured control below `root` that does nothing.
#[must_use]
pub(crate) fn idle(root: &Path) -> Vec<String> {
    let mut said = Vec::new();
    for name in FILES {
        let found = configured(&root.join(name));
        if !found.is_empty() {
            said.push(format!(
                "`{name}` has {}: gnoma does not support it, so it neither blocks nor runs \
                 anything",
                found.join(", ")
            ));
        }
    }
    for (name, what) in PLACES {
        let place = root.join(name);
        let holds_any = match place.read_dir() {
            Ok(mut entries) => entries.next().is_some(),
            Err(_) => place.metadata().is_ok_and(|file| file.is_file() && file.len() > 0),
        };
        if holds_any {
            said.push(format!("`{name}` has {what}: gnoma does not support them yet"));
        }
    }
    said
}

/// Which of the sections hold something. A file that cannot be read is named where its rules are applied, see
/// [`crate::claude_rules`].
fn configured(path: &Path) -> Vec<String> {
    // A pipe is not opened: that would wait for whoever fills it.
    let Ok(facts) = path.metadata() else { return Vec::new() };
    let mut text = String::new();
    let mut read = |file: File| file.take(MAX_BYTES).read_to_string(&mut text).is_ok();
    let is_read = facts.is_file() && File::open(path).is_ok_and(&mut read);
    let value: Option<Value> = gnoma_core::json::from_hand(&text).ok().filter(|_| is_read);
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
    fn controls_that_do_nothing_are_named_and_not_quoted() {
        let root = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        assert_eq!(idle(root.path()), [""; 0]);
        put(".claude/settings.json", r#"{"model": "x", "hooks": {}, "permissions": {}}"#);
        assert_eq!(idle(root.path()), [""; 0]);
        put(
            ".claude/settings.json",
            r#"{"permissions": {"deny": ["c4nary"], "allow": ["c4nary"]}}"#,
        );
        put(".claude/settings.local.json", "{ not JSON, \"sandbox\"");
        put(".codex/config.toml", "notify = ['c4nary']");
        let said = idle(root.path()).join("\n");
        for part in ["settings.json` has `permissions.allow`:", ".codex"] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert!(!said.contains("settings.local.json"), "nobody knows what it has: {said}");
        assert!(!said.contains("c4nary"), "{said}");
    }
}
