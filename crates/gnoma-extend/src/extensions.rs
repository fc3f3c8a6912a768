//! What was added to one session, as its engine sees it.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use gnoma_core::{
    Event, Message, Tool, home,
    lifecycle::{Lifecycle, Point, PointAnswer, PointKind, PreparedPrompt, PromptPart, SideModel},
    names::{self, FileNames},
    places::find_secret,
    session::PermissionMode,
    tool::BoxFuture,
};
use serde_json::Value;
use tokio::task::spawn_blocking;

use crate::{
    agents,
    commands::{self, CustomCommand},
    hooks::{HookSummary, Hooks},
    mcp::ServersView,
    nested_instructions::{self, AnnouncedFiles},
    places::{ExtendPlaces, ExtensionSource, read_text},
    skills::{self, AgentTools, Skill, SkillTool, UsedSkills, tool::ToolRestriction},
};

/// Names of a folder that are compared with one that is missing.
const MAX_NAMES_COMPARED: usize = 5000;

/// The extensions of a session.
pub struct Extensions {
    places: Arc<ExtendPlaces>,
    /// The skills that a model may use, as they were when the session began.
    skills: Arc<[Skill]>,
    /// The others, which people use.
    for_people: Vec<Skill>,
    held_to: ToolRestriction,
    hooks: Arc<Hooks>,
    /// The servers, once they are there.
    servers: Arc<OnceLock<ServersView>>,
    /// Texts of skills that were used.
    kept: Arc<UsedSkills>,
    /// Instructions of deeper folders that were told.
    told: AnnouncedFiles,
    /// The id of the session.
    session: Arc<str>,
}

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Extensions").field("places", &self.places).finish_non_exhaustive()
    }
}

/// A command or skill that can be written after a slash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlashName {
    /// The name after the slash.
    pub name: String,
    /// The hint at what to write after the name.
    pub hint: String,
    /// The description of what it does.
    pub about: String,
    /// The party that provides it.
    pub by: ExtensionSource,
}

impl Extensions {
    /// Reads the extensions in these places.
    #[must_use]
    pub fn from_places(places: ExtendPlaces, hooks: Hooks) -> Self {
        let is_offered = |skill: &Skill| !skill.is_for_people && !places.waits_for_trust(skill.by);
        let all = skills::load_skills(&places).0.into_iter();
        let (skills, for_people): (Vec<_>, Vec<_>) = all.partition(is_offered);
        Self {
            places: Arc::new(places),
            skills: skills.into(),
            for_people,
            held_to: ToolRestriction::default(),
            hooks: Arc::new(hooks),
            servers: Arc::default(),
            kept: Arc::default(),
            told: AnnouncedFiles::default(),
            session: Arc::default(),
        }
    }

    /// The same in the session of that id.
    #[must_use]
    pub fn in_session(self, session: &str) -> Self {
        Self { session: session.into(), ..self }
    }

    /// The same with the prompts of servers.
    #[must_use]
    pub fn with_servers(self, servers: Arc<OnceLock<ServersView>>) -> Self {
        Self { servers, ..self }
    }

    /// Returns the hooks of this session.
    #[must_use]
    pub fn hooks(&self) -> &Arc<Hooks> {
        &self.hooks
    }

    /// The tools that they add.
    #[must_use]
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        if self.skills.is_empty() {
            return Vec::new();
        }
        let agents = agents_for(&self.places, &self.skills);
        let (held_to, kept) = (Arc::clone(&self.held_to), Arc::clone(&self.kept));
        let (skills, session) = (Arc::clone(&self.skills), Arc::clone(&self.session));
        vec![Arc::new(SkillTool::new(skills, agents, held_to, kept, session))]
    }

    /// Returns the text that the extensions add to the system prompt; may be empty.
    #[must_use]
    pub fn system_prompt(&self) -> String {
        skills::render_skill_list(self.skills.iter())
    }
}

