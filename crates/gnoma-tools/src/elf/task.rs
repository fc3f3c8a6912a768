//! What a call wants of elfs, as tasks for sessions. Pure.

use std::{path::Path, time::Duration};

use gnoma_core::{
    Content,
    protocol::{Overrides, SessionSpec},
    session::PermissionMode,
    text_truncation,
    tool::{ChildTask, Isolation},
};
use serde::Deserialize;
use serde_json::Value;

/// Most tasks of one call.
pub(super) const MAX_TASKS: usize = 10;
/// Longest name, in bytes.
const MAX_NAME_BYTES: usize = 32;
/// The most time that an elf works where the call does not say.
const DEFAULT_TIME: Duration = Duration::from_secs(60 * 60);
/// The most time that an elf works.
const MAX_TIME: Duration = Duration::from_secs(24 * 60 * 60);
/// The most that a limit of money can be, in dollars.
const MAX_USD: f64 = 1_000_000.0;
/// Micro-dollars in a dollar.
const MICRO: f64 = 1_000_000.0;
/// Bytes of a task that represent it in a list.
const MAX_ABOUT_BYTES: usize = 60;

/// The instructions for every elf, after the built-in prompt.
const PROMPT: &str = "\
You are an elf: another agent gave you one part of its work. Do that part and nothing else. Nobody reads \
along; your last message is all that the agent gets, so put the whole result into it. Others may be \
changing other files meanwhile: leave those alone.";

/// The message to an elf that continues, unless the call has one.
const GO_ON: &str = "You were cut off. Look at what is done already, and go on with your task.";

/// A sub-agent that somebody has defined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Agent {
    /// The name of the sub-agent.
    pub name: String,
    /// The purpose of the sub-agent, in one line.
    pub description: String,
    /// The tools that it may use, by name or rule; `None` means all.
    pub tools: Option<Vec<String>>,
    /// The tools that it may not use, by name or by a glob of names.
    pub forbidden: Vec<String>,
    /// A part of the name of the model that it wants.
    pub model: Option<String>,
    /// The limit of what the sub-agent may do without asking; never more than its starter may do.
    pub mode: Option<PermissionMode>,
    /// The instructions before its task.
    pub prompt: String,
    /// The reason why the sub-agent cannot be used; `None` if it can.
    pub refusal: Option<String>,
}

/// The arguments of a call that starts elfs.
#[derive(Deserialize)]
pub(super) struct SpawnArguments {
    tasks: Vec<Value>,
    #[serde(default)]
    pub(super) background: bool,
    /// True if the call fails unless every elf completes its task, and none was denied a call because nobody could be
    /// asked. Steps of tasks set it; the schema for models does not have it.
    #[serde(default)]
    pub(super) must_complete: bool,
}

/// One task of a call.
#[derive(Default, Deserialize)]
#[serde(default)]
struct TaskArguments {
    task: String,
    name: Option<String>,
    agent: Option<String>,
    model: Option<String>,
    /// A model that is taken if it is there. Not offered to models.
    prefers: Option<String>,
    /// The step of a saved task that it is, for what the router learns. Not offered to models.
    step: String,
    provider: Option<String>,
    tools: Option<Vec<String>>,
    folder: Option<String>,
    isolation: Option<String>,
    resume: Option<String>,
    may_spawn: bool,
    max_rounds: Option<u32>,
    max_seconds: Option<u64>,
    max_usd: Option<f64>,
}

/// An elf that is about to be started.
#[derive(Debug, PartialEq)]
pub(super) struct PlannedElf {
    /// The name of the elf, which no other living elf has.
    pub(super) name: String,
    /// The elf's task in a few words.
    pub(super) about: String,
    pub(super) child: ChildTask,
    /// The most time that the elf works.
    pub(super) time: Duration,
}

/// The reason why a call starts no elfs, for the model.
#[derive(thiserror::Error)]
pub(super) enum ElfPlanError {
    #[error("one call starts 1 to {MAX_TASKS} elfs, not {0}; nothing was started")]
    Count(usize),
    #[error("task {number}: {error}; nothing was started")]
    Task {
        /// Counted from 1.
        number: usize,
        #[source]
        error: ElfTaskError,
    },
}

