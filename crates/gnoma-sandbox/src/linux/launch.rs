//! The process that a walled command is started as: builds the walls, starts the command inside, and
//! ends the way the command ends.
//!
//! Four processes take part. The *launcher* is what gnoma starts and waits for; it stays outside. Its
//! child is the *watch*, number one of a new process namespace, and the watch's child becomes the
//! *command*. A *keeper* joins them where something absent is protected. Without namespaces the same
//! processes make do with Landlock, the filter and a memory of what is protected.
//!
//! A launcher can also be started before its command is known, see `spare`.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    io::{Write, stderr},
    os::{
        fd::{AsFd, OwnedFd},
        unix::{ffi::OsStringExt, process::CommandExt},
    },
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    fs::Mode,
    process::{
        Pid, PidfdFlags, Signal, WaitOptions, getcwd, getpid, getppid, kill_process, pidfd_open,
        set_child_subreaper, set_parent_process_death_signal, setsid, waitpid,
    },
    thread::{ThreadNameSpaceType, UnshareFlags, move_into_thread_name_spaces},
};

use super::{
    channel,
    confine::{self, Rights},
    entry::hide_memory,
    fault::{Fault, FaultStep, report_not_started},
    filter::{Filters, Sockets},
    guarded_paths::Snapshot,
    keeper::{Lifeline, StandInKeeper},
    landlock_rules::{Grants, Rules},
    memory,
    mounts::{self, Copies, MountView, RUN, SealMounts},
    overlay, own_root,
    paths::{OutsideNames, Paths},
    protect::Protection,
    raw_syscalls::{self, ForkResult, next_signal},
    real::RealPaths,
    seals::{self, SealKind, SealServer},
    session, sockets,
    watch::{Guard, ProcessWatch, Report, let_go_of_streams},
};
use crate::{
    environment,
    exit::{NOT_BUILT, tried_message},
    plan::LaunchPlan,
    policy::Policy,
};

/// Says that nothing was run, and why. Returns the exit code for that.
pub(super) fn report_fault(fault: &Fault) -> u8 {
    writeln!(stderr(), "gnoma: the sandbox {fault}; nothing was run").ok();
    NOT_BUILT
}

/// The basis of the sandbox: namespaces, or a snapshot of the protected files.
enum Isolation<'a> {
    Namespaces(MountView<'a>),
    Memory(Snapshot),
}

/// The descriptors over which a launcher reports on the command.
pub(super) struct EndingReport<'a> {
    /// The descriptor for how the command ended.
    pub(super) report: &'a OwnedFd,
    /// The descriptor for the sealed files that the command tried to open.
    pub(super) tried: &'a OwnedFd,
    /// The descriptor of the process that is told of tried files, and of the command's end before the mounts are
    /// gone, if nothing is left to run or to remove.
    pub(super) asker: Option<&'a OwnedFd>,
}

/// The state that the parts of the launcher share.
pub(super) struct Launch {
    pub(super) policy: Policy,
    pub(super) program: OsString,
    pub(super) args: Vec<OsString>,
    pub(super) here: PathBuf,
    pub(super) paths: Paths,
    pub(super) seal_kind: SealKind,
    pub(super) owner: OwnedFd,
    pub(super) itself: OwnedFd,
}

impl LaunchPlan {
    /// The process that holds the session's namespaces.
    pub(super) fn session_process(&self) -> Option<Pid> {
        self.session.and_then(|session| Pid::from_raw(session.cast_signed()))
    }
}

/// The process that asked, to notice its end. When it is gone already, another is the parent.
fn open_owner(number: u32) -> Result<OwnedFd, Fault> {
    let owner = Pid::from_raw(number.cast_signed()).filter(|owner| getppid() == Some(*owner));
    open_pidfd(owner.ok_or_else(|| Fault::new("find its owner", "it is not the parent process"))?)
}

fn open_pidfd(process: Pid) -> Result<OwnedFd, Fault> {
    pidfd_open(process, PidfdFlags::empty()).with_step(|| "open a process".to_owned())
}

