//! Where plugins are installed from: a folder, an archive, a repository, and a marketplace in any of them.

use std::{
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use gnoma_core::home;
use rustix::process::{Pid, Signal, kill_process_group};

use super::{
    archive,
    error::{GitError, PluginSourceError},
    manifest::file_of,
    market::{Market, MarketEntry, MarketSource},
    tree::check_path,
};

/// Longest time that git may take.
const GIT_TIMEOUT: Duration = Duration::from_secs(300);
/// The interval at which a running git is checked.
const GIT_LOOK: Duration = Duration::from_millis(20);
/// Variables of the session that git needs, for keys, proxies and certificates.
const GIT_VARIABLES: [&str; 12] = [
    "PATH",
    "HOME",
    "SSH_AUTH_SOCK",
    "GIT_SSH_COMMAND",
    "GIT_ASKPASS",
    "SSL_CERT_FILE",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// A plugin that was brought here, in a folder that goes when this is dropped, or in its own.
pub(super) struct FetchedPlugin {
    /// The folder of the plugin.
    pub(super) root: PathBuf,
    /// The name of the plugin where its manifest gives none.
    pub(super) otherwise: Option<String>,
    /// Fields of it that have no effect, a sentence each.
    pub(super) faults: Vec<String>,
    /// Holds what was unpacked or cloned.
    _held: Vec<tempfile::TempDir>,
}

/// The fetcher, which brings plugins from their sources to this machine.
pub(super) struct Fetcher<'a> {
    /// The folder that relative paths start from.
    pub(super) cwd: &'a Path,
    /// The person's home, for `~/`.
    pub(super) home: Option<&'a Path>,
    /// The variables of the session.
    pub(super) variables: &'a [(String, String)],
}

/// The source of a plugin as it is written: `[NAME@]PLACE`, and `#REVISION` after a repository.
struct SourceSpec<'a> {
    name: Option<&'a str>,
    place: &'a str,
}

impl<'a> SourceSpec<'a> {
    fn from_text(text: &'a str) -> Self {
        // In an address a sign `@` stands behind who logs in.
        match text.split_once('@') {
            Some((name, place))
                if super::manifest::check_name(name).is_ok() && !text.starts_with("git@") =>
            {
                Self { name: Some(name), place }
            }
            _ => Self { name: None, place: text },
        }
    }
}

fn is_address(text: &str) -> bool {
    let schemes = ["https://", "http://", "ssh://", "git://", "file://", "git@"];
    schemes.iter().any(|scheme| text.starts_with(scheme))
}

