//! The resolved settings: typed, complete, and free of where they came from, but for the rules of the
//! router, whose places messages tell.
//!
//! Only what the program uses today has a type. Everything else is checked by the schema and waits.

mod arms;
mod checkpoints;
mod cli_agents;
mod hooks;
mod mcp;
mod network;
mod notify;
mod otel;
mod personal;
mod plugins;
mod protocol;
mod router;
mod rules;
mod section;
mod session;
mod source;
mod tools;

use std::collections::BTreeMap;

use gnoma_core::{Effort, Secret, ThinkingMode, session::PermissionMode};

use crate::{env::bare_key, finding::Place, layer::MergedLayers, value::Value};

pub(crate) use self::rules::RULES;
use self::section::Section;
pub use self::{
    arms::{ArmSettings, RateLimits, Slm, SlmBackend},
    checkpoints::Checkpoints,
    cli_agents::CliAgent,
    hooks::HookSetting,
    mcp::McpServer,
    network::Network,
    notify::NotifySettings,
    otel::Otel,
    personal::Personal,
    plugins::Plugins,
    protocol::Protocol,
    router::{Priority, Router, RouterMode},
    rules::RoutingRule,
    session::Session,
    source::ValueSource,
    tools::{Compaction, Tools},
};
pub use crate::condition::arm_named;

/// All settings of gnoma.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The providers and models, and how requests are made to them.
    pub provider: Provider,
    /// The rules on what the agent may do.
    pub permission: Permission,
    /// The protection of secrets, so that they do not leak.
    pub security: Security,
    /// The rules on what is saved.
    pub privacy: Privacy,
    /// The sandbox around commands.
    pub sandbox: SandboxSettings,
    /// The limits of tools.
    pub tools: Tools,
    /// The settings for saving sessions.
    pub session: Session,
    /// The settings for saving files in checkpoints.
    pub checkpoints: Checkpoints,
    /// The settings for choosing models.
    pub router: Router,
    /// Limits, by provider or by the name of a pool.
    pub rate_limits: BTreeMap<String, RateLimits>,
    /// The settings of single arms, by `provider/model`.
    pub arms: BTreeMap<String, ArmSettings>,
    /// Other programs' agents that are arms.
    pub cli_agents: Vec<CliAgent>,
    /// The small local model.
    pub slm: Slm,
    /// The settings for waiting for servers.
    pub network: Network,
    /// Programs that are run at points of a session's life.
    pub hooks: Vec<HookSetting>,
    /// Servers whose tools are on offer.
    pub mcp_servers: Vec<McpServer>,
    /// The settings that say which plugins are loaded.
    pub plugins: Plugins,
    /// The settings of telemetry.
    pub otel: Otel,
    /// The settings of the person.
    pub personal: Personal,
}

/// The providers that requests go to, and how. The maps are by provider.
#[derive(Clone, Debug)]
pub struct Provider {
    /// The provider, if one is set.
    pub default: Option<String>,
    /// The source to change in order to change the provider; `None` where the command line names it.
    pub default_source: Option<ValueSource>,
    /// The model, if one is set.
    pub model: Option<String>,
    /// Most tokens of one answer.
    pub max_tokens: u32,
    /// Sampling temperature; `None` leaves it to the provider.
    pub temperature: Option<f32>,
    /// The effort that a model puts into thinking; `None` leaves it to the provider.
    pub effort: Option<Effort>,
    /// The amount of thinking, which overrides the effort; `None` leaves it to the effort.
    pub thinking: Option<ThinkingMode>,
    /// The keys of the providers.
    pub api_keys: BTreeMap<String, Secret<String>>,
    /// Variables of the environment that no key or address is taken from.
    pub ignored_variables: Vec<String>,
    /// Commands that print keys.
    pub key_commands: BTreeMap<String, String>,
    /// The source to change in order to change a provider's key.
    pub key_sources: BTreeMap<String, ValueSource>,
    /// Variables that keys read and that are not set.
    pub unset_keys: BTreeMap<String, String>,
    /// Addresses, `http` or `https`, as they were written.
    pub endpoints: BTreeMap<String, String>,
    /// The source to change in order to change a provider's address.
    pub endpoint_sources: BTreeMap<String, ValueSource>,
    /// Wires that endpoints speak.
    pub protocols: BTreeMap<String, Protocol>,
    /// The sizes of context windows, in tokens.
    pub context: BTreeMap<String, u32>,
    /// Models that are arms; of a provider without an entry, those the catalogue suggests.
    pub models: BTreeMap<String, Vec<String>>,
}

