//! Facts about a session that are known before its engine opens.

use gnoma_config::settings::Provider;
use gnoma_core::{
    info::{ResumedFrom, SessionInfo},
    protocol::SessionSpec,
    session::PermissionMode,
};
use gnoma_llm::KNOWN;

use crate::{
    Folders as _, Project, branch::current_branch, extensions, providers, routing,
    session_resume::ConversationUsage,
};

/// The facts that a status line shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusFacts {
    /// The folder, with `~` for the home.
    pub folder: String,
    /// The branch that is checked out there, or the beginning of the commit.
    pub branch: Option<String>,
    /// The profile of the settings, where one is in use.
    pub profile: Option<String>,
    /// `true` if nothing is saved.
    pub incognito: bool,
    /// The model that will be called first, as far as that is known.
    pub model: Option<String>,
    /// Tokens of its window; 0 when unknown.
    pub window: u64,
    /// The permission mode, which says how much is asked.
    pub mode: PermissionMode,
}

/// The facts of a session in this project. Asks neither network nor git.
#[must_use]
pub fn collect_facts(project: &Project) -> StatusFacts {
    let SessionSpec { environment, folder, .. } = &project.spec;
    let overrides = routing::run_overrides(&project.spec);
    let provider = &routing::settings_with_overrides(&project.routing, &overrides).provider;
    let named = provider.default.as_deref();
    let window = named.and_then(|name| provider.context.get(name));
    StatusFacts {
        folder: environment.shorten_home(folder),
        branch: current_branch(folder, &project.firewall),
        profile: project.keeping.profile.clone(),
        incognito: project.is_incognito(),
        model: named.and_then(|name| default_model(provider, name)),
        window: window.copied().unwrap_or(0).into(),
        mode: project.guard.permission.mode,
    }
}

/// Returns the facts about a session that front ends show when it begins.
pub(crate) fn session_info(
    project: &Project,
    used: ConversationUsage,
    resumed: Option<ResumedFrom>,
) -> SessionInfo {
    let facts = collect_facts(project);
    let instructions = extensions::load_instructions(&project.spec).parts;
    SessionInfo {
        child: None,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        folder: facts.folder,
        branch: facts.branch,
        profile: facts.profile,
        incognito: facts.incognito,
        is_kept: !facts.incognito && project.keeping.session.keep,
        model: facts.model,
        window: Some(facts.window).filter(|window| *window > 0),
        last_call: used.last_call,
        before: used.all,
        theme: project.personal.theme.clone(),
        vim: project.personal.vim,
        found: None,
        resumed,
        connectable: providers::hosted_providers(),
        instructions: instructions.into_iter().map(|part| part.place).collect(),
        commands: extensions::slash_commands(project),
    }
}

fn default_model(provider: &Provider, name: &str) -> Option<String> {
    let known = KNOWN.iter().find(|known| known.name == name);
    let usual = known.map(|known| known.default_model).filter(|model| !model.is_empty());
    let model = provider.model.as_deref().or(usual)?;
    Some(format!("{name}/{model}"))
}
