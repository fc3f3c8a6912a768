//! Programs that look at the machine, and options with which they do more.

use super::super::Walker;
use super::super::call::ProgramCall;
use super::super::command_facts::CommandFacts;
use crate::expand::{Field, looks_secret};
use crate::facts::Effect;
use crate::programs::Role;

/// Letters of `ps` options that take a value: those after a dash, and those without one.
const PS_VALUES: [&str; 2] = ["oOCuUgGptsqkn", "oOUptkqN"];

/// `ps` only looks; with `e` or `E` it shows environments.
pub(super) fn analyse_ps(call: &ProgramCall<'_>) -> CommandFacts {
    let mut facts = CommandFacts::default();
    let mut is_value = false;
    for word in call.words {
        let text = word.known_start();
        let (letters, valued) = match text.strip_prefix('-') {
            Some(letters) => (letters, PS_VALUES[0]),
            None => (text, PS_VALUES[1]),
        };
        let flags = letters.find(|letter| valued.contains(letter));
        let own = letters.get(..flags.unwrap_or(letters.len())).unwrap_or_default();
        let bundle = !is_value && text.starts_with(|c: char| c == '-' || c.is_ascii_alphabetic());
        let of_environment = if text.starts_with('-') { 'E' } else { 'e' };
        if text.contains("environ")
            || bundle && own.contains(of_environment) && !text.starts_with("--")
        {
            facts.add(Effect::Settings("environments of processes".to_owned()));
        }
        if !is_value && word.known_text().is_none() {
            facts.add(Effect::Unknown(format!("ps: `{word}` may be an option")));
        }
        is_value = bundle && flags.is_some_and(|at| at + 1 == letters.len());
    }
    facts
}

/// `lsof` only looks; `+d` and `-D` with write access are rare enough to ask.
pub(super) fn analyse_lsof(walker: &mut Walker<'_>, call: &ProgramCall<'_>) -> CommandFacts {
    let mut facts = walker.option_facts(call);
    if call.sorted.has_option(&["D", "k", "K"]) {
        facts.add(Effect::Unknown("lsof: it may write a cache".to_owned()));
    }
    facts
}

/// Options of `ip`, `bridge` and `tc` that change only how things look.
const IP_OPTIONS: [&str; 26] = [
    "-4",
    "-6",
    "-0",
    "-br",
    "-brief",
    "-c",
    "-color",
    "-j",
    "-json",
    "-p",
    "-pretty",
    "-s",
    "-stats",
    "-statistics",
    "-d",
    "-details",
    "-o",
    "-oneline",
    "-h",
    "-human",
    "-iec",
    "-N",
    "-t",
    "-timestamp",
    "-nm",
    "-r",
];

/// The objects that `ip`, `bridge` and `tc` can show.
const IP_OBJECTS: [&str; 31] = [
    "a",
    "addr",
    "address",
    "l",
    "link",
    "r",
    "route",
    "n",
    "neigh",
    "neighbor",
    "neighbour",
    "ru",
    "rule",
    "maddr",
    "maddress",
    "mroute",
    "netns",
    "tunnel",
    "tuntap",
    "vrf",
    "nexthop",
    "ntable",
    "fdb",
    "mdb",
    "vlan",
    "qdisc",
    "class",
    "filter",
    "chain",
    "token",
    "netconf",
];

/// `ip`, `ifconfig`, `route`, `arp`: a few ways of calling them only show.
pub(super) fn network_settings(call: &ProgramCall<'_>) -> CommandFacts {
    let shows = match call.title {
        "ip" | "bridge" | "tc" => ip_shows(call.words),
        "ifconfig" | "iwconfig" => {
            call.words.len() <= 1
                && !call.words.iter().any(|word| word.known_start().starts_with("--"))
        }
        "ethtool" => match call.words {
            [device] => !device.known_start().starts_with('-') && device.known_text().is_some(),
            [option, _] => matches!(
                option.known_text(),
                Some("-i" | "-k" | "-S" | "-a" | "-c" | "-g" | "-l" | "-T" | "-P" | "-n" | "-x")
            ),
            _ => false,
        },
        "route" | "arp" => call.words.iter().all(|word| {
            matches!(word.known_text(), Some("-n" | "-a" | "-v" | "-e" | "-an" | "-ne" | "-en"))
        }),
        _ => call.words.iter().all(|word| {
            matches!(
                word.known_text(),
                Some("status" | "show" | "list" | "device" | "connection" | "dev" | "con" | "-t")
            )
        }),
    };
    if shows {
        CommandFacts::default()
    } else {
        CommandFacts::from_effect(Effect::System(format!("{} may change the network", call.title)))
    }
}

