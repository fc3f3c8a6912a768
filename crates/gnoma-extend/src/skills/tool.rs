//! The tool by which a model loads a skill, and reads the files that the skill names.

use std::{
    fmt, io,
    path::{Component, Path},
    sync::Arc,
};

use gnoma_core::{
    RawJson, Tool, ToolCall, ToolCx, ToolOutcome, ToolSpec,
    lifecycle::PromptPart,
    sync::Mutex,
    tool::{Access, BoxFuture, Tier, ToolKind},
};
use serde::Deserialize;
use serde_json::json;

use super::{
    fork::{self, AgentTools},
    skill::{Skill, TOOL},
    used_skills::UsedSkills,
};
use crate::{
    commands::{ExpansionValues, IncludeError, expand_body},
    places::{TextFileError, read_text},
};

/// Most files of a skill that are named.
const MAX_FILES: usize = 50;

/// The tools to which the skills that were loaded in a turn restrict it.
pub(crate) type ToolRestriction = Arc<Mutex<Option<Arc<[String]>>>>;

/// The tool `skill`, which loads a skill.
pub struct SkillTool {
    spec: ToolSpec,
    skills: Arc<[Skill]>,
    agents: Vec<AgentTools>,
    held_to: ToolRestriction,
    kept: Arc<UsedSkills>,
    session: Arc<str>,
}

impl fmt::Debug for SkillTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SkillTool").field("skills", &self.skills.len()).finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
struct Arguments {
    name: String,
    #[serde(default)]
    file: Option<String>,
    #[serde(default)]
    arguments: String,
}

impl SkillTool {
    pub(crate) fn new(
        skills: Arc<[Skill]>,
        agents: Vec<AgentTools>,
        held_to: ToolRestriction,
        kept: Arc<UsedSkills>,
        session: Arc<str>,
    ) -> Self {
        let parameters = RawJson::from_value(&json!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "The skill."},
                "file": {"type": "string", "description": "One of the skill's files, to read it."},
                "arguments": {"type": "string", "description": "What to use it for."},
            },
            "required": ["name"],
        }));
        let spec = ToolSpec {
            name: TOOL.to_owned(),
            description:
                "Loads a skill: how something is done here. With `file`, reads a file of it."
                    .to_owned(),
            parameters: parameters.unwrap_or_else(|_| RawJson::empty_object()),
            access: Access::Read,
            touches: Arc::default(),
            kind: ToolKind::Other,
            tier: Tier::Full,
        };
        Self { spec, skills, agents, held_to, kept, session }
    }
}

impl Tool for SkillTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn start_arguments(&self, call: &ToolCall) -> Option<RawJson> {
        let arguments = call.arguments.read::<Arguments>().ok()?;
        if arguments.file.is_some() {
            return None;
        }
        let skill = self.skills.iter().find(|skill| skill.name == arguments.name)?;
        let fork = skill.fork.as_ref()?;
        let task = render_skill(skill, &arguments.arguments, &self.session);
        RawJson::from_value(&fork::spawn_arguments(skill, fork, &self.agents, &task)).ok()
    }

    fn run(&self, call: ToolCall, _cx: ToolCx) -> BoxFuture<'static, ToolOutcome> {
        let Ok(arguments) = call.arguments.read::<Arguments>() else {
            return Box::pin(async { ToolOutcome::failure_text("`name` is needed") });
        };
        let found = self.skills.iter().find(|skill| skill.name == arguments.name).cloned();
        let Some(skill) = found else {
            let names: Vec<&str> = self.skills.iter().map(|skill| &*skill.name).collect();
            let text =
                format!("there is no skill `{}`; there are {}", arguments.name, names.join(", "));
            return Box::pin(async { ToolOutcome::failure_text(text) });
        };
        if arguments.file.is_none() {
            restrict_tools(&self.held_to, skill.tools.as_deref());
        }
        let (kept, session) = (Arc::clone(&self.kept), Arc::clone(&self.session));
        Box::pin(async move {
            let work = move || match &arguments.file {
                None => {
                    let text = render_skill(&skill, &arguments.arguments, &session);
                    kept.record_use(&skill.name, text.clone());
                    Ok(text)
                }
                Some(file) => read_skill_file(&skill, file),
            };
            match tokio::task::spawn_blocking(work).await {
                Ok(Ok(text)) => ToolOutcome::success_text(text),
                Ok(Err(error)) => ToolOutcome::failure_text(error.to_string()),
                Err(_) => ToolOutcome::failure_text("the skill could not be read"),
            }
        })
    }
}

