//! The environment variables that gnoma reads: one table, from which `docs/environment.md` is written. A test compares it
//! with the sources.
//!
//! What a person names in settings (`${VAR}`), and the names of variables that may hold secrets, are not in it.

/// An environment variable that gnoma reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variable {
    /// The name of the variable.
    pub name: &'static str,
    /// What the variable is for, as a fragment.
    pub purpose: &'static str,
    /// The crate that reads it; a library that does, in brackets.
    pub reader: &'static str,
}

const fn variable(name: &'static str, purpose: &'static str, reader: &'static str) -> Variable {
    Variable { name, purpose, reader }
}

const CONFIG: &str = "gnoma-config";
const HOST: &str = "gnoma-host";
const FRONT: &str = "gnoma-front";
const COMMAND: &str = "gnoma";
const OTEL: &str = "gnoma-otel";

/// All environment variables that gnoma reads, in the order of the page.
pub const VARIABLES: &[Variable] = &[
    variable("GNOMA_PROVIDER", "sets `provider.default`", CONFIG),
    variable("GNOMA_MODEL", "sets `provider.model`", CONFIG),
    variable("GNOMA_LOG", "starts a [debug log](debugging.md)", COMMAND),
    variable("MISTRAL_API_KEY", "key of Mistral", CONFIG),
    variable("ANTHROPIC_API_KEY", "key of Anthropic", CONFIG),
    variable("ANTHROPICS_API_KEY", "key of Anthropic, if `ANTHROPIC_API_KEY` is not set", CONFIG),
    variable("ANTHROPIC_AUTH_TOKEN", "key of a gateway that speaks Anthropic's API", CONFIG),
    variable("OPENAI_API_KEY", "key of OpenAI", CONFIG),
    variable("GEMINI_API_KEY", "key of Google", CONFIG),
    variable("GOOGLE_API_KEY", "key of Google, if `GEMINI_API_KEY` is not set", CONFIG),
    variable("OPENROUTER_API_KEY", "key of OpenRouter", CONFIG),
    variable("GROQ_API_KEY", "key of Groq", CONFIG),
    variable("DEEPSEEK_API_KEY", "key of DeepSeek", CONFIG),
    variable("XAI_API_KEY", "key of xAI", CONFIG),
    variable("ANTHROPIC_BASE_URL", "address of Anthropic's API", CONFIG),
    variable("OPENAI_BASE_URL", "address of OpenAI's API", CONFIG),
    variable("GOOGLE_GEMINI_BASE_URL", "address of Google's API", CONFIG),
    variable("OLLAMA_HOST", "address of Ollama: a URL, a host, or a host and a port", CONFIG),
    variable("SSL_CERT_FILE", "sets `network.ca_file`", CONFIG),
    variable("HTTPS_PROXY", "proxy for `https` addresses; also in small letters", "(reqwest)"),
    variable("HTTP_PROXY", "proxy for `http` addresses; also in small letters", "(reqwest)"),
    variable("ALL_PROXY", "proxy for all addresses; also in small letters", "(reqwest)"),
    variable("NO_PROXY", "hosts that need no proxy; also in small letters", "(reqwest)"),
    variable("HOME", "home folder, if it is an absolute path", HOST),
    variable("XDG_CONFIG_HOME", "folder of settings, instead of `~/.config`", HOST),
    variable("XDG_STATE_HOME", "folder of sessions, instead of `~/.local/state`", HOST),
    variable("XDG_CACHE_HOME", "folder of caches, instead of `~/.cache`", HOST),
    variable("XDG_DATA_HOME", "folder of plugins, instead of `~/.local/share`", HOST),
    variable("XDG_RUNTIME_DIR", "folder of the server's socket", COMMAND),
    variable(
        "TMPDIR",
        "folder of temporary files, and of the socket without `XDG_RUNTIME_DIR`",
        COMMAND,
    ),
    variable("PATH", "folders of programs", HOST),
    variable("DOCKER_HOST", "where Docker listens, so that hints are right", HOST),
    variable("CODEX_HOME", "folder from which `gnoma import codex` imports", HOST),
    variable("CARGO_HOME", "folder that tells `gnoma update` how gnoma was installed", COMMAND),
    variable(
        "DBUS_SESSION_BUS_ADDRESS",
        "session whose keyring holds logins at MCP servers",
        "gnoma-extend",
    ),
    variable(
        "GIT_CONFIG_COUNT",
        "settings for git, which commands get beside gnoma's own",
        "gnoma-tools",
    ),
    variable("TZ", "time zone of times that are shown", "(jiff)"),
    variable("TZDIR", "folder of time zones", "(jiff)"),
    variable("NO_COLOR", "turns colour off", FRONT),
    variable("ACCESSIBLE", "plain lines for screen readers", FRONT),
    variable("TERM", "kind of terminal; `dumb` gets plain lines", FRONT),
    variable("COLORTERM", "`truecolor` or `24bit`: the terminal shows all colours", COMMAND),
    variable("XTERM_VERSION", "set by xterm, whose lines do not reflow", COMMAND),
    variable("STY", "set by GNU screen", COMMAND),
    variable("TMUX", "set by tmux", COMMAND),
    variable("TERM_PROGRAM", "terminal that is asked to show notifications", COMMAND),
    variable("LC_ALL", "locale; one without UTF-8 gets ASCII", COMMAND),
    variable("LC_CTYPE", "locale, if `LC_ALL` is not set", COMMAND),
    variable("LANG", "locale, if neither is set", COMMAND),
    variable("VISUAL", "editor for prompts and files", COMMAND),
    variable("EDITOR", "editor, if `VISUAL` is not set", COMMAND),
    variable("SHELL", "shell that the window opens", COMMAND),
    variable("WAYLAND_DISPLAY", "the clipboard is Wayland's", COMMAND),
    variable("DISPLAY", "the clipboard is that of X", COMMAND),
    variable("GITHUB_STEP_SUMMARY", "file to which `gnoma ci review` adds its report", COMMAND),
    variable("GITHUB_BASE_REF", "branch with which `gnoma ci review` compares", COMMAND),
    variable(
        "CI_MERGE_REQUEST_DIFF_BASE_SHA",
        "commit with which `gnoma ci review` compares",
        COMMAND,
    ),
    variable("OTEL_SDK_DISABLED", "`true` turns telemetry off", OTEL),
    variable("OTEL_EXPORTER_OTLP_ENDPOINT", "address of the collector", OTEL),
    variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "address for spans", OTEL),
    variable("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "address for metrics", OTEL),
    variable("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "address for log records", OTEL),
    variable("OTEL_EXPORTER_OTLP_PROTOCOL", "`http/protobuf` or `http/json`", OTEL),
    variable("OTEL_EXPORTER_OTLP_HEADERS", "headers of requests to the collector", OTEL),
    variable("OTEL_EXPORTER_OTLP_TIMEOUT", "time limit of such a request, in milliseconds", OTEL),
    variable("OTEL_TRACES_EXPORTER", "`none` sends no spans", OTEL),
    variable("OTEL_METRICS_EXPORTER", "`none` sends no metrics", OTEL),
    variable("OTEL_LOGS_EXPORTER", "`none` sends no log records", OTEL),
    variable("OTEL_SERVICE_NAME", "name of the service in telemetry", OTEL),
    variable("OTEL_RESOURCE_ATTRIBUTES", "attributes of the service in telemetry", OTEL),
    variable("TRACEPARENT", "span that the work is a part of (W3C Trace Context)", HOST),
    variable(
        "CLAUDE_CODE_SDK_READS_SESSION_STATE",
        "`gnoma claude` reports whether a turn runs",
        "gnoma-claude",
    ),
    variable(
        "MCP_CONFORMANCE_CONTEXT",
        "what the conformance suite of MCP wants of the client",
        COMMAND,
    ),
    variable("MCP_CONFORMANCE_PROTOCOL_VERSION", "the version that the suite tests", COMMAND),
];

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fmt::Write as _, fs, path::Path};

    use super::*;
    use crate::places::{CACHES_BY_VARIABLE, CONFIGURED_BY_VARIABLE};

    const HEAD: &str = "\
# Environment variables

