//! Builds the command that runs another one inside walls.

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    process::Command,
};

use crate::{environment::Variable, policy::Policy, support::Support};

/// The walls of one session. Dropped, it ends what it holds; commands that still run keep their
/// walls.
#[derive(Debug)]
pub struct SessionSandbox {
    /// The variables that commands get; `None` for those of this process.
    environment: Option<Vec<Variable>>,
    #[cfg(target_os = "linux")]
    linux: linux::SessionSandbox,
}

impl SessionSandbox {
    /// Walls whose commands get these variables in place of those of this process. What the
    /// policy scrubs they do not get.
    #[must_use]
    pub fn with_environment(self, variables: Vec<(OsString, OsString)>) -> Self {
        Self { environment: Some(variables), ..self }
    }

    /// Walls that run no command without namespaces where the machine seemed to permit them. Otherwise a command runs
    /// without them when the system refuses them at that moment.
    #[must_use]
    #[cfg_attr(not(target_os = "linux"), expect(unused_mut, reason = "only Linux has namespaces"))]
    pub fn requiring_namespaces(mut self) -> Self {
        #[cfg(target_os = "linux")]
        self.linux.require_namespaces();
        self
    }

    /// Gives a launcher what its command gets.
    #[cfg(target_os = "linux")]
    fn apply_environment(&self, mut launcher: Command) -> Command {
        if let Some(variables) = &self.environment {
            launcher.env_clear().envs(variables.iter().cloned());
        }
        launcher
    }
}

#[cfg(target_os = "linux")]
impl SessionSandbox {
    /// Walls that are built by `launcher`, a program which hands its arguments to
    /// [`crate::launcher::main`]. [`crate::launcher::ITSELF`] is the running program, even when its
    /// file has been replaced meanwhile.
    #[must_use]
    pub fn new(launcher: PathBuf, support: &Support) -> Self {
        Self {
            environment: None,
            linux: linux::SessionSandbox::new(launcher, support.has_namespaces()),
        }
    }

    /// The command `program args` inside walls. Where it runs, with which streams and variables, is
    /// set on the result as on any command. Give it a process group of its own: a signal to that
    /// group reaches all that the command has started, and killing the group ends it.
    ///
    /// The first call of a session starts an idle process that holds its namespaces, which takes a
    /// few milliseconds.
    #[must_use]
    pub fn command<A: AsRef<OsStr>>(
        &self,
        program: impl AsRef<OsStr>,
        args: impl IntoIterator<Item = A>,
        policy: &Policy,
    ) -> Command {
        let args = args.into_iter().map(|arg| arg.as_ref().to_owned());
        self.apply_environment(self.linux.command(program.as_ref().to_owned(), args, policy))
    }

    /// A command that gets ready for one like those under `policy` and waits to be told which by
    /// [`encode_order`](Self::encode_order) on its standard input; from then on it is that command. It ends when its
    /// input does. Its streams, variables and process group are set on the result as on any command.
    /// Where its input is a socket, and nothing of the command is left but mounts, it writes there how the
    /// command ended ([`ending`](crate::ending)) before it ends itself.
    /// A guess that proves wrong costs time and nothing else. `None` where there is nothing to get
    /// ready.
    #[must_use]
    pub fn spare_command(&self, policy: &Policy) -> Option<Command> {
        self.linux.spare_command(policy).map(|launcher| self.apply_environment(launcher))
    }

    /// Returns the message to write to a [`spare_command`](Self::spare_command): the command `program args` in the folder `here`.
    /// `None` if the command cannot be passed in that way; [`command`](Self::command) says why.
    #[must_use]
    pub fn encode_order<A: AsRef<OsStr>>(
        &self,
        program: impl AsRef<OsStr>,
        args: impl IntoIterator<Item = A>,
        here: &Path,
        policy: &Policy,
    ) -> Option<Vec<u8>> {
        let args = args.into_iter().map(|arg| arg.as_ref().to_owned());
        self.linux.encode_order(program.as_ref().to_owned(), args, here, policy)
    }

    /// A descriptor of the folder that a command would find at the overlay's place. It works without
    /// namespaces or rights: what is opened from it by relative paths is read, and written into the
    /// layer, and it lasts as long as it is held. For tools that work in this process.
    ///
    /// # Errors
    /// The launcher could not be started, or handed over none.
    pub fn open_view(
        &self,
        overlay: &crate::policy::Overlay,
    ) -> Result<std::os::fd::OwnedFd, crate::DescriptorError> {
        self.linux.open_view(overlay)
    }

    /// A descriptor of an empty folder in memory, which is gone once nobody holds it. No path of the machine
    /// leads there.
    pub(crate) fn open_memory_folder(
        &self,
    ) -> Result<std::os::fd::OwnedFd, crate::DescriptorError> {
        self.linux.open_memory_folder()
    }

    /// Returns the reason why namespaces are not used although the machine seemed to permit them. It is known after
    /// the first command.
    #[must_use]
    pub fn namespace_failure(&self) -> Option<String> {
        self.linux.namespace_failure()
    }
}

