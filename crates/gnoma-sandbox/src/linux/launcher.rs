//! The process that a walled command is started as: builds the walls, starts the command inside, and
//! ends the way the command ends.
//!
//! Four processes take part. The *launcher* is what gnoma starts and waits for; it stays outside. Its
//! child is the *watch*, number one of a new process namespace, and the watch's child becomes the
//! *command*. A *keeper* joins them where something absent is protected. Without namespaces the same
//! processes make do with Landlock, the filter and a memory of what is protected.

use std::{
    ffi::OsString,
    io::{self, Write, stderr},
    os::{
        fd::{AsFd, OwnedFd},
        unix::{ffi::OsStringExt, process::CommandExt},
    },
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    pipe::{PipeFlags, pipe_with},
    process::{
        DumpableBehavior, Pid, PidfdFlags, Signal, WaitOptions, getcwd, getpid, getppid,
        kill_process, pidfd_open, set_child_subreaper, set_dumpable_behavior,
        set_parent_process_death_signal, setsid, waitpid,
    },
    thread::{ThreadNameSpaceType, UnshareFlags, move_into_thread_name_spaces},
};

use super::{
    confine,
    fault::{Fault, Step},
    filter::{self, Sockets},
    guarded::Snapshot,
    landlocked::{self, Grants},
    mounts::{self, RUN, View},
    protect::{self, Protection, StandIn},
    raw::{self, Forked, next_signal},
    real::RealPaths,
    session, sockets,
    watch::{Ending, Guard, Report, Watch},
};
use crate::{environment, launcher::NOT_BUILT, plan::Plan, policy::Policy};

/// The first argument that asks for a walled command.
pub(crate) const RUN_COMMAND: &str = "walls:run";
/// The first argument that asks for a holder of namespaces.
pub(crate) const HOLD_SESSION: &str = "walls:session";

/// Exit code when the command cannot be started.
const NOT_STARTED: u8 = 126;
/// Exit code when there is no such command.
const NOT_FOUND: u8 = 127;
/// Added to a signal's number where the end itself cannot be imitated.
const SIGNAL_BASE: u8 = 128;

/// Does what the arguments after the program's name ask for. See [`crate::launcher::main`].
pub(crate) fn main(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    match args.next() {
        Some(request) if request == HOLD_SESSION => session::hold(),
        Some(request) if request == RUN_COMMAND => {
            run(&mut args).unwrap_or_else(|fault| refuse(&fault))
        }
        _ => refuse(&Fault::new("run a command", "this was not asked for in a known way")),
    }
}

fn refuse(fault: &Fault) -> ExitCode {
    writeln!(stderr(), "gnoma: the sandbox {fault}; nothing was run").ok();
    ExitCode::from(NOT_BUILT)
}

/// What the walls rest on.
enum Ground<'a> {
    Namespaces(View<'a>),
    Memory(Snapshot),
}

/// What the parts of the launcher share.
struct Launch {
    policy: Policy,
    program: OsString,
    args: Vec<OsString>,
    here: PathBuf,
    paths: Paths,
    owner: OwnedFd,
    itself: OwnedFd,
}

/// The paths of a policy as they really are; what does not exist is left out.
struct Paths {
    writable: Vec<PathBuf>,
    /// Only those below a writable root: the others cannot be changed anyway.
    protected: Vec<PathBuf>,
    hidden: Vec<PathBuf>,
    devices: Vec<PathBuf>,
}

impl Paths {
    fn of(policy: &Policy) -> Result<Self, Fault> {
        let mut real = RealPaths::default();
        let mut all = |paths: &[PathBuf]| paths.iter().filter_map(|path| real.of(path)).collect();
        let (hidden, devices) = (all(policy.readable.hidden()), all(&policy.devices));
        let writable = outermost(all(&policy.writable));
        if writable.iter().any(|path| path == Path::new("/")) {
            return Err(Fault::new("make `/` writable", "that would leave no wall standing"));
        }
        let below = |path: &PathBuf| below(&writable, path, &mut real);
        let protected = policy.protected.iter().filter_map(below).collect();
        Ok(Self { protected, hidden, devices, writable })
    }
}

fn working_folder() -> Result<PathBuf, Fault> {
    let path = getcwd(Vec::new()).step(|| "find the working folder".to_owned())?;
    Ok(OsString::from_vec(path.into_bytes()).into())
}

/// The path as it lies below a root. Links on the way to the root are followed; those below it are
/// kept, for they are held themselves.
fn below(roots: &[PathBuf], path: &Path, real: &mut RealPaths) -> Option<PathBuf> {
    let is_below = |path: &Path| roots.iter().any(|root| path.starts_with(root));
    if is_below(path) {
        return Some(path.to_owned());
    }
    path.ancestors().find_map(|ancestor| {
        let rest = path.strip_prefix(ancestor).ok()?;
        let there = real.of(ancestor)?.join(rest);
        is_below(&there).then_some(there)
    })
}

