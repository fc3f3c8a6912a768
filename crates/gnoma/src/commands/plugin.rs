//! `gnoma plugin`: installs, shows, updates, approves and removes plugins.

use std::path::Path;

use anyhow::Result;
use gnoma_core::json_value::json;
use gnoma_extend::{
    BroughtBy,
    plugins::{FoundPlugin, PluginNews, PluginState, TreeChange, overview, validate},
};
use gnoma_host::{HostError, Project, plugins};

use super::common::{print, print_json, project};
use crate::{
    args::{PluginSub, TurnArgs},
    environment::ProcessEnvironment,
    report::{self, Exit},
    screen, table, terminal,
};

/// Most files that are named of a difference.
const MAX_NAMED: usize = 50;
/// Digits of a hash that are shown.
const SHOWN_DIGITS: usize = 23;

pub(super) fn run(what: &PluginSub, args: &TurnArgs, around: &ProcessEnvironment) -> Result<Exit> {
    let project = project(args, around)?;
    let installer = plugins::installer(&project);
    match what {
        PluginSub::Install { source } => {
            let news = installer.install(source).map_err(HostError::usage)?;
            let name = &news.manifest.name;
            print(&format!(
                "installed {}; it is loaded from the next session on, as long as its content does not change\n{}\
                 Undo with `gnoma plugin remove {name}`.\n",
                titled(&news),
                acts(&news)
            ))
        }
        PluginSub::List { json } => list(&project, *json),
        PluginSub::Update { name } => {
            let names = match name {
                Some(name) => vec![name.clone()],
                None => own(&project).map(|plugin| plugin.name.clone()).collect(),
            };
            update(&project, &names)
        }
        PluginSub::Trust { name, revoke: true, .. } => {
            let was = installer.revoke(name).map_err(HostError::usage)?;
            let text = if was { "is no longer approved" } else { "was not approved" };
            print(&format!("`{name}` {text}\n"))
        }
        PluginSub::Trust { name, revoke: false, yes } => trust(&project, name, *yes, around),
        PluginSub::Remove { name } => {
            refuse_of_project(&project, name)?;
            installer.remove(name).map_err(HostError::usage)?;
            print(&format!("removed the plugin `{name}`\n"))
        }
        PluginSub::Validate { folder } => check(&project.spec.folder.join(folder), folder),
    }
}

/// Shows what a plugin can do and what changed, and approves it after a yes.
fn trust(
    project: &Project,
    name: &str,
    is_confirmed: bool,
    around: &ProcessEnvironment,
) -> Result<Exit> {
    refuse_of_project(project, name)?;
    let installer = plugins::installer(project);
    let news = installer.preview(name).map_err(HostError::usage)?;
    let changed = changes(&news.change);
    let note = if changed.is_empty() { "" } else { "since it was approved last:\n" };
    let told = format!("{}\n{note}{changed}{}{}", titled(&news), news.diff, acts(&news));
    print(&screen::clean(&told))?;
    if !is_confirmed {
        let Some(terminal) = terminal::open(around) else {
            let remedy = format!(
                "read the above; `gnoma plugin trust {name} --yes` approves it without a question"
            );
            let error =
                HostError::usage(format!("`{name}` is not approved: nobody can be asked here"));
            return Err(HostError { remedy: Some(remedy), ..error }.into());
        };
        if !terminal::is_yes(&terminal, "Approve this plugin? [y/N] ") {
            print(&format!("`{name}` is not approved\n"))?;
            return Ok(Exit::Failed);
        }
    }
    installer.approve(name, &news.tree).map_err(HostError::usage)?;
    print(&format!("approved {}, as long as its content does not change\n", titled(&news)))
}

/// The plugins that the person has installed.
fn own(project: &Project) -> impl Iterator<Item = &FoundPlugin> {
    let all = plugins::found(project).all.iter();
    all.filter(|plugin| plugin.by == BroughtBy::User && !plugin.source.is_empty())
}

