//! Extensions of a project: where they are, and whether they are trusted.

use std::{ffi::OsString, path::Path, sync::Arc};

use gnoma_config::{FileTrust, Origin, project_root, settings::SandboxNetwork};
use gnoma_core::{
    Tool,
    info::CommandInfo,
    places::{WriteProtection, write_protected_names},
    protocol::SessionSpec,
    quantity::describe_count,
};
use gnoma_extend::skills::Skill;
use gnoma_extend::{
    ExtendPlaces, ExtensionSource, Extensions, SlashName,
    agents::AgentFile,
    commands::CustomCommand,
    hooks::{
        self, FoundHooks, Hook, HookKind, HookReach, HookRunner, HookSandbox, HookSession, Hooks,
        OwnHook, effort_name,
    },
    tasks::find_tasks,
};
use gnoma_guard::privacy::Privacy;
use gnoma_sandbox::{Policy, ReadScope, SessionSandbox, Strength, Support, is_scrubbed};

pub use crate::trust_check::project_trust;
use crate::{
    Folders as _, Project, address_secrets,
    claude_rules::ClaudeRules,
    conditions, guard_setup,
    instructions::{self, Instructions},
    plugins,
};

/// The folder within the state folder for the input of running hooks.
const HOOKS: &str = "hooks";

/// The places where gnoma looks for extensions of a project.
#[must_use]
pub fn extension_places(project: &Project) -> ExtendPlaces {
    let spec = project.original_spec();
    let SessionSpec { folder, more_folders, environment, .. } = spec;
    let config_dir = environment.config_dir();
    let root = project_root(folder, &config_dir).unwrap_or_else(|| folder.clone());
    ExtendPlaces {
        home: environment.home(),
        project: root.canonicalize().unwrap_or(root),
        cwd: folder.clone(),
        roots: std::iter::once(folder).chain(more_folders).cloned().collect(),
        is_trusted: project_trust(spec) == FileTrust::Trusted,
        config_dir,
        plugins: plugins::project_plugins(project).active.clone(),
    }
}

/// The hooks that run in a session of the project.
pub(crate) fn session_hooks(
    project: &Project,
    (session, model): (&str, &str),
    tools: &[Arc<dyn Tool>],
) -> Hooks {
    hooks::remove_left_files(&project.spec.environment.state_dir().join(HOOKS));
    let (all, _) = all_hooks(project, &extension_places(project));
    if all.is_empty() {
        return Hooks::default();
    }
    let has_conditions = all.iter().any(|hook| hook.condition.is_some());
    let meets = has_conditions.then(|| conditions::build_judge(project, tools));
    let reach = HookReach { meets, ..hook_reach(project) };
    let runs = project.hook_runs(session);
    let session = HookSession {
        id: session.to_owned(),
        cwd: project.spec.folder.display().to_string(),
        agent: project.elf.clone(),
        model: model.to_owned(),
        effort: effort_name(project.spec.overrides.thinking.or(project.routing.provider.thinking)),
        ..HookSession::default()
    };
    Hooks::new(all, hook_runner(project), reach, session, runs)
}

/// Returns what hooks that are not programs can reach.
fn hook_reach(project: &Project) -> HookReach {
    let Project { spec, guard, routing, shared, firewall, .. } = project;
    let variables = spec.environment.variables();
    let is_key = |(name, value): &(&String, &String)| {
        is_scrubbed(name) || guard_setup::is_key(&routing.provider, name, value)
    };
    let firewall = Arc::clone(firewall);
    let closed = match guard_setup::to_privacy(routing.privacy) {
        Privacy::Incognito { local_only: true } => Some("`privacy.local_only` is set"),
        _ if guard.sandbox.network == SandboxNetwork::Never => Some("`sandbox.network` is `never`"),
        _ => None,
    };
    HookReach {
        http: Some(shared.http(&routing.network)),
        closed,
        keys: variables.iter().filter(is_key).map(|(name, _)| name.clone()).collect(),
        variables: variables.clone().into_iter().collect(),
        clean: Some(Arc::new(move |text: &str| firewall.redact_text(text).into_owned())),
        ..HookReach::default()
    }
}

