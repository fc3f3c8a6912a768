//! `gnoma plugin`: installs, shows, updates, approves and removes plugins.

use std::path::Path;

use anyhow::Result;
use gnoma_core::json_value::json;
use gnoma_extend::{
    ExtensionSource,
    plugins::{
        FoundPlugin, PluginError, PluginReview, PluginState, TreeChange, describe_capabilities,
        validate_folder,
    },
};
use gnoma_host::{HostError, Project, plugins};

use super::common::{open_project, print_json, print_safe_text};
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
    let project = open_project(args, around)?;
    let installer = plugins::installer(&project);
    match what {
        PluginSub::Install { source } => {
            let news = installer.install(source).map_err(to_usage_error)?;
            let name = &news.manifest.name;
            print_safe_text(&format!(
                "installed {}; it is loaded from the next session on, as long as its content does not change\n{}\
                 Undo with `gnoma plugin remove {name}`.\n",
                plugin_title(&news),
                describe_actions(&news)
            ))
        }
        PluginSub::List { json } => list_plugins(&project, *json),
        PluginSub::Update { name } => {
            let names = match name {
                Some(name) => vec![name.clone()],
                None => installed_plugins(&project).map(|plugin| plugin.name.clone()).collect(),
            };
            update_plugins(&project, &names)
        }
        PluginSub::Trust { name, revoke: true, .. } => {
            let was = installer.revoke(name).map_err(to_usage_error)?;
            let text = if was { "is no longer approved" } else { "was not approved" };
            print_safe_text(&format!("`{name}` {text}\n"))
        }
        PluginSub::Trust { name, revoke: false, yes } => trust_plugin(&project, name, *yes, around),
        PluginSub::Remove { name } => {
            refuse_of_project(&project, name)?;
            installer.remove(name).map_err(to_usage_error)?;
            print_safe_text(&format!("removed the plugin `{name}`\n"))
        }
        PluginSub::Validate { folder } => check_folder(&project.spec.folder.join(folder), folder),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "`map_err` gives the error away")]
fn to_usage_error(error: PluginError) -> HostError {
    HostError::usage(error.to_string())
}

/// Shows what a plugin can do and what changed, and approves it after a yes.
fn trust_plugin(
    project: &Project,
    name: &str,
    is_confirmed: bool,
    around: &ProcessEnvironment,
) -> Result<Exit> {
    refuse_of_project(project, name)?;
    let installer = plugins::installer(project);
    let news = installer.preview(name).map_err(to_usage_error)?;
    let changed = describe_changes(&news.change);
    let note = if changed.is_empty() { "" } else { "since it was approved last:\n" };
    let told =
        format!("{}\n{note}{changed}{}{}", plugin_title(&news), news.diff, describe_actions(&news));
    print_safe_text(&screen::mark_unsafe_chars(&told))?;
    if !is_confirmed {
        let Some(terminal) = terminal::open_terminal(around) else {
            let remedy = format!(
                "read the above; `gnoma plugin trust {name} --yes` approves it without a question"
            );
            let error =
                HostError::usage(format!("`{name}` is not approved: nobody can be asked here"));
            return Err(HostError { remedy: Some(remedy), ..error }.into());
        };
        if !terminal::is_yes(&terminal, "Approve this plugin? [y/N] ") {
            print_safe_text(&format!("`{name}` is not approved\n"))?;
            return Ok(Exit::Failed);
        }
    }
    installer.approve(name, &news.tree).map_err(to_usage_error)?;
    print_safe_text(&format!(
        "approved {}, as long as its content does not change\n",
        plugin_title(&news)
    ))
}

/// The plugins that the person has installed.
fn installed_plugins(project: &Project) -> impl Iterator<Item = &FoundPlugin> {
    let all = plugins::project_plugins(project).all.iter();
    all.filter(|plugin| plugin.by == ExtensionSource::User && !plugin.source.is_empty())
}

