//! What a rule says that a command names: `npm run hook`, `make hook`, `just hook`. Its lines are commands of their
//! own.
//!
//! Not a `make`: rules that it makes up by patterns, includes and variables are not followed, and neither is what
//! packages bring along (`npx`); that is told.

use std::{
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::words::as_a_shell_reads;

/// Most bytes of a file with rules.
const MAX_BYTES: u64 = 1 << 20;
/// Most lines of rules that one command leads to.
const MAX_LINES: usize = 500;
/// Most folders that a command names in which rules are looked for.
const MAX_FOLDERS: usize = 8;
/// Programs that run the scripts of `package.json`.
const PACKAGES: [&str; 4] = ["npm", "pnpm", "yarn", "bun"];
const MAKES: [&str; 2] = ["make", "gmake"];
const MAKEFILES: [&str; 3] = ["GNUmakefile", "makefile", "Makefile"];
const JUSTFILES: [&str; 3] = ["justfile", "Justfile", ".justfile"];
/// Programs that run what lies in packages, or rules that are not read here.
const OPEN: [&str; 5] = ["npx", "pnpx", "bunx", "task", "corepack"];
/// What begins before the name of a script.
const RUN: [&str; 2] = ["run", "run-script"];
/// What installs run besides.
const INSTALLS: [&str; 4] = ["preinstall", "install", "postinstall", "prepare"];

/// What the rules say that a command names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Ruled {
    /// Their lines.
    pub(super) lines: Vec<String>,
    /// More may run than these.
    pub(super) is_open: bool,
}

/// What `command` has run in the project in `folder`.
pub(super) fn of(folder: &Path, command: &str) -> Ruled {
    let mut all = Ruled::default();
    let mut next = vec![command.to_owned()];
    while let Some(command) = next.pop() {
        let Ruled { lines, is_open } = named(folder, &command);
        all.is_open |= is_open || all.lines.len() > MAX_LINES;
        for line in lines {
            if all.lines.len() <= MAX_LINES && !all.lines.contains(&line) {
                all.lines.push(line.clone());
                next.push(line);
            }
        }
    }
    all
}

fn named(folder: &Path, command: &str) -> Ruled {
    let words = as_a_shell_reads(command);
    let mut found = Ruled::default();
    for (at, word) in words.iter().enumerate() {
        let program = word.rsplit('/').next().unwrap_or(word);
        let rest = words.get(at + 1..).unwrap_or_default();
        let lines = if PACKAGES.contains(&program) {
            scripts(folder, &words, rest)
        } else if MAKES.contains(&program) {
            recipes(folder, &words, rest, &MAKEFILES)
        } else if program == "just" {
            recipes(folder, &words, rest, &JUSTFILES)
        } else {
            found.is_open |= OPEN.contains(&program);
            continue;
        };
        // `bun run x.ts` names the file itself.
        let is_file = |word: &String| folder.join(word).is_file();
        let Some(lines) = lines else { continue };
        found.is_open |= lines.is_empty() && !rest.iter().any(is_file);
        found.lines.extend(lines);
    }
    found
}

/// The project, and the folders in it that a command names.
fn folders(folder: &Path, words: &[String]) -> Vec<PathBuf> {
    let below = words.iter().map(|word| folder.join(word.trim_start_matches("./")));
    let below = below.filter(|path| path.starts_with(folder) && path.is_dir());
    std::iter::once(folder.to_owned()).chain(below.take(MAX_FOLDERS)).collect()
}

fn read(path: &Path) -> Option<String> {
    let mut text = String::new();
    File::open(path).ok()?.take(MAX_BYTES).read_to_string(&mut text).ok()?;
    Some(text)
}

/// The scripts of `package.json` that the arguments of such a program name; `None` where there is no such file.
fn scripts(folder: &Path, words: &[String], arguments: &[String]) -> Option<Vec<String>> {
    let mut plain = arguments.iter().filter(|word| !word.starts_with('-'));
    let verb = plain.next().map(String::as_str)?;
    let names: Vec<&str> = match verb {
        _ if RUN.contains(&verb) => plain.map(String::as_str).collect(),
        "t" => vec!["test"],
        "i" | "ci" | "install" | "add" => INSTALLS.to_vec(),
        verb => vec![verb],
    };
    let mut found = None;
    for place in folders(folder, words) {
        let Some(text) = read(&place.join("package.json")) else { continue };
        let lines: &mut Vec<String> = found.get_or_insert_default();
        let package: Value = serde_json::from_str(&text).unwrap_or_default();
        for name in &names {
            let around = [format!("pre{name}"), (*name).to_owned(), format!("post{name}")];
            let script = |name: &String| package.get("scripts")?.get(name)?.as_str();
            lines.extend(around.iter().filter_map(script).map(str::to_owned));
        }
    }
    found
}

