//! A place to break out of: a workspace inside, a folder outside, and a user who owns both.
//!
//! Everything runs as a normal user: as the one who runs the tests, or as `nobody` when that is root.

use std::{
    fs,
    io::ErrorKind,
    os::unix::{
        fs::{MetadataExt, PermissionsExt, chown, lchown},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::OnceLock,
    time::Duration,
};

use gnoma_sandbox::{Strength, Support};
use tempfile::TempDir;

/// Who nobody is.
const NOBODY: u32 = 65_534;

pub(crate) struct Cell {
    _root: TempDir,
    /// Can be written inside.
    pub(crate) workspace: PathBuf,
    /// Cannot.
    pub(crate) outside: PathBuf,
    probe: PathBuf,
    policy: Vec<String>,
}

/// What became of a script.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Outcome {
    /// The command was run at all.
    pub(crate) fn was_walled(&self) -> bool {
        !self.stderr.contains("gnoma: the sandbox could not")
    }

    pub(crate) fn succeeded(&self) -> bool {
        self.code == Some(0)
    }
}

impl From<Output> for Outcome {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Self {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}

/// What the machine has; told once when it lacks something.
pub(crate) fn support() -> &'static Support {
    static SUPPORT: OnceLock<Support> = OnceLock::new();
    SUPPORT.get_or_init(|| {
        let support = Support::detect();
        for part in support.parts.iter().filter(|part| !part.holds) {
            println!("{} is missing: {}", part.name, part.note);
        }
        support
    })
}

/// Whether tests of the whole walls can run here.
pub(crate) fn is_walled() -> bool {
    let full = support().strength == Strength::Full;
    if !full {
        gnoma_testkit::skip_test(&format!("no sandbox: {}", support().strength));
    }
    full
}

impl Cell {
    /// A fresh cell whose workspace can be written.
    pub(crate) fn new() -> Self {
        Self::below(&std::env::temp_dir())
    }

    fn below(base: &Path) -> Self {
        let root = tempfile::Builder::new().prefix("walls").tempdir_in(base).unwrap();
        let path = fs::canonicalize(root.path()).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        // The build folder may be closed to others.
        let probe = path.join("probe");
        fs::copy(env!("CARGO_BIN_EXE_walls-probe"), &probe).unwrap();
        until_it_runs(&probe);
        let [workspace, outside] = ["workspace", "outside"].map(|name| path.join(name));
        let cell = Self {
            _root: root,
            policy: vec![format!("write={}", workspace.display())],
            workspace,
            outside,
            probe,
        };
        for folder in [&cell.workspace, &cell.outside] {
            fs::create_dir(folder).unwrap();
            cell.give(folder);
        }
        cell.put_outside("secret", "secret\n");
        cell
    }

    /// A cell that is also a repository, with its guards.
    pub(crate) fn repository() -> Self {
        let mut cell = Self::new();
        for folder in [".git", ".git/hooks", ".git/objects"] {
            cell.put_folder(folder);
        }
        cell.put(".git/config", "[core]\n\trepositoryformatversion = 0\n");
        cell.put(".git/hooks/pre-push.sample", "exit 0\n");
        for name in [".git/hooks", ".git/config", ".gnoma", ".vscode/settings.json"] {
            cell.policy.push(format!("protect={}", cell.workspace.join(name).display()));
        }
        cell
    }

    /// A cell whose workspace can be read and, like all that is on a list, not written. The folder for
    /// temporary files lies outside.
    pub(crate) fn for_reading() -> Self {
        Self::for_reading_below(&std::env::temp_dir())
    }

    /// The same away from the machine's temporary files; `None` where others cannot get there.
    pub(crate) fn for_reading_elsewhere() -> Option<Self> {
        let base = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let is_open = |folder: &Path| {
            fs::metadata(folder).is_ok_and(|facts| facts.permissions().mode() & 0o5 == 0o5)
        };
        if is_root() && !base.ancestors().all(is_open) {
            gnoma_testkit::skip_test(&format!("{} is closed to others", base.display()));
            return None;
        }
        Some(Self::for_reading_below(base))
    }

    fn for_reading_below(base: &Path) -> Self {
        let mut cell = Self::below(base);
        let scratch = cell.outside.join("scratch");
        let names = ["tmp", "var-tmp", "empty"].map(|name| scratch.join(name));
        for folder in [&scratch].into_iter().chain(&names) {
            fs::create_dir(folder).unwrap();
            cell.give(folder);
        }
        cell.policy = vec![format!("temporary={}", scratch.display())];
        cell.policy.extend(["alone", "no-sockets"].map(str::to_owned));
        let places = ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc"].map(PathBuf::from);
        for place in places.iter().chain([&cell.workspace, &cell.probe]) {
            cell.policy.push(format!("show={}", place.display()));
        }
        cell
    }

    /// Adds to the policy; the words are those of the probe program.
    pub(crate) fn with(mut self, words: &[&str]) -> Self {
        self.policy.extend(words.iter().map(ToString::to_string));
        self
    }

