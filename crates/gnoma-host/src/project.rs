//! A project as one client sees it: what its settings say, what guards it, and where things are kept.

use std::{
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use gnoma_config::{
    ExplainedValue,
    settings::{HookSetting, McpServer, Personal, Sandbox, Tools},
};
use gnoma_core::{
    protocol::{Environment, SessionSpec},
    tool::CallSpans,
};
use gnoma_extend::{hooks::HookAgent, mcp::ServersView};
use gnoma_guard::firewall::Firewall;
use gnoma_tools::FileHolder;

use crate::{
    Folders as _, HostError, Notices, Result, crate_options, environment, firewall_setup,
    key_command,
    places::Places,
    plugin_choice::ProjectPlugins,
    project_settings::{GuardSettings, ProjectSettings, RoutingSettings, StorageSettings},
    shared::ProcessResources,
    telemetry::{self, Telemetry},
};

/// The settings and services on which every command and every session of a folder is built.
#[derive(Clone)]
pub struct Project {
    /// The options that the client wants; their folders exist and are free of symbolic links.
    pub spec: SessionSpec,
    /// The models that can be asked, and how one of them is chosen.
    pub routing: Arc<RoutingSettings>,
    /// The settings that guard the project's sessions.
    pub guard: Arc<GuardSettings>,
    /// The settings that say what is saved of the sessions.
    pub keeping: StorageSettings,
    /// Limits of their tools.
    pub tools: Tools,
    /// Programs that are run at points of a session's life.
    pub hooks: Arc<[HookSetting]>,
    /// Servers whose tools are on offer.
    pub mcp_servers: Arc<[McpServer]>,
    /// The project's MCP servers, once they are there.
    pub(crate) servers: Arc<OnceLock<ServersView>>,
    /// The plugins of the project.
    pub plugins: ProjectPlugins,
    /// The settings of the person.
    pub personal: Arc<Personal>,
    /// Every setting with its origin.
    pub values: Arc<[ExplainedValue]>,
    /// The firewall that keeps secrets in.
    pub firewall: Arc<Firewall>,
    /// The places where sessions and files are saved.
    pub places: Places,
    /// The identity of the project's session among those that change the same files.
    pub(crate) holder: FileHolder,
    /// The description of the session for hooks, if another session started it.
    pub(crate) elf: Option<HookAgent>,
    /// The original of the copy in which the session works: trusted extensions come from there.
    pub(crate) copy_of: Option<Arc<SessionSpec>>,
    /// The destination of spans and metrics of the sessions, if the user wants telemetry.
    pub(crate) telemetry: Option<Arc<Telemetry>>,
    /// The destination of notices.
    pub notices: Notices,
    /// The state shared with the other sessions of the process.
    pub shared: ProcessResources,
}

impl Project {
    /// Loads the settings that apply to `spec`.
    ///
    /// # Errors
    /// The folder is not a folder, or the settings cannot be used.
    pub fn open(spec: SessionSpec, notices: Notices, shared: ProcessResources) -> Result<Self> {
        let (spec, loaded) = crate_options::load_settings(spec, &notices)?;
        let mut lowered = ProjectSettings::from(loaded);
        key_command::fill_keys(&mut lowered.routing.provider, &spec.environment, &notices);
        Self::with_settings(spec, lowered, notices, shared)
    }

    /// A project with settings that were read before.
    ///
    /// # Errors
    /// The settings about secrets cannot be used.
    pub fn with_settings(
        spec: SessionSpec,
        mut lowered: ProjectSettings,
        notices: Notices,
        shared: ProcessResources,
    ) -> Result<Self> {
        if let Some(budget) = spec.overrides.budget_micro_usd {
            let cap = &mut lowered.routing.router.caps.session;
            *cap = Some(cap.map_or(budget, |own| own.min(budget)));
        }
        let (routing, environment) = (&lowered.routing, &spec.environment);
        let firewall = firewall_setup::build_firewall(
            &lowered.guard,
            &routing.provider.api_keys,
            (environment, &spec.folder),
            shared.clock().random_bits(),
        )?;
        let guarded = (routing, &*firewall);
        let telemetry =
            telemetry::find_telemetry(&lowered.otel, environment, guarded, &shared, &notices);
        let places = Places::for_folder(&lowered.keeping, environment, &spec.folder);
        Ok(Self {
            spec,
            routing: Arc::new(lowered.routing),
            guard: Arc::new(lowered.guard),
            keeping: lowered.keeping,
            tools: lowered.tools,
            hooks: lowered.hooks.into(),
            mcp_servers: lowered.mcp_servers.into(),
            servers: Arc::default(),
            plugins: lowered.plugins,
            personal: Arc::new(lowered.personal),
            values: lowered.values.into(),
            firewall,
            places,
            holder: FileHolder::default(),
            elf: None,
            copy_of: None,
            telemetry,
            notices,
            shared,
        })
    }

    /// Returns a firewall for the project that lets no secret pass, whatever the settings allow.
    ///
    /// # Errors
    /// The patterns of secrets in the settings cannot be used.
    pub(crate) fn strict_firewall(&self) -> Result<Firewall> {
        let keys = &self.routing.provider.api_keys;
        firewall_setup::strict_firewall(&self.guard, keys, self.environment(), &self.spec.folder)
    }

    /// The spec of the session in the project itself, if it works in a copy.
    pub(crate) fn original_spec(&self) -> &SessionSpec {
        self.copy_of.as_deref().unwrap_or(&self.spec)
    }

    /// The folders that are copies, each with the one that it is a copy of.
    pub(crate) fn folder_copies(&self) -> Vec<(PathBuf, PathBuf)> {
        let Some(original) = &self.copy_of else { return Vec::new() };
        let all = |spec: &SessionSpec| {
            std::iter::once(&spec.folder).chain(&spec.more_folders).cloned().collect::<Vec<_>>()
        };
        all(&self.spec).into_iter().zip(all(original)).collect()
    }

    /// Returns the environment of the client.
    #[must_use]
    pub fn environment(&self) -> &Environment {
        &self.spec.environment
    }

    /// Milliseconds since 1970, by the clock of the process.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        self.shared.clock().now_ms()
    }

    /// Returns what is known about one setting.
    #[must_use]
    pub fn explain_setting(&self, key: &str) -> Option<&ExplainedValue> {
        self.values.iter().find(|value| value.key == key)
    }

    /// The spans of its sessions' calls, if telemetry is sent.
    pub(crate) fn call_spans(&self) -> Option<Arc<dyn CallSpans>> {
        self.telemetry.clone().map(|telemetry| telemetry as _)
    }

    /// Reports whether nothing is saved of the project's sessions.
    #[must_use]
    pub fn is_incognito(&self) -> bool {
        self.keeping.privacy.incognito
    }

    /// Returns the reason why sessions and files cannot be saved, with what names their folder; `None` if they can.
    #[must_use]
    pub fn save_obstacle(&self) -> Option<String> {
        let folder = &self.places.vault;
        let why = environment::write_obstacle(folder)?;
        let origin = self.save_folder_origin();
        let origin = origin.map_or_else(String::new, |origin| format!("; {origin} names it"));
        Some(format!("{} cannot be written ({why}){origin}", folder.display()))
    }

    /// Names the setting or variable that decides where sessions are saved; `None` if nothing but the home does.
    pub(crate) fn save_folder_origin(&self) -> Option<String> {
        if self.keeping.session.folder.is_none() {
            let variable = "XDG_STATE_HOME";
            return environment::own_folder(self.environment(), variable).map(|_| variable.into());
        }
        let set = self.explain_setting("session.folder");
        let place = set.map_or_else(String::new, |set| format!(" ({})", set.place));
        Some(format!("`session.folder`{place}"))
    }

    /// Reports whether a notice already said that nothing can be saved in the home.
    #[must_use]
    pub(crate) fn knows_nothing_is_saved(&self) -> bool {
        self.keeping.session.folder.is_none() && self.spec.environment.cannot_save()
    }

    /// Refuses to work in the root of the system, unless there is no sandbox that this would defeat.
    ///
    /// # Errors
    /// The folder is the root of the system.
    pub fn refuse_whole_system(&self) -> Result<()> {
        if self.spec.folder.parent().is_some() || self.guard.sandbox.mode == Sandbox::Off {
            return Ok(());
        }
        let text =
            "cannot work in the root folder; change to a project's folder, or name one with --cwd";
        Err(HostError::usage(text))
    }
}