impl Protocol {
    /// All protocols that an endpoint can speak.
    pub const ALL: [Self; 7] = [
        Self::Mistral,
        Self::Anthropic,
        Self::OpenAi,
        Self::Responses,
        Self::Google,
        Self::Ollama,
        Self::Compatible,
    ];

    /// Returns the protocol's name in `provider.protocols`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Mistral => "mistral",
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
            Self::Responses => "responses",
            Self::Google => "google",
            Self::Ollama => "ollama",
            Self::Compatible => "compatible",
        }
    }

    /// The wire of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|protocol| protocol.name() == name)
    }
}

/// The rules on what happens without a question, only after one, or not at all.
#[derive(Clone, Debug)]
pub struct Permission {
    /// The permission mode, which says how often the user is asked.
    pub mode: PermissionMode,
    /// Mode bypass also does what is asked for in every other.
    pub confirm_bypass: bool,
    /// Exceptions, the user's first.
    pub rules: Vec<Rule>,
}

/// An exception from the mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The calls that the rule is about.
    pub about: RuleSubject,
    /// The action that the rule demands.
    pub action: Action,
    /// The place where the rule was written: its first field.
    pub place: Place,
}

/// The calls that a rule is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleSubject {
    /// As people write it, such as `bash(git status)`.
    Rule(String),
    /// The older form of rules: a tool and a text.
    Text {
        /// Glob of tool names.
        tool: String,
        /// Text that the arguments must contain; empty for any.
        pattern: String,
    },
}

/// The action that a rule demands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Run the call without a question.
    Allow,
    /// Ask before the call runs.
    Ask,
    /// Refuse to run the call.
    Deny,
}

/// The protection of secrets, so that they do not leak.
#[derive(Clone, Debug)]
pub struct Security {
    /// Forms of secrets besides the built-in ones.
    pub patterns: Vec<SecretPattern>,
    /// The actions on secrets, in the order they are written.
    pub actions: Vec<SecretAction>,
    /// Secrets that may pass, each as `sha256:` and hexadecimal digits.
    pub allow: Vec<String>,
    /// Likely secrets that no rule names are taken out, not only told of.
    pub redact_high_entropy: bool,
}

/// The rules on what is saved of a session.
#[derive(Clone, Copy, Debug, Default)]
pub struct Privacy {
    /// `true` if nothing of a session is saved.
    pub incognito: bool,
    /// Incognito asks only models on this machine.
    pub local_only: bool,
}

/// The settings of the sandbox around commands.
#[derive(Clone, Debug, Default)]
pub struct SandboxSettings {
    /// The mode of the sandbox, which says whether commands run in one.
    pub mode: Sandbox,
    /// The commands that reach the network from inside the sandbox.
    pub network: SandboxNetwork,
    /// More folders that commands may write in.
    pub writable: Vec<String>,
    /// More folders and files that commands may read which run unasked.
    pub readable: Vec<String>,
    /// Folders of build output that commands on trial update in the workspace, by name or path below it.
    pub build_output: Vec<String>,
}

/// A form of secrets that the user added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretPattern {
    /// The name of the pattern; empty for none.
    pub name: String,
    /// The regular expression of the pattern.
    pub regex: String,
    /// `redact`, `block` or `warn`.
    pub action: String,
    /// The place where the regular expression was written.
    pub place: Place,
}

