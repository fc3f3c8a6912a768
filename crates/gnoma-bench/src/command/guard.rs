//! What looking through everything costs: secrets, hidden text, commands, and the sandbox around them.

use std::{
    fs,
    hint::black_box,
    io::Write as _,
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use gnoma_bench::{
    clock::cpu_time,
    conversation::Conversation,
    report::{self, GoalCheck, median_of},
};
use gnoma_guard::{
    firewall::{self, Firewall, Policy, ProviderFacts},
    secrets::{Scanner, ScannerOptions},
    shell::{StartContext, analyse_command},
    unicode::{self, RetainedControls},
};
use gnoma_llm::Protocol;
use gnoma_sandbox::{Policy as Walled, ReadScope, Scratch, SessionSandbox, Strength, Support};

/// Most source text that is read.
const MAX_SOURCE_BYTES: usize = 64 << 20;
/// Less than this says nothing about speed.
const MIN_SOURCE_BYTES: usize = 4 << 20;
/// Times that all of it is scanned.
const PASSES: usize = 3;
const REQUEST_BYTES: usize = 1 << 20;
const HISTORY_TOKENS: usize = 200_000;
/// Times that the history is looked through once it is known.
const ROUNDS: usize = 101;
/// Times that every command is analysed.
const ANALYSES: usize = 2_000;
/// Runs of `true`, in the sandbox and without.
const RUNS: usize = 200;

const GOAL_SCAN: f64 = 150.0;
const GOAL_REQUEST_MS: f64 = 5.0;
const GOAL_HISTORY_MICROS: f64 = 50.0;
const GOAL_WALLS_MS: f64 = 10.0;
const GOAL_READING_MS: f64 = 3.0;
/// The time a launcher has to get ready before the measurement starts.
const TO_GET_READY: Duration = Duration::from_millis(30);

/// Commands as agents write them.
const COMMANDS: [&str; 12] = [
    "git status --short && git log --oneline -5 | cat",
    "cargo test -p core --lib 2>&1 | tail -40",
    "cd src && grep -rn \"fn main\" --include='*.rs' . | head -20",
    "find . -name '*.py' -not -path './venv/*' -exec wc -l {} + | sort -n | tail",
    "sed -n '120,180p' src/lib.rs",
    "for f in a b c; do echo \"$f: $(wc -l < \"$f.txt\")\"; done",
    "if [ -f package.json ]; then npm test -- --silent; else make check; fi",
    "cat > notes.md <<'END'\n# Notes\n\n- one\n- two\nEND\n",
    "docker compose ps --format json | jq -r '.[].Name'",
    "rm -rf build dist && mkdir -p build && cp -r src/* build/",
    "ls -la | awk '{print $5, $9}' | sort -rn | head -5",
    "env RUST_LOG=debug timeout 60 bash -c 'cargo run --release -- --check'",
];

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let [gnoma, folder] = arguments else {
        bail!("`guard` takes the program and a folder of sources")
    };
    report_scanner_start()?;
    let files = collect_sources(Path::new(folder))?;
    report_scan_speed("secret scanner", &files, ScannerOptions::default())?;
    let named_only = vec!["generic".to_owned()];
    let options = ScannerOptions { disabled_families: named_only, ..ScannerOptions::default() };
    report_scan_speed("secret scanner without what no rule names", &files, options)?;
    report_history_scan()?;
    report_cleaning(&files);
    report_shell_analysis();
    report_sandbox_overhead(Path::new(gnoma))
}

/// Before anything else, so that nothing is warm.
fn report_scanner_start() -> Result<()> {
    let (time, found) = cpu_time(|| {
        let scanner = Scanner::new(ScannerOptions::default());
        scanner.map(|scanner| scanner.scan(b"Why does the build fail?").len())
    });
    black_box(found?);
    let measured = format!("{:.1} ms of a core", to_millis(time));
    report::print_row("making a scanner, and its first short text", "–", measured, GoalCheck::None);
    Ok(())
}