impl Fetcher<'_> {
    /// A source as it is kept: a path is absolute, and an address has no password.
    pub(super) fn recorded_source(&self, source: &str) -> String {
        let SourceSpec { name, place } = SourceSpec::from_text(source);
        if is_address(place) {
            return without_login(source);
        }
        let path = self.expand_path(place);
        let path = path.canonicalize().unwrap_or(path);
        let name = name.map(|name| format!("{name}@")).unwrap_or_default();
        format!("{name}{}", path.display())
    }

    fn expand_path(&self, place: &str) -> PathBuf {
        home::expand(place, self.home, self.cwd)
    }

    /// Brings a plugin here.
    ///
    /// # Errors
    /// The source has no such plugin, or it cannot be reached or read.
    pub(super) fn fetch_plugin(&self, source: &str) -> Result<FetchedPlugin, PluginSourceError> {
        let SourceSpec { name, place } = SourceSpec::from_text(source);
        let mut held = Vec::new();
        let root = self.fetch_place(place, &mut held)?;
        let market = Market::read(&root)?;
        match (market, name) {
            (None, None) => {
                let otherwise = name_from_place(place);
                Ok(FetchedPlugin { root, otherwise, faults: Vec::new(), _held: held })
            }
            (None, Some(name)) => Err(PluginSourceError::NoMarket {
                place: without_login(place),
                name: name.to_owned(),
            }),
            // A plugin may bring along the marketplace that it is the only one of.
            (Some(_), None) if file_of(&root).is_some() => {
                let otherwise = name_from_place(place);
                Ok(FetchedPlugin { root, otherwise, faults: Vec::new(), _held: held })
            }
            (Some(market), name) => {
                let entry = choose_entry(&market, name, place)?;
                self.fetch_market_entry(entry, &root, held)
            }
        }
    }

    /// Brings a plugin of the marketplace in the folder `root` here.
    fn fetch_market_entry(
        &self,
        entry: &MarketEntry,
        root: &Path,
        mut held: Vec<tempfile::TempDir>,
    ) -> Result<FetchedPlugin, PluginSourceError> {
        let source = entry.source.as_ref().map_err(|error| PluginSourceError::MarketSource {
            name: entry.name.clone(),
            source: error.clone(),
        })?;
        let root = match source {
            MarketSource::Inside(path) => folder_inside(root, path)?,
            MarketSource::Git { url, revision, folder } => {
                let cloned = self.clone_repository(url, revision.as_deref(), &mut held)?;
                match folder {
                    Some(folder) => folder_inside(&cloned, folder)?,
                    None => cloned,
                }
            }
        };
        let unused = &entry.unused;
        let fault = || {
            format!(
                "gnoma does not support `{}` in its entry in the marketplace",
                unused.join("`, `")
            )
        };
        let faults = if unused.is_empty() { Vec::new() } else { vec![fault()] };
        Ok(FetchedPlugin { root, otherwise: Some(entry.name.clone()), faults, _held: held })
    }

    /// A folder with what a place holds.
    fn fetch_place(
        &self,
        place: &str,
        held: &mut Vec<tempfile::TempDir>,
    ) -> Result<PathBuf, PluginSourceError> {
        if is_address(place) {
            let (url, revision) = match place.split_once('#') {
                Some((url, revision)) => (url, Some(revision)),
                None => (place, None),
            };
            if archive::is_archive(Path::new(url)) {
                return Err(PluginSourceError::RemoteArchive(without_login(url)));
            }
            return self.clone_repository(url, revision, held);
        }
        let path = self.expand_path(place);
        if path.is_dir() {
            return Ok(path);
        }
        if !path.is_file() {
            return Err(PluginSourceError::NoSuchPlace(path));
        }
        if !archive::is_archive(&path) {
            return Err(PluginSourceError::NotAnArchive(path));
        }
        let folder = tempfile::tempdir()?;
        archive::unpack_archive(&path, folder.path())
            .map_err(|source| PluginSourceError::Archive { place: place.to_owned(), source })?;
        let root = sole_folder(folder.path());
        held.push(folder);
        Ok(root)
    }

    /// Clones a repository, without running anything of it.
    fn clone_repository(
        &self,
        url: &str,
        revision: Option<&str>,
        held: &mut Vec<tempfile::TempDir>,
    ) -> Result<PathBuf, PluginSourceError> {
        let is_option = url.starts_with('-') || revision.is_some_and(|it| it.starts_with('-'));
        if is_option || url.contains("::") || !is_address(url) {
            return Err(PluginSourceError::NotAnAddress(without_login(url)));
        }
        let folder = tempfile::tempdir()?;
        let root = folder.path().join(name_from_place(url).unwrap_or_else(|| "plugin".to_owned()));
        let repository = Repository { fetcher: self, url, root: &root, log: folder.path() };
        let done = match revision.filter(|revision| is_commit(revision)) {
            Some(commit) => repository.fetch_commit(commit),
            None => repository.clone_branch(revision),
        };
        done.map_err(|source| PluginSourceError::Clone { address: without_login(url), source })?;
        held.push(folder);
        Ok(root)
    }

    /// Git, which runs nothing of a repository.
    fn git_command(&self) -> Command {
        let mut git = Command::new("git");
        git.env_clear().envs(
            self.variables.iter().filter(|(name, _)| GIT_VARIABLES.contains(&&**name)).cloned(),
        );
        git.env("GIT_TERMINAL_PROMPT", "0").env("GIT_LFS_SKIP_SMUDGE", "1");
        for setting in
            ["core.hooksPath=/dev/null", "protocol.ext.allow=never", "core.fsmonitor=false"]
        {
            git.args(["-c", setting]);
        }
        git
    }
}

/// A repository that is brought here.
struct Repository<'a> {
    fetcher: &'a Fetcher<'a>,
    url: &'a str,
    root: &'a Path,
    /// The folder for what git says.
    log: &'a Path,
}

