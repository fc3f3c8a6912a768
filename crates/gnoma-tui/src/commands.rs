//! Slash commands, one file each. They act on the state as keys do.

mod add_dir;
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
mod lists;
mod log;
mod login;
mod mcp;
mod memory;
mod model;
mod permission;
mod plan;
mod profile;
mod provider;
mod redo;
mod rename;
mod resume;
mod rewind;
mod route;
mod shell;
mod shell_commands;
mod slash;
mod status;
mod task;
mod theme;
mod thinking;
mod usage;
mod version;
mod vim;
mod why;

pub(crate) use self::{
    model::fill_model_list as models_listed,
    slash::SlashCommandSpec,
    task::{complete_task, run_listed_task as choose_task},
};
use gnoma_core::protocol::{Reply, Request, Switch};

use crate::{
    app::{LookUpTarget, State},
    fuzzy, remedies,
};

/// Commands that are named where a name is like theirs.
const MAX_NEAREST: usize = 4;
/// Longer names are like no other.
const MAX_NAME_CHARS: usize = 64;

/// All commands, those that are used most first.
pub(crate) const ALL: &[&SlashCommandSpec] = &[
    &HELP,
    &model::COMMAND,
    &clear::COMMAND,
    &resume::COMMAND,
    &compact::COMMAND,
    &permission::COMMAND,
    &diff::COMMAND,
    &rewind::COMMAND,
    &usage::COMMAND,
    &context::COMMAND,
    &status::COMMAND,
    &login::COMMAND,
    &provider::COMMAND,
    &plan::COMMAND,
    &thinking::COMMAND,
    &init::COMMAND,
    &add_dir::COMMAND,
    &redo::COMMAND,
    &copy::COMMAND,
    &config::COMMAND,
    &mcp::COMMAND,
    &task::COMMAND,
    &lists::AGENTS,
    &lists::SKILLS,
    &lists::PLUGINS,
    &memory::COMMAND,
    &hooks::COMMAND,
    &elfs::COMMAND,
    &why::COMMAND,
    &route::COMMAND,
    &good::COMMAND,
    &bad::COMMAND,
    &fork::COMMAND,
    &rename::COMMAND,
    &export::COMMAND,
    &incognito::COMMAND,
    &theme::COMMAND,
    &vim::COMMAND,
    &keys::COMMAND,
    &profile::COMMAND,
    &drop::COMMAND,
    &cache::COMMAND,
    &shell::COMMAND,
    &shell_commands::DOCTOR,
    &shell_commands::TRUST,
    &log::COMMAND,
    &version::COMMAND,
    &detach::COMMAND,
    &exit::COMMAND,
];

/// The list of all of them is made here, so that no command needs to know the others.
const HELP: SlashCommandSpec = SlashCommandSpec {
    name: "help",
    aliases: &["?"],
    arguments: "",
    about: "list commands and input shortcuts",
    run: |state, _| help::show_help(state, ALL),
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

/// Returns the names of the commands.
pub(crate) fn command_names() -> &'static [&'static str] {
    &NAMES
}

/// Returns the names by which commands of the conversation are called, without the slash.
pub fn slash_command_names() -> impl Iterator<Item = &'static str> {
    NAMES.into_iter().chain(ALL.iter().flat_map(|command| command.aliases.iter().copied()))
}

/// Returns what can follow a command of the conversation, as the help shows it, such as `[name or number]`; empty for
/// nothing. `None` where no command has this name.
#[must_use]
pub fn slash_command_arguments(name: &str) -> Option<&'static str> {
    find_command(name).map(|command| command.arguments)
}

