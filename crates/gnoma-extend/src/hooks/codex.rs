//! Hooks as Codex keeps them in `config.toml`, in the form of its `hooks.json`, and which of its hooks the person
//! has switched off there.

use std::{collections::HashSet, path::Path};

use serde_json::Value;

use super::error::HookFileError;
use crate::places::read_text;

/// The folder of Codex's settings, in the home and in the project.
pub(super) const FOLDER: &str = ".codex";
/// The file that holds them.
pub(super) const SETTINGS: &str = "config.toml";
/// The key among the hooks that is not an event: it says which of them are switched off.
pub(super) const STATE: &str = "state";

/// The choices that the person made about Codex's hooks.
#[derive(Debug, Default)]
pub(super) struct CodexChoices {
    /// None of them runs.
    pub(super) all_off: bool,
    off: HashSet<String>,
}

impl CodexChoices {
    /// Those of the settings in a home. A project chooses nothing about hooks.
    pub(super) fn from_home(home: Option<&Path>) -> Self {
        let settings = home.map(|home| home.join(FOLDER).join(SETTINGS));
        let Some(Ok(value)) =
            settings.filter(|path| path.is_file()).map(|path| read_settings(&path))
        else {
            return Self::default();
        };
        let feature =
            |name: &str| value.pointer(&format!("/features/{name}")).and_then(Value::as_bool);
        let all_off = feature("hooks").or_else(|| feature("codex_hooks")) == Some(false);
        let state = value.pointer("/hooks/state").and_then(Value::as_object).into_iter().flatten();
        let is_off = |state: &Value| state.get("enabled").and_then(Value::as_bool) == Some(false);
        let off = state.filter(|(_, state)| is_off(state)).map(|(key, _)| key.clone()).collect();
        Self { all_off, off }
    }

    /// Reports whether the hook at that place in a file is switched off: the `hook`th of the `group`th group of an
    /// event.
    pub(super) fn is_off(&self, file: &Path, event: &str, (group, hook): (usize, usize)) -> bool {
        if self.off.is_empty() {
            return false;
        }
        let place = format!(":{}:{group}:{hook}", in_small_letters(event));
        let is_named = |file: &Path| self.off.contains(&format!("{}{place}", file.display()));
        is_named(file) || file.canonicalize().is_ok_and(|real| is_named(&real))
    }
}

/// Converts the name of an event to snake case: `PreToolUse` becomes `pre_tool_use`.
fn in_small_letters(event: &str) -> String {
    let mut text = String::new();
    for (at, c) in event.char_indices() {
        if c.is_ascii_uppercase() && at > 0 {
            text.push('_');
        }
        text.push(c.to_ascii_lowercase());
    }
    text
}

/// Reads the settings as a document like those of other files.
pub(super) fn read_settings(path: &Path) -> Result<Value, HookFileError> {
    Ok(toml::from_str(&read_text(path)?)?)
}
