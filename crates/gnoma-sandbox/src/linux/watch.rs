//! The command's own first process: collects what ends, passes signals on, and takes everything down
//! when it must.
//!
//! It outlives the command when that leaves something in the background: then it waits for the rest,
//! for a signal, or for the end of the gnoma it belongs to. As number one of a process namespace its
//! end is the end of all; without a namespace orphans are handed to it and it ends them itself.

use std::{
    fs, io,
    os::fd::{AsFd, OwnedFd},
    process::ExitCode,
    thread::sleep,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{Mode, OFlags, open},
    io::{Errno, read, write},
    process::{
        Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, kill_process_group, wait,
        waitpid,
    },
    stdio::{dup2_stderr, dup2_stdin, dup2_stdout},
};

use super::{
    counters::{self, ListWatch},
    guarded_paths::Snapshot,
    mounts,
    protect::Protection,
    raw_syscalls::{self, next_signal},
};
use crate::exit::{
    ENDING_BYTES, LEFT_RUNNING_MESSAGE, LISTED_PROCESSES_MESSAGE, LISTED_ROOT_MESSAGE,
    UNREACHED_MESSAGE,
};

/// A signal that reaches the launcher and this process, as one to their group does, is passed on
/// once.
const SAME_SIGNAL: Duration = Duration::from_millis(100);
/// The wait before the next look for a file that is being replaced.
const LOOK_AGAIN: Timespec = Timespec { tv_sec: 0, tv_nsec: 2_000_000 };
/// The number of looks for such a file.
const LOOKS: u32 = 50;
/// The number of times that leftover processes are searched for when they must end; each time one generation of
/// them ends.
const MAX_ROUNDS: usize = 10_000;
/// The time that processes get to end with the command.
const ENDING_GRACE: Duration = Duration::from_millis(5);

/// The end of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommandEnd {
    /// The command ended by itself, with this exit code.
    Code(u8),
    /// The command was ended by this signal.
    Signal(u8),
}

/// The number that is added to the number of a signal in an exit code.
const SIGNAL_BASE: u8 = 128;

impl CommandEnd {
    /// Ends this process in the same way, or returns the exit code that says it.
    pub(super) fn exit_same_way(self) -> ExitCode {
        match self {
            Self::Code(code) => ExitCode::from(code),
            Self::Signal(signal) => {
                raw_syscalls::die_by(signal.into());
                ExitCode::from(SIGNAL_BASE.saturating_add(signal))
            }
        }
    }
}

/// The message to the launcher when the command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Report {
    /// The end of the command.
    pub(super) ending: CommandEnd,
    /// True if no process is left in the background.
    pub(super) is_all: bool,
    /// True if the command tried to reach a server that is not in its network namespace.
    pub(super) missed_server: bool,
    /// True for each of the processes and the root of the machine if the command listed those that it sees.
    pub(super) partial_lists: [bool; 2],
}

/// The bits of a report's last byte.
const IS_ALL: u8 = 1;
const MISSED_SERVER: u8 = 2;
const PARTIAL_LISTS: [u8; 2] = [4, 8];

impl Report {
    pub(super) fn send(self, to: &OwnedFd) {
        let (by_signal, number) = match self.ending {
            CommandEnd::Code(code) => (false, code),
            CommandEnd::Signal(signal) => (true, signal),
        };
        // Nobody listens any more: nobody wants to know.
        let is_all = if self.is_all { IS_ALL } else { 0 };
        let missed_server = if self.missed_server { MISSED_SERVER } else { 0 };
        let listed =
            self.partial_lists.iter().zip(PARTIAL_LISTS).filter(|(is_listed, _)| **is_listed);
        let flags = listed.fold(is_all | missed_server, |flags, (_, bit)| flags | bit);
        write(to, &[by_signal.into(), number, flags]).ok();
    }

    /// Returns the messages about what the command met. `is_alone`: it has a network of its own.
    pub(super) fn to_messages(self, is_alone: bool, has_layer: bool) -> Vec<[u8; ENDING_BYTES]> {
        let found = [
            (is_alone && self.missed_server, UNREACHED_MESSAGE),
            (has_layer && !self.is_all, LEFT_RUNNING_MESSAGE),
            (has_layer && self.partial_lists[0], LISTED_PROCESSES_MESSAGE),
            (has_layer && self.partial_lists[1], LISTED_ROOT_MESSAGE),
        ];
        found.into_iter().filter_map(|(is_met, message)| is_met.then_some(message)).collect()
    }

    /// Reads a report; `None` when there will be none. So few bytes come all at once.
    pub(super) fn receive(from: &OwnedFd) -> Option<Self> {
        let mut bytes = [0; 3];
        if read(from, &mut bytes) != Ok(bytes.len()) {
            return None;
        }
        let [by_signal, number, flags] = bytes;
        let ending =
            if by_signal == 1 { CommandEnd::Signal(number) } else { CommandEnd::Code(number) };
        let (is_all, missed_server) = (flags & IS_ALL != 0, flags & MISSED_SERVER != 0);
        let partial_lists = PARTIAL_LISTS.map(|bit| flags & bit != 0);
        Some(Self { ending, is_all, missed_server, partial_lists })
    }
}