impl Repository<'_> {
    /// As it is at a branch or tag, or at its head.
    fn clone_branch(&self, revision: Option<&str>) -> Result<(), GitError> {
        let mut git = self.fetcher.git_command();
        git.args(["clone", "--quiet", "--depth=1", "--no-recurse-submodules"]);
        if let Some(revision) = revision {
            git.arg(format!("--branch={revision}"));
        }
        git.arg("--").arg(self.url).arg(self.root);
        self.run_git(git)
    }

    /// As it is at a commit, by its whole id: the commit alone, or all there is, where the server gives
    /// no single commits.
    fn fetch_commit(&self, id: &str) -> Result<(), GitError> {
        let mut git = self.fetcher.git_command();
        git.args(["init", "--quiet"]).arg("--").arg(self.root);
        self.run_git(git)?;
        let fetch = |depth: &[&str], what: &str| {
            let mut git = self.git_in_root();
            git.args(["fetch", "--quiet", "--no-recurse-submodules", "--no-tags"]).args(depth);
            git.arg("--").arg(self.url).arg(what);
            self.run_git(git)
        };
        fetch(&["--depth=1"], id).or_else(|_| fetch(&[], "+refs/heads/*:refs/remotes/origin/*"))?;
        let mut git = self.git_in_root();
        git.args(["checkout", "--quiet", "--detach", id]);
        let done = self.run_git(git);
        done.map_err(|error| GitError::NoCommit { id: id.to_owned(), source: Box::new(error) })
    }

    fn git_in_root(&self) -> Command {
        let mut git = self.fetcher.git_command();
        git.arg("-C").arg(self.root);
        git
    }

    fn run_git(&self, git: Command) -> Result<(), GitError> {
        let done = run_with_timeout(git, self.log, GIT_TIMEOUT);
        done.map_err(|error| match error {
            // Git tells the address as it was given.
            GitError::Failed(Some(said)) => {
                GitError::Failed(Some(said.replace(self.url, &without_login(self.url))))
            }
            other => other,
        })
    }
}

/// Reports whether a revision is a commit, given by its whole id.
fn is_commit(revision: &str) -> bool {
    matches!(revision.len(), 40 | 64) && revision.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// A source whose address names nobody who logs in with a password, and for http nobody at all.
pub(super) fn without_login(source: &str) -> String {
    let Some((before, rest)) = source.split_once("://") else { return source.to_owned() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    let Some((login, host)) = host.rsplit_once('@') else { return source.to_owned() };
    let name = login.split(':').next().unwrap_or_default();
    let keeps_name = before.ends_with("ssh") && !name.is_empty();
    let name = if keeps_name { format!("{name}@") } else { String::new() };
    format!("{before}://{name}{host}{path}")
}

/// Runs git until it ends, or has taken too long: then it ends with all that it has started.
fn run_with_timeout(mut git: Command, folder: &Path, most: Duration) -> Result<(), GitError> {
    let log = folder.join("git.log");
    let file = std::fs::File::create(&log)?;
    git.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file).process_group(0);
    let mut child = git.spawn().map_err(GitError::NotStarted)?;
    let until = Instant::now() + most;
    let status = loop {
        match child.try_wait()? {
            Some(status) => break status,
            None if Instant::now() >= until => {
                let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
                group.map(|group| kill_process_group(group, Signal::KILL).ok());
                child.wait().ok();
                return Err(GitError::TimedOut(most));
            }
            None => sleep(GIT_LOOK),
        }
    };
    if status.success() {
        return Ok(());
    }
    let said = crate::places::read_text(&log).unwrap_or_default();
    Err(GitError::Failed(failure_cause(&said).map(str::to_owned)))
}

/// The line of git's messages that names the cause. Advice about rights follows it.
fn failure_cause(said: &str) -> Option<&str> {
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|it| !it.is_empty()).collect();
    let names_failure =
        |line: &&str| ["fatal:", "ssh:", "error:"].iter().any(|start| line.starts_with(start));
    let Some(at) = lines.iter().position(names_failure) else { return lines.last().copied() };
    // That the remote cannot be read follows from what `ssh` or the server has said before.
    let is_consequence = lines.get(at)?.contains("Could not read from remote repository");
    let cause = if is_consequence { at.saturating_sub(1) } else { at };
    lines.get(cause).copied()
}

/// A folder of a marketplace or repository.
fn folder_inside(root: &Path, path: &str) -> Result<PathBuf, PluginSourceError> {
    let folder = root.join(check_path(path.trim_end_matches('/'))?);
    let real = folder.canonicalize().map_err(|_| PluginSourceError::NoFolder(path.to_owned()))?;
    let base = root.canonicalize()?;
    if real.starts_with(base) && real.is_dir() {
        return Ok(real);
    }
    Err(PluginSourceError::OutsideFolder(path.to_owned()))
}

