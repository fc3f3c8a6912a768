//! Warns about settings that name something which does not exist, so that they have no effect.

use std::path::Path;

use gnoma_config::settings::{RuleSubject, SecretAction, arm_named};
use gnoma_core::{glob, home};
use gnoma_router::rules::{Roles, RuleEffect};
use gnoma_tools::Agent;

use crate::{
    Folders as _, Project, agents, extensions, project_settings::RoutingSettings, provider_names,
    setting,
};

/// gnoma's own tools, and the names by which rules speak of several.
const TOOLS: [&str; 18] = [
    "bash",
    "job",
    "fs.read",
    "fs.write",
    "fs.edit",
    "fs.grep",
    "fs.glob",
    "fs.ls",
    "skill",
    "elf.spawn",
    "elf",
    "agent",
    "web",
    "ask",
    "plan",
    "read_result",
    "mcp.search",
    "mcp.resource",
];
/// The prefix of the tools of MCP servers, which are not known at the start.
pub(crate) const MCP: &str = "mcp";
/// Models on this machine, for rules about secrets.
const LOCAL: &str = "local";
/// The events of hooks whose pattern is about tools contain this.
const TOOL_EVENT: &str = "tool";

/// Describes each setting of a project that has no effect because of a name in it, a sentence each.
#[must_use]
pub fn find(project: &Project) -> Vec<String> {
    let mut all = at_start(project, &project.routing);
    all.extend(setting::unknown_theme(project));
    all.extend(unknown_tools_of_agents(&extensions::defined_agents(project)));
    let authorities = project.routing.network.ca_file.as_deref();
    let fault = authorities.and_then(gnoma_net::authorities_fault);
    all.extend(fault.map(|fault| format!("`network.ca_file`: {fault}")));
    all
}

/// Describes settings without effect among those that decide which models are asked and what protects the person.
pub(crate) fn at_start(project: &Project, settings: &RoutingSettings) -> Vec<String> {
    let mut all = unused_provider_settings(settings, &project.guard.security.actions);
    all.extend(unused_tool_settings(project));
    all.extend(missing_shell(project));
    let home = project.environment().home();
    all.extend(missing_folders(&project.guard.sandbox.writable, home.as_deref()));
    all
}

/// Rules and hooks about tools that do not exist.
fn unused_tool_settings(project: &Project) -> Vec<String> {
    let rules = project.guard.permission.rules.iter().map(|rule| {
        let (RuleSubject::Rule(tool) | RuleSubject::Text { tool, .. }) = &rule.about;
        ("permission.rules", &rule.place, tool.as_str())
    });
    let hooks = project.hooks.iter().filter(|hook| hook.event.contains(TOOL_EVENT));
    let hooks = hooks.flat_map(|hook| {
        hook.tools.split('|').map(move |tool| ("hooks.tool_pattern", &hook.place, tool))
    });
    let is_agent = |tool: &str| {
        let name = tool.split('.').next().unwrap_or(tool);
        project.routing.agents.find_by_name(name).is_some()
    };
    let unknown = rules.chain(hooks).filter_map(|(key, place, text)| {
        let tool = text.split('(').next().unwrap_or(text).trim();
        let near = unknown_tool(tool).filter(|_| !is_agent(tool))?;
        Some(format!("`{key}` ({place}): no tool has the name `{tool}`{near}"))
    });
    unknown.collect()
}

/// Returns what to add to a warning about a glob that matches no tool; `None` if a tool matches or may match.
fn unknown_tool(tool: &str) -> Option<String> {
    let may_be = tool.is_empty() || tool.starts_with(['*', '?']) || tool.starts_with(MCP);
    if may_be || TOOLS.iter().any(|known| glob::glob_matches(tool, known)) {
        return None;
    }
    let lower = tool.to_lowercase();
    let is_meant = |known: &&str| known.rsplit('.').next() == Some(lower.as_str());
    let near = TOOLS.into_iter().find(is_meant);
    let near = near.or_else(|| gnoma_config::nearest_name(&lower, TOOLS.into_iter()));
    Some(near.map_or_else(String::new, |near| format!("; did you mean `{near}`?")))
}

/// The tools that definitions of agents list and that do not exist.
fn unknown_tools_of_agents(agents: &[Agent]) -> Vec<String> {
    let listed = agents.iter().flat_map(|agent| {
        agent.tools.iter().flatten().map(|rule| (agent.name.as_str(), rule.as_str()))
    });
    let unknown = listed.filter_map(|(name, rule)| {
        let tool = rule.split('(').next().unwrap_or(rule).trim();
        let near = unknown_tool(tool)?;
        Some(format!("the agent `{name}`: no tool has the name `{tool}`{near}"))
    });
    unknown.collect()
}

