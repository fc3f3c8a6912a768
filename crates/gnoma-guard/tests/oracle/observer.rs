//! Runs commands in views of the machine and says what each really did: files, code of the project, shells
//! that a program started, secrets shown, connections tried, processes killed.
//!
//! One observer is a process of its own in fresh name spaces. A view is used until something is left in it.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Write},
    os::unix::process::{CommandExt, ExitStatusExt},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{
        Pid, PidfdFlags, Resource, Rlimit, Signal, WaitOptions, kill_process, pidfd_open,
        setrlimit, wait,
    },
    thread::{
        CapabilitySet, CapabilitySets, remove_capability_from_bounding_set, set_capabilities,
        set_no_new_privs,
    },
};
use serde::{Deserialize, Serialize};

use crate::{canary, view::View};

/// Where commands start.
pub(crate) const PROJECT: &str = "/home/dev/proj";
/// Word that makes this program an observer.
pub(crate) const KEEPER: &str = "--observer";
/// Word that makes it start a command in a view.
pub(crate) const STARTER: &str = "--observed";
/// An extra layer with programs, below the fixture.
const TOOLS: &str = "GNOMA_ORACLE_TOOLS";
/// Longest a command may run.
const MOST_TIME: Duration = Duration::from_secs(1);
/// Most of an output that is looked at.
const MOST_OUTPUT: usize = 1 << 20;
/// Most of an output that is told.
const MOST_SHOWN: usize = 600;
/// Largest file a command may write, and most bytes of a core dump.
const MOST_FILE_BYTES: u64 = 16 << 20;
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Where the observer keeps its own; a file system in memory that only it sees.
const STAGE: &str = "/run";

/// One effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Found {
    pub(crate) kind: String,
    pub(crate) what: String,
}

impl Found {
    pub(crate) fn new(kind: &str, what: &str) -> Self {
        Self { kind: kind.to_owned(), what: what.to_owned() }
    }
}

/// What a command did.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Observation {
    pub(crate) effects: Vec<Found>,
    pub(crate) exit: Option<i32>,
    /// The beginning of what it printed.
    pub(crate) output: String,
}

/// An observer that was started.
pub(crate) struct Observer {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Observer {
    /// Starts one; an error says what this machine lacks.
    pub(crate) fn start() -> Result<Self, String> {
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut child = Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount", "--pid", "--net", "--ipc", "--uts"])
            .args(["--fork", "--kill-child", "--mount-proc"])
            .arg(own)
            .arg(KEEPER)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("`unshare` cannot be run: {error}"))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("it has no pipes".to_owned());
        };
        let mut observer = Self { child, input, output: BufReader::new(output) };
        let mut line = String::new();
        let _read = observer.output.read_line(&mut line);
        if line.trim() == "ready" {
            Ok(observer)
        } else {
            Err(format!("name spaces or overlays are missing: {}", line.trim()))
        }
    }

    /// Runs a command and says what it did.
    pub(crate) fn observe(&mut self, command: &str) -> Observation {
        let line = serde_json::to_string(command).unwrap();
        writeln!(self.input, "{line}").unwrap();
        let mut answer = String::new();
        self.output.read_line(&mut answer).unwrap();
        serde_json::from_str(&answer)
            .unwrap_or_else(|_| panic!("the observer ended at `{command}`"))
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _waited = self.child.wait();
    }
}

/// The observer's own process: commands in, observations out, a JSON line each.
pub(crate) fn keep() {
    let mut keeper = match Keeper::new() {
        Ok(keeper) => keeper,
        Err(error) => return println!("{error}"),
    };
    println!("ready");
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let command: String = serde_json::from_str(&line).unwrap();
        let observation = keeper.observe(&command).unwrap();
        println!("{}", serde_json::to_string(&observation).unwrap());
    }
}

struct Keeper {
    own: PathBuf,
    lower: Vec<PathBuf>,
    view: Option<View>,
    views: usize,
    decoy: Child,
    sent: u64,
}

impl Keeper {
    fn new() -> std::io::Result<Self> {
        let own = std::env::current_exe()?;
        rustix::mount::mount(
            "stage",
            STAGE,
            "tmpfs",
            rustix::mount::MountFlags::NOSUID,
            c"size=512m,mode=755",
        )?;
        let fixture = Path::new(STAGE).join("fixture");
        let built = Command::new("bash")
            .arg("-c")
            .arg(include_str!("fixture.sh"))
            .env("ROOT", &fixture)
            .env("CANARIES", canary::table())
            .stdout(Stdio::null())
            .output()?;
        if !built.status.success() {
            return Err(std::io::Error::other(String::from_utf8_lossy(&built.stderr).into_owned()));
        }
        let mut lower = vec![fixture];
        lower.extend(std::env::var_os(TOOLS).map(PathBuf::from));
        lower.push(PathBuf::from("/"));
        // Every address is this machine: what is sent is counted and goes nowhere.
        for words in [
            "link set lo up",
            "route add local default dev lo",
            "-6 route add local default dev lo",
        ] {
            let _done = Command::new("ip").args(words.split(' ')).stderr(Stdio::null()).status();
        }
        let decoy = decoy()?;
        let mut keeper = Self { own, lower, view: None, views: 0, decoy, sent: sent() };
        keeper.view()?;
        Ok(keeper)
    }