/// The agents with their tools, where such a skill names one.
fn agents_for(places: &ExtendPlaces, skills: &[Skill]) -> Vec<AgentTools> {
    let mut forks = skills.iter().filter_map(|skill| skill.fork.as_ref());
    if !forks.any(|fork| fork.agent.is_some()) {
        return Vec::new();
    }
    agents::load_agents(places).0.into_iter().map(|agent| (agent.name, agent.tools)).collect()
}

/// All that can be written behind a slash, sorted by name. A skill takes the place of a command, and nothing that waits
/// for trust takes the place of anything else.
#[must_use]
pub fn slash_names(places: &ExtendPlaces) -> Vec<SlashName> {
    let skills = skills::load_skills(places).0.into_iter().map(|skill| SlashName {
        name: skill.name,
        hint: skill.hint,
        about: skill.description,
        by: skill.by,
    });
    let commands = commands::load_commands(places).0.into_iter().map(|command| SlashName {
        name: command.name,
        hint: command.hint,
        about: command.description,
        by: command.by,
    });
    let mut all: Vec<SlashName> = skills.chain(commands).collect();
    gnoma_core::sort::sort_by(&mut all, |one, other| {
        let weights = places.origin_weight(other.by).cmp(&places.origin_weight(one.by));
        one.name.cmp(&other.name).then(weights)
    });
    all.dedup_by(|later, earlier| later.name == earlier.name);
    all
}

/// The meaning of a name after a slash.
struct SlashNameTarget {
    by: ExtensionSource,
    path: PathBuf,
    is_skill: bool,
    /// The arguments for starting the elf that does the skill's work.
    spawn: Option<Value>,
    /// Names of its arguments.
    arguments: Vec<String>,
    body: String,
    tools: Option<Vec<String>>,
    model: Option<String>,
}

impl From<CustomCommand> for SlashNameTarget {
    fn from(command: CustomCommand) -> Self {
        let CustomCommand { by, path, arguments, body, tools, model, .. } = command;
        Self { by, path, is_skill: false, spawn: None, arguments, body, tools, model }
    }
}

impl SlashNameTarget {
    /// Returns the reason why the command or skill does not run: the project that defines it is not trusted.
    fn trust_refusal(&self, places: &ExtendPlaces, name: &str) -> Option<String> {
        let file = places.display_path(&self.path);
        places.waits_for_trust(self.by).then(|| {
            format!(
                "the project defines `/{name}` ({file}), but you have not trusted the project yet: \
                 `gnoma trust` shows what that would allow"
            )
        })
    }

    fn of_skill(places: &ExtendPlaces, skill: Skill, session: &str) -> Self {
        let body = skills::tool::render_skill(&skill, "", session);
        let spawn = skill.fork.as_ref().map(|fork| {
            let agents = agents_for(places, std::slice::from_ref(&skill));
            skills::spawn_arguments(&skill, fork, &agents, "")
        });
        let Skill { by, path, arguments, tools, model, .. } = skill;
        Self { by, path, is_skill: true, spawn, arguments, body, tools, model }
    }
}

/// Returns why the command or skill that a text names after a slash does not run before the project is trusted; `None`
/// where it names none, or one that runs.
#[must_use]
pub fn trust_refusal(places: &ExtendPlaces, text: &str) -> Option<String> {
    let (name, _) = commands::parse_invocation(text)?;
    find_meaning(places, name, "")?.trust_refusal(places, name)
}

/// The meaning of the name after a slash.
fn find_meaning(places: &ExtendPlaces, name: &str, session: &str) -> Option<SlashNameTarget> {
    let skill = skills::load_skills(places).0.into_iter().find(|skill| skill.name == name);
    let command =
        commands::load_commands(places).0.into_iter().find(|command| command.name == name);
    match (skill, command) {
        (Some(skill), Some(command))
            if places.origin_weight(command.by) > places.origin_weight(skill.by) =>
        {
            Some(command.into())
        }
        (Some(skill), _) => Some(SlashNameTarget::of_skill(places, skill, session)),
        (None, command) => command.map(SlashNameTarget::from),
    }
}

