//! Options of the built-in tools.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use gnoma_core::{places::RuledPaths, tool::OpenFiles};
use gnoma_sandbox::Policy;

use crate::{FileHolder, RepositoryFinder, ScratchPlace, Trials};

/// The sandbox around commands.
#[derive(Clone, Debug, Default)]
pub enum Sandbox {
    /// Commands run without a sandbox.
    #[default]
    Off,
    /// Walls, as far as the system offers them; found out when the first command runs.
    Walled {
        /// The program that builds them, see [`gnoma_sandbox::launcher`].
        launcher: PathBuf,
        /// The places that every command may touch besides the workspace and what its verdict grants.
        policy: Box<Policy>,
        /// Without all of them no command runs.
        required: bool,
        /// A verdict can grant the network.
        network_on_grant: bool,
        /// Tries commands whose grant says so.
        trials: Option<Arc<Trials>>,
        /// Places that no verdict opens as a whole, nor the folders above them: the home.
        too_wide: Vec<PathBuf>,
        /// The places that commands which run without approval find besides the workspace.
        reading: Box<ReadingPlaces>,
        /// Finds the repositories that the workspace belongs to.
        repositories: Arc<dyn RepositoryFinder>,
    },
}

/// The places that commands which run without approval find besides the workspace. The rest of the machine does not
/// exist for them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadingPlaces {
    /// Folders and files that they read.
    pub shown: Vec<PathBuf>,
    /// Existing files that commands cannot open.
    pub hidden: Vec<PathBuf>,
    /// Names of variables that only commands which a person approved get, besides those that no command gets.
    pub scrubbed: Vec<String>,
    /// The place of the temporary files of each session, see [`gnoma_sandbox::Scratch`].
    pub scratch: ScratchPlace,
}

/// The options of the built-in tools.
#[derive(Clone, Debug)]
pub struct ToolOptions {
    /// The time that a shell command may run when the call sets no limit.
    pub bash_timeout: Duration,
    /// Largest file that is read or written, in bytes.
    pub max_file_bytes: u64,
    /// The shell that runs commands.
    pub shell: PathBuf,
    /// The variables that commands get; `None`: those of this process.
    pub environment: Option<BTreeMap<String, String>>,
    /// Names of environment variables that commands do not inherit (API keys).
    pub hidden_variables: Vec<String>,
    /// The user's home, for `~` in paths.
    pub home: Option<PathBuf>,
    /// The sandbox around commands.
    pub sandbox: Sandbox,
    /// Permission bits that new files do not get, of commands and file tools alike; `None`: those of
    /// this process.
    pub umask: Option<u32>,
    /// The editor that the session is seen in, with the session's id.
    pub editor: Option<(Arc<dyn OpenFiles>, String)>,
    /// The rules about files; `None` if no rule is about any.
    pub rules: Option<Arc<dyn RuledPaths>>,
    /// The identity of the session among those that change the same files.
    pub holder: FileHolder,
}

impl Default for ToolOptions {
    fn default() -> Self {
        Self {
            bash_timeout: Duration::from_secs(30),
            max_file_bytes: 1 << 20,
            shell: PathBuf::from("bash"),
            environment: None,
            hidden_variables: Vec::new(),
            home: None,
            sandbox: Sandbox::Off,
            umask: None,
            editor: None,
            rules: None,
            holder: FileHolder::default(),
        }
    }
}
