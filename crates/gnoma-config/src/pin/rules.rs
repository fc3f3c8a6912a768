//! Finds the rule that a command names (`npm run hook`, `make hook`, `just hook`) and its lines, which are commands of
//! their own.
//!
//! Not a `make`: what is not understood (patterns, includes, options, packages) is open, and that is told. Files are
//! read once, and all work is limited: the project may not be trusted yet.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Component, Path, PathBuf},
    rc::Rc,
};

use super::{
    build_rule_files::{self, JUSTFILES, MAKEFILES, PACKAGE_FILES, RuleBook},
    file_name_candidates::{as_a_shell_reads, relative_to_folder, split_commands},
    ruled_commands::RuledCommands,
};

/// Most lines of rules that one command leads to.
const MAX_LINES: usize = 500;
/// Most folders that a command names in which rules are looked for.
const MAX_FOLDERS: usize = 8;
/// Most work for all commands together: the bytes of what is read, and what each look for something costs beside.
const MAX_WORK: usize = 8 << 20;
const LOOK: usize = 64;
/// Programs that run the scripts of `package.json`.
const PACKAGES: [&str; 4] = ["npm", "pnpm", "yarn", "bun"];
const MAKES: [&str; 2] = ["make", "gmake"];
/// Programs that run what lies in packages, or rules that are not read here.
const OPEN: [&str; 5] = ["npx", "pnpx", "bunx", "task", "corepack"];
/// The words that stand before the name of a script.
const RUN: [&str; 2] = ["run", "run-script"];
/// The subcommands that install packages; the list after it holds the scripts that they run besides those of
/// packages.
const INSTALL: [&str; 4] = ["i", "ci", "install", "add"];
const INSTALLS: [&str; 4] = ["preinstall", "install", "postinstall", "prepare"];
/// Options that change nothing of what is run, without numbers at their end; and those that name a folder.
const PLAIN_OPTIONS: [&str; 14] = [
    "",
    "-",
    "--",
    "-s",
    "-q",
    "-k",
    "-B",
    "-j",
    "--silent",
    "--quiet",
    "--jobs",
    "--keep-going",
    "--no-print-directory",
    "--if-present",
];
const FOLDER_OPTIONS: [&str; 5] = ["-C", "--directory", "--prefix", "--cwd", "--dir"];
/// The signs in a line of a rule whose words come from elsewhere.
const FILLED_IN: [&str; 8] = ["{{", "#!", "$<", "$^", "$@", "$*", "$?", "$+"];

/// The files with rules in a project, and how much more work they may make.
pub(super) struct RuleSearch<'f> {
    folder: &'f Path,
    left: usize,
    books: BTreeMap<(PathBuf, &'static str), Rc<RuleBook>>,
}

impl<'f> RuleSearch<'f> {
    pub(super) fn new(folder: &'f Path) -> Self {
        Self { folder, left: MAX_WORK, books: BTreeMap::new() }
    }

    /// Returns the lines of rules that `command` runs in the project; `None` where finding them is too much work.
    pub(super) fn follow_command(&mut self, command: &str) -> Option<RuledCommands> {
        let mut all = RuledCommands::default();
        let mut seen = BTreeSet::new();
        let mut next = vec![(command.to_owned(), vec![PathBuf::new()])];
        while let Some((text, mut places)) = next.pop() {
            self.spend_budget(text.len())?;
            let words = as_a_shell_reads(&text);
            if !all.lines.is_empty() || words.iter().any(|word| names_rules(word)) {
                self.enter_folders(&words, &mut places, &mut all.is_open)?;
            }
            let mut found = RuledCommands::default();
            for words in split_commands(&text) {
                self.collect_named(&words, &places, &mut found)?;
            }
            all.is_open |= found.is_open;
            for line in found.lines {
                if all.lines.len() >= MAX_LINES {
                    all.is_open = true;
                } else if seen.insert((line.clone(), places.clone())) {
                    all.lines.push(line.clone());
                    next.push((line, places.clone()));
                }
            }
        }
        Some(all)
    }

    fn spend_budget(&mut self, bytes: usize) -> Option<()> {
        self.left = self.left.checked_sub(bytes + LOOK)?;
        Some(())
    }

