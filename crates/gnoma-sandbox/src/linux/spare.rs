//! A launcher that is started before its command is known, and has as much of the walls standing as
//! cannot be seen from outside: a watch in namespaces of its own with the mounts that every command
//! gets, and in it a process that has given up everything and only waits to become the command.
//!
//! Nothing here decides what a command may do. When the command comes, its own plan is worked out as
//! always, and what stands is used only if it is what that plan asks for: the same policy, the same
//! real paths, the same folders behind them, and no mount of the machine changed since. Otherwise it
//! is taken down and the walls are built from nothing. What can be seen outside (stand-ins), and what
//! others change at any time (protected paths, sockets), is always done last.
//!
//! It ends with its owner, or when its input ends before a command came.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs,
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::MetadataExt,
    },
    path::{Path, PathBuf},
    process::ExitCode,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::{Errno, fcntl_dupfd_cloexec, read, write},
    process::{Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, waitpid},
    stdio::{dup2_stdin, stdin},
};

use super::{
    channel, confine,
    entry::{hide_memory, read_plan},
    fault::{Fault, FaultStep},
    keeper::{Lifeline, StandInKeeper},
    landlock_rules::{Grants, Rules, on_the_way},
    late_launch_plan::LateLaunchPlan,
    launch::{EndingReport, Launch, report_fault},
    mounter::Mounter,
    mounts::{self, Copies, HARMLESS_DEVICES, KEPT_OF_RUN},
    protect::Protection,
    raw_syscalls::{self, next_signal},
    real::RealPaths,
    seals,
    stamps::Stamps,
    watch::{Guard, ProcessWatch},
};
use crate::{exit::NOT_BUILT, plan::LaunchPlan, policy::Policy};

/// A timeout that does not wait.
const NO_TIME: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
/// The lowest number of a file that is no standard stream.
const FIRST_FREE: i32 = 3;

/// Gets ready for a command like the one that the arguments plan, waits for one, and runs it.
pub(super) fn serve_spare(args: &mut impl Iterator<Item = OsString>) -> Result<ExitCode, Fault> {
    raw_syscalls::close_inherited().with_step(|| "close files".to_owned())?;
    let orders = take_input()?;
    confine::no_core_dumps()?;
    let signals = raw_syscalls::watch_signals().with_step(|| "watch signals".to_owned())?;
    // Before the first path is looked up: from now on no mount changes unseen.
    let mount_table = fs::File::open("/proc/self/mounts").with_step(|| "read mounts".to_owned())?;
    let mut real = RealPaths::default();
    let guess = read_plan(args)?;
    let launch =
        Launch::from_plan(guess.clone(), &mut std::iter::once(OsString::new()), &mut real)?;
    // Without anything ready a command is merely slower.
    let mut ready = ReadyLauncher::start(guess, launch, &signals).ok();
    let Some(words) = next_order(&orders, &signals, &mount_table, &mut ready) else {
        // Not every system collects orphans.
        ready.into_iter().for_each(ReadyLauncher::take_down);
        return Ok(ExitCode::SUCCESS);
    };
    if has_changed(&mount_table)
        && let Some(ready) = ready.take()
    {
        ready.take_down();
    }
    // What was found out stays true as long as no mount changes what paths mean.
    let real = if ready.is_some() { real.still_true() } else { RealPaths::default() };
    run_order(words, real, ready, &signals, &orders)
}

/// The standard input as a file of its own; what is started from here has none.
fn take_input() -> Result<OwnedFd, Fault> {
    let taken =
        fcntl_dupfd_cloexec(stdin(), FIRST_FREE).with_step(|| "take its input".to_owned())?;
    let nothing = fs::File::open("/dev/null").with_step(|| "open `/dev/null`".to_owned())?;
    dup2_stdin(nothing.as_fd()).with_step(|| "close its input".to_owned())?;
    Ok(taken)
}

