//! opencode: `~/.config/opencode/opencode.json` (or `.jsonc`), its commands and instructions.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::files::read_json;
use super::{
    codex::{add_instructions, add_prompts},
    plan::{ImportPlan, ImportStep},
    translate::{from_zero, left_keys, take_own_rule, take_server},
};

/// Keys of the settings that are taken over or said by themselves.
const TAKEN: [&str; 7] = ["$schema", "agent", "command", "mcp", "model", "permission", "plugin"];

pub(super) fn add_to_plan(home: &Path, config_home: Option<&str>, plan: &mut ImportPlan) {
    let base = config_home.map_or_else(|| home.join(".config"), PathBuf::from);
    let root = base.join("opencode");
    for name in ["opencode.json", "opencode.jsonc", "config.json"] {
        let place = format!("~/.config/opencode/{name}");
        match read_json(&root.join(name)) {
            Ok(Some(settings)) => add_settings(&place, &settings, plan),
            Ok(None) => (),
            Err(why) => plan.left.push(format!("{place} cannot be read: {why}")),
        }
    }
    for folder in ["command", "commands"] {
        add_prompts(&root.join(folder), &format!("~/.config/opencode/{folder}"), plan);
    }
    add_instructions(&root.join("AGENTS.md"), "~/.config/opencode/AGENTS.md", plan);
    for folder in ["agent", "agents", "plugin", "plugins"] {
        if root.join(folder).is_dir() {
            plan.left.push(format!(
                "~/.config/opencode/{folder}: gnoma does not run JavaScript; write the \
                 sub-agents again as files in ~/.config/gnoma/agents"
            ));
        }
    }
}

fn add_settings(place: &str, settings: &Value, plan: &mut ImportPlan) {
    let fields = |name: &str| settings.get(name).and_then(Value::as_object).into_iter().flatten();
    for (name, entry) in fields("mcp") {
        take_server(name, entry, plan);
    }
    for (name, value) in fields("permission") {
        add_permission(name, value, plan);
    }
    for (name, entry) in fields("command") {
        let text = |name: &str| entry.get(name).and_then(Value::as_str);
        let Some(template) = text("template") else {
            plan.left.push(format!("the command `{name}` has no `template`"));
            continue;
        };
        let about = text("description").unwrap_or_default().replace('"', "'");
        let head =
            if about.is_empty() { about } else { format!("---\ndescription: \"{about}\"\n---\n") };
        let is_plain = name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'));
        if !is_plain {
            plan.left.push(format!("the command `{name}` has a name that gnoma does not allow"));
            continue;
        }
        plan.steps.push(ImportStep::File {
            to: format!("commands/{name}.md"),
            text: format!("{head}{}", from_zero(template)),
            from: place.to_owned(),
        });
    }
    if let Some(model) = settings.get("model").and_then(Value::as_str) {
        plan.left.push(format!(
            "set the model `{model}` yourself: `gnoma models` lists them, `gnoma --model \
             {model}` uses one"
        ));
    }
    for name in ["agent", "plugin"] {
        if settings.get(name).is_some() {
            plan.left.push(format!(
                "`{name}` in {place}: gnoma does not run JavaScript, and its \
                                    sub-agents are files in ~/.config/gnoma/agents"
            ));
        }
    }
    let keys = settings.as_object().into_iter().flatten().map(|(key, _)| key);
    left_keys(keys, &TAKEN, place, plan);
}

/// Plans the import of the permissions for a tool, or for some commands.
fn add_permission(name: &str, value: &Value, plan: &mut ImportPlan) {
    let tools: &[&str] = match name {
        "edit" => &["fs.edit", "fs.write"],
        "read" => &["fs.read"],
        "bash" => &["bash"],
        _ => {
            return plan.left.push(format!("the permission `{name}`: gnoma has no such tool"));
        }
    };
    let action = |value: &Value| match value.as_str() {
        Some("allow") => Some("allow"),
        Some("ask") => Some("ask"),
        Some("deny") => Some("deny"),
        _ => None,
    };
    let each: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields.iter().map(|(key, it)| (key.clone(), it)).collect(),
        _ => vec![("*".to_owned(), value)],
    };
    for (pattern, value) in each {
        let Some(action) = action(value) else {
            plan.left.push(format!("the permission `{name}` has a value that gnoma does not know"));
            continue;
        };
        for tool in tools {
            let own =
                if pattern == "*" { (*tool).to_owned() } else { format!("{tool}({pattern})") };
            take_own_rule(action, own, &format!("{name}: {pattern}"), plan);
        }
    }
}
