//! The files below a folder, for completion: listed on a thread of its own, without those that are
//! ignored and without `.git`, within a time and a number. Files that are likely to hold secrets come
//! last and are marked; what is in files is never looked at.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use ignore::{DirEntry, WalkBuilder};

use crate::fuzzy::{self, Match};

/// How many folders deep it is listed.
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

/// When to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// After so many files and folders.
    pub entries: usize,
    /// After so long.
    pub time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { entries: 50_000, time: Duration::from_secs(3) }
    }
}

/// A file or folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// It is likely to hold secrets: to be shown dimmed.
    pub is_secret: bool,
    /// Below the folder, with `/` between its parts and at the end of a folder's.
    pub path: String,
}

impl Entry {
    fn rank(&self) -> (bool, usize, bool, &str) {
        let path = self.path.as_str();
        let depth = path.trim_end_matches('/').matches('/').count();
        let is_hidden = path.split('/').any(|part| part.starts_with('.'));
        (self.is_secret, depth, is_hidden, path)
    }
}

impl AsRef<str> for Entry {
    fn as_ref(&self) -> &str {
        &self.path
    }
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// In the order in which they are offered while nothing is written of a name: secrets last, else
    /// what is near first, hidden files behind the others.
    pub entries: Vec<Entry>,
    /// A limit was met: there are more.
    pub is_cut: bool,
}

impl Listing {
    /// The best `max` of the entries for what is written of a name, the best first and secrets last.
    #[must_use]
    pub fn rank(&self, query: &str, max: usize) -> Vec<Match> {
        let border = self.entries.partition_point(|entry| !entry.is_secret);
        let (open, secret) = self.entries.split_at(border);
        let mut best = fuzzy::rank(query, open, max);
        let of_secrets = fuzzy::rank(query, secret, max - best.len());
        best.extend(
            of_secrets.into_iter().map(|found| Match { index: border + found.index, ..found }),
        );
        best
    }
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
            let listing = list(&root, limits, &stopped);
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

fn list(root: &Path, limits: Limits, stop: &AtomicBool) -> Listing {
    let started = Instant::now();
    let mut listing = Listing::default();
    let walk = WalkBuilder::new(root)
        .hidden(false)
        .require_git(false)
        .max_depth(Some(MAX_DEPTH))
        .filter_entry(|entry| entry.file_name() != ".git")
        .build();
    for entry in walk.flatten() {
        if listing.entries.len() >= limits.entries || started.elapsed() >= limits.time {
            listing.is_cut = true;
            break;
        }
        if stop.load(Ordering::Relaxed) {
            break;
        }
        listing.entries.extend(entry_of(root, &entry));
    }
    listing.entries.sort_unstable_by(|one, other| one.rank().cmp(&other.rank()));
    listing
}

/// `None` for the root itself and for names that cannot be written.
fn entry_of(root: &Path, entry: &DirEntry) -> Option<Entry> {
    let below = entry.path().strip_prefix(root).ok()?;
    let mut path = String::new();
    for part in below {
        if !path.is_empty() {
            path.push('/');
        }
        path.push_str(part.to_str()?);
    }
    if path.is_empty() || path.contains(char::is_control) {
        return None;
    }
    let is_secret = is_secret(entry.file_name().to_str()?);
    if entry.file_type().is_some_and(|kind| kind.is_dir()) {
        path.push('/');
    }
    Some(Entry { is_secret, path })
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_NAMES.contains(&name.as_str())
        || SECRET_STARTS.iter().any(|start| name.starts_with(start))
        || SECRET_ENDS.iter().any(|end| name.ends_with(end))
}