/// Folders of `sandbox.writable` that commands cannot be given.
fn missing_folders(folders: &[String], home: Option<&Path>) -> Vec<String> {
    let fault = |folder: &String| {
        let path = home::expand(folder, home, Path::new(""));
        let why = match (path.is_absolute(), path.exists()) {
            (false, _) => "is left out: write the whole path, from `/` or `~/` on",
            (true, false) => "does not exist",
            (true, true) => return None,
        };
        Some(format!("`sandbox.writable`: `{folder}` {why}"))
    };
    folders.iter().filter_map(fault).collect()
}

/// A shell that is not installed, in whose place another one runs.
fn missing_shell(project: &Project) -> Option<String> {
    let shell = project.tools.shell.as_deref().filter(|shell| !shell.is_empty())?;
    let is_there = if shell.contains('/') {
        Path::new(shell).is_file()
    } else {
        let folders = project.environment().get("PATH").unwrap_or_default();
        std::env::split_paths(folders).any(|folder| folder.join(shell).is_file())
    };
    let text = format!("`tools.shell`: there is no program `{shell}`; commands run in /bin/sh");
    (!is_there).then_some(text)
}

/// The provider of a glob of arms, if it names one.
fn provider_of(arms: &str) -> Option<&str> {
    let (provider, _) = arms.split_once('/')?;
    let is_glob = provider.contains(['*', '?']) || provider == agents::PROVIDER;
    (!is_glob).then_some(provider)
}

/// Describes settings by provider that have no effect.
fn unused_provider_settings(settings: &RoutingSettings, actions: &[SecretAction]) -> Vec<String> {
    let provider = &settings.provider;
    let names = provider_names::provider_names(provider);
    let mut all: Vec<(String, &str)> = Vec::new();
    let tables: [(&str, Vec<&String>); 5] = [
        ("api_keys", provider.api_keys.keys().chain(provider.unset_keys.keys()).collect()),
        ("key_commands", provider.key_commands.keys().collect()),
        ("protocols", provider.protocols.keys().collect()),
        ("context", provider.context.keys().collect()),
        ("models", provider.models.keys().collect()),
    ];
    for (table, keys) in tables {
        all.extend(
            keys.into_iter().map(|name| (format!("provider.{table}.{name}"), name.as_str())),
        );
    }
    let pools: Vec<&String> = settings.arms.values().flat_map(|arm| &arm.pools).collect();
    // Limits of agents, such as Claude Code, count them together.
    let is_pool = |name: &&String| pools.contains(name) || *name == agents::PROVIDER;
    let limits = settings.rate_limits.keys().filter(|name| !is_pool(name));
    all.extend(limits.map(|name| (format!("rate_limits.{name}"), name.as_str())));
    let arms: Vec<_> = settings.arms.keys().filter_map(|id| Some((id, arm_named(id)?))).collect();
    all.extend(
        arms.iter()
            .filter(|(_, arm)| arm.provider != agents::PROVIDER)
            .map(|(id, arm)| (format!("[[arms]] id = \"{id}\""), arm.provider.as_str())),
    );
    all.extend(in_roles(&settings.router.roles));
    all.extend(in_rules(settings, actions, &names));
    let unknown = all.into_iter().filter(|(_, name)| !names.iter().any(|known| known == name));
    let mut said: Vec<String> = unknown
        .map(|(key, name)| {
            let near = gnoma_config::nearest_name(name, names.iter().map(String::as_str));
            let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            format!("`{key}`: no provider has the name `{name}`{near}")
        })
        .collect();
    said.dedup();
    said
}

/// The providers that roles name.
fn in_roles(roles: &Roles) -> impl Iterator<Item = (String, &str)> {
    let arms = roles.named_arms().filter(|(_, arm)| arm.provider != agents::PROVIDER);
    arms.map(|(key, arm)| (key.to_owned(), arm.provider.as_str()))
}

