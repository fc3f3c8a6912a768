//! Commands of git whose meaning changes with their operands.

use super::super::Walker;
use super::super::facts_of::Facts;
use super::super::program::Call;
use crate::expand::{Field, place};
use crate::facts::{Effect, Risk};
use crate::programs::Consequence;

/// Settings that only change how things look, for `git -c`.
const HARMLESS_SETTINGS: [&str; 12] = [
    "color.",
    "core.quotepath",
    "core.quotePath",
    "core.pager=cat",
    "log.date",
    "advice.",
    "diff.renames",
    "diff.algorithm",
    "core.abbrev",
    "core.fsmonitor=false",
    "column.",
    "status.",
];

/// `git -c`: a setting can name a program that git then runs.
pub(in super::super) fn options(call: &Call<'_>) -> Facts {
    let mut facts = Facts::default();
    for given in call.sorted.options.iter().filter(|given| given.name == "c") {
        let harmless =
            given.values.last().and_then(Field::known).is_some_and(|value| {
                HARMLESS_SETTINGS.iter().any(|start| value.starts_with(start))
            });
        if !harmless {
            facts.add(Effect::Unknown("`git -c` may set a program that git runs".to_owned()));
        }
    }
    facts
}

/// `git branch`, `git tag`: a list without operands or with an option that lists.
pub(super) fn list(walker: &mut Walker<'_>, call: &Call<'_>) -> Facts {
    let mut facts = walker.options(call);
    let lists = call.sorted.has(&[
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
        && call.sorted.has(&["a", "r", "all", "remotes"]));
    if !lists && !call.sorted.operands.is_empty() && facts.effects.is_empty() {
        facts.add(Effect::Repository(call.title.to_owned()));
    }
    facts
}

/// `git config`: shows a value for one name or an option that shows; sets for two.
pub(super) fn config(walker: &mut Walker<'_>, call: &Call<'_>) -> Facts {
    let mut facts = walker.options(call);
    let shows = call.sorted.leads_to(Consequence::Lists);
    let names_one = call.sorted.operands.len() == 1
        && call.sorted.operand(0).is_some_and(|name| name.contains('.'));
    if !shows && !names_one {
        facts.add(Effect::Repository("git config".to_owned()));
        facts.add(Effect::Unknown("settings of git may name programs it runs".to_owned()));
        facts.at_least(Risk::High);
    }
    facts
}

/// `git checkout`: with paths it overwrites what is not committed.
pub(super) fn checkout(walker: &mut Walker<'_>, call: &Call<'_>) -> Facts {
    let mut facts = walker.options(call);
    facts.add(Effect::Repository("git checkout".to_owned()));
    facts.add(Effect::Write(place::folder(call.cwd.as_deref())));
    let creates = call.sorted.has(&["b", "B", "orphan"]);
    let operands = call.sorted.operands.len();
    let names_paths = call.sorted.before_dashes.is_some_and(|before| operands > before);
    if names_paths || (!creates && (operands > 1 || call.sorted.operand(0) == Some("."))) {
        facts.at_least(Risk::High);
    }
    facts
}

/// `git restore`: takes back changes of files, unless only the index is meant.
pub(super) fn restore(walker: &mut Walker<'_>, call: &Call<'_>) -> Facts {
    let mut facts = walker.options(call);
    facts.add(Effect::Repository("git restore".to_owned()));
    let index_only = call.sorted.has(&["S", "staged"]) && !call.sorted.has(&["W", "worktree"]);
    if !index_only {
        for operand in &call.sorted.operands {
            facts.add(Effect::Write(place::place(operand, call.cwd.as_deref())));
        }
        facts.at_least(Risk::High);
    }
    facts
}