/// Chooses the plugin `name` of the marketplace at a place, or its only one.
fn choose_entry<'m>(
    market: &'m Market,
    name: Option<&str>,
    place: &str,
) -> Result<&'m MarketEntry, PluginSourceError> {
    match (name, &market.entries[..]) {
        (None, [only]) => Ok(only),
        (None, all) => Err(PluginSourceError::NoNameInMarket {
            place: without_login(place),
            market: market.name.clone(),
            plugins: all.iter().map(|it| (it.name.clone(), it.description.clone())).collect(),
        }),
        (Some(name), all) => all.iter().find(|entry| entry.name == name).ok_or_else(|| {
            PluginSourceError::NotInMarket { market: market.name.clone(), name: name.to_owned() }
        }),
    }
}

/// The only folder in a folder, as archives often have it.
fn sole_folder(root: &Path) -> PathBuf {
    let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
    let all: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    match &all[..] {
        [only] if only.is_dir() && !only.is_symlink() && file_of(root).is_none() => only.clone(),
        _ => root.to_owned(),
    }
}

/// Returns the name that a plugin gets from its place.
fn name_from_place(place: &str) -> Option<String> {
    let place = place.split('#').next().unwrap_or(place).trim_end_matches('/');
    let last = place.rsplit(['/', ':']).next()?;
    let cut = [".git", ".tar.gz", ".tgz", ".tar", ".zip"];
    let stem = cut.iter().find_map(|end| last.strip_suffix(end)).unwrap_or(last);
    super::manifest::check_name(stem).ok().map(|()| stem.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugin_git_clone_error_shows_the_line_with_the_cause() {
        let advice = "fatal: Could not read from remote repository.\n\nPlease make sure you have the \
                      correct access rights\nand the repository exists.\n";
        for (first, cause_of) in [
            ("ssh: Could not resolve hostname nosuch.invalid: Name or service not known\n", 0),
            ("git@h.example: Permission denied (publickey).\n", 0),
            ("Warning: added a key\ngit@h.example: Permission denied (publickey).\n", 1),
        ] {
            let said = format!("{first}{advice}");
            assert_eq!(failure_cause(&said), first.lines().nth(cause_of), "{said}");
        }
        let https = "remote: Not Found\nfatal: repository 'https://h.example/a/' not found\n";
        assert_eq!(
            failure_cause(https),
            Some("fatal: repository 'https://h.example/a/' not found")
        );
        assert_eq!((failure_cause("odd\nlast\n"), failure_cause("")), (Some("last"), None));
    }

    #[test]
    fn plugin_source_url_is_saved_without_credentials() {
        for (source, kept) in [
            ("https://me:s3cret@h.example/a.git#v1", "https://h.example/a.git#v1"),
            ("demo@https://t0ken@h.example/a", "demo@https://h.example/a"),
            ("ssh://git:pw@h.example/a", "ssh://git@h.example/a"),
            ("git@h.example:a.git", "git@h.example:a.git"),
            ("https://h.example/a@b", "https://h.example/a@b"),
            ("https://a@b:c@h.example", "https://h.example"),
        ] {
            assert_eq!(without_login(source), kept);
        }
    }

    #[test]
    fn plugin_download_timeout_kills_all_child_processes() {
        let folder = tempfile::tempdir().unwrap();
        let mut slow = Command::new("sh");
        slow.args(["-c", "sleep 1000 & echo $! > pid; wait"]).current_dir(folder.path());
        let error = run_with_timeout(slow, folder.path(), Duration::from_millis(500)).unwrap_err();
        assert!(error.to_string().contains("took longer"), "{error}");
        let child = std::fs::read_to_string(folder.path().join("pid")).unwrap();
        let process = PathBuf::from("/proc").join(child.trim());
        // It may be there for a moment, dead, until somebody takes note of its end.
        let is_gone = || {
            let state = std::fs::read_to_string(process.join("stat")).unwrap_or_default();
            state.is_empty() || state.contains(") Z ")
        };
        let until = Instant::now() + Duration::from_secs(5);
        while !is_gone() {
            assert!(Instant::now() < until, "it lives on");
            sleep(GIT_LOOK);
        }
    }
}
