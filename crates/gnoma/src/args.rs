//! The command line, as typed.

mod past;
mod router;

use std::{path::PathBuf, time::Duration};

use clap::{
    Parser, Subcommand, ValueEnum,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};
use clap_complete::Shell;
use gnoma_core::session::PermissionMode;

pub(crate) use self::{
    past::{ChangesArgs, ExportFormat, Foreign, RewindArgs, SessionsSub, WhichSession},
    router::{RouteArgs, RouterSub},
};

/// A coding assistant that works with any model.
#[derive(Debug, Parser)]
#[command(
    name = "gnoma",
    version,
    override_usage = "gnoma [OPTIONS] [PROMPT]...\n       gnoma [OPTIONS] <COMMAND>",
    disable_help_subcommand = true,
    after_help = "\
Examples:
  gnoma                 opens a conversation at the terminal
  gnoma \"why does the build fail?\"
  git diff | gnoma \"review this\"
  gnoma --permission accept_edits \"rename Foo to Bar\"
  gnoma --continue \"and now the tests\"
  gnoma demo            a whole turn without key, server or network

Exit codes: 0 done, 1 error, 2 usage or configuration, 130 stopped by Ctrl+C,\n143 by SIGTERM, 129 by SIGHUP or a closed terminal."
)]
pub(crate) struct Args {
    /// What to do instead of answering a prompt.
    #[command(subcommand)]
    pub command: Option<Sub>,

    #[command(flatten)]
    pub turn: TurnArgs,
}

/// What a prompt is answered with.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct TurnArgs {
    /// The request. Words are joined; standard input, if piped, is added as context.
    #[arg(value_name = "PROMPT")]
    pub words: Vec<String>,

    /// Answer and leave, also at a terminal and without words: then they come from standard input.
    #[arg(short, long)]
    pub print: bool,

    /// Provider to ask: a known name or one from `provider.endpoints`.
    #[arg(long, value_name = "NAME", global = true)]
    pub provider: Option<String>,

    /// Model to ask.
    #[arg(long, value_name = "ID", global = true)]
    pub model: Option<String>,

    /// Show the conversation on a screen of its own, with its own scrolling.
    #[arg(long)]
    pub full_screen: bool,

    /// What is written to standard output.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub output_format: OutputFormat,

    /// Most model calls in one turn.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_turns: Option<u32>,

    /// System prompt in place of the built-in one.
    #[arg(long, value_name = "TEXT")]
    pub system: Option<String>,

    /// Folder to work in.
    #[arg(long, value_name = "DIR", global = true)]
    pub cwd: Option<PathBuf>,

    /// One more folder to work in; may be given again.
    #[arg(long, value_name = "DIR")]
    pub add_dir: Vec<PathBuf>,

    /// How much is asked before tools run.
    #[arg(long, value_name = "MODE", value_parser = permission_mode())]
    pub permission: Option<PermissionMode>,

    /// Let mode bypass also do what is asked for in every other mode.
    #[arg(long)]
    pub confirm_bypass: bool,

    /// Keep nothing of what is said or done.
    #[arg(long)]
    pub incognito: bool,

    /// Continue the session whose id begins so; without one, choose from a list (at a terminal) or
    /// continue the newest.
    #[arg(
        short,
        long,
        value_name = "ID",
        num_args = 0..=1,
        default_missing_value = "",
        conflicts_with_all = ["newest", "incognito"]
    )]
    pub resume: Option<String>,

    /// Continue the newest session of this project.
    #[arg(short = 'c', long = "continue", conflicts_with = "incognito")]
    pub newest: bool,

    /// Continue in a copy of the session.
    #[arg(long)]
    pub fork: bool,

    /// Profile of the configuration.
    #[arg(long, value_name = "NAME", global = true)]
    pub profile: Option<String>,
}

/// Reads a mode, and tells help and completions which there are.
fn permission_mode() -> impl TypedValueParser<Value = PermissionMode> {
    let value = |mode: PermissionMode| match mode {
        PermissionMode::AcceptEdits => PossibleValue::new(mode.name()).alias("acceptEdits"),
        PermissionMode::Default
        | PermissionMode::Auto
        | PermissionMode::Plan
        | PermissionMode::Deny
        | PermissionMode::Bypass => PossibleValue::new(mode.name()),
    };
    PossibleValuesParser::new(PermissionMode::ALL.map(value)).try_map(|name| name.parse())
}