/// Holds the turn to the tools of a skill. Those of several skills hold together.
pub(crate) fn restrict_tools(held_to: &ToolRestriction, tools: Option<&[String]>) {
    let Some(tools) = tools else { return };
    let mut held = held_to.lock();
    let mut all: Vec<String> = held.as_deref().unwrap_or_default().to_vec();
    all.extend(tools.iter().filter(|tool| !all.contains(tool)).cloned().collect::<Vec<_>>());
    // The tool reads the rest of a long skill, so it must stay allowed.
    if !all.iter().any(|tool| tool == TOOL) {
        all.push(TOOL.to_owned());
    }
    *held = Some(all.into());
}

/// Returns the text that a model reads when it loads a skill.
pub(crate) fn render_skill(skill: &Skill, arguments: &str, session: &str) -> String {
    let mut text = fill_skill_text(skill, arguments, session);
    let files = skill.folder().map(list_files).unwrap_or_default();
    if !files.is_empty() {
        text = format!(
            "{}\n\nFiles of this skill, read with `file`: {}",
            text.trim_end(),
            files.join(", ")
        );
    }
    text
}

/// The variables in texts of commands and skills.
pub(crate) fn skill_variables(folder: Option<&Path>, session: &str) -> Vec<(&'static str, String)> {
    let folder = folder.map(|folder| ("CLAUDE_SKILL_DIR", folder.display().to_string()));
    [("CLAUDE_SESSION_ID", session.to_owned())].into_iter().chain(folder).collect()
}

/// A skill's text with what it is used for. What it would have run for a person stays as it is.
pub(super) fn fill_skill_text(skill: &Skill, arguments: &str, session: &str) -> String {
    let variables = skill_variables(skill.folder(), session);
    if arguments.is_empty() {
        let put = |text: String, (name, value): &(&str, String)| {
            text.replace(&format!("${{{name}}}"), value)
        };
        return variables.iter().fold(skill.body.clone(), put);
    }
    let with = ExpansionValues { arguments, names: &skill.arguments, variables: &variables };
    let (parts, _) = expand_body(&skill.body, with, &mut |_| Err(IncludeError::NoFile));
    let text = |part: PromptPart| match part {
        PromptPart::Text(text) => text,
        PromptPart::Command(command) if command.contains('\n') => format!("```!\n{command}\n```"),
        PromptPart::Command(command) => format!("!`{command}`"),
    };
    parts.into_iter().map(text).collect()
}

fn list_files(folder: &Path) -> Vec<String> {
    let (mut all, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(next) = folders.pop().filter(|_| all.len() < MAX_FILES) {
        for entry in std::fs::read_dir(next).into_iter().flatten().take(MAX_FILES).flatten() {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(path);
            } else if let Ok(name) = path.strip_prefix(folder)
                && !name.as_os_str().eq_ignore_ascii_case("skill.md")
            {
                all.push(name.display().to_string());
            }
        }
    }
    gnoma_core::sort::sort_items(&mut all);
    all.truncate(MAX_FILES);
    all
}

/// The reason why a model does not get a file of a skill.
#[derive(thiserror::Error)]
enum SkillFileError {
    #[error("this skill has no files")]
    NoFolder,
    #[error("`{file}`: {source}")]
    NotFound { file: String, source: io::Error },
    #[error("`{0}` is not in the folder of this skill")]
    Outside(String),
    #[error("`{file}`: {source}")]
    Text { file: String, source: TextFileError },
    /// The folder of the skill cannot be found any more.
    #[error(transparent)]
    Folder(#[from] io::Error),
}

gnoma_core::debug_as_display!(SkillFileError);

/// Reads a file of the skill's own folder.
fn read_skill_file(skill: &Skill, file: &str) -> Result<String, SkillFileError> {
    let folder = skill.folder().ok_or(SkillFileError::NoFolder)?;
    let path = Path::new(file);
    let stays =
        path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    let real = folder.join(path).canonicalize();
    let real = real.map_err(|source| SkillFileError::NotFound { file: file.to_owned(), source })?;
    let base = folder.canonicalize()?;
    if !stays || !real.starts_with(&base) {
        return Err(SkillFileError::Outside(file.to_owned()));
    }
    read_text(&real).map_err(|source| SkillFileError::Text { file: file.to_owned(), source })
}
