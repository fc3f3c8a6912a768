//! Archives and compressed files: listed, unpacked, or made.

use super::super::Walker;
use super::super::call::ProgramCall;
use super::super::command_facts::CommandFacts;
use crate::expand::Field;
use crate::facts::{Effect, FilePlace, Risk};
use crate::programs::{Consequence, Role, sort_words};

/// `tar`, also with its first word as a bundle of options without a dash.
pub(super) fn analyse_tar(walker: &mut Walker<'_>, call: &ProgramCall<'_>) -> CommandFacts {
    let words = with_dash(call.words);
    let sorted = sort_words(call.entry, &words);
    let call = &ProgramCall { sorted: &sorted, words: &words, cwd: call.cwd.clone(), ..*call };
    let folders = sorted.options.iter().filter(|given| given.role == Role::Folder);
    let into: Vec<&Field> = folders.filter_map(|given| given.values.last()).collect();
    let outer = walker.state.folders.clone();
    // Each is seen from the one before it; which holds for a member depends on the order of the words.
    let cwd = into.iter().fold(outer.clone(), |cwd, folder| cwd.enter_folder(folder));
    let members_in = if into.len() > 1 { cwd.to_unknown() } else { cwd.clone() };
    let mut facts = CommandFacts::default();
    if let Some(why) = sorted.strange.first() {
        facts.add(Effect::Unknown(format!("tar: {why}")));
    }
    let makes = sorted.leads_to(Consequence::Creates) || sorted.has_option(&["c", "r", "u", "A"]);
    let unpacks = sorted.leads_to(Consequence::Extracts) || sorted.has_option(&["x"]);
    let to_output = sorted.has_option(&["O", "to-stdout"]);
    let here = ProgramCall { cwd: outer, ..*call };
    apply_tar_options(walker, &here, makes, &mut facts);
    if makes {
        if !sorted.options.iter().any(|given| given.role == Role::Archive) {
            facts
                .add(Effect::Write(FilePlace::Unknown("the tape that tar uses by default".into())));
        }
        let here = ProgramCall { cwd: members_in, ..*call };
        let role = if sorted.leads_to(Consequence::Deletes) { Role::Delete } else { Role::Read };
        for operand in &sorted.operands {
            walker.apply_role(&here, role, operand, &mut facts);
        }
    }
    if unpacks && to_output {
        add_archive_members(walker, call, &sorted.operands, &mut facts);
    }
    if unpacks && !to_output {
        facts.add_at_places(Effect::Write, cwd.current_places());
        if sorted.has_option(&["P", "absolute-names"]) {
            facts.add(Effect::Unknown("tar: names in the archive may lead anywhere".to_owned()));
        }
    }
    facts
}

/// Applies the values of tar's options; with `makes`, the archive is written.
fn apply_tar_options(
    walker: &mut Walker<'_>,
    call: &ProgramCall<'_>,
    makes: bool,
    facts: &mut CommandFacts,
) {
    for given in &call.sorted.options {
        let Some(value) = given.values.last() else { continue };
        let role = match given.role {
            Role::Archive if makes => Role::Write,
            Role::Archive => Role::Read,
            role => role,
        };
        if value.known_start().contains(':') && given.role == Role::Archive {
            facts.add(Effect::Network(value.known_start().split(':').next().map(str::to_owned)));
        }
        walker.apply_role(call, role, value, facts);
    }
}

/// Members of an archive whose content is printed: what a file of that name would show.
fn add_archive_members(
    walker: &mut Walker<'_>,
    call: &ProgramCall<'_>,
    names: &[Field],
    facts: &mut CommandFacts,
) {
    let here = ProgramCall { cwd: walker.state.folders.clone(), ..*call };
    for name in names {
        // Names in an archive begin nowhere else.
        let member = match name.known_text().map(|text| text.trim_start_matches('/')) {
            Some(text) if text.contains(['*', '?', '[']) => Field::Pattern(text.to_owned()),
            Some(text) => Field::Known(text.to_owned()),
            None => name.clone(),
        };
        walker.apply_role(&here, Role::Read, &member, facts);
    }
}

