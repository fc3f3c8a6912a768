//! Other machines: commands run there, files carried there, clouds, clusters and databases steered.

use super::super::Walker;
use super::super::call::ProgramCall;
use super::super::command_facts::CommandFacts;
use super::super::obfuscation;
use crate::expand::Field;
use crate::facts::{Effect, Risk};

/// Options of `ssh` that take a value.
const SSH_VALUED: &str = "bcDEeFIiJLlmOopQRSWwBP";
/// Verbs that delete or stop something that is hard to bring back.
const DESTRUCTIVE: [&str; 26] = [
    "delete",
    "destroy",
    "rm",
    "rb",
    "remove",
    "uninstall",
    "terminate",
    "terminate-instances",
    "drop",
    "purge",
    "prune",
    "delete-bucket",
    "delete-stack",
    "delete-object",
    "delete-db-instance",
    "delete-cluster",
    "drain",
    "scale",
    "wipe",
    "down",
    "nuke",
    "force-unlock",
    "flushall",
    "flushdb",
    "state",
    "taint",
];
/// Words that show keys or tokens.
const REVEALING: [&str; 16] = [
    "secret",
    "secrets",
    "token",
    "print-access-token",
    "print-identity-token",
    "get-secret-value",
    "get-login-password",
    "get-session-token",
    "credentials",
    "credential",
    "password",
    "get-parameter",
    "assume-role",
    "export-credentials",
    "keys",
    "view",
];

/// `ssh host command`: the command runs on another machine.
pub(super) fn analyse_ssh(call: &ProgramCall<'_>) -> CommandFacts {
    let mut facts = CommandFacts::default();
    let mut rest = call.words;
    while let Some((word, after)) = rest.split_first() {
        let Some(option) = word.known_text().and_then(|text| text.strip_prefix('-')) else { break };
        rest = after;
        let Some(at) = option.find(|letter| SSH_VALUED.contains(letter)) else { continue };
        let joined = at + 1 < option.len();
        let value = if joined {
            word.to_string()
        } else {
            rest.first().map(Field::to_string).unwrap_or_default()
        };
        if option.contains('o')
            && ["ProxyCommand", "LocalCommand", "KnownHostsCommand"]
                .iter()
                .any(|name| value.contains(name))
        {
            facts.add(Effect::Runs(value));
        }
        if !joined {
            rest = rest.get(1..).unwrap_or_default();
        }
    }
    let host = rest
        .first()
        .map(Field::known_start)
        .map(|host| host.rsplit('@').next().unwrap_or(host).to_owned());
    facts.add(Effect::Network(host));
    let command = rest.get(1..).unwrap_or_default();
    if !command.is_empty() {
        let text = command.iter().map(Field::to_string).collect::<Vec<_>>().join(" ");
        facts.add(Effect::Runs(format!("on another machine: {text}")));
        facts.at_least(Risk::High);
    }
    if call.title != "ssh" {
        facts.add(Effect::Unknown(format!("gnoma does not know what `{}` runs", call.title)));
    }
    facts
}

/// `scp`, `rsync`: files come from or go to another machine, or another folder.
pub(super) fn analyse_transfer(walker: &mut Walker<'_>, call: &ProgramCall<'_>) -> CommandFacts {
    let mut facts = CommandFacts::default();
    let runs = call.words.iter().any(|word| {
        word.known_text().is_none_or(|text| {
            ["-e", "-S", "--rsh", "--rsync-path", "-oProxyCommand", "--remote-option", "-D"]
                .iter()
                .any(|option| text.starts_with(option))
        })
    });
    if runs {
        facts.add(Effect::Runs(format!("{}: a program named by an option", call.title)));
    }
    let plain: Vec<&Field> =
        call.words.iter().filter(|word| !word.known_start().starts_with('-')).collect();
    for (at, word) in plain.iter().enumerate() {
        let remote = word
            .known_start()
            .split_once(':')
            .filter(|(host, _)| !host.contains('/') && !host.is_empty());
        if let Some((host, _)) = remote {
            let host = host.rsplit('@').next().unwrap_or(host);
            facts.add(Effect::Network(Some(host.to_owned())));
        } else {
            let effect = if at + 1 == plain.len() { Effect::Write } else { Effect::Read };
            facts.add_at_places(effect, walker.state.folders.resolve_places(word));
        }
    }
    if call.words.iter().any(|word| {
        word.known_start().starts_with("--del") || word.known_start() == "--remove-source-files"
    }) {
        match plain.last() {
            Some(word) => {
                facts.add_at_places(Effect::Delete, walker.state.folders.resolve_places(word));
            }
            None => facts
                .add(Effect::Unknown("it deletes files, and gnoma does not know where".to_owned())),
        }
    }
    facts
}

