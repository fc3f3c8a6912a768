//! Commands that are written behind a slash: one file each. They act on the state as keys do.

mod bad;
mod cache;
mod clear;
mod compact;
mod config;
mod context;
mod copy;
mod detach;
mod diff;
mod drop;
mod elfs;
mod exit;
mod export;
mod fork;
mod good;
mod help;
mod hooks;
mod incognito;
mod init;
mod keys;
mod mcp;
mod model;
mod permission;
mod plan;
mod profile;
mod provider;
mod redo;
mod resume;
mod rewind;
mod route;
mod shell;
mod slash;
mod status;
mod theme;
mod thinking;
mod usage;
mod vim;
mod why;

pub(crate) use self::{model::listed as models_listed, slash::Slash};
use gnoma_core::protocol::{Reply, Request, Switch};

use crate::app::{Sought, State};

/// Longer names are like no other.
const MAX_NAME_CHARS: usize = 64;

/// All commands, in the order in which they are listed.
pub(crate) const ALL: &[&Slash] = &[
    &HELP,
    &status::COMMAND,
    &usage::COMMAND,
    &context::COMMAND,
    &cache::COMMAND,
    &mcp::COMMAND,
    &elfs::COMMAND,
    &why::COMMAND,
    &route::COMMAND,
    &good::COMMAND,
    &bad::COMMAND,
    &diff::COMMAND,
    &model::COMMAND,
    &provider::COMMAND,
    &profile::COMMAND,
    &permission::COMMAND,
    &plan::COMMAND,
    &thinking::COMMAND,
    &incognito::COMMAND,
    &config::COMMAND,
    &theme::COMMAND,
    &vim::COMMAND,
    &keys::COMMAND,
    &hooks::COMMAND,
    &init::COMMAND,
    &clear::COMMAND,
    &resume::COMMAND,
    &fork::COMMAND,
    &rewind::COMMAND,
    &redo::COMMAND,
    &drop::COMMAND,
    &compact::COMMAND,
    &copy::COMMAND,
    &export::COMMAND,
    &shell::COMMAND,
    &detach::COMMAND,
    &exit::COMMAND,
];

/// The list of all of them is made here, so that no command needs to know the others.
const HELP: Slash = Slash {
    name: "help",
    aliases: &["?"],
    arguments: "",
    about: "list commands and input shortcuts",
    run: |state, _| help::show(state, ALL),
};

/// Their names, in the same order.
const NAMES: [&str; ALL.len()] = names_of();

const fn names_of() -> [&'static str; ALL.len()] {
    let mut names = [""; ALL.len()];
    let mut place = 0;
    while place < ALL.len() {
        names[place] = ALL[place].name;
        place += 1;
    }
    names
}

/// Their names.
pub(crate) fn names() -> &'static [&'static str] {
    &NAMES
}

/// The command that a misspelt one is nearest to, of these and of people's `own`: about a letter in three may
/// be wrong.
pub(crate) fn nearest<'a>(written: &str, own: &[&'a str]) -> Option<&'a str> {
    let written = written.trim_start_matches('/').to_lowercase();
    let length = written.chars().count();
    if length > MAX_NAME_CHARS {
        return None;
    }
    let near = |name: &'a str| {
        let distance = strsim::osa_distance(&written, name);
        (distance <= (length.max(name.chars().count()) / 3).max(1)).then_some((distance, name))
    };
    let all = NAMES.iter().copied().chain(own.iter().copied());
    all.filter_map(near).min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

/// What a command does, in a few words; empty for one that does not exist.
pub(crate) fn about(name: &str) -> &'static str {
    named(name).map_or("", |command| command.about)
}

/// Whether a line is meant as a command. A path at its beginning is not.
pub(crate) fn is_command(line: &str) -> bool {
    let Some(rest) = line.strip_prefix('/') else { return false };
    let name = rest.split_whitespace().next().unwrap_or_default();
    !name.is_empty() && !name.contains('/') && !rest.starts_with(char::is_whitespace)
}

/// Whether the lines behind this one belong to it.
pub(crate) fn takes_lines(first: &str) -> bool {
    first.trim_end() == compact::EDIT.trim_end()
}

/// The command that a line names, and what follows.
pub(crate) fn find(line: &str) -> Option<(&'static Slash, &str)> {
    let rest = line.trim().strip_prefix('/')?;
    let (name, argument) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    Some((named(name)?, argument.trim()))
}

