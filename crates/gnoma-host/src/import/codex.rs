//! Codex: `~/.codex/config.toml`, prompts, instructions. Its `hooks.json` is used in place.

use std::path::{Path, PathBuf};

use gnoma_config::toml;
use serde_json::Value;

use super::files::{markdown_files, read_small};
use super::{
    plan::{ImportPlan, ImportStep},
    translate::{from_zero, left_keys, take_server},
};

/// Keys of the settings that are taken over or said by themselves.
const TAKEN: [&str; 6] =
    ["approval_policy", "hooks", "mcp_servers", "model", "model_provider", "sandbox_mode"];

pub(super) fn add_to_plan(home: &Path, named: Option<&str>, plan: &mut ImportPlan) {
    let root = named.map_or_else(|| home.join(".codex"), PathBuf::from);
    match read_small(&root.join("config.toml")) {
        Ok(Some(text)) => match text.parse::<toml::Table>() {
            Ok(table) => add_settings(&table, plan),
            Err(error) => {
                plan.left.push(format!("~/.codex/config.toml is not valid TOML: {error}"));
            }
        },
        Ok(None) => (),
        Err(why) => plan.left.push(format!("~/.codex/config.toml cannot be read: {why}")),
    }
    if root.join("hooks.json").is_file() {
        plan.as_is.push("~/.codex/hooks.json: hooks".to_owned());
    }
    add_prompts(&root.join("prompts"), "~/.codex/prompts", plan);
    add_instructions(&root.join("AGENTS.md"), "~/.codex/AGENTS.md", plan);
}

/// Files of commands whose positions count from one.
pub(super) fn add_prompts(folder: &Path, place: &str, plan: &mut ImportPlan) {
    for (name, text) in markdown_files(folder) {
        let (to, from) = (format!("commands/{name}"), format!("{place}/{name}"));
        match text {
            Ok(text) => plan.steps.push(ImportStep::File { to, text: from_zero(&text), from }),
            Err(why) => plan.left.push(format!("{from} cannot be read: {why}")),
        }
    }
}

/// A file of instructions, which becomes the person's own.
pub(super) fn add_instructions(path: &Path, place: &str, plan: &mut ImportPlan) {
    match read_small(path) {
        Ok(Some(text)) => {
            let (to, from) = ("AGENTS.md".to_owned(), place.to_owned());
            plan.steps.push(ImportStep::File { to, text, from });
        }
        Ok(None) => (),
        Err(why) => plan.left.push(format!("{place} cannot be read: {why}")),
    }
}

fn add_settings(table: &toml::Table, plan: &mut ImportPlan) {
    let servers = table.get("mcp_servers").and_then(toml::Value::as_table);
    for (name, entry) in servers.into_iter().flatten() {
        let entry: Value = serde_json::to_value(entry).unwrap_or_default();
        take_server(name, &entry, plan);
    }
    let text = |name: &str| table.get(name).and_then(toml::Value::as_str);
    if let Some(policy) = text("approval_policy") {
        let (own, note) = match policy {
            "untrusted" => ("default", ""),
            "never" => ("accept_edits", ", which still asks about commands that are not safe"),
            _ => ("auto", ""),
        };
        plan.left.push(format!(
            "set `approval_policy = \"{policy}\"` yourself: the closest mode is `gnoma config \
             set permission.mode {own}`{note}"
        ));
    }
    if let Some(mode) = text("sandbox_mode") {
        plan.left.push(format!(
            "`sandbox_mode = \"{mode}\"`: commands always run in gnoma's sandbox (`gnoma doctor`, `[sandbox]`)"
        ));
    }
    if let Some(model) = text("model") {
        plan.left.push(format!(
            "set the model `{model}` yourself: `gnoma models` lists them, `gnoma config set \
             provider.model NAME` chooses one"
        ));
    }
    if table.contains_key("hooks") {
        plan.left.push(
            "the hooks in ~/.codex/config.toml are not read; put them into `hooks.json` beside it"
                .to_owned(),
        );
    }
    left_keys(table.keys(), &TAKEN, "~/.codex/config.toml", plan);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codex_approval_policy_never_maps_to_accept_edits() {
        let table: toml::Table = toml::from_str("approval_policy = \"never\"").unwrap();
        let mut plan = ImportPlan::default();
        add_settings(&table, &mut plan);
        assert!(plan.left[0].contains("permission.mode accept_edits`"), "{:?}", plan.left);
    }
}