/// The lines of the rules that the arguments of `make` or `just` name, else of the first one, with those that they
/// need; `None` where there is no file with rules.
fn recipes(
    folder: &Path,
    words: &[String],
    arguments: &[String],
    files: &[&str],
) -> Option<Vec<String>> {
    let mut found = None;
    for place in folders(folder, words) {
        let Some(text) = files.iter().find_map(|name| read(&place.join(name))) else { continue };
        let lines: &mut Vec<String> = found.get_or_insert_default();
        let rules = rules(&text, files == JUSTFILES);
        let known = |name: &String| rules.iter().any(|rule| rule.names.contains(name));
        let mut next: Vec<String> = arguments.iter().filter(|word| known(word)).cloned().collect();
        if next.is_empty() && !arguments.iter().any(|word| !word.starts_with('-')) {
            let is_plain = |rule: &&MakeRule| !rule.names.iter().any(|name| name.starts_with('.'));
            next.extend(rules.iter().find(is_plain).and_then(|rule| rule.names.first()).cloned());
        }
        let mut seen: Vec<String> = Vec::new();
        while let Some(name) = next.pop().filter(|_| seen.len() < MAX_LINES) {
            if seen.contains(&name) {
                continue;
            }
            for rule in rules.iter().filter(|rule| rule.names.contains(&name)) {
                lines.extend(rule.lines.iter().cloned());
                next.extend(rule.needs.iter().cloned());
            }
            seen.push(name);
        }
    }
    found
}

/// A rule of a file for `make` or `just`.
struct MakeRule {
    names: Vec<String>,
    needs: Vec<String>,
    lines: Vec<String>,
}

/// Rules as both write them: names, a colon, what they need; then lines that are indented.
fn rules(text: &str, is_just: bool) -> Vec<MakeRule> {
    let text = text.replace("\\\n", " ");
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let mut rules: Vec<MakeRule> = Vec::new();
    for line in text.lines() {
        if line.starts_with([' ', '\t']) {
            let line = line.trim().trim_start_matches(['@', '-', '+']);
            if let Some(rule) = rules.last_mut().filter(|_| !line.is_empty()) {
                rule.lines.push(line.to_owned());
            }
            continue;
        }
        let line = line.split('#').next().unwrap_or_default();
        let Some((names, rest)) = line.split_once(':') else { continue };
        if rest.starts_with('=') || (names.contains('=') && !is_just) {
            continue;
        }
        // Behind the name of a rule of `just` stand its parameters.
        let names = if is_just { words(names).into_iter().take(1).collect() } else { words(names) };
        let (needs, own) = rest.trim_start_matches(':').split_once(';').unwrap_or((rest, ""));
        let own = Some(own.trim()).filter(|own| !own.is_empty()).map(str::to_owned);
        let lines = own.into_iter().collect();
        rules.push(MakeRule { names, needs: words(needs), lines });
    }
    rules
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::pin::tests::pins;

    #[test]
    fn what_a_named_rule_starts_is_pinned() {
        const PACKAGE: &str =
            r#"{"scripts":{"prehook":"sh a.sh","hook":"npm run -s two","two":"node b.js"}}"#;
        const MAKE: &str = "X := 1\nall: other\n\nhook check: deep\n\t@python3 a.py \\\n\t  --all\n\n\
            deep: ; sh b.sh\nother:\n\tsh c.sh\n";
        for (command, file, text, name, is_pinned) in [
            ("npm run hook", "package.json", PACKAGE, "a.sh", true),
            ("npm run -s hook -- --x", "package.json", PACKAGE, "b.js", true),
            ("yarn hook", "package.json", PACKAGE, "b.js", true),
            ("npm run two", "package.json", PACKAGE, "a.sh", false),
            ("cd sub && npm run two", "sub/package.json", PACKAGE, "sub/b.js", true),
            ("make hook", "Makefile", MAKE, "a.py", true),
            ("make -s check", "Makefile", MAKE, "b.sh", true),
            ("make", "Makefile", MAKE, "c.sh", true),
            ("make hook", "Makefile", MAKE, "c.sh", false),
            (
                "just hook",
                "justfile",
                "hook name='x':\n    sh tools/a.sh {{name}}\n",
                "tools/a.sh",
                true,
            ),
        ] {
            let folder = tempfile::tempdir().unwrap();
            fs::create_dir_all(folder.path().join(file).parent().unwrap()).unwrap();
            fs::write(folder.path().join(file), text).unwrap();
            assert_eq!(pins(folder.path(), command, name), is_pinned, "{command}: {name}");
        }
    }

    #[test]
    fn what_names_no_rule_that_is_read_is_open() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("package.json"), r#"{"scripts":{"x":"npm run x"}}"#).unwrap();
        fs::write(folder.path().join("Makefile"), "a: a\n\ttrue\n").unwrap();
        for (command, is_open) in [
            ("npm run x", false),
            ("npm run y", true),
            ("npx eslint", true),
            ("make a", false),
            ("make b", true),
            ("task x", true),
            ("just x", false),
            ("sh x.sh", false),
        ] {
            assert_eq!(of(folder.path(), command).is_open, is_open, "{command}");
        }
    }
}