gnoma reads these variables. Settings of files are weaker than variables, and flags are stronger (see [configuration](configuration.md)).

`${VAR}` in a setting, in `.mcp.json` and in a key's source reads any variable. The key of a provider that is not listed is in `NAME_API_KEY`, with
the provider's name in capitals. Which variables commands get is in [security](security.md).

| variable | for | read by |
|---|---|---|
";

    const FOLDERS: &str = "
These variables say where tools and their caches are, so that commands in the sandbox find them:

";

    fn render_page() -> String {
        let mut page = HEAD.to_owned();
        for Variable { name, purpose, reader } in VARIABLES {
            let reader = reader.trim_matches(['(', ')']);
            let _infallible = writeln!(page, "| `{name}` | {purpose} | {reader} |");
        }
        let folders = CONFIGURED_BY_VARIABLE.iter().chain(CACHES_BY_VARIABLE);
        let names: BTreeSet<_> = folders.map(|(name, _)| format!("`{name}`")).collect();
        page + FOLDERS + &names.into_iter().collect::<Vec<_>>().join(", ") + ".\n"
    }

    #[test]
    fn the_page_of_environment_variables_is_that_of_the_table() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let fresh = std::env::temp_dir().join("gnoma-environment.md");
        let page = render_page();
        if fs::read_to_string(root.join("docs/environment.md")).is_ok_and(|there| there == page) {
            return;
        }
        fs::write(&fresh, page).unwrap();
        panic!("docs/environment.md is not what the table says; copy {} there", fresh.display());
    }

    #[test]
    fn each_variable_is_listed_once() {
        let names: BTreeSet<_> = VARIABLES.iter().map(|variable| variable.name).collect();
        assert_eq!(names.len(), VARIABLES.len());
    }
}
