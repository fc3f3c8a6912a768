//! The rows of the schema, section by section.

use std::{borrow::Cow, time::Duration};

use super::{
    features::{ENTROPY_THRESHOLD, MEMORY, TASK_SUGGESTIONS, TWO_STAGE},
    form::{AGENT, ARM, ARMS, COMMAND, CURRENCY, GLOB, HOURS, MODEL, POOL, SHARE, THINKING},
    kind::Kind::{self, Bool, Bytes, Form, Forms, List, Secret, Text, Url, Verbatim, Word, Words},
    row::{
        Guard::{NeverMore, NotLooser, OnlyDeny, Personal, Trusted},
        Row,
    },
    words::{
        ACTIONS, COMPACTIONS, DAYS, EFFORTS, HOOK_EVENTS, MAX_ATTEMPTS, MAX_SECONDS, MODES,
        NETWORK, OTEL_PROTOCOLS, PRIORITIES, PROTOCOLS, SAFELIST, SANDBOX, SLM_BACKENDS,
        STRATEGIES, TASKS, VERIFIERS,
    },
};
use crate::value::Value;

/// Counts and tokens fit 32 bits everywhere.
const MAX_COUNT: i64 = u32::MAX as i64;

/// A whole number from `least` up.
const fn count(least: i64) -> Kind {
    Kind::Integer { least, most: MAX_COUNT }
}

/// A whole number that may pass 32 bits.
const LARGE: Kind = Kind::Integer { least: 0, most: i64::MAX };

/// A number from `least` to `most`.
const fn number(least: f64, most: f64) -> Kind {
    Kind::Number { least, most }
}

/// A number that is not negative.
const AMOUNT: Kind = number(0.0, f64::MAX);

/// Money in dollars. More is a slip, and micro-dollars are to stay exact.
const DOLLARS: Kind = number(0.0, 1_000_000.0);

/// The same, also in other currencies.
const MONEY: Kind = Kind::Money { most: 1_000_000.0 };

/// A time of at least `least_s` seconds.
const fn time(least_s: u64) -> Kind {
    Kind::Duration { least_s }
}

const fn seconds(count: u64) -> Value {
    Value::Duration(Duration::from_secs(count))
}
const fn word(text: &'static str) -> Value {
    Value::Text(Cow::Borrowed(text))
}

const NO: fn() -> Value = || Value::Bool(false);
const YES: fn() -> Value = || Value::Bool(true);

