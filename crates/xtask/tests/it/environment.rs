//! The table of environment variables, checked against the sources: what they read is in it, and each row is read.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use gnoma_core::environment::VARIABLES;
use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::{crates, sources};

/// Names of functions and closures that read a variable by its name.
const READERS: [&str; 9] =
    ["var", "get", "has", "set", "url", "named", "folder", "xdg_dir", "own_folder"];
/// Crates and files that are not shipped, or whose variables are set for tests.
const NOT_SHIPPED: [&str; 6] =
    ["gnoma-testkit", "gnoma-bench", "xtask", "tests", "laws.rs", "dice.rs"];
/// What reads like a variable and is none: a file of git's.
const NO_VARIABLE: &str = "HEAD";
/// The file whose tables name variables.
const TABLES: &str = "gnoma-config/src/env.rs";

/// The names of variables in one crate.
#[derive(Default)]
struct Names {
    /// Those that are read by a call.
    read: BTreeSet<String>,
    /// All texts that could be a name.
    written: BTreeSet<String>,
}

fn is_variable(text: &str) -> bool {
    text.len() > 1
        && text != NO_VARIABLE
        && text.starts_with(|c: char| c.is_ascii_uppercase())
        && !text.ends_with('_')
        && text.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

/// Returns the text of a literal that could be the name of a variable.
fn variable_name(token: &TokenTree) -> Option<String> {
    let TokenTree::Literal(literal) = token else { return None };
    let text = literal.to_string();
    let text = text.strip_prefix('"')?.strip_suffix('"')?;
    is_variable(text).then(|| text.to_owned())
}

/// Returns the tokens of a file in one list, without what is compiled for tests alone. A group is followed by its tokens.
fn flatten(tokens: TokenStream, flat: &mut Vec<TokenTree>) {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let is_hash = matches!(&token, TokenTree::Punct(sign) if sign.as_char() == '#');
        if is_hash
            && let Some(TokenTree::Group(group)) = tokens.peek()
            && group.stream().to_string() == "cfg (test)"
        {
            let ends = |token: &TokenTree| match token {
                TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
                token => token.to_string() == ";",
            };
            tokens.by_ref().find(ends);
            continue;
        }
        let inside = match &token {
            TokenTree::Group(group) => Some(group.stream()),
            _ => None,
        };
        flat.push(token);
        if let Some(inside) = inside {
            flatten(inside, flat);
        }
    }
}

fn collect_names(text: &str, names: &mut Names) {
    let mut flat = Vec::new();
    flatten(text.parse().unwrap(), &mut flat);
    let mut constants = BTreeMap::new();
    for window in flat.windows(7) {
        if let [word, name, .., value] = window
            && word.to_string() == "const"
            && let Some(value) = variable_name(value)
        {
            constants.insert(name.to_string(), value);
        }
    }
    names.written.extend(flat.iter().filter_map(variable_name));
    for pair in flat.windows(2) {
        let [TokenTree::Ident(reader), TokenTree::Group(arguments)] = pair else { continue };
        if !READERS.contains(&reader.to_string().as_str()) {
            continue;
        }
        let mut given = Vec::new();
        flatten(arguments.stream(), &mut given);
        names.read.extend(given.iter().filter_map(|token| {
            variable_name(token).or_else(|| constants.get(&token.to_string()).cloned())
        }));
    }
}

/// Returns the names of variables in the shipped sources, by crate.
fn names_by_crate() -> BTreeMap<String, Names> {
    let mut found: BTreeMap<String, Names> = BTreeMap::new();
    let root = crates();
    let mut files = Vec::new();
    sources(&root, &mut files);
    for file in files {
        let path = file.strip_prefix(&root).unwrap();
        let parts: Vec<_> = path.iter().filter_map(|part| part.to_str()).collect();
        if parts.get(1) != Some(&"src") || parts.iter().any(|part| NOT_SHIPPED.contains(part)) {
            continue;
        }
        let mut names = Names::default();
        collect_names(&fs::read_to_string(&file).unwrap(), &mut names);
        if path.ends_with(TABLES) {
            names.read.extend(names.written.iter().filter(|name| name.contains('_')).cloned());
        }
        let of_crate = found.entry(parts[0].to_owned()).or_default();
        of_crate.read.append(&mut names.read);
        of_crate.written.append(&mut names.written);
    }
    found
}

#[test]
fn environment_variables_that_are_read_are_in_the_table() {
    let found = names_by_crate();
    let known: BTreeSet<&str> = VARIABLES.iter().map(|variable| variable.name).collect();
    let mut wrong = Vec::new();
    for (name, names) in &found {
        let unknown = names.read.iter().filter(|read| !known.contains(read.as_str()));
        wrong.extend(unknown.map(|read| format!("{name} reads {read}, which is not in the table")));
    }
    for variable in VARIABLES.iter().filter(|variable| !variable.reader.starts_with('(')) {
        if !found.get(variable.reader).is_some_and(|names| names.written.contains(variable.name)) {
            wrong.push(format!("{} does not read {}", variable.reader, variable.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn variables_are_found_in_calls_and_behind_constants() {
    let mut names = Names::default();
    collect_names(
        "const BUS: &str = \"A_BUS\"; fn f() { env.get(BUS); has(\"TMUX\"); say(\"LOUD\") } \
         #[cfg(test)] mod tests { fn g() { env.get(\"TEST_ONLY\"); } }",
        &mut names,
    );
    assert_eq!(names.read, BTreeSet::from(["A_BUS".to_owned(), "TMUX".to_owned()]));
    assert!(names.written.contains("LOUD") && !names.written.contains("TEST_ONLY"));
}