/// Waits for the command. When a mount of the machine changes, what is ready would keep the old one
/// busy, so it is taken down. `None` when no command will come.
fn next_order(
    orders: &OwnedFd,
    signals: &OwnedFd,
    mount_table: &fs::File,
    ready: &mut Option<ReadyLauncher>,
) -> Option<Vec<OsString>> {
    loop {
        let mut events =
            vec![PollFd::new(orders, PollFlags::IN), PollFd::new(signals, PollFlags::IN)];
        if ready.is_some() {
            events.push(PollFd::new(mount_table, PollFlags::PRI));
        }
        match poll(&mut events, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return None,
        }
        let came =
            |place: usize| events.get(place).is_some_and(|event| !event.revents().is_empty());
        let (ordered, mounted) = (came(0), came(2));
        if mounted && let Some(ready) = ready.take() {
            ready.take_down();
        }
        while let Some(signal) = next_signal(signals) {
            if signal != Signal::CHILD {
                return None;
            }
        }
        if ordered {
            return channel::receive_words(orders, &[]);
        }
    }
}

fn has_changed(mount_table: &fs::File) -> bool {
    let mut events = [PollFd::new(mount_table, PollFlags::PRI)];
    poll(&mut events, Some(&NO_TIME)) != Ok(0)
}

/// Runs the command of an order: a plan, the working folder, the program and its arguments.
fn run_order(
    words: Vec<OsString>,
    mut real: RealPaths,
    ready: Option<ReadyLauncher>,
    signals: &OwnedFd,
    asker: &OwnedFd,
) -> Result<ExitCode, Fault> {
    let mut words = words.into_iter();
    let plan = read_plan(&mut words)?;
    let here = words.next().ok_or_else(|| Fault::new("run a command", "it has no folder"))?;
    mounts::enter_folder(Path::new(&here))?;
    let launch = Launch::from_plan(plan.clone(), &mut words, &mut real)?;
    let session = plan.session_process();
    let session = session.ok_or_else(|| Fault::new("run a command", "it has no namespaces"))?;
    match ready {
        Some(ready) if ready.matches_plan(&plan, &launch) => ready.run(&launch, signals, asker),
        Some(ready) => {
            ready.take_down();
            launch.with_namespaces(session, Some(asker))
        }
        None => launch.with_namespaces(session, Some(asker)),
    }
}

/// The parts of the sandbox that are built before the command is known.
struct ReadyLauncher {
    plan: LaunchPlan,
    launch: Launch,
    footing: MountSources,
    /// Folders whose entries Landlock's rules name.
    named: Stamps,
    watch: Pid,
    orders: OwnedFd,
    report: OwnedFd,
    /// The descriptor for the sealed files that the command tried to open.
    tried: OwnedFd,
    lifeline: Lifeline,
}

impl ReadyLauncher {
    fn start(plan: LaunchPlan, launch: Launch, signals: &OwnedFd) -> Result<Self, Fault> {
        let footing = MountSources::for_launch(&launch);
        let mut named = Stamps::default();
        let hidden = launch.paths.hidden.iter().map(PathBuf::as_path);
        for folder in on_the_way(hidden.chain(launch.sealed_by_rules(true))) {
            named.record_folder(folder);
        }
        let session = plan.session_process();
        let session = session.ok_or_else(|| Fault::new("get ready", "there are no namespaces"))?;
        let lifeline = Lifeline::new()?;
        let (awaited, orders) = channel::open_pipe()?;
        let (report, reporter) = channel::open_pipe()?;
        let (tried, teller) = seals::report_pipe()?;
        let rules_may_hold = named.are_settled();
        let inner =
            Inner { launch, signals, orders: awaited, report: reporter, teller, rules_may_hold };
        let watch = inner.start_watch(session)?;
        let Inner { launch, .. } = inner;
        Ok(Self { plan, launch, footing, named, watch, orders, report, tried, lifeline })
    }

    /// True if these parts are the ones that the plan asks for.
    fn matches_plan(&self, plan: &LaunchPlan, launch: &Launch) -> bool {
        let (then, now) = (&self.launch.paths, &launch.paths);
        plan.session == self.plan.session
            && without_protected(&plan.policy) == without_protected(&self.plan.policy)
            && (&then.writable, &then.hidden, &then.devices)
                == (&now.writable, &now.hidden, &now.devices)
            && (&then.shown, &then.temporary, &then.shown_temporary)
                == (&now.shown, &now.temporary, &now.shown_temporary)
            && (&then.sealed, &then.outside, &then.absent)
                == (&now.sealed, &now.outside, &now.absent)
            && self.launch.seal_kind == launch.seal_kind
            && self.footing == MountSources::for_launch(launch)
            && self.is_up()
    }