/// A skill's name and text.
type UsedSkill = (String, String);

/// Returns the prompt that replaces a text which names a command or a skill, and the skill; `None` where the text
/// names none.
fn expand_prompt(
    places: &ExtendPlaces,
    session: &str,
    text: &str,
    starter: Option<&str>,
) -> Option<(PreparedPrompt, Option<UsedSkill>)> {
    let (name, arguments) = commands::parse_invocation(text)?;
    let meaning = find_meaning(places, name, session)?;
    let block = meaning.trust_refusal(places, name);
    if block.is_some() {
        return Some((PreparedPrompt { block, ..PreparedPrompt::default() }, None));
    }
    let mut include = |path: &str| read_mentioned_file(places, path);
    let variables = skills::tool::skill_variables(None, session);
    let with =
        commands::ExpansionValues { arguments, names: &meaning.arguments, variables: &variables };
    let (parts, mut notices) = commands::expand_body(&meaning.body, with, &mut include);
    let SlashNameTarget { is_skill, spawn, body, tools, model, .. } = meaning;
    match (spawn, starter) {
        (Some(spawn), Some(starter)) => {
            let call = Some(skills::skill_call(starter, spawn, (name, arguments)));
            let prepared =
                PreparedPrompt { parts: Some(parts), call, notices, ..PreparedPrompt::default() };
            return Some((prepared, None));
        }
        (Some(_), None) => {
            notices.push("This session cannot start elfs, so the skill runs here".to_owned());
        }
        (None, _) => (),
    }
    let model = model.filter(|model| model != "inherit");
    let used = is_skill.then(|| (name.to_owned(), body));
    Some((
        PreparedPrompt { parts: Some(parts), tools, model, notices, ..PreparedPrompt::default() },
        used,
    ))
}

/// Returns the prompt that replaces a text which names a prompt of a server. The server's text is used as it is:
/// nothing in it runs.
async fn expand_server_prompt(servers: Option<&ServersView>, text: &str) -> Option<PreparedPrompt> {
    let (name, arguments) = commands::parse_invocation(text)?;
    let said = servers?.expand_prompt(name, arguments).await?;
    Some(match said {
        Ok(text) => PreparedPrompt {
            parts: Some(vec![PromptPart::Text(text)]),
            ..PreparedPrompt::default()
        },
        Err(why) => {
            PreparedPrompt { block: Some(format!("`/{name}`: {why}")), ..PreparedPrompt::default() }
        }
    })
}

/// The names of the files on the disk, to find the file that a name means as it is typed.
struct FolderNames;

impl FileNames for FolderNames {
    fn is_there(&self, path: &Path) -> bool {
        path.symlink_metadata().is_ok()
    }

    fn names_in(&self, folder: &Path) -> Vec<String> {
        let entries = folder.read_dir().into_iter().flatten().take(MAX_NAMES_COMPARED);
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect()
    }
}

/// The text of a file that a command mentions: of one in the folders of the session that holds no
/// secrets by its name.
fn read_mentioned_file(
    places: &ExtendPlaces,
    path: &str,
) -> Result<String, commands::IncludeError> {
    let named = home::expand(path, places.home.as_deref(), &places.cwd);
    let named =
        named.to_str().and_then(|path| names::find_typed_path(path, &places.cwd, &FolderNames));
    let named = named.filter(|named| named.is_whole).ok_or(commands::IncludeError::NoFile)?;
    let real = Path::new(&named.path).canonicalize();
    let real = real.map_err(|_| commands::IncludeError::NoFile)?;
    if !places.roots.iter().any(|root| real.starts_with(root)) {
        return Err(commands::IncludeError::Outside);
    }
    if find_secret(Path::new(&real)).is_some() {
        return Err(commands::IncludeError::Secret);
    }
    Ok(read_text(&real)?)
}

