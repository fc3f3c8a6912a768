//! Deleting, copying, changing modes, raw copies.

use std::path::Path;

use super::super::Walker;
use super::super::call::ProgramCall;
use super::super::command_facts::{CommandFacts, is_nowhere};
use crate::expand::{Field, place};
use crate::facts::{Effect, FilePlace, Risk};
use crate::programs::{Consequence, Role};

/// `rm` and its like.
pub(super) fn analyse_rm(walker: &mut Walker<'_>, call: &ProgramCall<'_>) -> CommandFacts {
    let mut facts = walker.generic_facts(call);
    let recursive = call.sorted.has_option(&["r", "R", "recursive", "no-preserve-root"]);
    let forced = call.sorted.has_option(&["f", "force"]);
    for operand in &call.sorted.operands {
        for place in call.cwd.resolve_places(operand) {
            let worst = gives_up_everything(walker, &place);
            facts.at_least(match (recursive, worst) {
                (_, true) => Risk::Critical,
                (true, false) if forced && matches!(place, FilePlace::Unknown(_)) => Risk::Critical,
                (true, false) => Risk::High,
                (false, false) => Risk::Medium,
            });
        }
    }
    facts
}

/// `mktemp`: makes a new name among temporary files, or where its template says.
pub(super) fn analyse_mktemp(walker: &mut Walker<'_>, call: &ProgramCall<'_>) -> CommandFacts {
    let mut facts = walker.option_facts(call);
    if call.sorted.leads_to(Consequence::Nothing) {
        return facts;
    }
    match call.sorted.operands.first() {
        Some(template) if !call.sorted.has_option(&["p", "t", "tmpdir"]) => {
            facts.add_at_places(Effect::Write, call.cwd.resolve_places(template));
        }
        _ => facts.add(Effect::Write(FilePlace::Path(Path::new("/tmp").into()))),
    }
    for folder in call.sorted.options.iter().filter(|given| matches!(&*given.name, "p" | "tmpdir"))
    {
        for field in &folder.values {
            facts.add_at_places(Effect::Write, call.cwd.resolve_places(field));
        }
    }
    facts
}

/// True if losing this place loses the system, the home, or all of a working folder's surroundings.
pub(super) fn gives_up_everything(walker: &Walker<'_>, place: &FilePlace) -> bool {
    let path = match place {
        FilePlace::Path(path) => path.as_path(),
        FilePlace::Pattern { base, pattern } if pattern.ends_with("/*") => base,
        FilePlace::Pattern { .. } | FilePlace::Unknown(_) => return false,
    };
    let path = &place::normalize_path(path);
    let home = walker.start.home.as_deref();
    let holds = |inner: &Path| inner.starts_with(path);
    let is_top = path.components().count() <= 2 && path != Path::new("/tmp");
    is_top || home.is_some_and(holds) || walker.start.cwd.starts_with(path)
}

/// `cp`, `mv`, `ln`, `install`: the last operand is written, unless an option names the target.
pub(super) fn analyse_copy(walker: &mut Walker<'_>, call: &ProgramCall<'_>) -> CommandFacts {
    let mut facts = walker.option_facts(call);
    let makes_folders =
        call.title.ends_with("install") && call.sorted.has_option(&["d", "directory"]);
    let target_given = call.sorted.has_option(&["t", "target-directory"]);
    let count = call.sorted.operands.len();
    let is_move = call.title.ends_with("mv");
    for (at, operand) in call.sorted.operands.iter().enumerate() {
        let last = at + 1 == count && !target_given;
        let role = match (makes_folders || last, is_move) {
            (true, _) => Role::Write,
            (false, true) => Role::Delete,
            (false, false) => Role::Read,
        };
        let single_link = call.title.ends_with("ln") && count == 1 && !target_given;
        if single_link {
            facts.add_at_places(Effect::Write, call.cwd.current_places());
        }
        let target = link_target(call, operand).filter(|_| role == Role::Read);
        let word = target.as_ref().unwrap_or(operand);
        walker.apply_role(call, if single_link { Role::Read } else { role }, word, &mut facts);
        // With an option a copy may also replace what is there, or change its owner and mode.
        let sink = operand.known_text().filter(|text| *text != "-" && is_nowhere(text));
        if let Some(sink) = sink.filter(|_| role == Role::Write && !call.sorted.options.is_empty())
        {
            facts.add(Effect::Write(FilePlace::Path(sink.into())));
        }
        let swallowed = operand.known_text().is_some_and(is_nowhere);
        if swallowed && count > 1 && (is_move == last) {
            facts.at_least(Risk::High);
        }
    }
    if is_move {
        facts.at_least(Risk::Low);
    }
    facts
}