    /// Waits until it stands, or has failed to.
    fn is_up(&self) -> bool {
        let mut word = [0];
        loop {
            match read(&self.report, &mut word) {
                Err(Errno::INTR) => {}
                result => return result == Ok(word.len()),
            }
        }
    }

    /// Adds what could not be done before, and lets the command run.
    fn run(self, launch: &Launch, signals: &OwnedFd, asker: &OwnedFd) -> Result<ExitCode, Fault> {
        let protection = Protection::prepare(&launch.paths.writable, &launch.paths.protected)?;
        let keeper = StandInKeeper::start(&protection, self.lifeline)?;
        let sockets = launch.sockets_of_host();
        let last = LateLaunchPlan {
            // A mask is a file of its own, and a stand-in is a new one.
            rules_hold: sockets.is_empty() && self.named.are_unchanged(),
            here: launch.here.clone(),
            holds: protection.holds.clone(),
            sockets,
            program: launch.program.clone(),
            args: launch.args.clone(),
        };
        channel::send_bytes(&self.orders, &last.to_bytes()?)?;
        let told = EndingReport { report: &self.report, tried: &self.tried, asker: Some(asker) };
        Ok(launch.wait_for_report(self.watch, &keeper, &told, signals))
    }

    fn take_down(self) {
        kill_process(self.watch, Signal::KILL).ok();
        waitpid(Some(self.watch), WaitOptions::empty()).ok();
    }
}

/// Protected paths are looked at when the command comes.
fn without_protected(policy: &Policy) -> Policy {
    Policy { protected: Vec::new(), ..policy.clone() }
}

/// The files and folders that copies of mounts were made of. A path that leads to another one by now
/// would lead to the old one inside.
#[derive(Debug, PartialEq, Eq)]
struct MountSources(Vec<Option<(u64, u64)>>);

impl MountSources {
    fn for_launch(launch: &Launch) -> Self {
        let fixed = HARMLESS_DEVICES.iter().chain(&KEPT_OF_RUN).map(Path::new);
        let paths = &launch.paths;
        let shown = paths.shown.iter().flat_map(|shown| &shown.paths);
        let temporary = paths.temporary.iter().map(|(_, folder)| folder);
        let of_policy = paths.writable.iter().chain(&paths.devices).chain(&paths.shown_temporary);
        let of_policy = of_policy.chain(shown).chain(temporary);
        let place = |path: &Path| {
            let facts = fs::symlink_metadata(path).ok()?;
            Some((facts.dev(), facts.ino()))
        };
        Self(of_policy.map(PathBuf::as_path).chain(fixed).map(place).collect())
    }
}

/// The settings and descriptors with which the processes inside are started.
struct Inner<'a> {
    launch: Launch,
    signals: &'a OwnedFd,
    orders: OwnedFd,
    report: OwnedFd,
    /// The descriptor for the sealed files that were tried.
    teller: OwnedFd,
    /// Landlock's rules can be made before the command is known.
    rules_may_hold: bool,
}

