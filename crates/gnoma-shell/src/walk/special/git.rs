//! Commands of git whose meaning changes with their operands.

use super::super::Walker;
use super::super::call::ProgramCall;
use super::super::command_facts::CommandFacts;
use crate::expand::Field;
use crate::facts::{Effect, FilePlace, Risk};
use crate::programs::Consequence;

/// Settings that only change how things look, for `git -c`.
const HARMLESS_SETTINGS: [&str; 6] = [
    "core.quotepath",
    "log.date",
    "diff.renames",
    "diff.algorithm",
    "core.abbrev",
    "core.quotePath",
];

/// Sections all of whose settings do so.
const HARMLESS_SECTIONS: [&str; 4] = ["color.", "advice.", "column.", "status."];

/// Settings that take a program away.
const WITHOUT_PROGRAM: [&str; 2] = ["core.pager=cat", "core.fsmonitor=false"];

/// Parts of the names of settings that hold passwords, tokens, or addresses with them.
const SECRET_SETTINGS: [&str; 8] =
    ["extraheader", "credential", "token", "pass", "secret", "url.", "http.", "key"];

/// `git -c`: a setting can name a program that git then runs.
pub(in super::super) fn analyse_settings(call: &ProgramCall<'_>) -> CommandFacts {
    let mut facts = CommandFacts::default();
    for given in call.sorted.options.iter().filter(|given| given.name == "c") {
        let harmless = given.values.last().and_then(Field::known_text).is_some_and(|value| {
            let name = value.split('=').next().unwrap_or_default();
            HARMLESS_SETTINGS.contains(&name)
                || HARMLESS_SECTIONS.iter().any(|section| name.starts_with(section))
                || WITHOUT_PROGRAM.contains(&value)
        });
        if !harmless {
            facts.add(Effect::Unknown("`git -c` may set a program that git runs".to_owned()));
        }
    }
    facts
}

/// `git branch`, `git tag`: a list without operands or with an option that lists.
pub(super) fn analyse_list(walker: &mut Walker<'_>, call: &ProgramCall<'_>) -> CommandFacts {
    let mut facts = walker.option_facts(call);
    let lists = call.sorted.has_option(&[
        "l",
        "list",
        "contains",
        "no-contains",
        "merged",
        "no-merged",
        "points-at",
        "show-current",
        "verify",
        "n",
    ]) || (call.title == "git branch"
        && call.sorted.has_option(&["a", "r", "all", "remotes"]));
    if !lists && !call.sorted.operands.is_empty() && facts.effects.is_empty() {
        facts.add(Effect::Repository(call.title.to_owned()));
    }
    facts
}

/// `git config`: shows a value for one name or an option that shows; sets for two.
pub(super) fn analyse_config(walker: &mut Walker<'_>, call: &ProgramCall<'_>) -> CommandFacts {
    let mut facts = walker.option_facts(call);
    let shows = call.sorted.leads_to(Consequence::Lists) || call.title != "git config";
    let names_one = call.sorted.operands.len() == 1
        && call.sorted.operand(0).is_some_and(|name| name.contains('.'));
    if !shows && !names_one {
        facts.add(Effect::Repository("git config".to_owned()));
        facts.add(Effect::Unknown("settings of git may name programs it runs".to_owned()));
        facts.at_least(Risk::High);
    }
    let shows_many = call.sorted.has_option(&["list", "l", "get-regexp", "regexp", "get-urlmatch"])
        || call.title == "git config list";
    let shows_secret = call.sorted.operands.iter().any(|name| {
        name.known_text().is_none_or(|name| {
            let name = name.to_lowercase();
            SECRET_SETTINGS.iter().any(|part| name.contains(part))
        })
    });
    let settings = || "settings of git, with the tokens in them".to_owned();
    if shows_many {
        facts.add(Effect::Settings(settings()));
    }
    if shows_secret || call.sorted.has_option(&["blob"]) {
        facts.add(Effect::Secret(settings()));
    }
    facts
}

/// `git cat-file`: what it shows of objects whose names it reads is not known.
pub(super) fn cat_file(walker: &mut Walker<'_>, call: &ProgramCall<'_>) -> CommandFacts {
    let mut facts = walker.generic_facts(call);
    if call.sorted.has_option(&["batch", "batch-command"]) {
        let named = "the objects that its input names".to_owned();
        facts.add(Effect::Read(FilePlace::Unknown(named)));
    }
    facts
}

/// `git reflog`: shows that of a branch, unless the word is a command.
pub(super) fn analyse_reflog(walker: &mut Walker<'_>, call: &ProgramCall<'_>) -> CommandFacts {
    let mut facts = walker.generic_facts(call);
    let is_revision = |word: &Field| {
        let text = word.known_text().unwrap_or_default();
        text == "HEAD" || text.contains(['@', '/'])
    };
    if let Some(word) = call.sorted.operands.first().filter(|word| !is_revision(word)) {
        facts.add(Effect::Unknown(format!("`{word}` may be a command of `git reflog`")));
    }
    facts
}

/// `git symbolic-ref NAME` shows; with a second name it sets.
pub(super) fn symbolic_ref(walker: &mut Walker<'_>, call: &ProgramCall<'_>) -> CommandFacts {
    let mut facts = walker.option_facts(call);
    if call.sorted.operands.len() != 1 {
        facts.add(Effect::Repository("git symbolic-ref".to_owned()));
    }
    facts
}

/// `git checkout`: with paths it overwrites what is not committed.
pub(super) fn analyse_checkout(walker: &mut Walker<'_>, call: &ProgramCall<'_>) -> CommandFacts {
    let mut facts = walker.option_facts(call);
    facts.add(Effect::Repository("git checkout".to_owned()));
    facts.add_at_places(Effect::Write, call.cwd.current_places());
    let creates = call.sorted.has_option(&["b", "B", "orphan"]);
    let operands = call.sorted.operands.len();
    let names_paths = call.sorted.before_dashes.is_some_and(|before| operands > before);
    if names_paths || (!creates && (operands > 1 || call.sorted.operand(0) == Some("."))) {
        facts.at_least(Risk::High);
    }
    facts
}

/// `git restore`: takes back changes of files, unless only the index is meant.
pub(super) fn analyse_restore(walker: &mut Walker<'_>, call: &ProgramCall<'_>) -> CommandFacts {
    let mut facts = walker.option_facts(call);
    facts.add(Effect::Repository("git restore".to_owned()));
    let index_only =
        call.sorted.has_option(&["S", "staged"]) && !call.sorted.has_option(&["W", "worktree"]);
    if !index_only {
        for operand in &call.sorted.operands {
            facts.add_at_places(Effect::Write, call.cwd.resolve_places(operand));
        }
        facts.at_least(Risk::High);
    }
    facts
}
