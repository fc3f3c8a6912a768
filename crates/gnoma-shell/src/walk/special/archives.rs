//! Archives and compressed files: listed, unpacked, or made.

use super::super::Walker;
use super::super::call::ProgramCall;
use super::super::facts_of::CommandFacts;
use crate::expand::Field;
use crate::facts::{Effect, FilePlace, Risk};
use crate::programs::{Consequence, Role, sort_words};

/// `tar`, also with its first word as a bundle of options without a dash.
pub(super) fn tar(walker: &mut Walker<'_>, call: &ProgramCall<'_>) -> CommandFacts {
    let words = with_dash(call.words);
    let sorted = sort_words(call.entry, &words);
    let call = &ProgramCall { sorted: &sorted, words: &words, cwd: call.cwd.clone(), ..*call };
    let folders = sorted.options.iter().filter(|given| given.role == Role::Folder);
    let into: Vec<&Field> = folders.filter_map(|given| given.values.last()).collect();
    let outer = walker.state.folders.clone();
    // Each is seen from the one before it; which holds for a member depends on the order of the words.
    let cwd = into.iter().fold(outer.clone(), |cwd, folder| cwd.enter(folder));
    let members_in = if into.len() > 1 { cwd.unknown() } else { cwd.clone() };
    let mut facts = CommandFacts::default();
    if let Some(why) = sorted.strange.first() {
        facts.add(Effect::Unknown(format!("tar: {why}")));
    }
    let makes = sorted.leads_to(Consequence::Creates) || sorted.has(&["c", "r", "u", "A"]);
    let unpacks = sorted.leads_to(Consequence::Extracts) || sorted.has(&["x"]);
    let to_output = sorted.has(&["O", "to-stdout"]);
    for given in &sorted.options {
        let Some(value) = given.values.last() else { continue };
        let role = match given.role {
            Role::Archive if makes => Role::Write,
            Role::Archive => Role::Read,
            role => role,
        };
        if value.start().contains(':') && given.role == Role::Archive {
            facts.add(Effect::Network(value.start().split(':').next().map(str::to_owned)));
        }
        let here = ProgramCall { cwd: outer.clone(), ..*call };
        walker.act(&here, role, value, &mut facts);
    }
    if makes {
        if !sorted.options.iter().any(|given| given.role == Role::Archive) {
            facts
                .add(Effect::Write(FilePlace::Unknown("the tape that tar uses by default".into())));
        }
        let here = ProgramCall { cwd: members_in, ..*call };
        let role = if sorted.leads_to(Consequence::Deletes) { Role::Delete } else { Role::Read };
        for operand in &sorted.operands {
            walker.act(&here, role, operand, &mut facts);
        }
    }
    if unpacks && to_output {
        members(walker, call, &sorted.operands, &mut facts);
    }
    if unpacks && !to_output {
        facts.at(Effect::Write, cwd.here());
        if sorted.has(&["P", "absolute-names"]) {
            facts.add(Effect::Unknown("tar: names in the archive may lead anywhere".to_owned()));
        }
    }
    facts
}

/// Members of an archive whose content is printed: what a file of that name would show.
fn members(
    walker: &mut Walker<'_>,
    call: &ProgramCall<'_>,
    names: &[Field],
    facts: &mut CommandFacts,
) {
    let here = ProgramCall { cwd: walker.state.folders.clone(), ..*call };
    for name in names {
        // Names in an archive begin nowhere else.
        let member = match name.known().map(|text| text.trim_start_matches('/')) {
            Some(text) if text.contains(['*', '?', '[']) => Field::Pattern(text.to_owned()),
            Some(text) => Field::Known(text.to_owned()),
            None => name.clone(),
        };
        walker.act(&here, Role::Read, &member, facts);
    }
}

/// `tar xf a` is `tar -x -f a`; each letter of the bundle that takes a value gets one of the next words.
fn with_dash(words: &[Field]) -> Vec<Field> {
    let Some((first, rest)) = words.split_first() else { return Vec::new() };
    let Some(bundle) = first.known().filter(|text| !text.is_empty() && !text.starts_with('-'))
    else {
        return words.to_vec();
    };
    let mut rest = rest.iter();
    let mut dashed = Vec::new();
    for letter in bundle.chars() {
        dashed.push(Field::Known(format!("-{letter}")));
        if "fCTXbgHIKLNVF".contains(letter) {
            dashed.extend(rest.next().cloned());
        }
    }
    dashed.extend(rest.cloned());
    dashed
}

