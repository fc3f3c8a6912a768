//! Which shell commands are checks: runs of tests, builds and lints.
//!
//! `gnoma-shell` splits a command into its simple commands, also those that `sudo`, `timeout` or `bash -c` run. Each is
//! judged by its first words. Nothing is run or looked up; aliases and scripts under other names are not seen through.

use std::collections::BTreeSet;

use gnoma_shell::{Invocation, StartContext, analyse_command};

/// A longer command carries data; it is not searched.
const MAX_COMMAND_BYTES: usize = 64 << 10;

/// The words of a simple command that are looked at; bounds the recursion into `exec` and `-m`.
const MAX_WORDS: usize = 64;

/// The property that a check proves, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Purpose {
    Lint,
    Build,
    Test,
}

/// Programs that fetch or surround the one that their arguments name; options and numbers may stand between.
const LAUNCHERS: [&str; 5] = ["bunx", "npx", "pnpx", "uvx", "xvfb-run"];

/// Programs whose second word, one of [`RUN_WORDS`], is followed by a command.
const ENVIRONMENTS: [&str; 7] = ["bundle", "hatch", "pdm", "pipenv", "poetry", "rye", "uv"];
const RUN_WORDS: [&str; 2] = ["exec", "run"];

const TESTERS: [&str; 19] = [
    "ava",
    "bats",
    "ctest",
    "cypress",
    "doctest",
    "jest",
    "mocha",
    "nose2",
    "nosetests",
    "nox",
    "phpunit",
    "playwright",
    "py.test",
    "pytest",
    "rspec",
    "tox",
    "trial",
    "unittest",
    "vitest",
];
const BUILDERS: [&str; 4] = ["compileall", "py_compile", "tsc", "vue-tsc"];
const LINTERS: [&str; 13] = [
    "biome",
    "eslint",
    "flake8",
    "golangci-lint",
    "mypy",
    "oxlint",
    "pylint",
    "pyright",
    "rubocop",
    "ruff",
    "shellcheck",
    "staticcheck",
    "stylelint",
];

/// Options whose value is the next word.
const VALUE_OPTIONS: [&str; 11] = [
    "-C",
    "-F",
    "-f",
    "-j",
    "-w",
    "--cwd",
    "--dir",
    "--file",
    "--filter",
    "--manifest-path",
    "--prefix",
];

/// Stands for a word that only running would show.
const UNCERTAIN: &str = "?";

/// Options with which a program only tells about itself.
const TELLING_OPTIONS: [&str; 4] = ["--help", "--version", "-V", "-h"];

/// Returns what the checks anywhere in `command` prove.
pub(super) fn command_purposes(command: &str) -> BTreeSet<Purpose> {
    if command.len() > MAX_COMMAND_BYTES {
        return BTreeSet::new();
    }
    // Where it runs does not matter, and a home makes the names of programs below it certain.
    let start = StartContext { cwd: "/".into(), home: Some("/".into()) };
    gnoma_core::sort::to_set(
        analyse_command(command, &start).commands.iter().filter_map(purpose_of),
    )
}

fn purpose_of(invocation: &Invocation) -> Option<Purpose> {
    let words = invocation.words.iter().take(MAX_WORDS);
    let words: Vec<&str> = words.map(|word| word.as_deref().unwrap_or(UNCERTAIN)).collect();
    program_purpose(without_launchers(&words))
}

fn is_shell(name: &str) -> bool {
    matches!(name, "sh" | "bash" | "dash" | "zsh")
}

/// Returns the words from the program on: without launchers and environments.
fn without_launchers<'w, 't>(mut words: &'w [&'t str]) -> &'w [&'t str] {
    loop {
        words = match words {
            [first, rest @ ..] if LAUNCHERS.contains(&file_name(first)) => without_options(rest),
            [first, second, rest @ ..]
                if ENVIRONMENTS.contains(first) && RUN_WORDS.contains(second) =>
            {
                without_options(rest)
            }
            _ => return words,
        };
    }
}

fn without_options<'w, 't>(words: &'w [&'t str]) -> &'w [&'t str] {
    let is_option = |word: &&str| word.starts_with(|c: char| c == '-' || c.is_ascii_digit());
    let count = words.iter().take_while(|word| is_option(word)).count();
    words.get(count..).unwrap_or_default()
}

