//! The part of the command line that is about what was kept: sessions and files.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// A number of turns has at most so many digits; more are an id.
const MAX_COUNT_DIGITS: usize = 4;

/// What can be done with sessions. A unique beginning stands for an id everywhere.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum SessionsSub {
    /// List the sessions of this project, the newest first.
    List {
        /// Most sessions to list; 0 for all.
        #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
        max: usize,
        /// Print a JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Show what was said and done in a session.
    Show {
        /// The session; the newest by default.
        id: Option<String>,
        /// Leave nothing out of what tools got and gave.
        #[arg(long)]
        full: bool,
        /// Print a JSON object with the facts and all entries.
        #[arg(long)]
        json: bool,
    },
    /// Find words in everything that was said.
    Search {
        /// The words; all of them must occur.
        #[arg(required = true)]
        words: Vec<String>,
        /// Most places to show.
        #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
        max: usize,
        /// Print a JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Begin a session that shares the past of another.
    Fork {
        /// The session; the newest by default.
        id: Option<String>,
        /// Number of the last entry to share, as `show` gives it; all by default.
        #[arg(long, value_name = "ENTRY")]
        at: Option<i64>,
        /// Print a JSON object with the new id.
        #[arg(long)]
        json: bool,
    },
    /// Give a session a title.
    Rename {
        /// The session.
        id: String,
        /// Its title. Words are joined.
        #[arg(required = true)]
        title: Vec<String>,
    },
    /// Write a session to standard output or a file.
    Export {
        /// The session; the newest by default.
        id: Option<String>,
        /// What it should look like.
        #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
        format: ExportFormat,
        /// The file to write; one that is there is left alone.
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Take sessions over from a file or folder.
    Import {
        /// An export, a transcript of another program, or a folder with some.
        path: PathBuf,
        /// Whose it is; found out by default.
        #[arg(long, value_name = "PROGRAM", value_enum)]
        from: Option<Foreign>,
        /// Take from a folder also the sessions about other projects.
        #[arg(long)]
        all: bool,
        /// Print a JSON array with what became of each file.
        #[arg(long)]
        json: bool,
    },
    /// Forget sessions.
    Delete {
        /// The sessions.
        #[arg(required = true)]
        ids: Vec<String>,
        /// Do not ask.
        #[arg(short, long)]
        yes: bool,
    },
    /// Check what is stored, and mend what a crash or a bad disk left.
    Repair {
        /// Print a JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Say how much is kept.
    Stats {
        /// Print a JSON object.
        #[arg(long)]
        json: bool,
    },
}

/// Forms of an exported session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// For reading.
    #[default]
    Markdown,
    /// One page for a browser.
    Html,
    /// Everything, for `gnoma sessions import`.
    Jsonl,
}

/// Programs whose sessions are understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Foreign {
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
pub(crate) struct WhichSession {
    /// The session, by a unique beginning of its id; the newest of this project by default.
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
}

/// How far back, and what of it.
#[derive(Clone, Debug, Args)]
pub(crate) struct RewindArgs {
    /// Turns to take back, or the id of a checkpoint as `gnoma changes --list` gives it.
    #[arg(value_name = "N|ID", default_value = "1")]
    pub to: String,

    /// Only the files.
    #[arg(long, conflicts_with_all = ["conversation", "both"])]
    pub files: bool,

    /// Only the conversation.
    #[arg(long, conflicts_with = "both")]
    pub conversation: bool,

    /// Files and conversation (the default).
    #[arg(long)]
    pub both: bool,

    /// Say what would happen, and do nothing.
    #[arg(long)]
    pub dry_run: bool,

    #[command(flatten)]
    pub which: WhichSession,
}

impl RewindArgs {
    /// The turns to take back; `None` where a checkpoint is named instead.
    pub(crate) fn count(&self) -> Option<usize> {
        self.to.parse().ok().filter(|_| self.to.len() <= MAX_COUNT_DIGITS)
    }
}

/// Since when, and how much of it.
#[derive(Clone, Debug, Args)]
pub(crate) struct ChangesArgs {
    /// The checkpoint, by a unique beginning of its id; by default the one before the last turn
    /// that changed files.
    pub id: Option<String>,

    /// Show the lines that differ.
    #[arg(long)]
    pub diff: bool,

    /// List the checkpoints of the session.
    #[arg(long, conflicts_with_all = ["id", "diff"])]
    pub list: bool,

    #[command(flatten)]
    pub which: WhichSession,
}
