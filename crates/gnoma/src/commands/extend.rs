//! `gnoma skills`, `gnoma agents` and `gnoma extensions`: what people added, from where, and what becomes of
//! it.

use std::path::PathBuf;

use anyhow::Result;
use gnoma_extend::{
    ExtendPlaces, ExtensionSource,
    agents::{bundled_agents, load_agents as find_agents},
    commands::load_commands as find_commands,
    mcp::ServerOrigin,
    skills::{check_folder, load_skills as find_skills, skill_folders},
};
use gnoma_host::{HostError, Project, extensions, mcp, plugins};

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
    let (all, faults) = find_skills(&places);
    match what {
        SkillsSub::List => {
            faults.iter().for_each(|fault| report::print_line(format_args!("warning: {fault}")));
            let rows = all.iter().map(|skill| {
                let use_of = if skill.is_for_people {
                    "by /name"
                } else {
                    unused_reason(&places, skill.by).unwrap_or("by models")
                };
                [
                    skill.name.clone(),
                    skill.by.to_string(),
                    use_of.to_owned(),
                    skill.description.clone(),
                ]
            });
            print_safe_text(&table::render_table(["skill", "from", "used", "what it is for"], rows))
        }
        SkillsSub::Show { name } => {
            let text = || format!("there is no skill `{name}`; `gnoma skills list` lists them");
            let missing = || HostError::usage(text());
            let skill = all.iter().find(|skill| skill.name == *name).ok_or_else(missing)?;
            for warning in &skill.warnings {
                report::print_line(format_args!("warning: {warning}"));
            }
            let from = match skill.by {
                ExtensionSource::Bundled => "bundled".to_owned(),
                ExtensionSource::User | ExtensionSource::Project => {
                    places.display_path(&skill.path)
                }
            };
            let mut head = format!("{}: {}\nfrom {from}\n", skill.name, skill.description);
            if let Some(tools) = &skill.tools {
                head.push_str(&format!("limited to the tools {}\n", tools.join(", ")));
            }
            print_safe_text(&format!("{head}\n{}\n", skill.body.trim_end()))
        }
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
    (by == ExtensionSource::Project && !places.is_trusted).then_some("needs `gnoma trust`")
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

/// Returns how many extensions are found and which of them do not work, for `gnoma doctor`.
pub(super) fn summarize_extensions(project: &Project) -> (String, Vec<String>, Vec<String>) {
    let places = extensions::extension_places(project);
    let (hooks, idle) = extensions::found_hooks(project);
    let (skills, skill_faults) = find_skills(&places);
    let (commands, command_faults) = find_commands(&places);
    let (agents, agent_faults) = find_agents(&places);
    let (servers, server_faults) = mcp::find_servers(project);
    let loaded = &plugins::project_plugins(project).active;
    let waits = |by: ExtensionSource| unused_reason(&places, by).is_some();
    let waiting = skills.iter().filter(|skill| waits(skill.by)).count();
    let counts = [
        (hooks.len(), "hook"),
        (skills.len(), "skill"),
        (commands.len(), "command"),
        (agents.len(), "agent"),
        (servers.len(), "MCP server"),
        (loaded.len(), "plugin"),
    ];
    let counts =
        counts.map(
            |(count, noun)| {
                if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
            },
        );
    let mut text = format!("{} (`gnoma extensions` lists them)", counts.join(", "));
    if waiting > 0 {
        let what = if waiting == 1 { "skill waits" } else { "skills wait" };
        text.push_str(&format!("; {waiting} {what} for `gnoma trust`"));
    }
    let plugin_faults = plugins::plugin_warnings(project);
    let faults = [idle, skill_faults, command_faults, agent_faults, server_faults, plugin_faults];
    (text, faults.into_iter().flatten().collect(), extensions::unsupported_fields(&places))
}

/// All that is found, a line each.
pub(super) fn render_overview(project: &Project) -> String {
    let places = extensions::extension_places(project);
    let mut rows: Vec<[String; 4]> = Vec::new();
    let mut row = |kind: &str, name: &str, from: String, used: &str| {
        rows.push([kind.to_owned(), name.to_owned(), used.to_owned(), from]);
    };
    for plugin in &plugins::project_plugins(project).all {
        let used = plugins::describe_state(plugin);
        row("plugin", &plugin.name, places.display_path(&plugin.root), &used);
    }
    let (hooks, idle) = extensions::found_hooks(project);
    for hook in hooks {
        let from = format!("{}: {}", places.display_path(&hook.origin), hook.to_line());
        row("hook", &hook.event, from, "yes");
    }
    let (servers, server_faults) = mcp::find_servers(project);
    for server in &servers {
        let origin = match &server.origin {
            ServerOrigin::File(path) => places.display_path(path),
            ServerOrigin::Configuration | ServerOrigin::Client => server.origin.to_string(),
        };
        row("MCP server", &server.name, format!("{origin}: {}", server.to_line()), "when called");
    }
    let (skills, skill_faults) = find_skills(&places);
    for skill in &skills {
        let from = match skill.by {
            ExtensionSource::Bundled => "bundled".to_owned(),
            ExtensionSource::User | ExtensionSource::Project => places.display_path(&skill.path),
        };
        let used = if skill.is_for_people { "by /name" } else { "yes" };
        row("skill", &skill.name, from, unused_reason(&places, skill.by).unwrap_or(used));
    }
    let (commands, command_faults) = find_commands(&places);
    for command in &commands {
        let is_hidden =
            skills.iter().any(|skill| skill.name == command.name && skill.by >= command.by);
        let used = if is_hidden { "no: a skill has its name" } else { "by /name" };
        row("command", &command.name, places.display_path(&command.path), used);
    }
    let (agents, agent_faults) = find_agents(&places);
    for agent in &agents {
        row(
            "agent",
            &agent.name,
            places.display_path(&agent.path),
            unused_reason(&places, agent.by).unwrap_or("yes"),
        );
    }
    let mut text = table::render_table(["kind", "name", "used", "from"], rows);
    let plugin_faults = plugins::plugin_warnings(project);
    let fields = extensions::unsupported_fields(&places);
    let faults =
        [idle, skill_faults, command_faults, agent_faults, server_faults, plugin_faults, fields];
    text.extend(faults.iter().flatten().map(|fault| format!("✗ {fault}\n")));
    text
}
