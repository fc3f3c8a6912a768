//! The words that keys take: names of modes, tasks, days, and limits of numbers that go with them.

use std::borrow::Cow;

/// Wires that a custom endpoint can speak; `settings::Protocol` has the same names.
pub(crate) const PROTOCOLS: [&str; 7] =
    ["mistral", "anthropic", "openai", "responses", "google", "ollama", "compatible"];
/// The levels of effort that a model can be told to put into thinking; `gnoma_core::Effort` has the same names.
pub(crate) const EFFORTS: [&str; 4] = ["none", "low", "medium", "high"];
pub(crate) const ACTIONS: [&str; 4] = ["redact", "block", "warn", "allow"];
/// `auto` uses what the system offers, `required` runs no command without all of it.
pub(crate) const SANDBOX: [&str; 3] = ["auto", "required", "off"];
/// `asked`: commands that a person or rule allowed and that use it.
pub(crate) const NETWORK: [&str; 3] = ["never", "asked", "always"];
/// The names of the variants of `gnoma_core::PermissionMode`.
pub(crate) const MODES: [&str; 6] = ["default", "accept_edits", "auto", "plan", "deny", "bypass"];

/// Types of tasks, as the classifier names them.
pub(crate) const TASKS: [&str; 10] = [
    "boilerplate",
    "generation",
    "refactor",
    "review",
    "unit_test",
    "planning",
    "orchestration",
    "security_review",
    "debug",
    "explain",
];
/// The names of the variants of the router's `Day`.
pub(crate) const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
/// The names of the variants of `settings::Compaction`.
pub(crate) const COMPACTIONS: [&str; 3] = ["full", "summarize", "truncate"];
pub(crate) const PRIORITIES: [&str; 4] = ["low", "normal", "high", "critical"];
pub(crate) const STRATEGIES: [&str; 5] = ["auto", "single", "cascade", "ensemble", "synthesis"];
/// `auto`: the project's checks where there are any, else a reviewer.
pub(crate) const VERIFIERS: [&str; 4] = ["auto", "checks", "reviewer", "off"];
/// More attempts at one task than this help nobody.
pub(crate) const MAX_ATTEMPTS: i64 = 10;
/// An answer that takes longer than a day is none.
pub(crate) const MAX_SECONDS: i64 = 86_400;

/// The built-in themes of the terminal. Older files name others, which mean the first.
pub const THEMES: [&str; 6] = ["gnoma", "terminal", "forest", "ember", "mono", "clear"];
pub(crate) const HOOK_EVENTS: [&str; 15] = [
    "session_start",
    "session_end",
    "user_prompt_submit",
    "pre_tool_use",
    "post_tool_use",
    "post_tool_use_failure",
    "permission_request",
    "permission_denied",
    "pre_compact",
    "post_compact",
    "stop",
    "notification",
    "model_switch",
    "subagent_start",
    "subagent_stop",
];
pub(crate) const SLM_BACKENDS: [&str; 6] =
    ["auto", "ollama", "llamacpp", "llamafile", "openaicompat", "disabled"];
pub(crate) const SAFELIST: [Cow<'static, str>; 4] = [
    Cow::Borrowed("uuid"),
    Cow::Borrowed("sha_hex"),
    Cow::Borrowed("iso8601"),
    Cow::Borrowed("url"),
];
/// Parts of the line at the bottom that are not shown by themselves.
pub(crate) const STATUS_PARTS: [&str; 3] = ["today", "week", "cap"];
/// Forms of OTLP over HTTP.
pub(crate) const OTEL_PROTOCOLS: [&str; 2] = ["http/protobuf", "http/json"];