/// `curl`, `wget` and their like: addresses are looked at, files they send or write are named.
pub(super) fn analyse_download(walker: &mut Walker<'_>, call: &ProgramCall<'_>) -> CommandFacts {
    let is_wget = call.title.starts_with("wget");
    let mut facts = CommandFacts::default();
    let mut hosts = Vec::new();
    let mut words = call.words.iter().peekable();
    while let Some(word) = words.next() {
        let text = word.known_start();
        if is_wget && prints_documents(text, words.peek().copied()) {
            if text.ends_with('O') {
                words.next();
            }
        } else if let Some(file) = sent_file(text) {
            facts.add_at_places(
                Effect::Read,
                walker.state.folders.resolve_places(&Field::Known(file.to_owned())),
            );
            facts.at_least(Risk::High);
        } else if let Some(joined) = written_file(text) {
            let file = if joined.is_empty() {
                words.next().cloned()
            } else {
                Some(Field::Known(joined.to_owned()))
            };
            if let Some(file) =
                file.filter(|file| !matches!(file.known_text(), Some("-" | "/dev/null")))
            {
                facts.add_at_places(Effect::Write, walker.state.folders.resolve_places(&file));
            }
        } else if !text.starts_with('-') && obfuscation::parse_host(text).is_some() {
            walker.oddities.extend(obfuscation::in_address(text));
            hosts.push(obfuscation::parse_host(text));
        }
    }
    let names_files =
        |word: &Field| matches!(word.known_text(), Some("-O" | "--remote-name" | "-J"));
    let writes_here =
        if is_wget { !only_prints(call.words) } else { call.words.iter().any(names_files) };
    if writes_here {
        facts.add_at_places(Effect::Write, walker.state.folders.current_places());
    }
    facts_with_hosts(hosts, facts)
}

/// The hosts, which are the first that a question is about, and what else is done.
fn facts_with_hosts(mut hosts: Vec<Option<String>>, others: CommandFacts) -> CommandFacts {
    if hosts.is_empty() {
        hosts.push(None);
    }
    let mut facts = CommandFacts::default();
    for host in hosts {
        facts.add(Effect::Network(host));
    }
    facts.merge_with(others);
    facts
}

/// Letters of `wget` options without a value that write nothing.
const WGET_LETTERS: &str = "46dqSv";
/// Long options of `wget` that write nothing, the value joined.
const WGET_OPTIONS: [&str; 8] = [
    "--header=",
    "--no-verbose",
    "--quiet",
    "--server-response",
    "--timeout=",
    "--tries=",
    "--user-agent=",
    "--max-redirect=",
];

/// True if an option of `wget` has documents printed: `-O -`, also in a bundle such as `-qO-`.
fn prints_documents(text: &str, next: Option<&Field>) -> bool {
    if let Some(file) = text.strip_prefix("--output-document=") {
        return is_printed(file);
    }
    let Some((letters, file)) = text.strip_prefix('-').and_then(|text| text.split_once('O')) else {
        return false;
    };
    let is_plain = letters.chars().all(|letter| WGET_LETTERS.contains(letter));
    let next = || next.and_then(Field::known_text).is_some_and(is_printed);
    is_plain && if file.is_empty() { next() } else { is_printed(file) }
}

fn is_printed(file: &str) -> bool {
    matches!(file, "-" | "/dev/null" | "/dev/stdout")
}

/// True if all that `wget` gets are addresses and options with which it only prints.
fn only_prints(words: &[Field]) -> bool {
    let mut prints = false;
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        let Some(text) = word.known_text() else { return false };
        if prints_documents(text, words.peek().copied()) {
            prints = true;
            if text.ends_with('O') {
                words.next();
            }
            continue;
        }
        let is_plain = match text.strip_prefix('-') {
            None | Some("nv") => true,
            Some(long) if long.starts_with('-') => {
                WGET_OPTIONS.iter().any(|option| text.starts_with(option))
            }
            Some(letters) => letters.chars().all(|letter| WGET_LETTERS.contains(letter)),
        };
        if !is_plain {
            return false;
        }
    }
    prints
}

