//! Lowers the settings once, when a project is opened, into the parts that single modules need. No other
//! module sees all of them.

use std::collections::BTreeMap;

use gnoma_config::{
    ExplainedValue, FileTrust, LoadedConfig, Settings,
    settings::{
        ArmSettings, Checkpoints, HookSetting, McpServer, Network, Otel, Permission, Personal,
        Privacy, Provider, RateLimits, Router, SandboxSettings, Security, Session, Slm, Tools,
    },
};

use crate::{Agents, plugin_choice::ProjectPlugins};

/// The parts of a project's settings.
#[derive(Clone, Debug)]
pub struct ProjectSettings {
    /// The models that can be asked, and how one of them is chosen.
    pub routing: RoutingSettings,
    /// The settings that guard the session.
    pub guard: GuardSettings,
    /// The settings that say what is saved.
    pub keeping: StorageSettings,
    /// The limits of tools.
    pub tools: Tools,
    /// Programs that are run at points of a session's life.
    pub hooks: Vec<HookSetting>,
    /// Servers whose tools are on offer.
    pub mcp_servers: Vec<McpServer>,
    /// The plugins that are enabled.
    pub plugins: ProjectPlugins,
    /// The settings of telemetry.
    pub otel: Otel,
    /// The settings of the person.
    pub personal: Personal,
    /// Every value with its origin, for people.
    pub values: Vec<ExplainedValue>,
}

/// The models that can be asked, and how one of them is chosen.
#[derive(Clone, Debug)]
pub struct RoutingSettings {
    /// The providers, their keys and addresses.
    pub provider: Provider,
    /// The settings for waiting for servers.
    pub network: Network,
    /// The settings for choosing models.
    pub router: Router,
    /// Settings of single arms, by `provider/model`.
    pub arms: BTreeMap<String, ArmSettings>,
    /// Other programs' agents that are arms.
    pub agents: Agents,
    /// The small local model.
    pub slm: Slm,
    /// Limits, by provider or by the name of a pool.
    pub rate_limits: BTreeMap<String, RateLimits>,
    /// The privacy, which says whether anything may be learned and which models may be called.
    pub privacy: Privacy,
}

/// The settings that guard a session: permissions, secrets, the sandbox.
#[derive(Clone, Debug)]
pub struct GuardSettings {
    /// The permissions, which say what may happen.
    pub permission: Permission,
    /// The protection of secrets, which must not leave.
    pub security: Security,
    /// The sandbox of commands.
    pub sandbox: SandboxSettings,
    /// The user's trust in the project's own settings; `None` if the project has none.
    pub trust: Option<FileTrust>,
}

/// The settings that say what is saved of sessions and files, and where.
#[derive(Clone, Debug)]
pub struct StorageSettings {
    /// The privacy, which says whether anything is saved.
    pub privacy: Privacy,
    /// The settings for saving sessions.
    pub session: Session,
    /// The settings for saving files.
    pub checkpoints: Checkpoints,
    /// The profile in use, whose sessions are stored separately.
    pub profile: Option<String>,
}

impl From<LoadedConfig> for ProjectSettings {
    fn from(LoadedConfig { settings, values, profile, project, .. }: LoadedConfig) -> Self {
        let Settings { provider, permission, security, privacy, sandbox, tools, .. } = settings;
        let Settings {
            session,
            checkpoints,
            router,
            rate_limits,
            arms,
            cli_agents,
            slm,
            network,
            hooks,
            mcp_servers,
            plugins,
            otel,
            personal,
            ..
        } = settings;
        let agents = Agents::from_settings(cli_agents);
        Self {
            routing: RoutingSettings {
                provider,
                network,
                router,
                arms,
                agents,
                slm,
                rate_limits,
                privacy,
            },
            guard: GuardSettings { permission, security, sandbox, trust: project },
            keeping: StorageSettings { privacy, session, checkpoints, profile },
            tools,
            hooks,
            mcp_servers,
            plugins: ProjectPlugins::from_settings(plugins.enabled, plugins.disabled),
            otel,
            personal,
            values,
        }
    }
}