fn refuse_of_project(project: &Project, name: &str) -> Result<(), HostError> {
    let mut named = plugins::found(project).all.iter().filter(|plugin| plugin.name == name);
    match named.next() {
        Some(plugin) if plugin.by == BroughtBy::Project && named.next().is_none() => {
            let place = plugin.root.display();
            Err(HostError::usage(format!(
                "`{name}` is a plugin of this project, in {place}: `gnoma trust` decides about it"
            )))
        }
        _ => Ok(()),
    }
}

fn titled(news: &PluginNews) -> String {
    let PluginNews { manifest, tree, .. } = news;
    let version = if manifest.version.is_empty() { "" } else { " " };
    let hash = tree.hash.get(..SHOWN_DIGITS).unwrap_or(&tree.hash);
    format!("`{}`{version}{} ({hash}…)", manifest.name, manifest.version)
}

/// Lists what the plugin would be able to do, a line each.
fn acts(news: &PluginNews) -> String {
    let lines = overview(&news.manifest, &news.tree.files);
    lines.iter().map(|line| format!("  {line}\n")).collect()
}

/// Lists the files that differ, a line each.
fn changes(change: &TreeChange) -> String {
    let kinds = [("+", &change.added), ("-", &change.removed), ("~", &change.changed)];
    let all = kinds.into_iter().flat_map(|(sign, names)| names.iter().map(move |it| (sign, it)));
    let mut text: String =
        all.clone().take(MAX_NAMED).map(|(sign, name)| format!("  {sign} {name}\n")).collect();
    let more = all.count().saturating_sub(MAX_NAMED);
    if more > 0 {
        text.push_str(&format!("  and {more} more\n"));
    }
    text
}

fn update(project: &Project, names: &[String]) -> Result<Exit> {
    if names.is_empty() {
        return print("no plugins are installed\n");
    }
    let installer = plugins::installer(project);
    let (mut text, mut failed) = (String::new(), false);
    for name in names {
        match installer.update(name) {
            Err(why) => {
                failed = true;
                report::say(format_args!("`{name}` was not updated: {why}"));
            }
            Ok(news) if news.is_approved && news.change.is_empty() => {
                text.push_str(&format!("{} is up to date\n", titled(&news)));
            }
            Ok(news) => text.push_str(&format!(
                "updated {}:\n{}{}It is not loaded until you approve it: `gnoma plugin trust {name}`.\n",
                titled(&news),
                changes(&news.change),
                news.diff
            )),
        }
    }
    print(&text)?;
    Ok(if failed { Exit::Failed } else { Exit::Done })
}

fn list(project: &Project, as_json: bool) -> Result<Exit> {
    let found = plugins::found(project);
    if as_json {
        return print_json(&found.all.iter().map(facts).collect());
    }
    found.faults.iter().for_each(|fault| report::say(format_args!("warning: {fault}")));
    if found.all.is_empty() {
        return print("no plugins. `gnoma plugin install FOLDER` installs one\n");
    }
    let rows = found.all.iter().map(|plugin| {
        [
            plugin.name.clone(),
            plugin.version.clone(),
            plugin.by.to_string(),
            plugins::described(plugin),
            plugin.description.clone(),
        ]
    });
    print(&table::lines(["plugin", "version", "from", "loaded", "what it is for"], rows))
}

fn facts(plugin: &FoundPlugin) -> serde_json::Value {
    json!({
        "name": plugin.name,
        "version": plugin.version,
        "description": plugin.description,
        "from": plugin.by.to_string(),
        "source": plugin.source,
        "folder": plugin.root.display().to_string(),
        "is_loaded": plugin.state == PluginState::Active,
        "loaded": plugins::described(plugin),
        "not_used": plugin.faults,
    })
}

fn check(folder: &Path, named: &Path) -> Result<Exit> {
    let problems = validate(folder);
    let shown = named.display();
    if problems.is_empty() {
        return print(&format!("{shown}: valid\n"));
    }
    let lines: String = problems.iter().map(|problem| format!("  - {problem}\n")).collect();
    print(&format!("{shown}: not valid\n{lines}"))?;
    Ok(Exit::Failed)
}