impl Lifecycle for Extensions {
    fn has_listener(&self, kind: PointKind) -> bool {
        // A message may name a server that nobody has seen yet.
        let may_wait =
            || kind == PointKind::Prompt && self.servers.get().is_some_and(ServersView::had_unseen);
        // The instructions of a folder are added when a call has touched a file there.
        kind == PointKind::AfterTool || self.hooks.has_hook_at(kind) || may_wait()
    }

    fn run_hooks(&self, point: Point, mode: PermissionMode) -> BoxFuture<'static, PointAnswer> {
        let touched = match &point {
            Point::AfterTool { call, .. } => nested_instructions::touched_file(&self.places, call),
            _ => None,
        };
        let said = self.hooks.run_at(point, mode);
        let Some(file) = touched else { return Box::pin(said) };
        let (places, told) = (Arc::clone(&self.places), Arc::clone(&self.told));
        Box::pin(async move {
            let more = spawn_blocking(move || {
                nested_instructions::take_unannounced(&places, &told, &file)
            })
            .await;
            let mut answer = said.await;
            answer.context.extend(more.unwrap_or_default());
            answer
        })
    }

    fn prepare_prompt(
        &self,
        text: String,
        mode: PermissionMode,
        starter: Option<String>,
    ) -> BoxFuture<'static, PreparedPrompt> {
        let (places, held_to) = (Arc::clone(&self.places), Arc::clone(&self.held_to));
        let hooks = Arc::clone(&self.hooks);
        let (kept, servers) = (Arc::clone(&self.kept), Arc::clone(&self.servers));
        let session = Arc::clone(&self.session);
        hooks.count_prompt(&text);
        Box::pin(async move {
            let said = if hooks.has_hook_at(PointKind::Prompt) {
                hooks.run_at(Point::Prompt { text: text.clone() }, mode).await
            } else {
                PointAnswer::default()
            };
            if said.block.is_some() {
                let PointAnswer { block, notices, .. } = said;
                return PreparedPrompt { block, notices, ..PreparedPrompt::default() };
            }
            let (mut prepared, skill) = match expand_server_prompt(servers.get(), &text).await {
                Some(prepared) => (prepared, None),
                None => {
                    let line = text.clone();
                    let work = move || expand_prompt(&places, &session, &line, starter.as_deref());
                    spawn_blocking(work).await.ok().flatten().unwrap_or_default()
                }
            };
            if let Some(servers) = servers.get() {
                servers.named_in(&prepared.model_text(&text)).await;
            }
            if let Some((name, text)) = skill {
                kept.record_use(&name, text);
            }
            skills::tool::restrict_tools(&held_to, prepared.tools.as_deref());
            prepared.context.extend(said.context);
            prepared.notices.extend(said.notices);
            prepared
        })
    }

    fn held_to(&self) -> Option<Arc<[String]>> {
        self.held_to.lock().clone()
    }

    fn retained_texts(&self) -> Vec<String> {
        self.kept.retained_texts()
    }

    fn on_resume(&self, history: &[Arc<Message>]) {
        let all = self.skills.iter().chain(&self.for_people);
        skills::restore_skills(&self.kept, history, &all, &self.session);
    }

    fn on_event(&self, event: &Event) {
        self.hooks.observe_event(event);
    }

    fn set_side_model(&self, model: Arc<dyn SideModel>) {
        self.hooks.set_model(model);
    }

    fn hooks_told(&self) -> Vec<String> {
        let line = |look: HookSummary| {
            let last = match look.last {
                Some((took_ms, how)) => format!("last run: {how}, {took_ms} ms"),
                None => "has not run".to_owned(),
            };
            let origin = self.places.display_path(&look.origin);
            format!("{}: {} ({}, {origin}); {last}", look.event, look.command, look.by)
        };
        self.hooks.hook_overview().into_iter().map(line).collect()
    }

    fn turn_ended(&self) {
        *self.held_to.lock() = None;
    }
}
