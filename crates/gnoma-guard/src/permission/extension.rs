//! Permission rules about agents and skills.

use gnoma_core::{glob::glob_matches, tool::ToolSpec};
use serde_json::Value;

use super::rule::Subject;

/// The tool that starts elfs, and the one that loads skills.
const STARTS_ELFS: &str = "elf.spawn";
const LOADS_SKILLS: &str = "skill";
/// The name that rules of other programs use for an elf that works as no agent.
const NO_AGENT: &str = "general-purpose";

/// Reports whether the call starts what the rule names. Such a rule only denies and asks, so an argument that
/// cannot be read counts as a match.
pub(super) fn starts_subject(subject: &Subject, tool: &ToolSpec, arguments: &Value) -> bool {
    match subject {
        Subject::Agent(glob) if tool.name == STARTS_ELFS => {
            let tasks = arguments.get("tasks").and_then(Value::as_array);
            tasks.is_none_or(|tasks| tasks.iter().any(|task| is_named(glob, agent_of(task))))
        }
        Subject::Skill(glob) if tool.name == LOADS_SKILLS => {
            is_named(glob, arguments.get("name").and_then(Value::as_str))
        }
        _ => false,
    }
}

fn agent_of(task: &Value) -> Option<&str> {
    match task.get("agent") {
        None | Some(Value::Null) => Some(NO_AGENT),
        Some(agent) => agent.as_str(),
    }
}

/// Names fit whatever their case, and without the plugin before a colon.
fn is_named(glob: &str, name: Option<&str>) -> bool {
    let Some(name) = name.map(str::to_lowercase) else { return true };
    let glob = glob.to_lowercase();
    let bare = name.rsplit(':').next().unwrap_or(&name);
    glob_matches(&glob, &name) || glob_matches(&glob, bare)
}