/// Leaves out what lies below another: it is writable already.
fn outermost(mut paths: Vec<PathBuf>) -> Vec<PathBuf> {
    paths.sort();
    paths.dedup_by(|path, before| path.starts_with(before));
    paths
}

fn run(args: &mut impl Iterator<Item = OsString>) -> Result<ExitCode, Fault> {
    raw::close_inherited().step(|| "close files".to_owned())?;
    let plan = Plan::from_args(args).map_err(|error| Fault::new("read its plan", error))?;
    let program = args.next().ok_or_else(|| Fault::new("run a command", "none was given"))?;
    confine::no_core_dumps()?;
    let launch = Launch {
        paths: Paths::of(&plan.policy)?,
        owner: owner(plan.owner)?,
        itself: pidfd(getpid())?,
        here: working_folder()?,
        policy: plan.policy,
        program,
        args: args.collect(),
    };
    match plan.session.and_then(|session| Pid::from_raw(session.cast_signed())) {
        Some(session) => launch.with_namespaces(session),
        None => launch.without_namespaces(),
    }
}

/// The process that asked, to notice its end. When it is gone already, another is the parent.
fn owner(number: u32) -> Result<OwnedFd, Fault> {
    let owner = Pid::from_raw(number.cast_signed()).filter(|owner| getppid() == Some(*owner));
    pidfd(owner.ok_or_else(|| Fault::new("find its owner", "it is not the parent process"))?)
}

fn pidfd(process: Pid) -> Result<OwnedFd, Fault> {
    pidfd_open(process, PidfdFlags::empty()).step(|| "open a process".to_owned())
}

fn pipe() -> Result<(OwnedFd, OwnedFd), Fault> {
    pipe_with(PipeFlags::CLOEXEC).step(|| "make a pipe".to_owned())
}

impl Launch {
    fn with_namespaces(&self, session: Pid) -> Result<ExitCode, Fault> {
        let protection = Protection::prepare(&self.paths.writable, &self.paths.protected)?;
        let keeper = Keeper::start(&protection)?;
        let masked: Vec<&Path> = self.paths.hidden.iter().map(PathBuf::as_path).collect();
        let sockets = sockets::of_host(&[&masked[..], &[Path::new(RUN)]].concat());
        self.join(session)?;
        let view = View {
            writable: &self.paths.writable,
            hidden: &self.paths.hidden,
            devices: &self.paths.devices,
            sockets: &sockets,
            protection: &protection,
        };
        self.supervise(Ground::Namespaces(view), &keeper)
    }

    fn without_namespaces(&self) -> Result<ExitCode, Fault> {
        raw::landlock_version()
            .step(|| "find Landlock or namespaces, one of which it needs".to_owned())?;
        self.supervise(Ground::Memory(Snapshot::take(&self.paths.protected)), &Keeper::none())
    }

    /// Enters the session's namespaces; the next process is the first of one of its own. Mounts are
    /// left as they are outside, or stand-ins could not be removed from here.
    fn join(&self, session: Pid) -> Result<(), Fault> {
        let session = pidfd(session)?;
        let mut spaces =
            ThreadNameSpaceType::USER | ThreadNameSpaceType::INTER_PROCESS_COMMUNICATION;
        if !self.policy.network {
            spaces |= ThreadNameSpaceType::NETWORK;
        }
        move_into_thread_name_spaces(session.as_fd(), spaces)
            .step(|| "enter the session's namespaces".to_owned())?;
        raw::unshare(UnshareFlags::NEWPID).step(|| "make a namespace of processes".to_owned())
    }

    /// Starts the watch and waits for its report.
    fn supervise(&self, ground: Ground<'_>, keeper: &Keeper<'_>) -> Result<ExitCode, Fault> {
        let (report, reporter) = pipe()?;
        let signals = raw::watch_signals().step(|| "watch signals".to_owned())?;
        match raw::fork().step(|| "start a process".to_owned())? {
            Forked::Child => {
                drop(report);
                self.watch(ground, &signals, &reporter)
            }
            Forked::Parent(watch) => {
                drop(reporter);
                Ok(self.wait(watch, keeper, &report, &signals))
            }
        }
    }

    fn watch(
        &self,
        ground: Ground<'_>,
        signals: &OwnedFd,
        report: &OwnedFd,
    ) -> Result<ExitCode, Fault> {
        let has_namespaces = matches!(ground, Ground::Namespaces(_));
        let guard = match ground {
            Ground::Namespaces(view) => {
                raw::unshare(UnshareFlags::NEWNS)
                    .step(|| "make a namespace of mounts".to_owned())?;
                mounts::build(&view, &self.here)?;
                mounts::build_proc(self.policy.limits.processes)?;
                Guard::Mounts(view.protection)
            }
            Ground::Memory(snapshot) => {
                set_child_subreaper(Some(getpid())).step(|| "adopt orphans".to_owned())?;
                Guard::Memory(snapshot)
            }
        };
        set_dumpable_behavior(DumpableBehavior::NotDumpable)
            .step(|| "hide its memory".to_owned())?;
        match raw::fork().step(|| "start a process".to_owned())? {
            Forked::Child => self.become_command(has_namespaces),
            Forked::Parent(command) => {
                if !has_namespaces {
                    // Killing the command's group must not kill who cleans up after it.
                    setsid().step(|| "leave the group".to_owned())?;
                }
                let (owner, launcher) = (&self.owner, &self.itself);
                Watch { owner, launcher, signals, report, guard, command }.serve();
                Ok(ExitCode::SUCCESS)
            }
        }
    }