/// The reason why no elf can have a task.
#[derive(thiserror::Error)]
pub(super) enum ElfTaskError {
    #[error(transparent)]
    Form(#[from] serde_json::Error),
    #[error("`task` is empty; say what the elf is to do")]
    Empty,
    #[error("there is no agent `{0}`: none is defined here; leave `agent` out")]
    NoAgents(String),
    #[error("there is no agent `{name}`; choose one of: {}", .known.join(", "))]
    UnknownAgent { name: String, known: Vec<String> },
    /// The agent cannot be used, for this reason.
    #[error("{0}")]
    RefusedAgent(String),
    #[error("its agent has no tool `{tool}`; it has: {}", .own.join(", "))]
    UnknownTool { tool: String, own: Vec<String> },
    #[error("there is no `isolation` `{0}`; it is `shared` or `worktree`")]
    Isolation(String),
    #[error("`max_usd` must be 0 to {MAX_USD}, not {0}")]
    MaxUsd(f64),
}

gnoma_core::debug_as_display!(ElfPlanError, ElfTaskError);

/// Plans the elfs of a call, all or none. `is_taken` tells whether a living elf has a name.
pub(super) fn plan_elfs(
    arguments: SpawnArguments,
    agents: &[Agent],
    cwd: &Path,
    is_taken: impl Fn(&str) -> bool,
) -> Result<Vec<PlannedElf>, ElfPlanError> {
    let count = arguments.tasks.len();
    if count == 0 || count > MAX_TASKS {
        return Err(ElfPlanError::Count(count));
    }
    let mut all: Vec<PlannedElf> = Vec::new();
    for (at, value) in arguments.tasks.into_iter().enumerate() {
        let wrong = |error: ElfTaskError| ElfPlanError::Task { number: at + 1, error };
        let elf = parse_task(value).and_then(|task| plan_elf(task, agents, cwd)).map_err(wrong)?;
        let is_free = |name: &str| !is_taken(name) && all.iter().all(|other| other.name != name);
        let name = unique_name(&elf.name, is_free);
        let child = ChildTask { name: name.clone(), ..elf.child };
        all.push(PlannedElf { name, child, ..elf });
    }
    Ok(all)
}

fn parse_task(value: Value) -> Result<TaskArguments, ElfTaskError> {
    match value {
        Value::String(task) => Ok(TaskArguments { task, ..TaskArguments::default() }),
        value => Ok(serde_json::from_value(value)?),
    }
}

fn plan_elf(
    wanted: TaskArguments,
    agents: &[Agent],
    cwd: &Path,
) -> Result<PlannedElf, ElfTaskError> {
    let said = task_words(&wanted.task, wanted.resume.is_some())?;
    let agent = wanted.agent.as_deref().map(|name| find_agent(agents, name)).transpose()?;
    let overrides = Overrides {
        provider: wanted.provider,
        model: wanted.model,
        max_rounds: wanted.max_rounds.map(|rounds| rounds.max(1)),
        mode: agent.and_then(|agent| agent.mode),
        ..Overrides::default()
    };
    let child = ChildTask {
        id: String::new(),
        name: String::new(),
        agent: agent.map(|agent| agent.name.clone()),
        forbidden: agent.map(|agent| agent.forbidden.clone()).unwrap_or_default(),
        spec: SessionSpec {
            folder: wanted.folder.map(|folder| cwd.join(folder)).unwrap_or_default(),
            overrides,
            interactive: true,
            ..SessionSpec::default()
        },
        content: vec![Content::from_text(said)],
        limit_micro_usd: wanted.max_usd.map(micro_usd).transpose()?,
        tools: restrict_tools(wanted.tools, agent)?,
        isolation: parse_isolation(wanted.isolation.as_deref())?,
        may_spawn: wanted.may_spawn,
        preferred_model: wanted.prefers.or_else(|| agent.and_then(|agent| agent.model.clone())),
        step: wanted.step,
        resume: wanted.resume,
        call: None,
        prompt: build_prompt(agent),
    };
    let called = wanted.name.or(wanted.agent).unwrap_or_default();
    Ok(PlannedElf {
        name: sanitize_name(&called),
        about: summarize_task(said),
        child,
        time: limit_time(wanted.max_seconds),
    })
}

/// Returns the words of a task, or those with which an elf continues.
fn task_words(task: &str, continues: bool) -> Result<&str, ElfTaskError> {
    match task.trim() {
        "" if continues => Ok(GO_ON),
        "" => Err(ElfTaskError::Empty),
        words => Ok(words),
    }
}

/// Joins the instructions for every elf with those of its agent.
fn build_prompt(agent: Option<&Agent>) -> String {
    let own = agent.map(|agent| agent.prompt.as_str()).filter(|prompt| !prompt.is_empty());
    [PROMPT].into_iter().chain(own).collect::<Vec<_>>().join("\n\n")
}

/// Returns the time that an elf may work: at least a second, at most [`MAX_TIME`].
fn limit_time(max_seconds: Option<u64>) -> Duration {
    let time = max_seconds.map_or(DEFAULT_TIME, |seconds| Duration::from_secs(seconds.max(1)));
    time.min(MAX_TIME)
}

fn parse_isolation(named: Option<&str>) -> Result<Isolation, ElfTaskError> {
    match named {
        None | Some("shared") => Ok(Isolation::Shared),
        Some("worktree") => Ok(Isolation::Worktree),
        Some(other) => Err(ElfTaskError::Isolation(other.to_owned())),
    }
}

fn find_agent<'a>(agents: &'a [Agent], name: &str) -> Result<&'a Agent, ElfTaskError> {
    let Some(agent) = agents.iter().find(|agent| agent.name == name) else {
        let name = name.to_owned();
        if agents.is_empty() {
            return Err(ElfTaskError::NoAgents(name));
        }
        let known = agents.iter().map(|agent| agent.name.clone()).collect();
        return Err(ElfTaskError::UnknownAgent { name, known });
    };
    agent.refusal.clone().map_or(Ok(agent), |why| Err(ElfTaskError::RefusedAgent(why)))
}