/// The relative target of a symbolic link that `ln` makes, as it leads on from the folder of the link; `None` where it
/// is as it is written.
fn link_target(call: &ProgramCall<'_>, operand: &Field) -> Option<Field> {
    let sorted = &call.sorted;
    let keeps_text =
        sorted.has_option(&["s", "symbolic"]) && !sorted.has_option(&["r", "relative"]);
    let target = operand.known_text().filter(|text| !text.starts_with(['/', '~']))?;
    if !call.title.ends_with("ln") || !keeps_text {
        return None;
    }
    let given =
        sorted.options.iter().find(|given| matches!(&*given.name, "t" | "target-directory"));
    let folder = match given {
        Some(given) => given.values.last()?.known_text()?,
        None => {
            let link = sorted.operands.last()?.known_text()?;
            let is_folder =
                link.ends_with('/') || matches!(link.rsplit('/').next(), Some("." | ".."));
            if is_folder { link } else { link.rsplit_once('/')?.0 }
        }
    };
    Some(Field::Known(format!("{folder}/{target}")))
}

/// `chmod`, `chown`, `chgrp`: a mode such as `-x` is no option.
pub(super) fn analyse_chmod(walker: &mut Walker<'_>, call: &ProgramCall<'_>) -> CommandFacts {
    let is_chmod = call.title == "chmod";
    let (modes, words): (Vec<Field>, Vec<Field>) = call
        .words
        .iter()
        .cloned()
        .partition(|word| is_chmod && is_mode(word) && word.known_start() != "-v");
    let mode_words = if is_chmod && !modes.is_empty() { &words } else { call.words };
    let sorted = crate::programs::sort_words(call.entry, mode_words);
    let mut facts = CommandFacts::default();
    if let Some(why) = sorted.strange.first() {
        facts.add(Effect::Unknown(format!("{}: {why}", call.title)));
    }
    let named = usize::from(modes.is_empty() && !sorted.has_option(&["reference"]));
    let recursive = sorted.has_option(&["R", "recursive"]);
    for operand in sorted.operands.iter().skip(named) {
        for place in call.cwd.resolve_places(operand) {
            if recursive {
                facts.at_least(if gives_up_everything(walker, &place) {
                    Risk::Critical
                } else {
                    Risk::Medium
                });
            }
            facts.add(Effect::Write(place));
        }
    }
    let opens_to_all = modes.iter().any(|mode| {
        matches!(mode.known_text(), Some("777" | "a+rwx" | "0777" | "666" | "u+s" | "+s" | "4755"))
    });
    if opens_to_all {
        facts.at_least(Risk::High);
    }
    if !is_chmod {
        facts.add(Effect::System(call.title.to_owned()));
    }
    facts
}

/// True if a word of `chmod` is a mode.
fn is_mode(word: &Field) -> bool {
    word.known_text().is_some_and(|text| {
        text.len() > 1
            && text.bytes().all(|byte| b"-+=,rwxXstugoa01234567".contains(&byte))
            && (text.bytes().any(|byte| b"rwxXst".contains(&byte)) && text != "-R"
                || text.starts_with(|c: char| c.is_ascii_digit()))
    })
}

/// Returns the effects of `dd if=… of=…`.
pub(super) fn analyse_dd(walker: &mut Walker<'_>, call: &ProgramCall<'_>) -> CommandFacts {
    let mut facts = CommandFacts::default();
    for word in call.words {
        if let Some(file) = word.strip_prefix("if=") {
            walker.apply_role(call, Role::Read, &file, &mut facts);
        } else if let Some(file) = word.strip_prefix("of=") {
            walker.apply_role(call, Role::Write, &file, &mut facts);
            facts.at_least(Risk::High);
        } else if word.may_be_option() || word.known_text().is_none() {
            facts.add(Effect::Unknown(format!("dd: gnoma does not know what `{word}` means")));
        }
    }
    facts
}