/// `ip OPTIONS OBJECT`, or that with a command that shows: what follows then only chooses. Commands may be
/// abbreviated, so none but the full names is taken.
fn ip_shows(words: &[Field]) -> bool {
    let Some(texts) = words.iter().map(Field::known_text).collect::<Option<Vec<_>>>() else {
        return false;
    };
    let is_option = |text: &&str| {
        IP_OPTIONS.contains(text) || text.starts_with("-c=") || text.starts_with("-color=")
    };
    let mut texts = texts.into_iter().skip_while(is_option);
    let (Some(object), command) = (texts.next(), texts.next()) else { return true };
    match command {
        None | Some("show" | "list" | "ls" | "lst") => IP_OBJECTS.contains(&object),
        Some("get") => matches!(object, "route" | "r"),
        Some(_) => false,
    }
}

/// `printenv NAME` shows one variable; alone it shows all.
pub(super) fn analyse_printenv(call: &ProgramCall<'_>) -> CommandFacts {
    let named = &call.sorted.operands;
    let what = "the environment".to_owned();
    if named.is_empty() {
        CommandFacts::from_effect(Effect::Settings(what))
    } else if named.iter().any(|name| name.known_text().is_none_or(looks_secret)) {
        CommandFacts::from_effect(Effect::Secret(what))
    } else {
        CommandFacts::default()
    }
}

/// `dpkg -l`, `rpm -q`: only with an option that asks.
pub(super) fn package_query(walker: &mut Walker<'_>, call: &ProgramCall<'_>) -> CommandFacts {
    let asks = match call.title {
        "dpkg" => {
            call.words.first().and_then(Field::known_text).is_some_and(|word| {
                matches!(
                    word,
                    "-l" | "-L"
                        | "-s"
                        | "-S"
                        | "-p"
                        | "--list"
                        | "--listfiles"
                        | "--status"
                        | "--search"
                        | "--get-selections"
                        | "--print-architecture"
                        | "--version"
                )
            }) && no_further_option(call)
        }
        "rpm" => {
            call.words.first().and_then(Field::known_text).is_some_and(|word| {
                word.starts_with("-q")
                    && word.bytes().skip(1).all(|byte| b"qailfRcd".contains(&byte))
            }) && no_further_option(call)
        }
        "pacman" => {
            call.words.first().and_then(Field::known_text).is_some_and(|word| {
                word.starts_with("-Q")
                    && word.bytes().skip(2).all(|byte| b"ilqosmneadtk".contains(&byte))
            }) && no_further_option(call)
        }
        _ => call.sorted.strange.is_empty(),
    };
    if asks {
        return CommandFacts::default();
    }
    let mut facts = walker.generic_facts(call);
    facts.add(Effect::System(call.title.to_owned()));
    facts
}

/// Options after the first can name other folders, formats and programs.
fn no_further_option(call: &ProgramCall<'_>) -> bool {
    call.words.iter().skip(1).all(|word| match word.known_text() {
        Some(text) => text == "--no-pager" || !text.starts_with('-'),
        None => !word.may_be_option(),
    })
}

/// `history` shows; its options change it or write it.
pub(super) fn analyse_history(walker: &mut Walker<'_>, call: &ProgramCall<'_>) -> CommandFacts {
    let mut facts = walker.generic_facts(call);
    if call.words.iter().any(|word| word.known_text().is_none_or(|text| text.starts_with('-'))) {
        facts.add(Effect::System("changes the command history".to_owned()));
    }
    facts
}