    fn view(&mut self) -> std::io::Result<&View> {
        if self.view.is_none() {
            self.views += 1;
            let base = Path::new(STAGE).join(format!("view-{}", self.views));
            self.view = Some(View::new(base, self.lower.clone())?);
        }
        Ok(self.view.as_ref().unwrap())
    }

    fn observe(&mut self, command: &str) -> std::io::Result<Observation> {
        let own = self.own.clone();
        let view = self.view()?;
        let printed = Path::new(STAGE).join("output");
        let output = File::create(&printed)?;
        let mut child = Command::new(own)
            .arg(STARTER)
            .arg(view.root())
            .arg(command)
            .env_clear()
            .envs([("HOME", "/home/dev"), ("USER", "dev"), ("LANG", "C.UTF-8"), ("TERM", "dumb")])
            .envs([("PATH", PATH), ("PWD", PROJECT), ("SHELL", "/bin/bash")])
            .envs(canary::VARIABLES.map(|name| (name, canary::token(name))))
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .process_group(0)
            .spawn()?;
        let exit = within(&mut child)?;
        let mut effects = Vec::new();
        if self.decoy.try_wait()?.is_some() {
            effects.push(Found::new("signalled", "a process"));
            self.decoy = decoy()?;
        }
        end_all(self.decoy.id());
        let mut text = fs::read(&printed)?;
        text.truncate(MOST_OUTPUT);
        effects
            .extend(canary::shown(&text).into_iter().map(|name| Found::new("showed_secret", name)));
        let sent = sent();
        if sent != self.sent {
            effects.push(Found::new("connect", "an address"));
            self.sent = sent;
        }
        if let Some(view) = self.view.take_if(|view| view.is_used()) {
            effects.extend(view.shells().lines().map(|text| Found::new("ran_shell", text)));
            effects.extend(view.changes());
        }
        text.truncate(MOST_SHOWN);
        let output = String::from_utf8_lossy(&text).into_owned();
        Ok(Observation { effects, exit, output })
    }
}

fn decoy() -> std::io::Result<Child> {
    Command::new("sleep").arg("100000").stdin(Stdio::null()).stdout(Stdio::null()).spawn()
}

/// Waits for the end of a command, or ends it. Its exit code, or that of the signal.
fn within(child: &mut Child) -> std::io::Result<Option<i32>> {
    let started = Instant::now();
    let pid = Pid::from_child(child);
    let handle = pidfd_open(pid, PidfdFlags::empty())?;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.code().or(status.signal().map(|signal| 128 + signal)));
        }
        let left = MOST_TIME.saturating_sub(started.elapsed());
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

/// Ends every process of the name space but this one and the decoy.
fn end_all(decoy: u32) {
    let others = || {
        let names = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = names.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        pids.filter(|pid| *pid > 1 && u32::try_from(*pid).ok() != Some(decoy)).collect::<Vec<_>>()
    };
    for _ in 0..100 {
        let others = others();
        if others.is_empty() {
            return;
        }
        for pid in others.into_iter().filter_map(Pid::from_raw) {
            let _ended = kill_process(pid, Signal::KILL);
            let _waited = rustix::process::waitpid(Some(pid), WaitOptions::NOHANG);
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    let _waited = wait(WaitOptions::NOHANG);
}

/// How much was sent to other machines, or tried.
fn sent() -> u64 {
    let counters = [("/proc/net/snmp", &["ActiveOpens", "OutDatagrams", "OutMsgs"][..])];
    let old: u64 = counters.iter().map(|(file, names)| counted(file, names)).sum();
    let new = fs::read_to_string("/proc/net/snmp6").unwrap_or_default();
    let of_six = new.lines().filter(|line| line.starts_with("Udp6OutDatagrams"));
    let six = of_six.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    old + six.sum::<u64>()
}

/// Sums counters of a table whose lines come in pairs: names, then figures.
fn counted(file: &str, wanted: &[&str]) -> u64 {
    let text = fs::read_to_string(file).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let of_pair = |pair: &[&str]| {
        let names = pair[0].split_whitespace();
        let figures = pair.get(1).copied().unwrap_or_default().split_whitespace();
        let found = names.zip(figures).filter(|(name, _)| wanted.contains(name));
        found.filter_map(|(_, figure)| figure.parse::<u64>().ok()).sum::<u64>()
    };
    lines.chunks(2).map(of_pair).sum()
}

/// Becomes the command, in the view and without the rights of this process.
pub(crate) fn become_command(root: &str, command: &str) {
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
    let error = Command::new("bash").arg("-c").arg(command).exec();
    eprintln!("bash: {error}");
}
