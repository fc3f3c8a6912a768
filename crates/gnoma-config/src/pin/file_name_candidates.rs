//! Texts in settings that may be names of files.

use std::{
    collections::BTreeSet,
    path::{Component, Path, PathBuf},
};

use super::settings::SettingsTexts;

/// Programs that run what a file of the project says, which nobody names, and those files.
const RUNNERS: [(&[&str], &[&str]); 4] = [
    (&["make", "gmake"], &["Makefile", "makefile", "GNUmakefile"]),
    (
        &["npm", "pnpm", "yarn", "bun", "npx"],
        &["package.json", ".npmrc", ".pnpmfile.cjs", ".yarnrc.yml"],
    ),
    (&["just"], &["justfile", "Justfile", ".justfile"]),
    (&["task"], &["Taskfile.yml", "Taskfile.yaml"]),
];
/// The characters at which commands are cut when they are searched for names of files.
const SEPARATORS: [char; 17] =
    ['"', '\'', '`', ';', '&', '|', '<', '>', '(', ')', '{', '}', '=', ',', ':', '$', '\\'];

/// Programs that take a module for a file, and the option before its name.
const PYTHON: &str = "python";
const MODULE_OPTION: &str = "-m";
/// The endings that programs add to a file name without an ending.
const ENDINGS: [&str; 7] = [".js", ".mjs", ".cjs", ".ts", ".py", ".rb", "/index.js"];
/// The programs that add an ending to a file name without one.
const COMPLETING: [&str; 6] = ["node", "bun", "deno", "tsx", "ts-node", "ruby"];

/// All texts, whole and cut into words, with what the commands among them name in other ways.
pub(super) fn collect_words(said: &SettingsTexts) -> BTreeSet<String> {
    let is_between = |c: char| c.is_whitespace() || SEPARATORS.contains(&c);
    let mut words: BTreeSet<String> = gnoma_core::sort::to_set(
        said.texts
            .iter()
            .flat_map(|text| text.split(is_between))
            .filter(|word| !word.is_empty())
            .map(str::to_owned),
    );
    words.extend(said.texts.iter().flat_map(|text| as_a_shell_reads(text)));
    for (programs, files) in RUNNERS {
        if programs.iter().any(|program| words.contains(*program)) {
            words.extend(files.iter().map(|file| (*file).to_owned()));
        }
    }
    for command in said.command_lines() {
        let read = as_a_shell_reads(command);
        words.extend(python_modules(&read));
        words.extend(complete_file_names(&read));
    }
    words.extend(said.texts.iter().cloned());
    words
}

/// A name in the configuration as seen from `folder`. Joining an absolute one leads elsewhere.
pub(super) fn relative_to_folder(folder: &Path, word: &str) -> PathBuf {
    let path = Path::new(word);
    let below = path.strip_prefix(folder).unwrap_or(path);
    below.components().filter(|part| !matches!(part, Component::CurDir)).collect()
}

/// The files that `python3 -m NAME` may run.
fn python_modules(words: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    let is_python =
        |word: &String| word.rsplit('/').next().is_some_and(|name| name.starts_with(PYTHON));
    for (at, _) in words.iter().enumerate().filter(|(_, word)| is_python(word)) {
        let mut rest = words.iter().skip(at + 1);
        let Some(option) =
            rest.find(|word| word.starts_with(MODULE_OPTION) || !word.starts_with('-'))
        else {
            continue;
        };
        let name = match option.strip_prefix(MODULE_OPTION) {
            Some("") => rest.next().map(String::as_str),
            joined => joined,
        };
        let Some(name) = name else { continue };
        let path = name.replace('.', "/");
        found.extend([format!("{path}.py"), format!("{path}/__main__.py")]);
        // Packages around it run before it does.
        let ends = path.match_indices('/').map(|(end, _)| end).chain([path.len()]);
        let packages = ends.filter_map(|end| path.get(..end));
        found.extend(packages.map(|package| format!("{package}/__init__.py")));
    }
    found
}

/// Names of files as programs complete them.
fn complete_file_names(words: &[String]) -> Vec<String> {
    let completes = words.iter().any(|word| COMPLETING.contains(&word.as_str()));
    let bare = words.iter().filter(|word| completes && !word.starts_with('-'));
    bare.flat_map(|word| ENDINGS.map(|ending| format!("{word}{ending}"))).collect()
}

/// The words of a command without their quotes: `"./a b.sh"`, `./a\ b.sh` and `./x".sh"` name files.
pub(super) fn as_a_shell_reads(text: &str) -> Vec<String> {
    split_commands(text).into_iter().flatten().collect()
}

/// The same, apart for each command of a list.
pub(super) fn split_commands(text: &str) -> Vec<Vec<String>> {
    let (mut all, mut words, mut word, mut quote) = (Vec::new(), Vec::new(), String::new(), None);
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (letter, quote) {
            ('\\', None | Some('"')) => word.extend(letters.next()),
            ('"' | '\'', None) => quote = Some(letter),
            (_, Some(open)) if letter == open => quote = None,
            (_, None) if letter.is_whitespace() || ";&|<>()=".contains(letter) => {
                words.push(std::mem::take(&mut word));
                if ";&|\n".contains(letter) {
                    all.push(std::mem::take(&mut words));
                }
            }
            _ => word.push(letter),
        }
    }
    words.push(word);
    all.push(words);
    for words in &mut all {
        words.retain(|word| !word.is_empty());
    }
    all
}
