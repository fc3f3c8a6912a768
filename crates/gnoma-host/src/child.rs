//! Sessions that others start in their project: never with more rights, and kept with the one that starts
//! them.

use std::{path::PathBuf, sync::Arc};

use gnoma_core::{
    Command, Message, ModelRef, Tool,
    protocol::{Detach, HistoryNote, Overrides, SessionSpec, Start},
    store::SessionId,
    tool::is_about,
};

use gnoma_engine::{
    CheckpointReadiness, Handle, LastRequest, PersistenceOptions, Routes, Session as Engine, resume,
};
use gnoma_extend::hooks::HookAgent;
use gnoma_guard::permission::Permissions;
use gnoma_store::Store;

use crate::{
    HostError, Notices, Project, Result, agent,
    choice_lists::arm_choices,
    crate_options, guard_setup,
    isolation::IsolatedCopy,
    live::{ChildOpening, OpenedSession},
    session,
    session_resume::{self, ContinuedSession, ConversationUsage},
};

/// Most models that are named where another one was asked for.
const MAX_NAMED: usize = 10;

/// Opens the project as a session sees it that one in `parent` starts, in the copy if it works in one.
///
/// # Errors
/// It would be allowed what its parent is not, or is no session of the same project.
pub(crate) fn open_project(
    parent: &Project,
    wanted: &ChildOpening,
    copy: Option<&IsolatedCopy>,
) -> Result<Project> {
    let mut project = build_project(parent, &wanted.task.spec, wanted.notices.clone(), copy)?;
    project.holder = parent.holder.for_elf(&wanted.task.name);
    project.elf = Some(hook_agent(wanted));
    Ok(project)
}

/// The conversation that a child continues, held; empty for a new one.
#[derive(Default)]
pub(crate) struct ChildPast {
    pub(crate) id: Option<SessionId>,
    pub(crate) store: Option<Arc<Store>>,
    pub(crate) messages: Vec<Arc<Message>>,
    pub(crate) notes: Vec<HistoryNote>,
    pub(crate) used: ConversationUsage,
    pub(crate) measured: Option<resume::MeasuredPrefix>,
}

/// Holds the session that a child of `parent` continues, if `resumed` names one.
///
/// # Errors
/// As [`session_resume::take_child`].
pub(crate) async fn hold_past(
    project: &Project,
    parent: Option<&SessionId>,
    resumed: Option<&str>,
) -> Result<ChildPast> {
    let Some(id) = resumed else { return Ok(ChildPast::default()) };
    let ContinuedSession { past, id, history, notes, used, measured, .. } =
        session_resume::take_child(project, parent, id).await?;
    let (id, store) = (Some(id), Some(past.store));
    Ok(ChildPast { id, store, messages: history, notes, used, measured })
}

/// Returns an open session that offers the models of its parent.
pub(crate) fn opened_session(
    engine: Handle,
    routes: &Arc<Routes>,
    current: Option<String>,
) -> OpenedSession {
    let routes = Arc::clone(routes);
    let models = Box::new(move || arm_choices(&routes, current.as_deref()));
    OpenedSession { engine, beside: Box::new(()), models, jobs: Arc::new(|| 0) }
}

fn build_project(
    parent: &Project,
    wanted: &SessionSpec,
    notices: Notices,
    copy: Option<&IsolatedCopy>,
) -> Result<Project> {
    let mut project = parent.clone();
    let mut spec =
        crate_options::resolve_folders(build_spec(&parent.spec, parent.is_incognito(), wanted)?)?;
    refuse_outside_folders(&parent.spec, &spec)?;
    if let Some(copy) = copy {
        spec = spec_in_copy(&mut project, spec, copy)?;
    }
    let rounds = &mut project.tools.max_rounds;
    *rounds = spec.overrides.max_rounds.unwrap_or(u32::MAX).min(*rounds);
    let keys = &parent.routing.provider.api_keys;
    let random = parent.shared.clock().random_bits();
    let firewall = guard_setup::build_firewall(
        &parent.guard,
        keys,
        (&spec.environment, &spec.folder),
        random,
    )?;
    Ok(Project { spec, firewall, notices, ..project })
}

