//! Commands of the shell itself: they change what it knows, or run texts.

use super::Walker;
use super::assign::add_variable_effect;
use super::command_facts::CommandFacts;
use super::file_tests::is_file_test;
use crate::expand::{Field, Value};
use crate::facts::{Effect, Invocation, Risk};

/// Programs that wait for what was started in the background, or end it.
const ENDING_JOBS: [&str; 5] = ["fg", "kill", "killall", "pkill", "wait"];

/// Options of `set` and `shopt` do not run anything; `-x` prints with `PS4`, which is looked at where it is set.
const SET_FLAGS: &str = "bCeEfhmnoptTuvx";
/// Settings of `set -o` that change neither what is exported nor what is read.
const SET_NAMES: [&str; 12] = [
    "errexit",
    "pipefail",
    "nounset",
    "xtrace",
    "verbose",
    "noglob",
    "noclobber",
    "errtrace",
    "functrace",
    "monitor",
    "notify",
    "noexec",
];

/// Builtins that change nothing that is followed.
const INERT: [&str; 9] =
    ["umask", "ulimit", "times", "suspend", "disown", "fg", "bg", "caller", "type"];
/// Programs that read commands of a shell.
const SHELLS: [&str; 17] = [
    "sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "rbash", "fish", "csh", "tcsh", "yash",
    "rc", "es", "elvish", "pdksh", "sash",
];

