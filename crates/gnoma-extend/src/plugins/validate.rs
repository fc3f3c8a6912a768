//! Validates a plugin or marketplace folder, strictly. What sessions only warn of is a problem here.

use std::{path::Path, sync::Arc};

use super::{
    manifest::{FILES, Manifest, file_of, read_json_file},
    market::{Market, MarketSource},
    tree,
};
use crate::{
    agents::load_agents,
    commands::load_commands,
    hooks, mcp,
    places::{ExtendPlaces, ExtensionSource},
    skills,
};

/// Returns what is wrong with the plugin or the marketplace in a folder, a sentence each.
#[must_use]
pub fn validate_folder(root: &Path) -> Vec<String> {
    if !root.is_dir() {
        return vec!["there is no such folder".to_owned()];
    }
    match Market::read(root) {
        Err(error) => vec![error.to_string()],
        Ok(Some(market)) => {
            let mut problems = of_market(root, &market);
            if file_of(root).is_some() {
                problems.extend(of_plugin(root));
            }
            problems
        }
        Ok(None) => of_plugin(root),
    }
}

fn of_market(root: &Path, market: &Market) -> Vec<String> {
    let mut problems = market.faults.clone();
    for entry in &market.entries {
        let name = &entry.name;
        match &entry.source {
            Err(why) => problems.push(format!("`{name}`: {why}")),
            Ok(MarketSource::Git { .. }) => (),
            Ok(MarketSource::Inside(path)) => {
                let folder = root.join(path);
                let found = if folder.is_dir() {
                    of_plugin(&folder)
                } else {
                    vec![format!("there is no folder `{path}`")]
                };
                problems.extend(found.into_iter().map(|why| format!("`{name}`: {why}")));
            }
        }
        if !entry.unused.is_empty() {
            let unused = entry.unused.join("`, `");
            problems.push(format!("`{name}`: gnoma does not support `{unused}` in its entry"));
        }
    }
    problems
}

fn of_plugin(root: &Path) -> Vec<String> {
    let mut problems = Vec::new();
    if let Err(error) = tree::read_tree(root) {
        problems.push(error.to_string());
    }
    match file_of(root).map(|path| read_json_file(&path)) {
        None => problems.push(format!("it has no manifest (`{}` or `{}`)", FILES[0], FILES[2])),
        Some(Err(error)) => return vec![error.to_string()],
        Some(Ok(document)) => check_manifest_facts(&document, &mut problems),
    }
    let manifest = match Manifest::read(root, ExtensionSource::User, None) {
        Ok(manifest) => manifest,
        Err(error) => {
            problems.push(error.to_string());
            return problems;
        }
    };
    problems.extend(manifest.faults.iter().cloned());
    problems.extend(hooks::of_plugin(&manifest.place).faults);
    problems.extend(mcp::of_plugin(&manifest.place, &|_| Some(String::new())).faults);
    let nowhere = root.join(".gnoma-nowhere");
    let places = ExtendPlaces {
        config_dir: nowhere.clone(),
        project: nowhere,
        plugins: vec![Arc::new(manifest.place)],
        ..ExtendPlaces::default()
    };
    let (found, faults) = skills::load_skills(&places);
    problems.extend(faults);
    for skill in found.iter().filter(|skill| skill.by != ExtensionSource::Bundled) {
        let name = &skill.name;
        problems.extend(skill.warnings.iter().map(|why| format!("the skill `{name}`: {why}")));
    }
    problems.extend(load_commands(&places).1);
    problems.extend(load_agents(&places).1);
    problems
}

/// Adds what is wrong with a manifest's statements about the plugin to `problems`.
fn check_manifest_facts(document: &serde_json::Value, problems: &mut Vec<String>) {
    let text = |name: &str| document.get(name).and_then(|value| value.as_str());
    match text("name") {
        None => problems.push("its manifest has no `name`".to_owned()),
        Some(name) if name.chars().any(|c| c.is_uppercase() || c == '_') => {
            problems.push(format!("its name `{name}` should be lower case, with hyphens"));
        }
        Some(_) => (),
    }
    if let Some(version) = text("version").filter(|version| !is_version(version)) {
        problems.push(format!("its version `{version}` does not have the form 1.2.3"));
    }
}

/// Reports whether a version has three numbers, and perhaps more after `-` or `+`.
fn is_version(text: &str) -> bool {
    let numbers = text.split(['-', '+']).next().unwrap_or_default();
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    numbers.split('.').count() == 3 && numbers.split('.').all(is_number)
}