/// Returns the options that a session in a copy is opened with, and makes the project that of the copy.
fn spec_in_copy(
    project: &mut Project,
    spec: SessionSpec,
    copy: &IsolatedCopy,
) -> Result<SessionSpec> {
    let inside = copy.session_spec(spec.clone())?;
    project.copy_of.get_or_insert_with(|| Arc::new(spec));
    project.places.workspace = Some(copy.root().to_owned());
    let readable = copy.readable_objects().and_then(|objects| objects.to_str());
    Arc::make_mut(&mut project.guard).sandbox.readable.extend(readable.map(str::to_owned));
    Ok(inside)
}

/// Returns the options that a child session is opened with: the parent's, except for what a session may choose for
/// another one.
fn build_spec(parent: &SessionSpec, incognito: bool, wanted: &SessionSpec) -> Result<SessionSpec> {
    let SessionSpec { folder, more_folders, environment, umask, profile, .. } = wanted;
    let SessionSpec { overrides, system, answer_schema, start, interactive, .. } = wanted;
    let is_other = [
        ("environment", !environment.variables().is_empty() && *environment != parent.environment),
        ("umask", umask.is_some() && *umask != parent.umask),
        ("profile", profile.is_some() && *profile != parent.profile),
        ("incognito", overrides.incognito.is_some_and(|wanted| wanted != incognito)),
        ("confirm_bypass", overrides.confirm_bypass && !parent.overrides.confirm_bypass),
        ("start", *start != Start::New),
    ];
    if let Some((name, _)) = is_other.into_iter().find(|(_, is_other)| *is_other) {
        let text = format!("a session cannot start another with a different `{name}`");
        return Err(HostError::usage(text));
    }
    let own = || parent.folder.clone();
    let is_elsewhere = !folder.as_os_str().is_empty();
    let has_all = !is_elsewhere && more_folders.is_empty();
    Ok(SessionSpec {
        folder: if is_elsewhere { folder.clone() } else { own() },
        more_folders: if has_all { &parent.more_folders } else { more_folders }.clone(),
        environment: parent.environment.clone(),
        umask: parent.umask,
        profile: parent.profile.clone(),
        overrides: overrides.clone(),
        system: system.clone(),
        answer_schema: answer_schema.clone(),
        start: Start::New,
        interactive: *interactive && parent.interactive,
        detach: Detach::Keep,
        mcp_servers: Vec::new(),
        agent: None,
    })
}

/// Refuses folders that the parent does not work in. Both have theirs without links.
fn refuse_outside_folders(parent: &SessionSpec, child: &SessionSpec) -> Result<()> {
    let folders = |spec: &SessionSpec| -> Vec<PathBuf> {
        std::iter::once(&spec.folder).chain(&spec.more_folders).cloned().collect()
    };
    let roots = folders(parent);
    let is_outside = |folder: &PathBuf| !roots.iter().any(|root| folder.starts_with(root));
    match folders(child).into_iter().find(is_outside) {
        Some(folder) => {
            let shown = folder.display();
            let text = format!("`{shown}` is outside the folders of the calling session");
            Err(HostError::usage(text))
        }
        None => Ok(()),
    }
}

/// The state with which the engine continues, and where it saves its work.
pub(crate) struct ContinuedState {
    pub(crate) history: Vec<Arc<Message>>,
    pub(crate) measured: Option<resume::MeasuredPrefix>,
    pub(crate) keeping: PersistenceOptions,
    /// The tool that reads back what was too large for the conversation.
    pub(crate) reader: Option<Arc<dyn Tool>>,
    pub(crate) gauge: Arc<LastRequest>,
    /// The signal that the files are there.
    pub(crate) ready: Option<CheckpointReadiness>,
}

