//! The command line, as typed.

mod analytics;
mod ci;
mod config;
mod error;
mod extend;
mod features;
mod foreign;
mod guard;
mod import;
mod mcp;
mod missing;
mod mistaken_commands;
mod mistyped_commands;
mod number;
mod plugin;
mod router;
mod sentence;
mod server;
mod session_args;
mod split_line;
mod task;
mod tunnel;
mod usage;
mod values;
mod verbs;

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use gnoma_core::{ThinkingMode, session::PermissionMode};

pub(crate) use self::{
    analytics::AnalyticsSub,
    ci::{CiSub, InitArgs, ReportFormat, ReviewArgs, Template},
    config::{ConfigSub, NewProviderArgs, ProvidersSub, TrustArgs},
    extend::{AgentsSub, SkillsSub},
    features::{FeatureArgs, FeaturesSub},
    foreign::{foreign_option_advice, unknown_option_advice},
    guard::{GuardInput, GuardSub},
    import::ImportFrom,
    mcp::{McpSub, NewServerArgs},
    missing::missing_argument_advice,
    mistaken_commands::{
        TASK, mistaken_prompt_advice, shell_line, slash_advice, task_prompt_advice,
    },
    mistyped_commands::{LineAnswer, answer_line},
    plugin::PluginSub,
    router::{RouteArgs, RouterSub},
    sentence::{prompt_hint, rewrite_line},
    server::{ServeArgs, WebArgs},
    session_args::{
        ChangesArgs, ExportFormat, ForeignProgram, RewindArgs, SessionSelector, SessionsSub,
    },
    task::{
        ScheduleAction, TaskImportFrom, TaskResumeArgs, TaskRunArgs, TaskScheduleArgs, TaskSub,
    },
    usage::{UsageArgs, UsageBy, UsageSub},
};

/// A coding assistant that works with any model.
#[derive(Debug, Parser)]
#[command(
    name = "gnoma",
    version,
    override_usage = "gnoma [OPTIONS] [PROMPT]...\n       gnoma [OPTIONS] <COMMAND>",
    disable_help_subcommand = true,
    args_override_self = true,
    after_help = "\
Examples:
  gnoma                 start a session at the terminal
  gnoma \"why does the build fail?\"
  git diff | gnoma \"review this\"
  gnoma --permission accept_edits \"rename Foo to Bar\"
  gnoma --continue \"and now the tests\"
  gnoma --json-schema schema.json \"which files name a port, and which?\"
  gnoma demo            watch a complete turn without a key, server or network

Words that are not a command are the prompt, also those that only begin with one's name; after
`--`, all words are.

Exit codes: 0 done, 1 error, 2 usage or configuration, 3 the provider rejected the key,
4 something needed approval and nobody was there to ask, 5 a spending cap is reached,
6 the limit of model calls is reached, 7 no model could answer,
8 no answer fit the schema of --json-schema, 9 `gnoma ci review` found problems as severe as
--fail-on, 130 stopped by Ctrl+C, 143 by SIGTERM, 129 by SIGHUP or a closed terminal."
)]
#[group(skip)]
pub(crate) struct Args {
    /// Command to run instead of a prompt.
    #[command(subcommand)]
    pub command: Option<GnomaSubcommand>,

    #[command(flatten)]
    pub turn: TurnArgs,
}

