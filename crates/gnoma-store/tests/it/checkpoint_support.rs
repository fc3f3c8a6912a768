//! What the tests of checkpoints share: reading a tree as it is, and small vaults.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::{
        ffi::OsStrExt,
        fs::{MetadataExt, PermissionsExt},
    },
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use gnoma_store::checkpoint::{Options, Vault};

/// Everything a restore must bring back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    File { mode: u32, bytes: Vec<u8>, links: Vec<PathBuf> },
    Folder { mode: u32 },
    Link(PathBuf),
}

/// Reads a tree, without version control's state.
pub(crate) fn look(root: &Path) -> BTreeMap<PathBuf, Seen> {
    look_without(root, |_| false)
}

/// Reads a tree without the paths that `is_odd`.
pub(crate) fn look_without(root: &Path, is_odd: impl Fn(&Path) -> bool) -> BTreeMap<PathBuf, Seen> {
    let mut names: BTreeMap<(u64, u64), Vec<PathBuf>> = BTreeMap::new();
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.file_name().is_some_and(|name| name == ".git") || is_odd(&path) {
                continue;
            }
            let about = path.symlink_metadata().unwrap();
            let short = path.strip_prefix(root).unwrap().to_owned();
            names.entry((about.dev(), about.ino())).or_default().push(short.clone());
            if about.is_dir() {
                folders.push(path.clone());
            }
            found.push((short, path, about));
        }
    }
    names.values_mut().for_each(|names| names.sort());
    found
        .into_iter()
        .map(|(short, path, about)| {
            let mode = about.permissions().mode() & 0o7777;
            let seen = if about.is_symlink() {
                Seen::Link(fs::read_link(&path).unwrap())
            } else if about.is_dir() {
                Seen::Folder { mode }
            } else {
                let links = names[&(about.dev(), about.ino())].clone();
                Seen::File { mode, bytes: fs::read(&path).unwrap(), links }
            };
            (short, seen)
        })
        .collect()
}

/// Everything below `.git`, with times: proof that nobody touched it.
pub(crate) fn look_at_git(root: &Path) -> Vec<(PathBuf, i64, i64, u64)> {
    let mut found = Vec::new();
    let mut folders = vec![root.join(".git")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            let about = path.symlink_metadata().unwrap();
            if about.is_dir() {
                folders.push(path.clone());
            }
            found.push((path, about.ctime(), about.ctime_nsec(), about.size()));
        }
    }
    found.sort();
    found
}

/// Says where two trees differ, without their bytes.
pub(crate) fn difference(
    is: &BTreeMap<PathBuf, Seen>,
    shall: &BTreeMap<PathBuf, Seen>,
) -> Vec<String> {
    let paths: std::collections::BTreeSet<_> = is.keys().chain(shall.keys()).collect();
    let differs = |path: &&&PathBuf| is.get(**path) != shall.get(**path);
    let brief = |seen: Option<&Seen>| {
        let text = format!("{seen:?}");
        text.chars().take(160).collect::<String>()
    };
    paths
        .iter()
        .filter(differs)
        .map(|path| {
            let name = String::from_utf8_lossy(path.as_os_str().as_bytes());
            format!("{name}: is {} shall {}", brief(is.get(*path)), brief(shall.get(*path)))
        })
        .collect()
}

/// A vault that does not wait for the disk and deletes at once.
pub(crate) fn quick() -> Options {
    Options { durable: false, grace: Duration::ZERO, ..Options::default() }
}

/// A vault in `folder`.
pub(crate) fn vault(folder: &Path) -> Vault {
    Vault::open(folder, quick()).unwrap()
}

/// Runs a shell command in `root`; whether it fails does not matter.
pub(crate) fn shell(root: &Path, script: &str) {
    let quiet = std::process::Stdio::null;
    Command::new("sh")
        .args(["-c", script])
        .current_dir(root)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .stdin(quiet())
        .stdout(quiet())
        .stderr(quiet())
        .status()
        .unwrap();
}

/// Numbers that look random and are the same each time.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }

    pub(crate) fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.roll(from.len() as u64) as usize]
    }
}

/// How often something is tried: `usual`, or what the variable `name` says.
#[expect(clippy::disallowed_methods, reason = "how long a test runs is no setting")]
pub(crate) fn often(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}