/// Does what a line says, as if it had been written.
pub(crate) fn run(state: &mut State, line: &str) {
    if let Some((command, argument)) = find(line) {
        (command.run)(state, argument);
    }
}

/// What is said when a session has gone on in another way, unless the host says something.
pub(crate) fn switch_note(request: &Request, has_past: bool) -> &'static str {
    match request {
        Request::Fork | Request::Switch(Switch::Copy(_)) => {
            "This is a copy. The original session is unchanged"
        }
        Request::Switch(Switch::Incognito(true)) if has_past => {
            "Nothing is saved from now on. The model still remembers the conversation so far"
        }
        Request::Switch(Switch::Incognito(true)) => "Nothing is saved from now on",
        Request::Switch(Switch::Incognito(false)) => {
            "Started a new conversation, which is saved. The previous one was not"
        }
        Request::Switch(Switch::New) if has_past => {
            "New conversation. `/resume` lists the earlier ones that were saved"
        }
        _ => "",
    }
}

/// The command that asks for this.
pub(crate) fn name_of(request: &Request) -> &'static str {
    match request {
        Request::Compact { .. } => "/compact",
        Request::Fork => "/fork",
        Request::Switch(switch) => match switch {
            Switch::Model(_) => "/model",
            Switch::Provider(_) => "/provider",
            Switch::Profile(_) => "/profile",
            Switch::Incognito(_) => "/incognito",
            Switch::New => "/clear",
            Switch::Stored(_) | Switch::Copy(_) => "/resume",
        },
        _ => "a command",
    }
}

/// Shows what was looked up for a command with this argument.
pub(crate) fn show(state: &mut State, sought: Sought, reply: Reply, argument: &str) {
    match (sought, reply) {
        (Sought::Changes, Reply::Text(diff)) => diff::show(state, &diff),
        (Sought::Explanation, Reply::Text(text)) => state.tell(&text),
        (Sought::Summary, Reply::Text(text)) => compact::show(state, &text, argument),
        (Sought::Window, Reply::Window { used, sources }) => {
            context::show(state, used, &sources);
        }
        (Sought::Conversations, Reply::Stored(sessions)) => {
            resume::show(state, sessions, argument);
        }
        (Sought::Points, Reply::Points(points)) => rewind::show(state, points, argument),
        (Sought::Settings, Reply::Settings(settings)) => config::show(state, settings, argument),
        (Sought::Models, Reply::Choices(models)) => model::show(state, models, argument),
        (Sought::Providers, Reply::Choices(names)) => provider::show(state, names, argument),
        (Sought::Profiles, Reply::Choices(names)) => profile::show(state, names, argument),
        _ => (),
    }
}

fn named(name: &str) -> Option<&'static Slash> {
    let is_named = |command: &&&Slash| command.name == name || command.aliases.contains(&name);
    ALL.iter().find(is_named).copied()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_name_means_one_command() {
        let names: Vec<&str> = ALL
            .iter()
            .flat_map(|command| command.aliases.iter().copied().chain([command.name]))
            .collect();
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
    }

    #[test]
    fn every_command_leaves_room_for_what_it_does() {
        for command in ALL {
            let length = command.name.len() + command.arguments.len() + "/ ".len();
            assert!(length < help::NAME_COLUMNS && !command.about.is_empty(), "{}", command.name);
        }
    }

    #[test]
    fn a_misspelt_command_is_like_the_one_that_was_meant() {
        for (written, meant) in [
            ("/modle", Some("model")),
            ("/clera", Some("clear")),
            ("/Rewind", Some("rewind")),
            ("/reviw", Some("review")),
            ("/mox", None),
            ("/frobnicate", None),
        ] {
            assert_eq!(nearest(written, &["review"]), meant, "{written}");
        }
        assert_eq!(nearest(&"x".repeat(100_000), &[]), None);
    }

    #[test]
    fn a_path_is_no_command() {
        assert!(is_command("/model opus"));
        assert!(is_command("/nonsense"));
        assert!(!is_command("/usr/bin/env is missing"));
        assert!(!is_command("/ model"));
        assert_eq!(
            find("/perm  plan ").map(|(command, argument)| (command.name, argument)),
            Some(("permission", "plan"))
        );
        assert!(find("/nonsense").is_none());
    }
}