/// What a prompt is answered with.
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub(crate) struct TurnArgs {
    /// The prompt. Words are joined with spaces; piped standard input is added as context.
    #[arg(value_name = "PROMPT")]
    pub words: Vec<String>,

    /// Print the answer and exit. Without a prompt, read it from standard input.
    #[arg(short, long)]
    pub print: bool,

    /// Provider to use: a known name or one from `provider.endpoints`.
    #[arg(long, value_name = "NAME", global = true, value_parser = values::parse_provider_name)]
    pub provider: Option<String>,

    /// Model to use.
    #[arg(short, long, value_name = "ID", global = true, value_parser = values::parse_model_name)]
    pub model: Option<String>,

    /// Use the alternate screen, with its own scrolling.
    #[arg(long)]
    pub full_screen: bool,

    /// Output format.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub output_format: OutputFormat,

    /// Answer in JSON that fits this JSON Schema: a file, or the schema itself. Exits with 8 if the
    /// model gives no such answer.
    #[arg(long, value_name = "FILE|TEXT")]
    pub json_schema: Option<String>,

    /// How much the model thinks: off, adaptive (as much as the task needs), or a number of tokens.
    #[arg(long, value_name = "off|adaptive|N", value_parser = values::parse_thinking, allow_negative_numbers = true)]
    pub thinking: Option<ThinkingMode>,

    /// Maximum number of model calls in one turn.
    #[arg(long, value_name = "N", value_parser = number::parse_count, allow_negative_numbers = true)]
    pub max_turns: Option<u32>,

    /// Replace the built-in system prompt.
    #[arg(long, alias = "system-prompt", value_name = "TEXT")]
    pub system: Option<String>,

    /// Use one of your agents, or the bundled `coordinator`, which delegates the work to elfs.
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,

    /// Working folder.
    #[arg(long, alias = "cd", value_name = "DIR", global = true)]
    pub cwd: Option<PathBuf>,

    /// Additional working folder; can be repeated.
    #[arg(long, value_name = "DIR")]
    pub add_dir: Vec<PathBuf>,

    /// When to ask for approval before tools run.
    #[arg(long, alias = "permission-mode", value_name = "MODE", value_parser = guard::permission_mode())]
    pub permission: Option<PermissionMode>,

    /// Let mode bypass also run what needs approval in every other mode.
    #[arg(long)]
    pub confirm_bypass: bool,

    /// Save nothing.
    #[arg(long)]
    pub incognito: bool,

    /// Continue the session with this id, prefix or title (of several words); without one, choose from a
    /// list (at a terminal) or continue the newest.
    #[arg(
        short,
        long,
        value_name = "ID",
        num_args = 0..=1,
        value_parser = values::parse_session_id,
        conflicts_with_all = ["newest", "incognito"]
    )]
    pub resume: Option<Option<String>>,

    /// Continue the newest session of this project.
    #[arg(short = 'c', long = "continue", conflicts_with = "incognito")]
    pub newest: bool,

    /// Continue in a copy of the session.
    #[arg(long)]
    pub fork: bool,

    /// Write a debug log into this file, a new one or an earlier log: a line for each step of a session, without what
    /// people, models and tools wrote.
    #[arg(long, value_name = "FILE", global = true)]
    pub log: Option<PathBuf>,

    /// Configuration profile to use.
    #[arg(long, value_name = "NAME", global = true)]
    pub profile: Option<String>,
}

/// Forms of output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// Text: at a terminal as it arrives, otherwise each part once it is complete.
    #[default]
    Text,
    /// One JSON object at the end.
    Json,
    /// One JSON object per line, as events happen.
    StreamJson,
}

impl From<OutputFormat> for gnoma_front::OutputFormat {
    fn from(format: OutputFormat) -> Self {
        match format {
            OutputFormat::Text => Self::Text,
            OutputFormat::Json => Self::Json,
            OutputFormat::StreamJson => Self::StreamJson,
        }
    }
}