impl Walker<'_> {
    /// Returns the effects of a builtin; `None` if `name` is no builtin.
    pub(super) fn walk_builtin(
        &mut self,
        name: &str,
        words: &[Field],
        from: usize,
    ) -> Option<CommandFacts> {
        if let Some(is_harmless) = harmless_words(name) {
            return Some(harmless_when(name, words, is_harmless));
        }
        Some(match name {
            "cd" | "chdir" => self.cd_builtin(words),
            "pushd" => self.pushd_builtin(words),
            "popd" => self.popd_builtin(words),
            "export" | "declare" | "typeset" | "readonly" | "local" => {
                self.declare_builtin(name, words)
            }
            "unset" => self.unset_builtin(words),
            "read" => self.read_builtin(words),
            "mapfile" | "readarray" => self.mapfile_builtin(words),
            "set" => {
                self.shift_arguments();
                set_builtin(words)
            }
            "let" => self.let_builtin(words),
            "test" | "[" => self.test_builtin(words),
            "compgen" => self.compgen_builtin(words),
            "printf" => self.printf_builtin(words),
            "getopts" => self.getopts_builtin(words),
            "eval" => self.eval_builtin(words),
            "." | "source" => self.source_builtin(words),
            "exec" => self.exec_builtin(words),
            "command" | "builtin" => self.command_builtin(name, words),
            "coproc" => {
                self.walk_inner_command(words);
                CommandFacts::default()
            }
            "trap" => self.trap_builtin(words),
            "alias" => alias_builtin(words),
            "unalias" | "enable" | "bind" | "complete" | "compopt" | "fc" => {
                environment_builtin(name, words)
            }
            _ => return self.leaving_or_running(name, words, from),
        })
    }

    /// Builtins that leave something or run another program; `None` when `name` is none.
    fn leaving_or_running(
        &mut self,
        name: &str,
        words: &[Field],
        from: usize,
    ) -> Option<CommandFacts> {
        Some(match name {
            "exit" | "return" | "break" | "continue" | "logout" => {
                self.leave_block(name, words);
                CommandFacts::default()
            }
            "shift" => {
                if !is_at_most_a_number(words) {
                    self.may_abort();
                }
                self.shift_arguments();
                CommandFacts::default()
            }
            "dirs" => {
                self.state.stack.clear();
                CommandFacts::default()
            }
            _ if INERT.contains(&name) => CommandFacts::default(),
            _ if SHELLS.contains(&name) => self.walk_shell(name, words, from),
            "env" | "genv" => self.walk_env(words),
            _ => return self.walk_wrapper(name, words),
        })
    }

    fn unset_builtin(&mut self, words: &[Field]) -> CommandFacts {
        let mut facts = CommandFacts::default();
        for word in words {
            match word.known_text() {
                Some("-v") => {}
                Some("-f") => self.state.functions.clear(),
                Some(name) if is_name(name) => {
                    add_variable_effect(name, Some(&Value::Number), &mut facts);
                    self.assign_variable(name, Value::Unknown);
                    // Where no variable has the name, a function goes.
                    self.state.functions.remove(name);
                }
                _ => facts.add(subscript_effect(word)),
            }
        }
        facts
    }

    /// Sets each variable a builtin names to what is not known.
    pub(super) fn assign_unknown(&mut self, names: &[Field], facts: &mut CommandFacts) {
        for name in names {
            match name.known_text() {
                Some(name) if is_name(name) => {
                    add_variable_effect(name, None, facts);
                    self.assign_variable(name, Value::Unknown);
                }
                _ => facts.add(subscript_effect(name)),
            }
        }
    }

    fn read_builtin(&mut self, words: &[Field]) -> CommandFacts {
        let mut facts = CommandFacts::default();
        let mut rest = words;
        while let Some((word, after)) = rest.split_first() {
            let Some(option) = word.known_text().and_then(|text| text.strip_prefix('-')) else {
                break;
            };
            rest = after;
            if option == "-" {
                break;
            }
            let Some(at) = option.find(['d', 'i', 'n', 'N', 'p', 't', 'u', 'a']) else { continue };
            let joined = option.get(at + 1..).filter(|value| !value.is_empty());
            let value = match joined {
                Some(value) => Field::Known(value.to_owned()),
                None => rest.split_first().map_or(Field::unknown_word(""), |(value, after)| {
                    rest = after;
                    value.clone()
                }),
            };
            if option.get(at..).is_some_and(|letter| letter.starts_with('a')) {
                self.state.arrays.extend(value.known_text().map(str::to_owned));
                self.assign_unknown(&[value], &mut facts);
            }
        }
        self.assign_unknown(rest, &mut facts);
        facts
    }

    fn mapfile_builtin(&mut self, words: &[Field]) -> CommandFacts {
        let mut facts = CommandFacts::default();
        let mut rest = words;
        while let Some((word, after)) = rest.split_first() {
            let Some(option) = word.known_text().and_then(|text| text.strip_prefix('-')) else {
                break;
            };
            rest = after;
            if option.contains('C') {
                facts.add(Effect::Unknown("`mapfile -C` runs a command for each line".to_owned()));
            }
            if option.ends_with(['d', 'n', 'O', 's', 'u', 'c', 'C']) {
                rest = rest.get(1..).unwrap_or_default();
            }
        }
        self.state.arrays.extend(rest.iter().filter_map(Field::known_text).map(str::to_owned));
        self.assign_unknown(rest, &mut facts);
        facts
    }

    fn let_builtin(&mut self, words: &[Field]) -> CommandFacts {
        let mut facts = CommandFacts::default();
        for word in words {
            let Some(text) = word.known_text() else {
                facts.add(Effect::Unknown(format!("`{word}` is evaluated and may run commands")));
                continue;
            };
            let names = super::assign::calculated_names(text);
            for name in &names {
                self.state.set_if_new(name, Value::Number);
            }
            self.expand_with(&mut facts, |expander| expander.check_expression(text));
            for name in &names {
                self.assign_and_warn(name, Value::Number);
            }
        }
        facts
    }

    /// `test` looks at files, and `-v` calculates subscripts: a word that is not known may be it.
    fn test_builtin(&mut self, words: &[Field]) -> CommandFacts {
        let mut facts = CommandFacts::default();
        let last = if words.last().and_then(Field::known_text) == Some("]") { 1 } else { 0 };
        let words = words.get(..words.len() - last).unwrap_or_default();
        let known = |at: usize| words.get(at).and_then(Field::known_text);
        let compares = |at: usize| known(at).is_some_and(|text| COMPARING.contains(&text));
        for (at, word) in words.iter().enumerate() {
            let next = words.get(at + 1);
            if let Some("-v" | "-R") = word.known_text() {
                if let Some(name) = next.filter(|name| !name.known_text().is_some_and(is_name)) {
                    facts.add(subscript_effect(name));
                }
                continue;
            }
            let follows = at
                .checked_sub(1)
                .is_some_and(|at| compares(at) || known(at).is_some_and(is_file_test));
            let is_operand = follows || compares(at + 1);
            // With two words only, one that is not known is an operator.
            let is_plain = |next: &Field| {
                words.len() > 2 && next.known_text().is_some_and(|text| !text.contains('['))
            };
            let may_name = next.is_some_and(|next| !is_plain(next));
            let may_be_operator = word.known_text().is_none() && word.may_be_option();
            if may_be_operator && (word.may_be_many() || may_name && !is_operand) {
                facts.add(Effect::Unknown(format!("`{word}` may be an operator")));
            }
        }
        self.add_tested_files(words, &mut facts);
        facts
    }

    /// `compgen` looks at the files whose names it completes.
    fn compgen_builtin(&self, words: &[Field]) -> CommandFacts {
        // Options may be bundled; those letters run, expand or read what they are given.
        let reads_more = ['C', 'F', 'W', 'P', 'S', 'X', 'G'];
        let is_harmless = |word: &str| !(word.starts_with('-') && word.contains(reads_more));
        let mut facts = harmless_when("compgen", words, is_harmless);
        let texts = || words.iter().filter_map(Field::known_text);
        let lists_files = |text: &str| match text.strip_prefix('-') {
            Some(letters) => letters.contains(['d', 'f', 'o']),
            None => matches!(text, "directory" | "file"),
        };
        let is_start = |text: &&str| texts().any(lists_files) && !text.starts_with('-');
        for start in texts().filter(is_start) {
            let named = Field::Pattern(format!("{start}*"));
            facts.add_looks(&self.state.folders, &named);
        }
        facts
    }

    fn getopts_builtin(&mut self, words: &[Field]) -> CommandFacts {
        let mut facts = CommandFacts::default();
        self.assign_unknown(words.get(1..2).unwrap_or_default(), &mut facts);
        self.assign_variable("OPTARG", Value::Unknown);
        self.assign_variable("OPTIND", Value::Number);
        facts
    }

    fn eval_builtin(&mut self, words: &[Field]) -> CommandFacts {
        let words = match words.first().and_then(Field::known_text) {
            Some("--") => words.get(1..).unwrap_or_default(),
            _ => words,
        };
        let texts: Option<Vec<&str>> = words.iter().map(Field::known_text).collect();
        match texts {
            Some(texts) => {
                let text = texts.join(" ");
                let mut facts = self.indirect_effect(&text);
                facts.merge_with(self.walk_text(&text));
                facts
            }
            None => CommandFacts::unknown_effect("what `eval` runs is only known at run time")
                .with_risk(Risk::High),
        }
    }

    fn source_builtin(&mut self, words: &[Field]) -> CommandFacts {
        let Some(file) = words.first() else { return CommandFacts::default() };
        if matches!(file.known_text(), Some("/dev/stdin" | "/dev/fd/0")) {
            return self.run_input("source");
        }
        let mut facts = CommandFacts::from_effect(Effect::Runs(file.to_string()))
            .with_risk(self.fed_risk(file));
        facts.add_at_places(Effect::Read, self.state.folders.resolve_places(file));
        self.state.forget_all();
        facts
    }

    fn exec_builtin(&mut self, words: &[Field]) -> CommandFacts {
        let mut rest = words;
        while let Some((word, after)) = rest.split_first() {
            match word.known_text() {
                Some("-a") => rest = after.get(1..).unwrap_or_default(),
                Some("-c" | "-l" | "-cl" | "-lc" | "--") => rest = after,
                _ => break,
            }
        }
        if !rest.is_empty() {
            self.walk_child_command(rest);
        }
        CommandFacts::default()
    }

    fn command_builtin(&mut self, name: &str, words: &[Field]) -> CommandFacts {
        let mut rest = words;
        while let Some((word, after)) = rest.split_first() {
            let Some(text) = word.known_text().filter(|text| text.starts_with('-')) else { break };
            rest = after;
            match text {
                "--" => break,
                "-p" => {}
                _ if text.contains(['v', 'V'])
                    && text.bytes().all(|byte| b"-pvV".contains(&byte)) =>
                {
                    if text.contains('p') && rest.iter().any(|word| word.known_start() == "--") {
                        break;
                    }
                    return CommandFacts::default();
                }
                _ => {
                    return CommandFacts::unknown_effect(format!(
                        "unknown option `{text}` of `{name}`"
                    ));
                }
            }
        }
        if !rest.is_empty() {
            self.walk_inner_command(rest);
        }
        CommandFacts::default()
    }

    fn trap_builtin(&mut self, words: &[Field]) -> CommandFacts {
        let words = match words.first().and_then(Field::known_text) {
            Some("-p" | "-l") => return CommandFacts::default(),
            Some("--") => words.get(1..).unwrap_or_default(),
            _ => words,
        };
        match words {
            [] | [_] => CommandFacts::default(),
            [Field::Known(text), ..] if text == "-" => CommandFacts::default(),
            [Field::Known(text), signals @ ..] => {
                let at_exit =
                    signals.iter().all(|it| matches!(it.known_text(), Some("EXIT" | "0")));
                self.walk_trap_text(text, at_exit)
            }
            _ => CommandFacts::unknown_effect("what `trap` runs is only known at run time"),
        }
    }
}

