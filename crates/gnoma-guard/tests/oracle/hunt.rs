//! Makes commands, lets them be judged, runs those that are said to only read, and shortens what is found.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use gnoma_guard::permission::{JudgementContext, ShellRow};

use crate::{
    grammar::{Dice, Grammar, Seen},
    observer::{Found, Observer, PROJECT},
};

/// Name of the test.
const NAME: &str = "what_is_judged_to_only_read_has_no_effect";
/// Commands that are run when nobody says how many.
const COMMANDS: usize = 5_000;
/// Observers beside each other.
const OBSERVERS: usize = 2;
/// Failures after which it ends.
const MOST_FAILURES: usize = 12;
/// Commands made for each that is run, before it is said that none is found.
const MOST_TRIES: usize = 400;

/// Programs that search all of a folder: what they find there is kept from models by other means.
const SEARCHING: [&str; 21] = [
    "grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack", "ugrep", "diff", "strings", "bzgrep",
    "xzgrep", "zfgrep", "zegrep", "bzegrep", "bzfgrep", "xzegrep", "xzfgrep", "lzgrep", "zstdgrep",
    "ggrep",
];

/// What some programs do by themselves, whatever they are told: it comes to nothing behind reading walls, which
/// have no network and own temporary folders. npm asks for its newest version, others for the addresses of
/// names, a viewer's script unpacks with a shell of its own.
const EXCEPTED: [(&str, &str); 15] = [
    ("ss", "connect"),
    ("netstat", "connect"),
    ("hostname", "connect"),
    ("hostid", "connect"),
    ("domainname", "connect"),
    ("dnsdomainname", "connect"),
    ("who", "connect"),
    ("lsof", "connect"),
    ("jps", "connect"),
    ("xzless", "ran_shell"),
    ("bzless", "ran_shell"),
    ("less", "ran_shell"),
    ("npm", "connect"),
    ("zless", "ran_shell"),
    ("zmore", "ran_shell"),
];

/// Runs the test, unless the words of the command line choose another.
pub(crate) fn test(words: &[&str]) -> ExitCode {
    if words.contains(&"--list") {
        println!("{NAME}: test");
        return ExitCode::SUCCESS;
    }
    let mut filters = words.iter().filter(|word| !word.starts_with('-')).peekable();
    if filters.peek().is_some() && !filters.any(|filter| NAME.contains(filter)) {
        return ExitCode::SUCCESS;
    }
    let first = match Observer::start() {
        Ok(observer) => observer,
        Err(why) => {
            gnoma_testkit::skip_test(&format!("no sandbox: {why}"));
            println!("test {NAME} ... ok");
            return ExitCode::SUCCESS;
        }
    };
    match std::env::var("GNOMA_OBSERVE") {
        Ok(file) => observe(first, Path::new(&file)),
        Err(_) => {
            let code = hunt(first);
            println!("test {NAME} ... {}", if code == ExitCode::SUCCESS { "ok" } else { "FAILED" });
            code
        }
    }
}

/// Prints what each command of a file did.
fn observe(mut observer: Observer, file: &Path) -> ExitCode {
    let text = std::fs::read_to_string(file).unwrap();
    let mut out = std::io::stdout().lock();
    for line in text.lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        let started = Instant::now();
        let seen = observer.observe(row["command"].as_str().unwrap());
        let spent = started.elapsed().as_micros();
        let line = serde_json::json!({
            "id": row["id"], "command": row["command"], "effects": seen.effects, "exit": seen.exit, "output": seen.output, "micros": spent,
            "read_only": is_read_only(row["command"].as_str().unwrap()),
        });
        writeln!(out, "{line}").unwrap();
    }
    ExitCode::SUCCESS
}

/// Where commands come from.
enum Source {
    Dice(Dice, Seen),
    List(std::vec::IntoIter<String>),
}

impl Source {
    fn next(&mut self, grammar: &Grammar) -> Option<String> {
        match self {
            Self::Dice(dice, seen) => {
                let mut new = (0..MOST_TRIES).map(|_| grammar.command(dice));
                new.find(|command| seen.add(command))
            }
            Self::List(list) => list.next(),
        }
    }
}

/// What all that hunt share.
struct Hunt {
    grammar: Grammar,
    wanted: usize,
    made: AtomicUsize,
    run: AtomicUsize,
    source: Mutex<Source>,
    failures: Mutex<Vec<(String, Vec<Found>)>>,
}