/// Lists the configured hooks that do not run, a sentence each.
pub(crate) fn idle_hooks(project: &Project) -> Vec<String> {
    found_hooks(project).1
}

/// The hooks that run in sessions of the project, and what is configured and does not, a sentence each.
#[must_use]
pub fn found_hooks(project: &Project) -> (Vec<Hook>, Vec<String>) {
    let places = extension_places(project);
    let (hooks, mut faults) = all_hooks(project, &places);
    faults.extend(hooks::read_hook_files(&places).notes);
    (hooks, faults)
}

/// The hooks that run, and what does not run of what is configured, a sentence each.
fn all_hooks(project: &Project, places: &ExtendPlaces) -> (Vec<Hook>, Vec<String>) {
    let FoundHooks { hooks: mut all, mut faults, notes: _, restrictions } =
        hooks::read_hook_files(places);
    faults.extend(ClaudeRules::from_restrictions(&restrictions, places).faults);
    faults.extend(all.iter_mut().filter_map(conditions::drop_unreadable_condition));
    let waiting = all.iter().filter(|hook| hook.by == ExtensionSource::Project).count();
    if waiting > 0 && !places.is_trusted {
        all.retain(|hook| hook.by != ExtensionSource::Project);
        faults.push(format!(
            "this project has hooks ({waiting}) that do not run until you trust it, so they \
             block nothing yet: `gnoma trust` shows what that would allow"
        ));
    }
    for setting in project.hooks.iter() {
        let model = setting.model.clone();
        let kind = match &*setting.kind {
            "prompt" => HookKind::Prompt { model },
            "agent" => HookKind::Agent { model },
            "http" => HookKind::Http { headers: Vec::new(), variables: Vec::new() },
            _ => HookKind::Command,
        };
        let is_own = matches!(setting.origin, Origin::Project);
        let by = if is_own { ExtensionSource::Project } else { ExtensionSource::User };
        let hook = OwnHook {
            name: setting.name.clone(),
            event: setting.event.clone(),
            kind,
            exec: setting.exec.clone(),
            timeout: setting.timeout,
            fails_open: setting.fails_open,
            tools: setting.tools.clone(),
            by,
            origin: setting.place.to_string().into(),
        };
        match hook.into_hook() {
            Ok(hook) => all.push(hook),
            Err(why) => faults.push(format!("a hook for `{}` {why}", setting.event)),
        }
    }
    (all, faults)
}

/// Returns the environment of hooks: the user's without secrets, and the folder of the project.
fn hook_variables(project: &Project) -> Vec<(OsString, OsString)> {
    let environment = &project.spec.environment;
    let given = address_secrets::without_credentials(environment, |name, _| !is_scrubbed(name));
    let mut variables: Vec<(OsString, OsString)> =
        given.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
    let root = extension_places(project).project;
    variables.push(("CLAUDE_PROJECT_DIR".into(), root.clone().into()));
    variables.push(("GNOMA_PROJECT_DIR".into(), root.into()));
    variables
}

/// Returns the runner of hooks: its sandbox lets them write where commands may, and use the network unless it is
/// closed to all.
pub(crate) fn hook_runner(project: &Project) -> HookRunner {
    let Project { spec, guard, places: kept, .. } = project;
    let variables = hook_variables(project);
    let cwd = spec.folder.clone();
    let state = spec.environment.state_dir();
    let folder = (!project.is_incognito()).then(|| state.join(HOOKS));
    let gnoma_tools::Sandbox::Walled { launcher, policy, required, .. } =
        guard_setup::build_sandbox(guard, kept, spec, None)
    else {
        return HookRunner::new(None, variables, cwd, folder);
    };
    let support = Support::detect();
    match support.strength {
        Strength::Full => (),
        weak if required => {
            let why = format!("was not run: {weak}, and `sandbox.mode` is `required`");
            return HookRunner::with_refusal(why);
        }
        Strength::Partial => (),
        Strength::None => return HookRunner::new(None, variables, cwd, folder),
    }
    let mut policy = *policy;
    let roots: Vec<_> = std::iter::once(&spec.folder).chain(&spec.more_folders).cloned().collect();
    for root in &roots {
        policy
            .protected
            .extend(write_protected_names(WriteProtection::Always).map(|name| root.join(name)));
    }
    policy.writable.retain(|path| path.symlink_metadata().is_ok());
    policy.writable.extend(roots);
    if let Some(folder) = &folder
        && std::fs::create_dir_all(folder).is_ok()
    {
        open_to(folder, &state, &mut policy);
    }
    policy.network = guard.sandbox.network != SandboxNetwork::Never;
    policy.umask = spec.umask;
    let walls = SessionSandbox::new(launcher, &support).with_environment(variables.clone());
    HookRunner::new(Some(HookSandbox { walls, policy }), variables, cwd, folder)
}

