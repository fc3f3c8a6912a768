//! What a command asked of its namespaces, where the machine would have answered something else: the kernel's counters
//! tell whether it tried to reach a server, and a watch on folders whether it listed them.
//!
//! Format: proc_pid_net(5), `/proc/self/net/snmp`: of each protocol a line of names, and a line of numbers below it.

use std::{fs, mem::MaybeUninit, os::fd::OwnedFd};

use rustix::{
    fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags},
    io::Errno,
};

const COUNTERS: &str = "/proc/self/net/snmp";
/// Folders of which a command on trial sees only a part: processes, and the root of the machine.
const PARTIAL: [&str; 2] = ["/proc", "/"];
/// The number of no watch.
const NO_WATCH: i32 = -1;
/// Bytes of the buffer for events.
const BUFFER_BYTES: usize = 4096;
/// Most events that are looked at. Each file that is opened directly in the folder makes one.
const MAX_EVENTS: usize = 20_000;

/// Watches whether somebody lists folders of which the command sees only a part.
#[derive(Debug)]
pub(super) struct ListWatch {
    queue: OwnedFd,
    /// The number of the watch on each of [`PARTIAL`].
    watches: [i32; 2],
}

impl ListWatch {
    /// Begins to watch; `None` if the system refuses.
    pub(super) fn start() -> Option<Self> {
        let queue = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok()?;
        let flags = WatchFlags::OPEN | WatchFlags::ONLYDIR;
        let add = |folder: &str| inotify::add_watch(&queue, folder, flags).unwrap_or(NO_WATCH);
        let watches = PARTIAL.map(add);
        Some(Self { queue, watches })
    }

    /// Returns which of [`PARTIAL`] were opened since the watch began.
    pub(super) fn find_lists(&self) -> [bool; 2] {
        let mut buffer = [MaybeUninit::uninit(); BUFFER_BYTES];
        let mut events = inotify::Reader::new(&self.queue, &mut buffer);
        let mut listed = [false; 2];
        for _ in 0..MAX_EVENTS {
            match events.next() {
                Ok(event) => {
                    let is_folder = event.events().contains(ReadFlags::ISDIR);
                    if is_folder && event.file_name().is_none() {
                        for (is_listed, watch) in listed.iter_mut().zip(self.watches) {
                            *is_listed |= watch == event.wd();
                        }
                    }
                }
                Err(Errno::INTR) => {}
                Err(_) => break,
            }
        }
        listed
    }
}

/// True if a connection failed or had no way out in this process's network namespace, and no server in it took one.
pub(super) fn has_missed_server() -> bool {
    fs::read_to_string(COUNTERS).is_ok_and(|text| tells_missed_server(&text))
}

fn tells_missed_server(text: &str) -> bool {
    let of = |protocol: &str, name: &str| {
        let mut lines = text.lines().filter_map(|line| line.strip_prefix(protocol));
        let place = lines.next()?.split_whitespace().position(|known| known == name)?;
        lines.next()?.split_whitespace().nth(place)?.parse::<u64>().ok()
    };
    let missed = [of("Tcp:", "AttemptFails"), of("Ip:", "OutNoRoutes")];
    missed.into_iter().flatten().any(|count| count > 0) && of("Tcp:", "PassiveOpens") == Some(0)
}

#[cfg(test)]
mod tests {
    use super::tells_missed_server;

    #[test]
    fn refused_connection_reports_a_missed_server_unless_one_inside_accepted() {
        let counters = |no_routes: u8, passive: u8, failed: u8| {
            format!(
                "Ip: Forwarding DefaultTTL OutNoRoutes\nIp: 2 64 {no_routes}\n\
                 Tcp: RtoAlgorithm MaxConn PassiveOpens AttemptFails\nTcp: 1 -1 {passive} {failed}\n"
            )
        };
        for (no_routes, passive, failed, missed) in
            [(0, 0, 0, false), (0, 0, 1, true), (2, 0, 0, true), (0, 3, 1, false)]
        {
            assert_eq!(tells_missed_server(&counters(no_routes, passive, failed)), missed);
        }
        assert!(!tells_missed_server("Ip: a\nTcp:"));
    }
}
