//! Starting a command: which shell, with which environment, connected to what.
//!
//! No terminal is ever made: what a command would ask a person, it must not ask here.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    io::{self, ErrorKind},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    process::Stdio,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use gnoma_core::{ToolCx, tool::MachineView};
use gnoma_sandbox::{Policy, Scratch, SessionSandbox, Strength, Support, holds_temporary};
use tokio::{
    net::unix::pipe,
    process::{ChildStdin, Command},
};

use super::{
    git_hooks::{SkipReason, describe_skipped},
    policy::{self, held_to_reading, leave_out, looking_at_machine, narrow_policy},
    process::Process,
    reading_commands,
    spare::Spare,
    start_error::CommandStartError,
    stray_files::StrayFiles,
    survey::{Survey, SurveyLimits, SurveyMemory},
    unattended_environment::UnattendedEnvironment,
    writable::{FoundInWorkspace, refuse_if_led_away, with_own_temporary},
    write_limits::{Room, RoomWatch},
};
use crate::{ReadingPlaces, Sandbox, ToolOptions, Trials};

mod spares;
mod trial_start;

/// The shell that every Unix has.
const FALLBACK_SHELL: &str = "/bin/sh";

/// The note for the model about a job without the machine's network.
const UNREACHABLE: &str =
    "[it has no network: other programs and later commands do not reach its servers]";

/// Starts commands for the shell tools.
#[derive(Debug)]
pub(super) struct Shell {
    program: PathBuf,
    /// All variables of commands; `None` for those of this process with what is set and removed below.
    environment: Option<Vec<(OsString, OsString)>>,
    unattended: UnattendedEnvironment,
    hidden_variables: Vec<String>,
    sandbox: Sandbox,
    umask: Option<u32>,
    walls: OnceLock<BuiltSandbox>,
    /// The temporary files of a session whose trials keep none; `None` where no folder for them can be made.
    scratch: OnceLock<Option<Scratch>>,
    /// The launchers that wait for the next command: one for commands in their place, one for those on trial.
    spares: [Mutex<Option<Spare>>; 2],
    room: Arc<RoomWatch>,
    surveys: Mutex<SurveyMemory>,
    /// Of work trees around the workspace.
    outer_surveys: Mutex<SurveyMemory>,
    /// Of other places that a command names.
    machine_surveys: Mutex<SurveyMemory>,
}

/// The policy of a command on trial, before its layers exist.
#[derive(Debug)]
pub(super) struct TrialPolicy {
    policy: Policy,
    /// The folders besides the workspace that a command may write, for layers over them.
    pub(super) beside: Vec<PathBuf>,
}

impl TrialPolicy {
    /// The secret files that the command finds and cannot open.
    pub(super) fn sealed_files(&self) -> Vec<PathBuf> {
        self.policy.sealed.clone()
    }
}

/// The walls of a session, once they are needed.
#[derive(Debug)]
enum BuiltSandbox {
    /// The system offers none, and none are required.
    None,
    Walls(SessionSandbox),
    /// The sandbox is required, and this is too little.
    Refused(Strength),
}

impl Shell {
    /// The shell of these options.
    pub(super) fn new(options: &ToolOptions) -> Self {
        let environment = options.environment.as_ref();
        let unattended = UnattendedEnvironment::new(environment.unwrap_or(&BTreeMap::new()));
        let hidden = &options.hidden_variables;
        let variable = |(name, value): (String, String)| {
            let is_removed = unattended.removed.contains(&&*name) || hidden.contains(&name);
            (!is_removed).then(|| (name.into(), value.into()))
        };
        let variables = environment.map(|inherited| {
            let mut all = inherited.clone();
            all.extend(unattended.set.iter().cloned());
            all.into_iter().filter_map(variable).collect()
        });
        Self {
            program: options.shell.clone(),
            environment: variables,
            hidden_variables: hidden.clone(),
            unattended,
            sandbox: options.sandbox.clone(),
            umask: options.umask,
            walls: OnceLock::new(),
            scratch: OnceLock::new(),
            spares: Default::default(),
            room: Arc::default(),
            surveys: Mutex::new(SurveyMemory::with_rules(options.rules.clone())),
            outer_surveys: Mutex::new(SurveyMemory::with_rules(options.rules.clone())),
            machine_surveys: Mutex::new(SurveyMemory::with_rules(options.rules.clone())),
        }
    }

