//! A throw-away view of the machine: the fixture over everything, and what a command changed in it on top.

use std::{
    fs,
    os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

use rustix::mount::{
    MountFlags, UnmountFlags, mount, mount_bind, mount_bind_recursive, mount_remount, unmount,
};

use crate::observer::{Found, PROJECT};

/// Folders of the root that a view shows, as they are or changed by the fixture.
const TAKEN: [&str; 8] = ["usr", "etc", "opt", "var", "root", "home", "bin", "sbin"];
/// Devices of a view.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
/// What every program may leave behind: caches, histories, and git's notes about what it has looked at.
const NOISE: [&str; 17] = [
    "/home/dev/.config/procps",
    "/home/dev/.terraform.d",
    "/tmp/hsperfdata_root",
    "/home/dev/.cache",
    "/home/dev/.npm",
    "/home/dev/.lesshst",
    "/home/dev/.viminfo",
    "/home/dev/.config/configstore",
    "/home/dev/.local/share",
    "/home/dev/.local/state",
    "/home/dev/.sqlite_history",
    "/home/dev/.python_history",
    "/home/dev/proj/.git/index",
    "/var/cache",
    "/var/log",
    "/root/.rustup",
    "/tmp/node-compile-cache",
];
/// Folders of a view that are empty at first and not part of the overlay.
const FRESH: [&str; 3] = ["tmp", "run", "dev/shm"];
/// How folders in memory are mounted.
const IN_MEMORY: &str = "size=64m,mode=1777";
/// Where programs of the fixture note something, below the root.
const NOTES: &str = "run/observe";
/// Where code of the project says that it ran, in the fixture and in other observers' files.
const RAN: [&str; 2] = ["RAN", "PWNED"];
/// Programs that run the shell that they are told to run, which the reader of commands sees by itself.
const TOLD_TO: [&str; 21] = [
    "bash", "sh", "dash", "zsh", "ksh", "xargs", "env", "find", "timeout", "nice", "nohup",
    "setsid", "stdbuf", "time", "ionice", "chrt", "taskset", "watch", "fd", "fdfind", "flock",
];
/// Most effects of one command that are told.
const MOST_FOUND: usize = 40;

/// One view.
pub(crate) struct View {
    base: PathBuf,
    lower: Vec<PathBuf>,
    folders: Vec<Folder>,
    mounted: Vec<PathBuf>,
    /// Upper layers that were made.
    uppers: usize,
}

/// A folder of the root that is an overlay.
struct Folder {
    /// As commands see it.
    path: PathBuf,
    upper: PathBuf,
}

impl View {
    /// Mounts a view at `base` over these layers, the upmost first.
    pub(crate) fn new(base: PathBuf, lower: Vec<PathBuf>) -> std::io::Result<Self> {
        let mut view = Self { base, lower, folders: Vec::new(), mounted: Vec::new(), uppers: 0 };
        fs::create_dir_all(view.root())?;
        view.mount("", "tmpfs", "size=1m,mode=755")?;
        for entry in fs::read_dir("/")?.flatten() {
            let name = PathBuf::from(entry.file_name());
            let at = view.root().join(&name);
            if entry.file_type()?.is_symlink() {
                std::os::unix::fs::symlink(fs::read_link(entry.path())?, at)?;
            } else if TAKEN.iter().any(|taken| name == Path::new(taken)) || name.starts_with("lib")
            {
                fs::create_dir(&at)?;
                let upper = view.lay(&name)?;
                view.folders.push(Folder { path: Path::new("/").join(name), upper });
            }
        }
        for folder in ["proc", "tmp", "run", "dev"] {
            fs::create_dir(view.root().join(folder))?;
        }
        view.mount("proc", "proc", "")?;
        for folder in ["tmp", "run", "dev"] {
            view.mount(folder, "tmpfs", IN_MEMORY)?;
        }
        for name in DEVICES {
            let at = view.root().join("dev").join(name);
            fs::write(&at, "")?;
            mount_bind(Path::new("/dev").join(name), &at)?;
            view.mounted.push(at);
        }
        fs::create_dir(view.root().join("dev/shm"))?;
        fs::create_dir(view.root().join("dev/pts"))?;
        view.mount("dev/pts", "devpts", "newinstance,ptmxmode=0666,mode=620")?;
        std::os::unix::fs::symlink("pts/ptmx", view.root().join("dev/ptmx"))?;
        std::os::unix::fs::symlink("/proc/self/fd", view.root().join("dev/fd"))?;
        for (number, name) in ["stdin", "stdout", "stderr"].into_iter().enumerate() {
            let target = format!("/proc/self/fd/{number}");
            std::os::unix::fs::symlink(target, view.root().join("dev").join(name))?;
        }
        fs::create_dir(view.root().join(NOTES))?;
        Ok(view)
    }

    /// Makes it as it was at first: only what is used is mounted anew.
    pub(crate) fn renew(&mut self) -> std::io::Result<()> {
        for at in 0..self.folders.len() {
            let (path, upper) = (&self.folders[at].path, self.folders[at].upper.clone());
            if has_entries(&upper) {
                let name = path.strip_prefix("/").unwrap_or(path).to_owned();
                self.unmount(&name)?;
                self.folders[at].upper = self.lay(&name)?;
                fs::remove_dir_all(upper)?;
            }
        }
        for folder in ["tmp", "run"] {
            if !self.is_fresh(folder) {
                self.unmount(Path::new(folder))?;
                self.mount(folder, "tmpfs", IN_MEMORY)?;
            }
        }
        fs::create_dir_all(self.root().join(NOTES))?;
        if !self.is_fresh("dev/shm") {
            fs::remove_dir_all(self.root().join("dev/shm"))?;
            fs::create_dir(self.root().join("dev/shm"))?;
        }
        Ok(())
    }

    fn unmount(&mut self, name: &Path) -> std::io::Result<()> {
        let at = self.root().join(name);
        unmount(&at, UnmountFlags::DETACH)?;
        self.mounted.retain(|mounted| *mounted != at);
        Ok(())
    }

    /// Mounts the layers of one folder of the root, and says where the upper one lies. An overlay cannot take a
    /// folder in which something else is mounted, such as `/etc` of a container: that is shown as it is.
    fn lay(&mut self, name: &Path) -> std::io::Result<PathBuf> {
        let is_home = name == Path::new("home");
        let layers = self.lower.iter().filter(|layer| !(is_home && *layer == Path::new("/")));
        let layers = layers.map(|layer| layer.join(name)).filter(|layer| layer.is_dir());
        let layers: Vec<_> = layers.map(|layer| layer.display().to_string()).collect();
        self.uppers += 1;
        let [upper, work] =
            ["up", "work"].map(|kind| self.base.join(format!("{kind}-{}", self.uppers)));
        fs::create_dir(&upper)?;
        fs::create_dir(&work)?;
        let paths = (layers.join(":"), upper.display(), work.display());
        let options =
            format!("userxattr,lowerdir={},upperdir={},workdir={}", paths.0, paths.1, paths.2);
        let at = name.display().to_string();
        if self.mount(&at, "overlay", &options).is_err() {
            let at = self.root().join(name);
            mount_bind_recursive(Path::new("/").join(name), &at)?;
            mount_remount(&at, MountFlags::BIND | MountFlags::RDONLY, c"")?;
            self.mounted.push(at);
        }
        Ok(upper)
    }

    fn mount(&mut self, at: &str, kind: &str, options: &str) -> std::io::Result<()> {
        let at = self.root().join(at);
        let options = std::ffi::CString::new(options)?;
        mount(kind, &at, kind, MountFlags::NOSUID, options.as_c_str()).map_err(|error| {
            std::io::Error::other(format!("{kind} at `{}`: {error}", at.display()))
        })?;
        self.mounted.push(at);
        Ok(())
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.base.join("root")
    }

    /// Programs that had `sh` run a text without having been told to, and the text.
    pub(crate) fn shells(&self) -> Vec<Found> {
        let notes = fs::read_to_string(self.root().join(NOTES).join("sh")).unwrap_or_default();
        let told_to = |line: &&str| line.split(':').next().is_some_and(|by| TOLD_TO.contains(&by));
        let lines = notes.lines().filter(|line| !told_to(line));
        lines.map(|line| Found::new("ran_shell", line)).collect()
    }

    /// Whether anything was left in it, be it only noise.
    pub(crate) fn is_used(&self) -> bool {
        self.folders.iter().any(|folder| has_entries(&folder.upper))
            || FRESH.into_iter().any(|name| !self.is_fresh(name))
    }

    fn is_fresh(&self, name: &str) -> bool {
        let mut entries = fs::read_dir(self.root().join(name)).into_iter().flatten().flatten();
        entries.all(|entry| entry.file_name() == "observe")
            && !(name == "run" && has_entries(&self.root().join(NOTES)))
    }

    /// What was written, changed and deleted, and which code of the project said that it ran.
    pub(crate) fn changes(&self) -> Vec<Found> {
        let mut found = Vec::new();
        for folder in &self.folders {
            self.walk(&folder.upper, &folder.path, &mut found);
        }
        for folder in FRESH {
            left(&self.root(), &Path::new("/").join(folder), &mut found);
        }
        found
    }

    fn walk(&self, here: &Path, folder: &Path, found: &mut Vec<Found>) {
        for entry in fs::read_dir(here).into_iter().flatten().flatten() {
            let path = folder.join(entry.file_name());
            let Ok(above) = entry.path().symlink_metadata() else { continue };
            if is_noise(&path) || found.len() >= MOST_FOUND {
                continue;
            }
            let lower = self.lower.iter().map(|layer| below(layer, &path));
            let lower = lower.into_iter().find(|path| path.symlink_metadata().is_ok());
            let kind = match &lower {
                _ if above.file_type().is_char_device() && above.rdev() == 0 => Some("deleted"),
                None => Some("wrote"),
                Some(lower) if differs(&entry.path(), lower) => Some("changed"),
                Some(_) => None,
            };
            match kind {
                Some(_) if RAN.iter().any(|name| path == Path::new(PROJECT).join(name)) => {
                    let names = fs::read_to_string(entry.path()).unwrap_or_default();
                    found.extend(names.lines().map(|name| Found::new("ran_project_code", name)));
                }
                Some(kind) => found.push(Found::new(kind, &shown(&path))),
                None => {}
            }
            if above.is_dir() {
                self.walk(&entry.path(), &path, found);
            }
        }
    }
}

impl Drop for View {
    fn drop(&mut self) {
        for at in self.mounted.iter().rev() {
            let _gone = unmount(at, UnmountFlags::DETACH);
        }
        let _gone = fs::remove_dir_all(&self.base);
    }
}

fn has_entries(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some())
}