/// Makes the engine of the session, over the models of the one that starts it. Gives the model that it
/// is to ask, where one was named.
pub(crate) fn build_engine(
    project: &Project,
    wanted: ChildOpening,
    routes: &Arc<Routes>,
    state: ContinuedState,
) -> Result<(Handle, Option<ModelRef>)> {
    let ChildOpening { id, task, scope, rights, spawner, .. } = wanted;
    let ContinuedState { history, measured, keeping, reader, gauge, ready } = state;
    let wanted = task.preferred_model.as_deref();
    let arm = requested_arm(routes, &project.spec.overrides)?
        .or_else(|| wanted.and_then(|part| agent::find_preferred_arm(routes, part)));
    let mut options = session::session_options(project, id.to_string(), Arc::clone(routes))?;
    if task.may_spawn {
        options.tools.extend(session::elf_tools(project));
    }
    options.tools.extend(reader);
    // A program that drives sessions says which tools they have.
    if let Some(servers) = project.servers.get().filter(|_| project.shared.driver().is_none()) {
        let is_named = |name: &str| task.tools.iter().flatten().any(|rule| is_about(rule, name));
        options.tools = servers.tools_for_child(&options.tools, &is_named);
    }
    (options.history, options.measured, options.keeping) = (history, measured, keeping);
    options.ready = ready;
    if let Some(listed) = task.tools {
        options.tools = agent::select_tools(options.tools, &listed)?;
        options.held_to = Some(listed.into());
    }
    agent::forbid_tools(&mut options, task.forbidden);
    if !task.prompt.is_empty() {
        let (own, more) = (options.system, task.prompt);
        options.system = Box::new(move |tier| format!("{}\n\n{more}", own(tier)));
    }
    options.mode = project.spec.overrides.mode.unwrap_or_else(|| rights.mode());
    options.permissions = Permissions::default();
    options.gauge = gauge;
    (options.scope, options.above) = (Some(scope), Some(rights));
    options.step = Some(task.step).filter(|step| !step.is_empty()).map(Into::into);
    options.spawner = task.may_spawn.then_some(spawner);
    let engine = Engine::spawn(options);
    if arm.is_some() {
        engine.send_command(Command::Pin { arm: arm.clone() });
    }
    Ok((engine, arm))
}

/// Describes the session to hooks: as a part of the session at the top.
fn hook_agent(wanted: &ChildOpening) -> HookAgent {
    let ChildOpening { id, task, scope, .. } = wanted;
    let top =
        scope.self_and_ancestors().last().map_or_else(String::new, |top| top.session().to_owned());
    let kind = task.agent.as_ref().unwrap_or(&task.name).clone();
    HookAgent { session: top, id: id.to_string(), kind }
}

