//! Facts about a command line: effects, paths and risks that are known without running it.
//!
//! Everything the guard judges is said here in plain data. What cannot be known is a fact of its own
//! ([`Effect::Unknown`]); nothing is guessed.

use std::path::PathBuf;

/// The place at which a command acts, as far as the text tells.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FilePlace {
    /// This path: absolute, links not looked at. A `..` stays where what stands before it may be a link.
    Path(PathBuf),
    /// Anything below this folder that fits a pattern, such as `src/*.rs` (the pattern is absolute).
    Pattern {
        /// The longest folder that is certain.
        base: PathBuf,
        /// The whole pattern, as an absolute path.
        pattern: String,
    },
    /// A path that only running would show; the text as written.
    Unknown(String),
}

/// One thing a command does to the world.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Reads file contents (or lists a folder).
    Read(FilePlace),
    /// Looks at a file or folder from outside: whether it is there, its kind, size, rights and dates; for a pattern,
    /// which names fit it.
    Look(FilePlace),
    /// Creates or changes something; for a folder, something in it.
    Write(FilePlace),
    /// Deletes something, with all below it when it is a folder.
    Delete(FilePlace),
    /// Shows what is likely secret and is not a file by name: the environment, a token, a key store.
    Secret(String),
    /// Lists variables or settings, with whatever secrets are among them. The sandbox removes those of the
    /// environment, and hides files that hold nothing else.
    Settings(String),
    /// Talks to the network; the host where it is known.
    Network(Option<String>),
    /// Runs code that is not in the command line: a script, a build, a test, a package's hooks.
    Runs(String),
    /// Sets a variable that later commands inherit and that changes what programs do.
    Environment(String),
    /// Acts on processes, services, users, packages, devices or other state of the system.
    System(String),
    /// Changes state of a repository: a commit, a branch, the index.
    Repository(String),
    /// The effect of the command cannot be known, for this reason.
    Unknown(String),
}

impl Effect {
    /// True if the effect changes nothing and shows files at most.
    #[must_use]
    pub fn is_reading(&self) -> bool {
        matches!(self, Self::Read(_) | Self::Look(_))
    }
}

/// The severity of a command's effects if the command were not meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Risk {
    /// The command changes nothing.
    #[default]
    None,
    /// Changes that are easily taken back.
    Low,
    /// Changes that take work to undo, runs code, or uses the network.
    Medium,
    /// Loses data, leaks data or changes the system.
    High,
    /// Loses everything, or gives control away.
    Critical,
}

/// One simple command of the whole, wherever in it it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    /// The command as it is written, without redirections' here-document bodies.
    pub text: String,
    /// Program and arguments after quotes are taken away; `None` for a word that is not constant.
    pub words: Vec<Option<String>>,
    /// Folder it runs in, or, where a `cd` before it failed, the one the line starts in; `None` once a `cd`
    /// could not be followed.
    pub cwd: Option<PathBuf>,
    /// The effects of the command. Empty for a command that only computes or prints, such as `echo`.
    pub effects: Vec<Effect>,
    /// The risk of the command.
    pub risk: Risk,
}

/// The facts that are known about a whole command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Analysis {
    /// The reason why the command line is not understood. If it is set, all other fields are incomplete, and the
    /// command line needs approval.
    pub unparsed: Option<String>,
    /// Simple commands in the order they are written, also those in pipes, groups, functions,
    /// substitutions, `-c` strings, and those that `env`, `sudo`, `xargs`, `find -exec` would run.
    pub commands: Vec<Invocation>,
    /// Odd ways of writing that hide what is done, one sentence each: long blanks, invisible
    /// characters, look-alike host names, decoded text that is run.
    pub oddities: Vec<String>,
    /// Words that stand in no simple command, as they are written: those of `for`, `select` and `case`, tests in
    /// `[[ ]]`, and assignments.
    pub other_words: Vec<String>,
    /// True if something that the command line starts with `&` may run on when the line ends: nothing behind it waits
    /// for it or ends it.
    pub leaves_jobs: bool,
}

impl Analysis {
    /// True if it is proved that nothing changes, no unknown code runs and no data leaves.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.unparsed.is_none()
            && self.oddities.is_empty()
            && self.commands.iter().all(|command| command.effects.iter().all(Effect::is_reading))
    }

    /// The worst of the parts.
    #[must_use]
    pub fn risk(&self) -> Risk {
        self.commands.iter().map(|command| command.risk).max().unwrap_or_default()
    }
}

/// The surroundings in which a command line is analysed.
#[derive(Clone, Debug)]
pub struct StartContext {
    /// Folder it starts in: absolute, and no link leads to it.
    pub cwd: PathBuf,
    /// The user's home, for `~` and `$HOME`.
    pub home: Option<PathBuf>,
}