fn refuse_of_project(project: &Project, name: &str) -> Result<(), HostError> {
    let mut named =
        plugins::project_plugins(project).all.iter().filter(|plugin| plugin.name == name);
    match named.next() {
        Some(plugin) if plugin.by == ExtensionSource::Project && named.next().is_none() => {
            let place = plugin.root.display();
            Err(HostError::usage(format!(
                "`{name}` is a plugin of this project, in {place}: `gnoma trust` decides about it"
            )))
        }
        _ => Ok(()),
    }
}

fn plugin_title(news: &PluginReview) -> String {
    let PluginReview { manifest, tree, .. } = news;
    let version = if manifest.version.is_empty() { "" } else { " " };
    let hash = tree.hash.get(..SHOWN_DIGITS).unwrap_or(&tree.hash);
    format!("`{}`{version}{} ({hash}…)", manifest.name, manifest.version)
}

/// Lists what the plugin would be able to do, a line each.
fn describe_actions(news: &PluginReview) -> String {
    let lines = describe_capabilities(&news.manifest, &news.tree.files);
    lines.iter().map(|line| format!("  {line}\n")).collect()
}

/// Lists the files that differ, a line each.
fn describe_changes(change: &TreeChange) -> String {
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

fn update_plugins(project: &Project, names: &[String]) -> Result<Exit> {
    if names.is_empty() {
        return print_safe_text("no plugins are installed\n");
    }
    let installer = plugins::installer(project);
    let (mut text, mut failed) = (String::new(), false);
    for name in names {
        match installer.update(name) {
            Err(why) => {
                failed = true;
                report::print_line(format_args!("`{name}` was not updated: {why}"));
            }
            Ok(news) if news.is_approved && news.change.is_empty() => {
                text.push_str(&format!("{} is up to date\n", plugin_title(&news)));
            }
            Ok(news) => text.push_str(&format!(
                "updated {}:\n{}{}It is not loaded until you approve it: `gnoma plugin trust {name}`.\n",
                plugin_title(&news),
                describe_changes(&news.change),
                news.diff
            )),
        }
    }
    print_safe_text(&text)?;
    Ok(if failed { Exit::Failed } else { Exit::Done })
}

fn list_plugins(project: &Project, as_json: bool) -> Result<Exit> {
    let found = plugins::project_plugins(project);
    if as_json {
        return print_json(&found.all.iter().map(plugin_to_json).collect());
    }
    found.faults.iter().for_each(|fault| report::print_line(format_args!("warning: {fault}")));
    if found.all.is_empty() {
        return print_safe_text("no plugins. `gnoma plugin install FOLDER` installs one\n");
    }
    let rows = found.all.iter().map(|plugin| {
        [
            plugin.name.clone(),
            plugin.version.clone(),
            plugin.by.to_string(),
            plugins::describe_state(plugin),
            plugin.description.clone(),
        ]
    });
    print_safe_text(&table::render_table(
        ["plugin", "version", "from", "loaded", "what it is for"],
        rows,
    ))
}

fn plugin_to_json(plugin: &FoundPlugin) -> serde_json::Value {
    json!({
        "name": plugin.name,
        "version": plugin.version,
        "description": plugin.description,
        "from": plugin.by.to_string(),
        "source": plugin.source,
        "folder": plugin.root.display().to_string(),
        "is_loaded": plugin.state == PluginState::Active,
        "loaded": plugins::describe_state(plugin),
        "not_used": plugin.faults,
    })
}

fn check_folder(folder: &Path, named: &Path) -> Result<Exit> {
    let problems = validate_folder(folder);
    let shown = named.display();
    if problems.is_empty() {
        return print_safe_text(&format!("{shown}: valid\n"));
    }
    let lines: String = problems.iter().map(|problem| format!("  - {problem}\n")).collect();
    print_safe_text(&format!("{shown}: not valid\n{lines}"))?;
    Ok(Exit::Failed)
}