impl Inner<'_> {
    /// Starts the watch through a process that enters the namespaces and ends: this one must stay
    /// outside, where it can still build other walls.
    fn start_watch(&self, session: Pid) -> Result<Pid, Fault> {
        let failed = || "start a process".to_owned();
        set_child_subreaper(Some(getpid())).with_step(|| "adopt its watch".to_owned())?;
        let (told, teller) = channel::open_pipe()?;
        let between = || {
            let watch = self.launch.join_session(session).ok().and_then(|()| {
                raw_syscalls::fork_for(|| self.run_watch().unwrap_or(NOT_BUILT)).ok()
            });
            let number = watch.map_or(0, Pid::as_raw_pid);
            u8::from(write(&teller, &number.to_ne_bytes()).is_err())
        };
        let between = raw_syscalls::fork_for(between).with_step(failed)?;
        waitpid(Some(between), WaitOptions::empty()).with_step(failed)?;
        drop(teller);
        let mut number = [0; 4];
        read(&told, &mut number).with_step(failed)?;
        Pid::from_raw(i32::from_ne_bytes(number))
            .ok_or_else(|| Fault::new("start a process", "namespaces were refused"))
    }

    /// The watch: builds what it can, starts the process that is to become the command, and waits.
    fn run_watch(&self) -> Option<u8> {
        let launch = &self.launch;
        let nothing = Protection::default();
        let no_sockets = BTreeSet::new();
        let mounter = Mounter::start(&launch.policy.overlays, &launch.paths.absent).ok()?;
        let seals = launch.serve_seals(&self.teller).ok()?;
        let view = launch.mount_view(&no_sockets, &nothing, true);
        launch.build_mounts(&view, seals.as_ref().map(|seals| &seals.mount)).ok()?;
        let server = seals.map(|seals| seals.process);
        hide_memory().ok()?;
        let (told, teller) = channel::open_pipe().ok()?;
        let command = raw_syscalls::fork_for(|| self.wait_to_become(&told)).ok()?;
        write(&self.report, &[1]).ok()?;
        let last = channel::receive_words(&self.orders, &[&launch.owner, &launch.itself])?;
        let last = LateLaunchPlan::from_words(last)?;
        Some(match self.finish_mounts(&last, mounter, server, &teller, command) {
            Ok(()) => 0,
            Err(fault) => report_fault(&fault),
        })
    }

    /// Adds to the mounts what was not known before, and watches over the command.
    fn finish_mounts(
        &self,
        last: &LateLaunchPlan,
        mounter: Option<Mounter>,
        server: Option<Pid>,
        teller: &OwnedFd,
        command: Pid,
    ) -> Result<(), Fault> {
        let LateLaunchPlan { holds, sockets, .. } = last;
        let protection = Protection { holds: holds.clone(), stand_ins: Vec::new() };
        let mounted = mounter.map(|mounter| mounter.receive_mounts(&self.launch.policy.overlays));
        let (layers, mounter) = match mounted.transpose()? {
            Some((layers, process)) => (layers, Some(process)),
            None => (Copies(Vec::new()), None),
        };
        let helpers = mounter.into_iter().chain(server).collect();
        mounts::finish_mounts(
            &self.launch.mount_view(sockets, &protection, true),
            &layers,
            &last.here,
        )?;
        let guard = Guard::for_mounts(&protection);
        channel::send_bytes(teller, &last.to_bytes()?)?;
        let (owner, launcher) = (&self.launch.owner, &self.launch.itself);
        let (signals, report) = (self.signals, &self.report);
        ProcessWatch { owner, launcher, signals, report, guard, command, helpers }.run_to_end();
        Ok(())
    }

    /// The process in which the command will run.
    fn wait_to_become(&self, told: &OwnedFd) -> u8 {
        self.become_command(told).unwrap_or_else(|fault| report_fault(&fault))
    }

    fn become_command(&self, told: &OwnedFd) -> Result<u8, Fault> {
        self.launch.give_up(true)?;
        let grants = self.launch.grants(true);
        let overlays = &self.launch.policy.overlays;
        // What lies in the place of a layer that comes later is nobody's to write.
        let is_overlaid = |path: &PathBuf| overlays.iter().any(|overlay| overlay.at == *path);
        let plain: Vec<_> = grants.writable.iter().filter(|it| !is_overlaid(it)).cloned().collect();
        let before = Grants { writable: &plain, ..self.launch.grants(true) };
        let rules = self.rules_may_hold.then(|| Rules::for_grants(&before)).transpose()?;
        self.launch.filters(true)?.apply()?;
        let last = channel::receive_words(told, &[]).and_then(LateLaunchPlan::from_words);
        let Some(LateLaunchPlan { here, program, args, rules_hold, .. }) = last else {
            return Ok(NOT_BUILT);
        };
        mounts::enter_folder(&here)?;
        let rules = match rules {
            Some(rules) if rules_hold => rules.and_layers(overlays)?,
            _ => Rules::for_grants(&grants)?,
        };
        rules.apply()?;
        self.launch.execute(&program, &args, true)
    }
}