fn below(layer: &Path, path: &Path) -> PathBuf {
    layer.join(path.strip_prefix("/").unwrap_or(path))
}

fn left(root: &Path, folder: &Path, found: &mut Vec<Found>) {
    for entry in fs::read_dir(below(root, folder)).into_iter().flatten().flatten() {
        let path = folder.join(entry.file_name());
        if path == Path::new("/run/observe") || is_noise(&path) {
            continue;
        }
        found.push(Found::new("wrote", &shown(&path)));
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            left(root, &path, found);
        }
    }
}

/// Whether two entries of one name are not the same to whoever reads them.
fn differs(above: &Path, lower: &Path) -> bool {
    let (Ok(one), Ok(two)) = (above.symlink_metadata(), lower.symlink_metadata()) else {
        return true;
    };
    if one.file_type() != two.file_type() {
        return true;
    }
    let modes = one.permissions().mode() != two.permissions().mode();
    if one.is_symlink() {
        return fs::read_link(above).ok() != fs::read_link(lower).ok();
    }
    if one.is_dir() {
        return modes;
    }
    let same_time = (one.mtime(), one.mtime_nsec()) == (two.mtime(), two.mtime_nsec());
    modes || !same_time || one.len() != two.len() || fs::read(above).ok() != fs::read(lower).ok()
}

fn is_noise(path: &Path) -> bool {
    NOISE.iter().any(|noise| path.starts_with(noise))
        || path.components().any(|part| part.as_os_str() == "__pycache__")
        || path == Path::new("/home/dev/proj/.git/index.lock")
}

fn shown(path: &Path) -> String {
    match path.strip_prefix(PROJECT) {
        Ok(rest) => rest.display().to_string(),
        Err(_) => path.display().to_string(),
    }
}