/// The meaning of a name behind a slash.
#[derive(Clone, Copy)]
pub(crate) enum SlashMeaning<'a> {
    /// One of gnoma's commands.
    BuiltIn(&'static SlashCommandSpec),
    /// One of people's own.
    Own(&'a str),
    /// The beginning of several names.
    Ambiguous,
    /// The name of none.
    Unknown,
}

/// Finds the command that `written` names, in small letters or capitals: by its whole name, by an alias, or by a
/// beginning that no other command has. Letters that only occur in a name in this order name nothing.
pub(crate) fn resolve_command<'a>(written: &str, own: &[&'a str]) -> SlashMeaning<'a> {
    let written = written.trim_start_matches('/');
    // Names of people's own commands may differ in nothing but their capitals.
    if let Some(name) = own.iter().find(|name| **name == written) {
        return SlashMeaning::Own(name);
    }
    let lower = written.to_lowercase();
    let written = lower.as_str();
    if let Some(command) = find_command(written) {
        return SlashMeaning::BuiltIn(command);
    }
    if written.is_empty() {
        return SlashMeaning::Ambiguous;
    }
    let names = |command: &&'static SlashCommandSpec| {
        std::iter::once(command.name).chain(command.aliases.iter().copied())
    };
    let begins =
        |command: &&&'static SlashCommandSpec| names(command).any(|name| name.starts_with(written));
    let built_in = ALL.iter().filter(begins).map(|command| SlashMeaning::BuiltIn(command));
    let is_begun = |name: &&&str| name.to_lowercase().starts_with(written);
    let own = own.iter().filter(is_begun).map(|name| SlashMeaning::Own(name));
    let mut all = built_in.chain(own);
    match (all.next(), all.next()) {
        (None, _) => SlashMeaning::Unknown,
        (Some(only), None) => only,
        (Some(_), Some(_)) => SlashMeaning::Ambiguous,
    }
}

/// The commands that a misspelt name is like, of these and of people's `own`, the nearest first: those that it
/// begins, then those of which about a letter in three is wrong.
pub(crate) fn nearest_commands<'a>(written: &str, own: &[&'a str]) -> Vec<&'a str> {
    let written = written.trim_start_matches('/').to_lowercase();
    let length = written.chars().count();
    if length > MAX_NAME_CHARS || length == 0 {
        return Vec::new();
    }
    let distance = |name: &str| {
        if name.starts_with(&written) {
            return Some(0);
        }
        let distance = strsim::osa_distance(&written, name);
        (distance <= (length.max(name.chars().count()) / 3).max(1)).then_some(distance)
    };
    let of_command = |command: &&'static SlashCommandSpec| {
        let names = std::iter::once(command.name).chain(command.aliases.iter().copied());
        names.filter_map(distance).min().map(|distance| (distance, command.name))
    };
    let own = own.iter().filter_map(|name| Some((distance(name)?, *name)));
    let mut near: Vec<(usize, &str)> = ALL.iter().filter_map(of_command).chain(own).collect();
    gnoma_core::sort::by_key(&mut near, |(distance, _)| *distance);
    let best = near.first().map_or(0, |(distance, _)| *distance);
    // A name that is much nearer than the others is the one.
    near.retain(|(distance, _)| *distance <= best + 1);
    near.into_iter().take(MAX_NEAREST).map(|(_, name)| name).collect()
}

/// The names that `written` can become, in the order in which they are offered: those that begin with it, or have
/// an alias that does, those that contain it, and those that have its letters in this order.
pub(crate) fn rank_commands<'a>(written: &str, names: &[&'a str]) -> Vec<&'a str> {
    let lower = written.to_lowercase();
    let written = lower.as_str();
    let best = fuzzy::rank_candidates(written, names, names.len());
    let best: Vec<&str> = best.into_iter().filter_map(|index| names.get(index).copied()).collect();
    let aliases = |name: &str| find_command(name).map_or(&[] as &[&str], |command| command.aliases);
    let begins = |name: &&&str| {
        name.starts_with(written) || aliases(name).iter().any(|alias| alias.starts_with(written))
    };
    // Of those that begin with it, the one that is used most comes first.
    let first: Vec<&str> = names.iter().filter(begins).copied().collect();
    let contains = |name: &&&str| name.contains(written) && !first.contains(name);
    let second: Vec<&str> = best.iter().filter(contains).copied().collect();
    let is_new = |name: &&&str| !first.contains(name) && !second.contains(name);
    let third: Vec<&str> = best.iter().filter(is_new).copied().collect();
    [first, second, third].concat()
}

/// A command as it is offered for what was written; with the alias that begins with it, where the name does not.
fn with_alias(name: &str, written: &str) -> String {
    let alias = find_command(name).filter(|_| !name.starts_with(written));
    let alias = alias.and_then(|command| {
        command.aliases.iter().find(|alias| alias.starts_with(written) && !written.is_empty())
    });
    alias.map_or_else(|| format!("/{name}"), |alias| format!("/{alias} (/{name})"))
}