/// The Rust sources below `folder`, up to a limit.
fn collect_sources(folder: &Path) -> Result<Vec<Vec<u8>>> {
    let mut files = Vec::new();
    let mut bytes = 0;
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let mut entries: Vec<_> = fs::read_dir(folder)?.flatten().collect();
        entries.sort_by_key(fs::DirEntry::path);
        for entry in entries {
            let (kind, path) = (entry.file_type()?, entry.path());
            let is_source = kind.is_file() && path.extension().is_some_and(|end| end == "rs");
            if kind.is_dir() {
                folders.push(path);
            } else if is_source && bytes < MAX_SOURCE_BYTES {
                let text = fs::read(path)?;
                bytes += text.len();
                files.push(text);
            }
        }
    }
    if bytes < MIN_SOURCE_BYTES {
        bail!("{} has {bytes} bytes of Rust, too few to measure with", folder.display());
    }
    Ok(files)
}

fn report_scan_speed(name: &str, files: &[Vec<u8>], options: ScannerOptions) -> Result<()> {
    let scanner = Scanner::new(options)?;
    let bytes: usize = files.iter().map(Vec::len).sum();
    let pass = || files.iter().map(|file| black_box(scanner.scan(file)).len()).sum::<usize>();
    // What is built on demand is built now.
    let found = pass();
    let seconds = (0..PASSES).map(|_| cpu_time(pass).0.as_secs_f64()).collect();
    let speed = bytes as f64 / median_of(seconds) / 1e6;
    report::print_row(
        format_args!("{name}, Rust sources"),
        format_args!("≥ {GOAL_SCAN:.0} MB/s a core"),
        format_args!("{speed:.0} MB/s ({:.0} MB, {found} found)", bytes as f64 / 1e6),
        GoalCheck::from_bool(speed >= GOAL_SCAN),
    );
    let requests = files.concat();
    let times = requests.chunks_exact(REQUEST_BYTES).map(|text| cpu_time(|| scanner.scan(text)).0);
    let mut times: Vec<f64> = times.map(to_millis).collect();
    times.sort_by(f64::total_cmp);
    let p99 = times.get(times.len() * 99 / 100).copied().unwrap_or_default();
    report::print_row(
        format_args!("{name}, a request of 1 MB"),
        format_args!("p99 ≤ {GOAL_REQUEST_MS} ms"),
        format_args!("p50 {:.2} ms, p99 {p99:.2} ms", median_of(times)),
        GoalCheck::from_bool(p99 <= GOAL_REQUEST_MS),
    );
    Ok(())
}

/// A long conversation on its way out: the first time, and each time after that.
fn report_history_scan() -> Result<()> {
    let firewall = Firewall::new(firewall::FirewallOptions {
        scanner: Scanner::new(ScannerOptions::default())?,
        policy: Policy::default(),
        allowed: Vec::new(),
        first_placeholder: 1,
    });
    let provider = ProviderFacts { name: "bench".to_owned(), local: false };
    let request = Conversation::new(Protocol::Anthropic, HISTORY_TOKENS).request();
    let copy = request.clone();
    let (first, checked) = cpu_time(|| firewall.redact_request(&provider, copy));
    checked?;
    let mut micros = Vec::new();
    for _ in 0..ROUNDS {
        let copy = request.clone();
        let (time, checked) = cpu_time(|| firewall.redact_request(&provider, copy));
        black_box(checked?);
        micros.push(time.as_secs_f64() * 1e6);
    }
    let again = median_of(micros);
    report::print_row(
        format_args!("firewall, {HISTORY_TOKENS} tokens again"),
        format_args!("< {GOAL_HISTORY_MICROS:.0} µs"),
        format_args!("{again:.1} µs (the first time {:.1} ms)", to_millis(first)),
        GoalCheck::from_bool(again < GOAL_HISTORY_MICROS),
    );
    Ok(())
}

fn report_cleaning(files: &[Vec<u8>]) {
    let source = String::from_utf8_lossy(&files.concat()).into_owned();
    let words = "می‌خواهم ça va 日本語 👩‍👩‍👧 \u{200B}x\u{202E} done\u{1b}[31m\n";
    let mixed = words.repeat(REQUEST_BYTES / words.len());
    for (name, text) in [("Rust sources", &source), ("many scripts", &mixed)] {
        let pass = || black_box(unicode::clean_text(text, RetainedControls::Text)).flags.len();
        let seconds = (0..PASSES).map(|_| cpu_time(pass).0.as_secs_f64()).collect();
        let speed = text.len() as f64 / median_of(seconds) / 1e6;
        let figure = format_args!("cleaning of hidden text, {name}");
        report::print_row(figure, "–", format_args!("{speed:.0} MB/s"), GoalCheck::None);
    }
}