#[cfg(not(target_os = "linux"))]
impl SessionSandbox {
    /// Walls need no launcher here.
    #[must_use]
    pub fn new(_launcher: PathBuf, _support: &Support) -> Self {
        Self { environment: None }
    }

    /// The command `program args` inside walls. Variables are scrubbed by the caller's `env_remove`.
    #[must_use]
    pub fn command<A: AsRef<OsStr>>(
        &self,
        program: impl AsRef<OsStr>,
        args: impl IntoIterator<Item = A>,
        policy: &Policy,
    ) -> Command {
        let mut command = Command::new(crate::seatbelt::PROGRAM);
        let profile: OsString = crate::seatbelt::profile(policy).into();
        command.arg("-p").arg(profile).arg(program).args(args);
        let variables = self.environment.clone().unwrap_or_else(|| std::env::vars_os().collect());
        let mut variables = crate::environment::build_command_environment(
            variables.into_iter(),
            &policy.scrub,
            crate::environment::GitHardening::for_policy(policy),
        );
        crate::environment::set_span(&mut variables, policy);
        command.env_clear().envs(variables);
        if let Some(umask) = policy.umask {
            crate::set_umask(&mut command, umask);
        }
        command
    }

    /// There is nothing to get ready here.
    #[must_use]
    pub fn spare_command(&self, _policy: &Policy) -> Option<Command> {
        None
    }

    /// There is nobody to tell.
    #[must_use]
    pub fn encode_order<A: AsRef<OsStr>>(
        &self,
        _program: impl AsRef<OsStr>,
        _args: impl IntoIterator<Item = A>,
        _here: &Path,
        _policy: &Policy,
    ) -> Option<Vec<u8>> {
        None
    }

    /// Returns `None`: on this platform no weakness is found after the start.
    #[must_use]
    pub fn namespace_failure(&self) -> Option<String> {
        None
    }
}

#[cfg(target_os = "linux")]
mod linux {
    //! The holder of the session's namespaces, started when the first command needs it.

    use std::{
        io::{self, BufRead, BufReader, Read},
        os::{fd::OwnedFd, unix::net::UnixStream},
        process::{Child, ChildStdin, Stdio},
        sync::{Mutex, MutexGuard, PoisonError},
    };

    use super::{Command, OsString, Path, PathBuf, Policy};
    use crate::{
        error::{DescriptorError, HolderError},
        linux::{
            launcher::{AWAIT_COMMAND, HOLD_SESSION, OPEN_MEMORY, OPEN_VIEW, RUN_COMMAND},
            session::READY,
            view,
        },
        plan::{LaunchPlan, MISSING_SESSION},
        policy::Overlay,
        word_codec,
    };

    /// The number of times that a killed holder is replaced.
    const MAX_HOLDERS: u32 = 8;

    #[derive(Debug)]
    pub(super) struct SessionSandbox {
        launcher: PathBuf,
        holder: Mutex<Holder>,
        /// Without namespaces no command runs, if any are wanted.
        is_required: bool,
    }

    #[derive(Debug)]
    enum Holder {
        /// None is wanted: the machine has no namespaces.
        Unwanted,
        /// Not needed yet, or ended; so many were started before.
        Absent(u32),
        /// The holder process runs.
        Running { child: Child, lifeline: ChildStdin, number: u32 },
        /// The holder process could not be started, for this reason.
        Failed(HolderError),
    }

    impl SessionSandbox {
        pub(super) fn new(launcher: PathBuf, namespaces: bool) -> Self {
            let holder = if namespaces { Holder::Absent(0) } else { Holder::Unwanted };
            Self { launcher, holder: Mutex::new(holder), is_required: false }
        }

        pub(super) fn require_namespaces(&mut self) {
            self.is_required = true;
        }

        pub(super) fn command(
            &self,
            program: OsString,
            args: impl Iterator<Item = OsString>,
            policy: &Policy,
        ) -> Command {
            let plan = self.launch_plan(policy);
            let mut command = Command::new(&self.launcher);
            command.arg(RUN_COMMAND).args(plan.to_args()).arg(program).args(args);
            command
        }

        pub(super) fn spare_command(&self, policy: &Policy) -> Option<Command> {
            let plan = self.launch_plan(policy);
            plan.session?;
            let mut command = Command::new(&self.launcher);
            command.arg(AWAIT_COMMAND).args(plan.to_args());
            Some(command)
        }

        pub(super) fn encode_order(
            &self,
            program: OsString,
            args: impl Iterator<Item = OsString>,
            here: &Path,
            policy: &Policy,
        ) -> Option<Vec<u8>> {
            let plan = self.launch_plan(policy);
            plan.session?;
            let mut list = plan.to_args();
            list.extend([here.as_os_str().to_owned(), program]);
            list.extend(args);
            // No program can be given such a word.
            let is_word = |word: &OsString| !word.as_encoded_bytes().contains(&0);
            word_codec::pack_words(list.iter().all(is_word).then_some(list)?)
        }

        pub(super) fn open_view(&self, overlay: &Overlay) -> Result<OwnedFd, DescriptorError> {
            let policy = Policy { overlays: vec![overlay.clone()], ..Policy::default() };
            self.request_descriptor(OPEN_VIEW, &policy, "open a view")
        }