fn hunt(first: Observer) -> ExitCode {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let wanted = number("GNOMA_ORACLE").and_then(|many| usize::try_from(many).ok());
    let tools = std::env::var_os("GNOMA_ORACLE_TOOLS")
        .map(PathBuf::from)
        .unwrap_or_default()
        .join("usr/bin");
    let folders = [Path::new("/usr/bin"), Path::new("/bin"), Path::new("/usr/local/bin"), &tools];
    let grammar = Grammar::new(&folders, wanted.is_some());
    let sweeps = std::env::var("GNOMA_ORACLE").is_ok_and(|what| what == "sweep");
    let (wanted, source) = if sweeps {
        let list: Vec<_> =
            grammar.sweep().into_iter().filter(|command| is_read_only(command)).collect();
        (list.len(), Source::List(list.into_iter()))
    } else {
        let dice = Dice::new(number("GNOMA_ORACLE_SEED").unwrap_or(20_261_122));
        (wanted.unwrap_or(COMMANDS), Source::Dice(dice, Seen::default()))
    };
    let hunt = Hunt {
        grammar,
        wanted,
        made: AtomicUsize::new(0),
        run: AtomicUsize::new(0),
        source: Mutex::new(source),
        failures: Mutex::default(),
    };
    let started = Instant::now();
    std::thread::scope(|scope| {
        for _ in 1..OBSERVERS {
            scope.spawn(|| Observer::start().map(|mut observer| hunt.work(&mut observer)));
        }
        let mut first = first;
        hunt.work(&mut first);
    });
    let (run, spent) = (hunt.run.load(Ordering::SeqCst), started.elapsed());
    println!(
        "{NAME}: {run} commands of {} programs and commands run ({} made) in {:.1} s, {:.1} ms each on {OBSERVERS} at once",
        hunt.grammar.len(),
        hunt.made.load(Ordering::SeqCst),
        spent.as_secs_f64(),
        spent.as_secs_f64() * 1_000.0 / run.max(1) as f64,
    );
    let failures = hunt.failures.into_inner().unwrap();
    if run == 0 || !failures.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

impl Hunt {
    fn work(&self, observer: &mut Observer) {
        while self.failures.lock().unwrap().len() < MOST_FAILURES {
            let Some(command) = self.next() else { return };
            let effects = effects(observer, &command);
            let program = first_word(&command).to_owned();
            let is_known = |(known, _): &(String, Vec<Found>)| first_word(known) == program;
            // One failure of a program is enough to read.
            if !effects.is_empty() && !self.failures.lock().unwrap().iter().any(is_known) {
                let short = shortened(observer, command);
                let effects = self::effects(observer, &short);
                let mut failures = self.failures.lock().unwrap();
                if failures.iter().all(|(known, _)| first_word(known) != first_word(&short)) {
                    println!("judged to only read: {short}");
                    for effect in &effects {
                        println!("    {} {}", effect.kind, effect.what);
                    }
                    failures.push((short, effects));
                }
            }
        }
    }

    /// A new command that is judged to only read; `None` when enough were run.
    fn next(&self) -> Option<String> {
        if self.run.fetch_add(1, Ordering::SeqCst) >= self.wanted {
            self.run.fetch_sub(1, Ordering::SeqCst);
            return None;
        }
        for _ in 0..MOST_TRIES {
            let command = self.source.lock().unwrap().next(&self.grammar)?;
            self.made.fetch_add(1, Ordering::SeqCst);
            if is_read_only(&command) {
                return Some(command);
            }
        }
        None
    }
}

fn first_word(command: &str) -> &str {
    command.split([' ', '|', ';', '<']).next().unwrap_or_default()
}

/// Effects that something judged to only read must not have.
fn effects(observer: &mut Observer, command: &str) -> Vec<Found> {
    let searches = command.split([' ', '|', ';', '&']).any(|word| SEARCHING.contains(&word));
    let mut effects = observer.observe(command).effects;
    effects.retain(|effect| effect.kind != "showed_secret" || !searches);
    let has = |program: &str| command.split([' ', '|', ';', '&', '(']).any(|word| word == program);
    effects.retain(|effect| {
        !EXCEPTED.iter().any(|(program, kind)| effect.kind == *kind && has(program))
    });
    effects
}

/// What modes that let reading run say of it.
fn is_read_only(command: &str) -> bool {
    let roots = [PathBuf::from(PROJECT)];
    let own = [PathBuf::from("/home/dev/.config/gnoma")];
    let resolve = |path: &Path| {
        let links =
            [("link-to-env", ".env"), ("linkdir", "/home/dev/.ssh"), ("link", "src/main.rs")];
        let follow = |(link, target): (&str, &str)| {
            let rest = path.strip_prefix(Path::new(PROJECT).join(link)).ok()?;
            Some(Path::new(PROJECT).join(target).join(rest))
        };
        let found = links.into_iter().find_map(follow).unwrap_or_else(|| path.to_path_buf());
        if found.ends_with("") { found.components().collect() } else { found }
    };
    let world = JudgementContext {
        cwd: Path::new(PROJECT),
        home: Some(Path::new("/home/dev")),
        roots: &roots,
        config_dirs: &own,
        programs: &[],
        copies: &[],
        trusted: true,
        sandboxed: true,
        network_on_grant: true,
        resolve: &resolve,
        list: &|_| None,
        repositories: &gnoma_guard::git::NoRepositories,
    };
    ShellRow::from_command(command, &world).verdict == "allow"
}

/// The command without any piece that the failure does not need.
fn shortened(observer: &mut Observer, mut command: String) -> String {
    let mut size = command.chars().count() / 2;
    while size > 0 {
        let mut at = 0;
        loop {
            let letters: Vec<char> = command.chars().collect();
            if at >= letters.len() {
                break;
            }
            let end = (at + size).min(letters.len());
            let shorter: String = letters[..at].iter().chain(&letters[end..]).collect();
            if is_read_only(&shorter) && !effects(observer, &shorter).is_empty() {
                command = shorter;
            } else {
                at += size;
            }
        }
        size /= 2;
    }
    command.trim().to_owned()
}