    /// Describes the hooks of git that a command did not run in a project that is not trusted; empty for none.
    pub(super) fn describe_skipped_hooks(&self, command: &str, cx: &ToolCx) -> String {
        let Sandbox::Walled { policy, repositories, .. } = &self.sandbox else {
            return String::new();
        };
        let reason = match (policy.git_hardening, cx.grant.writes_tree) {
            _ if cx.grant.reads_only || !self.is_walled(cx) => return String::new(),
            (true, _) => SkipReason::Untrusted,
            (false, true) => SkipReason::WritesTree,
            (false, false) => return String::new(),
        };
        let hooks = || repositories.hook_names(&cx.cwd);
        describe_skipped(command, reason, hooks).unwrap_or_default()
    }

    /// Reports whether a command with these rights runs in the sandbox.
    pub(super) fn is_walled(&self, cx: &ToolCx) -> bool {
        !cx.grant.outside && matches!(self.init_sandbox(), BuiltSandbox::Walls(_))
    }

    /// Returns the note about a job that has a network of its own; empty if it has that of the machine, or only reads.
    pub(super) fn describe_reach(&self, cx: &ToolCx) -> &'static str {
        let has_network = match &self.sandbox {
            Sandbox::Walled { policy, network_on_grant, .. } => {
                policy::has_network(policy, *network_on_grant, cx)
            }
            Sandbox::Off => true,
        };
        if has_network || cx.grant.reads_only || !self.is_walled(cx) { "" } else { UNREACHABLE }
    }

    /// The folders of the session in which a command may write without anybody being asked.
    pub(super) fn session_room(&self, cx: &ToolCx) -> Room {
        let is_used = cx.grant.reads_only || cx.grant.trial.is_some() || self.has_own_temporary();
        let own = match &self.sandbox {
            Sandbox::Walled { reading, .. } if is_used && self.is_walled(cx) => {
                self.scratch_folder(reading)
            }
            Sandbox::Walled { .. } | Sandbox::Off => None,
        };
        Room::new(Arc::clone(&self.room), own.map(Path::to_path_buf).into_iter().collect())
    }

    /// Reports whether commands of every kind find temporary files of the session.
    fn has_own_temporary(&self) -> bool {
        matches!(&self.sandbox, Sandbox::Walled { trials: Some(trials), .. } if trials.replaces_temporary())
    }

    /// Returns the trials of commands, where they are wanted.
    pub(super) fn trials(&self) -> Option<Arc<Trials>> {
        match &self.sandbox {
            Sandbox::Walled { trials, .. } => trials.clone(),
            Sandbox::Off => None,
        }
    }

    fn init_sandbox(&self) -> &BuiltSandbox {
        self.walls.get_or_init(|| match &self.sandbox {
            Sandbox::Off => BuiltSandbox::None,
            Sandbox::Walled { launcher, required, .. } => {
                let support = Support::detect();
                match support.strength {
                    Strength::Full => BuiltSandbox::Walls(self.build_sandbox(launcher, &support)),
                    weak if *required => BuiltSandbox::Refused(weak),
                    Strength::Partial => {
                        BuiltSandbox::Walls(self.build_sandbox(launcher, &support))
                    }
                    Strength::None => BuiltSandbox::None,
                }
            }
        })
    }

    fn build_sandbox(&self, launcher: &Path, support: &Support) -> SessionSandbox {
        let walls = SessionSandbox::new(launcher.to_owned(), support);
        let is_required = matches!(self.sandbox, Sandbox::Walled { required: true, .. });
        let walls = if is_required { walls.requiring_namespaces() } else { walls };
        match &self.environment {
            Some(variables) => walls.with_environment(variables.clone()),
            None => walls,
        }
    }

    /// Reports whether a command that only reads can be run without these files of the workspace.
    pub(super) fn can_leave_out(&self, absent: &[PathBuf], roots: &[PathBuf]) -> bool {
        let has_layers = self.trials().is_some_and(|trials| trials.unavailable_reason().is_none());
        has_layers && policy::can_leave_out(absent, roots)
    }

    /// Starts a command that cannot read anything. Where it only reads, it does not find what is `absent`.
    ///
    /// # Errors
    /// The sandbox is too weak, a granted place leads elsewhere, or the system refused.
    pub(super) fn start_command(
        &self,
        command: &str,
        cx: &ToolCx,
        absent: &[PathBuf],
    ) -> Result<(Process, StrayFiles), CommandStartError> {
        let Some((walls, mut policy)) = self.walled_as_judged(cx)? else {
            let (process, _) = self.launch_shell(command, cx, None, Stdio::null)?;
            return Ok((process, StrayFiles::default()));
        };
        let strays = StrayFiles::take_absent(&mut policy, &cx.roots);
        let process = if absent.is_empty() {
            self.start_readily(walls, command, cx, &policy)
        } else {
            leave_out(&mut policy, absent, &cx.roots);
            self.start_now(walls, command, cx, &policy)
        };
        Ok((process?, strays))
    }

    /// Returns the note about build output that a command names and that is in the layer for trials alone; empty if
    /// there is none, and for commands that read, which find it.
    pub(super) fn describe_unseen_builds(&self, command: &str, cx: &ToolCx) -> String {
        let built = self.trials().filter(|_| !cx.grant.reads_only);
        let mut built = built.map(|trials| trials.built_paths()).unwrap_or_default();
        built.retain(|path| reading_commands::leads_into(command, path, &cx.cwd));
        if built.is_empty() {
            return String::new();
        }
        gnoma_core::sort::sort_items(&mut built);
        format!(
            "[this ran in the workspace, which does not have what was built on trial ({}): build it in the same command if it is needed]",
            reading_commands::describe_paths(&built, &cx.roots)
        )
    }

    /// Has whoever stands ready run the command, and somebody else get ready meanwhile.
    fn start_readily(
        &self,
        walls: &SessionSandbox,
        command: &str,
        cx: &ToolCx,
        policy: &Policy,
    ) -> Result<Process, CommandStartError> {
        let started = self.run_by_spare(walls, command, cx, policy);
        let started = started.map_or_else(|| self.start_now(walls, command, cx, policy), Ok);
        self.keep_spare(walls, policy);
        started
    }

    /// Starts a command by a launcher of its own, which tells of it like one that stood ready.
    fn start_now(
        &self,
        walls: &SessionSandbox,
        command: &str,
        cx: &ToolCx,
        policy: &Policy,
    ) -> Result<Process, CommandStartError> {
        let launcher = if cx.cwd.is_dir() { self.launcher_in_waiting(walls, policy) } else { None };
        let started =
            launcher.and_then(|spare| self.run_with_spare(spare, walls, command, cx, policy));
        started.map_or_else(
            || self.launch_shell(command, cx, Some((walls, policy)), Stdio::null).map(|(it, _)| it),
            Ok,
        )
    }

    /// Starts a command that reads what is written to the returned end of a pipe.
    ///
    /// # Errors
    /// The sandbox is too weak, a granted place leads elsewhere, or the system refused.
    pub(super) fn start_with_input(
        &self,
        command: &str,
        cx: &ToolCx,
    ) -> Result<(Process, Option<ChildStdin>), CommandStartError> {
        let mut walled = self.walled_as_judged(cx)?;
        if let Some((_, policy)) = &mut walled {
            // To hold an absent name, a placeholder would stand in the workspace as long as the job runs.
            policy.protected.retain(|path| path.symlink_metadata().is_ok());
        }
        let walled = walled.as_ref().map(|(walls, policy)| (*walls, policy));
        self.launch_shell(command, cx, walled, Stdio::piped)
    }

    /// The walls around a command and its policy, unless it would find something else than what was judged.
    fn walled_as_judged(
        &self,
        cx: &ToolCx,
    ) -> Result<Option<(&SessionSandbox, Policy)>, CommandStartError> {
        refuse_if_led_away(cx)?;
        let walled = self.sandbox_and_policy(cx)?;
        let with_span = |policy| Policy { traceparent: cx.traceparent.clone(), ..policy };
        Ok(walled.map(|(walls, policy)| (walls, with_span(policy))))
    }

    /// The walls around a command and its policy, if there are any.
    fn sandbox_and_policy(
        &self,
        cx: &ToolCx,
    ) -> Result<Option<(&SessionSandbox, Policy)>, CommandStartError> {
        match (&self.sandbox, self.init_sandbox()) {
            _ if cx.grant.outside => Ok(None),
            (_, BuiltSandbox::Refused(weak)) => Err(CommandStartError::WeakSandbox(*weak)),
            (Sandbox::Walled { policy, reading, trials, .. }, BuiltSandbox::Walls(walls))
                if cx.grant.reads_only =>
            {
                let (scratch, found) =
                    (self.temporary_folder(cx, reading), self.survey_workspace(cx));
                let held = held_to_reading(policy, cx, reading, scratch, found);
                if cx.grant.machine == MachineView::Shown && policy::can_show_machine() {
                    return Ok(Some((walls, looking_at_machine(held))));
                }
                let overlays =
                    trials.as_ref().map(|trials| trials.workspace_views()).unwrap_or_default();
                // Where it may make a socket, it finds nothing to connect to, as on trial.
                let local_sockets = cx.grant.machine == MachineView::Absent;
                Ok(Some((walls, Policy { overlays, local_sockets, ..held })))
            }
            (
                Sandbox::Walled { policy, network_on_grant, too_wide, trials, .. },
                BuiltSandbox::Walls(walls),
            ) => {
                let narrowed = narrow_policy(
                    policy,
                    cx,
                    *network_on_grant,
                    too_wide,
                    self.survey_workspace(cx),
                );
                let own = trials.as_ref().filter(|_| self.has_own_temporary());
                let scratch = own.and_then(|trials| trials.scratch_folder());
                let narrowed = with_own_temporary(narrowed, cx, scratch);
                Ok(Some((walls, Policy { umask: self.umask, ..narrowed })))
            }
            (Sandbox::Off | Sandbox::Walled { .. }, BuiltSandbox::None)
            | (Sandbox::Off, BuiltSandbox::Walls(_)) => Ok(None),
        }
    }

    /// Looks over the workspace, the work trees around it, and what else the command may read.
    fn survey_workspace(&self, cx: &ToolCx) -> FoundInWorkspace {
        let repositories = match &self.sandbox {
            Sandbox::Walled { repositories, .. } => repositories.find_repositories(&cx.roots),
            Sandbox::Off => Vec::new(),
        };
        let trees = repositories.iter().filter_map(|found| found.work_tree.clone()).collect();
        let named = self.off_the_list(cx).cloned().collect();
        let looks: [(Vec<PathBuf>, _, SurveyLimits); 3] = [
            (cx.roots.to_vec(), &self.surveys, SurveyLimits::WORKSPACE),
            (trees, &self.outer_surveys, SurveyLimits::WORKSPACE),
            (named, &self.machine_surveys, SurveyLimits::MACHINE),
        ];
        let mut survey = Survey::default();
        for (roots, memory, limits) in looks.iter().filter(|(roots, ..)| !roots.is_empty()) {
            let mut memory = memory.lock().unwrap_or_else(PoisonError::into_inner);
            let found = Survey::with_limits(*limits, roots, &mut memory);
            survey.held.extend(found.held);
            survey.secrets.extend(found.secrets);
        }
        FoundInWorkspace { survey, repositories }
    }

    /// Returns the paths that anybody may read and that are not among the places which each command finds.
    fn off_the_list<'a>(&'a self, cx: &'a ToolCx) -> impl Iterator<Item = &'a PathBuf> {
        let listed: &[PathBuf] = match &self.sandbox {
            Sandbox::Walled { reading, .. } => &reading.shown,
            Sandbox::Off => &[],
        };
        let is_listed = |path: &PathBuf| listed.iter().any(|place| path.starts_with(place));
        cx.grant.readable_by_all.iter().filter(move |path| !is_listed(path))
    }

    /// The session's temporary files, where a command finds them in place of the machine's.
    fn temporary_folder(&self, cx: &ToolCx, reading: &ReadingPlaces) -> Option<&Path> {
        self.scratch_folder(reading).filter(|_| !holds_temporary(&cx.roots))
    }

    fn scratch_folder(&self, reading: &ReadingPlaces) -> Option<&Path> {
        let trials = match &self.sandbox {
            Sandbox::Walled { trials, .. } => trials.as_ref(),
            Sandbox::Off => None,
        };
        if let Some(folder) = trials.and_then(|trials| trials.scratch_folder()) {
            return Some(folder);
        }
        let made = || reading.scratch.create_scratch().ok();
        self.scratch.get_or_init(made).as_ref().map(Scratch::folder)
    }

    fn launch_shell(
        &self,
        command: &str,
        cx: &ToolCx,
        walled: Option<(&SessionSandbox, &Policy)>,
        stdin: fn() -> Stdio,
    ) -> Result<(Process, Option<ChildStdin>), CommandStartError> {
        let run =
            |shell| self.spawn_shell(self.build_invocation(shell, command, walled), cx, stdin());
        let started = match run(&self.program) {
            Err(error) if error.kind() == ErrorKind::NotFound && cx.cwd.is_dir() => {
                run(Path::new(FALLBACK_SHELL))
            }
            started => started,
        };
        started.map_err(|error| CommandStartError::from_io(error, &cx.cwd))
    }

    /// The shell with its command, behind walls if there are any.
    fn build_invocation(
        &self,
        shell: &Path,
        command: &str,
        walled: Option<(&SessionSandbox, &Policy)>,
    ) -> Command {
        if let Some((walls, policy)) = walled {
            let mut launcher: Command =
                walls.command(installed_shell(shell), ["-c", command], policy).into();
            // It leaves the terminal itself.
            launcher.process_group(0);
            return launcher;
        }
        let mut plain = Command::new(shell);
        plain.arg("-c").arg(command);
        if let Some(variables) = &self.environment {
            plain.env_clear().envs(variables.iter().cloned());
        }
        gnoma_sandbox::leave_terminal(plain.as_std_mut());
        if let Some(umask) = self.umask {
            gnoma_sandbox::set_umask(plain.as_std_mut(), umask);
        }
        plain
    }

    fn spawn_shell(
        &self,
        mut shell: Command,
        cx: &ToolCx,
        stdin: Stdio,
    ) -> io::Result<(Process, Option<ChildStdin>)> {
        let output = self.connect_output(&mut shell)?;
        if let Some(span) = &cx.traceparent {
            shell.env("TRACEPARENT", span);
        }
        let mut child = shell.current_dir(&*cx.cwd).stdin(stdin).spawn()?;
        let input = child.stdin.take();
        Ok((Process::new(child, output), input))
    }

    /// Gives a program somewhere to write, and the environment if it has none yet.
    fn connect_output(&self, program: &mut Command) -> io::Result<pipe::Receiver> {
        // One pipe for both outputs keeps them in the order they were written.
        let (reader, writer) = io::pipe()?;
        let output = pipe::Receiver::from_owned_fd(OwnedFd::from(reader))?;
        program.stdout(writer.try_clone()?).stderr(writer);
        if self.environment.is_some() {
            return Ok(output);
        }
        let UnattendedEnvironment { set, removed } = &self.unattended;
        program.envs(set.iter().map(|(name, value)| (name, value)));
        let hidden = self.hidden_variables.iter().map(String::as_str);
        for name in hidden.chain(removed.iter().copied()) {
            program.env_remove(name);
        }
        Ok(output)
    }
}

/// The shell, or the one that every Unix has: behind walls a missing one would show too late to try
/// another. A bare name is searched for by whoever starts it.
fn installed_shell(shell: &Path) -> &Path {
    let is_installed = shell.components().count() == 1 || shell.is_file();
    if is_installed { shell } else { Path::new(FALLBACK_SHELL) }
}