/// Returns the tools of an elf: never others than its agent has.
fn restrict_tools(
    wanted: Option<Vec<String>>,
    agent: Option<&Agent>,
) -> Result<Option<Vec<String>>, ElfTaskError> {
    let Some(own) = agent.and_then(|agent| agent.tools.as_ref()) else { return Ok(wanted) };
    let Some(wanted) = wanted else { return Ok(Some(own.clone())) };
    match wanted.iter().find(|tool| !own.contains(tool)) {
        Some(tool) => Err(ElfTaskError::UnknownTool { tool: tool.clone(), own: own.clone() }),
        None => Ok(Some(wanted)),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range was looked at before"
)]
fn micro_usd(usd: f64) -> Result<u64, ElfTaskError> {
    if !(0.0..=MAX_USD).contains(&usd) {
        return Err(ElfTaskError::MaxUsd(usd));
    }
    Ok((usd * MICRO).round() as u64)
}

/// A name of letters, digits and dashes; `elf` where nothing is left.
fn sanitize_name(name: &str) -> String {
    let fits = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let name: String = name.trim().chars().map(fits).collect();
    let name = name.trim_matches('-');
    let name = name.get(..MAX_NAME_BYTES).unwrap_or(name);
    if name.is_empty() { "elf".to_owned() } else { name.to_owned() }
}

/// The name, or it with the first number that makes it free.
fn unique_name(name: &str, is_free: impl Fn(&str) -> bool) -> String {
    if name != "elf" && is_free(name) {
        return name.to_owned();
    }
    let first = if name == "elf" { 1 } else { 2 };
    let numbered = (first..).map(|number: u32| format!("{name}-{number}"));
    numbered
        .take(usize::from(u16::MAX))
        .find(|name| is_free(name))
        .unwrap_or_else(|| name.to_owned())
}

