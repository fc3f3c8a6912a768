//! Claude Code: `~/.claude/settings.json` and `~/.claude.json`. Hooks, commands, skills and agents are used in
//! place.

use std::path::Path;

use serde_json::Value;

use super::files::read_json;
use super::{
    plan::ImportPlan,
    translate::{left_keys, take_rule, take_server},
};

/// Keys of the settings that are taken over, read where they are, or said by themselves.
const TAKEN: [&str; 7] =
    ["$schema", "defaultMode", "enabledPlugins", "env", "hooks", "model", "permissions"];

pub(super) fn add_to_plan(home: &Path, folder: &Path, plan: &mut ImportPlan) {
    for name in ["settings.json", "settings.local.json"] {
        let path = home.join(".claude").join(name);
        match read_json(&path) {
            Ok(Some(settings)) => add_settings(home, &format!("~/.claude/{name}"), &settings, plan),
            Ok(None) => (),
            Err(why) => plan.left.push(format!("~/.claude/{name} cannot be read: {why}")),
        }
    }
    match read_json(&home.join(".claude.json")) {
        Ok(Some(state)) => add_state(folder, &state, plan),
        Ok(None) => (),
        Err(why) => plan.left.push(format!("~/.claude.json cannot be read: {why}")),
    }
    for (name, what) in
        [("commands", "commands"), ("skills", "skills"), ("agents", "definitions of sub-agents")]
    {
        if home.join(".claude").join(name).is_dir() {
            plan.as_is.push(format!("~/.claude/{name}: {what}"));
        }
    }
    if home.join(".claude/CLAUDE.md").is_file() {
        plan.as_is.push("~/.claude/CLAUDE.md: instructions".to_owned());
    }
}

fn add_settings(home: &Path, place: &str, settings: &Value, plan: &mut ImportPlan) {
    if settings.get("hooks").is_some_and(|hooks| hooks.as_object().is_some_and(|it| !it.is_empty()))
    {
        plan.as_is.push(format!("{place}: hooks"));
    }
    let permissions = settings.get("permissions");
    for action in ["allow", "ask", "deny"] {
        let list = permissions.and_then(|all| all.get(action)).and_then(Value::as_array);
        let rules = list.into_iter().flatten().filter_map(Value::as_str);
        rules.for_each(|rule| take_rule(action, rule, plan));
    }
    add_permission_mode(permissions, plan);
    let folders = permissions.and_then(|all| all.get("additionalDirectories"));
    if folders.and_then(Value::as_array).is_some_and(|all| !all.is_empty()) {
        plan.left.push("add folders when you start gnoma: `gnoma --add-dir FOLDER`".to_owned());
    }
    if let Some(model) = settings.get("model").and_then(Value::as_str) {
        plan.left.push(format!(
            "set the model `{model}` yourself: `gnoma models` lists them, `gnoma config set \
             provider.model NAME` chooses one"
        ));
    }
    if let Some(names) = settings.get("env").and_then(Value::as_object) {
        let names: Vec<&str> = names.keys().map(String::as_str).collect();
        plan.left.push(format!(
            "gnoma sets no variables for programs; set `{}` in your shell",
            names.join("`, `")
        ));
    }
    add_plugins(home, settings, plan);
    let keys = settings.as_object().into_iter().flatten().map(|(key, _)| key);
    left_keys(keys, &TAKEN, place, plan);
}

/// The mode, which is left to the person.
fn add_permission_mode(permissions: Option<&Value>, plan: &mut ImportPlan) {
    let mode = permissions.and_then(|all| all.get("defaultMode")).and_then(Value::as_str);
    let own = match mode {
        Some("acceptEdits") => Some("accept_edits"),
        Some("plan") => Some("plan"),
        Some("default") => Some("default"),
        Some("dontAsk") => Some("deny"),
        _ => None,
    };
    match (mode, own) {
        (Some(mode), Some(own)) => plan.left.push(format!(
            "set the mode `{mode}` yourself: `gnoma config set permission.mode {own}`"
        )),
        (Some(mode), None) => plan.left.push(format!("the mode `{mode}` was not imported")),
        (None, _) => (),
    }
}

/// Plugins that are switched on, and where they are.
fn add_plugins(home: &Path, settings: &Value, plan: &mut ImportPlan) {
    let enabled = settings.get("enabledPlugins").and_then(Value::as_object);
    let index = read_json(&home.join(".claude/plugins/installed_plugins.json"));
    let index = index.ok().flatten().unwrap_or_default();
    for (name, _) in enabled.into_iter().flatten().filter(|(_, on)| **on == Value::Bool(true)) {
        let entry = index.get("plugins").and_then(|all| all.get(name));
        let entry = entry.map(|entry| entry.get(0).unwrap_or(entry));
        let path = entry.and_then(|entry| entry.get("installPath")).and_then(Value::as_str);
        let path = path.unwrap_or("FOLDER");
        plan.left.push(format!(
            "install the plugin `{name}` yourself: `gnoma plugin install {path}` shows what that \
             allows"
        ));
    }
}

/// Servers that were added for all projects, and for this one.
fn add_state(folder: &Path, state: &Value, plan: &mut ImportPlan) {
    let project = folder.to_str().and_then(|folder| state.get("projects")?.get(folder));
    for servers in [Some(state), project].into_iter().flatten() {
        let servers = servers.get("mcpServers").and_then(Value::as_object);
        for (name, entry) in servers.into_iter().flatten() {
            take_server(name, entry, plan);
        }
    }
}