/// Hides and holds what is in the state folder now, but for what is handed to hooks: of all commands
/// they alone find that.
fn open_to(folder: &Path, state: &Path, policy: &mut Policy) {
    policy.writable.push(folder.to_owned());
    let others = std::fs::read_dir(state).into_iter().flatten().flatten();
    let others: Vec<_> = others.map(|entry| entry.path()).filter(|path| path != folder).collect();
    policy.protected.retain(|path| path != state);
    policy.protected.extend(others.iter().cloned());
    if let ReadScope::Except(hidden) = &mut policy.readable {
        hidden.retain(|path| path != state);
        hidden.extend(others);
    }
}

/// Returns the sub-agents that are defined in files for the project.
pub fn defined_agents(project: &Project) -> Vec<gnoma_tools::Agent> {
    let places = extension_places(project);
    let (found, _) = gnoma_extend::agents::load_agents(&places);
    found.into_iter().map(|found| agent_from_file(&places, found)).collect()
}

/// Returns the sub-agents that are defined in files, and those that gnoma brings along.
pub(crate) fn all_agents(project: &Project) -> Vec<gnoma_tools::Agent> {
    let mut all = defined_agents(project);
    for bundled in gnoma_extend::agents::bundled_agents() {
        if all.iter().all(|agent| agent.name != bundled.name) {
            all.push(agent_from_file(&extension_places(project), bundled));
        }
    }
    all
}

fn agent_from_file(places: &ExtendPlaces, found: AgentFile) -> gnoma_tools::Agent {
    let waits = places.waits_for_trust(found.by);
    gnoma_tools::Agent {
        refusal: waits.then(|| {
            let (name, file) = (&found.name, places.display_path(&found.path));
            format!(
                "the project defines the agent `{name}` ({file}), but you have not trusted the \
                     project yet: `gnoma trust` shows what that would allow"
            )
        }),
        name: found.name,
        description: found.description,
        tools: found.tools,
        forbidden: found.forbidden,
        model: found.model,
        mode: found.mode,
        prompt: found.prompt,
    }
}

/// Most names in a warning.
const MAX_NAMED: usize = 5;

/// Fields that would hold something back, or have something run, if gnoma acted on them: these are said at each
/// start.
const TELLING: [&str; 7] = [
    "context",
    "disallowed-tools",
    "disallowedTools",
    "hooks",
    "isolation",
    "mcpServers",
    "permissionMode",
];

/// Lists the skills, commands and agents with fields that have no effect here, each with those fields.
fn collect_unsupported(
    places: &ExtendPlaces,
    skills: &[Skill],
    commands: &[CustomCommand],
    agents: &[AgentFile],
) -> Vec<(String, Vec<String>)> {
    let named = |kind: &str, path: &Path| format!("the {kind} {}", places.display_path(path));
    let skills = skills.iter().map(|it| (named("skill", &it.path), it.unsupported.clone()));
    let commands = commands.iter().map(|it| (named("command", &it.path), it.unsupported.clone()));
    let agents = agents.iter().map(|it| (named("agent", &it.path), it.unsupported.clone()));
    let all = skills.chain(commands).chain(agents);
    all.filter(|(_, fields)| !fields.is_empty()).collect()
}

fn unsupported_told(what: &str, fields: &[String]) -> String {
    let fields: Vec<_> = fields.iter().map(|field| format!("`{}`", field.escape_debug())).collect();
    format!("{what}: gnoma does not support {}", fields.join(", "))
}

