//! The rows of the schema, section by section.

use std::{borrow::Cow, time::Duration};

use super::{
    features::{ENTROPY_THRESHOLD, MEMORY, TASK_SUGGESTIONS, TWO_STAGE},
    form::{AGENT, ARM, ARMS, COMMAND, CURRENCY, GLOB, HOURS, MODEL, POOL, SHARE, THINKING, TOPIC},
    kind::Kind::{self, Bool, Bytes, Form, Forms, List, Secret, Text, Url, Verbatim, Word, Words},
    row::{
        Guard::{NeverMore, NotLooser, OnlyDeny, Personal, Trusted},
        Row,
    },
    words::{
        ACTIONS, COMPACTIONS, DAYS, EFFORTS, HOOK_EVENTS, MAX_ATTEMPTS, MAX_SECONDS, MODES,
        NETWORK, OTEL_PROTOCOLS, PRIORITIES, PROTOCOLS, SAFELIST, SANDBOX, SLM_BACKENDS,
        STATUS_PARTS, STRATEGIES, TASKS, VERIFIERS,
    },
};
use crate::value::Value;

/// Counts and tokens fit 32 bits everywhere.
const MAX_COUNT: i64 = u32::MAX as i64;

/// A whole number from `least` up.
const fn count_kind(least: i64) -> Kind {
    Kind::Integer { least, most: MAX_COUNT }
}

/// A whole number that may pass 32 bits.
const LARGE: Kind = Kind::Integer { least: 0, most: i64::MAX };

/// A number from `least` to `most`.
const fn number_kind(least: f64, most: f64) -> Kind {
    Kind::Number { least, most }
}

/// A number that is not negative.
const AMOUNT: Kind = number_kind(0.0, f64::MAX);

/// Money in dollars. More is a slip, and micro-dollars are to stay exact.
const DOLLARS: Kind = number_kind(0.0, 1_000_000.0);

/// The same, also in other currencies.
const MONEY: Kind = Kind::Money { most: 1_000_000.0 };

/// A time of at least `least_s` seconds.
const fn duration_kind(least_s: u64) -> Kind {
    Kind::Duration { least_s }
}

const fn seconds_value(count: u64) -> Value {
    Value::Duration(Duration::from_secs(count))
}
const fn word_value(text: &'static str) -> Value {
    Value::Text(Cow::Borrowed(text))
}

const NO: fn() -> Value = || Value::Bool(false);
const YES: fn() -> Value = || Value::Bool(true);

