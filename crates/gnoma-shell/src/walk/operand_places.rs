//! The places that operands of a program stand for: files, patterns of files, and paths of git.

use super::call::ProgramCall;
use super::command_facts::CommandFacts;
use crate::expand::Field;
use crate::facts::{Effect, FilePlace};
use crate::programs::Consequence;

/// Programs that search what they are named, as they do below a folder.
const SEARCHING: [&str; 6] = ["grep", "egrep", "fgrep", "rg", "ag", "ugrep"];

/// Programs that tell figures and names of files, and nothing of what is in them.
const MEASURING: [&str; 10] =
    ["wc", "ls", "stat", "du", "file", "md5sum", "sha1sum", "sha256sum", "cksum", "basename"];

/// Adds a file that is read, unless an option has it written or deleted.
pub(super) fn add_file_operand(call: &ProgramCall<'_>, word: &Field, facts: &mut CommandFacts) {
    if call.sorted.leads_to(Consequence::Writes) {
        facts.add_at_places(Effect::Write, call.cwd.resolve_places(word));
    } else if call.sorted.leads_to(Consequence::Deletes) {
        facts.add_at_places(Effect::Delete, call.cwd.resolve_places(word));
    } else {
        facts.add_at_places(Effect::Read, read_places(call, word));
    }
}

/// Returns the places that a word points to, for a word that is read. Names of a listing are split at blanks,
/// unless they are exact, and may so become any path: then only programs that show no contents may have them.
/// Programs that show whole files show secrets, too, among everything below a folder.
fn read_places(call: &ProgramCall<'_>, word: &Field) -> Vec<FilePlace> {
    let Field::Listed { places, exact, .. } = word else { return call.cwd.resolve_places(word) };
    let searches = SEARCHING.contains(&call.title);
    let narrow = |place: &FilePlace| match place {
        FilePlace::Pattern { pattern, .. } => !pattern.ends_with("/**"),
        FilePlace::Path(_) | FilePlace::Unknown(_) => true,
    };
    if MEASURING.contains(&call.title) || *exact && (searches || places.iter().all(narrow)) {
        return places.to_vec();
    }
    call.cwd.resolve_places(word)
}

/// Adds the files that fit a pattern, wherever below the working folder they are.
pub(super) fn add_searched_files(call: &ProgramCall<'_>, word: &Field, facts: &mut CommandFacts) {
    let Some(pattern) = word.known_text().filter(|text| !text.starts_with('!')) else {
        if word.known_text().is_none() {
            facts.add(Effect::Read(FilePlace::Unknown(word.to_string())));
        }
        return;
    };
    let anywhere = |name: &str| Field::Pattern(format!("**/{}", name.trim_start_matches('/')));
    match split_alternatives(pattern) {
        Some(names) => {
            for name in names {
                facts.add_at_places(Effect::Read, call.cwd.resolve_places(&anywhere(&name)));
            }
        }
        None => facts.add(Effect::Read(FilePlace::Unknown(pattern.to_owned()))),
    }
}

/// `*.{ts,tsx}` as patterns without braces; `None` when there are many or braces within braces.
fn split_alternatives(pattern: &str) -> Option<Vec<String>> {
    const MOST: usize = 32;
    let mut all = vec![String::new()];
    let mut rest = pattern;
    while let Some((before, after)) = rest.split_once('{') {
        let (inside, after) = after.split_once('}').filter(|(inside, _)| !inside.contains('{'))?;
        let joined = |start: &String| {
            let start = format!("{start}{before}");
            inside.split(',').map(move |one| format!("{start}{one}")).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(joined).take(MOST + 1).collect();
        rest = after;
    }
    for one in &mut all {
        one.push_str(rest);
    }
    (all.len() <= MOST).then_some(all)
}

/// Returns the paths that a word may be to git: itself, or those of `HEAD:path`, `:0:path` and `:(top)path`.
pub(super) fn git_paths(word: &Field) -> Vec<Field> {
    let Some(text) = word.known_text() else { return vec![word.clone()] };
    if text.starts_with(":!") || text.starts_with(":^") {
        return Vec::new();
    }
    let of_pathspec = text.strip_prefix(":(").and_then(|rest| rest.split_once(')'));
    let paths: Vec<&str> = match of_pathspec {
        Some((_, path)) => vec![path],
        None if text.contains(':') => text
            .match_indices(':')
            .filter_map(|(at, _)| text.get(at + 1..))
            .map(|path| path.trim_start_matches('/'))
            .collect(),
        None => vec![text],
    };
    let paths = paths.into_iter().filter(|path| !path.is_empty()).map(str::to_owned);
    let is_pattern = |path: &String| path.contains(['*', '?', '[']);
    paths
        .map(|path| if is_pattern(&path) { Field::Pattern(path) } else { Field::Known(path) })
        .collect()
}