        pub(super) fn open_memory_folder(&self) -> Result<OwnedFd, DescriptorError> {
            self.request_descriptor(OPEN_MEMORY, &Policy::default(), "make a folder in memory")
        }

        /// Returns the descriptor that a launcher hands over on request. `step` names it in an error.
        fn request_descriptor(
            &self,
            request: &str,
            policy: &Policy,
            step: &'static str,
        ) -> Result<OwnedFd, DescriptorError> {
            let plan = self.launch_plan(policy);
            let failed = |error: io::Error| DescriptorError::Io { step, error };
            let (ours, theirs) = UnixStream::pair().map_err(failed)?;
            let launched = Command::new(&self.launcher)
                .arg(request)
                .args(plan.to_args())
                .stdin(OwnedFd::from(theirs))
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .env_clear()
                .current_dir("/")
                .spawn();
            let mut launched = launched.map_err(failed)?;
            let received = view::receive_mount(&ours);
            let mut said = String::new();
            if let Some(mut errors) = launched.stderr.take() {
                errors.read_to_string(&mut said).map_err(failed)?;
            }
            launched.wait().map_err(failed)?;
            let message = said.trim();
            received.ok_or_else(|| DescriptorError::Refused { step, message: message.to_owned() })
        }

        fn launch_plan(&self, policy: &Policy) -> LaunchPlan {
            // What looks at the machine has none of the session's namespaces.
            let session = if policy.shows_machine { None } else { self.ensure_session() };
            LaunchPlan { owner: std::process::id(), session, policy: policy.clone() }
        }

        pub(super) fn namespace_failure(&self) -> Option<String> {
            match &*self.lock_holder() {
                Holder::Failed(why) => Some(why.to_string()),
                Holder::Unwanted | Holder::Absent(_) | Holder::Running { .. } => None,
            }
        }

        /// The process that holds the namespaces, started when it does not run.
        fn ensure_session(&self) -> Option<u32> {
            let mut holder = self.lock_holder();
            if let Holder::Running { child, number, .. } = &mut *holder
                && !matches!(child.try_wait(), Ok(None))
            {
                *holder = Holder::Absent(*number);
            }
            let next = match &*holder {
                Holder::Absent(number) => Some(number + 1),
                // What the system refused a moment ago it may grant now.
                Holder::Failed(HolderError::Refused(_) | HolderError::Io(_)) => Some(MAX_HOLDERS),
                Holder::Unwanted
                | Holder::Running { .. }
                | Holder::Failed(HolderError::KilledRepeatedly) => None,
            };
            if let Some(number) = next {
                *holder = start_holder(&self.launcher, number).unwrap_or_else(Holder::Failed);
            }
            match &*holder {
                Holder::Running { child, .. } => Some(child.id()),
                Holder::Failed(_) if self.is_required => Some(MISSING_SESSION),
                Holder::Unwanted | Holder::Absent(_) | Holder::Failed(_) => None,
            }
        }

        /// A panic elsewhere leaves the holder as sound as it was.
        fn lock_holder(&self) -> MutexGuard<'_, Holder> {
            self.holder.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }

    impl Drop for SessionSandbox {
        fn drop(&mut self) {
            let holder = std::mem::replace(&mut *self.lock_holder(), Holder::Unwanted);
            if let Holder::Running { mut child, lifeline, .. } = holder {
                drop(lifeline);
                child.wait().ok();
            }
        }
    }

    fn start_holder(launcher: &PathBuf, number: u32) -> Result<Holder, HolderError> {
        if number > MAX_HOLDERS {
            return Err(HolderError::KilledRepeatedly);
        }
        let mut child = Command::new(launcher)
            .arg(HOLD_SESSION)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .env_clear()
            .current_dir("/")
            .spawn()
            .map_err(HolderError::Io)?;
        let mut answer = Vec::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_until(b'\n', &mut answer).map_err(HolderError::Io)?;
        }
        match child.stdin.take() {
            Some(lifeline) if answer == READY => Ok(Holder::Running { child, lifeline, number }),
            _ => {
                child.kill().and_then(|()| child.wait()).map_err(HolderError::Io)?;
                Err(HolderError::Refused(String::from_utf8_lossy(&answer).trim().to_owned()))
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn refused_namespaces_are_tried_again_and_missing_if_they_are_required() {
            // It answers nothing and ends.
            let mut sandbox = SessionSandbox::new("/bin/true".into(), true);
            let session =
                |sandbox: &SessionSandbox| sandbox.launch_plan(&Policy::default()).session;
            assert_eq!(session(&sandbox), None);
            assert!(sandbox.namespace_failure().is_some());
            sandbox.require_namespaces();
            assert_eq!(session(&sandbox), Some(MISSING_SESSION));
            *sandbox.lock_holder() = Holder::Failed(HolderError::KilledRepeatedly);
            assert_eq!(session(&sandbox), Some(MISSING_SESSION));
            assert_eq!(session(&SessionSandbox::new("/bin/true".into(), false)), None);
        }
    }
}
