//! The files below a folder, for completion: listed on a separate thread, without ignored files and without `.git`,
//! within a limit of time and number. Files that are likely to contain secrets come last; the content of files is
//! never read.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use ignore::{DirEntry, WalkBuilder};

/// The number of levels down to which folders are listed.
const MAX_DEPTH: usize = 32;

/// Names of files that are likely to hold secrets.
const SECRET_NAMES: [&str; 12] = [
    ".env",
    ".envrc",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".git-credentials",
    ".htpasswd",
    "id_rsa",
    "id_ed25519",
    "id_ecdsa",
    "credentials",
];
/// Starts of such names.
const SECRET_STARTS: [&str; 1] = [".env."];
/// Ends of such names.
const SECRET_ENDS: [&str; 6] = [".pem", ".key", ".p12", ".pfx", ".keystore", ".jks"];

/// The limits at which listing stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// After so many files and folders.
    pub entries: usize,
    /// After so much time.
    pub time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { entries: 50_000, time: Duration::from_secs(3) }
    }
}

/// The files and folders that were found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Paths below the folder, with `/` between their parts and at the end of a folder's. Near files come first,
    /// hidden files after the others, and files that are likely to contain secrets last.
    pub paths: Vec<String>,
    /// A limit was reached: there are more files.
    pub is_cut: bool,
}

/// A listing on its way. Dropping it stops it.
#[derive(Debug)]
pub struct Lister {
    stop: Arc<AtomicBool>,
}

impl Lister {
    /// Begins to list the files below `root`. `done` is called once with the result, on the thread
    /// that lists, unless the lister is dropped before; it is for putting the result on a channel. A
    /// folder that cannot be read gives an empty listing.
    pub fn start(
        root: PathBuf,
        limits: Limits,
        done: impl FnOnce(Listing) + Send + 'static,
    ) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let work = move || {
            let listing = list_files(&root, limits, &stopped);
            if !stopped.load(Ordering::Relaxed) {
                done(listing);
            }
        };
        // Without a thread there is no listing, and completion offers nothing.
        drop(thread::Builder::new().name("list-files".to_owned()).spawn(work));
        Self { stop }
    }
}

impl Drop for Lister {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn list_files(root: &Path, limits: Limits, stop: &AtomicBool) -> Listing {
    let started = Instant::now();
    let mut paths = Vec::new();
    let mut is_cut = false;
    let walk = WalkBuilder::new(root)
        .hidden(false)
        .require_git(false)
        .max_depth(Some(MAX_DEPTH))
        .filter_entry(|entry| entry.file_name() != ".git")
        .build();
    for entry in walk.flatten() {
        if paths.len() >= limits.entries || started.elapsed() >= limits.time {
            is_cut = true;
            break;
        }
        if stop.load(Ordering::Relaxed) {
            break;
        }
        paths.extend(path_of(root, &entry));
    }
    paths.sort_by_cached_key(|path| sort_key(path));
    Listing { paths, is_cut }
}

/// `None` for the root itself and for names that cannot be written.
fn path_of(root: &Path, entry: &DirEntry) -> Option<String> {
    let below = entry.path().strip_prefix(root).ok()?;
    let parts: Option<Vec<_>> = below.iter().map(OsStr::to_str).collect();
    let mut path = parts?.join("/");
    if path.is_empty() || path.contains(char::is_control) {
        return None;
    }
    if entry.file_type().is_some_and(|kind| kind.is_dir()) {
        path.push('/');
    }
    Some(path)
}

fn sort_key(path: &str) -> (bool, usize, bool, String) {
    let inner = path.trim_end_matches('/');
    let is_hidden = path.split('/').any(|part| part.starts_with('.'));
    let name = inner.rsplit('/').next().unwrap_or(inner);
    (is_secret(name), inner.matches('/').count(), is_hidden, path.to_owned())
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_NAMES.contains(&name.as_str())
        || SECRET_STARTS.iter().any(|start| name.starts_with(start))
        || SECRET_ENDS.iter().any(|end| name.ends_with(end))
}
