//! Runs commands in views of the machine and says what each really did: files, code of the project, shells
//! that a program started, secrets shown, connections tried, processes killed.
//!
//! One observer is a process of its own in fresh name spaces, with a view that is renewed when something is left in it.

use std::{
    fs::{self, File, OpenOptions},
    io::{BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait};
use serde::{Deserialize, Serialize};

use crate::{canary, runner::Runner, view::View};

/// Where commands start.
pub(crate) const PROJECT: &str = "/home/dev/proj";
/// Word that makes this program an observer.
pub(crate) const KEEPER: &str = "--observer";
/// Word that makes it start the commands of a view.
pub(crate) const RUNNER: &str = "--runner";
/// An extra layer with programs, below the fixture.
const TOOLS: &str = "GNOMA_ORACLE_TOOLS";
/// A folder with other files than those of the fixture.
pub(crate) const MACHINE: &str = "GNOMA_ORACLE_MACHINE";
/// Programs that wait to be ended, by the names that commands look for.
const DECOYS: [&str; 2] = ["x", "node"];
/// How long what a command leaves behind may take to end by itself.
const GRACE: Duration = Duration::from_millis(100);
/// Most of an output that is looked at.
const MOST_OUTPUT: u64 = 1 << 20;
/// Most of an output that is told.
const MOST_SHOWN: usize = 600;
/// Where the observer keeps its own; a file system in memory that only it sees.
const STAGE: &str = "/run";
/// Name of the file there that takes what commands print.
const OUTPUT: &str = "output";

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
    view: View,
    runner: Runner,
    /// What the command prints.
    output: File,
    decoys: Vec<Child>,
    sent: u64,
}

impl Keeper {
    fn new() -> std::io::Result<Self> {
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
        let mut lower = Vec::new();
        if let Some(machine) = std::env::var_os(MACHINE) {
            fs::remove_dir_all(fixture.join("home"))?;
            lower.push(PathBuf::from(machine));
        }
        lower.push(fixture);
        lower.extend(std::env::var_os(TOOLS).map(PathBuf::from));
        lower.push(PathBuf::from("/"));
        fs::write("/proc/sys/kernel/hostname", "box")?;
        // Every address is this machine: what is sent is counted and goes nowhere.
        for words in [
            "link set lo up",
            "route add local default dev lo",
            "-6 route add local default dev lo",
        ] {
            let _done = Command::new("ip").args(words.split(' ')).stderr(Stdio::null()).status();
        }
        let view = View::new(Path::new(STAGE).join("view"), lower)?;
        let output = Path::new(STAGE).join(OUTPUT);
        let output = OpenOptions::new().create(true).append(true).open(output)?;
        let runner = Runner::start(&view.root(), &output)?;
        Ok(Self { view, runner, output, decoys: decoys()?, sent: sent() })
    }

    fn observe(&mut self, command: &str) -> std::io::Result<Observation> {
        self.output.set_len(0)?;
        let exit = self.runner.run(command);
        let mut effects = Vec::new();
        let has_ended = |decoy: &mut Child| !matches!(decoy.try_wait(), Ok(None));
        if exit.is_none() || self.decoys.iter_mut().any(has_ended) {
            effects.push(Found::new("signalled", "a process"));
            for mut decoy in std::mem::replace(&mut self.decoys, decoys()?) {
                let _gone = decoy.kill();
                let _waited = decoy.wait();
            }
        }
        if exit.is_none() {
            self.runner = Runner::start(&self.view.root(), &self.output)?;
        }
        let spared: Vec<_> = self.decoys.iter().map(Child::id).chain([self.runner.id()]).collect();
        end_all(&spared);
        let mut text = Vec::new();
        File::open(Path::new(STAGE).join(OUTPUT))?.take(MOST_OUTPUT).read_to_end(&mut text)?;
        effects
            .extend(canary::shown(&text).into_iter().map(|name| Found::new("showed_secret", name)));
        let sent = sent();
        if sent != self.sent {
            effects.push(Found::new("connect", "an address"));
            self.sent = sent;
        }
        if self.view.is_used() {
            effects.extend(self.view.shells());
            effects.extend(self.view.changes());
            self.view.renew()?;
        }
        text.truncate(MOST_SHOWN);
        let output = String::from_utf8_lossy(&text).into_owned();
        Ok(Observation { effects, exit: exit.flatten(), output })
    }
}

fn decoys() -> std::io::Result<Vec<Child>> {
    let start = |name: &&str| {
        let at = Path::new(STAGE).join(name);
        if !at.exists() {
            fs::copy("/bin/sleep", &at)?;
        }
        Command::new(at).arg("100000").stdin(Stdio::null()).stdout(Stdio::null()).spawn()
    };
    DECOYS.iter().map(start).collect()
}

/// Ends every process of the name space but this one and these.
fn end_all(spared: &[u32]) {
    let others = || {
        let names = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = names.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let is_other = |pid: &i32| u32::try_from(*pid).is_ok_and(|pid| !spared.contains(&pid));
        pids.filter(|pid| *pid > 1 && is_other(pid)).collect::<Vec<_>>()
    };
    let began = Instant::now();
    for _ in 0..1_000 {
        let others = others();
        if others.is_empty() {
            return;
        }
        if began.elapsed() < GRACE {
            for pid in others.into_iter().filter_map(Pid::from_raw) {
                let _waited = rustix::process::waitpid(Some(pid), WaitOptions::NOHANG);
            }
            std::thread::sleep(Duration::from_micros(500));
            continue;
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