/// The action on some secrets. Empty globs match everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretAction {
    /// The glob of rule names.
    pub rule: String,
    /// The provider, or `local`.
    pub provider: String,
    /// The glob of file paths.
    pub path: String,
    /// `redact`, `block`, `warn` or `allow`.
    pub action: String,
}

/// The mode of the sandbox around commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sandbox {
    /// As far as the system offers them.
    #[default]
    Auto,
    /// Or not at all.
    Required,
    /// Commands run without a sandbox.
    Off,
}

/// The commands that reach the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SandboxNetwork {
    /// No command reaches the network.
    Never,
    /// Those that use it and were allowed by a person or a rule.
    #[default]
    Asked,
    /// All commands reach the network.
    Always,
}

impl Settings {
    pub(crate) fn from_layers(layers: &MergedLayers) -> Self {
        Self {
            provider: Provider::from_layers(layers),
            permission: Permission {
                mode: parse_optional(layers.text_at("permission.mode")).unwrap_or_default(),
                confirm_bypass: layers.is_on("permission.confirm_bypass"),
                rules: read_permission_rules(layers),
            },
            security: Security::from_layers(layers),
            privacy: Privacy {
                incognito: layers.is_on("privacy.incognito"),
                local_only: layers.is_on("privacy.local_only"),
            },
            sandbox: SandboxSettings::from_layers(layers),
            tools: Tools::from_layers(layers),
            session: Session::from_layers(layers),
            checkpoints: Checkpoints::from_layers(layers),
            router: Router::from_layers(layers),
            rate_limits: read_tables(layers, "rate_limits", RateLimits::from_section),
            arms: read_tables(layers, "arms", ArmSettings::from_section),
            cli_agents: cli_agents::read_agents(layers),
            slm: Slm::from_section(&Section::from_key(layers, "slm")),
            network: Network::from_layers(layers),
            hooks: hooks::read_hooks(layers),
            mcp_servers: mcp::read_servers(layers),
            plugins: Plugins::from_layers(layers),
            otel: Otel::from_layers(layers),
            personal: Personal::from_layers(layers),
        }
    }
}

impl Provider {
    fn from_layers(layers: &MergedLayers) -> Self {
        Self {
            default: layers.text_at("provider.default"),
            default_source: source::of_key(layers, "provider.default"),
            model: layers.text_at("provider.model"),
            max_tokens: layers.count_at("provider.max_tokens"),
            temperature: layers.number_at("provider.temperature"),
            effort: layers.text_at("provider.effort").and_then(|name| parse_effort(&name)),
            thinking: parse_optional(layers.text_at("provider.thinking")),
            api_keys: read_map(layers, "provider.api_keys", |value| match value {
                Value::Secret(key) => Some(Secret::new(bare_key(key.expose()).to_owned())),
                _ => None,
            }),
            ignored_variables: layers.texts_at("provider.ignored_variables"),
            key_commands: read_map(layers, "provider.key_commands", |value| {
                value.clone().into_text()
            }),
            key_sources: source::of_table(layers, "provider.api_keys"),
            unset_keys: <_>::default(),
            endpoints: read_map(layers, "provider.endpoints", |value| value.clone().into_text()),
            endpoint_sources: source::of_table(layers, "provider.endpoints"),
            protocols: read_map(layers, "provider.protocols", |value| {
                Protocol::from_name(&value.clone().into_text()?)
            }),
            context: read_map(layers, "provider.context", |value| match value {
                Value::Integer(tokens) => u32::try_from(*tokens).ok(),
                _ => None,
            }),
            models: read_map(layers, "provider.models", |value| Some(value.clone().into_texts())),
        }
    }
}

