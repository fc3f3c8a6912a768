//! Lists the agents, skills and plugins of a session as lines for people.

use gnoma_extend::{ExtendPlaces, ExtensionSource, skills::load_skills as find_skills};

use crate::{Project, extensions, plugins};

/// Said where the project brings something that it may not use yet.
const UNTRUSTED: &str = "not used: the project is not trusted (/trust)";

/// The agents that elfs can be, one a line.
pub(crate) fn render_agents(project: &Project) -> String {
    let line = |agent: gnoma_tools::Agent| {
        let state = agent.refusal.as_ref().map_or(String::new(), |_| format!(" ({UNTRUSTED})"));
        format!("{}: {}{state}\n", agent.name, agent.description)
    };
    let all: String = extensions::all_agents(project).into_iter().map(line).collect();
    or_else(all, "no agents. Write one as .gnoma/agents/NAME.md; docs/extend.md says how\n")
}

/// The skills, one a line.
pub(crate) fn render_skills(project: &Project) -> String {
    let places = extensions::extension_places(project);
    let (all, faults) = find_skills(&places);
    let mut text = String::new();
    for skill in all {
        let used = match (waits_for_trust(&places, skill.by), skill.is_for_people) {
            (true, _) => format!(" ({UNTRUSTED})"),
            (false, true) => format!(" (you start it: /{})", skill.name),
            (false, false) => String::new(),
        };
        text.push_str(&format!("{} ({}): {}{used}\n", skill.name, skill.by, skill.description));
    }
    let mut text =
        or_else(text, "no skills. `gnoma skills --help` says where they are looked for\n");
    text.extend(faults.iter().map(|fault| format!("warning: {fault}\n")));
    text
}

/// The plugins, one a line.
pub(crate) fn plugins_of(project: &Project) -> String {
    let found = plugins::project_plugins(project);
    let line = |plugin: &gnoma_extend::plugins::FoundPlugin| {
        let state = plugins::describe_state(plugin);
        format!("{} {}: {} (loaded: {state})\n", plugin.name, plugin.version, plugin.description)
    };
    let all: String = found.all.iter().map(line).collect();
    let mut text = or_else(all, "no plugins. `gnoma plugin install FOLDER` installs one\n");
    text.extend(found.faults.iter().map(|fault| format!("warning: {fault}\n")));
    text
}

fn waits_for_trust(places: &ExtendPlaces, by: ExtensionSource) -> bool {
    by == ExtensionSource::Project && !places.is_trusted
}

fn or_else(text: String, nothing: &str) -> String {
    if text.is_empty() { nothing.to_owned() } else { text }
}
