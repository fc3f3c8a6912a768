//! Which commands are about processes of the machine: by a path below `/proc`, or by a signal. A command in the sandbox
//! has other processes, and what it says about these would be a wrong answer.

use gnoma_shell::{Analysis, Effect, Invocation};

use super::command_words::program_of;

/// The folder of processes.
const PROC: &str = "/proc/";
/// Programs that send signals to processes, or change how they run.
const SIGNALLING: [&str; 8] =
    ["kill", "killall", "killall5", "pkill", "renice", "skill", "snice", "xkill"];
/// Programs that print or search the words they are given, and open what only begins with a path.
const TEXT_PROGRAMS: [&str; 10] =
    ["awk", "echo", "egrep", "fgrep", "git", "grep", "jq", "printf", "rg", "sed"];
/// Entries of a process that only a process with the right to trace it can read.
const TRACED: [&str; 18] = [
    "auxv",
    "cwd",
    "environ",
    "exe",
    "fd",
    "fdinfo",
    "io",
    "map_files",
    "maps",
    "mem",
    "ns",
    "numa_maps",
    "pagemap",
    "root",
    "smaps",
    "smaps_rollup",
    "stack",
    "syscall",
];
/// The last process that a shell started in the background.
const LAST_STARTED: &str = "$!";

/// Reports whether a command names a process by a path below `/proc`, also one that is only known when it runs.
pub(super) fn names_process(command: &Invocation) -> bool {
    words_of(command).any(|word| paths_of_processes(&word).next().is_some())
}

/// Reports whether a command opens something of another process that the sandbox does not show, such as
/// `/proc/12/cwd`.
pub(super) fn looks_into_process(command: &Invocation) -> bool {
    let is_traced = |path: &str| {
        let mut below = path.split('/').skip(1);
        let entry = below.next().unwrap_or_default();
        // A thread of the process has the same entries.
        let entry = if entry == "task" { below.nth(1).unwrap_or_default() } else { entry };
        TRACED.contains(&entry.trim_end_matches(|letter: char| !letter.is_alphanumeric()))
    };
    words_of(command).any(|word| paths_of_processes(&word).any(is_traced))
}

/// Reports whether words outside of simple commands, such as those of a loop, name a process by a path.
pub(super) fn other_words_name_process(analysis: &Analysis) -> bool {
    analysis.other_words.iter().any(|word| paths_of_processes(word).next().is_some())
}

/// Reports whether a line signals processes that it has not started itself.
pub(super) fn signals_others(analysis: &Analysis) -> bool {
    let commands = analysis.commands.iter().map(|command| &command.text);
    let starts_own = commands.chain(&analysis.other_words).any(|text| text.contains(LAST_STARTED));
    analysis.commands.iter().any(|command| signals_another(command, starts_own))
}

/// Reports whether a command sends signals, to whatever process.
pub(super) fn sends_signals(command: &Invocation) -> bool {
    SIGNALLING.contains(&program_of(command)) && !lists_signals(command)
}

fn lists_signals(command: &Invocation) -> bool {
    let lists = |word: &String| matches!(word.as_str(), "-l" | "-L" | "--list" | "--table");
    command.words.iter().skip(1).flatten().any(lists)
}

fn signals_another(command: &Invocation, starts_own: bool) -> bool {
    let program = program_of(command);
    if program != "kill" {
        return SIGNALLING.contains(&program);
    }
    // All targets are known to be of this line if the command acts on nothing of the system.
    let acts = |effect: &Effect| matches!(effect, Effect::System(_));
    if lists_signals(command) || !command.effects.iter().any(acts) {
        return false;
    }
    let is_own = |text: &str| {
        let own = [LAST_STARTED, "$$", "$BASHPID", "jobs -p", "%"];
        own.iter().any(|own| text.contains(own))
    };
    let names_number = |word: &String| {
        let number = word.trim_start_matches('-');
        number.parse::<u32>().is_ok_and(|number| number > 0)
    };
    // `kill -9` names a signal; a number with a dash behind it names a group of processes.
    let mut targets = command.words.iter().enumerate().skip(1);
    targets.any(|(place, target)| match target {
        Some(word) if place == 1 && word.starts_with('-') => false,
        Some(word) => names_number(word),
        None => !starts_own && !is_own(&command.text),
    })
}

/// The words of a command that may hold a path: those that are known, else the whole command as it is written.
fn words_of(command: &Invocation) -> impl Iterator<Item = String> {
    let is_text = TEXT_PROGRAMS.contains(&program_of(command));
    let known = command.words.iter().skip(1).flatten();
    let known = known.filter(move |word| !is_text || word.starts_with(PROC)).cloned();
    let is_open = command.words.iter().any(Option::is_none) || command.words.is_empty();
    known.chain(is_open.then(|| command.text.clone()))
}

/// Returns what follows `/proc/` where that names a process or all of them: a number, a pattern, or a value.
fn paths_of_processes(text: &str) -> impl Iterator<Item = &str> {
    let after = text.match_indices(PROC).filter_map(|(at, _)| text.get(at + PROC.len()..));
    after.filter_map(|rest| {
        let rest = rest.trim_start_matches(['"', '\'']);
        let is_process = rest.starts_with(|first: char| {
            first.is_ascii_digit() || matches!(first, '$' | '*' | '?' | '[' | '{' | '`')
        });
        is_process.then(|| rest.split(char::is_whitespace).next().unwrap_or(rest))
    })
}
