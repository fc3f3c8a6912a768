//! The part of the command line that is about what was kept: sessions and files.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::number;

/// A number of turns has at most so many digits; more are an id.
const MAX_COUNT_DIGITS: usize = 4;

/// What can be done with sessions. A unique beginning stands for an id everywhere.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum SessionsSub {
    /// List the sessions of this project, the newest first.
    #[command(alias = "ls")]
    #[group(skip)]
    List {
        /// Maximum number of sessions; 0 for all.
        #[arg(short = 'n', long, value_name = "N", default_value_t = 20, value_parser = number::parse_maximum, allow_negative_numbers = true)]
        max: usize,
        /// Print a JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Show a session.
    #[group(skip)]
    Show {
        /// The session [default: the newest].
        id: Option<String>,
        /// Show tool calls and results in full.
        #[arg(long)]
        full: bool,
        /// Print a JSON object with all entries.
        #[arg(long)]
        json: bool,
    },
    /// Search all conversations.
    #[group(skip)]
    Search {
        /// The words to find; a message must contain all of them.
        #[arg(required = true)]
        words: Vec<String>,
        /// Maximum number of matches.
        #[arg(short = 'n', long, value_name = "N", default_value_t = 20, value_parser = number::parse_maximum, allow_negative_numbers = true)]
        max: usize,
        /// Print a JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Copy a session, to continue it separately.
    #[group(skip)]
    Fork {
        /// The session [default: the newest].
        id: Option<String>,
        /// Copy up to this entry, numbered as in `show` [default: all].
        #[arg(long, value_name = "ENTRY", value_parser = number::parse_entry_number, allow_negative_numbers = true)]
        at: Option<i64>,
        /// Print a JSON object with the new id.
        #[arg(long)]
        json: bool,
    },
    /// Rename a session.
    #[group(skip)]
    Rename {
        /// The session.
        id: String,
        /// The title. Words are joined.
        #[arg(required = true)]
        title: Vec<String>,
    },
    /// Export a session to standard output or a file.
    #[group(skip)]
    Export {
        /// The session [default: the newest].
        id: Option<String>,
        /// Output format [default: by the ending of the file, else markdown].
        #[arg(long, value_name = "FORMAT", value_enum)]
        format: Option<ExportFormat>,
        /// The file to write; never overwritten.
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Import sessions from a file or folder.
    #[group(skip)]
    Import {
        /// An export, a transcript of another program, or a folder of them.
        path: PathBuf,
        /// Format [default: detected].
        #[arg(long, value_name = "PROGRAM", value_enum)]
        from: Option<ForeignProgram>,
        /// Also import sessions of other projects.
        #[arg(long)]
        all: bool,
        /// Print a JSON array with the result for each file.
        #[arg(long)]
        json: bool,
    },
    /// Delete sessions.
    #[command(aliases = ["rm", "remove"])]
    #[group(skip)]
    Delete {
        /// The sessions.
        #[arg(required = true)]
        ids: Vec<String>,
        /// Do not ask.
        #[arg(short, long)]
        yes: bool,
    },
    /// Check the saved sessions, and repair damage from a crash or a bad disk.
    #[group(skip)]
    Repair {
        /// Print a JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Show how much is saved.
    #[group(skip)]
    Stats {
        /// Print a JSON object.
        #[arg(long)]
        json: bool,
    },
}

/// Forms of an exported session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// For reading.
    Markdown,
    /// One page for a browser.
    Html,
    /// Everything, for `gnoma sessions import`.
    Jsonl,
}

/// Programs whose sessions are understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ForeignProgram {
    /// An export of this gnoma.
    Gnoma,
    /// The gnoma written in Go: folders in `.gnoma/sessions`.
    Go,
    /// Claude Code: files in `~/.claude/projects`.
    Claude,
    /// Codex: files in `~/.codex/sessions`.
    Codex,
    /// opencode: files in `storage/session`.
    Opencode,
}

/// Whose past is meant.
#[derive(Clone, Debug, Args)]
#[group(skip)]
pub(crate) struct SessionSelector {
    /// Session id or unique prefix [default: the newest of this project].
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
}

/// How far back, and what of it.
#[derive(Clone, Debug, Args)]
#[group(skip)]
pub(crate) struct RewindArgs {
    /// Number of turns to undo, or a checkpoint id from `gnoma changes --list`.
    #[arg(value_name = "N|ID", default_value = "1", value_parser = number::turns_or_id, allow_negative_numbers = true)]
    pub to: String,

    /// Restore only files.
    #[arg(long, conflicts_with_all = ["conversation", "both"])]
    pub files: bool,

    /// Rewind only the conversation.
    #[arg(long, conflicts_with = "both")]
    pub conversation: bool,

    /// Files and conversation (the default).
    #[arg(long)]
    pub both: bool,

    /// Undo only what this elf changed in its copy of the project and was merged.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["to", "files", "conversation", "both", "dry_run"])]
    pub elf: Option<String>,

    /// Show what would happen without doing it.
    #[arg(long)]
    pub dry_run: bool,

    #[command(flatten)]
    pub which: SessionSelector,
}

impl RewindArgs {
    /// The turns to take back; `None` where a checkpoint is named instead.
    pub(crate) fn turn_count(&self) -> Option<usize> {
        self.to.parse().ok().filter(|_| self.to.len() <= MAX_COUNT_DIGITS)
    }
}

/// Since when, and how much of it.
#[derive(Clone, Debug, Args)]
#[group(skip)]
pub(crate) struct ChangesArgs {
    /// Checkpoint id or unique prefix [default: before the last turn that changed files].
    pub id: Option<String>,

    /// Show the changed lines.
    #[arg(long)]
    pub diff: bool,

    /// List the checkpoints of the session.
    #[arg(long, conflicts_with_all = ["id", "diff"])]
    pub list: bool,

    #[command(flatten)]
    pub which: SessionSelector,
}