    /// Adds the folders that a command names to those it may run in.
    fn enter_folders(
        &mut self,
        words: &[String],
        places: &mut Vec<PathBuf>,
        is_open: &mut bool,
    ) -> Option<()> {
        for word in words {
            // A variable may stand for the folder.
            let tail = word.split_once('/').filter(|_| word.starts_with('$'));
            let name =
                relative_to_folder(self.folder, tail.map_or(word.as_str(), |(_, tail)| tail));
            if name.components().any(|part| part == Component::ParentDir) {
                *is_open = true;
            } else if !name.is_absolute() && !places.contains(&name) {
                self.spend_budget(places.len() * LOOK)?;
                let is_folder = self.folder.join(&name).is_dir();
                // Files of a folder that is named from another one are in no pin.
                *is_open |= is_folder && places.len() > MAX_FOLDERS
                    || places.iter().skip(1).any(|at| self.folder.join(at).join(&name).is_dir());
                if is_folder && places.len() <= MAX_FOLDERS {
                    places.push(name);
                }
            }
        }
        Some(())
    }

    /// Adds the lines of rules that one command names to `found`; `None` where that is too much work.
    fn collect_named(
        &mut self,
        words: &[String],
        places: &[PathBuf],
        found: &mut RuledCommands,
    ) -> Option<()> {
        for (at, word) in words.iter().enumerate() {
            let program = word.rsplit('/').next().unwrap_or(word);
            let rest = words.get(at + 1..).unwrap_or_default();
            found.is_open |= OPEN.contains(&program);
            // `sh -c '…'`
            let is_text = |word: &&String| word.contains(char::is_whitespace);
            if word.starts_with('-') && word.ends_with('c') {
                found.lines.extend(rest.first().filter(is_text).cloned());
            }
            let files = if PACKAGES.contains(&program) {
                PACKAGE_FILES
            } else if MAKES.contains(&program) {
                MAKEFILES
            } else if program == "just" {
                JUSTFILES
            } else {
                continue;
            };
            self.spend_budget(rest.len() * LOOK)?;
            let names = target_names(rest, places, &mut found.is_open);
            if files == PACKAGE_FILES {
                self.collect_scripts(program, &names, places, found)?;
            } else {
                self.collect_recipes(&names, files, places, found)?;
            }
        }
        Some(())
    }