/// `man`: a page named by a path is a file that is read.
pub(super) fn analyse_man(walker: &mut Walker<'_>, call: &ProgramCall<'_>) -> CommandFacts {
    let mut facts = walker.option_facts(call);
    let local = call.sorted.has_option(&["l", "local-file"]);
    for operand in
        call.sorted.operands.iter().filter(|word| local || word.known_start().contains('/'))
    {
        walker.apply_role(call, Role::Names, operand, &mut facts);
    }
    walker.add_fixed_effects(call, &mut facts);
    facts
}

/// `sysctl` shows, unless a word sets.
pub(super) fn analyse_sysctl(walker: &mut Walker<'_>, call: &ProgramCall<'_>) -> CommandFacts {
    let shows = |word: &Field| word.known_text().is_some_and(|text| !text.contains('='));
    let asks = call.words.iter().all(shows) && call.sorted.strange.is_empty();
    if !asks || call.words.is_empty() {
        return walker.generic_facts(call);
    }
    let mut facts = CommandFacts::default();
    for name in call.sorted.operands.iter().filter(|name| name.known_start().contains('/')) {
        let file = format!("/proc/sys/{name}");
        walker.apply_role(call, Role::Read, &Field::Known(file), &mut facts);
    }
    facts
}

/// `kill -l` lists signals; others go to processes. Those of this line are its own.
pub(super) fn analyse_kill(walker: &mut Walker<'_>, call: &ProgramCall<'_>) -> CommandFacts {
    let lists = matches!(
        call.words.first().and_then(Field::known_text),
        Some("-l" | "-L" | "--list" | "--table")
    );
    if lists || has_own_targets(call.words) {
        return CommandFacts::default();
    }
    walker.generic_facts(call)
}

/// True if `kill` gets nothing but processes and jobs that this line has started, and a signal before them.
fn has_own_targets(words: &[Field]) -> bool {
    let targets = match words {
        [Field::Known(option), Field::Known(signal), rest @ ..]
            if matches!(option.as_str(), "-s" | "-n") && is_signal(signal) =>
        {
            rest
        }
        [Field::Known(signal), rest @ ..] if signal.strip_prefix('-').is_some_and(is_signal) => {
            rest
        }
        _ => words,
    };
    let targets = match targets {
        [Field::Known(dashes), rest @ ..] if dashes == "--" => rest,
        _ => targets,
    };
    let is_own = |target: &Field| match target {
        Field::Process { .. } => true,
        Field::Known(job) => job.starts_with('%'),
        _ => false,
    };
    !targets.is_empty() && targets.iter().all(is_own)
}

/// True if `kill` takes a word for a signal. A greater number with a dash is a group of processes to some.
fn is_signal(word: &str) -> bool {
    const MAX_SIGNAL: u32 = 64;
    match word.parse::<u32>() {
        Ok(number) => number <= MAX_SIGNAL,
        Err(_) => word.starts_with(|first: char| first.is_ascii_alphabetic()),
    }
}

/// `mount` alone lists.
pub(super) fn analyse_mount(walker: &mut Walker<'_>, call: &ProgramCall<'_>) -> CommandFacts {
    match call.words {
        [] => CommandFacts::default(),
        [only] if only.known_text() == Some("-l") => CommandFacts::default(),
        _ => walker.generic_facts(call),
    }
}

/// `getent hosts NAME` asks for the address of a host; of all databases it is the one that asks other machines.
pub(super) fn analyse_getent(walker: &mut Walker<'_>, call: &ProgramCall<'_>) -> CommandFacts {
    const HOSTS: [&str; 4] = ["hosts", "ahosts", "ahostsv4", "ahostsv6"];
    let mut operands = call.sorted.operands.iter();
    let database = operands.next().and_then(Field::known_text);
    if !database.is_some_and(|name| HOSTS.contains(&name)) {
        return walker.generic_facts(call);
    }
    let mut facts = walker.option_facts(call);
    for name in operands.filter(|name| name.known_text() != Some("localhost")) {
        facts.add(Effect::Network(name.known_text().map(str::to_owned)));
    }
    facts
}