/// Names the skills, commands and agents with fields that have no effect here, and those fields, a sentence each.
pub(crate) fn unsupported_fields(
    places: &ExtendPlaces,
    skills: &[Skill],
    commands: &[CustomCommand],
    agents: &[AgentFile],
) -> Vec<String> {
    let all = collect_unsupported(places, skills, commands, agents);
    all.iter().map(|(what, fields)| unsupported_told(what, fields)).collect()
}

/// Lists the commands that can be written after a slash.
pub(crate) fn slash_commands(project: &Project) -> Vec<CommandInfo> {
    let info = |SlashName { name, hint, about, by }: SlashName| CommandInfo {
        name,
        hint,
        about,
        origin: by.to_string(),
    };
    gnoma_extend::slash_names(&extension_places(project)).into_iter().map(info).collect()
}

/// The names that people can write behind a slash in a prompt, without those of MCP servers.
#[must_use]
pub fn command_names(project: &Project) -> Vec<String> {
    gnoma_extend::slash_names(&extension_places(project))
        .into_iter()
        .map(|command| command.name)
        .collect()
}

/// Returns why the command or skill that a prompt names does not run before the project is trusted; `None` where it
/// names none, or one that runs.
#[must_use]
pub fn trust_refusal(project: &Project, prompt: &str) -> Option<String> {
    gnoma_extend::trust_refusal(&extension_places(project), prompt)
}

/// Returns why the command or skill that a prompt names was left out; `None` where it names none, or one that can be used.
#[must_use]
pub fn left_out(project: &Project, prompt: &str) -> Option<String> {
    let (name, _) = gnoma_extend::commands::parse_invocation(prompt)?;
    let places = extension_places(project);
    if gnoma_extend::slash_names(&places).iter().any(|command| command.name == name) {
        return None;
    }
    let (_, skills) = gnoma_extend::skills::load_skills(&places);
    let (_, commands) = gnoma_extend::commands::load_commands(&places);
    let files = [format!("/{name}/SKILL.md"), format!("/{name}.md")];
    let is_its_file = |fault: &String| files.iter().any(|file| fault.contains(file.as_str()));
    let fault = skills.into_iter().chain(commands).find(is_its_file)?;
    Some(format!("`/{name}` was left out: {fault}"))
}

/// Says of a fault that its file was left out, unless the file is one of those that are used.
fn fault_warning(fault: String, used: &[String]) -> String {
    let is_of = |path: &String| {
        fault.strip_prefix(path.as_str()).is_some_and(|rest| rest.starts_with(": "))
    };
    if used.iter().any(is_of) { fault } else { format!("left out: {fault}") }
}

/// Says what is wrong with what was found, and what waits for trust.
pub(crate) fn report_problems(project: &Project) {
    let places = extension_places(project);
    let (skills, skill_faults) = gnoma_extend::skills::load_skills(&places);
    let (commands, command_faults) = gnoma_extend::commands::load_commands(&places);
    let (agents, agent_faults) = gnoma_extend::agents::load_agents(&places);
    let paths = skills.iter().map(|it| &it.path).chain(commands.iter().map(|it| &it.path));
    let paths = paths.chain(agents.iter().map(|it| &it.path));
    let used: Vec<String> = paths.map(|path| places.display_path(path)).collect();
    for fault in skill_faults.into_iter().chain(command_faults).chain(agent_faults) {
        project.notices.warning(fault_warning(fault, &used));
    }
    for fault in all_hooks(project, &places).1.into_iter().chain(plugins::plugin_warnings(project))
    {
        project.notices.warning(fault);
    }
    for (what, fields) in collect_unsupported(&places, &skills, &commands, &agents) {
        if fields.iter().any(|field| TELLING.contains(&field.as_str())) {
            project.notices.warning(unsupported_told(&what, &fields));
        }
    }
    if let Some(warning) = untrusted_override_warning(&places) {
        project.notices.warning(warning);
    }
    let waits = |skill: &&Skill| places.waits_for_trust(skill.by) && !skill.is_for_people;
    let count = skills.iter().filter(waits).count();
    if count > 0 {
        let skills = describe_count(count, "skill");
        project.notices.warning(format!(
            "this project has {skills} that models do not see until you trust it: \
             `gnoma trust` shows what that would allow"
        ));
    }
}