    fn load_book(&mut self, place: &Path, files: &'static [&'static str]) -> Option<Rc<RuleBook>> {
        self.spend_budget(0)?;
        let key = (place.to_owned(), *files.first()?);
        if let Some(book) = self.books.get(&key) {
            return Some(Rc::clone(book));
        }
        let (book, bytes) = build_rule_files::read_rule_book(&self.folder.join(place), files);
        self.spend_budget(bytes)?;
        Some(Rc::clone(self.books.entry(key).or_insert(Rc::new(book))))
    }

    /// The scripts of `package.json` that the arguments of such a program name.
    fn collect_scripts(
        &mut self,
        program: &str,
        names: &[&str],
        places: &[PathBuf],
        found: &mut RuledCommands,
    ) -> Option<()> {
        let verb = names.first().copied().unwrap_or_default();
        let name = if RUN.contains(&verb) { names.get(1).copied() } else { None };
        let name = name.unwrap_or(if verb == "t" { "test" } else { verb });
        // Those of packages run, too.
        found.is_open |= INSTALL.contains(&name);
        let around = [format!("pre{name}"), name.to_owned(), format!("post{name}")];
        let installs = INSTALLS.map(str::to_owned);
        let wanted = if INSTALL.contains(&name) { &installs[..] } else { &around[..] };
        let mut lines = Vec::new();
        let mut is_any = false;
        for place in places {
            let book = self.load_book(place, PACKAGE_FILES)?;
            is_any |= book.is_there;
            let rules = wanted.iter().filter_map(|name| book.named.get(name)).flatten();
            let of_place: Vec<String> = rules
                .filter_map(|at| book.rules.get(*at))
                .flat_map(|rule| rule.lines.iter().cloned())
                .collect();
            for line in &of_place {
                self.spend_budget(line.len())?;
            }
            lines.extend(of_place);
        }
        // `bun run x.ts` names the file itself.
        let is_file =
            program == "bun" && places.iter().any(|at| self.folder.join(at).join(name).is_file());
        found.is_open |= is_any && lines.is_empty() && !is_file;
        // What lies there is found before other programs, and the shell itself is looked for there.
        for word in lines.iter().flat_map(|line| as_a_shell_reads(line)).chain(["sh".to_owned()]) {
            for place in places {
                self.spend_budget(0)?;
                let bin = self.folder.join(place).join("node_modules/.bin");
                found.is_open |= !word.contains('/') && bin.join(&word).symlink_metadata().is_ok();
            }
        }
        found.lines.extend(lines);
        Some(())
    }

    /// The lines of the rules that the arguments of `make` or `just` name, else of the first one, with those that
    /// they need.
    fn collect_recipes(
        &mut self,
        names: &[&str],
        files: &'static [&'static str],
        places: &[PathBuf],
        found: &mut RuledCommands,
    ) -> Option<()> {
        let mut unknown: BTreeSet<&str> = gnoma_core::sort::to_set(names.iter().copied());
        let mut is_any = false;
        for place in places {
            let book = self.load_book(place, files)?;
            is_any |= book.is_there;
            found.is_open |= book.is_open;
            unknown.retain(|name| !book.named.contains_key(*name));
            self.collect_needed_rules(&book, start_targets(&book, names), place, found)?;
        }
        let is_place = |name: &&str| places.iter().any(|at| at.ends_with(name));
        found.is_open |= is_any && unknown.iter().any(|name| !is_place(name));
        Some(())
    }

    /// Adds the lines of the rules with these names and of all rules that they need. A name without a rule is a file.
    fn collect_needed_rules<'b>(
        &mut self,
        book: &'b RuleBook,
        mut next: Vec<&'b str>,
        place: &Path,
        found: &mut RuledCommands,
    ) -> Option<()> {
        let (mut seen, mut done) = (BTreeSet::new(), BTreeSet::new());
        while let Some(name) = next.pop() {
            self.spend_budget(name.len())?;
            if !seen.insert(name) {
                continue;
            }
            let Some(rules) = book.named.get(name) else {
                found.is_open |= !self.folder.join(place).join(name).is_file();
                continue;
            };
            for at in rules.iter().filter(|at| done.insert(**at)) {
                let Some(rule) = book.rules.get(*at) else { continue };
                self.spend_budget(rule.lines.iter().map(|line| line.len() + LOOK).sum())?;
                found.is_open |= rule.lines.iter().any(|line| is_filled_in(line));
                found.lines.extend(rule.lines.iter().cloned());
                next.extend(rule.needs.iter().map(String::as_str));
            }
        }
        Some(())
    }
}