    /// Gives a file to the user who runs the commands.
    pub(crate) fn give(&self, path: &Path) {
        if is_root() {
            chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
    }

    /// The same for a link itself.
    pub(crate) fn give_link(&self, path: &Path) {
        if is_root() {
            lchown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
    }

    pub(crate) fn put(&self, name: &str, text: &str) {
        let path = self.workspace.join(name);
        fs::write(&path, text).unwrap();
        self.give(&path);
    }

    pub(crate) fn put_folder(&self, name: &str) {
        let path = self.workspace.join(name);
        fs::create_dir(&path).unwrap();
        self.give(&path);
    }

    pub(crate) fn put_outside(&self, name: &str, text: &str) {
        let path = self.outside.join(name);
        fs::write(&path, text).unwrap();
        self.give(&path);
    }

    /// Runs a shell script inside the walls.
    pub(crate) fn inside(&self, script: &str) -> Outcome {
        self.inside_command(script).output().unwrap().into()
    }

    /// The same without waiting.
    pub(crate) fn inside_command(&self, script: &str) -> Command {
        self.inside_with(&[], script)
    }

    /// The same with more words for the probe program.
    pub(crate) fn inside_with(&self, words: &[&str], script: &str) -> Command {
        let mut command = self.command();
        command.arg("inside").args(words).args(&self.policy).args(["--", "sh", "-c", script]);
        command
    }

    /// Runs a shell script without walls, as the same user.
    pub(crate) fn freely(&self, script: &str) -> Outcome {
        let mut command = self.command();
        command.args(["inside", "no-walls", "--", "sh", "-c", script]);
        command.output().unwrap().into()
    }

    /// The probe program as the user who runs the commands.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.probe);
        command
            .current_dir(&self.workspace)
            .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
            .env("P", &self.probe)
            .env("WS", &self.workspace)
            .env("OUT", &self.outside)
            .env("HOME", &self.outside)
            .stdin(Stdio::null());
        if is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    /// The same as the user who runs the tests, be it root.
    pub(crate) fn inside_as_tester(&self, words: &[&str], script: &str) -> Outcome {
        let mut command = Command::new(&self.probe);
        command.current_dir(&self.workspace).env("WS", &self.workspace).stdin(Stdio::null());
        command.arg("inside").args(words).args(&self.policy).args(["--", "sh", "-c", script]);
        command.output().unwrap().into()
    }

    /// The attempt works without walls and fails inside.
    pub(crate) fn holds(&self, script: &str) {
        self.refuses(script);
        let freely = self.freely(script);
        assert!(freely.succeeded(), "shows nothing, for it fails without walls: {freely:?}");
    }

    /// The attempt fails inside, however the walls were built; whether it would work without walls
    /// depends on the machine.
    pub(crate) fn refuses(&self, script: &str) {
        for words in [&[][..], &["spare"]] {
            let inside = Outcome::from(self.inside_with(words, script).output().unwrap());
            assert!(inside.code.is_some_and(|code| code != 0), "it got out {words:?}: {inside:?}");
            assert!(inside.was_walled(), "no walls, no proof {words:?}: {inside:?}");
        }
    }

    /// Ordinary work.
    pub(crate) fn permits(&self, script: &str) -> Outcome {
        let inside = self.inside(script);
        assert!(inside.succeeded(), "ordinary work failed: {inside:?}");
        inside
    }

    /// Files in the workspace that are not there at the beginning.
    pub(crate) fn leftovers(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.workspace).unwrap();
        entries.map(|entry| entry.unwrap().path()).filter(|path| !path.ends_with(".git")).collect()
    }
}

pub(crate) fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

/// Another test that is just starting a program may hold our copy open for writing until it has.
fn until_it_runs(program: &Path) {
    let is_busy = || {
        let started = Command::new(program).stdin(Stdio::null()).status();
        started.is_err_and(|error| error.kind() == ErrorKind::ExecutableFileBusy)
    };
    while is_busy() {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A process of the same user outside, ended when dropped.
pub(crate) struct Victim(std::process::Child);

impl Victim {
    pub(crate) fn of(cell: &Cell) -> Self {
        let mut command = Command::new("sleep");
        command.arg("1000").env("SECRET", "of the victim").current_dir(&cell.outside);
        if is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        Self(command.spawn().unwrap())
    }

    pub(crate) fn number(&self) -> u32 {
        self.0.id()
    }

    pub(crate) fn is_alive(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Whether a program is installed.
pub(crate) fn has(program: &str) -> bool {
    let found = ["/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"]
        .iter()
        .any(|folder| Path::new(folder).join(program).exists());
    if !found {
        gnoma_testkit::skip_test(&format!("`{program}` is not installed"));
    }
    found
}

/// Processes whose command line holds `mark`.
pub(crate) fn processes_with(mark: &str) -> usize {
    let processes = fs::read_dir("/proc").unwrap();
    processes
        .filter_map(|process| fs::read(process.ok()?.path().join("cmdline")).ok())
        .filter(|line| String::from_utf8_lossy(line).contains(mark))
        .count()
}

/// The launchers among what the process `first` and its children have started. Of their arguments only the request is
/// seen.
pub(crate) fn launchers_of(first: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let parents: Vec<(u32, u32)> = processes
        .filter_map(|entry| {
            let process = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            let parent = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
            Some((process, parent))
        })
        .collect();
    let mut members = vec![first];
    let mut at = 0;
    while let Some(member) = members.get(at).copied() {
        members.extend(parents.iter().filter(|(_, parent)| *parent == member).map(|(it, _)| *it));
        at += 1;
    }
    let is_launcher = |process: &u32| {
        let line = fs::read_to_string(format!("/proc/{process}/cmdline")).unwrap_or_default();
        line.contains("walls:")
    };
    members.into_iter().filter(is_launcher).collect()
}

/// Whether any of these processes still runs.
pub(crate) fn is_any_alive(processes: &[u32]) -> bool {
    processes.iter().any(|process| {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().next());
        state.is_some_and(|state| state != "Z")
    })
}

/// Waits until a condition holds, for as long as a loaded machine may need.
pub(crate) fn eventually(condition: impl Fn() -> bool) -> bool {
    (0..500).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        condition()
    })
}