fn read_map<T>(
    layers: &MergedLayers,
    key: &str,
    read: impl Fn(&Value) -> Option<T>,
) -> BTreeMap<String, T> {
    let entries = layers.table_entries(key);
    gnoma_core::sort::to_map(
        entries.filter_map(|(name, value)| Some((name.to_owned(), read(value)?))),
    )
}

/// The tables of a table, by name.
fn read_tables<T>(
    layers: &MergedLayers,
    key: &str,
    read: impl Fn(&Section<'_>) -> T,
) -> BTreeMap<String, T> {
    let all = Section::from_key(layers, key);
    gnoma_core::sort::to_map(
        layers
            .table_names(key)
            .into_iter()
            .map(|name| (name.to_owned(), read(&all.child_section(name)))),
    )
}

fn parse_effort(name: &str) -> Option<Effort> {
    match name {
        "none" => Some(Effort::None),
        "low" => Some(Effort::Low),
        "medium" => Some(Effort::Medium),
        "high" => Some(Effort::High),
        _ => None,
    }
}

fn parse_optional<T: std::str::FromStr>(text: Option<String>) -> Option<T> {
    text?.parse().ok()
}

impl Security {
    fn from_layers(layers: &MergedLayers) -> Self {
        let items = |key: &str| {
            let list = Section::from_key(layers, key);
            (0..layers.list_length(key)).map(move |index| list.item_section(index))
        };
        let read_pattern = |pattern: Section<'_>| {
            let regex = layers.entries().get(&pattern.path().with_name("regex"))?;
            Some(SecretPattern {
                name: pattern.text("name").unwrap_or_default(),
                regex: pattern.text("regex")?,
                action: pattern.text("action").unwrap_or_else(|| "redact".to_owned()),
                place: regex.place.clone(),
            })
        };
        let read_action = |action: Section<'_>| {
            Some(SecretAction {
                rule: action.text("rule").unwrap_or_default(),
                provider: action.text("provider").unwrap_or_default(),
                path: action.text("path").unwrap_or_default(),
                action: action.text("action")?,
            })
        };
        Self {
            patterns: items("security.patterns").filter_map(read_pattern).collect(),
            actions: items("security.actions").filter_map(read_action).collect(),
            allow: layers.texts_at("security.allow"),
            redact_high_entropy: layers.is_on("security.redact_high_entropy"),
        }
    }
}

impl SandboxSettings {
    fn from_layers(layers: &MergedLayers) -> Self {
        Self {
            mode: match layers.text_at("sandbox.mode").as_deref() {
                Some("off") => Sandbox::Off,
                Some("required") => Sandbox::Required,
                _ => Sandbox::Auto,
            },
            network: match layers.text_at("sandbox.network").as_deref() {
                Some("never") => SandboxNetwork::Never,
                Some("always") => SandboxNetwork::Always,
                _ => SandboxNetwork::Asked,
            },
            writable: layers.texts_at("sandbox.writable"),
            readable: layers.texts_at("sandbox.readable"),
            build_output: layers.texts_at("sandbox.build_output"),
        }
    }
}

fn read_permission_rules(layers: &MergedLayers) -> Vec<Rule> {
    let list = Section::from_key(layers, "permission.rules");
    let read = |index| {
        let rule = list.item_section(index);
        let place = layers.first_within(rule.path())?.place.clone();
        let field = |name: &str| rule.text(name);
        let about = match (field("rule"), field("tool")) {
            (None, Some(tool)) => {
                RuleSubject::Text { tool, pattern: field("pattern").unwrap_or_default() }
            }
            // With neither it names nothing, which whoever reads the rule refuses.
            (rule, _) => RuleSubject::Rule(rule.unwrap_or_default()),
        };
        let action = match field("action")?.as_str() {
            "allow" => Action::Allow,
            "ask" => Action::Ask,
            _ => Action::Deny,
        };
        Some(Rule { about, action, place })
    };
    (0..layers.list_length("permission.rules")).filter_map(read).collect()
}