/// The providers that rules about secrets and about models name, unless one of `names` fits.
fn in_rules<'a>(
    settings: &'a RoutingSettings,
    actions: &'a [SecretAction],
    names: &[String],
) -> Vec<(String, &'a str)> {
    let is_known = |glob: &str| {
        let is_own = glob.is_empty() || glob == LOCAL || glob == agents::PROVIDER;
        is_own || names.iter().any(|known| glob::glob_matches(glob, known))
    };
    // The case of names does not matter in rules about models.
    let is_name = |name: &str| names.iter().any(|known| known.eq_ignore_ascii_case(name));
    let actions = actions.iter().map(|action| action.provider.as_str());
    let actions = actions.filter(|name| !is_known(name));
    let mut all: Vec<(String, &str)> =
        actions.map(|name| (format!("[[security.actions]] provider = \"{name}\""), name)).collect();
    for rule in &settings.router.rules {
        let globs = rule.rule.then.iter().flat_map(|effect| match effect {
            RuleEffect::Pin(glob) => vec![("pin", glob)],
            RuleEffect::Forbid(globs) => globs.iter().map(|glob| ("forbid", glob)).collect(),
            RuleEffect::Prefer { .. }
            | RuleEffect::MaxCostMicroUsd(_)
            | RuleEffect::MaxSeconds(_) => Vec::new(),
        });
        let unknown = globs.filter_map(|(key, glob)| {
            let name = provider_of(glob).filter(|name| !is_name(name))?;
            Some((format!("[[router.rules]] {key} = \"{glob}\" ({})", rule.place), name))
        });
        all.extend(unknown);
    }
    all
}

#[cfg(test)]
mod tests {
    use gnoma_config::Sources;

    use super::*;
    use crate::project_settings::ProjectSettings;

    #[test]
    fn unknown_provider_names_in_settings_suggest_the_nearest() {
        let folder = tempfile::tempdir().unwrap();
        let text = "[provider.endpoints]\nwork = \"http://127.0.0.1:1\"\n\
                    [provider.api_keys]\nwrk = \"abc\"\nwork = \"k\"\nmistral = \"k\"\n\
                    [rate_limits.wrk]\nrpm = 1\n[rate_limits.shared]\nrpm = 1\n\
                    [rate_limits.agent]\nrpm = 1\n\
                    [router.roles]\nsmall = \"wrk/m\"\neditor = \"work/m\"\n\
                    [[arms]]\nid = \"nosuch/model\"\n[[arms]]\nid = \"work/m\"\npools = [\"shared\"]\n\
                    [[security.actions]]\nprovider = \"local\"\naction = \"block\"\n\
                    [[security.actions]]\nprovider = \"wrok\"\naction = \"block\"\n\
                    [[router.rules]]\npin = \"*/x\"\nforbid = [\"WORK/*\", \"wrok/*\"]\n";
        std::fs::write(folder.path().join("config.toml"), text).unwrap();
        let sources = Sources { config_dir: folder.path().to_owned(), ..Sources::default() };
        let lowered = ProjectSettings::from(gnoma_config::load_settings(&sources).unwrap());
        let (settings, actions) = (lowered.routing, lowered.guard.security.actions);
        let place = settings.router.rules[0].place.clone();
        let meant = "did you mean `work`?";
        assert_eq!(
            unused_provider_settings(&settings, &actions),
            [
                format!("`provider.api_keys.wrk`: no provider has the name `wrk`; {meant}"),
                format!("`rate_limits.wrk`: no provider has the name `wrk`; {meant}"),
                "`[[arms]] id = \"nosuch/model\"`: no provider has the name `nosuch`".to_owned(),
                format!("`router.roles.small`: no provider has the name `wrk`; {meant}"),
                format!(
                    "`[[security.actions]] provider = \"wrok\"`: no provider has the name `wrok`; {meant}"
                ),
                format!(
                    "`[[router.rules]] forbid = \"wrok/*\" ({place})`: no provider has the name `wrok`; {meant}"
                ),
            ]
        );
    }

    #[test]
    fn missing_sandbox_writable_folders_warn() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("there")).unwrap();
        let folders = ["rel", "/nosuch/dir", "~/there", "/tmp"].map(str::to_owned);
        assert_eq!(
            missing_folders(&folders, Some(home.path())),
            [
                "`sandbox.writable`: `rel` is left out: write the whole path, from `/` or `~/` on",
                "`sandbox.writable`: `/nosuch/dir` does not exist",
            ]
        );
    }

    #[test]
    fn unknown_tool_names_in_rules_suggest_the_nearest() {
        for (tool, near) in [
            ("Edit", "fs.edit"),
            ("fs.writ", "fs.write"),
            ("FS.write", "fs.write"),
            ("read", "fs.read"),
            ("Bash", "bash"),
        ] {
            let told = unknown_tool(tool).unwrap_or_else(|| panic!("{tool}"));
            assert!(told.contains(&format!("`{near}`")), "{tool}: {told}");
        }
        assert_eq!(unknown_tool("fs.delete").as_deref(), Some(""));
        for tool in ["bash", "fs.*", "*", "mcp__git__log", "mcp__*", "elf*"] {
            assert_eq!(unknown_tool(tool), None, "{tool}");
        }
    }
}