fn working_folder() -> Result<PathBuf, Fault> {
    let path = getcwd(Vec::new()).with_step(|| "find the working folder".to_owned())?;
    Ok(OsString::from_vec(path.into_bytes()).into())
}

impl Launch {
    /// A launch in the working folder of this process, with the command that `words` name.
    pub(super) fn from_plan(
        plan: LaunchPlan,
        words: &mut impl Iterator<Item = OsString>,
        real: &mut RealPaths,
    ) -> Result<Self, Fault> {
        let program = words.next().ok_or_else(|| Fault::new("run a command", "none was given"))?;
        let plan = memory::with_own_paths(plan)?;
        let seal_kind = SealKind::for_policy(&plan.policy);
        let mut paths = Paths::for_policy(&plan.policy, real)?;
        if seal_kind == SealKind::Masked {
            paths.outside = OutsideNames::default();
        }
        Ok(Self {
            paths,
            seal_kind,
            owner: open_owner(plan.owner)?,
            itself: open_pidfd(getpid())?,
            here: working_folder()?,
            policy: plan.policy,
            program,
            args: words.collect(),
        })
    }

    /// `asker`: who is told what is known before the launcher ends.
    pub(super) fn with_namespaces(
        &self,
        session: Pid,
        asker: Option<&OwnedFd>,
    ) -> Result<ExitCode, Fault> {
        let protection = Protection::prepare(&self.paths.writable, &self.paths.protected)?;
        let keeper = StandInKeeper::start(&protection, Lifeline::new()?)?;
        let sockets = self.sockets_of_host();
        self.join_session(session)?;
        let view = self.mount_view(&sockets, &protection, false);
        self.supervise(Isolation::Namespaces(view), &keeper, asker)
    }

    pub(super) fn without_namespaces(&self) -> Result<ExitCode, Fault> {
        raw_syscalls::landlock_version()
            .with_step(|| "find Landlock or namespaces, one of which it needs".to_owned())?;
        let memory = Isolation::Memory(Snapshot::capture_paths(&self.paths.protected));
        self.supervise(memory, &StandInKeeper::without_stand_ins(), None)
    }

    /// Sockets to be masked, besides those that lie in what is masked anyway.
    pub(super) fn sockets_of_host(&self) -> BTreeSet<PathBuf> {
        if !self.policy.local_sockets {
            return BTreeSet::new();
        }
        let Paths { hidden, shown, writable, .. } = &self.paths;
        let masked: Vec<&Path> = hidden.iter().map(PathBuf::as_path).collect();
        let mut sockets = sockets::of_host(&[&masked[..], &[Path::new(RUN)]].concat());
        if let Some(shown) = shown {
            // The others do not exist.
            let there = shown.paths.iter().chain(writable);
            sockets.retain(|path| there.clone().any(|place| path.starts_with(place)));
        }
        sockets
    }