/// The mechanism that protects paths while the command runs.
#[derive(Debug)]
pub(super) enum Guard<'a> {
    /// Mounts, to be renewed when somebody outside replaces a file and with it the mount.
    Mounts { protection: &'a Protection, lists: Option<ListWatch> },
    /// A memory of what was there, where mounts are refused.
    Memory(Snapshot),
}

impl<'a> Guard<'a> {
    /// Guards mounts from now on. To be called in the command's view of the machine, before the command begins.
    pub(super) fn for_mounts(protection: &'a Protection) -> Self {
        Self::Mounts { protection, lists: ListWatch::start() }
    }

    fn partial_lists(&self) -> [bool; 2] {
        match self {
            Self::Mounts { lists: Some(lists), .. } => lists.find_lists(),
            Self::Mounts { lists: None, .. } | Self::Memory(_) => [false; 2],
        }
    }
}

/// Everything this process listens to and answers for.
#[derive(Debug)]
pub(super) struct ProcessWatch<'a> {
    /// The gnoma that asked for the command.
    pub(super) owner: &'a OwnedFd,
    /// The process that gnoma waits for.
    pub(super) launcher: &'a OwnedFd,
    /// Signals, read instead of received.
    pub(super) signals: &'a OwnedFd,
    /// The descriptor to which the report is written.
    pub(super) report: &'a OwnedFd,
    /// The mechanism that protects paths.
    pub(super) guard: Guard<'a>,
    /// The process of the command.
    pub(super) command: Pid,
    /// Processes of ours that end with the command at the latest, and that it has nothing to do with.
    pub(super) helpers: Vec<Pid>,
}

/// The events since the last look.
struct WatchEvents {
    must_end: bool,
    mounts_changed: bool,
}

impl ProcessWatch<'_> {
    /// Serves until nothing is left to serve.
    pub(super) fn run_to_end(&self) {
        let mut is_told = false;
        let mut passed_on = None;
        let mut looks_left = 0;
        let mut helpers = self.helpers.clone();
        let mount_table = self.mount_table();
        // Whoever reads the command's output must not wait for us.
        let_go_of_streams(matches!(self.guard, Guard::Memory(_))).ok();
        while let Ok(news) = self.wait_for_events(is_told, mount_table.as_ref(), looks_left > 0) {
            if news.must_end {
                break;
            }
            looks_left = self.renew_mounts(&news, looks_left);
            while let Some(signal) = next_signal(self.signals) {
                self.pass_on(signal, &mut passed_on);
            }
            let collected = self.collect_ended(&mut helpers);
            if let Some(ending) = collected.ending {
                self.restore_protected();
                let is_all = collected.is_all;
                let missed_server = counters::has_missed_server();
                let partial_lists = self.guard.partial_lists();
                let report = Report { ending, is_all, missed_server, partial_lists };
                report.send(self.report);
                is_told = true;
                if !collected.is_all {
                    let_go_of_streams(false).ok();
                }
            }
            if collected.is_all {
                // Nothing is left to be ended, and whoever waits for us waits no longer than needed.
                if collected.ending.is_none() {
                    self.restore_protected();
                }
                return;
            }
        }
        self.end_all();
        self.restore_protected();
    }

    /// Collects what has ended. Processes that end with the command, such as the other end of a pipe, get a moment for
    /// it: they are not left in the background.
    fn collect_ended(&self, helpers: &mut Vec<Pid>) -> ReapedProcesses {
        let collected = collect_children(self.command, helpers);
        if collected.ending.is_none() || collected.is_all {
            return collected;
        }
        sleep(ENDING_GRACE);
        let is_all = collect_children(self.command, helpers).is_all;
        ReapedProcesses { is_all, ..collected }
    }

    fn wait_for_events(
        &self,
        is_told: bool,
        mount_table: Option<&fs::File>,
        looks_again: bool,
    ) -> io::Result<WatchEvents> {
        let mut events =
            vec![PollFd::new(self.owner, PollFlags::IN), PollFd::new(self.signals, PollFlags::IN)];
        let launcher = (!is_told).then(|| PollFd::new(self.launcher, PollFlags::IN));
        let ends = 2 + launcher.iter().len();
        events.extend(launcher);
        events.extend(mount_table.map(|table| PollFd::new(table, PollFlags::PRI)));
        match poll(&mut events, looks_again.then_some(&LOOK_AGAIN)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let came =
            |place: usize| events.get(place).is_some_and(|event| !event.revents().is_empty());
        // Our gnoma is gone, or the launcher was killed before it knew the end.
        Ok(WatchEvents { must_end: came(0) || (!is_told && came(2)), mounts_changed: came(ends) })
    }

    /// Mounts again what somebody outside has replaced. The news come before the new file is in its
    /// place, so it is looked for a few times. Returns how often still.
    fn renew_mounts(&self, news: &WatchEvents, looks_left: u32) -> u32 {
        let Guard::Mounts { protection, .. } = &self.guard else {
            return 0;
        };
        if !news.mounts_changed && looks_left == 0 {
            return 0;
        }
        // What cannot be mounted now may be a moment later.
        mounts::mount_protection(protection).ok();
        if news.mounts_changed { LOOKS } else { looks_left - 1 }
    }

    /// Tells of changes to the mounts of this namespace.
    fn mount_table(&self) -> Option<fs::File> {
        match self.guard {
            Guard::Mounts { .. } => fs::File::open("/proc/self/mounts").ok(),
            Guard::Memory(_) => None,
        }
    }

    fn pass_on(&self, signal: Signal, last: &mut Option<(Signal, Instant)>) {
        // Without a namespace the command is in the launcher's group and has it already.
        if signal == Signal::CHILD || matches!(self.guard, Guard::Memory(_)) {
            return;
        }
        let now = Instant::now();
        let is_same = |(known, when): (Signal, Instant)| {
            known == signal && now.duration_since(when) < SAME_SIGNAL
        };
        if !last.is_some_and(is_same) {
            *last = Some((signal, now));
            signal_namespace(signal);
        }
    }

    /// Ends all processes, also where no namespace ends them with this process.
    fn end_all(&self) {
        if matches!(self.guard, Guard::Mounts { .. }) {
            signal_namespace(Signal::KILL);
        }
        for _ in 0..MAX_ROUNDS {
            for child in child_processes() {
                kill_process(child, Signal::KILL).ok();
            }
            if matches!(wait(WaitOptions::empty()), Err(Errno::CHILD)) {
                return;
            }
        }
    }

    /// Puts back what is protected and was changed, and says so where the command's output goes.
    fn restore_protected(&self) {
        let Guard::Memory(snapshot) = &self.guard else {
            return;
        };
        for (path, restored) in snapshot.restore_changed() {
            let what = match restored {
                Ok(()) => "it was put back".to_owned(),
                Err(error) => format!("it could not be put back: {error}"),
            };
            let line =
                format!("gnoma: `{}` is protected and was changed; {what}\n", path.display());
            write(rustix::stdio::stderr(), line.as_bytes()).ok();
        }
    }
}

