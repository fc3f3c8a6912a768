//! Skills that an elf does (`context: fork`): what the tool that starts elfs is given. What the elf may is judged
//! there, by the rights of the session.

use gnoma_core::lifecycle::PromptCall;
use serde_json::{Map, Value, json};

use super::skill::{Skill, SkillFork, TOOL};

/// The note that the list of skills adds to a skill that an elf does.
pub(super) const TOLD: &str = " (an elf does it and knows only `arguments`; you get its result)";
/// Agents that other programs bring along and that may only look.
const LOOKING: [&str; 2] = ["Explore", "Plan"];
/// The tools that those agents may use.
const READING: [&str; 5] = ["fs.read", "fs.grep", "fs.glob", "fs.ls", TOOL];
/// An agent of other programs that is like an elf without one.
const ANY: &str = "general-purpose";

/// An agent that is there, with its tools where it is held to some.
pub(crate) type AgentTools = (String, Option<Vec<String>>);

/// The arguments of the call that starts the elf that does the skill.
pub(crate) fn spawn_arguments(
    skill: &Skill,
    fork: &SkillFork,
    agents: &[AgentTools],
    text: &str,
) -> Value {
    json!({ "tasks": [task_json(skill, fork, agents, text)] })
}

fn task_json(skill: &Skill, fork: &SkillFork, agents: &[AgentTools], text: &str) -> Value {
    let wanted = fork.agent.as_deref().filter(|name| !name.is_empty());
    let known = agents.iter().find(|(name, _)| Some(name.as_str()) == wanted);
    let (agent, limit) = match (wanted, known) {
        (Some(name), None) if LOOKING.contains(&name) => {
            (None, Some(READING.map(str::to_owned).to_vec()))
        }
        (None | Some(ANY), None) => (None, None),
        (name, known) => (name, known.and_then(|(_, tools)| tools.clone())),
    };
    let tools = common_tools(skill.tools.as_deref(), limit, agent.is_some());
    let model = skill.model.as_deref().filter(|model| *model != "inherit");
    let fields = [
        ("task", json!(text)),
        ("name", json!(skill.name)),
        ("agent", json!(agent)),
        ("tools", json!(tools)),
        ("prefers", json!(model)),
    ];
    let fields = fields.into_iter().filter(|(_, value)| !value.is_null());
    fields.map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>().into()
}

/// The tools that both the skill and who does it allow.
fn common_tools(
    own: Option<&[String]>,
    limit: Option<Vec<String>>,
    is_agent: bool,
) -> Option<Vec<String>> {
    match (own, limit) {
        (None, None) => None,
        // The agent is held to its own anyway.
        (None, Some(limit)) => (!is_agent).then_some(limit),
        (Some(own), None) => {
            // The tool reads the rest of a long skill, so it must stay allowed.
            Some(own.iter().cloned().chain([TOOL.to_owned()]).collect())
        }
        (Some(own), Some(limit)) => {
            let both: Vec<String> =
                limit.into_iter().filter(|tool| tool == TOOL || own.contains(tool)).collect();
            // With none in common, whoever starts the elf says so.
            Some(if both.is_empty() { own.to_vec() } else { both })
        }
    }
}

/// The call by which a person's words have the skill done: no model can make it.
pub(crate) fn skill_call(
    starter: &str,
    spawn: Value,
    (name, arguments): (&str, &str),
) -> PromptCall {
    let typed = format!("/{name} {arguments}");
    let typed = typed.trim_end();
    PromptCall {
        tool: starter.to_owned(),
        arguments: spawn,
        words: "/tasks/0/task",
        done: format!("`{typed}` was done by an elf. Its result:\n\n"),
        failed: format!("`{typed}` could not be done by an elf: "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skill(tools: Option<&[&str]>, agent: &str) -> Skill {
        let tools = tools.map(|tools| tools.iter().map(ToString::to_string).collect());
        let agent = Some(agent.to_owned());
        Skill {
            name: "s".to_owned(),
            tools,
            fork: Some(SkillFork { agent }),
            ..super::super::bundled::bundled_skills().remove(0)
        }
    }

    fn tools_of(own: Option<&[&str]>, agent: &str) -> (Value, Value) {
        let skill = skill(own, agent);
        let reviewer = Some(vec!["fs.read".to_owned(), "bash(git *)".to_owned()]);
        let agents = vec![("reviewer".to_owned(), reviewer), ("free".to_owned(), None)];
        let fork = skill.fork.clone().unwrap();
        let task = task_json(&skill, &fork, &agents, "do it");
        assert_eq!((&task["task"], &task["name"]), (&json!("do it"), &json!("s")));
        (task["agent"].clone(), task["tools"].clone())
    }

    #[test]
    fn forked_skill_gets_the_tools_that_both_skill_and_agent_allow() {
        assert_eq!(tools_of(None, ""), (Value::Null, Value::Null));
        assert_eq!(tools_of(None, "general-purpose"), (Value::Null, Value::Null));
        assert_eq!(tools_of(None, "Explore"), (Value::Null, json!(READING)));
        assert_eq!(tools_of(Some(&["fs.read", "bash"]), "Plan").1, json!(["fs.read", "skill"]));
        assert_eq!(tools_of(Some(&["bash"]), "").1, json!(["bash", "skill"]));
        assert_eq!(tools_of(None, "reviewer"), (json!("reviewer"), Value::Null));
        assert_eq!(tools_of(Some(&["fs.read"]), "reviewer").1, json!(["fs.read"]));
        assert_eq!(tools_of(Some(&["fs.edit"]), "reviewer").1, json!(["fs.edit"]));
        assert_eq!(tools_of(Some(&["fs.read"]), "free").1, json!(["fs.read", "skill"]));
        assert_eq!(tools_of(None, "nobody"), (json!("nobody"), Value::Null));
    }
}