/// A file whose contents go out: `-d @file`, `-T file`, `--upload-file=file`.
fn sent_file(text: &str) -> Option<&str> {
    let given = text
        .strip_prefix("--upload-file=")
        .or_else(|| text.strip_prefix("--post-file="))
        .or_else(|| text.strip_prefix("--body-file="))
        .or_else(|| text.strip_prefix("-T").filter(|file| !file.is_empty()));
    let at_file = || {
        text.split_once('@').filter(|(before, _)| {
            before.is_empty()
                || before.ends_with('=')
                || before.starts_with("-d")
                || before.starts_with("--data")
        })
    };
    given
        .or_else(|| at_file().map(|(_, file)| file))
        .filter(|file| !file.is_empty() && *file != "-")
}

/// A file that is written: what is joined to the option, empty when it is the next word.
fn written_file(text: &str) -> Option<&str> {
    ["--output=", "--output-document=", "--dump-header=", "--output-file=", "--cookie-jar="]
        .iter()
        .find_map(|option| text.strip_prefix(option))
        .or_else(|| {
            matches!(text, "-o" | "--output" | "--output-document" | "--dump-header" | "-D" | "-c")
                .then_some("")
        })
}

/// Commands of `kubectl config` that ask no server.
const SHOWING_CONFIG: [&str; 5] =
    ["current-context", "get-clusters", "get-contexts", "get-users", "view"];

/// Installers, which need no network where an option says so.
pub(super) fn analyse_installer(walker: &mut Walker<'_>, call: &ProgramCall<'_>) -> CommandFacts {
    let mut facts = walker.generic_facts(call);
    let offline = match call.title.split(' ').next() {
        Some("npm" | "pnpm" | "yarn" | "uv") => "--offline",
        Some("bundle") => "--local",
        Some("pip" | "pip3") => "--no-index",
        _ => return facts,
    };
    let mut last = None;
    for word in call.words.iter().map(Field::known_text).take_while(|word| *word != Some("--")) {
        // Its opposite or a value (`--offline=false`, `--offline false`) takes it back.
        let name = offline.trim_start_matches('-');
        let is_of_it = word.is_none_or(|word| word.contains(name) || word == "false");
        last = if is_of_it { word } else { last };
    }
    if last == Some(offline) {
        facts.effects.retain(|effect| !matches!(effect, Effect::Network(_)));
    }
    facts
}

/// Programs that steer clouds and clusters: the verb tells how bad it is.
pub(super) fn analyse_cluster(walker: &mut Walker<'_>, call: &ProgramCall<'_>) -> CommandFacts {
    let mut facts = walker.generic_facts(call);
    let verbs: Vec<&str> = call
        .words
        .iter()
        .filter_map(Field::known_text)
        .filter(|word| !word.starts_with('-'))
        .collect();
    if let ("kubectl" | "oc", ["config", verb]) = (call.title, verbs.as_slice())
        && SHOWING_CONFIG.contains(verb)
    {
        // Behind the reading walls the file does not exist, and the answer would be wrong.
        facts.effects.retain(|effect| !matches!(effect, Effect::Network(_)));
        facts.add(Effect::Secret("its settings, which hold credentials".to_owned()));
        return facts;
    }
    if verbs.iter().take(4).any(|verb| DESTRUCTIVE.contains(verb)) {
        facts.add(Effect::System(format!("{} {}", call.title, verbs.join(" "))));
        facts.at_least(if verbs.contains(&"destroy") { Risk::Critical } else { Risk::High });
    }
    if verbs.iter().take(4).any(|verb| REVEALING.contains(verb)) {
        facts.add(Effect::Secret(format!("{} {}", call.title, verbs.join(" "))));
    }
    if verbs.iter().take(3).any(|verb| {
        matches!(
            *verb,
            "exec"
                | "run"
                | "debug"
                | "ssh"
                | "apply"
                | "console"
                | "shell"
                | "tunnel"
                | "port-forward"
                | "proxy"
        )
    }) {
        facts.add(Effect::Runs(format!("{} {}", call.title, verbs.join(" "))));
    }
    facts
}

/// Databases: a statement that drops or deletes is bad; reading ones are still not proved.
pub(super) fn analyse_database(walker: &mut Walker<'_>, call: &ProgramCall<'_>) -> CommandFacts {
    let mut facts = walker.generic_facts(call);
    let loses = call.words.iter().any(|word| {
        let text = word.known_start().to_ascii_uppercase();
        [
            "DROP ",
            "TRUNCATE ",
            "DELETE FROM",
            "FLUSHALL",
            "FLUSHDB",
            "DROPDATABASE",
            ".SHELL",
            "\\!",
        ]
        .iter()
        .any(|mark| text.contains(mark))
    });
    if loses || matches!(call.title, "dropdb" | "dropuser") {
        facts.at_least(Risk::High);
    }
    facts
}