/// Returns the message about a name that names no command, or several.
pub(crate) fn explain_unknown(name: &str, own: &[&str]) -> String {
    let written = name.trim_start_matches('/').to_lowercase();
    let near = nearest_commands(name, own);
    let near: Vec<_> = near.into_iter().map(|found| with_alias(found, &written)).collect();
    let or = |names: &[String]| match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, first)) => format!("{} or {last}", first.join(", ")),
        None => String::new(),
    };
    match resolve_command(name, own) {
        SlashMeaning::Ambiguous if near.is_empty() => {
            "Type the name of a command, or choose one".to_owned()
        }
        SlashMeaning::Ambiguous => format!("{name} could be {}: type more of it", or(&near)),
        _ if near.is_empty() => format!("Unknown command {name}. Type /help for a list"),
        _ => format!("Unknown command {name}. Did you mean {}?", or(&near)),
    }
}

/// Describes the purpose of a command in a few words; empty for one that does not exist.
pub(crate) fn describe_command(name: &str) -> &'static str {
    find_command(name).map_or("", |command| command.about)
}

/// Reports whether a line is meant as a command. A path at its beginning is not.
pub(crate) fn is_command(line: &str) -> bool {
    let Some(rest) = line.strip_prefix('/') else { return false };
    let name = rest.split_whitespace().next().unwrap_or_default();
    !name.is_empty() && !name.contains('/') && !rest.starts_with(char::is_whitespace)
}

/// Reports whether the lines behind this first one belong to the command.
pub(crate) fn takes_lines(first: &str) -> bool {
    first.trim_end() == compact::EDIT.trim_end()
}

/// The name and the argument of a line that begins with a slash.
pub(crate) fn split_command(line: &str) -> Option<(&str, &str)> {
    let rest = line.trim().strip_prefix('/')?;
    let (name, argument) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    Some((name, argument.trim()))
}

/// Does what a line says, as if it had been written.
pub(crate) fn run_command(state: &mut State, line: &str) {
    if let Some((name, argument)) = split_command(line)
        && let Some(command) = find_command(name)
    {
        (command.run)(state, argument);
    }
}

/// Returns the note that is shown when a session has gone on in another way, unless the host says something.
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
            Switch::Folder(_) => "/add-dir",
            Switch::New => "/clear",
            Switch::Stored(_) | Switch::Copy(_) => "/resume",
        },
        _ => "a command",
    }
}

/// Shows what was looked up for a command with this argument.
pub(crate) fn show_reply(state: &mut State, sought: LookUpTarget, reply: Reply, argument: &str) {
    match (sought, reply) {
        (LookUpTarget::Changes, Reply::Text(diff)) => diff::show_diff(state, &diff),
        (LookUpTarget::Explanation, Reply::Text(text)) => {
            state.show_multiline(&remedies::in_window(&text));
        }
        (LookUpTarget::Summary, Reply::Text(text)) => compact::show_summary(state, &text, argument),
        (LookUpTarget::Window, Reply::Window { used, sources }) => {
            context::show_window_use(state, used, &sources);
        }
        (LookUpTarget::Conversations, Reply::Stored(sessions)) => {
            resume::offer_sessions(state, sessions, argument);
        }
        (LookUpTarget::Points, Reply::Points(points)) => {
            rewind::offer_rewind_points(state, points, argument);
        }
        (LookUpTarget::Settings, Reply::Settings(settings)) => {
            config::offer_settings(state, settings, argument);
        }
        (LookUpTarget::Models, Reply::Choices(models)) => {
            model::offer_models(state, models, argument);
        }
        (LookUpTarget::Providers, Reply::Choices(names)) => {
            provider::offer_providers(state, names, argument);
        }
        (LookUpTarget::Connections, Reply::Choices(names)) => {
            state.offer_connections(&names, argument);
        }
        (LookUpTarget::Removable, Reply::Choices(names)) => login::show_removable(state, names),
        (LookUpTarget::Tasks, Reply::Choices(tasks)) => task::offer_tasks(state, tasks),
        (LookUpTarget::TaskWords, Reply::Choices(words)) => {
            task::offer_words(state, words, argument);
        }
        (LookUpTarget::TaskDraft, Reply::Text(diff)) => task::show_draft(state, &diff, argument),
        (LookUpTarget::Profiles, Reply::Choices(names)) => {
            profile::offer_profiles(state, names, argument);
        }
        _ => (),
    }
}

