//! Watches the workspace for file changes by inotify: one watch per folder, Linux only.
//!
//! The kernel queues an event before the call that caused it returns, so what a finished command did
//! is known when the queue is read. Not heard are writes through a mapping, through a name outside
//! the workspace and from other machines: hence the list of file systems, and a full walk now and
//! then.

use std::os::fd::OwnedFd;

use super::state::Folder;

#[cfg(target_os = "linux")]
pub(super) use linux::Watcher;

/// Systems without inotify: every walk is a full one.
#[cfg(not(target_os = "linux"))]
pub(super) struct Watcher;

#[cfg(not(target_os = "linux"))]
impl Watcher {
    pub(super) fn start(_root: &OwnedFd) -> Option<Self> {
        None
    }

    pub(super) fn add(&self, _folder: &OwnedFd, _path: &[u8]) -> bool {
        false
    }

    pub(super) fn is_broken(&self) -> bool {
        true
    }

    pub(super) fn mark_changes(&self, _root: &mut Folder) -> bool {
        false
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::{
        collections::HashMap,
        mem::MaybeUninit,
        os::fd::AsRawFd,
        sync::atomic::{AtomicBool, Ordering},
    };

    use gnoma_core::sync::Mutex;
    use rustix::{
        fs::{fstatfs, inotify},
        io::Errno,
    };

    use super::{super::tree, Folder, OwnedFd};

    /// File systems whose changes all come through this kernel: ext, xfs, btrfs, tmpfs, f2fs, zfs,
    /// bcachefs, overlay.
    const LOCAL: [u64; 8] = [
        0xef53,
        0x5846_5342,
        0x9123_683e,
        0x0102_1994,
        0xf2f5_2010,
        0x2fc1_2fc1,
        0xca45_1a4e,
        0x794c_7630,
    ];

    /// Events read before a full walk is cheaper.
    const MAX_EVENTS: usize = 64 << 10;

    const BUFFER_BYTES: usize = 64 << 10;

    /// Watches of one workspace.
    pub(in super::super) struct Watcher {
        queue: OwnedFd,
        paths: Mutex<HashMap<i32, Box<[u8]>>>,
        is_broken: AtomicBool,
    }

    impl Watcher {
        /// `None` where changes could go unheard.
        pub(in super::super) fn start(root: &OwnedFd) -> Option<Self> {
            let system = u64::try_from(fstatfs(root).ok()?.f_type).ok()?;
            if !LOCAL.contains(&system) {
                return None;
            }
            let flags = inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC;
            let queue = inotify::init(flags).ok()?;
            Some(Self { queue, paths: Mutex::default(), is_broken: AtomicBool::new(false) })
        }

        /// Listens to an open folder; the name it was opened by plays no part.
        pub(in super::super) fn add(&self, folder: &OwnedFd, path: &[u8]) -> bool {
            use inotify::WatchFlags as Flags;
            let events = Flags::CREATE
                | Flags::DELETE
                | Flags::MODIFY
                | Flags::ATTRIB
                | Flags::MOVE
                | Flags::CLOSE_WRITE
                | Flags::DELETE_SELF
                | Flags::MOVE_SELF
                | Flags::ONLYDIR;
            let name = format!("/proc/self/fd/{}", folder.as_raw_fd());
            match inotify::add_watch(&self.queue, name, events) {
                Ok(watch) => {
                    self.paths.lock().insert(watch, path.into());
                    true
                }
                Err(_) => {
                    self.is_broken.store(true, Ordering::Release);
                    false
                }
            }
        }

        /// Some folder could not be watched.
        pub(in super::super) fn is_broken(&self) -> bool {
            self.is_broken.load(Ordering::Acquire)
        }

        /// Marks what changed since the last call. `false` when something was missed.
        pub(in super::super) fn mark_changes(&self, root: &mut Folder) -> bool {
            let mut buffer = [MaybeUninit::uninit(); BUFFER_BYTES];
            let mut reader = inotify::Reader::new(&self.queue, &mut buffer);
            let mut paths = self.paths.lock();
            for _ in 0..MAX_EVENTS {
                let event = match reader.next() {
                    Ok(event) => event,
                    Err(Errno::WOULDBLOCK) => return !self.is_broken(),
                    Err(Errno::INTR) => continue,
                    Err(_) => return false,
                };
                if event.events().contains(inotify::ReadFlags::QUEUE_OVERFLOW) {
                    return false;
                }
                let ours = |name: &std::ffi::CStr| {
                    tree::is_foreign(name.to_bytes()) || tree::is_unfinished(name.to_bytes())
                };
                if event.file_name().is_some_and(ours) {
                    continue;
                }
                let lost = event.events().contains(inotify::ReadFlags::IGNORED);
                if let Some(path) = paths.get(&event.wd()) {
                    root.mark_touched(path, lost);
                }
                if lost {
                    paths.remove(&event.wd());
                }
            }
            false
        }
    }
}