/// The table of all known keys.
pub static ROWS: &[Row] = &[
    Row::new("default_profile", Text, "profile used without `--profile`"),
    // Provider
    Row::new(
        "provider.default",
        Text,
        "provider that routing starts from; a turn may go to another one that is set up, unless `router.mode` is `off`",
    )
    .with_guard(Trusted),
    Row::new(
        "provider.model",
        Text,
        "model that routing starts from; a turn may go to another one, unless `router.mode` is `off`",
    ),
    Row::new("provider.max_tokens", count_kind(1), "maximum tokens of one answer")
        .with_default(|| Value::Integer(8192))
        .with_guard(Trusted),
    Row::new("provider.temperature", number_kind(0.0, 2.0), "sampling temperature"),
    Row::new("provider.effort", Word(&EFFORTS), "how hard the model thinks"),
    Row::new("provider.thinking", Form(&THINKING), "how much the model thinks, over `provider.effort`: `off`, `adaptive`, or tokens"),
    Row::new("provider.api_keys.*", Secret, "API key of a provider").with_guard(Trusted),
    Row::new(
        "provider.ignored_variables",
        List,
        "environment variables that no key or address is taken from, such as `MISTRAL_API_KEY`",
    )
    .with_guard(Trusted),
    Row::new(
        "provider.key_commands.*",
        Form(&COMMAND),
        "command that prints the key of a provider, such as `pass show mistral`; runs at the start if no other key is set, and cannot ask at the terminal",
    )
    .with_guard(Trusted),
    Row::new("provider.endpoints.*", Url, "address of a provider").with_guard(Trusted),
    Row::new("provider.protocols.*", Word(&PROTOCOLS), "protocol that an endpoint speaks").with_guard(Trusted),
    Row::new("provider.context.*", count_kind(1), "context window of a provider's models, in tokens")
        .with_guard(Trusted),
    Row::new(
        "provider.models.*",
        Forms(&MODEL),
        "models of a provider that tasks may be sent to; by default those that the catalogue suggests",
    )
    .with_guard(Trusted),
    // Permission
    Row::new("permission.mode", Word(&MODES), "permission mode: what needs approval before tools run")
        .with_default(|| word_value("auto"))
        .with_guard(NotLooser),
    Row::new("permission.confirm_bypass", Bool, "let mode bypass also run what otherwise always needs approval")
        .with_default(NO)
        .with_guard(Trusted),
    Row::new(
        "permission.rules.[].rule",
        Verbatim,
        "what the rule applies to, such as `bash(cargo test *)` or `fs.write(src/**)`",
    )
    .with_guard(OnlyDeny),
    Row::new("permission.rules.[].tool", Verbatim, "instead of `rule`: glob of tool names")
        .with_guard(OnlyDeny),
    Row::new("permission.rules.[].pattern", Verbatim, "with `tool`: text in the arguments")
        .with_guard(OnlyDeny),
    Row::new("permission.rules.[].action", Word(&["allow", "ask", "deny"]), "what the rule does")
        .with_guard(OnlyDeny)
        .make_required(),
    // Tools
    Row::new("tools.bash_timeout", duration_kind(1), "time limit of a shell command").with_default(|| seconds_value(30)),
    Row::new("tools.max_file_size", Bytes, "largest file the file tools read")
        .with_default(|| Value::Bytes(1 << 20)),
    Row::new("tools.max_rounds", count_kind(1), "maximum model calls in a turn").with_default(|| Value::Integer(50)),
    Row::new("tools.compaction", Word(&COMPACTIONS), "how room is made in a full context window")
        .with_default(|| word_value("full"))
        .with_guard(Trusted),
    Row::new("tools.shell", Text, "program that runs shell commands").with_guard(Trusted),
    // Sessions and checkpoints: a project must not have its user's past thrown away.
    Row::new("session.keep", Bool, "save sessions, so that they can be continued")
        .with_default(YES)
        .with_guard(Trusted),
    Row::new("session.max_keep", count_kind(1), "maximum sessions saved for a project; the oldest are deleted")
        .with_default(|| Value::Integer(1000))
        .with_guard(Trusted),
    Row::new("session.max_age", duration_kind(1), "sessions unchanged for longer are deleted").with_guard(Trusted),
    Row::new("session.max_size", Bytes, "maximum size of a project's sessions; the oldest are deleted")
        .with_default(|| Value::Bytes(1 << 30))
        .with_guard(Trusted),
    Row::new("session.folder", Text, "folder where sessions and checkpoints are saved")
        .with_guard(Trusted),
    Row::new("checkpoints.enabled", Bool, "save files before they are changed, for `gnoma rewind`")
        .with_default(YES)
        .with_guard(Trusted),
    Row::new("checkpoints.max_size", Bytes, "maximum size of all checkpoints; the oldest are deleted")
        .with_default(|| Value::Bytes(4 << 30))
        .with_guard(Trusted),
    Row::new("checkpoints.max_age", duration_kind(1), "older checkpoints are deleted")
        .with_default(|| seconds_value(30 * 24 * 60 * 60))
        .with_guard(Trusted),
    Row::new("checkpoints.max_file", Bytes, "largest file that is saved")
        .with_default(|| Value::Bytes(512 << 20))
        .with_guard(Trusted),
    Row::new("checkpoints.ignored_max_file", Bytes, "the same for files that git ignores")
        .with_default(|| Value::Bytes(1 << 20))
        .with_guard(Trusted),
    Row::new("memory.enabled", Bool, "tell models what `/memory` says").with_default(NO).with_guard(Trusted),
    Row::new("tasks.suggest", Word(&["on", "off"]), "offer to save repeated work as a task")
        .with_default(|| word_value("on"))
        .with_guard(Trusted),
    // Router: a project must not send things elsewhere, and must not have more spent.
    Row::new("router.mode", Word(&["auto", "off"]), "choose a model for each turn, or use one model only")
        .with_default(|| word_value("auto"))
        .with_guard(Trusted),
    // Ten minutes of a person at $60 an hour, and the worth at which routing was measured.
    Row::new("router.value", DOLLARS, "what a correct result of a normal task is worth, in dollars")
        .with_default(|| Value::Number(10.0))
        .with_guard(Trusted),
    // Routing was measured without it, and an arm nobody has timed would look quick.
    Row::new("router.waiting", DOLLARS, "what an hour of waiting is worth, in dollars")
        .with_default(|| Value::Number(0.0))
        .with_guard(Trusted),
    Row::new("router.priority", Word(&PRIORITIES), "how much tasks matter")
        .with_default(|| word_value("normal"))
        .with_guard(Trusted),
    Row::new("router.strategy", Word(&STRATEGIES), "how models work together")
        .with_default(|| word_value("auto"))
        .with_guard(Trusted),
    Row::new(
        "router.max_attempts",
        Kind::Integer { least: 1, most: MAX_ATTEMPTS },
        "maximum attempts at a task",
    )
    .with_default(|| Value::Integer(3))
    .with_guard(Trusted),
    Row::new("router.verify", Word(&VERIFIERS), "who checks an attempt before it is delivered")
        .with_default(|| word_value("auto"))
        .with_guard(Trusted),
    Row::new("router.checks", Forms(&COMMAND), "commands that check the project, such as its tests")
        .with_guard(Trusted),
    Row::new("router.failover", Bool, "continue with another model when one fails")
        .with_default(YES)
        .with_guard(Trusted),
    Row::new("router.learn", Bool, "learn from how tasks end").with_default(YES).with_guard(Trusted),
    Row::new(
        "router.discovery_interval",
        duration_kind(0),
        "how often to look for local models while a session is used; 0: only at the start",
    )
    .with_default(|| seconds_value(30))
    .with_guard(Trusted),
    Row::new(
        "router.catalogue",
        Text,
        "file with models and prices that override the built-in ones",
    )
    .with_guard(Trusted),
    Row::new(
        "router.force_two_stage",
        Bool,
        "give every model the few tools of small ones (docs/local-models.md), unless `arms.[id].small` says otherwise",
    )
    .with_default(NO),
    Row::new("router.caps.turn", MONEY, "spending cap for a turn, in dollars, or text such as `\"5 EUR\"`").with_guard(NeverMore),
    Row::new("router.caps.session", MONEY, "spending cap for a session, in dollars, or text such as `\"5 EUR\"`").with_guard(NeverMore),
    Row::new("router.caps.day", MONEY, "spending cap per day (UTC), in dollars, or text such as `\"5 EUR\"`").with_guard(NeverMore),
    Row::new("router.caps.month", MONEY, "spending cap per month (UTC), in dollars, or text such as `\"5 EUR\"`").with_guard(NeverMore),
    Row::new("router.caps.project_day", MONEY, "spending cap per day for a project, in dollars, or text such as `\"5 EUR\"`")
        .with_guard(NeverMore),
    Row::new("router.caps.project_month", MONEY, "spending cap per month for a project, in dollars, or text such as `\"5 EUR\"`")
        .with_guard(NeverMore),
    Row::new("router.exchange.*", number_kind(0.000_001, 1_000_000.0), "dollars for one unit of a currency that caps are written in, such as `EUR`")
        .with_guard(Trusted),
    Row::new("router.roles.small", Form(&ARM), "model for summaries of long conversations")
        .with_guard(Trusted),
    Row::new("router.roles.planner", Form(&ARM), "model that plans").with_guard(Trusted),
    Row::new("router.roles.editor", Form(&ARM), "model that carries out the plan").with_guard(Trusted),
    Row::new("router.roles.reviewer", Form(&ARM), "model that reviews what others did")
        .with_guard(Trusted),
    Row::new("router.rules.[].name", Text, "name in messages"),
    Row::new("router.rules.[].task", Words(&TASKS), "types of tasks it applies to"),
    Row::new("router.rules.[].path", Forms(&GLOB), "globs of files, one of which the task concerns"),
    Row::new("router.rules.[].hours", Form(&HOURS), "hours of the day when it applies, local time"),
    Row::new("router.rules.[].days", Words(&DAYS), "days of the week on which those hours begin"),
    Row::new("router.rules.[].complexity", Form(&SHARE), "how hard the task seems, in percent"),
    Row::new("router.rules.[].pin", Form(&ARMS), "the only models").with_guard(Trusted),
    Row::new("router.rules.[].forbid", Forms(&ARMS), "models that are not used"),
    Row::new("router.rules.[].prefer", Forms(&ARMS), "models that are preferred").with_guard(Trusted),
    Row::new(
        "router.rules.[].prefer_by",
        Kind::Integer { least: 0, most: 100 },
        "by how many percent of a task's worth they may be the worse choice; default 10",
    )
    .with_guard(Trusted),
    Row::new("router.rules.[].max_cost", DOLLARS, "maximum expected cost of a task, in dollars"),
    Row::new(
        "router.rules.[].max_seconds",
        Kind::Integer { least: 1, most: MAX_SECONDS },
        "maximum expected time of an answer, in seconds",
    ),
    // Network
    Row::new("network.connect_timeout", duration_kind(1), "time limit for connecting")
        .with_default(|| seconds_value(10)),
    Row::new("network.idle_timeout", duration_kind(1), "longest silence within an answer")
        .with_default(|| seconds_value(300)),
    Row::new(
        "network.first_byte_timeout",
        duration_kind(1),
        "longest silence before an answer begins; default 120s, or `network.idle_timeout` if that is less",
    ),
    Row::new(
        "network.local_first_byte_timeout",
        duration_kind(1),
        "the same for servers of your own, which may load a model first; default `network.idle_timeout`",
    ),
    Row::new(
        "network.ca_file",
        Text,
        "PEM file with certificate authorities to trust in addition to the built-in ones, such as that of a company's proxy",
    )
    .with_guard(Trusted),
    // Rate limits; a 0 lifts a built-in limit, but 0 dollars a day or month are none to spend.
    Row::new("rate_limits.*.tier", Text, "name of the plan"),
    Row::new("rate_limits.*.rps", AMOUNT, "requests per second"),
    Row::new("rate_limits.*.rpm", count_kind(0), "requests per minute"),
    Row::new("rate_limits.*.rpd", count_kind(0), "requests per day"),
    Row::new("rate_limits.*.tpm", count_kind(0), "tokens per minute"),
    Row::new("rate_limits.*.itpm", count_kind(0), "input tokens per minute"),
    Row::new("rate_limits.*.otpm", count_kind(0), "output tokens per minute"),
    Row::new("rate_limits.*.tokens_month", LARGE, "tokens per month").with_guard(Trusted),
    Row::new("rate_limits.*.spend_day", DOLLARS, "spending cap per day (UTC), in dollars").with_guard(NeverMore),
    Row::new("rate_limits.*.spend_month", DOLLARS, "spending cap per month (UTC), in dollars").with_guard(NeverMore),
    Row::new("rate_limits.*.spend_cap", AMOUNT, "old name of `spend_month`; 0 means no limit")
        .with_guard(Trusted),
    Row::new("rate_limits.*.custom", count_kind(0), "units of the plan that one request uses")
        .with_guard(Trusted),
    Row::new("rate_limits.*.custom_month", LARGE, "units of the plan per month").with_guard(Trusted),
    // Security
    Row::new(
        "security.entropy_threshold",
        number_kind(0.0, 8.0),
        "for older files only; likely secrets are recognised by how they read",
    )
    .with_default(|| Value::Number(4.5))
    .without_effect(
        "`security.redact_high_entropy = false` sends likely secrets, `[[security.actions]]` with `rule = \"high-entropy\"` says what else is done about them",
    )
    .with_guard(Trusted),
    Row::new("security.redact_high_entropy", Bool, "redact likely secrets that match no rule")
        .with_default(YES)
        .with_guard(Trusted),
    Row::new(
        "security.entropy_safelist",
        List,
        "for older files only; hashes, UUIDs and addresses are never secrets",
    )
    .with_default(|| Value::List(Cow::Borrowed(&SAFELIST)))
    .without_effect(
        "hashes, UUIDs, dates and addresses are never taken for secrets; single values pass with \
         `security.allow`",
    )
    .with_guard(Trusted),
    Row::new("security.patterns.[].name", Text, "name of a kind of secret").with_guard(Trusted),
    Row::new("security.patterns.[].regex", Verbatim, "regular expression that matches it")
        .with_guard(Trusted)
        .make_required(),
    Row::new("security.patterns.[].action", Word(&["redact", "block", "warn"]), "what is done")
        .with_guard(Trusted),
    Row::new("security.actions.[].rule", Verbatim, "glob of rules, such as `aws-*`")
        .with_guard(Trusted),
    Row::new("security.actions.[].provider", Verbatim, "provider it applies to, or `local`")
        .with_guard(Trusted),
    Row::new("security.actions.[].path", Verbatim, "glob of files it applies to").with_guard(Trusted),
    Row::new("security.actions.[].action", Word(&ACTIONS), "what to do with a secret that is found")
        .with_guard(Trusted)
        .make_required(),
    Row::new("security.allow", List, "secrets that may be sent, each as its `sha256:…`")
        .with_guard(Trusted),
    // Privacy and walls
    Row::new("privacy.incognito", Bool, "save nothing of the conversation or its changes")
        .with_default(NO)
        .with_guard(Trusted),
    Row::new("privacy.local_only", Bool, "incognito uses local models").with_default(NO).with_guard(Trusted),
    Row::new("sandbox.mode", Word(&SANDBOX), "sandbox for commands")
        .with_default(|| word_value("auto"))
        .with_guard(Trusted),
    Row::new("sandbox.network", Word(&NETWORK), "who gets network access from it")
        .with_default(|| word_value("asked"))
        .with_guard(Trusted),
    Row::new("sandbox.writable", List, "more folders that commands may write to").with_guard(Trusted),
    Row::new("sandbox.readable", List, "more that commands may read when they run without approval")
        .with_guard(Trusted),
    Row::new("sandbox.build_output", List, "folders of build output that trials update in place")
        .with_guard(Trusted),
    // Small local model
    Row::new("slm.enabled", Bool, "use a small local model").with_default(NO).with_guard(Trusted),
    Row::new("slm.backend", Word(&SLM_BACKENDS), "what runs it").with_default(|| word_value("auto")).with_guard(Trusted),
    Row::new("slm.model", Text, "its name").with_guard(Trusted),
    Row::new("slm.base_url", Url, "its address").with_guard(Trusted),
    Row::new("slm.model_url", Url, "not used yet: where it is downloaded from").with_guard(Trusted),
    Row::new("slm.data_dir", Text, "not used yet: its folder").with_guard(Trusted),
    Row::new("slm.expected_sha256", Text, "not used yet: hash of the download").with_guard(Trusted),
    Row::new("slm.startup_timeout", duration_kind(0), "not used yet: limit for its start").with_default(|| seconds_value(5)),
    // Arms: an entry replaces the one below whole, and prices decide when a cap is reached.
    Row::new("arms.[id].id", Form(&ARM), "provider and model, as `provider/model`")
        .with_guard(Trusted)
        .make_required(),
    Row::new("arms.[id].enabled", Bool, "tasks may be sent to it; default true")
        .with_guard(Trusted),
    Row::new("arms.[id].strengths", Words(&TASKS), "task types it is good at").with_guard(Trusted),
    Row::new("arms.[id].cost_weight", number_kind(0.0, 1.0), "how much its price counts")
        .with_guard(Trusted),
    Row::new("arms.[id].input_price", DOLLARS, "dollars per million input tokens")
        .with_guard(Trusted),
    Row::new("arms.[id].output_price", DOLLARS, "dollars per million output tokens")
        .with_guard(Trusted),
    Row::new("arms.[id].cache_read_price", DOLLARS, "the same for tokens read from its cache")
        .with_guard(Trusted),
    Row::new("arms.[id].cache_write_price", DOLLARS, "the same for tokens written to its cache")
        .with_guard(Trusted),
    Row::new("arms.[id].context", count_kind(1), "its window, in tokens").with_guard(Trusted),
    Row::new("arms.[id].max_output", count_kind(1), "maximum output tokens").with_guard(Trusted),
    Row::new("arms.[id].small", Bool, "whether it gets the few tools of small models (docs/local-models.md)")
        .with_guard(Trusted),
    Row::new("arms.[id].tools", Bool, "it calls tools").with_guard(Trusted),
    Row::new("arms.[id].vision", Bool, "it sees pictures").with_guard(Trusted),
    Row::new("arms.[id].thinking", Bool, "it can think before it answers").with_guard(Trusted),
    Row::new(
        "arms.[id].pools",
        Forms(&POOL),
        "entries of `rate_limits` that apply to it besides its provider's",
    )
    .with_guard(Trusted),
    // Programs: agents, hooks, servers, plugins
    Row::new("cli_agents.[name].name", Form(&AGENT), "its name among the models, after `agent/`")
        .with_guard(Trusted)
        .make_required(),
    Row::new("cli_agents.[name].enabled", Bool, "it is used").with_guard(Trusted),
    Row::new("cli_agents.[name].automatic", Bool, "the router may choose it on its own")
        .with_guard(Trusted),
    Row::new("cli_agents.[name].command", Text, "program that speaks ACP on standard input and output")
        .with_guard(Trusted),
    Row::new("cli_agents.[name].args", List, "its arguments").with_guard(Trusted),
    Row::new("cli_agents.[name].env.*", Secret, "its environment").with_guard(Trusted),
    Row::new("cli_agents.[name].network", Bool, "it may use the network; default true")
        .with_guard(Trusted),
    Row::new("cli_agents.[name].writable", List, "folders besides the project that it may write")
        .with_guard(Trusted),
    Row::new("hooks.[].name", Text, "name in messages").with_guard(Trusted),
    Row::new("hooks.[].event", Word(&HOOK_EVENTS), "when it runs").with_guard(Trusted).make_required(),
    Row::new("hooks.[].type", Word(&["command", "prompt", "agent", "http"]), "what it is")
        .with_guard(Trusted),
    Row::new("hooks.[].exec", Verbatim, "shell line, question or address")
        .with_guard(Trusted)
        .make_required(),
    Row::new("hooks.[].model", Text, "the model that is asked").with_guard(Trusted),
    Row::new("hooks.[].timeout", duration_kind(0), "time limit").with_guard(Trusted),
    Row::new("hooks.[].fail_open", Bool, "continue if it fails").with_guard(Trusted),
    Row::new("hooks.[].fail", Word(&["open", "closed"]), "whether it blocks when it fails")
        .with_guard(Trusted),
    Row::new("hooks.[].tool_pattern", Verbatim, "glob of tool names").with_guard(Trusted),
    Row::new("mcp_servers.[name].name", Text, "name in tool names").with_guard(Trusted).make_required(),
    Row::new("mcp_servers.[name].enabled", Bool, "it is used").with_guard(Trusted),
    Row::new("mcp_servers.[name].command", Text, "program").with_guard(Trusted),
    Row::new("mcp_servers.[name].args", List, "its arguments").with_guard(Trusted),
    Row::new("mcp_servers.[name].env.*", Secret, "its environment").with_guard(Trusted),
    Row::new("mcp_servers.[name].url", Url, "in place of `command`: its address").with_guard(Trusted),
    Row::new("mcp_servers.[name].headers.*", Secret, "sent with each request to the address")
        .with_guard(Trusted),
    Row::new("mcp_servers.[name].timeout", duration_kind(0), "longest silence within a call").with_guard(Trusted),
    Row::new("mcp_servers.[name].network", Bool, "its program may use the network").with_guard(Trusted),
    Row::new("mcp_servers.[name].writable", List, "folders besides the project that it may write")
        .with_guard(Trusted),
    Row::new("mcp_servers.[name].replace_default.*", Text, "built-in tool that it replaces")
        .with_guard(Trusted),
    Row::new("mcp_servers.[name].tool_policy.*.path_args", List, "arguments that are paths")
        .with_guard(Trusted),
    Row::new("plugins.enabled", List, "the only plugins loaded").with_guard(Trusted),
    Row::new("plugins.disabled", List, "plugins not loaded").with_guard(Trusted),
    // Features
    TWO_STAGE.row(),
    MEMORY.row(),
    TASK_SUGGESTIONS.row(),
    ENTROPY_THRESHOLD.row(),
    // Telemetry
    Row::new("otel.enabled", Bool, "spans, metrics and events go to an OpenTelemetry collector (docs/telemetry.md)")
        .with_default(NO)
        .with_guard(Personal),
    Row::new("otel.endpoint", Url, "address of the collector, to which `/v1/traces`, `/v1/metrics` and `/v1/logs` are added")
        .with_default(|| word_value("http://localhost:4318"))
        .with_guard(Personal),
    Row::new("otel.protocol", Word(&OTEL_PROTOCOLS), "how messages to the collector are written")
        .with_default(|| word_value("http/protobuf"))
        .with_guard(Personal),
    Row::new("otel.headers.*", Secret, "sent with each request to the collector").with_guard(Personal),
    Row::new("otel.content", Bool, "spans have messages, arguments and results, without secrets")
        .with_default(NO)
        .with_guard(Personal),
    Row::new("analytics.local", Bool, "count the features that you use in a file of your own, which is never sent (docs/usage.md)")
        .with_default(NO)
        .with_guard(Personal),
    Row::new("usage.currency", Form(&CURRENCY), "currency of costs in `gnoma usage` for people; `router.exchange` has its rate")
        .with_guard(Personal),
    Row::new("answers.style", Text, "output style of answers: the name of a file in `output-styles` (docs/extend.md)")
        .with_guard(Trusted),
    // Notifications
    Row::new("notify.command", Form(&COMMAND), "shell line that is run when a turn has ended, asks, or a spending cap nears (docs/tui.md)")
        .with_guard(Personal),
    Row::new("notify.ntfy", Form(&TOPIC), "topic of ntfy that the same goes to, such as `https://ntfy.sh/my-topic`")
        .with_guard(Personal),
    Row::new("notify.ntfy_token", Secret, "access token for it").with_guard(Personal),
    Row::new("notify.after", duration_kind(0), "time that a turn takes, or a question waits, before it is told")
        .with_default(|| seconds_value(10))
        .with_guard(Personal),
    // Terminal
    Row::new("status.command", Form(&COMMAND), "shell line that writes the line at the bottom of the terminal (docs/tui.md)")
        .with_guard(Personal),
    Row::new("status.show", Words(&STATUS_PARTS), "spending that the line at the bottom shows: of today, of this week, and the part of the fullest cap")
        .with_guard(Personal),
    Row::new("tui.theme", Text, "colours: a built-in theme, or one of your own (docs/tui.md)").with_default(|| word_value("gnoma")),
    Row::new("tui.vim", Bool, "vim keys").with_default(NO),
];