/// Every process of the namespace but this one, its first.
fn signal_namespace(signal: Signal) {
    if getpid() == Pid::INIT {
        // Group one stands for all.
        kill_process_group(Pid::INIT, signal).ok();
    }
}

struct ReapedProcesses {
    /// The end of the command, if it ended just now.
    ending: Option<CommandEnd>,
    /// No child is left.
    is_all: bool,
}

/// Collects what has ended. Helpers are waited for when the command has ended, whatever that did to them.
fn collect_children(command: Pid, helpers: &mut Vec<Pid>) -> ReapedProcesses {
    let mut ending = None;
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((child, status))) if child == command => ending = Some(ending_of(status)),
            Ok(Some((child, _))) => helpers.retain(|helper| *helper != child),
            Ok(None) if ending.is_none() || helpers.is_empty() => {
                return ReapedProcesses { ending, is_all: false };
            }
            Ok(None) => {
                for helper in helpers.drain(..) {
                    kill_process(helper, Signal::KILL).ok();
                    waitpid(Some(helper), WaitOptions::empty()).ok();
                }
            }
            Err(_) => return ReapedProcesses { ending, is_all: true },
        }
    }
}

/// Codes and signals have eight bits and fewer.
fn ending_of(status: WaitStatus) -> CommandEnd {
    let small = |number: i32| u8::try_from(number).unwrap_or(u8::MAX);
    match status.terminating_signal() {
        Some(signal) => CommandEnd::Signal(small(signal)),
        None => CommandEnd::Code(status.exit_status().map_or(u8::MAX, small)),
    }
}

fn child_processes() -> Vec<Pid> {
    let own = getpid().as_raw_nonzero();
    let list = fs::read_to_string(format!("/proc/{own}/task/{own}/children")).unwrap_or_default();
    list.split_whitespace().filter_map(|number| Pid::from_raw(number.parse().ok()?)).collect()
}

/// Reads nothing and writes nothing from now on.
pub(super) fn let_go_of_streams(but_errors: bool) -> io::Result<()> {
    let nothing = open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    dup2_stdin(nothing.as_fd())?;
    dup2_stdout(nothing.as_fd())?;
    if !but_errors {
        dup2_stderr(nothing.as_fd())?;
    }
    Ok(())
}