/// Returns those of `names` that have rules; without names the first rule, as `make` and `just` begin with it.
fn start_targets<'b>(book: &'b RuleBook, names: &[&'b str]) -> Vec<&'b str> {
    if names.is_empty() {
        let plain = book.named.iter().filter(|(name, _)| !name.starts_with('.'));
        let first = plain.min_by_key(|(_, at)| at.first().copied());
        return first.map(|(name, _)| name.as_str()).into_iter().collect();
    }
    names.iter().copied().filter(|name| book.named.contains_key(*name)).collect()
}

fn names_rules(word: &str) -> bool {
    let program = word.rsplit('/').next().unwrap_or(word);
    program == "just"
        || PACKAGES.contains(&program)
        || MAKES.contains(&program)
        || word.contains(char::is_whitespace)
}

fn is_filled_in(line: &str) -> bool {
    FILLED_IN.iter().any(|sign| line.contains(sign))
}

/// Returns the names among the arguments, without options. Sets `is_open` where one of the options is not known.
fn target_names<'w>(words: &'w [String], places: &[PathBuf], is_open: &mut bool) -> Vec<&'w str> {
    let mut names = Vec::new();
    let mut rest = words.iter().map(String::as_str);
    while let Some(word) = rest.next() {
        let is_place =
            |name: &str| places.iter().any(|at| at == &relative_to_folder(Path::new(""), name));
        if FOLDER_OPTIONS.contains(&word) {
            *is_open |= !rest.next().is_some_and(is_place);
        } else if PLAIN_OPTIONS.contains(&word.trim_end_matches(|c: char| c.is_ascii_digit())) {
            // `-j 4`, `2>&1`
        } else if word.starts_with('-') {
            *is_open = true;
        } else if word != "/dev/null" {
            names.push(word);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::pin::tests::pins;

    #[test]
    fn trust_pin_covers_scripts_of_npm_and_make_rules() {
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
            ("cd sub && npm run hook", "sub/package.json", PACKAGE, "sub/b.js", true),
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
    fn unknown_build_rules_are_reported_as_unpinned() {
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
            let ruled = RuleSearch::new(folder.path()).follow_command(command).unwrap();
            assert_eq!(ruled.is_open, is_open, "{command}");
        }
    }

    #[test]
    fn unsupported_build_rule_syntax_is_reported_as_unpinned() {
        const PACKAGE: &str = r#"{"scripts":{"a":"npm run b","b":"node evil.js","lint":"eslint .","up":"cd ../x && npm run b"}}"#;
        for (command, file, text, is_open) in [
            ("make -f tools/x.mk hook", "Makefile", "hook:\n\ttrue\n", true),
            ("make -C elsewhere hook", "Makefile", "hook:\n\ttrue\n", true),
            ("make -C sub -j4 hook 2>&1 && echo done", "sub/Makefile", "hook:\n\ttrue\n", false),
            ("make hook", "Makefile", "hook: made\n\ttrue\n", true),
            ("make hook", "Makefile", "hook: tools/x.mk\n\ttrue\n", false),
            ("make hook", "Makefile", "hook:\n\ttrue\ninclude tools/x.mk\n", true),
            ("make hook", "Makefile", "hook:\n\ttrue\nm%: x\n\ttrue\n", true),
            ("make hook", "Makefile", "SHELL := ./x\nhook:\n\ttrue\n", true),
            ("make hook", "Makefile", "hook: tools/x.mk\n\tsh $<\n", true),
            ("just hook", "justfile", "import 'x'\nhook:\n  true\n", true),
            ("cd sub && npm run a", "sub/package.json", PACKAGE, false),
            ("cd sub && npm run up", "sub/package.json", PACKAGE, true),
            ("cd ../sub && npm run a", "package.json", PACKAGE, true),
            ("npm --prefix sub run a", "sub/package.json", PACKAGE, false),
            ("npm --prefix=other run a", "package.json", PACKAGE, true),
            ("sh -c 'npm run lint; npm run none'", "package.json", PACKAGE, true),
            ("npm run lint", "package.json", PACKAGE, true),
            ("npm ci", "package.json", PACKAGE, true),
            ("npm run none tools/x.mk", "package.json", PACKAGE, true),
            ("bun run tools/x.mk", "package.json", PACKAGE, false),
        ] {
            let folder = tempfile::tempdir().unwrap();
            for file in [file, "tools/x.mk", "node_modules/.bin/eslint"] {
                fs::create_dir_all(folder.path().join(file).parent().unwrap()).unwrap();
                fs::write(folder.path().join(file), text).unwrap();
            }
            let ruled = RuleSearch::new(folder.path()).follow_command(command).unwrap();
            assert_eq!(ruled.is_open, is_open, "{command}: {text}");
        }
    }

    #[test]
    fn hostile_build_rules_are_refused_a_trust_pin() {
        let folder = tempfile::tempdir().unwrap();
        let many: Vec<String> = (0..50_000).map(|number| format!("a{number}")).collect();
        let text = format!("all: {0}\n{0}:\n{1}", many.join(" "), "\ttrue\n".repeat(50_000));
        fs::write(folder.path().join("Makefile"), text).unwrap();
        let package =
            serde_json::json!({"scripts": {"a": "npm run a ".repeat(90_000)}}).to_string();
        fs::write(folder.path().join("package.json"), package).unwrap();
        for command in ["make all ", "npm run a "] {
            let args = vec![command.repeat(40); 2_000];
            let config = format!("[[hooks]]\nargs = {args:?}\n");
            assert!(
                crate::pin::list_acting_files(folder.path(), config.as_bytes()).is_err(),
                "{command}"
            );
        }
    }
}
