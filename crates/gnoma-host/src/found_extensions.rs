//! The extensions of a project as commands list and check them.

use gnoma_extend::{
    ExtendPlaces,
    agents::{AgentFile, load_agents},
    commands::{CustomCommand, load_commands},
    hooks::Hook,
    mcp::Definition,
    plugins::PluginScan,
    skills::{Skill, load_skills},
};

use crate::{Project, extensions, mcp, plugins};

/// The extensions that a project has, and what is wrong with them.
pub struct FoundExtensions<'p> {
    /// The places where they were looked for.
    pub places: ExtendPlaces,
    /// The plugins, in force or not.
    pub plugins: &'p PluginScan,
    /// The hooks that run.
    pub hooks: Vec<Hook>,
    /// The MCP servers that may be used.
    pub servers: Vec<Definition>,
    /// The skills, with those that wait for trust.
    pub skills: Vec<Skill>,
    /// The commands.
    pub commands: Vec<CustomCommand>,
    /// The agents, with those that wait for trust and without the bundled ones.
    pub agents: Vec<AgentFile>,
    /// A sentence for each fault that keeps an extension from use.
    pub faults: Vec<String>,
    /// A sentence for each skill, command and agent with fields that have no effect here.
    pub unsupported: Vec<String>,
}

/// Looks for the extensions of a project. Starts none.
#[must_use]
pub fn find_extensions(project: &Project) -> FoundExtensions<'_> {
    let places = extensions::extension_places(project);
    let (hooks, hook_faults) = extensions::found_hooks(project);
    let (skills, skill_faults) = load_skills(&places);
    let (commands, command_faults) = load_commands(&places);
    let (agents, agent_faults) = load_agents(&places);
    let (servers, server_faults) = mcp::find_servers(project);
    let plugin_faults = plugins::plugin_warnings(project);
    let faults =
        [hook_faults, skill_faults, command_faults, agent_faults, server_faults, plugin_faults];
    FoundExtensions {
        plugins: plugins::project_plugins(project),
        faults: faults.concat(),
        unsupported: extensions::unsupported_fields(&places, &skills, &commands, &agents),
        places,
        hooks,
        servers,
        skills,
        commands,
        agents,
    }
}