    /// Returns the view that the mounts are made from.
    pub(super) fn mount_view<'a>(
        &'a self,
        sockets: &'a BTreeSet<PathBuf>,
        protection: &'a Protection,
        overlays_come_later: bool,
    ) -> MountView<'a> {
        MountView {
            writable: &self.paths.writable,
            overlays: &self.policy.overlays,
            overlays_come_later,
            hidden: self.paths_to_mask(),
            sealed: self.sealed_by_mounts(),
            outside: &self.paths.outside,
            absent: &self.paths.absent,
            devices: &self.paths.devices,
            sockets,
            protection,
            shown: self.paths.shown.as_ref(),
            temporary: &self.paths.temporary,
            shown_temporary: &self.paths.shown_temporary,
            has_local_sockets: self.policy.local_sockets,
        }
    }

    /// Returns the paths that a mount hides. If the readable paths are a list, Landlock alone hides paths, so that
    /// a look at a folder shows what is there, and git sees no change.
    ///
    /// Not what lies in what can be written, or among temporary files: what Landlock grants for a folder it
    /// grants for all that is below.
    fn paths_to_mask(&self) -> Vec<PathBuf> {
        let hidden = &self.paths.hidden;
        let is_list = self.paths.shown.is_some() && raw_syscalls::landlock_version().is_ok();
        let is_masked = |path: &&PathBuf| !is_list || self.is_granted_by_rules(path);
        hidden.iter().filter(is_masked).cloned().collect()
    }

    /// True if Landlock grants a path with all that is in a folder around it, so that no rule can leave it out.
    fn is_granted_by_rules(&self, path: &Path) -> bool {
        let Paths { temporary, writable, .. } = &self.paths;
        let views = self.policy.overlays.iter().map(|overlay| &overlay.at);
        let mut granted = temporary.iter().map(|(place, _)| place).chain(writable).chain(views);
        granted.any(|folder| path.starts_with(folder))
    }

    /// Returns the paths that a mount seals. Without a file system that serves sealed files, these are only the
    /// ones that lie where the command writes.
    fn sealed_by_mounts(&self) -> SealMounts<'_> {
        match self.seal_kind {
            SealKind::Served => SealMounts::Served(&self.paths.sealed),
            SealKind::Masked => {
                let sealed = self.paths.sealed.iter().map(|(_, path)| path);
                SealMounts::Masked(sealed.filter(|path| self.is_granted_by_rules(path)).collect())
            }
        }
    }

    /// Starts the process that serves sealed files, where there are any.
    pub(super) fn serve_seals(&self, teller: &OwnedFd) -> Result<Option<SealServer>, Fault> {
        let Paths { sealed, outside, .. } = &self.paths;
        if self.seal_kind == SealKind::Masked || (sealed.is_empty() && outside.is_empty()) {
            return Ok(None);
        }
        let server = SealServer::start(sealed, outside, teller);
        // Without the names outside a command merely does not find them.
        if sealed.is_empty() { Ok(server.ok()) } else { server.map(Some) }
    }

    /// Enters the session's namespaces; the next process is the first of one of its own. Mounts are
    /// left as they are outside, or stand-ins could not be removed from here.
    pub(super) fn join_session(&self, session: Pid) -> Result<(), Fault> {
        let session = open_pidfd(session)?;
        let mut spaces = ThreadNameSpaceType::USER;
        if !self.policy.alone {
            spaces |= ThreadNameSpaceType::INTER_PROCESS_COMMUNICATION;
            if !self.policy.network {
                spaces |= ThreadNameSpaceType::NETWORK;
            }
        }
        move_into_thread_name_spaces(session.as_fd(), spaces)
            .with_step(|| "enter the session's namespaces".to_owned())?;
        if self.policy.alone {
            raw_syscalls::unshare(UnshareFlags::NEWNET | UnshareFlags::NEWIPC)
                .with_step(|| "create a network namespace".to_owned())?;
            session::raise_loopback()?;
        }
        raw_syscalls::unshare(UnshareFlags::NEWPID)
            .with_step(|| "make a namespace of processes".to_owned())
    }

    /// Starts the watch and waits for its report.
    fn supervise(
        &self,
        ground: Isolation<'_>,
        keeper: &StandInKeeper<'_>,
        asker: Option<&OwnedFd>,
    ) -> Result<ExitCode, Fault> {
        let (report, reporter) = channel::open_pipe()?;
        let (tried, teller) = seals::report_pipe()?;
        let signals = raw_syscalls::watch_signals().with_step(|| "watch signals".to_owned())?;
        match raw_syscalls::fork().with_step(|| "start a process".to_owned())? {
            ForkResult::Child => {
                drop(report);
                self.run_watch(ground, &signals, &reporter, &teller)
            }
            ForkResult::Parent(watch) => {
                drop(reporter);
                let told = EndingReport { report: &report, tried: &tried, asker };
                Ok(self.wait_for_report(watch, keeper, &told, &signals))
            }
        }
    }

    fn run_watch(
        &self,
        ground: Isolation<'_>,
        signals: &OwnedFd,
        report: &OwnedFd,
        teller: &OwnedFd,
    ) -> Result<ExitCode, Fault> {
        let has_namespaces = matches!(ground, Isolation::Namespaces(_));
        let mut helpers = Vec::new();
        let guard = match ground {
            Isolation::Namespaces(view) => {
                let seals = self.serve_seals(teller)?;
                self.build_mounts(&view, seals.as_ref().map(|seals| &seals.mount))?;
                helpers.extend(seals.map(|seals| seals.process));
                mounts::finish_mounts(&view, &Copies(Vec::new()), &self.here)?;
                Guard::for_mounts(view.protection)
            }
            Isolation::Memory(snapshot) => {
                set_child_subreaper(Some(getpid())).with_step(|| "adopt orphans".to_owned())?;
                Guard::Memory(snapshot)
            }
        };
        hide_memory()?;
        match raw_syscalls::fork().with_step(|| "start a process".to_owned())? {
            ForkResult::Child => self.become_command(has_namespaces),
            ForkResult::Parent(command) => {
                if !has_namespaces {
                    // Killing the command's group must not kill who cleans up after it.
                    setsid().with_step(|| "leave the group".to_owned())?;
                }
                let (owner, launcher) = (&self.owner, &self.itself);
                ProcessWatch { owner, launcher, signals, report, guard, command, helpers }
                    .run_to_end();
                Ok(ExitCode::SUCCESS)
            }
        }
    }

    /// Makes the mounts that need not know what is protected, in a namespace of their own.
    pub(super) fn build_mounts(
        &self,
        view: &MountView<'_>,
        seals: Option<&OwnedFd>,
    ) -> Result<(), Fault> {
        raw_syscalls::unshare(UnshareFlags::NEWNS)
            .with_step(|| "make a namespace of mounts".to_owned())?;
        let processes = self.policy.limits.processes;
        match view.shown {
            Some(shown) => own_root::build_root(shown, view, seals, processes),
            None => mounts::build_mounts(view, seals, processes),
        }
    }

    /// Gives up everything and becomes the command.
    fn become_command(&self, has_namespaces: bool) -> Result<ExitCode, Fault> {
        self.give_up(has_namespaces)?;
        Rules::for_grants(&self.grants(has_namespaces))?.apply()?;
        self.filters(has_namespaces)?.apply()?;
        self.execute(&self.program, &self.args, has_namespaces).map(ExitCode::from)
    }

    /// Gives up rights, resources and the terminal.
    pub(super) fn give_up(&self, has_namespaces: bool) -> Result<(), Fault> {
        if has_namespaces {
            // No terminal to type into.
            setsid().with_step(|| "leave the terminal".to_owned())?;
        }
        confine::bound_processes(self.policy.limits.processes, has_namespaces)?;
        let masks_secrets = self.seal_kind == SealKind::Masked && !self.paths.sealed.is_empty();
        confine::drop_rights(if self.policy.shows_machine {
            Rights::None
        } else if masks_secrets {
            Rights::WithoutOverride
        } else {
            Rights::OfOwner
        })?;
        set_parent_process_death_signal(Some(Signal::KILL))
            .with_step(|| "tie itself to its watcher".to_owned())
    }

    /// Returns the paths and settings that Landlock's rules are made from.
    pub(super) fn grants(&self, has_namespaces: bool) -> Grants<'_> {
        Grants {
            writable: &self.paths.writable,
            hidden: &self.paths.hidden,
            sealed: self.sealed_by_rules(has_namespaces),
            outside: &self.paths.outside,
            shows_machine: self.policy.shows_machine,
            devices: &self.paths.devices,
            own_devices: has_namespaces,
            internet: self.has_internet(has_namespaces),
            shown: self.paths.shown.as_ref().map(|shown| &shown.paths[..]),
            temporary: self.temporary_folders(has_namespaces),
        }
    }

    /// Returns the paths that the rules must leave out because no mount seals them.
    pub(super) fn sealed_by_rules(&self, has_namespaces: bool) -> Vec<&Path> {
        let is_served = has_namespaces && self.seal_kind == SealKind::Served;
        let sealed = self.paths.sealed.iter().filter(|_| !is_served);
        sealed.map(|(_, path)| path.as_path()).collect()
    }

    /// The folders for temporary files, as the command sees them.
    fn temporary_folders(&self, has_namespaces: bool) -> Vec<&Path> {
        let pairs = self.paths.temporary.iter();
        pairs.map(|(place, folder)| if has_namespaces { &**place } else { &**folder }).collect()
    }

    /// The filters for this command.
    pub(super) fn filters(&self, has_namespaces: bool) -> Result<Filters, Fault> {
        let internet = self.has_internet(has_namespaces);
        let local = has_namespaces && self.policy.local_sockets;
        Filters::for_sockets(Sockets { local, internet }, self.policy.shows_machine)
    }

    fn has_internet(&self, has_namespaces: bool) -> bool {
        let policy = &self.policy;
        (policy.network && !policy.alone) || (has_namespaces && policy.loopback)
    }

    /// Becomes a program, when nothing is left to give up. Returns the exit code when it could not.
    pub(super) fn execute(
        &self,
        program: &OsStr,
        args: &[OsString],
        has_namespaces: bool,
    ) -> Result<u8, Fault> {
        raw_syscalls::receive_signals().with_step(|| "receive signals".to_owned())?;
        let policy = &self.policy;
        if let Some(umask) = policy.umask {
            rustix::process::umask(Mode::from_raw_mode(umask));
        }
        let git = environment::GitHardening::for_policy(policy);
        let mut variables =
            environment::build_command_environment(std::env::vars_os(), &policy.scrub, git);
        if let Some(folder) = self.temporary_folders(has_namespaces).first() {
            environment::set_temporary(&mut variables, folder);
        }
        environment::set_span(&mut variables, policy);
        let error = Command::new(program).args(args).env_clear().envs(variables).exec();
        Ok(report_not_started(program, &error))
    }

    /// Waits for the report and ends like the command, which alone has its input and output: others see when it closes
    /// them. What goes wrong here has been told by the process that it went wrong in.
    pub(super) fn wait_for_report(
        &self,
        watch: Pid,
        keeper: &StandInKeeper<'_>,
        told: &EndingReport<'_>,
        signals: &OwnedFd,
    ) -> ExitCode {
        let_go_of_streams(true).ok();
        while !self.is_reported(watch, told.report, signals) {}
        let report = Report::receive(told.report);
        let has_layer = self.policy.overlays.iter().any(|overlay| !overlay.is_view());
        if let Some(asker) = told.asker {
            for number in seals::read_reports(told.tried) {
                // Nobody listens any more: nobody wants to know.
                channel::send_bytes(asker, &tried_message(number)).ok();
            }
            let found = report.map(|report| report.to_messages(self.policy.alone, has_layer));
            for message in found.unwrap_or_default() {
                channel::send_bytes(asker, &message).ok();
            }
        }
        if has_layer {
            // Whoever looks at a layer next must find nobody at work in it.
            kill_process(watch, Signal::KILL).ok();
            // While it ends.
            overlay::remove_volatile_marks(&self.policy.overlays);
        }
        if let (Some(asker), Some(report)) = (told.asker, report)
            && report.is_all
            && !has_layer
            && keeper.has_nothing()
        {
            // The output ends with its last writer.
            let_go_of_streams(false).ok();
            report.send(asker);
        }
        if has_layer || report.is_none_or(|report| report.is_all) {
            waitpid(Some(watch), WaitOptions::empty()).ok();
            keeper.remove_now();
        }
        report.map_or(ExitCode::from(NOT_BUILT), |report| report.ending.exit_same_way())
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
