//! What a session of a project is started with.

use std::{path::Path, sync::Arc};

use gnoma_config::settings::{Compaction, Tools};
use gnoma_core::{lifecycle::Lifecycle, places::RuledPaths, tool::Tier};
use gnoma_engine::{GatePlace, Keeping, Limits, Routes, Shape, context::Strategy, prompt, session};
use gnoma_extend::Extensions;
use gnoma_guard::permission::Permissions;

use crate::{
    HostError, Project, Result, address_secrets, claude_rules::ClaudeRules, driven::DrivenSession,
    environment::Folders as _, extensions, guarding, memory,
};

/// Returns the strategy that makes room in a full context window.
fn strategy(set: Compaction) -> Strategy {
    match set {
        Compaction::Full => Strategy::Full,
        Compaction::Summarize => Strategy::Summarize,
        Compaction::Truncate => Strategy::Truncate,
    }
}

/// The rules of a session: those of gnoma's settings, and those of Claude Code's that restrict.
///
/// # Errors
/// The rules of gnoma's settings cannot be used.
pub fn permissions(project: &Project) -> Result<Permissions> {
    let mut permissions = guarding::permissions(&project.guard)?;
    let restricting = ClaudeRules::read(&extensions::places(project)).rules;
    restricting.into_iter().for_each(|rule| permissions.remember(rule));
    Ok(permissions)
}

/// The options of the session `id` over these models, of which nothing is kept yet.
///
/// # Errors
/// The rules about permissions cannot be used, or the form of answers cannot be checked.
pub fn options(project: &Project, id: String, routes: Arc<Routes>) -> Result<session::Options> {
    options_with(project, id, routes, trials(project))
}

/// The same, where this tries its commands: what judges a command sees what earlier ones have left.
///
/// # Errors
/// As [`options`].
pub fn options_with(
    project: &Project,
    id: String,
    routes: Arc<Routes>,
    trials: Option<Arc<gnoma_tools::Trials>>,
) -> Result<session::Options> {
    let Project { spec, guard, places, shared, .. } = project;
    let mut permissions = permissions(project)?;
    let rules = rule_reach(project, &permissions);
    let limits = limits(project);
    let shape = spec.answer_schema.as_ref().map(Shape::read).transpose();
    let shape = shape.map_err(|error| HostError::usage(error.to_string()))?;
    let first = routes.arms().first().map(|arm| arm.name().model).unwrap_or_default();
    let mut all_tools = offered(project, &id, trials.clone(), rules.clone());
    let hooks = extensions::hooks(project, (&id, &first), &all_tools);
    let extensions = Extensions::read(extensions::places(project), hooks).in_session(&id);
    let extensions = Arc::new(extensions.with_servers(Arc::clone(&project.servers)));
    all_tools.extend(extensions.tools());
    let system = system_prompt(project, extensions.prompt(), shape.as_ref());
    let mut lifecycle: Arc<dyn Lifecycle> = extensions;
    if let Some(driver) = shared.driver() {
        let session = DrivenSession { id: &id, spec };
        all_tools = driver.tools(session, all_tools);
        lifecycle = driver.lifecycle(session, lifecycle);
        driver.rules().into_iter().for_each(|rule| permissions.remember(rule));
        permissions = permissions.with_since(driver.rules_since());
    }
    Ok(session::Options {
        id,
        place: GatePlace {
            copies: project.copies(),
            ..guarding::place(guard, places, spec, trials, rules)
        },
        tools: all_tools,
        routes,
        system,
        shape,
        thinking: spec.overrides.thinking.or(project.routing.provider.thinking),
        lifecycle: Some(lifecycle),
        mode: guard.permission.mode,
        permissions,
        firewall: Arc::clone(&project.firewall),
        interactive: spec.interactive,
        limits,
        history: Vec::new(),
        measured: None,
        keeping: Keeping::default(),
        scope: None,
        above: None,
        gauge: Arc::default(),
        spawner: None,
        spans: project.call_spans(),
        held_to: None,
        forbidden: Arc::default(),
        ready: None,
    })
}

/// Returns the tools with which agents of other programs read and write files: those on the disk, not an editor's.
pub(crate) fn plain_files(project: &Project) -> [Arc<dyn gnoma_core::Tool>; 2] {
    gnoma_tools::plain_files(&tools(project, "", None))
}

/// The tools by which a session starts others and speaks with them. A program that drives it brings its
/// own.
pub(crate) fn elf_tools(project: &Project) -> Vec<Arc<dyn gnoma_core::Tool>> {
    if project.shared.driver().is_some() {
        return Vec::new();
    }
    gnoma_tools::elf_tools(extensions::agents(project), project.spec.agent.is_some())
}

