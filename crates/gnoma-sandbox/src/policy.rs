//! The sandbox policy of one command: what it may read, write and reach. Plain values; nothing here looks at the
//! machine.

use std::path::PathBuf;

/// The mode of an empty folder that stands in the workspace for a name that nothing may take while a command runs:
/// sticky, which means nothing for a folder of one's own.
pub const STAND_IN_MODE: u32 = 0o1700;

/// Processes and threads that one session's commands may have at once, unless told otherwise.
/// Builds on large machines need a thousand; a fork bomb needs all there are.
pub const DEFAULT_PROCESSES: u32 = 4096;

/// The access that one command has. The default is the narrowest: it reads everything and writes nothing.
///
/// Paths are absolute. They may be absent: an absent root is left out, an absent protected path
/// cannot be made, an absent hidden path is not there to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Folders and files that can be written: workspace, temporary files, caches.
    pub writable: Vec<PathBuf>,
    /// The paths that stay as they are although they lie below a writable root, such as files that make other
    /// programs run something later, outside the sandbox.
    pub protected: Vec<PathBuf>,
    /// The paths that can be read.
    pub readable: ReadScope,
    /// Those of the paths above that were judged with their links followed. One that leads through a link by now is
    /// left out: it is no longer what was judged.
    pub exact: Vec<PathBuf>,
    /// Files and folders that are found as they are and cannot be opened, replaced or removed, not even by root.
    /// Where the system permits it, the launcher reports which of them the command tried to open.
    pub sealed: Vec<PathBuf>,
    /// Files and folders outside of what is shown that the command finds and cannot open, instead of none: so it notices
    /// that there is something. Only where what can be read is a list, and the launcher reports which files a command
    /// tried to open; these have the numbers behind those of `sealed`. A folder that leads to what is shown is found
    /// with the others of these names, and cannot be listed.
    pub outside_names: Vec<PathBuf>,
    /// Files and folders in what is shown that the command does not find at all. Only where what can be read is a list.
    pub absent: Vec<PathBuf>,
    /// The command finds the machine's own processes, sockets, mounts and devices instead of those of the sandbox,
    /// and can act on none of them. It changes nothing and connects nowhere.
    pub shows_machine: bool,
    /// Devices besides the harmless ones (`/dev/null` and its like), such as a graphics card.
    pub devices: Vec<PathBuf>,
    /// The network of the machine. Contains `loopback`.
    pub network: bool,
    /// A loopback of the session's own: its commands reach each other's servers and nothing else.
    pub loopback: bool,
    /// Network and shared memory are the command's own instead of the session's: it reaches no server
    /// that another command has started. Takes `network` away.
    pub alone: bool,
    /// Folders that are written in a layer instead of in their place.
    pub overlays: Vec<Overlay>,
    /// Sockets between processes by a path. Without them no service of the machine can be reached,
    /// wherever its socket lies.
    pub local_sockets: bool,
    /// A folder of the session, see [`crate::Scratch`]: what lies in it is the `/tmp` and `/var/tmp` of
    /// the command, in place of the machine's.
    pub temporary: Option<PathBuf>,
    /// The paths among the machine's temporary files that are seen among those of the session, where everything can
    /// be read; where the readable paths are a list, they are on the list.
    pub shown_temporary: Vec<PathBuf>,
    /// Names of variables that are removed; `*` at either end stands for anything, and case does
    /// not count. See [`crate::SCRUBBED`].
    pub scrub: Vec<String>,
    /// Tells git by its environment to run nothing that a repository brings along.
    pub git_hardening: bool,
    /// The command may use a repository without a work tree that it is in, also where git is hardened.
    pub bare_repository: bool,
    /// The limits of what the command may use.
    pub limits: CommandLimits,
    /// Permission bits that files it makes do not get; `None` keeps those of whoever starts it.
    pub umask: Option<u32>,
    /// The span that the command is a part of, as W3C Trace Context writes it, for the variable `TRACEPARENT`.
    pub traceparent: Option<String>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            writable: Vec::new(),
            protected: Vec::new(),
            readable: ReadScope::All,
            exact: Vec::new(),
            sealed: Vec::new(),
            outside_names: Vec::new(),
            absent: Vec::new(),
            shows_machine: false,
            devices: Vec::new(),
            network: false,
            loopback: true,
            alone: false,
            overlays: Vec::new(),
            local_sockets: true,
            temporary: None,
            shown_temporary: Vec::new(),
            scrub: Vec::new(),
            git_hardening: false,
            bare_repository: false,
            limits: CommandLimits::default(),
            umask: None,
            traceparent: None,
        }
    }
}

/// A folder that a command sees with a layer over it: it finds there what lies in `lower` as the layer
/// `upper` changes it, and what it changes goes into `upper`. Nothing is written in its place. What such a
/// command leaves in the background ends with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overlay {
    /// The path at which the command sees the folder.
    pub at: PathBuf,
    /// The folders below the layer, topmost first; mostly `at` itself.
    pub lower: Vec<PathBuf>,
    /// Takes the changes. On one file system with `work`. Where both are empty nothing can be changed there.
    pub upper: PathBuf,
    /// An empty folder for the kernel.
    pub work: PathBuf,
    /// The layer is only looked at. For layers that lie in what is below them, which cannot be a part of it.
    pub is_frozen: bool,
}

impl Overlay {
    /// True if the folders below can only be looked at.
    #[must_use]
    pub fn is_view(&self) -> bool {
        self.upper.as_os_str().is_empty()
    }
}

/// The paths that can be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ReadScope {
    /// Everything the user can read.
    #[default]
    All,
    /// Everything except these and what lies below them.
    Except(Vec<PathBuf>),
    /// Only what is `shown` and lies below it, without what is `hidden`. The rest does not exist; what is
    /// hidden exists and cannot be opened.
    Only {
        /// The folders and files that can be read.
        shown: Vec<PathBuf>,
        /// The paths in them that cannot be read.
        hidden: Vec<PathBuf>,
    },
}

impl ReadScope {
    /// Returns the paths that cannot be read although they lie in readable ones.
    #[must_use]
    pub fn hidden_paths(&self) -> &[PathBuf] {
        match self {
            Self::All => &[],
            Self::Except(hidden) | Self::Only { hidden, .. } => hidden,
        }
    }

    /// All that can be read, where that is a list.
    #[must_use]
    pub fn shown_paths(&self) -> Option<&[PathBuf]> {
        match self {
            Self::All | Self::Except(_) => None,
            Self::Only { shown, .. } => Some(shown),
        }
    }
}

/// The limits of what a command may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandLimits {
    /// Processes and threads at once.
    pub processes: u32,
}

impl Default for CommandLimits {
    fn default() -> Self {
        Self { processes: DEFAULT_PROCESSES }
    }
}