/// A span of time as people write it: `90s`, `30m`, `2h`, `1d`.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is no span of time; write it like 90s, 30m, 2h or 1d");
    let (number, unit) =
        text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 60 * 60,
        "d" => 24 * 60 * 60,
        _ => return Err(wrong()),
    };
    number.checked_mul(seconds).map(Duration::from_secs).ok_or_else(wrong)
}

/// Forms of output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// The answer as it arrives.
    #[default]
    Text,
    /// One JSON object at the end.
    Json,
    /// One JSON object a line, as things happen.
    StreamJson,
}

/// Commands other than a prompt.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Sub {
    /// List providers: which are configured, which answer, which models they have.
    Providers,
    /// Run a scripted turn with the real engine and tools, without key, server or network.
    Demo,
    /// Show the configuration.
    Config {
        /// What of it.
        #[command(subcommand)]
        what: ConfigSub,
    },
    /// Let the settings of a project folder choose endpoints, keys and programs.
    Trust {
        /// The folder; the current project by default.
        folder: Option<PathBuf>,
        /// Take the trust back.
        #[arg(long)]
        revoke: bool,
        /// List trusted folders.
        #[arg(long, conflicts_with_all = ["folder", "revoke"])]
        list: bool,
    },
    /// Look for secrets, hidden characters and dangerous commands, as sessions do.
    Guard {
        /// For what.
        #[command(subcommand)]
        what: GuardSub,
    },
    /// List, read, search, move and mend the sessions of this project.
    Sessions {
        /// What with them.
        #[command(subcommand)]
        what: SessionsSub,
    },
    /// Take back what the last turns did to files and conversation.
    Rewind(RewindArgs),
    /// Bring back what was taken back last.
    Redo(WhichSession),
    /// Show what happened to the files since a checkpoint.
    Changes(ChangesArgs),
    /// Say which model would do a task, and why. No model is asked.
    Route(RouteArgs),
    /// Look into the choice of models: what is learnt, what is spent, what there is.
    Router {
        /// What of it.
        #[command(subcommand)]
        what: RouterSub,
    },
    /// Keep sessions in a server that windows come to and leave.
    ///
    /// While it runs, `gnoma` opens its sessions there, and they can go on without a window.
    Serve {
        /// End by itself when nobody has needed it for so long, such as 30m: no window, no turn, no
        /// open question.
        #[arg(long, value_name = "TIME", value_parser = duration)]
        idle_exit: Option<Duration>,
        /// End the server that runs, and take its place. Its sessions are stored and go on.
        #[arg(long)]
        replace: bool,
    },
    /// Open a window on a session that lives in the server.
    Attach {
        /// The session, by a unique beginning of its id; the one of this folder that changed last by
        /// default.
        session: Option<String>,
    },
    /// List the sessions that live in the server.
    Ps {
        /// Print a JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Print the JSON Schema of what a server and its clients say to each other, or its version.
    Protocol {
        /// Print the schema.
        #[arg(long)]
        schema: bool,
    },
    /// Say what holds on this machine: walls around commands, folders, programs.
    Doctor,
    /// Print a completion script.
    Completions {
        /// The shell it is for.
        shell: Shell,
    },
}

/// Parts of the guard.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum GuardSub {
    /// List the secrets in a text. Exit code 1 when there are any.
    Scan(GuardInput),
    /// Print a text without what hides in it. Exit code 1 when something did.
    Clean(GuardInput),
    /// Say of shell commands, one a line, what mode accept_edits would do. Exit code 1 unless all run.
    Shell(GuardInput),
    /// Run shell commands, one a line, as for a model with nobody there to ask, and say what became of each
    /// and what the model would be told. No model is asked. Exit code 1 unless all ran.
    Run {
        /// How much would be asked.
        #[arg(long, value_name = "MODE", value_parser = permission_mode())]
        mode: PermissionMode,
        /// The commands.
        #[command(flatten)]
        input: GuardInput,
    },
    /// Explain what a command does and what would be decided.
    Explain {
        /// The command.
        command: String,
    },
}

/// What the guard looks at.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct GuardInput {
    /// The file; `-` or nothing is standard input.
    pub file: Option<PathBuf>,
    /// Read JSON lines with `id` and `text_b64` (or `command`), and answer each with one.
    #[arg(long)]
    pub jsonl: bool,
}

/// Views of the configuration.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum ConfigSub {
    /// Every value in force.
    Show {
        /// Say which layer set each value.
        #[arg(long)]
        origin: bool,
    },
    /// The files that are read.
    Path,
}
