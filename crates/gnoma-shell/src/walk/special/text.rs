//! Small text programs of which some options decide.

use super::super::Walker;
use super::super::facts_of::Facts;
use super::super::program::Call;
use crate::expand::Field;
use crate::facts::{Effect, Place};
use crate::programs::Role;

/// What the table says when one of `options` is given; without it the program does more.
pub(super) fn only_with(walker: &mut Walker<'_>, call: &Call<'_>, options: &[&str]) -> Facts {
    let mut facts = walker.generic(call);
    if !call.sorted.has(options) {
        for operand in &call.sorted.operands {
            walker.act(call, Role::Write, operand, &mut facts);
        }
        let wanted = options.first().copied().unwrap_or_default();
        facts.add(Effect::Unknown(format!(
            "`{}` only looks when it is given `{wanted}`",
            call.title
        )));
    }
    facts
}

/// `jq` reads only, but its filters can show the environment.
pub(super) fn jq(walker: &mut Walker<'_>, call: &Call<'_>) -> Facts {
    let mut facts = walker.generic(call);
    let filter =
        if call.sorted.has(&["f", "from-file"]) { None } else { call.sorted.operands.first() };
    match filter {
        Some(Field::Known(text)) if shows_environment(text) => {
            facts.add(Effect::Secret("the environment".to_owned()));
        }
        Some(Field::Known(_)) | None => {}
        Some(filter) => {
            facts.add(Effect::Unknown(format!("jq: filter `{filter}` may show the environment")));
        }
    }
    if filter.is_none() && call.sorted.has(&["f", "from-file"]) {
        facts.add(Effect::Unknown("jq: what the filter in a file shows is not known".to_owned()));
    }
    facts
}

/// Whether a filter has the word `env`, or `$ENV`.
fn shows_environment(filter: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut rest = filter;
    while let Some(at) = rest.find("env").or_else(|| rest.find("ENV")) {
        let before = rest.get(..at).and_then(|text| text.chars().next_back());
        let after = rest.get(at + 3..).and_then(|text| text.chars().next());
        if !before.is_some_and(|c| is_name(c) || c == '.') && !after.is_some_and(is_name) {
            return true;
        }
        rest = rest.get(at + 3..).unwrap_or_default();
    }
    false
}

/// `yq` of either kind: an expression, then files; operators that read or run are left to a question.
pub(super) fn yq(walker: &mut Walker<'_>, call: &Call<'_>) -> Facts {
    const STRANGE: [&str; 9] =
        ["load", "env", "strenv", "envsubst", "ENV", "input", "system", "exec", "split_doc"];
    let mut facts = walker.options(call);
    let verbs = ["e", "eval", "ea", "eval-all"];
    let skipped = usize::from(call.sorted.operand(0).is_some_and(|word| verbs.contains(&word)));
    let mut operands = call.sorted.operands.iter().skip(skipped);
    match operands.next() {
        Some(Field::Known(text)) if STRANGE.iter().any(|word| text.contains(word)) => {
            facts.add(Effect::Unknown(format!("yq: what `{text}` reads is not known")));
        }
        Some(Field::Known(text))
            if text.contains(['(', '|', '[', '{', '=']) || text.starts_with('.') => {}
        Some(Field::Known(text)) => facts.add(Effect::Read(Place::Unknown(text.clone()))),
        Some(word) => facts.add(Effect::Unknown(format!("yq: `{word}` is not known"))),
        None => {}
    }
    for operand in operands {
        walker.act(call, Role::Read, operand, &mut facts);
    }
    facts
}

/// `espeak` speaks, unless it is told to be quiet.
pub(super) fn espeak(walker: &mut Walker<'_>, call: &Call<'_>) -> Facts {
    let mut facts = walker.generic(call);
    if !call.sorted.has(&["q", "quiet"]) {
        facts.add(Effect::System("speaks".to_owned()));
    }
    facts
}

/// `openssl` commands that read and print; keys and passwords are secrets.
pub(super) fn openssl(walker: &mut Walker<'_>, call: &Call<'_>) -> Facts {
    let mut facts = walker.options(call);
    for operand in &call.sorted.operands {
        walker.act(call, Role::Read, operand, &mut facts);
    }
    facts
}