/// All known keys.
pub static ROWS: &[Row] = &[
    Row::new("default_profile", Text, "profile used without `--profile`"),
    // Provider
    Row::new(
        "provider.default",
        Text,
        "provider that routing starts from; a turn may go to another one that is set up, unless `router.mode` is `off`",
    )
    .guarded(Trusted),
    Row::new(
        "provider.model",
        Text,
        "model that routing starts from; a turn may go to another one, unless `router.mode` is `off`",
    ),
    Row::new("provider.max_tokens", count(1), "maximum tokens of one answer")
        .or(|| Value::Integer(8192))
        .guarded(Trusted),
    Row::new("provider.temperature", number(0.0, 2.0), "sampling temperature"),
    Row::new("provider.effort", Word(&EFFORTS), "how hard the model thinks"),
    Row::new("provider.thinking", Form(&THINKING), "how much the model thinks, over `provider.effort`: `off`, `adaptive`, or tokens"),
    Row::new("provider.api_keys.*", Secret, "API key of a provider").guarded(Trusted),
    Row::new(
        "provider.ignored_variables",
        List,
        "environment variables that no key or address is taken from, such as `MISTRAL_API_KEY`",
    )
    .guarded(Trusted),
    Row::new(
        "provider.key_commands.*",
        Form(&COMMAND),
        "command that prints the key of a provider, such as `pass show mistral`; runs at the start if no other key is set, and cannot ask at the terminal",
    )
    .guarded(Trusted),
    Row::new("provider.endpoints.*", Url, "address of a provider").guarded(Trusted),
    Row::new("provider.protocols.*", Word(&PROTOCOLS), "protocol that an endpoint speaks").guarded(Trusted),
    Row::new("provider.context.*", count(1), "context window of a provider's models, in tokens")
        .guarded(Trusted),
    Row::new(
        "provider.models.*",
        Forms(&MODEL),
        "models of a provider that tasks may be sent to; by default those that the catalogue suggests",
    )
    .guarded(Trusted),
    // Permission
    Row::new("permission.mode", Word(&MODES), "permission mode: what needs approval before tools run")
        .or(|| word("auto"))
        .guarded(NotLooser),
    Row::new("permission.confirm_bypass", Bool, "let mode bypass also run what otherwise always needs approval")
        .or(NO)
        .guarded(Trusted),
    Row::new(
        "permission.rules.[].rule",
        Verbatim,
        "what the rule applies to, such as `bash(cargo test *)` or `fs.write(src/**)`",
    )
    .guarded(OnlyDeny),
    Row::new("permission.rules.[].tool", Verbatim, "instead of `rule`: glob of tool names")
        .guarded(OnlyDeny),
    Row::new("permission.rules.[].pattern", Verbatim, "with `tool`: text in the arguments")
        .guarded(OnlyDeny),
    Row::new("permission.rules.[].action", Word(&["allow", "ask", "deny"]), "what the rule does")
        .guarded(OnlyDeny)
        .required(),
    // Tools
    Row::new("tools.bash_timeout", time(1), "time limit of a shell command").or(|| seconds(30)),
    Row::new("tools.max_file_size", Bytes, "largest file the file tools read")
        .or(|| Value::Bytes(1 << 20)),
    Row::new("tools.max_rounds", count(1), "maximum model calls in a turn").or(|| Value::Integer(50)),
    Row::new("tools.compaction", Word(&COMPACTIONS), "how room is made in a full context window")
        .or(|| word("full"))
        .guarded(Trusted),
    Row::new("tools.shell", Text, "program that runs shell commands").guarded(Trusted),
    // Sessions and checkpoints: a project must not have its user's past thrown away.
    Row::new("session.keep", Bool, "save sessions, so that they can be continued")
        .or(YES)
        .guarded(Trusted),
    Row::new("session.max_keep", count(1), "maximum sessions saved for a project; the oldest are deleted")
        .or(|| Value::Integer(1000))
        .guarded(Trusted),
    Row::new("session.max_age", time(1), "sessions unchanged for longer are deleted").guarded(Trusted),
    Row::new("session.max_size", Bytes, "maximum size of a project's sessions; the oldest are deleted")
        .or(|| Value::Bytes(1 << 30))
        .guarded(Trusted),
    Row::new("session.folder", Text, "folder where sessions and checkpoints are saved")
        .guarded(Trusted),
    Row::new("checkpoints.enabled", Bool, "save files before they are changed, for `gnoma rewind`")
        .or(YES)
        .guarded(Trusted),
    Row::new("checkpoints.max_size", Bytes, "maximum size of all checkpoints; the oldest are deleted")
        .or(|| Value::Bytes(4 << 30))
        .guarded(Trusted),
    Row::new("checkpoints.max_age", time(1), "older checkpoints are deleted")
        .or(|| seconds(30 * 24 * 60 * 60))
        .guarded(Trusted),
    Row::new("checkpoints.max_file", Bytes, "largest file that is saved")
        .or(|| Value::Bytes(512 << 20))
        .guarded(Trusted),
    Row::new("checkpoints.ignored_max_file", Bytes, "the same for files that git ignores")
        .or(|| Value::Bytes(1 << 20))
        .guarded(Trusted),
    Row::new("memory.enabled", Bool, "tell models what `/memory` says").or(NO).guarded(Trusted),
    Row::new("tasks.suggest", Word(&["on", "off"]), "offer to save repeated work as a task")
        .or(|| word("on"))
        .guarded(Trusted),
    // Router: a project must not send things elsewhere, and must not have more spent.
    Row::new("router.mode", Word(&["auto", "off"]), "choose a model for each turn, or use one model only")
        .or(|| word("auto"))
        .guarded(Trusted),
    // Ten minutes of a person at $60 an hour, and the worth at which routing was measured.
    Row::new("router.value", DOLLARS, "what a correct result of a normal task is worth, in dollars")
        .or(|| Value::Number(10.0))
        .guarded(Trusted),
    // Routing was measured without it, and an arm nobody has timed would look quick.
    Row::new("router.waiting", DOLLARS, "what an hour of waiting is worth, in dollars")
        .or(|| Value::Number(0.0))
        .guarded(Trusted),
    Row::new("router.priority", Word(&PRIORITIES), "how much tasks matter")
        .or(|| word("normal"))
        .guarded(Trusted),
    Row::new("router.strategy", Word(&STRATEGIES), "how models work together")
        .or(|| word("auto"))
        .guarded(Trusted),
    Row::new(
        "router.max_attempts",
        Kind::Integer { least: 1, most: MAX_ATTEMPTS },
        "maximum attempts at a task",
    )
    .or(|| Value::Integer(3))
    .guarded(Trusted),
    Row::new("router.verify", Word(&VERIFIERS), "who checks an attempt before it is delivered")
        .or(|| word("auto"))
        .guarded(Trusted),
    Row::new("router.checks", Forms(&COMMAND), "commands that check the project, such as its tests")
        .guarded(Trusted),
    Row::new("router.failover", Bool, "continue with another model when one fails")
        .or(YES)
        .guarded(Trusted),
    Row::new("router.learn", Bool, "learn from how tasks end").or(YES).guarded(Trusted),
    Row::new(
        "router.discovery_interval",
        time(0),
        "how often to look for local models while a session is used; 0: only at the start",
    )
    .or(|| seconds(30))
    .guarded(Trusted),
    Row::new(
        "router.catalogue",
        Text,
        "file with models and prices that override the built-in ones",
    )
    .guarded(Trusted),
    Row::new(
        "router.force_two_stage",
        Bool,
        "give every model the few tools of small ones (docs/local-models.md), unless `arms.[id].small` says otherwise",
    )
    .or(NO),
    Row::new("router.caps.turn", MONEY, "spending cap for a turn, in dollars, or text such as `\"5 EUR\"`").guarded(NeverMore),
    Row::new("router.caps.session", MONEY, "spending cap for a session, in dollars, or text such as `\"5 EUR\"`").guarded(NeverMore),
    Row::new("router.caps.day", MONEY, "spending cap per day (UTC), in dollars, or text such as `\"5 EUR\"`").guarded(NeverMore),
    Row::new("router.caps.month", MONEY, "spending cap per month (UTC), in dollars, or text such as `\"5 EUR\"`").guarded(NeverMore),
    Row::new("router.caps.project_day", MONEY, "spending cap per day for a project, in dollars, or text such as `\"5 EUR\"`")
        .guarded(NeverMore),
    Row::new("router.caps.project_month", MONEY, "spending cap per month for a project, in dollars, or text such as `\"5 EUR\"`")
        .guarded(NeverMore),
    Row::new("router.exchange.*", number(0.000_001, 1_000_000.0), "dollars for one unit of a currency that caps are written in, such as `EUR`")
        .guarded(Trusted),
    Row::new("router.roles.small", Form(&ARM), "model for summaries of long conversations")
        .guarded(Trusted),
    Row::new("router.roles.planner", Form(&ARM), "model that plans").guarded(Trusted),
    Row::new("router.roles.editor", Form(&ARM), "model that carries out the plan").guarded(Trusted),
    Row::new("router.roles.reviewer", Form(&ARM), "model that reviews what others did")
        .guarded(Trusted),
    Row::new("router.rules.[].name", Text, "name in messages"),
    Row::new("router.rules.[].task", Words(&TASKS), "types of tasks it applies to"),
    Row::new("router.rules.[].path", Forms(&GLOB), "globs of files, one of which the task concerns"),
    Row::new("router.rules.[].hours", Form(&HOURS), "hours of the day when it applies, local time"),
    Row::new("router.rules.[].days", Words(&DAYS), "days of the week on which those hours begin"),
    Row::new("router.rules.[].complexity", Form(&SHARE), "how hard the task seems, in percent"),
    Row::new("router.rules.[].pin", Form(&ARMS), "the only models").guarded(Trusted),
    Row::new("router.rules.[].forbid", Forms(&ARMS), "models that are not used"),
    Row::new("router.rules.[].prefer", Forms(&ARMS), "models that are preferred").guarded(Trusted),
    Row::new(
        "router.rules.[].prefer_by",
        Kind::Integer { least: 0, most: 100 },
        "by how many percent of a task's worth they may be the worse choice; default 10",
    )
    .guarded(Trusted),
    Row::new("router.rules.[].max_cost", DOLLARS, "maximum expected cost of a task, in dollars"),
    Row::new(
        "router.rules.[].max_seconds",
        Kind::Integer { least: 1, most: MAX_SECONDS },
        "maximum expected time of an answer, in seconds",
    ),
    // Network
    Row::new("network.connect_timeout", time(1), "time limit for connecting")
        .or(|| seconds(10)),
    Row::new("network.idle_timeout", time(1), "longest silence within an answer")
        .or(|| seconds(300)),
    Row::new(
        "network.first_byte_timeout",
        time(1),
        "longest silence before an answer begins; default 120s, or `network.idle_timeout` if that is less",
    ),
    Row::new(
        "network.local_first_byte_timeout",
        time(1),
        "the same for servers of your own, which may load a model first; default `network.idle_timeout`",
    ),
    Row::new(
        "network.ca_file",
        Text,
        "PEM file with certificate authorities to trust in addition to the built-in ones, such as that of a company's proxy",
    )
    .guarded(Trusted),
    // Rate limits; a 0 lifts a built-in limit, but 0 dollars a day or month are none to spend.
    Row::new("rate_limits.*.tier", Text, "name of the plan"),
    Row::new("rate_limits.*.rps", AMOUNT, "requests per second"),
    Row::new("rate_limits.*.rpm", count(0), "requests per minute"),
    Row::new("rate_limits.*.rpd", count(0), "requests per day"),
    Row::new("rate_limits.*.tpm", count(0), "tokens per minute"),
    Row::new("rate_limits.*.itpm", count(0), "input tokens per minute"),
    Row::new("rate_limits.*.otpm", count(0), "output tokens per minute"),
    Row::new("rate_limits.*.tokens_month", LARGE, "tokens per month").guarded(Trusted),
    Row::new("rate_limits.*.spend_day", DOLLARS, "spending cap per day (UTC), in dollars").guarded(NeverMore),
    Row::new("rate_limits.*.spend_month", DOLLARS, "spending cap per month (UTC), in dollars").guarded(NeverMore),
    Row::new("rate_limits.*.spend_cap", AMOUNT, "old name of `spend_month`; 0 means no limit")
        .guarded(Trusted),
    Row::new("rate_limits.*.custom", count(0), "units of the plan that one request uses")
        .guarded(Trusted),
    Row::new("rate_limits.*.custom_month", LARGE, "units of the plan per month").guarded(Trusted),
    // Security
    Row::new(
        "security.entropy_threshold",
        number(0.0, 8.0),
        "for older files only; likely secrets are recognised by how they read",
    )
    .or(|| Value::Number(4.5))
    .without_effect(
        "`security.redact_high_entropy = false` sends likely secrets, `[[security.actions]]` with `rule = \"high-entropy\"` says what else is done about them",
    )
    .guarded(Trusted),
    Row::new("security.redact_high_entropy", Bool, "redact likely secrets that match no rule")
        .or(YES)
        .guarded(Trusted),
    Row::new(
        "security.entropy_safelist",
        List,
        "for older files only; hashes, UUIDs and addresses are never secrets",
    )
    .or(|| Value::List(Cow::Borrowed(&SAFELIST)))
    .without_effect(
        "hashes, UUIDs, dates and addresses are never taken for secrets; single values pass with \
         `security.allow`",
    )
    .guarded(Trusted),
    Row::new("security.patterns.[].name", Text, "name of a kind of secret").guarded(Trusted),
    Row::new("security.patterns.[].regex", Verbatim, "regular expression that matches it")
        .guarded(Trusted)
        .required(),
    Row::new("security.patterns.[].action", Word(&["redact", "block", "warn"]), "what is done")
        .guarded(Trusted),
    Row::new("security.actions.[].rule", Verbatim, "glob of rules, such as `aws-*`")
        .guarded(Trusted),
    Row::new("security.actions.[].provider", Verbatim, "provider it applies to, or `local`")
        .guarded(Trusted),
    Row::new("security.actions.[].path", Verbatim, "glob of files it applies to").guarded(Trusted),
    Row::new("security.actions.[].action", Word(&ACTIONS), "what to do with a secret that is found")
        .guarded(Trusted)
        .required(),
    Row::new("security.allow", List, "secrets that may be sent, each as its `sha256:…`")
        .guarded(Trusted),
    // Privacy and walls
    Row::new("privacy.incognito", Bool, "save nothing of the conversation or its changes")
        .or(NO)
        .guarded(Trusted),
    Row::new("privacy.local_only", Bool, "incognito uses local models").or(NO).guarded(Trusted),
    Row::new("sandbox.mode", Word(&SANDBOX), "sandbox for commands")
        .or(|| word("auto"))
        .guarded(Trusted),
    Row::new("sandbox.network", Word(&NETWORK), "who gets network access from it")
        .or(|| word("asked"))
        .guarded(Trusted),
    Row::new("sandbox.writable", List, "more folders that commands may write to").guarded(Trusted),
    Row::new("sandbox.readable", List, "more that commands may read when they run without approval")
        .guarded(Trusted),
    Row::new("sandbox.build_output", List, "folders of build output that trials update in place")
        .guarded(Trusted),
    // Small local model
    Row::new("slm.enabled", Bool, "use a small local model").or(NO).guarded(Trusted),
    Row::new("slm.backend", Word(&SLM_BACKENDS), "what runs it").or(|| word("auto")).guarded(Trusted),
    Row::new("slm.model", Text, "its name").guarded(Trusted),
    Row::new("slm.base_url", Url, "its address").guarded(Trusted),
    Row::new("slm.model_url", Url, "not used yet: where it is downloaded from").guarded(Trusted),
    Row::new("slm.data_dir", Text, "not used yet: its folder").guarded(Trusted),
    Row::new("slm.expected_sha256", Text, "not used yet: hash of the download").guarded(Trusted),
    Row::new("slm.startup_timeout", time(0), "not used yet: limit for its start").or(|| seconds(5)),
    // Arms: an entry replaces the one below whole, and prices decide when a cap is reached.
    Row::new("arms.[id].id", Form(&ARM), "provider and model, as `provider/model`")
        .guarded(Trusted)
        .required(),
    Row::new("arms.[id].enabled", Bool, "tasks may be sent to it; default true")
        .guarded(Trusted),
    Row::new("arms.[id].strengths", Words(&TASKS), "task types it is good at").guarded(Trusted),
    Row::new("arms.[id].cost_weight", number(0.0, 1.0), "how much its price counts")
        .guarded(Trusted),
    Row::new("arms.[id].input_price", DOLLARS, "dollars per million input tokens")
        .guarded(Trusted),
    Row::new("arms.[id].output_price", DOLLARS, "dollars per million output tokens")
        .guarded(Trusted),
    Row::new("arms.[id].cache_read_price", DOLLARS, "the same for tokens read from its cache")
        .guarded(Trusted),
    Row::new("arms.[id].cache_write_price", DOLLARS, "the same for tokens written to its cache")
        .guarded(Trusted),
    Row::new("arms.[id].context", count(1), "its window, in tokens").guarded(Trusted),
    Row::new("arms.[id].max_output", count(1), "maximum output tokens").guarded(Trusted),
    Row::new("arms.[id].small", Bool, "whether it gets the few tools of small models (docs/local-models.md)")
        .guarded(Trusted),
    Row::new("arms.[id].tools", Bool, "it calls tools").guarded(Trusted),
    Row::new("arms.[id].vision", Bool, "it sees pictures").guarded(Trusted),
    Row::new("arms.[id].thinking", Bool, "it can think before it answers").guarded(Trusted),
    Row::new(
        "arms.[id].pools",
        Forms(&POOL),
        "entries of `rate_limits` that apply to it besides its provider's",
    )
    .guarded(Trusted),
    // Programs: agents, hooks, servers, plugins
    Row::new("cli_agents.[name].name", Form(&AGENT), "its name among the models, after `agent/`")
        .guarded(Trusted)
        .required(),
    Row::new("cli_agents.[name].enabled", Bool, "it is used").guarded(Trusted),
    Row::new("cli_agents.[name].automatic", Bool, "the router may choose it on its own")
        .guarded(Trusted),
    Row::new("cli_agents.[name].command", Text, "program that speaks ACP on standard input and output")
        .guarded(Trusted),
    Row::new("cli_agents.[name].args", List, "its arguments").guarded(Trusted),
    Row::new("cli_agents.[name].env.*", Secret, "its environment").guarded(Trusted),
    Row::new("cli_agents.[name].network", Bool, "it may use the network; default true")
        .guarded(Trusted),
    Row::new("cli_agents.[name].writable", List, "folders besides the project that it may write")
        .guarded(Trusted),
    Row::new("hooks.[].name", Text, "name in messages").guarded(Trusted),
    Row::new("hooks.[].event", Word(&HOOK_EVENTS), "when it runs").guarded(Trusted).required(),
    Row::new("hooks.[].type", Word(&["command", "prompt", "agent", "http"]), "what it is")
        .guarded(Trusted),
    Row::new("hooks.[].exec", Verbatim, "shell line, question or address")
        .guarded(Trusted)
        .required(),
    Row::new("hooks.[].model", Text, "the model that is asked").guarded(Trusted),
    Row::new("hooks.[].timeout", time(0), "time limit").guarded(Trusted),
    Row::new("hooks.[].fail_open", Bool, "continue if it fails").guarded(Trusted),
    Row::new("hooks.[].fail", Word(&["open", "closed"]), "whether it blocks when it fails")
        .guarded(Trusted),
    Row::new("hooks.[].tool_pattern", Verbatim, "glob of tool names").guarded(Trusted),
    Row::new("mcp_servers.[name].name", Text, "name in tool names").guarded(Trusted).required(),
    Row::new("mcp_servers.[name].enabled", Bool, "it is used").guarded(Trusted),
    Row::new("mcp_servers.[name].command", Text, "program").guarded(Trusted),
    Row::new("mcp_servers.[name].args", List, "its arguments").guarded(Trusted),
    Row::new("mcp_servers.[name].env.*", Secret, "its environment").guarded(Trusted),
    Row::new("mcp_servers.[name].url", Url, "in place of `command`: its address").guarded(Trusted),
    Row::new("mcp_servers.[name].headers.*", Secret, "sent with each request to the address")
        .guarded(Trusted),
    Row::new("mcp_servers.[name].timeout", time(0), "longest silence within a call").guarded(Trusted),
    Row::new("mcp_servers.[name].network", Bool, "its program may use the network").guarded(Trusted),
    Row::new("mcp_servers.[name].writable", List, "folders besides the project that it may write")
        .guarded(Trusted),
    Row::new("mcp_servers.[name].replace_default.*", Text, "built-in tool that it replaces")
        .guarded(Trusted),
    Row::new("mcp_servers.[name].tool_policy.*.path_args", List, "arguments that are paths")
        .guarded(Trusted),
    Row::new("plugins.enabled", List, "the only plugins loaded").guarded(Trusted),
    Row::new("plugins.disabled", List, "plugins not loaded").guarded(Trusted),
    // Features
    TWO_STAGE.row(),
    MEMORY.row(),
    TASK_SUGGESTIONS.row(),
    ENTROPY_THRESHOLD.row(),
    // Telemetry
    Row::new("otel.enabled", Bool, "spans and metrics go to an OpenTelemetry collector (docs/telemetry.md)")
        .or(NO)
        .guarded(Personal),
    Row::new("otel.endpoint", Url, "address of the collector, to which `/v1/traces` and `/v1/metrics` are added")
        .or(|| word("http://localhost:4318"))
        .guarded(Personal),
    Row::new("otel.protocol", Word(&OTEL_PROTOCOLS), "how messages to the collector are written")
        .or(|| word("http/protobuf"))
        .guarded(Personal),
    Row::new("otel.headers.*", Secret, "sent with each request to the collector").guarded(Personal),
    Row::new("otel.content", Bool, "spans have messages, arguments and results, without secrets")
        .or(NO)
        .guarded(Personal),
    Row::new("analytics.local", Bool, "count the features that you use in a file of your own, which is never sent (docs/usage.md)")
        .or(NO)
        .guarded(Personal),
    Row::new("usage.currency", Form(&CURRENCY), "currency of costs in `gnoma usage` for people; `router.exchange` has its rate")
        .guarded(Personal),
    // Terminal
    Row::new("status.command", Form(&COMMAND), "shell line that writes the line at the bottom of the terminal (docs/tui.md)")
        .guarded(Personal),
    Row::new("tui.theme", Text, "colours").or(|| word("gnoma")),
    Row::new("tui.vim", Bool, "vim keys").or(NO),
];
