//! The process that starts commands in a view. It stays for all of them, as starting one more program for each would
//! take longer than most of the commands do.

use std::{
    fs::File,
    io::{BufRead, BufReader, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::{
            net::UnixStream,
            process::{CommandExt, ExitStatusExt},
        },
    },
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, Resource, Rlimit, pidfd_open, setrlimit},
    thread::{
        CapabilitySet, CapabilitySets, remove_capability_from_bounding_set, set_capabilities,
        set_no_new_privs,
    },
};

use crate::{
    canary,
    observer::{MACHINE, PROJECT, RUNNER},
};

/// Longest a command may run, in seconds: made at random, and of a list that another observer had, too.
const MOST_TIME: [u64; 2] = [1, 3];
/// Longest the process may take to say that a command has ended.
const MOST_WAIT: Duration = Duration::from_secs(60);
/// Largest file a command may write, and most bytes of a core dump.
const MOST_FILE_BYTES: u64 = 16 << 20;
/// More folders of programs, for a list that another observer had, too; and variables that they need.
const MORE_PATH: &str = "GNOMA_ORACLE_PATH";
const PASSED_ON: [&str; 2] = ["RUSTUP_HOME", "PYENV_ROOT"];
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// One such process, as the observer has it.
pub(crate) struct Runner {
    child: Child,
    commands: BufReader<UnixStream>,
}

impl Runner {
    /// Starts it in a view. What commands print is added to `output`.
    pub(crate) fn start(root: &Path, output: &File) -> std::io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_read_timeout(Some(MOST_WAIT))?;
        let seconds = MOST_TIME[usize::from(std::env::var_os(MACHINE).is_some())];
        let mut program = Command::new(std::env::current_exe()?);
        let child = program
            .args([RUNNER.as_ref(), root.as_os_str()])
            .arg(seconds.to_string())
            .env_clear()
            .envs(PASSED_ON.iter().filter_map(|name| Some((name, std::env::var_os(name)?))))
            .envs([("HOME", "/home/dev"), ("USER", "dev"), ("LANG", "C.UTF-8"), ("TERM", "dumb")])
            .envs([("PWD", PROJECT), ("SHELL", "/bin/bash")])
            .env(
                "PATH",
                std::env::var(MORE_PATH).map_or(PATH.to_owned(), |more| format!("{PATH}:{more}")),
            )
            .envs(canary::VARIABLES.map(|name| (name, canary::token(name))))
            .stdin(OwnedFd::from(theirs))
            .stdout(output.try_clone()?)
            .stderr(output.try_clone()?)
            .spawn()?;
        Ok(Self { child, commands: BufReader::new(ours) })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Runs a command: its exit code, or that of the signal, and none where it took too long. `None` where the command
    /// ended this process, too.
    pub(crate) fn run(&mut self, command: &str) -> Option<Option<i32>> {
        let line = serde_json::to_string(command).unwrap();
        let mut answer = String::new();
        writeln!(self.commands.get_mut(), "{line}").ok()?;
        self.commands.read_line(&mut answer).ok()?;
        serde_json::from_str(&answer).ok()
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _waited = self.child.wait();
    }
}

/// Is such a process: commands in, exit codes out, a JSON line each.
pub(crate) fn serve(root: &str, seconds: &str) {
    enter(root);
    let most = Duration::from_secs(seconds.parse().unwrap());
    let observer = std::io::stdin().as_fd().try_clone_to_owned().unwrap();
    let mut observer = BufReader::new(UnixStream::from(observer));
    let mut line = String::new();
    while observer.read_line(&mut line).is_ok_and(|read| read > 0) {
        let command: String = serde_json::from_str(&line).unwrap();
        let mut shell = Command::new("bash");
        shell.args(["-c", &command]).current_dir(PROJECT).stdin(Stdio::null()).process_group(0);
        let exit = within(&mut shell.spawn().unwrap(), most).unwrap();
        writeln!(observer.get_mut(), "{}", serde_json::to_string(&exit).unwrap()).unwrap();
        line.clear();
    }
}

/// Goes into the view and leaves the rights of an observer behind.
fn enter(root: &str) {
    std::os::unix::fs::chroot(root).unwrap();
    std::env::set_current_dir(PROJECT).unwrap();
    let limit = |most| Rlimit { current: Some(most), maximum: Some(most) };
    setrlimit(Resource::Fsize, limit(MOST_FILE_BYTES)).unwrap();
    setrlimit(Resource::Core, limit(0)).unwrap();
    set_no_new_privs(true).unwrap();
    for (_, capability) in CapabilitySet::all().iter_names() {
        let _dropped = remove_capability_from_bounding_set(capability);
    }
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
        .unwrap();
}

/// Waits for the end of a command, or ends it. Its exit code, or that of the signal.
fn within(child: &mut Child, most: Duration) -> std::io::Result<Option<i32>> {
    let started = Instant::now();
    let handle = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.code().or(status.signal().map(|signal| 128 + signal)));
        }
        let left = most.saturating_sub(started.elapsed());
        if left.is_zero() {
            let _ended = child.kill();
            child.wait()?;
            return Ok(None);
        }
        let left =
            Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
        let _woken = poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&left));
    }
}