/// `tar xf a` is `tar -x -f a`; each letter of the bundle that takes a value gets one of the next words.
fn with_dash(words: &[Field]) -> Vec<Field> {
    let Some((first, rest)) = words.split_first() else { return Vec::new() };
    let Some(bundle) = first.known_text().filter(|text| !text.is_empty() && !text.starts_with('-'))
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

pub(super) fn analyse_zip(walker: &mut Walker<'_>, call: &ProgramCall<'_>) -> CommandFacts {
    let mut facts = CommandFacts::default();
    let plain = call
        .words
        .iter()
        .filter(|word| !word.known_start().starts_with('-') || word.known_text() == Some("-"));
    for (at, word) in plain.enumerate() {
        walker.apply_role(call, if at == 0 { Role::Write } else { Role::Read }, word, &mut facts);
    }
    // It also tests by a command, deletes what it packs, and reads names and writes logs.
    let is_plain = |text: &str| {
        text.starts_with('-') && text[1..].bytes().all(|it| b"0123456789jqrvDuy".contains(&it))
    };
    let runs = call
        .words
        .iter()
        .any(|word| word.known_text().is_none_or(|text| text.starts_with('-') && !is_plain(text)));
    if runs {
        facts.add(Effect::Runs("zip".to_owned()));
    }
    facts
}

pub(super) fn analyse_unzip(walker: &mut Walker<'_>, call: &ProgramCall<'_>) -> CommandFacts {
    let mut facts = walker.option_facts(call);
    let archive = call.sorted.operands.first();
    if let Some(archive) = archive {
        let here = ProgramCall { cwd: walker.state.folders.clone(), ..*call };
        walker.apply_role(&here, Role::Read, archive, &mut facts);
    }
    if call.sorted.has_option(&["p", "c"]) {
        add_archive_members(
            walker,
            call,
            call.sorted.operands.get(1..).unwrap_or_default(),
            &mut facts,
        );
    }
    if !call.sorted.has_option(&["l", "p", "t", "v", "Z", "z", "c"]) {
        facts.add_at_places(Effect::Write, call.cwd.current_places());
        if call.sorted.has_option(&["o"]) {
            facts.at_least(Risk::Medium);
        }
    }
    facts
}

/// `gzip` and its like replace files, unless told to print or test.
pub(super) fn analyse_compressor(walker: &mut Walker<'_>, call: &ProgramCall<'_>) -> CommandFacts {
    let mut facts = walker.option_facts(call);
    // To some, `-l` and `-t` mean something else.
    let looks: &[&str] = match call.title {
        "bzip2" | "bunzip2" | "pbzip2" | "brotli" => &["c", "stdout", "t", "test"],
        "lz4" | "unlz4" => &["c", "stdout", "t", "test", "list"],
        "compress" | "uncompress" | "pixz" => &["c", "stdout"],
        _ => &["c", "stdout", "to-stdout", "t", "test", "l", "list"],
    };
    if call.sorted.has_option(&["files", "files0", "filelist"]) && !call.sorted.has_option(looks) {
        facts.add_at_places(Effect::Write, call.cwd.current_places());
    }
    let second_is_output = call.title.ends_with("lz4") && call.sorted.operands.len() > 1;
    let prints = call.sorted.has_option(looks) && !second_is_output;
    for operand in &call.sorted.operands {
        walker.apply_role(call, Role::Read, operand, &mut facts);
        if !prints && operand.known_text() != Some("-") {
            facts.add_at_places(Effect::Write, call.cwd.resolve_places(operand));
            facts.add_at_places(Effect::Write, call.cwd.current_places());
        }
    }
    facts
}

pub(super) fn analyse_7z(walker: &mut Walker<'_>, call: &ProgramCall<'_>) -> CommandFacts {
    let mut facts = CommandFacts::default();
    let certain = call.words.iter().all(|word| word.known_text().is_some());
    let has = |flag: &str| call.words.iter().any(|word| word.known_text() == Some(flag));
    let to_output = has("-so");
    let verb = call.words.first().and_then(Field::known_text);
    let plain = call.words.iter().skip(1).filter(|word| !word.known_start().starts_with('-'));
    let reads = matches!(verb, Some("l" | "t" | "h" | "b" | "i"))
        || matches!(verb, Some("e" | "x" | "a")) && to_output;
    for word in plain {
        walker.apply_role(call, if reads { Role::Read } else { Role::Write }, word, &mut facts);
    }
    if !certain || has("-sdel") || has("-spe") {
        facts.add(Effect::Unknown(
            "7z: gnoma does not know what some of its arguments do".to_owned(),
        ));
    }
    if !reads {
        facts.add_at_places(Effect::Write, call.cwd.current_places());
    }
    facts
}

pub(super) fn analyse_ar(walker: &mut Walker<'_>, call: &ProgramCall<'_>) -> CommandFacts {
    let mut facts = CommandFacts::default();
    let verb =
        call.words.first().and_then(Field::known_text).unwrap_or_default().trim_start_matches('-');
    let reads = verb.starts_with(['t', 'p']) && verb.bytes().all(|byte| b"tpvOV".contains(&byte));
    for word in call.words.iter().skip(1) {
        walker.apply_role(call, if reads { Role::Read } else { Role::Write }, word, &mut facts);
        if word.known_start().starts_with(['-', '@'])
            || word.known_text().is_none() && word.may_be_option()
        {
            facts.add(Effect::Runs(format!("ar: `{word}` may name a plug-in")));
        }
    }
    if !reads {
        facts.add_at_places(Effect::Write, call.cwd.current_places());
    }
    facts
}