pub(super) fn zip(walker: &mut Walker<'_>, call: &ProgramCall<'_>) -> CommandFacts {
    let mut facts = CommandFacts::default();
    let plain = call
        .words
        .iter()
        .filter(|word| !word.start().starts_with('-') || word.known() == Some("-"));
    for (at, word) in plain.enumerate() {
        walker.act(call, if at == 0 { Role::Write } else { Role::Read }, word, &mut facts);
    }
    // It also tests by a command, deletes what it packs, and reads names and writes logs.
    let is_plain = |text: &str| {
        text.starts_with('-') && text[1..].bytes().all(|it| b"0123456789jqrvDuy".contains(&it))
    };
    let runs = call
        .words
        .iter()
        .any(|word| word.known().is_none_or(|text| text.starts_with('-') && !is_plain(text)));
    if runs {
        facts.add(Effect::Runs("zip".to_owned()));
    }
    facts
}

pub(super) fn unzip(walker: &mut Walker<'_>, call: &ProgramCall<'_>) -> CommandFacts {
    let mut facts = walker.options(call);
    let archive = call.sorted.operands.first();
    if let Some(archive) = archive {
        let here = ProgramCall { cwd: walker.state.folders.clone(), ..*call };
        walker.act(&here, Role::Read, archive, &mut facts);
    }
    if call.sorted.has(&["p", "c"]) {
        members(walker, call, call.sorted.operands.get(1..).unwrap_or_default(), &mut facts);
    }
    if !call.sorted.has(&["l", "p", "t", "v", "Z", "z", "c"]) {
        facts.at(Effect::Write, call.cwd.here());
        if call.sorted.has(&["o"]) {
            facts.at_least(Risk::Medium);
        }
    }
    facts
}

/// `gzip` and its like replace files, unless told to print or test.
pub(super) fn compress(walker: &mut Walker<'_>, call: &ProgramCall<'_>) -> CommandFacts {
    let mut facts = walker.options(call);
    // To some, `-l` and `-t` mean something else.
    let looks: &[&str] = match call.title {
        "bzip2" | "bunzip2" | "pbzip2" | "brotli" => &["c", "stdout", "t", "test"],
        "lz4" | "unlz4" => &["c", "stdout", "t", "test", "list"],
        "compress" | "uncompress" | "pixz" => &["c", "stdout"],
        _ => &["c", "stdout", "to-stdout", "t", "test", "l", "list"],
    };
    if call.sorted.has(&["files", "files0", "filelist"]) && !call.sorted.has(looks) {
        facts.at(Effect::Write, call.cwd.here());
    }
    let second_is_output = call.title.ends_with("lz4") && call.sorted.operands.len() > 1;
    let prints = call.sorted.has(looks) && !second_is_output;
    for operand in &call.sorted.operands {
        walker.act(call, Role::Read, operand, &mut facts);
        if !prints && operand.known() != Some("-") {
            facts.at(Effect::Write, call.cwd.places(operand));
            facts.at(Effect::Write, call.cwd.here());
        }
    }
    facts
}

pub(super) fn seven(walker: &mut Walker<'_>, call: &ProgramCall<'_>) -> CommandFacts {
    let mut facts = CommandFacts::default();
    let certain = call.words.iter().all(|word| word.known().is_some());
    let has = |flag: &str| call.words.iter().any(|word| word.known() == Some(flag));
    let to_output = has("-so");
    let verb = call.words.first().and_then(Field::known);
    let plain = call.words.iter().skip(1).filter(|word| !word.start().starts_with('-'));
    let reads = matches!(verb, Some("l" | "t" | "h" | "b" | "i"))
        || matches!(verb, Some("e" | "x" | "a")) && to_output;
    for word in plain {
        walker.act(call, if reads { Role::Read } else { Role::Write }, word, &mut facts);
    }
    if !certain || has("-sdel") || has("-spe") {
        facts.add(Effect::Unknown(
            "7z: gnoma does not know what some of its arguments do".to_owned(),
        ));
    }
    if !reads {
        facts.at(Effect::Write, call.cwd.here());
    }
    facts
}

pub(super) fn ar(walker: &mut Walker<'_>, call: &ProgramCall<'_>) -> CommandFacts {
    let mut facts = CommandFacts::default();
    let verb =
        call.words.first().and_then(Field::known).unwrap_or_default().trim_start_matches('-');
    let reads = verb.starts_with(['t', 'p']) && verb.bytes().all(|byte| b"tpvOV".contains(&byte));
    for word in call.words.iter().skip(1) {
        walker.act(call, if reads { Role::Read } else { Role::Write }, word, &mut facts);
        if word.start().starts_with(['-', '@']) || word.known().is_none() && word.may_be_option() {
            facts.add(Effect::Runs(format!("ar: `{word}` may name a plug-in")));
        }
    }
    if !reads {
        facts.at(Effect::Write, call.cwd.here());
    }
    facts
}