/// Returns what a command proves whose first word is its program.
fn program_purpose(words: &[&str]) -> Option<Purpose> {
    let (program, arguments) = words.split_first()?;
    if arguments.iter().any(|word| TELLING_OPTIONS.contains(word)) {
        return None;
    }
    let positional = positional_words(arguments);
    let first = positional.first().copied();
    match file_name(program) {
        "cargo" => cargo_purpose(first?, arguments),
        "npm" => npm_script(first?, &positional)
            .or_else(|| first?.starts_with('t').then_some(Purpose::Test)),
        "pnpm" | "yarn" | "bun" => npm_script(first?, &positional)
            .or_else(|| target_purpose(first?))
            .or_else(|| program_purpose(&positional)),
        "go" | "dotnet" | "swift" | "zig" | "mix" | "deno" | "flutter" | "dart" | "composer" => {
            target_purpose(first?)
        }
        "make" | "gmake" | "ninja" if first.is_none_or(|goal| goal == "all") => {
            Some(Purpose::Build)
        }
        "make" | "gmake" | "ninja" | "just" | "task" | "rake" | "bazel" | "meson" | "gradle"
        | "gradlew" => positional.iter().filter_map(|word| target_purpose(word)).max(),
        "mvn" | "mvnw" => positional.iter().filter_map(|word| maven_goal(word)).max(),
        "cmake" => arguments.contains(&"--build").then_some(Purpose::Build),
        name if is_shell(name) => script_purpose(first?),
        name if is_interpreter(name) => interpreter_purpose(arguments, &positional),
        name if TESTERS.contains(&name) => Some(Purpose::Test),
        name if BUILDERS.contains(&name) => Some(Purpose::Build),
        name if LINTERS.contains(&name) => Some(Purpose::Lint),
        _ if program.contains('/') => script_purpose(program),
        _ => None,
    }
}

/// The certain words that are no options, values of options or assignments.
fn positional_words<'t>(arguments: &[&'t str]) -> Vec<&'t str> {
    let mut positional = Vec::new();
    let mut is_value = false;
    for word in arguments {
        let is_certain = *word != UNCERTAIN;
        if is_certain && !is_value && !word.starts_with(['-', '+']) && !word.contains('=') {
            positional.push(*word);
        }
        is_value = VALUE_OPTIONS.contains(word);
    }
    positional
}

fn cargo_purpose(subcommand: &str, arguments: &[&str]) -> Option<Purpose> {
    match subcommand {
        "t" | "nextest" => Some(Purpose::Test),
        "b" | "c" | "check" => Some(Purpose::Build),
        "clippy" => Some(Purpose::Lint),
        "fmt" => arguments.contains(&"--check").then_some(Purpose::Lint),
        _ => target_purpose(subcommand),
    }
}

/// `run SCRIPT` and `exec PROGRAM` of the package managers of JavaScript.
fn npm_script(first: &str, positional: &[&str]) -> Option<Purpose> {
    let rest = positional.get(1..)?;
    match first {
        "run" | "run-script" => target_purpose(rest.first()?),
        "exec" | "x" | "dlx" => program_purpose(rest),
        _ => None,
    }
}

fn maven_goal(word: &str) -> Option<Purpose> {
    match word {
        "install" | "package" => Some(Purpose::Test),
        _ => target_purpose(word),
    }
}

fn is_interpreter(name: &str) -> bool {
    let versionless = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    matches!(versionless, "python" | "node" | "ruby" | "php" | "perl" | "tsx" | "ts-node")
}

/// A module (`-m`), a test runner (`--test`), a script, or a manager's command.
fn interpreter_purpose(arguments: &[&str], positional: &[&str]) -> Option<Purpose> {
    match arguments {
        ["-m", module @ ..] => program_purpose(module),
        ["--test", ..] => Some(Purpose::Test),
        ["-c" | "-e", ..] => None,
        _ => match positional {
            ["manage.py" | "setup.py", command, ..] => target_purpose(command),
            [file, ..] => script_purpose(file),
            [] => None,
        },
    }
}

/// Returns what a script proves by its name, or by its place in a folder of tests.
fn script_purpose(path: &str) -> Option<Purpose> {
    if path.contains(char::is_whitespace) {
        return None;
    }
    let mut parts = path.rsplit('/');
    let by_name = parts.next().and_then(target_purpose);
    let by_folder =
        || parts.next().and_then(target_purpose).filter(|purpose| *purpose == Purpose::Test);
    by_name.or_else(by_folder)
}