    /// Gives up everything and becomes the command.
    fn become_command(&self, has_namespaces: bool) -> Result<ExitCode, Fault> {
        let policy = &self.policy;
        if has_namespaces {
            // No terminal to type into.
            setsid().step(|| "leave the terminal".to_owned())?;
        }
        confine::bound_processes(policy.limits.processes, has_namespaces)?;
        confine::drop_rights()?;
        set_parent_process_death_signal(Some(Signal::KILL))
            .step(|| "tie itself to its watch".to_owned())?;
        let internet = policy.network || (has_namespaces && policy.loopback);
        landlocked::apply(&Grants {
            writable: &self.paths.writable,
            hidden: &self.paths.hidden,
            devices: &self.paths.devices,
            own_devices: has_namespaces,
            internet,
        })?;
        filter::apply(Sockets { local: has_namespaces, internet })?;
        raw::receive_signals().step(|| "receive signals".to_owned())?;
        let variables =
            environment::of_command(std::env::vars_os(), &policy.scrub, policy.git_hardening);
        let error = Command::new(&self.program).args(&self.args).env_clear().envs(variables).exec();
        Ok(self.not_started(&error))
    }

    fn not_started(&self, error: &io::Error) -> ExitCode {
        let program = self.program.to_string_lossy();
        writeln!(stderr(), "gnoma: `{program}` could not be started: {error}").ok();
        ExitCode::from(match error.kind() {
            io::ErrorKind::NotFound => NOT_FOUND,
            _ => NOT_STARTED,
        })
    }

    /// Waits for the report and ends like the command. What goes wrong here has been told by the
    /// process that it went wrong in.
    fn wait(
        &self,
        watch: Pid,
        keeper: &Keeper<'_>,
        report: &OwnedFd,
        signals: &OwnedFd,
    ) -> ExitCode {
        while !self.is_reported(watch, report, signals) {}
        let report = Report::receive(report);
        if report.is_none_or(|report| report.is_all) {
            waitpid(Some(watch), WaitOptions::empty()).ok();
            keeper.forestall();
        }
        report.map_or(ExitCode::from(NOT_BUILT), |report| end_like(report.ending))
    }

    /// Passes signals on until there is something to read.
    fn is_reported(&self, watch: Pid, report: &OwnedFd, signals: &OwnedFd) -> bool {
        let mut events = [
            PollFd::new(report, PollFlags::IN),
            PollFd::new(signals, PollFlags::IN),
            PollFd::new(&self.owner, PollFlags::IN),
        ];
        poll(&mut events, None).ok();
        let [reported, _, orphaned] = events.map(|event| !event.revents().is_empty());
        while let Some(signal) = next_signal(signals) {
            if signal != Signal::CHILD {
                kill_process(watch, signal).ok();
            }
        }
        reported || orphaned
    }
}

/// Removes stand-ins when the command is over: this process itself when it still can, else another
/// that outlives it. As long as one of those who hold the lifeline lives, the other waits.
struct Keeper<'a> {
    stand_ins: &'a [StandIn],
    other: Option<(Pid, OwnedFd)>,
}

impl<'a> Keeper<'a> {
    /// Where there is nothing to remove.
    fn none() -> Self {
        Self { stand_ins: &[], other: None }
    }

    fn start(protection: &'a Protection) -> Result<Self, Fault> {
        let stand_ins = &protection.stand_ins;
        if stand_ins.is_empty() {
            return Ok(Self::none());
        }
        let (end, lifeline) = pipe()?;
        let mut lifeline = Some(lifeline);
        let keep = || {
            // The keeper's own copy would keep it waiting for itself.
            drop(lifeline.take());
            protect::keep(stand_ins, &end);
            0
        };
        let process = raw::fork_for(keep).step(|| "start a process".to_owned())?;
        Ok(Self { stand_ins, other: lifeline.map(|lifeline| (process, lifeline)) })
    }

    /// Does the work while the other one sleeps, which saves waiting for it to wake.
    fn forestall(&self) {
        protect::remove(self.stand_ins);
        if let Some((process, _)) = self.other {
            kill_process(process, Signal::KILL).ok();
            // Not every system collects orphans.
            waitpid(Some(process), WaitOptions::empty()).ok();
        }
    }
}

fn end_like(ending: Ending) -> ExitCode {
    match ending {
        Ending::Code(code) => ExitCode::from(code),
        Ending::Signal(signal) => {
            raw::die_by(signal.into());
            ExitCode::from(SIGNAL_BASE.saturating_add(signal))
        }
    }
}