/// Names the project's commands, skills, agents and tasks that would replace others of the same name if the project were
/// trusted.
fn untrusted_override_warning(places: &ExtendPlaces) -> Option<String> {
    if places.is_trusted {
        return None;
    }
    let trusting = ExtendPlaces { is_trusted: true, ..places.clone() };
    let mut names = Vec::new();
    let slash = |places: &ExtendPlaces| -> Vec<_> {
        gnoma_extend::slash_names(places).into_iter().map(|it| (it.name, it.by)).collect()
    };
    names.extend(overridden_names(&slash(places), &slash(&trusting), |name| format!("`/{name}`")));
    let agents = |places: &ExtendPlaces| -> Vec<_> {
        let bundled = gnoma_extend::agents::bundled_agents();
        let all = bundled.into_iter().chain(gnoma_extend::agents::load_agents(places).0);
        all.map(|it| (it.name, it.by)).collect()
    };
    let agent = |name: &str| format!("agent `{name}`");
    names.extend(overridden_names(&agents(places), &agents(&trusting), agent));
    let tasks = |places: &ExtendPlaces| -> Vec<_> {
        find_tasks(places).0.into_iter().map(|it| (it.task.name, it.by)).collect()
    };
    names.extend(overridden_names(&tasks(places), &tasks(&trusting), |name| {
        format!("task `{name}`")
    }));
    if names.is_empty() {
        return None;
    }
    let verb = if names.len() == 1 { "does" } else { "do" };
    let more = names.len().saturating_sub(MAX_NAMED);
    names.truncate(MAX_NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Some(format!(
        "until you trust this project, its {}{more} {verb} not replace yours or gnoma's of the same name: `gnoma trust` shows \
         what that would allow",
        names.join(", ")
    ))
}

/// Returns the names that the project has in `theirs`, and another source in `own`.
fn overridden_names(
    own: &[(String, ExtensionSource)],
    theirs: &[(String, ExtensionSource)],
    describe: impl Fn(&str) -> String,
) -> Vec<String> {
    let of_project = theirs.iter().filter(|(_, by)| *by == ExtensionSource::Project);
    let is_replaced =
        |name: &str| own.iter().any(|(known, by)| known == name && *by != ExtensionSource::Project);
    of_project.filter(|(name, _)| is_replaced(name)).map(|(name, _)| describe(name)).collect()
}

/// The instructions that hold where a session works.
pub(crate) fn load_instructions(spec: &SessionSpec) -> Instructions {
    let SessionSpec { folder, environment, .. } = spec;
    instructions::find(folder, &environment.config_dir(), environment.home().as_deref())
}

/// Describes what is sent with every request besides the conversation: each part with its tokens and its origin.
pub(crate) fn describe_context(project: &Project) -> String {
    let found = load_instructions(&project.spec);
    let mut text = String::new();
    for part in &found.parts {
        let whose = if part.is_users { "yours" } else { "the project's" };
        text.push_str(&format!(
            "{} ({whose}): about {} tokens\n",
            part.place,
            part.estimate_tokens()
        ));
    }
    if found.parts.is_empty() {
        text.push_str("no instructions (AGENTS.md, CLAUDE.md, .claude/rules)\n");
    }
    for (place, files) in &found.scoped {
        text.push_str(&format!(
            "{place}: sent once one of these files is read or changed: \
                                {files}\n"
        ));
    }
    let prompt =
        Extensions::from_places(extension_places(project), Hooks::default()).system_prompt();
    if !prompt.is_empty() {
        let count = prompt.lines().count() - 1;
        text.push_str(&format!(
            "{count} skills, by name: about {} tokens\n",
            prompt.len().div_ceil(4)
        ));
    }
    for warning in found.warnings {
        text.push_str(&format!("warning: {warning}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skill_with_a_fault_that_is_still_used_is_not_reported_as_left_out() {
        let used = ["~/skills/m/SKILL.md".to_owned()];
        let fault = "~/skills/m/SKILL.md: `description` occurs twice; the first one counts";
        assert_eq!(fault_warning(fault.to_owned(), &used), fault);
        let fault = "~/skills/k/SKILL.md: it has no description";
        assert_eq!(fault_warning(fault.to_owned(), &used), format!("left out: {fault}"));
    }
}