/// The arm that was asked for by name.
fn requested_arm(
    routes: &Routes,
    Overrides { provider, model, .. }: &Overrides,
) -> Result<Option<ModelRef>> {
    if provider.is_none() && model.is_none() {
        return Ok(None);
    }
    let is_meant = |name: &ModelRef| {
        let is_of = provider.as_ref().is_none_or(|provider| name.provider == *provider);
        let whole = name.to_string();
        is_of && model.as_ref().is_none_or(|model| name.model == *model || whole == *model)
    };
    let found = routes.arms().iter().map(|arm| arm.id.clone()).find(is_meant);
    found.map(Some).ok_or_else(|| {
        let named: Vec<_> = [provider, model].into_iter().flatten().map(String::as_str).collect();
        let arms = routes.arms();
        let mut known: Vec<_> = arms.iter().take(MAX_NAMED).map(|arm| arm.id.to_string()).collect();
        if arms.len() > MAX_NAMED {
            known.push("…".to_owned());
        }
        let (named, known) = (named.join("/"), known.join(", "));
        HostError::usage(format!("`{named}` is not one of this session's models: {known}"))
    })
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use gnoma_config::Sources;
    use gnoma_core::protocol::Environment;

    use super::*;
    use crate::ProcessResources;

    /// A project in a folder of its own, and the folder that it is in.
    fn parent() -> (Project, tempfile::TempDir) {
        let around = tempfile::tempdir().unwrap();
        let base = around.path().canonicalize().unwrap();
        for folder in ["work/below", "more", "elsewhere"] {
            fs::create_dir_all(base.join(folder)).unwrap();
        }
        symlink(base.join("elsewhere"), base.join("work/link")).unwrap();
        let nowhere = base.join("no-settings");
        let sources =
            Sources { config_dir: nowhere.clone(), state_dir: nowhere, ..Sources::default() };
        let lowered = gnoma_config::load_settings(&sources).unwrap().into();
        let variables = [("HOME".to_owned(), base.display().to_string())];
        let spec = SessionSpec {
            folder: base.join("work"),
            more_folders: vec![base.join("more")],
            environment: Environment::new(variables.into()),
            profile: Some("mine".to_owned()),
            ..SessionSpec::default()
        };
        (
            Project::with_settings(
                spec,
                lowered,
                Notices::without_sink(),
                ProcessResources::default(),
            )
            .unwrap(),
            around,
        )
    }

    fn child(parent: &Project, wanted: &SessionSpec) -> Result<Project> {
        build_project(parent, wanted, Notices::without_sink(), None)
    }

    #[test]
    fn child_session_inherits_folders_and_settings_of_its_parent() {
        let (parent, _around) = parent();
        let rounds = Overrides { max_rounds: Some(u32::MAX), ..Overrides::default() };
        let wanted = SessionSpec { interactive: true, overrides: rounds, ..SessionSpec::default() };
        let made = child(&parent, &wanted).unwrap();
        let (own, above) = (&made.spec, &parent.spec);
        assert_eq!((&own.folder, &own.more_folders), (&above.folder, &above.more_folders));
        assert_eq!((&own.environment, &own.profile), (&above.environment, &above.profile));
        assert!(!own.interactive);
        assert_eq!(made.tools.max_rounds, parent.tools.max_rounds);
        assert!(!Arc::ptr_eq(&made.firewall, &parent.firewall), "placeholders of its own");
        let below = SessionSpec { folder: parent.spec.folder.join("below"), ..wanted };
        let made = child(&parent, &below).unwrap();
        assert_eq!((&made.spec.folder, made.spec.more_folders.len()), (&below.folder, 0));
    }

    #[test]
    fn child_session_wider_than_its_parent_is_rejected() {
        let (parent, _around) = parent();
        let base = parent.spec.folder.parent().unwrap();
        let spec = SessionSpec::default;
        let said = |overrides| SessionSpec { overrides, ..spec() };
        let other = Environment::new([("A".to_owned(), "b".to_owned())].into());
        let wider = [
            SessionSpec { folder: base.to_owned(), ..spec() },
            SessionSpec { folder: base.join("elsewhere"), ..spec() },
            SessionSpec { folder: base.join("work/link"), ..spec() },
            SessionSpec { folder: base.join("work/../elsewhere"), ..spec() },
            SessionSpec { more_folders: vec![base.join("elsewhere")], ..spec() },
            SessionSpec { environment: other, ..spec() },
            SessionSpec { umask: Some(0), ..spec() },
            SessionSpec { profile: Some("other".to_owned()), ..spec() },
            SessionSpec { start: Start::Newest { fork: false }, ..spec() },
            said(Overrides { incognito: Some(true), ..Overrides::default() }),
            said(Overrides { confirm_bypass: true, ..Overrides::default() }),
        ];
        for wanted in wider {
            assert!(child(&parent, &wanted).is_err(), "{wanted:?}");
        }
    }
}