/// Returns what a target, task or script proves by the words of its name.
fn target_purpose(name: &str) -> Option<Purpose> {
    let word_purpose = |word: &str| match word {
        "check" | "checks" | "ci" | "e2e" | "spec" | "verify" => Some(Purpose::Test),
        "assemble" | "build" | "compile" | "tsc" | "typecheck" => Some(Purpose::Build),
        "clippy" | "lint" | "vet" => Some(Purpose::Lint),
        _ => word.starts_with("test").then_some(Purpose::Test),
    };
    name.split(|c: char| !c.is_alphanumeric()).filter_map(word_purpose).max()
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn command_purpose_is_recognized_as_test_build_or_lint() {
        for (purpose, commands) in [
            (
                Purpose::Test,
                &[
                    "cargo test",
                    "cargo +nightly nextest run -p core 2>&1 | tail -20",
                    "cd app && RUST_LOG=debug timeout 60 cargo test --quiet",
                    "npm test",
                    "npm t -- --watch=false",
                    "npm --prefix web run test:unit",
                    "pnpm -r test",
                    "yarn jest src",
                    "bun test",
                    "npx vitest run",
                    "node --test",
                    "pytest -x",
                    ".venv/bin/pytest tests/test_a.py::test_b",
                    "python3.12 -m pytest",
                    "python -m unittest discover",
                    "python manage.py test app",
                    "poetry run pytest",
                    "uv run --quiet pytest",
                    "go test ./...",
                    "make -C lib check",
                    "make -j4 test > log.txt",
                    "ctest --output-on-failure",
                    "./mvnw -q verify",
                    "./gradlew :app:testDebugUnitTest",
                    "dotnet test",
                    "bundle exec rspec",
                    "tox -e py312",
                    "bash tests/run.sh",
                    "bash .ci/run",
                    "sh ./run_tests.sh",
                    "./test.sh",
                    "bash -lc 'cd app && cargo test'",
                    "if cargo test; then echo ok; fi",
                    "(cd app; go test)",
                    "cat <<EOF > a\ntext\nEOF\ncargo test",
                    "bash <<EOF\ncargo test\nEOF",
                    "ls crates | xargs -n 1 cargo test -p",
                    "make -C $DIR test",
                    "$HOME/.venv/bin/pytest",
                ][..],
            ),
            (
                Purpose::Build,
                &[
                    "cargo check --all-targets",
                    "cargo build --release",
                    "npm run build",
                    "tsc --noEmit",
                    "npx tsc -p .",
                    "go build ./...",
                    "make",
                    "make -j 8 CC=clang",
                    "make -j$(nproc)",
                    "make build",
                    "cmake --build out",
                    "gradle assemble",
                    "./build.sh",
                ],
            ),
            (
                Purpose::Lint,
                &[
                    "cargo clippy -- -D warnings",
                    "cargo fmt --all --check",
                    "npm run lint",
                    "pnpm exec eslint src",
                    "ruff check .",
                    "python -m mypy src",
                    "go vet ./...",
                ],
            ),
        ] {
            for command in commands {
                assert_eq!(command_purposes(command), BTreeSet::from([purpose]), "{command}");
            }
        }
        let both = BTreeSet::from([Purpose::Lint, Purpose::Test]);
        assert_eq!(command_purposes("cargo clippy && cargo test"), both);
        assert_eq!(command_purposes("bash -c 'cargo clippy; cargo test'"), both);
    }

    #[test]
    fn non_check_commands_are_not_taken_for_tests_or_builds() {
        for command in [
            "",
            "ls tests",
            "cat test.sh",
            "echo cargo test",
            "grep -rn 'cargo test' .",
            "git commit -m 'make the tests pass; cargo test is green'",
            "git checkout test",
            "cargo run --bin test",
            "cargo --version",
            "cargo fmt",
            "pytest --help",
            "npm install",
            "npm run start",
            "python main.py",
            "python -c 'import test'",
            "node server.js",
            "make clean",
            "make -f build.mk clean",
            "just",
            "mvn clean",
            "[ -f tests ] && test -f a",
            "./target/debug/app",
            "./latest.sh",
            "cat > run.sh <<'EOF'\ncargo test\nEOF",
        ] {
            assert_eq!(command_purposes(command), BTreeSet::new(), "{command}");
        }
        assert!(command_purposes(&"yarn ".repeat(10_000)).is_empty());
        assert!(
            command_purposes(&format!("cargo test {}", "x".repeat(MAX_COMMAND_BYTES))).is_empty()
        );
    }

    proptest! {
        #[test]
        fn check_command_recognition_never_panics(command in "([a-z./=\"'`$(){};&|<>\\-\n ]|bash|-c|npx|<<E){0,80}") {
            command_purposes(&command);
        }
    }
}