/// Commands other than a prompt.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum GnomaSubcommand {
    /// List providers: which are configured, which respond, and their models; or add or remove one.
    #[group(skip)]
    Providers {
        /// Without one, providers are listed.
        #[command(subcommand)]
        what: Option<ProvidersSub>,
    },
    /// Run a scripted turn with the real engine and tools; it needs no key, server or network.
    Demo,
    /// List the models to choose from: prices, context windows, and whether they are available now.
    #[group(skip)]
    Models {
        /// Only models with this in their name.
        name: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show, explain and change the configuration.
    #[group(skip)]
    Config {
        /// What to show.
        #[command(subcommand)]
        what: ConfigSub,
    },
    /// List features that can be turned on and off, and switch them.
    #[command(args_conflicts_with_subcommands = true)]
    #[group(skip)]
    Features {
        /// Without one, features are listed.
        #[command(subcommand)]
        what: Option<FeaturesSub>,
        /// Print a JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Show or remove your own statistics of the features that you use (`analytics.local`). Nothing sends them.
    #[group(skip)]
    Analytics {
        /// What to do.
        #[command(subcommand)]
        what: AnalyticsSub,
    },
    /// Show what a project folder would run and decide, and trust it after a yes.
    Trust(TrustArgs),
    /// List, show and check skills.
    #[group(skip)]
    Skills {
        /// What to do.
        #[command(subcommand)]
        what: SkillsSub,
    },
    /// List agents, for elfs (sub-agents) and for `--agent NAME`.
    #[group(skip)]
    Agents {
        /// What to do.
        #[command(subcommand)]
        what: AgentsSub,
    },
    /// List all extensions: where they come from, and whether they are used.
    Extensions,
    /// Run tasks, files with steps that you repeat; list, make, check and delete them.
    #[group(skip)]
    Task {
        /// What to do.
        #[command(subcommand)]
        what: TaskSub,
    },
    /// Import permissions, MCP servers, commands and instructions from another assistant.
    ///
    /// Shows what can be imported and what cannot. Nothing is written without --write, and nothing that you
    /// already have is changed.
    #[group(skip)]
    Import {
        /// The assistant.
        from: ImportFrom,
        /// Write what can be imported.
        #[arg(long)]
        write: bool,
    },
    /// Install, list, update, check and approve plugins.
    #[group(skip)]
    Plugin {
        /// What to do.
        #[command(subcommand)]
        what: PluginSub,
    },
    /// List, test, approve, add and remove MCP servers, or run gnoma as one.
    #[group(skip)]
    Mcp {
        /// What to do.
        #[command(subcommand)]
        what: McpSub,
    },
    /// Check text for secrets and hidden characters, and commands for danger, as sessions do.
    #[group(skip)]
    Guard {
        /// What to check.
        #[command(subcommand)]
        what: GuardSub,
    },
    /// List, show, search, export, import and repair the sessions of this project.
    #[group(skip)]
    Sessions {
        /// What to do.
        #[command(subcommand)]
        what: SessionsSub,
    },
    /// Undo the last turns: restore files and conversation.
    Rewind(RewindArgs),
    /// Undo the last rewind.
    Redo(SessionSelector),
    /// Show which files changed since a checkpoint.
    Changes(ChangesArgs),
    /// Show which model would do a task, and why. Calls no model.
    Route(RouteArgs),
    /// Inspect model routing: scores, spending, models and limits.
    #[group(skip)]
    Router {
        /// What to show.
        #[command(subcommand)]
        what: RouterSub,
    },
    /// Show what models cost: calls, tokens and money by day, project, session, model and more.
    Usage(UsageArgs),
    /// Run sessions in a server that windows attach to and detach from.
    ///
    /// While it runs, `gnoma` opens its sessions there, and they keep running without a window. Ctrl+C or SIGTERM stops
    /// it; everything is saved.
    Serve(ServeArgs),
    /// Show the sessions in a browser: watch, answer, steer, stop.
    ///
    /// Prints a link to the page, and a link for people who only watch. Shows the sessions of `gnoma serve`
    /// if it is running, and otherwise runs them itself. Listens on this machine only.
    Web(WebArgs),
    /// Serve an editor on standard input and output (Agent Client Protocol).
    ///
    /// Your editor starts it. Its sessions run in the server, if there is one, and otherwise in this process.
    #[group(skip)]
    Acp {
        /// Set up a provider at a terminal, and exit.
        #[arg(long)]
        setup: bool,
    },
    /// Review changes in continuous integration, and write templates that do.
    #[group(skip)]
    Ci {
        /// What to do.
        #[command(subcommand)]
        what: CiSub,
    },
    /// Attach to a session in the server.
    #[group(skip)]
    Attach {
        /// Session id or unique prefix [default: the most recent of this folder].
        session: Option<String>,
    },
    /// List the sessions in the server.
    #[group(skip)]
    Ps {
        /// Print a JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Print the version of the client-server protocol, its JSON Schema, or the HTTP API.
    #[group(skip)]
    Protocol {
        /// Print the schema.
        #[arg(long)]
        schema: bool,
        /// Print the OpenAPI description of the HTTP API.
        #[arg(long, conflicts_with = "schema")]
        openapi: bool,
    },
    /// Act as `claude`, for programs that drive it, such as those built on the Claude Agent SDKs.
    ///
    /// `gnoma claude --help` lists the options. A link to gnoma named `claude` does the same.
    #[command(disable_help_flag = true)]
    #[group(skip)]
    Claude {
        /// Options and prompt, as `claude` takes them.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Act as `codex exec --json`, for programs that drive it, such as the Codex SDK.
    ///
    /// `gnoma codex --help` lists the options. A link to gnoma named `codex` does the same.
    #[command(disable_help_flag = true)]
    #[group(skip)]
    Codex {
        /// Options and prompt, as `codex` takes them.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Check this machine and the providers: configuration, models, sandbox, folders, programs.
    ///
    /// Exits with 1 if a check fails (✗), and with 2 if the configuration cannot be used.
    #[group(skip)]
    Doctor {
        /// Write this and more into a new tar archive for a bug report: versions, settings without secrets, the
        /// last debug log without texts. Nothing of conversations.
        #[arg(long, value_name = "FILE")]
        bundle: Option<PathBuf>,
    },
    /// Say how to update and remove this installation of gnoma. Downloads nothing.
    Update,
    /// Print the manual page, or write one for each command.
    #[group(skip)]
    Man {
        /// The command whose page to print, such as `sessions list` [default: gnoma itself].
        #[arg(value_parser = values::parse_command_name, conflicts_with = "dir")]
        command: Vec<String>,
        /// Write the pages of all commands into this folder.
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
    /// Print a completion script.
    #[group(skip)]
    Completions {
        /// The shell.
        shell: CompletionShell,
        /// Print what can stand in place of the last of these words instead, as the script does at each Tab.
        #[arg(last = true, hide = true)]
        words: Vec<String>,
    },
}

/// A shell that completes command lines of gnoma.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum CompletionShell {
    Bash,
    Elvish,
    Fish,
    Powershell,
    Zsh,
}
