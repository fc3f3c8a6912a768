//! `gnoma skills`, `gnoma agents` and `gnoma extensions`: what people added, where it comes from, and whether it is
//! used.

use std::path::PathBuf;

use anyhow::Result;
use gnoma_core::quantity::describe_count;
use gnoma_extend::{
    ExtendPlaces, ExtensionSource,
    agents::{bundled_agents, load_agents as find_agents},
    mcp::{Definition, ServerOrigin},
    skills::{Skill, check_folder, load_skills as find_skills, skill_folders},
};
use gnoma_host::{
    HostError, Project, extensions,
    found_extensions::{FoundExtensions, find_extensions},
    plugins,
};

use super::common::{open_project, print_safe_text};
use crate::{
    args::{SkillsSub, TurnArgs},
    environment::ProcessEnvironment,
    report::{self, Exit},
    table,
};

pub(super) fn run_skills(
    what: &SkillsSub,
    args: &TurnArgs,
    around: &ProcessEnvironment,
) -> Result<Exit> {
    if let SkillsSub::Validate { folders } = what
        && !folders.is_empty()
    {
        return validate_skills(folders);
    }
    let places = extensions::extension_places(&open_project(args, around)?);
    match what {
        SkillsSub::List => list_skills(&places),
        SkillsSub::Show { name } => show_skill(name, &places),
        SkillsSub::Validate { .. } => {
            let folders = skill_folders(&places);
            if folders.is_empty() {
                report::print_line(
                    "there are no skills to check: none of yours, and none in this project",
                );
            }
            validate_skills(&folders)
        }
    }
}

fn list_skills(places: &ExtendPlaces) -> Result<Exit> {
    let (all, faults) = find_skills(places);
    faults.iter().for_each(|fault| report::print_line(format_args!("warning: {fault}")));
    let rows = all.iter().map(|skill| {
        let used = if skill.is_for_people {
            "by /name"
        } else {
            unused_reason(places, skill.by).unwrap_or("by models")
        };
        [skill.name.clone(), skill.by.to_string(), used.to_owned(), skill.description.clone()]
    });
    print_safe_text(&table::render_table(["skill", "from", "used", "what it is for"], rows))
}

fn show_skill(name: &str, places: &ExtendPlaces) -> Result<Exit> {
    let (all, _) = find_skills(places);
    let skill = all.iter().find(|skill| skill.name == name).ok_or_else(|| {
        HostError::usage(format!("there is no skill `{name}`; `gnoma skills list` lists them"))
    })?;
    for warning in &skill.warnings {
        report::print_line(format_args!("warning: {warning}"));
    }
    let from = skill_origin(skill, places);
    let mut head = format!("{}: {}\nfrom {from}\n", skill.name, skill.description);
    if let Some(tools) = &skill.tools {
        head.push_str(&format!("limited to the tools {}\n", tools.join(", ")));
    }
    print_safe_text(&format!("{head}\n{}\n", skill.body.trim_end()))
}

/// Returns the place that a skill comes from.
fn skill_origin(skill: &Skill, places: &ExtendPlaces) -> String {
    match skill.by {
        ExtensionSource::Bundled => "bundled".to_owned(),
        ExtensionSource::User | ExtensionSource::Project => places.display_path(&skill.path),
    }
}

fn validate_skills(folders: &[PathBuf]) -> Result<Exit> {
    let (mut text, mut is_valid) = (String::new(), true);
    for folder in folders {
        let problems = check_folder(folder).problems;
        let shown = folder.display();
        if problems.is_empty() {
            text.push_str(&format!("{shown}: valid\n"));
        } else {
            is_valid = false;
            text.push_str(&format!("{shown}: not valid\n"));
            text.extend(problems.iter().map(|problem| format!("  - {problem}\n")));
        }
    }
    print_safe_text(&text)?;
    Ok(if is_valid { Exit::Done } else { Exit::Failed })
}

/// Returns the reason why something of a project is not used; `None` if it is used.
fn unused_reason(places: &ExtendPlaces, by: ExtensionSource) -> Option<&'static str> {
    places.waits_for_trust(by).then_some("needs `gnoma trust`")
}