impl Walker<'_> {
    /// A text that runs at any time later, whatever is set by then. Only at the end does it not matter
    /// what it sets itself.
    fn walk_trap_text(&mut self, text: &str, at_exit: bool) -> CommandFacts {
        let before = (self.changes, self.state.functions.len());
        let first = self.found.len();
        let (mut facts, after) = self.walk_in_subshell(|walker| {
            walker.state.forget_all();
            let facts = walker.walk_text(text);
            walker.merge_failed_state();
            (facts, (walker.changes, walker.state.functions.len()))
        });
        self.trap_ends_jobs |= self.found.get(first..).unwrap_or_default().iter().any(ends_jobs);
        if after != before && !at_exit {
            facts.add(Effect::Unknown("`trap` changes what later commands mean".to_owned()));
        }
        facts
    }
}

/// Operators of `test` between two operands.
const COMPARING: [&str; 15] = [
    "=", "==", "!=", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef", "=~",
];

fn set_builtin(words: &[Field]) -> CommandFacts {
    let Some(first) = words.first() else {
        return CommandFacts::from_effect(Effect::Settings("all variables".to_owned()));
    };
    let Some(text) = first.known_text() else {
        return if first.may_be_option() {
            CommandFacts::unknown_effect(format!("`{first}` may be an option of `set`"))
        } else {
            CommandFacts::default()
        };
    };
    if !text.starts_with(['-', '+']) || text == "--" || text == "-" {
        return CommandFacts::default();
    }
    let harmless = |word: &Field| {
        word.known_text().is_some_and(|text| match text.strip_prefix(['-', '+']) {
            Some(flags) => flags.chars().all(|flag| SET_FLAGS.contains(flag)),
            None => SET_NAMES.contains(&text),
        })
    };
    let named = words.iter().take_while(|word| word.known_text() != Some("--"));
    match named.into_iter().find(|word| !harmless(word)) {
        Some(word) => CommandFacts::unknown_effect(format!(
            "option `{word}` of `set` may change what later commands do"
        )),
        None => CommandFacts::default(),
    }
}

