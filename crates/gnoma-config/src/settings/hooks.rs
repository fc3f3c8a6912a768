//! Hooks of gnoma's own settings.

use std::time::Duration;

use super::section::Section;
use crate::{
    finding::{Origin, Place},
    layer::MergedLayers,
};

/// The list of hooks.
const HOOKS: &str = "hooks";

/// A hook: a program that is run at a point of a session's life.
#[derive(Clone, Debug)]
pub struct HookSetting {
    /// Name in messages; may be empty.
    pub name: String,
    /// The event at which the hook runs.
    pub event: String,
    /// `command`, `prompt`, `agent` or `http`.
    pub kind: String,
    /// The shell line, the question, or the address.
    pub exec: String,
    /// The model that is asked.
    pub model: Option<String>,
    /// The longest time that the hook may run.
    pub timeout: Option<Duration>,
    /// `true` if the session goes on where the hook's program fails.
    pub fails_open: bool,
    /// Glob of tool names; may be empty.
    pub tools: String,
    /// The configuration layer that the hook comes from.
    pub origin: Origin,
    /// The place where the hook was written: its first field.
    pub place: Place,
}

/// All hooks, the user's first.
pub(super) fn read_hooks(layers: &MergedLayers) -> Vec<HookSetting> {
    let list = Section::from_key(layers, HOOKS);
    let hook = |index| {
        let hook = list.item_section(index);
        let first = layers.first_within(hook.path())?;
        let fails_open = match hook.text("fail").as_deref() {
            Some(word) => word != "closed",
            None => hook.read_switch("fail_open").unwrap_or(true),
        };
        Some(HookSetting {
            name: hook.text("name").unwrap_or_default(),
            event: hook.text("event")?,
            kind: hook.text("type").unwrap_or_else(|| "command".to_owned()),
            exec: hook.text("exec")?,
            model: hook.text("model"),
            timeout: hook.duration("timeout").filter(|time| !time.is_zero()),
            fails_open,
            tools: hook.text("tool_pattern").unwrap_or_default(),
            origin: first.origin,
            place: first.place.clone(),
        })
    };
    (0..layers.list_length(HOOKS)).filter_map(hook).collect()
}