pub(super) fn list_agents(args: &TurnArgs, around: &ProcessEnvironment) -> Result<Exit> {
    let places = extensions::extension_places(&open_project(args, around)?);
    let (mut all, faults) = find_agents(&places);
    faults.iter().for_each(|fault| report::print_line(format_args!("warning: {fault}")));
    for bundled in bundled_agents() {
        if all.iter().all(|agent| agent.name != bundled.name) {
            all.push(bundled);
        }
    }
    let rows = all.iter().map(|agent| {
        [
            agent.name.clone(),
            agent.by.to_string(),
            if agent.path.as_os_str().is_empty() {
                "-".to_owned()
            } else {
                places.display_path(&agent.path)
            },
            agent.description.clone(),
        ]
    });
    let heads = ["agent", "from", "file", "what it is for"];
    print_safe_text(&table::render_table(heads, rows))
}

pub(super) fn list_extensions(args: &TurnArgs, around: &ProcessEnvironment) -> Result<Exit> {
    print_safe_text(&render_overview(&open_project(args, around)?))
}

/// Returns how many extensions are found, for `gnoma doctor`.
pub(super) fn summarize_extensions(found: &FoundExtensions<'_>) -> String {
    let counts = [
        (found.hooks.len(), "hook"),
        (found.skills.len(), "skill"),
        (found.commands.len(), "command"),
        (found.agents.len(), "agent"),
        (found.servers.len(), "MCP server"),
        (found.plugins.active.len(), "plugin"),
    ];
    let counts = counts.map(|(count, noun)| describe_count(count, noun)).join(", ");
    let waits = |skill: &&Skill| found.places.waits_for_trust(skill.by);
    let waiting = match found.skills.iter().filter(waits).count() {
        0 => String::new(),
        1 => "; 1 skill waits for `gnoma trust`".to_owned(),
        count => format!("; {count} skills wait for `gnoma trust`"),
    };
    format!("{counts} (`gnoma extensions` lists them){waiting}")
}

/// Lists all extensions that are found, a line each, and what is wrong with them.
fn render_overview(project: &Project) -> String {
    let found = find_extensions(project);
    let places = &found.places;
    let mut rows: Vec<[String; 4]> = Vec::new();
    let mut row = |kind: &str, name: &str, used: &str, from: String| {
        rows.push([kind.to_owned(), name.to_owned(), used.to_owned(), from]);
    };
    for plugin in &found.plugins.all {
        let used = plugins::describe_state(plugin);
        row("plugin", &plugin.name, &used, places.display_path(&plugin.root));
    }
    for hook in &found.hooks {
        let from = format!("{}: {}", places.display_path(&hook.origin), hook.to_line());
        row("hook", &hook.event, "yes", from);
    }
    for server in &found.servers {
        row("MCP server", &server.name, "when called", describe_server(server, places));
    }
    for skill in &found.skills {
        let used = if skill.is_for_people { "by /name" } else { "yes" };
        let used = unused_reason(places, skill.by).unwrap_or(used);
        row("skill", &skill.name, used, skill_origin(skill, places));
    }
    for command in &found.commands {
        let hides = |skill: &Skill| skill.name == command.name && skill.by >= command.by;
        let is_hidden = found.skills.iter().any(hides);
        let used = if is_hidden { "no: a skill has its name" } else { "by /name" };
        row("command", &command.name, used, places.display_path(&command.path));
    }
    for agent in &found.agents {
        let used = unused_reason(places, agent.by).unwrap_or("yes");
        row("agent", &agent.name, used, places.display_path(&agent.path));
    }
    let mut text = table::render_table(["kind", "name", "used", "from"], rows);
    let faults = found.faults.iter().chain(&found.unsupported);
    text.extend(faults.map(|fault| format!("✗ {fault}\n")));
    text
}

/// Returns the place that a server is named in, and how it is reached.
fn describe_server(server: &Definition, places: &ExtendPlaces) -> String {
    let origin = match &server.origin {
        ServerOrigin::File(path) => places.display_path(path),
        ServerOrigin::Configuration | ServerOrigin::Client => server.origin.to_string(),
    };
    format!("{origin}: {}", server.to_line())
}