fn find_command(name: &str) -> Option<&'static SlashCommandSpec> {
    let is_named =
        |command: &&&SlashCommandSpec| command.name == name || command.aliases.contains(&name);
    ALL.iter().find(is_named).copied()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn command_names_and_aliases_are_unique() {
        let names: Vec<&str> = ALL
            .iter()
            .flat_map(|command| command.aliases.iter().copied().chain([command.name]))
            .collect();
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
    }

    #[test]
    fn command_help_lines_fit_the_name_column() {
        for command in ALL {
            let length = command.name.len() + command.arguments.len() + "/ ".len();
            assert!(length < help::NAME_COLUMNS && !command.about.is_empty(), "{}", command.name);
        }
    }

    #[test]
    fn misspelt_slash_command_suggests_the_nearest() {
        for (written, meant) in [
            ("/modle", "model"),
            ("/clera", "clear"),
            ("/Rewind", "rewind"),
            ("/reviw", "review"),
            ("/loggin", "login"),
            ("/permision", "permission"),
        ] {
            assert_eq!(nearest_commands(written, &["review"]).first(), Some(&meant), "{written}");
        }
        for written in ["/frobnicate", "/", &"x".repeat(100_000)] {
            assert!(nearest_commands(written, &["review"]).is_empty(), "{written:.20}");
        }
        assert!(explain_unknown("/frobnicate", &[]).contains("/help"));
        assert!(explain_unknown("/c", &[]).contains("could be /"));
    }

    #[test]
    fn slash_command_resolves_by_name_alias_or_unique_prefix() {
        let meant = |written: &str| match resolve_command(written, &["review", "modern"]) {
            SlashMeaning::BuiltIn(command) => command.name.to_owned(),
            SlashMeaning::Own(name) => format!("own {name}"),
            SlashMeaning::Ambiguous => "?".to_owned(),
            SlashMeaning::Unknown => "-".to_owned(),
        };
        for (written, name) in [
            ("/model", "model"),
            ("/Model", "model"),
            ("/HELP", "help"),
            ("/REN", "rename"),
            ("/Review", "own review"),
            ("/models", "model"),
            ("/mode", "permission"),
            ("/permissions", "permission"),
            ("/perm", "permission"),
            ("/effort", "thinking"),
            ("/rename", "rename"),
            ("/agents", "agents"),
            ("/skills", "skills"),
            ("/plugins", "plugins"),
            ("/memory", "memory"),
            ("/doctor", "doctor"),
            ("/trust", "trust"),
            ("/version", "version"),
            ("/login", "login"),
            ("/log", "log"),
            ("/providers", "login"),
            ("/status", "status"),
            ("/review", "own review"),
            ("/revi", "own review"),
            ("/rewi", "rewind"),
            ("/compa", "compact"),
            ("/c", "?"),
            ("/mod", "?"),
            ("/", "?"),
            ("/ps", "-"),
            ("/mdl", "-"),
            ("/pms", "-"),
            ("/cpy", "-"),
        ] {
            assert_eq!(meant(written), name, "{written}");
        }
    }

    /// No letters in between: a command runs only where one of its names begins with what is written.
    #[test]
    fn scattered_letters_resolve_to_no_slash_command() {
        let names = || {
            ALL.iter().flat_map(|command| {
                std::iter::once(command.name).chain(command.aliases.iter().copied())
            })
        };
        for name in names() {
            let letters: String = name.chars().step_by(2).collect();
            if let SlashMeaning::BuiltIn(command) = resolve_command(&letters, &[]) {
                let all = std::iter::once(command.name).chain(command.aliases.iter().copied());
                assert!(all.into_iter().any(|name| name.starts_with(&letters)), "{letters}");
            }
        }
    }

    #[test]
    fn file_path_is_not_a_slash_command() {
        assert!(is_command("/model opus"));
        assert!(is_command("/nonsense"));
        assert!(!is_command("/usr/bin/env is missing"));
        assert!(!is_command("/ model"));
        assert_eq!(split_command("/perm  plan "), Some(("perm", "plan")));
    }
}