fn report_shell_analysis() {
    let start = StartContext { cwd: "/home/me/project".into(), home: Some("/home/me".into()) };
    let (time, parts) = cpu_time(|| {
        let round =
            || COMMANDS.iter().map(|command| analyse_command(command, &start).commands.len());
        (0..ANALYSES).map(|_| black_box(round().sum::<usize>())).sum::<usize>()
    });
    let analyses = (ANALYSES * COMMANDS.len()) as f64;
    let (rate, micros) = (analyses / time.as_secs_f64(), time.as_secs_f64() / analyses * 1e6);
    report::print_row(
        "analyses of shell commands",
        "–",
        format_args!(
            "{rate:.0} a second, {micros:.1} µs each ({:.1} simple commands)",
            parts as f64 / analyses
        ),
        GoalCheck::None,
    );
}

/// Measures the elapsed time that the sandbox adds to the run of a command; most of it is the system's work.
fn report_sandbox_overhead(gnoma: &Path) -> Result<()> {
    let figure = "sandbox around a command";
    let goal = format!("≤ {GOAL_WALLS_MS:.0} ms");
    let support = Support::detect();
    if support.strength == Strength::None {
        report::print_row(
            figure,
            goal,
            format_args!("not measured: {}", support.strength),
            GoalCheck::Missed,
        );
        return Ok(());
    }
    let walls = SessionSandbox::new(gnoma.to_owned(), &support);
    report_read_only_sandbox(&walls)?;
    let policy = Walled { writable: vec!["/tmp".into()], ..Walled::default() };
    let (mut free, mut walled) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        free.push(time_of(Command::new("true"))?);
        walled.push(time_of(walls.command("true", [""; 0], &policy))?);
    }
    let (free, walled) = (median_of(free), median_of(walled));
    let added = walled - free;
    report::print_row(
        figure,
        goal,
        format_args!(
            "{added:.1} ms added ({walled:.1} with, {free:.1} without; {})",
            support.strength
        ),
        GoalCheck::from_bool(added <= GOAL_WALLS_MS),
    );
    Ok(())
}

/// The same for a command that only reads, with a launcher that has got ready while there was time, as
/// there is between two calls of a model.
fn report_read_only_sandbox(walls: &SessionSandbox) -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let scratch = Scratch::create_in(scratch.path())?;
    let here = std::path::absolute(".")?;
    let mut shown: Vec<_> = gnoma_core::places::PROGRAMS.iter().map(Into::into).collect();
    shown.push(here.clone());
    let policy = Walled {
        readable: ReadScope::Only { shown, hidden: Vec::new() },
        alone: true,
        local_sockets: false,
        temporary: Some(scratch.folder().to_owned()),
        ..Walled::default()
    };
    let (mut free, mut walled) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        free.push(time_of(Command::new("true"))?);
        let (Some(mut spare), Some(order)) =
            (walls.spare_command(&policy), walls.encode_order("true", [""; 0], &here, &policy))
        else {
            bail!("there are no namespaces to get ready in")
        };
        let mut spare =
            spare.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
        std::thread::sleep(TO_GET_READY);
        let began = Instant::now();
        let input = spare.stdin.take();
        input.context("the launcher has no input")?.write_all(&order)?;
        let status = spare.wait()?;
        walled.push(to_millis(began.elapsed()));
        if !status.success() {
            bail!("`true` ended with {status}");
        }
    }
    let (free, walled) = (median_of(free), median_of(walled));
    report::print_row(
        "sandbox around a command that only reads",
        format_args!("≤ {GOAL_READING_MS:.0} ms"),
        format_args!("{:.1} ms added ({walled:.1} with, {free:.1} without)", walled - free),
        GoalCheck::from_bool(walled - free <= GOAL_READING_MS),
    );
    Ok(())
}

/// Milliseconds until a command has ended.
fn time_of(mut command: Command) -> Result<f64> {
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let began = Instant::now();
    let status = command.status()?;
    let time = began.elapsed();
    if !status.success() {
        bail!("`true` ended with {status}");
    }
    Ok(to_millis(time))
}

fn to_millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