/// Returns the limits of a turn: how far it may go and how long it waits.
fn limits(project: &Project) -> Limits {
    let (network, clock) = (&project.routing.network, project.shared.clock());
    Limits {
        rounds: project.tools.max_rounds,
        first_byte: network.first_byte_timeout,
        local_first_byte: network.local_first_byte_timeout,
        silence: network.idle_timeout,
        compaction: strategy(project.tools.compaction),
        seed: clock.random() | 1,
        ..Limits::default()
    }
}

/// The files that the rules of a session deny or ask about.
fn rule_reach(project: &Project, permissions: &Permissions) -> Option<Arc<dyn RuledPaths>> {
    let Project { spec, guard, places, .. } = project;
    let place =
        GatePlace { copies: project.copies(), ..guarding::place(guard, places, spec, None, None) };
    let reach = permissions.reach(&place.world())?;
    Some(Arc::new(reach))
}

/// Returns what runs the session's commands on trial; `None` if a program drives the session, because that program
/// wants to be asked before a command runs, and about the command as it is.
pub fn trials(project: &Project) -> Option<Arc<gnoma_tools::Trials>> {
    let Project { spec, guard, places, shared, .. } = project;
    let trials = if shared.driver().is_some() {
        None
    } else {
        let rules = permissions(project).ok().and_then(|it| rule_reach(project, &it));
        guarding::trials(guard, places, spec, project.copies(), rules)
    };
    for torn in trials.iter().flat_map(|trials| trials.recover()) {
        project.notices.warning(torn);
    }
    trials
}

/// The tools of a session. Where nobody is there, nobody can be asked.
fn offered(
    project: &Project,
    id: &str,
    trials: Option<Arc<gnoma_tools::Trials>>,
    rules: Option<Arc<dyn RuledPaths>>,
) -> Vec<Arc<dyn gnoma_core::Tool>> {
    let options = gnoma_tools::ToolOptions { rules, ..tools(project, id, trials) };
    let mut offered = gnoma_tools::builtin(&options);
    offered.push(gnoma_tools::plan());
    offered.extend(project.spec.interactive.then(gnoma_tools::ask));
    offered
}

fn tools(
    Project { spec, guard, places, tools, routing, shared, holder, firewall, .. }: &Project,
    id: &str,
    trials: Option<Arc<gnoma_tools::Trials>>,
) -> gnoma_tools::ToolOptions {
    let variables = spec.environment.variables();
    let is_key =
        |(name, value): &(&String, &String)| guarding::is_key(&routing.provider, name, value);
    let mut sandbox = guarding::sandbox(guard, places, spec, trials);
    if let gnoma_tools::Sandbox::Walled { reading, .. } = &mut sandbox {
        reading.scrubbed.extend(address_secrets::variables_by_value(firewall, variables));
    }
    gnoma_tools::ToolOptions {
        bash_timeout: tools.bash_timeout,
        max_file_bytes: tools.max_file_size,
        shell: shell(tools).into(),
        environment: Some(variables.clone()),
        hidden_variables: variables.iter().filter(is_key).map(|(name, _)| name.clone()).collect(),
        home: spec.environment.home(),
        sandbox,
        umask: spec.umask,
        rules: None,
        editor: shared.editor().map(|editor| (Arc::clone(editor), id.to_owned())),
        holder: holder.clone(),
    }
}

fn shell(tools: &Tools) -> &str {
    tools.shell.as_deref().unwrap_or("bash")
}

type SystemPrompt = Box<dyn Fn(Tier) -> String + Send + Sync>;

fn system_prompt(project: &Project, skills: String, shape: Option<&Shape>) -> SystemPrompt {
    let form = shape.map(Shape::instructions).unwrap_or_default();
    let Project { spec, tools, notices, shared, .. } = project;
    let added = shared.driver().and_then(|driver| driver.prompt(spec));
    let added = added.map(|added| format!("\n\n{added}")).unwrap_or_default();
    if let Some(system) = &spec.system {
        let system = format!("{system}{added}{form}").trim_start().to_owned();
        return Box::new(move |_| system.clone());
    }
    // A copy of the project may not be there yet.
    let instructions = extensions::instructions(project.original());
    for warning in &instructions.warnings {
        notices.warning(warning);
    }
    let instructions = instructions.text() + &memory::instructions(project);
    let cwd = spec.folder.display().to_string();
    let shell = Path::new(shell(tools))
        .file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let folder = spec.folder.clone();
    Box::new(move |tier| {
        let files = if tier == Tier::Lean {
            crate::workspace_hint::file_names(&folder)
        } else {
            String::new()
        };
        let place = prompt::PromptPlace {
            cwd: &cwd,
            os: std::env::consts::OS,
            shell: &shell,
            instructions: instructions.trim_end(),
            skills: &skills,
            files: &files,
        };
        prompt::system(tier, place) + &added + &form
    })
}