fn summarize_task(task: &str) -> String {
    let line = task.lines().next().unwrap_or_default().trim();
    let head = text_truncation::word_prefix(line, MAX_ABOUT_BYTES);
    if head.len() < task.len() { format!("{head}…") } else { head.to_owned() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn agents() -> Vec<Agent> {
        let reviewer = Agent {
            name: "reviewer".to_owned(),
            tools: Some(vec!["fs.read".to_owned(), "bash(git *)".to_owned()]),
            model: Some("opus".to_owned()),
            prompt: "You review.".to_owned(),
            ..Agent::default()
        };
        let waits = Agent {
            name: "waits".to_owned(),
            refusal: Some("nobody trusts it".to_owned()),
            ..Agent::default()
        };
        vec![reviewer, waits]
    }

    fn read(tasks: &Value) -> Result<Vec<PlannedElf>, ElfPlanError> {
        let arguments = serde_json::from_value(json!({ "tasks": tasks })).unwrap();
        plan_elfs(arguments, &agents(), Path::new("/work"), |name| name == "taken")
    }

    #[test]
    fn elf_task_sets_session_agent_model_and_limits() {
        let all = read(&json!([
            "look around",
            {"task": "Review it.\nAll of it.", "agent": "reviewer", "name": "my review!", "folder": "sub",
             "model": "m", "provider": "p", "max_rounds": 0, "max_seconds": 90, "max_usd": 0.25},
            {"task": "more", "name": "taken", "may_spawn": true, "tools": ["fs.read"]},
            {"task": "again", "name": "taken"},
            "again",
        ]))
        .unwrap();
        let names: Vec<_> = all.iter().map(|elf| elf.name.as_str()).collect();
        assert_eq!(names, ["elf-1", "my-review", "taken-2", "taken-3", "elf-2"]);
        let [first, second, third, ..] = &*all else { panic!() };
        assert_eq!((first.about.as_str(), first.time), ("look around", DEFAULT_TIME));
        assert_eq!(first.child.spec.folder, Path::new(""));
        assert!(first.child.tools.is_none() && !first.child.may_spawn);
        let ChildTask { name, spec, content, limit_micro_usd, prompt, .. } = &second.child;
        assert_eq!((name.as_str(), &*spec.folder), ("my-review", Path::new("/work/sub")));
        assert_eq!(spec.overrides.max_rounds, Some(1));
        assert_eq!(spec.overrides.model.as_deref(), Some("m"));
        assert_eq!(content[0], Content::from_text("Review it.\nAll of it."));
        assert_eq!((*limit_micro_usd, second.time), (Some(250_000), Duration::from_secs(90)));
        assert!(
            prompt.starts_with("You are an elf") && prompt.ends_with("You review."),
            "{prompt}"
        );
        assert_eq!(second.child.tools.as_ref().unwrap().len(), 2);
        assert_eq!(second.child.preferred_model.as_deref(), Some("opus"));
        assert_eq!(second.about, "Review it.…");
        assert!(third.child.may_spawn);
    }

    #[test]
    fn invalid_elf_tasks_are_explained() {
        let eleven: Vec<_> = (0..11).map(|n| json!(format!("task {n}"))).collect();
        for (tasks, why) in [
            (json!([]), "one call starts 1 to 10 elfs, not 0"),
            (json!(eleven), "one call starts 1 to 10 elfs, not 11"),
            (json!([" "]), "task 1: `task` is empty"),
            (json!([{"task": "x"}, {"task": 3}]), "task 2: invalid type"),
            (json!([{"task": "x", "agent": "nobody"}]), "choose one of: reviewer, waits"),
            (json!([{"task": "x", "agent": "waits"}]), "nobody trusts it"),
            (json!([{"task": "x", "agent": "reviewer", "tools": ["bash"]}]), "no tool `bash`"),
            (json!([{"task": "x", "isolation": "vm"}]), "it is `shared` or `worktree`"),
            (json!([{"task": "x", "max_usd": -1}]), "`max_usd` must be 0 to"),
        ] {
            let told = read(&tasks).unwrap_err().to_string();
            assert!(told.contains(why) && told.ends_with("nothing was started"), "{told}");
        }
        let none = find_agent(&[], "a").unwrap_err().to_string();
        assert!(none.contains("none is defined here"), "{none}");
    }

    #[test]
    fn elf_names_are_sanitized_and_truncated() {
        assert_eq!(sanitize_name("  "), "elf");
        assert_eq!(sanitize_name("Ärger & Co"), "rger---Co");
        assert_eq!(sanitize_name(&"x".repeat(99)).len(), MAX_NAME_BYTES);
    }
}
