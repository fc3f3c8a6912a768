//! The options of a project's sessions: tools, permissions, prompt, limits.

use std::{path::Path, sync::Arc};

use gnoma_config::settings::{Compaction, Tools};
use gnoma_core::{lifecycle::Lifecycle, places::RuledPaths, tool::Tier};
use gnoma_engine::{
    AnswerForm, GatePlace, Limits, PersistenceOptions, Routes, context::Strategy, prompt, session,
};
use gnoma_extend::Extensions;
use gnoma_guard::permission::Permissions;

use crate::{
    HostError, Project, Result, address_secrets, claude_rules::ClaudeRules, driven::DrivenSession,
    environment::Folders as _, extensions, guard_setup, memory, output_style,
};

/// Returns the strategy that makes room in a full context window.
fn compaction_strategy(set: Compaction) -> Strategy {
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
pub fn session_permissions(project: &Project) -> Result<Permissions> {
    let mut permissions = guard_setup::parse_permissions(&project.guard)?;
    let restricting = ClaudeRules::read(&extensions::extension_places(project)).rules;
    restricting.into_iter().for_each(|rule| permissions.add_rule(rule));
    Ok(permissions)
}

/// The options of the session `id` over these models, of which nothing is kept yet.
///
/// # Errors
/// The rules about permissions cannot be used, or the form of answers cannot be checked.
pub fn session_options(
    project: &Project,
    id: String,
    routes: Arc<Routes>,
) -> Result<session::Options> {
    options_with(project, id, routes, session_trials(project))
}

/// Returns the options of a session whose commands `trials` runs. Its judgement of a command sees what earlier commands
/// left.
///
/// # Errors
/// As [`session_options`].
pub fn options_with(
    project: &Project,
    id: String,
    routes: Arc<Routes>,
    trials: Option<Arc<gnoma_tools::Trials>>,
) -> Result<session::Options> {
    let spec = &project.spec;
    let permissions = session_permissions(project)?;
    let rules = rule_reach(project, &permissions);
    let shape = spec.answer_schema.as_ref().map(AnswerForm::from_schema).transpose();
    let shape = shape.map_err(|error| HostError::usage(error.to_string()))?;
    let mut tools = session_tools(project, &id, trials.clone(), rules.clone());
    let extensions = session_extensions(project, &id, &routes, &tools);
    tools.extend(extensions.tools());
    let system = system_prompt(project, extensions.system_prompt(), shape.as_ref());
    let parts = SessionParts { tools, lifecycle: extensions, permissions };
    let SessionParts { tools, lifecycle, permissions } = apply_driver(project, &id, parts);
    Ok(session::Options {
        id,
        place: gate_place(project, trials, rules),
        tools,
        routes,
        system,
        shape,
        thinking: spec.overrides.thinking.or(project.routing.provider.thinking),
        lifecycle: Some(lifecycle),
        mode: project.guard.permission.mode,
        permissions,
        firewall: Arc::clone(&project.firewall),
        interactive: spec.interactive,
        limits: turn_limits(project),
        history: Vec::new(),
        measured: None,
        keeping: PersistenceOptions::default(),
        scope: None,
        step: None,
        above: None,
        gauge: Arc::default(),
        spawner: None,
        spans: project.call_spans(),
        held_to: None,
        forbidden: Arc::default(),
        ready: None,
    })
}

/// The parts of a session that a program which drives it can replace.
struct SessionParts {
    tools: Vec<Arc<dyn gnoma_core::Tool>>,
    lifecycle: Arc<dyn Lifecycle>,
    permissions: Permissions,
}

/// Lets the program that drives the sessions, if there is one, replace parts of a session.
fn apply_driver(project: &Project, id: &str, parts: SessionParts) -> SessionParts {
    let Some(driver) = project.shared.driver() else { return parts };
    let session = DrivenSession { id, spec: &project.spec };
    let SessionParts { tools, lifecycle, mut permissions } = parts;
    let tools = driver.session_tools(session, tools);
    let lifecycle = driver.session_lifecycle(session, lifecycle);
    driver.permission_rules().into_iter().for_each(|rule| permissions.add_rule(rule));
    SessionParts { tools, lifecycle, permissions: permissions.with_since(driver.rules_since()) }
}

/// Opens the extensions of the session `id`; its hooks learn the first model and the tools.
fn session_extensions(
    project: &Project,
    id: &str,
    routes: &Routes,
    tools: &[Arc<dyn gnoma_core::Tool>],
) -> Arc<Extensions> {
    let first = routes.arms().first().map(|arm| arm.id.model.clone()).unwrap_or_default();
    let hooks = extensions::session_hooks(project, (id, &first), tools);
    let extensions =
        Extensions::from_places(extensions::extension_places(project), hooks).in_session(id);
    Arc::new(extensions.with_servers(Arc::clone(&project.servers)))
}

/// Returns the place where a session of the project works.
pub(crate) fn gate_place(
    project: &Project,
    trials: Option<Arc<gnoma_tools::Trials>>,
    rules: Option<Arc<dyn RuledPaths>>,
) -> GatePlace {
    let Project { spec, guard, places, .. } = project;
    GatePlace {
        copies: project.folder_copies(),
        ..guard_setup::gate_place(guard, places, spec, trials, rules)
    }
}

/// Returns the tools with which agents of other programs read and write files: those on the disk, not an editor's.
pub(crate) fn plain_files(project: &Project) -> [Arc<dyn gnoma_core::Tool>; 2] {
    gnoma_tools::plain_files(&tool_options(project, "", None))
}

/// The tools by which a session starts others and speaks with them. A program that drives it brings its
/// own.
pub(crate) fn elf_tools(project: &Project) -> Vec<Arc<dyn gnoma_core::Tool>> {
    if project.shared.driver().is_some() {
        return Vec::new();
    }
    gnoma_tools::elf_tools(extensions::defined_agents(project), project.spec.agent.is_some())
}

/// Returns the limits of a turn: how far it may go and how long it waits.
fn turn_limits(project: &Project) -> Limits {
    let (network, clock) = (&project.routing.network, project.shared.clock());
    Limits {
        rounds: project.tools.max_rounds,
        first_byte: network.first_byte_timeout,
        local_first_byte: network.local_first_byte_timeout,
        silence: network.idle_timeout,
        compaction: compaction_strategy(project.tools.compaction),
        seed: clock.random_bits() | 1,
        ..Limits::default()
    }
}

/// The files that the rules of a session deny or ask about.
fn rule_reach(project: &Project, permissions: &Permissions) -> Option<Arc<dyn RuledPaths>> {
    let place = gate_place(project, None, None);
    let reach = permissions.rule_reach(&place.judgement_context())?;
    Some(Arc::new(reach))
}

/// Returns what runs the session's commands on trial; `None` if a program drives the session, because that program
/// wants to be asked before a command runs, and about the command as it is.
pub fn session_trials(project: &Project) -> Option<Arc<gnoma_tools::Trials>> {
    let Project { spec, guard, places, shared, .. } = project;
    let trials = if shared.driver().is_some() {
        None
    } else {
        let rules = session_permissions(project).ok().and_then(|it| rule_reach(project, &it));
        guard_setup::build_trials(guard, places, spec, project.folder_copies(), rules)
    };
    for torn in trials.iter().flat_map(|trials| trials.recover()) {
        project.notices.warning(torn);
    }
    trials
}

/// The tools of a session. Only an interactive one has the tool that asks the user.
pub(crate) fn session_tools(
    project: &Project,
    id: &str,
    trials: Option<Arc<gnoma_tools::Trials>>,
    rules: Option<Arc<dyn RuledPaths>>,
) -> Vec<Arc<dyn gnoma_core::Tool>> {
    let options = gnoma_tools::ToolOptions { rules, ..tool_options(project, id, trials) };
    let mut offered = gnoma_tools::builtin_tools(&options);
    offered.push(gnoma_tools::plan_tool());
    offered.extend(project.spec.interactive.then(gnoma_tools::ask_tool));
    offered
}

fn tool_options(
    Project { spec, guard, places, tools, routing, shared, holder, firewall, .. }: &Project,
    id: &str,
    trials: Option<Arc<gnoma_tools::Trials>>,
) -> gnoma_tools::ToolOptions {
    let variables = spec.environment.variables();
    let is_key =
        |(name, value): &(&String, &String)| guard_setup::is_key(&routing.provider, name, value);
    let mut sandbox = guard_setup::build_sandbox(guard, places, spec, trials);
    if let gnoma_tools::Sandbox::Walled { reading, .. } = &mut sandbox {
        reading.scrubbed.extend(address_secrets::variables_by_value(firewall, variables));
    }
    gnoma_tools::ToolOptions {
        bash_timeout: tools.bash_timeout,
        max_file_bytes: tools.max_file_size,
        shell: shell_program(tools).into(),
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

fn shell_program(tools: &Tools) -> &str {
    tools.shell.as_deref().unwrap_or("bash")
}

type SystemPrompt = Box<dyn Fn(Tier) -> String + Send + Sync>;

fn system_prompt(project: &Project, skills: String, shape: Option<&AnswerForm>) -> SystemPrompt {
    let form = shape.map(AnswerForm::instructions).unwrap_or_default();
    let Project { spec, tools, notices, shared, .. } = project;
    let added = shared.driver().and_then(|driver| driver.system_prompt_addition(spec));
    let added = added.map(|added| format!("\n\n{added}")).unwrap_or_default();
    if let Some(system) = &spec.system {
        let system = format!("{system}{added}{form}").trim_start().to_owned();
        return Box::new(move |_| system.clone());
    }
    // A copy of the project may not be there yet.
    let instructions = extensions::load_instructions(project.original_spec());
    for warning in &instructions.warnings {
        notices.warning(warning);
    }
    let instructions = instructions.text() + &memory::instructions(project);
    let style = output_style::style_instructions(project);
    let cwd = spec.folder.display().to_string();
    let shell = Path::new(shell_program(tools))
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
        prompt::system_prompt(tier, place) + &style + &added + &form
    })
}