fn alias_builtin(words: &[Field]) -> CommandFacts {
    let mut facts = CommandFacts::default();
    for word in words {
        if word.known_text() != Some("-p")
            && word.known_text().is_none_or(|text| text.contains('='))
        {
            facts.add(Effect::Environment(format!("alias {word}")));
        }
    }
    facts
}

/// Builtins that change what names mean, or run what they are given.
fn environment_builtin(name: &str, words: &[Field]) -> CommandFacts {
    if words.is_empty()
        || words.len() == 1 && words.first().and_then(Field::known_text) == Some("-l")
    {
        return CommandFacts::default();
    }
    CommandFacts::from_effect(Effect::Environment(format!("`{name}` changes what commands mean")))
}

/// For builtins that do nothing as long as every word passes a test: that test.
fn harmless_words(name: &str) -> Option<fn(&str) -> bool> {
    Some(match name {
        "shopt" => |word| {
            matches!(word, "-s" | "-u" | "-p" | "-q" | "nullglob" | "globstar")
                || matches!(word, "nocasematch" | "extglob")
        },
        "wait" => |word| !(word.starts_with('-') && word.contains(['p', 'f'])),
        "hash" => |word| !(word.starts_with('-') && word.contains('p')),
        "jobs" => |word| !word.contains('x'),
        _ => return None,
    })
}

/// A builtin that does nothing as long as every word is like this.
fn harmless_when(name: &str, words: &[Field], is_harmless: impl Fn(&str) -> bool) -> CommandFacts {
    // The number of a process is neither an option nor text that is evaluated.
    let is_process = |word: &Field| matches!(word, Field::Process { .. });
    let strange =
        words.iter().find(|word| !is_process(word) && !word.known_text().is_some_and(&is_harmless));
    strange.map_or_else(CommandFacts::default, |word| {
        CommandFacts::unknown_effect(format!(
            "gnoma does not know what `{name}` does with `{word}`"
        ))
    })
}

fn subscript_effect(word: &Field) -> Effect {
    Effect::Unknown(format!("`{word}` is evaluated as a subscript and may run commands"))
}

/// Reports whether a command waits for what was started in the background, or ends it.
pub(super) fn ends_jobs(command: &Invocation) -> bool {
    let program = command.words.first().and_then(Option::as_deref);
    program.is_some_and(|program| ENDING_JOBS.contains(&program))
}

pub(super) fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// True if the words are valid arguments for `exit`, `break`, `shift` and the like: none, or one number. With more
/// words these builtins give up the line.
pub(super) fn is_at_most_a_number(words: &[Field]) -> bool {
    match words {
        [] => true,
        [word] => {
            Value::from_field(word).is_number()
                || word.known_text().is_none() && !word.may_be_option()
        }
        _ => false,
    }
}
